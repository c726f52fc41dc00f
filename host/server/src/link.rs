//! What services know of the connection a request came on.
//!
//! Owns the session validated last, the requests of this connection that wait for something, and the way back for their
//! answers. Knows neither the socket nor how messages are sealed.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use backplane_channel::ChannelEvidence;
use backplane_nodes::Caller;
use backplane_session::{ChannelId, ChannelInfo, ValidatedSession};
use backplane_types::{IdentifierRef, NodeIdRef, Now, StatusCode};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::AbortHandle;

use crate::roles;
use crate::shard::Place;
use crate::shared::{Points, Shared};

/// An answer that was not given in the turn of its request.
#[derive(Debug)]
pub(crate) struct Outbound {
    /// Which request of the connection.
    pub(crate) request_id: u32,
    /// Type id, header and body.
    pub(crate) message: Vec<u8>,
    /// Whether the link counts the request as waiting.
    pub(crate) waited: bool,
    /// The session that this answer made usable on the connection.
    pub(crate) activated: Option<ValidatedSession>,
}

/// Where late answers go. Unbounded in type only: each belongs to a request that was counted when it was admitted.
pub(crate) type OutboundSender = UnboundedSender<Outbound>;

/// A validated session, with what node services want to know of its user.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    pub(crate) session: ValidatedSession,
    pub(crate) caller: Arc<Caller>,
    pub(crate) points: Points,
}

/// A request that waits: its handle, and how to end its task.
#[derive(Debug)]
struct Waiting {
    request_handle: u32,
    task: AbortHandle,
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
    bound: Option<Bound>,
    waiting: HashMap<u32, Waiting>,
    /// Requests on their way to a shard.
    handed_over: Arc<AtomicUsize>,
    /// Most entries of `waiting`, and most of `handed_over`.
    waiting_limit: usize,
}

impl Link {
    /// A link for a channel that has just opened.
    pub(crate) fn new(
        number: u64,
        evidence: Arc<ChannelEvidence>,
        peer: SocketAddr,
        outbound: OutboundSender,
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
            bound: None,
            waiting: HashMap::new(),
            handed_over: Arc::default(),
            waiting_limit,
        }
    }

    /// The activated session that `token` names. While it is the one used last and nothing has happened to it, this
    /// compares the token and one number; else the table is asked.
    pub(crate) fn session(&mut self, shared: &Shared, now: Now, token: NodeIdRef<'_>) -> Result<&Bound, StatusCode> {
        let bytes = match token.identifier {
            IdentifierRef::Opaque(Some(bytes)) if token.namespace == 0 => bytes,
            _ => return Err(StatusCode::BAD_SESSION_ID_INVALID),
        };
        let current = self.bound.as_ref().is_some_and(|bound| bound.session.is_current(bytes));
        if !current {
            self.bound = None;
            let validated = shared.sessions.lock().validate(now, &token.to_owned(), self.channel.id);
            // A session used before its activation is closed.
            let validated = validated.inspect_err(|_| shared.session_table_changed())?;
            self.bind(shared, validated);
        }
        let bound = self.bound.as_ref().ok_or(StatusCode::BAD_INTERNAL_ERROR)?;
        bound.session.handle.touch(now);
        Ok(bound)
    }

    /// Keeps a session that was activated on this connection.
    pub(crate) fn bind(&mut self, shared: &Shared, session: ValidatedSession) {
        let caller = Arc::new(roles::caller(&session, self.evidence.mode));
        let points = shared.points(&session.handle);
        self.bound = Some(Bound {
            session,
            caller,
            points,
        });
    }

    /// Notes that the task behind `task` will answer a request. The caller has asked [`may_wait`](Self::may_wait).
    pub(crate) fn wait_for(&mut self, request_id: u32, request_handle: u32, task: AbortHandle) {
        self.waiting.insert(request_id, Waiting { request_handle, task });
    }

    /// # Errors
    /// `BadTooManyOperations` when as many requests of this connection wait as its limit allows.
    pub(crate) fn may_wait(&self) -> Result<(), StatusCode> {
        if self.waiting.len() < self.waiting_limit {
            Ok(())
        } else {
            Err(StatusCode::BAD_TOO_MANY_OPERATIONS)
        }
    }

    /// A place on the way to a shard; none when as many requests of this connection are on it as may wait.
    pub(crate) fn hand_over(&self) -> Option<Place> {
        Place::take(&self.handed_over, self.waiting_limit)
    }

    /// Notes that a late answer is here. False when the request was cancelled and has had its answer.
    pub(crate) fn answered(&mut self, request_id: u32) -> bool {
        self.waiting.remove(&request_id).is_some()
    }

    /// Ends the waiting requests with a handle and names them.
    pub(crate) fn cancel(&mut self, request_handle: u32) -> Vec<u32> {
        let found: Vec<u32> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.request_handle == request_handle)
            .map(|(id, _)| *id)
            .collect();
        for id in &found {
            if let Some(waiting) = self.waiting.remove(id) {
                waiting.task.abort();
            }
        }
        found
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        for waiting in self.waiting.values() {
            waiting.task.abort();
        }
    }
}
