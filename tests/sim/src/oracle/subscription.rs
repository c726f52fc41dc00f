//! One subscription as the state table of Part 4, 5.14.1.2 has it, with its items and the messages that Republish must still have.
//!
//! It must not know the session's Publish requests; whether one waits is handed in.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use backplane_session::{Limits, RevisedSubscription};
use backplane_types::DataValue;

use super::item::Item;

/// States of the table; CREATING and CLOSED are those of a subscription that is not here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Normal,
    Late,
    KeepAlive,
}

/// What a subscription does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Nothing,
    Data,
    KeepAlive,
    End,
}

/// One value as it must appear in a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Notified {
    pub(crate) handle: u32,
    pub(crate) node: String,
    pub(crate) value: DataValue,
}

/// See the module text.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) id: u32,
    pub(crate) interval: Duration,
    pub(crate) next_tick: Duration,
    pub(crate) max_lifetime: u32,
    pub(crate) max_keep_alive: u32,
    pub(crate) max_notifications: u32,
    pub(crate) priority: u8,
    pub(crate) enabled: bool,
    pub(crate) state: State,
    pub(crate) message_sent: bool,
    pub(crate) more: bool,
    pub(crate) lifetime: u32,
    pub(crate) keep_alive: u32,
    pub(crate) next_sequence: u32,
    /// Sent and not acknowledged, oldest first, with their bytes.
    pub(crate) kept: VecDeque<(u32, Arc<[u8]>)>,
    pub(crate) items: BTreeMap<u32, Item>,
    /// Items with something to report, in the order in which they got it.
    pub(crate) ready: VecDeque<u32>,
    pub(crate) served: u64,
    pub(crate) ended: bool,
    /// Values lost to full queues.
    pub(crate) lost: u64,
}

fn milliseconds(ms: f64) -> Duration {
    Duration::try_from_secs_f64(ms / 1000.0).unwrap_or(Duration::MAX)
}

/// Publishing timers of the server lie on a grid that all have in common, of this or of the interval if that is shorter.
const GRID: Duration = Duration::from_millis(10);

/// The end of the first publishing cycle: one interval from now, or the step of the grid before.
fn first_tick(now: Duration, interval: Duration) -> Duration {
    let end = now.saturating_add(interval);
    let grid = GRID.min(interval).as_nanos().max(1);
    let beyond = u64::try_from(end.as_nanos() % grid).unwrap_or(0);
    end.saturating_sub(Duration::from_nanos(beyond))
}

impl Subscription {
    pub(crate) fn new(
        revised: &RevisedSubscription,
        wish: u32,
        priority: u8,
        enabled: bool,
        limits: &Limits,
        now: Duration,
    ) -> Self {
        let interval = milliseconds(revised.publishing_interval);
        Self {
            id: revised.subscription_id,
            interval,
            next_tick: first_tick(now, interval),
            max_lifetime: revised.lifetime_count,
            max_keep_alive: revised.max_keep_alive_count,
            max_notifications: most(wish, limits),
            priority,
            enabled,
            state: State::Normal,
            message_sent: false,
            more: false,
            lifetime: revised.lifetime_count,
            keep_alive: revised.max_keep_alive_count,
            next_sequence: 1,
            kept: VecDeque::new(),
            items: BTreeMap::new(),
            ready: VecDeque::new(),
            served: 0,
            ended: false,
            lost: 0,
        }
    }

    /// Row 18. The timer starts anew only if its interval changes.
    pub(crate) fn modify(
        &mut self,
        revised: &RevisedSubscription,
        wish: u32,
        priority: u8,
        limits: &Limits,
        now: Duration,
    ) {
        let interval = milliseconds(revised.publishing_interval);
        if interval != self.interval {
            self.interval = interval;
            self.next_tick = first_tick(now, interval);
        }
        self.max_keep_alive = revised.max_keep_alive_count;
        self.keep_alive = self.keep_alive.min(self.max_keep_alive);
        self.max_lifetime = revised.lifetime_count;
        self.max_notifications = most(wish, limits);
        self.priority = priority;
        self.alive();
    }

    /// The client showed that it lives.
    pub(crate) fn alive(&mut self) {
        self.lifetime = self.max_lifetime;
    }

    /// Notifications that can be sent.
    pub(crate) fn available(&self) -> usize {
        self.items
            .values()
            .filter(|item| item.is_reporting())
            .map(|item| item.waiting.len())
            .sum()
    }

    fn sendable(&self) -> bool {
        self.enabled && self.available() > 0
    }

    /// Whether a Publish request that is there now is answered at once.
    pub(crate) fn wants_request(&self) -> bool {
        match self.state {
            State::Late => true,
            State::Normal => self.more && self.sendable(),
            State::KeepAlive => false,
        }
    }

    /// A Publish request is there and this subscription wants it.
    pub(crate) fn take_request(&mut self) -> Act {
        self.alive();
        if self.sendable() {
            self.state = State::Normal;
            self.message_sent = true;
            Act::Data
        } else {
            self.state = State::KeepAlive;
            self.keep_alive_now()
        }
    }

    fn keep_alive_now(&mut self) -> Act {
        self.message_sent = true;
        self.keep_alive = self.max_keep_alive;
        self.alive();
        Act::KeepAlive
    }

    /// The publishing timer expired.
    pub(crate) fn tick(&mut self, request_waits: bool) -> Act {
        if request_waits {
            self.alive();
        } else if self.lifetime <= 1 {
            return Act::End;
        } else {
            self.lifetime -= 1;
        }
        if self.sendable() {
            if !request_waits {
                self.state = State::Late;
                return Act::Nothing;
            }
            self.state = State::Normal;
            self.message_sent = true;
            return Act::Data;
        }
        let due = match self.state {
            // The first message is due at the end of the first cycle; row 7 stays in NORMAL.
            State::Normal if !self.message_sent => true,
            State::Late if request_waits => {
                self.state = State::KeepAlive;
                true
            }
            State::Late => false,
            State::Normal => {
                self.state = State::KeepAlive;
                self.keep_alive = self.max_keep_alive;
                self.count_down()
            }
            State::KeepAlive => self.count_down(),
        };
        if !due {
            Act::Nothing
        } else if request_waits {
            self.keep_alive_now()
        } else {
            self.state = State::Late;
            Act::Nothing
        }
    }

    /// One cycle without notifications; true when it was the last one without a message.
    fn count_down(&mut self) -> bool {
        if self.keep_alive <= 1 {
            return true;
        }
        self.keep_alive -= 1;
        false
    }

    pub(crate) fn take_sequence(&mut self) -> u32 {
        let number = self.next_sequence;
        self.next_sequence = number.checked_add(1).unwrap_or(1);
        number
    }

    /// The notifications of the next message, in the order of items that became ready.
    pub(crate) fn next_message(&mut self) -> Vec<Notified> {
        let mut all = Vec::new();
        while let Some(id) = self.ready.front().copied() {
            let Some(item) = self.items.get_mut(&id) else {
                self.ready.pop_front();
                continue;
            };
            while all.len() < self.max_notifications as usize
                && let Some(waiting) = item.waiting.pop_front()
            {
                all.push(Notified {
                    handle: item.handle,
                    node: item.node.clone(),
                    value: item.shown(&waiting),
                });
            }
            if item.waiting.is_empty() {
                self.ready.pop_front();
            }
            if all.len() >= self.max_notifications as usize {
                break;
            }
        }
        self.more = self.available() > 0;
        all
    }

    /// Runs `change` on an item and puts it in its place among the ready ones.
    pub(crate) fn change(&mut self, id: u32, change: impl FnOnce(&mut Item)) {
        let Some(item) = self.items.get_mut(&id) else { return };
        let before = item.overflows;
        change(item);
        self.lost += item.overflows - before;
        let is_ready = item.is_reporting() && !item.waiting.is_empty();
        let was_ready = self.ready.contains(&id);
        if is_ready && !was_ready {
            self.ready.push_back(id);
        } else if !is_ready && was_ready {
            self.ready.retain(|it| *it != id);
        }
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<Item> {
        self.ready.retain(|it| *it != id);
        self.items.remove(&id)
    }
}

fn most(wish: u32, limits: &Limits) -> u32 {
    if wish == 0 {
        limits.max_notifications_per_publish
    } else {
        wish.min(limits.max_notifications_per_publish)
    }
}
