//! What can go wrong for a client.

use backplane_channel::{ChannelError, Closed, SendError};
use backplane_types::{DecodeError, NodeId, StatusCode};

/// Why a call has no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ClientError {
    /// The URL is not `opc.tcp://host:port`.
    #[error("not an opc.tcp URL: {0}")]
    Url(String),
    /// The socket failed.
    #[error("connection: {0}")]
    Io(std::io::ErrorKind),
    /// The own end of the channel could not do its part.
    #[error("channel: {0}")]
    Channel(#[from] ChannelError),
    /// The channel is over.
    #[error("channel closed: {0:?}")]
    Closed(Closed),
    /// The server closed the connection without a word.
    #[error("the server closed the connection")]
    Disconnected,
    /// The request was not sent.
    #[error("not sent: {0}")]
    Send(#[from] SendError),
    /// The server gave the response up half-way.
    #[error("response aborted: {0}")]
    Aborted(StatusCode),
    /// The service failed as a whole.
    #[error("service result {0}")]
    Fault(StatusCode),
    /// The response cannot be decoded.
    #[error("response: {0}")]
    Decode(#[from] DecodeError),
    /// The response is of another service.
    #[error("unexpected response {0}")]
    UnexpectedResponse(NodeId),
    /// There was no answer in time.
    #[error("no answer in time")]
    Timeout,
    /// Too many requests wait for responses.
    #[error("too many requests under way")]
    TooManyRequests,
    /// The client was closed.
    #[error("the client is closed")]
    Gone,
    /// The session cannot be made: what does not fit is said.
    #[error("session: {0}")]
    Session(&'static str),
}

impl ClientError {
    /// The status code the server gave, whichever way it came.
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Fault(status) | Self::Aborted(status) => Some(*status),
            Self::Closed(Closed::PeerError { status, .. }) => Some(*status),
            _ => None,
        }
    }
}

impl From<std::io::Error> for ClientError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error.kind())
    }
}
