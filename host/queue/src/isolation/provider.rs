//! The provider: grants leases and counts. Owns the lock around the accounts and the order of the checks.

use std::collections::HashMap;
use std::fmt;
use std::hash::RandomState;
use std::time::Duration;

use super::counters::{Counters, Counts};
use super::lease::{Held, Lease};
use super::ledger::{Grant, Ledger};
use super::owner::{Issuer, Origin, Owner, prefixed};
use super::plan::Plan;
use super::vocabulary::{Class, Reason, Stage};
use crate::sync::{Arc, AtomicBool, Mutex, Ordering};

/// After which time a caller that was refused may try again.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Nothing was granted, and nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("refused: {reason}")]
pub struct Refused {
    /// Why.
    pub reason: Reason,
    /// When to try again.
    pub retry_after: Duration,
}

impl Refused {
    pub(crate) const fn new(reason: Reason) -> Self {
        Self {
            reason,
            retry_after: RETRY_AFTER,
        }
    }
}

type CapacityAvailable = Box<dyn Fn(Stage) + Send + Sync>;

/// Issues owners and keeps their accounts, as its plan says. In [`Profile::SharedOnly`](super::Profile::SharedOnly) it grants
/// everything and only counts what is used.
pub struct Isolation {
    pub(super) plan: Plan,
    pub(super) issuer: Arc<Issuer>,
    /// Seeded, because keys may follow from what peers send.
    pub(super) hasher: RandomState,
    ledger: Mutex<Ledger>,
    /// Written inside the lock.
    closed: AtomicBool,
    counts: Counts,
    pub(super) trusted: HashMap<Arc<str>, Owner>,
    capacity_available: CapacityAvailable,
}

impl fmt::Debug for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Isolation")
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

impl Isolation {
    /// A provider without any work.
    ///
    /// `capacity_available` is called once after each release, outside the lock; it may call the provider, and must not panic.
    #[must_use]
    pub fn new(plan: Plan, capacity_available: Box<dyn Fn(Stage) + Send + Sync>) -> Arc<Self> {
        let mut isolation = Self {
            issuer: Arc::new(Issuer::default()),
            hasher: RandomState::new(),
            ledger: Mutex::new(Ledger::new(&plan)),
            closed: AtomicBool::new(false),
            counts: Counts::new(),
            trusted: HashMap::new(),
            capacity_available,
            plan,
        };
        let owners = isolation.plan.trusted.iter().enumerate().map(|(index, trusted)| {
            let key = prefixed("trusted:", &trusted.key);
            // The plan counts them with 32 bits: `max_tracked_owners` is larger than their number.
            let origin = Origin::Trusted(index as u32);
            let owner = isolation.issue(key, Class::Trusted, origin, trusted.weight, trusted.hard_limits);
            (Arc::clone(&trusted.key), owner)
        });
        let trusted = owners.collect();
        isolation.trusted = trusted;
        Arc::new(isolation)
    }

    /// The plan it works by.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Charges `amount` of `stage` to `owner`. Never waits.
    ///
    /// # Errors
    ///
    /// The first reason that applies: an owner that is not valid here, nothing asked for, a closed provider, the owner's hard limit, no
    /// capacity, no place in the owner table. Nothing has changed then.
    pub fn try_acquire(self: &Arc<Self>, stage: Stage, owner: &Owner, amount: u64) -> Result<Lease, Refused> {
        if let Some(reason) = self.misuse(owner, stage, amount) {
            return Err(self.refuse(stage, owner, reason));
        }
        let held = if self.plan.profile.has_accounts() {
            let mut ledger = self.ledger.lock();
            self.acquire(&mut ledger, owner, stage, amount).map(Held::Granted)
        } else {
            self.count(owner, stage, amount)
        };
        match held {
            Ok(held) => Ok(Lease::new(self, held)),
            Err(reason) => Err(self.refuse(stage, owner, reason)),
        }
    }

    /// Charges several amounts to `owner`, in order, all or none of them, under one lock.
    ///
    /// # Errors
    ///
    /// As [`Isolation::try_acquire`], with the stage that was refused.
    pub fn try_acquire_all<const N: usize>(
        self: &Arc<Self>,
        owner: &Owner,
        wanted: [(Stage, u64); N],
    ) -> Result<[Lease; N], (Stage, Refused)> {
        let held = self.hold_all(owner, wanted)?;
        Ok(held.map(|held| Lease::new(self, held)))
    }

    /// See [`Isolation::try_acquire_all`].
    pub(crate) fn hold_all<const N: usize>(
        &self,
        owner: &Owner,
        wanted: [(Stage, u64); N],
    ) -> Result<[Held; N], (Stage, Refused)> {
        for (stage, amount) in wanted {
            if let Some(reason) = self.misuse(owner, stage, amount) {
                return Err((stage, self.refuse(stage, owner, reason)));
            }
        }
        let held = if self.plan.profile.has_accounts() {
            self.charge(owner, wanted)
        } else {
            self.count_all(owner, wanted)
        };
        held.map_err(|(stage, reason)| (stage, self.refuse(stage, owner, reason)))
    }

    /// What is in use of a stage.
    #[must_use]
    pub fn usage(&self, stage: Stage) -> u64 {
        if self.plan.profile.has_accounts() {
            return self.ledger.lock().used(stage);
        }
        self.counts.used()[stage.index()].iter().sum()
    }

    /// How many owners hold leases; 0 where nothing is limited.
    #[must_use]
    pub fn tracked_owners(&self) -> u32 {
        self.ledger.lock().tracked()
    }

    /// How often work was refused in a stage for a reason.
    #[must_use]
    pub fn rejections(&self, stage: Stage, reason: Reason) -> u64 {
        let of = |class| self.counts.refused(stage, class, reason);
        Class::ALL.into_iter().map(of).sum()
    }

    /// Everything that is counted, at this moment.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let (used, owners) = if self.plan.profile.has_accounts() {
            let ledger = self.ledger.lock();
            (ledger.used_by_class(), ledger.tracked())
        } else {
            (self.counts.used(), 0)
        };
        let refused = |stage, class| Reason::ALL.map(|reason| self.counts.refused(stage, class, reason));
        Counters {
            used,
            refused: Stage::ALL.map(|stage| Class::ALL.map(|class| refused(stage, class))),
            owners,
        }
    }

    /// Counts a refusal for a limit of a stage that is not kept here.
    pub fn refuse(&self, stage: Stage, owner: &Owner, reason: Reason) -> Refused {
        self.refuse_class(stage, owner.class(), reason)
    }

    /// From now on every acquisition is refused. Leases that are out still give back what they hold.
    pub fn close(&self) {
        let ledger = self.ledger.lock();
        self.closed.store(true, Ordering::Release);
        drop(ledger);
    }

    /// Charges in the accounts, all or nothing.
    fn charge<const N: usize>(&self, owner: &Owner, wanted: [(Stage, u64); N]) -> Result<[Held; N], (Stage, Reason)> {
        let class = owner.class();
        let mut held = wanted.map(|(stage, amount)| Held::Counted(stage, class, amount));
        let mut ledger = self.ledger.lock();
        for index in 0..N {
            let (stage, amount) = wanted[index];
            match self.acquire(&mut ledger, owner, stage, amount) {
                Ok(grant) => held[index] = Held::Granted(grant),
                Err(reason) => {
                    // Nobody saw these: there is nothing to signal.
                    for earlier in held[..index].iter().rev() {
                        if let Held::Granted(grant) = earlier {
                            ledger.release(grant);
                        }
                    }
                    return Err((stage, reason));
                }
            }
        }
        Ok(held)
    }

    fn count_all<const N: usize>(
        &self,
        owner: &Owner,
        wanted: [(Stage, u64); N],
    ) -> Result<[Held; N], (Stage, Reason)> {
        if let Some((stage, _)) = wanted.first()
            && self.closed.load(Ordering::Acquire)
        {
            return Err((*stage, Reason::Closed));
        }
        let class = owner.class();
        Ok(wanted.map(|(stage, amount)| {
            self.counts.add(stage, class, amount);
            Held::Counted(stage, class, amount)
        }))
    }

    fn count(&self, owner: &Owner, stage: Stage, amount: u64) -> Result<Held, Reason> {
        let [held] = self.count_all(owner, [(stage, amount)]).map_err(|(_, reason)| reason)?;
        Ok(held)
    }

    #[inline(always)]
    fn acquire(&self, ledger: &mut Ledger, owner: &Owner, stage: Stage, amount: u64) -> Result<Grant, Reason> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(Reason::Closed);
        }
        ledger.acquire(&self.plan, &owner.0, stage, amount)
    }

    /// What is wrong with a call before any account is looked at.
    fn misuse(&self, owner: &Owner, stage: Stage, amount: u64) -> Option<Reason> {
        if !self.issued(owner) || owner.only_stage().is_some_and(|only| only != stage) {
            return Some(Reason::InvalidOwner);
        }
        (amount == 0).then_some(Reason::InvalidAmount)
    }

    /// See [`Lease::grow_between`].
    pub(crate) fn grow(&self, held: &mut Held, least: u64, most: u64) -> Result<u64, Refused> {
        let (stage, class) = (held.stage(), held.class());
        if least == 0 || most < least {
            return Err(self.refuse_class(stage, class, Reason::InvalidAmount));
        }
        let result = match held {
            Held::Granted(grant) => {
                let mut ledger = self.ledger.lock();
                if self.closed.load(Ordering::Relaxed) {
                    Err(Reason::Closed)
                } else {
                    let all = ledger.grow(&self.plan, grant, most).map(|()| most);
                    all.or_else(|_| ledger.grow(&self.plan, grant, least).map(|()| least))
                }
            }
            Held::Counted(..) if self.closed.load(Ordering::Acquire) => Err(Reason::Closed),
            Held::Counted(.., amount) => {
                self.counts.add(stage, class, most);
                *amount = amount.wrapping_add(most);
                Ok(most)
            }
        };
        result.map_err(|reason| self.refuse_class(stage, class, reason))
    }

    /// See [`Lease::shrink`].
    pub(crate) fn shrink(&self, held: &mut Held, less: u64) {
        let (stage, class) = (held.stage(), held.class());
        match held {
            Held::Granted(grant) => self.ledger.lock().shrink(grant, less),
            Held::Counted(.., amount) => {
                let less = less.min(amount.saturating_sub(1));
                self.counts.subtract(stage, class, less);
                *amount -= less;
            }
        }
        (self.capacity_available)(stage);
    }

    /// Charges `amount` of a stage to `owner` and takes back what is `held` elsewhere; or changes nothing.
    pub(crate) fn exchange(&self, held: &mut Held, owner: &Owner, stage: Stage, amount: u64) -> Result<(), Refused> {
        if let Some(reason) = self.misuse(owner, stage, amount) {
            return Err(self.refuse(stage, owner, reason));
        }
        let before = *held;
        let after = match &before {
            Held::Granted(grant) => {
                let mut ledger = self.ledger.lock();
                let after = self.acquire(&mut ledger, owner, stage, amount);
                if after.is_ok() {
                    ledger.release(grant);
                }
                after.map(Held::Granted)
            }
            Held::Counted(..) => self.count(owner, stage, amount).inspect(|_| self.uncount(&before)),
        };
        *held = after.map_err(|reason| self.refuse(stage, owner, reason))?;
        (self.capacity_available)(before.stage());
        Ok(())
    }

    /// Takes back what a lease holds, which calls it once.
    pub(crate) fn give_back(&self, held: &Held) {
        let stage = held.stage();
        match held {
            Held::Granted(grant) => self.ledger.lock().release(grant),
            Held::Counted(..) => self.uncount(held),
        }
        (self.capacity_available)(stage);
    }

    /// As [`Isolation::give_back`] for each, under one lock.
    pub(crate) fn give_all_back(&self, all: &[Option<Held>]) {
        if self.plan.profile.has_accounts() {
            let mut ledger = self.ledger.lock();
            for held in all.iter().flatten() {
                if let Held::Granted(grant) = held {
                    ledger.release(grant);
                }
            }
        } else {
            all.iter().flatten().for_each(|held| self.uncount(held));
        }
        for held in all.iter().flatten() {
            (self.capacity_available)(held.stage());
        }
    }

    fn uncount(&self, held: &Held) {
        if let Held::Counted(stage, class, amount) = held {
            self.counts.subtract(*stage, *class, *amount);
        }
    }

    fn refuse_class(&self, stage: Stage, class: Class, reason: Reason) -> Refused {
        self.counts.refuse(stage, class, reason);
        Refused::new(reason)
    }
}
