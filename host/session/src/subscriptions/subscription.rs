//! One subscription: parameters, state, publishing timer, items and kept messages.
//!
//! It makes messages when told to and knows when its timer is due. It must not know the session's Publish requests or the other
//! subscriptions. It is complete in itself, so that a transfer to another session is a move.

use std::time::Duration;

use backplane_types::{Now, StatusCode};

use super::durable::Durable;
use super::limits::{Limits, SubscriptionLease, duration};
use super::message::{self, NotificationWriter};
use super::retransmission::{Message, Retransmission};
use super::schedule::Schedule;
use super::state::{Facts, StateMachine};
use super::table::ItemTable;

/// What CreateSubscription and ModifySubscription ask for (Part 4, 5.14.2.2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SubscriptionParameters {
    /// Requested publishing interval in ms.
    pub publishing_interval: f64,
    /// Requested lifetime count.
    pub lifetime_count: u32,
    /// Requested maximum keep-alive count.
    pub max_keep_alive_count: u32,
    /// Most notifications in a message; 0 is no wish.
    pub max_notifications_per_publish: u32,
    /// Priority among the subscriptions of the session; higher is first.
    pub priority: u8,
}

/// What a subscription got.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RevisedSubscription {
    /// Id, unique in the server.
    pub subscription_id: u32,
    /// Revised publishing interval in ms.
    pub publishing_interval: f64,
    /// Revised lifetime count.
    pub lifetime_count: u32,
    /// Revised maximum keep-alive count.
    pub max_keep_alive_count: u32,
}

/// Publishing timers lie on this grid, so that subscriptions of one session that were created together are sent together, and right after the
/// samples that they wait for.
const GRID: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) struct Subscription<S> {
    pub(crate) lease: SubscriptionLease,
    pub(crate) publishing_interval: f64,
    pub(crate) max_notifications: u32,
    pub(crate) priority: u8,
    pub(crate) machine: StateMachine,
    pub(crate) timer: Schedule,
    pub(crate) items: ItemTable<S>,
    pub(crate) retransmission: Retransmission,
    /// When it got a Publish request last, counted in Publish requests: equals are served in turn.
    pub(crate) served: u64,
    pub(crate) expired: bool,
    /// Of a durable subscription.
    pub(crate) durable: Option<Box<Durable>>,
}

impl<S> Subscription<S> {
    pub(crate) fn new(
        lease: SubscriptionLease,
        limits: &Limits,
        parameters: &SubscriptionParameters,
        publishing_enabled: bool,
        now: Now,
    ) -> Self {
        let interval = limits.revise_publishing_interval(parameters.publishing_interval);
        let keep_alive = limits.revise_keep_alive_count(parameters.max_keep_alive_count, interval);
        let lifetime = limits.revise_lifetime_count(parameters.lifetime_count, keep_alive, interval);
        Self {
            items: ItemTable::new(lease.id(), limits.exception_interval),
            lease,
            publishing_interval: interval,
            max_notifications: limits.revise_max_notifications(parameters.max_notifications_per_publish),
            priority: parameters.priority,
            machine: StateMachine::new(keep_alive, lifetime, publishing_enabled),
            timer: Schedule::aligned(now.mono, duration(interval), GRID),
            retransmission: Retransmission::new(),
            served: 0,
            expired: false,
            durable: None,
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.lease.id()
    }

    /// Row 18 of the state table: ModifySubscription. The timer starts anew only if its interval changes.
    pub(crate) fn modify(&mut self, limits: &Limits, parameters: &SubscriptionParameters, now: Now) {
        let interval = limits.revise_publishing_interval(parameters.publishing_interval);
        if duration(interval) != self.timer.period() {
            self.timer = Schedule::aligned(now.mono, duration(interval), GRID);
        }
        self.publishing_interval = interval;
        let machine = &mut self.machine;
        machine.max_keep_alive = limits.revise_keep_alive_count(parameters.max_keep_alive_count, interval);
        machine.keep_alive = machine.keep_alive.min(machine.max_keep_alive);
        machine.max_lifetime =
            limits.revise_lifetime_count(parameters.lifetime_count, machine.max_keep_alive, interval);
        if let Some(durable) = &self.durable {
            machine.max_lifetime = machine.max_lifetime.max(durable.lifetime_count(interval));
        }
        machine.reset_lifetime();
        self.max_notifications = limits.revise_max_notifications(parameters.max_notifications_per_publish);
        self.priority = parameters.priority;
    }

    pub(crate) fn revised(&self) -> RevisedSubscription {
        RevisedSubscription {
            subscription_id: self.id(),
            publishing_interval: self.publishing_interval,
            lifetime_count: self.machine.max_lifetime,
            max_keep_alive_count: self.machine.max_keep_alive,
        }
    }

    pub(crate) fn has_notifications(&self) -> bool {
        self.items.available() > 0
    }

    pub(crate) fn facts(&self, request_queued: bool) -> Facts {
        Facts {
            request_queued,
            notifications: self.has_notifications(),
        }
    }

    /// When something is to be done next.
    pub(crate) fn next_timeout(&self) -> Duration {
        let publishing = self.timer.next();
        self.items
            .next_sample()
            .map_or(publishing, |sample| sample.min(publishing))
    }

    /// Makes a message of waiting notifications and keeps it. Returns it with how many it carries and how many old ones were dropped.
    pub(crate) fn notification_message(
        &mut self,
        now: Now,
        limits: &Limits,
        scratch: &mut Vec<u8>,
    ) -> (Message, u32, u64) {
        self.items.follow_links();
        let sequence_number = self.retransmission.take_sequence_number();
        let mut writer = NotificationWriter::new(scratch, sequence_number, now.utc, limits.max_message_size);
        self.items.write(&mut writer, self.max_notifications);
        let count = writer.count();
        writer.finish();
        self.machine.more = self.has_notifications();
        let message = Message::from(scratch.as_slice());
        let dropped = self.retransmission.keep(
            sequence_number,
            Message::clone(&message),
            limits.max_retransmission_messages,
            limits.max_retransmission_bytes,
        );
        (message, count, dropped)
    }

    /// A keep-alive message: it carries the next sequence number without using it, and is not kept.
    pub(crate) fn keep_alive_message(&self, now: Now, scratch: &mut Vec<u8>) -> Message {
        message::keep_alive(scratch, self.retransmission.next_sequence_number(), now.utc);
        Message::from(scratch.as_slice())
    }

    /// The last message of a subscription that ends otherwise than by DeleteSubscriptions.
    pub(crate) fn status_change_message(&mut self, now: Now, status: StatusCode, scratch: &mut Vec<u8>) -> Message {
        let sequence_number = self.retransmission.take_sequence_number();
        message::status_change(scratch, sequence_number, now.utc, status);
        Message::from(scratch.as_slice())
    }
}
