//! Every step of the handshake, done wrong: Hello, OpenSecureChannel, and the first chunks of an open channel (Part 6, 6.7 and 7.1).

use backplane_types::{MessageSecurityMode, SecurityTokenRequestType, StatusCode};

use crate::support::{Noise, Raw, Server, hello, open_chunk, open_request, well_behaved};

/// How far the handshake goes well.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Connected,
    Greeted,
    Opened,
}

impl Stage {
    const ALL: [Self; 3] = [Self::Connected, Self::Greeted, Self::Opened];

    async fn reach(self, server: &Server) -> Raw {
        match self {
            Self::Connected => Raw::connect(server).await,
            Self::Greeted => Raw::greeted(server).await,
            Self::Opened => Raw::opened(server).await,
        }
    }
}

/// Sends `bytes` at a stage and gives the code of the Error message.
async fn answer(server: &Server, stage: Stage, bytes: &[u8]) -> Option<StatusCode> {
    let mut raw = stage.reach(server).await;
    raw.send(bytes).await;
    raw.error().await
}

/// A message header that claims `size` bytes.
fn claim(letters: &[u8; 4], size: u32) -> Vec<u8> {
    let mut out = letters.to_vec();
    out.extend_from_slice(&size.to_le_bytes());
    out
}

fn issue(mode: MessageSecurityMode) -> Vec<u8> {
    open_request(SecurityTokenRequestType::ISSUE, mode)
}

#[tokio::test]
async fn headers_that_mean_nothing_are_refused_at_every_stage() {
    let server = Server::demo();
    let invalid = StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID;
    for stage in Stage::ALL {
        let cases = [
            (b"GET / HTTP/1.1\r\n\r\n".to_vec(), invalid),
            (vec![0; 64], invalid),
            (vec![0xFF; 64], invalid),
            (claim(b"ACKF", 28), invalid),
            (claim(b"ERRF", 16), invalid),
            (claim(b"RHEF", 16), invalid),
            (claim(b"HELC", 32), invalid),
            (claim(b"OPNC", 132), invalid),
            (claim(b"CLOA", 28), invalid),
            (claim(b"MSGX", 28), invalid),
        ];
        for (bytes, status) in cases {
            assert_eq!(
                answer(&server, stage, &bytes).await,
                Some(status),
                "{stage:?} {bytes:?}"
            );
        }
        let own: &[u8; 4] = if matches!(stage, Stage::Connected) {
            b"HELF"
        } else {
            b"MSGF"
        };
        for (size, status) in [
            (0, StatusCode::BAD_DECODING_ERROR),
            (7, StatusCode::BAD_DECODING_ERROR),
            (0x7FFF_FFFF, StatusCode::BAD_TCP_MESSAGE_TOO_LARGE),
            (0xFFFF_FFFF, StatusCode::BAD_TCP_MESSAGE_TOO_LARGE),
            (65_537, StatusCode::BAD_TCP_MESSAGE_TOO_LARGE),
        ] {
            assert_eq!(
                answer(&server, stage, &claim(own, size)).await,
                Some(status),
                "{stage:?} of {size} bytes"
            );
        }
    }
    well_behaved(&server).await;
}

#[tokio::test]
async fn messages_out_of_order_are_refused() {
    let server = Server::demo();
    let invalid = Some(StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID);
    let unknown = Some(StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN);
    let open = open_chunk(0, None, None, 1, &issue(MessageSecurityMode::NONE));
    let greeting = hello(65_536, server.url().as_bytes());
    let message = Raw::connect(&server).await.chunk(b"MSGF", 1, &[0; 32]);
    let close = Raw::connect(&server).await.chunk(b"CLOF", 1, &[]);
    for bytes in [&open, &message, &close] {
        assert_eq!(
            answer(&server, Stage::Connected, bytes).await,
            invalid,
            "before the Hello"
        );
    }
    for bytes in [&message, &close] {
        assert_eq!(
            answer(&server, Stage::Greeted, bytes).await,
            unknown,
            "before the channel"
        );
    }
    for stage in [Stage::Greeted, Stage::Opened] {
        assert_eq!(
            answer(&server, stage, &greeting).await,
            invalid,
            "a second Hello, {stage:?}"
        );
    }
    well_behaved(&server).await;
}

#[tokio::test]
async fn a_hello_with_wrong_fields_is_refused() {
    let server = Server::demo();
    let url = b"opc.tcp://localhost/";
    let mut longer = hello(65_536, url);
    longer.extend_from_slice(b"more");
    let size = u32::try_from(longer.len()).unwrap();
    longer[4..8].copy_from_slice(&size.to_le_bytes());
    let mut endless = hello(65_536, url);
    endless[28..32].copy_from_slice(&0x7FFF_FFFF_u32.to_le_bytes());
    let cases = [
        (hello(0, url), StatusCode::BAD_TCP_NOT_ENOUGH_RESOURCES),
        (hello(8_191, url), StatusCode::BAD_TCP_NOT_ENOUGH_RESOURCES),
        (hello(65_536, &[b'x'; 4_097]), StatusCode::BAD_TCP_ENDPOINT_URL_INVALID),
        (
            hello(65_536, b"opc.tcp://\xC3\x28/"),
            StatusCode::BAD_TCP_ENDPOINT_URL_INVALID,
        ),
        (longer, StatusCode::BAD_DECODING_ERROR),
        (endless, StatusCode::BAD_DECODING_ERROR),
        (claim(b"HELF", 8), StatusCode::BAD_DECODING_ERROR),
    ];
    for (bytes, status) in cases {
        assert_eq!(
            answer(&server, Stage::Connected, &bytes).await,
            Some(status),
            "{bytes:?}"
        );
    }
    well_behaved(&server).await;
}

#[tokio::test]
async fn a_channel_is_not_opened_wrongly() {
    let server = Server::demo();
    let good = issue(MessageSecurityMode::NONE);
    let renew = open_request(SecurityTokenRequestType::RENEW, MessageSecurityMode::NONE);
    let basic: &[u8] = b"http://opcfoundation.org/UA/SecurityPolicy#Basic256Sha256";
    let mut endless = open_chunk(0, None, None, 1, &good);
    endless[12..16].copy_from_slice(&0x7FFF_FFFF_u32.to_le_bytes());
    let rejected = StatusCode::BAD_SECURITY_POLICY_REJECTED;
    let cases = [
        (
            "channel id",
            open_chunk(7, None, None, 1, &good),
            StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN,
        ),
        (
            "unknown policy",
            open_chunk(0, Some(b"http://example.org/none"), None, 1, &good),
            rejected,
        ),
        (
            "withdrawn policy",
            open_chunk(
                0,
                Some(b"http://opcfoundation.org/UA/SecurityPolicy#Basic128Rsa15"),
                None,
                1,
                &good,
            ),
            rejected,
        ),
        (
            "long policy",
            open_chunk(0, Some(&[b'x'; 300]), None, 1, &good),
            rejected,
        ),
        (
            "policy not in UTF-8",
            open_chunk(0, Some(b"\xFF\xFE"), None, 1, &good),
            rejected,
        ),
        (
            "mode",
            open_chunk(0, None, None, 1, &issue(MessageSecurityMode::SIGN)),
            StatusCode::BAD_SECURITY_MODE_REJECTED,
        ),
        (
            "no mode",
            open_chunk(0, None, None, 1, &issue(MessageSecurityMode::INVALID)),
            StatusCode::BAD_SECURITY_MODE_REJECTED,
        ),
        (
            "renewal of nothing",
            open_chunk(0, None, None, 1, &renew),
            StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN,
        ),
        (
            "no certificate",
            open_chunk(0, Some(basic), None, 1, &good),
            StatusCode::BAD_CERTIFICATE_INVALID,
        ),
        (
            "no real certificate",
            open_chunk(0, Some(basic), Some(&[0x30; 900]), 1, &good),
            StatusCode::BAD_CERTIFICATE_INVALID,
        ),
        (
            "empty body",
            open_chunk(0, None, None, 1, &[]),
            StatusCode::BAD_DECODING_ERROR,
        ),
        (
            "half a body",
            open_chunk(0, None, None, 1, &good[..good.len() / 2]),
            StatusCode::BAD_DECODING_ERROR,
        ),
        (
            "noise",
            open_chunk(0, None, None, 1, &Noise::new(1).bytes(500)),
            StatusCode::BAD_DECODING_ERROR,
        ),
        ("endless policy", endless, StatusCode::BAD_DECODING_ERROR),
        ("no fields", claim(b"OPNF", 8), StatusCode::BAD_DECODING_ERROR),
    ];
    for (what, bytes, status) in cases {
        assert_eq!(answer(&server, Stage::Greeted, &bytes).await, Some(status), "{what}");
    }
    well_behaved(&server).await;
}

#[tokio::test]
async fn chunks_with_wrong_numbers_end_the_channel() {
    let server = Server::demo();
    type Change = fn(&mut Raw) -> Vec<u8>;
    let checks = StatusCode::BAD_SECURITY_CHECKS_FAILED;
    let cases: [(&str, Change, StatusCode); 8] = [
        (
            "channel id",
            |raw| {
                raw.channel = raw.channel.wrapping_add(1);
                raw.chunk(b"MSGF", 1, &[0; 32])
            },
            StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN,
        ),
        (
            "token id",
            |raw| {
                raw.token = raw.token.wrapping_add(1);
                raw.chunk(b"MSGF", 1, &[0; 32])
            },
            StatusCode::BAD_SECURE_CHANNEL_TOKEN_UNKNOWN,
        ),
        (
            "repeated sequence number",
            |raw| {
                raw.sequence -= 1;
                raw.chunk(b"MSGF", 1, &[0; 32])
            },
            checks,
        ),
        (
            "gap between sequence numbers",
            |raw| {
                raw.sequence += 1;
                raw.chunk(b"MSGF", 1, &[0; 32])
            },
            checks,
        ),
        (
            "chunk of another message",
            |raw| [raw.chunk(b"MSGC", 1, &[0; 32]), raw.chunk(b"MSGF", 2, &[0; 32])].concat(),
            checks,
        ),
        (
            "header cut short",
            |_| [claim(b"MSGF", 12), vec![0; 4]].concat(),
            StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN,
        ),
        (
            "sequence header cut short",
            |raw| {
                let mut chunk = raw.chunk(b"MSGF", 1, &[]);
                chunk.truncate(20);
                chunk[4] = 20;
                chunk
            },
            checks,
        ),
        (
            "second channel",
            |raw| open_chunk(raw.channel, None, None, raw.sequence, &issue(MessageSecurityMode::NONE)),
            StatusCode::BAD_REQUEST_TYPE_INVALID,
        ),
    ];
    for (what, bytes, status) in cases {
        let mut raw = Raw::opened(&server).await;
        let bytes = bytes(&mut raw);
        raw.send(&bytes).await;
        assert_eq!(raw.error().await, Some(status), "{what}");
    }
    well_behaved(&server).await;
}

#[tokio::test]
async fn a_handshake_cut_anywhere_leaves_nothing() {
    let server = Server::demo();
    let greeting = hello(65_536, server.url().as_bytes());
    let open = open_chunk(0, None, None, 1, &issue(MessageSecurityMode::NONE));
    for (stage, whole) in [(Stage::Connected, &greeting), (Stage::Greeted, &open)] {
        for length in 0..whole.len() {
            let mut raw = stage.reach(&server).await;
            raw.send(&whole[..length]).await;
            raw.finish_sending().await;
            assert_eq!(raw.receive().await, None, "{stage:?} {length}");
        }
    }
    well_behaved(&server).await;
}

#[tokio::test]
async fn noise_is_refused_at_every_stage() {
    let server = Server::demo();
    for stage in Stage::ALL {
        for seed in 0..40 {
            let mut noise = Noise::new(seed);
            let length = 8 + usize::from(noise.byte()) * 16;
            let status = answer(&server, stage, &noise.bytes(length)).await;
            assert_eq!(
                status,
                Some(StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID),
                "{stage:?} {seed}"
            );
            // Noise behind a header that fits.
            let mut raw = stage.reach(&server).await;
            let letters: &[u8; 4] = match stage {
                Stage::Connected => b"HELF",
                Stage::Greeted => b"OPNF",
                Stage::Opened => b"MSGF",
            };
            let mut bytes = claim(letters, u32::try_from(8 + length).unwrap());
            bytes.extend(noise.bytes(length));
            raw.send(&bytes).await;
            raw.finish_sending().await;
            let status = raw.error().await.expect("an Error message");
            assert!(status.is_bad(), "{stage:?} {seed} {status}");
        }
    }
    well_behaved(&server).await;
}

#[tokio::test]
async fn who_says_nothing_is_sent_away() {
    let server = Server::with("handshake-timeout-ms = 400");
    let mut silent = Vec::new();
    for bytes in [&b""[..], b"HEL", b"HELF\x40\0\0\0", b"HELF\x40\0\0\0\0\0\0\0"] {
        let mut raw = Raw::connect(&server).await;
        raw.send(bytes).await;
        silent.push(raw);
    }
    for bytes in [&b""[..], b"OPN", b"OPNF\x84\0\0\0\0\0\0\0"] {
        let mut raw = Raw::greeted(&server).await;
        raw.send(bytes).await;
        silent.push(raw);
    }
    well_behaved(&server).await;
    for (index, raw) in silent.iter_mut().enumerate() {
        assert_eq!(raw.error().await, Some(StatusCode::BAD_TIMEOUT), "silent peer {index}");
    }
    well_behaved(&server).await;
}
