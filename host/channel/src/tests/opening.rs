//! OpenSecureChannel: who is let in, and what is told to those who are not.

use std::sync::Arc;
use std::time::Duration;

use backplane_crypto::{CertificateChain, CertificateError, SecurityPolicy, SystemRandom};
use backplane_types::{
    ByteString, MessageSecurityMode, OpenSecureChannelRequest, RequestHeader, SecurityTokenRequestType, StatusCode,
};

use super::{
    SECURED, Seen, Setup, Trusting, URL, Wire, all_securities, client_identity, error_message, long_identity,
    server_identity, short_identity, start,
};
use crate::asymmetric::{OpenChunk, Parties, PeerKey};
use crate::identity::{CertificateVerifier, OwnIdentity};
use crate::opening::encode_body;
use crate::{ChannelError, Closed, Event, Limits, ServerChannel};

/// A request as no real client may make it.
struct Raw {
    policy: SecurityPolicy,
    own: Arc<OwnIdentity>,
    server: Arc<OwnIdentity>,
    channel_id: u32,
    sequence_number: u32,
    request: OpenSecureChannelRequest,
}

impl Raw {
    fn new(policy: SecurityPolicy, mode: MessageSecurityMode) -> Self {
        let nonce: Vec<u8> = (0..policy.nonce_length()).map(|index| index as u8 + 1).collect();
        Self {
            policy,
            own: client_identity(),
            server: server_identity(),
            channel_id: 0,
            sequence_number: 51,
            request: OpenSecureChannelRequest {
                request_header: RequestHeader {
                    request_handle: 77,
                    ..RequestHeader::default()
                },
                request_type: SecurityTokenRequestType::ISSUE,
                security_mode: mode,
                client_nonce: ByteString::from(nonce),
                requested_lifetime: 60_000,
                ..OpenSecureChannelRequest::default()
            },
        }
    }

    fn secure() -> Self {
        Self::new(SecurityPolicy::Basic256Sha256, MessageSecurityMode::SIGN_AND_ENCRYPT)
    }

    fn seal(&self) -> Vec<u8> {
        self.seal_body(&encode_body(&self.request))
    }

    fn seal_body(&self, body: &[u8]) -> Vec<u8> {
        let chain = CertificateChain::parse(self.server.chain()).unwrap();
        let parties = (!self.policy.is_none()).then(|| Parties {
            own: &self.own,
            peer: PeerKey::of(&chain).unwrap(),
        });
        let chunk = OpenChunk {
            policy: self.policy,
            channel_id: self.channel_id,
            sequence_number: self.sequence_number,
            request_id: 9,
            body,
        };
        chunk.seal(parties, &mut SystemRandom, 65_536).unwrap()
    }
}

fn connected(limits: Limits) -> Wire {
    let mut setup = Setup::none();
    setup.server_limits = limits;
    let mut wire = setup.wire();
    wire.client.connect(wire.now, &mut wire.to_server);
    wire.serve();
    wire.receive();
    wire
}

fn refused(bytes: &[u8]) -> ChannelError {
    connected(Limits::default()).refuse(bytes)
}

#[test]
fn evidence_says_who_the_client_is() {
    for (policy, mode) in all_securities() {
        let mut wire = Setup::new(policy, mode).open();
        let evidence = Arc::clone(wire.server.evidence().unwrap());
        assert_eq!((evidence.policy, evidence.mode), (policy, mode));
        assert_eq!(evidence.endpoint_url, URL);
        assert_eq!(Some(evidence.channel_id), wire.client.ids().map(|ids| ids.0));
        assert!(evidence.channel_thumbprint.is_null());
        if policy.is_none() {
            assert!(evidence.client_certificate.is_null() && evidence.server_certificate.is_null());
            assert!(evidence.client_certificate_chain.is_null());
        } else {
            assert_eq!(&evidence.client_certificate, client_identity().certificate());
            assert_eq!(evidence.client_certificate_chain.bytes(), client_identity().chain());
            assert_eq!(&evidence.server_certificate, server_identity().certificate());
        }
        // A renewal changes nothing of it: the very same object.
        wire.client.open(wire.now, &mut wire.to_server).unwrap();
        assert_eq!(wire.serve(), [Seen::Opened { renewed: true }]);
        assert!(Arc::ptr_eq(&evidence, wire.server.evidence().unwrap()));
    }
}

#[test]
fn keys_above_2048_bits_work_at_either_end() {
    for policy in SECURED {
        for (server, client) in [
            (long_identity(), client_identity()),
            (server_identity(), long_identity()),
        ] {
            let mut setup = Setup::new(policy, MessageSecurityMode::SIGN_AND_ENCRYPT);
            (setup.server, setup.client) = (server, client);
            setup.open().echo(b"hello");
        }
    }
}

/// Whatever the trust list says of its certificate.
#[test]
fn a_key_shorter_than_the_policys_is_refused() {
    for policy in SECURED {
        let mut raw = Raw::new(policy, MessageSecurityMode::SIGN);
        raw.own = short_identity();
        let error = refused(&raw.seal());
        assert_eq!(error.reason, StatusCode::BAD_CERTIFICATE_POLICY_CHECK_FAILED);
        assert_eq!(
            error.wire,
            StatusCode::BAD_SECURITY_CHECKS_FAILED,
            "the peer learns no more"
        );
    }
}

#[test]
fn the_chain_is_sent_and_only_its_first_certificate_is_the_client() {
    let leaf = client_identity();
    let chained = OwnIdentity::new(
        leaf.private_key().clone(),
        leaf.certificate().bytes(),
        &[long_identity().certificate().bytes()],
    );
    let mut setup = Setup::new(SECURED[1], MessageSecurityMode::SIGN);
    setup.client = Arc::new(chained);
    let mut wire = setup.open();
    let evidence = wire.server.evidence().unwrap();
    assert_eq!(&evidence.client_certificate, leaf.certificate());
    assert!(evidence.client_certificate_chain.bytes().len() > evidence.client_certificate.bytes().len());
    wire.echo(b"hello");
}

#[test]
fn none_ignores_certificates_and_nonces() {
    for nonce in [
        ByteString::NULL,
        ByteString::from(&[]),
        ByteString::from(&[1]),
        ByteString::from(&[0; 32]),
    ] {
        let mut raw = Raw::new(SecurityPolicy::None, MessageSecurityMode::NONE);
        raw.request.client_nonce = nonce;
        let mut wire = connected(Limits::default());
        wire.to_server = raw.seal();
        assert_eq!(wire.serve(), [Seen::Opened { renewed: false }]);
        assert_eq!(&wire.to_client[..4], b"OPNF");
        // The last field, ServerNonce, is null and not 32 zeros.
        assert_eq!(wire.to_client[wire.to_client.len() - 4..], [0xff; 4]);
        assert!(wire.server.evidence().unwrap().client_certificate.is_null());
    }
}

/// A client without security may send an empty certificate, or somebody's: the evidence has none, which is null and not empty.
#[test]
fn no_certificate_is_null_and_not_empty() {
    assert_ne!(ByteString::NULL, ByteString::from(&[]));
    let bytes = Raw::new(SecurityPolicy::None, MessageSecurityMode::NONE).seal();
    let at = 16 + SecurityPolicy::None.uri().len();
    for certificate in [
        None,
        Some(vec![]),
        Some(client_identity().certificate().bytes().to_vec()),
    ] {
        let mut changed = bytes[..at].to_vec();
        crate::hello::put_bytes(&mut changed, certificate.as_deref());
        changed.extend_from_slice(&bytes[at + 4..]);
        let size = changed.len() as u32;
        changed[4..8].copy_from_slice(&size.to_le_bytes());
        let mut wire = connected(Limits::default());
        wire.to_server = changed;
        assert_eq!(wire.serve(), [Seen::Opened { renewed: false }]);
        let evidence = wire.server.evidence().unwrap();
        for missing in [
            &evidence.client_certificate,
            &evidence.client_certificate_chain,
            &evidence.server_certificate,
            &evidence.channel_thumbprint,
        ] {
            assert_eq!(missing, &ByteString::NULL);
        }
        // Whoever compares evidence sees the difference.
        let mut other = (**evidence).clone();
        assert_eq!(other, **evidence);
        other.client_certificate = ByteString::from(&[]);
        assert_ne!(other, **evidence);
    }
}

#[test]
fn a_client_without_security_ignores_the_servers_nonce() {
    let mut wire = connected(Limits::default());
    wire.client.open(wire.now, &mut wire.to_server).unwrap();
    assert_eq!(wire.serve(), [Seen::Opened { renewed: false }]);
    // The last field, ServerNonce, is null; one byte takes its place.
    wire.to_client.truncate(wire.to_client.len() - 4);
    wire.to_client.extend([1, 0, 0, 0, 9]);
    let size = u32::try_from(wire.to_client.len()).unwrap();
    wire.to_client[4..8].copy_from_slice(&size.to_le_bytes());
    assert_eq!(wire.receive(), [Seen::Opened { renewed: false }]);
    wire.echo(b"hello");
}

#[test]
fn a_missing_policy_uri_is_none() {
    let mut bytes = Raw::new(SecurityPolicy::None, MessageSecurityMode::NONE).seal();
    let length = SecurityPolicy::None.uri().len();
    for field in [(-1_i32).to_le_bytes(), 0_i32.to_le_bytes()] {
        let mut short = [&bytes[..12], &field, &bytes[16 + length..]].concat();
        let size = short.len() as u32;
        short[4..8].copy_from_slice(&size.to_le_bytes());
        let mut wire = connected(Limits::default());
        wire.to_server = short;
        assert_eq!(wire.serve(), [Seen::Opened { renewed: false }]);
    }
    bytes[12..16].copy_from_slice(&(-2_i32).to_le_bytes());
    assert_eq!(refused(&bytes).wire, StatusCode::BAD_DECODING_ERROR);
}

#[test]
fn unknown_policies_are_rejected() {
    let bytes = Raw::new(SecurityPolicy::None, MessageSecurityMode::NONE).seal();
    let rest = 16 + SecurityPolicy::None.uri().len();
    let deprecated = "http://opcfoundation.org/UA/SecurityPolicy#Basic128Rsa15".to_owned();
    for uri in [deprecated, "x".to_owned(), "x".repeat(256), "x".repeat(5_000)] {
        let mut other = [
            &bytes[..12],
            &(uri.len() as u32).to_le_bytes(),
            uri.as_bytes(),
            &bytes[rest..],
        ]
        .concat();
        let size = other.len() as u32;
        other[4..8].copy_from_slice(&size.to_le_bytes());
        assert_eq!(refused(&other).wire, StatusCode::BAD_SECURITY_POLICY_REJECTED);
    }
}

#[test]
fn modes_go_with_policies() {
    for (policy, mode) in [
        (SecurityPolicy::None, MessageSecurityMode::SIGN),
        (SecurityPolicy::None, MessageSecurityMode::SIGN_AND_ENCRYPT),
        (SecurityPolicy::None, MessageSecurityMode::INVALID),
        (SecurityPolicy::Basic256Sha256, MessageSecurityMode::NONE),
        (SecurityPolicy::Basic256Sha256, MessageSecurityMode::INVALID),
        (SecurityPolicy::Basic256Sha256, MessageSecurityMode(42)),
    ] {
        let error = refused(&Raw::new(policy, mode).seal());
        assert_eq!(error.wire, StatusCode::BAD_SECURITY_MODE_REJECTED, "{policy} {mode:?}");
    }
}

#[test]
fn only_configured_policies_are_taken() {
    let config = crate::ServerConfig {
        limits: Limits::default(),
        allowed: vec![(SecurityPolicy::Basic256Sha256, MessageSecurityMode::SIGN)],
    };
    for (policy, mode, status) in [
        (
            SecurityPolicy::None,
            MessageSecurityMode::NONE,
            StatusCode::BAD_SECURITY_POLICY_REJECTED,
        ),
        (
            SECURED[2],
            MessageSecurityMode::SIGN,
            StatusCode::BAD_SECURITY_POLICY_REJECTED,
        ),
        (
            SECURED[1],
            MessageSecurityMode::SIGN_AND_ENCRYPT,
            StatusCode::BAD_SECURITY_MODE_REJECTED,
        ),
    ] {
        let mut wire = Setup::none().wire();
        wire.server = ServerChannel::new(
            Arc::new(config.clone()),
            Arc::new(crate::ChannelIds::starting_at(0)),
            start(),
        );
        wire.client.connect(wire.now, &mut wire.to_server);
        wire.serve();
        assert_eq!(wire.refuse(&Raw::new(policy, mode).seal()).wire, status);
    }
}

#[test]
fn the_length_of_a_nonce_is_the_policys() {
    for policy in SECURED {
        for length in [0, 1, 16, 31, 33, 64] {
            let mut raw = Raw::new(policy, MessageSecurityMode::SIGN);
            raw.request.client_nonce = ByteString::from(vec![1; length]);
            assert_eq!(refused(&raw.seal()).wire, StatusCode::BAD_NONCE_INVALID, "{length}");
        }
    }
}

#[test]
fn a_certificate_that_is_not_the_servers_is_noticed_by_its_thumbprint() {
    let mut raw = Raw::secure();
    raw.server = long_identity();
    assert_eq!(refused(&raw.seal()).wire, StatusCode::BAD_CERTIFICATE_INVALID);
}

#[test]
fn the_servers_own_certificate_is_no_client() {
    let mut raw = Raw::secure();
    raw.own = server_identity();
    let error = refused(&raw.seal());
    assert_eq!(error.wire, StatusCode::BAD_SECURITY_CHECKS_FAILED);
    assert_eq!(error.reason, StatusCode::BAD_CERTIFICATE_INVALID);
}

#[test]
fn a_key_that_does_not_belong_to_the_certificate_opens_nothing() {
    let mut raw = Raw::secure();
    raw.own = Arc::new(OwnIdentity::new(
        server_identity().private_key().clone(),
        client_identity().certificate().bytes(),
        &[],
    ));
    assert_eq!(refused(&raw.seal()).wire, StatusCode::BAD_SECURITY_CHECKS_FAILED);
}

#[test]
fn certificates_that_cannot_be_read_are_refused_without_rsa_work() {
    let good = Raw::secure().seal();
    let certificate = client_identity().certificate().bytes().to_vec();
    let at = good
        .windows(certificate.len())
        .position(|window| window == certificate)
        .unwrap();
    for replaced in [
        vec![],
        vec![0x30, 0x82],
        vec![0; 1_000],
        vec![0x30; 33_000],
        certificate[..100].to_vec(),
    ] {
        let mut bytes = good[..at - 4].to_vec();
        bytes.extend_from_slice(&(replaced.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&replaced);
        bytes.extend_from_slice(&good[at + certificate.len()..]);
        let size = bytes.len() as u32;
        bytes[4..8].copy_from_slice(&size.to_le_bytes());
        assert_eq!(
            refused(&bytes).wire,
            StatusCode::BAD_SECURITY_CHECKS_FAILED,
            "{}",
            replaced.len()
        );
    }
}

struct Refusing(CertificateError);

impl CertificateVerifier for Refusing {
    fn verify(
        &self,
        _: &CertificateChain,
        _: SecurityPolicy,
        _: backplane_types::DateTime,
    ) -> Result<(), CertificateError> {
        Err(self.0.clone())
    }
}

#[test]
fn untrusted_clients_learn_nothing_and_the_log_everything() {
    let mut wire = connected(Limits::default());
    wire.hold_work = true;
    wire.to_server = Raw::secure().seal();
    wire.serve();
    let refusal = CertificateError::Untrusted {
        subject: "CN=client".into(),
        thumbprint: "00".into(),
    };
    let outcome = wire
        .work
        .take()
        .unwrap()
        .run(&wire.identity, &Refusing(refusal), &mut SystemRandom);
    assert_eq!(outcome.error().unwrap().reason, StatusCode::BAD_CERTIFICATE_UNTRUSTED);
    let Seen::Closed(Closed::Error(error)) = wire.opened(outcome) else {
        panic!()
    };
    assert_eq!(error.wire, StatusCode::BAD_SECURITY_CHECKS_FAILED);
    assert_eq!(error_message(&wire.to_client).0, StatusCode::BAD_SECURITY_CHECKS_FAILED);
}

/// Wherever a request is changed, it opens nothing, and behind the header all changes look the same.
#[test]
fn a_changed_request_opens_nothing() {
    let good = Raw::secure().seal();
    let header = good.len() - 512;
    for position in (0..good.len()).step_by(13) {
        let mut changed = good.clone();
        changed[position] ^= 0x04;
        let mut wire = connected(Limits::default());
        wire.to_server = changed;
        let seen = wire.serve();
        match seen.as_slice() {
            [] => assert!((4..8).contains(&position)),
            [Seen::Closed(Closed::Error(error))] if position >= header => {
                assert_eq!(error.wire, StatusCode::BAD_SECURITY_CHECKS_FAILED, "byte {position}");
            }
            [Seen::Closed(Closed::Error(_))] => {}
            other => panic!("byte {position}: {other:?}"),
        }
    }
}

#[test]
fn bodies_that_are_no_request_are_refused() {
    for body in [&[][..], &[1, 0, 0x8b, 1], &[0xff; 200], &[0; 10]] {
        for raw in [Raw::secure(), Raw::new(SecurityPolicy::None, MessageSecurityMode::NONE)] {
            let error = refused(&raw.seal_body(body));
            assert_eq!(error.wire, StatusCode::BAD_DECODING_ERROR);
        }
    }
}

#[test]
fn an_open_needs_its_own_channel_and_only_one() {
    // A renewal before anything was opened, with and without an id.
    let mut raw = Raw::new(SecurityPolicy::None, MessageSecurityMode::NONE);
    raw.request.request_type = SecurityTokenRequestType::RENEW;
    assert_eq!(refused(&raw.seal()).wire, StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN);
    raw.channel_id = 7;
    assert_eq!(refused(&raw.seal()).wire, StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN);
    // A second issue on an open channel, with and without its id.
    let mut wire = Setup::none().open();
    let second = Raw {
        sequence_number: 2,
        ..Raw::new(SecurityPolicy::None, MessageSecurityMode::NONE)
    };
    assert_eq!(
        wire.refuse(&second.seal()).wire,
        StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN
    );
    let mut wire = Setup::none().open();
    let second = Raw {
        channel_id: 7,
        ..second
    };
    assert_eq!(wire.refuse(&second.seal()).wire, StatusCode::BAD_REQUEST_TYPE_INVALID);
    // A type that does not exist.
    let mut raw = Raw::new(SecurityPolicy::None, MessageSecurityMode::NONE);
    raw.request.request_type = SecurityTokenRequestType(5);
    assert_eq!(refused(&raw.seal()).wire, StatusCode::BAD_REQUEST_TYPE_INVALID);
    // A message before the channel is open.
    let mut bytes = b"MSGF".to_vec();
    bytes.extend_from_slice(&24_u32.to_le_bytes());
    bytes.extend_from_slice(&[0; 16]);
    assert_eq!(refused(&bytes).wire, StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN);
}

#[test]
fn lifetimes_are_revised_into_the_allowed_range() {
    let limits = Limits::default();
    for (requested, revised) in [
        (0, limits.default_lifetime),
        (1, limits.min_lifetime),
        (10_000, Duration::from_secs(10)),
        (60_000, Duration::from_secs(60)),
        (u32::MAX, limits.max_lifetime),
    ] {
        let mut setup = Setup::none();
        setup.lifetime = Duration::from_millis(u64::from(requested));
        let wire = setup.open();
        // The client's renewal is due after three quarters of what it was told.
        assert_eq!(
            wire.client.poll_timeout(),
            Some(start().mono + revised / 4 * 3),
            "{requested}"
        );
        assert_eq!(wire.server.poll_timeout(), Some(start().mono + revised + revised / 4));
    }
}

#[test]
fn nothing_is_taken_while_an_open_is_awaited() {
    let mut wire = connected(Limits::default());
    wire.hold_work = true;
    wire.client.open(wire.now, &mut wire.to_server).unwrap();
    assert_eq!(wire.serve(), []);
    let mut more = b"MSGF".to_vec();
    let (consumed, event) = wire.server.handle_input(wire.now, &mut more, &mut wire.to_client);
    assert!(matches!((consumed, event), (0, Event::Opening)));
    assert_eq!(wire.run_held(), Seen::Opened { renewed: false });
    assert_eq!(wire.receive(), [Seen::Opened { renewed: false }]);
    wire.echo(b"now");
}

#[test]
fn an_outcome_nobody_waits_for_does_no_harm() {
    let mut first = connected(Limits::default());
    first.hold_work = true;
    first.client.open(first.now, &mut first.to_server).unwrap();
    first.serve();
    let outcome = first
        .work
        .take()
        .unwrap()
        .run(&first.identity, &Trusting, &mut SystemRandom);
    first.server.close(StatusCode::BAD_SERVER_HALTED, &mut first.to_client);
    let before = first.to_client.len();
    let Seen::Closed(Closed::Error(error)) = first.opened(outcome) else {
        panic!()
    };
    assert_eq!(error.wire, StatusCode::BAD_SERVER_HALTED);
    assert_eq!(first.to_client.len(), before, "no second error");
    assert!(!first.server.is_open());
}

#[test]
fn ids_are_unique_and_never_0() {
    let ids = crate::ChannelIds::starting_at(u32::MAX);
    assert_eq!((ids.channel(), ids.channel(), ids.channel()), (u32::MAX, 1, 2));
    assert_eq!((ids.token(), ids.token()), (u32::MAX, 1));
}
