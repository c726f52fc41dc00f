//! Seeds of messages: every request and response as it is by default, the usual ones filled, and those made to hurt.

use backplane_types::service::RequestKind;
use backplane_types::structures::{
    ActivateSessionRequest, AnonymousIdentityToken, ApplicationDescription, AttributeOperand, BrowseDescription,
    BrowseNextRequest, BrowsePath, BrowseRequest, BrowseResponse, BrowseResult, CallMethodRequest, CallRequest,
    ContentFilter, ContentFilterElement, CreateMonitoredItemsRequest, CreateSessionRequest, DataChangeFilter,
    DataChangeNotification, ElementOperand, EventFieldList, EventFilter, EventNotificationList, HistoryReadRequest,
    HistoryReadValueId, LiteralOperand, MonitoredItemCreateRequest, MonitoredItemNotification, MonitoringParameters,
    NotificationMessage, PublishRequest, PublishResponse, ReadRawModifiedDetails, ReadRequest, ReadResponse,
    ReadValueId, ReferenceDescription, RegisterNodesRequest, RelativePath, RelativePathElement, RequestHeader,
    ResponseHeader, ServiceFault, SignatureData, SimpleAttributeOperand, SubscriptionAcknowledgement,
    TranslateBrowsePathsToNodeIdsRequest, UnregisterNodesRequest, UserNameIdentityToken, WriteRequest, WriteValue,
};
use backplane_types::{
    BinaryDecode, BinaryEncode, BrowseDirection, ByteString, DataChangeTrigger, DataValue, DateTime, ExtensionObject,
    FilterOperator, Guid, MonitoringMode, NodeId, QualifiedName, StatusCode, Structure, TimestampsToReturn, UaString,
    Variant,
};

use super::values::{arrays, full_data_value, full_diagnostics, scalars};
use super::wire::{bytes, encode, message, nested_data_values, nested_diagnostics, nested_variants};
use super::{Seed, truncated, with_bad_lengths};
use crate::targets::message::{Half, WithStructure, with_message};

/// The message of a default value.
struct Default;

impl WithStructure for Default {
    type Output = Seed;

    fn run<T: Structure + BinaryDecode + BinaryEncode + PartialEq + std::fmt::Debug + std::default::Default>(
        self,
    ) -> Seed {
        Seed::new(format!("default-{}", T::NAME), message(&T::default()))
    }
}

fn header() -> RequestHeader {
    RequestHeader {
        authentication_token: NodeId::opaque(0, ByteString::from(&[9; 32])),
        timestamp: DateTime::from_ticks(133_000_000_000_000_000),
        request_handle: 17,
        return_diagnostics: 0x3FF,
        audit_entry_id: "audit".into(),
        timeout_hint: 10_000,
        additional_header: ExtensionObject::NULL,
    }
}

fn nodes() -> Vec<NodeId> {
    vec![
        NodeId::standard(2_258),
        NodeId::string(2, "Channel1.Device1.Tag1"),
        NodeId::guid(1, Guid([3; 16])),
        NodeId::opaque(1, ByteString::from(&[1, 2, 3])),
    ]
}

pub(super) fn read() -> ReadRequest {
    let one = |node_id| ReadValueId {
        node_id,
        attribute_id: 13,
        index_range: "0:1".into(),
        data_encoding: QualifiedName::new(0, "Default Binary"),
    };
    ReadRequest {
        request_header: header(),
        max_age: f64::NAN,
        timestamps_to_return: TimestampsToReturn::BOTH,
        nodes_to_read: nodes().into_iter().map(one).collect(),
    }
}

fn write_of(values: impl Iterator<Item = DataValue>) -> WriteRequest {
    let one = |value| WriteValue {
        node_id: NodeId::string(2, "Tag"),
        attribute_id: 13,
        index_range: UaString::NULL,
        value,
    };
    WriteRequest {
        request_header: header(),
        nodes_to_write: values.map(one).collect(),
    }
}

pub(super) fn write() -> WriteRequest {
    write_of(scalars().into_iter().map(|(_, value)| full_data_value(value)))
}

pub(super) fn browse() -> BrowseRequest {
    let one = |node_id| BrowseDescription {
        node_id,
        browse_direction: BrowseDirection(7),
        reference_type_id: NodeId::standard(33),
        include_subtypes: true,
        node_class_mask: 0xFF,
        result_mask: 63,
    };
    BrowseRequest {
        request_header: header(),
        requested_max_references_per_node: u32::MAX,
        nodes_to_browse: nodes().into_iter().map(one).collect(),
        ..BrowseRequest::default()
    }
}

fn browse_next() -> BrowseNextRequest {
    BrowseNextRequest {
        request_header: header(),
        release_continuation_points: true,
        continuation_points: vec![ByteString::NULL, ByteString::from(&[]), ByteString::from(&[7; 9])],
    }
}

fn translate() -> TranslateBrowsePathsToNodeIdsRequest {
    let step = RelativePathElement {
        reference_type_id: NodeId::standard(33),
        is_inverse: false,
        include_subtypes: true,
        target_name: QualifiedName::new(1, "Step"),
    };
    let back = RelativePathElement {
        is_inverse: true,
        ..step.clone()
    };
    let path = BrowsePath {
        starting_node: NodeId::standard(85),
        relative_path: RelativePath {
            elements: vec![step, back],
        },
    };
    TranslateBrowsePathsToNodeIdsRequest {
        request_header: header(),
        browse_paths: vec![path, BrowsePath::default()],
    }
}

pub(super) fn publish() -> PublishRequest {
    let one = |number| SubscriptionAcknowledgement {
        subscription_id: 1,
        sequence_number: number,
    };
    PublishRequest {
        request_header: header(),
        subscription_acknowledgements: [0, 1, u32::MAX].map(one).to_vec(),
    }
}

fn call() -> CallRequest {
    let one = CallMethodRequest {
        object_id: NodeId::standard(2_253),
        method_id: NodeId::standard(11_492),
        input_arguments: arrays().into_iter().map(|(_, value)| value).take(5).collect(),
    };
    CallRequest {
        request_header: header(),
        methods_to_call: vec![one, CallMethodRequest::default()],
    }
}

pub(super) fn create_session() -> CreateSessionRequest {
    CreateSessionRequest {
        request_header: header(),
        client_description: ApplicationDescription {
            application_uri: "urn:client".into(),
            product_uri: "urn:product".into(),
            discovery_urls: vec!["opc.tcp://a:1".into(), UaString::NULL],
            ..ApplicationDescription::default()
        },
        endpoint_url: "opc.tcp://localhost:4840".into(),
        session_name: "session".into(),
        client_nonce: ByteString::from(&[5; 32]),
        client_certificate: ByteString::from(&[0x30, 0x82, 0, 0]),
        requested_session_timeout: f64::INFINITY,
        ..CreateSessionRequest::default()
    }
}

fn activate_session() -> ActivateSessionRequest {
    ActivateSessionRequest {
        request_header: header(),
        client_signature: SignatureData {
            algorithm: "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256".into(),
            signature: ByteString::from(&[1; 16]),
        },
        locale_ids: vec!["en".into(), "".into()],
        user_identity_token: user_name(),
        ..ActivateSessionRequest::default()
    }
}

fn user_name() -> ExtensionObject {
    ExtensionObject::from_structure(&UserNameIdentityToken {
        policy_id: "user".into(),
        user_name: "name".into(),
        password: ByteString::from(&[2; 20]),
        encryption_algorithm: "http://www.w3.org/2001/04/xmlenc#rsa-oaep".into(),
    })
}

fn event_filter() -> EventFilter {
    let operands = vec![
        ExtensionObject::from_structure(&ElementOperand { index: 0 }),
        ExtensionObject::from_structure(&LiteralOperand {
            value: Variant::from("%a%"),
        }),
        ExtensionObject::from_structure(&AttributeOperand {
            node_id: NodeId::standard(2_041),
            attribute_id: 13,
            ..AttributeOperand::default()
        }),
    ];
    let select = SimpleAttributeOperand {
        type_definition_id: NodeId::standard(2_041),
        browse_path: vec![QualifiedName::from("Severity")],
        attribute_id: 13,
        index_range: UaString::NULL,
    };
    EventFilter {
        select_clauses: vec![select],
        where_clause: ContentFilter {
            elements: vec![ContentFilterElement {
                filter_operator: FilterOperator::LIKE,
                filter_operands: operands,
            }],
        },
    }
}

fn create_items() -> CreateMonitoredItemsRequest {
    let filters = [
        ExtensionObject::NULL,
        ExtensionObject::from_structure(&DataChangeFilter {
            trigger: DataChangeTrigger::STATUS_VALUE,
            deadband_type: 1,
            deadband_value: f64::NAN,
        }),
        ExtensionObject::from_structure(&event_filter()),
    ];
    let one = |filter| MonitoredItemCreateRequest {
        item_to_monitor: ReadValueId::default(),
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters {
            sampling_interval: -1.0,
            queue_size: u32::MAX,
            filter,
            ..MonitoringParameters::default()
        },
    };
    CreateMonitoredItemsRequest {
        request_header: header(),
        items_to_create: filters.map(one).to_vec(),
        ..CreateMonitoredItemsRequest::default()
    }
}

fn history_read() -> HistoryReadRequest {
    HistoryReadRequest {
        request_header: header(),
        history_read_details: ExtensionObject::from_structure(&ReadRawModifiedDetails::default()),
        nodes_to_read: vec![HistoryReadValueId {
            continuation_point: ByteString::from(&[1; 8]),
            ..HistoryReadValueId::default()
        }],
        ..HistoryReadRequest::default()
    }
}

fn response_header() -> ResponseHeader {
    ResponseHeader {
        timestamp: DateTime::from_ticks(133_000_000_000_000_000),
        request_handle: 17,
        service_result: StatusCode::BAD_TOO_MANY_OPERATIONS,
        service_diagnostics: full_diagnostics(),
        string_table: vec!["one".into(), UaString::NULL],
        additional_header: ExtensionObject::NULL,
    }
}

fn notification() -> NotificationMessage {
    let item = |(_, value)| MonitoredItemNotification {
        client_handle: 4,
        value: full_data_value(value),
    };
    let data = DataChangeNotification {
        monitored_items: scalars().into_iter().map(item).collect(),
        diagnostic_infos: vec![full_diagnostics()],
    };
    let events = EventNotificationList {
        events: vec![EventFieldList {
            client_handle: 5,
            event_fields: scalars().into_iter().map(|(_, value)| value).collect(),
        }],
    };
    NotificationMessage {
        sequence_number: 1,
        publish_time: DateTime::MAX,
        notification_data: vec![
            ExtensionObject::from_structure(&data),
            ExtensionObject::from_structure(&events),
        ],
    }
}

fn filled() -> Vec<Seed> {
    let browsed = BrowseResult {
        references: vec![ReferenceDescription::default(); 3],
        continuation_point: ByteString::from(&[1]),
        ..BrowseResult::default()
    };
    vec![
        Seed::new("read", message(&read())),
        Seed::new("write", message(&write())),
        Seed::new(
            "write-arrays",
            message(&write_of(arrays().into_iter().map(|(_, value)| DataValue::new(value)))),
        ),
        Seed::new("browse", message(&browse())),
        Seed::new("browse-next", message(&browse_next())),
        Seed::new("translate", message(&translate())),
        Seed::new("publish", message(&publish())),
        Seed::new("call", message(&call())),
        Seed::new(
            "register-nodes",
            message(&RegisterNodesRequest {
                request_header: header(),
                nodes_to_register: nodes(),
            }),
        ),
        Seed::new(
            "unregister-nodes",
            message(&UnregisterNodesRequest {
                request_header: header(),
                nodes_to_unregister: nodes(),
            }),
        ),
        Seed::new("create-session", message(&create_session())),
        Seed::new("activate-session", message(&activate_session())),
        Seed::new("create-monitored-items", message(&create_items())),
        Seed::new("history-read", message(&history_read())),
        Seed::new(
            "fault",
            message(&ServiceFault {
                response_header: response_header(),
            }),
        ),
        Seed::new(
            "read-response",
            message(&ReadResponse {
                response_header: response_header(),
                results: scalars().into_iter().map(|(_, value)| full_data_value(value)).collect(),
                diagnostic_infos: vec![full_diagnostics(), full_diagnostics()],
            }),
        ),
        Seed::new(
            "browse-response",
            message(&BrowseResponse {
                results: vec![browsed],
                ..BrowseResponse::default()
            }),
        ),
        Seed::new(
            "publish-response",
            message(&PublishResponse {
                response_header: response_header(),
                notification_message: notification(),
                available_sequence_numbers: vec![1, 2, 3],
                ..PublishResponse::default()
            }),
        ),
    ]
}

/// A request of `T` with a body by hand behind its header.
fn by_hand<T: Structure>(body: &[u8]) -> Vec<u8> {
    bytes(|e| {
        e.put(&NodeId::standard(T::ENCODING_ID));
        e.put(&header());
        e.raw(body);
    })
}

/// A WriteRequest of one value.
fn write_by_hand(value: &[u8]) -> Vec<u8> {
    let head = bytes(|e| {
        e.i32(1);
        e.put(&WriteValue::default());
        // Without the mask of the DataValue that is empty.
        e.truncate(e.position() - 1);
        e.u8(1);
    });
    by_hand::<WriteRequest>(&[&head, value].concat())
}

fn odd() -> Vec<Seed> {
    let bad_uri = bytes(|e| {
        e.put(&NodeId::standard(CreateSessionRequest::ENCODING_ID));
        e.put(&header());
        e.string(Some(&"a".repeat(300)));
        e.byte_string(Some(&[0xC3, 0x28, 0xFF]));
    });
    let mut all = vec![
        Seed::new("create-session-invalid-utf8", bad_uri),
        Seed::new("write-one-stray-byte", by_hand::<WriteRequest>(&[1])),
        Seed::new("write-nothing", by_hand::<WriteRequest>(&[])),
        Seed::new("read-bytes-behind", [message(&read()), vec![0; 7]].concat()),
        Seed::new("unknown-type", [vec![1, 0, 0xFF, 0xFF], encode(&header())].concat()),
        Seed::new("type-in-namespace-1", [vec![1, 1, 0x77, 2], encode(&header())].concat()),
        Seed::new(
            "type-as-string",
            [vec![3, 0, 0, 1, 0, 0, 0, b'a'], encode(&header())].concat(),
        ),
        Seed::new(
            "type-in-long-form",
            [vec![2, 0, 0, 0x77, 2, 0, 0], encode(&read())].concat(),
        ),
        Seed::new("nothing", []),
        Seed::new(
            "header-invalid-utf8",
            [vec![1, 0, 0x77, 2, 0, 0], vec![0; 16], vec![1, 0, 0, 0, 0xFF]].concat(),
        ),
    ];
    for (name, levels) in [("fits", 100), ("too-deep", 101)] {
        all.push(Seed::new(
            format!("write-variants-{name}"),
            write_by_hand(&nested_variants(levels)),
        ));
        all.push(Seed::new(
            format!("write-data-values-{name}"),
            write_by_hand(&nested_data_values(levels)),
        ));
        let fault = bytes(|e| {
            e.put(&NodeId::standard(ServiceFault::ENCODING_ID));
            e.u64(1);
            e.u64(2);
            e.raw(&nested_diagnostics(levels));
            e.u32(0);
            e.raw(&[0; 3]);
        });
        all.push(Seed::new(format!("fault-diagnostics-{name}"), fault));
    }
    for (name, array) in [
        (
            "dimensions-zero",
            [&[1, 0xC6, 0, 0, 0, 0, 2, 0, 0, 0][..], &[0; 8]].concat(),
        ),
        (
            "dimensions-huge",
            [
                &[1, 0xC6, 0, 0, 0, 0, 2, 0, 0, 0][..],
                &[0xFF, 0xFF, 0xFF, 0x7F].repeat(2),
            ]
            .concat(),
        ),
    ] {
        all.push(Seed::new(
            format!("write-{name}"),
            write_by_hand(array.get(1..).unwrap_or_default()),
        ));
    }
    all
}

fn defaults() -> Vec<Seed> {
    let of = |half| {
        RequestKind::ALL
            .iter()
            .map(move |kind| with_message(*kind, half, Default))
    };
    of(Half::Request).chain(of(Half::Response)).collect()
}

/// The ExtensionObjects that stand in messages.
pub(super) fn objects() -> Vec<(&'static str, ExtensionObject)> {
    let filter = event_filter();
    let message = notification();
    let mut all = vec![
        ("user-name", user_name()),
        (
            "anonymous",
            ExtensionObject::from_structure(&AnonymousIdentityToken { policy_id: "p".into() }),
        ),
        ("event-filter", ExtensionObject::from_structure(&filter)),
        ("content-filter", ExtensionObject::from_structure(&filter.where_clause)),
    ];
    let named = ["data-change-notification", "event-notification"];
    all.extend(named.into_iter().zip(message.notification_data));
    all
}

pub(super) fn messages() -> Vec<Seed> {
    [defaults(), filled(), odd()].concat()
}

/// Those of the requests that are read in place.
pub(super) fn views() -> Vec<Seed> {
    const KINDS: [RequestKind; 9] = [
        RequestKind::Read,
        RequestKind::Write,
        RequestKind::Call,
        RequestKind::Publish,
        RequestKind::Browse,
        RequestKind::BrowseNext,
        RequestKind::TranslateBrowsePathsToNodeIds,
        RequestKind::RegisterNodes,
        RequestKind::UnregisterNodes,
    ];
    let starts = KINDS.map(|kind| encode(&NodeId::standard(kind.request_encoding_id())));
    let in_place = |seed: &Seed| starts.iter().any(|start| seed.bytes.starts_with(start));
    messages().into_iter().filter(in_place).collect()
}

/// 10,000 levels, 8,000 steps that go nowhere, and every length of every message made to hurt.
pub(super) fn deep_messages() -> Vec<Seed> {
    let mut all = deep(&messages());
    let elements = bytes(|e| {
        e.i32(1);
        e.put(&NodeId::standard(85));
        e.i32(8_000);
        for step in 0..8_000 {
            e.put(&RelativePathElement {
                is_inverse: step % 2 == 1,
                ..RelativePathElement::default()
            });
        }
    });
    all.push(Seed::new(
        "translate-8000",
        by_hand::<TranslateBrowsePathsToNodeIdsRequest>(&elements),
    ));
    let acknowledgements = [encode(&20_000_i32), vec![0; 160_000]].concat();
    all.push(Seed::new("publish-20000", by_hand::<PublishRequest>(&acknowledgements)));
    let empty_reads = [encode(&10_000_i32), vec![0; 160_000]].concat();
    all.push(Seed::new("read-10000", by_hand::<ReadRequest>(&empty_reads)));
    let empty_calls = [encode(&20_000_i32), vec![0; 160_000]].concat();
    all.push(Seed::new("call-20000", by_hand::<CallRequest>(&empty_calls)));
    all
}

pub(super) fn deep_views() -> Vec<Seed> {
    let mut all = deep(&views());
    all.extend(deep_messages().into_iter().filter(|seed| seed.name.ends_with("000")));
    all
}

fn deep(seeds: &[Seed]) -> Vec<Seed> {
    let short: Vec<_> = seeds.iter().filter(|seed| seed.bytes.len() < 260).cloned().collect();
    let mut all = with_bad_lengths(&short);
    all.extend(truncated(&short));
    all.push(Seed::new(
        "write-variants-10000",
        write_by_hand(&nested_variants(10_000)),
    ));
    all.push(Seed::new(
        "write-data-values-10000",
        write_by_hand(&nested_data_values(10_000)),
    ));
    let diagnostics = [vec![25], nested_diagnostics(50_000)].concat();
    all.push(Seed::new("write-diagnostics-50000", write_by_hand(&diagnostics)));
    all
}
