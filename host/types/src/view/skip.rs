//! Checks values and moves past them without building them. Accepts exactly what the decoders accept, and counts nesting as they do.

use crate::builtin::{
    ARRAY_BIT, BINARY_BODY, BuiltInType, ByteString, DIMENSIONS_BIT, DataValue, DiagnosticInfo, ExpandedNodeId,
    ExtensionObject, LocalizedText, NO_BODY, NodeId, NodeIdRef, QualifiedName, RESERVED_TYPES, TYPE_BITS, UaString,
    Variant, XML_BODY, check_dimensions, data_value_mask, diagnostic_info_mask, element_type,
};
use crate::codec::{DecodeError, Decoder};

type Checked = Result<(), DecodeError>;

fn bytes(d: &mut Decoder<'_>, count: usize) -> Checked {
    d.raw(count).map(drop)
}

fn expanded_node_id(d: &mut Decoder<'_>) -> Checked {
    let form = d.u8()?;
    NodeIdRef::decode_form(form & 0x3F, d)?;
    if form & 0x80 != 0 {
        d.string()?;
    }
    if form & 0x40 != 0 {
        d.u32()?;
    }
    Ok(())
}

fn localized_text(d: &mut Decoder<'_>) -> Checked {
    let mask = d.u8()?;
    for bit in [LocalizedText::LOCALE, LocalizedText::TEXT] {
        if mask & bit != 0 {
            d.string()?;
        }
    }
    Ok(())
}

fn extension_object(d: &mut Decoder<'_>) -> Checked {
    NodeIdRef::decode(d)?;
    match d.u8()? {
        NO_BODY => Ok(()),
        BINARY_BODY => d.byte_string().map(drop),
        XML_BODY => d.string().map(drop),
        _ => Err(DecodeError::Malformed("extension object encoding")),
    }
}

pub(super) fn data_value(d: &mut Decoder<'_>) -> Checked {
    let mask = d.u8()?;
    if mask & data_value_mask::VALUE != 0 {
        variant(d)?;
    }
    data_value_tail(mask, d)
}

fn data_value_tail(mask: u8, d: &mut Decoder<'_>) -> Checked {
    let size = |bit: u8, size: usize| if mask & bit != 0 { size } else { 0 };
    bytes(
        d,
        size(data_value_mask::STATUS, 4)
            + size(data_value_mask::SOURCE_TIMESTAMP, 8)
            + size(data_value_mask::SOURCE_PICOSECONDS, 2)
            + size(data_value_mask::SERVER_TIMESTAMP, 8)
            + size(data_value_mask::SERVER_PICOSECONDS, 2),
    )
}

fn diagnostic_info(d: &mut Decoder<'_>) -> Checked {
    let mask = d.u8()?;
    for bit in [
        diagnostic_info_mask::SYMBOLIC_ID,
        diagnostic_info_mask::NAMESPACE_URI,
        diagnostic_info_mask::LOCALE,
        diagnostic_info_mask::LOCALIZED_TEXT,
    ] {
        if mask & bit != 0 {
            d.i32()?;
        }
    }
    if mask & diagnostic_info_mask::ADDITIONAL_INFO != 0 {
        d.string()?;
    }
    if mask & diagnostic_info_mask::INNER_STATUS_CODE != 0 {
        d.u32()?;
    }
    if mask & diagnostic_info_mask::INNER_DIAGNOSTIC_INFO != 0 {
        d.nested(diagnostic_info)?;
    }
    Ok(())
}

/// One value of a type, at the nesting level of the decoder.
fn value(id: BuiltInType, d: &mut Decoder<'_>) -> Checked {
    if let Some(size) = id.fixed_size() {
        return bytes(d, size);
    }
    match id {
        BuiltInType::String | BuiltInType::XmlElement => d.string().map(drop),
        BuiltInType::ByteString => d.byte_string().map(drop),
        BuiltInType::NodeId => NodeIdRef::decode(d).map(drop),
        BuiltInType::ExpandedNodeId => expanded_node_id(d),
        BuiltInType::QualifiedName => {
            d.u16()?;
            d.string().map(drop)
        }
        BuiltInType::LocalizedText => localized_text(d),
        BuiltInType::ExtensionObject => extension_object(d),
        BuiltInType::DataValue => data_value(d),
        BuiltInType::DiagnosticInfo => diagnostic_info(d),
        BuiltInType::Variant => variant(d),
        _ => Err(DecodeError::Malformed("variant type")),
    }
}

/// Types that can hold a Variant again, or themselves.
fn nests(id: BuiltInType) -> bool {
    matches!(
        id,
        BuiltInType::ExtensionObject | BuiltInType::DataValue | BuiltInType::Variant | BuiltInType::DiagnosticInfo
    )
}

fn min_size(id: BuiltInType) -> usize {
    match id {
        BuiltInType::String | BuiltInType::ByteString | BuiltInType::XmlElement => 4,
        BuiltInType::NodeId | BuiltInType::ExpandedNodeId => 2,
        BuiltInType::QualifiedName => 6,
        BuiltInType::ExtensionObject => 3,
        _ => id.fixed_size().unwrap_or(1),
    }
}

/// What one element takes when it is decoded; only types that are larger in memory than on the wire matter.
fn in_memory(id: BuiltInType) -> usize {
    match id {
        BuiltInType::String | BuiltInType::XmlElement => size_of::<UaString>(),
        BuiltInType::ByteString => size_of::<ByteString>(),
        BuiltInType::NodeId => size_of::<NodeId>(),
        BuiltInType::ExpandedNodeId => size_of::<ExpandedNodeId>(),
        BuiltInType::QualifiedName => size_of::<QualifiedName>(),
        BuiltInType::LocalizedText => size_of::<LocalizedText>(),
        BuiltInType::ExtensionObject => size_of::<ExtensionObject>(),
        BuiltInType::DataValue => size_of::<DataValue>(),
        BuiltInType::Variant => size_of::<Variant>(),
        BuiltInType::DiagnosticInfo => size_of::<DiagnosticInfo>(),
        _ => 0,
    }
}

fn elements(id: BuiltInType, d: &mut Decoder<'_>) -> Result<usize, DecodeError> {
    let count = d.array_length(min_size(id))?.unwrap_or(0);
    if let Some(size) = id.fixed_size() {
        bytes(d, count.checked_mul(size).ok_or(DecodeError::Truncated)?)?;
        return Ok(count);
    }
    d.expand(count, in_memory(id), min_size(id))?;
    for _ in 0..count {
        value(id, d)?;
    }
    Ok(count)
}

fn array(mask: u8, d: &mut Decoder<'_>) -> Checked {
    let id = element_type(mask)?;
    let count = if nests(id) {
        d.nested(|d| elements(id, d))?
    } else {
        elements(id, d)?
    };
    if mask & DIMENSIONS_BIT != 0 {
        let rank = d.array_length(4)?.unwrap_or(0);
        let (lengths, _) = d
            .raw(rank.checked_mul(4).ok_or(DecodeError::Truncated)?)?
            .as_chunks::<4>();
        // A negative length is no length at all, as zero is not.
        let lengths = lengths
            .iter()
            .map(|length| u32::try_from(i32::from_le_bytes(*length)).unwrap_or(0));
        check_dimensions(lengths, count)?;
    }
    Ok(())
}

pub(super) fn variant(d: &mut Decoder<'_>) -> Checked {
    let mask = d.u8()?;
    if mask & (ARRAY_BIT | DIMENSIONS_BIT) != 0 {
        return array(mask, d);
    }
    let id = mask & TYPE_BITS;
    match BuiltInType::from_id(id) {
        Some(BuiltInType::Variant) => Err(DecodeError::Malformed("variant in a variant")),
        Some(id) if nests(id) => d.nested(|d| value(id, d)),
        Some(id) => value(id, d),
        None if id == 0 => Ok(()),
        None if RESERVED_TYPES.contains(&id) => d.byte_string().map(drop),
        None => Err(DecodeError::Malformed("variant type")),
    }
}
