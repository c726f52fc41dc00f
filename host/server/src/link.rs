//! What services know of the connection a request came on.
//!
//! Owns the sessions validated last with whom their work is charged to, and the way back for late answers. Knows neither
//! the socket nor how messages are sealed.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use backplane_channel::ChannelEvidence;
use backplane_nodes::Caller;
use backplane_session::{ChannelId, ChannelInfo, ValidatedSession};
use backplane_types::{ByteString, IdentifierRef, NodeIdRef, Now, StatusCode};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;

use crate::admission::{Charge, Held};
use crate::roles;
use crate::shared::{Points, Shared};

/// Sessions of one channel whose last validation is kept.
pub(crate) const KEPT_SESSIONS: usize = 8;

/// Answers that were not given in the turn of their requests.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Type id, header and body for one request of the connection.
    One { request_id: u32, message: Vec<u8> },
    /// The same for several, side by side.
    Many {
        parts: Vec<(u32, Range<usize>)>,
        bytes: Vec<u8>,
    },
}

/// A session that an answer made usable on the connection, and whom its work is charged to.
#[derive(Debug)]
pub(crate) struct Activated {
    pub(crate) session: ValidatedSession,
    pub(crate) charge: Arc<Charge>,
}

/// What other tasks send to a connection.
#[derive(Debug)]
pub(crate) struct Outbound {
    pub(crate) answer: Answer,
    pub(crate) activated: Option<Activated>,
    /// Given back when the answers are sealed.
    pub(crate) held: Vec<Held>,
}

/// Where late answers go. Unbounded in type only: each belongs to a request that was counted when it was admitted.
pub(crate) type OutboundSender = UnboundedSender<Outbound>;

/// A validated session, with what node services want to know of its user.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    pub(crate) session: ValidatedSession,
    pub(crate) caller: Arc<Caller>,
    pub(crate) points: Points,
    /// Whom its requests are charged to.
    pub(crate) charge: Arc<Charge>,
    /// The client's application instance certificate (DER); null on a channel without security.
    pub(crate) client_certificate: ByteString,
}

/// See the module text.
pub(crate) struct Link {
    /// The channel, as sessions see it.
    pub(crate) channel: ChannelInfo,
    /// The channel, as it was opened.
    pub(crate) evidence: Arc<ChannelEvidence>,
    /// The other end.
    pub(crate) peer: SocketAddr,
    /// For answers that come later.
    pub(crate) outbound: OutboundSender,
    /// Password checks of this connection, one at a time: others log in between two of them.
    pub(crate) logins: Arc<Semaphore>,
    /// Whom requests without a session are charged to.
    charge: Arc<Charge>,
    /// Counts the changes of what the channel's owners were derived from.
    revision: Arc<AtomicU64>,
    /// The one used last is in front.
    sessions: Vec<Bound>,
    waiting: Arc<AtomicUsize>,
    waiting_limit: usize,
}

impl Link {
    /// A link for a channel that has just opened.
    pub(crate) fn new(
        number: u64,
        evidence: Arc<ChannelEvidence>,
        peer: SocketAddr,
        outbound: OutboundSender,
        charge: Arc<Charge>,
        waiting_limit: usize,
    ) -> Self {
        let channel = ChannelInfo {
            id: ChannelId(number),
            client_certificate: evidence.client_certificate.clone(),
            security_policy: evidence.policy.uri().into(),
            security_mode: evidence.mode,
        };
        Self {
            channel,
            evidence,
            peer,
            outbound,
            logins: Arc::new(Semaphore::new(1)),
            charge,
            revision: Arc::default(),
            sessions: Vec::new(),
            waiting: Arc::default(),
            waiting_limit,
        }
    }

    /// The channel goes on over another connection.
    pub(crate) fn move_to(&mut self, peer: SocketAddr, outbound: OutboundSender) {
        self.peer = peer;
        self.outbound = outbound;
        // What waited was answered for.
        self.waiting = Arc::default();
    }

    /// The activated session that `token` names. While it is one that this channel used lately and nothing has happened to
    /// it, this compares the token and one number; else the index is asked, which takes no global lock.
    ///
    /// # Errors
    /// `BadSessionIdInvalid`, `BadSessionNotActivated` (and the session is closed), `BadSecureChannelIdInvalid`.
    pub(crate) fn session(&mut self, shared: &Shared, now: Now, token: NodeIdRef<'_>) -> Result<&Bound, StatusCode> {
        let bytes = match token.identifier {
            IdentifierRef::Opaque(Some(bytes)) if token.namespace == 0 => bytes,
            _ => return Err(StatusCode::BAD_SESSION_ID_INVALID),
        };
        if !self
            .sessions
            .first()
            .is_some_and(|bound| bound.session.is_current(bytes))
        {
            self.find(shared, now, token, bytes)?;
        }
        let bound = self.sessions.first().ok_or(StatusCode::BAD_INTERNAL_ERROR)?;
        bound.session.handle.touch(now);
        Ok(bound)
    }

    /// The session that was validated last.
    pub(crate) fn bound(&self) -> Option<&Bound> {
        self.sessions.first()
    }

    /// A session that this channel used lately and that lives, without asking or changing anything.
    pub(crate) fn live(&self, token: NodeIdRef<'_>) -> Option<&Bound> {
        let IdentifierRef::Opaque(Some(bytes)) = token.identifier else {
            return None;
        };
        self.sessions.iter().find(|bound| bound.session.is_current(bytes))
    }

    fn find(&mut self, shared: &Shared, now: Now, token: NodeIdRef<'_>, bytes: &[u8]) -> Result<(), StatusCode> {
        if let Some(position) = self.sessions.iter().position(|bound| bound.session.is_current(bytes)) {
            if let Some(front) = self.sessions.get_mut(..=position) {
                front.rotate_right(1);
            }
            return Ok(());
        }
        let session = shared.validate(now, token, bytes, self.channel.id)?;
        let charge = shared.charges.of(&session).unwrap_or_else(|| Arc::clone(&self.charge));
        self.bind(shared, Activated { session, charge });
        Ok(())
    }

    /// Keeps a session that was activated on this connection.
    pub(crate) fn bind(&mut self, shared: &Shared, activated: Activated) {
        let Activated { session, charge } = activated;
        self.sessions
            .retain(|bound| bound.session.handle.generation() == bound.session.snapshot.generation);
        self.sessions
            .retain(|bound| !Arc::ptr_eq(&bound.session.handle, &session.handle));
        self.sessions.truncate(KEPT_SESSIONS - 1);
        let caller = Arc::new(roles::caller(&session, self.evidence.mode));
        let points = shared.points(&session.handle);
        self.sessions.insert(
            0,
            Bound {
                session,
                caller,
                points,
                charge,
                client_certificate: self.channel.client_certificate.clone(),
            },
        );
    }

    /// Whom the next request is charged to: that of the session used last, or of the channel.
    pub(crate) fn charge(&self) -> &Arc<Charge> {
        self.sessions.first().map_or(&self.charge, |bound| &bound.charge)
    }

    /// The same without a session.
    pub(crate) fn channel_charge(&self) -> &Arc<Charge> {
        &self.charge
    }

    /// A classifier has changed: the channel's owner is this one now, and those of its [`sessions`](Self::sessions) are these,
    /// in their order. What waits in the queue under another owner does not run.
    pub(crate) fn classified_again(&mut self, charge: Arc<Charge>, of_sessions: Vec<Arc<Charge>>) {
        let mut changed = !charge.is_same(&self.charge);
        self.charge = charge;
        for (bound, charge) in self.sessions.iter_mut().zip(of_sessions) {
            changed |= !charge.is_same(&bound.charge);
            bound.charge = charge;
        }
        if changed {
            self.revision.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// The sessions that were used lately.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = &Bound> {
        self.sessions.iter()
    }

    /// See [`classified_again`](Self::classified_again).
    pub(crate) fn evidence_revision(&self) -> &Arc<AtomicU64> {
        &self.revision
    }

    /// Requests of this connection that wait.
    pub(crate) fn waiting(&self) -> &Arc<AtomicUsize> {
        &self.waiting
    }

    /// Whether there are any.
    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    /// Most of them.
    pub(crate) fn waiting_limit(&self) -> usize {
        self.waiting_limit
    }
}
