//! Capacity in use. Owns that it is given back, once.

use std::fmt;

use super::ledger::Grant;
use super::provider::{Isolation, Refused};
use super::vocabulary::{Class, Reason, Stage};
use crate::sync::Arc;

/// Capacity in use: given back when it is dropped, or before with [`Lease::release`]. It is not limited in time, and the provider never
/// takes it back.
#[must_use = "a lease that is dropped holds nothing"]
pub struct Lease {
    /// `None` once released.
    isolation: Option<Arc<Isolation>>,
    held: Held,
}

/// What a lease holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Held {
    /// Part of an account.
    Granted(Grant),
    /// Something that is counted but not limited.
    Counted(Stage, Class, u64),
}

impl Held {
    pub(crate) fn stage(&self) -> Stage {
        match self {
            Self::Granted(grant) => grant.stage,
            Self::Counted(stage, ..) => *stage,
        }
    }

    pub(crate) fn amount(&self) -> u64 {
        match self {
            Self::Granted(grant) => grant.amount,
            Self::Counted(.., amount) => *amount,
        }
    }

    pub(crate) fn class(&self) -> Class {
        match self {
            Self::Granted(grant) => grant.class,
            Self::Counted(_, class, _) => *class,
        }
    }
}

impl Lease {
    pub(crate) fn new(isolation: &Arc<Isolation>, held: Held) -> Self {
        Self {
            isolation: Some(Arc::clone(isolation)),
            held,
        }
    }

    /// The stage it counts in.
    #[must_use]
    pub fn stage(&self) -> Stage {
        self.held.stage()
    }

    /// What it holds; 0 once released.
    #[must_use]
    pub fn amount(&self) -> u64 {
        if self.isolation.is_some() {
            self.held.amount()
        } else {
            0
        }
    }

    /// Acquires `amount` more for the same owner, under the same rules.
    ///
    /// # Errors
    ///
    /// As [`Isolation::try_acquire`]; what it holds stays. A lease that was released is refused as an invalid owner.
    pub fn grow(&mut self, amount: u64) -> Result<(), Refused> {
        self.grow_between(amount, amount).map(|_| ())
    }

    /// Acquires `most` more, or `least` if there is not so much. Answers which.
    ///
    /// # Errors
    ///
    /// As [`grow`](Self::grow), for `least`.
    pub fn grow_between(&mut self, least: u64, most: u64) -> Result<u64, Refused> {
        match &self.isolation {
            Some(isolation) => isolation.grow(&mut self.held, least, most),
            None => Err(Refused::new(Reason::InvalidOwner)),
        }
    }

    /// Gives `amount` back and keeps the rest, at least 1.
    pub fn shrink(&mut self, amount: u64) {
        if let Some(isolation) = &self.isolation
            && amount > 0
        {
            isolation.shrink(&mut self.held, amount);
        }
    }

    /// Gives back what it holds. A second call does nothing.
    pub fn release(&mut self) {
        if let Some(isolation) = self.isolation.take() {
            isolation.give_back(&self.held);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.release();
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("stage", &self.stage())
            .field("amount", &self.amount())
            .finish_non_exhaustive()
    }
}
