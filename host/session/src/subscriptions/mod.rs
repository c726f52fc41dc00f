//! Subscriptions and monitored items of one session (Part 4, 5.13 and 5.14).
//!
//! It owns subscriptions, items, sampling schedules, queues, messages kept for Republish, and the session's Publish requests. It must not
//! know nodes, value cells, plugins, sockets or clocks: sources are an opaque `S`, resolved by the caller and read through [`Sampler`];
//! answers leave by [`Subscriptions::poll_response`]; time is handed in. One shard task owns many of these; nothing in here locks, except
//! that ids and totals are counted in a shared [`SubscriptionRegistry`].
//!
//! Where later parts join: a transfer moves a [`Subscription`] from one of these to another.

mod aggregates;
mod durable;
mod event_items;
mod filter;
mod item;
mod limits;
mod message;
mod monitored_items;
mod publish;
mod publishing;
mod queue;
mod ready;
mod retransmission;
mod saved;
mod schedule;
mod services;
mod state;
mod subscription;
mod table;
mod transfer;
mod triggering;

use std::collections::VecDeque;
use std::sync::Arc;

use backplane_types::StatusCode;

/// The numbers of the nodes of the aggregate functions that items may have as a filter, in namespace 0.
pub const AGGREGATE_FUNCTIONS: &[u32] = &backplane_aggregates::Function::LIVE_IDS;

pub use durable::Found;
pub use filter::ItemTraits;
pub use item::{GroupKey, ItemKey, ResolvedItem, SampleKey, Sampled, Sampler};
pub use limits::{DurableLimits, Limits, SamplingRates, SubscriptionRegistry};
pub use monitored_items::{MonitoredItemInfo, SourceChange};
pub use publish::{PublishMessage, PublishReply, PublishRequest, PublishTicket};
pub use saved::{SavedItem, SavedSubscription};
pub use state::State;
pub use subscription::{RevisedSubscription, SubscriptionParameters};
pub use transfer::Detached;
pub use triggering::TriggeringResults;

use crate::events::{BaseEventTypes, EventTypes};

use filter::EventContext;
use publish::Waiting;
use retransmission::Message;
use subscription::Subscription;

/// A buffer for encoding is not kept when a message made it longer than this.
const SCRATCH_KEPT: usize = 1 << 20;

/// What happened in a session's subscriptions, counted from the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages with notifications sent.
    pub messages: u64,
    /// Notifications in them.
    pub notifications: u64,
    /// Keep-alive messages sent.
    pub keep_alives: u64,
    /// Publish requests answered `BadTooManyPublishRequests`.
    pub refused_requests: u64,
    /// Publish requests answered `BadTimeout`.
    pub timed_out_requests: u64,
    /// Messages dropped from retransmission queues before they were acknowledged.
    pub dropped_messages: u64,
    /// Values lost to full item queues.
    pub lost_values: u64,
    /// Events lost to full item queues.
    pub lost_events: u64,
    /// Times that a sampling group was too late to make up for it.
    pub sampling_restarts: u64,
    /// Samples not taken because the one before was not answered yet.
    pub skipped_samples: u64,
    /// Subscriptions whose lifetime ended.
    pub expired_subscriptions: u64,
}

/// The subscriptions of one session. See the module for what it owns.
#[derive(Debug)]
pub struct Subscriptions<S> {
    limits: Arc<Limits>,
    registry: Arc<SubscriptionRegistry>,
    events: EventContext,
    list: Vec<Subscription<S>>,
    requests: VecDeque<Waiting>,
    replies: VecDeque<(PublishTicket, PublishReply)>,
    /// Last messages of subscriptions that ended, waiting for a Publish request.
    status_changes: VecDeque<(u32, Message)>,
    /// Ids of subscriptions that ended by themselves.
    ended: VecDeque<u32>,
    attached: bool,
    /// The session, as the registry knows it.
    owner: u32,
    /// Places kept for subscriptions that are on their way here.
    reserved: usize,
    served: u64,
    counters: Counters,
    scratch: Vec<u8>,
    due: Vec<usize>,
}

impl<S> Subscriptions<S> {
    /// No subscriptions yet. `limits` must have passed [`Limits::check`].
    #[must_use]
    pub fn new(limits: Arc<Limits>, registry: Arc<SubscriptionRegistry>) -> Self {
        let events = EventContext {
            types: Arc::new(BaseEventTypes),
            limits: limits.event_filter,
            budget: Arc::default(),
        };
        Self {
            limits,
            registry,
            events,
            list: Vec::new(),
            requests: VecDeque::new(),
            replies: VecDeque::new(),
            status_changes: VecDeque::new(),
            ended: VecDeque::new(),
            attached: true,
            owner: 0,
            reserved: 0,
            served: 0,
            counters: Counters::default(),
            scratch: Vec::new(),
            due: Vec::new(),
        }
    }

    /// Event filters are checked against these types; without, only BaseEventType is known.
    #[must_use]
    pub fn with_event_types(mut self, types: Arc<dyn EventTypes>) -> Self {
        self.events.types = types;
        self
    }

    /// Number of subscriptions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are no subscriptions. When the session is closed as well, this can be dropped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Publish requests waiting.
    #[must_use]
    pub fn waiting_requests(&self) -> usize {
        self.requests.len()
    }

    /// What happened so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let mut counters = self.counters;
        for subscription in &self.list {
            counters.lost_values += subscription.items.lost;
            counters.lost_events += subscription.items.lost_events;
            counters.sampling_restarts += subscription.items.restarts();
            counters.skipped_samples += subscription.items.skipped;
        }
        counters
    }

    /// State of a subscription, for diagnostics.
    #[must_use]
    pub fn state(&self, subscription_id: u32) -> Option<State> {
        let found = self.list.iter().find(|it| it.id() == subscription_id)?;
        Some(found.machine.state)
    }

    /// Ids and parameters of all subscriptions, for diagnostics.
    pub fn iter(&self) -> impl Iterator<Item = RevisedSubscription> {
        self.list.iter().map(Subscription::revised)
    }

    /// The next subscription that ended by itself: its lifetime is over.
    pub fn poll_ended(&mut self) -> Option<u32> {
        self.ended.pop_front()
    }

    /// The session was closed without deleting its subscriptions: waiting Publish requests are answered `BadSessionClosed`, the
    /// subscriptions live on until their lifetime ends.
    pub fn detach(&mut self) {
        self.attached = false;
        self.status_changes.clear();
        self.abort_requests(StatusCode::BAD_SESSION_CLOSED, |_| true);
    }

    /// The session was closed with its subscriptions.
    pub fn close(&mut self) {
        self.detach();
        for subscription in std::mem::take(&mut self.list) {
            self.retire(subscription);
        }
    }

    fn find(&mut self, subscription_id: u32) -> Result<&mut Subscription<S>, StatusCode> {
        self.list
            .iter_mut()
            .find(|it| it.id() == subscription_id)
            .ok_or(StatusCode::BAD_SUBSCRIPTION_ID_INVALID)
    }

    /// Keeps the counts of a subscription that goes.
    fn retire(&mut self, subscription: Subscription<S>) {
        self.counters.lost_values += subscription.items.lost;
        self.counters.lost_events += subscription.items.lost_events;
        self.counters.sampling_restarts += subscription.items.restarts();
        self.counters.skipped_samples += subscription.items.skipped;
    }

    fn check_operations(&self, count: usize) -> Result<(), StatusCode> {
        if count == 0 {
            return Err(StatusCode::BAD_NOTHING_TO_DO);
        }
        if count > self.limits.max_operations {
            return Err(StatusCode::BAD_TOO_MANY_OPERATIONS);
        }
        Ok(())
    }

    fn keep_scratch(&mut self, mut scratch: Vec<u8>) {
        if scratch.capacity() > SCRATCH_KEPT {
            scratch = Vec::new();
        }
        self.scratch = scratch;
    }
}
