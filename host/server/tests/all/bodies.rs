//! Message bodies that are wrong: each is answered with a ServiceFault, and the channel and the session live on.

use backplane_client::{Client, ClientError, Identity, Options, SessionOptions};
use backplane_types::service::RequestKind;
use backplane_types::{
    AttributeId, BrowseDescription, BrowseDirection, BrowseRequest, Encoder, NodeId, ReadRequest, ReadValueId,
    RequestHeader, StatusCode, ids,
};

use crate::support::{Noise, PATIENCE, Raw, Server, body, connect, fault_of, head, open, read_status, well_behaved};

/// Services that the server does not have.
const UNSUPPORTED: [RequestKind; 13] = [
    RequestKind::RegisterServer,
    RequestKind::RegisterServer2,
    RequestKind::FindServersOnNetwork,
    RequestKind::OpenSecureChannel,
    RequestKind::CloseSecureChannel,
    RequestKind::AddNodes,
    RequestKind::AddReferences,
    RequestKind::DeleteNodes,
    RequestKind::DeleteReferences,
    RequestKind::QueryFirst,
    RequestKind::QueryNext,
    RequestKind::HistoryRead,
    RequestKind::HistoryUpdate,
];

/// Sends a request of `kind` with this behind its header and gives the result.
async fn result(client: &Client, kind: RequestKind, tail: &[u8]) -> StatusCode {
    let mut message = head(client, kind.request_encoding_id());
    message.extend_from_slice(tail);
    fault_of(&client.call_raw(message).await.unwrap())
}

/// The tail of a Write request for one value, up to the Variant.
fn write_of(variant: &[u8]) -> Vec<u8> {
    let mut tail = Vec::new();
    let mut encoder = Encoder::new(&mut tail);
    encoder.i32(1);
    encoder.put(&NodeId::numeric(0, ids::variable::SERVER_SERVER_STATUS));
    encoder.u32(AttributeId::VALUE.0);
    encoder.i32(-1);
    encoder.u8(1); // a DataValue with a value and nothing else
    encoder.raw(variant);
    tail
}

/// The tail of a Read request up to the list of nodes.
fn read_of(nodes: &[u8]) -> Vec<u8> {
    let mut tail = Vec::new();
    let mut encoder = Encoder::new(&mut tail);
    encoder.u64(0); // maxAge
    encoder.u32(2); // Both
    encoder.raw(nodes);
    tail
}

fn length(value: u32) -> [u8; 4] {
    value.to_le_bytes()
}

#[tokio::test]
async fn lengths_that_lie_are_decoding_errors() {
    let server = Server::demo();
    let client = open(&server).await;
    let limits = StatusCode::BAD_ENCODING_LIMITS_EXCEEDED;
    let malformed = StatusCode::BAD_DECODING_ERROR;
    let most = length(0x7FFF_FFFF);
    // A NodeId with a String identifier, and one with a ByteString identifier.
    let text = |length: &[u8]| [&[1, 0, 0, 0, 3, 0, 0][..], length, b"abc"].concat();
    let opaque = |length: &[u8]| [&[1, 0, 0, 0, 5, 0, 0][..], length, b"abc"].concat();
    let cases = [
        ("no list", RequestKind::Read, read_of(&[]), malformed),
        ("endless list", RequestKind::Read, read_of(&most), limits),
        (
            "list longer than the message",
            RequestKind::Read,
            read_of(&length(1_000)),
            malformed,
        ),
        (
            "null list",
            RequestKind::Read,
            read_of(&length(0xFFFF_FFFF)),
            StatusCode::BAD_NOTHING_TO_DO,
        ),
        (
            "list of length -2",
            RequestKind::Read,
            read_of(&length(0xFFFF_FFFE)),
            malformed,
        ),
        ("endless String", RequestKind::Read, read_of(&text(&most)), limits),
        (
            "String longer than the message",
            RequestKind::Read,
            read_of(&text(&length(1_000))),
            malformed,
        ),
        ("endless ByteString", RequestKind::Read, read_of(&opaque(&most)), limits),
        ("endless list", RequestKind::Write, most.to_vec(), limits),
        (
            "endless array",
            RequestKind::Write,
            write_of(&[&[0x86][..], &most].concat()),
            limits,
        ),
        (
            "endless array of Variants",
            RequestKind::Write,
            write_of(&[&[0x98][..], &most].concat()),
            limits,
        ),
        (
            "endless String",
            RequestKind::Write,
            write_of(&[&[12][..], &most].concat()),
            limits,
        ),
        ("endless list", RequestKind::Call, most.to_vec(), limits),
        ("endless list", RequestKind::RegisterNodes, most.to_vec(), limits),
        (
            "endless list",
            RequestKind::TranslateBrowsePathsToNodeIds,
            most.to_vec(),
            limits,
        ),
        ("endless list", RequestKind::Publish, most.to_vec(), limits),
        ("endless list", RequestKind::DeleteSubscriptions, most.to_vec(), limits),
    ];
    let before = server.peak_memory();
    for (what, kind, tail, status) in cases {
        let found = result(&client, kind, &tail).await;
        // A length that is beyond the message and beyond the limit may be refused for either.
        assert!(
            found == status || (status == limits && found == malformed),
            "{what}, {}: {found}",
            kind.name()
        );
    }
    assert!(
        server.peak_memory() < before + 16 * 1024,
        "nothing is allocated for a length"
    );
    read_status(&client).await.unwrap();
    well_behaved(&server).await;
}

#[tokio::test]
async fn nesting_ten_thousand_deep_is_refused() {
    let server = Server::demo();
    let client = open(&server).await;
    let depth = 10_000;
    // An array of one Variant that is an array of one Variant ...
    let variants = [0x98, 1, 0, 0, 0].repeat(depth);
    // A Variant with a DataValue with a Variant ...
    let data_values = [23, 1].repeat(depth);
    // A Variant with a DiagnosticInfo with an inner one ...
    let diagnostics = [&[25][..], &[0x40].repeat(depth)].concat();
    for (what, variant) in [
        ("Variant", variants),
        ("DataValue", data_values),
        ("DiagnosticInfo", diagnostics),
    ] {
        let status = result(&client, RequestKind::Write, &write_of(&variant)).await;
        assert_eq!(status, StatusCode::BAD_ENCODING_LIMITS_EXCEEDED, "{what}");
    }
    read_status(&client).await.unwrap();
    well_behaved(&server).await;
}

#[tokio::test]
async fn dimensions_that_do_not_fit_are_refused() {
    let server = Server::demo();
    let client = open(&server).await;
    let matrix = |values: u32, dimensions: &[u32]| {
        let mut variant = vec![0xC6];
        variant.extend_from_slice(&length(values));
        variant.extend((0..values).flat_map(|value| value.to_le_bytes()));
        variant.extend_from_slice(&length(u32::try_from(dimensions.len()).unwrap()));
        variant.extend(dimensions.iter().flat_map(|dimension| dimension.to_le_bytes()));
        write_of(&variant)
    };
    for (values, dimensions) in [
        (1, &[0x7FFF_FFFF, 0x7FFF_FFFF][..]),
        (0, &[0x1_0000, 0x1_0000]),
        (0, &[0x8000_0000, 2]),
        (4, &[2, 3]),
        (4, &[0xFFFF_FFFF, 0xFFFF_FFFF]),
        (1, &[0x7FFF_FFFF; 32]),
    ] {
        let status = result(&client, RequestKind::Write, &matrix(values, dimensions)).await;
        let refused = [StatusCode::BAD_DECODING_ERROR, StatusCode::BAD_ENCODING_LIMITS_EXCEEDED];
        assert!(refused.contains(&status), "{values} values in {dimensions:?}: {status}");
    }
    assert_eq!(
        result(&client, RequestKind::Write, &matrix(4, &[2, 2])).await,
        StatusCode::GOOD,
        "one that fits is taken"
    );
    well_behaved(&server).await;
}

#[tokio::test]
async fn text_that_is_not_utf8_is_a_decoding_error() {
    let server = Server::demo();
    let client = open(&server).await;
    for bytes in [
        &b"\xFF"[..],
        b"\xC3\x28",
        b"\xED\xA0\x80",
        b"\xF4\x90\x80\x80",
        b"ab\xE2\x82",
    ] {
        let text = [&length(u32::try_from(bytes.len()).unwrap())[..], bytes].concat();
        let node = [&[1, 0, 0, 0, 3, 0, 0][..], &text].concat();
        assert_eq!(
            result(&client, RequestKind::Read, &read_of(&node)).await,
            StatusCode::BAD_DECODING_ERROR,
            "{bytes:?}"
        );
        let value = [&[12][..], &text].concat();
        assert_eq!(
            result(&client, RequestKind::Write, &write_of(&value)).await,
            StatusCode::BAD_DECODING_ERROR,
            "{bytes:?}"
        );
    }
    read_status(&client).await.unwrap();
    well_behaved(&server).await;
}

#[tokio::test]
async fn a_request_cut_anywhere_is_a_decoding_error() {
    let server = Server::demo();
    let mut raw = Raw::opened(&server).await;
    let node_id = NodeId::string(1, "somewhere");
    let read = ReadValueId {
        node_id,
        attribute_id: AttributeId::VALUE.0,
        ..ReadValueId::default()
    };
    let whole = body(&ReadRequest {
        nodes_to_read: vec![read],
        ..ReadRequest::default()
    });
    for cut in 0..whole.len() {
        let id = u32::try_from(cut).unwrap() + 10;
        raw.request(id, &whole[..cut]).await;
        let status = raw.fault(id).await;
        // Behind the header the session is asked for first.
        let expected = [StatusCode::BAD_DECODING_ERROR, StatusCode::BAD_SESSION_ID_INVALID];
        assert!(expected.contains(&status), "cut at {cut}: {status}");
    }
    let client = open(&server).await;
    let read = ReadValueId {
        node_id: NodeId::string(1, "somewhere"),
        ..ReadValueId::default()
    };
    let request_header = client.header(RequestHeader::default());
    let whole = body(&ReadRequest {
        request_header,
        nodes_to_read: vec![read],
        ..ReadRequest::default()
    });
    for cut in 0..whole.len() {
        let status = fault_of(&client.call_raw(whole[..cut].to_vec()).await.unwrap());
        assert_eq!(status, StatusCode::BAD_DECODING_ERROR, "cut at {cut}");
    }
    read_status(&client).await.unwrap();
    well_behaved(&server).await;
}

#[tokio::test]
async fn unknown_types_and_services_that_are_not_there_are_unsupported() {
    let server = Server::demo();
    let client = open(&server).await;
    let unsupported = StatusCode::BAD_SERVICE_UNSUPPORTED;
    for kind in UNSUPPORTED {
        assert_eq!(result(&client, kind, &[]).await, unsupported, "{}", kind.name());
    }
    // Ids of nothing, of a response, of a structure that is no request, and of a data type.
    for id in [0, 1, 397, 634, 886, 629, 65_535, 0x7FFF_FFFF, u32::MAX] {
        assert_eq!(
            fault_of(&client.call_raw(head(&client, id)).await.unwrap()),
            unsupported,
            "{id}"
        );
    }
    let mut foreign = Vec::new();
    let mut encoder = Encoder::new(&mut foreign);
    encoder.put(&NodeId::numeric(7, 631));
    encoder.put(&client.header(RequestHeader::default()));
    assert_eq!(
        fault_of(&client.call_raw(foreign).await.unwrap()),
        unsupported,
        "another namespace"
    );
    // The services of a discovery server need no session, and are not there either.
    let visitor = connect(&server).await.unwrap();
    for kind in [
        RequestKind::RegisterServer,
        RequestKind::RegisterServer2,
        RequestKind::FindServersOnNetwork,
    ] {
        assert_eq!(
            result(&visitor, kind, &[]).await,
            unsupported,
            "{} without session",
            kind.name()
        );
    }
    read_status(&client).await.unwrap();
    well_behaved(&server).await;
}

#[tokio::test]
async fn garbage_behind_any_header_is_answered() {
    let server = Server::demo();
    let client = open(&server).await;
    let ends_the_session = [
        RequestKind::CreateSession,
        RequestKind::ActivateSession,
        RequestKind::CloseSession,
    ];
    for kind in RequestKind::ALL.iter().filter(|kind| !ends_the_session.contains(kind)) {
        for seed in 0..12 {
            let mut noise = Noise::new(seed);
            let tail = match seed {
                0 => vec![0; 64],
                1 => vec![0xFF; 64],
                _ => {
                    let length = usize::from(noise.byte());
                    noise.bytes(length)
                }
            };
            // Zeros are a request like any other; what matters is that there is an answer.
            result(&client, *kind, &tail).await;
        }
    }
    read_status(&client).await.unwrap();
    // Nothing but noise, without type id or header.
    let mut raw = Raw::opened(&server).await;
    for seed in 0..50 {
        let mut noise = Noise::new(seed);
        let length = usize::from(noise.byte());
        raw.request(1_000 + u32::try_from(seed).unwrap(), &noise.bytes(length))
            .await;
        let status = raw.fault(1_000 + u32::try_from(seed).unwrap()).await;
        assert!(status.is_bad(), "noise {seed}: {status}");
    }
    well_behaved(&server).await;
}

#[tokio::test]
async fn a_response_above_the_clients_limit_is_a_fault() {
    let server = Server::demo();
    let mut options = Options {
        call_timeout: PATIENCE,
        ..Options::new(server.url())
    };
    options.limits.max_message_size = 16_384;
    options.limits.unauthenticated_max_message_size = 16_384;
    let client = Client::connect(options).await.unwrap();
    client
        .open_session(SessionOptions::default(), &Identity::Anonymous)
        .await
        .unwrap();
    let everything = |count| BrowseRequest {
        nodes_to_browse: vec![
            BrowseDescription {
                node_id: NodeId::numeric(0, ids::object_type::BASE_OBJECT_TYPE),
                browse_direction: BrowseDirection::BOTH,
                include_subtypes: true,
                result_mask: 63,
                ..BrowseDescription::default()
            };
            count
        ],
        ..BrowseRequest::default()
    };
    let refused = client.call(everything(100)).await.unwrap_err();
    assert!(
        matches!(refused, ClientError::Fault(StatusCode::BAD_RESPONSE_TOO_LARGE)),
        "{refused}"
    );
    // Through the limit of the channel alone, without a session: a hundred endpoints' worth does not fit 8,192 bytes.
    read_status(&client).await.unwrap();
    client.close_session(true).await.unwrap();
    well_behaved(&server).await;
}
