//! Aggregates of a live monitored item: values come one after another, results when an interval is complete (Part 13, 4.3).
//!
//! It owns the current interval and when it is complete: once a value at or after its end came, or the caller says that time has passed.
//! A value that comes for an interval that is complete, or out of order, is late: it is counted and left out, for a result that was
//! reported cannot change. It must not know clocks: instants are handed in. Memory is fixed: no list of values is kept, only what the next
//! value may need.

use std::time::Duration;

use backplane_types::{DataValue, DateTime};

use crate::bounds::Past;
use crate::configuration::Settings;
use crate::fold::{Fold, Following};
use crate::history::Interval;
use crate::results::result;
use crate::sample::Sample;

/// Most results that one value or one passage of time brings. When more intervals have ended, such as after a leap of the clock, the older
/// ones are never reported.
pub const MAX_RESULTS_AT_ONCE: i64 = 1000;

/// The calculation of one item.
#[derive(Debug, Clone)]
pub struct Live {
    settings: Settings,
    /// In ticks, above 0.
    width: i64,
    fold: Box<Fold>,
    late: u64,
    /// The current interval is not the first.
    reported: bool,
}

impl Live {
    /// Begins with the interval at `start`; each is `width` long, at least a tick of 100 ns.
    #[must_use]
    pub fn new(settings: Settings, start: DateTime, width: Duration) -> Self {
        let width = i64::try_from(width.as_nanos() / 100).unwrap_or(i64::MAX).max(1);
        let interval = interval(start.ticks(), width);
        let fold = Box::new(Fold::new(&settings, interval, Past::default()));
        Self {
            settings,
            width,
            fold,
            late: 0,
            reported: false,
        }
    }

    /// What is computed.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// When the current interval ends.
    #[must_use]
    pub fn end(&self) -> DateTime {
        self.fold.interval.high
    }

    /// How many values came too late.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.late
    }

    /// The time of the latest value.
    #[must_use]
    pub fn latest(&self) -> Option<DateTime> {
        self.fold.latest().map(|last| DateTime::from_ticks(last.time))
    }

    /// The earliest time that a further value may have without being late.
    #[must_use]
    pub fn earliest(&self) -> DateTime {
        let low = if self.reported {
            self.fold.interval.low
        } else {
            DateTime::MIN
        };
        self.latest().map_or(low, |latest| latest.max(low))
    }

    /// Whether a value is the latest one again, as far as the function can tell.
    #[must_use]
    pub fn is_latest(&self, value: &DataValue) -> bool {
        self.fold
            .latest()
            .is_some_and(|last| last.is_repeated_by(&Sample::new(&self.settings, last.time, value)))
    }

    /// A raw value that holds from `time` on. Values from before the first interval serve as its bound.
    pub fn push(&mut self, time: DateTime, value: &DataValue, mut results: impl FnMut(DataValue)) {
        let time = time.ticks();
        let latest = self.fold.latest().map(|last| last.time);
        let too_old = latest.is_some_and(|latest| time < latest);
        if too_old || (self.reported && time < self.fold.interval.low.ticks()) {
            self.late = self.late.saturating_add(1);
            return;
        }
        let sample = Sample::new(&self.settings, time, value);
        self.complete(&sample, false, &mut results);
        self.fold.push(sample);
    }

    /// Time has passed up to `now` without a further value: the last one still holds. Intervals that have ended by then are complete;
    /// results of sloped lines, which depend on what comes next, carry the Partial bit.
    pub fn advance(&mut self, now: DateTime, mut results: impl FnMut(DataValue)) {
        let now = now.ticks();
        if !self.is_over(now) {
            return;
        }
        if let Some(last) = self.fold.latest() {
            let holds = Sample {
                time: now,
                ..last.clone()
            };
            self.complete(&holds, true, &mut results);
        } else {
            while self.is_over(now) {
                self.leap(now);
                self.fold.finish(Following::default());
                results(result(&self.settings, &self.fold));
                self.next_interval();
            }
        }
    }

    /// Reports the intervals that end at or before a value.
    fn complete(&mut self, next: &Sample, by_time: bool, results: &mut impl FnMut(DataValue)) {
        while self.is_over(next.time) {
            self.fold.finish(Following {
                next: Some(next),
                usable: next.is_usable().then_some(next),
                bad_between: false,
                by_time,
            });
            results(result(&self.settings, &self.fold));
            self.next_interval();
            self.leap(next.time);
        }
    }

    /// Whether the current interval has ended; at the end of time there is none.
    fn is_over(&self, now: i64) -> bool {
        let Interval { low, high, .. } = self.fold.interval;
        low < high && high.ticks() <= now
    }

    fn next_interval(&mut self) {
        self.reported = true;
        self.move_to(self.fold.interval.high.ticks());
    }

    /// Leaves out intervals that nobody could be told of any more.
    fn leap(&mut self, now: i64) {
        let low = self.fold.interval.low.ticks();
        let behind = now.saturating_sub(low) / self.width - MAX_RESULTS_AT_ONCE;
        if behind > 0 {
            self.move_to(low.saturating_add(behind.saturating_mul(self.width)));
        }
    }

    fn move_to(&mut self, low: i64) {
        let past = std::mem::take(&mut self.fold.past);
        *self.fold = Fold::new(&self.settings, interval(low, self.width), past);
    }
}

fn interval(low: i64, width: i64) -> Interval {
    Interval {
        low: DateTime::from_ticks(low),
        high: DateTime::from_ticks(low.saturating_add(width)),
        reverse: false,
        shortened: false,
    }
}
