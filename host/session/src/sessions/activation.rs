//! ActivateSession (Part 4, 5.7.3) in two steps, because between them lies work that is slow and none of this crate's business:
//! verifying the client's signature and the user's token.

use std::sync::Arc;

use backplane_types::{ByteString, NodeId, Now, StatusCode, UaString};

use super::token::Token;
use super::{ChannelInfo, Identity, SessionHandle, SessionSnapshot, Sessions};
use crate::random::RandomSource;

/// What has to be verified before a session may be activated.
#[derive(Debug, Clone)]
pub struct ActivationCheck {
    /// The session.
    pub session: Arc<SessionHandle>,
    /// The nonce that the client's signature and an encrypted user token must contain.
    pub server_nonce: ByteString,
    /// The certificate whose key must have made the client's signature; null on a channel without security.
    pub client_certificate: ByteString,
    /// The current activation; none for the first.
    pub current: Option<Arc<SessionSnapshot>>,
    channel: ChannelInfo,
    token: Token,
}

impl ActivationCheck {
    /// Whether the session moves to another channel: then the user must stay the same.
    #[must_use]
    pub fn moves_channel(&self) -> bool {
        self.current
            .as_ref()
            .is_some_and(|current| current.channel != self.channel.id)
    }
}

/// The user as verified by the caller.
#[derive(Debug, Clone)]
pub struct VerifiedUser {
    /// Who it is.
    pub identity: Identity,
    /// What they may do.
    pub roles: Arc<[NodeId]>,
    /// The request's locale ids; an empty list keeps those of the session.
    pub locales: Vec<UaString>,
}

/// A session after ActivateSession.
#[derive(Debug, Clone)]
pub struct Activated {
    /// The session.
    pub session: Arc<SessionHandle>,
    /// The new snapshot.
    pub snapshot: Arc<SessionSnapshot>,
    /// The one before; none for the first activation.
    pub previous: Option<Arc<SessionSnapshot>>,
    /// The nonce for the next ActivateSession.
    pub server_nonce: ByteString,
}

impl<R: RandomSource> Sessions<R> {
    /// First step of ActivateSession: may this session be activated on this channel at all, and what has to be verified?
    ///
    /// The first activation must come on the channel of CreateSession. A later one may come on another, opened with the same client
    /// certificate, security policy and mode.
    ///
    /// # Errors
    /// `BadSessionIdInvalid` (unknown or expired token), `BadSecureChannelIdInvalid` (first activation on another channel),
    /// `BadSecurityChecksFailed` (other certificate, policy or mode).
    pub fn begin_activate(
        &mut self,
        now: Now,
        authentication_token: &NodeId,
        channel: &ChannelInfo,
    ) -> Result<ActivationCheck, StatusCode> {
        let (token, entry) = self.entry(authentication_token)?;
        let created_on = &entry.channel;
        if entry.unactivated.is_some() && created_on.id != channel.id {
            return Err(StatusCode::BAD_SECURE_CHANNEL_ID_INVALID);
        }
        // Bytes are compared, and a missing certificate is not an empty one.
        let same_security = created_on.client_certificate == channel.client_certificate
            && created_on.security_policy == channel.security_policy
            && created_on.security_mode == channel.security_mode;
        if !same_security {
            return Err(StatusCode::BAD_SECURITY_CHECKS_FAILED);
        }
        entry.handle.touch(now);
        Ok(ActivationCheck {
            session: Arc::clone(&entry.handle),
            server_nonce: entry.nonce.clone(),
            client_certificate: created_on.client_certificate.clone(),
            current: entry.handle.snapshot(),
            channel: channel.clone(),
            token,
        })
    }

    /// Second step of ActivateSession, after everything was verified. When the verification failed this is not called: the session stays
    /// as it was, with the same nonce.
    ///
    /// # Errors
    /// `BadSessionIdInvalid` (closed in the meantime), `BadNonceInvalid` (the nonce was used by another activation in the meantime),
    /// `BadIdentityChangeNotSupported` (another channel and another user at once), `BadTooManyOperations` (too many locale ids),
    /// `BadInternalError` (no random bytes).
    pub fn complete_activate(
        &mut self,
        now: Now,
        check: ActivationCheck,
        user: VerifiedUser,
    ) -> Result<Activated, StatusCode> {
        if user.locales.len() > self.limits.max_locale_ids {
            return Err(StatusCode::BAD_TOO_MANY_OPERATIONS);
        }
        let server_nonce = self.fresh_nonce()?;
        let generation = self.next_generation;
        let entry = self
            .by_token
            .get_mut(&check.token)
            .ok_or(StatusCode::BAD_SESSION_ID_INVALID)?;
        if entry.nonce != check.server_nonce {
            return Err(StatusCode::BAD_NONCE_INVALID);
        }
        let previous = entry.handle.snapshot();
        if let Some(previous) = &previous {
            let moved = previous.channel != check.channel.id;
            if moved && previous.identity != user.identity {
                return Err(StatusCode::BAD_IDENTITY_CHANGE_NOT_SUPPORTED);
            }
        }
        let locales = match &previous {
            Some(previous) if user.locales.is_empty() => Arc::clone(&previous.locales),
            _ => Arc::from(user.locales),
        };
        let snapshot = Arc::new(SessionSnapshot {
            generation,
            channel: check.channel.id,
            identity: user.identity,
            roles: user.roles,
            locales,
        });
        entry.nonce = server_nonce.clone();
        entry.handle.activate(Arc::clone(&snapshot));
        entry.handle.touch(now);
        if let Some(place) = entry.unactivated.take() {
            self.unactivated.leave(place);
            self.deadlines.remove(&(entry.deadline, check.token));
            entry.deadline = now.mono.saturating_add(entry.handle.timeout());
            self.deadlines.insert((entry.deadline, check.token));
        }
        self.next_generation = generation.saturating_add(1);
        Ok(Activated {
            session: check.session,
            snapshot,
            previous,
            server_nonce,
        })
    }
}
