//! PlainValue: what nearly every sample is, in less than half the room of a DataValue.

use crate::codec::Encoder;

use super::{BuiltInType, DataValue, DateTime, Variant};

/// A Good scalar of at most eight bytes (those of [`Variant::to_bits`]) with its times, without picoseconds.
///
/// Two of the same type are the same value if their bits are: floating point numbers, too, are compared by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainValue {
    bits: u64,
    /// Ticks; 0 is no time.
    source: i64,
    server: i64,
    built_in_type: BuiltInType,
}

impl PlainValue {
    /// From type and bits as [`Variant::to_bits`] gives them, and the ticks of the times, 0 for none. Surplus bits are ignored. `None` for a
    /// type that has no such bits.
    #[inline]
    #[must_use]
    pub fn new(built_in_type: BuiltInType, bits: u64, source: i64, server: i64) -> Option<Self> {
        let bits = match built_in_type {
            BuiltInType::Boolean => u64::from(bits & 0xff != 0),
            BuiltInType::SByte | BuiltInType::Byte => bits & 0xff,
            BuiltInType::Int16 | BuiltInType::UInt16 => bits & 0xffff,
            BuiltInType::Int32 | BuiltInType::UInt32 | BuiltInType::Float | BuiltInType::StatusCode => {
                bits & 0xffff_ffff
            }
            BuiltInType::Int64 | BuiltInType::UInt64 | BuiltInType::Double | BuiltInType::DateTime => bits,
            _ => return None,
        };
        Some(Self {
            bits,
            source,
            server,
            built_in_type,
        })
    }

    /// The DataValue in this form, if it has one.
    #[inline]
    #[must_use]
    pub fn of(value: &DataValue) -> Option<Self> {
        let has_picoseconds = value.source_picoseconds.is_some() || value.server_picoseconds.is_some();
        // A time of 0 ticks is a time, and has no short form.
        let at_zero = value.source_timestamp == Some(DateTime::MIN) || value.server_timestamp == Some(DateTime::MIN);
        if value.status.is_some() || has_picoseconds || at_zero {
            return None;
        }
        let (built_in_type, bits) = value.value.to_bits()?;
        let ticks = |time: Option<DateTime>| time.map_or(0, DateTime::ticks);
        Some(Self {
            bits,
            source: ticks(value.source_timestamp),
            server: ticks(value.server_timestamp),
            built_in_type,
        })
    }

    /// The value alone.
    #[must_use]
    pub fn variant(&self) -> Variant {
        Variant::from_bits(self.built_in_type, self.bits).unwrap_or_default()
    }

    /// The DataValue of which this is the short form.
    #[must_use]
    pub fn data_value(&self) -> DataValue {
        let time = |ticks: i64| (ticks != 0).then(|| DateTime::from_ticks(ticks));
        DataValue {
            value: self.variant(),
            source_timestamp: time(self.source),
            server_timestamp: time(self.server),
            ..DataValue::default()
        }
    }

    /// Whether both have the same value, whatever their times.
    #[inline]
    #[must_use]
    pub fn is_same_value(&self, other: &Self) -> bool {
        self.built_in_type == other.built_in_type && self.bits == other.bits
    }

    /// Whether both have the same source time.
    #[inline]
    #[must_use]
    pub fn is_same_time(&self, other: &Self) -> bool {
        self.source == other.source
    }

    /// Gives it this server time if it has none.
    #[inline]
    pub fn stamp(&mut self, server: DateTime) {
        if self.server == 0 {
            self.server = server.ticks();
        }
    }

    /// Appends it as a DataValue, with the times that are wanted.
    #[inline]
    pub fn encode(&self, e: &mut Encoder<'_>, source: bool, server: bool) {
        let shown = |wanted: bool, ticks: i64| if wanted { ticks } else { 0 };
        let (source, server) = (shown(source, self.source), shown(server, self.server));
        e.scalar_data_value(self.built_in_type, self.bits, source, server);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::StatusCode;
    use crate::codec::BinaryEncode;

    fn at(ticks: i64) -> Option<DateTime> {
        Some(DateTime::from_ticks(ticks))
    }

    #[test]
    fn what_is_plain_comes_back_and_looks_the_same() {
        let scalars = [
            Variant::Boolean(true),
            Variant::SByte(-2),
            Variant::UInt16(7),
            Variant::Int32(-1),
            Variant::UInt64(u64::MAX),
            Variant::Float(-0.0),
            Variant::Double(f64::NAN),
            Variant::DateTime(DateTime::from_ticks(5)),
            Variant::StatusCode(StatusCode::BAD_TIMEOUT),
        ];
        for scalar in scalars {
            for (source_timestamp, server_timestamp) in [(None, None), (at(1), None), (at(2), at(3))] {
                let whole = DataValue {
                    value: scalar.clone(),
                    source_timestamp,
                    server_timestamp,
                    ..DataValue::default()
                };
                let plain = PlainValue::of(&whole).expect("it is plain");
                assert!(plain.data_value().is_same(&whole), "{whole:?}");
                let (mut long, mut short) = (Vec::new(), Vec::new());
                whole.encode(&mut Encoder::new(&mut long));
                plain.encode(&mut Encoder::new(&mut short), true, true);
                assert_eq!(short, long);
            }
        }
    }

    #[test]
    fn what_is_more_is_not_plain() {
        let one = DataValue::new(1);
        let others = [
            DataValue::new("text"),
            DataValue::from_status(StatusCode::BAD_TIMEOUT),
            DataValue {
                source_timestamp: Some(DateTime::MIN),
                ..one.clone()
            },
            DataValue {
                server_picoseconds: Some(1),
                ..one
            },
        ];
        for other in others {
            assert_eq!(PlainValue::of(&other), None);
        }
        assert_eq!(PlainValue::new(BuiltInType::String, 0, 0, 0), None);
    }

    #[test]
    fn surplus_bits_are_no_other_value() {
        let cases = [
            (BuiltInType::Boolean, 2, Variant::Boolean(true)),
            (BuiltInType::Byte, 0xff01, Variant::Byte(1)),
            (BuiltInType::Int32, 0x1_0000_0002, Variant::Int32(2)),
        ];
        for (built_in_type, bits, value) in cases {
            let plain = PlainValue::new(built_in_type, bits, 0, 0).expect("it has bits");
            let usual = PlainValue::of(&DataValue::new(value)).expect("it is plain");
            assert!(plain.is_same_value(&usual) && plain == usual);
        }
    }
}
