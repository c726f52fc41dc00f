//! From options and totals to a plan. Owns every rule that the numbers must keep; finds all that are broken before it gives up.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::errors::{PlanError, Problem};
use super::options::{MAX_HANDSHAKE_TIMEOUT, Options, RateOptions, Reservation, StageOptions, Totals};
use super::plan::{Plan, StagePlan, TrustedPlan};
use super::vocabulary::{Class, Profile, Stage};

/// What was found so far.
#[derive(Default)]
struct Findings(Vec<PlanError>);

impl Findings {
    fn add(&mut self, option: impl Into<String>, problem: Problem) {
        self.0.push(PlanError {
            option: option.into(),
            problem,
        });
    }

    fn at_least(&mut self, option: impl Into<String>, given: u64, minimum: u64, because: &'static str) {
        if given < minimum {
            self.add(
                option,
                Problem::Below {
                    given,
                    minimum,
                    because,
                },
            );
        }
    }

    fn within(&mut self, option: impl Into<String>, given: u64, minimum: u64, maximum: u64) {
        if given < minimum || given > maximum {
            self.add(
                option,
                Problem::OutOfRange {
                    given,
                    minimum,
                    maximum,
                },
            );
        }
    }

    fn floor(&mut self, option: impl Into<String>, given: u64, minimum: u64) {
        if given != 0 && given < minimum {
            self.add(option, Problem::FloorTooSmall { given, minimum });
        }
    }
}

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

/// The division of the stages, while rules are checked.
struct Division<'a> {
    options: &'a Options,
    totals: &'a Totals,
    footprint: u64,
    found: Findings,
}

impl Division<'_> {
    fn entry(&self, stage: Stage) -> StageOptions {
        let entry = self.options.stages.iter().find(|entry| entry.stage == stage);
        entry.copied().unwrap_or_else(|| StageOptions::new(stage))
    }

    fn unit(&self, stage: Stage) -> u64 {
        match stage {
            Stage::ReassemblyBytes => self.footprint,
            Stage::RequestQueueBytes => self.totals.message_size.max(1),
            _ => 1,
        }
    }

    fn stage(&mut self, stage: Stage) -> StagePlan {
        let entry = self.entry(stage);
        let unit = self.unit(stage);
        let capacity = self.capacity(stage, &entry);
        let floors = self.class_floors(stage, &entry, unit);
        let hard_limit = entry.owner_hard_limit.unwrap_or(capacity);
        if entry.owner_hard_limit.is_some() {
            let minimum = floors.into_iter().fold(unit, u64::max);
            let option = format!("isolation.stage[{stage}].owner-hard-limit");
            self.found.within(option, hard_limit, minimum, capacity);
        }
        let trusted = self.trusted_floor_sum(stage, unit);
        let all = floors
            .into_iter()
            .try_fold(trusted, |sum: u64, floor| sum.checked_add(floor));
        self.check_fit(stage, &entry, capacity, all);
        let [bootstrap, reconnect, control] = floors;
        StagePlan {
            stage,
            unit,
            capacity,
            shared: capacity.saturating_sub(all.unwrap_or(u64::MAX)),
            bootstrap,
            reconnect,
            control,
            trusted,
            hard_limit,
        }
    }

    /// Beside the floors there must be room for one unit of work. Connections need more: every session and one more, or a server full of
    /// idle sessions shuts out the one caller that could take up any of them.
    fn check_fit(&mut self, stage: Stage, entry: &StageOptions, capacity: u64, floors: Option<u64>) {
        let (rest, because) = match stage {
            Stage::Connection => (
                self.totals.sessions.saturating_add(1),
                "every session needs a connection, one more must get in, and the floors come on top",
            ),
            _ => (
                self.unit(stage),
                "the floors, and one unit of work for everybody else, must fit",
            ),
        };
        let minimum = floors.and_then(|all| all.checked_add(rest)).unwrap_or(u64::MAX);
        if entry.capacity.is_some() {
            let option = format!("isolation.stage[{stage}].capacity");
            self.found.at_least(option, capacity, minimum, because);
        }
        let total = self.totals.of(stage).unwrap_or(u64::MAX);
        self.found.at_least(self.totals.name_of(stage), total, minimum, because);
    }

    fn capacity(&mut self, stage: Stage, entry: &StageOptions) -> u64 {
        let total = self.totals.of(stage).unwrap_or_else(|| {
            let given = self.totals.message_size;
            self.found
                .add(self.totals.names.message_size, Problem::Overflow { given });
            u64::MAX
        });
        if let Some(capacity) = entry.capacity {
            self.found
                .within(format!("isolation.stage[{stage}].capacity"), capacity, 1, total);
        }
        let capacity = entry.capacity.unwrap_or(total);
        if let (Stage::RequestQueue, Some(physical)) = (stage, self.totals.physical_queue)
            && capacity > physical
        {
            self.found
                .within(format!("isolation.stage[{stage}].capacity"), capacity, 1, physical);
        }
        capacity
    }

    /// The floors of bootstrap, reconnect and control.
    fn class_floors(&mut self, stage: Stage, entry: &StageOptions, unit: u64) -> [u64; 3] {
        let profile = self.options.profile;
        let byte_floors = match stage {
            Stage::ReassemblyBytes => (
                self.options.bootstrap_reserved_bytes,
                self.options.reconnect_reserved_bytes,
            ),
            _ => (None, None),
        };
        let control = if stage.has_control_floor() { unit } else { 0 };
        let floors = [
            ("bootstrap", entry.bootstrap_reserved, byte_floors.0.unwrap_or(unit)),
            ("reconnect", entry.reconnect_reserved, byte_floors.1.unwrap_or(unit)),
            ("control", entry.control_reserved, control),
        ];
        floors.map(|(class, given, default)| {
            let option = format!("isolation.stage[{stage}].{class}-reserved");
            if profile.has_floors() {
                if let Some(given) = given {
                    self.found.floor(option, given, unit);
                }
                return given.unwrap_or(default);
            }
            if given.is_some_and(|given| given > 0) {
                self.found.add(option, Problem::NotInProfile { profile });
            }
            0
        })
    }

    /// The floors of all trusted owners; the largest number when there is no such sum.
    fn trusted_floor_sum(&self, stage: Stage, unit: u64) -> u64 {
        if self.options.profile != Profile::TrustedReservations {
            return 0;
        }
        let floors = self
            .options
            .trusted_owners
            .iter()
            .map(|owner| reservation(&owner.reservations, stage).map_or(unit, |entry| entry.reserved));
        floors.fold(0, u64::saturating_add)
    }

    fn trusted_owners(&mut self, stages: &[StagePlan; Stage::COUNT]) -> Vec<TrustedPlan> {
        if self.options.profile != Profile::TrustedReservations {
            return Vec::new();
        }
        let owners = &self.options.trusted_owners;
        let mut plans = Vec::with_capacity(owners.len());
        for (index, owner) in owners.iter().enumerate() {
            let mut plan = TrustedPlan {
                key: Arc::from(owner.key.as_str()),
                weight: owner.weight.max(1),
                floors: [0; Stage::COUNT],
                hard_limits: [0; Stage::COUNT],
            };
            for stage in stages {
                let entry = reservation(&owner.reservations, stage.stage);
                let (floor, hard_limit) = self.trusted_stage(index, stage, entry);
                plan.floors[stage.stage.index()] = floor;
                plan.hard_limits[stage.stage.index()] = hard_limit;
            }
            plans.push(plan);
        }
        plans
    }

    fn trusted_stage(&mut self, owner: usize, stage: &StagePlan, entry: Option<Reservation>) -> (u64, u64) {
        let option = format!("isolation.trusted-owner[{owner}].reservation[{}]", stage.stage);
        let floor = entry.map_or(stage.unit, |entry| entry.reserved);
        self.found.floor(format!("{option}.reserved"), floor, stage.unit);
        let minimum = floor.max(stage.unit);
        let own = entry.and_then(|entry| entry.hard_limit);
        let hard_limit = own.unwrap_or(stage.hard_limit);
        // The stage's own hard limit and capacity have been checked against one unit, so a default can only be too low for a floor.
        if own.is_some() || floor > stage.unit {
            self.found
                .within(format!("{option}.hard-limit"), hard_limit, minimum, stage.capacity);
        }
        (floor, hard_limit)
    }
}

fn reservation(reservations: &[Reservation], stage: Stage) -> Option<Reservation> {
    reservations.iter().copied().find(|entry| entry.stage == stage)
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
