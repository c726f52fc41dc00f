//! The division of single stages among classes and trusted owners. Owns the rules that a stage's numbers must keep.

use super::errors::{Findings, Problem};
use super::options::{Options, Reservation, StageOptions, Totals};
use super::plan::{StagePlan, TrustedPlan};
use super::vocabulary::{Profile, Stage};
use crate::sync::Arc;

/// The division of the stages, while rules are checked.
pub(super) struct Division<'a> {
    pub(super) options: &'a Options,
    pub(super) totals: &'a Totals,
    pub(super) footprint: u64,
    pub(super) found: Findings,
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

    pub(super) fn stage(&mut self, stage: Stage) -> StagePlan {
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

    pub(super) fn trusted_owners(&mut self, stages: &[StagePlan; Stage::COUNT]) -> Vec<TrustedPlan> {
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
