//! Requests read in place are the requests that the decoders see, and cost no allocation; responses written in place are the ones that
//! the structures encode to.
#![allow(clippy::unwrap_used)]

mod common;

use allocation_counter::measure;
use backplane_types::service::RequestKind;
use backplane_types::view::{
    BrowseNextView, BrowseView, CallView, DecodeRef, IdentifierRef, ListView, NodeIdBytes, NodeIdsView, PublishView,
    ReadValueIdBytes, ReadValueIdRef, ReadView, RequestPeek, TranslateView, WriteValueBytes, WriteValueRef, WriteView,
};
use backplane_types::{
    AttributeId, BinaryDecode, BinaryEncode, BrowseDescription, BrowseDirection, BrowseNextRequest, BrowsePath,
    BrowseRequest, ByteString, CallMethodRequest, CallRequest, DataValue, DataValueHead, DateTime, DecodeLimits,
    Decoder, Encoder, Guid, NodeId, NodeIdRef, PublishRequest, QualifiedName, ReadRequest, ReadResponse, ReadValueId,
    RegisterNodesRequest, RelativePath, RelativePathElement, RequestHeader, ResponseHeader, ServiceFault, StatusCode,
    Structure, SubscriptionAcknowledgement, TimestampsToReturn, TranslateBrowsePathsToNodeIdsRequest, UaString,
    Variant, WriteRequest, WriteValue,
};
use common::encode;
use proptest::prelude::*;

const LIMITS: DecodeLimits = DecodeLimits::DEFAULT;

fn header() -> RequestHeader {
    RequestHeader {
        authentication_token: NodeId::opaque(0, &[7; 32]),
        timestamp: DateTime::from_unix_nanos(1_700_000_000_000_000_000),
        request_handle: 77,
        return_diagnostics: 1,
        audit_entry_id: UaString::from("audit"),
        timeout_hint: 5_000,
        ..RequestHeader::default()
    }
}

/// A message as it stands in a chunk: type id, then the request.
fn message<T: Structure>(request: &T) -> Vec<u8> {
    let mut bytes = encode(&NodeId::standard(T::ENCODING_ID));
    bytes.extend(encode(request));
    bytes
}

fn nodes() -> Vec<NodeId> {
    vec![
        NodeId::numeric(0, 2258),
        NodeId::string(2, "Demo.Static.Scalar.Double"),
        NodeId::guid(3, Guid([9; 16])),
        NodeId::opaque(4, b"opaque"),
        NodeId::NULL,
    ]
}

fn read_request() -> ReadRequest {
    ReadRequest {
        request_header: header(),
        max_age: 2_000.0,
        timestamps_to_return: TimestampsToReturn::BOTH,
        nodes_to_read: nodes()
            .into_iter()
            .map(|node_id| ReadValueId {
                node_id,
                attribute_id: AttributeId::VALUE.0,
                index_range: UaString::from("1:2"),
                data_encoding: QualifiedName::from("Default Binary"),
            })
            .collect(),
    }
}

#[test]
fn peek_reads_type_and_header_only() {
    let bytes = message(&read_request());
    let cost = measure(|| {
        let peek = RequestPeek::parse(&bytes, LIMITS).unwrap();
        assert_eq!(RequestKind::from_encoding_id(peek.type_id), Some(RequestKind::Read));
        assert_eq!(peek.header.request_handle, 77);
        assert_eq!(peek.header.audit_entry_id.text(), "audit");
        assert_eq!(peek.header.timeout_hint, 5_000);
    });
    assert_eq!(cost.count_total, 0);
    let peek = RequestPeek::parse(&bytes, LIMITS).unwrap();
    assert_eq!(peek.header.to_owned(), header());
    let start = bytes.len() - peek.body.len();
    for end in 0..start {
        assert!(RequestPeek::parse(&bytes[..end], LIMITS).is_err());
    }
    assert!(RequestPeek::parse(&bytes[..start], LIMITS).is_ok());
    let foreign = [&[0x01, 5, 1, 0], &bytes[4..]].concat();
    assert_eq!(RequestPeek::parse(&foreign, LIMITS).unwrap().type_id, 0);
}

#[test]
fn read_in_place() {
    let request = read_request();
    let bytes = message(&request);
    let body = RequestPeek::parse(&bytes, LIMITS).unwrap().body;
    let cost = measure(|| {
        let view = ReadView::parse(body, LIMITS).unwrap();
        assert_eq!(view.max_age.to_bits(), 2_000.0_f64.to_bits());
        assert_eq!(view.timestamps_to_return, TimestampsToReturn::BOTH);
        assert_eq!(view.nodes_to_read.len(), 5);
        for (operation, expected) in view.operations().zip(&request.nodes_to_read) {
            let operation = operation.unwrap();
            assert!(operation.node_id == expected.node_id);
            assert_eq!(operation.attribute_id, AttributeId::VALUE);
            assert_eq!(operation.index_range.text(), "1:2");
            assert!(operation.data_encoding == expected.data_encoding);
        }
    });
    assert_eq!(cost.count_total, 0);
    for end in 0..body.len() {
        assert!(ReadView::parse(&body[..end], LIMITS).is_err());
    }
    // Bytes after the request are not looked at.
    assert!(ReadView::parse(&[body, &[1, 2, 3]].concat(), LIMITS).is_ok());
}

#[test]
fn write_in_place_decodes_values_on_demand() {
    let values = [
        DataValue::new(1.5),
        DataValue {
            status: Some(StatusCode::UNCERTAIN),
            source_timestamp: Some(DateTime::from_ticks(5)),
            ..DataValue::new(
                vec!["a".to_owned(), "b".to_owned()]
                    .into_iter()
                    .map(UaString::from)
                    .collect::<Vec<_>>(),
            )
        },
        DataValue::default(),
    ];
    let request = WriteRequest {
        request_header: header(),
        nodes_to_write: nodes()
            .into_iter()
            .zip(values.clone())
            .map(|(node_id, value)| WriteValue {
                node_id,
                attribute_id: AttributeId::VALUE.0,
                index_range: UaString::NULL,
                value,
            })
            .collect(),
    };
    let bytes = message(&request);
    let body = RequestPeek::parse(&bytes, LIMITS).unwrap().body;
    let view = WriteView::parse(body, LIMITS).unwrap();
    for (operation, expected) in view.operations().zip(&request.nodes_to_write) {
        let operation = operation.unwrap();
        assert_eq!(operation.value.to_owned().unwrap(), expected.value);
        assert_eq!(operation.value.head, expected.value.head());
        assert!(operation.index_range.is_null());
    }
    let cost = measure(|| {
        let view = WriteView::parse(body, LIMITS).unwrap();
        let first = view.operations().next().unwrap().unwrap();
        assert_eq!(first.value.value(), Ok(Variant::from(1.5)));
    });
    assert_eq!(cost.count_total, 0);
    for end in 0..body.len() {
        assert!(WriteView::parse(&body[..end], LIMITS).is_err());
    }
}

#[test]
fn publish_in_place() {
    let acknowledgements: Vec<_> = (1..4)
        .map(|number| SubscriptionAcknowledgement {
            subscription_id: number,
            sequence_number: number * 10,
        })
        .collect();
    let request = PublishRequest {
        request_header: header(),
        subscription_acknowledgements: acknowledgements.clone(),
    };
    let bytes = message(&request);
    let view = PublishView::parse(RequestPeek::parse(&bytes, LIMITS).unwrap().body, LIMITS).unwrap();
    let read: Vec<_> = view.operations().map(Result::unwrap).collect();
    assert_eq!(read, acknowledgements);
    let none = PublishView::parse(&[0xFF; 4], LIMITS).unwrap();
    assert!(none.acknowledgements.is_empty() && none.operations().next().is_none());
    assert!(PublishView::parse(&[0xFF, 0xFF, 0xFF, 0x7F], LIMITS).is_err());
}

#[test]
fn browse_in_place() {
    let request = BrowseRequest {
        request_header: header(),
        requested_max_references_per_node: 10,
        nodes_to_browse: nodes()
            .into_iter()
            .map(|node_id| BrowseDescription {
                node_id,
                browse_direction: BrowseDirection::INVERSE,
                reference_type_id: NodeId::standard(33),
                include_subtypes: true,
                node_class_mask: 3,
                result_mask: 63,
            })
            .collect(),
        ..BrowseRequest::default()
    };
    let bytes = message(&request);
    let view = BrowseView::parse(RequestPeek::parse(&bytes, LIMITS).unwrap().body, LIMITS).unwrap();
    assert!(view.view_id.is_null());
    assert_eq!(view.requested_max_references_per_node, 10);
    for (operation, expected) in view.operations().zip(&request.nodes_to_browse) {
        let operation = operation.unwrap();
        assert!(operation.node_id == expected.node_id && operation.reference_type_id == expected.reference_type_id);
        assert_eq!(operation.browse_direction, BrowseDirection::INVERSE);
        assert!(operation.include_subtypes);
        assert_eq!((operation.node_class_mask, operation.result_mask), (3, 63));
    }
    assert_eq!(view.operations().count(), 5);
}

#[test]
fn other_services_in_place() {
    let next = BrowseNextRequest {
        request_header: header(),
        release_continuation_points: true,
        continuation_points: vec![ByteString::from(&[1, 2]), ByteString::NULL],
    };
    let bytes = message(&next);
    let view = BrowseNextView::parse(RequestPeek::parse(&bytes, LIMITS).unwrap().body, LIMITS).unwrap();
    assert!(view.release_continuation_points);
    let points: Vec<_> = view.continuation_points.iter().map(Result::unwrap).collect();
    assert_eq!(points, [Some(&[1, 2][..]), None]);

    let element = |name: &str| RelativePathElement {
        reference_type_id: NodeId::standard(33),
        is_inverse: false,
        include_subtypes: true,
        target_name: QualifiedName::new(1, name),
    };
    let translate = TranslateBrowsePathsToNodeIdsRequest {
        request_header: header(),
        browse_paths: vec![BrowsePath {
            starting_node: NodeId::standard(84),
            relative_path: RelativePath {
                elements: vec![element("a"), element("b")],
            },
        }],
    };
    let bytes = message(&translate);
    let view = TranslateView::parse(RequestPeek::parse(&bytes, LIMITS).unwrap().body, LIMITS).unwrap();
    let path = view.operations().next().unwrap().unwrap();
    assert_eq!(path.starting_node.as_standard(), Some(84));
    let names: Vec<_> = path
        .elements
        .iter()
        .map(|element| element.unwrap().target_name.to_owned())
        .collect();
    assert_eq!(names, [QualifiedName::new(1, "a"), QualifiedName::new(1, "b")]);

    let call = CallRequest {
        request_header: header(),
        methods_to_call: vec![CallMethodRequest {
            object_id: NodeId::standard(2253),
            method_id: NodeId::standard(11492),
            input_arguments: vec![Variant::from(7_u32), Variant::from("x")],
        }],
    };
    let bytes = message(&call);
    let view = CallView::parse(RequestPeek::parse(&bytes, LIMITS).unwrap().body, LIMITS).unwrap();
    let method = view.operations().next().unwrap().unwrap();
    let arguments: Vec<_> = method
        .input_arguments
        .iter()
        .map(|value| value.unwrap().decode().unwrap())
        .collect();
    assert_eq!(arguments, call.methods_to_call[0].input_arguments);

    let register = RegisterNodesRequest {
        request_header: header(),
        nodes_to_register: nodes(),
    };
    let bytes = message(&register);
    let view = NodeIdsView::parse(RequestPeek::parse(&bytes, LIMITS).unwrap().body, LIMITS).unwrap();
    let ids: Vec<_> = view.nodes.iter().map(|id| id.unwrap().to_owned()).collect();
    assert_eq!(ids, nodes());
}

#[test]
fn lists_above_the_limit_are_refused() {
    let limits = DecodeLimits {
        max_array_length: 2,
        ..LIMITS
    };
    let body = encode(&vec![1_u32, 2, 3]);
    let list =
        <ListView<'_, u32> as backplane_types::view::DecodeRef<'_>>::decode_ref(&mut Decoder::new(&body, limits));
    assert_eq!(list.unwrap_err().status(), StatusCode::BAD_ENCODING_LIMITS_EXCEEDED);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// A borrowed id finds what was stored under an owned one, and only that.
    #[test]
    fn borrowed_ids_look_up_owned_ones(ids in prop::collection::vec(common::node_id(), 1..20), other in common::node_id()) {
        let map: hashbrown::HashMap<NodeId, usize> = ids.iter().cloned().zip(0..).collect();
        for id in &ids {
            let bytes = encode(id);
            let borrowed = NodeIdRef::decode(&mut Decoder::new(&bytes, LIMITS)).unwrap();
            prop_assert_eq!(map.get(&borrowed), map.get(id));
            prop_assert!(map.contains_key(&borrowed));
            prop_assert_eq!(borrowed.to_owned(), id.clone());
            let unchecked = NodeIdBytes::decode(&mut Decoder::new(&bytes, LIMITS)).unwrap();
            prop_assert_eq!(map.get(&unchecked), map.get(id));
            prop_assert_eq!(unchecked.check(), Ok(borrowed));
            prop_assert_eq!((unchecked == other, unchecked.namespace()), (*id == other, id.namespace));
            prop_assert_eq!(borrowed.to_string(), id.to_string());
        }
        prop_assert_eq!(map.contains_key(&other.as_node_id_ref()), ids.contains(&other));
    }

    /// The same for writes; and what passes the check is what can be decoded.
    #[test]
    fn writes_are_the_same_unchecked(
        node_id in common::node_id(),
        index_range in prop_oneof![Just(UaString::NULL), common::text()],
        value in common::data_value(),
        flaw in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let mut bytes = encode(&WriteValue { node_id, attribute_id: 13, index_range, value });
        if let Some((place, value)) = flaw {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        let mut decoder = Decoder::new(&bytes, LIMITS);
        let wanted = WriteValueRef::decode_ref(&mut decoder);
        let mut checker = Decoder::new(&bytes, LIMITS);
        let checked = WriteValueBytes::check(&mut checker).and_then(|(id, attribute)| Ok((id.check()?, attribute)));
        prop_assert_eq!(&checked, &wanted.as_ref().map(|wanted| (wanted.node_id, wanted.attribute_id)).map_err(|error| *error));
        if let Ok(wanted) = wanted {
            prop_assert_eq!(checker.position(), decoder.position());
            let found = WriteValueBytes::decode_ref(&mut Decoder::new(&bytes, LIMITS)).unwrap();
            prop_assert_eq!(found.node_id.check(), Ok(wanted.node_id));
            prop_assert_eq!((found.attribute_id, found.index_range), (wanted.attribute_id, wanted.index_range));
            prop_assert!(found.value.to_owned().unwrap().is_same(&wanted.value.to_owned().unwrap()));
        }
    }

    /// However an operation is read, and whatever is wrong with it, the same comes out of it.
    #[test]
    fn operations_are_the_same_unchecked(
        id in common::node_id(),
        attribute_id in prop_oneof![Just(13u32), any::<u32>()],
        index_range in prop_oneof![Just(UaString::NULL), common::text()],
        data_encoding in prop_oneof![Just(QualifiedName::NULL), common::qualified_name()],
        flaw in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let mut bytes = encode(&ReadValueId { node_id: id, attribute_id, index_range, data_encoding });
        if let Some((place, value)) = flaw {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        let mut decoder = Decoder::new(&bytes, LIMITS);
        let wanted = ReadValueIdRef::decode_ref(&mut decoder);
        let mut unchecked = Decoder::new(&bytes, LIMITS);
        let found = ReadValueIdBytes::decode_ref(&mut unchecked);
        let parts = found.and_then(|found| Ok((found.node_id.check()?, found.attribute_id, found.index_range, found.data_encoding)));
        prop_assert_eq!(&parts, &wanted.map(|wanted| (wanted.node_id, wanted.attribute_id, wanted.index_range, wanted.data_encoding)));
        if parts.is_ok() {
            prop_assert_eq!(unchecked.position(), decoder.position());
        }
        let mut usual = Decoder::new(&bytes, LIMITS);
        match ReadValueIdBytes::usual(&mut usual) {
            Some(id) => {
                prop_assert_eq!(usual.position(), unchecked.position());
                let whole = ReadValueIdBytes::whole_value(id);
                let whole = whole.node_id.check().map(|id| (id, whole.attribute_id, whole.index_range, whole.data_encoding));
                prop_assert_eq!(whole, parts);
            }
            None => {
                prop_assert_eq!(usual.position(), 0);
                let is_usual = parts.is_ok_and(|(id, attribute, range, encoding)| {
                    matches!(id.identifier, IdentifierRef::String(Some(_)))
                        && attribute == AttributeId::VALUE
                        && range.is_null()
                        && encoding.namespace == 0
                        && encoding.name.is_null()
                });
                prop_assert!(!is_usual);
            }
        }
    }
}

#[test]
fn responses_are_written_in_place() {
    let now = DateTime::from_unix_nanos(1_700_000_000_000_000_000);
    let response = ReadResponse {
        response_header: ResponseHeader {
            timestamp: now,
            request_handle: 9,
            ..ResponseHeader::default()
        },
        results: vec![
            DataValue {
                source_timestamp: Some(now),
                ..DataValue::new(1.5)
            },
            DataValue::from_status(StatusCode::BAD_NODE_ID_UNKNOWN),
        ],
        diagnostic_infos: Vec::new(),
    };
    let mut bytes = Vec::with_capacity(256);
    let cost = measure(|| {
        let mut e = Encoder::new(&mut bytes);
        e.response_header(ReadResponse::ENCODING_ID, now, 9, StatusCode::GOOD);
        let mut results = e.open_list();
        let (built_in_type, bits) = Variant::from(1.5).to_bits().unwrap();
        e.scalar_data_value(built_in_type, bits, now.ticks(), 0);
        results.add();
        let bad = DataValueHead {
            status: StatusCode::BAD_NODE_ID_UNKNOWN,
            ..DataValueHead::default()
        };
        e.data_value(&bad, None::<&Variant>);
        results.add();
        e.close_list(results);
        e.empty_list();
    });
    assert_eq!(cost.count_total, 0);
    assert_eq!(bytes, message(&response));
    let decoded = ReadResponse::decode(&mut Decoder::new(&bytes[4..], LIMITS)).unwrap();
    assert_eq!(decoded, response);

    let mut fault = Vec::new();
    Encoder::new(&mut fault).service_fault(now, 9, StatusCode::BAD_SERVICE_UNSUPPORTED);
    let expected = ServiceFault {
        response_header: ResponseHeader {
            timestamp: now,
            request_handle: 9,
            service_result: StatusCode::BAD_SERVICE_UNSUPPORTED,
            ..ResponseHeader::default()
        },
    };
    assert_eq!(fault, message(&expected));
}

#[test]
fn patches_and_truncation_stay_within_the_buffer() {
    let mut bytes = vec![1, 2, 3];
    let mut e = Encoder::new(&mut bytes);
    e.patch_u32(0, 7);
    e.patch_u32(usize::MAX, 7);
    e.u32(5);
    e.patch_u32(3, 6);
    e.truncate(100);
    1_u8.encode(&mut e);
    assert_eq!(bytes, [1, 2, 3, 6, 0, 0, 0, 1]);
}
