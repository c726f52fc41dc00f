//! A raw value as the calculations see it.
//!
//! It owns the reading of numbers out of Variants and the way back. It must not know intervals.

use backplane_types::{BuiltInType, DataValue, StatusCode, Variant};

use crate::configuration::Settings;

/// What a status is worth, after TreatUncertainAsBad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Quality {
    Good,
    Uncertain,
    Bad,
}

/// A raw value.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    /// In ticks.
    pub(crate) time: i64,
    pub(crate) status: StatusCode,
    pub(crate) quality: Quality,
    /// The value as a number; 0 when it is none.
    pub(crate) number: f64,
    /// The value itself, if the function keeps it.
    pub(crate) value: Variant,
    /// Not Bad, but no number where one is needed.
    pub(crate) invalid: bool,
    /// It took the place of another value with the same timestamp.
    pub(crate) superseded: bool,
}

impl Sample {
    pub(crate) fn new(settings: &Settings, time: i64, value: &DataValue) -> Self {
        let status = value.status();
        let quality = if status.is_good() {
            Quality::Good
        } else if status.is_uncertain() && !settings.uncertain_is_bad() {
            Quality::Uncertain
        } else {
            Quality::Bad
        };
        let number = number(&value.value);
        Self {
            time,
            status,
            quality,
            number: number.unwrap_or_default(),
            value: if settings.function.keeps_values() {
                value.value.clone()
            } else {
                Variant::Empty
            },
            invalid: quality != Quality::Bad && settings.function.needs_numbers() && number.is_none(),
            superseded: false,
        }
    }

    /// Whether another one says the same of the same time.
    pub(crate) fn is_repeated_by(&self, other: &Self) -> bool {
        self.time == other.time
            && self.status == other.status
            && self.number.to_bits() == other.number.to_bits()
            && self.value.is_same(&other.value)
    }

    /// Neither Bad nor counted as Bad.
    pub(crate) fn is_usable(&self) -> bool {
        self.quality != Quality::Bad
    }
}

/// A scalar number or Boolean as a Double; no NaN, which no calculation can use.
fn number(value: &Variant) -> Option<f64> {
    match value {
        Variant::Boolean(value) => Some(f64::from(u8::from(*value))),
        value => value.as_f64().filter(|number| !number.is_nan()),
    }
}

/// A computed number in the type of the source ("same as source"): integers are rounded to the nearest and clamped.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(crate) fn like(source: &Variant, number: f64) -> Variant {
    let whole = number.round();
    match source.built_in_type() {
        Some(BuiltInType::Boolean) => Variant::Boolean(whole != 0.0),
        Some(BuiltInType::SByte) => Variant::SByte(whole as i8),
        Some(BuiltInType::Byte) => Variant::Byte(whole as u8),
        Some(BuiltInType::Int16) => Variant::Int16(whole as i16),
        Some(BuiltInType::UInt16) => Variant::UInt16(whole as u16),
        Some(BuiltInType::Int32) => Variant::Int32(whole as i32),
        Some(BuiltInType::UInt32) => Variant::UInt32(whole as u32),
        Some(BuiltInType::Int64) => Variant::Int64(whole as i64),
        Some(BuiltInType::UInt64) => Variant::UInt64(whole as u64),
        Some(BuiltInType::Float) => Variant::Float(number as f32),
        _ => Variant::Double(number),
    }
}
