//! Sending: chunks of a message contiguous and in order, the peer's limits, sealing in place, and failures.

use backplane_types::{MessageSecurityMode, StatusCode};

use super::{SECURED, Seen, Setup, all_securities, chunks, u32_at};
use crate::{Closed, Mark, SendError};

#[test]
fn chunks_fill_the_agreed_size_and_are_numbered_in_wire_order() {
    for (policy, mode) in all_securities() {
        let mut setup = Setup::new(policy, mode);
        setup.client_limits.receive_buffer_size = 8_192;
        setup.client_limits.unauthenticated_max_message_size = 1 << 20;
        let mut wire = setup.open();
        for length in [8_100, 8_192, 50_000] {
            let body: Vec<u8> = (0..length).map(|index| (index / 7) as u8).collect();
            wire.server.send(wire.now, 3, &body, &mut wire.to_client).unwrap();
            let all = chunks(&wire.to_client);
            for (index, chunk) in all.iter().enumerate() {
                let last = index + 1 == all.len();
                assert!(chunk.len() <= 8_192);
                assert!(last || chunk.len() > 8_192 - 16, "room was left: {}", chunk.len());
                assert_eq!(chunk[3], if last { b'F' } else { b'C' });
            }
            if mode != MessageSecurityMode::SIGN_AND_ENCRYPT {
                let numbers: Vec<u32> = all.iter().map(|chunk| u32_at(chunk, 16)).collect();
                assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]));
                assert!(all.iter().all(|chunk| u32_at(chunk, 20) == 3));
            }
            assert_eq!(wire.receive(), [Seen::Message(3, body)]);
        }
    }
}

/// Every length around the edge of a chunk, so that no padding is off by one.
#[test]
fn bodies_around_the_edge_of_a_chunk_arrive_whole() {
    for (policy, mode) in all_securities() {
        let mut setup = Setup::new(policy, mode);
        setup.client_limits.receive_buffer_size = 8_192;
        let mut wire = setup.open();
        for length in 8_080..8_200 {
            wire.server
                .send(wire.now, 3, &vec![5; length], &mut wire.to_client)
                .unwrap();
            assert_eq!(wire.receive()[0].message().len(), length);
        }
    }
}

#[test]
fn a_response_beyond_the_clients_limits_is_refused_before_a_number_is_taken() {
    for (policy, mode) in all_securities() {
        let mut setup = Setup::new(policy, mode);
        setup.client_limits.receive_buffer_size = 8_192;
        setup.client_limits.max_message_size = 20_000;
        setup.client_limits.max_chunk_count = 2;
        let mut wire = setup.open();
        let too_large = wire
            .server
            .send(wire.now, 1, &[0; 20_001], &mut wire.to_client)
            .unwrap_err();
        assert_eq!(
            too_large,
            SendError::TooLarge {
                size: 20_001,
                chunks: 3
            }
        );
        assert_eq!(too_large.response_status(), StatusCode::BAD_RESPONSE_TOO_LARGE);
        assert_eq!(too_large.request_status(), StatusCode::BAD_REQUEST_TOO_LARGE);
        // Within the size, but in three chunks.
        let error = wire
            .server
            .send(wire.now, 1, &[0; 17_000], &mut wire.to_client)
            .unwrap_err();
        assert!(matches!(error, SendError::TooLarge { chunks: 3, .. }));
        assert!(wire.to_client.is_empty());
        // The fault that replaces it is the next message.
        wire.server.send(wire.now, 1, b"fault", &mut wire.to_client).unwrap();
        assert_eq!(wire.receive(), [Seen::Message(1, b"fault".to_vec())]);
    }
}

#[test]
fn a_client_without_limits_gets_everything() {
    let mut setup = Setup::none();
    setup.client_limits.max_message_size = 0;
    setup.client_limits.max_chunk_count = 0;
    let mut wire = setup.open();
    wire.server
        .send(wire.now, 1, &vec![1; 5_000_000], &mut wire.to_client)
        .unwrap();
    assert_eq!(chunks(&wire.to_client).len(), 5_000_000_usize.div_ceil(65_536 - 24));
}

#[test]
fn a_request_beyond_the_servers_limits_is_the_clients_error() {
    let mut setup = Setup::none();
    setup.server_limits.max_message_size = 1_000;
    setup.server_limits.unauthenticated_max_message_size = 1_000;
    let mut wire = setup.open();
    assert!(matches!(
        wire.client.send(wire.now, &[0; 1_001], &mut wire.to_server),
        Err(SendError::TooLarge { size: 1_001, .. })
    ));
    wire.echo(&[0; 1_000]);
}

#[test]
fn a_body_written_behind_a_mark_is_sealed_where_it_lies() {
    for (policy, mode) in all_securities() {
        let mut wire = Setup::new(policy, mode).open();
        wire.to_client.reserve(100_000);
        let buffer = wire.to_client.as_ptr();
        for text in [&b"first"[..], b"second", b""] {
            let mark = Mark::begin(&mut wire.to_client);
            wire.to_client.extend_from_slice(text);
            assert_eq!(mark.body_length(&wire.to_client), text.len());
            wire.server
                .finish_message(wire.now, mark, 8, &mut wire.to_client)
                .unwrap();
        }
        let mark = Mark::begin(&mut wire.to_client);
        wire.to_client.extend_from_slice(b"thought better of it");
        mark.clear(&mut wire.to_client);
        assert_eq!(mark.body_length(&wire.to_client), 0);
        mark.discard(&mut wire.to_client);
        assert_eq!(wire.to_client.as_ptr(), buffer);
        let seen = wire.receive();
        let bodies: Vec<&[u8]> = seen.iter().map(Seen::message).collect();
        assert_eq!(bodies, [&b"first"[..], b"second", b""]);
    }
}

#[test]
fn nothing_is_sent_before_the_channel_is_open_or_after_it_is_closed() {
    let mut wire = Setup::none().wire();
    assert_eq!(
        wire.server.send(wire.now, 1, b"x", &mut wire.to_client),
        Err(SendError::NotOpen)
    );
    assert_eq!(
        wire.client.send(wire.now, b"x", &mut wire.to_server),
        Err(SendError::NotOpen)
    );
    wire.client.connect(wire.now, &mut wire.to_server);
    wire.serve();
    wire.receive();
    assert_eq!(
        wire.server.send(wire.now, 1, b"x", &mut wire.to_client),
        Err(SendError::NotOpen)
    );
    assert_eq!(
        wire.client.send(wire.now, b"x", &mut wire.to_server),
        Err(SendError::NotOpen)
    );
    assert!(wire.to_client.is_empty() && wire.to_server.is_empty());
    let mut wire = Setup::none().open();
    wire.server.close(StatusCode::BAD_SERVER_HALTED, &mut wire.to_client);
    wire.to_client.clear();
    assert_eq!(
        wire.server.send(wire.now, 1, b"x", &mut wire.to_client),
        Err(SendError::NotOpen)
    );
    assert!(wire.to_client.is_empty());
}

#[test]
fn after_a_failed_seal_nothing_is_numbered_any_more() {
    // In the first chunk of a message, and in a later one.
    for (length, before) in [(4, 0), (200_000, 0), (200_000, 2)] {
        let mut wire = Setup::new(SECURED[1], MessageSecurityMode::SIGN_AND_ENCRYPT).open();
        wire.server.send(wire.now, 1, b"before", &mut wire.to_client).unwrap();
        let sent = wire.to_client.len();
        wire.server.secure().fail_seal_after(before);
        assert_eq!(
            wire.server.send(wire.now, 2, &vec![0; length], &mut wire.to_client),
            Err(SendError::Stopped)
        );
        assert_eq!(
            wire.server.send(wire.now, 3, b"behind", &mut wire.to_client),
            Err(SendError::Stopped)
        );
        assert_eq!(
            wire.to_client.len(),
            sent,
            "what was numbered behind the gap does not leave"
        );
        assert!(!wire.server.is_open());
        assert_eq!(wire.receive(), [Seen::Message(1, b"before".to_vec())]);
        // A renewal would be numbered behind the gap as well.
        wire.client.open(wire.now, &mut wire.to_server).unwrap();
        let error = wire.refuse(&[]);
        assert_eq!(error.wire, StatusCode::BAD_TCP_INTERNAL_ERROR);
        assert!(matches!(
            wire.receive().as_slice(),
            [Seen::Closed(Closed::PeerError { .. })]
        ));
    }
}

#[test]
fn a_client_whose_seal_failed_sends_nothing_more_either() {
    let mut wire = Setup::new(SECURED[1], MessageSecurityMode::SIGN_AND_ENCRYPT).open();
    wire.client.secure().fail_seal_after(0);
    let failed = wire.client.send(wire.now, b"lost", &mut wire.to_server);
    assert_eq!(failed, Err(SendError::Stopped));
    assert_eq!(
        wire.client.send(wire.now, b"behind", &mut wire.to_server),
        Err(SendError::Stopped)
    );
    let error = wire.client.open(wire.now, &mut wire.to_server).unwrap_err();
    assert_eq!(error.reason, StatusCode::BAD_TCP_INTERNAL_ERROR);
    wire.client.close(wire.now, &mut wire.to_server);
    assert!(wire.to_server.is_empty(), "not even CloseSecureChannel");
}

/// Sealing fails while a renewal is worked on: what was numbered in front of the gap still leaves, in its order.
#[test]
fn a_failed_seal_during_a_renewal_sends_what_is_in_front_of_the_gap() {
    let mut wire = Setup::new(SECURED[1], MessageSecurityMode::SIGN).open();
    wire.client.open(wire.now, &mut wire.to_server).unwrap();
    wire.hold_work = true;
    wire.serve();
    wire.server.send(wire.now, 1, b"held", &mut wire.to_client).unwrap();
    wire.server.secure().fail_seal_after(0);
    for answer in [b"gap", b"far"] {
        assert_eq!(
            wire.server.send(wire.now, 2, answer, &mut wire.to_client),
            Err(SendError::Stopped)
        );
    }
    assert_eq!(wire.run_held(), Seen::Opened { renewed: true });
    wire.server
        .close(StatusCode::BAD_TCP_INTERNAL_ERROR, &mut wire.to_client);
    let seen = wire.receive();
    assert_eq!(
        seen[..2],
        [Seen::Opened { renewed: true }, Seen::Message(1, b"held".to_vec())]
    );
    assert!(matches!(seen[2..], [Seen::Closed(Closed::PeerError { .. })]));

    // The caller closes at once: nothing leaves but the Error message.
    let mut wire = Setup::new(SECURED[1], MessageSecurityMode::SIGN).open();
    wire.client.open(wire.now, &mut wire.to_server).unwrap();
    wire.hold_work = true;
    wire.serve();
    wire.server.send(wire.now, 1, b"held", &mut wire.to_client).unwrap();
    wire.server.secure().fail_seal_after(0);
    assert!(wire.server.send(wire.now, 2, b"gap", &mut wire.to_client).is_err());
    wire.server
        .close(StatusCode::BAD_TCP_INTERNAL_ERROR, &mut wire.to_client);
    assert!(matches!(wire.run_held(), Seen::Closed(_)));
    assert!(matches!(
        wire.receive().as_slice(),
        [Seen::Closed(Closed::PeerError { .. })]
    ));
}

#[test]
fn what_waits_behind_a_renewal_is_bounded() {
    let mut setup = Setup::none();
    setup.server_limits.max_held_bytes = 1_000;
    let mut wire = setup.open();
    wire.client.open(wire.now, &mut wire.to_server).unwrap();
    wire.hold_work = true;
    wire.serve();
    wire.server.send(wire.now, 1, &[1; 900], &mut wire.to_client).unwrap();
    assert_eq!(
        wire.server.send(wire.now, 2, &[2; 900], &mut wire.to_client),
        Err(SendError::TooMuchHeld)
    );
    assert_eq!(wire.run_held(), Seen::Opened { renewed: true });
    wire.server.send(wire.now, 2, &[2; 900], &mut wire.to_client).unwrap();
    assert_eq!(
        wire.receive(),
        [
            Seen::Opened { renewed: true },
            Seen::Message(1, vec![1; 900]),
            Seen::Message(2, vec![2; 900])
        ]
    );
}
