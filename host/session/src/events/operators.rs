//! The operators of a where clause (Part 4, 7.7.3), in three values: TRUE, FALSE and NULL, which is an empty Variant.
//!
//! NULL is what cannot be said: a comparison with a null value, or a logical operator whose operand is no Boolean. And, Or and Not work on it as
//! SQL has it, and only TRUE lets an event through.

use std::borrow::Cow;
use std::cmp::Ordering;

use backplane_types::{BuiltInType, FilterOperator, NodeId, Variant};

use super::content::{Element, Operand};
use super::convert::{common, explicit, implicit, integer, sized};
use super::event::Event;
use super::like::Pattern;

/// The value of one element; `values` are those of the elements before it.
pub(super) fn evaluate<'e>(element: &'e Element, event: &'e Event, values: &[Cow<'e, Variant>]) -> Cow<'e, Variant> {
    // Nothing is copied: a filter may name a long value often.
    let operand = |index: usize| -> Cow<'_, Variant> {
        match element.operands.get(index) {
            Some(Operand::Literal(value)) => Cow::Borrowed(value),
            Some(Operand::Field(selection)) => selection.of(event),
            Some(Operand::Element(place)) => values
                .get(*place)
                .map_or(Cow::Owned(Variant::Empty), |value| Cow::Borrowed(value.as_ref())),
            None => Cow::Owned(Variant::Empty),
        }
    };
    let compare = |a: usize, b: usize, holds: fn(Ordering) -> bool| compare(&operand(a), &operand(b), holds);
    let result = match element.operator {
        FilterOperator::EQUALS => equals(&operand(0), &operand(1)),
        FilterOperator::IS_NULL => Some(is_null(&operand(0))),
        FilterOperator::GREATER_THAN => compare(0, 1, Ordering::is_gt),
        FilterOperator::LESS_THAN => compare(0, 1, Ordering::is_lt),
        FilterOperator::GREATER_THAN_OR_EQUAL => compare(0, 1, Ordering::is_ge),
        FilterOperator::LESS_THAN_OR_EQUAL => compare(0, 1, Ordering::is_le),
        FilterOperator::LIKE => Some(like(&operand(0), &operand(1), element.pattern.as_ref())),
        FilterOperator::NOT => truth(&operand(0)).map(|it| !it),
        FilterOperator::BETWEEN => and(compare(0, 1, Ordering::is_ge), compare(0, 2, Ordering::is_le)),
        FilterOperator::IN_LIST => {
            let value = operand(0);
            let mut found = Some(false);
            for index in 1..element.operands.len() {
                found = or(found, equals(&value, &operand(index)));
            }
            found
        }
        FilterOperator::AND => and(truth(&operand(0)), truth(&operand(1))),
        FilterOperator::OR => or(truth(&operand(0)), truth(&operand(1))),
        FilterOperator::OF_TYPE => Some(node_id(&operand(0)).is_some_and(|it| event.is_of_type(&it))),
        FilterOperator::CAST => return Cow::Owned(cast(&operand(0), &operand(1)).unwrap_or_default()),
        FilterOperator::BITWISE_AND => return bitwise(&operand(0), &operand(1), |a, b| a & b),
        FilterOperator::BITWISE_OR => return bitwise(&operand(0), &operand(1), |a, b| a | b),
        _ => None,
    };
    Cow::Owned(result.map_or(Variant::Empty, Variant::Boolean))
}

fn and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn or(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    }
}

/// A Boolean, or what becomes one by itself.
fn truth(value: &Variant) -> Option<bool> {
    match implicit(value, BuiltInType::Boolean)? {
        Variant::Boolean(truth) => Some(truth),
        _ => None,
    }
}

/// Nothing, or a StatusCode that stands where a field could not be read.
fn is_null(value: &Variant) -> bool {
    match value {
        Variant::Empty | Variant::StatusCode(_) => true,
        Variant::String(text) => text.is_null(),
        Variant::ByteString(bytes) => bytes.is_null(),
        Variant::NodeId(id) => id.is_null(),
        Variant::ExpandedNodeId(id) => id.is_null(),
        Variant::QualifiedName(name) => name.is_null(),
        Variant::LocalizedText(text) => text.is_null(),
        Variant::ExtensionObject(object) => object.is_null(),
        Variant::DateTime(time) => time.is_null(),
        Variant::Guid(guid) => guid.is_null(),
        _ => false,
    }
}

fn equals(a: &Variant, b: &Variant) -> Option<bool> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    Some(common(a, b).is_some_and(|(a, b)| a == b))
}

fn compare(a: &Variant, b: &Variant, holds: fn(Ordering) -> bool) -> Option<bool> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    Some(common(a, b).and_then(|(a, b)| order(&a, &b)).is_some_and(holds))
}

/// The order of two values of one type; `None` when the type has none, or a value is no number.
fn order(a: &Variant, b: &Variant) -> Option<Ordering> {
    match (a, b) {
        (Variant::String(a), Variant::String(b)) => Some(a.as_str()?.cmp(b.as_str()?)),
        (Variant::DateTime(a), Variant::DateTime(b)) => Some(a.cmp(b)),
        (Variant::Boolean(a), Variant::Boolean(b)) => Some(a.cmp(b)),
        (Variant::Double(_) | Variant::Float(_), _) => a.as_f64()?.partial_cmp(&b.as_f64()?),
        _ => Some(integer(a)?.cmp(&integer(b)?)),
    }
}

/// FALSE also for what is no text.
fn like(value: &Variant, pattern: &Variant, ready: Option<&Pattern>) -> bool {
    let text = |value: &Variant| match implicit(value, BuiltInType::String) {
        Some(Variant::String(text)) if !text.is_null() => Some(text),
        _ => None,
    };
    let Some(value) = text(value) else {
        return false;
    };
    match ready {
        Some(pattern) => pattern.matches(value.text()),
        None => text(pattern)
            .and_then(|it| Pattern::parse(it.text()))
            .is_some_and(|it| it.matches(value.text())),
    }
}

fn node_id(value: &Variant) -> Option<NodeId> {
    match value {
        Variant::NodeId(id) => Some((**id).clone()),
        Variant::ExpandedNodeId(id) if id.is_local() => Some(id.node_id.clone()),
        _ => None,
    }
}

/// Only built-in types are converted to; they have the numbers of their DataType nodes.
fn cast(value: &Variant, data_type: &Variant) -> Option<Variant> {
    let number = u8::try_from(node_id(data_type)?.as_standard()?).ok()?;
    explicit(value, BuiltInType::from_id(number)?)
}

/// An integer as wide as the wider operand.
fn bitwise<'e>(a: &Variant, b: &Variant, operate: fn(u64, u64) -> u64) -> Cow<'e, Variant> {
    let of_integers = || {
        let (a_type, b_type) = (a.built_in_type()?, b.built_in_type()?);
        let width = |it: BuiltInType| {
            let integer = it.is_numeric() && !matches!(it, BuiltInType::Float | BuiltInType::Double);
            integer.then(|| it.fixed_size()).flatten()
        };
        let (a_width, b_width) = (width(a_type)?, width(b_type)?);
        if a.as_array().is_some() || b.as_array().is_some() {
            return None;
        }
        let wider = if b_width > a_width { b_type } else { a_type };
        // The lowest bits count, whatever the sign says of those above.
        let bits = |value: &Variant| integer(value).and_then(|it| u64::try_from(it & i128::from(u64::MAX)).ok());
        let bytes = a_width.max(b_width);
        let mask = u64::MAX >> (64 - bytes * 8);
        let result = i128::from(operate(bits(a)?, bits(b)?) & mask);
        sized(result, wider).or_else(|| sized(result - (1_i128 << (bytes * 8)), wider))
    };
    Cow::Owned(of_integers().unwrap_or_default())
}
