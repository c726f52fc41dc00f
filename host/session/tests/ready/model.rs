//! What a session's only subscription does, written down as simply as possible: after everything that happens to an item, and before every
//! message, all items are looked at.
//!
//! Values come from outside one by one; there is no sampling in here. Nothing is shared with the code under test.

#![allow(missing_docs, unreachable_pub)]

use std::collections::{BTreeSet, VecDeque};

use backplane_types::{MonitoringMode, StatusCode};

const SAMPLING: MonitoringMode = MonitoringMode::SAMPLING;
const REPORTING: MonitoringMode = MonitoringMode::REPORTING;
const DISABLED: MonitoringMode = MonitoringMode::DISABLED;

/// One answer to a Publish request.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Fault(StatusCode),
    Message {
        sequence: u32,
        available: Vec<u32>,
        more: bool,
        results: Vec<StatusCode>,
        /// Client handle, value, Overflow bit.
        data: Vec<(u32, f64, bool)>,
    },
}

#[derive(Debug)]
pub struct Item {
    pub id: u32,
    pub handle: u32,
    pub mode: MonitoringMode,
    queue: Vec<(f64, bool)>,
    last: Option<f64>,
    capacity: usize,
    discard_oldest: bool,
    triggered: bool,
    /// When it became ready: the order in a message.
    ready: Option<u64>,
}

impl Item {
    fn is_ready(&self) -> bool {
        (self.mode == REPORTING || self.triggered) && !self.queue.is_empty()
    }

    fn push(&mut self, value: f64) -> bool {
        if self.mode == DISABLED || self.last == Some(value) {
            return false;
        }
        self.last = Some(value);
        if self.queue.len() < self.capacity {
            self.queue.push((value, false));
        } else if self.capacity == 1 {
            self.queue = vec![(value, false)];
        } else if self.discard_oldest {
            self.queue.remove(0);
            self.queue[0].1 = true;
            self.queue.push((value, false));
        } else {
            *self.queue.last_mut().unwrap() = (value, true);
        }
        true
    }

    fn resize(&mut self, capacity: usize, discard_oldest: bool) {
        (self.capacity, self.discard_oldest) = (capacity, discard_oldest);
        while self.queue.len() > capacity {
            if capacity == 1 || discard_oldest {
                self.queue.remove(0);
                self.queue[0].1 |= capacity > 1;
            } else {
                let (newest, _) = self.queue.pop().unwrap();
                *self.queue.last_mut().unwrap() = (newest, true);
            }
        }
    }
}

/// See the module text.
#[derive(Debug)]
pub struct Model {
    now: u64,
    next_timer: u64,
    interval: u64,
    max_notifications: usize,
    max_requests: usize,
    max_keep_alive: u32,
    /// In places that are used again, the one freed last first.
    pub items: Vec<Option<Item>>,
    free: Vec<usize>,
    links: BTreeSet<(u32, u32)>,
    fired: BTreeSet<u32>,
    requests: VecDeque<(u64, Vec<StatusCode>)>,
    pub answers: VecDeque<(u64, Answer)>,
    kept: Vec<u32>,
    sequence: u32,
    enabled: bool,
    message_sent: bool,
    late: bool,
    idle: bool,
    more: bool,
    cycles: u32,
    order: u64,
}

impl Model {
    pub fn new(interval: u64, max_notifications: usize, max_keep_alive: u32, max_requests: usize) -> Self {
        Self {
            now: 0,
            next_timer: interval,
            interval,
            max_notifications,
            max_requests,
            max_keep_alive,
            items: Vec::new(),
            free: Vec::new(),
            links: BTreeSet::new(),
            fired: BTreeSet::new(),
            requests: VecDeque::new(),
            answers: VecDeque::new(),
            kept: Vec::new(),
            sequence: 1,
            enabled: true,
            message_sent: false,
            late: false,
            idle: false,
            more: false,
            cycles: max_keep_alive,
            order: 0,
        }
    }

    pub fn ids(&self) -> Vec<u32> {
        self.items.iter().flatten().map(|item| item.id).collect()
    }

    pub fn item(&mut self, id: u32) -> Option<&mut Item> {
        self.items.iter_mut().flatten().find(|item| item.id == id)
    }

    /// Looks at every item.
    fn scan(&mut self) {
        for item in self.items.iter_mut().flatten() {
            if !item.is_ready() {
                item.ready = None;
            } else if item.ready.is_none() {
                self.order += 1;
                item.ready = Some(self.order);
            }
        }
    }

    fn any_ready(&mut self) -> bool {
        self.scan();
        self.items.iter().flatten().any(Item::is_ready)
    }

    pub fn create(&mut self, id: u32, mode: MonitoringMode, capacity: usize, discard_oldest: bool, value: f64) {
        let item = Item {
            id,
            handle: id,
            mode,
            queue: Vec::new(),
            last: None,
            capacity,
            discard_oldest,
            triggered: false,
            ready: None,
        };
        match self.free.pop() {
            Some(place) => self.items[place] = Some(item),
            None => self.items.push(Some(item)),
        }
        self.value(id, value);
    }

    pub fn delete(&mut self, id: u32) -> StatusCode {
        let place = self
            .items
            .iter()
            .position(|item| item.as_ref().is_some_and(|it| it.id == id));
        let Some(place) = place else {
            return StatusCode::BAD_MONITORED_ITEM_ID_INVALID;
        };
        self.items[place] = None;
        self.free.push(place);
        self.links.retain(|link| link.0 != id && link.1 != id);
        self.fired.remove(&id);
        StatusCode::GOOD
    }

    pub fn modify(&mut self, id: u32, capacity: usize, discard_oldest: bool) {
        if let Some(item) = self.item(id) {
            item.resize(capacity, discard_oldest);
        }
        self.scan();
    }

    /// The item's source has this value now. True when it was queued.
    pub fn value(&mut self, id: u32, value: f64) {
        if self.item(id).is_some_and(|item| item.push(value)) && self.links.iter().any(|link| link.0 == id) {
            self.fired.insert(id);
        }
        self.scan();
    }

    /// `value` is what an item that is enabled finds.
    pub fn mode(&mut self, id: u32, mode: MonitoringMode) {
        let Some(item) = self.item(id) else {
            return;
        };
        if item.mode != mode {
            item.mode = mode;
            item.triggered = false;
            if mode == DISABLED {
                item.queue.clear();
                item.last = None;
                self.fired.remove(&id);
            }
        }
        self.scan();
    }

    pub fn link(&mut self, trigger: u32, add: &[u32], remove: &[u32]) -> (Vec<StatusCode>, Vec<StatusCode>) {
        let unknown = StatusCode::BAD_MONITORED_ITEM_ID_INVALID;
        self.follow();
        let removed = remove
            .iter()
            .map(|target| {
                if self.links.remove(&(trigger, *target)) {
                    StatusCode::GOOD
                } else {
                    unknown
                }
            })
            .collect();
        let added = add
            .iter()
            .map(|target| {
                if self.item(*target).is_none() {
                    return unknown;
                }
                self.links.insert((trigger, *target));
                StatusCode::GOOD
            })
            .collect();
        (added, removed)
    }

    fn follow(&mut self) {
        let fired = std::mem::take(&mut self.fired);
        let links: Vec<(u32, u32)> = self.links.iter().copied().filter(|it| fired.contains(&it.0)).collect();
        for (_, target) in links {
            if let Some(item) = self.item(target) {
                item.triggered |= item.mode == SAMPLING && !item.queue.is_empty();
            }
            self.scan();
        }
    }

    pub fn resend(&mut self) {
        for place in 0..self.items.len() {
            if let Some(item) = &mut self.items[place]
                && item.mode == REPORTING
                && item.queue.is_empty()
                && let Some(last) = item.last
            {
                item.queue.push((last, false));
            }
            self.scan();
        }
    }

    pub fn enable_publishing(&mut self, enabled: bool) {
        self.enabled = enabled;
        self.more = false;
    }

    pub fn publish(&mut self, ticket: u64, acknowledged: &[u32]) {
        let results = acknowledged
            .iter()
            .map(|number| match self.kept.iter().position(|kept| kept == number) {
                _ if *number == 0 => StatusCode::BAD_SEQUENCE_NUMBER_INVALID,
                Some(place) => {
                    self.kept.remove(place);
                    StatusCode::GOOD
                }
                None => StatusCode::BAD_SEQUENCE_NUMBER_UNKNOWN,
            })
            .collect();
        self.requests.push_back((ticket, results));
        while !self.requests.is_empty() {
            let sendable = self.any_ready() && self.enabled;
            if sendable && (self.late || self.more && !self.idle) {
                self.send();
            } else if self.late {
                self.keep_alive();
            } else {
                break;
            }
        }
        while self.requests.len() > self.max_requests {
            let (ticket, _) = self.requests.pop_front().unwrap();
            let fault = Answer::Fault(StatusCode::BAD_TOO_MANY_PUBLISH_REQUESTS);
            self.answers.push_back((ticket, fault));
        }
    }

    pub fn run(&mut self, ms: u64) {
        let end = self.now + ms;
        while self.next_timer <= end {
            self.next_timer += self.interval;
            self.timer();
        }
        self.now = end;
    }

    fn timer(&mut self) {
        self.follow();
        let sendable = self.any_ready() && self.enabled;
        let asked = !self.requests.is_empty();
        if !sendable && !self.late && self.message_sent {
            if !self.idle {
                (self.idle, self.cycles) = (true, self.max_keep_alive);
            }
            if self.cycles > 1 {
                self.cycles -= 1;
                return;
            }
        }
        if !asked {
            (self.late, self.idle) = (true, false);
        } else if sendable {
            self.send();
        } else {
            self.keep_alive();
        }
    }

    fn send(&mut self) {
        (self.late, self.idle, self.message_sent) = (false, false, true);
        while let Some((ticket, results)) = self.requests.pop_front() {
            self.follow();
            let mut data = Vec::new();
            while data.len() < self.max_notifications {
                let ready = self.items.iter_mut().flatten().filter(|item| item.is_ready());
                let Some(item) = ready.min_by_key(|item| item.ready) else {
                    break;
                };
                let (value, overflow) = item.queue.remove(0);
                data.push((item.handle, value, overflow));
                item.triggered &= !item.queue.is_empty();
                self.scan();
            }
            self.kept.push(self.sequence);
            self.sequence += 1;
            self.more = self.any_ready();
            let message = Answer::Message {
                sequence: self.sequence - 1,
                available: self.kept.clone(),
                more: self.more,
                results,
                data,
            };
            self.answers.push_back((ticket, message));
            if !self.more {
                break;
            }
        }
    }

    fn keep_alive(&mut self) {
        (self.late, self.idle, self.message_sent) = (false, true, true);
        self.cycles = self.max_keep_alive;
        if let Some((ticket, results)) = self.requests.pop_front() {
            let message = Answer::Message {
                sequence: self.sequence,
                available: self.kept.clone(),
                more: false,
                results,
                data: Vec::new(),
            };
            self.answers.push_back((ticket, message));
        }
    }
}
