//! One session as the request path sees it: an immutable snapshot behind a handle made of atomics.
//!
//! A connection keeps the [`ValidatedSession`] it used last. As long as its generation is the handle's, nothing about the session has
//! changed and no lock or map is touched. This module must not know the table, nor how identities are verified.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use backplane_types::{ByteString, DateTime, Identifier, MessageSecurityMode, NodeId, Now, StatusCode, UaString};

use super::token::Token;

const NOT_ACTIVATED: u64 = 0;
const CLOSED: u64 = u64::MAX;

/// The number that the server gives a secure channel when it opens; never used twice. 0 is no channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChannelId(pub u64);

/// What a session has to know of the secure channel a request came on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelInfo {
    /// Which channel.
    pub id: ChannelId,
    /// The client's application instance certificate (DER), null on a channel without security.
    pub client_certificate: ByteString,
    /// URI of the security policy.
    pub security_policy: UaString,
    /// Security mode of its messages.
    pub security_mode: MessageSecurityMode,
}

/// What CreateSession (Part 4, 5.7.2) asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionParameters {
    /// Human readable name; the server makes one up when it is empty.
    pub session_name: UaString,
    /// ApplicationUri of the client's description.
    pub client_application_uri: UaString,
    /// URL the client used.
    pub endpoint_url: UaString,
    /// The client's nonce; at least 32 bytes on a secured channel.
    pub client_nonce: ByteString,
    /// Requested session timeout in ms.
    pub requested_timeout: f64,
    /// Longest response the client takes, in bytes; 0 is no limit.
    pub max_response_message_size: u32,
}

/// How a user proved who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IdentityKind {
    /// No proof.
    Anonymous,
    /// User name and password.
    UserName,
    /// A user certificate.
    Certificate,
    /// A token of an identity provider.
    IssuedToken,
}

/// A verified user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// How it was proved.
    pub kind: IdentityKind,
    /// ClientUserId of Part 4, 6.5.3: user name, certificate subject, or subject of the token; null for anonymous.
    pub client_user_id: UaString,
}

impl Identity {
    /// The anonymous user.
    pub const ANONYMOUS: Self = Self {
        kind: IdentityKind::Anonymous,
        client_user_id: UaString::NULL,
    };
}

/// What a request needs of its session. Immutable; ActivateSession makes a new one.
#[derive(Debug, Clone)]
pub struct SessionSnapshot {
    /// Number of this activation, unique in the table.
    pub generation: u64,
    /// The channel on which requests are accepted.
    pub channel: ChannelId,
    /// Who the user is.
    pub identity: Identity,
    /// Roles granted to the user.
    pub roles: Arc<[NodeId]>,
    /// Locale ids in the order of preference.
    pub locales: Arc<[UaString]>,
}

/// A session, shared by the table, connections and running requests.
pub struct SessionHandle {
    pub(crate) token: Token,
    session_id: NodeId,
    number: u32,
    authentication_token: NodeId,
    parameters: SessionParameters,
    timeout: Duration,
    created: DateTime,
    created_on: ChannelId,
    generation: AtomicU64,
    last_activity: AtomicU64,
    outstanding: AtomicU32,
    snapshot: ArcSwapOption<SessionSnapshot>,
}

impl SessionHandle {
    pub(crate) fn new(
        now: Now,
        created_on: ChannelId,
        token: Token,
        session_id: NodeId,
        number: u32,
        parameters: SessionParameters,
        timeout: Duration,
    ) -> Self {
        Self {
            token,
            session_id,
            number,
            authentication_token: NodeId {
                namespace: 0,
                identifier: Identifier::Opaque(ByteString::from(token.bytes())),
            },
            parameters,
            timeout,
            created: now.utc,
            created_on,
            generation: AtomicU64::new(NOT_ACTIVATED),
            last_activity: AtomicU64::new(nanos(now.mono)),
            outstanding: AtomicU32::new(0),
            snapshot: ArcSwapOption::empty(),
        }
    }

    /// The sessionId: names the session in the address space and in logs. Not a secret.
    #[must_use]
    pub fn session_id(&self) -> &NodeId {
        &self.session_id
    }

    /// A small number for the same; also the pseudonym under which plugins know the session.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The authenticationToken. A secret: never log it.
    #[must_use]
    pub fn authentication_token(&self) -> &NodeId {
        &self.authentication_token
    }

    /// The token's bytes, to compare with a borrowed request header.
    #[must_use]
    pub fn token_bytes(&self) -> &[u8] {
        self.token.bytes()
    }

    /// What CreateSession asked for.
    #[must_use]
    pub fn parameters(&self) -> &SessionParameters {
        &self.parameters
    }

    /// The revised session timeout.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// When the session was created.
    #[must_use]
    pub fn created(&self) -> DateTime {
        self.created
    }

    /// The channel of CreateSession: until the first activation the only one that may use the session.
    #[must_use]
    pub fn created_on(&self) -> ChannelId {
        self.created_on
    }

    /// Generation of the current activation: 0 before the first, the largest number once the session is closed.
    #[must_use]
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Whether the session was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.generation() == CLOSED
    }

    /// Whether the session was activated and is not closed.
    #[must_use]
    pub fn is_activated(&self) -> bool {
        !matches!(self.generation(), NOT_ACTIVATED | CLOSED)
    }

    /// The current snapshot; none before the first activation.
    #[must_use]
    pub fn snapshot(&self) -> Option<Arc<SessionSnapshot>> {
        self.snapshot.load_full()
    }

    /// Time of the last request.
    #[must_use]
    pub fn last_activity(&self) -> Duration {
        Duration::from_nanos(self.last_activity.load(Ordering::Relaxed))
    }

    /// Requests running or waiting right now.
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        self.outstanding.load(Ordering::Acquire)
    }

    /// Notes that a request came in: the session timeout starts anew. A request that is answered at once needs no more than this.
    #[inline]
    pub fn touch(&self, now: Now) {
        // Two connections that write at the same moment write nearly the same time, so no exchange is needed.
        let time = nanos(now.mono);
        if self.last_activity.load(Ordering::Relaxed) < time {
            self.last_activity.store(time, Ordering::Relaxed);
        }
    }

    /// Notes a request and counts it as outstanding until the guard is dropped; until then the session does not time out.
    ///
    /// A parked Publish request must not hold a guard: else a client that vanished without a trace would keep its session for ever.
    #[must_use]
    pub fn enter(self: &Arc<Self>, now: Now) -> RequestGuard {
        self.touch(now);
        self.outstanding.fetch_add(1, Ordering::AcqRel);
        RequestGuard {
            handle: Arc::clone(self),
        }
    }

    pub(crate) fn activate(&self, snapshot: Arc<SessionSnapshot>) {
        let generation = snapshot.generation;
        // The snapshot first: whoever sees the new generation finds a snapshot at least as new.
        self.snapshot.store(Some(snapshot));
        self.generation.store(generation, Ordering::Release);
    }

    pub(crate) fn close(&self) {
        self.generation.store(CLOSED, Ordering::Release);
    }
}

impl fmt::Debug for SessionHandle {
    /// Without the authentication token, which is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionHandle")
            .field("session_id", &self.session_id)
            .field("timeout", &self.timeout)
            .field("generation", &self.generation())
            .field("outstanding", &self.outstanding())
            .finish_non_exhaustive()
    }
}

/// Counts one outstanding request of a session while it lives.
#[derive(Debug)]
pub struct RequestGuard {
    handle: Arc<SessionHandle>,
}

impl RequestGuard {
    /// The session.
    #[must_use]
    pub fn session(&self) -> &Arc<SessionHandle> {
        &self.handle
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.handle.outstanding.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A session that was validated for one channel: what a connection keeps from request to request.
#[derive(Debug, Clone)]
pub struct ValidatedSession {
    /// The session.
    pub handle: Arc<SessionHandle>,
    /// Its snapshot when it was validated.
    pub snapshot: Arc<SessionSnapshot>,
}

impl ValidatedSession {
    /// Validates a handle for a channel without the table, for requests other than ActivateSession and CloseSession.
    ///
    /// # Errors
    /// `BadSessionIdInvalid` (closed), `BadSessionNotActivated`, `BadSecureChannelIdInvalid` (bound to another channel).
    pub fn of(handle: &Arc<SessionHandle>, channel: ChannelId) -> Result<Self, StatusCode> {
        match handle.generation() {
            CLOSED => return Err(StatusCode::BAD_SESSION_ID_INVALID),
            NOT_ACTIVATED => return Err(StatusCode::BAD_SESSION_NOT_ACTIVATED),
            _ => {}
        }
        let snapshot = handle.snapshot().ok_or(StatusCode::BAD_SESSION_NOT_ACTIVATED)?;
        if snapshot.channel != channel {
            return Err(StatusCode::BAD_SECURE_CHANNEL_ID_INVALID);
        }
        Ok(Self {
            handle: Arc::clone(handle),
            snapshot,
        })
    }

    /// Whether this is still what a look-up of the token would give on the channel it was validated for: the token is the same, and the
    /// session was neither activated again nor closed. One comparison and one atomic load.
    #[must_use]
    #[inline]
    pub fn is_current(&self, token: &[u8]) -> bool {
        self.handle.generation() == self.snapshot.generation && Token::from_bytes(token) == Some(self.handle.token)
    }
}

pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
