//! What the subscriptions of one session must do: a second, plain implementation of the rules, asked the same questions as the core.
//!
//! Every call that the core gets is told here too, with the samples that were taken; every answer of the core is compared with the one that
//! follows from the rules. It must not know how the core does it, nor the wire.

pub(crate) mod item;
mod items;
pub(crate) mod ledger;
mod replies;
mod sampling;
pub(crate) mod subscription;
mod timing;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use backplane_session::{Limits, RevisedSubscription, SubscriptionParameters};
use backplane_types::{Now, StatusCode};

pub(crate) use items::Found;
pub(crate) use ledger::Ledger;
pub(crate) use replies::{Seen, listed};
pub(crate) use sampling::{Changed, Outcome, Sample, Truth};

use crate::log::{Log, Rule};
use subscription::{Act, Notified, Subscription};

/// A Publish request that waits.
#[derive(Debug)]
struct Request {
    ticket: u64,
    handle: u32,
    deadline: Option<Duration>,
    results: Vec<StatusCode>,
}

/// The answer that a Publish request must get.
#[derive(Debug)]
enum Expected {
    Fault(StatusCode),
    Message {
        subscription: u32,
        sequence: u32,
        available: Vec<u32>,
        more: bool,
        results: Vec<StatusCode>,
        content: Content,
    },
}

#[derive(Debug)]
enum Content {
    KeepAlive,
    Data(Vec<Notified>),
    Ended(StatusCode),
}

/// See the module text.
#[derive(Debug)]
pub(crate) struct SessionOracle {
    session: u32,
    limits: Arc<Limits>,
    subscriptions: Vec<Subscription>,
    requests: VecDeque<Request>,
    /// Last messages of subscriptions that ended.
    endings: VecDeque<(u32, u32, StatusCode)>,
    expected: VecDeque<(u64, Expected)>,
    attached: bool,
    served: u64,
    /// Values that subscriptions which are over lost to full queues.
    lost: u64,
}

impl SessionOracle {
    pub(crate) fn new(session: u32, limits: Arc<Limits>) -> Self {
        Self {
            session,
            limits,
            subscriptions: Vec::new(),
            requests: VecDeque::new(),
            endings: VecDeque::new(),
            expected: VecDeque::new(),
            attached: true,
            served: 0,
            lost: 0,
        }
    }

    /// Values lost to full queues, as they must be.
    pub(crate) fn lost(&self) -> u64 {
        self.lost + self.subscriptions.iter().map(|it| it.lost).sum::<u64>()
    }

    pub(crate) fn len(&self) -> usize {
        self.subscriptions.len()
    }

    /// Monitored items of all subscriptions.
    pub(crate) fn items(&self) -> usize {
        self.subscriptions.iter().map(|it| it.items.len()).sum()
    }

    pub(crate) fn waiting_requests(&self) -> usize {
        self.requests.len()
    }

    fn find(&mut self, id: u32) -> Option<&mut Subscription> {
        self.subscriptions.iter_mut().find(|it| it.id == id)
    }

    /// When the core must be called next, at the latest.
    pub(crate) fn next_deadline(&self) -> Option<Duration> {
        let ticks = self.subscriptions.iter().map(|it| it.next_tick);
        ticks.chain(self.requests.iter().filter_map(|it| it.deadline)).min()
    }

    /// CreateSubscription was answered.
    pub(crate) fn created(
        &mut self,
        log: &mut Log,
        now: Now,
        asked: &SubscriptionParameters,
        enabled: bool,
        revised: Result<&RevisedSubscription, StatusCode>,
    ) {
        let is_full = self.subscriptions.len() >= self.limits.max_subscriptions;
        match revised {
            Ok(revised) => {
                log.check(!is_full, Rule::Bounded, format_args!("one subscription too many"));
                self.check_revised(log, revised);
                let wish = asked.max_notifications_per_publish;
                self.subscriptions.push(Subscription::new(
                    revised,
                    wish,
                    asked.priority,
                    enabled,
                    &self.limits,
                    now.mono,
                ));
            }
            Err(status) => log.check(
                is_full && status == StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS,
                Rule::Answers,
                format_args!("CreateSubscription answered {status}"),
            ),
        }
    }

    /// Revised numbers keep to the limits and to each other (5.14.2.2).
    fn check_revised(&self, log: &mut Log, revised: &RevisedSubscription) {
        let limits = &self.limits;
        let interval = revised.publishing_interval;
        let fits = (limits.min_publishing_interval..=limits.max_publishing_interval).contains(&interval)
            && revised.max_keep_alive_count >= 1
            && revised.lifetime_count >= revised.max_keep_alive_count.saturating_mul(3);
        log.check(fits, Rule::StateTable, format_args!("revised to {revised:?}"));
    }

    /// ModifySubscription was answered.
    pub(crate) fn modified(
        &mut self,
        log: &mut Log,
        now: Now,
        id: u32,
        asked: &SubscriptionParameters,
        revised: Result<&RevisedSubscription, StatusCode>,
    ) {
        let limits = Arc::clone(&self.limits);
        if let Ok(revised) = revised {
            self.check_revised(log, revised);
        }
        match (self.find(id), revised) {
            (Some(subscription), Ok(revised)) => {
                subscription.modify(
                    revised,
                    asked.max_notifications_per_publish,
                    asked.priority,
                    &limits,
                    now.mono,
                );
            }
            (None, Err(StatusCode::BAD_SUBSCRIPTION_ID_INVALID)) => {}
            (found, revised) => log.broken(
                Rule::Answers,
                format_args!("ModifySubscription {id} (there: {}): {revised:?}", found.is_some()),
            ),
        }
    }

    /// SetPublishingMode.
    pub(crate) fn publishing_mode(&mut self, enabled: bool, ids: &[u32]) -> Vec<StatusCode> {
        let set = |id: &u32| match self.find(*id) {
            Some(subscription) => {
                subscription.alive();
                subscription.enabled = enabled;
                subscription.more = false;
                StatusCode::GOOD
            }
            None => StatusCode::BAD_SUBSCRIPTION_ID_INVALID,
        };
        ids.iter().map(set).collect()
    }

    /// DeleteSubscriptions.
    pub(crate) fn deleted(&mut self, log: &mut Log, ids: &[u32]) -> Vec<StatusCode> {
        let mut results = Vec::new();
        for id in ids {
            let lost = self.find(*id).map(|it| it.lost);
            let there = lost.is_some();
            self.lost += lost.unwrap_or(0);
            self.subscriptions.retain(|it| it.id != *id);
            log.ledger.forget(*id);
            results.push(if there {
                StatusCode::GOOD
            } else {
                StatusCode::BAD_SUBSCRIPTION_ID_INVALID
            });
        }
        if self.subscriptions.is_empty() && self.endings.is_empty() {
            self.abort(StatusCode::BAD_NO_SUBSCRIPTION, |_| true);
        }
        results
    }

    /// A Publish request came.
    pub(crate) fn publish(
        &mut self,
        log: &mut Log,
        now: Now,
        (ticket, handle): (u64, u32),
        deadline: Option<Duration>,
        acknowledgements: &[(u32, u32)],
    ) {
        if self.subscriptions.is_empty() && self.endings.is_empty() {
            self.fault(ticket, StatusCode::BAD_NO_SUBSCRIPTION);
            return;
        }
        let results = acknowledgements.iter().map(|ack| self.acknowledge(log, *ack)).collect();
        for subscription in &mut self.subscriptions {
            subscription.alive();
        }
        self.expire_requests(now);
        self.requests.push_back(Request {
            ticket,
            handle,
            deadline,
            results,
        });
        self.serve(log);
        let most = self.limits.max_publish_requests.max(self.subscriptions.len() + 1);
        while self.requests.len() > most {
            if let Some(oldest) = self.requests.pop_front() {
                self.fault(oldest.ticket, StatusCode::BAD_TOO_MANY_PUBLISH_REQUESTS);
            }
        }
    }

    fn acknowledge(&mut self, log: &mut Log, (id, sequence): (u32, u32)) -> StatusCode {
        let Some(subscription) = self.find(id) else {
            return StatusCode::BAD_SUBSCRIPTION_ID_INVALID;
        };
        if sequence == 0 {
            return StatusCode::BAD_SEQUENCE_NUMBER_INVALID;
        }
        let before = subscription.kept.len();
        subscription.kept.retain(|(number, _)| *number != sequence);
        if subscription.kept.len() == before {
            return StatusCode::BAD_SEQUENCE_NUMBER_UNKNOWN;
        }
        log.ledger.unavailable(id, sequence);
        StatusCode::GOOD
    }

    fn fault(&mut self, ticket: u64, status: StatusCode) {
        self.expected.push_back((ticket, Expected::Fault(status)));
    }

    /// Waiting requests that are picked are answered with a fault. Returns how many.
    pub(crate) fn abort(&mut self, status: StatusCode, pick: impl Fn(u64) -> bool) -> usize {
        let (picked, rest): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.requests)
            .into_iter()
            .partition(|it| pick(it.ticket));
        self.requests = rest;
        for request in &picked {
            self.fault(request.ticket, status);
        }
        picked.len()
    }

    /// Cancel. Returns how many requests it ended.
    pub(crate) fn cancel(&mut self, handle: u32) -> usize {
        let tickets: Vec<u64> = self
            .requests
            .iter()
            .filter(|it| it.handle == handle)
            .map(|it| it.ticket)
            .collect();
        self.abort(StatusCode::BAD_REQUEST_CANCELLED_BY_REQUEST, |ticket| {
            tickets.contains(&ticket)
        })
    }

    /// The session is over.
    pub(crate) fn detach(&mut self, log: &mut Log, delete: bool) {
        self.attached = false;
        self.endings.clear();
        self.abort(StatusCode::BAD_SESSION_CLOSED, |_| true);
        if delete {
            for subscription in std::mem::take(&mut self.subscriptions) {
                self.lost += subscription.lost;
                log.ledger.forget(subscription.id);
            }
        }
    }

    /// Republish: the bytes it must answer with.
    pub(crate) fn republish(&mut self, id: u32, sequence: u32) -> Result<Arc<[u8]>, StatusCode> {
        let Some(subscription) = self.find(id) else {
            return Err(StatusCode::BAD_SUBSCRIPTION_ID_INVALID);
        };
        subscription.alive();
        let kept = subscription.kept.iter().find(|(number, _)| *number == sequence);
        kept.map(|(_, bytes)| Arc::clone(bytes))
            .ok_or(StatusCode::BAD_MESSAGE_NOT_AVAILABLE)
    }

    fn expire_requests(&mut self, now: Now) {
        let over: Vec<u64> = self
            .requests
            .iter()
            .filter(|it| it.deadline.is_some_and(|deadline| deadline <= now.mono))
            .map(|it| it.ticket)
            .collect();
        if !over.is_empty() {
            self.abort(StatusCode::BAD_TIMEOUT, |ticket| over.contains(&ticket));
        }
    }

    /// Higher priorities first, then who was served longest ago.
    fn order(&self, place: usize) -> (u8, u64) {
        self.subscriptions
            .get(place)
            .map_or((u8::MAX, u64::MAX), |it| (u8::MAX - it.priority, it.served))
    }

    /// Gives waiting requests to whoever wants one at once.
    fn serve(&mut self, log: &mut Log) {
        while !self.requests.is_empty() {
            if let Some((id, sequence, status)) = self.endings.pop_front() {
                self.message(id, sequence, Vec::new(), false, Content::Ended(status));
                continue;
            }
            let wants = (0..self.subscriptions.len())
                .filter(|place| self.subscriptions.get(*place).is_some_and(Subscription::wants_request))
                .min_by_key(|place| self.order(*place));
            let Some(place) = wants else { return };
            let Some(subscription) = self.subscriptions.get_mut(place) else {
                return;
            };
            let act = subscription.take_request();
            self.act(log, place, act);
        }
    }

    /// The publishing timers that are due, and the deadlines of requests.
    fn run_timers(&mut self, log: &mut Log, now: Now) {
        self.expire_requests(now);
        let mut due = Vec::new();
        for (place, subscription) in self.subscriptions.iter_mut().enumerate() {
            if subscription.next_tick <= now.mono {
                // Ticks that were missed count as one; the phase stays.
                while subscription.next_tick <= now.mono {
                    subscription.next_tick += subscription.interval;
                }
                due.push(place);
            }
        }
        due.sort_by_key(|place| self.order(*place));
        for place in due {
            let waits = !self.requests.is_empty();
            let Some(subscription) = self.subscriptions.get_mut(place) else {
                continue;
            };
            match subscription.tick(waits) {
                Act::End => subscription.ended = true,
                act => self.act(log, place, act),
            }
        }
        self.remove_ended(log);
    }

    fn remove_ended(&mut self, log: &mut Log) {
        if !self.subscriptions.iter().any(|it| it.ended) {
            return;
        }
        let (ended, rest) = std::mem::take(&mut self.subscriptions)
            .into_iter()
            .partition(|it| it.ended);
        self.subscriptions = rest;
        let ended: Vec<Subscription> = ended;
        for mut subscription in ended {
            log.stats.expired += 1;
            self.lost += subscription.lost;
            log.ledger.forget(subscription.id);
            log.say("oracle", format_args!("subscription {} must expire", subscription.id));
            if self.attached {
                let sequence = subscription.take_sequence();
                self.endings
                    .push_back((subscription.id, sequence, StatusCode::BAD_TIMEOUT));
                if self.endings.len() > self.limits.max_subscriptions {
                    self.endings.pop_front();
                }
            }
        }
        self.serve(log);
    }

    fn act(&mut self, log: &mut Log, place: usize, act: Act) {
        match act {
            Act::Nothing | Act::End => {}
            Act::KeepAlive => {
                self.served += 1;
                let served = self.served;
                let Some(subscription) = self.subscriptions.get_mut(place) else {
                    return;
                };
                subscription.served = served;
                let (id, sequence) = (subscription.id, subscription.next_sequence);
                let available = subscription.kept.iter().map(|(number, _)| *number).collect();
                self.message(id, sequence, available, false, Content::KeepAlive);
            }
            Act::Data => self.send_data(log, place),
        }
    }

    /// As many messages as are needed and Publish requests are there.
    fn send_data(&mut self, log: &mut Log, place: usize) {
        while !self.requests.is_empty() {
            self.served += 1;
            let (served, most) = (self.served, self.limits.max_retransmission_messages);
            let Some(subscription) = self.subscriptions.get_mut(place) else {
                return;
            };
            subscription.served = served;
            let data = subscription.next_message();
            let (id, more) = (subscription.id, subscription.more);
            let sequence = subscription.take_sequence();
            // The bytes are filled in when the core's message is seen.
            subscription.kept.push_back((sequence, Arc::from(Vec::new())));
            while subscription.kept.len() > most {
                if let Some((number, _)) = subscription.kept.pop_front() {
                    log.ledger.unavailable(id, number);
                }
            }
            let available = subscription.kept.iter().map(|(number, _)| *number).collect();
            self.message(id, sequence, available, more, Content::Data(data));
            if !more {
                return;
            }
        }
    }

    fn message(&mut self, subscription: u32, sequence: u32, available: Vec<u32>, more: bool, content: Content) {
        if let Some(request) = self.requests.pop_front() {
            self.expected.push_back((
                request.ticket,
                Expected::Message {
                    subscription,
                    sequence,
                    available,
                    more,
                    results: request.results,
                    content,
                },
            ));
        }
    }
}
