//! Messages made to hurt: nesting, lengths and limits. All are refused at a cost that the bytes sent can justify.
#![allow(clippy::unwrap_used)]

mod common;

use allocation_counter::measure;
use backplane_types::view::{DecodeRef, VariantRef};
use backplane_types::{
    BinaryDecode, ByteString, DataValue, DecodeError, DecodeLimits, Decoder, DiagnosticInfo, Encoder, ExtensionObject,
    MAX_DEPTH, NodeId, StatusCode, UaString, Variant, WriteRequest,
};
use common::{decode, encode};

/// An array of one Variant, which is an array of one Variant, and so on; a Boolean at the bottom.
fn nested_variants(levels: usize) -> Vec<u8> {
    let mut bytes = [0x98, 1, 0, 0, 0].repeat(levels);
    bytes.extend([1, 1]);
    bytes
}

/// A DataValue in a Variant in a DataValue, and so on.
fn nested_data_values(levels: usize) -> Vec<u8> {
    let mut bytes = [23, 0x01].repeat(levels);
    bytes.extend([1, 1]);
    bytes
}

fn nested_diagnostics(levels: usize) -> Vec<u8> {
    let mut bytes = vec![0x40; levels];
    bytes.push(0);
    bytes
}

/// Runs on a stack of 512 KiB, a quarter of what worker threads have.
fn on_small_stack(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new()
        .stack_size(512 * 1024)
        .spawn(run)
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn a_hundred_levels_are_accepted_and_not_one_more() {
    on_small_stack(|| {
        let levels = MAX_DEPTH as usize;
        for message in [nested_variants(levels), nested_data_values(levels)] {
            let value: Variant = decode(&message).unwrap();
            assert_eq!(encode(&value), message);
            assert!(VariantRef::decode_ref(&mut Decoder::new(&message, DecodeLimits::DEFAULT)).is_ok());
            assert!(value.is_same(&value.clone()));
        }
        let info: DiagnosticInfo = decode(&nested_diagnostics(levels)).unwrap();
        assert_eq!(encode(&info), nested_diagnostics(levels));
        for message in [nested_variants(levels + 1), nested_data_values(levels + 1)] {
            assert_eq!(decode::<Variant>(&message), Err(DecodeError::TooDeep));
        }
        assert_eq!(
            decode::<DiagnosticInfo>(&nested_diagnostics(levels + 1)),
            Err(DecodeError::TooDeep)
        );
        assert_eq!(DecodeError::TooDeep.status(), StatusCode::BAD_ENCODING_LIMITS_EXCEEDED);
    });
}

#[test]
fn kinds_of_nesting_share_one_count() {
    // Variant, DataValue, Variant, DiagnosticInfo in DiagnosticInfo: 60 + 41 levels.
    let mut bytes = [0x98, 1, 0, 0, 0].repeat(30);
    bytes.extend([23, 0x01].repeat(30));
    bytes.push(25);
    bytes.extend(nested_diagnostics(39));
    assert!(decode::<Variant>(&bytes).is_ok());
    let bytes = [&bytes[..bytes.len() - 1], &[0x40, 0]].concat();
    assert_eq!(decode::<Variant>(&bytes), Err(DecodeError::TooDeep));
}

#[test]
fn deep_messages_are_refused_cheaply() {
    on_small_stack(|| {
        for levels in [10_000, 50_000] {
            for message in [nested_variants(levels), nested_data_values(levels)] {
                let cost = measure(|| {
                    assert_eq!(
                        Variant::decode(&mut Decoder::new(&message, DecodeLimits::DEFAULT)),
                        Err(DecodeError::TooDeep)
                    );
                });
                assert!(cost.count_total < 500, "{cost:?}");
                assert!(cost.bytes_max < 100_000, "{cost:?}");
                let cost = measure(|| {
                    assert!(VariantRef::decode_ref(&mut Decoder::new(&message, DecodeLimits::DEFAULT)).is_err());
                });
                assert_eq!(cost.count_total, 0);
            }
            let message = nested_diagnostics(levels);
            assert_eq!(
                DiagnosticInfo::decode(&mut Decoder::new(&message, DecodeLimits::DEFAULT)),
                Err(DecodeError::TooDeep)
            );
        }
    });
}

#[test]
fn values_of_our_own_that_nest_too_deeply_become_null() {
    on_small_stack(|| {
        let mut value = Variant::from(true);
        for _ in 0..MAX_DEPTH + 5 {
            value = Variant::from(vec![value]);
        }
        let mut bytes = Vec::new();
        let mut e = Encoder::new(&mut bytes);
        e.put(&value);
        assert_eq!(e.error(), Some(StatusCode::BAD_ENCODING_LIMITS_EXCEEDED));
        assert!(decode::<Variant>(&bytes).is_ok());
    });
}

/// Every type that has a length, with the largest length and nothing behind it.
#[test]
fn lengths_are_believed_only_as_far_as_there_are_bytes() {
    let limits = DecodeLimits::TRUSTED;
    for id in 1..=25_u8 {
        for length in [i32::MAX, 0x0100_0000, 1_000] {
            let mut message = vec![0x80 | id];
            message.extend(length.to_le_bytes());
            message.extend([0; 64]);
            let cost = measure(|| {
                assert!(Variant::decode(&mut Decoder::new(&message, limits)).is_err(), "{id}");
            });
            assert!(cost.bytes_max < 8_192, "type {id}, length {length}: {cost:?}");
        }
    }
    for length in [i32::MAX, 100] {
        let mut message = length.to_le_bytes().to_vec();
        message.extend([0; 10]);
        let cost = measure(|| {
            assert!(UaString::decode(&mut Decoder::new(&message, limits)).is_err());
            assert!(ByteString::decode(&mut Decoder::new(&message, limits)).is_err());
            assert!(Vec::<NodeId>::decode(&mut Decoder::new(&message, limits)).is_err());
            assert!(Vec::<DataValue>::decode(&mut Decoder::new(&message, limits)).is_err());
        });
        assert!(cost.bytes_max < 4_096, "{cost:?}");
    }
}

/// Memory for what decodes is bounded by a multiple of the message: the largest element for the smallest encoding.
#[test]
fn memory_is_bounded_by_the_message() {
    for (id, element) in [
        (24_u8, &[0_u8][..]),
        (23, &[0]),
        (25, &[0]),
        (21, &[0]),
        (22, &[0, 0, 0]),
        (18, &[0, 0]),
        (12, &[0xFF; 4]),
    ] {
        let count = 100_000_usize;
        let mut message = vec![0x80 | id];
        message.extend(i32::try_from(count).unwrap().to_le_bytes());
        message.extend(element.repeat(count));
        let cost = measure(|| {
            assert!(Variant::decode(&mut Decoder::new(&message, DecodeLimits::DEFAULT)).is_ok());
        });
        // A growing vector holds its old and its new allocation for a moment.
        let bound = message.len() as u64 * 256;
        assert!(cost.bytes_max < bound, "type {id}: {cost:?}, bound {bound}");
    }
}

/// Arrays that grow in memory are counted over the whole message, in place as in memory.
#[test]
fn expansion_is_limited_over_all_arrays() {
    // 16 arrays of 1,000,000 DataValues of one byte: 16 MB that would take 1.1 GB.
    let mut array = vec![0x80 | 23];
    array.extend(1_000_000_i32.to_le_bytes());
    array.extend(vec![0; 1_000_000]);
    let mut message = vec![0x98, 16, 0, 0, 0];
    message.extend(array.repeat(16));
    let cost = measure(|| {
        let error = Variant::decode(&mut Decoder::new(&message, DecodeLimits::DEFAULT)).unwrap_err();
        assert_eq!(error.status(), StatusCode::BAD_ENCODING_LIMITS_EXCEEDED);
    });
    assert!(cost.bytes_max < 200 << 20, "{cost:?}");
    assert!(VariantRef::decode_ref(&mut Decoder::new(&message, DecodeLimits::DEFAULT)).is_err());
    for (elements, fits) in [(14, true), (15, false)] {
        // 71 bytes more in memory than on the wire.
        let limits = DecodeLimits {
            max_expansion: 71 * 14,
            ..DecodeLimits::DEFAULT
        };
        let message = [
            &[0x80 | 23, elements, 0, 0, 0],
            vec![0; usize::from(elements)].as_slice(),
        ]
        .concat();
        assert_eq!(Variant::decode(&mut Decoder::new(&message, limits)).is_ok(), fits);
        assert_eq!(
            VariantRef::decode_ref(&mut Decoder::new(&message, limits)).is_ok(),
            fits
        );
    }
}

#[test]
fn limits_are_exact() {
    let limits = DecodeLimits {
        max_string_length: 3,
        max_byte_string_length: 4,
        max_array_length: 5,
        max_depth: 2,
        max_expansion: 1_000,
    };
    let with = |value: &Variant| Variant::decode(&mut Decoder::new(&encode(value), limits));
    let view = |value: &Variant| VariantRef::decode_ref(&mut Decoder::new(&encode(value), limits)).map(drop);
    for (good, bad) in [
        (Variant::from("abc"), Variant::from("abcd")),
        (
            Variant::from(ByteString::from(&[0; 4])),
            Variant::from(ByteString::from(&[0; 5])),
        ),
        (Variant::from(vec![0_u8; 5]), Variant::from(vec![0_u8; 6])),
        (
            Variant::from(vec![Variant::Empty; 5]),
            Variant::from(vec![Variant::Empty; 6]),
        ),
    ] {
        assert_eq!(with(&good).unwrap(), good);
        assert!(view(&good).is_ok());
        let error = with(&bad).unwrap_err();
        assert_eq!(error.status(), StatusCode::BAD_ENCODING_LIMITS_EXCEEDED);
        assert_eq!(view(&bad), Err(error));
    }
    assert!(Variant::decode(&mut Decoder::new(&nested_variants(2), limits)).is_ok());
    assert_eq!(
        Variant::decode(&mut Decoder::new(&nested_variants(3), limits)),
        Err(DecodeError::TooDeep)
    );
}

#[test]
fn invalid_utf8_is_refused_wherever_a_string_can_stand() {
    let bad = [2, 0, 0, 0, 0xC3, 0x28];
    for head in [
        &[12_u8][..],
        &[16],
        &[17, 3, 0, 0],
        &[18, 0x80, 0],
        &[20, 0, 0],
        &[21, 1],
        &[21, 2],
        &[25, 0x10],
        &[22, 0, 0, 2],
        &[0x8C, 1, 0, 0, 0],
    ] {
        let message = [head, &bad].concat();
        let mut d = Decoder::new(&message, DecodeLimits::DEFAULT);
        assert_eq!(Variant::decode(&mut d), Err(DecodeError::InvalidUtf8), "{head:?}");
        let mut d = Decoder::new(&message, DecodeLimits::DEFAULT);
        assert_eq!(
            VariantRef::decode_ref(&mut d).map(drop),
            Err(DecodeError::InvalidUtf8),
            "{head:?}"
        );
    }
}

#[test]
fn an_extension_object_is_not_looked_into() {
    // A body that is an ExtensionObject in an ExtensionObject, and so on, far deeper than any limit: it is bytes.
    let mut body = Vec::new();
    for _ in 0..1_000 {
        let object = ExtensionObject {
            type_id: NodeId::numeric(0, 1),
            body: backplane_types::ExtensionBody::Binary(ByteString::from(body)),
        };
        body = encode(&object);
    }
    let object: ExtensionObject = decode(&body).unwrap();
    assert_eq!(encode(&object), body);
}

#[test]
fn a_stray_byte_is_no_request() {
    for byte in 0..=255_u8 {
        assert!(WriteRequest::decode(&mut Decoder::new(&[byte], DecodeLimits::DEFAULT)).is_err());
    }
}
