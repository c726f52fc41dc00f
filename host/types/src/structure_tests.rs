//! Properties of every generated type, and golden bytes of a few.

use std::collections::BTreeSet;

use crate::service::{RequestKind, SERVICE_FAULT_ENCODING_ID};
use crate::{
    AccessLevelType, BinaryDecode, BinaryEncode, DecodeError, DecodeLimits, Decoder, Encoder, LogRecord,
    MessageSecurityMode, NodeClass, NodeId, ReadRequest, ReadValueId, ServiceFault, StatusCode, Structure,
    TimestampsToReturn, UserNameIdentityToken, structures,
};

/// Something to do with every structure.
pub(crate) trait Visitor {
    fn visit<T: Structure + Default + PartialEq + std::fmt::Debug>(&mut self);
}

fn visit_all(visitor: &mut impl Visitor) {
    structures::visit_structures(visitor);
    structures::visit_optional_structures(visitor);
}

fn encoded(value: &impl BinaryEncode) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes);
    value.encode(&mut encoder);
    assert_eq!(encoder.error(), None);
    bytes
}

fn decoded<T: BinaryDecode>(bytes: &[u8]) -> Result<T, DecodeError> {
    let mut decoder = Decoder::new(bytes, DecodeLimits::default());
    let value = T::decode(&mut decoder)?;
    assert!(decoder.is_empty());
    Ok(value)
}

#[derive(Default)]
struct RoundTrip {
    ids: BTreeSet<u32>,
    names: BTreeSet<&'static str>,
    count: usize,
}

impl Visitor for RoundTrip {
    fn visit<T: Structure + Default + PartialEq + std::fmt::Debug>(&mut self) {
        let bytes = encoded(&T::default());
        assert!(
            bytes.len() >= T::MIN_SIZE,
            "{}: MIN_SIZE {} > {}",
            T::NAME,
            T::MIN_SIZE,
            bytes.len()
        );
        assert_eq!(decoded::<T>(&bytes), Ok(T::default()), "{}", T::NAME);
        for cut in 0..bytes.len() {
            assert_eq!(
                decoded::<T>(&bytes[..cut]),
                Err(DecodeError::Truncated),
                "{} cut at {cut}",
                T::NAME
            );
        }
        assert!(
            self.ids.insert(T::TYPE_ID) && self.ids.insert(T::ENCODING_ID),
            "{}",
            T::NAME
        );
        assert!(self.names.insert(T::NAME));
        self.count += 1;
    }
}

#[test]
fn every_structure_survives_the_wire_and_refuses_every_prefix() {
    let mut visitor = RoundTrip::default();
    visit_all(&mut visitor);
    assert_eq!(visitor.count, 314);
}

/// Feeds pseudo-random bytes to a structure's decoder: it may refuse, and what it accepts must survive the wire.
struct Noise {
    state: u64,
    accepted: usize,
}

impl Noise {
    fn bytes(&mut self) -> Vec<u8> {
        let mut next = || {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            self.state
        };
        // Mostly small numbers, so that lengths and masks are often plausible.
        (0..96)
            .map(|_| {
                let number = next();
                if number & 3 == 0 {
                    (number >> 8) as u8
                } else {
                    (number >> 8) as u8 & 1
                }
            })
            .collect()
    }
}

impl Visitor for Noise {
    fn visit<T: Structure + Default + PartialEq + std::fmt::Debug>(&mut self) {
        for _ in 0..16 {
            let bytes = self.bytes();
            let mut decoder = Decoder::new(&bytes, DecodeLimits::default());
            if let Ok(value) = T::decode(&mut decoder) {
                let once = encoded(&value);
                let again: T = decoded(&once).unwrap_or_else(|error| panic!("{}: {error} in {once:?}", T::NAME));
                assert_eq!(encoded(&again), once, "{}", T::NAME);
                self.accepted += 1;
            }
        }
    }
}

#[test]
fn decoders_take_noise_without_panicking() {
    let mut visitor = Noise {
        state: 0x9E37_79B9_7F4A_7C15,
        accepted: 0,
    };
    visit_all(&mut visitor);
    assert!(visitor.accepted > 100, "{}", visitor.accepted);
}

#[test]
fn read_request_in_bytes() {
    let request = ReadRequest {
        max_age: 1.0,
        timestamps_to_return: TimestampsToReturn::BOTH,
        nodes_to_read: vec![ReadValueId {
            node_id: NodeId::numeric(2, 300),
            attribute_id: 13,
            ..ReadValueId::default()
        }],
        ..ReadRequest::default()
    };
    let bytes = encoded(&request);
    let header = encoded(&request.request_header);
    let expected: &[&[u8]] = &[
        &header,
        &[0, 0, 0, 0, 0, 0, 0xF0, 0x3F],
        &[2, 0, 0, 0],
        &[1, 0, 0, 0],
        &[1, 2, 0x2C, 1, 13, 0, 0, 0],
        &[0xFF; 4],
        &[0, 0, 0xFF, 0xFF, 0xFF, 0xFF],
    ];
    assert_eq!(bytes, expected.concat());
    assert_eq!(decoded::<ReadRequest>(&bytes), Ok(request));
}

#[test]
fn inherited_fields_come_first() {
    let token = UserNameIdentityToken {
        policy_id: "p".into(),
        user_name: "u".into(),
        ..UserNameIdentityToken::default()
    };
    assert_eq!(encoded(&token)[..10], [1, 0, 0, 0, b'p', 1, 0, 0, 0, b'u']);
}

#[test]
fn optional_fields_follow_their_mask() {
    let record = LogRecord {
        severity: 7,
        source_name: Some("s".into()),
        ..LogRecord::default()
    };
    let bytes = encoded(&record);
    assert_eq!(bytes, [4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 1, 0, 0, 0, b's', 0]);
    assert_eq!(decoded::<LogRecord>(&bytes), Ok(record));
    let mut unknown = bytes;
    unknown[0] = 0x24;
    assert!(matches!(decoded::<LogRecord>(&unknown), Err(DecodeError::Malformed(_))));
}

#[test]
fn enumerations_keep_unknown_values() {
    assert_eq!(decoded(&[9, 0, 0, 0]), Ok(TimestampsToReturn(9)));
    assert!(!TimestampsToReturn(9).is_known());
    assert!(TimestampsToReturn::NEITHER.is_known());
    assert_eq!(
        format!("{:?} {:?}", MessageSecurityMode::SIGN_AND_ENCRYPT, NodeClass(3)),
        "SIGN_AND_ENCRYPT NodeClass(3)"
    );
}

#[test]
fn option_sets_are_bits() {
    let both = AccessLevelType::CURRENT_READ | AccessLevelType::CURRENT_WRITE;
    assert_eq!(both, AccessLevelType(3));
    assert!(both.contains(AccessLevelType::CURRENT_WRITE));
    assert!(!both.contains(AccessLevelType::HISTORY_READ));
    assert!((both & AccessLevelType::HISTORY_READ).is_empty());
}

#[test]
fn status_codes_have_names() {
    assert!(StatusCode::NAMED.is_sorted_by(|one, other| one.0 < other.0));
    assert_eq!(
        StatusCode::BAD_NODE_ID_UNKNOWN.to_string(),
        "BadNodeIdUnknown (0x80340000)"
    );
    assert_eq!(StatusCode(0x8034_0480).name(), Some("BadNodeIdUnknown"));
    assert_eq!(StatusCode::GOOD.name(), Some("Good"));
    assert_eq!(StatusCode(0x8FFF_0000).name(), None);
    // Only the list of 2026 has this one.
    assert_eq!(StatusCode::BAD_TRANSACTION_FAILED.name(), Some("BadTransactionFailed"));
}

#[test]
fn services_know_their_messages() {
    assert_eq!(
        RequestKind::from_encoding_id(ReadRequest::ENCODING_ID),
        Some(RequestKind::Read)
    );
    assert_eq!(RequestKind::from_encoding_id(ReadRequest::TYPE_ID), None);
    assert_eq!(SERVICE_FAULT_ENCODING_ID, ServiceFault::ENCODING_ID);
    for kind in RequestKind::ALL {
        assert_eq!(RequestKind::from_encoding_id(kind.request_encoding_id()), Some(*kind));
        assert_eq!(
            RequestKind::from_response_encoding_id(kind.response_encoding_id()),
            Some(*kind)
        );
    }
    assert_eq!(RequestKind::ALL.len(), 39);
}
