//! What one request holds: amounts of several stages, changed together. Owns that each is given back once.

use std::fmt;

use super::lease::Held;
use super::owner::Owner;
use super::provider::{Isolation, Refused};
use super::vocabulary::{Reason, Stage};
use crate::sync::Arc;

/// Leases in up to four stages, as a request has them: one lock to acquire them, one to exchange one, one to give back the rest. What is
/// in it is given back when it is dropped.
#[must_use = "leases that are dropped hold nothing"]
#[derive(Default)]
pub struct LeaseSet {
    /// `None` while it holds nothing.
    isolation: Option<Arc<Isolation>>,
    held: [Option<Held>; Self::CAPACITY],
}

impl LeaseSet {
    /// How many stages a set can hold.
    pub const CAPACITY: usize = 4;

    /// What it holds of a stage; 0 for nothing.
    #[must_use]
    pub fn amount(&self, stage: Stage) -> u64 {
        let held = self.held.iter().flatten();
        held.filter(|held| held.stage() == stage).map(Held::amount).sum()
    }

    /// Acquires `amount` of `stage` for `owner`, and gives back what it holds of `instead_of`. It keeps what it has when it is refused.
    ///
    /// # Errors
    ///
    /// As [`Isolation::try_acquire`]; a set that holds nothing of `instead_of` is refused as an invalid amount.
    pub fn try_exchange(&mut self, owner: &Owner, instead_of: Stage, stage: Stage, amount: u64) -> Result<(), Refused> {
        let mut held = self.held.iter_mut().flatten();
        match (held.find(|held| held.stage() == instead_of), &self.isolation) {
            (Some(held), Some(isolation)) => isolation.exchange(held, owner, stage, amount),
            _ => Err(Refused::new(Reason::InvalidAmount)),
        }
    }

    /// Gives back what it holds of one stage, if anything.
    pub fn release(&mut self, stage: Stage) {
        let Some(isolation) = &self.isolation else { return };
        for place in &mut self.held {
            if let Some(held) = place.take_if(|held| held.stage() == stage) {
                isolation.give_back(&held);
            }
        }
    }

    /// Gives back everything. A second call does nothing.
    pub fn release_all(&mut self) {
        if let Some(isolation) = self.isolation.take() {
            isolation.give_all_back(&std::mem::take(&mut self.held));
        }
    }
}

impl Drop for LeaseSet {
    fn drop(&mut self) {
        self.release_all();
    }
}

impl fmt::Debug for LeaseSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = self.held.iter().flatten();
        f.debug_map()
            .entries(held.map(|held| (held.stage(), held.amount())))
            .finish()
    }
}

impl Isolation {
    /// Charges several amounts to `owner`, in order, all or none of them, as one set.
    ///
    /// # Errors
    ///
    /// As [`Isolation::try_acquire`], with the stage that was refused.
    pub fn try_acquire_set<const N: usize>(
        self: &Arc<Self>,
        owner: &Owner,
        wanted: [(Stage, u64); N],
    ) -> Result<LeaseSet, (Stage, Refused)> {
        const { assert!(N <= LeaseSet::CAPACITY, "a set holds four stages") };
        let granted = self.hold_all(owner, wanted)?;
        let mut set = LeaseSet {
            isolation: Some(Arc::clone(self)),
            held: [None; LeaseSet::CAPACITY],
        };
        for (place, held) in set.held.iter_mut().zip(granted) {
            *place = Some(held);
        }
        Ok(set)
    }
}
