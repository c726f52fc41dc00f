//! Chunks of service messages at the server: order, limits, aborts, tampering.

use backplane_types::{MessageSecurityMode, StatusCode, UaString};

use super::{RawChunk, SECURED, Seen, Setup, Wire, all_securities, chunks, u32_at};
use crate::header::{ChunkType, MessageType, SymmetricHeader};
use crate::hello::put_bytes;
use crate::{Body, Closed, Event, Limits};

fn raw(wire: &mut Wire, chunk: &RawChunk<'_>) -> Vec<u8> {
    chunk.seal(wire.client.secure(), wire.now)
}

fn send(wire: &mut Wire, chunk_type: ChunkType, request_id: u32, body: &[u8]) -> Vec<Seen> {
    let bytes = raw(wire, &RawChunk::new(chunk_type, request_id, body));
    wire.to_server.extend_from_slice(&bytes);
    wire.serve()
}

#[test]
fn messages_pass_in_every_policy_and_mode() {
    for (policy, mode) in all_securities() {
        let mut wire = Setup::new(policy, mode).open();
        for length in [0, 1, 7, 8, 15, 16, 17, 100, 8_192, 65_535, 65_536, 100_000] {
            let body: Vec<u8> = (0..length).map(|index| index as u8).collect();
            wire.echo(&body);
        }
    }
}

#[test]
fn a_message_in_one_chunk_is_a_slice_of_the_input() {
    for (policy, mode) in all_securities() {
        let mut wire = Setup::new(policy, mode).open();
        for body in [&b"first"[..], b"second", b"third"] {
            wire.client.send(wire.now, body, &mut wire.to_server).unwrap();
        }
        let mut input = std::mem::take(&mut wire.to_server);
        let range = input.as_ptr_range();
        let (mut at, mut got) = (0, Vec::new());
        while at < input.len() {
            let (consumed, event) = wire
                .server
                .handle_input(wire.now, &mut input[at..], &mut wire.to_client);
            let Event::Message {
                body: Body::InPlace(body),
                ..
            } = event
            else {
                panic!("{event:?}")
            };
            assert!(range.contains(&body.as_ptr()));
            got.push(body.to_vec());
            at += consumed;
        }
        assert_eq!(got, [&b"first"[..], b"second", b"third"]);
    }
}

#[test]
fn ids_of_another_channel_or_token_are_refused() {
    for (policy, mode) in all_securities() {
        let chunk = RawChunk::new(ChunkType::Final, 1, b"body");
        let mut wire = Setup::new(policy, mode).open();
        let bytes = raw(
            &mut wire,
            &RawChunk {
                channel_id: Some(99),
                ..chunk
            },
        );
        assert_eq!(wire.refuse(&bytes).wire, StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN);
        let chunk = RawChunk::new(ChunkType::Final, 1, b"body");
        let mut wire = Setup::new(policy, mode).open();
        let bytes = raw(
            &mut wire,
            &RawChunk {
                token_id: Some(99),
                ..chunk
            },
        );
        assert_eq!(wire.refuse(&bytes).wire, StatusCode::BAD_SECURE_CHANNEL_TOKEN_UNKNOWN);
    }
}

#[test]
fn a_sequence_number_out_of_order_closes_and_only_the_log_learns_why() {
    // OpenSecureChannel took number 1.
    for number in [0, 1, 3, 1_000, u32::MAX] {
        let mut wire = Setup::none().open();
        let chunk = RawChunk {
            sequence_number: Some(number),
            ..RawChunk::new(ChunkType::Final, 1, b"body")
        };
        let bytes = raw(&mut wire, &chunk);
        let error = wire.refuse(&bytes);
        assert_eq!(error.wire, StatusCode::BAD_SECURITY_CHECKS_FAILED, "{number}");
        assert_eq!(error.reason, StatusCode::BAD_SEQUENCE_NUMBER_INVALID);
    }
}

#[test]
fn a_chunk_sent_twice_is_refused() {
    for (policy, mode) in all_securities() {
        let mut wire = Setup::new(policy, mode).open();
        wire.client.send(wire.now, b"once", &mut wire.to_server).unwrap();
        let again = wire.to_server.clone();
        assert_eq!(wire.serve().len(), 1);
        assert_eq!(wire.refuse(&again).reason, StatusCode::BAD_SEQUENCE_NUMBER_INVALID);
    }
}

#[test]
fn numbers_wrap_under_traffic_in_both_directions() {
    let mut wire = Setup::none().open();
    for secure in [wire.client.secure(), wire.server.secure()] {
        secure.outgoing.set_last(4_294_966_270);
        secure.incoming.set_last(4_294_966_270);
    }
    for _ in 0..5 {
        wire.echo(b"over the border");
    }
    assert_eq!(wire.client.secure().outgoing.next(), 4);
}

#[test]
fn a_message_of_many_chunks_is_put_together() {
    let mut wire = Setup::none().open();
    assert_eq!(send(&mut wire, ChunkType::Intermediate, 5, b"one "), []);
    assert_eq!(send(&mut wire, ChunkType::Intermediate, 5, b""), []);
    assert!(wire.server.reassembly_bytes() >= 4);
    assert_eq!(
        send(&mut wire, ChunkType::Final, 5, b"two"),
        [Seen::Message(5, b"one two".to_vec())]
    );
    assert_eq!(wire.server.reassembly_bytes(), 0);
    assert_eq!(
        send(&mut wire, ChunkType::Final, 5, b"next"),
        [Seen::Message(5, b"next".to_vec())]
    );
}

#[test]
fn an_abort_drops_the_message_and_keeps_the_channel() {
    let mut wire = Setup::none().open();
    assert_eq!(send(&mut wire, ChunkType::Intermediate, 5, b"one "), []);
    let mut abort = StatusCode::BAD_ENCODING_ERROR.0.to_le_bytes().to_vec();
    put_bytes(&mut abort, Some(b"changed my mind"));
    assert_eq!(
        send(&mut wire, ChunkType::Abort, 5, &abort),
        [Seen::Aborted(
            5,
            StatusCode::BAD_ENCODING_ERROR,
            "changed my mind".into()
        )]
    );
    assert_eq!(wire.server.reassembly_bytes(), 0);
    // One that never began, and one without a reason.
    assert_eq!(
        send(&mut wire, ChunkType::Abort, 6, &abort[..4]),
        [Seen::Aborted(6, StatusCode::BAD_ENCODING_ERROR, UaString::NULL)]
    );
    wire.echo(b"still open");
}

#[test]
fn a_chunk_of_another_request_inside_a_message_closes() {
    for chunk_type in [ChunkType::Intermediate, ChunkType::Final, ChunkType::Abort] {
        let mut wire = Setup::none().open();
        send(&mut wire, ChunkType::Intermediate, 5, b"one ");
        let bytes = raw(&mut wire, &RawChunk::new(chunk_type, 6, b"0000two"));
        assert_eq!(wire.refuse(&bytes).wire, StatusCode::BAD_SECURITY_CHECKS_FAILED);
        assert_eq!(wire.server.reassembly_bytes(), 0);
    }
}

#[test]
fn a_renewal_may_come_between_the_chunks_of_a_message() {
    for (policy, mode) in all_securities() {
        let mut wire = Setup::new(policy, mode).open();
        send(&mut wire, ChunkType::Intermediate, 5, b"one ");
        wire.client.open(wire.now, &mut wire.to_server).unwrap();
        assert_eq!(wire.serve(), [Seen::Opened { renewed: true }]);
        assert_eq!(wire.receive(), [Seen::Opened { renewed: true }]);
        assert_eq!(
            send(&mut wire, ChunkType::Final, 5, b"two"),
            [Seen::Message(5, b"one two".to_vec())]
        );
    }
}

fn limited() -> Setup {
    let mut setup = Setup::none();
    setup.server_limits = Limits {
        max_message_size: 10_000,
        max_chunk_count: 5,
        unauthenticated_max_message_size: 1_000,
        unauthenticated_max_chunk_count: 3,
        ..Limits::default()
    };
    setup
}

#[test]
fn messages_are_small_until_a_session_is_active() {
    // Exactly at the limits.
    let mut wire = limited().open();
    assert_eq!(send(&mut wire, ChunkType::Final, 1, &[0; 1_000]).len(), 1);
    for chunk_type in [ChunkType::Intermediate, ChunkType::Intermediate, ChunkType::Final] {
        send(&mut wire, chunk_type, 2, &[0; 333]);
    }
    assert!(wire.server.is_open());
    // One byte above in one chunk, in two, and one chunk above.
    for (bodies, last) in [(vec![], 1_001), (vec![500], 501), (vec![0, 0, 0], 0)] {
        let mut wire = limited().open();
        for size in bodies {
            assert_eq!(send(&mut wire, ChunkType::Intermediate, 1, &vec![0; size]), []);
        }
        let bytes = raw(&mut wire, &RawChunk::new(ChunkType::Final, 1, &vec![0; last]));
        assert_eq!(
            wire.refuse(&bytes).wire,
            StatusCode::BAD_TCP_MESSAGE_TOO_LARGE,
            "{last}"
        );
        assert_eq!(wire.server.reassembly_bytes(), 0);
    }
    // The acknowledged limits hold afterwards.
    let mut wire = limited().open();
    wire.server.set_limits_authenticated();
    for chunk_type in [ChunkType::Intermediate; 4].into_iter().chain([ChunkType::Final]) {
        send(&mut wire, chunk_type, 2, &[0; 2_000]);
    }
    assert!(wire.server.is_open());
    for _ in 0..4 {
        send(&mut wire, ChunkType::Intermediate, 3, &[0; 2_000]);
    }
    let bytes = raw(&mut wire, &RawChunk::new(ChunkType::Intermediate, 3, &[0; 2_001]));
    assert_eq!(wire.refuse(&bytes).wire, StatusCode::BAD_TCP_MESSAGE_TOO_LARGE);
}

#[test]
fn a_flood_of_chunks_without_an_end_holds_no_more_than_the_limit() {
    let mut setup = Setup::none();
    setup.server_limits.unauthenticated_max_message_size = 20_000;
    setup.server_limits.unauthenticated_max_chunk_count = 1_000_000;
    setup.server_limits.max_chunk_count = 1_000_000;
    let mut wire = setup.open();
    for _ in 0..20 {
        assert_eq!(send(&mut wire, ChunkType::Intermediate, 1, &[0; 1_000]), []);
        assert!(wire.server.reassembly_bytes() <= 20_000);
    }
    let seen = send(&mut wire, ChunkType::Intermediate, 1, &[0; 1]);
    assert!(matches!(seen.as_slice(), [Seen::Closed(Closed::Error(_))]), "{seen:?}");
    assert_eq!(wire.server.reassembly_bytes(), 0);
}

#[test]
fn a_change_in_any_byte_of_a_sealed_chunk_is_noticed() {
    for (policy, mode) in all_securities().into_iter().skip(1) {
        let mut wire = Setup::new(policy, mode).open();
        wire.client
            .send(wire.now, b"a message of some length", &mut wire.to_server)
            .unwrap();
        let whole = std::mem::take(&mut wire.to_server);
        // Each position needs a channel that has not been closed by the one before: take the same keys again and again.
        let server = wire.server.secure();
        for position in 16..whole.len() {
            for bit in [0x01, 0x80] {
                let mut changed = whole.clone();
                changed[position] ^= bit;
                let token = u32_at(&changed, 12);
                let (_, token) = server.tokens.accepted(token, wire.now.mono).unwrap();
                let error = token.protection.open(&mut changed).unwrap_err();
                assert_eq!(error.wire, StatusCode::BAD_SECURITY_CHECKS_FAILED, "byte {position}");
            }
        }
        // The unencrypted header: wherever the change leads, it is refused.
        for position in 0..16 {
            let mut wire = Setup::new(policy, mode).open();
            wire.client
                .send(wire.now, b"a message of some length", &mut wire.to_server)
                .unwrap();
            wire.to_server[position] ^= 0x01;
            match wire.serve().as_slice() {
                // A size that grew waits for the rest.
                [] => assert!((4..8).contains(&position), "byte {position}"),
                [Seen::Closed(Closed::Error(_))] => {}
                other => panic!("byte {position}: {other:?}"),
            }
        }
        // The chunk itself was good.
        wire.to_server = whole;
        assert_eq!(wire.serve().len(), 1);
    }
}

/// The order of the checks: what stands outside of the encryption is a decoding error, what stands inside one failed check like all.
#[test]
fn a_chunk_too_short_for_its_fields_says_so() {
    for (policy, mode) in all_securities() {
        for length in 8..24 {
            let mut wire = Setup::new(policy, mode).open();
            let mut bytes = raw(&mut wire, &RawChunk::new(ChunkType::Final, 1, b""));
            bytes.truncate(length);
            bytes[4] = length as u8;
            bytes[5..8].fill(0);
            let expected = if length < 16 {
                StatusCode::BAD_DECODING_ERROR
            } else {
                StatusCode::BAD_SECURITY_CHECKS_FAILED
            };
            assert_eq!(wire.refuse(&bytes).wire, expected, "{policy} {length}");
        }
    }
}

/// Whatever is wrong inside a chunk, whoever made it: the same error to the last letter, and the next channel is not concerned.
#[test]
fn signature_padding_and_ciphertext_fail_alike() {
    for policy in SECURED {
        let mode = MessageSecurityMode::SIGN_AND_ENCRYPT;
        type Change = fn(&mut Wire) -> Vec<u8>;
        let cases: [(&str, Change); 6] = [
            ("signature", |wire| flipped(wire, |chunk| chunk.len() - 1)),
            ("padding", |wire| flipped(wire, |chunk| chunk.len() - 33)),
            ("ciphertext", |wire| flipped(wire, |_| 40)),
            ("sequence header", |wire| flipped(wire, |_| 16)),
            ("a padding byte under a valid signature", |wire| {
                padded(wire, |padding| padding[1] ^= 1)
            }),
            ("PaddingSize under a valid signature", |wire| {
                padded(wire, |padding| padding[padding.len() - 1] = 200)
            }),
        ];
        let mut errors = Vec::new();
        for (what, change) in cases {
            let mut wire = Setup::new(policy, mode).open();
            let bytes = change(&mut wire);
            let error = wire.refuse(&bytes);
            assert_eq!(error.wire, StatusCode::BAD_SECURITY_CHECKS_FAILED, "{what}");
            errors.push(error);
        }
        assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
        // The unchanged one opens, so that the cases above fail for what they say.
        let mut wire = Setup::new(policy, mode).open();
        wire.to_server = padded(&mut wire, |_| {});
        assert_eq!(wire.serve().len(), 1);
    }
}

fn flipped(wire: &mut Wire, position: fn(&[u8]) -> usize) -> Vec<u8> {
    let mut chunk = raw(wire, &RawChunk::new(ChunkType::Final, 1, b"a message of some length"));
    let position = position(&chunk);
    chunk[position] ^= 1;
    chunk
}

/// A chunk whose padding was changed before it was signed.
fn padded(wire: &mut Wire, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    const BODY: &[u8] = b"a message of some length";
    let secure = wire.client.secure();
    let sequence_number = secure.outgoing.next();
    let channel_id = secure.channel_id;
    let token = secure.tokens.sealing(wire.now.mono).unwrap();
    let mut chunk = vec![0; token.protection.chunk_size(BODY.len())];
    SymmetricHeader {
        chunk_type: ChunkType::Final,
        message_type: MessageType::Message,
        channel_id,
        token_id: token.id,
        sequence_number,
        request_id: 1,
    }
    .write(&mut chunk);
    let (from, to) = (24 + BODY.len(), chunk.len() - 32);
    chunk[24..from].copy_from_slice(BODY);
    let padding = &mut chunk[from..to];
    let size = padding.len() as u8 - 1;
    assert!(size > 1, "there is padding to change");
    padding.fill(size);
    change(padding);
    token.protection.seal_as_it_is(&mut chunk);
    chunk
}

#[test]
fn a_cut_chunk_whose_size_says_so_is_refused() {
    // Each length needs a channel of its own: None, and both modes of one policy.
    for (policy, mode) in all_securities().into_iter().take(3) {
        let mut length = 8;
        loop {
            let mut wire = Setup::new(policy, mode).open();
            wire.client.send(wire.now, b"cut", &mut wire.to_server).unwrap();
            if length == wire.to_server.len() {
                break;
            }
            wire.to_server.truncate(length);
            wire.to_server[4..8].copy_from_slice(&(length as u32).to_le_bytes());
            let seen = wire.serve();
            // Without a signature only the headers can be missed.
            let noticed = !policy.is_none() || length < 24;
            assert_eq!(
                matches!(seen.as_slice(), [Seen::Closed(Closed::Error(_))]),
                noticed,
                "{length}: {seen:?}"
            );
            length += 1;
        }
    }
}

#[test]
fn close_secure_channel_ends_it_without_an_error() {
    for (policy, mode) in all_securities() {
        let mut wire = Setup::new(policy, mode).open();
        wire.client.close(wire.now, &mut wire.to_server);
        assert_eq!(chunks(&wire.to_server)[0][..4], *b"CLOF");
        assert_eq!(wire.serve(), [Seen::Closed(Closed::ByPeer)]);
        assert!(wire.to_client.is_empty());
        assert!(!wire.server.is_open());
        // Whatever comes behind is swallowed.
        let mut behind = [0; 50];
        let (consumed, event) = wire.server.handle_input(wire.now, &mut behind, &mut wire.to_client);
        assert!(matches!((consumed, event), (50, Event::Closed(Closed::ByPeer))));
    }
}

#[test]
fn close_secure_channel_is_verified_like_a_message() {
    let mut wire = Setup::new(super::SECURED[1], backplane_types::MessageSecurityMode::SIGN).open();
    let close = RawChunk {
        message_type: MessageType::Close,
        ..RawChunk::new(ChunkType::Final, 9, b"")
    };
    let mut bytes = raw(&mut wire, &close);
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    assert_eq!(wire.refuse(&bytes).wire, StatusCode::BAD_SECURITY_CHECKS_FAILED);
}
