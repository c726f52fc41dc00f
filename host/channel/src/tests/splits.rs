//! Any split of the stream gives the same messages, and no bytes whatever do harm.

use proptest::prelude::{ProptestConfig, any, prop, prop_assert, prop_assert_eq, proptest};
use proptest::strategy::Strategy;

use super::{Seen, Setup, Wire, all_securities, server_channel, start, u32_at};
use crate::{Event, Limits};

/// Feeds `stream` to the server in pieces of the given lengths, over and over.
fn feed(wire: &mut Wire, stream: &[u8], pieces: &[usize]) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut rest = stream;
    for piece in pieces.iter().cycle() {
        let (now, later) = rest.split_at((*piece).min(rest.len()));
        wire.to_server.extend_from_slice(now);
        seen.extend(wire.serve());
        rest = later;
        if rest.is_empty() {
            return seen;
        }
    }
    seen
}

/// One read ends anywhere inside the headers of the next chunk: what is there of it stays as it is.
#[test]
fn a_read_may_end_inside_the_header_of_the_next_chunk() {
    for (policy, mode) in all_securities() {
        for cut in [0, 1, 4, 7, 8, 9, 15, 16, 20, 23, 24, 40] {
            let mut wire = Setup::new(policy, mode).open();
            let mut stream = Vec::new();
            let second = [2; 100];
            let ids = [b"first".as_slice(), &second, b"third"]
                .map(|body| wire.client.send(wire.now, body, &mut stream).unwrap());
            let first = u32_at(&stream, 4) as usize;
            let (now, later) = stream.split_at(first + cut);
            wire.to_server = now.to_vec();
            assert_eq!(wire.serve(), [Seen::Message(ids[0], b"first".to_vec())]);
            assert_eq!(wire.to_server, now[first..], "kept, and not opened in part");
            let bytes = if cut < 8 {
                8
            } else {
                u32_at(&stream, first + 4) as usize
            };
            let mut kept = wire.to_server.clone();
            let (0, Event::NeedMore { bytes: needed }) =
                wire.server.handle_input(wire.now, &mut kept, &mut wire.to_client)
            else {
                panic!("{policy} {cut}")
            };
            assert_eq!(needed, bytes);
            wire.to_server.extend_from_slice(later);
            assert_eq!(
                wire.serve(),
                [
                    Seen::Message(ids[1], second.to_vec()),
                    Seen::Message(ids[2], b"third".to_vec())
                ]
            );
        }
    }
}

fn small() -> Setup {
    let mut setup = Setup::none();
    setup.server_limits.receive_buffer_size = 8_192;
    setup
}

proptest! {
    // Each case opens a channel, most of them with RSA keys.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_split_gives_the_same_messages(
        lengths in prop::collection::vec(0_usize..30_000, 1..6),
        pieces in prop::collection::vec(1_usize..9_000, 1..20),
        tiny in any::<bool>(),
        which in 0_usize..7,
    ) {
        let (policy, mode) = all_securities()[which];
        let mut setup = small();
        (setup.policy, setup.mode) = (policy, mode);
        let mut wire = setup.open();
        let mut stream = Vec::new();
        let mut expected = Vec::new();
        for (index, length) in lengths.iter().enumerate() {
            let body = vec![index as u8; *length];
            let id = wire.client.send(wire.now, &body, &mut stream).unwrap();
            expected.push(Seen::Message(id, body));
        }
        let pieces = if tiny && stream.len() < 5_000 { vec![1] } else { pieces };
        prop_assert_eq!(feed(&mut wire, &stream, &pieces), expected);
    }

}

proptest! {
    #[test]
    fn the_handshake_may_be_split_anywhere(pieces in prop::collection::vec(1_usize..100, 1..20)) {
        let mut wire = Setup::none().wire();
        let mut stream = Vec::new();
        wire.client.connect(wire.now, &mut stream);
        feed(&mut wire, &stream, &pieces);
        assert_eq!(wire.receive(), [Seen::Acknowledged]);
        let mut stream = Vec::new();
        wire.client.open(wire.now, &mut stream).unwrap();
        prop_assert_eq!(feed(&mut wire, &stream, &pieces), [Seen::Opened { renewed: false }]);
        prop_assert_eq!(wire.receive(), [Seen::Opened { renewed: false }]);
    }

    #[test]
    fn random_bytes_never_panic(bytes in noise(), open in any::<bool>(), which in 0_usize..7) {
        let mut wire = if open {
            let (policy, mode) = all_securities()[which];
            Setup::new(policy, mode).open()
        } else {
            Setup::none().wire()
        };
        wire.to_server = bytes.clone();
        wire.serve();
        prop_assert!(wire.server.reassembly_bytes() <= 128 * 1024);
        wire.to_client = bytes;
        wire.receive();
    }

    #[test]
    fn a_random_change_in_a_conversation_never_panics(
        position in any::<prop::sample::Index>(),
        value in any::<u8>(),
    ) {
        let mut wire = Setup::none().wire();
        wire.client.connect(wire.now, &mut wire.to_server);
        let at = position.index(wire.to_server.len() + 200);
        if let Some(byte) = wire.to_server.get_mut(at) {
            *byte = value;
        }
        wire.serve();
        wire.receive();
        if wire.client.open(wire.now, &mut wire.to_server).is_ok() {
            let at = position.index(wire.to_server.len());
            wire.to_server[at] = value;
            wire.serve();
            wire.receive();
        }
    }

    #[test]
    fn what_is_consumed_is_never_more_than_there_is(bytes in noise()) {
        let mut server = server_channel(Limits::default());
        let mut out = Vec::new();
        let mut input = bytes;
        let length = input.len();
        let (consumed, event) = server.handle_input(start(), &mut input, &mut out);
        prop_assert!(consumed <= length);
        if let Event::NeedMore { bytes } = event {
            prop_assert!(consumed == 0 && bytes > length);
        }
    }
}

/// Bytes at random, often behind a header that is good.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let letters = prop::sample::select(vec![
        "HELF", "OPNF", "MSGF", "MSGC", "MSGA", "CLOF", "ERRF", "ACKF", "RHEF", "XXXX",
    ]);
    (
        letters,
        prop::collection::vec(any::<u8>(), 0..300),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(letters, body, fits, ids)| {
            let mut bytes = letters.as_bytes().to_vec();
            let size = if fits { body.len() as u32 + 8 } else { 0x1234 };
            bytes.extend_from_slice(&size.to_le_bytes());
            bytes.extend_from_slice(&body);
            // The ids of the channel that is open.
            if ids && bytes.len() >= 24 {
                bytes[8..12].copy_from_slice(&7_u32.to_le_bytes());
                bytes[12..16].copy_from_slice(&7_u32.to_le_bytes());
                bytes[16..20].copy_from_slice(&2_u32.to_le_bytes());
            }
            bytes
        })
}
