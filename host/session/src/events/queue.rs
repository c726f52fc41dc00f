//! The queue of one event item (Part 4, 5.13.1.5): what is kept, what is lost, and the event that says so.

use std::collections::VecDeque;
use std::sync::Arc;

use backplane_types::Now;

use super::event::Event;
use super::saved::SavedEvent;

/// An event is handed to a queue once, or again right away: older entries are not looked at, however long the queue.
const RECENT: usize = 8;

/// One event in the queue.
#[derive(Debug)]
struct Entry {
    event: Arc<Event>,
    /// Says that events were lost: takes no place of the queue and is never lost.
    overflow: bool,
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queued {
    Added,
    /// It has just been queued.
    Duplicate,
    /// It, or the oldest, is lost.
    Lost,
}

#[derive(Debug)]
pub(crate) struct EventQueue {
    entries: VecDeque<Entry>,
    overflows: usize,
    capacity: usize,
    discard_oldest: bool,
}

impl EventQueue {
    /// A queue for `capacity` events, at least one.
    pub(crate) fn new(capacity: u32, discard_oldest: bool) -> Self {
        Self {
            entries: VecDeque::new(),
            overflows: 0,
            capacity: (capacity as usize).max(1),
            discard_oldest,
        }
    }

    /// Events to report.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Queues an event.
    pub(crate) fn push(&mut self, event: &Arc<Event>, now: Now) -> Queued {
        let mut recent = self.entries.iter().rev().take(RECENT);
        if recent.any(|entry| Arc::ptr_eq(&entry.event, event)) {
            return Queued::Duplicate;
        }
        if self.places_taken() < self.capacity {
            self.append(event);
            return Queued::Added;
        }
        if self.discard_oldest {
            let lost = self.drop_oldest();
            self.append(event);
            self.report_first(lost.as_deref().unwrap_or(event), now);
        } else {
            self.report_last(event, now);
        }
        Queued::Lost
    }

    /// Notes that events were lost before they came here, `lost` being the first of them.
    pub(crate) fn lose(&mut self, lost: &Event, now: Now) {
        if self.discard_oldest {
            self.report_first(lost, now);
        } else {
            self.report_last(lost, now);
        }
    }

    /// Takes the oldest event.
    pub(crate) fn pop(&mut self) -> Option<Arc<Event>> {
        let entry = self.entries.pop_front()?;
        self.overflows -= usize::from(entry.overflow);
        Some(entry.event)
    }

    /// Everything, to be saved.
    pub(crate) fn saved(&self) -> Vec<SavedEvent> {
        let save = |entry: &Entry| SavedEvent {
            event: Arc::clone(&entry.event),
            overflow: entry.overflow,
        };
        self.entries.iter().map(save).collect()
    }

    /// What was saved, before everything that comes now.
    pub(crate) fn restore(&mut self, saved: Vec<SavedEvent>) {
        for SavedEvent { event, overflow } in saved {
            self.overflows += usize::from(overflow);
            self.entries.push_back(Entry { event, overflow });
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.entries = VecDeque::new();
        self.overflows = 0;
    }

    /// Changes size and policy; events that remain keep their order. Returns how many were lost.
    pub(crate) fn resize(&mut self, capacity: u32, discard_oldest: bool, now: Now) -> u64 {
        self.capacity = (capacity as usize).max(1);
        self.discard_oldest = discard_oldest;
        let mut lost: Option<Arc<Event>> = None;
        let mut count = 0;
        while self.places_taken() > self.capacity {
            let dropped = if discard_oldest {
                self.drop_oldest()
            } else {
                self.drop_newest()
            };
            lost = lost.or(dropped);
            count += 1;
        }
        match lost {
            Some(lost) if discard_oldest => self.report_first(&lost, now),
            Some(lost) => self.report_last(&lost, now),
            None => {}
        }
        if self.entries.is_empty() {
            self.entries = VecDeque::new();
        }
        count
    }

    fn places_taken(&self) -> usize {
        self.entries.len() - self.overflows
    }

    fn append(&mut self, event: &Arc<Event>) {
        self.entries.push_back(Entry {
            event: Arc::clone(event),
            overflow: false,
        });
    }

    fn drop_oldest(&mut self) -> Option<Arc<Event>> {
        let place = self.entries.iter().position(|entry| !entry.overflow)?;
        self.entries.remove(place).map(|entry| entry.event)
    }

    fn drop_newest(&mut self) -> Option<Arc<Event>> {
        let place = self.entries.iter().rposition(|entry| !entry.overflow)?;
        self.entries.remove(place).map(|entry| entry.event)
    }

    /// The oldest went: the first thing that the client learns is that something is missing.
    fn report_first(&mut self, lost: &Event, now: Now) {
        if self.entries.front().is_none_or(|entry| !entry.overflow) {
            self.entries.push_front(Entry {
                event: Event::overflow(lost, now),
                overflow: true,
            });
            self.overflows += 1;
        }
    }

    /// The newest went: what is missing belongs behind what is there.
    fn report_last(&mut self, lost: &Event, now: Now) {
        if self.entries.back().is_none_or(|entry| !entry.overflow) {
            self.entries.push_back(Entry {
                event: Event::overflow(lost, now),
                overflow: true,
            });
            self.overflows += 1;
        }
    }
}
