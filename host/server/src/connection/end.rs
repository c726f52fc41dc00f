//! How a connection ends: what the log says, what the client is told, who has to know.

use std::io;

use backplane_channel::Closed;
use backplane_types::StatusCode;

use super::Connection;
use crate::link::Link;

/// Why a connection ended.
pub(super) enum End {
    /// The peer closed the socket, or it failed.
    Socket(io::Result<()>),
    /// The channel is over.
    Channel(Closed),
    /// The server stops.
    Stopping,
    /// Another connection needs the place.
    Crowded,
    /// The channel goes on over another connection.
    Moved,
}

impl Connection {
    /// Says goodbye as far as the socket takes it, and tells those who have to know.
    pub(super) async fn finish(&mut self, end: &End) {
        self.say(end);
        match end {
            End::Stopping => {
                self.channel.close(StatusCode::BAD_SERVER_HALTED, self.outbox.buffer());
            }
            End::Crowded => {
                self.channel
                    .close(StatusCode::BAD_TCP_SERVER_TOO_BUSY, self.outbox.buffer());
                // Who is asked to make room does not get more time.
                let _ = self.write();
            }
            End::Socket(_) | End::Channel(_) | End::Moved => {}
        }
        if !matches!(end, End::Socket(_) | End::Crowded | End::Moved) {
            let drained = tokio::time::timeout(self.shared.goodbye(), self.drain()).await;
            if drained.is_err() {
                tracing::debug!(peer = %self.peer, "the client does not read; its last answers are dropped");
            }
        }
        self.forget(end);
    }

    /// The connection is gone. A channel whose connection broke waits for its client; any other is over.
    fn forget(&mut self, end: &End) {
        if matches!(end, End::Moved) {
            return;
        }
        if matches!(end, End::Socket(_))
            && self.link.as_ref().is_some_and(|link| link.bound().is_some())
            && let Some(parked) = self.detach()
        {
            let limit = self.shared.limits.connections as usize;
            self.shared.channels.park(self.now, parked, limit);
            return;
        }
        let has_waiting = self.link.as_ref().is_some_and(Link::has_waiting);
        self.shared.connection_closed(self.place.number(), has_waiting);
        if let Some(link) = &self.link {
            self.shared
                .channels
                .remove(link.evidence.channel_id, self.place.leave());
        }
    }

    fn say(&self, end: &End) {
        let peer = self.peer;
        match end {
            End::Socket(Ok(())) | End::Channel(Closed::ByPeer) => {
                tracing::debug!(%peer, "connection closed by the client");
            }
            End::Socket(Err(error)) => tracing::debug!(%peer, %error, "connection lost"),
            End::Channel(Closed::PeerError { status, reason }) => {
                tracing::info!(%peer, %status, reason = reason.text(), "the client reports an error");
            }
            End::Channel(Closed::Error(error)) => {
                tracing::info!(%peer, status = %error.reason, reason = error.context, "channel closed");
            }
            End::Crowded => tracing::debug!(%peer, "closed for another connection: it has no session"),
            End::Moved => tracing::debug!(%peer, "the channel goes on over another connection"),
            End::Stopping => {}
        }
    }

    async fn drain(&mut self) {
        while !self.outbox.is_empty() {
            if self.stream.writable().await.is_err() || self.write().is_err() {
                return;
            }
        }
        // The client sees the Error message before the end of the stream; a failure here means it is gone already.
        let _ = tokio::io::AsyncWriteExt::shutdown(&mut self.stream).await;
    }
}
