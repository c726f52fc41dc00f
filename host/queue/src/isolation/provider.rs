//! The provider: issues owners, grants leases, counts. Owns the lock around the accounts and the order of the checks.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::time::Duration;

use super::errors::OwnerError;
use super::lease::{Held, Lease};
use super::ledger::Ledger;
use super::owner::{Identity, Issuer, Origin, Owner, OwnerData, check_key, identity_key, prefixed};
use super::plan::Plan;
use super::vocabulary::{Class, Reason, Stage};
use crate::sync::{Arc, AtomicBool, AtomicU32, AtomicU64, Mutex, Ordering};

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
    plan: Plan,
    issuer: Arc<Issuer>,
    /// Seeded, because keys may follow from what peers send.
    hasher: RandomState,
    ledger: Mutex<Ledger>,
    /// Written inside the lock.
    closed: AtomicBool,
    /// What is in use where nothing is limited.
    counted: [AtomicU64; Stage::COUNT],
    rejections: [[AtomicU64; Reason::COUNT]; Stage::COUNT],
    trusted: HashMap<Arc<str>, Owner>,
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
            counted: std::array::from_fn(|_| AtomicU64::new(0)),
            rejections: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))),
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

    /// The owner of an identity that no classifier named.
    ///
    /// # Errors
    ///
    /// An empty key, one longer than 256 bytes, or a class that only a classifier or the configuration can give.
    pub fn built_in(&self, identity: Identity<'_>, class: Class) -> Result<Owner, OwnerError> {
        match class {
            Class::Established | Class::Reconnect | Class::Control => {
                Ok(self.untrusted(identity_key(identity)?, class, Origin::BuiltIn))
            }
            Class::Bootstrap | Class::Trusted => Err(OwnerError::WrongClass(class)),
        }
    }

    /// The owner that a classifier named. With [`Class::Trusted`] this is [`Isolation::trusted`].
    ///
    /// # Errors
    ///
    /// An empty key, one longer than `isolation.max-owner-key-length` bytes, or a trusted owner that is not configured.
    pub fn mapped(&self, key: &str, class: Class) -> Result<Owner, OwnerError> {
        if class == Class::Trusted {
            return self.trusted(key);
        }
        check_key(key, self.plan.max_owner_key_length as usize)?;
        Ok(self.untrusted(prefixed("mapped:", key), class, Origin::Mapped))
    }

    /// A configured owner.
    ///
    /// # Errors
    ///
    /// An empty key, one longer than `isolation.max-owner-key-length` bytes, or an owner that is not configured.
    pub fn trusted(&self, key: &str) -> Result<Owner, OwnerError> {
        check_key(key, self.plan.max_owner_key_length as usize)?;
        self.trusted.get(key).cloned().ok_or(OwnerError::Unprovisioned)
    }

    /// The owner that incomplete messages of `owner` are charged to on a channel with an activated session. It is valid in
    /// [`Stage::ReassemblyBytes`] only, may use the floor of [`Class::Reconnect`] there, and is made once per owner.
    ///
    /// # Errors
    ///
    /// An owner of another provider, or one that is not built in and [`Class::Established`]: a mapping to the shared part stays there.
    pub fn continuity(&self, owner: &Owner) -> Result<Owner, OwnerError> {
        if !self.issued(owner) {
            return Err(OwnerError::Foreign);
        }
        if owner.0.class != Class::Established || owner.0.origin != Origin::BuiltIn {
            return Err(OwnerError::WrongClass(owner.0.class));
        }
        let make = || {
            let key = prefixed("continuity:", &owner.0.key);
            self.untrusted(key, Class::Reconnect, Origin::Continuity)
        };
        Ok(owner.0.continuity.get_or_init(make).clone())
    }

    /// Whether this provider issued `owner`.
    #[must_use]
    pub fn issued(&self, owner: &Owner) -> bool {
        Arc::ptr_eq(&self.issuer, &owner.0.issuer)
    }

    /// Charges `amount` of `stage` to `owner`. Never waits.
    ///
    /// # Errors
    ///
    /// The first reason that applies: an owner that is not valid here, nothing asked for, a closed provider, the owner's hard limit, no
    /// capacity, no place in the owner table. Nothing has changed then.
    pub fn try_acquire(self: &Arc<Self>, stage: Stage, owner: &Owner, amount: u64) -> Result<Lease, Refused> {
        let [lease] = self
            .try_acquire_all(owner, [(stage, amount)])
            .map_err(|(_, refused)| refused)?;
        Ok(lease)
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
        for (stage, amount) in wanted {
            if !self.issued(owner) || owner.only_stage().is_some_and(|only| only != stage) {
                return Err((stage, self.refuse(stage, Reason::InvalidOwner)));
            }
            if amount == 0 {
                return Err((stage, self.refuse(stage, Reason::InvalidAmount)));
            }
        }
        let held = if self.plan.profile.has_accounts() {
            self.charge(owner, wanted)
        } else {
            self.count(wanted)
        };
        match held {
            Ok(held) => Ok(held.map(|held| Lease::new(self, held))),
            Err((stage, reason)) => Err((stage, self.refuse(stage, reason))),
        }
    }

    /// What is in use of a stage.
    #[must_use]
    pub fn usage(&self, stage: Stage) -> u64 {
        if self.plan.profile.has_accounts() {
            return self.ledger.lock().used(stage);
        }
        self.counted[stage.index()].load(Ordering::Relaxed)
    }

    /// How many owners hold leases; 0 where nothing is limited.
    #[must_use]
    pub fn tracked_owners(&self) -> u32 {
        self.ledger.lock().tracked()
    }

    /// How often work was refused in a stage for a reason.
    #[must_use]
    pub fn rejections(&self, stage: Stage, reason: Reason) -> u64 {
        self.rejections[stage.index()][reason.index()].load(Ordering::Relaxed)
    }

    /// From now on every acquisition is refused. Leases that are out still give back what they hold.
    pub fn close(&self) {
        let ledger = self.ledger.lock();
        self.closed.store(true, Ordering::Release);
        drop(ledger);
    }

    fn charge<const N: usize>(&self, owner: &Owner, wanted: [(Stage, u64); N]) -> Result<[Held; N], (Stage, Reason)> {
        let mut held = wanted.map(|(stage, amount)| Held::Counted(stage, amount));
        let mut ledger = self.ledger.lock();
        for index in 0..N {
            let (stage, amount) = wanted[index];
            let result = if self.closed.load(Ordering::Relaxed) {
                Err(Reason::Closed)
            } else {
                ledger.acquire(&self.plan, &owner.0, stage, amount)
            };
            match result {
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

    fn count<const N: usize>(&self, wanted: [(Stage, u64); N]) -> Result<[Held; N], (Stage, Reason)> {
        if let Some((stage, _)) = wanted.first()
            && self.closed.load(Ordering::Acquire)
        {
            return Err((*stage, Reason::Closed));
        }
        Ok(wanted.map(|(stage, amount)| {
            self.counted[stage.index()].fetch_add(amount, Ordering::Relaxed);
            Held::Counted(stage, amount)
        }))
    }

    /// See [`Lease::grow`].
    pub(crate) fn grow(&self, held: &mut Held, more: u64) -> Result<(), Refused> {
        let stage = match held {
            Held::Granted(grant) => grant.stage,
            Held::Counted(stage, _) => *stage,
        };
        if more == 0 {
            return Err(self.refuse(stage, Reason::InvalidAmount));
        }
        let result = match held {
            Held::Granted(grant) => {
                let mut ledger = self.ledger.lock();
                if self.closed.load(Ordering::Relaxed) {
                    Err(Reason::Closed)
                } else {
                    ledger.grow(&self.plan, grant, more)
                }
            }
            Held::Counted(..) if self.closed.load(Ordering::Acquire) => Err(Reason::Closed),
            Held::Counted(stage, amount) => {
                self.counted[stage.index()].fetch_add(more, Ordering::Relaxed);
                *amount = amount.wrapping_add(more);
                Ok(())
            }
        };
        result.map_err(|reason| self.refuse(stage, reason))
    }

    /// See [`Lease::release`], which calls it once.
    pub(crate) fn give_back(&self, held: &Held) {
        let stage = match held {
            Held::Granted(grant) => {
                self.ledger.lock().release(grant);
                grant.stage
            }
            Held::Counted(stage, amount) => {
                self.counted[stage.index()].fetch_sub(*amount, Ordering::Relaxed);
                *stage
            }
        };
        (self.capacity_available)(stage);
    }

    fn refuse(&self, stage: Stage, reason: Reason) -> Refused {
        self.rejections[stage.index()][reason.index()].fetch_add(1, Ordering::Relaxed);
        Refused::new(reason)
    }

    fn untrusted(&self, key: Arc<str>, class: Class, origin: Origin) -> Owner {
        let hard_limits = Stage::ALL.map(|stage| self.plan.stage(stage).hard_limit);
        self.issue(key, class, origin, self.plan.default_weight, hard_limits)
    }

    fn issue(
        &self,
        key: Arc<str>,
        class: Class,
        origin: Origin,
        weight: u32,
        hard_limits: [u64; Stage::COUNT],
    ) -> Owner {
        Owner(Arc::new(OwnerData {
            issuer: Arc::clone(&self.issuer),
            hash: self.hasher.hash_one(&*key),
            key,
            class,
            origin,
            weight,
            hard_limits,
            place: AtomicU32::new(u32::MAX),
            continuity: OnceLock::new(),
        }))
    }
}
