//! One connection as bytes: Hello, OpenSecureChannel of the policy None, and the chunks of messages (Part 6, 6.7 and 7.1).
//!
//! Owns the numbers of a channel and what is appended to the output. Knows no socket. A message has to fit into one chunk.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use backplane_types::{
    BinaryDecode, BinaryEncode, ByteString, ChannelSecurityToken, DateTime, DecodeLimits, Decoder, Encoder, NodeId,
    OpenSecureChannelRequest, OpenSecureChannelResponse, ResponseHeader, StatusCode, Structure,
};

use crate::serve::Responder;
use crate::wire::{CHUNK_HEADER, MESSAGE_HEADER, Reader, chunk_header};

/// Largest chunk that is taken, and sent if the client takes it.
pub(crate) const CHUNK: usize = 65_536;
/// Smallest receive buffer a client may offer.
const SMALLEST_CHUNK: usize = 8_192;
/// Lifetime of a token; never enforced.
const LIFETIME: u32 = 3_600_000;
const POLICY_NONE: &[u8] = b"http://opcfoundation.org/UA/SecurityPolicy#None";

/// A request: what a [`Responder`] answers.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Type id and structure.
    pub body: &'a [u8],
    /// The same with the 24 bytes of headers before it.
    pub chunk: &'a [u8],
    /// When the bytes were taken from the socket.
    pub now: DateTime,
}

/// Where the answer to one request goes.
#[derive(Debug)]
pub struct Reply<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    fields: [u32; 4],
}

impl Reply<'_> {
    /// Appends to the body.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Makes room for `bytes` more.
    #[inline]
    pub fn reserve(&mut self, bytes: usize) {
        self.out.reserve(bytes);
    }

    /// Forgets what was put.
    pub fn clear(&mut self) {
        self.out.truncate(self.start.saturating_add(CHUNK_HEADER));
    }

    /// Appends a whole chunk made before, with only its headers renewed. Nothing else may be put.
    #[inline]
    pub fn put_chunk(&mut self, chunk: &[u8]) {
        self.out.truncate(self.start);
        self.out.extend_from_slice(chunk);
    }

    /// Overwrites the four bytes at `offset` from the start of the chunk, if they are there.
    #[inline]
    pub fn patch(&mut self, offset: usize, bytes: [u8; 4]) {
        let place = self.out.get_mut(self.start.saturating_add(offset)..);
        if let Some(place) = place.and_then(<[u8]>::first_chunk_mut::<4>) {
            *place = bytes;
        }
    }

    /// An encoder that appends to the body.
    pub fn encoder(&mut self) -> Encoder<'_> {
        Encoder::new(self.out)
    }

    /// Bytes of the chunk so far, headers included.
    fn len(&self) -> usize {
        self.out.len().saturating_sub(self.start)
    }

    #[inline]
    fn seal(self) {
        let header = chunk_header(*b"MSGF", self.len(), self.fields);
        let place = self.out.get_mut(self.start..);
        if let Some(place) = place.and_then(<[u8]>::first_chunk_mut::<CHUNK_HEADER>) {
            *place = header;
        }
    }
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The client closed the channel.
    Closed,
    /// The client did what this responder cannot take.
    Refused(StatusCode),
}

/// The state of one connection.
#[derive(Debug)]
pub(crate) struct Channel {
    id: u32,
    token: u32,
    sequence: u32,
    largest: usize,
}

static NEXT_CHANNEL: AtomicU32 = AtomicU32::new(1);

impl Channel {
    pub(crate) fn new() -> Self {
        Self {
            id: NEXT_CHANNEL.fetch_add(1, Ordering::Relaxed),
            token: 0,
            sequence: 0,
            largest: CHUNK,
        }
    }

    /// Answers every whole chunk at the start of `input`; returns how many bytes were used.
    ///
    /// # Errors
    /// [`End`]: what `out` holds is still to be written, then the connection is over.
    pub(crate) fn handle(
        &mut self,
        input: &[u8],
        responder: &mut impl Responder,
        out: &mut Vec<u8>,
    ) -> Result<usize, End> {
        let now = DateTime::from_system_time(SystemTime::now());
        let mut rest = input;
        while let Some((letters, size)) = header(rest) {
            if !(MESSAGE_HEADER..=CHUNK).contains(&size) {
                return Err(End::Refused(StatusCode::BAD_TCP_MESSAGE_TOO_LARGE));
            }
            let Some((chunk, behind)) = rest.split_at_checked(size) else {
                break;
            };
            rest = behind;
            match &letters {
                b"MSGF" => self.message(chunk, now, responder, out)?,
                b"HELF" => self.hello(chunk, out)?,
                b"OPNF" => self.open(chunk, now, out)?,
                b"CLOF" => return Err(End::Closed),
                _ => return Err(End::Refused(StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID)),
            }
        }
        Ok(input.len().saturating_sub(rest.len()))
    }

    #[inline]
    fn message(
        &mut self,
        chunk: &[u8],
        now: DateTime,
        responder: &mut impl Responder,
        out: &mut Vec<u8>,
    ) -> Result<(), End> {
        let too_short = End::Refused(StatusCode::BAD_DECODING_ERROR);
        let (header, body) = chunk.split_first_chunk::<CHUNK_HEADER>().ok_or(too_short)?;
        let [.., a, b, c, d] = *header;
        self.sequence = self.sequence.wrapping_add(1);
        let fields = [self.id, self.token, self.sequence, u32::from_le_bytes([a, b, c, d])];
        let start = out.len();
        out.extend_from_slice(&[0; CHUNK_HEADER]);
        let mut reply = Reply { out, start, fields };
        responder.answer(Message { body, chunk, now }, &mut reply);
        if reply.len() > self.largest {
            let handle = Reader::new(body.get(4..).unwrap_or_default()).request_header();
            reply.clear();
            let mut encoder = reply.encoder();
            encoder.service_fault(now, handle.unwrap_or(0), StatusCode::BAD_RESPONSE_TOO_LARGE);
        }
        reply.seal();
        Ok(())
    }

    fn hello(&mut self, message: &[u8], out: &mut Vec<u8>) -> Result<(), End> {
        let mut reader = Reader::new(message.get(MESSAGE_HEADER..).unwrap_or_default());
        let client_receives = reader
            .u32()
            .and_then(|_version| reader.u32())
            .and_then(|size| usize::try_from(size).ok())
            .filter(|size| *size >= SMALLEST_CHUNK)
            .ok_or(End::Refused(StatusCode::BAD_TCP_NOT_ENOUGH_RESOURCES))?;
        self.largest = client_receives.min(CHUNK);
        // Version, receive and send buffer, and no limits beyond one chunk.
        let sizes = [0, CHUNK, self.largest, CHUNK, 1];
        out.extend_from_slice(b"ACKF");
        out.extend_from_slice(&28_u32.to_le_bytes());
        for size in sizes {
            out.extend_from_slice(&u32::try_from(size).unwrap_or(u32::MAX).to_le_bytes());
        }
        Ok(())
    }

    fn open(&mut self, chunk: &[u8], now: DateTime, out: &mut Vec<u8>) -> Result<(), End> {
        let broken = End::Refused(StatusCode::BAD_DECODING_ERROR);
        let mut reader = Reader::new(chunk.get(MESSAGE_HEADER.saturating_add(4)..).ok_or(broken)?);
        let policy = reader.bytes().ok_or(broken)?;
        if policy != Some(POLICY_NONE) {
            return Err(End::Refused(StatusCode::BAD_SECURITY_POLICY_REJECTED));
        }
        // Certificate and thumbprint, sequence number.
        reader.bytes().ok_or(broken)?;
        reader.bytes().ok_or(broken)?;
        reader.u32().ok_or(broken)?;
        let request_id = reader.u32().ok_or(broken)?;
        let mut decoder = Decoder::new(reader.rest(), DecodeLimits::DEFAULT);
        let type_id = NodeId::decode(&mut decoder).map_err(|_| broken)?;
        if type_id.as_standard() != Some(OpenSecureChannelRequest::ENCODING_ID) {
            return Err(broken);
        }
        let request = OpenSecureChannelRequest::decode(&mut decoder).map_err(|_| broken)?;
        self.token = self.token.wrapping_add(1);
        self.sequence = self.sequence.wrapping_add(1);
        let response = OpenSecureChannelResponse {
            response_header: response_header(now, request.request_header.request_handle),
            server_protocol_version: 0,
            security_token: ChannelSecurityToken {
                channel_id: self.id,
                token_id: self.token,
                created_at: now,
                revised_lifetime: LIFETIME,
            },
            server_nonce: ByteString::NULL,
        };
        let start = out.len();
        let mut encoder = Encoder::new(out);
        encoder.raw(b"OPNF");
        encoder.u32(0);
        encoder.u32(self.id);
        encoder.byte_string(Some(POLICY_NONE));
        encoder.byte_string(None);
        encoder.byte_string(None);
        encoder.u32(self.sequence);
        encoder.u32(request_id);
        NodeId::numeric(0, OpenSecureChannelResponse::ENCODING_ID).encode(&mut encoder);
        response.encode(&mut encoder);
        let size = encoder.position().saturating_sub(start);
        encoder.patch_u32(start.saturating_add(4), u32::try_from(size).unwrap_or(u32::MAX));
        Ok(())
    }
}

/// A response header that says Good.
pub(crate) fn response_header(now: DateTime, request_handle: u32) -> ResponseHeader {
    ResponseHeader {
        timestamp: now,
        request_handle,
        ..ResponseHeader::default()
    }
}

/// Appends an Error message.
pub(crate) fn error_message(status: StatusCode, out: &mut Vec<u8>) {
    let mut encoder = Encoder::new(out);
    encoder.raw(b"ERRF");
    encoder.u32(16);
    encoder.u32(status.0);
    encoder.string(None);
}

#[inline]
fn header(input: &[u8]) -> Option<([u8; 4], usize)> {
    let mut reader = Reader::new(input);
    let letters = reader.array()?;
    Some((letters, usize::try_from(reader.u32()?).unwrap_or(usize::MAX)))
}
