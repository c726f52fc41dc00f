//! The symmetric half of a channel, the same at both ends: opening chunks in place, putting messages together, sealing messages in place.
//!
//! Owns tokens, numbers and the message in progress. Knows neither Hello nor OpenSecureChannel; those create it and hand tokens in.

use std::time::Duration;

use backplane_types::{StatusCode, UaString};

use crate::assemble::{Assembler, MessageLimits};
use crate::body::Body;
use crate::error::{ChannelError, SendError};
use crate::header::{CHUNK_HEADER, ChunkType, MESSAGE_HEADER, MessageHeader, MessageType, SymmetricHeader, read_u32};
use crate::hello::{Negotiated, parse_error};
use crate::limits::Limits;
use crate::sequence::{Incoming, Outgoing};
use crate::token::{Role, Tokens};

/// What a chunk led to.
pub(crate) enum Received<'a> {
    /// More chunks have to come.
    Partial,
    /// A whole message.
    Message { request_id: u32, body: Body<'a> },
    /// The sender gave a message up.
    Aborted {
        request_id: u32,
        status: StatusCode,
        reason: UaString,
    },
    /// CloseSecureChannel.
    Close,
}

/// What of a channel outlives its connection. Keys are not among it: nothing is sealed or opened until there is a new token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Continuation {
    pub(crate) channel_id: u32,
    pub(crate) incoming: Incoming,
    pub(crate) outgoing: Outgoing,
}

/// See the module.
pub(crate) struct Secure {
    pub(crate) channel_id: u32,
    pub(crate) sizes: Negotiated,
    pub(crate) tokens: Tokens,
    pub(crate) incoming: Incoming,
    pub(crate) outgoing: Outgoing,
    pub(crate) assembler: Assembler,
    /// Set when sealing failed after a number was taken: a gap must not be followed by anything.
    stopped: bool,
    #[cfg(test)]
    fail_seal: Option<u32>,
}

impl Secure {
    pub(crate) fn new(role: Role, sizes: Negotiated, limits: &Limits) -> Self {
        let message_limits = match role {
            Role::Server => MessageLimits {
                size: to_usize(limits.unauthenticated_max_message_size),
                chunks: to_usize(limits.unauthenticated_max_chunk_count),
            },
            Role::Client => Self::full_limits(limits),
        };
        Self {
            channel_id: 0,
            sizes,
            tokens: Tokens::new(role),
            incoming: Incoming::default(),
            outgoing: Outgoing::default(),
            assembler: Assembler::new(message_limits, limits.max_retained_buffer),
            stopped: false,
            #[cfg(test)]
            fail_seal: None,
        }
    }

    /// What an authenticated peer may send.
    pub(crate) fn full_limits(limits: &Limits) -> MessageLimits {
        MessageLimits {
            size: to_usize(limits.max_message_size),
            chunks: to_usize(limits.max_chunk_count),
        }
    }

    /// What goes on elsewhere when this connection is over.
    pub(crate) fn continuation(&self) -> Continuation {
        Continuation {
            channel_id: self.channel_id,
            incoming: self.incoming,
            outgoing: self.outgoing,
        }
    }

    /// Goes on with a channel of another connection, on one that has seen nothing but a Hello.
    pub(crate) fn resume(&mut self, continuation: Continuation) {
        self.channel_id = continuation.channel_id;
        self.incoming = continuation.incoming;
        self.outgoing = continuation.outgoing;
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.tokens.is_empty() && !self.stopped
    }

    /// The number of an OpenSecureChannel message of this end.
    ///
    /// # Errors
    /// BadTcpInternalError behind a gap, which nothing may follow.
    pub(crate) fn number_open(&mut self) -> Result<u32, ChannelError> {
        if self.stopped {
            return Err(ChannelError::ours(
                StatusCode::BAD_TCP_INTERNAL_ERROR,
                "sealing failed, the channel is stopped",
            ));
        }
        Ok(self.outgoing.next())
    }

    /// Opens one whole chunk of a service or CloseSecureChannel message where it lies, and takes its number. Returns its request id and
    /// where its body ends.
    ///
    /// # Errors
    /// In the order of the checks (Part 6, 6.7.7): BadTcpSecureChannelUnknown, BadSecureChannelTokenUnknown, BadSecurityChecksFailed for
    /// cipher, signature, padding and sequence number alike. BadDecodingError for a chunk that ends in front of the token id.
    #[inline]
    pub(crate) fn open(&mut self, now: Duration, chunk: &mut [u8]) -> Result<(u32, usize), ChannelError> {
        if self.tokens.is_empty() || read_u32(chunk, 8)? != self.channel_id {
            return Err(ChannelError::peer(
                StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN,
                "secure channel unknown",
            ));
        }
        let Some((index, token)) = self.tokens.accepted(read_u32(chunk, 12)?, now) else {
            return Err(ChannelError::peer(
                StatusCode::BAD_SECURE_CHANNEL_TOKEN_UNKNOWN,
                "token unknown or expired",
            ));
        };
        let end = token.protection.open(chunk)?;
        let (sequence_number, request_id) = (read_u32(chunk, 16)?, read_u32(chunk, 20)?);
        if !self.incoming.accept(sequence_number) {
            return Err(ChannelError::security(
                StatusCode::BAD_SEQUENCE_NUMBER_INVALID,
                "sequence number out of order",
            ));
        }
        self.tokens.used(index);
        Ok((request_id, end))
    }

    /// Takes one whole chunk of a service or CloseSecureChannel message.
    ///
    /// # Errors
    /// As [`Self::open`]; then BadSecurityChecksFailed for a request id that does not fit, BadTcpMessageTooLarge, and BadDecodingError for an
    /// abort without a code.
    pub(crate) fn receive<'a>(
        &mut self,
        now: Duration,
        header: MessageHeader,
        chunk: &'a mut [u8],
    ) -> Result<Received<'a>, ChannelError> {
        let (request_id, end) = self.open(now, chunk)?;
        if header.message_type == MessageType::Close {
            return Ok(Received::Close);
        }
        self.assembler.check_request(request_id)?;
        let chunk = &*chunk;
        let body = chunk.get(CHUNK_HEADER..end).unwrap_or_default();
        self.assemble(now, header.chunk_type, request_id, body)
    }

    /// The short way of [`Self::receive`] for the first chunk of `input`, if that is all there and is a whole message: its size, its
    /// request id and where its body ends. None, and nothing was touched, if it is anything else.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub(crate) fn receive_single(
        &mut self,
        now: Duration,
        input: &mut [u8],
    ) -> Result<Option<(usize, u32, usize)>, ChannelError> {
        let Some([b'M', b'S', b'G', b'F', size @ ..]) = input.first_chunk::<MESSAGE_HEADER>() else {
            return Ok(None);
        };
        let size = to_usize(u32::from_le_bytes(*size));
        if size > self.sizes.receive_chunk || self.assembler.in_progress() {
            return Ok(None);
        }
        let Some(chunk) = input.get_mut(..size).filter(|chunk| chunk.len() >= CHUNK_HEADER) else {
            return Ok(None);
        };
        let (request_id, end) = self.open(now, chunk)?;
        self.assembler.check_single(end.saturating_sub(CHUNK_HEADER))?;
        Ok(Some((size, request_id, end)))
    }

    fn assemble<'a>(
        &mut self,
        now: Duration,
        chunk_type: ChunkType,
        request_id: u32,
        body: &'a [u8],
    ) -> Result<Received<'a>, ChannelError> {
        match chunk_type {
            ChunkType::Intermediate => {
                self.assembler.push(now, request_id, body)?;
                Ok(Received::Partial)
            }
            ChunkType::Final if self.assembler.in_progress() => {
                self.assembler.push(now, request_id, body)?;
                Ok(Received::Message {
                    request_id,
                    body: Body::Assembled(self.assembler.finish()),
                })
            }
            ChunkType::Final => {
                self.assembler.check_single(body.len())?;
                Ok(Received::Message {
                    request_id,
                    body: Body::InPlace(body),
                })
            }
            ChunkType::Abort => {
                self.assembler.drop_message();
                let (status, reason) = parse_error(body)?;
                Ok(Received::Aborted {
                    request_id,
                    status,
                    reason,
                })
            }
        }
    }

    /// Makes sealing fail at the chunk behind so many others, when its number is taken; no input can.
    #[cfg(test)]
    pub(crate) fn fail_seal_after(&mut self, chunks: u32) {
        self.fail_seal = Some(chunks);
    }

    /// Seals the message whose body follows 24 reserved bytes at `start` in `out`, in place, as one or more chunks.
    ///
    /// # Errors
    /// [`SendError`]; then `out` ends at `start` again.
    pub(crate) fn seal(
        &mut self,
        now: Duration,
        message_type: MessageType,
        request_id: u32,
        start: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        let result = self.seal_in_place(now, message_type, request_id, start, out);
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    fn seal_in_place(
        &mut self,
        now: Duration,
        message_type: MessageType,
        request_id: u32,
        start: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        if self.stopped {
            return Err(SendError::Stopped);
        }
        let token = self.tokens.sealing(now).ok_or(SendError::NotOpen)?;
        let body_start = start.saturating_add(CHUNK_HEADER);
        let size = out.len().checked_sub(body_start).ok_or(SendError::NotOpen)?;
        let token_id = token.id;
        let protection = &mut token.protection;
        let piece = protection.largest_body(self.sizes.send_chunk);
        // Most messages fit one chunk, and a division takes longer than all of the rest.
        let chunks = if size <= piece { 1 } else { size.div_ceil(piece.max(1)) };
        let exceeds = |limit: usize, value: usize| limit != 0 && value > limit;
        if exceeds(self.sizes.peer_max_message, size) || exceeds(self.sizes.peer_max_chunks, chunks) {
            return Err(SendError::TooLarge { size, chunks });
        }
        let full = protection.chunk_size(piece);
        let last = size.saturating_sub(piece.saturating_mul(chunks.saturating_sub(1)));
        let total = full
            .saturating_mul(chunks.saturating_sub(1))
            .saturating_add(protection.chunk_size(last));
        out.resize(start.saturating_add(total), 0);
        spread(out, body_start, piece, full, chunks, last);
        let Some(message) = out.get_mut(start..) else {
            return Err(SendError::NotOpen);
        };
        for (index, chunk) in message.chunks_mut(full).enumerate() {
            let is_last = index.saturating_add(1) == chunks;
            let header = SymmetricHeader {
                chunk_type: if is_last {
                    ChunkType::Final
                } else {
                    ChunkType::Intermediate
                },
                message_type,
                channel_id: self.channel_id,
                token_id,
                sequence_number: self.outgoing.next(),
                request_id,
            };
            header.write(chunk);
            let sealed = protection.seal(chunk, if is_last { last } else { piece });
            #[cfg(test)]
            let sealed = match &mut self.fail_seal {
                Some(0) => Err(backplane_crypto::SymmetricError::Rejected),
                Some(left) => {
                    *left -= 1;
                    sealed
                }
                None => sealed,
            };
            if sealed.is_err() {
                self.stopped = true;
                return Err(SendError::Stopped);
            }
        }
        Ok(())
    }
}

/// Moves the pieces of a body that begins at `from` to where they lie in their chunks of `full` bytes. Backwards, because every piece moves
/// towards the end, over the place of those behind it.
fn spread(out: &mut [u8], from: usize, piece: usize, full: usize, chunks: usize, last: usize) {
    for index in (1..chunks).rev() {
        let length = if index.saturating_add(1) == chunks { last } else { piece };
        let source = from.saturating_add(index.saturating_mul(piece));
        let target = from.saturating_add(index.saturating_mul(full));
        // The caller sized `out` for exactly this.
        if target.saturating_add(length) <= out.len() {
            out.copy_within(source..source.saturating_add(length), target);
        }
    }
}

pub(crate) fn to_usize(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
