//! The bytes that the standard gives as examples (Part 6, 5.2), and forms that are easy to get wrong.
#![allow(clippy::unwrap_used)]

mod common;

use backplane_types::{
    Array, ArrayValues, ByteString, DataValue, DateTime, DecodeError, DecodeLimits, ExpandedNodeId, ExtensionBody,
    ExtensionObject, Guid, LocalizedText, NodeId, QualifiedName, ReadValueId, StatusCode, Structure, UaString, Variant,
};
use common::{decode, encode};
use std::time::{Duration, UNIX_EPOCH};

#[test]
fn integers_are_little_endian() {
    assert_eq!(encode(&1_000_000_000_u32), [0x00, 0xCA, 0x9A, 0x3B]);
    assert_eq!(encode(&-6.5_f32), [0x00, 0x00, 0xD0, 0xC0]);
    assert_eq!(encode(&true), [1]);
    assert_eq!(decode::<bool>(&[0x40]), Ok(true));
}

#[test]
fn string_of_the_standard() {
    let bytes = [0x06, 0, 0, 0, 0xE6, 0xB0, 0xB4, 0x42, 0x6F, 0x79];
    assert_eq!(encode(&UaString::from("水Boy")), bytes);
    assert_eq!(decode::<UaString>(&bytes).unwrap(), "水Boy");
    assert_eq!(encode(&UaString::NULL), [0xFF; 4]);
    assert_eq!(encode(&UaString::from("")), [0; 4]);
    assert!(decode::<UaString>(&[0xFF; 4]).unwrap().is_null());
    assert!(!decode::<UaString>(&[0; 4]).unwrap().is_null());
    assert!(!decode::<ByteString>(&[0; 4]).unwrap().is_null());
    assert_eq!(
        decode::<UaString>(&[0xFE, 0xFF, 0xFF, 0xFF]),
        Err(DecodeError::Malformed("length"))
    );
    assert_eq!(
        decode::<UaString>(&[2, 0, 0, 0, 0xC3, 0x28]),
        Err(DecodeError::InvalidUtf8)
    );
    assert_eq!(DecodeError::InvalidUtf8.status(), StatusCode::BAD_DECODING_ERROR);
}

#[test]
fn guid_of_the_standard() {
    let guid = Guid::from_fields(
        0x7291_9B91,
        0xEFF8,
        0x7A0D,
        [0x92, 0x5A, 0x02, 0x28, 0x01, 0x0B, 0x34, 0x01],
    );
    assert_eq!(guid.to_string(), "72919B91-EFF8-7A0D-925A-0228010B3401");
    assert_eq!(encode(&guid)[..8], [0x91, 0x9B, 0x91, 0x72, 0xF8, 0xEF, 0x0D, 0x7A]);
    for bad in [
        "",
        "72919B91-EFF8-7A0D-925A-0228010B340",
        "72919B91+EFF8-7A0D-925A-0228010B3401",
        "7291é9B1-EFF8-7A0D-925A-0228010B340",
    ] {
        assert!(bad.parse::<Guid>().is_err(), "{bad}");
    }
}

#[test]
fn node_ids_of_the_standard_take_the_smallest_form() {
    assert_eq!(encode(&NodeId::numeric(0, 72)), [0x00, 0x48]);
    assert_eq!(encode(&NodeId::numeric(5, 1025)), [0x01, 0x05, 0x01, 0x04]);
    assert_eq!(encode(&NodeId::numeric(0, 256)), [0x01, 0x00, 0x00, 0x01]);
    assert_eq!(encode(&NodeId::numeric(256, 1)), [0x02, 0x00, 0x01, 1, 0, 0, 0]);
    assert_eq!(encode(&NodeId::numeric(1, 65_536)), [0x02, 0x01, 0x00, 0, 0, 1, 0]);
    let hot = NodeId::string(1, "Hot水");
    assert_eq!(
        encode(&hot),
        [0x03, 0x01, 0x00, 6, 0, 0, 0, 0x48, 0x6F, 0x74, 0xE6, 0xB0, 0xB4]
    );
    assert_eq!(decode::<NodeId>(&[0x02, 0, 0, 72, 0, 0, 0]), Ok(NodeId::numeric(0, 72)));
    for form in [0x06, 0x40, 0x80, 0x41, 0xFF] {
        assert_eq!(
            decode::<NodeId>(&[form, 0, 0, 0, 0, 0, 0]),
            Err(DecodeError::Malformed("node id form"))
        );
    }
}

#[test]
fn expanded_node_ids_carry_flags() {
    let id = ExpandedNodeId {
        node_id: NodeId::numeric(0, 7),
        namespace_uri: UaString::from("u"),
        server_index: 2,
    };
    assert_eq!(encode(&id), [0xC0, 7, 1, 0, 0, 0, b'u', 2, 0, 0, 0]);
    assert_eq!(decode::<ExpandedNodeId>(&encode(&id)), Ok(id));
}

#[test]
fn node_ids_as_text() {
    for text in [
        "i=85",
        "ns=2;s=Var",
        "ns=2;s=a;b=c",
        "g=72919B91-EFF8-7A0D-925A-0228010B3401",
        "ns=7;b=Zm9v",
        "s=",
        "ns=65535;i=4294967295",
    ] {
        assert_eq!(text.parse::<NodeId>().unwrap().to_string(), text);
    }
    for bad in [
        "",
        "85",
        "ns=2",
        "ns=65536;i=1",
        "ns=-1;i=1",
        "i=+1",
        "i=4294967296",
        "x=1",
        "g=1",
        "b=?",
        "ns=+1;i=1",
        "nsu=x;i=1",
    ] {
        assert!(bad.parse::<NodeId>().is_err(), "{bad}");
    }
    for text in ["svr=3;nsu=http://x%3B%25/;s=y", "nsu=u;i=1", "ns=4;i=1", "i=1"] {
        assert_eq!(text.parse::<ExpandedNodeId>().unwrap().to_string(), text);
    }
    assert!("0:x".parse::<NodeId>().is_err());
    assert!(NodeId::string(0, "").is_null() && !NodeId::string(1, "").is_null());
    assert_eq!(QualifiedName::new(3, "Name").to_string(), "3:Name");
}

#[test]
fn localized_text_masks() {
    assert_eq!(encode(&LocalizedText::NULL), [0]);
    assert_eq!(encode(&LocalizedText::plain("")), [2, 0, 0, 0, 0]);
    assert_eq!(encode(&LocalizedText::new("e", UaString::NULL)), [1, 1, 0, 0, 0, b'e']);
    assert_eq!(
        encode(&LocalizedText::new("e", "x")),
        [3, 1, 0, 0, 0, b'e', 1, 0, 0, 0, b'x']
    );
}

#[test]
fn date_time_is_clamped_at_both_ends() {
    let last = 2_650_467_743_990_000_000_i64;
    for (wire, ticks) in [
        (i64::MIN, 0),
        (-1, 0),
        (0, 0),
        (1, 1),
        (last - 1, last - 1),
        (last, i64::MAX),
        (last + 1, i64::MAX),
        (i64::MAX, i64::MAX),
    ] {
        let time = decode::<DateTime>(&wire.to_le_bytes()).unwrap();
        assert_eq!(time.ticks(), ticks, "{wire}");
        assert_eq!(encode(&time), ticks.to_le_bytes());
    }
    assert_eq!(DateTime::from_unix_nanos(i128::MIN), DateTime::MIN);
    assert_eq!(DateTime::from_unix_nanos(i128::MAX), DateTime::MAX);
    assert_eq!(DateTime::from_unix_nanos(0).ticks(), 116_444_736_000_000_000);
    assert_eq!(DateTime::from_unix_nanos(-1).ticks(), 116_444_735_999_999_999);
    let beyond_i64_nanos = DateTime::from_system_time(UNIX_EPOCH + Duration::from_secs(9_300_000_000));
    assert_eq!(beyond_i64_nanos.to_string(), "2264-09-14T21:20:00Z");
    assert_eq!(
        DateTime::from_system_time(UNIX_EPOCH - Duration::from_secs(1)).to_string(),
        "1969-12-31T23:59:59Z"
    );
    assert_eq!(DateTime::MIN.to_string(), "1601-01-01T00:00:00Z");
    assert_eq!(DateTime::MAX.to_string(), "9999-12-31T23:59:59Z");
    assert_eq!(
        DateTime::from_ticks(last - 1).to_string(),
        "9999-12-31T23:59:58.9999999Z"
    );
    assert_eq!(
        DateTime::from_unix_nanos(951_782_400_500_000_000).to_string(),
        "2000-02-29T00:00:00.5Z"
    );
    assert_eq!(
        DateTime::from_ticks(5).saturating_sub(Duration::from_secs(1)),
        DateTime::MIN
    );
    assert_eq!(DateTime::MAX.saturating_add(Duration::MAX), DateTime::MAX);
    assert_eq!(
        DateTime::from_ticks(15).saturating_since(DateTime::from_ticks(4)),
        Duration::from_nanos(1_100)
    );
    assert_eq!(
        DateTime::MAX.saturating_since(DateTime::MIN),
        Duration::from_secs(265_046_774_399)
    );
}

#[test]
fn data_value_leaves_out_what_is_default() {
    let value = DataValue {
        status: Some(StatusCode::GOOD),
        source_timestamp: Some(DateTime::MIN),
        source_picoseconds: Some(5),
        server_timestamp: Some(DateTime::from_ticks(1)),
        server_picoseconds: Some(0),
        ..DataValue::new(7_u8)
    };
    assert_eq!(encode(&value), [0x09, 3, 7, 1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(encode(&DataValue::default()), [0]);
    assert_eq!(
        encode(&DataValue::from_status(StatusCode::BAD_NODE_ID_UNKNOWN)),
        [2, 0, 0, 0x34, 0x80]
    );
    let picoseconds = decode::<DataValue>(&[0x14, 1, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]).unwrap();
    assert_eq!(picoseconds.source_picoseconds, Some(9_999));
    assert_eq!(decode::<DataValue>(&[0x10, 1, 0]).unwrap(), DataValue::default());
    assert_eq!(decode::<DataValue>(&[0x02, 0, 0, 0, 0]).unwrap(), DataValue::default());
}

#[test]
fn matrices_are_checked() {
    let matrix = Variant::from(Array::matrix(ArrayValues::from(vec![1_u8, 2, 3, 4]), vec![2, 2]).unwrap());
    let bytes = [0xC3, 4, 0, 0, 0, 1, 2, 3, 4, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0];
    assert_eq!(encode(&matrix), bytes);
    assert_eq!(decode::<Variant>(&bytes).unwrap(), matrix);
    assert_eq!(matrix.rank(), 2);
    let with = |count: i32, dimensions: &[i32]| {
        let mut bytes = vec![0xC3];
        bytes.extend(count.to_le_bytes());
        bytes.extend(vec![0; usize::try_from(count.max(0)).unwrap()]);
        bytes.extend(i32::try_from(dimensions.len()).unwrap().to_le_bytes());
        bytes.extend(dimensions.iter().flat_map(|length| length.to_le_bytes()));
        decode::<Variant>(&bytes)
    };
    for dimensions in [
        &[0, 0][..],
        &[2, 3],
        &[-2, -2],
        &[4, 0],
        &[i32::MAX, i32::MAX],
        &[i32::MAX, i32::MAX, 4, 4],
        &[65_536, 65_536],
        &[1 << 30, 1 << 30, 16],
        &[3],
        &[-4],
        &[0],
    ] {
        let error = with(4, dimensions).unwrap_err();
        assert_eq!(error.status(), StatusCode::BAD_DECODING_ERROR, "{dimensions:?}");
    }
    assert!(with(0, &[0, 0]).is_err());
    assert_eq!(with(4, &[4]).unwrap(), Variant::from(vec![0_u8; 4]));
    assert_eq!(with(4, &[]).unwrap(), Variant::from(vec![0_u8; 4]));
    assert_eq!(with(-1, &[]).unwrap(), Variant::from(Vec::<u8>::new()));
    // Dimensions without the array bit, a null with the array bit.
    assert!(decode::<Variant>(&[0x43, 1]).is_err());
    assert!(decode::<Variant>(&[0x80, 0, 0, 0, 0]).is_err());
    // What cannot be written as a matrix is written as an array.
    let empty = Variant::from(Array {
        values: ArrayValues::from(Vec::<u8>::new()),
        dimensions: vec![0, 3],
    });
    assert_eq!(encode(&empty), [0x83, 0, 0, 0, 0]);
    let wrong = Variant::from(Array {
        values: ArrayValues::from(vec![1_u8]),
        dimensions: vec![2, 3],
    });
    assert_eq!(encode(&wrong), [0x83, 1, 0, 0, 0, 1]);
    assert!(Array::matrix(ArrayValues::from(vec![1_u8]), vec![2, 3]).is_err());
    assert!(Array::matrix(ArrayValues::from(vec![1_u8]), vec![u32::MAX; 8]).is_err());
}

#[test]
fn reserved_types_are_byte_strings_and_others_are_errors() {
    for id in 26..=31_u8 {
        assert_eq!(
            decode::<Variant>(&[id, 1, 0, 0, 0, 9]).unwrap(),
            Variant::from(ByteString::from(&[9]))
        );
        let array = decode::<Variant>(&[id | 0x80, 1, 0, 0, 0, 1, 0, 0, 0, 9]).unwrap();
        assert_eq!(array, Variant::from(vec![ByteString::from(&[9])]));
    }
    for id in 32..64_u8 {
        assert!(decode::<Variant>(&[id, 0, 0, 0, 0]).is_err());
        assert!(decode::<Variant>(&[id | 0x80, 0, 0, 0, 0]).is_err());
    }
    assert_eq!(
        decode::<Variant>(&[24, 0]),
        Err(DecodeError::Malformed("variant in a variant"))
    );
}

#[test]
fn nan_keeps_its_payload_and_is_no_change() {
    let nan = f64::from_bits(0x7FF8_0000_DEAD_BEEF);
    let Variant::Double(back) = decode::<Variant>(&encode(&Variant::from(nan))).unwrap() else {
        panic!("not a double");
    };
    assert_eq!(back.to_bits(), nan.to_bits());
    let (a, b) = (Variant::from(f64::NAN), Variant::from(f64::NAN));
    assert!(a.is_same(&b) && a != b);
    assert!(!Variant::from(0.0).is_same(&Variant::from(-0.0)));
    assert!(Variant::from(vec![f32::NAN]).is_same(&Variant::from(vec![f32::NAN])));
    assert!(!Variant::from(vec![f32::NAN]).is_same(&Variant::from(vec![f32::NAN; 2])));
}

#[test]
fn extension_objects_keep_what_they_do_not_know() {
    assert_eq!(encode(&ExtensionObject::NULL), [0, 0, 0]);
    let unknown = [0x01, 3, 0x39, 0x30, 1, 3, 0, 0, 0, 1, 2, 3];
    assert_eq!(encode(&decode::<ExtensionObject>(&unknown).unwrap()), unknown);
    // A null body reads, and is written as an empty one.
    let null_body = decode::<ExtensionObject>(&[0, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF]).unwrap();
    assert_eq!(encode(&null_body), [0, 0, 1, 0, 0, 0, 0]);
    assert!(decode::<ExtensionObject>(&[0, 0, 3]).is_err());
    let read = ReadValueId {
        node_id: NodeId::numeric(0, 2258),
        attribute_id: 13,
        ..ReadValueId::default()
    };
    let mut object = ExtensionObject::from_structure(&read);
    assert_eq!(object.type_id, NodeId::numeric(0, ReadValueId::ENCODING_ID));
    assert_eq!(object.decode_as::<ReadValueId>(), Ok(read.clone()));
    assert_eq!(
        object.decode_as::<backplane_types::Range>(),
        Err(DecodeError::UnexpectedType)
    );
    assert_eq!(
        object.decode_with::<ReadValueId>(DecodeLimits::DEFAULT, 100),
        Err(DecodeError::TooDeep)
    );
    let mut direct = Vec::new();
    backplane_types::Encoder::new(&mut direct).extension_object(&read);
    assert_eq!(direct, encode(&object));
    let mut body = object.binary().unwrap().to_vec();
    body.push(0);
    object.body = ExtensionBody::Binary(ByteString::from(body));
    assert_eq!(
        object.decode_as::<ReadValueId>(),
        Err(DecodeError::Malformed("extension object length"))
    );
}
