//! The monitored item services (Part 4, 5.13.2 to 5.13.4 and 5.13.6), and what the caller tells about sources between samples.

use std::sync::Arc;

use backplane_types::{
    DataValue, MonitoredItemCreateRequest, MonitoredItemCreateResult, MonitoredItemModifyRequest,
    MonitoredItemModifyResult, MonitoringMode, MonitoringParameters, Now, StatusCode, TimestampsToReturn,
};

use crate::events::Refused;

use super::Subscriptions;
use super::filter::{AggregateTerms, EventContext, ItemFilter};
use super::item::{GroupKey, Item, ItemKey, ResolvedItem, Revised, SampleKey, Sampler};
use super::limits::Limits;
use super::message::Timestamps;
use super::subscription::Subscription;
use super::transfer::resend;

/// A monitored item, for diagnostics and for the GetMonitoredItems method.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MonitoredItemInfo {
    /// MonitoredItemId.
    pub monitored_item_id: u32,
    /// ClientHandle.
    pub client_handle: u32,
    /// Monitoring mode.
    pub mode: MonitoringMode,
    /// Revised sampling interval in ms; 0 is by exception.
    pub sampling_interval: f64,
    /// Revised queue size.
    pub queue_size: u32,
}

/// What became of a source.
#[derive(Debug, Clone, PartialEq)]
pub enum SourceChange<S> {
    /// It stays as it is.
    Keep,
    /// Its node is gone: `BadNodeIdUnknown` is reported once.
    Gone,
    /// The session's user may not read it any more: `BadUserAccessDenied` is reported once.
    Denied,
    /// Its node has this source now. A value equal to the one reported last is not reported again.
    Rebound {
        /// The new source.
        source: S,
        /// Its value, if the caller has it; else it is sampled at the next timeout.
        value: Option<DataValue>,
    },
}

impl<S> Subscriptions<S> {
    /// What CreateMonitoredItems, ModifyMonitoredItems, SetMonitoringMode and DeleteMonitoredItems check before any item: to be called
    /// before nodes are resolved in vain.
    ///
    /// # Errors
    /// `BadSubscriptionIdInvalid`, `BadNothingToDo`, `BadTooManyOperations`.
    pub fn check_items(&mut self, subscription_id: u32, count: usize) -> Result<(), StatusCode> {
        self.check_operations(count)?;
        self.find(subscription_id).map(|_| ())
    }

    /// CreateMonitoredItems (Part 4, 5.13.2): each request with what the caller found for its itemToMonitor. One result for each.
    ///
    /// # Errors
    /// `BadSubscriptionIdInvalid`, `BadNothingToDo`, `BadTooManyOperations`, `BadTimestampsToReturnInvalid`. For one item: the caller's
    /// status, `BadMonitoringModeInvalid`, `BadTooManyMonitoredItems`, and those of its filter.
    pub fn create_monitored_items<'r>(
        &mut self,
        now: Now,
        subscription_id: u32,
        timestamps: TimestampsToReturn,
        items: Vec<(&'r MonitoredItemCreateRequest, Result<ResolvedItem<S>, StatusCode>)>,
    ) -> Result<Vec<MonitoredItemCreateResult>, StatusCode> {
        let (limits, events, subscription) = self.begin(subscription_id, items.len())?;
        let timestamps = Timestamps::from_request(timestamps)?;
        let create = |(request, resolved): (&'r MonitoredItemCreateRequest, _)| {
            create_item(subscription, (&limits, &events), request, resolved, timestamps, now)
                .unwrap_or_else(failed_create)
        };
        Ok(items.into_iter().map(create).collect())
    }

    /// ModifyMonitoredItems (Part 4, 5.13.3). One result for each request.
    ///
    /// # Errors
    /// As [`Subscriptions::create_monitored_items`]; for one item `BadMonitoredItemIdInvalid` and those of its filter.
    pub fn modify_monitored_items(
        &mut self,
        now: Now,
        subscription_id: u32,
        timestamps: TimestampsToReturn,
        requests: &[MonitoredItemModifyRequest],
    ) -> Result<Vec<MonitoredItemModifyResult>, StatusCode> {
        let (limits, events, subscription) = self.begin(subscription_id, requests.len())?;
        let timestamps = Timestamps::from_request(timestamps)?;
        let modify = |request: &MonitoredItemModifyRequest| {
            let (id, parameters) = (request.monitored_item_id, &request.requested_parameters);
            modify_item(subscription, (&limits, &events), id, parameters, timestamps, now).unwrap_or_else(failed_modify)
        };
        Ok(requests.iter().map(modify).collect())
    }

    /// SetMonitoringMode (Part 4, 5.13.4). One result for each id.
    ///
    /// # Errors
    /// `BadSubscriptionIdInvalid`, `BadNothingToDo`, `BadTooManyOperations`, `BadMonitoringModeInvalid`; for one item
    /// `BadMonitoredItemIdInvalid`.
    pub fn set_monitoring_mode(
        &mut self,
        now: Now,
        subscription_id: u32,
        mode: MonitoringMode,
        monitored_item_ids: &[u32],
    ) -> Result<Vec<StatusCode>, StatusCode> {
        let (_, _, subscription) = self.begin(subscription_id, monitored_item_ids.len())?;
        check_mode(mode)?;
        let set = |id: &u32| match subscription.items.slot_of(*id) {
            Some(slot) => {
                subscription.items.set_mode(slot, mode, now);
                StatusCode::GOOD
            }
            None => StatusCode::BAD_MONITORED_ITEM_ID_INVALID,
        };
        Ok(monitored_item_ids.iter().map(set).collect())
    }

    /// DeleteMonitoredItems (Part 4, 5.13.6). One result for each id.
    ///
    /// # Errors
    /// `BadSubscriptionIdInvalid`, `BadNothingToDo`, `BadTooManyOperations`; for one item `BadMonitoredItemIdInvalid`.
    pub fn delete_monitored_items(
        &mut self,
        subscription_id: u32,
        monitored_item_ids: &[u32],
    ) -> Result<Vec<StatusCode>, StatusCode> {
        let (_, _, subscription) = self.begin(subscription_id, monitored_item_ids.len())?;
        let delete = |id: &u32| {
            if !subscription.items.remove(*id) {
                return StatusCode::BAD_MONITORED_ITEM_ID_INVALID;
            }
            subscription.lease.give_back_item();
            if let Some(durable) = &mut subscription.durable {
                durable.deleted(*id);
            }
            StatusCode::GOOD
        };
        Ok(monitored_item_ids.iter().map(delete).collect())
    }

    /// The items of a subscription.
    ///
    /// # Errors
    /// `BadSubscriptionIdInvalid`.
    pub fn monitored_items(&self, subscription_id: u32) -> Result<impl Iterator<Item = MonitoredItemInfo>, StatusCode> {
        let found = self.list.iter().find(|it| it.id() == subscription_id);
        let subscription = found.ok_or(StatusCode::BAD_SUBSCRIPTION_ID_INVALID)?;
        Ok(subscription.items.iter().map(|item| MonitoredItemInfo {
            monitored_item_id: item.id,
            client_handle: item.revised.client_handle,
            mode: item.mode,
            sampling_interval: item.revised.sampling_interval,
            queue_size: item.revised.queue_size,
        }))
    }

    /// The sources that are sampled, each with its sampling interval in ms (0: by exception).
    pub fn sampled_sources(&self) -> impl Iterator<Item = (&S, f64)> {
        let items = self.list.iter().flat_map(|subscription| subscription.items.iter());
        let sampled = items.filter(|item| item.is_sampled());
        sampled.map(|item| (&item.source, item.revised.sampling_interval))
    }

    /// ResendData (Part 5, 9.2): all reporting items report their newest value again.
    ///
    /// # Errors
    /// `BadSubscriptionIdInvalid`.
    pub fn resend_data(&mut self, subscription_id: u32) -> Result<(), StatusCode> {
        resend(self.find(subscription_id)?);
        Ok(())
    }

    /// Values that a sampler had answered with [`Sampled::Pending`](super::Sampled::Pending). Those of items that are gone or have another
    /// source by now are ignored.
    pub fn handle_samples(&mut self, now: Now, samples: impl IntoIterator<Item = (SampleKey, DataValue)>) {
        for (key, value) in samples {
            if let Ok(subscription) = self.find(key.item.subscription_id) {
                subscription.items.accept_fetched(key, value, now);
            }
        }
    }

    /// The source of an item that rests has changed: it is sampled again, at its next tick. To be said for what [`Sampler::rest`] was answered
    /// with true. False when there is no such subscription any more.
    pub fn wake(&mut self, now: Now, key: SampleKey) -> bool {
        let found = self.find(key.item.subscription_id);
        found
            .map(|subscription| subscription.items.wake(key.group(), &[key.slot], now))
            .is_ok()
    }

    /// As [`Subscriptions::wake`] for many items of one group, by their [slots](super::SampleKey::slot).
    pub fn wake_all(&mut self, now: Now, group: GroupKey, slots: &[u32]) -> bool {
        let found = self.find(group.subscription_id);
        found
            .map(|subscription| subscription.items.wake(group, slots, now))
            .is_ok()
    }

    /// The source of an item that reports by exception (revised sampling interval 0) has changed: it is sampled now instead of at the next
    /// look. Other items keep to their sampling interval.
    pub fn notify_changed(&mut self, now: Now, key: ItemKey, sampler: &mut impl Sampler<S>) {
        if let Some((subscription, slot)) = self.slot(key) {
            let items = &mut subscription.items;
            if items
                .item(slot)
                .is_some_and(|item| item.revised.sampling_interval == 0.0)
            {
                items.sample(slot, now, sampler);
            }
        }
    }

    /// The node of an item is gone. The item reports `BadNodeIdUnknown` once, which no overflow can discard, and nothing more until
    /// [`Subscriptions::rebind`]. False when there is no such item.
    pub fn node_gone(&mut self, key: ItemKey) -> bool {
        let found = self.slot(key);
        let known = found.is_some();
        if let Some((subscription, slot)) = found {
            subscription.items.source_lost(slot, false);
        }
        known
    }

    /// The node of an item has another source, or is back. A value equal to the one reported last is not reported again. False when there
    /// is no such item.
    pub fn rebind(&mut self, now: Now, key: ItemKey, source: S, value: Option<DataValue>) -> bool {
        let found = self.slot(key);
        let known = found.is_some();
        if let Some((subscription, slot)) = found {
            subscription.items.rebind(slot, source, value, now);
        }
        known
    }

    /// Something that the client has to know of the item's variable changed: the next notification carries these bits of the StatusCode,
    /// [`SEMANTICS_CHANGED`](StatusCode::SEMANTICS_CHANGED) or [`STRUCTURE_CHANGED`](StatusCode::STRUCTURE_CHANGED), once. False when there
    /// is no such item.
    pub fn mark_changed(&mut self, key: ItemKey, bits: u32) -> bool {
        let bits = bits & (StatusCode::SEMANTICS_CHANGED | StatusCode::STRUCTURE_CHANGED);
        let Some((subscription, slot)) = self.slot(key) else {
            return false;
        };
        if let Some(item) = subscription.items.item(slot) {
            item.news |= u16::try_from(bits).unwrap_or(0);
        }
        true
    }

    /// Goes through all sources after nodes changed, and does to each item what `decide` says.
    pub fn visit_sources(&mut self, now: Now, mut decide: impl FnMut(ItemKey, &mut S) -> SourceChange<S>) {
        for subscription in &mut self.list {
            let subscription_id = subscription.id();
            let ids: Vec<u32> = subscription.items.iter().map(|item| item.id).collect();
            for monitored_item_id in ids {
                let Some(slot) = subscription.items.slot_of(monitored_item_id) else {
                    continue;
                };
                let Some(item) = subscription.items.item(slot) else {
                    continue;
                };
                let key = ItemKey {
                    subscription_id,
                    monitored_item_id,
                };
                match decide(key, &mut item.source) {
                    SourceChange::Keep => {}
                    SourceChange::Gone => subscription.items.source_lost(slot, false),
                    SourceChange::Denied => subscription.items.source_lost(slot, true),
                    SourceChange::Rebound { source, value } => {
                        subscription.items.rebind(slot, source, value, now);
                    }
                }
            }
        }
    }

    fn slot(&mut self, key: ItemKey) -> Option<(&mut Subscription<S>, u32)> {
        let subscription = self.find(key.subscription_id).ok()?;
        let slot = subscription.items.slot_of(key.monitored_item_id)?;
        Some((subscription, slot))
    }

    /// The common start of the item services: they prove that the client lives.
    pub(super) fn begin(
        &mut self,
        subscription_id: u32,
        count: usize,
    ) -> Result<(Arc<Limits>, EventContext, &mut Subscription<S>), StatusCode> {
        self.check_operations(count)?;
        let limits = Arc::clone(&self.limits);
        let events = self.events.clone();
        let subscription = self.find(subscription_id)?;
        subscription.machine.reset_lifetime();
        Ok((limits, events, subscription))
    }
}

fn check_mode(mode: MonitoringMode) -> Result<(), StatusCode> {
    if mode.is_known() {
        Ok(())
    } else {
        Err(StatusCode::BAD_MONITORING_MODE_INVALID)
    }
}

fn create_item<S>(
    subscription: &mut Subscription<S>,
    (limits, events): (&Limits, &EventContext),
    request: &MonitoredItemCreateRequest,
    resolved: Result<ResolvedItem<S>, StatusCode>,
    timestamps: Timestamps,
    now: Now,
) -> Result<MonitoredItemCreateResult, Refused> {
    let resolved = resolved?;
    check_mode(request.monitoring_mode)?;
    let revised = Revised::new(
        limits,
        &request.requested_parameters,
        &resolved.traits,
        timestamps,
        subscription.publishing_interval,
        1,
    );
    let mut revised = revised;
    let terms = AggregateTerms::new(limits, &revised, now);
    let (filter, filter_result) =
        ItemFilter::from_request(&request.requested_parameters.filter, &resolved.traits, events, &terms)?;
    if subscription.items.len() >= limits.max_monitored_items {
        return Err(StatusCode::BAD_TOO_MANY_MONITORED_ITEMS.into());
    }
    subscription.lease.take_item()?;
    let id = subscription.items.fresh_id();
    if let Some(durable) = &mut subscription.durable {
        let (is_event, wanted) = (resolved.traits.is_notifier, request.requested_parameters.queue_size);
        let extra = durable.grant_queue(limits, is_event, &mut revised, wanted);
        durable.created(id, request, extra);
    }
    let traits = subscription.items.share(resolved.traits);
    let item = Item::new(id, resolved.source, revised, filter, traits, request.monitoring_mode);
    subscription.items.insert(item, resolved.initial, now);
    Ok(MonitoredItemCreateResult {
        status_code: StatusCode::GOOD,
        monitored_item_id: id,
        revised_sampling_interval: revised.sampling_interval,
        revised_queue_size: revised.queue_size,
        filter_result,
    })
}

fn modify_item<S>(
    subscription: &mut Subscription<S>,
    (limits, events): (&Limits, &EventContext),
    id: u32,
    requested: &MonitoringParameters,
    timestamps: Timestamps,
    now: Now,
) -> Result<MonitoredItemModifyResult, Refused> {
    let items = &mut subscription.items;
    let unknown = StatusCode::BAD_MONITORED_ITEM_ID_INVALID;
    let slot = items.slot_of(id).ok_or(unknown)?;
    let item = items.item(slot).ok_or(unknown)?;
    let current = item.revised;
    let is_event = item.traits.is_notifier;
    let mut revised = Revised::new(
        limits,
        requested,
        &item.traits,
        timestamps,
        current.sampling_interval,
        current.queue_size,
    );
    let terms = AggregateTerms::new(limits, &revised, now);
    let (filter, filter_result) = ItemFilter::from_request(&requested.filter, &item.traits, events, &terms)?;
    if let Some(durable) = &mut subscription.durable {
        durable.free_queue(id);
        let wanted = if requested.queue_size == 0 {
            current.queue_size
        } else {
            requested.queue_size
        };
        let extra = durable.grant_queue(limits, is_event, &mut revised, wanted);
        durable.modified(id, requested, extra);
    }
    item.revised = revised;
    let computed = item.aggregate().is_some();
    item.filter.replace(filter);
    items.follow_filter(slot, computed, now);
    if revised.queue_size != current.queue_size || revised.discard_oldest != current.discard_oldest {
        let lost = items.recount(slot, |item| item.resize(now)).unwrap_or(0);
        items.lost_events = items.lost_events.saturating_add(lost);
    }
    if revised.sampling_interval != current.sampling_interval {
        items.regroup(slot, now);
    }
    Ok(MonitoredItemModifyResult {
        status_code: StatusCode::GOOD,
        revised_sampling_interval: revised.sampling_interval,
        revised_queue_size: revised.queue_size,
        filter_result,
    })
}

fn failed_create(refused: Refused) -> MonitoredItemCreateResult {
    MonitoredItemCreateResult {
        status_code: refused.status,
        filter_result: refused.result,
        ..MonitoredItemCreateResult::default()
    }
}

fn failed_modify(refused: Refused) -> MonitoredItemModifyResult {
    MonitoredItemModifyResult {
        status_code: refused.status,
        filter_result: refused.result,
        ..MonitoredItemModifyResult::default()
    }
}
