//! Why a message could not be decoded.

use crate::StatusCode;

/// Why bytes are not a value. The sender is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end before the value does, or a length claims more than there is.
    #[error("the message ends before the value does")]
    Truncated,
    /// A String or XmlElement is not UTF-8.
    #[error("a string is not valid UTF-8")]
    InvalidUtf8,
    /// A field has a value that the encoding does not allow.
    #[error("malformed {0}")]
    Malformed(&'static str),
    /// A length is above what the decoder accepts.
    #[error("{0} above the decoding limit")]
    LimitExceeded(&'static str),
    /// Values nest deeper than the decoder accepts.
    #[error("values nest too deeply")]
    TooDeep,
    /// The type inside an ExtensionObject is not the one asked for.
    #[error("unexpected type in an extension object")]
    UnexpectedType,
}

impl DecodeError {
    /// The status code to send: `BadEncodingLimitsExceeded` for limits and depth, otherwise `BadDecodingError`.
    #[inline]
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::LimitExceeded(_) | Self::TooDeep => StatusCode(0x8008_0000),
            Self::Truncated | Self::InvalidUtf8 | Self::Malformed(_) | Self::UnexpectedType => StatusCode(0x8007_0000),
        }
    }
}

impl From<DecodeError> for StatusCode {
    #[inline]
    fn from(error: DecodeError) -> Self {
        error.status()
    }
}
