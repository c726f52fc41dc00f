//! The server end of a channel: the order of Hello, OpenSecureChannel and messages, deadlines, and what leaves on errors.
//!
//! Owns the state of one connection. Knows no socket, no clock, no session and no trust store: bytes and the time come in, bytes are
//! appended to the caller's buffer, and RSA work leaves as an [`OpenWork`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use backplane_crypto::SecurityPolicy;
use backplane_types::{MessageSecurityMode, Now, StatusCode, UaString};

use crate::asymmetric::AsymmetricHeader;
use crate::body::Body;
use crate::error::{ChannelError, Closed, SendError};
use crate::header::{CHUNK_HEADER, MESSAGE_HEADER, MessageHeader, MessageType};
use crate::hello::{Hello, MAX_HELLO, Negotiated, encode_error};
use crate::identity::ChannelEvidence;
use crate::limits::Limits;
use crate::opening::{Arrival, Established, OpenOutcome, OpenWork};
use crate::secure::{Received, Secure};
use crate::token::Role;

mod deadlines;
mod reattach;

/// What all channels of a server have in common.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Limits of each channel.
    pub limits: Limits,
    /// Policies and the modes allowed with them. None has to be among them if discovery without security is wanted.
    pub allowed: Vec<(SecurityPolicy, MessageSecurityMode)>,
}

impl ServerConfig {
    /// Whether a channel may be opened so. The policy None goes with the mode None and with no other, whatever the list says.
    #[must_use]
    pub fn allows(&self, policy: SecurityPolicy, mode: MessageSecurityMode) -> bool {
        policy.is_none() == (mode == MessageSecurityMode::NONE) && self.allowed.contains(&(policy, mode))
    }

    fn allows_policy(&self, policy: SecurityPolicy) -> bool {
        self.allowed.iter().any(|(allowed, _)| *allowed == policy)
    }
}

/// Hands out channel and token ids that are unique within a server (Part 6, 6.7.2.2). Shared by its channels; never 0.
#[derive(Debug)]
pub struct ChannelIds {
    channels: AtomicU32,
    tokens: AtomicU32,
}

impl ChannelIds {
    /// Ids from `first` on; take a random one, so that ids differ after a restart.
    #[must_use]
    pub fn starting_at(first: u32) -> Self {
        Self {
            channels: AtomicU32::new(first),
            tokens: AtomicU32::new(first),
        }
    }

    fn next(counter: &AtomicU32) -> u32 {
        loop {
            // The counter wraps; only 0 is not an id.
            let id = counter.fetch_add(1, Ordering::Relaxed);
            if id != 0 {
                return id;
            }
        }
    }

    /// A new SecureChannelId.
    pub fn channel(&self) -> u32 {
        Self::next(&self.channels)
    }

    /// A new TokenId.
    pub fn token(&self) -> u32 {
        Self::next(&self.tokens)
    }
}

/// What came of the input.
#[derive(Debug)]
pub enum Event<'a> {
    /// There is no whole chunk in the input: read until there are `bytes` from its start (never more than the receive buffer size).
    NeedMore {
        /// Bytes the next step needs.
        bytes: usize,
    },
    /// Something was taken; call again with the rest of the input. There may be output.
    Progress,
    /// A whole message.
    Message {
        /// The client's number for it, to be given back with the response.
        request_id: u32,
        /// Type id and structure.
        body: Body<'a>,
    },
    /// The client gave a message up after sending a part of it; nothing is to be answered.
    Aborted {
        /// The message's number.
        request_id: u32,
        /// The client's code.
        status: StatusCode,
        /// The client's words; null if there were none or too many.
        reason: UaString,
    },
    /// A channel is to be opened or renewed: run the work and hand its outcome in. Until then no input is taken. It may also be a channel
    /// of another connection that is to go on here: see [`OpenWork::reattaches`].
    Open(Box<OpenWork>),
    /// The outcome of the last [`Event::Open`] is still awaited: do not read.
    Opening,
    /// The connection is over: write what is in the output, then close it.
    Closed(Closed),
}

/// A successful [`ServerChannel::handle_opened`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// The channel is open.
    Issued,
    /// The channel has a new token.
    Renewed,
    /// The channel came from another connection and goes on here with a new token. See [`DetachedChannel`](crate::DetachedChannel).
    Reattached,
}

/// Where a message begins in an output buffer, with 24 bytes reserved for its header.
#[must_use = "a begun message has to be finished or discarded"]
#[derive(Debug)]
pub struct Mark {
    start: usize,
}

impl Mark {
    /// Reserves the header of a message at the end of `out`; the body is appended next. Nothing else may be appended to `out` before the
    /// message is finished or discarded.
    #[inline]
    pub fn begin(out: &mut Vec<u8>) -> Self {
        let start = out.len();
        out.extend_from_slice(&[0; CHUNK_HEADER]);
        Self { start }
    }

    /// Bytes of body appended so far.
    #[must_use]
    pub fn body_length(&self, out: &[u8]) -> usize {
        out.len().saturating_sub(self.start.saturating_add(CHUNK_HEADER))
    }

    /// Where the body begins in the buffer.
    #[must_use]
    pub fn body_start(&self) -> usize {
        self.start.saturating_add(CHUNK_HEADER)
    }

    /// Removes the message again.
    pub fn discard(self, out: &mut Vec<u8>) {
        out.truncate(self.start);
    }

    /// Removes the body, so that another one can be appended.
    pub fn clear(&self, out: &mut Vec<u8>) {
        out.truncate(self.body_start());
    }

    pub(crate) fn start(&self) -> usize {
        self.start
    }
}

enum Phase {
    Hello,
    Connected(Box<Secure>),
    Closed(Closed),
}

/// An OpenSecureChannel request whose outcome is awaited.
struct Opening {
    since: Duration,
    /// Messages sealed meanwhile: numbered behind the response, so they leave behind it.
    held: Vec<u8>,
}

/// The server end of one connection. See the module.
pub struct ServerChannel {
    config: Arc<ServerConfig>,
    ids: Arc<ChannelIds>,
    phase: Phase,
    /// When the connection was made, then when the Hello came.
    since: Duration,
    endpoint_url: UaString,
    opening: Option<Opening>,
    established: Option<Established>,
    /// When a chunk was first seen in part.
    partial_since: Option<Duration>,
    /// Whether a session was activated on the channel.
    authenticated: bool,
}

impl ServerChannel {
    /// A connection that was just made.
    #[must_use]
    pub fn new(config: Arc<ServerConfig>, ids: Arc<ChannelIds>, now: Now) -> Self {
        Self {
            config,
            ids,
            phase: Phase::Hello,
            since: now.mono,
            endpoint_url: UaString::NULL,
            opening: None,
            established: None,
            partial_since: None,
            authenticated: false,
        }
    }

    /// Takes the first chunk of `input`, decoding it in place, and says how many bytes of the input are done with. Call again with the
    /// rest until [`Event::NeedMore`]; keep that rest at the start of the next input, as it is. What has to be answered is appended
    /// to `out`.
    pub fn handle_input<'a>(&mut self, now: Now, input: &'a mut [u8], out: &mut Vec<u8>) -> (usize, Event<'a>) {
        let length = input.len();
        // Nearly everything that comes is a whole message in one chunk: its numbers go straight to the caller. An event that is
        // handed from function to function costs more than all that is done here without security.
        match self.single(now, input) {
            Ok(None) => {}
            Ok(Some((size, request_id, end))) => {
                let body = Body::InPlace(input.get(CHUNK_HEADER..end).unwrap_or_default());
                return (size, Event::Message { request_id, body });
            }
            Err(error) => return (length, Event::Closed(self.fail(error, out))),
        }
        match self.step(now, input, out) {
            Ok(done) => done,
            Err(error) => (length, Event::Closed(self.fail(error, out))),
        }
    }

    #[inline(always)]
    fn single(&mut self, now: Now, input: &mut [u8]) -> Result<Option<(usize, u32, usize)>, ChannelError> {
        let (Phase::Connected(secure), None) = (&mut self.phase, &self.opening) else {
            return Ok(None);
        };
        let taken = secure.receive_single(now.mono, input)?;
        if taken.is_some() {
            self.partial_since = None;
        }
        Ok(taken)
    }

    fn step<'a>(
        &mut self,
        now: Now,
        input: &'a mut [u8],
        out: &mut Vec<u8>,
    ) -> Result<(usize, Event<'a>), ChannelError> {
        let largest = match &self.phase {
            Phase::Closed(closed) => return Ok((input.len(), Event::Closed(closed.clone()))),
            Phase::Hello => MAX_HELLO,
            Phase::Connected(secure) => secure.sizes.receive_chunk,
        };
        if self.opening.is_some() {
            return Ok((0, Event::Opening));
        }
        let Some(header) = MessageHeader::parse(input, largest)? else {
            return Ok((0, self.need(now, input.len(), MESSAGE_HEADER)));
        };
        self.check_order(header.message_type)?;
        if input.len() < header.size {
            return Ok((0, self.need(now, input.len(), header.size)));
        }
        self.partial_since = None;
        let (chunk, _) = input.split_at_mut(header.size);
        let event = match header.message_type {
            MessageType::Hello => self.hello(now, chunk, out)?,
            MessageType::Open => Event::Open(Box::new(self.open(now, chunk)?)),
            _ => self.message(now, header, chunk)?,
        };
        Ok((header.size, event))
    }

    fn need(&mut self, now: Now, got: usize, bytes: usize) -> Event<'static> {
        if got > 0 && self.partial_since.is_none() {
            self.partial_since = Some(now.mono);
        }
        Event::NeedMore { bytes }
    }

    /// Hello comes first and once; everything else comes after it.
    fn check_order(&self, message_type: MessageType) -> Result<(), ChannelError> {
        let allowed = match (&self.phase, message_type) {
            (Phase::Hello, other) => other == MessageType::Hello,
            (_, MessageType::Open | MessageType::Message | MessageType::Close) => true,
            _ => false,
        };
        if allowed {
            Ok(())
        } else {
            Err(ChannelError::peer(
                StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID,
                "message type not expected now",
            ))
        }
    }

    fn hello(&mut self, now: Now, chunk: &[u8], out: &mut Vec<u8>) -> Result<Event<'static>, ChannelError> {
        let hello = Hello::parse(chunk)?;
        let limits = &self.config.limits;
        let (answer, sizes) = hello.negotiate(limits)?;
        answer.encode_acknowledge(out);
        self.endpoint_url = hello.endpoint_url;
        self.since = now.mono;
        self.phase = Phase::Connected(Box::new(Secure::new(Role::Server, sizes, limits)));
        Ok(Event::Progress)
    }

    /// Checks what can be checked without the private key and takes the numbers of the response.
    fn open(&mut self, now: Now, chunk: &[u8]) -> Result<OpenWork, ChannelError> {
        let header = AsymmetricHeader::parse(chunk, self.config.limits.max_sender_certificate)?;
        let Phase::Connected(secure) = &mut self.phase else {
            return Err(ChannelError::ours(StatusCode::BAD_INVALID_STATE, "no connection"));
        };
        // A channel that lives on another connection may be brought here, as the first thing on this one.
        let elsewhere = match (&self.established, header.channel_id) {
            (None, id) if id != 0 => Some(id),
            _ => None,
        };
        if elsewhere.is_none() && header.channel_id != secure.channel_id {
            return Err(ChannelError::peer(
                StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN,
                "OpenSecureChannel for a channel that is not this one",
            ));
        }
        let policy_fits = match &self.established {
            Some(established) => established.evidence.policy == header.policy,
            None => self.config.allows_policy(header.policy),
        };
        if !policy_fits {
            return Err(ChannelError::peer(
                StatusCode::BAD_SECURITY_POLICY_REJECTED,
                "security policy not allowed",
            ));
        }
        if elsewhere.is_some() && header.policy.is_none() {
            // Nothing proves that it is the same client.
            return Err(ChannelError::peer(
                StatusCode::BAD_SECURE_CHANNEL_ID_INVALID,
                "a channel without security stays on its connection",
            )
            .with_wire(StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN));
        }
        // One that comes from elsewhere brings its numbers along.
        let sequence_number = if elsewhere.is_some() { 0 } else { secure.number_open()? };
        self.opening = Some(Opening {
            since: now.mono,
            held: Vec::new(),
        });
        let channel_id = elsewhere.unwrap_or_else(|| match &self.established {
            Some(known) => known.evidence.channel_id,
            None => self.ids.channel(),
        });
        Ok(OpenWork {
            config: Arc::clone(&self.config),
            chunk: chunk.to_vec(),
            established: self.established.clone(),
            elsewhere: elsewhere.is_some(),
            channel_id,
            token_id: self.ids.token(),
            sequence_number,
            send_chunk: secure.sizes.send_chunk,
            endpoint_url: self.endpoint_url.clone(),
            now,
        })
    }

    fn message<'a>(&mut self, now: Now, header: MessageHeader, chunk: &'a mut [u8]) -> Result<Event<'a>, ChannelError> {
        let Phase::Connected(secure) = &mut self.phase else {
            return Err(ChannelError::ours(StatusCode::BAD_INVALID_STATE, "no connection"));
        };
        Ok(match secure.receive(now.mono, header, chunk)? {
            Received::Partial => Event::Progress,
            Received::Message { request_id, body } => Event::Message { request_id, body },
            Received::Aborted {
                request_id,
                status,
                reason,
            } => Event::Aborted {
                request_id,
                status,
                reason,
            },
            Received::Close => {
                self.phase = Phase::Closed(Closed::ByPeer);
                Event::Closed(Closed::ByPeer)
            }
        })
    }

    /// Takes the outcome of an [`OpenWork`]: the response is appended to `out`, and behind it what was sent meanwhile.
    ///
    /// # Errors
    /// Why the channel is over; an Error message was appended to `out`.
    pub fn handle_opened(&mut self, now: Now, outcome: OpenOutcome, out: &mut Vec<u8>) -> Result<Opened, Closed> {
        let result = outcome.result.and_then(|issued| {
            let (Phase::Connected(secure), Some(opening)) = (&mut self.phase, self.opening.take()) else {
                return Err(ChannelError::ours(
                    StatusCode::BAD_INVALID_STATE,
                    "no channel is being opened",
                ));
            };
            let opened = match issued.arrival {
                Arrival::Here { sequence_number } => {
                    if !secure.incoming.accept(sequence_number) {
                        return Err(ChannelError::security(
                            StatusCode::BAD_SEQUENCE_NUMBER_INVALID,
                            "sequence number of OpenSecureChannel out of order",
                        ));
                    }
                    secure.channel_id = issued.established.evidence.channel_id;
                    if self.established.is_some() {
                        Opened::Renewed
                    } else {
                        Opened::Issued
                    }
                }
                Arrival::Elsewhere {
                    continuation,
                    authenticated,
                } => {
                    secure.resume(continuation);
                    if authenticated {
                        self.authenticated = true;
                        secure.assembler.set_limits(Secure::full_limits(&self.config.limits));
                    }
                    Opened::Reattached
                }
            };
            secure.tokens.add(issued.token);
            out.extend_from_slice(&issued.response);
            out.extend_from_slice(&opening.held);
            self.established = Some(issued.established);
            self.since = now.mono;
            Ok(opened)
        });
        result.map_err(|error| self.fail(error, out))
    }

    /// Appends a message of one or more chunks.
    ///
    /// # Errors
    /// [`SendError`]; `out` is as it was.
    pub fn send(&mut self, now: Now, request_id: u32, body: &[u8], out: &mut Vec<u8>) -> Result<(), SendError> {
        let mark = Mark::begin(out);
        out.extend_from_slice(body);
        self.finish_message(now, mark, request_id, out)
    }

    /// Seals, where it lies, the message begun with `mark` whose body was appended to `out` since; nothing else may have been. One that
    /// fits a chunk is not moved.
    ///
    /// # Errors
    /// [`SendError`]; `out` is as it was before the message began. After [`SendError::TooLarge`] the caller answers a ServiceFault with
    /// BadResponseTooLarge.
    pub fn finish_message(
        &mut self,
        now: Now,
        mark: Mark,
        request_id: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        let Phase::Connected(secure) = &mut self.phase else {
            mark.discard(out);
            return Err(SendError::NotOpen);
        };
        let start = mark.start();
        let Some(opening) = &mut self.opening else {
            return secure.seal(now.mono, MessageType::Message, request_id, start, out);
        };
        let size = out.len().saturating_sub(start);
        if opening.held.len().saturating_add(size) > self.config.limits.max_held_bytes {
            mark.discard(out);
            return Err(SendError::TooMuchHeld);
        }
        secure.seal(now.mono, MessageType::Message, request_id, start, out)?;
        opening.held.extend_from_slice(out.get(start..).unwrap_or_default());
        out.truncate(start);
        Ok(())
    }

    /// Another connection of the same server.
    #[cfg(test)]
    pub(crate) fn sibling(&self, now: Now) -> Self {
        Self::new(Arc::clone(&self.config), Arc::clone(&self.ids), now)
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

    /// Lets the client send messages up to the acknowledged limits: a session was activated on this channel.
    pub fn set_limits_authenticated(&mut self) {
        self.authenticated = true;
        if let Phase::Connected(secure) = &mut self.phase {
            secure.assembler.set_limits(Secure::full_limits(&self.config.limits));
        }
    }

    /// Bytes of memory held for a message whose last chunk has not come.
    #[must_use]
    pub fn reassembly_bytes(&self) -> usize {
        match &self.phase {
            Phase::Connected(secure) => secure.assembler.held(),
            _ => 0,
        }
    }

    /// What is known of the open channel.
    #[must_use]
    pub fn evidence(&self) -> Option<&Arc<ChannelEvidence>> {
        self.established.as_ref().map(|established| &established.evidence)
    }

    /// The agreed sizes, once the Hello was taken.
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

    /// Ends the channel from this side; an Error message with `status` is appended to `out`.
    pub fn close(&mut self, status: StatusCode, out: &mut Vec<u8>) -> Closed {
        self.fail(
            ChannelError::ours(status, "closed by this server").with_wire(status),
            out,
        )
    }

    /// Ends the channel. Whatever was held is dropped with it: what was numbered behind a gap must not be sent.
    fn fail(&mut self, error: ChannelError, out: &mut Vec<u8>) -> Closed {
        if let Phase::Closed(closed) = &self.phase {
            return closed.clone();
        }
        encode_error(out, error.wire);
        let closed = Closed::Error(error);
        self.phase = Phase::Closed(closed.clone());
        self.opening = None;
        closed
    }
}
