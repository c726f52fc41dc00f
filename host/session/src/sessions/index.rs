//! From an authentication token to its session, for every thread at once and without the table.
//!
//! Owns a fixed number of places, each an immutable list that is replaced as a whole; readers take no lock and never wait. Only
//! [`Sessions`](super::Sessions) changes it, and is borrowed exclusively while it does. It must not know deadlines, nonces or certificates:
//! a session that has to be ended is the table's business.
//!
//! Tokens are secrets, and who guesses must learn nothing from how long a refusal takes: the place is chosen by a hash whose key is unknown
//! outside, and all bytes of a token are compared however early they differ.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use backplane_types::{Now, StatusCode};

use super::handle::{ChannelId, SessionHandle, ValidatedSession};
use super::token::Token;

/// Fewest and most places of an index. There is one for each session that the limits allow, so a list is rarely longer than one.
const PLACES: std::ops::RangeInclusive<usize> = 64..=1 << 16;

/// Why [`SessionIndex::validate`] does not give a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotValidated {
    /// The same verdict as the table's; nothing is left to do.
    Refused(StatusCode),
    /// The session was never activated, and its own channel uses it: [`Sessions::validate`](super::Sessions::validate) has to be asked, which
    /// closes it.
    AskTable,
}

/// Sessions by token. Shared by the table, which maintains it, and everybody who looks.
pub struct SessionIndex {
    hasher: RandomState,
    places: Box<[ArcSwapOption<Vec<Arc<SessionHandle>>>]>,
}

impl SessionIndex {
    pub(crate) fn new(max_sessions: usize) -> Self {
        let wanted = max_sessions.clamp(*PLACES.start(), *PLACES.end());
        Self {
            hasher: RandomState::new(),
            places: (0..wanted.next_power_of_two())
                .map(|_| ArcSwapOption::empty())
                .collect(),
        }
    }

    /// The session that a token names, activated or not.
    #[must_use]
    pub fn get(&self, token: &[u8]) -> Option<Arc<SessionHandle>> {
        self.look_up(token, Arc::clone)
    }

    /// Validates a request other than CreateSession, ActivateSession and CloseSession (Part 4, 7.32 and 5.7.3.1), as the table would, and
    /// notes the request. `token` are the bytes of an opaque NodeId in namespace 0; any other NodeId names no session.
    ///
    /// # Errors
    /// `BadSessionIdInvalid` (unknown or closed), `BadSecureChannelIdInvalid` (bound to another channel); or the table has to be asked.
    pub fn validate(&self, now: Now, token: &[u8], channel: ChannelId) -> Result<ValidatedSession, NotValidated> {
        let unknown = NotValidated::Refused(StatusCode::BAD_SESSION_ID_INVALID);
        let valid = self
            .look_up(token, |handle| judge(handle, channel))
            .unwrap_or(Err(unknown))?;
        valid.handle.touch(now);
        Ok(valid)
    }

    /// What `f` makes of the session that a token names, without a reference count for the look-up itself.
    fn look_up<A>(&self, token: &[u8], f: impl FnOnce(&Arc<SessionHandle>) -> A) -> Option<A> {
        let token = Token::from_bytes(token)?;
        let place = self.place(&token)?.load();
        let mut sessions = place.iter().flat_map(|list| list.iter());
        sessions.find(|it| it.token == token).map(f)
    }

    /// Enters a new session. Called by the table only: two at a time would lose one.
    pub(crate) fn insert(&self, handle: &Arc<SessionHandle>) {
        if let Some(place) = self.place(&handle.token) {
            let others = place.load_full();
            let others = others.iter().flat_map(|list| list.iter());
            let list: Vec<_> = others.chain([handle]).map(Arc::clone).collect();
            place.store(Some(Arc::new(list)));
        }
    }

    /// Takes a session out that was closed. Called by the table only.
    pub(crate) fn remove(&self, handle: &SessionHandle) {
        if let Some(place) = self.place(&handle.token) {
            let before = place.load_full();
            let others = before.iter().flat_map(|list| list.iter());
            let list: Vec<_> = others.filter(|it| it.token != handle.token).map(Arc::clone).collect();
            place.store((!list.is_empty()).then(|| Arc::new(list)));
        }
    }

    fn place(&self, token: &Token) -> Option<&ArcSwapOption<Vec<Arc<SessionHandle>>>> {
        // A power of two.
        let mask = self.places.len().wrapping_sub(1) as u64;
        let place = self.hasher.hash_one(token) & mask;
        self.places.get(usize::try_from(place).ok()?)
    }
}

fn judge(handle: &Arc<SessionHandle>, channel: ChannelId) -> Result<ValidatedSession, NotValidated> {
    ValidatedSession::of(handle, channel).map_err(|status| match status {
        StatusCode::BAD_SESSION_NOT_ACTIVATED if handle.created_on() == channel => NotValidated::AskTable,
        // Only its own channel can hurt a session that waits for activation.
        StatusCode::BAD_SESSION_NOT_ACTIVATED => NotValidated::Refused(StatusCode::BAD_SECURE_CHANNEL_ID_INVALID),
        other => NotValidated::Refused(other),
    })
}

impl fmt::Debug for SessionIndex {
    /// Without what is in it: tokens are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionIndex")
            .field("places", &self.places.len())
            .finish_non_exhaustive()
    }
}
