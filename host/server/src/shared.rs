//! What all connections of a server share.
//!
//! Owns the tables (sessions, failed logins, continuation points), the address space and the doors to the subscription
//! shards, and cleans up after sessions and connections. Locks in here are held for a look-up, never across work.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use backplane_channel::{CertificateVerifier, ChannelIds, OwnIdentity, ServerConfig};
use backplane_nodes::{AddressSpace, services::ContinuationPoints};
use backplane_session::{
    ChannelId, CloseReason, LoginThrottle, NotValidated, RandomSource, RandomUnavailable, SessionClosed, SessionHandle,
    SessionIndex, Sessions, ValidatedSession,
};
use backplane_types::{DecodeLimits, NodeIdRef, Now, StatusCode};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, watch};

use crate::admission::{Admission, Charges};
use crate::channels::Channels;
use crate::clock::Clock;
use crate::config::ServerLimits;
use crate::endpoints::Endpoints;
use crate::events::Events;
use crate::listener::Connections;
use crate::services::ThrottleKey;
use crate::shard::Shards;
use crate::users::Users;

/// The operating system's randomness, for the session table.
#[derive(Debug)]
pub(crate) struct Entropy;

impl RandomSource for Entropy {
    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), RandomUnavailable> {
        backplane_crypto::Random::fill(&mut backplane_crypto::SystemRandom, buffer).map_err(|_| RandomUnavailable)
    }
}

/// The continuation points of one session.
pub(crate) type Points = Arc<Mutex<ContinuationPoints>>;

/// See the module text.
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) limits: ServerLimits,
    pub(crate) decode_limits: DecodeLimits,
    pub(crate) runtime: tokio::runtime::Handle,
    pub(crate) identity: Arc<OwnIdentity>,
    pub(crate) trust: Arc<dyn CertificateVerifier>,
    pub(crate) channel_config: Arc<ServerConfig>,
    pub(crate) channel_ids: Arc<ChannelIds>,
    pub(crate) connections: Arc<Connections>,
    /// Channels with security, which may change their connection.
    pub(crate) channels: Channels,
    /// Budgets, turns and the queue.
    pub(crate) admission: Admission,
    /// Whom sessions are charged to.
    pub(crate) charges: Charges,
    /// Locked to create, activate and close sessions; requests find theirs in `session_index`.
    pub(crate) sessions: Mutex<Sessions<Entropy>>,
    pub(crate) session_index: Arc<SessionIndex>,
    pub(crate) throttle: Mutex<LoginThrottle<ThrottleKey>>,
    /// Sessions being created or activated at a time, of all owners.
    pub(crate) establishing: Arc<Semaphore>,
    /// Password checks at a time: each takes tens of MiB and a processor for tens of ms.
    pub(crate) password_checks: Arc<Semaphore>,
    pub(crate) users: ArcSwap<Users>,
    pub(crate) endpoints: ArcSwap<Endpoints>,
    pub(crate) space: Arc<AddressSpace>,
    pub(crate) shards: Shards,
    pub(crate) events: Events,
    /// By session number.
    pub(crate) points: Mutex<HashMap<u32, Points>>,
    /// Becomes true once, when the server stops.
    pub(crate) stopping: watch::Sender<bool>,
    /// Wakes the keeper of session timeouts.
    pub(crate) sessions_changed: Notify,
}

impl Shared {
    /// What is advertised now.
    pub(crate) fn endpoints(&self) -> Guard<Arc<Endpoints>> {
        self.endpoints.load()
    }

    /// How long a client has to take its last answers.
    pub(crate) fn goodbye(&self) -> Duration {
        Duration::from_secs_f64(self.limits.drain_timeout / 1000.0).min(Duration::from_secs(2))
    }

    /// The continuation points of a session, made when it is first used on a connection.
    pub(crate) fn points(&self, session: &SessionHandle) -> Points {
        let points = Arc::clone(self.points.lock().entry(session.number()).or_default());
        if session.is_closed() {
            // It was closed, and cleaned up after, just before: nobody else would take these away.
            self.points.lock().remove(&session.number());
        }
        points
    }

    /// The activated session that a token names on a channel, found without a global lock.
    ///
    /// # Errors
    /// `BadSessionIdInvalid`, `BadSecureChannelIdInvalid`, `BadSessionNotActivated`: a session used before its activation is
    /// closed.
    pub(crate) fn validate(
        &self,
        now: Now,
        token: NodeIdRef<'_>,
        bytes: &[u8],
        channel: ChannelId,
    ) -> Result<ValidatedSession, StatusCode> {
        match self.session_index.validate(now, bytes, channel) {
            Ok(session) => Ok(session),
            Err(NotValidated::Refused(status)) => Err(status),
            Err(NotValidated::AskTable) => {
                let validated = self.sessions.lock().validate(now, &token.to_owned(), channel);
                validated.inspect_err(|_| self.session_table_changed())
            }
        }
    }

    /// To be called after everything that can add a session or end one: cleans up after those that ended, and lets the
    /// keeper look at the deadlines.
    pub(crate) fn session_table_changed(&self) {
        let ended = self.sessions.lock().take_closed();
        for closed in ended {
            self.clean_up(&closed);
        }
        self.sessions_changed.notify_one();
    }

    fn clean_up(&self, closed: &SessionClosed) {
        let number = closed.session.number();
        self.points.lock().remove(&number);
        self.charges.forget(number);
        // Whoever waits is counted; one that is about to is judged again before it runs.
        if closed.session.outstanding() > 0 {
            self.admission.session_closed(number);
        }
        // A client that vanished may come back for its subscriptions; one that says so leaves them as well.
        let keep = matches!(
            closed.reason,
            CloseReason::TimedOut
                | CloseReason::Client {
                    delete_subscriptions: false
                }
        );
        self.shards.session_closed(number, !keep);
        tracing::info!(session = %closed.session.session_id(), reason = ?closed.reason, "session closed");
    }

    /// A connection is gone: sessions that were never activated go with it, and its Publish requests are forgotten.
    pub(crate) fn connection_closed(&self, number: u64, has_waiting: bool) {
        self.sessions.lock().channel_closed(ChannelId(number));
        self.session_table_changed();
        if has_waiting {
            self.admission.connection_closed(number);
        }
        self.shards.connection_closed(number);
    }
}

/// Ends sessions whose time is up, until the server stops.
pub(crate) async fn keep_sessions(shared: Arc<Shared>) {
    let mut stop = shared.stopping.subscribe();
    loop {
        let deadline = shared.sessions.lock().poll_timeout();
        let sleep = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(shared.clock.instant(deadline)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = sleep => {
                shared.sessions.lock().handle_timeout(shared.clock.now());
                shared.session_table_changed();
            }
            () = shared.sessions_changed.notified() => {}
            _ = stop.changed() => return,
        }
    }
}
