//! What a where clause costs every event, as far as its literals say: a client that may write a long text and compare it a thousand times
//! must not do so for each event of everybody.
//!
//! A step is about as long as a pattern takes for one character. It must not know operators' meanings beyond what they look at.

use backplane_types::{BinaryEncode, Encoder, FilterOperator, Variant};

use super::content::{Element, Operand};
use super::like::MAX_TOKENS;

/// Bytes of a field, for whoever does not know the event.
const FIELD: u64 = 64;
/// Bytes that are compared or copied in one step.
const BYTES_PER_STEP: u64 = 16;
/// Steps for each byte that is converted: an element of an array may be one byte, and become a text.
const CONVERSION: u64 = 8;

/// Steps of evaluating elements that stand in the order of evaluation.
pub(super) fn work(elements: &[Element]) -> u64 {
    let mut sizes: Vec<u64> = Vec::with_capacity(elements.len());
    let mut work = 0_u64;
    for element in elements {
        let operands = element.operands.iter().map(|operand| size(operand, &sizes));
        let operands: Vec<u64> = operands.collect();
        let first = operands.first().copied().unwrap_or_default();
        let all = operands.iter().fold(0_u64, |sum, size| sum.saturating_add(*size));
        let steps = match element.operator {
            FilterOperator::LIKE => {
                let states = element.pattern.as_ref().map_or(MAX_TOKENS, |pattern| pattern.states());
                first.saturating_mul(wide(states))
            }
            FilterOperator::CAST => first.saturating_mul(CONVERSION),
            // The first operand is looked at again for each of the others.
            FilterOperator::IN_LIST | FilterOperator::BETWEEN => {
                let again = first.saturating_mul(wide(operands.len()));
                again.saturating_add(all) / BYTES_PER_STEP
            }
            _ => all / BYTES_PER_STEP,
        };
        work = work.saturating_add(steps).saturating_add(wide(operands.len()));
        // All but a Cast make a Boolean or a number.
        let is_cast = element.operator == FilterOperator::CAST;
        sizes.push(if is_cast { first.max(FIELD) } else { 1 });
    }
    work
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn size(operand: &Operand, sizes: &[u64]) -> u64 {
    match operand {
        Operand::Field(_) => FIELD,
        Operand::Element(place) => sizes.get(*place).copied().unwrap_or_default(),
        Operand::Literal(value) => match value {
            Variant::String(text) => wide(text.text().len()),
            Variant::ByteString(bytes) => wide(bytes.bytes().len()),
            Variant::Array(_) | Variant::ExtensionObject(_) => encoded(value),
            _ => FIELD,
        },
    }
}

/// Bytes in memory of the arrays among the literals: an element that takes one byte in a message may be a whole Variant here.
pub(super) fn arrays(elements: &[Element]) -> u64 {
    let operands = elements.iter().flat_map(|element| &element.operands);
    let bytes = operands.map(|operand| match operand {
        Operand::Literal(value @ (Variant::Array(_) | Variant::ExtensionObject(_))) => encoded(value),
        _ => 0,
    });
    bytes
        .fold(0_u64, u64::saturating_add)
        .saturating_mul(wide(size_of::<Variant>()))
}

fn encoded(value: &Variant) -> u64 {
    let mut bytes = Vec::new();
    value.encode(&mut Encoder::new(&mut bytes));
    wide(bytes.len())
}
