//! The aggregate items of a subscription: which they are, and when the next interval of one of them ends.
//!
//! It owns the way of a computed value into an item's queue. It must not know how values are computed
//! ([`AggregateFeed`](super::filter::AggregateFeed) does), nor where samples come from.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use backplane_types::{DataValue, Now};

use super::item::Item;
use super::table::ItemTable;

/// When the present intervals of items that compute end, by slot.
#[derive(Debug, Default)]
pub(super) struct Aggregates {
    /// Never later than the end, so a wake-up may be in vain, but none is missed.
    ends: BTreeSet<(Duration, u32)>,
    of_slot: HashMap<u32, Duration>,
    /// Slots that are looked at; empty but for the moment.
    over: Vec<u32>,
}

impl Aggregates {
    /// When [`ItemTable::complete_intervals`] has to be called.
    pub(super) fn due(&self) -> Option<Duration> {
        self.ends.first().map(|(end, _)| *end)
    }

    pub(super) fn leave(&mut self, slot: u32) {
        if let Some(end) = self.of_slot.remove(&slot) {
            self.ends.remove(&(end, slot));
        }
    }

    fn note(&mut self, slot: u32, end: Duration) {
        match self.of_slot.insert(slot, end) {
            Some(old) if old == end => return,
            Some(old) => self.ends.remove(&(old, slot)),
            None => false,
        };
        self.ends.insert((end, slot));
    }

    /// Takes one item whose interval is over.
    fn take(&mut self, now: Duration) -> Option<u32> {
        let (end, slot) = self.ends.first().copied().filter(|(end, _)| *end <= now)?;
        self.ends.remove(&(end, slot));
        self.of_slot.remove(&slot);
        Some(slot)
    }
}

impl<S> ItemTable<S> {
    /// Has the end of an item's current interval looked after.
    pub(super) fn note_end(&mut self, slot: u32) {
        let due = self.item(slot).filter(|item| item.is_sampled()).and_then(|item| {
            let feed = item.aggregate()?;
            Some(feed.due())
        });
        match due {
            Some(due) => self.aggregates.note(slot, due),
            None => self.aggregates.leave(slot),
        }
    }

    /// An item that was disabled is sampled again: what lies between is no data.
    pub(super) fn restart_aggregate(&mut self, slot: u32, now: Now) {
        if let Some(feed) = self.item(slot).and_then(Item::aggregate) {
            feed.restart(now);
            self.note_end(slot);
        }
    }

    /// The filter of an item was replaced; `computed` says whether it was an aggregate filter before. Values that were queued under
    /// another kind of filter are forgotten, for nobody could tell what they are.
    pub(super) fn follow_filter(&mut self, slot: u32, computed: bool, now: Now) {
        let computes = self.item(slot).is_some_and(|item| item.aggregate().is_some());
        if computed {
            self.aggregates.leave(slot);
        }
        if computes {
            self.note_end(slot);
        }
        if computed != computes {
            self.recount(slot, Item::clear);
        }
        if (computed || computes) && self.item(slot).is_some_and(|item| item.is_sampled()) {
            self.want_first(slot, now);
        }
    }

    /// A sample of an aggregate item: queues what it completes.
    pub(super) fn accept_aggregate(&mut self, slot: u32, value: &DataValue, now: Now) {
        let Some(feed) = self.item(slot).and_then(Item::aggregate) else {
            return;
        };
        let results = feed.accept(value, now);
        self.queue_results(slot, results, now);
        self.note_end(slot);
    }

    /// Queues the results of all intervals that have ended by now.
    pub(super) fn complete_intervals(&mut self, now: Now) {
        if self.aggregates.due().is_none_or(|due| now.mono < due) {
            return;
        }
        // All first: what one of them notes is not looked at twice.
        let mut over = std::mem::take(&mut self.aggregates.over);
        while let Some(slot) = self.aggregates.take(now.mono) {
            over.push(slot);
        }
        for slot in over.drain(..) {
            let Some(item) = self.item(slot).filter(|item| item.is_sampled()) else {
                continue;
            };
            if let Some(feed) = item.aggregate().filter(|feed| feed.due() <= now.mono) {
                let results = feed.advance(now);
                self.queue_results(slot, results, now);
            }
            self.note_end(slot);
        }
        self.aggregates.over = over;
    }

    fn queue_results(&mut self, slot: u32, results: Vec<DataValue>, now: Now) {
        for mut value in results {
            let Some(item) = self.item(slot) else { return };
            item.revised.timestamps.stamp(&mut value, now.utc);
            let pushed = item.queue.push(value);
            self.pushed(slot, pushed);
        }
    }
}
