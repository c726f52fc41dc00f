//! What can go wrong on a channel, who is at fault, and which status code leaves on the wire.
//!
//! Owns the errors of both ends. The wire code and the reason are kept apart, because a peer must not learn why a security check failed
//! (Part 6, 6.7.3 and 7.1.5) while the log must.

use backplane_types::{StatusCode, UaString};

/// Who has to change something so that the error goes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The peer broke a rule of the protocol or failed a security check.
    Peer,
    /// This end could not do its part (randomness, a key that does not fit, a state that should not be).
    Us,
}

/// An error that ends the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{context} ({reason})")]
pub struct ChannelError {
    /// Who is at fault.
    pub fault: Fault,
    /// The code of the Error message the peer gets.
    pub wire: StatusCode,
    /// The true reason, for the log only.
    pub reason: StatusCode,
    /// What was being checked, for the log only.
    pub context: &'static str,
}

impl ChannelError {
    /// The peer broke a rule and may be told which.
    pub(crate) const fn peer(status: StatusCode, context: &'static str) -> Self {
        Self {
            fault: Fault::Peer,
            wire: status,
            reason: status,
            context,
        }
    }

    /// A security check failed: the peer learns BadSecurityChecksFailed and nothing else.
    pub(crate) const fn security(reason: StatusCode, context: &'static str) -> Self {
        Self {
            fault: Fault::Peer,
            wire: StatusCode::BAD_SECURITY_CHECKS_FAILED,
            reason,
            context,
        }
    }

    /// The same error with another code for the peer.
    pub(crate) const fn with_wire(self, wire: StatusCode) -> Self {
        Self { wire, ..self }
    }

    /// This end failed.
    pub(crate) const fn ours(reason: StatusCode, context: &'static str) -> Self {
        Self {
            fault: Fault::Us,
            wire: StatusCode::BAD_TCP_INTERNAL_ERROR,
            reason,
            context,
        }
    }
}

/// Why a channel is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    /// The peer sent CloseSecureChannel.
    ByPeer,
    /// The peer sent an Error message (Part 6, 7.1.2.5).
    PeerError {
        /// The code it gave.
        status: StatusCode,
        /// Its words, at most 4,096 bytes; null if there were none or too many.
        reason: UaString,
    },
    /// A rule was broken or a deadline passed; an Error message was appended to the output where this end sends one.
    Error(ChannelError),
}

/// A message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// There is no open channel: nothing can be sent. BadSecureChannelClosed.
    #[error("the channel is not open")]
    NotOpen,
    /// The message exceeds the peer's MaxMessageSize or MaxChunkCount. Nothing was numbered; the channel goes on.
    /// BadResponseTooLarge at the server, BadRequestTooLarge at the client.
    #[error("{size} bytes in {chunks} chunks exceed the peer's limits")]
    TooLarge {
        /// Bytes of the body.
        size: usize,
        /// Chunks it would have taken.
        chunks: usize,
    },
    /// Too much waits for the OpenSecureChannel response that has to leave first. Nothing was numbered. BadTcpNotEnoughResources.
    #[error("too many bytes wait for the renewal of the channel")]
    TooMuchHeld,
    /// Sealing failed after numbers were taken: the channel is stopped and has to be closed. BadTcpInternalError.
    #[error("sealing failed, the channel is stopped")]
    Stopped,
}

impl SendError {
    /// The code of the ServiceFault a server answers instead, where it can still answer.
    #[must_use]
    pub const fn response_status(self) -> StatusCode {
        match self {
            Self::NotOpen => StatusCode::BAD_SECURE_CHANNEL_CLOSED,
            Self::TooLarge { .. } => StatusCode::BAD_RESPONSE_TOO_LARGE,
            Self::TooMuchHeld => StatusCode::BAD_TCP_NOT_ENOUGH_RESOURCES,
            Self::Stopped => StatusCode::BAD_TCP_INTERNAL_ERROR,
        }
    }

    /// The code a client reports to its application.
    #[must_use]
    pub const fn request_status(self) -> StatusCode {
        match self {
            Self::TooLarge { .. } => StatusCode::BAD_REQUEST_TOO_LARGE,
            other => other.response_status(),
        }
    }
}
