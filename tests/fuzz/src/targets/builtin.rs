//! Values of the built-in types, arrays of them, and their forms in place.
//!
//! Input: a byte that chooses the type (and with its high bit tight limits), then the value.

use std::fmt::Debug;

use backplane_types::view::{
    DataValueRef, DecodeRef, ExtensionObjectRef, NodeIdRef, QualifiedNameRef, StrRef, VariantRef,
};
use backplane_types::{
    BinaryDecode, BinaryEncode, ByteString, DataValue, DateTime, DecodeError, DecodeLimits, Decoder, DiagnosticInfo,
    ExpandedNodeId, ExtensionObject, Guid, LocalizedText, NodeId, QualifiedName, StatusCode, UaString, Variant,
    XmlElement,
};

use crate::check::{TIGHT, bounded, encoded, round_trip, same};

type Run = fn(&[u8], DecodeLimits);

/// A value, and an array of such values.
const TYPES: &[(Run, Run)] = &[
    (variant, array::<Variant>),
    (data_value, array::<DataValue>),
    (extension_object, array::<ExtensionObject>),
    (value::<DiagnosticInfo>, array::<DiagnosticInfo>),
    (node_id, array::<NodeId>),
    (value::<ExpandedNodeId>, array::<ExpandedNodeId>),
    (qualified_name, array::<QualifiedName>),
    (value::<LocalizedText>, array::<LocalizedText>),
    (string, array::<UaString>),
    (value::<ByteString>, array::<ByteString>),
    (value::<XmlElement>, array::<XmlElement>),
    (value::<Guid>, array::<Guid>),
    (value::<DateTime>, array::<DateTime>),
    (value::<StatusCode>, array::<StatusCode>),
    (value::<bool>, array::<bool>),
    (value::<i8>, array::<i8>),
    (value::<u8>, array::<u8>),
    (value::<i16>, array::<i16>),
    (value::<u16>, array::<u16>),
    (value::<i32>, array::<i32>),
    (value::<u32>, array::<u32>),
    (value::<i64>, array::<i64>),
    (value::<u64>, array::<u64>),
    (value::<f32>, array::<f32>),
    (value::<f64>, array::<f64>),
];

/// The choosing byte for the type at `place` in the list of types.
#[must_use]
pub(crate) fn choice(place: u8, array: bool, tight: bool) -> u8 {
    place | u8::from(array) << 6 | u8::from(tight) << 7
}

/// Decoding accepts a value, or refuses it; what it accepts survives encoding, and the form in place says the same.
pub fn builtin(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else {
        return;
    };
    let Some((value, array)) = TYPES.get(usize::from(choice & 0x3F)) else {
        return;
    };
    let run = if choice & 0x40 != 0 { array } else { value };
    run(
        bytes,
        if choice & 0x80 != 0 {
            TIGHT
        } else {
            DecodeLimits::DEFAULT
        },
    );
}

fn value<T: BinaryDecode + BinaryEncode + PartialEq + Debug>(bytes: &[u8], limits: DecodeLimits) {
    let _ = round_trip::<T>(&mut Decoder::new(bytes, limits));
}

fn array<T: BinaryDecode + BinaryEncode + PartialEq + Debug>(bytes: &[u8], limits: DecodeLimits) {
    value::<Vec<T>>(bytes, limits);
}

/// Decodes twice, as a value and in place: both accept, at the same position, or both refuse with the same error.
fn both<'a, T, R>(bytes: &'a [u8], limits: DecodeLimits) -> Option<(T, R)>
where
    T: BinaryDecode + BinaryEncode + PartialEq + Debug,
    R: DecodeRef<'a>,
{
    let mut decoder = Decoder::new(bytes, limits);
    let owned = round_trip::<T>(&mut decoder);
    let mut in_place = Decoder::new(bytes, limits);
    // Nothing is allocated in place, whatever the input.
    let borrowed = crate::check::within(0, || R::decode_ref(&mut in_place));
    match (owned, borrowed) {
        (Ok(owned), Ok(borrowed)) => {
            assert_eq!(decoder.position(), in_place.position(), "{owned:?}");
            Some((owned, borrowed))
        }
        (Err(one), Err(other)) => {
            assert_eq!(one, other);
            None
        }
        (Ok(owned), Err(error)) => panic!("refused only in place, {error}: {owned:?}"),
        (Err(error), Ok(_)) => panic!("accepted only in place: {error}"),
    }
}

/// The value that a form in place decodes to is the one that was decoded at once.
fn agree<T: PartialEq + Debug>(owned: &T, in_place: Result<T, DecodeError>) {
    let in_place = in_place.unwrap_or_else(|error| panic!("checked and then refused, {error}: {owned:?}"));
    assert!(same(owned, &in_place), "{owned:?} is in place {in_place:?}");
}

fn variant(bytes: &[u8], limits: DecodeLimits) {
    if let Some((owned, borrowed)) = both::<Variant, VariantRef<'_>>(bytes, limits) {
        agree(&owned, bounded(bytes.len(), || borrowed.decode()));
        agree(&owned, Variant::decode(&mut Decoder::new(borrowed.bytes(), limits)));
        look_at(&owned);
    }
}

fn data_value(bytes: &[u8], limits: DecodeLimits) {
    if let Some((owned, borrowed)) = both::<DataValue, DataValueRef<'_>>(bytes, limits) {
        agree(&owned, borrowed.to_owned());
        agree(&owned.value, borrowed.value());
        assert_eq!(owned.head(), borrowed.head);
        assert_eq!(
            owned.value.is_empty(),
            borrowed.value_ref().is_none_or(|value| value.bytes() == [0])
        );
        assert!(owned.is_same(&owned.clone()), "{owned:?}");
    }
}

fn extension_object(bytes: &[u8], limits: DecodeLimits) {
    if let Some((owned, borrowed)) = both::<ExtensionObject, ExtensionObjectRef<'_>>(bytes, limits) {
        agree(&owned, Ok(borrowed.to_owned()));
        assert_eq!(owned.binary(), borrowed.binary());
    }
}

fn node_id(bytes: &[u8], limits: DecodeLimits) {
    if let Some((owned, borrowed)) = both::<NodeId, NodeIdRef<'_>>(bytes, limits) {
        agree(&owned, Ok(borrowed.to_owned()));
        assert!(borrowed == owned);
        assert!(owned == borrowed);
        assert_eq!(hash(&owned), hash(&borrowed), "{owned:?}");
        assert_eq!(encoded(&owned), encoded(&borrowed));
        assert_eq!(owned.is_null(), borrowed.is_null());
        assert_eq!(owned.to_string(), borrowed.to_string());
    }
}

fn qualified_name(bytes: &[u8], limits: DecodeLimits) {
    if let Some((owned, borrowed)) = both::<QualifiedName, QualifiedNameRef<'_>>(bytes, limits) {
        agree(&owned, Ok(borrowed.to_owned()));
        assert!(borrowed == owned);
        assert_eq!(owned.is_null(), borrowed.is_null());
    }
}

fn string(bytes: &[u8], limits: DecodeLimits) {
    if let Some((owned, borrowed)) = both::<UaString, StrRef<'_>>(bytes, limits) {
        agree(&owned, Ok(borrowed.to_owned()));
    }
}

fn hash(value: &impl std::hash::Hash) -> u64 {
    use std::hash::{DefaultHasher, Hasher};
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// What servers ask of every value they meet.
fn look_at(value: &Variant) {
    assert!(value.is_same(&value.clone()), "{value:?} is not itself");
    assert_eq!(value.is_empty(), value.built_in_type().is_none());
    assert_eq!(value.rank() < 0, value.as_array().is_none());
    let _ = (value.as_f64(), value.as_str());
    if let Some((built_in_type, bits)) = value.to_bits() {
        let again = Variant::from_bits(built_in_type, bits);
        assert!(again.is_some_and(|again| again.is_same(value)), "{value:?}");
    }
    if let Some(array) = value.as_array() {
        assert_eq!(array.values.iter().count(), array.len());
        assert!(array.dimensions.is_empty() || array.dimensions.len() > 1);
        let product = array
            .dimensions
            .iter()
            .try_fold(1_usize, |product, length| product.checked_mul(*length as usize));
        assert!(
            array.dimensions.is_empty() || product == Some(array.len()),
            "{:?}",
            array.dimensions
        );
    }
}
