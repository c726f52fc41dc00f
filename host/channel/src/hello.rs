//! The messages of the connection protocol: Hello, Acknowledge, Error, ReverseHello (Part 6, 7.1.2).
//!
//! Owns their bytes and the negotiation of sizes. Knows nothing of secure channels. All sizes are UInt32: 0xFFFFFFFF is a legal offer,
//! and a MaxMessageSize or MaxChunkCount of 0 says that the sender has no limit of its own.

use backplane_types::{StatusCode, UaString};

use crate::error::ChannelError;
use crate::header::{MESSAGE_HEADER, MessageType};
use crate::limits::{Limits, MAX_ENDPOINT_URL, MAX_REASON, MIN_BUFFER_SIZE};

/// The version of the connection protocol this crate speaks.
pub(crate) const PROTOCOL_VERSION: u32 = 0;
/// A Hello is never longer than this: header, five numbers, and a URL of at most 4,096 bytes; the rest is room for a URL that is refused
/// by name instead of by size.
pub(crate) const MAX_HELLO: usize = 8_192;

/// What Hello and Acknowledge have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TransportSizes {
    /// Largest chunk the sender of the message can receive, in bytes.
    pub(crate) receive_buffer_size: u32,
    /// Largest chunk the sender of the message will send, in bytes.
    pub(crate) send_buffer_size: u32,
    /// Largest message body the sender of the message takes, in bytes; 0 = no limit.
    pub(crate) max_message_size: u32,
    /// Most chunks of one message the sender of the message takes; 0 = no limit.
    pub(crate) max_chunk_count: u32,
}

/// A Hello message (Part 6, 7.1.2.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    /// Highest protocol version the client speaks.
    pub(crate) protocol_version: u32,
    /// What the client offers.
    pub(crate) sizes: TransportSizes,
    /// The endpoint it wants, as it wrote it.
    pub(crate) endpoint_url: UaString,
}

/// A ReverseHello message (Part 6, 7.1.2.6): a server that called a client says who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReverseHello {
    /// ApplicationUri of the server.
    pub server_uri: UaString,
    /// The URL the client gives back in its Hello.
    pub endpoint_url: UaString,
}

/// What both ends agreed on, seen from this end. Sizes are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// Largest chunk this end takes.
    pub receive_chunk: usize,
    /// Largest chunk this end sends.
    pub send_chunk: usize,
    /// Largest body the peer takes; 0 = no limit.
    pub peer_max_message: usize,
    /// Most chunks of a message the peer takes; 0 = no limit.
    pub peer_max_chunks: usize,
}

impl Hello {
    /// Reads the message behind its header.
    ///
    /// # Errors
    /// BadDecodingError for a message that is too short or too long for its fields, BadTcpEndpointUrlInvalid for a URL above 4,096 bytes
    /// or not in UTF-8.
    pub(crate) fn parse(message: &[u8]) -> Result<Self, ChannelError> {
        let mut fields = Fields::behind_header(message);
        let protocol_version = fields.u32()?;
        let sizes = fields.sizes()?;
        let endpoint_url = fields.url()?;
        fields.end()?;
        Ok(Self {
            protocol_version,
            sizes,
            endpoint_url,
        })
    }

    /// Appends the message.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        append(out, MessageType::Hello, |out| {
            put_u32(out, self.protocol_version);
            put_sizes(out, self.sizes);
            put_text(out, &self.endpoint_url);
        });
    }

    /// The server's side of the negotiation: its Acknowledge and what holds from now on.
    ///
    /// # Errors
    /// BadTcpNotEnoughResources for a buffer below 8,192 bytes, with which no chunk of an RSA policy could be exchanged.
    pub(crate) fn negotiate(&self, limits: &Limits) -> Result<(TransportSizes, Negotiated), ChannelError> {
        let offered = self.sizes;
        if offered.receive_buffer_size < MIN_BUFFER_SIZE || offered.send_buffer_size < MIN_BUFFER_SIZE {
            return Err(ChannelError::peer(
                StatusCode::BAD_TCP_NOT_ENOUGH_RESOURCES,
                "buffer size below 8192 bytes",
            ));
        }
        let answer = TransportSizes {
            // What this end receives is what the client sends, and the other way round.
            receive_buffer_size: limits
                .receive_buffer_size
                .max(MIN_BUFFER_SIZE)
                .min(offered.send_buffer_size),
            send_buffer_size: limits
                .send_buffer_size
                .max(MIN_BUFFER_SIZE)
                .min(offered.receive_buffer_size),
            max_message_size: limits.max_message_size,
            max_chunk_count: limits.max_chunk_count,
        };
        Ok((answer, answer.negotiated(offered)))
    }
}

impl TransportSizes {
    /// What holds for the sender of this message, whose peer said `peer`. The buffer sizes of `self` are already the agreed ones.
    fn negotiated(self, peer: Self) -> Negotiated {
        Negotiated {
            receive_chunk: to_usize(self.receive_buffer_size),
            send_chunk: to_usize(self.send_buffer_size),
            peer_max_message: to_usize(peer.max_message_size),
            peer_max_chunks: to_usize(peer.max_chunk_count),
        }
    }

    /// Appends an Acknowledge message (Part 6, 7.1.2.4).
    pub(crate) fn encode_acknowledge(self, out: &mut Vec<u8>) {
        append(out, MessageType::Acknowledge, |out| {
            put_u32(out, PROTOCOL_VERSION);
            put_sizes(out, self);
        });
    }

    /// The client's side: reads the Acknowledge to a Hello that offered `self`.
    ///
    /// # Errors
    /// BadDecodingError for the wrong length, BadProtocolVersionUnsupported for a version above the one asked for, BadTcpInternalError for
    /// buffers above the offer or below 8,192 bytes.
    pub(crate) fn parse_acknowledge(self, message: &[u8]) -> Result<Negotiated, ChannelError> {
        let mut fields = Fields::behind_header(message);
        let version = fields.u32()?;
        let answer = fields.sizes()?;
        fields.end()?;
        if version > PROTOCOL_VERSION {
            return Err(ChannelError::peer(
                StatusCode::BAD_PROTOCOL_VERSION_UNSUPPORTED,
                "protocol version above the one asked for",
            ));
        }
        let too_large =
            answer.receive_buffer_size > self.send_buffer_size || answer.send_buffer_size > self.receive_buffer_size;
        let too_small = answer.receive_buffer_size < MIN_BUFFER_SIZE || answer.send_buffer_size < MIN_BUFFER_SIZE;
        if too_large || too_small {
            return Err(ChannelError::peer(
                StatusCode::BAD_TCP_INTERNAL_ERROR,
                "acknowledged buffer sizes do not fit the offer",
            ));
        }
        let mine = Self {
            receive_buffer_size: answer.send_buffer_size,
            send_buffer_size: answer.receive_buffer_size,
            ..self
        };
        Ok(mine.negotiated(answer))
    }
}

impl ReverseHello {
    /// Reads a whole ReverseHello message, header included.
    ///
    /// # Errors
    /// BadDecodingError for a wrong length, BadTcpEndpointUrlInvalid for a text above 4,096 bytes.
    pub(crate) fn parse(message: &[u8]) -> Result<Self, ChannelError> {
        let mut fields = Fields::behind_header(message);
        let server_uri = fields.url()?;
        let endpoint_url = fields.url()?;
        fields.end()?;
        Ok(Self {
            server_uri,
            endpoint_url,
        })
    }

    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        append(out, MessageType::ReverseHello, |out| {
            put_text(out, &self.server_uri);
            put_text(out, &self.endpoint_url);
        });
    }
}

/// Appends an Error message (Part 6, 7.1.2.5). The reason is the name of the code: a peer learns no more.
pub(crate) fn encode_error(out: &mut Vec<u8>, status: StatusCode) {
    append(out, MessageType::Error, |out| {
        put_u32(out, status.0);
        put_bytes(out, status.name().map(str::as_bytes));
    });
}

/// Reads an Error message, or the body of an abort chunk, which looks the same: code and reason. A reason that is too long or not UTF-8
/// becomes null, because a receiver shall ignore it.
///
/// # Errors
/// BadDecodingError if not even the code is there.
pub(crate) fn parse_error(body: &[u8]) -> Result<(StatusCode, UaString), ChannelError> {
    let mut fields = Fields { rest: body };
    let status = StatusCode(fields.u32()?);
    let reason = fields
        .bytes()
        .ok()
        .flatten()
        .filter(|bytes| bytes.len() <= MAX_REASON)
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .map_or(UaString::NULL, UaString::from);
    Ok((status, reason))
}

/// Appends a message of `message_type` whose fields `body` writes.
fn append(out: &mut Vec<u8>, message_type: MessageType, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    let [a, b, c] = message_type.letters();
    out.extend_from_slice(&[a, b, c, b'F', 0, 0, 0, 0]);
    body(out);
    let size = u32::try_from(out.len().saturating_sub(start)).unwrap_or(u32::MAX);
    if let Some(place) = out
        .get_mut(start.saturating_add(4)..)
        .and_then(<[u8]>::first_chunk_mut::<4>)
    {
        *place = size.to_le_bytes();
    }
}

fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_sizes(out: &mut Vec<u8>, sizes: TransportSizes) {
    put_u32(out, sizes.receive_buffer_size);
    put_u32(out, sizes.send_buffer_size);
    put_u32(out, sizes.max_message_size);
    put_u32(out, sizes.max_chunk_count);
}

fn put_text(out: &mut Vec<u8>, text: &UaString) {
    put_bytes(out, text.as_str().map(str::as_bytes));
}

/// Appends a length-prefixed field; `None` is null, which is not the same as empty.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => out.extend_from_slice(&(-1_i32).to_le_bytes()),
        Some(bytes) => {
            let length = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(bytes);
        }
    }
}

fn to_usize(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// Reads the plain fields of these messages and of the asymmetric security header.
pub(crate) struct Fields<'a> {
    pub(crate) rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn behind_header(message: &'a [u8]) -> Self {
        Self {
            rest: message.get(MESSAGE_HEADER..).unwrap_or_default(),
        }
    }

    /// # Errors
    /// BadDecodingError if the bytes are not there.
    pub(crate) fn u32(&mut self) -> Result<u32, ChannelError> {
        let Some((field, rest)) = self.rest.split_first_chunk::<4>() else {
            return Err(too_short());
        };
        self.rest = rest;
        Ok(u32::from_le_bytes(*field))
    }

    /// A length-prefixed field; -1 is null, other negative lengths are invalid.
    ///
    /// # Errors
    /// BadDecodingError if the length is invalid or the bytes are not there.
    pub(crate) fn bytes(&mut self) -> Result<Option<&'a [u8]>, ChannelError> {
        let length = self.u32()?;
        if length == u32::MAX {
            return Ok(None);
        }
        let Some((field, rest)) = self.rest.split_at_checked(to_usize(length)) else {
            return Err(too_short());
        };
        self.rest = rest;
        Ok(Some(field))
    }

    fn sizes(&mut self) -> Result<TransportSizes, ChannelError> {
        Ok(TransportSizes {
            receive_buffer_size: self.u32()?,
            send_buffer_size: self.u32()?,
            max_message_size: self.u32()?,
            max_chunk_count: self.u32()?,
        })
    }

    fn url(&mut self) -> Result<UaString, ChannelError> {
        const INVALID: ChannelError = ChannelError::peer(
            StatusCode::BAD_TCP_ENDPOINT_URL_INVALID,
            "URL above 4096 bytes or not UTF-8",
        );
        let Some(bytes) = self.bytes()? else {
            return Ok(UaString::NULL);
        };
        if bytes.len() > MAX_ENDPOINT_URL {
            return Err(INVALID);
        }
        std::str::from_utf8(bytes).map(UaString::from).map_err(|_| INVALID)
    }

    fn end(&self) -> Result<(), ChannelError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(ChannelError::peer(
                StatusCode::BAD_DECODING_ERROR,
                "bytes behind the last field",
            ))
        }
    }
}

fn too_short() -> ChannelError {
    ChannelError::peer(StatusCode::BAD_DECODING_ERROR, "message too short for its fields")
}
