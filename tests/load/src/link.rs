//! A connection being set up: TCP, channel, session, and the few questions a run begins with. One call at a time, blocking.
//!
//! Owns the handshake; hands the socket and the channel over to [`Transport`](crate::transport::Transport) when load begins.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use backplane_channel::{ClientChannel, ClientConfig, ClientEvent, ClientSecurity, Limits};
use backplane_client::{ServiceRequest, ServiceResponse};
use backplane_crypto::random::nonce;
use backplane_crypto::{SecurityPolicy, SystemRandom};
use backplane_types::{
    ActivateSessionRequest, ApplicationDescription, ApplicationType, BinaryDecode, BinaryEncode, ByteString,
    CreateSessionRequest, DecodeLimits, Decoder, Encoder, GetEndpointsRequest, LocalizedText, MessageSecurityMode,
    NodeId, RequestHeader, ServiceFault, Structure, UaString,
};

use crate::clock::Clock;
use crate::error::{LoadError, setup};
use crate::identity::{APPLICATION_URI, own_identity, signature, user_token};
use crate::transport::Transport;

/// How long a step of the handshake may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of the nonce in CreateSession (Part 4, 5.7.2.2).
const NONCE: usize = 32;

/// How to connect; the same for all connections of a run.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) url: String,
    pub(crate) security: Option<ClientSecurity>,
    /// User name and password; anonymous without.
    pub(crate) user: Option<(String, String)>,
    pub(crate) clock: Clock,
}

impl Target {
    /// Asks the server for an endpoint with `policy` and `mode` (None: no security), and makes a certificate for this client.
    pub(crate) fn discover(url: &str, policy: SecurityPolicy, mode: MessageSecurityMode) -> Result<Self, LoadError> {
        let plain = Self {
            url: url.to_owned(),
            security: None,
            user: None,
            clock: Clock::new(),
        };
        if mode == MessageSecurityMode::NONE {
            return Ok(plain);
        }
        let mut link = Link::open(&plain)?;
        let response = link.call(
            "GetEndpoints",
            GetEndpointsRequest {
                endpoint_url: url.into(),
                ..GetEndpointsRequest::default()
            },
        )?;
        let endpoint = response
            .endpoints
            .into_iter()
            .find(|endpoint| endpoint.security_policy_uri == policy.uri() && endpoint.security_mode == mode)
            .ok_or_else(|| {
                setup(format!(
                    "the server has no endpoint with {} and {mode:?}",
                    policy.name()
                ))
            })?;
        Ok(Self {
            security: Some(ClientSecurity {
                policy,
                mode,
                own: own_identity()?,
                server_certificate: endpoint.server_certificate,
            }),
            ..plain
        })
    }
}

/// The address in an `opc.tcp` URL.
pub(crate) fn address(url: &str) -> Result<SocketAddr, LoadError> {
    let wrong = || setup(format!("not an opc.tcp URL with a port: {url}"));
    let rest = url.strip_prefix("opc.tcp://").ok_or_else(wrong)?;
    let host = rest.split('/').next().unwrap_or_default();
    host.to_socket_addrs()
        .ok()
        .and_then(|mut found| found.next())
        .ok_or_else(wrong)
}

/// See the module.
pub(crate) struct Link {
    stream: TcpStream,
    channel: ClientChannel,
    clock: Clock,
    input: Vec<u8>,
    filled: usize,
    out: Vec<u8>,
    /// SequenceNumber and request id of the last request, as long as the channel is not encrypted.
    last_numbers: (u32, u32),
    plain: bool,
    handle: u32,
    token: NodeId,
}

impl Link {
    /// Connects and opens a channel.
    pub(crate) fn open(target: &Target) -> Result<Self, LoadError> {
        let stream = TcpStream::connect_timeout(&address(&target.url)?, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let config = ClientConfig {
            limits: Limits {
                max_message_size: 64 * 1024 * 1024,
                max_chunk_count: 4_096,
                ..Limits::default()
            },
            endpoint_url: target.url.as_str().into(),
            security: target.security.clone(),
            requested_lifetime: Duration::from_secs(3_600),
        };
        let mut channel = ClientChannel::new(config, Box::new(SystemRandom), target.clock.now())?;
        let mut out = Vec::new();
        channel.connect(target.clock.now(), &mut out);
        let mut link = Self {
            stream,
            channel,
            clock: target.clock,
            input: vec![0; 64 * 1024],
            filled: 0,
            out,
            last_numbers: (0, 0),
            plain: target.security.is_none(),
            handle: 0,
            token: NodeId::NULL,
        };
        link.flush()?;
        while !link.channel.is_open() {
            link.step("the handshake", None)?;
        }
        Ok(link)
    }

    /// Connects, opens a channel, creates and activates a session.
    pub(crate) fn with_session(target: &Target) -> Result<Self, LoadError> {
        let mut link = Self::open(target)?;
        let security = target.security.as_ref();
        let client_nonce =
            nonce(&mut SystemRandom, NONCE).map_err(|_| setup("the operating system has no randomness"))?;
        let created = link.call(
            "CreateSession",
            CreateSessionRequest {
                client_description: ApplicationDescription {
                    application_uri: APPLICATION_URI.into(),
                    application_name: LocalizedText::plain(UaString::from("backplane-load")),
                    application_type: ApplicationType::CLIENT,
                    ..ApplicationDescription::default()
                },
                endpoint_url: target.url.as_str().into(),
                session_name: "backplane-load".into(),
                client_nonce: client_nonce.as_slice().into(),
                client_certificate: security.map_or(ByteString::NULL, |security| security.own.certificate().clone()),
                requested_session_timeout: 3_600_000.0,
                max_response_message_size: 64 * 1024 * 1024,
                ..CreateSessionRequest::default()
            },
        )?;
        link.token = created.authentication_token.clone();
        let request = ActivateSessionRequest {
            client_signature: signature(security, &created)?,
            user_identity_token: user_token(target, &created)?,
            ..ActivateSessionRequest::default()
        };
        link.call("ActivateSession", request)?;
        Ok(link)
    }

    /// The session's AuthenticationToken.
    pub(crate) fn token(&self) -> &NodeId {
        &self.token
    }

    /// Calls a service and waits for its answer.
    pub(crate) fn call<R: ServiceRequest>(
        &mut self,
        name: &'static str,
        mut request: R,
    ) -> Result<R::Response, LoadError> {
        self.handle = self.handle.wrapping_add(1);
        *request.header_mut() = RequestHeader {
            authentication_token: self.token.clone(),
            timestamp: self.clock.now().utc,
            request_handle: self.handle,
            timeout_hint: 20_000,
            ..RequestHeader::default()
        };
        let mut body = Vec::new();
        let mut encoder = Encoder::new(&mut body);
        NodeId::numeric(0, R::ENCODING_ID).encode(&mut encoder);
        request.encode(&mut encoder);
        let from = self.out.len();
        let request_id = self.channel.send(self.clock.now(), &body, &mut self.out)?;
        if let Some(sequence) = self.out.get(from..).and_then(|chunk| chunk.get(16..20)?.first_chunk()) {
            self.last_numbers = (u32::from_le_bytes(*sequence), request_id);
        }
        self.flush()?;
        let answer = self.wait(name, request_id)?;
        decode(name, &answer)
    }

    fn wait(&mut self, name: &'static str, request_id: u32) -> Result<Vec<u8>, LoadError> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(answer) = self.step(name, Some(request_id))? {
                return Ok(answer);
            }
        }
        Err(LoadError::Timeout(name))
    }

    fn flush(&mut self) -> Result<(), LoadError> {
        self.stream.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    /// Takes one chunk, after reading more if it is not all there. Returns the body of the response to `wanted` when it comes.
    fn step(&mut self, name: &'static str, wanted: Option<u32>) -> Result<Option<Vec<u8>>, LoadError> {
        let now = self.clock.now();
        let input = self.input.get_mut(..self.filled).unwrap_or_default();
        let (consumed, event) = self.channel.handle_input(now, input, &mut self.out);
        let mut needed = None;
        let mut answer = None;
        match event {
            ClientEvent::NeedMore { bytes } => needed = Some(bytes),
            ClientEvent::Progress | ClientEvent::ReverseHello(_) | ClientEvent::Opened { .. } => {}
            ClientEvent::Acknowledged => self.channel.open(now, &mut self.out)?,
            ClientEvent::Message { request_id, body } => {
                if Some(request_id) == wanted {
                    answer = Some(body.into_vec());
                }
            }
            ClientEvent::Aborted { status, .. } => return Err(LoadError::Service(name, status)),
            ClientEvent::Closed(closed) => return Err(LoadError::Closed(closed)),
        }
        self.input.copy_within(consumed..self.filled, 0);
        self.filled = self.filled.saturating_sub(consumed);
        self.flush()?;
        if let Some(needed) = needed {
            // At most the receive buffer of the limits.
            self.input.resize(self.input.len().max(needed), 0);
            let place = self.input.get_mut(self.filled..).unwrap_or_default();
            match self.stream.read(place) {
                Ok(0) => return Err(LoadError::Disconnected),
                Ok(got) => self.filled = self.filled.saturating_add(got),
                // The next step reads again.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_timeout(&error) => return Err(LoadError::Timeout(name)),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(answer)
    }

    /// Hands over: nothing is under way, and everything that was received has been taken. `largest` is the size of the largest request.
    pub(crate) fn into_transport(self, largest: usize) -> Result<Transport, LoadError> {
        if self.filled != 0 {
            return Err(LoadError::Response("more than was asked for"));
        }
        let fits = self
            .channel
            .negotiated()
            .is_some_and(|sizes| largest <= sizes.send_chunk);
        let plain = (self.plain && fits).then_some(self.last_numbers);
        Transport::new(self.stream, self.channel, plain, self.clock)
    }
}

/// Whether a read with a timeout ended for want of data.
pub(crate) fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Decodes a response; a fault and a bad ServiceResult are errors.
pub(crate) fn decode<T: ServiceResponse>(name: &'static str, body: &[u8]) -> Result<T, LoadError> {
    let mut decoder = Decoder::new(body, DecodeLimits::DEFAULT);
    let type_id = NodeId::decode(&mut decoder)?;
    if type_id == NodeId::numeric(0, ServiceFault::ENCODING_ID) {
        let fault = ServiceFault::decode(&mut decoder)?;
        return Err(LoadError::Service(name, fault.response_header.service_result));
    }
    if type_id != NodeId::numeric(0, T::ENCODING_ID) {
        return Err(LoadError::Response("of another service"));
    }
    let response = T::decode(&mut decoder)?;
    let result = response.header().service_result;
    if result.is_bad() {
        return Err(LoadError::Service(name, result));
    }
    Ok(response)
}
