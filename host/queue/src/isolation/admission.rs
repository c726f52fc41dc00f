//! Where the accounts meet another limit: accepting a connection, establishing a session. Owns the order of the two and what is given
//! back when the second says no; knows neither listeners nor what a session is.

use std::time::Duration;

use super::lease::Lease;
use super::owner::Owner;
use super::provider::{Isolation, Refused};
use super::rate::{RateClass, RateLimiter};
use super::vocabulary::{Reason, Stage};
use crate::sync::Arc;

/// What an accepted connection holds.
#[derive(Debug)]
#[must_use = "leases that are dropped hold nothing"]
pub struct Accepted {
    /// Until the physical close.
    pub connection: Lease,
    /// Until the handshake is over, or the connection closed.
    pub handshake: Lease,
}

/// Why a connection is closed before anything was read from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAccepted {
    /// The accounts.
    #[error("stage {stage}: {refused}")]
    Refused {
        /// Where.
        stage: Stage,
        /// Why.
        refused: Refused,
    },
    /// The rate of new connections.
    #[error("too many new connections: again in {retry_after:?}")]
    TooFast {
        /// When to try again.
        retry_after: Duration,
    },
}

/// What holds while a session is established. Dropping it gives both back.
#[derive(Debug)]
#[must_use = "leases that are dropped hold nothing"]
pub struct Established<G> {
    /// Of the accounts.
    pub lease: Lease,
    /// Of the limit that all owners share.
    pub permit: G,
}

/// Why no session may be established now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotEstablished<E> {
    /// The accounts; the shared limit was not asked.
    #[error(transparent)]
    Refused(Refused),
    /// The shared limit; the accounts have back what they gave.
    #[error("the limit of all owners")]
    Limit(E),
}

impl Isolation {
    /// Accepts a connection of `owner`: charges it in [`Stage::Connection`] and [`Stage::Handshake`], and takes one token.
    ///
    /// When only capacity is missing and there is a token, `reclaim` may close one connection that nobody uses and answer whether it did;
    /// then there is one more try, with the same token. An owner at its own limit, or without a place in the owner table, costs nobody
    /// anything. A token is never given back.
    ///
    /// # Errors
    ///
    /// What stands in the way. Nothing but the token is charged then.
    pub fn try_accept(
        self: &Arc<Self>,
        owner: &Owner,
        rate: &RateLimiter,
        now: Duration,
        reclaim: impl FnOnce() -> bool,
    ) -> Result<Accepted, NotAccepted> {
        let wanted = [(Stage::Connection, 1), (Stage::Handshake, 1)];
        let take = || {
            let taken = rate.try_take(now, RateClass::from(owner));
            taken.map_err(|retry_after| NotAccepted::TooFast { retry_after })
        };
        let refuse = |(stage, refused)| NotAccepted::Refused { stage, refused };
        let [connection, handshake] = match self.try_acquire_all(owner, wanted) {
            Ok(leases) => {
                take()?;
                leases
            }
            Err((stage, refused)) if refused.reason == Reason::Capacity => {
                take()?;
                if !reclaim() {
                    return Err(refuse((stage, refused)));
                }
                self.try_acquire_all(owner, wanted).map_err(refuse)?
            }
            Err(refused) => return Err(refuse(refused)),
        };
        Ok(Accepted { connection, handshake })
    }

    /// Charges the establishment of a session to `owner`, then asks the limit that all owners share.
    ///
    /// # Errors
    ///
    /// Refused by the accounts, and `limit` was not called; or by `limit`, and nothing stays charged.
    pub fn try_establish<G, E>(
        self: &Arc<Self>,
        owner: &Owner,
        limit: impl FnOnce() -> Result<G, E>,
    ) -> Result<Established<G>, NotEstablished<E>> {
        let lease = self
            .try_acquire(Stage::SessionEstablishment, owner, 1)
            .map_err(NotEstablished::Refused)?;
        let permit = limit().map_err(NotEstablished::Limit)?;
        Ok(Established { lease, permit })
    }
}
