//! The provider against a model of it that keeps only the list of leases and adds everything up again at each step.

use std::collections::BTreeMap;
use std::sync::Arc;

use backplane_queue::isolation::{Class, Isolation, Lease, Options, Owner, Plan, Profile, Reason, Stage, TrustedOwner};

use crate::support::{established, options, protected, provider, stage, user};

/// A generator that needs no dependency (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

struct Held {
    owner: Owner,
    stage: Stage,
    amount: u64,
    from_reserved: u64,
    lease: Lease,
}

/// The class that an owner counts as in the table.
fn listed(owner: &Owner) -> Class {
    match owner.only_stage() {
        Some(_) => Class::Established,
        None => owner.class(),
    }
}

fn own_floor(plan: &Plan, owner: &Owner, stage: Stage) -> u64 {
    match owner.trusted_index() {
        Some(index) => plan.trusted()[index].floors[stage.index()],
        None => plan.stage(stage).floor(owner.class()),
    }
}

fn shares_floor(one: &Owner, other: &Owner) -> bool {
    one.class() == other.class() && one.trusted_index() == other.trusted_index()
}

/// What must happen: the part out of the floor, or the reason.
fn expected(plan: &Plan, held: &[Held], owner: &Owner, stage: Stage, amount: u64) -> Result<u64, Reason> {
    if owner.only_stage().is_some_and(|only| only != stage) {
        return Err(Reason::InvalidOwner);
    }
    let here = || held.iter().filter(move |one| one.stage == stage);
    let own: u64 = here()
        .filter(|one| one.owner.key() == owner.key())
        .map(|one| one.amount)
        .sum();
    if own + amount > owner.hard_limit(stage) {
        return Err(Reason::OwnerLimit);
    }
    let floor_used: u64 = here()
        .filter(|one| shares_floor(&one.owner, owner))
        .map(|one| one.from_reserved)
        .sum();
    let from_reserved = amount.min(own_floor(plan, owner, stage) - floor_used);
    let shared_used: u64 = here().map(|one| one.amount - one.from_reserved).sum();
    if shared_used + amount - from_reserved > plan.stage(stage).shared {
        return Err(Reason::Capacity);
    }
    let mut table: BTreeMap<&str, Vec<Class>> = BTreeMap::new();
    for one in held {
        table.entry(one.owner.key()).or_default().push(listed(&one.owner));
    }
    table.entry(owner.key()).or_default().push(listed(owner));
    if table.len() + kept_places(plan, &table) > plan.max_tracked_owners() as usize {
        return Err(Reason::OwnerTableFull);
    }
    Ok(from_reserved)
}

/// How many places of the table are kept for owners that are not in it.
fn kept_places(plan: &Plan, table: &BTreeMap<&str, Vec<Class>>) -> usize {
    let only = |class: Class| {
        let classes = table.values();
        classes
            .filter(|classes| classes.iter().all(|one| *one == class))
            .count()
    };
    let protected = [Class::Bootstrap, Class::Reconnect, Class::Control].into_iter();
    let with_floor = protected.filter(|class| Stage::ALL.iter().any(|stage| plan.stage(*stage).floor(*class) > 0));
    with_floor.filter(|class| only(*class) == 0).count() + plan.trusted().len() - only(Class::Trusted)
}

fn owners(isolation: &Isolation) -> Vec<Owner> {
    let mut owners = Vec::new();
    for name in ["a", "b", "c"] {
        let base = established(isolation, name);
        owners.push(isolation.continuity(&base).unwrap());
        owners.push(base);
        owners.push(user(isolation, name, Class::Reconnect));
        owners.push(user(isolation, name, Class::Control));
        owners.push(protected(isolation, name, Class::Bootstrap));
        owners.push(isolation.mapped(name, Class::Established).unwrap());
    }
    for trusted in ["plant", "line"] {
        owners.extend(isolation.trusted(trusted));
    }
    owners
}

const STAGES: [Stage; 3] = [Stage::RequestQueue, Stage::ReassemblyBytes, Stage::RequestQueueBytes];

fn narrow(profile: Profile, random: &mut Random) -> Options {
    let mut options = options(profile);
    options.max_owner_key_length = 16;
    options.max_retained_message_bytes = Some(1000);
    if profile == Profile::TrustedReservations {
        options.trusted_owners.push(TrustedOwner::new("line"));
    }
    options.max_tracked_owners = 6 + random.below(6) as u32;
    for name in STAGES {
        let unit = if name == Stage::RequestQueue { 1 } else { 1000 };
        options.stages.push(stage(name, |entry| {
            entry.capacity = Some(unit * (7 + random.below(4) as u64));
            entry.owner_hard_limit = Some(unit * 5);
        }));
    }
    options
}

fn check(isolation: &Isolation, held: &[Held]) {
    let counters = isolation.counters();
    for stage in STAGES {
        let sum: u64 = held.iter().filter(|one| one.stage == stage).map(|one| one.amount).sum();
        assert_eq!(isolation.usage(stage), sum);
        for class in Class::ALL {
            let of_class = held
                .iter()
                .filter(|one| one.stage == stage && one.owner.class() == class);
            let sum: u64 = of_class.map(|one| one.amount).sum();
            assert_eq!(counters.used(stage, class), sum, "{stage} {class}");
        }
        assert!(sum <= isolation.plan().stage(stage).capacity);
    }
    let mut keys: Vec<_> = held.iter().map(|one| one.owner.key()).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(isolation.tracked_owners() as usize, keys.len());
}

/// Grants, growth, refusals and releases in random order; how often each outcome came.
fn run(isolation: &Arc<Isolation>, random: &mut Random, outcomes: &mut BTreeMap<Option<Reason>, u32>) {
    let (plan, owners) = (isolation.plan(), owners(isolation));
    let mut held: Vec<Held> = Vec::new();
    for _ in 0..4_000 {
        if random.below(5) < 2 && !held.is_empty() {
            drop(held.swap_remove(random.below(held.len())));
            check(isolation, &held);
            continue;
        }
        let stage = STAGES[random.below(STAGES.len())];
        let amount = plan.stage(stage).unit * (1 + random.below(6) as u64) / (1 + random.below(3) as u64);
        let grown = random.below(4) == 0 && !held.is_empty() && amount > 0;
        let outcome = if grown {
            let place = random.below(held.len());
            let (owner, stage) = (held[place].owner.clone(), held[place].stage);
            let wanted = expected(plan, &held, &owner, stage, amount);
            let one = &mut held[place];
            let got = one.lease.grow(amount).map_err(|refused| refused.reason);
            assert_eq!(got, wanted.map(drop));
            wanted.map(|from_reserved| {
                one.amount += amount;
                one.from_reserved += from_reserved;
            })
        } else {
            let owner = owners[random.below(owners.len())].clone();
            let amount = amount.max(1);
            let wanted = expected(plan, &held, &owner, stage, amount);
            let got = isolation.try_acquire(stage, &owner, amount);
            assert_eq!(
                got.as_ref().map(drop).map_err(|refused| refused.reason),
                wanted.map(drop)
            );
            wanted.map(|from_reserved| {
                let lease = got.unwrap();
                held.push(Held {
                    owner,
                    stage,
                    amount,
                    from_reserved,
                    lease,
                });
            })
        };
        *outcomes.entry(outcome.err()).or_default() += 1;
        check(isolation, &held);
    }
    drop(held);
    check(isolation, &[]);
}

#[test]
fn every_answer_is_the_models() {
    let mut outcomes = BTreeMap::new();
    for seed in 1u64..=12 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        for profile in [Profile::FairShare, Profile::Balanced, Profile::TrustedReservations] {
            let isolation = provider(&narrow(profile, &mut random));
            run(&isolation, &mut random, &mut outcomes);
        }
    }
    // The run is worth nothing if it does not get everywhere.
    for outcome in [
        None,
        Some(Reason::InvalidOwner),
        Some(Reason::OwnerLimit),
        Some(Reason::Capacity),
        Some(Reason::OwnerTableFull),
    ] {
        let count = outcomes.get(&outcome).copied().unwrap_or_default();
        assert!(count > 1_000, "{outcome:?}: {count}");
    }
}
