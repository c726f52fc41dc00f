//! `[isolation]`: how the server's capacity is divided between those who use it, and the totals that are divided.
//!
//! Owns the names of the keys; what the numbers mean and whether they fit together is judged by the queue crate's plan,
//! whose errors name these keys.

use backplane_queue::isolation::{
    Options, Plan, Profile, RateOptions, Reservation, Stage, StageOptions, Totals, TrustedOwner,
};

use super::ServerLimits;
use super::section::{Problems, Section};

/// Reads `[isolation]`; what is absent keeps its default.
pub(super) fn read(section: &mut Section<'_>) -> Options {
    let default = Options::default();
    let mut options = Options {
        max_tracked_owners: section.number32("max-tracked-owners", default.max_tracked_owners, 1..=10_000_000),
        max_owner_key_length: section.number32("max-owner-key-length", default.max_owner_key_length, 1..=4_096),
        default_weight: section.number32("default-weight", default.default_weight, 1..=1_000_000),
        bootstrap_reserved_bytes: section.amount("bootstrap-reserved-bytes"),
        reconnect_reserved_bytes: section.amount("reconnect-reserved-bytes"),
        max_retained_message_bytes: section.amount("max-retained-message-bytes"),
        ..default
    };
    if let Some(name) = section.text("profile") {
        match name.parse::<Profile>() {
            Ok(profile) => options.profile = profile,
            Err(_) => section.problem(
                "profile",
                format_args!("{name:?} is none of SharedOnly, FairShare, Balanced, TrustedReservations"),
            ),
        }
    }
    options.stages = section.sections("stage", read_stage).into_iter().flatten().collect();
    options.trusted_owners = section.sections("trusted-owner", read_trusted);
    let mut rate = section.section("rate");
    options.rate = RateOptions {
        per_second: rate.number32("per-second", options.rate.per_second, 0..=1_000_000),
        burst: rate.number32("burst", options.rate.burst, 0..=1_000_000),
    };
    rate.finish();
    options
}

fn stage_of(section: &mut Section<'_>) -> Option<Stage> {
    let Some(name) = section.text("stage") else {
        section.problem("stage", "missing");
        return None;
    };
    let stage = name.parse::<Stage>().ok();
    if stage.is_none() {
        let names: Vec<&str> = Stage::ALL.iter().map(|stage| stage.name()).collect();
        section.problem("stage", format_args!("{name:?} is none of {}", names.join(", ")));
    }
    stage
}

fn read_stage(section: &mut Section<'_>) -> Option<StageOptions> {
    let stage = stage_of(section);
    let capacity = section.amount("capacity");
    let bootstrap_reserved = section.amount("bootstrap-reserved");
    let reconnect_reserved = section.amount("reconnect-reserved");
    let control_reserved = section.amount("control-reserved");
    let owner_hard_limit = section.amount("owner-hard-limit");
    Some(StageOptions {
        stage: stage?,
        capacity,
        bootstrap_reserved,
        reconnect_reserved,
        control_reserved,
        owner_hard_limit,
    })
}

fn read_trusted(section: &mut Section<'_>) -> TrustedOwner {
    let mut owner = TrustedOwner::new(section.text("key").unwrap_or_default());
    owner.weight = section.number32("weight", 1, 0..=1_000_000);
    let read = |reservation: &mut Section<'_>| {
        let stage = stage_of(reservation);
        let reserved = reservation.amount("reserved").unwrap_or(0);
        let hard_limit = reservation.amount("hard-limit");
        Some(Reservation {
            stage: stage?,
            reserved,
            hard_limit,
        })
    };
    owner.reservations = section.sections("reservation", read).into_iter().flatten().collect();
    owner
}

/// The totals that the limits of the server give.
pub(crate) fn totals(limits: &ServerLimits) -> Totals {
    Totals {
        channels: limits.connections.into(),
        sessions: limits.sessions.into(),
        message_size: limits.message_size.into(),
        buffer_size: limits.chunk_size.into(),
        queued_requests: limits.queued_requests.into(),
        threads: (1, limits.workers.into()),
        session_establishment: limits.session_establishment.into(),
        cpus: std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
        chunk_budget: (limits.reassembly_bytes > 0).then_some(limits.reassembly_bytes),
        physical_queue: None,
        ..Totals::default()
    }
}

/// The plan that is in effect; none for SharedOnly, where nothing is divided. Everything that is wrong is added to
/// `problems`.
pub(super) fn judge(options: &Options, limits: &ServerLimits, problems: &mut Problems) {
    if let Err(errors) = Plan::derive(options, &totals(limits)) {
        for error in errors {
            problems.add(&error.option, &error.problem);
        }
    }
}
