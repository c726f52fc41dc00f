//! TransferSubscriptions (Part 4, 5.14.7): a subscription leaves one session and joins another.
//!
//! It owns what has to be done on both sides of the move; the move itself is the caller's, who also decides who may take what. A subscription
//! between two sessions is a value: nobody samples it, and when it is dropped it is over.

use backplane_types::{MonitoringMode, Now, StatusCode};

use super::Subscriptions;
use super::message;
use super::retransmission::Message;
use super::subscription::Subscription;

/// A subscription between two sessions, with its items, queues and kept messages.
#[derive(Debug)]
pub struct Detached<S>(Subscription<S>);

impl<S> Detached<S> {
    /// Its id, which stays the same.
    #[must_use]
    pub fn subscription_id(&self) -> u32 {
        self.0.id()
    }
}

impl<S> Subscriptions<S> {
    /// These are the subscriptions of this session, a number that the caller chose: [`SubscriptionRegistry::owner`] tells it.
    ///
    /// [`SubscriptionRegistry::owner`]: super::SubscriptionRegistry::owner
    #[must_use]
    pub fn owned_by(mut self, owner: u32) -> Self {
        self.owner = owner;
        self
    }

    /// Keeps a place for a subscription that is to be adopted.
    ///
    /// # Errors
    /// `BadTooManySubscriptions`.
    pub fn reserve_place(&mut self) -> Result<(), StatusCode> {
        if self.list.len().saturating_add(self.reserved) >= self.limits.max_subscriptions {
            return Err(StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS);
        }
        self.reserved += 1;
        Ok(())
    }

    /// Gives a place back: the subscription has come, or will not.
    pub fn free_place(&mut self) {
        self.reserved = self.reserved.saturating_sub(1);
    }

    /// Lets a subscription go to another session. A client that is still there is told so by a StatusChangeNotification
    /// `GoodSubscriptionTransferred`, on its next Publish request.
    ///
    /// # Errors
    /// `BadSubscriptionIdInvalid`.
    pub fn detach_subscription(&mut self, now: Now, subscription_id: u32) -> Result<Detached<S>, StatusCode> {
        let place = self.list.iter().position(|it| it.id() == subscription_id);
        let mut subscription = self.list.remove(place.ok_or(StatusCode::BAD_SUBSCRIPTION_ID_INVALID)?);
        if self.attached {
            // It carries the next sequence number without using it: the messages of the new session have no gap.
            let mut scratch = std::mem::take(&mut self.scratch);
            let number = subscription.retransmission.next_sequence_number();
            let status = StatusCode::GOOD_SUBSCRIPTION_TRANSFERRED;
            message::status_change(&mut scratch, number, now.utc, status);
            self.add_status_change(subscription_id, Message::from(scratch.as_slice()));
            self.keep_scratch(scratch);
            self.serve_waiting(now);
        }
        if self.list.is_empty() && self.status_changes.is_empty() {
            self.abort_requests(StatusCode::BAD_NO_SUBSCRIPTION, |_| true);
        }
        // Counted here so far; the new session starts anew.
        self.counters.lost_values += std::mem::take(&mut subscription.items.lost);
        Ok(Detached(subscription))
    }

    /// Takes a subscription over, whatever the limits say: see [`Subscriptions::reserve_place`]. With `send_initial_values` its reporting
    /// data items report their newest value again. Returns the sequence numbers of the messages that can be had by Republish.
    pub fn adopt_subscription(&mut self, now: Now, detached: Detached<S>, send_initial_values: bool) -> Vec<u32> {
        let Detached(mut subscription) = detached;
        subscription.lease.set_owner(self.owner);
        subscription.machine.reset_lifetime();
        subscription.served = self.served;
        subscription.items.forget_fetches(now);
        if send_initial_values {
            resend(&mut subscription);
        }
        let available = subscription.retransmission.available();
        self.list.push(subscription);
        self.serve_waiting(now);
        available
    }

    /// Deletes a subscription without a word, as DeleteSubscriptions does. False when there is none.
    pub fn drop_subscription(&mut self, subscription_id: u32) -> bool {
        let Some(place) = self.list.iter().position(|it| it.id() == subscription_id) else {
            return false;
        };
        let subscription = self.list.remove(place);
        self.retire(subscription);
        true
    }
}

/// All reporting data items report their newest value again.
pub(crate) fn resend<S>(subscription: &mut Subscription<S>) {
    let items = &mut subscription.items;
    let reporting = items.iter().filter(|item| item.mode == MonitoringMode::REPORTING);
    let ids: Vec<u32> = reporting.map(|item| item.id).collect();
    for id in ids {
        if let Some(slot) = items.slot_of(id) {
            items.recount(slot, |item| item.queue.resend());
        }
    }
}
