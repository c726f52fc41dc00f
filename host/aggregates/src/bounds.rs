//! Bounding values (Part 13, 3.1.7 to 3.1.9): what the value at the edge of an interval is, from the raw values around it.
//!
//! It owns simple and interpolated bounds and the few values before an interval that they need. It must not know functions.

use backplane_types::{StatusCode, Variant};

use crate::sample::{Quality, Sample, like};
use crate::status::sub_normal_if;

/// The raw values before a point of time that anything after it may need.
#[derive(Debug, Clone, Default)]
pub(crate) struct Past {
    /// The last raw value.
    pub(crate) last: Option<Sample>,
    /// The last one that is usable, and the usable one before it.
    pub(crate) usable: Option<Sample>,
    pub(crate) usable_before: Option<Sample>,
    /// Values came after `usable` that are not.
    pub(crate) bad_since: bool,
}

impl Past {
    pub(crate) fn push(&mut self, sample: Sample) {
        if sample.is_usable() {
            self.usable_before = self.usable.replace(sample.clone());
            self.bad_since = false;
        } else {
            self.bad_since = true;
        }
        self.last = Some(sample);
    }
}

/// A value at the edge of an interval.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    /// In ticks.
    pub(crate) time: i64,
    /// Nothing when there is none: the status is `BadNoData` then.
    pub(crate) number: Option<f64>,
    pub(crate) value: Variant,
    pub(crate) status: StatusCode,
    /// No raw value lies at the edge.
    pub(crate) interpolated: bool,
}

impl Bound {
    pub(crate) fn none(time: i64) -> Self {
        Self {
            time,
            number: None,
            value: Variant::Empty,
            status: StatusCode::BAD_NO_DATA,
            interpolated: false,
        }
    }

    /// The raw value that lies at the edge.
    pub(crate) fn raw(sample: &Sample) -> Self {
        if !sample.is_usable() {
            return Self::none(sample.time);
        }
        Self {
            time: sample.time,
            number: Some(sample.number),
            value: sample.value.clone(),
            status: sample.status,
            interpolated: false,
        }
    }

    fn held(time: i64, sample: &Sample, uncertain: bool) -> Self {
        Self {
            time,
            status: sub_normal_if(uncertain || sample.quality != Quality::Good),
            interpolated: true,
            ..Self::raw(sample)
        }
    }

    fn on_line(time: i64, before: &Sample, after: &Sample, uncertain: bool) -> Self {
        let number = line_at(time, before, after);
        Self {
            time,
            number: Some(number),
            value: like(&before.value, number),
            status: sub_normal_if(uncertain || before.quality != Quality::Good || after.quality != Quality::Good),
            interpolated: true,
        }
    }
}

/// The straight line through two values, before, between or after them.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn line_at(time: i64, before: &Sample, after: &Sample) -> f64 {
    let span = after.time.saturating_sub(before.time);
    if span == 0 {
        return after.number;
    }
    let part = time.saturating_sub(before.time) as f64 / span as f64;
    before.number + (after.number - before.number) * part
}

/// The simple bound (Part 13, 3.1.9) from the nearest raw values of any quality. Nothing is extrapolated: beyond the last raw value there
/// is none.
pub(crate) fn simple(time: i64, stepped: bool, before: Option<&Sample>, after: Option<&Sample>) -> Bound {
    let at = |sample: &&Sample| sample.time == time;
    if let Some(raw) = before.filter(at).or(after.filter(at)) {
        return Bound::raw(raw);
    }
    match (before, after) {
        (Some(before), Some(after)) if before.is_usable() => {
            if stepped {
                Bound::held(time, before, false)
            } else if after.is_usable() {
                Bound::on_line(time, before, after, false)
            } else {
                Bound::held(time, before, true)
            }
        }
        _ => Bound::none(time),
    }
}

/// What the interpolated bound is made of.
pub(crate) struct Around<'a> {
    pub(crate) before: Option<&'a Sample>,
    pub(crate) before_that: Option<&'a Sample>,
    pub(crate) after: Option<&'a Sample>,
    /// Unusable values between `before` and the edge, the edge included.
    pub(crate) bad_before: bool,
    /// Unusable values between the edge and `after`.
    pub(crate) bad_after: bool,
    /// Raw values exist at or after the edge.
    pub(crate) data_after: bool,
}

/// The interpolated bound (Part 13, 3.1.8) from the nearest usable values.
pub(crate) fn interpolated(time: i64, stepped: bool, sloped_extrapolation: bool, around: &Around<'_>) -> Bound {
    let at = |sample: &&Sample| sample.time == time;
    if let Some(raw) = around.before.filter(at).or(around.after.filter(at)) {
        return Bound::raw(raw);
    }
    let Some(before) = around.before else {
        return Bound::none(time);
    };
    if stepped && around.data_after {
        return Bound::held(time, before, around.bad_before);
    }
    match (around.after, around.before_that) {
        (Some(after), _) => Bound::on_line(time, before, after, around.bad_before || around.bad_after),
        (None, Some(earlier)) if sloped_extrapolation => {
            let number = line_at(time, earlier, before);
            Bound {
                number: Some(number),
                value: like(&before.value, number),
                ..Bound::held(time, before, true)
            }
        }
        (None, _) => Bound::held(time, before, true),
    }
}
