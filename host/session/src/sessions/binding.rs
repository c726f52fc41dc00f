//! What a request was charged to: the facts of a session that decide who owns the work it sends, and whether they still hold.
//!
//! A queue takes them when it admits a request and compares when it runs it, perhaps seconds later. It must not know how owners are made of
//! them.

use std::sync::Arc;

use backplane_types::UaString;

use super::handle::{ChannelId, Identity, SessionHandle, ValidatedSession};

/// Everything about an activated session that may decide who is charged for its requests. Immutable; cloning shares the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionBinding {
    /// [`SessionHandle::number`].
    pub session: u32,
    /// [`SessionSnapshot::generation`](super::SessionSnapshot::generation): the activation, unique in the table whatever the session. No
    /// fact below changes without it.
    pub generation: u64,
    /// The channel it is bound to.
    pub channel: ChannelId,
    /// Who the user is.
    pub identity: Identity,
}

impl SessionBinding {
    /// ClientUserId (Part 4, 6.5.3), by which two sessions of one user are known to be; null for the anonymous user.
    #[must_use]
    pub fn user(&self) -> &UaString {
        &self.identity.client_user_id
    }
}

/// What has become of a session since it was validated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing: every fact of then holds.
    Current,
    /// It was activated again, perhaps for another user or on another channel.
    ActivatedAgain,
    /// It was closed.
    Closed,
}

impl SessionHandle {
    /// What has become of the session since the activation with this number. One atomic load.
    #[must_use]
    #[inline]
    pub fn standing_since(&self, generation: u64) -> Standing {
        match self.generation() {
            now if now == generation => Standing::Current,
            _ if self.is_closed() => Standing::Closed,
            _ => Standing::ActivatedAgain,
        }
    }
}

impl ValidatedSession {
    /// The facts that decide who is charged.
    #[must_use]
    pub fn binding(&self) -> SessionBinding {
        SessionBinding {
            session: self.handle.number(),
            generation: self.snapshot.generation,
            channel: self.snapshot.channel,
            identity: self.snapshot.identity.clone(),
        }
    }

    /// What has become of the session since it was validated. One atomic load.
    #[must_use]
    #[inline]
    pub fn standing(&self) -> Standing {
        self.handle.standing_since(self.snapshot.generation)
    }

    /// Whether both are of one session and one activation.
    #[must_use]
    pub fn is_same_activation(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.handle, &other.handle) && self.snapshot.generation == other.snapshot.generation
    }
}
