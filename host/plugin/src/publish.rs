//! The short way of published scalars: most plugins publish the same variables in the same order, again and again.
//!
//! Owns what is remembered of the last batch, place by place. It must not decide what a value may be: whatever is not plain goes the usual way.

use backplane_nodes::{Model, ScalarTarget};
use backplane_types::{BuiltInType, DateTime};

use crate::bindings::{host, ua};
use crate::convert;

/// Places of a batch that are remembered; what comes after them is looked up each time.
const REMEMBERED: usize = 65_536;

/// See the module text. To be forgotten when the model is replaced.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    /// Tag and target; tag 0 is nobody's.
    places: Vec<(u32, Option<ScalarTarget>)>,
}

impl Remembered {
    pub(crate) fn clear(&mut self) {
        self.places = Vec::new();
    }

    /// Publishes a Good scalar of the declared type, the `place`th of its batch. False for everything else: nothing has happened then.
    #[inline]
    pub(crate) fn publish(
        &mut self,
        model: &Model,
        place: usize,
        update: &host::values::Update,
        now: DateTime,
    ) -> bool {
        if update.value.status != 0 {
            return false;
        }
        let Some((kind, bits)) = scalar(&update.value.value) else {
            return false;
        };
        let source = convert::time(update.value.source_time).unwrap_or(now);
        if !matches!(self.places.get(place), Some((tag, _)) if *tag == update.tag)
            && !self.look_up(model, place, update.tag)
        {
            let target = model.scalar_target(update.tag);
            return target.is_some_and(|target| target.publish(kind, bits, source, now));
        }
        match self.places.get(place) {
            Some((_, Some(target))) => target.publish(kind, bits, source, now),
            _ => false,
        }
    }

    /// Finds the target for a place; false when that is too far behind.
    #[cold]
    fn look_up(&mut self, model: &Model, place: usize, tag: u32) -> bool {
        if place >= REMEMBERED {
            return false;
        }
        if place >= self.places.len() {
            self.places.resize(place + 1, (0, None));
        }
        if let Some(known) = self.places.get_mut(place) {
            *known = (tag, model.scalar_target(tag));
        }
        true
    }
}

/// Type and bits of a scalar of at most eight bytes, as `Variant::to_bits` gives them.
#[inline]
fn scalar(value: &ua::Value) -> Option<(BuiltInType, u64)> {
    Some(match value {
        ua::Value::Boolean(v) => (BuiltInType::Boolean, u64::from(*v)),
        ua::Value::Sbyte(v) => (BuiltInType::SByte, u64::from(v.cast_unsigned())),
        ua::Value::Byte(v) => (BuiltInType::Byte, u64::from(*v)),
        ua::Value::Int16(v) => (BuiltInType::Int16, u64::from(v.cast_unsigned())),
        ua::Value::Uint16(v) => (BuiltInType::UInt16, u64::from(*v)),
        ua::Value::Int32(v) => (BuiltInType::Int32, u64::from(v.cast_unsigned())),
        ua::Value::Uint32(v) => (BuiltInType::UInt32, u64::from(*v)),
        ua::Value::Int64(v) => (BuiltInType::Int64, v.cast_unsigned()),
        ua::Value::Uint64(v) => (BuiltInType::UInt64, *v),
        ua::Value::Float(v) => (BuiltInType::Float, u64::from(v.to_bits())),
        ua::Value::Double(v) => (BuiltInType::Double, v.to_bits()),
        ua::Value::Time(v) => (
            BuiltInType::DateTime,
            DateTime::from_ticks((*v).max(0)).ticks().cast_unsigned(),
        ),
        ua::Value::Status(v) => (BuiltInType::StatusCode, u64::from(*v)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{Remembered, scalar};
    use crate::bindings::{host, ua};
    use crate::convert::{self, Namespaces};
    use backplane_nodes::Model;
    use backplane_types::DateTime;

    #[test]
    fn the_short_way_takes_what_the_usual_one_makes() {
        let values = [
            ua::Value::Boolean(true),
            ua::Value::Sbyte(-1),
            ua::Value::Byte(200),
            ua::Value::Int16(-2),
            ua::Value::Uint16(60_000),
            ua::Value::Int32(-3),
            ua::Value::Uint32(u32::MAX),
            ua::Value::Int64(i64::MIN),
            ua::Value::Uint64(u64::MAX),
            ua::Value::Float(f32::NAN),
            ua::Value::Double(-0.0),
            ua::Value::Time(-5),
            ua::Value::Time(5),
            ua::Value::Status(0x8000_0000),
            ua::Value::Empty,
            ua::Value::Text("text".to_owned()),
            ua::Value::Doubles(vec![1.0]),
        ];
        for value in values {
            let short = scalar(&value);
            let usual = convert::variant(&Namespaces::new(), value)
                .ok()
                .and_then(|value| value.to_bits());
            assert_eq!(short, usual);
        }
    }

    #[test]
    fn no_more_places_are_remembered_than_there_is_room_for() {
        let mut remembered = Remembered::default();
        let update = host::values::Update {
            tag: 7,
            value: ua::DataValue {
                value: ua::Value::Int32(1),
                status: 0,
                source_time: 0,
            },
        };
        for place in [0, super::REMEMBERED, usize::MAX] {
            assert!(!remembered.publish(&Model::empty(), place, &update, DateTime::MIN));
        }
        assert_eq!(remembered.places.len(), 1);
    }
}
