//! Strategies for every built-in type, and the checks that all of them have to pass.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use backplane_types::{
    Array, ArrayValues, BinaryDecode, BinaryEncode, ByteString, DataValue, DateTime, DecodeError, DecodeLimits,
    Decoder, DiagnosticInfo, Encoder, ExpandedNodeId, ExtensionBody, ExtensionObject, Guid, Identifier, LocalizedText,
    NodeId, QualifiedName, StatusCode, UaString, Variant, XmlElement,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

pub fn encode<T: BinaryEncode + ?Sized>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut e = Encoder::new(&mut bytes);
    value.encode(&mut e);
    assert_eq!(e.error(), None);
    bytes
}

pub fn decode<T: BinaryDecode>(bytes: &[u8]) -> Result<T, DecodeError> {
    let mut d = Decoder::new(bytes, DecodeLimits::DEFAULT);
    let value = T::decode(&mut d)?;
    assert!(d.is_empty(), "{} bytes left", d.remaining());
    Ok(value)
}

/// Decoding gives the same value, and every shorter message is an error.
pub fn check<T: BinaryEncode + BinaryDecode + PartialEq + std::fmt::Debug>(value: &T) {
    let bytes = encode(value);
    assert!(bytes.len() >= T::MIN_SIZE);
    let decoded: T = decode(&bytes).unwrap();
    assert_eq!(encode(&decoded), bytes, "{value:?}");
    for end in 0..bytes.len() {
        let mut d = Decoder::new(&bytes[..end], DecodeLimits::DEFAULT);
        assert_eq!(T::decode(&mut d), Err(DecodeError::Truncated), "{end} of {value:?}");
    }
}

pub fn text() -> impl Strategy<Value = UaString> {
    option::of(".{0,12}").prop_map(UaString::from)
}

pub fn bytes() -> impl Strategy<Value = ByteString> {
    option::of(vec(any::<u8>(), 0..12)).prop_map(ByteString::from)
}

pub fn guid() -> impl Strategy<Value = Guid> {
    any::<[u8; 16]>().prop_map(Guid)
}

pub fn xml() -> impl Strategy<Value = XmlElement> {
    text().prop_map(XmlElement)
}

pub fn status() -> impl Strategy<Value = StatusCode> {
    any::<u32>().prop_map(StatusCode)
}

pub fn date_time() -> impl Strategy<Value = DateTime> {
    any::<i64>().prop_map(DateTime::from_ticks)
}

pub fn identifier() -> impl Strategy<Value = Identifier> {
    prop_oneof![
        (0..300_u32).prop_map(Identifier::Numeric),
        (0..70_000_u32).prop_map(Identifier::Numeric),
        any::<u32>().prop_map(Identifier::Numeric),
        text().prop_map(Identifier::String),
        guid().prop_map(Identifier::Guid),
        bytes().prop_map(Identifier::Opaque),
    ]
}

pub fn node_id() -> impl Strategy<Value = NodeId> {
    (prop_oneof![Just(0_u16), 0..300_u16, any::<u16>()], identifier())
        .prop_map(|(namespace, identifier)| NodeId { namespace, identifier })
}

pub fn expanded_node_id() -> impl Strategy<Value = ExpandedNodeId> {
    (node_id(), text(), prop_oneof![Just(0), any::<u32>()]).prop_map(|(mut node_id, namespace_uri, server_index)| {
        // An empty URI is none.
        let namespace_uri = if namespace_uri.is_empty() {
            UaString::NULL
        } else {
            namespace_uri
        };
        if !namespace_uri.is_null() {
            node_id.namespace = 0;
        }
        ExpandedNodeId {
            node_id,
            namespace_uri,
            server_index,
        }
    })
}

pub fn qualified_name() -> impl Strategy<Value = QualifiedName> {
    (any::<u16>(), text()).prop_map(|(namespace, name)| QualifiedName { namespace, name })
}

pub fn localized_text() -> impl Strategy<Value = LocalizedText> {
    (text(), text()).prop_map(|(locale, text)| LocalizedText { locale, text })
}

pub fn extension_object() -> impl Strategy<Value = ExtensionObject> {
    let body = prop_oneof![
        Just(ExtensionBody::None),
        vec(any::<u8>(), 0..20).prop_map(|bytes| ExtensionBody::Binary(ByteString::from(bytes))),
        ".{0,12}".prop_map(|text| ExtensionBody::Xml(XmlElement(UaString::from(text)))),
    ];
    (node_id(), body).prop_map(|(type_id, body)| ExtensionObject { type_id, body })
}

pub fn diagnostic_info() -> impl Strategy<Value = DiagnosticInfo> {
    let leaf = (
        option::of(any::<i32>()),
        option::of(any::<i32>()),
        option::of(any::<i32>()),
        option::of(any::<i32>()),
        option::of(text()),
        option::of(status()),
    )
        .prop_map(
            |(symbolic_id, namespace_uri, locale, localized_text, info, status)| DiagnosticInfo {
                symbolic_id,
                namespace_uri,
                locale,
                localized_text,
                additional_info: info,
                inner_status_code: status,
                inner_diagnostic_info: None,
            },
        );
    vec(leaf, 1..5).prop_map(|levels| {
        levels
            .into_iter()
            .reduce(|inner, outer| DiagnosticInfo {
                inner_diagnostic_info: Some(Box::new(inner)),
                ..outer
            })
            .unwrap_or_default()
    })
}

fn scalar() -> impl Strategy<Value = Variant> {
    prop_oneof![
        Just(Variant::Empty),
        any::<bool>().prop_map(Variant::from),
        any::<i8>().prop_map(Variant::from),
        any::<u8>().prop_map(Variant::from),
        any::<i16>().prop_map(Variant::from),
        any::<u16>().prop_map(Variant::from),
        any::<i32>().prop_map(Variant::from),
        any::<u32>().prop_map(Variant::from),
        any::<i64>().prop_map(Variant::from),
        any::<u64>().prop_map(Variant::from),
        any::<u32>().prop_map(|bits| Variant::from(f32::from_bits(bits))),
        any::<u64>().prop_map(|bits| Variant::from(f64::from_bits(bits))),
        text().prop_map(Variant::from),
        date_time().prop_map(Variant::from),
        guid().prop_map(Variant::from),
        bytes().prop_map(Variant::from),
        xml().prop_map(Variant::from),
        prop_oneof![
            node_id().prop_map(Variant::from),
            expanded_node_id().prop_map(Variant::from),
            status().prop_map(Variant::from),
            qualified_name().prop_map(Variant::from),
            localized_text().prop_map(Variant::from),
            extension_object().prop_map(Variant::from),
            diagnostic_info().prop_map(Variant::from),
        ],
    ]
}

fn simple_values() -> impl Strategy<Value = ArrayValues> {
    prop_oneof![
        vec(any::<bool>(), 0..8).prop_map(ArrayValues::from),
        vec(any::<i8>(), 0..8).prop_map(ArrayValues::from),
        vec(any::<u8>(), 0..8).prop_map(ArrayValues::from),
        vec(any::<i16>(), 0..8).prop_map(ArrayValues::from),
        vec(any::<u16>(), 0..8).prop_map(ArrayValues::from),
        vec(any::<i32>(), 0..8).prop_map(ArrayValues::from),
        vec(any::<u32>(), 0..8).prop_map(ArrayValues::from),
        vec(any::<i64>(), 0..8).prop_map(ArrayValues::from),
        vec(any::<u64>(), 0..8).prop_map(ArrayValues::from),
        vec(any::<u32>().prop_map(f32::from_bits), 0..8).prop_map(ArrayValues::from),
        vec(any::<u64>().prop_map(f64::from_bits), 0..8).prop_map(ArrayValues::from),
        vec(text(), 0..8).prop_map(ArrayValues::from),
        vec(date_time(), 0..8).prop_map(ArrayValues::from),
        vec(guid(), 0..8).prop_map(ArrayValues::from),
        vec(bytes(), 0..8).prop_map(ArrayValues::from),
        vec(xml(), 0..8).prop_map(ArrayValues::from),
        prop_oneof![
            vec(node_id(), 0..8).prop_map(ArrayValues::from),
            vec(expanded_node_id(), 0..8).prop_map(ArrayValues::from),
            vec(status(), 0..8).prop_map(ArrayValues::from),
            vec(qualified_name(), 0..8).prop_map(ArrayValues::from),
            vec(localized_text(), 0..8).prop_map(ArrayValues::from),
            vec(extension_object(), 0..8).prop_map(ArrayValues::from),
            vec(diagnostic_info(), 0..8).prop_map(ArrayValues::from),
        ],
    ]
}

/// An array, or a matrix if its length is even.
pub fn array(values: ArrayValues) -> Variant {
    let length = u32::try_from(values.len()).unwrap();
    if length > 0 && length.is_multiple_of(2) {
        Variant::from(Array::matrix(values, vec![2, length / 2]).unwrap())
    } else {
        Variant::from(values)
    }
}

fn with_head(value: Variant, status: u32, times: (i64, i64), picoseconds: (u16, u16)) -> DataValue {
    let at = |ticks: i64| Some(DateTime::from_ticks(ticks)).filter(|time| !time.is_null());
    let source_timestamp = at(times.0);
    let server_timestamp = at(times.1);
    DataValue {
        value,
        status: Some(StatusCode(status)).filter(|status| *status != StatusCode::GOOD),
        source_timestamp,
        source_picoseconds: source_timestamp.and(Some(picoseconds.0).filter(|units| *units > 0)),
        server_timestamp,
        server_picoseconds: server_timestamp.and(Some(picoseconds.1).filter(|units| *units > 0)),
    }
}

fn data_value_of(value: impl Strategy<Value = Variant>) -> impl Strategy<Value = DataValue> {
    (
        value,
        prop_oneof![Just(0), any::<u32>()],
        any::<(i64, i64)>(),
        (0..10_000_u16, 0..10_000_u16),
    )
        .prop_map(|(value, status, times, picoseconds)| with_head(value, status, times, picoseconds))
}

pub fn variant() -> impl Strategy<Value = Variant> {
    prop_oneof![scalar(), simple_values().prop_map(array)].prop_recursive(6, 32, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|values| array(ArrayValues::from(values))),
            vec(data_value_of(inner.clone()), 0..4).prop_map(|values| array(ArrayValues::from(values))),
            data_value_of(inner).prop_map(Variant::from),
        ]
    })
}

pub fn data_value() -> impl Strategy<Value = DataValue> {
    data_value_of(variant())
}
