//! Every case of the contract's values, there and back, and what is refused.

use backplane_types::ExtensionBody;

use super::*;

/// A plugin that knows OPC UA, and two of the server's namespaces in another order than the server.
fn names() -> Namespaces {
    let mut names = Namespaces::new();
    assert_eq!((names.local(7), names.local(3)), (Some(1), Some(2)));
    names
}

const NOW: DateTime = DateTime::from_ticks(1_000);

fn one(values: ArrayValues) -> Variant {
    let dimensions = Vec::new();
    Variant::Array(Box::new(Array { values, dimensions }))
}

fn guest_id(namespace: u16, identifier: ua::Identifier) -> ua::NodeId {
    ua::NodeId { namespace, identifier }
}

/// The types of the contract know no equality; what they show is exact.
fn shown(value: &ua::Value) -> String {
    format!("{value:?}")
}

fn there_and_back(value: ua::Value, expected: Variant) {
    let mut names = names();
    let before = shown(&value);
    let there = variant(&names, value).unwrap();
    assert_eq!(there, expected);
    assert_eq!(shown(&to_guest(&mut names, there).unwrap()), before);
}

#[test]
fn every_case_has_its_type() {
    let text = |text: &str| UaString::from(text.to_owned());
    let bytes = |bytes: &[u8]| ByteString::from(bytes.to_vec());
    there_and_back(ua::Value::Empty, Variant::Empty);
    there_and_back(ua::Value::Boolean(true), Variant::Boolean(true));
    there_and_back(ua::Value::Sbyte(-8), Variant::SByte(-8));
    there_and_back(ua::Value::Byte(200), Variant::Byte(200));
    there_and_back(ua::Value::Int16(-300), Variant::Int16(-300));
    there_and_back(ua::Value::Uint16(60_000), Variant::UInt16(60_000));
    there_and_back(ua::Value::Int32(i32::MIN), Variant::Int32(i32::MIN));
    there_and_back(ua::Value::Uint32(u32::MAX), Variant::UInt32(u32::MAX));
    there_and_back(ua::Value::Int64(i64::MIN), Variant::Int64(i64::MIN));
    there_and_back(ua::Value::Uint64(u64::MAX), Variant::UInt64(u64::MAX));
    there_and_back(ua::Value::Float(1.5), Variant::Float(1.5));
    there_and_back(ua::Value::Double(-0.0), Variant::Double(-0.0));
    there_and_back(ua::Value::Text("é".into()), Variant::String(text("é")));
    there_and_back(ua::Value::Time(5), Variant::DateTime(DateTime::from_ticks(5)));
    there_and_back(
        ua::Value::Guid((0..16).collect()),
        Variant::Guid(Guid(std::array::from_fn(|i| u8::try_from(i).unwrap()))),
    );
    there_and_back(ua::Value::Bytes(vec![0, 255]), Variant::ByteString(bytes(&[0, 255])));
    there_and_back(
        ua::Value::Status(0x8034_0000),
        Variant::StatusCode(StatusCode(0x8034_0000)),
    );
    let name = ua::QualifiedName {
        namespace: 1,
        name: "n".into(),
    };
    let expected = QualifiedName {
        namespace: 7,
        name: text("n"),
    };
    there_and_back(ua::Value::Qualified(name), Variant::QualifiedName(Box::new(expected)));
    let localized = ua::LocalizedText {
        locale: "de".into(),
        text: "t".into(),
    };
    let expected = LocalizedText {
        locale: text("de"),
        text: text("t"),
    };
    there_and_back(
        ua::Value::Localized(localized),
        Variant::LocalizedText(Box::new(expected)),
    );
    there_and_back(
        ua::Value::Booleans(vec![true, false]),
        one(ArrayValues::Boolean(vec![true, false])),
    );
    there_and_back(ua::Value::Int32s(vec![-1]), one(ArrayValues::Int32(vec![-1])));
    there_and_back(ua::Value::Uint32s(vec![1]), one(ArrayValues::UInt32(vec![1])));
    there_and_back(ua::Value::Int64s(vec![-1]), one(ArrayValues::Int64(vec![-1])));
    there_and_back(ua::Value::Uint64s(Vec::new()), one(ArrayValues::UInt64(Vec::new())));
    there_and_back(ua::Value::Floats(vec![0.5]), one(ArrayValues::Float(vec![0.5])));
    there_and_back(ua::Value::Doubles(vec![0.5]), one(ArrayValues::Double(vec![0.5])));
    there_and_back(
        ua::Value::Texts(vec!["a".into()]),
        one(ArrayValues::String(vec![text("a")])),
    );
}

#[test]
fn node_ids_of_every_kind_have_the_servers_namespace() {
    let guid: Vec<u8> = (0..16).collect();
    for (identifier, expected) in [
        (ua::Identifier::Numeric(5), Identifier::Numeric(5)),
        (
            ua::Identifier::Text("s".into()),
            Identifier::String(UaString::from("s".to_owned())),
        ),
        (
            ua::Identifier::Guid(guid.clone()),
            Identifier::Guid(Guid(guid.try_into().unwrap())),
        ),
        (
            ua::Identifier::Opaque(vec![9]),
            Identifier::Opaque(ByteString::from(vec![9])),
        ),
    ] {
        let expected = NodeId {
            namespace: 3,
            identifier: expected,
        };
        there_and_back(
            ua::Value::Node(guest_id(2, identifier)),
            Variant::NodeId(Box::new(expected)),
        );
    }
}

#[test]
fn what_is_no_value_is_refused() {
    let names = names();
    let refused = |value| variant(&names, value).unwrap_err();
    let numeric = || ua::Identifier::Numeric(1);
    assert_eq!(
        refused(ua::Value::Node(guest_id(3, numeric()))),
        StatusCode::BAD_NODE_ID_INVALID
    );
    for length in [0, 15, 17] {
        let guid = || vec![0; length];
        assert_eq!(refused(ua::Value::Guid(guid())), StatusCode::BAD_DECODING_ERROR);
        let id = guest_id(0, ua::Identifier::Guid(guid()));
        assert_eq!(refused(ua::Value::Node(id)), StatusCode::BAD_NODE_ID_INVALID);
    }
    let name = ua::QualifiedName {
        namespace: 9,
        name: String::new(),
    };
    assert_eq!(refused(ua::Value::Qualified(name)), StatusCode::BAD_BROWSE_NAME_INVALID);
    // One Variant exactly: not none, not half a one, not one and a byte more, not of a type that does not exist.
    for bytes in [&[][..], &[6, 1, 0], &[1, 1, 0], &[30, 0]] {
        assert!(refused(ua::Value::Encoded(bytes.to_vec())).is_bad(), "{bytes:?}");
    }
    assert_eq!(
        variant(&names, ua::Value::Encoded(vec![1, 1])),
        Ok(Variant::Boolean(true))
    );
    let foreign = Variant::NodeId(Box::new(NodeId::numeric(3, 1)));
    assert_eq!(
        refused(ua::Value::Encoded(encode(&foreign))),
        StatusCode::BAD_NODE_ID_INVALID
    );
}

#[test]
fn null_texts_and_times_before_all_time_are_told_as_what_they_mean() {
    let mut names = names();
    let mut told = |value| shown(&to_guest(&mut names, value).unwrap());
    assert_eq!(
        told(Variant::String(UaString::NULL)),
        shown(&ua::Value::Text(String::new()))
    );
    assert_eq!(
        told(Variant::ByteString(ByteString::NULL)),
        shown(&ua::Value::Bytes(Vec::new()))
    );
    let without = localized_text(ua::LocalizedText {
        locale: String::new(),
        text: "t".into(),
    });
    assert!(without.locale.is_null() && without.text.text() == "t");
    assert_eq!(
        variant(&names, ua::Value::Time(-5)),
        Ok(Variant::DateTime(DateTime::from_ticks(0)))
    );
    assert_eq!(
        (time(0), time(-1), time(1)),
        (None, None, Some(DateTime::from_ticks(1)))
    );
}

/// One of everything that carries a namespace index, nested, with the indexes that `of` gives for OPC UA and the two others.
fn everything(of: [u16; 3]) -> Variant {
    let id = |namespace: u16| NodeId::numeric(namespace, 1);
    let expanded = |namespace: u16, uri: UaString, server_index: u32| ExpandedNodeId {
        node_id: id(namespace),
        namespace_uri: uri,
        server_index,
    };
    let name = |namespace| QualifiedName {
        namespace,
        name: UaString::from("n".to_owned()),
    };
    let object = |namespace| ExtensionObject {
        type_id: id(namespace),
        // As a NodeId in namespace 9, which nobody has: bodies are not looked into.
        body: ExtensionBody::Binary(ByteString::from(vec![1, 9, 1, 0])),
    };
    let [ua, first, second] = of;
    let value = |value| DataValue {
        value,
        ..DataValue::default()
    };
    one(ArrayValues::Variant(vec![
        Variant::NodeId(Box::new(id(first))),
        Variant::QualifiedName(Box::new(name(second))),
        Variant::ExpandedNodeId(Box::new(expanded(first, UaString::NULL, 0))),
        Variant::ExtensionObject(Box::new(object(second))),
        Variant::DataValue(Box::new(value(Variant::NodeId(Box::new(id(second)))))),
        one(ArrayValues::NodeId(vec![id(ua), id(first), id(second)])),
        one(ArrayValues::QualifiedName(vec![name(first)])),
        one(ArrayValues::ExpandedNodeId(vec![
            expanded(second, UaString::NULL, 0),
            // Of another server, or with its URI written out: this index means nothing, or is the other server's.
            expanded(9, UaString::NULL, 1),
            expanded(9, UaString::from("urn:x".to_owned()), 0),
        ])),
        one(ArrayValues::ExtensionObject(vec![object(first)])),
        one(ArrayValues::DataValue(vec![value(Variant::QualifiedName(Box::new(
            name(first),
        )))])),
        Variant::Array(Box::new(Array {
            values: ArrayValues::NodeId(vec![id(first), id(second)]),
            dimensions: vec![1, 2],
        })),
    ]))
}

#[test]
fn namespaces_in_encoded_values_are_translated_both_ways() {
    let mut names = names();
    // What the decoder makes of it, because a URI and an index do not go together in every encoding.
    let of = |indexes| decode::<Variant>(&encode(&everything(indexes))).unwrap();
    let (plugins, servers) = (of([0, 1, 2]), of([0, 7, 3]));
    let there = variant(&names, ua::Value::Encoded(encode(&plugins))).unwrap();
    assert_eq!(there, servers);
    let ua::Value::Encoded(back) = to_guest(&mut names, there).unwrap() else {
        panic!("an array of Variants has no case of its own");
    };
    assert_eq!(decode::<Variant>(&back).unwrap(), plugins);
}

#[test]
fn an_empty_uri_is_as_none() {
    let names = names();
    let mut id = ExpandedNodeId {
        node_id: NodeId::numeric(1, 1),
        namespace_uri: UaString::from(String::new()),
        server_index: 0,
    };
    translate_expanded(&mut id, &mut |local| names.server(local)).unwrap();
    assert_eq!(id.node_id.namespace, 7);
}

#[test]
fn a_namespace_that_a_guest_has_not_asked_for_gets_an_index() {
    let mut names = names();
    let value = Variant::NodeId(Box::new(NodeId::numeric(12, 1)));
    let told = shown(&to_guest(&mut names, value).unwrap());
    assert_eq!(told, shown(&ua::Value::Node(guest_id(3, ua::Identifier::Numeric(1)))));
    assert_eq!((names.len(), names.server(3)), (4, Ok(12)));
}

#[test]
fn quality_and_times_are_kept_and_filled_in() {
    let mut names = names();
    let from = |status, source_time| ua::DataValue {
        value: ua::Value::Int32(1),
        status,
        source_time,
    };
    let good = data_value(&names, from(0, 0), NOW).unwrap();
    assert_eq!(
        (good.status, good.source_timestamp, good.server_timestamp),
        (None, Some(NOW), Some(NOW))
    );
    let bad = data_value(&names, from(0x8034_0000, 5), NOW).unwrap();
    assert_eq!(bad.status, Some(StatusCode(0x8034_0000)));
    assert_eq!(
        (bad.source_timestamp, bad.server_timestamp),
        (Some(DateTime::from_ticks(5)), Some(NOW))
    );
    let back = to_guest_data_value(&mut names, bad).unwrap();
    assert_eq!((back.status, back.source_time), (0x8034_0000, 5));
    let none = to_guest_data_value(&mut names, DataValue::default()).unwrap();
    assert_eq!(
        (none.status, none.source_time, shown(&none.value)),
        (0, 0, shown(&ua::Value::Empty))
    );
}
