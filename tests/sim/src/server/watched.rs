//! The subscriptions of one session, in the core and in the oracle: every call goes to both, every answer is compared.

use std::sync::Arc;

use backplane_nodes::Caller;
use backplane_session::{
    Limits, PublishReply, PublishRequest, PublishTicket, SampleKey, SubscriptionParameters, SubscriptionRegistry,
    Subscriptions,
};
use backplane_types::{
    CreateMonitoredItemsRequest, CreateSubscriptionRequest, DataValue, ModifyMonitoredItemsRequest,
    ModifySubscriptionRequest, MonitoredItemCreateResult, MonitoredItemModifyResult, MonitoringMode, Now, StatusCode,
};

use super::Done;
use super::source::{self, Source, SpaceSampler};
use crate::executor::Executor;
use crate::log::{Log, Rule};
use crate::mutant::Mutant;
use crate::oracle::{Changed, SessionOracle};
use crate::plant::Plant;

/// See the module text.
pub(crate) struct Watched {
    pub(crate) session: u32,
    pub(crate) core: Subscriptions<Source>,
    pub(crate) oracle: SessionOracle,
    limits: Arc<Limits>,
    mutant: Option<Mutant>,
    /// Values lost to full queues that were counted.
    lost: u64,
}

impl Watched {
    pub(crate) fn new(
        session: u32,
        limits: &Arc<Limits>,
        registry: &Arc<SubscriptionRegistry>,
        mutant: Option<Mutant>,
    ) -> Self {
        let mut of_core = Limits::clone(limits);
        if mutant == Some(Mutant::KeepsTooManyRequests) {
            of_core.max_publish_requests *= 4;
        }
        Self {
            session,
            core: Subscriptions::new(Arc::new(of_core), Arc::clone(registry)),
            oracle: SessionOracle::new(session, Arc::clone(limits)),
            limits: Arc::clone(limits),
            mutant,
            lost: 0,
        }
    }

    pub(crate) fn create_subscription(
        &mut self,
        log: &mut Log,
        now: Now,
        asked: &CreateSubscriptionRequest,
    ) -> Result<backplane_session::RevisedSubscription, StatusCode> {
        let parameters = SubscriptionParameters::from(asked);
        let enabled = asked.publishing_enabled;
        let result = self.core.create_subscription(now, &parameters, enabled);
        let told = result.as_ref().map_err(|status| *status);
        self.oracle.created(log, now, &parameters, enabled, told);
        result
    }

    pub(crate) fn modify_subscription(
        &mut self,
        log: &mut Log,
        now: Now,
        asked: &ModifySubscriptionRequest,
    ) -> Result<backplane_session::RevisedSubscription, StatusCode> {
        let parameters = SubscriptionParameters::from(asked);
        let result = self.core.modify_subscription(now, asked.subscription_id, &parameters);
        let told = result.as_ref().map_err(|status| *status);
        self.oracle.modified(log, now, asked.subscription_id, &parameters, told);
        result
    }

    pub(crate) fn set_publishing_mode(
        &mut self,
        log: &mut Log,
        enabled: bool,
        ids: &[u32],
    ) -> Result<Vec<StatusCode>, StatusCode> {
        let results = self.core.set_publishing_mode(enabled, ids)?;
        let expected = self.oracle.publishing_mode(enabled, ids);
        same(log, "SetPublishingMode", &results, &expected);
        Ok(results)
    }

    pub(crate) fn delete_subscriptions(&mut self, log: &mut Log, ids: &[u32]) -> Result<Vec<StatusCode>, StatusCode> {
        let results = self.core.delete_subscriptions(ids)?;
        let expected = self.oracle.deleted(log, ids);
        same(log, "DeleteSubscriptions", &results, &expected);
        Ok(results)
    }

    pub(crate) fn create_items(
        &mut self,
        log: &mut Log,
        (plant, caller): (&Plant, &Arc<Caller>),
        now: Now,
        asked: &CreateMonitoredItemsRequest,
    ) -> Result<Vec<MonitoredItemCreateResult>, StatusCode> {
        let (id, timestamps) = (asked.subscription_id, asked.timestamps_to_return);
        let snapshot = plant.space.snapshot();
        let mut told = Vec::new();
        let mut items = Vec::new();
        for item in &asked.items_to_create {
            match source::resolve(plant, &snapshot, caller, item, now) {
                Ok((resolved, found)) => {
                    items.push((item, Ok(resolved)));
                    told.push((item.clone(), Some(found)));
                }
                Err(status) => {
                    items.push((item, Err(status)));
                    told.push((item.clone(), None));
                }
            }
        }
        let results = self.core.create_monitored_items(now, id, timestamps, items);
        let answered = results.as_deref().map_err(|status| *status);
        self.oracle.items_created(log, now, id, timestamps, &told, answered);
        results
    }

    pub(crate) fn modify_items(
        &mut self,
        log: &mut Log,
        now: Now,
        asked: &ModifyMonitoredItemsRequest,
    ) -> Result<Vec<MonitoredItemModifyResult>, StatusCode> {
        let (id, timestamps, items) = (
            asked.subscription_id,
            asked.timestamps_to_return,
            &asked.items_to_modify,
        );
        let results = self.core.modify_monitored_items(now, id, timestamps, items);
        let answered = results.as_deref().map_err(|status| *status);
        self.oracle.items_modified(log, now, id, timestamps, items, answered);
        results
    }

    pub(crate) fn set_mode(
        &mut self,
        log: &mut Log,
        now: Now,
        id: u32,
        mode: MonitoringMode,
        items: &[u32],
    ) -> Result<Vec<StatusCode>, StatusCode> {
        let results = self.core.set_monitoring_mode(now, id, mode, items);
        let answered = results.as_deref().map_err(|status| *status);
        self.oracle.mode_set(log, now, id, mode, items, answered);
        results
    }

    pub(crate) fn delete_items(
        &mut self,
        log: &mut Log,
        id: u32,
        items: &[u32],
    ) -> Result<Vec<StatusCode>, StatusCode> {
        let results = self.core.delete_monitored_items(id, items);
        let answered = results.as_deref().map_err(|status| *status);
        self.oracle.items_deleted(log, id, items, answered);
        results
    }

    pub(crate) fn publish(
        &mut self,
        log: &mut Log,
        now: Now,
        request: PublishRequest,
        acknowledgements: &[(u32, u32)],
    ) {
        self.core.publish(now, request, acknowledgements.iter().copied());
        let named = (request.ticket.0, request.request_handle);
        self.oracle.publish(log, now, named, request.deadline, acknowledgements);
        let (waiting, limit) = (
            self.core.waiting_requests(),
            self.limits.max_publish_requests.max(self.core.len() + 1),
        );
        log.check(
            waiting <= limit,
            Rule::Bounded,
            format_args!("{waiting} Publish requests wait, the limit is {limit}"),
        );
    }

    pub(crate) fn republish(&mut self, log: &mut Log, id: u32, sequence: u32) -> Result<Arc<[u8]>, StatusCode> {
        let result = self.core.republish(id, sequence);
        let expected = self.oracle.republish(id, sequence);
        let mut result = result;
        if self.mutant == Some(Mutant::RepublishesWrong)
            && let Ok(bytes) = &mut result
        {
            let mut other = bytes.to_vec();
            if let Some(last) = other.iter_mut().rev().nth(6) {
                *last ^= 1;
            }
            *bytes = Arc::from(other);
        }
        log.check(
            result == expected,
            Rule::Available,
            format_args!("Republish {id}/{sequence} answered {result:?} instead of {expected:?}"),
        );
        result
    }

    pub(crate) fn cancel(&mut self, log: &mut Log, handle: u32) -> u32 {
        let count = self.core.cancel(handle);
        let expected = self.oracle.cancel(handle);
        log.check(
            count as usize == expected,
            Rule::Answers,
            format_args!("Cancel ended {count} requests instead of {expected}"),
        );
        count
    }

    pub(crate) fn abort(&mut self, status: StatusCode, pick: impl Fn(u64) -> bool) {
        self.core.abort_requests(status, |ticket: PublishTicket| pick(ticket.0));
        self.oracle.abort(status, &pick);
    }

    pub(crate) fn session_closed(&mut self, log: &mut Log, delete: bool) {
        if !delete {
            self.core.detach();
        } else if self.mutant != Some(Mutant::Leaks) {
            self.core.close();
        }
        self.oracle.detach(log, delete);
    }

    pub(crate) fn fetched(&mut self, log: &mut Log, plant: &Plant, now: Now, samples: Vec<(SampleKey, DataValue)>) {
        for (key, value) in &samples {
            if let Some(node) = self.oracle.awaited(*key) {
                log.check(
                    plant.can_be(&node, value, now),
                    Rule::WrongValue,
                    format_args!("{node} was fetched as {:?} {}", value.value, value.status()),
                );
            }
        }
        self.oracle.fetched(now, &samples);
        self.core.handle_samples(now, samples);
    }

    /// Runs what is due.
    pub(crate) fn turn(
        &mut self,
        log: &mut Log,
        (plant, caller): (&Plant, &Arc<Caller>),
        tasks: &mut Executor<Done>,
        now: Now,
    ) {
        if self.mutant == Some(Mutant::NeverExpires) {
            let ids: Vec<u32> = self.core.iter().map(|it| it.subscription_id).collect();
            for id in ids {
                // Asking for a message that is not there shows that the client lives.
                let _ = self.core.republish(id, 0);
            }
        }
        let asked = self.core.poll_timeout();
        let mut sampler = SpaceSampler::new(plant, caller, self.mutant);
        self.core.handle_timeout(now, &mut sampler);
        let samples = sampler.ask_managers(self.session, caller, tasks, now);
        self.oracle.turn(log, now, asked, samples);
    }

    /// Nodes have come or gone.
    pub(crate) fn follow(&mut self, log: &mut Log, (plant, caller): (&Plant, &Arc<Caller>), now: Now) {
        let snapshot = plant.space.snapshot();
        let oracle = &mut self.oracle;
        self.core.visit_sources(now, |key, source| {
            let (change, changed) = source::follow(plant, &snapshot, caller, now, source);
            if let Some(changed) = changed {
                let place = (key.subscription_id, key.monitored_item_id);
                let short = match &changed {
                    Changed::Gone => "gone",
                    Changed::Rebound(_) => "rebound",
                };
                log.say(
                    "shard",
                    format_args!("item {}/{} of {} is {short}", place.0, place.1, source.name),
                );
                oracle.source_changed(now, place, &changed);
            }
            change
        });
        if self.mutant == Some(Mutant::ResendsAfterReload) {
            let ids: Vec<u32> = self.core.iter().map(|it| it.subscription_id).collect();
            for id in ids {
                let _ = self.core.resend_data(id);
            }
        }
    }

    /// The core's next answer to a Publish request, compared with what it must be.
    pub(crate) fn poll(&mut self, log: &mut Log, now: Now) -> Option<(u64, PublishReply)> {
        let (ticket, mut reply) = self.core.poll_response()?;
        if let Some(mutant) = self.mutant
            && !super::mutate::reply(mutant, &mut reply)
        {
            return self.poll(log, now);
        }
        self.oracle.replied(log, now, ticket.0, &reply);
        Some((ticket.0, reply))
    }

    /// After everything: nothing is left to say, and the core wants to be called in time.
    pub(crate) fn settle(&mut self, log: &mut Log) {
        self.oracle.settled(log);
        let (wanted, latest) = (self.core.poll_timeout(), self.oracle.next_deadline());
        let in_time = match (wanted, latest) {
            (Some(wanted), Some(latest)) => wanted <= latest,
            (None, Some(_)) => false,
            (_, None) => true,
        };
        log.check(
            in_time,
            Rule::StateTable,
            format_args!(
                "session {}: wants to be called at {wanted:?}, but {latest:?} is due",
                self.session
            ),
        );
        let lost = (self.core.counters().lost_values, self.oracle.lost());
        log.check(
            lost.0 == lost.1,
            Rule::Lost,
            format_args!("values lost to full queues: {} are counted, {} must be", lost.0, lost.1),
        );
        log.stats.overflows += lost.1.saturating_sub(std::mem::replace(&mut self.lost, lost.1));
        let counted = (self.core.len(), self.core.waiting_requests());
        let expected = (self.oracle.len(), self.oracle.waiting_requests());
        log.check(
            counted == expected,
            Rule::StateTable,
            format_args!("subscriptions and waiting requests: {counted:?} instead of {expected:?}"),
        );
    }
}

fn same(log: &mut Log, service: &str, results: &[StatusCode], expected: &[StatusCode]) {
    log.check(
        results == expected,
        Rule::Answers,
        format_args!("{service} answered {results:?} instead of {expected:?}"),
    );
}
