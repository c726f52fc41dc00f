//! Small providers to test with.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use backplane_queue::isolation::{
    Class, Identity, Isolation, Lease, Options, Owner, Plan, PlanError, Profile, Reason, Stage, StageOptions, Totals,
    TrustedOwner,
};

/// Room for a few requests of 1000 bytes.
pub(crate) fn totals() -> Totals {
    Totals {
        channels: 20,
        sessions: 5,
        message_size: 1000,
        buffer_size: 8192,
        chunk_budget: Some(1_000_000),
        session_establishment: 10,
        ..Totals::default()
    }
}

pub(crate) fn options(profile: Profile) -> Options {
    Options {
        profile,
        has_classifier: profile == Profile::TrustedReservations,
        trusted_owners: match profile {
            Profile::TrustedReservations => vec![TrustedOwner::new("plant")],
            _ => Vec::new(),
        },
        ..Options::default()
    }
}

pub(crate) fn plan(options: &Options) -> Plan {
    Plan::derive(options, &totals()).unwrap()
}

pub(crate) fn provider(options: &Options) -> Arc<Isolation> {
    Isolation::new(plan(options), Box::new(|_| {}))
}

pub(crate) fn of_profile(profile: Profile) -> Arc<Isolation> {
    provider(&options(profile))
}

/// Counts the signals of each stage.
pub(crate) fn signalling(options: &Options) -> (Arc<Isolation>, Arc<[AtomicUsize; Stage::COUNT]>) {
    let signals: Arc<[AtomicUsize; Stage::COUNT]> = Arc::default();
    let seen = Arc::clone(&signals);
    let isolation = Isolation::new(
        plan(options),
        Box::new(move |stage| {
            seen[stage.index()].fetch_add(1, Ordering::SeqCst);
        }),
    );
    (isolation, signals)
}

pub(crate) fn user(isolation: &Isolation, name: &str, class: Class) -> Owner {
    isolation.built_in(Identity::User(name), class).unwrap()
}

pub(crate) fn established(isolation: &Isolation, name: &str) -> Owner {
    user(isolation, name, Class::Established)
}

pub(crate) fn bootstrap(isolation: &Isolation, name: &str) -> Owner {
    isolation.mapped(name, Class::Bootstrap).unwrap()
}

/// An owner of a class that has a floor of its own.
pub(crate) fn protected(isolation: &Isolation, name: &str, class: Class) -> Owner {
    match class {
        Class::Reconnect | Class::Control => user(isolation, name, class),
        class => isolation.mapped(name, class).unwrap(),
    }
}

pub(crate) fn refusal(isolation: &Arc<Isolation>, stage: Stage, owner: &Owner, amount: u64) -> Option<Reason> {
    isolation
        .try_acquire(stage, owner, amount)
        .err()
        .map(|refused| refused.reason)
}

/// Leases of one unit each until nothing is left, and the reason why.
pub(crate) fn exhaust(isolation: &Arc<Isolation>, stage: Stage, owner: &Owner) -> (Vec<Lease>, Reason) {
    let unit = isolation.plan().stage(stage).unit;
    let mut leases = Vec::new();
    loop {
        match isolation.try_acquire(stage, owner, unit) {
            Ok(lease) => leases.push(lease),
            Err(refused) => return (leases, refused.reason),
        }
    }
}

/// All that is wrong with options and totals, as text.
pub(crate) fn errors(options: &Options, totals: &Totals) -> Vec<String> {
    let errors = Plan::derive(options, totals).err().unwrap_or_default();
    errors.iter().map(PlanError::to_string).collect()
}

pub(crate) fn stage(stage: Stage, change: impl FnOnce(&mut StageOptions)) -> StageOptions {
    let mut entry = StageOptions::new(stage);
    change(&mut entry);
    entry
}

/// The only error, which names `option`.
pub(crate) fn only_error(options: &Options, totals: &Totals, option: &str) -> String {
    let found = errors(options, totals);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with(&format!("{option} ")), "{found:?}");
    found[0].clone()
}

pub(crate) fn with_stage(profile: Profile, entry: StageOptions) -> Options {
    Options {
        stages: vec![entry],
        ..options(profile)
    }
}
