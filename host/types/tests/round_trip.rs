//! Every value survives the wire, and every truncated message is an error.
#![allow(clippy::unwrap_used)]

mod common;

use backplane_types::view::{DataValueRef, DecodeRef, VariantRef};
use backplane_types::{
    BinaryDecode, BuiltInType, DataValue, Decimal, DecodeLimits, Decoder, ExpandedNodeId, ExtensionObject, NodeId,
    Variant,
};
use common::{check, decode, encode};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn scalars(a in any::<(bool, i8, u8, i16, u16, i32, u32, i64, u64)>(), bits in any::<(u32, u64)>()) {
        check(&a.0); check(&a.1); check(&a.2); check(&a.3); check(&a.4); check(&a.5); check(&a.6); check(&a.7); check(&a.8);
        check(&f32::from_bits(bits.0));
        check(&f64::from_bits(bits.1));
    }

    #[test]
    fn texts(text in common::text(), bytes in common::bytes(), xml in common::xml()) {
        prop_assert_eq!(&decode::<backplane_types::UaString>(&encode(&text)).unwrap(), &text);
        prop_assert_eq!(&decode::<backplane_types::ByteString>(&encode(&bytes)).unwrap(), &bytes);
        check(&text); check(&bytes); check(&xml);
    }

    #[test]
    fn small_types(guid in common::guid(), time in common::date_time(), status in common::status()) {
        check(&guid); check(&time); check(&status);
        prop_assert_eq!(guid.to_string().parse(), Ok(guid));
    }

    #[test]
    fn node_ids(id in common::node_id(), expanded in common::expanded_node_id()) {
        prop_assert_eq!(&decode::<NodeId>(&encode(&id)).unwrap(), &id);
        prop_assert_eq!(&decode::<ExpandedNodeId>(&encode(&expanded)).unwrap(), &expanded);
        check(&id); check(&expanded);
    }

    #[test]
    fn names(name in common::qualified_name(), text in common::localized_text()) {
        prop_assert_eq!(&decode::<backplane_types::QualifiedName>(&encode(&name)).unwrap(), &name);
        prop_assert_eq!(&decode::<backplane_types::LocalizedText>(&encode(&text)).unwrap(), &text);
        check(&name); check(&text);
    }

    #[test]
    fn objects(object in common::extension_object(), info in common::diagnostic_info()) {
        prop_assert_eq!(&decode::<ExtensionObject>(&encode(&object)).unwrap(), &object);
        prop_assert_eq!(&decode::<backplane_types::DiagnosticInfo>(&encode(&info)).unwrap(), &info);
        check(&object); check(&info);
    }

    #[test]
    fn variants(value in common::variant()) {
        let decoded: Variant = decode(&encode(&value)).unwrap();
        prop_assert!(decoded.is_same(&value), "{:?} {:?}", decoded, value);
        check(&value);
    }

    #[test]
    fn data_values(value in common::data_value()) {
        let decoded: DataValue = decode(&encode(&value)).unwrap();
        prop_assert!(decoded.is_same(&value));
        prop_assert_eq!(decoded.status, value.status);
        check(&value);
    }

    /// What reads in place accepts what the decoder accepts, consumes as much, and sees the same.
    #[test]
    fn views_agree_with_decoders(value in common::data_value(), damage in any::<(prop::sample::Index, u8)>()) {
        let mut bytes = encode(&value);
        let place = damage.0.index(bytes.len());
        for damaged in [false, true] {
            if damaged {
                bytes[place] = damage.1;
            }
            let mut owned = Decoder::new(&bytes, DecodeLimits::DEFAULT);
            let mut viewed = owned.clone();
            let from_owned = DataValue::decode(&mut owned);
            let from_view = DataValueRef::decode_ref(&mut viewed);
            prop_assert_eq!(from_owned.is_ok(), from_view.is_ok(), "{:?} {:?}", from_owned, from_view);
            if let (Ok(from_owned), Ok(from_view)) = (from_owned, from_view) {
                prop_assert_eq!(owned.position(), viewed.position());
                prop_assert!(from_view.to_owned().unwrap().is_same(&from_owned));
            } else {
                prop_assert!(damaged);
            }
        }
    }

    /// Bytes that are no message are an error, never a panic; what decodes can be encoded and decoded again.
    #[test]
    fn noise(bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0..32_u8, 128..160_u8], 0..64)) {
        let mut d = Decoder::new(&bytes, DecodeLimits::DEFAULT);
        let mut viewed = d.clone();
        let decoded = Variant::decode(&mut d);
        let view = VariantRef::decode_ref(&mut viewed);
        prop_assert_eq!(decoded.is_ok(), view.is_ok());
        if let Ok(value) = decoded {
            prop_assert_eq!(view.unwrap().bytes().len(), d.position());
            check(&value);
        }
    }

    #[test]
    fn decimals(value in any::<i128>(), small in any::<i16>(), scale in any::<i16>()) {
        for value in [value, i128::from(small), 0, -1, i128::MAX, i128::MIN] {
            let decimal = Decimal::new(value, scale);
            let back = Decimal::from_extension_object(&decimal.to_extension_object()).unwrap();
            prop_assert_eq!(&back, &decimal);
            prop_assert_eq!(back.unscaled(), Some(value));
        }
    }

    #[test]
    fn bits_of_scalars(value in common::variant()) {
        if let Some((built_in_type, bits)) = value.to_bits() {
            prop_assert!(Variant::from_bits(built_in_type, bits).unwrap().is_same(&value));
            for (source, server) in [(0, 0), (0, 9), (7, 0), (7, 9)] {
                let at = |ticks| Some(backplane_types::DateTime::from_ticks(ticks));
                let whole = DataValue { source_timestamp: at(source), server_timestamp: at(server), ..DataValue::new(value.clone()) };
                let mut direct = vec![1];
                backplane_types::Encoder::new(&mut direct).scalar_data_value(built_in_type, bits, source, server);
                prop_assert_eq!(&direct[1..], encode(&whole));
            }
        }
    }
}

#[test]
fn every_type_has_an_empty_array() {
    for built_in_type in BuiltInType::ALL {
        let array = Variant::from(backplane_types::ArrayValues::empty(built_in_type));
        assert_eq!(array.built_in_type(), Some(built_in_type));
        assert_eq!(array.rank(), 1);
        assert_eq!(decode::<Variant>(&encode(&array)).unwrap(), array);
        assert_eq!(BuiltInType::from_id(built_in_type.id()), Some(built_in_type));
    }
    assert_eq!(BuiltInType::from_id(0), None);
    assert_eq!(BuiltInType::from_id(26), None);
}

/// Different bytes for the same thing become the same value, so that what was decoded once is the same after it was sent on.
#[test]
fn what_stands_for_nothing_reads_as_nothing() {
    let nothing = DataValue::default();
    let status_good = [2, 0, 0, 0, 0];
    let times_zero = [&[0x3C][..], &[0; 8], &[5, 0], &[0; 8], &[6, 0]].concat();
    let picoseconds_alone = [0x30, 5, 0, 6, 0];
    for bytes in [&status_good[..], &times_zero, &picoseconds_alone] {
        let value: DataValue = decode(bytes).unwrap();
        assert_eq!(value, nothing, "{bytes:?}");
        let view = DataValueRef::decode_ref(&mut Decoder::new(bytes, DecodeLimits::DEFAULT)).unwrap();
        assert_eq!(view.to_owned(), Ok(nothing.clone()));
    }
    let picoseconds_zero = [&[0x14, 9][..], &[0; 9]].concat();
    assert_eq!(decode::<DataValue>(&picoseconds_zero).unwrap().source_picoseconds, None);

    for kind in [1, 2] {
        let null: ExtensionObject = decode(&[0, 7, kind, 0xFF, 0xFF, 0xFF, 0xFF]).unwrap();
        let empty: ExtensionObject = decode(&[0, 7, kind, 0, 0, 0, 0]).unwrap();
        assert_eq!(null, empty);
        assert_eq!(encode(&null), [0, 7, kind, 0, 0, 0, 0]);
    }
}

/// The index of a node id with an empty namespace URI counts, and is not lost on the way.
#[test]
fn an_empty_namespace_uri_is_none() {
    let local = ExpandedNodeId::from(NodeId::numeric(2, 5));
    let odd = ExpandedNodeId {
        namespace_uri: "".into(),
        ..local.clone()
    };
    assert!(odd.is_local());
    assert_eq!(encode(&odd), encode(&local));
    assert_eq!(odd.to_string(), "ns=2;i=5");
    let bytes = [0x82, 2, 0, 5, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(decode::<ExpandedNodeId>(&bytes), Ok(local));
    assert!("nsu=;i=5".parse::<ExpandedNodeId>().is_err());

    let both: ExpandedNodeId = decode(&[0x82, 2, 0, 5, 0, 0, 0, 1, 0, 0, 0, b'u']).unwrap();
    assert_eq!(both.to_string(), "nsu=u;i=5");
    assert_eq!(both.node_id.namespace, 0, "with a URI the index means nothing");
}
