//! Data change filters (Part 4, 7.22.2; Part 8, 7.2): whether a sample has to be reported.
//!
//! It owns the comparison of two values. It must not know queues, nodes or services: what the node allows is handed in as [`ItemTraits`].

use backplane_types::{
    ArrayValues, DataChangeFilter, DataChangeTrigger, DataValue, ExtensionObject, PlainValue, StatusCode, Variant,
};

use super::ItemTraits;

/// What has to change for a sample to be reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trigger {
    Status,
    Value,
    Timestamp,
}

/// A validated data change filter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DataFilter {
    trigger: Trigger,
    /// Largest absolute change that is not reported, in the unit of the value; [`ANY_CHANGE`] without a deadband.
    deadband: f64,
}

/// In place of a deadband, which is never negative.
const ANY_CHANGE: f64 = -1.0;

const DEADBAND_NONE: u32 = 0;
const DEADBAND_ABSOLUTE: u32 = 1;
const DEADBAND_PERCENT: u32 = 2;

impl DataFilter {
    /// The filter of an item without one: status and value.
    pub(crate) const DEFAULT: Self = Self {
        trigger: Trigger::Value,
        deadband: ANY_CHANGE,
    };

    /// The filter in an ExtensionObject whose type is DataChangeFilter.
    ///
    /// # Errors
    /// `BadFilterNotAllowed` (attribute other than Value, deadband on what is no number); `BadMonitoredItemFilterUnsupported` (unknown kind
    /// of deadband); `BadMonitoredItemFilterInvalid` (cannot be decoded, unknown trigger); `BadDeadbandFilterInvalid` (negative or no
    /// number; percent above 100 or without EURange).
    pub(super) fn from_request(filter: &ExtensionObject, traits: &ItemTraits) -> Result<Self, StatusCode> {
        if !traits.is_value {
            return Err(StatusCode::BAD_FILTER_NOT_ALLOWED);
        }
        let filter: DataChangeFilter = filter
            .decode_as()
            .map_err(|_| StatusCode::BAD_MONITORED_ITEM_FILTER_INVALID)?;
        let deadband = deadband(&filter, traits)?;
        let trigger = match filter.trigger {
            DataChangeTrigger::STATUS => Trigger::Status,
            DataChangeTrigger::STATUS_VALUE => Trigger::Value,
            // A deadband is about the value; with one, a new timestamp alone is no reason to report.
            DataChangeTrigger::STATUS_VALUE_TIMESTAMP if deadband.is_some() => Trigger::Value,
            DataChangeTrigger::STATUS_VALUE_TIMESTAMP => Trigger::Timestamp,
            _ => return Err(StatusCode::BAD_MONITORED_ITEM_FILTER_INVALID),
        };
        let deadband = deadband.unwrap_or(ANY_CHANGE);
        Ok(Self { trigger, deadband })
    }

    /// Whether a sample has to be reported, given the value that was queued last.
    pub(crate) fn passes(&self, last: &DataValue, sample: &DataValue) -> bool {
        // Every bit of the status counts.
        if last.status() != sample.status() {
            return true;
        }
        match self.trigger {
            Trigger::Status => false,
            Trigger::Value => self.value_changed(&last.value, &sample.value),
            Trigger::Timestamp => {
                last.source_timestamp != sample.source_timestamp
                    || last.source_picoseconds != sample.source_picoseconds
                    || self.value_changed(&last.value, &sample.value)
            }
        }
    }

    /// As [`DataFilter::passes`] for two plain values.
    #[inline]
    pub(crate) fn passes_plain(&self, last: &PlainValue, sample: &PlainValue) -> bool {
        let changed = || {
            if self.deadband == ANY_CHANGE {
                !last.is_same_value(sample)
            } else {
                exceeds(&last.variant(), &sample.variant(), self.deadband)
            }
        };
        match self.trigger {
            Trigger::Status => false,
            Trigger::Value => changed(),
            Trigger::Timestamp => !last.is_same_time(sample) || changed(),
        }
    }

    fn value_changed(&self, last: &Variant, sample: &Variant) -> bool {
        if self.deadband == ANY_CHANGE {
            !last.is_same(sample)
        } else {
            exceeds(last, sample, self.deadband)
        }
    }
}

fn deadband(filter: &DataChangeFilter, traits: &ItemTraits) -> Result<Option<f64>, StatusCode> {
    if filter.deadband_type == DEADBAND_NONE {
        return Ok(None);
    }
    if filter.deadband_type > DEADBAND_PERCENT {
        return Err(StatusCode::BAD_MONITORED_ITEM_FILTER_UNSUPPORTED);
    }
    if !traits.is_number {
        return Err(StatusCode::BAD_FILTER_NOT_ALLOWED);
    }
    let value = filter.deadband_value;
    if !value.is_finite() || value < 0.0 {
        return Err(StatusCode::BAD_DEADBAND_FILTER_INVALID);
    }
    if filter.deadband_type == DEADBAND_ABSOLUTE {
        return Ok(Some(value));
    }
    match traits.eu_range {
        Some((low, high)) if value <= 100.0 => {
            let span = high - low;
            if span.is_finite() && span >= 0.0 {
                Ok(Some(value / 100.0 * span))
            } else {
                Err(StatusCode::BAD_DEADBAND_FILTER_INVALID)
            }
        }
        _ => Err(StatusCode::BAD_DEADBAND_FILTER_INVALID),
    }
}

/// Whether two values differ by more than the deadband, any element of an array being enough. Values that cannot be compared differ.
fn exceeds(last: &Variant, sample: &Variant, deadband: f64) -> bool {
    match (last, sample) {
        (Variant::Array(last), Variant::Array(sample)) => {
            last.dimensions != sample.dimensions || arrays_exceed(&last.values, &sample.values, deadband)
        }
        (Variant::Int64(last), Variant::Int64(sample)) => int_exceeds(*last, *sample, deadband),
        (Variant::UInt64(last), Variant::UInt64(sample)) => int_exceeds(*last, *sample, deadband),
        _ if last.built_in_type() != sample.built_in_type() => true,
        _ => match (last.as_f64(), sample.as_f64()) {
            (Some(last), Some(sample)) => float_exceeds(last, sample, deadband),
            _ => !last.is_same(sample),
        },
    }
}

/// 64-bit integers are subtracted exactly before they become a Double.
#[allow(clippy::cast_precision_loss)]
fn int_exceeds(last: impl Into<i128>, sample: impl Into<i128>, deadband: f64) -> bool {
    let (last, sample) = (last.into(), sample.into());
    last.abs_diff(sample) as f64 > deadband
}

fn float_exceeds(last: f64, sample: f64, deadband: f64) -> bool {
    if last.is_nan() || sample.is_nan() {
        return last.is_nan() != sample.is_nan();
    }
    // Equal infinities would give a difference that is not a number.
    last != sample && (last - sample).abs() > deadband
}

fn arrays_exceed(last: &ArrayValues, sample: &ArrayValues, deadband: f64) -> bool {
    macro_rules! by_type {
        ($($name:ident $differs:ident,)*) => {
            match (last, sample) {
                $((ArrayValues::$name(last), ArrayValues::$name(sample)) => {
                    last.len() != sample.len()
                        || last.iter().zip(sample).any(|(last, sample)| $differs(*last, *sample))
                })*
                (ArrayValues::Variant(last), ArrayValues::Variant(sample)) => {
                    last.len() != sample.len()
                        || last.iter().zip(sample).any(|(last, sample)| exceeds(last, sample, deadband))
                }
                _ => !last.is_same(sample),
            }
        };
    }
    let int = |last: i128, sample: i128| int_exceeds(last, sample, deadband);
    let float = |last: f64, sample: f64| float_exceeds(last, sample, deadband);
    macro_rules! widened {
        ($($fn:ident $type:ty => $with:ident;)*) => {
            $(let $fn = |last: $type, sample: $type| $with(last.into(), sample.into());)*
        };
    }
    widened! {
        i8s i8 => int; u8s u8 => int; i16s i16 => int; u16s u16 => int; i32s i32 => int; u32s u32 => int;
        i64s i64 => int; u64s u64 => int; f32s f32 => float; f64s f64 => float;
    }
    by_type! {
        SByte i8s, Byte u8s, Int16 i16s, UInt16 u16s, Int32 i32s, UInt32 u32s,
        Int64 i64s, UInt64 u64s, Float f32s, Double f64s,
    }
}

#[cfg(test)]
#[path = "data_tests.rs"]
mod tests;
