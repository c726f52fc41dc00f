//! Hello, Acknowledge, Error and ReverseHello.

use backplane_crypto::SystemRandom;
use backplane_types::{StatusCode, UaString};

use super::{Seen, Setup, URL, chunks, error_message, server_channel, start, u32_at};
use crate::hello::{Hello, TransportSizes, encode_error, parse_error, put_bytes};
use crate::{ClientChannel, ClientConfig, ClientEvent, Closed, Event, Limits, ReverseHello};

fn hello(receive: u32, send: u32, message: u32, count: u32) -> Vec<u8> {
    let mut out = Vec::new();
    Hello {
        protocol_version: 0,
        sizes: TransportSizes {
            receive_buffer_size: receive,
            send_buffer_size: send,
            max_message_size: message,
            max_chunk_count: count,
        },
        endpoint_url: URL.into(),
    }
    .encode(&mut out);
    out
}

/// The five numbers of the Acknowledge to `message`, or the error.
fn answer(limits: Limits, message: &[u8]) -> Result<[u32; 5], StatusCode> {
    let mut server = server_channel(limits);
    let mut out = Vec::new();
    let mut input = message.to_vec();
    match server.handle_input(start(), &mut input, &mut out) {
        (consumed, Event::Progress) => {
            assert_eq!(consumed, message.len());
            assert_eq!(&out[..4], b"ACKF");
            assert_eq!(out.len(), 28);
            assert_eq!(u32_at(&out, 4), 28);
            Ok(std::array::from_fn(|index| u32_at(&out, 8 + 4 * index)))
        }
        (_, Event::Closed(Closed::Error(error))) => {
            assert_eq!(error_message(&out).0, error.wire);
            Err(error.wire)
        }
        (_, other) => panic!("{other:?}"),
    }
}

#[test]
fn the_acknowledge_never_exceeds_the_offer_and_tells_the_servers_own_limits() {
    let limits = Limits {
        receive_buffer_size: 65_536,
        send_buffer_size: 32_768,
        ..Limits::default()
    };
    let (message, count) = (limits.max_message_size, limits.max_chunk_count);
    for (offer, receive, send) in [
        ((8_192, 8_192), 8_192, 8_192),
        ((8_196, 8_192), 8_192, 8_196),
        ((1 << 20, 1 << 20), 65_536, 32_768),
        ((16_384, u32::MAX), 65_536, 16_384),
        ((u32::MAX, u32::MAX), 65_536, 32_768),
    ] {
        let got = answer(limits, &hello(offer.0, offer.1, 0, 0)).unwrap();
        assert_eq!(got, [0, receive, send, message, count], "{offer:?}");
    }
}

#[test]
fn limits_are_unsigned_and_zero_means_none() {
    for value in [0, 1, u32::MAX] {
        let mut server = server_channel(Limits::default());
        let mut out = Vec::new();
        server.handle_input(start(), &mut hello(8_192, 8_192, value, value), &mut out);
        let sizes = server.negotiated().unwrap();
        assert_eq!(
            (sizes.peer_max_message, sizes.peer_max_chunks),
            (value as usize, value as usize)
        );
    }
}

#[test]
fn buffers_below_8192_are_refused() {
    for (receive, send) in [(8_191, 65_536), (65_536, 8_191), (0, 0), (1_024, 1_024)] {
        assert_eq!(
            answer(Limits::default(), &hello(receive, send, 0, 0)),
            Err(StatusCode::BAD_TCP_NOT_ENOUGH_RESOURCES)
        );
    }
}

#[test]
fn a_newer_client_gets_version_0() {
    let mut message = hello(8_192, 8_192, 0, 0);
    message[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(answer(Limits::default(), &message).unwrap()[0], 0);
}

fn with_url(url: Option<&[u8]>) -> Vec<u8> {
    let mut message = hello(8_192, 8_192, 0, 0);
    message.truncate(28);
    put_bytes(&mut message, url);
    let size = message.len() as u32;
    message[4..8].copy_from_slice(&size.to_le_bytes());
    message
}

#[test]
fn the_endpoint_url_has_at_most_4096_bytes() {
    let limits = Limits::default();
    assert!(answer(limits, &with_url(Some(&[b'a'; 4_096]))).is_ok());
    assert!(answer(limits, &with_url(Some(&[]))).is_ok());
    assert!(answer(limits, &with_url(None)).is_ok());
    for url in [&[b'a'; 4_097][..], &[0xff, 0xfe]] {
        assert_eq!(
            answer(limits, &with_url(Some(url))),
            Err(StatusCode::BAD_TCP_ENDPOINT_URL_INVALID)
        );
    }
    assert_eq!(
        answer(limits, &with_url(Some(&[b'a'; 9_000]))),
        Err(StatusCode::BAD_TCP_MESSAGE_TOO_LARGE)
    );
}

#[test]
fn a_hello_whose_fields_do_not_fit_its_size_is_refused() {
    let whole = hello(8_192, 8_192, 0, 0);
    for length in 8..whole.len() {
        let mut message = whole[..length].to_vec();
        message[4..8].copy_from_slice(&(length as u32).to_le_bytes());
        assert_eq!(
            answer(Limits::default(), &message),
            Err(StatusCode::BAD_DECODING_ERROR),
            "{length}"
        );
    }
    let mut longer = whole;
    longer.push(0);
    let size = longer.len() as u32;
    longer[4..8].copy_from_slice(&size.to_le_bytes());
    assert_eq!(answer(Limits::default(), &longer), Err(StatusCode::BAD_DECODING_ERROR));
}

/// The header is judged as soon as it is there: none of these waits for a body.
#[test]
fn a_bad_header_is_refused_before_its_body_comes() {
    let header = |letters: &[u8; 4], size: u32| [&letters[..], &size.to_le_bytes()].concat();
    for (bytes, status) in [
        (header(b"GET ", 0x2f20), StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID),
        (header(b"\x16\x03\x01\x02", 5), StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID),
        (header(b"HELC", 60), StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID),
        (header(b"HELA", 60), StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID),
        (header(b"MSGF", 60), StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID),
        (header(b"OPNF", 60), StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID),
        (header(b"ACKF", 28), StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID),
        (header(b"ERRF", 28), StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID),
        (header(b"RHEF", 28), StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID),
        (header(b"HELF", u32::MAX), StatusCode::BAD_TCP_MESSAGE_TOO_LARGE),
        (header(b"HELF", 8_193), StatusCode::BAD_TCP_MESSAGE_TOO_LARGE),
        (header(b"HELF", 0), StatusCode::BAD_DECODING_ERROR),
        (header(b"HELF", 7), StatusCode::BAD_DECODING_ERROR),
    ] {
        assert_eq!(answer(Limits::default(), &bytes), Err(status), "{bytes:?}");
    }
}

#[test]
fn after_the_hello_other_messages_are_bounded_by_the_agreed_buffer() {
    for (letters, size, status) in [
        (b"MSGF", 8_193, StatusCode::BAD_TCP_MESSAGE_TOO_LARGE),
        (b"OPNF", 8_193, StatusCode::BAD_TCP_MESSAGE_TOO_LARGE),
        (b"OPNC", 100, StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID),
        (b"CLOA", 100, StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID),
        (b"MSGX", 100, StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID),
        (b"MSGf", 100, StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID),
        (b"CLO\0", 100, StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID),
        (b"HELF", 60, StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID),
        (b"MSGF", 5, StatusCode::BAD_DECODING_ERROR),
    ] {
        let mut wire = Setup::none().wire();
        wire.to_server = hello(8_192, 8_192, 0, 0);
        assert_eq!(wire.serve(), []);
        let error = wire.refuse(&[&letters[..], &(size as u32).to_le_bytes()].concat());
        assert_eq!(error.wire, status, "{letters:?}");
    }
}

#[test]
fn need_more_says_how_much() {
    let mut server = server_channel(Limits::default());
    let mut out = Vec::new();
    let mut message = hello(8_192, 8_192, 0, 0);
    for length in [0, 1, 7] {
        let (0, Event::NeedMore { bytes: 8 }) = server.handle_input(start(), &mut message[..length], &mut out) else {
            panic!()
        };
    }
    let whole = message.len();
    for length in [8, whole - 1] {
        let (0, Event::NeedMore { bytes }) = server.handle_input(start(), &mut message[..length], &mut out) else {
            panic!()
        };
        assert_eq!(bytes, whole);
    }
    assert!(out.is_empty());
}

#[test]
fn the_client_refuses_an_acknowledge_above_its_offer() {
    for (field, value) in [(12, 65_537_u32), (12, 8_191), (16, 65_537), (16, 8_191), (8, 1)] {
        let mut wire = Setup::none().wire();
        wire.client.connect(wire.now, &mut wire.to_server);
        wire.serve();
        wire.to_client[field..field + 4].copy_from_slice(&value.to_le_bytes());
        let seen = wire.receive();
        assert!(
            matches!(seen.as_slice(), [Seen::Closed(Closed::Error(_))]),
            "{field} {value}: {seen:?}"
        );
    }
}

#[test]
fn the_client_chunks_to_the_agreed_size() {
    let mut setup = Setup::none();
    setup.server_limits.receive_buffer_size = 8_192;
    setup.server_limits.unauthenticated_max_message_size = 200_000;
    setup.server_limits.unauthenticated_max_chunk_count = 100;
    let mut wire = setup.open();
    wire.client.send(wire.now, &[7; 100_000], &mut wire.to_server).unwrap();
    let sent = chunks(&wire.to_server);
    assert!(sent.len() > 1 && sent.iter().all(|chunk| chunk.len() <= 8_192));
    assert_eq!(wire.serve()[0].message(), [7; 100_000]);
}

#[test]
fn an_error_message_reaches_the_client() {
    let mut wire = Setup::none().wire();
    wire.client.connect(wire.now, &mut wire.to_server);
    encode_error(&mut wire.to_client, StatusCode::BAD_TCP_SERVER_TOO_BUSY);
    assert_eq!(
        wire.receive(),
        [Seen::Closed(Closed::PeerError {
            status: StatusCode::BAD_TCP_SERVER_TOO_BUSY,
            reason: "BadTcpServerTooBusy".into()
        })]
    );
}

#[test]
fn a_reason_that_is_too_long_is_ignored() {
    let mut body = StatusCode::BAD_TIMEOUT.0.to_le_bytes().to_vec();
    put_bytes(&mut body, Some(&[b'x'; 4_097]));
    assert_eq!(parse_error(&body).unwrap(), (StatusCode::BAD_TIMEOUT, UaString::NULL));
    assert_eq!(
        parse_error(&body[..4]).unwrap(),
        (StatusCode::BAD_TIMEOUT, UaString::NULL)
    );
    assert!(parse_error(&body[..3]).is_err());
}

#[test]
fn a_reverse_hello_is_taken_and_its_url_given_back() {
    let mut wire = Setup::none().wire();
    let sent = ReverseHello {
        server_uri: "urn:plant:server".into(),
        endpoint_url: "opc.tcp://plant:4840".into(),
    };
    let mut bytes = Vec::new();
    sent.encode(&mut bytes);
    let mut out = Vec::new();
    let (consumed, event) = wire.client.handle_input(wire.now, &mut bytes, &mut out);
    let ClientEvent::ReverseHello(got) = event else {
        panic!("{event:?}")
    };
    assert_eq!((consumed, &got), (bytes_len(&sent), &sent));
    wire.client.set_endpoint_url(got.endpoint_url);
    wire.open();
    assert_eq!(wire.server.evidence().unwrap().endpoint_url, "opc.tcp://plant:4840");

    let config = ClientConfig {
        limits: Limits::default(),
        endpoint_url: UaString::NULL,
        security: None,
        requested_lifetime: super::Duration::from_secs(60),
    };
    let mut client = ClientChannel::new(config, Box::new(SystemRandom), start()).unwrap();
    let mut bytes = Vec::new();
    ReverseHello {
        server_uri: "x".repeat(4_097).into(),
        endpoint_url: UaString::NULL,
    }
    .encode(&mut bytes);
    let (_, ClientEvent::Closed(Closed::Error(error))) = client.handle_input(start(), &mut bytes, &mut out) else {
        panic!()
    };
    assert_eq!(error.wire, StatusCode::BAD_TCP_ENDPOINT_URL_INVALID);
}

fn bytes_len(hello: &ReverseHello) -> usize {
    16 + hello.server_uri.text().len() + hello.endpoint_url.text().len()
}

#[test]
fn limits_that_cannot_work_are_all_named() {
    assert_eq!(Limits::default().check(), Ok(()));
    let limits = Limits {
        receive_buffer_size: 8_191,
        max_message_size: 0,
        min_lifetime: super::Duration::from_secs(7_200),
        ..Limits::default()
    };
    assert_eq!(limits.check().unwrap_err().len(), 5);
}
