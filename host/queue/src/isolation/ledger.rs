//! The accounts: what is used of each stage, by whom, and out of which part. Owns all sums and the table of owners with work; knows
//! neither who may call nor how long a lease lives. Everything here runs inside one short lock, and nothing allocates once the table has
//! had its size.

use hashbrown::HashTable;

use super::counters::ByClass;
use super::owner::{Origin, OwnerData};
use super::plan::Plan;
use super::vocabulary::{Class, Reason, Stage};
use crate::sync::{Arc, Ordering};

/// What was granted, and out of which part. Small: it is moved a few times on the path of every request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    pub(crate) amount: u64,
    from_reserved: u64,
    account: u32,
    pub(crate) stage: Stage,
    /// The class whose floor it may draw on; of a trusted owner it is its own floor.
    pub(crate) class: Class,
    /// The class that counts in the owner table.
    listed: Class,
}

/// What is used of one stage.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    total: u64,
    shared: u64,
    reserved: [u64; Class::COUNT],
    of: [u64; Class::COUNT],
}

/// One owner with leases.
struct Account {
    /// `None` while the place is free.
    key: Option<Arc<str>>,
    hash: u64,
    /// The place among the trusted owners, of one of them.
    trusted: Option<u32>,
    used: [u64; Stage::COUNT],
    /// Leases by class.
    leases: [u64; Class::COUNT],
    /// One bit for each class that has leases.
    classes: u8,
}

/// See the module.
pub(crate) struct Ledger {
    used: [Used; Stage::COUNT],
    trusted_used: Vec<[u64; Stage::COUNT]>,
    accounts: Vec<Account>,
    free: Vec<u32>,
    places: HashTable<u32>,
    tracked: u32,
    /// How many accounts hold leases of only this class.
    exclusive: [u32; Class::COUNT],
    /// Which classes have a place in the table kept for them.
    kept: [bool; Class::COUNT],
}

impl Ledger {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut kept = [false; Class::COUNT];
        for class in Class::PROTECTED {
            kept[class.index()] = plan.stages.iter().any(|stage| stage.floor(class) > 0);
        }
        Self {
            used: [Used::default(); Stage::COUNT],
            trusted_used: vec![[0; Stage::COUNT]; plan.trusted.len()],
            accounts: Vec::new(),
            free: Vec::new(),
            places: HashTable::new(),
            tracked: 0,
            exclusive: [0; Class::COUNT],
            kept,
        }
    }

    pub(crate) fn used(&self, stage: Stage) -> u64 {
        self.used[stage.index()].total
    }

    pub(crate) fn used_by_class(&self) -> ByClass {
        std::array::from_fn(|stage| self.used[stage].of)
    }

    pub(crate) fn tracked(&self) -> u32 {
        self.tracked
    }

    /// Charges `amount` to `owner`, whose issuer has been checked.
    #[inline(always)]
    pub(crate) fn acquire(
        &mut self,
        plan: &Plan,
        owner: &OwnerData,
        stage: Stage,
        amount: u64,
    ) -> Result<Grant, Reason> {
        let (trusted, listed) = match owner.origin {
            Origin::Trusted(index) => (Some(index), owner.class),
            // It may use the floor of those that reconnect, but must not take the place in the table that is kept for one of them.
            Origin::Continuity => (None, Class::Established),
            Origin::BuiltIn | Origin::Mapped => (None, owner.class),
        };
        let found = self.find(owner);
        let held = found.map_or(0, |account| self.accounts[account as usize].used[stage.index()]);
        if amount > owner.hard_limits[stage.index()].saturating_sub(held) {
            return Err(Reason::OwnerLimit);
        }
        let from_reserved = self.split(plan, stage, owner.class, trusted, amount)?;
        let account = match found {
            Some(account) => {
                if self.accounts[account as usize].classes & bit(listed) == 0 {
                    self.list(plan, account, listed)?;
                }
                account
            }
            None => self.open(plan, owner, trusted, listed)?,
        };
        let grant = Grant {
            amount,
            from_reserved,
            account,
            stage,
            class: owner.class,
            listed,
        };
        self.book(&grant);
        self.accounts[account as usize].leases[listed.index()] += 1;
        Ok(grant)
    }

    /// Charges `amount` more to the owner of `grant`, under the same lease.
    pub(crate) fn grow(&mut self, plan: &Plan, grant: &mut Grant, amount: u64) -> Result<(), Reason> {
        let stage = grant.stage;
        let account = &self.accounts[grant.account as usize];
        let hard_limit = match account.trusted {
            Some(index) => plan.trusted[index as usize].hard_limits[stage.index()],
            None => plan.stage(stage).hard_limit,
        };
        if amount > hard_limit.saturating_sub(account.used[stage.index()]) {
            return Err(Reason::OwnerLimit);
        }
        let from_reserved = self.split(plan, stage, grant.class, account.trusted, amount)?;
        self.book(&Grant {
            amount,
            from_reserved,
            ..*grant
        });
        grant.amount += amount;
        grant.from_reserved += from_reserved;
        Ok(())
    }

    /// Takes a part of a grant back, the shared part first; something of it always stays.
    pub(crate) fn shrink(&mut self, grant: &mut Grant, amount: u64) {
        let stage = grant.stage.index();
        let amount = amount.min(grant.amount.saturating_sub(1));
        let from_shared = amount.min(grant.amount - grant.from_reserved);
        let from_reserved = amount - from_shared;
        let used = &mut self.used[stage];
        let account = &mut self.accounts[grant.account as usize];
        used.total -= amount;
        used.of[grant.class.index()] -= amount;
        used.shared -= from_shared;
        match account.trusted {
            None => used.reserved[grant.class.index()] -= from_reserved,
            Some(index) => self.trusted_used[index as usize][stage] -= from_reserved,
        }
        account.used[stage] -= amount;
        grant.amount -= amount;
        grant.from_reserved -= from_reserved;
    }

    /// Takes back what was granted. The caller hands in each grant once.
    #[inline(always)]
    pub(crate) fn release(&mut self, grant: &Grant) {
        let stage = grant.stage.index();
        let used = &mut self.used[stage];
        let account = &mut self.accounts[grant.account as usize];
        used.total -= grant.amount;
        used.of[grant.class.index()] -= grant.amount;
        used.shared -= grant.amount - grant.from_reserved;
        match account.trusted {
            None => used.reserved[grant.class.index()] -= grant.from_reserved,
            Some(index) => self.trusted_used[index as usize][stage] -= grant.from_reserved,
        }
        account.used[stage] -= grant.amount;
        let leases = &mut account.leases[grant.listed.index()];
        *leases -= 1;
        if *leases == 0 {
            let before = account.classes;
            account.classes &= !bit(grant.listed);
            let after = account.classes;
            self.reclassify(before, after);
            if after == 0 {
                self.shut(grant.account);
            }
        }
    }

    /// How much of `amount` comes out of the floor; the rest must fit into the shared part.
    #[inline]
    fn split(&self, plan: &Plan, stage: Stage, class: Class, trusted: Option<u32>, amount: u64) -> Result<u64, Reason> {
        let used = &self.used[stage.index()];
        let part = plan.stage(stage);
        let idle = match trusted {
            None => part.floor(class) - used.reserved[class.index()],
            Some(index) => {
                let index = index as usize;
                plan.trusted[index].floors[stage.index()] - self.trusted_used[index][stage.index()]
            }
        };
        let from_reserved = amount.min(idle);
        if amount - from_reserved > part.shared - used.shared {
            return Err(Reason::Capacity);
        }
        Ok(from_reserved)
    }

    #[inline]
    fn book(&mut self, grant: &Grant) {
        let stage = grant.stage.index();
        let used = &mut self.used[stage];
        let account = &mut self.accounts[grant.account as usize];
        used.total += grant.amount;
        used.of[grant.class.index()] += grant.amount;
        used.shared += grant.amount - grant.from_reserved;
        match account.trusted {
            None => used.reserved[grant.class.index()] += grant.from_reserved,
            Some(index) => self.trusted_used[index as usize][stage] += grant.from_reserved,
        }
        account.used[stage] += grant.amount;
    }

    /// The account of an owner's key. The owner remembers where it was; another owner may have the place since.
    #[inline]
    fn find(&self, owner: &OwnerData) -> Option<u32> {
        let hint = owner.place.load(Ordering::Relaxed);
        if self
            .accounts
            .get(hint as usize)
            .is_some_and(|account| account.is_of(owner))
        {
            return Some(hint);
        }
        let same = |place: &u32| self.accounts[*place as usize].is_of(owner);
        let place = *self.places.find(owner.hash, same)?;
        owner.place.store(place, Ordering::Relaxed);
        Some(place)
    }

    /// Opens an account, if that leaves the places that are kept for others.
    #[inline(never)]
    fn open(&mut self, plan: &Plan, owner: &OwnerData, trusted: Option<u32>, listed: Class) -> Result<u32, Reason> {
        self.reclassify(0, bit(listed));
        self.tracked += 1;
        if !self.has_room(plan) {
            self.tracked -= 1;
            self.reclassify(bit(listed), 0);
            return Err(Reason::OwnerTableFull);
        }
        let account = Account {
            key: Some(Arc::clone(&owner.key)),
            hash: owner.hash,
            trusted,
            used: [0; Stage::COUNT],
            leases: [0; Class::COUNT],
            classes: bit(listed),
        };
        let place = match self.free.pop() {
            Some(place) => {
                self.accounts[place as usize] = account;
                place
            }
            None => {
                // At most `max_tracked_owners`, which has 32 bits.
                let place = self.accounts.len() as u32;
                self.accounts.push(account);
                place
            }
        };
        let accounts = &self.accounts;
        self.places
            .insert_unique(owner.hash, place, |place| accounts[*place as usize].hash);
        owner.place.store(place, Ordering::Relaxed);
        Ok(place)
    }

    /// Adds a class to an account. One that holds leases of several classes no longer stands for any of them.
    #[inline(never)]
    fn list(&mut self, plan: &Plan, account: u32, listed: Class) -> Result<(), Reason> {
        let before = self.accounts[account as usize].classes;
        let after = before | bit(listed);
        self.reclassify(before, after);
        if !self.has_room(plan) {
            self.reclassify(after, before);
            return Err(Reason::OwnerTableFull);
        }
        self.accounts[account as usize].classes = after;
        Ok(())
    }

    #[inline(never)]
    fn shut(&mut self, place: u32) {
        let account = &mut self.accounts[place as usize];
        account.key = None;
        let hash = account.hash;
        if let Ok(entry) = self.places.find_entry(hash, |one| *one == place) {
            entry.remove();
        }
        self.free.push(place);
        self.tracked -= 1;
    }

    /// Keeps count of the accounts that hold one class only.
    fn reclassify(&mut self, before: u8, after: u8) {
        if let Some(class) = only_class(before) {
            self.exclusive[class] -= 1;
        }
        if let Some(class) = only_class(after) {
            self.exclusive[class] += 1;
        }
    }

    /// Whether the table still has a place for each that must always find one.
    fn has_room(&self, plan: &Plan) -> bool {
        let absent = plan.trusted.len() as u64 - u64::from(self.exclusive[Class::Trusted.index()]);
        let classes = self.kept.iter().zip(&self.exclusive);
        let unfilled = classes.filter(|(kept, exclusive)| **kept && **exclusive == 0).count() as u64;
        u64::from(self.tracked) + absent + unfilled <= u64::from(plan.max_tracked_owners)
    }
}

impl Account {
    #[inline]
    fn is_of(&self, owner: &OwnerData) -> bool {
        let Some(key) = &self.key else { return false };
        self.hash == owner.hash && (Arc::ptr_eq(key, &owner.key) || **key == *owner.key)
    }
}

const fn bit(class: Class) -> u8 {
    1 << class.index()
}

const fn only_class(classes: u8) -> Option<usize> {
    if classes.is_power_of_two() {
        return Some(classes.trailing_zeros() as usize);
    }
    None
}
