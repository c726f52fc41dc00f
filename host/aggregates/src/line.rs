//! The line through the usable values of an interval, between interpolated bounds (Part 13, 5.4.3.6): TimeAverage and Total.
//!
//! It owns the area below that line, which is always sloped. It must not know simple bounds or regions.

use crate::TICKS_PER_MS;
use crate::bounds::{Past, line_at};
use crate::sample::{Quality, Sample};

#[derive(Debug, Clone)]
pub(crate) struct Line {
    low: i64,
    high: i64,
    /// Length and area so far, in ticks and value times ticks.
    length: i64,
    area: f64,
    /// Bad values were skipped, Uncertain ones used, or values extrapolated.
    pub(crate) uncertain: bool,
}

impl Line {
    pub(crate) fn new(low: i64, high: i64) -> Self {
        Self {
            low,
            high,
            length: 0,
            area: 0.0,
            uncertain: false,
        }
    }

    /// The next raw value, with what came before it.
    pub(crate) fn push(&mut self, sample: &Sample, past: &Past) {
        if !sample.is_usable() {
            self.uncertain = true;
            return;
        }
        if sample.quality == Quality::Uncertain {
            self.uncertain = true;
        }
        if let Some(before) = &past.usable {
            self.segment(before, sample, past.bad_since);
        }
    }

    /// The part of the line between two values that lies in the interval.
    fn segment(&mut self, before: &Sample, after: &Sample, bad_between: bool) {
        let (start, end) = (before.time.max(self.low), after.time.min(self.high));
        if start >= end {
            return;
        }
        self.add(start, end, before, after);
        if bad_between || before.quality != Quality::Good || after.quality != Quality::Good {
            self.uncertain = true;
        }
    }

    #[allow(clippy::cast_precision_loss)]
    fn add(&mut self, start: i64, end: i64, before: &Sample, after: &Sample) {
        let length = end.saturating_sub(start);
        self.length += length;
        self.area += f64::midpoint(line_at(start, before, after), line_at(end, before, after)) * length as f64;
    }

    /// The rest up to the end: to the next usable value, or extrapolated from the last ones.
    pub(crate) fn finish(&mut self, past: &Past, next: Option<&Sample>, bad_between: bool, sloped_extrapolation: bool) {
        let Some(last) = &past.usable else { return };
        if let Some(next) = next {
            self.segment(last, next, past.bad_since || bad_between);
            return;
        }
        let start = last.time.max(self.low);
        if start < self.high {
            let earlier = past.usable_before.as_ref().filter(|_| sloped_extrapolation);
            self.add(start, self.high, earlier.unwrap_or(last), last);
            self.uncertain = true;
        }
    }

    /// The line does not reach back to the start of the interval.
    pub(crate) fn is_partial(&self) -> bool {
        self.length < self.high.saturating_sub(self.low)
    }

    #[allow(clippy::cast_precision_loss)]
    pub(crate) fn average(&self) -> Option<f64> {
        (self.length > 0).then(|| self.area / self.length as f64)
    }

    /// The integral in value times seconds.
    #[allow(clippy::cast_precision_loss)]
    pub(crate) fn integral(&self) -> Option<f64> {
        (self.length > 0).then(|| self.area / (TICKS_PER_MS as f64 * 1000.0))
    }
}
