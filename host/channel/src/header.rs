//! The fixed headers in front of every chunk (Part 6, 6.7.2 and 7.1.2.2).
//!
//! Owns the byte layout of the 8-byte message header and of the 24 bytes in front of a symmetric chunk's body. Knows nothing of keys,
//! of sequence rules or of what a message means.

use backplane_types::StatusCode;

use crate::error::ChannelError;

/// Message type, chunk type and size: what is checked before a body is waited for.
pub(crate) const MESSAGE_HEADER: usize = 8;
/// Message header, SecureChannelId and TokenId: the part of a symmetric chunk that is never encrypted.
pub(crate) const SYMMETRIC_HEADER: usize = 16;
/// SequenceNumber and RequestId.
pub(crate) const SEQUENCE_HEADER: usize = 8;
/// Everything in front of a symmetric chunk's body.
pub const CHUNK_HEADER: usize = SYMMETRIC_HEADER + SEQUENCE_HEADER;

/// The three letters at the start of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageType {
    /// `HEL`
    Hello,
    /// `ACK`
    Acknowledge,
    /// `ERR`
    Error,
    /// `RHE`
    ReverseHello,
    /// `OPN`
    Open,
    /// `CLO`
    Close,
    /// `MSG`
    Message,
}

impl MessageType {
    pub(crate) const fn letters(self) -> [u8; 3] {
        match self {
            Self::Hello => *b"HEL",
            Self::Acknowledge => *b"ACK",
            Self::Error => *b"ERR",
            Self::ReverseHello => *b"RHE",
            Self::Open => *b"OPN",
            Self::Close => *b"CLO",
            Self::Message => *b"MSG",
        }
    }

    fn from_letters(letters: [u8; 3]) -> Option<Self> {
        Some(match &letters {
            b"HEL" => Self::Hello,
            b"ACK" => Self::Acknowledge,
            b"ERR" => Self::Error,
            b"RHE" => Self::ReverseHello,
            b"OPN" => Self::Open,
            b"CLO" => Self::Close,
            b"MSG" => Self::Message,
            _ => return None,
        })
    }
}

/// The fourth byte of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkType {
    /// `C`: more chunks of the same message follow.
    Intermediate,
    /// `F`: the last chunk of the message.
    Final,
    /// `A`: the sender gives the message up.
    Abort,
}

impl ChunkType {
    pub(crate) const fn letter(self) -> u8 {
        match self {
            Self::Intermediate => b'C',
            Self::Final => b'F',
            Self::Abort => b'A',
        }
    }
}

/// The message header, checked for form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageHeader {
    pub(crate) message_type: MessageType,
    pub(crate) chunk_type: ChunkType,
    /// Bytes of the whole chunk, header included.
    pub(crate) size: usize,
}

impl MessageHeader {
    /// Reads the first eight bytes of `input`; `None` if they are not all there yet. `largest` is the negotiated size of a chunk.
    ///
    /// # Errors
    /// BadTcpMessageTypeInvalid for letters that mean nothing, BadTcpMessageTooLarge for a size beyond `largest` and BadDecodingError for
    /// one below the header's own eight bytes.
    pub(crate) fn parse(input: &[u8], largest: usize) -> Result<Option<Self>, ChannelError> {
        let Some([a, b, c, letter, size @ ..]) = input.first_chunk::<MESSAGE_HEADER>() else {
            return Ok(None);
        };
        let Some(message_type) = MessageType::from_letters([*a, *b, *c]) else {
            return Err(invalid_type("message type unknown"));
        };
        let chunk_type = match (message_type, letter) {
            (_, b'F') => ChunkType::Final,
            (MessageType::Message, b'C') => ChunkType::Intermediate,
            (MessageType::Message, b'A') => ChunkType::Abort,
            _ => return Err(invalid_type("chunk type not allowed")),
        };
        let size = usize::try_from(u32::from_le_bytes(*size)).unwrap_or(usize::MAX);
        if size < MESSAGE_HEADER {
            return Err(ChannelError::peer(
                StatusCode::BAD_DECODING_ERROR,
                "message size below its header",
            ));
        }
        if size > largest {
            return Err(ChannelError::peer(
                StatusCode::BAD_TCP_MESSAGE_TOO_LARGE,
                "message size beyond the negotiated buffer",
            ));
        }
        Ok(Some(Self {
            message_type,
            chunk_type,
            size,
        }))
    }
}

fn invalid_type(context: &'static str) -> ChannelError {
    ChannelError::peer(StatusCode::BAD_TCP_MESSAGE_TYPE_INVALID, context)
}

/// The fields of a symmetric chunk between the message header and the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SymmetricHeader {
    pub(crate) chunk_type: ChunkType,
    pub(crate) message_type: MessageType,
    pub(crate) channel_id: u32,
    pub(crate) token_id: u32,
    pub(crate) sequence_number: u32,
    pub(crate) request_id: u32,
}

impl SymmetricHeader {
    /// Writes all 24 bytes over the start of `chunk`, whose whole length becomes the size. A chunk too short is left alone.
    #[inline]
    pub(crate) fn write(&self, chunk: &mut [u8]) {
        let size = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
        let Some(header) = chunk.first_chunk_mut::<CHUNK_HEADER>() else {
            return;
        };
        let [a, b, c] = self.message_type.letters();
        let fields = [
            u32::from_le_bytes([a, b, c, self.chunk_type.letter()]),
            size,
            self.channel_id,
            self.token_id,
            self.sequence_number,
            self.request_id,
        ];
        for (place, field) in header.chunks_exact_mut(4).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
    }
}

/// The little-endian UInt32 at `at`.
///
/// # Errors
/// BadDecodingError if the chunk is too short for the field.
#[inline]
pub(crate) fn read_u32(bytes: &[u8], at: usize) -> Result<u32, ChannelError> {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk::<4>())
        .map(|field| u32::from_le_bytes(*field))
        .ok_or(ChannelError::peer(
            StatusCode::BAD_DECODING_ERROR,
            "chunk too short for its header",
        ))
}

#[cfg(test)]
mod tests {
    use backplane_types::StatusCode;

    use super::{CHUNK_HEADER, ChunkType, MessageHeader, MessageType, SymmetricHeader, read_u32};

    const HEADER: SymmetricHeader = SymmetricHeader {
        chunk_type: ChunkType::Intermediate,
        message_type: MessageType::Message,
        channel_id: 0x0102_0304,
        token_id: 0x1112_1314,
        sequence_number: 0x2122_2324,
        request_id: 0x3132_3334,
    };

    #[test]
    fn all_24_bytes_are_written_in_place_and_nothing_behind_them() {
        let mut chunk = [0xaa; 300];
        HEADER.write(&mut chunk);
        let expected = [
            0x4d, 0x53, 0x47, 0x43, 0x2c, 0x01, 0, 0, 4, 3, 2, 1, 0x14, 0x13, 0x12, 0x11, 0x24, 0x23, 0x22, 0x21, 0x34,
            0x33, 0x32, 0x31,
        ];
        assert_eq!(chunk[..CHUNK_HEADER], expected);
        assert!(chunk[CHUNK_HEADER..].iter().all(|byte| *byte == 0xaa));
        for (at, field) in [
            (8, HEADER.channel_id),
            (12, HEADER.token_id),
            (16, HEADER.sequence_number),
            (20, HEADER.request_id),
        ] {
            assert_eq!(read_u32(&chunk, at), Ok(field));
        }
        let header = MessageHeader::parse(&chunk, 300).unwrap().unwrap();
        assert_eq!(
            (header.message_type, header.chunk_type, header.size),
            (MessageType::Message, ChunkType::Intermediate, 300)
        );
    }

    #[test]
    fn a_field_that_the_chunk_is_too_short_for_is_a_decoding_error() {
        let mut whole = [0; CHUNK_HEADER];
        HEADER.write(&mut whole);
        for length in 0..CHUNK_HEADER {
            let chunk = &whole[..length];
            for at in [8, 12, 16, 20] {
                match read_u32(chunk, at) {
                    Ok(_) => assert!(at + 4 <= length),
                    Err(error) => {
                        assert!(at + 4 > length);
                        assert_eq!(error.wire, StatusCode::BAD_DECODING_ERROR);
                    }
                }
            }
            // Nothing is written to a chunk that has no room for all of it.
            let mut short = vec![0x55; length];
            HEADER.write(&mut short);
            assert!(short.iter().all(|byte| *byte == 0x55));
        }
    }
}
