//! From options and totals to a plan. Owns the rules that are not about a single stage, and that all that are broken are found before it
//! gives up.

use std::collections::HashSet;
use std::time::Duration;

use super::division::Division;
use super::errors::{Findings, PlanError, Problem};
use super::options::{MAX_HANDSHAKE_TIMEOUT, Options, RateOptions, Totals};
use super::plan::{Plan, StagePlan};
use super::vocabulary::{Class, Profile, Stage};

/// See [`Plan::derive`].
pub(super) fn derive(options: &Options, totals: &Totals) -> Result<Plan, Vec<PlanError>> {
    let mut found = Findings::default();
    check_timeout(&mut found, options.handshake_timeout);
    check_trusted_owners(&mut found, options);
    if !options.profile.has_accounts() {
        return finish(found, undivided(options, totals));
    }
    check_scalars(&mut found, options, totals);
    let footprint = footprint(&mut found, options, totals);
    check_reserved_bytes(&mut found, options, footprint);
    check_duplicates(&mut found, options);
    let mut division = Division {
        options,
        totals,
        footprint,
        found,
    };
    let stages = Stage::ALL.map(|stage| division.stage(stage));
    let trusted = division.trusted_owners(&stages);
    let mut found = division.found;
    check_owner_table(&mut found, options, &stages);
    check_rate(&mut found, options);
    let plan = Plan {
        stages,
        trusted,
        footprint,
        ..undivided(options, totals)
    };
    finish(found, plan)
}

fn finish(found: Findings, plan: Plan) -> Result<Plan, Vec<PlanError>> {
    if found.0.is_empty() { Ok(plan) } else { Err(found.0) }
}

/// What a plan takes over as it is.
fn undivided(options: &Options, totals: &Totals) -> Plan {
    Plan {
        profile: options.profile,
        stages: Stage::ALL.map(StagePlan::unlimited),
        trusted: Vec::new(),
        footprint: totals.footprint().unwrap_or(u64::MAX),
        max_tracked_owners: options.max_tracked_owners,
        max_owner_key_length: options.max_owner_key_length,
        default_weight: options.default_weight.max(1),
        handshake_timeout: options.handshake_timeout,
        rate: options.rate,
    }
}

fn check_timeout(found: &mut Findings, given: Duration) {
    if given.is_zero() || given > MAX_HANDSHAKE_TIMEOUT {
        let maximum = MAX_HANDSHAKE_TIMEOUT;
        found.add("isolation.handshake-timeout", Problem::Timeout { given, maximum });
    }
}

/// Who is trusted: whether the profile has such owners, and their keys and weights.
fn check_trusted_owners(found: &mut Findings, options: &Options) {
    let profile = options.profile;
    if profile != Profile::TrustedReservations {
        if !options.trusted_owners.is_empty() {
            found.add("isolation.trusted-owner", Problem::NotInProfile { profile });
        }
        return;
    }
    let mut needs = |what| found.add("isolation.profile", Problem::Needs { profile, what });
    if !options.has_classifier {
        needs("a classifier");
    }
    if options.trusted_owners.is_empty() {
        needs("at least one trusted owner");
    }
    let mut keys = HashSet::new();
    for (index, owner) in options.trusted_owners.iter().enumerate() {
        let option = format!("isolation.trusted-owner[{index}].key");
        let length = owner.key.len() as u64;
        let maximum = u64::from(options.max_owner_key_length);
        if owner.key.is_empty() {
            found.add(option, Problem::Empty);
        } else if length > maximum {
            found.add(option, Problem::TooLong { length, maximum });
        } else if !keys.insert(owner.key.as_str()) {
            found.add(option, Problem::Duplicate);
        }
        let option = format!("isolation.trusted-owner[{index}].weight");
        found.at_least(
            option,
            u64::from(owner.weight),
            1,
            "an owner without a turn is never served",
        );
    }
}

fn check_scalars(found: &mut Findings, options: &Options, totals: &Totals) {
    let limited = "a share of an unlimited resource is no limit";
    found.at_least(totals.names.message_size, totals.message_size, 1, limited);
    found.at_least(totals.names.buffer_size, totals.buffer_size, 1, limited);
    found.at_least(totals.names.sessions, totals.sessions, 1, limited);
    let tracked = "every owner with work is tracked";
    found.at_least(
        "isolation.max-tracked-owners",
        u64::from(options.max_tracked_owners),
        1,
        tracked,
    );
    let keys = "no key is empty";
    found.at_least(
        "isolation.max-owner-key-length",
        u64::from(options.max_owner_key_length),
        1,
        keys,
    );
    let turns = "an owner without a turn is never served";
    found.at_least("isolation.default-weight", u64::from(options.default_weight), 1, turns);
}

/// The memory one incomplete message takes; 1 when that cannot be told, so that the other rules can still be checked.
fn footprint(found: &mut Findings, options: &Options, totals: &Totals) -> u64 {
    if let Some(bytes) = options.max_retained_message_bytes {
        let because = "an incomplete message takes memory";
        found.at_least("isolation.max-retained-message-bytes", bytes, 1, because);
        return bytes.max(1);
    }
    totals.footprint().unwrap_or_else(|| {
        let given = totals.message_size;
        found.add(totals.names.message_size, Problem::Overflow { given });
        1
    })
}

fn check_reserved_bytes(found: &mut Findings, options: &Options, footprint: u64) {
    let profile = options.profile;
    let both = [
        ("isolation.bootstrap-reserved-bytes", options.bootstrap_reserved_bytes),
        ("isolation.reconnect-reserved-bytes", options.reconnect_reserved_bytes),
    ];
    for (option, bytes) in both {
        let Some(bytes) = bytes else { continue };
        if profile.has_floors() {
            let because =
                "one incomplete message must fit; `isolation.stage[ReassemblyBytes]` can switch the floor off";
            found.at_least(option, bytes, footprint, because);
        } else if bytes > 0 {
            found.add(option, Problem::NotInProfile { profile });
        }
    }
}

fn check_duplicates(found: &mut Findings, options: &Options) {
    let mut seen = [false; Stage::COUNT];
    for entry in &options.stages {
        if std::mem::replace(&mut seen[entry.stage.index()], true) {
            found.add(format!("isolation.stage[{}]", entry.stage), Problem::Duplicate);
        }
    }
    for (index, owner) in options.trusted_owners.iter().enumerate() {
        let mut seen = [false; Stage::COUNT];
        for entry in &owner.reservations {
            if std::mem::replace(&mut seen[entry.stage.index()], true) {
                let option = format!("isolation.trusted-owner[{index}].reservation[{}]", entry.stage);
                found.add(option, Problem::Duplicate);
            }
        }
    }
}

/// One place for each that must always find one: every trusted owner, one owner of each class with a floor, and one other.
fn check_owner_table(found: &mut Findings, options: &Options, stages: &[StagePlan; Stage::COUNT]) {
    let classes = Class::PROTECTED.into_iter();
    let protected = classes.filter(|class| stages.iter().any(|stage| stage.floor(*class) > 0));
    let minimum = options.trusted_owners.len() as u64 + 1 + protected.count() as u64;
    let given = u64::from(options.max_tracked_owners);
    if given > 0 {
        let because = "one for each trusted owner, one for each class with a floor, one for everybody else";
        found.at_least("isolation.max-tracked-owners", given, minimum, because);
    }
}

fn check_rate(found: &mut Findings, options: &Options) {
    if !options.profile.has_floors() {
        return;
    }
    let minimum = options.trusted_owners.len() as u64 + 3;
    let because = "one token each for bootstrap, reconnect, every trusted owner, and everybody else";
    let RateOptions { per_second, burst } = options.rate;
    found.at_least("isolation.rate.per-second", u64::from(per_second), minimum, because);
    found.at_least("isolation.rate.burst", u64::from(burst), minimum, because);
}
