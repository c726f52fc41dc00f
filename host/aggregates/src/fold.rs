//! One interval, value after value: everything that any function needs, in a fixed amount of memory.
//!
//! It owns the order in which values, bounds and the end of an interval take effect. It must not know which function asks
//! (`results` does), nor where values come from (`history` and `live` do).

use crate::RESOLUTION;
use crate::bounds::{Around, Bound, Past, interpolated, simple};
use crate::configuration::Settings;
use crate::counts::{Counts, Worst};
use crate::extremes::Extremes;
use crate::history::Interval;
use crate::line::Line;
use crate::regions::Regions;
use crate::sample::Sample;

/// What is known of the time at and after the end of an interval.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Following<'a> {
    /// The next raw value.
    pub(crate) next: Option<&'a Sample>,
    /// The next one that is usable.
    pub(crate) usable: Option<&'a Sample>,
    /// Whether values that are not lie between.
    pub(crate) bad_between: bool,
    /// `next` is no raw value: what held when time had passed.
    pub(crate) by_time: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Fold {
    pub(crate) interval: Interval,
    low: i64,
    high: i64,
    stepped: bool,
    sloped_extrapolation: bool,
    /// Everything committed, from before the interval on.
    pub(crate) past: Past,
    /// The last value, which another one with the same timestamp may supersede.
    pending: Option<Sample>,
    /// There was data at or before the start; no usable value was missing there.
    has_start: bool,
    bad_at_start: bool,
    pub(crate) counts: Counts,
    pub(crate) raw: Extremes,
    pub(crate) bounded: Extremes,
    pub(crate) worst: Worst,
    pub(crate) regions: Regions,
    pub(crate) line: Line,
    /// Simple bounds at the earlier and the later edge, once known.
    pub(crate) low_bound: Option<Bound>,
    pub(crate) high_bound: Option<Bound>,
    /// The interpolated bound at the start, once known.
    pub(crate) interpolated: Option<Bound>,
    /// A value superseded another one.
    pub(crate) superseded: bool,
    /// A value is of a type that the function cannot use.
    pub(crate) invalid: bool,
    /// The interval lies before or after all data.
    pub(crate) outside: bool,
    /// The data does not cover the interval.
    pub(crate) partial: bool,
    pub(crate) by_time: bool,
}

/// What an item with an aggregate costs, besides values that are text or longer.
const _: () = assert!(std::mem::size_of::<Fold>() <= 2048);

impl Fold {
    pub(crate) fn new(settings: &Settings, interval: Interval, past: Past) -> Self {
        let (low, high) = (interval.low.ticks(), interval.high.ticks());
        Self {
            interval,
            low,
            high,
            stepped: settings.stepped,
            sloped_extrapolation: settings.configuration.use_sloped_extrapolation,
            pending: None,
            has_start: past.last.is_some(),
            bad_at_start: past.bad_since,
            past,
            counts: Counts::default(),
            raw: Extremes::new(),
            bounded: Extremes::new(),
            worst: Worst::default(),
            regions: Regions::new(settings),
            line: Line::new(low, high),
            low_bound: None,
            high_bound: None,
            interpolated: None,
            superseded: false,
            invalid: false,
            outside: false,
            partial: interval.shortened,
            by_time: false,
        }
    }

    /// Whether a value at this time belongs to the interval.
    pub(crate) fn contains(&self, time: i64) -> bool {
        self.interval.contains(time)
    }

    /// The latest value seen so far.
    pub(crate) fn latest(&self) -> Option<&Sample> {
        self.pending.as_ref().or(self.past.last.as_ref())
    }

    /// A value of the interval, or from before it; not earlier than the one before.
    pub(crate) fn push(&mut self, mut sample: Sample) {
        if let Some(last) = self.pending.as_mut().filter(|last| last.time == sample.time) {
            if !last.is_repeated_by(&sample) {
                sample.superseded = true;
                *last = sample;
            }
        } else if let Some(last) = self.pending.replace(sample) {
            self.commit(last);
        }
    }

    fn commit(&mut self, sample: Sample) {
        if !self.contains(sample.time) {
            // Before the start.
            self.past.push(sample);
            self.has_start = true;
            self.bad_at_start = self.past.bad_since;
            return;
        }
        if self.low_bound.is_none() {
            self.start(Some(&sample));
        }
        if sample.time == self.low {
            self.has_start = true;
            self.bad_at_start |= !sample.is_usable();
        }
        if sample.is_usable() && self.interpolated.is_none() && !self.interval.reverse {
            let around = Around {
                before: self.past.usable.as_ref(),
                before_that: self.past.usable_before.as_ref(),
                after: Some(&sample),
                bad_before: self.bad_at_start,
                bad_after: self.past.bad_since,
                data_after: true,
            };
            self.interpolated = Some(interpolated(self.low, self.stepped, self.sloped_extrapolation, &around));
        }
        self.invalid |= sample.invalid;
        self.superseded |= sample.superseded;
        self.counts.push(&sample, &self.past);
        self.raw.push(&sample, false);
        self.bounded.push(&sample, true);
        self.worst.push(sample.status);
        self.regions.push(&sample);
        self.line.push(&sample, &self.past);
        self.past.push(sample);
    }

    /// The earlier edge, when the first value at or after it is known.
    fn start(&mut self, after: Option<&Sample>) {
        let bound = simple(self.low, self.stepped, self.past.last.as_ref(), after);
        self.regions.start(&bound);
        // A raw value of the interval that lies at the edge counts as itself.
        let is_raw = after.is_some_and(|after| after.time == self.low && self.contains(after.time));
        if !is_raw {
            let stamp = if self.interval.reverse {
                self.low + RESOLUTION
            } else {
                self.low
            };
            self.bounded.push_bound(&bound, stamp);
            self.worst.push(bound.status);
        }
        self.low_bound = Some(bound);
    }

    /// The end: all values of the interval were pushed.
    pub(crate) fn finish(&mut self, following: Following<'_>) {
        if let Some(last) = self.pending.take() {
            self.commit(last);
        }
        let last_time = self.past.last.as_ref().map(|last| last.time);
        let goes_on = following.next.is_some() || last_time.is_some_and(|last| last >= self.high);
        self.outside = self.counts.total == 0 && !(goes_on && last_time.is_some());
        self.partial |= !self.has_start || !goes_on;
        self.by_time = following.by_time;
        if self.low_bound.is_none() {
            self.start(following.next);
        }
        self.finish_interpolated(&following);
        let high_bound = simple(self.high, self.stepped, self.past.last.as_ref(), following.next);
        let region_end = match last_time {
            Some(last) if !goes_on => self.high.min(last.saturating_add(RESOLUTION)),
            _ => self.high,
        };
        self.regions.finish(region_end, goes_on.then_some(&high_bound));
        let is_raw = last_time == Some(self.high) && self.contains(self.high);
        if !is_raw {
            // A stepped value never reaches the bound at the end.
            if !self.stepped {
                let stamp = if self.interval.reverse {
                    self.high
                } else {
                    self.high - RESOLUTION
                };
                self.bounded.push_bound(&high_bound, stamp);
            }
            self.worst.push(high_bound.status);
        }
        self.high_bound = Some(high_bound);
        self.line.finish(
            &self.past,
            following.usable,
            following.bad_between,
            self.sloped_extrapolation,
        );
    }

    fn finish_interpolated(&mut self, following: &Following<'_>) {
        if self.interpolated.is_some() {
            return;
        }
        let (edge, bad_before) = if self.interval.reverse {
            (self.high, self.past.bad_since)
        } else {
            (self.low, self.bad_at_start)
        };
        let around = Around {
            before: self.past.usable.as_ref(),
            before_that: self.past.usable_before.as_ref(),
            after: following.usable,
            bad_before,
            bad_after: self.past.bad_since || following.bad_between,
            data_after: following.next.is_some() || self.past.last.as_ref().is_some_and(|last| last.time >= edge),
        };
        self.interpolated = Some(interpolated(edge, self.stepped, self.sloped_extrapolation, &around));
    }
}
