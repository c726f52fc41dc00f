//! Why a run cannot go on.

use backplane_channel::{ChannelError, Closed, SendError};
use backplane_types::{DecodeError, StatusCode};

/// See the module.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// Something the person who called can change.
    #[error("{0}")]
    Setup(String),
    /// The socket failed.
    #[error("connection: {0}")]
    Io(#[from] std::io::Error),
    /// The server closed the connection without a word.
    #[error("the server closed the connection")]
    Disconnected,
    /// The server sent an Error message.
    #[error("the server ended the channel: {0} {1}")]
    Ended(StatusCode, String),
    /// The channel is over.
    #[error("channel: {0:?}")]
    Closed(Closed),
    /// The own end of the channel could not do its part.
    #[error("channel: {0}")]
    Channel(#[from] ChannelError),
    /// A request could not be sealed.
    #[error("not sent: {0}")]
    Send(#[from] SendError),
    /// A service answered with a fault or a bad result.
    #[error("{0}: {1}")]
    Service(&'static str, StatusCode),
    /// A response that is none.
    #[error("response: {0}")]
    Response(&'static str),
    /// A response cannot be decoded.
    #[error("response: {0}")]
    Decode(#[from] DecodeError),
    /// There was no answer in time.
    #[error("no answer to {0} in time")]
    Timeout(&'static str),
}

/// A problem in words.
pub(crate) fn setup(text: impl Into<String>) -> LoadError {
    LoadError::Setup(text.into())
}
