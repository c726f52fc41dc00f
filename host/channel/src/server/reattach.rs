//! Leaving a connection: the half of reattaching that happens at the old one. See [`crate::DetachedChannel`] for the whole.

use backplane_types::{Now, StatusCode};

use super::{Phase, ServerChannel};
use crate::error::{ChannelError, Closed};
use crate::reattach::{DetachedChannel, Reattachment};

impl ServerChannel {
    /// Whether the verified request may take this channel away to another connection. Changes nothing, so that a request that is refused
    /// does no harm here.
    ///
    /// # Errors
    /// As [`DetachedChannel::admits`]; and BadTcpSecureChannelUnknown while the channel is being renewed here, because the request could be
    /// a replay of that renewal, whose number is not known yet.
    pub fn admits(&self, now: Now, reattachment: &Reattachment) -> Result<(), ChannelError> {
        let (Some(detached), None) = (self.detached(), &self.opening) else {
            return Err(ChannelError::peer(
                StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN,
                "the channel cannot leave its connection now",
            ));
        };
        detached.admits(now, reattachment)
    }

    /// Takes the channel off this connection: because a verified request that it [`admits`](Self::admits) wants it on another one, or
    /// because the connection is lost and the client may come back with another one until [`DetachedChannel::end`]. Nothing can be sent or
    /// received here afterwards, the keys are erased, and what was sealed but not written is to be dropped with the connection: its
    /// numbers are lost, which the client expects. Responses that were not sealed yet have taken no number.
    ///
    /// None if there is no channel that could go on: not open, closed, or without security.
    pub fn detach(&mut self) -> Option<DetachedChannel> {
        let detached = self.detached()?;
        self.phase = Phase::Closed(Closed::Error(ChannelError::ours(
            StatusCode::BAD_SECURE_CHANNEL_CLOSED,
            "the channel left this connection",
        )));
        self.opening = None;
        self.established = None;
        Some(detached)
    }

    fn detached(&self) -> Option<DetachedChannel> {
        let (Phase::Connected(secure), Some(established)) = (&self.phase, &self.established) else {
            return None;
        };
        if !secure.is_open() || established.evidence.policy.is_none() {
            return None;
        }
        Some(DetachedChannel {
            established: established.clone(),
            continuation: secure.continuation(),
            end: secure.tokens.end()?,
            authenticated: self.authenticated,
        })
    }
}
