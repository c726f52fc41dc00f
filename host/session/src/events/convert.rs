//! Conversions between built-in types in content filters (Part 4, 7.7.3): which are made by themselves, which need a Cast, and which of two
//! types a comparison happens in.

use std::borrow::Cow;

use backplane_types::{
    Array, ArrayValues, BuiltInType, ByteString, ExpandedNodeId, Guid, LocalizedText, NodeId, QualifiedName,
    StatusCode, UaString, Variant,
};

use BuiltInType as T;

/// Most elements of an array that is converted.
const MAX_CONVERTED: usize = 1_000;

/// Whether a value becomes another type by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Implicit,
    Explicit,
    Never,
}

/// Types by precedence, the first wins: a comparison happens in the type of the operand that stands further in front.
const PRECEDENCE: [BuiltInType; 18] = [
    T::Double,
    T::Float,
    T::Int64,
    T::UInt64,
    T::Int32,
    T::UInt32,
    T::StatusCode,
    T::Int16,
    T::UInt16,
    T::SByte,
    T::Byte,
    T::Boolean,
    T::Guid,
    T::String,
    T::ExpandedNodeId,
    T::NodeId,
    T::LocalizedText,
    T::QualifiedName,
];

fn rule(from: BuiltInType, to: BuiltInType) -> Rule {
    use Rule::{Explicit, Implicit, Never};
    if from == to {
        return Implicit;
    }
    let integer = |it: BuiltInType| it.is_numeric() && !matches!(it, T::Float | T::Double);
    match (from, to) {
        (T::Boolean, to) if to.is_numeric() => Implicit,
        (T::String, to) if to.is_numeric() => Implicit,
        (T::String, T::Boolean | T::Guid) => Implicit,
        (T::ExpandedNodeId | T::NodeId | T::LocalizedText | T::QualifiedName, T::String) => Implicit,
        (T::NodeId, T::ExpandedNodeId) | (T::QualifiedName, T::LocalizedText) => Implicit,
        (T::StatusCode, T::Int32 | T::UInt32 | T::Int64 | T::UInt64) | (T::UInt16, T::StatusCode) => Implicit,
        (T::Int32 | T::UInt32 | T::Int64 | T::UInt64, T::StatusCode) | (T::StatusCode, T::UInt16) => Explicit,
        (T::String, T::DateTime | T::NodeId | T::ExpandedNodeId | T::LocalizedText | T::QualifiedName) => Explicit,
        (T::DateTime | T::Guid | T::Boolean, T::String) => Explicit,
        (T::Guid, T::ByteString) | (T::ByteString, T::Guid) | (T::ExpandedNodeId, T::NodeId) => Explicit,
        (from, T::String | T::Boolean) if from.is_numeric() => Explicit,
        (from, T::Double) if from.is_numeric() => Implicit,
        (from, T::Float) if integer(from) => Implicit,
        (from, to) if integer(from) && integer(to) && rank(to) < rank(from) => Implicit,
        (from, to) if from.is_numeric() && to.is_numeric() => Explicit,
        _ => Never,
    }
}

fn rank(built_in_type: BuiltInType) -> Option<usize> {
    PRECEDENCE.iter().position(|it| *it == built_in_type)
}

/// Two values in the type that they are compared in; `None` when there is none, or a value does not fit into it.
pub(super) fn common<'v>(a: &'v Variant, b: &'v Variant) -> Option<(Cow<'v, Variant>, Cow<'v, Variant>)> {
    let (from, to) = (a.built_in_type()?, b.built_in_type()?);
    if from == to {
        return Some((as_scalar_with(a, b), as_scalar_with(b, a)));
    }
    let (front, back) = (rank(from)?, rank(to)?);
    if front < back {
        Some((as_scalar_with(a, b), Cow::Owned(implicit(&as_scalar_with(b, a), from)?)))
    } else {
        Some((Cow::Owned(implicit(&as_scalar_with(a, b), to)?), as_scalar_with(b, a)))
    }
}

/// An array of one element is compared with a scalar as that element.
fn as_scalar_with<'v>(value: &'v Variant, other: &Variant) -> Cow<'v, Variant> {
    match value {
        Variant::Array(array) if array.len() == 1 && other.as_array().is_none() => {
            Cow::Owned(array.values.get(0).unwrap_or_default())
        }
        _ => Cow::Borrowed(value),
    }
}

/// A conversion that is made by itself.
pub(super) fn implicit(value: &Variant, to: BuiltInType) -> Option<Variant> {
    convert(value, to, Rule::Implicit)
}

/// A conversion that a Cast asks for.
pub(super) fn explicit(value: &Variant, to: BuiltInType) -> Option<Variant> {
    convert(value, to, Rule::Explicit)
}

fn convert(value: &Variant, to: BuiltInType, weakest: Rule) -> Option<Variant> {
    let from = value.built_in_type()?;
    match rule(from, to) {
        Rule::Never => return None,
        Rule::Explicit if weakest == Rule::Implicit => return None,
        _ if from == to => return Some(value.clone()),
        _ => {}
    }
    match value {
        Variant::Array(array) => convert_array(array, to),
        _ => scalar(value, to),
    }
}

/// Element by element; one that fails fails all. An array that is too long has no conversion: a filter may ask for a hundred of them, for every event.
fn convert_array(array: &Array, to: BuiltInType) -> Option<Variant> {
    if array.len() > MAX_CONVERTED {
        return None;
    }
    let mut values = ArrayValues::empty(to);
    for element in array.values.iter() {
        let one = ArrayValues::from_scalar(scalar(&element, to)?)?;
        if !values.extend_from(&one, 0, 1) {
            return None;
        }
    }
    Array::matrix(values, array.dimensions.clone()).ok().map(Variant::from)
}

fn scalar(value: &Variant, to: BuiltInType) -> Option<Variant> {
    match to {
        T::Boolean => boolean(value),
        T::Float | T::Double => float(value, to),
        T::String => text(value).map(Variant::String),
        T::StatusCode => status(value).map(Variant::StatusCode),
        T::Guid => match value {
            Variant::String(text) => text.text().trim().parse::<Guid>().ok().map(Variant::Guid),
            Variant::ByteString(bytes) => <[u8; 16]>::try_from(bytes.bytes())
                .ok()
                .map(|it| Variant::Guid(Guid(it))),
            _ => None,
        },
        T::ByteString => match value {
            Variant::Guid(guid) => Some(Variant::ByteString(ByteString::from(&guid.0))),
            _ => None,
        },
        T::DateTime => super::time::parse(value.as_str()?).map(Variant::DateTime),
        T::NodeId => match value {
            Variant::String(text) => text.text().trim().parse::<NodeId>().ok().map(Variant::from),
            Variant::ExpandedNodeId(id) if id.is_local() => Some(id.node_id.clone().into()),
            _ => None,
        },
        T::ExpandedNodeId => match value {
            Variant::String(text) => text.text().trim().parse::<ExpandedNodeId>().ok().map(Variant::from),
            Variant::NodeId(id) => Some(ExpandedNodeId::from((**id).clone()).into()),
            _ => None,
        },
        T::LocalizedText => match value {
            Variant::String(text) => Some(LocalizedText::plain(text.clone()).into()),
            Variant::QualifiedName(name) => Some(LocalizedText::plain(name.name.clone()).into()),
            _ => None,
        },
        T::QualifiedName => Some(QualifiedName::from(value.as_str()?).into()),
        to if to.is_numeric() => integer(value).and_then(|value| sized(value, to)),
        _ => None,
    }
}

fn boolean(value: &Variant) -> Option<Variant> {
    let truth = match value {
        Variant::String(text) => match text.text().trim() {
            "true" | "1" => true,
            "false" | "0" => false,
            _ => return None,
        },
        _ => match value.as_f64()? {
            0.0 => false,
            1.0 => true,
            _ => return None,
        },
    };
    Some(Variant::Boolean(truth))
}

#[allow(clippy::cast_possible_truncation)]
fn float(value: &Variant, to: BuiltInType) -> Option<Variant> {
    let number = match value {
        Variant::Boolean(truth) => f64::from(u8::from(*truth)),
        Variant::String(text) => text.text().trim().parse::<f64>().ok()?,
        _ => value.as_f64()?,
    };
    if to == T::Double {
        return Some(Variant::Double(number));
    }
    let narrow = number as f32;
    // Too large for a Float is an error, infinity itself is none.
    (narrow.is_finite() || !number.is_finite()).then_some(Variant::Float(narrow))
}

/// Any number as an integer, halves rounded up.
#[allow(clippy::cast_possible_truncation)]
pub(super) fn integer(value: &Variant) -> Option<i128> {
    let rounded = |number: f64| {
        let number = (number + 0.5).floor();
        // Beyond every integer type; a float conversion would saturate.
        (number.abs() < 1e30).then_some(number as i128)
    };
    Some(match value {
        Variant::Boolean(truth) => i128::from(*truth),
        Variant::SByte(number) => i128::from(*number),
        Variant::Byte(number) => i128::from(*number),
        Variant::Int16(number) => i128::from(*number),
        Variant::UInt16(number) => i128::from(*number),
        Variant::Int32(number) => i128::from(*number),
        Variant::UInt32(number) => i128::from(*number),
        Variant::Int64(number) => i128::from(*number),
        Variant::UInt64(number) => i128::from(*number),
        Variant::Float(number) => rounded(f64::from(*number))?,
        Variant::Double(number) => rounded(*number)?,
        Variant::StatusCode(status) => i128::from(status.0),
        Variant::String(text) => {
            let text = text.text().trim();
            match text.parse::<i128>() {
                Ok(number) => number,
                Err(_) => rounded(text.parse::<f64>().ok()?)?,
            }
        }
        _ => return None,
    })
}

/// An integer in a type; `None` when it does not fit.
pub(super) fn sized(value: i128, to: BuiltInType) -> Option<Variant> {
    Some(match to {
        T::SByte => Variant::SByte(value.try_into().ok()?),
        T::Byte => Variant::Byte(value.try_into().ok()?),
        T::Int16 => Variant::Int16(value.try_into().ok()?),
        T::UInt16 => Variant::UInt16(value.try_into().ok()?),
        T::Int32 => Variant::Int32(value.try_into().ok()?),
        T::UInt32 => Variant::UInt32(value.try_into().ok()?),
        T::Int64 => Variant::Int64(value.try_into().ok()?),
        T::UInt64 => Variant::UInt64(value.try_into().ok()?),
        _ => return None,
    })
}

/// A status from an integer: the bits of 32-bit types, the upper half from 16 bits.
fn status(value: &Variant) -> Option<StatusCode> {
    let bits = match value {
        Variant::UInt16(code) => u32::from(*code) << 16,
        Variant::Int32(bits) => bits.cast_unsigned(),
        _ => u32::try_from(integer(value)?).ok()?,
    };
    Some(StatusCode(bits))
}

fn text(value: &Variant) -> Option<UaString> {
    Some(match value {
        Variant::Boolean(truth) => UaString::from(if *truth { "true" } else { "false" }),
        Variant::LocalizedText(text) => text.text.clone(),
        Variant::QualifiedName(name) => name.name.clone(),
        Variant::NodeId(id) => id.to_string().into(),
        Variant::ExpandedNodeId(id) => id.to_string().into(),
        Variant::Guid(guid) => guid.to_string().into(),
        Variant::DateTime(time) => time.to_string().into(),
        Variant::Float(number) => number.to_string().into(),
        Variant::Double(number) => number.to_string().into(),
        _ => integer(value)?.to_string().into(),
    })
}
