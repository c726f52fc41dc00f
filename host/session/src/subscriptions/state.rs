//! The state table of one subscription (Part 4, 5.14.1.2), and nothing else: no queue, no item, no time.
//!
//! CREATING and CLOSED of the table are not states here: a subscription that exists was created, one that is closed no longer exists.
//! Rows 18 to 26 of the table are services; what they do to the counters is [`StateMachine::reset_lifetime`].

/// State of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Cyclically checking for Notifications; the keep-alive counter is not in use.
    Normal,
    /// The timer expired with something to send but no Publish request; the next one is answered at once.
    Late,
    /// Counting empty cycles until a keep-alive message is due.
    KeepAlive,
}

/// What the subscription has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Nothing; a Publish request that just came is queued.
    Wait,
    /// Answer a Publish request with Notifications.
    Notifications,
    /// Answer a Publish request with a keep-alive message.
    KeepAlive,
    /// The lifetime is over.
    Expire,
}

/// What the table asks of the world around it when the publishing timer expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    /// PublishingReqQueued.
    pub(crate) request_queued: bool,
    /// NotificationsAvailable.
    pub(crate) notifications: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct StateMachine {
    pub(crate) state: State,
    pub(crate) publishing_enabled: bool,
    pub(crate) message_sent: bool,
    /// MoreNotifications: the last message could not take everything.
    pub(crate) more: bool,
    pub(crate) max_keep_alive: u32,
    pub(crate) max_lifetime: u32,
    pub(crate) keep_alive: u32,
    pub(crate) lifetime: u32,
}

impl StateMachine {
    /// Rows 2 and 3: the state after CreateSubscription was answered.
    pub(crate) fn new(max_keep_alive: u32, max_lifetime: u32, publishing_enabled: bool) -> Self {
        Self {
            state: State::Normal,
            publishing_enabled,
            message_sent: false,
            more: false,
            max_keep_alive,
            max_lifetime,
            keep_alive: max_keep_alive,
            lifetime: max_lifetime,
        }
    }

    /// ResetLifetimeCounter of the table: any service of the subscription service set came from the client.
    pub(crate) fn reset_lifetime(&mut self) {
        self.lifetime = self.max_lifetime;
    }

    /// Row 19: SetPublishingMode.
    pub(crate) fn set_publishing_enabled(&mut self, enabled: bool) {
        self.reset_lifetime();
        self.publishing_enabled = enabled;
        self.more = false;
    }

    /// Rows 4, 5, 10, 11 and 13: a Publish request came. `Wait` means that it is queued, or offered to the next subscription.
    pub(crate) fn on_publish(&mut self, notifications: bool) -> Action {
        self.reset_lifetime();
        match self.state {
            State::Normal if self.has_more(notifications) => self.notify(),
            State::Late if self.publishing_enabled && notifications => self.notify(),
            State::Late => {
                self.state = State::KeepAlive;
                self.keep_alive_message()
            }
            State::Normal | State::KeepAlive => Action::Wait,
        }
    }

    /// Whether a Publish request that comes now is answered at once (rows 5, 10 and 11).
    pub(crate) fn wants_publish(&self, notifications: bool) -> bool {
        match self.state {
            State::Late => true,
            State::Normal => self.has_more(notifications),
            State::KeepAlive => false,
        }
    }

    /// What was left over may have gone since, with its items.
    fn has_more(&self, notifications: bool) -> bool {
        self.publishing_enabled && self.more && notifications
    }

    /// Rows 6 to 9, 12, 14 to 17 and 27: the publishing timer expired.
    pub(crate) fn on_timer(&mut self, facts: Facts) -> Action {
        if facts.request_queued {
            // A Publish request is available: the client lives.
            self.reset_lifetime();
        } else if self.lifetime <= 1 {
            return Action::Expire;
        } else {
            self.lifetime -= 1;
        }
        let sendable = self.publishing_enabled && facts.notifications;
        match self.state {
            _ if sendable && facts.request_queued => self.notify(),
            State::Normal if sendable => self.late(),
            State::Normal if !self.message_sent => {
                if facts.request_queued {
                    self.keep_alive_message()
                } else {
                    self.late()
                }
            }
            State::Normal => {
                self.state = State::KeepAlive;
                self.keep_alive = self.max_keep_alive;
                self.empty_cycle(facts)
            }
            State::Late if facts.request_queued => {
                self.state = State::KeepAlive;
                self.keep_alive_message()
            }
            State::Late => Action::Wait,
            State::KeepAlive if sendable => self.late(),
            State::KeepAlive => self.empty_cycle(facts),
        }
    }

    /// Counts a cycle without Notifications; the one that makes the maximum sends the keep-alive message.
    fn empty_cycle(&mut self, facts: Facts) -> Action {
        if self.keep_alive > 1 {
            self.keep_alive -= 1;
            Action::Wait
        } else if facts.request_queued {
            self.keep_alive_message()
        } else {
            self.late()
        }
    }

    fn notify(&mut self) -> Action {
        self.state = State::Normal;
        self.message_sent = true;
        self.reset_lifetime();
        Action::Notifications
    }

    fn keep_alive_message(&mut self) -> Action {
        self.message_sent = true;
        self.keep_alive = self.max_keep_alive;
        self.reset_lifetime();
        Action::KeepAlive
    }

    fn late(&mut self) -> Action {
        self.state = State::Late;
        Action::Wait
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
