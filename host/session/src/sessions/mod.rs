//! Sessions (Part 4, 5.7): the table of tokens, who may use a session on which channel, nonces and timeouts.
//!
//! It owns what a session is; it must not know sockets, certificates beyond comparing their bytes, passwords, or subscriptions. Verifying
//! signatures and user tokens is an effect between [`Sessions::begin_activate`] and [`Sessions::complete_activate`]. The table is locked
//! only for create, activate and close; requests work with a [`ValidatedSession`] that their connection keeps, or find one by the
//! [`SessionIndex`] that the table maintains and everybody shares.

mod activation;
mod binding;
mod cancel;
mod handle;
mod index;
mod limits;
mod throttle;
mod token;
mod unactivated;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use backplane_types::{ByteString, MessageSecurityMode, NodeId, Now, StatusCode};

pub use activation::{Activated, ActivationCheck, VerifiedUser};
pub use binding::{SessionBinding, Standing};
pub use cancel::CancelTable;
pub use handle::{
    ChannelId, ChannelInfo, Identity, IdentityKind, RequestGuard, SessionHandle, SessionParameters, SessionSnapshot,
    ValidatedSession,
};
pub use index::{NotValidated, SessionIndex};
pub use limits::{LimitsError, SERVER_NONCE_LENGTH, SessionLimits};
pub use throttle::{LoginThrottle, ThrottleLimits};
pub use token::TOKEN_LENGTH;

use crate::random::{RandomSource, RandomUnavailable};
use token::Token;
use unactivated::{Place, Unactivated};

/// Namespace index of the server's own namespace, in which session ids live.
const SERVER_NAMESPACE: u16 = 1;

/// Shortest client nonce on a secured channel (Part 4, 5.7.2.2).
const MIN_CLIENT_NONCE_LENGTH: usize = 32;

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// CloseSession.
    Client {
        /// Whether its subscriptions go as well.
        delete_subscriptions: bool,
    },
    /// No request within the session timeout.
    TimedOut,
    /// Never activated: its time was up, its channel closed, or it gave way to a newer session.
    NeverActivated,
    /// A service was called before ActivateSession (Part 4, 5.7.3.1).
    UsedBeforeActivation,
    /// The server decided so.
    Server,
}

/// A session that ended; reported once for each session. The caller answers what is outstanding and cleans up subscriptions.
#[derive(Debug, Clone)]
pub struct SessionClosed {
    /// Which session.
    pub session: Arc<SessionHandle>,
    /// Why.
    pub reason: CloseReason,
}

/// A new session, not yet activated.
#[derive(Debug, Clone)]
pub struct CreatedSession {
    /// The session, with sessionId, authenticationToken and revised timeout.
    pub session: Arc<SessionHandle>,
    /// The nonce to sign in ActivateSession, at least 32 bytes.
    pub server_nonce: ByteString,
}

#[derive(Debug)]
struct Entry {
    handle: Arc<SessionHandle>,
    /// The channel of CreateSession: its certificate and security must be those of every later channel.
    channel: ChannelInfo,
    nonce: ByteString,
    /// While never activated.
    unactivated: Option<Place>,
    deadline: Duration,
}

/// All sessions of a server.
#[derive(Debug)]
pub struct Sessions<R> {
    limits: SessionLimits,
    random: R,
    by_token: HashMap<Token, Entry>,
    /// The same sessions, for those who do not have the table.
    index: Arc<SessionIndex>,
    /// Deadlines in order; corrected lazily, because requests move them without the table.
    deadlines: BTreeSet<(Duration, Token)>,
    unactivated: Unactivated,
    closed: VecDeque<SessionClosed>,
    next_number: u32,
    next_generation: u64,
}

impl<R: RandomSource> Sessions<R> {
    /// An empty table.
    ///
    /// # Errors
    /// Limits that contradict each other.
    pub fn new(limits: SessionLimits, random: R) -> Result<Self, LimitsError> {
        limits.check()?;
        Ok(Self {
            index: Arc::new(SessionIndex::new(limits.max_sessions)),
            limits,
            random,
            by_token: HashMap::new(),
            deadlines: BTreeSet::new(),
            unactivated: Unactivated::default(),
            closed: VecDeque::new(),
            next_number: 1,
            next_generation: 1,
        })
    }

    /// CreateSession (Part 4, 5.7.2).
    ///
    /// # Errors
    /// `BadTooManySessions`; `BadNonceInvalid` (client nonce shorter than 32 bytes on a secured channel); `BadInvalidArgument` (session
    /// name too long); `BadInternalError` (no random bytes).
    pub fn create(
        &mut self,
        now: Now,
        channel: &ChannelInfo,
        parameters: SessionParameters,
    ) -> Result<CreatedSession, StatusCode> {
        let secured = channel.security_mode != MessageSecurityMode::NONE;
        if secured && parameters.client_nonce.bytes().len() < MIN_CLIENT_NONCE_LENGTH {
            return Err(StatusCode::BAD_NONCE_INVALID);
        }
        if parameters.session_name.text().len() > self.limits.max_session_name_length {
            return Err(StatusCode::BAD_INVALID_ARGUMENT);
        }
        let token = self.fresh_token()?;
        let nonce = self.fresh_nonce()?;
        self.make_room()?;
        let number = self.fresh_number();
        let timeout = self.limits.revise_timeout(parameters.requested_timeout);
        let session_id = NodeId::numeric(SERVER_NAMESPACE, number);
        let handle = Arc::new(SessionHandle::new(
            now, channel.id, token, session_id, number, parameters, timeout,
        ));
        let deadline = now.mono.saturating_add(timeout.min(self.limits.activation_timeout));
        self.deadlines.insert((deadline, token));
        self.by_token.insert(
            token,
            Entry {
                handle: Arc::clone(&handle),
                channel: channel.clone(),
                nonce: nonce.clone(),
                unactivated: Some(self.unactivated.enter(channel.id, token)),
                deadline,
            },
        );
        self.index.insert(&handle);
        Ok(CreatedSession {
            session: handle,
            server_nonce: nonce,
        })
    }

    /// Validates a request other than CreateSession, ActivateSession and CloseSession (Part 4, 7.32 and 5.7.3.1).
    ///
    /// # Errors
    /// `BadSessionIdInvalid` (unknown or expired token); `BadSecureChannelIdInvalid` (bound to another channel);
    /// `BadSessionNotActivated`, and the session is closed.
    pub fn validate(
        &mut self,
        now: Now,
        authentication_token: &NodeId,
        channel: ChannelId,
    ) -> Result<ValidatedSession, StatusCode> {
        let (token, entry) = self.entry(authentication_token)?;
        if entry.unactivated.is_some() {
            // Only its own channel can hurt a session that waits for activation.
            if entry.channel.id != channel {
                return Err(StatusCode::BAD_SECURE_CHANNEL_ID_INVALID);
            }
            self.remove(token, CloseReason::UsedBeforeActivation);
            return Err(StatusCode::BAD_SESSION_NOT_ACTIVATED);
        }
        let valid = ValidatedSession::of(&entry.handle, channel)?;
        valid.handle.touch(now);
        Ok(valid)
    }

    /// CloseSession (Part 4, 5.7.4). Before activation only the channel of CreateSession may close a session, after it only the channel it
    /// is bound to.
    ///
    /// # Errors
    /// `BadSessionIdInvalid`, `BadSecureChannelIdInvalid`.
    pub fn close(
        &mut self,
        authentication_token: &NodeId,
        channel: ChannelId,
        delete_subscriptions: bool,
    ) -> Result<Arc<SessionHandle>, StatusCode> {
        let (token, entry) = self.entry(authentication_token)?;
        let bound = entry
            .handle
            .snapshot()
            .map_or(entry.channel.id, |snapshot| snapshot.channel);
        if bound != channel {
            return Err(StatusCode::BAD_SECURE_CHANNEL_ID_INVALID);
        }
        let handle = Arc::clone(&entry.handle);
        self.remove(token, CloseReason::Client { delete_subscriptions });
        Ok(handle)
    }

    /// Ends a session by the server's decision. False when it was not there.
    pub fn terminate(&mut self, session: &SessionHandle) -> bool {
        self.remove(session.token, CloseReason::Server)
    }

    /// Notes that a channel closed. Sessions that were never activated can no longer be, and go; others wait for a new channel or their
    /// timeout.
    pub fn channel_closed(&mut self, channel: ChannelId) {
        for token in self.unactivated.on(channel) {
            self.remove(token, CloseReason::NeverActivated);
        }
    }

    /// When [`Sessions::handle_timeout`] has to be called next, at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Closes sessions whose time is up. One with outstanding requests gets a whole timeout more.
    pub fn handle_timeout(&mut self, now: Now) {
        while let Some((deadline, token)) = self.deadlines.first().copied() {
            if deadline > now.mono {
                return;
            }
            self.deadlines.remove(&(deadline, token));
            let Some(entry) = self.by_token.get_mut(&token) else {
                continue;
            };
            let idle_until = entry.alive_until(now, deadline);
            if idle_until > now.mono {
                entry.deadline = idle_until;
                self.deadlines.insert((idle_until, token));
            } else if entry.unactivated.is_some() {
                self.remove(token, CloseReason::NeverActivated);
            } else {
                self.remove(token, CloseReason::TimedOut);
            }
        }
    }

    /// The next session that ended. To be called after everything that can end one, until there is none.
    pub fn poll_closed(&mut self) -> Option<SessionClosed> {
        self.closed.pop_front()
    }

    /// All sessions that ended since the last call, in that order. As good as [`Sessions::poll_closed`] until there is none, for a caller who
    /// must lock the table and cleans up after a thousand sessions without it.
    #[must_use = "what is returned here is not reported again"]
    pub fn take_closed(&mut self) -> VecDeque<SessionClosed> {
        std::mem::take(&mut self.closed)
    }

    /// The sessions by token, to share with everybody who looks for one: see [`SessionIndex::validate`].
    #[must_use]
    pub fn index(&self) -> Arc<SessionIndex> {
        Arc::clone(&self.index)
    }

    /// Sessions in the table, activated or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_token.len()
    }

    /// Whether there is no session.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_token.is_empty()
    }

    /// All sessions, for diagnostics, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<SessionHandle>> {
        self.by_token.values().map(|entry| &entry.handle)
    }

    fn entry(&self, authentication_token: &NodeId) -> Result<(Token, &Entry), StatusCode> {
        let token = Token::of(authentication_token).ok_or(StatusCode::BAD_SESSION_ID_INVALID)?;
        let entry = self.by_token.get(&token).ok_or(StatusCode::BAD_SESSION_ID_INVALID)?;
        Ok((token, entry))
    }

    fn remove(&mut self, token: Token, reason: CloseReason) -> bool {
        let Some(entry) = self.by_token.remove(&token) else {
            return false;
        };
        self.deadlines.remove(&(entry.deadline, token));
        if let Some(place) = entry.unactivated {
            self.unactivated.leave(place);
        }
        // Closed first: who still finds it in the index finds it closed.
        entry.handle.close();
        self.index.remove(&entry.handle);
        self.closed.push_back(SessionClosed {
            session: entry.handle,
            reason,
        });
        true
    }

    fn make_room(&mut self) -> Result<(), StatusCode> {
        if self.by_token.len() < self.limits.max_sessions {
            return Ok(());
        }
        match self.unactivated.oldest() {
            Some(token) => {
                self.remove(token, CloseReason::NeverActivated);
                Ok(())
            }
            None => Err(StatusCode::BAD_TOO_MANY_SESSIONS),
        }
    }

    fn fresh_token(&mut self) -> Result<Token, StatusCode> {
        let mut token = [0; TOKEN_LENGTH];
        self.random.fill(&mut token).map_err(no_random)?;
        let token = Token::new(token);
        // 256 random bits do not repeat; a generator that repeats them is broken.
        if self.by_token.contains_key(&token) {
            return Err(StatusCode::BAD_INTERNAL_ERROR);
        }
        Ok(token)
    }

    fn fresh_nonce(&mut self) -> Result<ByteString, StatusCode> {
        let mut nonce = [0; SERVER_NONCE_LENGTH];
        self.random.fill(&mut nonce).map_err(no_random)?;
        Ok(ByteString::from(&nonce))
    }

    fn fresh_number(&mut self) -> u32 {
        let number = self.next_number;
        self.next_number = self.next_number.checked_add(1).unwrap_or(1);
        number
    }
}

impl Entry {
    /// Until when the session lives, as seen at its deadline.
    fn alive_until(&self, now: Now, deadline: Duration) -> Duration {
        if self.unactivated.is_some() {
            return deadline;
        }
        let since = if self.handle.outstanding() > 0 {
            now.mono
        } else {
            self.handle.last_activity()
        };
        since.saturating_add(self.handle.timeout())
    }
}

fn no_random(_: RandomUnavailable) -> StatusCode {
    StatusCode::BAD_INTERNAL_ERROR
}
