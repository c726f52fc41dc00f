//! Aggregates of stored data: the cutting of a time range into intervals and the calculation over a list of raw values (Part 11, 6.5.4;
//! Part 13, 5.4.2.2).
//!
//! It owns the order of intervals, forwards and backwards. It must not know a historian: values are handed in.

use backplane_types::{DataValue, DateTime, StatusCode, Variant};

use crate::TICKS_PER_MS;
use crate::bounds::Past;
use crate::configuration::Settings;
use crate::fold::{Fold, Following};
use crate::results::result;
use crate::sample::Sample;
use crate::status::{CALCULATED, PARTIAL, with_bits};

/// Most intervals that one read may be cut into; a client that needs more reads in parts.
pub const MAX_INTERVALS: usize = 100_000;

/// A piece of time that one result is computed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// The earlier end.
    pub low: DateTime,
    /// The later end.
    pub high: DateTime,
    /// Time flows backwards: the interval starts at `high`, includes it and excludes `low`. Else it starts at `low`, includes it and
    /// excludes `high`.
    pub reverse: bool,
    /// The last one, cut short by the end of the range.
    pub shortened: bool,
}

impl Interval {
    /// Whether an instant, in ticks, belongs to it.
    pub(crate) fn contains(&self, time: i64) -> bool {
        let (low, high) = (self.low.ticks(), self.high.ticks());
        if self.reverse {
            low < time && time <= high
        } else {
            low <= time && time < high
        }
    }

    /// Whether it lies after an instant.
    fn is_after(&self, time: i64) -> bool {
        if self.reverse {
            self.low.ticks() >= time
        } else {
            self.low.ticks() > time
        }
    }

    /// The timestamp of its result: where it starts.
    pub(crate) fn stamp(&self) -> DateTime {
        if self.reverse { self.high } else { self.low }
    }
}

/// The intervals of a range, in the order of the results. `processing_interval` is in ms; 0, or one longer than the range, is one interval.
/// An end before the start lets time flow backwards.
///
/// # Errors
/// `BadInvalidArgument`: start and end are the same, or the processing interval is negative or no number. `BadTooManyOperations`: more
/// than [`MAX_INTERVALS`].
pub fn intervals(start: DateTime, end: DateTime, processing_interval: f64) -> Result<Vec<Interval>, StatusCode> {
    if start == end || !processing_interval.is_finite() || processing_interval < 0.0 {
        return Err(StatusCode::BAD_INVALID_ARGUMENT);
    }
    let reverse = end < start;
    let range = end.ticks().abs_diff(start.ticks());
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss
    )]
    let width = (processing_interval * TICKS_PER_MS as f64).round() as u64;
    let width = if width == 0 || width > range { range } else { width };
    let count = range.div_ceil(width);
    if count > MAX_INTERVALS as u64 {
        return Err(StatusCode::BAD_TOO_MANY_OPERATIONS);
    }
    let at = |offset: u64| {
        let offset = i64::try_from(offset.min(range)).unwrap_or(i64::MAX);
        DateTime::from_ticks(if reverse {
            start.ticks().saturating_sub(offset)
        } else {
            start.ticks().saturating_add(offset)
        })
    };
    let one = |index: u64| {
        let (from, to) = (index * width, (index + 1).saturating_mul(width));
        Interval {
            low: at(if reverse { to } else { from }),
            high: at(if reverse { from } else { to }),
            reverse,
            shortened: to > range,
        }
    };
    Ok((0..count).map(one).collect())
}

/// The aggregate of each interval of [`intervals`].
///
/// `raw` is in the order of the source timestamps, which all have. It should reach back to two usable values before the range and forward
/// to one after it, so that bounding values can be found; where it begins and ends is taken for where the data begins and ends.
///
/// # Errors
/// Those of [`intervals`]; `BadAggregateNotSupported` for AnnotationCount, see [`annotation_counts`].
pub fn process(
    settings: &Settings,
    start: DateTime,
    end: DateTime,
    processing_interval: f64,
    raw: &[DataValue],
) -> Result<Vec<DataValue>, StatusCode> {
    if !settings.function.is_live() {
        return Err(StatusCode::BAD_AGGREGATE_NOT_SUPPORTED);
    }
    let mut intervals = intervals(start, end, processing_interval)?;
    let reverse = end < start;
    if reverse {
        intervals.reverse();
    }
    let samples = samples(settings, raw);
    let usable = next_usable(&samples);
    let mut rest = 0;
    let mut past = Past::default();
    let mut results = Vec::with_capacity(intervals.len());
    for interval in intervals {
        let mut fold = Fold::new(settings, interval, past);
        while let Some(sample) = samples.get(rest)
            && (fold.contains(sample.time) || interval.is_after(sample.time))
        {
            fold.push(sample.clone());
            rest += 1;
        }
        let next_usable = usable.get(rest).copied().flatten();
        fold.finish(Following {
            next: samples.get(rest),
            usable: next_usable.and_then(|index| samples.get(index)),
            bad_between: next_usable.is_some_and(|index| index > rest),
            by_time: false,
        });
        results.push(result(settings, &fold));
        past = fold.past;
    }
    if reverse {
        results.reverse();
    }
    Ok(results)
}

/// AnnotationCount (Part 13, 5.4.3.20): how many annotations each interval has. `data` is the time of the first and the last raw value.
///
/// # Errors
/// Those of [`intervals`].
pub fn annotation_counts(
    start: DateTime,
    end: DateTime,
    processing_interval: f64,
    annotations: &[DateTime],
    data: Option<(DateTime, DateTime)>,
) -> Result<Vec<DataValue>, StatusCode> {
    let count = |interval: Interval| {
        let found = annotations
            .iter()
            .filter(|time| interval.contains(time.ticks()))
            .count();
        let covered = data.filter(|(first, last)| {
            let ends_before = interval.high < *first || (!interval.reverse && interval.high == *first);
            !ends_before && !interval.is_after(last.ticks())
        });
        let Some((first, last)) = covered else {
            return DataValue {
                source_timestamp: Some(interval.stamp()),
                ..DataValue::from_status(StatusCode::BAD_NO_DATA)
            };
        };
        let partial = interval.shortened || first > interval.low || last < interval.high;
        DataValue {
            value: Variant::Int32(i32::try_from(found).unwrap_or(i32::MAX)),
            status: Some(with_bits(
                StatusCode::GOOD,
                CALCULATED | if partial { PARTIAL } else { 0 },
            )),
            source_timestamp: Some(interval.stamp()),
            ..DataValue::default()
        }
    };
    Ok(intervals(start, end, processing_interval)?
        .into_iter()
        .map(count)
        .collect())
}

/// Raw values in order, each timestamp once: the last value supersedes the others. Values without a timestamp, or out of order, are left
/// out.
fn samples(settings: &Settings, raw: &[DataValue]) -> Vec<Sample> {
    let mut samples: Vec<Sample> = Vec::with_capacity(raw.len());
    for value in raw {
        let Some(time) = value.source_timestamp else { continue };
        let mut sample = Sample::new(settings, time.ticks(), value);
        match samples.last_mut() {
            Some(last) if last.is_repeated_by(&sample) => {}
            Some(last) if last.time == sample.time => {
                sample.superseded = true;
                *last = sample;
            }
            Some(last) if last.time > sample.time => {}
            _ => samples.push(sample),
        }
    }
    samples
}

/// For each place the place of the first usable value from there on.
fn next_usable(samples: &[Sample]) -> Vec<Option<usize>> {
    let mut next = None;
    let mut places: Vec<Option<usize>> = samples
        .iter()
        .enumerate()
        .rev()
        .map(|(index, sample)| {
            if sample.is_usable() {
                next = Some(index);
            }
            next
        })
        .collect();
    places.reverse();
    places
}
