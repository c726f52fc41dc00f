//! An asynchronous OPC UA client on the same channel as the server: connect, open, sessions, and any service by its request type.
//!
//! Owns a connection task per client and the one session it may have. Small on purpose: no address space, no subscription engine, and it
//! reconnects only when told to. A client can be shared by reference; requests of many tasks are under way at once on one channel. Each
//! has one outcome: its response, an error, or none because its caller stopped waiting.

mod connection;
mod error;
mod service;
mod session;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use backplane_channel::{ClientChannel, ClientConfig, ClientSecurity, Limits};
use backplane_crypto::SystemRandom;
use backplane_types::{
    AttributeId, BinaryDecode, BinaryEncode, DecodeLimits, Decoder, Encoder, EndpointDescription, GetEndpointsRequest,
    NodeId, ReadRequest, ReadValueId, RequestHeader, ServiceFault, Structure, UaString, ids,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

pub use crate::connection::OldConnection;
use crate::connection::{Clock, Command, Connection};
pub use crate::error::ClientError;
pub use crate::service::{ServiceRequest, ServiceResponse};
use crate::session::Session;
pub use crate::session::{Identity, SessionOptions};

/// Requests that wait to be taken by the connection task.
const COMMAND_QUEUE: usize = 1_024;

/// How to connect.
#[derive(Clone, Debug)]
pub struct Options {
    /// `opc.tcp://host:port/path`.
    pub url: String,
    /// Security of the channel; `None` is the policy None.
    pub security: Option<ClientSecurity>,
    /// Limits of this end.
    pub limits: Limits,
    /// Lifetime to ask for; the client renews after three quarters of what it gets.
    pub requested_lifetime: Duration,
    /// How long a call may take; also the TimeoutHint of requests.
    pub call_timeout: Duration,
    /// How long connecting and opening may take together.
    pub connect_timeout: Duration,
    /// Limits for reading responses.
    pub decode_limits: DecodeLimits,
}

impl Options {
    /// Without security, with limits that suit tests and tools.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            security: None,
            limits: Limits {
                max_message_size: 64 * 1024 * 1024,
                max_chunk_count: 4_096,
                ..Limits::default()
            },
            requested_lifetime: Duration::from_secs(3_600),
            call_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            decode_limits: DecodeLimits::DEFAULT,
        }
    }

    /// The same with a secured channel.
    #[must_use]
    pub fn secured(mut self, security: ClientSecurity) -> Self {
        self.security = Some(security);
        self
    }
}

/// A connected client. Dropping it closes the channel.
#[derive(Debug)]
pub struct Client {
    options: Options,
    commands: mpsc::Sender<Command>,
    clock: Clock,
    next_handle: std::sync::atomic::AtomicU32,
    session: Mutex<Option<Arc<Session>>>,
    /// Why the connection is over, once it is.
    ended: Arc<OnceLock<ClientError>>,
    /// When the last response came.
    responded: watch::Sender<Instant>,
}

impl Client {
    /// Connects over TCP and opens a channel. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`ClientError`]: no connection, an Error message of the server, or no answer in time.
    pub async fn connect(options: Options) -> Result<Self, ClientError> {
        let clock = Clock::new();
        let config = ClientConfig {
            limits: options.limits,
            endpoint_url: options.url.as_str().into(),
            security: options.security.clone(),
            requested_lifetime: options.requested_lifetime,
        };
        let channel = ClientChannel::new(config, Box::new(SystemRandom), clock.now())?;
        let opening = Connection::open(&options.url, channel, clock, options.connect_timeout);
        let connection = tokio::time::timeout(options.connect_timeout, opening)
            .await
            .map_err(|_| ClientError::Timeout)??;
        let (commands, receiver) = mpsc::channel(COMMAND_QUEUE);
        let ended = Arc::new(OnceLock::new());
        tokio::spawn(connection.run(receiver, Arc::clone(&ended)));
        Ok(Self {
            options,
            commands,
            clock,
            next_handle: std::sync::atomic::AtomicU32::new(1),
            session: Mutex::new(None),
            ended,
            responded: watch::Sender::new(Instant::now()),
        })
    }

    /// Asks a server for its endpoints, over a channel without security that is closed afterwards.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn discover(url: &str) -> Result<Vec<EndpointDescription>, ClientError> {
        let client = Self::connect(Options::new(url)).await?;
        let response = client
            .call(GetEndpointsRequest {
                endpoint_url: url.into(),
                ..GetEndpointsRequest::default()
            })
            .await?;
        client.close().await;
        Ok(response.endpoints)
    }

    /// Calls a service: fills the request header in and awaits the response. May be called by many tasks at once.
    ///
    /// # Errors
    /// [`ClientError::Fault`] for a bad ServiceResult or a ServiceFault, else what went wrong on the way. After
    /// [`ClientError::Timeout`] a late response is dropped.
    pub async fn call<R: ServiceRequest>(&self, mut request: R) -> Result<R::Response, ClientError> {
        let filled = std::mem::take(request.header_mut());
        *request.header_mut() = self.header(filled);
        let mut body = Vec::with_capacity(256);
        let mut encoder = Encoder::new(&mut body);
        NodeId::numeric(0, R::ENCODING_ID).encode(&mut encoder);
        request.encode(&mut encoder);
        let body = self.call_raw(body).await?;
        self.decode(&body)
    }

    /// Sends a message body as it is (type id, then structure) and returns the body of the response.
    ///
    /// # Errors
    /// [`ClientError`], but never [`ClientError::Fault`]: the body may be one.
    pub async fn call_raw(&self, body: Vec<u8>) -> Result<Vec<u8>, ClientError> {
        let (reply, response) = oneshot::channel();
        let call = async {
            self.commands
                .send(Command::Call { body, reply })
                .await
                .map_err(|_| self.gone())?;
            response.await.map_err(|_| self.gone())?
        };
        let answered = tokio::time::timeout(self.options.call_timeout, call)
            .await
            .map_err(|_| ClientError::Timeout)?;
        if answered.is_ok() {
            self.responded.send_replace(Instant::now());
        }
        answered
    }

    /// Reads the state of the server whenever `interval` has passed since the last response to anything, so that the session and its channel live and
    /// a server that is gone is noticed. A client that is busy sends nothing more. Returns what went wrong with the first Read that failed.
    pub async fn keep_alive(&self, interval: Duration) -> ClientError {
        loop {
            let due = self.responded.borrow().checked_add(interval);
            match due {
                Some(due) if Instant::now() < due => tokio::time::sleep_until(due).await,
                Some(_) => {
                    let state = ReadValueId {
                        node_id: NodeId::numeric(0, ids::variable::SERVER_SERVER_STATUS_STATE),
                        attribute_id: AttributeId::VALUE.0,
                        ..ReadValueId::default()
                    };
                    let read = ReadRequest {
                        nodes_to_read: vec![state],
                        ..ReadRequest::default()
                    };
                    if let Err(error) = self.call(read).await {
                        return error;
                    }
                }
                // Longer than the clock goes: it is never due.
                None => std::future::pending().await,
            }
        }
    }

    /// A request header: this session's token, the time, a new handle. What the caller set in `header` beside these is kept.
    #[must_use]
    pub fn header(&self, header: RequestHeader) -> RequestHeader {
        let authentication_token = if header.authentication_token.is_null() {
            self.current_session()
                .map_or(NodeId::NULL, |session| session.authentication_token.clone())
        } else {
            header.authentication_token
        };
        let timeout = u32::try_from(self.options.call_timeout.as_millis()).unwrap_or(u32::MAX);
        RequestHeader {
            authentication_token,
            timestamp: self.clock.now().utc,
            request_handle: self.next_handle.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
            timeout_hint: if header.timeout_hint == 0 {
                timeout
            } else {
                header.timeout_hint
            },
            ..header
        }
    }

    fn decode<T: ServiceResponse>(&self, body: &[u8]) -> Result<T, ClientError> {
        let mut decoder = Decoder::new(body, self.options.decode_limits);
        let type_id = NodeId::decode(&mut decoder)?;
        if type_id == NodeId::numeric(0, ServiceFault::ENCODING_ID) {
            let fault = ServiceFault::decode(&mut decoder)?;
            return Err(ClientError::Fault(fault.response_header.service_result));
        }
        if type_id != NodeId::numeric(0, T::ENCODING_ID) {
            return Err(ClientError::UnexpectedResponse(type_id));
        }
        let response = T::decode(&mut decoder)?;
        let result = response.header().service_result;
        if result.is_bad() {
            Err(ClientError::Fault(result))
        } else {
            Ok(response)
        }
    }

    /// Renews the channel's token now and awaits the new one.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn renew(&self) -> Result<(), ClientError> {
        let (reply, response) = oneshot::channel();
        let renew = async {
            self.commands
                .send(Command::Renew { reply })
                .await
                .map_err(|_| self.gone())?;
            response.await.map_err(|_| self.gone())?
        };
        tokio::time::timeout(self.options.call_timeout, renew)
            .await
            .map_err(|_| ClientError::Timeout)?
    }

    /// Leaves the socket and goes on with the same channel, and so with the same session, over a new one. Requests under way fail with
    /// [`ClientError::Disconnected`].
    ///
    /// # Errors
    /// [`ClientError`]; the client is over then. A server that wants a new channel instead says so with an Error message.
    pub async fn reconnect(&self, old: OldConnection) -> Result<(), ClientError> {
        let (reply, done) = oneshot::channel();
        self.commands
            .send(Command::Reconnect { old, reply })
            .await
            .map_err(|_| self.gone())?;
        done.await.map_err(|_| self.gone())?
    }

    /// Closes the channel and waits until the connection is over. A session stays with the server until it times out; see
    /// [`Self::close_session`].
    pub async fn close(self) {
        let (reply, done) = oneshot::channel();
        if self.commands.send(Command::Close { reply }).await.is_ok() {
            // An error says that the task is gone: closed as well.
            let _ = done.await;
        }
    }

    /// The URL it connected to.
    #[must_use]
    pub fn url(&self) -> UaString {
        self.options.url.as_str().into()
    }

    /// What whoever comes too late is told: the same as those who were there.
    fn gone(&self) -> ClientError {
        self.ended.get().cloned().unwrap_or(ClientError::Gone)
    }

    fn current_session(&self) -> Option<Arc<Session>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_session(&self, session: Option<Session>) {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = session.map(Arc::new);
    }
}
