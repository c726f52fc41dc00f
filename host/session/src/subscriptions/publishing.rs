//! Publish, the publishing timers, and the answers they make (Part 4, 5.14.1 and 5.14.5).

use std::sync::Arc;
use std::time::Duration;

use backplane_types::{Now, StatusCode};

use super::Subscriptions;
use super::item::Sampler;
use super::publish::{PublishMessage, PublishReply, PublishRequest, PublishTicket, Waiting};
use super::retransmission::Message;
use super::state::Action;

impl<S> Subscriptions<S> {
    /// Publish (Part 4, 5.14.5). The answer comes by [`Subscriptions::poll_response`], perhaps at once. `acknowledgements` are pairs of
    /// subscription id and sequence number.
    pub fn publish(
        &mut self,
        now: Now,
        request: PublishRequest,
        acknowledgements: impl IntoIterator<Item = (u32, u32)>,
    ) {
        if self.list.is_empty() && self.status_changes.is_empty() {
            self.fault(request.ticket, StatusCode::BAD_NO_SUBSCRIPTION);
            return;
        }
        let Some(results) = self.acknowledge(acknowledgements) else {
            self.fault(request.ticket, StatusCode::BAD_TOO_MANY_OPERATIONS);
            return;
        };
        for subscription in &mut self.list {
            subscription.machine.reset_lifetime();
        }
        self.expire_requests(now);
        self.requests.push_back(Waiting { request, results });
        self.serve_waiting(now);
        // More requests than subscriptions are always accepted (Part 4, 5.14.5.1).
        let limit = self.limits.max_publish_requests.max(self.list.len() + 1);
        while self.requests.len() > limit {
            self.counters.refused_requests += 1;
            if let Some(oldest) = self.requests.pop_front() {
                let status = StatusCode::BAD_TOO_MANY_PUBLISH_REQUESTS;
                self.fault(oldest.request.ticket, status);
            }
        }
    }

    /// The next answer to a Publish request. To be called after everything that takes `&mut self`, until there is none.
    pub fn poll_response(&mut self) -> Option<(PublishTicket, PublishReply)> {
        self.replies.pop_front()
    }

    /// Answers waiting Publish requests with a fault, those whose ticket is picked: their channel closed (`BadSecureChannelClosed`), their
    /// session moved to another one (`BadSecureChannelIdInvalid`), the server stops (`BadServerHalted`).
    pub fn abort_requests(&mut self, status: StatusCode, mut pick: impl FnMut(PublishTicket) -> bool) {
        let replies = &mut self.replies;
        self.requests.retain(|waiting| {
            let ticket = waiting.request.ticket;
            let picked = pick(ticket);
            if picked {
                replies.push_back((ticket, PublishReply::Fault(status)));
            }
            !picked
        });
    }

    /// Cancel (Part 4, 5.7.5) for Publish requests: answers those with this handle `BadRequestCancelledByRequest` and returns their number.
    pub fn cancel(&mut self, request_handle: u32) -> u32 {
        let before = self.requests.len();
        let replies = &mut self.replies;
        self.requests.retain(|waiting| {
            let cancelled = waiting.request.request_handle == request_handle;
            if cancelled {
                let status = StatusCode::BAD_REQUEST_CANCELLED_BY_REQUEST;
                replies.push_back((waiting.request.ticket, PublishReply::Fault(status)));
            }
            !cancelled
        });
        u32::try_from(before - self.requests.len()).unwrap_or(u32::MAX)
    }

    /// The monotonic time at which [`Subscriptions::handle_timeout`] has to be called next. It may lie in the past: then sampling is
    /// behind and makes up for it.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        let subscriptions = self.list.iter().map(|it| it.next_timeout());
        let requests = self.requests.iter().filter_map(|it| it.request.deadline);
        subscriptions.chain(requests).min()
    }

    /// Samples what is due, then runs the publishing timers that are due, higher priorities first.
    pub fn handle_timeout(&mut self, now: Now, sampler: &mut impl Sampler<S>) {
        for subscription in &mut self.list {
            subscription.items.sample_due(now, sampler);
        }
        self.expire_requests(now);
        let mut due = std::mem::take(&mut self.due);
        due.clear();
        for (place, subscription) in self.list.iter_mut().enumerate() {
            if subscription.timer.take_all(now.mono) {
                due.push(place);
            }
        }
        due.sort_by_key(|place| self.order(*place));
        for place in &due {
            self.run_timer(*place, now);
        }
        let any_expired = !due.is_empty() && self.list.iter().any(|it| it.expired);
        self.due = due;
        if any_expired {
            self.remove_expired(now);
        }
    }

    /// Higher priority first, then who was served longest ago.
    fn order(&self, place: usize) -> (u8, u64) {
        self.list
            .get(place)
            .map_or((u8::MAX, u64::MAX), |it| (u8::MAX - it.priority, it.served))
    }

    fn run_timer(&mut self, place: usize, now: Now) {
        let request_queued = !self.requests.is_empty();
        let Some(subscription) = self.list.get_mut(place) else {
            return;
        };
        subscription.items.follow_links();
        let facts = subscription.facts(request_queued);
        let action = subscription.machine.on_timer(facts);
        if action == Action::Expire {
            subscription.expired = true;
        } else {
            self.act(place, action, now);
        }
    }

    /// Gives waiting requests to whoever needs one at once: last messages first, then subscriptions that are late or have more to send.
    pub(super) fn serve_waiting(&mut self, now: Now) {
        while !self.requests.is_empty() {
            if let Some((subscription_id, message)) = self.status_changes.pop_front() {
                self.reply(subscription_id, Vec::new(), false, message);
                continue;
            }
            let wants = |place: &usize| {
                self.list
                    .get(*place)
                    .is_some_and(|it| it.machine.wants_publish(it.has_notifications()))
            };
            let places = (0..self.list.len()).filter(wants);
            let Some(place) = places.min_by_key(|place| self.order(*place)) else {
                return;
            };
            let Some(subscription) = self.list.get_mut(place) else {
                return;
            };
            let notifications = subscription.has_notifications();
            let action = subscription.machine.on_publish(notifications);
            self.act(place, action, now);
        }
    }

    fn act(&mut self, place: usize, action: Action, now: Now) {
        match action {
            Action::Wait | Action::Expire => {}
            Action::KeepAlive => self.send_keep_alive(place, now),
            Action::Notifications => self.send_notifications(place, now),
        }
    }

    /// ReturnNotifications of the state table: as many messages as are needed and Publish requests are there.
    fn send_notifications(&mut self, place: usize, now: Now) {
        let limits = Arc::clone(&self.limits);
        let mut scratch = std::mem::take(&mut self.scratch);
        while !self.requests.is_empty() {
            let Some(subscription) = self.list.get_mut(place) else {
                break;
            };
            let (message, count, dropped) = subscription.notification_message(now, &limits, &mut scratch);
            let more = subscription.machine.more;
            let available = subscription.retransmission.available();
            let id = subscription.id();
            self.served += 1;
            subscription.served = self.served;
            self.counters.messages += 1;
            self.counters.notifications += u64::from(count);
            self.counters.dropped_messages += dropped;
            self.reply(id, available, more, message);
            if !more {
                break;
            }
        }
        self.keep_scratch(scratch);
    }

    fn send_keep_alive(&mut self, place: usize, now: Now) {
        let mut scratch = std::mem::take(&mut self.scratch);
        if let Some(subscription) = self.list.get_mut(place) {
            let message = subscription.keep_alive_message(now, &mut scratch);
            let available = subscription.retransmission.available();
            let id = subscription.id();
            self.served += 1;
            subscription.served = self.served;
            self.counters.keep_alives += 1;
            self.reply(id, available, false, message);
        }
        self.keep_scratch(scratch);
    }

    /// Answers the oldest waiting request.
    fn reply(
        &mut self,
        subscription_id: u32,
        available_sequence_numbers: Vec<u32>,
        more_notifications: bool,
        message: Message,
    ) {
        if let Some(waiting) = self.requests.pop_front() {
            let reply = PublishMessage {
                subscription_id,
                available_sequence_numbers,
                more_notifications,
                message,
                results: waiting.results,
            };
            self.replies
                .push_back((waiting.request.ticket, PublishReply::Message(reply)));
        }
    }

    fn fault(&mut self, ticket: PublishTicket, status: StatusCode) {
        self.replies.push_back((ticket, PublishReply::Fault(status)));
    }

    /// Answers requests whose client has given up.
    fn expire_requests(&mut self, now: Now) {
        let over = |deadline: Option<Duration>| deadline.is_some_and(|it| it <= now.mono);
        if !self.requests.iter().any(|it| over(it.request.deadline)) {
            return;
        }
        let (replies, counters) = (&mut self.replies, &mut self.counters);
        self.requests.retain(|waiting| {
            let timed_out = over(waiting.request.deadline);
            if timed_out {
                counters.timed_out_requests += 1;
                let reply = PublishReply::Fault(StatusCode::BAD_TIMEOUT);
                replies.push_back((waiting.request.ticket, reply));
            }
            !timed_out
        });
    }

    /// Row 27 of the state table: what is left of an expired subscription is one StatusChangeNotification.
    fn remove_expired(&mut self, now: Now) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut place = 0;
        while let Some(subscription) = self.list.get_mut(place) {
            if !subscription.expired {
                place += 1;
                continue;
            }
            let mut subscription = self.list.remove(place);
            let id = subscription.id();
            if self.attached {
                let status = StatusCode::BAD_TIMEOUT;
                let message = subscription.status_change_message(now, status, &mut scratch);
                self.add_status_change(id, message);
            }
            self.ended.push_back(id);
            self.counters.expired_subscriptions += 1;
            self.retire(subscription);
        }
        self.keep_scratch(scratch);
        self.serve_waiting(now);
    }

    /// Subscriptions can be created and left to die for ever; their last messages cannot pile up.
    pub(super) fn add_status_change(&mut self, subscription_id: u32, message: Message) {
        self.status_changes.push_back((subscription_id, message));
        if self.status_changes.len() > self.limits.max_subscriptions {
            self.status_changes.pop_front();
        }
    }

    /// Acknowledges messages: one result each, or none at all when there are too many.
    fn acknowledge(&mut self, acknowledgements: impl IntoIterator<Item = (u32, u32)>) -> Option<Vec<StatusCode>> {
        let mut results = Vec::new();
        for (subscription_id, sequence_number) in acknowledgements {
            if results.len() >= self.limits.max_operations {
                return None;
            }
            let result = self
                .find(subscription_id)
                .and_then(|it| it.retransmission.acknowledge(sequence_number));
            results.push(result.err().unwrap_or(StatusCode::GOOD));
        }
        Some(results)
    }
}
