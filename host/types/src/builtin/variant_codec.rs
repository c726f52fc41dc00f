//! The binary form of Variants (Part 6, 5.2.2.16).
//!
//! A level of nesting is counted where a Variant holds something that can hold a Variant again, so that scalars pay nothing for it.

use crate::codec::{BinaryDecode, BinaryEncode, DecodeError, Decoder, Encoder};

use super::array::product;
use super::variant_from::for_each_type;
use super::{
    Array, ArrayValues, BuiltInType, ByteString, DataValue, DateTime, DiagnosticInfo, ExpandedNodeId, ExtensionObject,
    Guid, LocalizedText, NodeId, QualifiedName, StatusCode, UaString, Variant, XmlElement,
};

pub(crate) const ARRAY_BIT: u8 = 0x80;
pub(crate) const DIMENSIONS_BIT: u8 = 0x40;
pub(crate) const TYPE_BITS: u8 = 0x3F;
/// Reserved for types to come; read as ByteString.
pub(crate) const RESERVED_TYPES: std::ops::RangeInclusive<u8> = 26..=31;

macro_rules! scalar_codec {
    ($($name:ident)*) => {
        impl BinaryEncode for Variant {
            fn encode(&self, e: &mut Encoder<'_>) {
                match self {
                    Self::Empty => e.u8(0),
                    $(Self::$name(value) => {
                        e.u8(BuiltInType::$name.id());
                        value.encode(e);
                    })*
                    Self::ExtensionObject(value) => encode_nested(BuiltInType::ExtensionObject, value.as_ref(), e),
                    Self::DataValue(value) => encode_nested(BuiltInType::DataValue, value.as_ref(), e),
                    Self::DiagnosticInfo(value) => encode_nested(BuiltInType::DiagnosticInfo, value.as_ref(), e),
                    Self::Array(array) => encode_array(array, e),
                }
            }
        }

        fn decode_scalar(id: BuiltInType, d: &mut Decoder<'_>) -> Result<Variant, DecodeError> {
            match id {
                $(BuiltInType::$name => read(d, Variant::$name),)*
                BuiltInType::ExtensionObject => d.nested(|d| read(d, Variant::ExtensionObject)),
                BuiltInType::DataValue => d.nested(|d| read(d, Variant::DataValue)),
                BuiltInType::DiagnosticInfo => d.nested(|d| read(d, Variant::DiagnosticInfo)),
                // Part 6, 5.1.6: a Variant is never a Variant, only an array of them.
                BuiltInType::Variant => Err(DecodeError::Malformed("variant in a variant")),
            }
        }
    };
}

scalar_codec! {
    Boolean SByte Byte Int16 UInt16 Int32 UInt32 Int64 UInt64 Float Double String DateTime Guid ByteString XmlElement
    NodeId ExpandedNodeId StatusCode QualifiedName LocalizedText
}

/// One small function per type keeps the frame of the recursive one small.
#[inline(never)]
fn read<T: BinaryDecode>(d: &mut Decoder<'_>, wrap: impl FnOnce(T) -> Variant) -> Result<Variant, DecodeError> {
    T::decode(d).map(wrap)
}

#[inline(never)]
fn encode_nested<T: BinaryEncode>(id: BuiltInType, value: &T, e: &mut Encoder<'_>) {
    let start = e.position();
    e.u8(id.id());
    if !e.nested(|e| value.encode(e)) {
        e.truncate(start);
        e.u8(0);
    }
}

#[inline(never)]
fn encode_array(array: &Array, e: &mut Encoder<'_>) {
    let start = e.position();
    // Part 6, 5.2.2.16: dimensions are written for two or more, and only if none is zero.
    let matrix =
        array.dimensions.len() > 1 && !array.is_empty() && product(&array.dimensions) == Some(array.values.len());
    let dimensions_bit = if matrix { DIMENSIONS_BIT } else { 0 };
    e.u8(array.values.built_in_type().id() | ARRAY_BIT | dimensions_bit);
    if !array.values.encode_elements(e) {
        e.truncate(start);
        e.u8(0);
        return;
    }
    if matrix {
        array.dimensions.encode(e);
    }
}

impl BinaryDecode for Variant {
    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let mask = d.u8()?;
        let id = mask & TYPE_BITS;
        if mask & (ARRAY_BIT | DIMENSIONS_BIT) != 0 {
            return decode_array(mask, d);
        }
        match BuiltInType::from_id(id) {
            Some(built_in_type) => decode_scalar(built_in_type, d),
            None if id == 0 => Ok(Self::Empty),
            None if RESERVED_TYPES.contains(&id) => read(d, Self::ByteString),
            None => Err(DecodeError::Malformed("variant type")),
        }
    }
}

/// The type of the elements of an array, from the first byte of the Variant.
pub(crate) fn element_type(mask: u8) -> Result<BuiltInType, DecodeError> {
    let id = mask & TYPE_BITS;
    if mask & ARRAY_BIT == 0 {
        return Err(DecodeError::Malformed("variant with dimensions of a scalar"));
    }
    match BuiltInType::from_id(id) {
        Some(built_in_type) => Ok(built_in_type),
        None if RESERVED_TYPES.contains(&id) => Ok(BuiltInType::ByteString),
        None => Err(DecodeError::Malformed("variant type")),
    }
}

#[inline(never)]
fn decode_array(mask: u8, d: &mut Decoder<'_>) -> Result<Variant, DecodeError> {
    let values = match element_type(mask)? {
        BuiltInType::ExtensionObject | BuiltInType::DataValue | BuiltInType::Variant | BuiltInType::DiagnosticInfo => {
            d.nested(|d| ArrayValues::decode_elements(mask, d))?
        }
        _ => ArrayValues::decode_elements(mask, d)?,
    };
    let dimensions = if mask & DIMENSIONS_BIT != 0 {
        decode_dimensions(values.len(), d)?
    } else {
        Vec::new()
    };
    Ok(Variant::from(Array { values, dimensions }))
}

/// Reads ArrayDimensions and checks them against the number of elements. One dimension is the same as none.
fn decode_dimensions(count: usize, d: &mut Decoder<'_>) -> Result<Vec<u32>, DecodeError> {
    let dimensions = Vec::<i32>::decode(d)?
        .into_iter()
        .map(u32::try_from)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| DecodeError::Malformed("array dimensions"))?;
    check_dimensions(dimensions.iter().copied(), count)?;
    Ok(if dimensions.len() == 1 { Vec::new() } else { dimensions })
}

/// Part 6, 5.2.2.16: every dimension is above zero and their product is the number of elements, else decoding stops.
pub(crate) fn check_dimensions(dimensions: impl Iterator<Item = u32>, count: usize) -> Result<(), DecodeError> {
    let malformed = DecodeError::Malformed("array dimensions");
    let mut total = 1_usize;
    let mut rank = 0_usize;
    for length in dimensions {
        rank += 1;
        if length == 0 {
            return Err(malformed);
        }
        total = usize::try_from(length)
            .ok()
            .and_then(|length| total.checked_mul(length))
            .ok_or(malformed)?;
    }
    if rank > 0 && total != count {
        return Err(malformed);
    }
    Ok(())
}

macro_rules! array_codec {
    ($($name:ident $type:ty;)*) => {
        impl ArrayValues {
            /// Writes length and elements; false, with something to be taken back, if they nest too deeply.
            fn encode_elements(&self, e: &mut Encoder<'_>) -> bool {
                match self {
                    Self::ExtensionObject(values) => e.nested(|e| values.encode(e)),
                    Self::DataValue(values) => e.nested(|e| values.encode(e)),
                    Self::Variant(values) => e.nested(|e| values.encode(e)),
                    Self::DiagnosticInfo(values) => e.nested(|e| values.encode(e)),
                    #[allow(unreachable_patterns)]
                    other => {
                        match other {
                            $(Self::$name(values) => values.encode(e),)*
                        }
                        true
                    }
                }
            }

            fn decode_elements(mask: u8, d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                match element_type(mask)? {
                    $(BuiltInType::$name => read_elements::<$type>(d, Self::$name),)*
                }
            }
        }
    };
}

for_each_type!(array_codec);

#[inline(never)]
fn read_elements<T: BinaryDecode>(
    d: &mut Decoder<'_>,
    wrap: impl FnOnce(Vec<T>) -> ArrayValues,
) -> Result<ArrayValues, DecodeError> {
    Vec::<T>::decode(d).map(wrap)
}
