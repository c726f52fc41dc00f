//! What the channel targets and their seeds share: limits, identities, randomness that repeats, and both ends of a connection in memory.
//!
//! Owns one scripted connection. Must not know what is fed into it afterwards.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use backplane_channel::{ChannelIds, OpenWork};
use backplane_channel::{
    ClientChannel, ClientConfig, ClientEvent, ClientSecurity, Event, Limits, OwnIdentity, ServerChannel, ServerConfig,
};
use backplane_crypto::certificate::self_sign;
use backplane_crypto::{
    ApplicationCertificateRequest, Certificate, CertificateChain, CertificateError, PrivateKey, Purpose, Random,
    RandomError, SecurityPolicy, TrustStoreView, ValidationRules, validate,
};
use backplane_types::{DateTime, MessageSecurityMode, Now};

/// The id of every channel and of its first token.
pub(crate) const FIRST_ID: u32 = 7;
/// The URL in the Hello.
pub(crate) const URL: &str = "opc.tcp://localhost:4840/backplane";

/// Randomness that repeats, so that every finding does.
pub(crate) struct Repeating(u64);

impl Repeating {
    pub(crate) fn new() -> Self {
        Self(0x9E37_79B9_7F4A_7C15)
    }
}

impl Random for Repeating {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), RandomError> {
        for byte in out {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            *byte = self.0.to_le_bytes()[3];
        }
        Ok(())
    }
}

/// The time at which everything happens.
pub(crate) fn now() -> Now {
    Now {
        mono: Duration::from_secs(1_000),
        utc: DateTime::from_unix_nanos(1_900_000_000_000_000_000),
    }
}

/// Limits that small inputs meet.
pub(crate) fn limits() -> Limits {
    Limits {
        receive_buffer_size: 8_192,
        send_buffer_size: 8_192,
        max_message_size: 24 * 1_024,
        max_chunk_count: 8,
        unauthenticated_max_message_size: 6 * 1_024,
        unauthenticated_max_chunk_count: 4,
        max_sender_certificate: 6 * 1_024,
        max_held_bytes: 32 * 1_024,
        max_retained_buffer: 4 * 1_024,
        ..Limits::default()
    }
}

/// A private key of the tests, never used elsewhere.
pub(crate) fn key(pem: &[u8]) -> PrivateKey {
    PrivateKey::from_pem_or_der(pem).expect("a key of the tests")
}

/// A self-signed certificate for a key.
pub(crate) fn certificate(name: &str, key: &PrivateKey) -> Certificate {
    let request = ApplicationCertificateRequest {
        application_uri: format!("urn:backplane:fuzz:{name}"),
        common_name: name.to_owned(),
        organization: String::new(),
        dns_names: vec!["localhost".to_owned()],
        ip_addresses: Vec::new(),
        key_bits: 2_048,
        not_before: DateTime::from_unix_nanos(1_800_000_000_000_000_000),
        validity: Duration::from_secs(10 * 365 * 86_400),
    };
    self_sign(&request, key, &mut Repeating::new()).expect("names of the tests")
}

fn identity(name: &str, pem: &[u8]) -> Arc<OwnIdentity> {
    let key = key(pem);
    let certificate = certificate(name, &key);
    Arc::new(OwnIdentity::new(key, certificate.der(), &[]))
}

/// The server's key.
pub(crate) const SERVER_KEY: &[u8] = include_bytes!("../../../host/crypto/tests/keys/rsa2048-a.pem");
/// The client's key.
pub(crate) const CLIENT_KEY: &[u8] = include_bytes!("../../../host/crypto/tests/keys/rsa2048-b.pem");

pub(crate) fn server_identity() -> &'static Arc<OwnIdentity> {
    static IDENTITY: OnceLock<Arc<OwnIdentity>> = OnceLock::new();
    IDENTITY.get_or_init(|| identity("server", SERVER_KEY))
}

pub(crate) fn client_identity() -> &'static Arc<OwnIdentity> {
    static IDENTITY: OnceLock<Arc<OwnIdentity>> = OnceLock::new();
    IDENTITY.get_or_init(|| identity("client", CLIENT_KEY))
}

fn server_config() -> Arc<ServerConfig> {
    static CONFIG: OnceLock<Arc<ServerConfig>> = OnceLock::new();
    let make = || {
        let mut allowed = vec![(SecurityPolicy::None, MessageSecurityMode::NONE)];
        for policy in SECURED {
            allowed.push((policy, MessageSecurityMode::SIGN));
            allowed.push((policy, MessageSecurityMode::SIGN_AND_ENCRYPT));
        }
        Arc::new(ServerConfig {
            limits: limits(),
            allowed,
        })
    };
    Arc::clone(CONFIG.get_or_init(make))
}

/// Policies with keys.
pub(crate) const SECURED: [SecurityPolicy; 3] = [
    SecurityPolicy::Aes128Sha256RsaOaep,
    SecurityPolicy::Basic256Sha256,
    SecurityPolicy::Aes256Sha256RsaPss,
];

/// A connection that was just made.
pub(crate) fn server() -> ServerChannel {
    ServerChannel::new(server_config(), Arc::new(ChannelIds::starting_at(FIRST_ID)), now())
}

/// The other end of a connection that was just made.
pub(crate) fn client(security: Option<(SecurityPolicy, MessageSecurityMode)>) -> ClientChannel {
    let security = security.map(|(policy, mode)| ClientSecurity {
        policy,
        mode,
        own: Arc::clone(client_identity()),
        server_certificate: server_identity().certificate().clone(),
    });
    let config = ClientConfig {
        limits: limits(),
        endpoint_url: URL.into(),
        security,
        requested_lifetime: Duration::from_secs(60),
    };
    ClientChannel::new(config, Box::new(Repeating::new()), now()).expect("an identity of the tests")
}

/// Looks at the certificate as a server does, and then lets everyone in, so that what comes behind the check is reached too.
pub(crate) fn look_and_trust(
    chain: &CertificateChain,
    policy: SecurityPolicy,
    when: DateTime,
) -> Result<(), CertificateError> {
    let trusted = [chain.leaf().clone()];
    let store = TrustStoreView {
        trusted: &trusted,
        issuers: chain.issuers(),
        ..TrustStoreView::default()
    };
    let rules = ValidationRules::new(Purpose::ClientApplication, policy);
    let _ = validate(chain, &store, when, &rules);
    Ok(())
}

/// Runs the slow part of opening a channel at once.
pub(crate) fn open(server: &mut ServerChannel, work: OpenWork, out: &mut Vec<u8>) -> bool {
    let outcome = work.run(server_identity(), &look_and_trust, &mut Repeating::new());
    server.handle_opened(now(), outcome, out).is_ok()
}

/// Lets a server take what is there, all of which has to be in order.
fn serve(server: &mut ServerChannel, input: &mut [u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while at < input.len() {
        let (consumed, event) = server.handle_input(now(), input.get_mut(at..).unwrap_or_default(), out);
        at += consumed;
        match event {
            Event::Open(work) => assert!(open(server, *work, out)),
            Event::Progress | Event::Message { .. } => {}
            other => panic!("{other:?} on a connection of the tests"),
        }
    }
}

fn receive(client: &mut ClientChannel, input: &mut [u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while at < input.len() {
        let (consumed, event) = client.handle_input(now(), input.get_mut(at..).unwrap_or_default(), out);
        at += consumed;
        assert!(
            matches!(event, ClientEvent::Acknowledged | ClientEvent::Opened { .. }),
            "{event:?} on a connection of the tests"
        );
    }
}

/// The start of a connection: what each end sent, message by message.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) hello: Vec<u8>,
    pub(crate) acknowledge: Vec<u8>,
    pub(crate) open_request: Vec<u8>,
    pub(crate) open_response: Vec<u8>,
}

/// Opens a channel; both ends and what they sent.
pub(crate) fn connect(
    security: Option<(SecurityPolicy, MessageSecurityMode)>,
) -> (ServerChannel, ClientChannel, Start) {
    let (mut server, mut client) = (server(), client(security));
    let mut start = Start {
        hello: Vec::new(),
        acknowledge: Vec::new(),
        open_request: Vec::new(),
        open_response: Vec::new(),
    };
    let mut none = Vec::new();
    client.connect(now(), &mut start.hello);
    serve(&mut server, &mut start.hello.clone(), &mut start.acknowledge);
    receive(&mut client, &mut start.acknowledge.clone(), &mut none);
    client
        .open(now(), &mut start.open_request)
        .expect("an acknowledged connection");
    serve(&mut server, &mut start.open_request.clone(), &mut start.open_response);
    receive(&mut client, &mut start.open_response.clone(), &mut none);
    assert!(server.is_open() && client.is_open() && none.is_empty());
    (server, client, start)
}

/// The start of a connection without security; always the same.
pub(crate) fn plain_start() -> &'static Start {
    static START: OnceLock<Start> = OnceLock::new();
    START.get_or_init(|| connect(None).2)
}
