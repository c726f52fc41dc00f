//! A connection under load: messages go out of one buffer in one write, and come in many to a read.
//!
//! Owns the socket and the channel after the handshake. Without security it keeps the channel's numbers itself and only patches prepared
//! chunks; with security the channel seals and opens. Knows no service.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use backplane_channel::{CHUNK_HEADER, ClientChannel, ClientEvent, Mark};
use backplane_types::StatusCode;

use crate::clock::Clock;
use crate::error::LoadError;

/// Bytes of the buffer that one thread reads into.
pub(crate) const SCRATCH: usize = 512 * 1024;
/// Largest chunk without security: what the handshake offered.
const LARGEST_CHUNK: usize = 64 * 1024;
/// Largest message of several chunks.
const LARGEST_MESSAGE: usize = 64 * 1024 * 1024;
/// Sequence numbers wrap before this one (Part 6, 6.7.2.4) and go on with one below 1,024.
const LAST_SEQUENCE: u32 = u32::MAX - 1_024;

/// A request that is ready to be sent but for its numbers.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    /// A whole chunk without security, else the body behind the place of its header.
    bytes: Vec<u8>,
    /// Where the RequestHandle stands in `bytes`.
    handle_at: usize,
}

impl Prepared {
    /// From a body (type id, then structure) whose RequestHandle stands at `handle_at`.
    pub(crate) fn new(body: &[u8], handle_at: usize) -> Self {
        let mut bytes = vec![0; CHUNK_HEADER];
        bytes.extend_from_slice(body);
        let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        put(&mut bytes, 0, u32::from_le_bytes(*b"MSGF"));
        put(&mut bytes, 4, size);
        Self {
            bytes,
            handle_at: handle_at.saturating_add(CHUNK_HEADER),
        }
    }

    /// Bytes on the wire without security, if one chunk can take them.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// Without security: the channel's numbers.
struct Plain {
    channel_id: u32,
    token_id: u32,
    sequence: u32,
    request_id: u32,
    /// The server's last SequenceNumber, once it is known.
    received: Option<u32>,
    /// A message whose last chunk has not come.
    assembled: Vec<u8>,
}

enum Mode {
    Plain(Plain),
    Sealed(Box<ClientChannel>),
}

/// See the module.
pub(crate) struct Transport {
    stream: TcpStream,
    mode: Mode,
    clock: Clock,
    out: Vec<u8>,
    sent: usize,
    /// The beginning of a chunk whose rest has not come.
    leftover: Vec<u8>,
}

impl Transport {
    /// `plain` is the last SequenceNumber and request id of a channel without security whose requests fit into one chunk; `None` leaves
    /// everything to the channel.
    pub(crate) fn new(
        stream: TcpStream,
        channel: ClientChannel,
        plain: Option<(u32, u32)>,
        clock: Clock,
    ) -> Result<Self, LoadError> {
        let (channel_id, token_id) = channel.ids().ok_or(LoadError::Disconnected)?;
        let mode = match plain {
            Some((sequence, request_id)) => Mode::Plain(Plain {
                channel_id,
                token_id,
                sequence,
                request_id,
                received: None,
                assembled: Vec::new(),
            }),
            None => Mode::Sealed(Box::new(channel)),
        };
        Ok(Self {
            stream,
            mode,
            clock,
            out: Vec::new(),
            sent: 0,
            leftover: Vec::new(),
        })
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Puts a request behind those that wait to be sent, and returns its request id.
    pub(crate) fn queue(&mut self, request: &Prepared, handle: u32) -> Result<u32, LoadError> {
        match &mut self.mode {
            Mode::Plain(plain) => {
                let start = self.out.len();
                self.out.extend_from_slice(&request.bytes);
                let request_id = plain.next_numbers();
                let chunk = self.out.get_mut(start..).unwrap_or_default();
                put(chunk, 8, plain.channel_id);
                put(chunk, 12, plain.token_id);
                put(chunk, 16, plain.sequence);
                put(chunk, 20, request_id);
                put(chunk, request.handle_at, handle);
                Ok(request_id)
            }
            Mode::Sealed(channel) => {
                let mark = Mark::begin(&mut self.out);
                let body = self.out.len();
                self.out
                    .extend_from_slice(request.bytes.get(CHUNK_HEADER..).unwrap_or_default());
                let handle_at = request.handle_at.saturating_sub(CHUNK_HEADER);
                put(self.out.get_mut(body..).unwrap_or_default(), handle_at, handle);
                Ok(channel.finish_message(self.clock.now(), mark, &mut self.out)?)
            }
        }
    }

    /// Writes what waits. True when nothing is left; false when the socket takes no more for now.
    pub(crate) fn flush(&mut self) -> Result<bool, LoadError> {
        while let Some(rest) = self.out.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(0) => return Err(LoadError::Disconnected),
                Ok(count) => self.sent = self.sent.saturating_add(count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(true)
    }

    /// Reads once into `scratch` and gives the body of every whole message to `on`, with its request id. False when the socket had no
    /// more than was read.
    pub(crate) fn receive(
        &mut self,
        scratch: &mut [u8],
        mut on: impl FnMut(u32, &[u8]) -> Result<(), LoadError>,
    ) -> Result<bool, LoadError> {
        let before = self.leftover.len();
        if let Some(place) = scratch.get_mut(..before) {
            place.copy_from_slice(&self.leftover);
        }
        let place = scratch.get_mut(before..).unwrap_or_default();
        let room = place.len();
        let got = loop {
            match self.stream.read(place) {
                Ok(0) => return Err(LoadError::Disconnected),
                Ok(got) => break got,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        };
        let input = scratch.get_mut(..before.saturating_add(got)).unwrap_or_default();
        let taken = match &mut self.mode {
            Mode::Plain(plain) => plain.take(input, &mut on)?,
            Mode::Sealed(channel) => open_all(channel, self.clock, input, &mut self.out, &mut on)?,
        };
        self.leftover.clear();
        self.leftover
            .extend_from_slice(scratch.get(taken..before.saturating_add(got)).unwrap_or_default());
        Ok(got == room)
    }
}

impl Plain {
    fn next_numbers(&mut self) -> u32 {
        self.sequence = if self.sequence >= LAST_SEQUENCE {
            1
        } else {
            self.sequence.wrapping_add(1)
        };
        self.request_id = self.request_id.checked_add(1).unwrap_or(1);
        self.request_id
    }

    /// Takes all whole chunks of `input` and returns how many bytes that were.
    fn take(
        &mut self,
        input: &[u8],
        on: &mut impl FnMut(u32, &[u8]) -> Result<(), LoadError>,
    ) -> Result<usize, LoadError> {
        let mut at = 0usize;
        while let Some(rest) = input.get(at..).filter(|rest| rest.len() >= 8) {
            let size = usize::try_from(get(rest, 4)).unwrap_or(usize::MAX);
            if !(8..=LARGEST_CHUNK).contains(&size) {
                return Err(LoadError::Response("a chunk of an impossible size"));
            }
            let Some(chunk) = rest.get(..size) else { break };
            self.chunk(chunk, on)?;
            at = at.saturating_add(size);
        }
        Ok(at)
    }

    fn chunk(
        &mut self,
        chunk: &[u8],
        on: &mut impl FnMut(u32, &[u8]) -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        let Some((head, kind)) = chunk.split_at_checked(3).map(|(head, rest)| (head, rest.first())) else {
            return Err(LoadError::Response("a chunk without a type"));
        };
        if head == b"ERR" {
            return Err(ended(chunk));
        }
        let Some(body) = chunk.get(CHUNK_HEADER..).filter(|_| head == b"MSG") else {
            return Err(LoadError::Response("a message that was not expected"));
        };
        if get(chunk, 8) != self.channel_id || get(chunk, 12) != self.token_id {
            return Err(LoadError::Response("of another channel or token"));
        }
        let sequence = get(chunk, 16);
        let follows = self
            .received
            .is_none_or(|last| sequence == last.wrapping_add(1) || (last >= LAST_SEQUENCE && sequence < 1_024));
        if !follows {
            return Err(LoadError::Response("a sequence number out of order"));
        }
        self.received = Some(sequence);
        let request_id = get(chunk, 20);
        match kind {
            Some(b'F') if self.assembled.is_empty() => on(request_id, body),
            Some(b'F' | b'C') => {
                self.assembled.extend_from_slice(body);
                if self.assembled.len() > LARGEST_MESSAGE {
                    return Err(LoadError::Response("a message beyond 64 MiB"));
                }
                if kind == Some(&b'F') {
                    on(request_id, &self.assembled)?;
                    self.assembled.clear();
                }
                Ok(())
            }
            Some(b'A') => Err(LoadError::Service("aborted", StatusCode(get(body, 0)))),
            _ => Err(LoadError::Response("a chunk type that does not exist")),
        }
    }
}

/// Opens all whole chunks of `input` with the channel and returns how many bytes that were.
fn open_all(
    channel: &mut ClientChannel,
    clock: Clock,
    input: &mut [u8],
    out: &mut Vec<u8>,
    on: &mut impl FnMut(u32, &[u8]) -> Result<(), LoadError>,
) -> Result<usize, LoadError> {
    let mut at = 0usize;
    let now = clock.now();
    while let Some(rest) = input.get_mut(at..).filter(|rest| !rest.is_empty()) {
        let (consumed, event) = channel.handle_input(now, rest, out);
        match event {
            ClientEvent::NeedMore { .. } => break,
            ClientEvent::Message { request_id, body } => {
                on(request_id, &body)?;
                channel.recycle(body);
            }
            ClientEvent::Aborted { status, .. } => return Err(LoadError::Service("aborted", status)),
            ClientEvent::Closed(closed) => return Err(LoadError::Closed(closed)),
            _ => {}
        }
        at = at.saturating_add(consumed);
    }
    Ok(at)
}

/// What an Error message says (Part 6, 7.1.2.5): a status and a String.
fn ended(chunk: &[u8]) -> LoadError {
    let length = usize::try_from(get(chunk, 12)).unwrap_or(0);
    let reason = chunk
        .get(16..)
        .and_then(|rest| rest.get(..length))
        .map(String::from_utf8_lossy);
    LoadError::Ended(StatusCode(get(chunk, 8)), reason.unwrap_or_default().into_owned())
}

/// The little-endian UInt32 at `at`; 0 where there is none.
pub(crate) fn get(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |field| u32::from_le_bytes(*field))
}

fn put(bytes: &mut [u8], at: usize, value: u32) {
    if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = value.to_le_bytes();
    }
}
