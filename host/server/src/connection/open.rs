//! A connection's channel: opened, renewed, brought over from another connection, taken away by one; and whom its work is
//! charged to.

use std::sync::Arc;

use backplane_channel::OpenWork;
use backplane_types::StatusCode;

use super::Connection;
use super::end::End;
use crate::admission::{Charge, ChargeError};
use crate::channels::{self, Moved, Opened, Parked, Takeover, refused};
use crate::link::Link;

impl Connection {
    /// Opens or renews the channel: RSA work, on a blocking thread.
    pub(super) fn open(&mut self, work: OpenWork) -> Result<(), End> {
        let charge = Arc::clone(self.charge());
        if self.place.begin_handshake(charge.owner()).is_err() {
            return Err(End::Channel(
                self.channel
                    .close(StatusCode::BAD_TCP_SERVER_TOO_BUSY, self.outbox.buffer()),
            ));
        }
        self.opening = Some(tokio::spawn(channels::open(Arc::clone(&self.shared), work)));
        Ok(())
    }

    /// Whom the next turn is charged to.
    pub(super) fn charge(&self) -> &Arc<Charge> {
        self.link.as_ref().map_or(self.place.charge(), Link::charge)
    }

    /// Goes on when an OpenSecureChannel request has been worked on.
    pub(super) async fn opened(&mut self, opened: Opened) -> Result<(), End> {
        self.opening = None;
        let Some((outcome, moved)) = opened else {
            return Err(End::Channel(
                self.channel
                    .close(StatusCode::BAD_TCP_INTERNAL_ERROR, self.outbox.buffer()),
            ));
        };
        if let Some(error) = outcome.error() {
            tracing::warn!(peer = %self.peer, status = %error.reason, reason = error.context, "secure channel refused");
            if self.shared.audits() {
                self.shared
                    .audit_channel(self.channel.evidence().map(AsRef::as_ref), error.reason);
            }
        }
        let opened = self.channel.handle_opened(self.now, outcome, self.outbox.buffer());
        self.outbox.message_done();
        opened.map_err(End::Channel)?;
        self.place.end_handshake();
        if self.link.is_some() {
            return Ok(());
        }
        let Some(evidence) = self.channel.evidence().cloned() else {
            return Ok(());
        };
        tracing::debug!(peer = %self.peer, channel = evidence.channel_id, policy = evidence.policy.name(), mode = ?evidence.mode, moved = moved.is_some(), "secure channel open");
        if self.shared.audits() {
            self.shared.audit_channel(Some(&evidence), StatusCode::GOOD);
        }
        self.shared.channels.connected(&evidence, self.place.leave());
        if let Some(moved) = moved {
            return self.moved(*moved).await;
        }
        let classified = self.shared.admission.classify(self.peer.ip(), &evidence, None).await;
        self.now = self.shared.clock.now();
        let charge = classified.map_err(|error| self.unaccounted(&error))?;
        let limit = self.shared.limits.waiting_requests_per_connection as usize;
        self.link = Some(Link::new(
            self.place.number(),
            evidence,
            self.peer,
            self.sender.clone(),
            charge,
            limit,
        ));
        Ok(())
    }

    /// The channel was another connection's: its sessions know it by its old number, and it may come from another address.
    async fn moved(&mut self, moved: Moved) -> Result<(), End> {
        let Moved { number, mut link } = moved;
        self.place.adopt(number);
        link.move_to(self.peer, self.sender.clone());
        self.link = Some(link);
        self.classify_again().await
    }

    /// Somebody wants the place, or the channel. None when the connection goes on.
    pub(super) fn let_go(&mut self) -> Option<End> {
        if let Some(takeover) = self.place.leave().takeover() {
            let Takeover { reattachment, reply } = takeover;
            let admitted = self.channel.admits(self.now, &reattachment);
            let error = match admitted {
                Ok(()) => match self.detach() {
                    Some(parked) => {
                        // If nobody waits for it any more, the channel is over.
                        let _ = reply.send(Ok((reattachment, parked)));
                        return Some(End::Moved);
                    }
                    None => None,
                },
                Err(error) => Some(error),
            };
            // As above.
            let _ = reply.send(Err(refused(reattachment, error)));
        }
        self.place.must_leave().then_some(End::Crowded)
    }

    /// Takes the channel off this connection, with everything that waits on it answered for: what was not sealed is dropped
    /// and takes no sequence number.
    pub(super) fn detach(&mut self) -> Option<Parked> {
        let detached = self.channel.detach()?;
        let link = self.link.take()?;
        let number = self.place.number();
        self.shared.connection_closed(number, link.has_waiting());
        let moved = Moved { number, link };
        Some(Parked { detached, moved })
    }

    /// Nobody can be charged for what this channel does: it does nothing.
    fn unaccounted(&mut self, error: &ChargeError) -> End {
        tracing::warn!(peer = %self.peer, %error, "closing the channel: nobody to charge its work to");
        End::Channel(
            self.channel
                .close(StatusCode::BAD_TCP_SERVER_TOO_BUSY, self.outbox.buffer()),
        )
    }

    /// A classifier has changed: whom the channel and its sessions are charged to is found out anew. Until it is, nothing
    /// of this connection runs.
    pub(super) async fn classify_again(&mut self) -> Result<(), End> {
        let Some(link) = &self.link else { return Ok(()) };
        let admission = &self.shared.admission;
        let (peer, evidence) = (self.peer.ip(), &link.evidence);
        let of_channel = admission
            .classify_again(link.channel_charge(), peer, evidence, None)
            .await;
        let mut of_sessions = Vec::new();
        for bound in link.sessions() {
            let charge = admission
                .classify_again(&bound.charge, peer, evidence, Some(&bound.session))
                .await;
            of_sessions.push((bound.session.clone(), charge));
        }
        self.now = self.shared.clock.now();
        let charge = of_channel.map_err(|error| self.unaccounted(&error))?;
        let mut charges = Vec::with_capacity(of_sessions.len());
        for (session, charge) in of_sessions {
            let charge = charge.map_err(|error| self.unaccounted(&error))?;
            self.shared.charges.keep(&session, &charge);
            charges.push(charge);
        }
        if let Some(link) = &mut self.link {
            link.classified_again(charge, charges);
        }
        Ok(())
    }
}
