//! A scripted peer in memory: both ends, the bytes between them, and simulated time.

mod chunks;
mod hello;
mod opening;
mod order;
mod reattach;
mod renewal;
mod sending;
mod splits;
mod timers;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use backplane_crypto::{
    ApplicationCertificateRequest, CertificateChain, CertificateError, SecurityPolicy, SystemRandom,
    create_application_certificate,
};
use backplane_types::{DateTime, MessageSecurityMode, Now, StatusCode, UaString};

use crate::header::{CHUNK_HEADER, ChunkType, MessageType, SymmetricHeader};
use crate::identity::{CertificateVerifier, OwnIdentity};
use crate::opening::{OpenOutcome, OpenWork};
use crate::secure::Secure;
use crate::{
    ChannelError, ChannelIds, ClientChannel, ClientConfig, ClientEvent, ClientSecurity, Closed, Event, Limits, Opened,
    ServerChannel, ServerConfig,
};

pub(crate) const URL: &str = "opc.tcp://localhost:4840/backplane";

pub(crate) const SECURED: [SecurityPolicy; 3] = [
    SecurityPolicy::Aes128Sha256RsaOaep,
    SecurityPolicy::Basic256Sha256,
    SecurityPolicy::Aes256Sha256RsaPss,
];

/// Every combination that exists.
pub(crate) fn all_securities() -> Vec<(SecurityPolicy, MessageSecurityMode)> {
    let mut all = vec![(SecurityPolicy::None, MessageSecurityMode::NONE)];
    for policy in SECURED {
        all.push((policy, MessageSecurityMode::SIGN));
        all.push((policy, MessageSecurityMode::SIGN_AND_ENCRYPT));
    }
    all
}

fn identity(cell: &'static OnceLock<Arc<OwnIdentity>>, name: &str, bits: u32) -> Arc<OwnIdentity> {
    Arc::clone(cell.get_or_init(|| {
        let made = create_application_certificate(
            &ApplicationCertificateRequest {
                application_uri: format!("urn:backplane:test:{name}"),
                common_name: name.to_owned(),
                organization: String::new(),
                dns_names: vec!["localhost".to_owned()],
                ip_addresses: Vec::new(),
                key_bits: bits,
                not_before: start().utc,
                validity: Duration::from_secs(365 * 86_400),
            },
            &mut SystemRandom,
        )
        .unwrap();
        Arc::new(OwnIdentity::new(made.private_key, made.certificate.der(), &[]))
    }))
}

pub(crate) fn server_identity() -> Arc<OwnIdentity> {
    static CELL: OnceLock<Arc<OwnIdentity>> = OnceLock::new();
    identity(&CELL, "server", 2_048)
}

pub(crate) fn client_identity() -> Arc<OwnIdentity> {
    static CELL: OnceLock<Arc<OwnIdentity>> = OnceLock::new();
    identity(&CELL, "client", 2_048)
}

/// A key too short for every policy.
pub(crate) fn short_identity() -> Arc<OwnIdentity> {
    static CELL: OnceLock<Arc<OwnIdentity>> = OnceLock::new();
    identity(&CELL, "short", 1_024)
}

/// A key above 2,048 bits: messages to it carry ExtraPaddingSize.
pub(crate) fn long_identity() -> Arc<OwnIdentity> {
    static CELL: OnceLock<Arc<OwnIdentity>> = OnceLock::new();
    identity(&CELL, "long", 3_072)
}

pub(crate) fn start() -> Now {
    Now::new(
        Duration::from_secs(1_000),
        DateTime::from_unix_nanos(1_790_000_000_000_000_000),
    )
}

/// Trusts everyone.
pub(crate) struct Trusting;

impl CertificateVerifier for Trusting {
    fn verify(&self, _: &CertificateChain, _: SecurityPolicy, _: DateTime) -> Result<(), CertificateError> {
        Ok(())
    }
}

/// What a test saw of an event, without its borrow.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Message(u32, Vec<u8>),
    Aborted(u32, StatusCode, UaString),
    Acknowledged,
    Opened { renewed: bool },
    Closed(Closed),
}

impl Seen {
    pub(crate) fn message(&self) -> &[u8] {
        match self {
            Self::Message(_, body) => body,
            other => panic!("{other:?} is no message"),
        }
    }
}

/// Both ends of a connection and the bytes under way.
pub(crate) struct Wire {
    pub(crate) now: Now,
    pub(crate) server: ServerChannel,
    pub(crate) client: ClientChannel,
    pub(crate) identity: Arc<OwnIdentity>,
    pub(crate) to_server: Vec<u8>,
    pub(crate) to_client: Vec<u8>,
    /// Work that the server's end gave out and the test has not run yet.
    pub(crate) work: Option<OpenWork>,
    /// Leave work undone until the test runs it.
    pub(crate) hold_work: bool,
}

pub(crate) struct Setup {
    pub(crate) policy: SecurityPolicy,
    pub(crate) mode: MessageSecurityMode,
    pub(crate) server_limits: Limits,
    pub(crate) client_limits: Limits,
    pub(crate) lifetime: Duration,
    pub(crate) server: Arc<OwnIdentity>,
    pub(crate) client: Arc<OwnIdentity>,
}

impl Setup {
    pub(crate) fn new(policy: SecurityPolicy, mode: MessageSecurityMode) -> Self {
        Self {
            policy,
            mode,
            server_limits: Limits::default(),
            client_limits: Limits::default(),
            lifetime: Duration::from_secs(60),
            server: server_identity(),
            client: client_identity(),
        }
    }

    pub(crate) fn none() -> Self {
        Self::new(SecurityPolicy::None, MessageSecurityMode::NONE)
    }

    pub(crate) fn wire(&self) -> Wire {
        let security = (!self.policy.is_none()).then(|| ClientSecurity {
            policy: self.policy,
            mode: self.mode,
            own: Arc::clone(&self.client),
            server_certificate: self.server.certificate().clone(),
        });
        let config = ClientConfig {
            limits: self.client_limits,
            endpoint_url: URL.into(),
            security,
            requested_lifetime: self.lifetime,
        };
        Wire {
            now: start(),
            server: server_channel(self.server_limits),
            client: ClientChannel::new(config, Box::new(SystemRandom), start()).unwrap(),
            identity: Arc::clone(&self.server),
            to_server: Vec::new(),
            to_client: Vec::new(),
            work: None,
            hold_work: false,
        }
    }

    /// A wire with an open channel.
    pub(crate) fn open(&self) -> Wire {
        let mut wire = self.wire();
        wire.open();
        wire
    }
}

pub(crate) fn server_channel(limits: Limits) -> ServerChannel {
    let config = ServerConfig {
        limits,
        allowed: all_securities(),
    };
    ServerChannel::new(Arc::new(config), Arc::new(ChannelIds::starting_at(7)), start())
}

impl Wire {
    pub(crate) fn open(&mut self) {
        self.client.connect(self.now, &mut self.to_server);
        assert_eq!(self.serve(), []);
        assert_eq!(self.receive(), [Seen::Acknowledged]);
        self.client.open(self.now, &mut self.to_server).unwrap();
        assert_eq!(self.serve(), [Seen::Opened { renewed: false }]);
        assert_eq!(self.receive(), [Seen::Opened { renewed: false }]);
        assert!(self.client.is_open() && self.server.is_open());
    }

    /// Lets the server take everything that is there.
    pub(crate) fn serve(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        let mut input = std::mem::take(&mut self.to_server);
        let mut at = 0;
        loop {
            let (consumed, event) = self
                .server
                .handle_input(self.now, &mut input[at..], &mut self.to_client);
            at += consumed;
            match event {
                Event::NeedMore { .. } | Event::Opening => break,
                Event::Progress => {}
                Event::Message { request_id, body } => {
                    seen.push(Seen::Message(request_id, body.to_vec()));
                    self.server.recycle(body);
                }
                Event::Aborted {
                    request_id,
                    status,
                    reason,
                } => {
                    seen.push(Seen::Aborted(request_id, status, reason));
                }
                Event::Open(work) if self.hold_work => self.work = Some(*work),
                Event::Open(work) => {
                    let result = self.run(*work);
                    let over = matches!(result, Seen::Closed(_));
                    seen.push(result);
                    if over {
                        break;
                    }
                }
                Event::Closed(closed) => {
                    seen.push(Seen::Closed(closed));
                    break;
                }
            }
        }
        self.to_server = input.split_off(at.min(input.len()));
        seen
    }

    fn run(&mut self, work: OpenWork) -> Seen {
        let outcome = work.run(&self.identity, &Trusting, &mut SystemRandom);
        self.opened(outcome)
    }

    pub(crate) fn opened(&mut self, outcome: OpenOutcome) -> Seen {
        match self.server.handle_opened(self.now, outcome, &mut self.to_client) {
            Ok(opened) => Seen::Opened {
                renewed: opened == Opened::Renewed,
            },
            Err(closed) => Seen::Closed(closed),
        }
    }

    /// Runs the work that was held.
    pub(crate) fn run_held(&mut self) -> Seen {
        let work = self.work.take().expect("work was held");
        self.run(work)
    }

    /// Lets the client take everything that is there.
    pub(crate) fn receive(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        let mut input = std::mem::take(&mut self.to_client);
        let mut at = 0;
        loop {
            let (consumed, event) = self
                .client
                .handle_input(self.now, &mut input[at..], &mut self.to_server);
            at += consumed;
            match event {
                ClientEvent::NeedMore { .. } => break,
                ClientEvent::Progress => {}
                ClientEvent::ReverseHello(hello) => panic!("{hello:?}"),
                ClientEvent::Acknowledged => seen.push(Seen::Acknowledged),
                ClientEvent::Opened { renewed } => seen.push(Seen::Opened { renewed }),
                ClientEvent::Message { request_id, body } => {
                    seen.push(Seen::Message(request_id, body.to_vec()));
                    self.client.recycle(body);
                }
                ClientEvent::Aborted {
                    request_id,
                    status,
                    reason,
                } => {
                    seen.push(Seen::Aborted(request_id, status, reason));
                }
                ClientEvent::Closed(closed) => {
                    seen.push(Seen::Closed(closed));
                    break;
                }
            }
        }
        self.to_client = input.split_off(at.min(input.len()));
        seen
    }

    /// The client sends, the server answers with the same bytes, the client gets them.
    pub(crate) fn echo(&mut self, body: &[u8]) {
        let request_id = self.client.send(self.now, body, &mut self.to_server).unwrap();
        let seen = self.serve();
        assert_eq!(seen, [Seen::Message(request_id, body.to_vec())]);
        self.server
            .send(self.now, request_id, body, &mut self.to_client)
            .unwrap();
        assert_eq!(self.receive(), [Seen::Message(request_id, body.to_vec())]);
    }

    /// What the server says to bytes that break a rule: the closing error, after checking that the client sees its wire code.
    pub(crate) fn refuse(&mut self, bytes: &[u8]) -> ChannelError {
        self.to_server.extend_from_slice(bytes);
        let mut seen = self.serve();
        let Some(Seen::Closed(Closed::Error(error))) = seen.pop() else {
            panic!("not refused")
        };
        let (status, reason) = error_message(&self.to_client);
        assert_eq!(status, error.wire);
        assert_eq!(
            Some(reason.as_str()),
            error.wire.name(),
            "the reason is the name of the code and nothing else"
        );
        assert!(!self.server.is_open());
        error
    }
}

/// Code and reason of the Error message at the end of `bytes`.
pub(crate) fn error_message(bytes: &[u8]) -> (StatusCode, String) {
    let at = bytes
        .windows(4)
        .rposition(|letters| letters == b"ERRF")
        .expect("an Error message");
    let message = &bytes[at..];
    assert_eq!(message.len(), u32_at(message, 4) as usize);
    let reason = String::from_utf8(message[16..].to_vec()).unwrap();
    assert_eq!(reason.len(), u32_at(message, 12) as usize);
    (StatusCode(u32_at(message, 8)), reason)
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// Splits sealed bytes into chunks.
pub(crate) fn chunks(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (chunk, rest) = bytes.split_at(u32_at(bytes, 4) as usize);
        all.push(chunk.to_vec());
        bytes = rest;
    }
    all
}

/// One sealed chunk as no real end would make it: every field may be chosen.
pub(crate) struct RawChunk<'a> {
    pub(crate) message_type: MessageType,
    pub(crate) chunk_type: ChunkType,
    pub(crate) channel_id: Option<u32>,
    pub(crate) token_id: Option<u32>,
    pub(crate) sequence_number: Option<u32>,
    pub(crate) request_id: u32,
    pub(crate) body: &'a [u8],
}

impl<'a> RawChunk<'a> {
    pub(crate) fn new(chunk_type: ChunkType, request_id: u32, body: &'a [u8]) -> Self {
        Self {
            message_type: MessageType::Message,
            chunk_type,
            channel_id: None,
            token_id: None,
            sequence_number: None,
            request_id,
            body,
        }
    }

    /// Seals with the keys `secure` would take; what was not chosen is as it should be.
    pub(crate) fn seal(&self, secure: &mut Secure, now: Now) -> Vec<u8> {
        let sequence_number = self.sequence_number.unwrap_or_else(|| secure.outgoing.next());
        let channel_id = self.channel_id.unwrap_or(secure.channel_id);
        let token = secure.tokens.sealing(now.mono).expect("an open channel");
        let mut chunk = vec![0; token.protection.chunk_size(self.body.len())];
        SymmetricHeader {
            chunk_type: self.chunk_type,
            message_type: self.message_type,
            channel_id,
            token_id: self.token_id.unwrap_or(token.id),
            sequence_number,
            request_id: self.request_id,
        }
        .write(&mut chunk);
        chunk[CHUNK_HEADER..CHUNK_HEADER + self.body.len()].copy_from_slice(self.body);
        token.protection.seal(&mut chunk, self.body.len()).unwrap();
        chunk
    }
}

/// Work goes to another thread and comes back; a channel lives in a task that moves.
#[test]
fn channels_and_their_work_can_move_between_threads() {
    fn sendable<T: Send>() {}
    sendable::<OpenWork>();
    sendable::<OpenOutcome>();
    sendable::<ServerChannel>();
    sendable::<ClientChannel>();
}
