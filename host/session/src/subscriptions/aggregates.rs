//! The aggregate items of a subscription: which they are, and when the next interval of one of them ends.
//!
//! It owns the way of a computed value into an item's queue. It must not know how values are computed
//! ([`AggregateFeed`](super::filter::AggregateFeed) does), nor where samples come from.

use std::time::Duration;

use backplane_types::{DataValue, Now};

use super::item::Item;
use super::table::ItemTable;

/// Slots of items that compute, and when the first of them may have something to report.
#[derive(Debug, Default)]
pub(super) struct Aggregates {
    slots: Vec<u32>,
    /// Never later than the earliest end of an interval; so a wake-up may be in vain, but none is missed.
    due: Option<Duration>,
}

impl Aggregates {
    /// When [`ItemTable::complete_intervals`] has to be called.
    pub(super) fn due(&self) -> Option<Duration> {
        self.due
    }

    pub(super) fn leave(&mut self, slot: u32) {
        self.slots.retain(|it| *it != slot);
        if self.slots.is_empty() {
            self.due = None;
        }
    }

    fn note(&mut self, due: Duration) {
        self.due = Some(self.due.map_or(due, |other| other.min(due)));
    }
}

impl<S> ItemTable<S> {
    /// An item has an aggregate filter.
    pub(super) fn join_aggregates(&mut self, slot: u32) {
        self.aggregates.slots.push(slot);
        self.note_end(slot);
    }

    /// Has the end of an item's current interval looked after.
    pub(super) fn note_end(&mut self, slot: u32) {
        let due = self.item(slot).filter(|item| item.is_sampled()).and_then(|item| {
            let feed = item.aggregate()?;
            Some(feed.due())
        });
        if let Some(due) = due {
            self.aggregates.note(due);
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
            self.join_aggregates(slot);
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
        if self.aggregates.due.is_none_or(|due| now.mono < due) {
            return;
        }
        self.aggregates.due = None;
        let slots = std::mem::take(&mut self.aggregates.slots);
        for slot in &slots {
            let Some(item) = self.item(*slot).filter(|item| item.is_sampled()) else {
                continue;
            };
            if let Some(feed) = item.aggregate().filter(|feed| feed.due() <= now.mono) {
                let results = feed.advance(now);
                self.queue_results(*slot, results, now);
            }
            self.note_end(*slot);
        }
        self.aggregates.slots = slots;
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
