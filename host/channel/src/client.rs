//! The client end of a channel: Hello, opening, renewing, messages.
//!
//! Owns the state of one connection, as the server end does. A client does its own RSA work inside the calls, because it has one channel
//! and nothing else to do meanwhile. Knows no socket, no clock and no session.

use std::sync::Arc;
use std::time::Duration;

use backplane_crypto::random::nonce;
use backplane_crypto::{CertificateChain, Random, SecurityPolicy};
use backplane_types::{
    ByteString, CloseSecureChannelRequest, MessageSecurityMode, Now, OpenSecureChannelRequest,
    OpenSecureChannelResponse, RequestHeader, SecurityTokenRequestType, StatusCode, UaString,
};

use crate::asymmetric::{AsymmetricHeader, OpenChunk, Opened, Parties, PeerKey};
use crate::body::Body;
use crate::error::{ChannelError, Closed, SendError};
use crate::header::{MESSAGE_HEADER, MessageHeader, MessageType};
use crate::hello::{Hello, MAX_HELLO, Negotiated, PROTOCOL_VERSION, ReverseHello, TransportSizes, parse_error};
use crate::identity::OwnIdentity;
use crate::limits::Limits;
use crate::opening::{decode_body, encode_body};
use crate::protection::Protection;
use crate::secure::{Continuation, Received, Secure};
use crate::server::Mark;
use crate::token::{Role, Token};

/// How a client secures its channel; without it the policy is None.
#[derive(Clone, Debug)]
pub struct ClientSecurity {
    /// A policy other than None.
    pub policy: SecurityPolicy,
    /// Sign or SignAndEncrypt.
    pub mode: MessageSecurityMode,
    /// The own key and certificate.
    pub own: Arc<OwnIdentity>,
    /// The server's certificate in DER, as its endpoint said; the caller trusts it already.
    pub server_certificate: ByteString,
}

/// What a client wants.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Limits of this end.
    pub limits: Limits,
    /// The endpoint, as it stands in the Hello.
    pub endpoint_url: UaString,
    /// Security; `None` is the policy None.
    pub security: Option<ClientSecurity>,
    /// RequestedLifetime of tokens, in whole milliseconds.
    pub requested_lifetime: Duration,
}

/// What came of the input.
#[derive(Debug)]
pub enum ClientEvent<'a> {
    /// There is no whole chunk in the input: read until there are `bytes` from its start.
    NeedMore {
        /// Bytes the next step needs.
        bytes: usize,
    },
    /// Something was taken; call again with the rest of the input.
    Progress,
    /// A server called and says who it is: set the URL and connect.
    ReverseHello(ReverseHello),
    /// The Hello was acknowledged: open the channel.
    Acknowledged,
    /// The channel has its first token, or a new one.
    Opened {
        /// Whether it was open before, on this connection or on one before it.
        renewed: bool,
    },
    /// A whole message.
    Message {
        /// What `send` returned for the request.
        request_id: u32,
        /// Type id and structure.
        body: Body<'a>,
    },
    /// The server gave a response up.
    Aborted {
        /// What `send` returned for the request.
        request_id: u32,
        /// The server's code.
        status: StatusCode,
        /// The server's words; null if there were none or too many.
        reason: UaString,
    },
    /// The connection is over: write what is in the output, then close it.
    Closed(Closed),
}

enum Phase {
    New,
    Hello,
    Connected(Box<Secure>),
    Closed(Closed),
}

/// An OpenSecureChannel request without its response.
struct Pending {
    request_id: u32,
    client_nonce: Vec<u8>,
}

/// The client end of one connection. See the module.
pub struct ClientChannel {
    config: ClientConfig,
    server: Option<CertificateChain>,
    random: Box<dyn Random>,
    phase: Phase,
    since: Duration,
    last_request_id: u32,
    pending: Option<Pending>,
    /// The channel of a connection that is gone, to be asked for on this one, and the monotonic time at which it is over.
    continuation: Option<(Continuation, Duration)>,
}

impl ClientChannel {
    /// A client on a connection that was just made.
    ///
    /// # Errors
    /// BadCertificateInvalid if the server's certificate cannot be read, BadSecurityPolicyRejected or BadSecurityModeRejected for
    /// security that is none.
    pub fn new(config: ClientConfig, random: Box<dyn Random>, now: Now) -> Result<Self, ChannelError> {
        let mut server = None;
        if let Some(security) = &config.security {
            if security.policy.is_none() {
                return Err(ChannelError::ours(
                    StatusCode::BAD_SECURITY_POLICY_REJECTED,
                    "policy None",
                ));
            }
            let modes = [MessageSecurityMode::SIGN, MessageSecurityMode::SIGN_AND_ENCRYPT];
            if !modes.contains(&security.mode) {
                return Err(ChannelError::ours(StatusCode::BAD_SECURITY_MODE_REJECTED, "mode None"));
            }
            let chain = CertificateChain::parse(security.server_certificate.bytes())
                .map_err(|error| ChannelError::security(error.status(), "server certificate"))?;
            server = Some(chain);
        }
        Ok(Self {
            config,
            server,
            random,
            phase: Phase::New,
            since: now.mono,
            last_request_id: 0,
            pending: None,
            continuation: None,
        })
    }

    /// Sets the URL of the Hello, to what a ReverseHello said.
    pub fn set_endpoint_url(&mut self, url: UaString) {
        self.config.endpoint_url = url;
    }

    /// Appends the Hello.
    pub fn connect(&mut self, now: Now, out: &mut Vec<u8>) {
        if matches!(self.phase, Phase::New) {
            let hello = Hello {
                protocol_version: PROTOCOL_VERSION,
                sizes: self.offer(),
                endpoint_url: self.config.endpoint_url.clone(),
            };
            hello.encode(out);
            self.phase = Phase::Hello;
            self.since = now.mono;
        }
    }

    /// Goes on with the same channel over a connection that was just made, because the old one broke: appends the Hello; after
    /// [`ClientEvent::Acknowledged`] call [`open`](Self::open), which asks for the channel, and [`ClientEvent::Opened`] says that it is
    /// there. Whatever was under way on the old connection is lost: requests without a response have to be sent again. A server that
    /// does not know the channel, or that wants a new one (since Part 6 1.05, or because the policy is None), answers with an Error message;
    /// then this channel is over.
    ///
    /// # Errors
    /// BadSecureChannelClosed if there is no channel to go on with: never opened, closed, or its token is over.
    pub fn reconnect(&mut self, now: Now, out: &mut Vec<u8>) -> Result<(), ChannelError> {
        let kept = match (&self.phase, self.continuation) {
            (Phase::Closed(_), _) => None,
            // An attempt that broke as well has taken numbers of its own.
            (Phase::Connected(secure), before) => secure
                .tokens
                .end()
                .or(before.map(|(_, end)| end))
                .map(|end| (secure.continuation(), end)),
            (Phase::New | Phase::Hello, before) => before,
        };
        let Some(kept) = kept.filter(|(_, end)| now.mono < *end) else {
            return Err(ChannelError::ours(
                StatusCode::BAD_SECURE_CHANNEL_CLOSED,
                "no channel to go on with",
            ));
        };
        self.phase = Phase::New;
        self.pending = None;
        self.continuation = Some(kept);
        self.connect(now, out);
        Ok(())
    }

    fn offer(&self) -> TransportSizes {
        let limits = &self.config.limits;
        TransportSizes {
            receive_buffer_size: limits.receive_buffer_size,
            send_buffer_size: limits.send_buffer_size,
            max_message_size: limits.max_message_size,
            max_chunk_count: limits.max_chunk_count,
        }
    }

    fn policy(&self) -> SecurityPolicy {
        self.config
            .security
            .as_ref()
            .map_or(SecurityPolicy::None, |security| security.policy)
    }

    fn mode(&self) -> MessageSecurityMode {
        self.config
            .security
            .as_ref()
            .map_or(MessageSecurityMode::NONE, |security| security.mode)
    }

    fn next_request_id(&mut self) -> u32 {
        self.last_request_id = self.last_request_id.checked_add(1).unwrap_or(1);
        self.last_request_id
    }

    /// Appends an OpenSecureChannel request: the first one opens the channel, every later one renews it. Does nothing while one is
    /// under way.
    ///
    /// # Errors
    /// BadInvalidState before the Acknowledge, or what failed in the RSA work. The channel stays as it is.
    pub fn open(&mut self, now: Now, out: &mut Vec<u8>) -> Result<(), ChannelError> {
        if self.pending.is_some() {
            return Ok(());
        }
        let request_id = self.next_request_id();
        let policy = self.policy();
        let client_nonce = nonce(self.random.as_mut(), policy.nonce_length())
            .map_err(|_| ChannelError::ours(StatusCode::BAD_INTERNAL_ERROR, "no randomness for a nonce"))?;
        let mode = self.mode();
        let Phase::Connected(secure) = &mut self.phase else {
            return Err(ChannelError::ours(StatusCode::BAD_INVALID_STATE, "not connected"));
        };
        let request = OpenSecureChannelRequest {
            request_header: RequestHeader {
                timestamp: now.utc,
                ..RequestHeader::default()
            },
            client_protocol_version: PROTOCOL_VERSION,
            request_type: if secure.channel_id == 0 {
                SecurityTokenRequestType::ISSUE
            } else {
                SecurityTokenRequestType::RENEW
            },
            security_mode: mode,
            client_nonce: if policy.is_none() {
                ByteString::NULL
            } else {
                client_nonce.as_slice().into()
            },
            requested_lifetime: u32::try_from(self.config.requested_lifetime.as_millis()).unwrap_or(u32::MAX),
        };
        let chunk = OpenChunk {
            policy,
            channel_id: secure.channel_id,
            sequence_number: secure.number_open()?,
            request_id,
            body: &encode_body(&request),
        };
        let parties = parties(&self.config, self.server.as_ref())?;
        let sealed = chunk.seal(parties, self.random.as_mut(), secure.sizes.send_chunk)?;
        out.extend_from_slice(&sealed);
        self.pending = Some(Pending {
            request_id,
            client_nonce,
        });
        Ok(())
    }

    /// Takes the first chunk of `input`, in place, and says how many bytes of the input are done with; as at the server end.
    pub fn handle_input<'a>(&mut self, now: Now, input: &'a mut [u8], out: &mut Vec<u8>) -> (usize, ClientEvent<'a>) {
        let length = input.len();
        match self.step(now, input) {
            Ok(done) => done,
            Err(error) => (length, ClientEvent::Closed(self.fail(now, error, out))),
        }
    }

    fn step<'a>(&mut self, now: Now, input: &'a mut [u8]) -> Result<(usize, ClientEvent<'a>), ChannelError> {
        let largest = match &self.phase {
            Phase::Closed(closed) => return Ok((input.len(), ClientEvent::Closed(closed.clone()))),
            Phase::New | Phase::Hello => MAX_HELLO.saturating_mul(2),
            Phase::Connected(secure) => secure.sizes.receive_chunk,
        };
        let Some(header) = MessageHeader::parse(input, largest)? else {
            return Ok((0, ClientEvent::NeedMore { bytes: MESSAGE_HEADER }));
        };
        if input.len() < header.size {
            return Ok((0, ClientEvent::NeedMore { bytes: header.size }));
        }
        let (chunk, _) = input.split_at_mut(header.size);
        let event = match (&mut self.phase, header.message_type) {
            (_, MessageType::Error) => {
                let (status, reason) = parse_error(chunk.get(MESSAGE_HEADER..).unwrap_or_default())?;
                let closed = Closed::PeerError { status, reason };
                self.phase = Phase::Closed(closed.clone());
                ClientEvent::Closed(closed)
            }
            (Phase::New, MessageType::ReverseHello) => ClientEvent::ReverseHello(ReverseHello::parse(chunk)?),
            (Phase::Hello, MessageType::Acknowledge) => {
                let sizes = self.offer().parse_acknowledge(chunk)?;
                let mut secure = Secure::new(Role::Client, sizes, &self.config.limits);
                if let Some((continuation, _)) = self.continuation {
                    secure.resume(continuation);
                }
                self.phase = Phase::Connected(Box::new(secure));
                self.since = now.mono;
                ClientEvent::Acknowledged
            }
            (Phase::Connected(_), MessageType::Open) => self.opened(now, chunk)?,
            (Phase::Connected(secure), MessageType::Message) => match secure.receive(now.mono, header, chunk)? {
                Received::Partial | Received::Close => ClientEvent::Progress,
                Received::Message { request_id, body } => ClientEvent::Message { request_id, body },
                Received::Aborted {
                    request_id,
                    status,
                    reason,
                } => ClientEvent::Aborted {
                    request_id,
                    status,
                    reason,
                },
            },
            _ => {
                return Err(ChannelError::peer(
                    StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID,
                    "message type not expected now",
                ));
            }
        };
        Ok((header.size, event))
    }

    fn opened(&mut self, now: Now, chunk: &[u8]) -> Result<ClientEvent<'static>, ChannelError> {
        let header = AsymmetricHeader::parse(chunk, self.config.limits.max_sender_certificate)?;
        let policy = self.policy();
        self.check_server(&header)?;
        let parties = parties(&self.config, self.server.as_ref())?;
        let opened = Opened::open(chunk, &header, parties, self.random.as_mut())?;
        let mode = self.mode();
        let (Phase::Connected(secure), Some(pending)) = (&mut self.phase, self.pending.take()) else {
            return Err(ChannelError::peer(
                StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID,
                "OpenSecureChannel response without a request",
            ));
        };
        let follows = match self.continuation.take() {
            Some(_) => secure.incoming.accept_behind_gap(opened.sequence_number),
            None => secure.incoming.accept(opened.sequence_number),
        };
        if !follows {
            return Err(ChannelError::security(
                StatusCode::BAD_SEQUENCE_NUMBER_INVALID,
                "sequence number of OpenSecureChannel out of order",
            ));
        }
        let response: OpenSecureChannelResponse = decode_body(opened.body(), "not an OpenSecureChannel response")?;
        let token = &response.security_token;
        let renewed = secure.channel_id != 0;
        if opened.request_id != pending.request_id
            || token.channel_id != header.channel_id
            || (renewed && token.channel_id != secure.channel_id)
        {
            return Err(ChannelError::peer(
                StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN,
                "OpenSecureChannel response for another request or channel",
            ));
        }
        let server_nonce = response.server_nonce.bytes();
        // Without security nonces are ignored (Part 6, 6.7.4).
        if !policy.is_none() && server_nonce.len() != policy.nonce_length() {
            return Err(ChannelError::peer(
                StatusCode::BAD_NONCE_INVALID,
                "length of the server's nonce",
            ));
        }
        let protection = Protection::derive(Role::Client, policy, mode, &pending.client_nonce, server_nonce)?;
        secure.channel_id = token.channel_id;
        secure.tokens.add(Token {
            id: token.token_id,
            created: now.mono,
            lifetime: Duration::from_millis(u64::from(token.revised_lifetime)),
            protection,
        });
        Ok(ClientEvent::Opened { renewed })
    }

    fn check_server(&self, header: &AsymmetricHeader<'_>) -> Result<(), ChannelError> {
        if header.policy != self.policy() {
            return Err(ChannelError::security(
                StatusCode::BAD_SECURITY_POLICY_REJECTED,
                "the server answered with another policy",
            ));
        }
        let (Some(security), Some(server)) = (&self.config.security, &self.server) else {
            return Ok(());
        };
        let sender = CertificateChain::parse(header.sender_certificate.unwrap_or_default())
            .map_err(|error| ChannelError::security(error.status(), "server certificate"))?;
        if sender.leaf().der() != server.leaf().der() || !security.own.is_meant_by(header.receiver_thumbprint) {
            return Err(ChannelError::security(
                StatusCode::BAD_CERTIFICATE_INVALID,
                "the server answered with other certificates",
            ));
        }
        Ok(())
    }

    /// Appends a request and returns the number its response will carry.
    ///
    /// # Errors
    /// [`SendError`]; `out` is as it was. [`SendError::TooLarge`] is BadRequestTooLarge for the application.
    pub fn send(&mut self, now: Now, body: &[u8], out: &mut Vec<u8>) -> Result<u32, SendError> {
        let mark = Mark::begin(out);
        out.extend_from_slice(body);
        self.finish_message(now, mark, out)
    }

    /// Seals, where it lies, the request begun with `mark` whose body was appended to `out` since.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn finish_message(&mut self, now: Now, mark: Mark, out: &mut Vec<u8>) -> Result<u32, SendError> {
        let request_id = self.next_request_id();
        let Phase::Connected(secure) = &mut self.phase else {
            mark.discard(out);
            return Err(SendError::NotOpen);
        };
        secure.seal(now.mono, MessageType::Message, request_id, mark.start(), out)?;
        Ok(request_id)
    }

    /// Appends CloseSecureChannel, if the channel is open, and ends it.
    pub fn close(&mut self, now: Now, out: &mut Vec<u8>) {
        let request_id = self.next_request_id();
        if let Phase::Connected(secure) = &mut self.phase
            && secure.is_open()
        {
            let request = CloseSecureChannelRequest {
                request_header: RequestHeader {
                    timestamp: now.utc,
                    ..RequestHeader::default()
                },
            };
            let mark = Mark::begin(out);
            out.extend_from_slice(&encode_body(&request));
            // A channel that cannot seal is closed all the same.
            let _ = secure.seal(now.mono, MessageType::Close, request_id, mark.start(), out);
        }
        let reason = ChannelError::ours(StatusCode::BAD_SECURE_CHANNEL_CLOSED, "closed by this client");
        if !matches!(self.phase, Phase::Closed(_)) {
            self.phase = Phase::Closed(Closed::Error(reason));
        }
    }

    fn fail(&mut self, now: Now, error: ChannelError, out: &mut Vec<u8>) -> Closed {
        self.close(now, out);
        let closed = Closed::Error(error);
        self.phase = Phase::Closed(closed.clone());
        closed
    }

    #[cfg(test)]
    pub(crate) fn secure(&mut self) -> &mut Secure {
        match &mut self.phase {
            Phase::Connected(secure) => secure,
            _ => panic!("not connected"),
        }
    }

    /// Gives the buffer of an assembled body back for the next one.
    pub fn recycle(&mut self, body: Body<'_>) {
        if let (Phase::Connected(secure), Body::Assembled(buffer)) = (&mut self.phase, body) {
            secure.assembler.recycle(buffer);
        }
    }

    /// The agreed sizes, once the Hello was acknowledged.
    #[must_use]
    pub fn negotiated(&self) -> Option<Negotiated> {
        match &self.phase {
            Phase::Connected(secure) => Some(secure.sizes),
            _ => None,
        }
    }

    /// Whether messages can be exchanged.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(&self.phase, Phase::Connected(secure) if secure.is_open())
    }

    /// Channel id and newest token id, if the channel is open.
    #[must_use]
    pub fn ids(&self) -> Option<(u32, u32)> {
        match &self.phase {
            Phase::Connected(secure) => Some((secure.channel_id, secure.tokens.newest()?)),
            _ => None,
        }
    }

    /// The monotonic time by which [`Self::handle_timeout`] has to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        let limits = &self.config.limits;
        match &self.phase {
            Phase::New | Phase::Closed(_) => None,
            Phase::Hello => Some(self.since.saturating_add(limits.hello_timeout)),
            Phase::Connected(secure) if secure.tokens.is_empty() => {
                Some(self.since.saturating_add(limits.open_timeout))
            }
            Phase::Connected(secure) if self.pending.is_some() => secure.tokens.end(),
            Phase::Connected(secure) => secure.tokens.renewal(),
        }
    }

    /// Renews the token when it is time, appending the request to `out`; closes the channel when a deadline has passed.
    pub fn handle_timeout(&mut self, now: Now, out: &mut Vec<u8>) -> Option<Closed> {
        if self.poll_timeout().is_none_or(|deadline| now.mono < deadline) {
            return None;
        }
        let expired = match &self.phase {
            Phase::Connected(secure) => secure.tokens.end().is_none_or(|end| end <= now.mono),
            _ => true,
        };
        let result = if expired {
            Err(ChannelError::peer(
                StatusCode::BAD_TIMEOUT,
                "the server did not answer in time",
            ))
        } else {
            self.open(now, out)
        };
        result.err().map(|error| self.fail(now, error, out))
    }
}

/// Own identity and the server's key, or nothing with the policy None.
fn parties<'a>(
    config: &'a ClientConfig,
    server: Option<&'a CertificateChain>,
) -> Result<Option<Parties<'a>>, ChannelError> {
    let (Some(security), Some(server)) = (&config.security, server) else {
        return Ok(None);
    };
    Ok(Some(Parties {
        own: &security.own,
        peer: PeerKey::of(server)?,
    }))
}
