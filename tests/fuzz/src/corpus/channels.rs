//! Seeds of streams for both ends of a connection.

use backplane_channel::Mark;
use backplane_types::structures::OpenSecureChannelRequest;
use backplane_types::{MessageSecurityMode, RequestHeader, SecurityTokenRequestType};

use super::messages;
use super::wire::message;
use super::{Seed, truncated, with_bad_lengths};
use crate::channel_setup::{FIRST_ID, SECURED, connect, now, plain_start};
use crate::targets::client_channel;
use crate::targets::server_channel::{chunk, moment};

const NONE_URI: &[u8] = b"http://opcfoundation.org/UA/SecurityPolicy#None";

fn fields(parts: &[u32]) -> Vec<u8> {
    parts.iter().flat_map(|part| part.to_le_bytes()).collect()
}

/// A message with its size put right.
fn framed(letters: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let size = u32::try_from(8 + body.len()).unwrap_or(u32::MAX);
    [&letters[..], &size.to_le_bytes(), body].concat()
}

/// A message that says of itself how long it is.
fn sized(letters: &[u8; 4], size: u32) -> Vec<u8> {
    [&letters[..], &size.to_le_bytes(), &[0; 24]].concat()
}

fn text(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    [&length.to_le_bytes()[..], bytes].concat()
}

fn hello(numbers: [u32; 5], url: &[u8]) -> Vec<u8> {
    framed(b"HELF", &[fields(&numbers), text(url)].concat())
}

/// An OpenSecureChannel request without security, every field of its header by hand.
fn open_request(
    channel: u32,
    uri: &[u8],
    certificate: &[u8],
    thumbprint: &[u8],
    sequence: u32,
    body: &[u8],
) -> Vec<u8> {
    let parts = [
        fields(&[channel]),
        uri.to_vec(),
        certificate.to_vec(),
        thumbprint.to_vec(),
        fields(&[sequence, 1]),
        body.to_vec(),
    ];
    framed(b"OPNF", &parts.concat())
}

fn open_body(kind: SecurityTokenRequestType, mode: MessageSecurityMode) -> Vec<u8> {
    message(&OpenSecureChannelRequest {
        request_header: RequestHeader::default(),
        request_type: kind,
        security_mode: mode,
        requested_lifetime: 60_000,
        ..OpenSecureChannelRequest::default()
    })
}

fn null() -> Vec<u8> {
    fields(&[u32::MAX])
}

/// A whole message in one chunk on the open channel.
fn single(sequence: u32, body: &[u8]) -> Vec<u8> {
    chunk(b'F', sequence, body)
}

fn clo(sequence: u32) -> Vec<u8> {
    framed(b"CLOF", &fields(&[FIRST_ID, FIRST_ID, sequence, 1]))
}

fn at(moment: u8, name: &str, stream: impl AsRef<[u8]>) -> Seed {
    Seed::new(name, [&[moment, 1], stream.as_ref()].concat())
}

fn hellos() -> Vec<Seed> {
    let start = plain_start();
    let usual = [0, 65_535, 65_535, 0, 0];
    let url = b"opc.tcp://localhost:4840";
    let mut all = vec![
        at(moment::NEW, "hello", &start.hello),
        at(
            moment::NEW,
            "hello-and-open",
            [&start.hello[..], &start.open_request].concat(),
        ),
        at(moment::NEW, "hello-twice", [&start.hello[..], &start.hello].concat()),
        at(
            moment::NEW,
            "hello-null-url",
            framed(b"HELF", &[fields(&usual), null()].concat()),
        ),
        at(moment::NEW, "hello-url-4096", hello(usual, &[b'u'; 4_060])),
        at(moment::NEW, "hello-url-invalid-utf8", hello(usual, &[0xC3, 0x28])),
        at(
            moment::NEW,
            "hello-url-length-largest",
            framed(b"HELF", &fields(&[0, 65_535, 65_535, 0, 0, 0x7FFF_FFFF])),
        ),
        at(
            moment::NEW,
            "hello-bytes-behind",
            framed(b"HELF", &[fields(&usual), text(url), vec![0]].concat()),
        ),
        at(moment::NEW, "hello-intermediate", framed(b"HELC", &fields(&usual))),
        at(moment::NEW, "http", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        at(moment::NEW, "tls", [0x16, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3]),
        at(moment::NEW, "open-first", &start.open_request),
        at(moment::NEW, "nothing", []),
    ];
    for (name, numbers) in [
        ("zeros", [0; 5]),
        ("largest", [u32::MAX; 5]),
        ("smallest-buffers", [0, 8_192, 8_192, 1, 1]),
        ("too-small-buffers", [0, 8_191, 8_192, 0, 0]),
        ("version", [99, 65_535, 65_535, 0, 0]),
    ] {
        all.push(at(
            moment::NEW,
            &format!("hello-{name}"),
            [hello(numbers, url), start.open_request.clone()].concat(),
        ));
    }
    for (name, letters) in [
        ("ack", b"ACKF"),
        ("err", b"ERRF"),
        ("rhe", b"RHEF"),
        ("msg", b"MSGF"),
        ("clo", b"CLOF"),
        ("xyz", b"XYZF"),
    ] {
        all.push(at(moment::NEW, &format!("first-{name}"), sized(letters, 32)));
        all.push(at(moment::OPEN, &format!("later-{name}"), sized(letters, 32)));
    }
    for size in [0, 7, 8, 9, 23, 24, 8_192, 8_193, 0x7FFF_FFFF, u32::MAX] {
        all.push(at(moment::NEW, &format!("hello-size-{size}"), sized(b"HELF", size)));
        all.push(at(moment::HELLO, &format!("open-size-{size}"), sized(b"OPNF", size)));
        all.push(at(moment::OPEN, &format!("message-size-{size}"), sized(b"MSGF", size)));
    }
    all
}

fn opens() -> Vec<Seed> {
    let (issue, renew) = (SecurityTokenRequestType::ISSUE, SecurityTokenRequestType::RENEW);
    let none = MessageSecurityMode::NONE;
    let uri = text(NONE_URI);
    let good = open_request(0, &uri, &null(), &null(), 1, &open_body(issue, none));
    let again = open_request(FIRST_ID, &uri, &null(), &null(), 2, &open_body(renew, none));
    let second = open_request(FIRST_ID, &uri, &null(), &null(), 2, &open_body(issue, none));
    let largest = fields(&[0x7FFF_FFFF]);
    let body = open_body(issue, none);
    vec![
        at(moment::HELLO, "open", &good),
        at(moment::SLOW, "open-slowly", [&good[..], &single(2, b"early")].concat()),
        at(moment::SLOW, "open-slowly-twice", [&good[..], &again].concat()),
        at(
            moment::HELLO,
            "open-without-uri",
            open_request(0, &null(), &null(), &null(), 1, &body),
        ),
        at(
            moment::HELLO,
            "open-uri-unknown",
            open_request(0, &text(b"http://x"), &null(), &null(), 1, &body),
        ),
        at(
            moment::HELLO,
            "open-uri-long",
            open_request(0, &text(&[b'u'; 256]), &null(), &null(), 1, &body),
        ),
        at(
            moment::HELLO,
            "open-uri-largest",
            open_request(0, &largest, &null(), &null(), 1, &body),
        ),
        at(
            moment::HELLO,
            "open-certificate-largest",
            open_request(0, &uri, &largest, &null(), 1, &body),
        ),
        at(
            moment::HELLO,
            "open-thumbprint-largest",
            open_request(0, &uri, &null(), &largest, 1, &body),
        ),
        at(
            moment::HELLO,
            "open-certificate-empty",
            open_request(0, &uri, &text(b""), &text(b""), 1, &body),
        ),
        at(
            moment::HELLO,
            "open-mode-sign",
            open_request(
                0,
                &uri,
                &null(),
                &null(),
                1,
                &open_body(issue, MessageSecurityMode::SIGN),
            ),
        ),
        at(
            moment::HELLO,
            "open-mode-invalid",
            open_request(0, &uri, &null(), &null(), 1, &open_body(issue, MessageSecurityMode(77))),
        ),
        at(
            moment::HELLO,
            "open-renewal-of-nothing",
            open_request(0, &uri, &null(), &null(), 1, &open_body(renew, none)),
        ),
        at(
            moment::HELLO,
            "open-other-channel",
            open_request(99, &uri, &null(), &null(), 1, &body),
        ),
        at(
            moment::HELLO,
            "open-other-message",
            open_request(0, &uri, &null(), &null(), 1, &message(&messages::read())),
        ),
        at(
            moment::HELLO,
            "open-without-body",
            open_request(0, &uri, &null(), &null(), 1, &[]),
        ),
        at(
            moment::HELLO,
            "open-without-sequence",
            framed(
                b"OPNF",
                &[fields(&[0]), uri.clone(), null(), null(), vec![1, 2]].concat(),
            ),
        ),
        at(moment::OPEN, "renew", &again),
        at(
            moment::OPEN,
            "renew-and-message",
            [&again[..], &single(3, b"body")].concat(),
        ),
        at(moment::OPEN, "open-second", &second),
        at(
            moment::MESSAGE,
            "renew-inside-message",
            open_request(FIRST_ID, &uri, &null(), &null(), 4, &open_body(renew, none)),
        ),
    ]
}

fn streams() -> Vec<Seed> {
    let requests = [
        message(&messages::create_session()),
        message(&messages::read()),
        message(&messages::browse()),
        message(&messages::publish()),
    ];
    let whole: Vec<u8> = (2..)
        .zip(&requests)
        .flat_map(|(number, body)| single(number, body))
        .collect();
    let other = {
        let mut chunk = chunk(b'C', 4, b"of another request");
        chunk.splice(20..24, [2, 0, 0, 0]);
        chunk
    };
    let abort = |reason: &[u8]| chunk(b'A', 4, &[&[0, 0, 0x80, 0x80][..], reason].concat());
    vec![
        at(moment::OPEN, "requests", &whole),
        at(moment::ECHO, "requests-echoed", &whole),
        at(moment::OPEN, "message-empty", single(2, b"")),
        at(moment::OPEN, "message-and-close", [single(2, b"body"), clo(3)].concat()),
        at(moment::OPEN, "close-and-message", [clo(2), single(3, b"body")].concat()),
        at(
            moment::OPEN,
            "sequence-again",
            [single(2, b"a"), single(2, b"b")].concat(),
        ),
        at(
            moment::OPEN,
            "sequence-jump",
            [single(2, b"a"), single(9, b"b")].concat(),
        ),
        at(moment::HELLO, "message-before-open", single(2, b"a")),
        at(moment::MESSAGE, "message-ends", single(4, b"last part")),
        at(moment::MESSAGE, "message-other-request", other),
        at(
            moment::MESSAGE,
            "message-aborted",
            [abort(&text(b"no more")), single(5, b"next")].concat(),
        ),
        at(moment::MESSAGE, "message-aborted-oddly", abort(&fields(&[0x7FFF_FFFF]))),
        at(moment::MESSAGE, "message-aborted-without-code", chunk(b'A', 4, &[1])),
        at(moment::MESSAGE, "close-inside-message", clo(4)),
        at(
            moment::CHUNK,
            "chunk-goes-on",
            [&[0, 0][..], &single(2, &[b'x'; 24])[8..]].concat(),
        ),
        at(
            moment::AUTHENTICATED | moment::REPAIR,
            "empty-chunks",
            chunk(b'C', 0, b"").repeat(9),
        ),
        at(
            moment::OPEN | moment::REPAIR,
            "repaired",
            [chunk(b'C', 0, b"a"), chunk(b'F', 0, b"b"), clo(0)].concat(),
        ),
        at(
            moment::ECHO | moment::REPAIR,
            "repaired-echoed",
            [chunk(b'F', 0, &[1; 300]), chunk(b'F', 0, &[2; 40])].concat(),
        ),
    ]
}

pub(super) fn to_server() -> Vec<Seed> {
    [hellos(), opens(), streams()].concat()
}

/// Floods, channels with keys, and every length in the usual start made to hurt.
pub(super) fn long_to_server() -> Vec<Seed> {
    let start = plain_start();
    let short = [
        at(moment::NEW, "start", [&start.hello[..], &start.open_request].concat()),
        at(moment::OPEN, "request", single(2, &message(&messages::publish()))),
    ];
    let mut all = with_bad_lengths(&short);
    all.extend(truncated(&short));
    for (name, moment) in [("open", moment::OPEN), ("authenticated", moment::AUTHENTICATED)] {
        let flood = |size: usize, count: usize| chunk(b'C', 0, &vec![0; size]).repeat(count);
        all.push(at(
            moment | moment::REPAIR,
            &format!("flood-small-{name}"),
            flood(1, 2_000),
        ));
        all.push(at(
            moment | moment::REPAIR,
            &format!("flood-large-{name}"),
            flood(8_000, 40),
        ));
        let exact = [flood(2_000, 3), chunk(b'F', 0, &[0; 144])].concat();
        all.push(at(moment | moment::REPAIR, &format!("exact-{name}"), exact));
    }
    all.push(at(
        moment::ECHO | moment::REPAIR,
        "echo-many",
        chunk(b'F', 0, &[3; 5_000]).repeat(20),
    ));
    all.extend(secured());
    all
}

/// The start and two messages of a channel with keys, whole, cut, and with a byte changed.
fn secured() -> Vec<Seed> {
    let mut all = Vec::new();
    for policy in SECURED {
        for mode in [MessageSecurityMode::SIGN, MessageSecurityMode::SIGN_AND_ENCRYPT] {
            let (_, mut client, start) = connect(Some((policy, mode)));
            let mut sent = Vec::new();
            for body in [&b"first"[..], &[7; 3_000]] {
                let mark = Mark::begin(&mut sent);
                sent.extend_from_slice(body);
                client.finish_message(now(), mark, &mut sent).expect("an open channel");
            }
            let name = |what: &str| format!("secured-{policy:?}-{mode:?}-{what}").to_lowercase();
            let stream = [&start.hello[..], &start.open_request, &sent].concat();
            all.push(at(moment::NEW, &name("whole"), &stream));
            let opened = start.hello.len() + start.open_request.len();
            for place in [start.hello.len() + 200, opened - 1, opened + 30, stream.len() - 1] {
                let mut broken = stream.clone();
                if let Some(byte) = broken.get_mut(place) {
                    *byte ^= 1;
                }
                all.push(at(moment::NEW, &name(&format!("broken-{place}")), broken));
            }
        }
    }
    all
}

/// A message from the server: what the client's end takes on the open channel.
fn answers() -> Vec<Seed> {
    use client_channel::moment;
    let start = plain_start();
    let error = framed(
        b"ERRF",
        &[fields(&[0x8080_0000]), text(b"BadTcpMessageTooLarge")].concat(),
    );
    let reverse = |uri: &[u8], url: &[u8]| framed(b"RHEF", &[text(uri), text(url)].concat());
    let acknowledge = |numbers: [u32; 5]| framed(b"ACKF", &fields(&numbers));
    vec![
        at(
            moment::NEW,
            "reverse-hello",
            reverse(b"urn:server", b"opc.tcp://server:4840"),
        ),
        at(moment::NEW, "reverse-hello-long", reverse(&[b'a'; 100], &[0xFF; 9])),
        at(moment::HELLO, "acknowledge", &start.acknowledge),
        at(moment::HELLO, "acknowledge-zeros", acknowledge([0; 5])),
        at(
            moment::HELLO,
            "acknowledge-largest",
            acknowledge([0, u32::MAX, u32::MAX, u32::MAX, u32::MAX]),
        ),
        at(
            moment::HELLO,
            "acknowledge-version",
            acknowledge([1, 8_192, 8_192, 0, 0]),
        ),
        at(moment::HELLO, "error", &error),
        at(moment::HELLO, "error-without-code", framed(b"ERRF", &[1])),
        at(moment::HELLO, "open-response-early", &start.open_response),
        at(moment::OPENING, "open-response", &start.open_response),
        at(moment::OPENING, "open-response-twice", start.open_response.repeat(2)),
        at(moment::OPENING, "message-early", single(2, b"body")),
        at(moment::OPENING, "error-instead", &error),
        at(moment::RENEWING, "renewal-answered", {
            let mut response = start.open_response.clone();
            let at = response.len();
            let from = at.saturating_sub(4);
            response.splice(from..at, [0; 4]);
            response
        }),
        at(moment::OPEN, "response", single(2, b"response")),
        at(
            moment::OPEN,
            "response-in-chunks",
            [chunk(b'C', 2, b"one"), chunk(b'F', 3, b"two")].concat(),
        ),
        at(
            moment::OPEN,
            "response-aborted",
            [
                chunk(b'C', 2, b"one"),
                chunk(b'A', 3, &fields(&[0x8080_0000, u32::MAX])),
            ]
            .concat(),
        ),
        at(moment::OPEN, "close", clo(2)),
        at(moment::OPEN, "hello", &start.hello),
        at(
            moment::OPEN | moment::REPAIR,
            "repaired",
            [chunk(b'C', 0, b"a"), chunk(b'F', 0, b"b")].concat(),
        ),
    ]
}

pub(super) fn to_client() -> Vec<Seed> {
    answers()
}

pub(super) fn long_to_client() -> Vec<Seed> {
    let start = plain_start();
    let short = [
        at(client_channel::moment::HELLO, "acknowledge", &start.acknowledge),
        at(client_channel::moment::OPENING, "open-response", &start.open_response),
    ];
    let mut all = with_bad_lengths(&short);
    all.extend(truncated(&short));
    let flood = chunk(b'C', 0, &[0; 2_000]).repeat(60);
    all.push(at(
        client_channel::moment::OPEN | client_channel::moment::REPAIR,
        "flood",
        flood,
    ));
    all
}
