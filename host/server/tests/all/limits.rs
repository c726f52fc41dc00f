//! Peers that want more than their share: endless messages, connections that are only held, answers that nobody takes.

use backplane_types::{
    ActivateSessionRequest, AttributeId, BrowseDescription, BrowseDirection, BrowseRequest, NodeId, ReadRequest,
    ReadValueId, RequestHeader, StatusCode, ids,
};

use crate::support::{Raw, Server, body, open, read_status, well_behaved};

/// Bytes in the body of a large chunk.
const CHUNK: usize = 60_000;
/// KiB in a MiB.
const MIB: u64 = 1_024;

/// Sends chunks that are never the last one until the server has enough, `most` at the most.
async fn endless(raw: &mut Raw, size: usize, most: usize) -> Option<StatusCode> {
    let filling = vec![0; size];
    for _ in 0..most {
        let chunk = raw.chunk(b"MSGC", 50, &filling);
        if !raw.try_send(&chunk).await {
            break;
        }
    }
    raw.error().await
}

#[tokio::test]
async fn a_message_without_end_ends_the_channel() {
    let server = Server::demo();
    let before = server.peak_memory();
    let too_large = Some(StatusCode::BAD_TCP_MESSAGE_TOO_LARGE);
    // 256 KiB and 16 chunks before a session is activated.
    for (size, most) in [(CHUNK, 40), (1, 40)] {
        let mut raw = Raw::opened(&server).await;
        assert_eq!(
            endless(&mut raw, size, most).await,
            too_large,
            "without session, chunks of {size}"
        );
    }
    assert!(server.peak_memory() < before + 8 * MIB);
    // 16 MiB and 4,096 chunks with one.
    for (size, most) in [(CHUNK, 400), (1, 5_000)] {
        let (mut raw, _) = Raw::with_session(&server).await;
        assert_eq!(
            endless(&mut raw, size, most).await,
            too_large,
            "with a session, chunks of {size}"
        );
    }
    let grown = server.peak_memory() - before;
    assert!(grown < 40 * MIB, "{grown} KiB for a message of 16 MiB");
    well_behaved(&server).await;
}

#[tokio::test]
async fn many_half_messages_take_no_more_than_their_limit() {
    let server = Server::demo();
    let before = server.peak_memory();
    let mut peers = Vec::new();
    for _ in 0..60 {
        let mut raw = Raw::opened(&server).await;
        for _ in 0..4 {
            let chunk = raw.chunk(b"MSGC", 50, &vec![0; CHUNK]);
            raw.send(&chunk).await;
        }
        peers.push(raw);
    }
    well_behaved(&server).await;
    let grown = server.peak_memory() - before;
    assert!(grown < 50 * MIB, "{grown} KiB for 60 half messages of 240 KB");
}

#[tokio::test]
async fn held_connections_give_way_to_those_that_work() {
    let server = Server::with("sessions = 4\nconnections = 12\nhandshake-timeout-ms = 60000");
    let first = open(&server).await;
    let mut silent = Vec::new();
    for _ in 0..40 {
        silent.push(Raw::connect(&server).await);
    }
    well_behaved(&server).await;
    let mut idle = Vec::new();
    for _ in 0..40 {
        idle.push(Raw::opened(&server).await);
    }
    well_behaved(&server).await;
    assert_eq!(
        silent[0].error().await,
        Some(StatusCode::BAD_TCP_SERVER_TOO_BUSY),
        "the oldest silent peer"
    );
    assert_eq!(
        idle[0].error().await,
        Some(StatusCode::BAD_TCP_SERVER_TOO_BUSY),
        "the oldest idle channel"
    );
    // The oldest of all has a session.
    read_status(&first).await.unwrap();
}

#[tokio::test]
async fn silent_connections_end_at_their_deadline() {
    let server = Server::with("sessions = 4\nconnections = 12\nhandshake-timeout-ms = 4000");
    let mut silent = Vec::new();
    for _ in 0..40 {
        silent.push(Raw::connect(&server).await);
    }
    well_behaved(&server).await;
    for (index, raw) in silent.iter_mut().enumerate() {
        let status = raw.error().await;
        let expected = [
            Some(StatusCode::BAD_TIMEOUT),
            Some(StatusCode::BAD_TCP_SERVER_TOO_BUSY),
            None,
        ];
        assert!(expected.contains(&status), "silent peer {index}: {status:?}");
    }
    well_behaved(&server).await;
}

/// `count` chunks with requests of this body, which has to begin with the session's header.
fn pipeline(raw: &mut Raw, body: &[u8], count: u32) -> Vec<u8> {
    (0..count)
        .flat_map(|index| raw.chunk(b"MSGF", 100 + index, body))
        .collect()
}

#[tokio::test]
async fn a_client_that_takes_no_answers_does_not_take_the_memory() {
    let server = Server::demo();
    let before = server.peak_memory();
    let (mut raw, token) = Raw::with_session(&server).await;
    let request_header = RequestHeader {
        authentication_token: token,
        ..RequestHeader::default()
    };
    let node_id = NodeId::numeric(0, ids::variable::SERVER_SERVER_STATUS);
    let read = ReadValueId {
        node_id,
        attribute_id: AttributeId::VALUE.0,
        ..ReadValueId::default()
    };
    let request = body(&ReadRequest {
        request_header,
        nodes_to_read: vec![read; 10],
        ..ReadRequest::default()
    });
    let bytes = pipeline(&mut raw, &request, 100_000);
    let sent = raw.fill(&bytes).await;
    assert!(sent < bytes.len(), "the server reads on while nobody takes its answers");
    well_behaved(&server).await;
    let grown = server.peak_memory() - before;
    assert!(grown < 40 * MIB, "{grown} KiB for {sent} bytes of requests");
}

#[tokio::test]
async fn large_answers_that_nobody_takes_do_not_pile_up() {
    let server = Server::demo();
    let (mut raw, token) = Raw::with_session(&server).await;
    let before = server.peak_memory();
    let browse = BrowseDescription {
        node_id: NodeId::numeric(0, ids::data_type::STRUCTURE),
        browse_direction: BrowseDirection::BOTH,
        include_subtypes: true,
        result_mask: 63,
        ..BrowseDescription::default()
    };
    let request = BrowseRequest {
        request_header: RequestHeader {
            authentication_token: token,
            ..RequestHeader::default()
        },
        nodes_to_browse: vec![browse; 200],
        ..BrowseRequest::default()
    };
    let request = body(&request);
    let bytes = pipeline(&mut raw, &request, 3_000);
    let sent = raw.fill(&bytes).await;
    assert!(sent < bytes.len(), "the server reads on while nobody takes its answers");
    well_behaved(&server).await;
    let grown = server.peak_memory() - before;
    assert!(
        grown < 24 * MIB,
        "{grown} KiB for {} requests with answers of 3 MB",
        sent / request.len()
    );
}

#[tokio::test]
async fn an_activation_opens_the_limits_of_a_session() {
    let server = Server::demo();
    let (mut raw, token) = Raw::with_session(&server).await;
    let read = ReadValueId {
        node_id: NodeId::numeric(0, ids::variable::SERVER_SERVICE_LEVEL),
        attribute_id: AttributeId::VALUE.0,
        ..ReadValueId::default()
    };
    let request_header = RequestHeader {
        authentication_token: token,
        ..RequestHeader::default()
    };
    let too_many = ReadRequest {
        request_header,
        nodes_to_read: vec![read; 10_001],
        ..ReadRequest::default()
    };
    let whole = body(&too_many);
    let parts: Vec<&[u8]> = whole.chunks(10_000).collect();
    assert!(parts.len() > 16, "more chunks than a peer without a session may send");
    for (index, part) in parts.iter().enumerate() {
        let letters = if index + 1 == parts.len() { b"MSGF" } else { b"MSGC" };
        let chunk = raw.chunk(letters, 9, part);
        raw.send(&chunk).await;
    }
    assert_eq!(raw.fault(9).await, StatusCode::BAD_TOO_MANY_OPERATIONS);
    let again = body(&ActivateSessionRequest::default());
    raw.request(10, &again).await;
    assert_eq!(
        raw.fault(10).await,
        StatusCode::BAD_SESSION_ID_INVALID,
        "the channel lives"
    );
}
