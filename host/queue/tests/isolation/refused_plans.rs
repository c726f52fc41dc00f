//! Everything that must be refused at start, with the option that is to blame.

use std::time::Duration;

use backplane_queue::isolation::{
    Options, Plan, Profile, RateOptions, Reservation, Stage, StageOptions, Totals, TrustedOwner,
};

use crate::support::{errors, only_error, options, plan, stage, totals, with_stage};

#[test]
fn top_level_byte_floors_hold_one_message() {
    let footprint = 4 * (1000 + 8192);
    let bytes = |bytes| Options {
        bootstrap_reserved_bytes: Some(bytes),
        reconnect_reserved_bytes: Some(bytes + 1),
        ..options(Profile::Balanced)
    };
    let part = *plan(&bytes(footprint)).stage(Stage::ReassemblyBytes);
    assert_eq!((part.bootstrap, part.reconnect), (footprint, footprint + 1));
    for few in [0, footprint - 1] {
        let error = only_error(
            &Options {
                reconnect_reserved_bytes: None,
                ..bytes(few)
            },
            &totals(),
            "isolation.bootstrap-reserved-bytes",
        );
        assert!(error.contains(&format!("at least {footprint}:")), "{error}");
    }
    let fair = |bytes| Options {
        reconnect_reserved_bytes: Some(bytes),
        ..options(Profile::FairShare)
    };
    assert!(Plan::derive(&fair(0), &totals()).is_ok());
    only_error(&fair(1), &totals(), "isolation.reconnect-reserved-bytes");
}

#[test]
fn fair_share_refuses_floors() {
    let changes: [fn(&mut StageOptions); 3] = [
        |entry| entry.bootstrap_reserved = Some(1),
        |entry| entry.reconnect_reserved = Some(1),
        |entry| entry.control_reserved = Some(1),
    ];
    for change in changes {
        let options = with_stage(Profile::FairShare, stage(Stage::RequestQueue, change));
        let found = errors(&options, &totals());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("isolation.stage[RequestQueue]."), "{found:?}");
        assert!(
            found[0].ends_with("-reserved has no meaning in the profile FairShare"),
            "{found:?}"
        );
    }
    let zero = with_stage(
        Profile::FairShare,
        stage(Stage::RequestQueue, |entry| entry.control_reserved = Some(0)),
    );
    assert!(Plan::derive(&zero, &totals()).is_ok());
}

#[test]
fn a_capacity_may_only_lower_the_total() {
    let capacity = |capacity| {
        with_stage(
            Profile::FairShare,
            stage(Stage::Handshake, |entry| entry.capacity = Some(capacity)),
        )
    };
    assert_eq!(plan(&capacity(1)).stage(Stage::Handshake).capacity, 1);
    assert_eq!(plan(&capacity(20)).stage(Stage::Handshake).capacity, 20);
    let error = only_error(&capacity(21), &totals(), "isolation.stage[Handshake].capacity");
    assert!(error.ends_with("must be from 1 to 20"), "{error}");
    let found = errors(&capacity(0), &totals());
    assert!(
        found.iter().any(|error| error.ends_with("must be from 1 to 20")),
        "{found:?}"
    );
}

#[test]
fn a_lowered_capacity_must_hold_the_floors_and_the_sessions() {
    let capacity = |capacity| {
        with_stage(
            Profile::Balanced,
            stage(Stage::Connection, |entry| entry.capacity = Some(capacity)),
        )
    };
    let error = only_error(&capacity(7), &totals(), "isolation.stage[Connection].capacity");
    assert!(error.contains("at least 8:"), "{error}");
    assert_eq!(plan(&capacity(8)).stage(Stage::Connection).shared, 6);
}

#[test]
fn floors_must_leave_one_unit() {
    let reserved = |reserved| {
        with_stage(
            Profile::Balanced,
            stage(Stage::Handshake, |entry| entry.bootstrap_reserved = Some(reserved)),
        )
    };
    assert_eq!(plan(&reserved(18)).stage(Stage::Handshake).shared, 1);
    let error = only_error(&reserved(19), &totals(), "limits.connections");
    assert!(error.contains("is 20, and must be at least 21:"), "{error}");
    let error = only_error(&reserved(u64::MAX), &totals(), "limits.connections");
    assert!(error.contains(&u64::MAX.to_string()), "{error}");
}

#[test]
fn a_floor_is_nothing_or_a_unit() {
    let reserved = |reserved| {
        with_stage(
            Profile::Balanced,
            stage(Stage::RequestQueueBytes, |entry| {
                entry.control_reserved = Some(reserved)
            }),
        )
    };
    assert!(Plan::derive(&reserved(1000), &totals()).is_ok());
    let option = "isolation.stage[RequestQueueBytes].control-reserved";
    let error = only_error(&reserved(999), &totals(), option);
    assert!(error.contains("0 or at least 1000"), "{error}");
}

#[test]
fn a_hard_limit_holds_a_unit_and_each_floor_and_fits_the_capacity() {
    let limit = |limit| {
        with_stage(
            Profile::Balanced,
            stage(Stage::RequestQueue, |entry| {
                entry.owner_hard_limit = Some(limit);
                entry.reconnect_reserved = Some(4);
            }),
        )
    };
    assert!(Plan::derive(&limit(4), &totals()).is_ok());
    assert!(Plan::derive(&limit(200), &totals()).is_ok());
    for wrong in [0, 3, 201] {
        let option = "isolation.stage[RequestQueue].owner-hard-limit";
        let error = only_error(&limit(wrong), &totals(), option);
        assert!(error.ends_with("must be from 4 to 200"), "{error}");
    }
}

#[test]
fn the_queue_stage_fits_the_physical_queue() {
    let physical = |size| Totals {
        physical_queue: Some(size),
        ..totals()
    };
    let options = options(Profile::Balanced);
    assert!(Plan::derive(&options, &physical(200)).is_ok());
    let error = only_error(&options, &physical(199), "isolation.stage[RequestQueue].capacity");
    assert!(error.contains("is 200, and must be from 1 to 199"), "{error}");
    let lowered = with_stage(
        Profile::Balanced,
        stage(Stage::RequestQueue, |entry| entry.capacity = Some(199)),
    );
    assert!(Plan::derive(&lowered, &physical(199)).is_ok());
}

#[test]
fn unlimited_totals_have_no_shares() {
    let zero = Totals {
        channels: 0,
        sessions: 0,
        message_size: 0,
        buffer_size: 0,
        ..totals()
    };
    let found = errors(&options(Profile::Balanced), &zero);
    for option in [
        "limits.connections",
        "limits.sessions",
        "limits.message-size",
        "limits.chunk-size",
    ] {
        assert!(
            found.iter().any(|error| error.starts_with(option)),
            "{option}: {found:?}"
        );
    }
}

#[test]
fn costs_that_overflow_are_refused() {
    let huge = Totals {
        message_size: u64::MAX / 4,
        chunk_budget: Some(u64::MAX),
        ..totals()
    };
    let found = errors(&options(Profile::Balanced), &huge);
    assert!(
        found
            .iter()
            .any(|error| error.starts_with("limits.message-size is 4611686018427387903: what follows")),
        "{found:?}"
    );
    let many = Totals {
        queued_requests: u64::MAX,
        ..totals()
    };
    assert!(!errors(&options(Profile::Balanced), &many).is_empty());
}

#[test]
fn a_stage_stands_once() {
    let entry = stage(Stage::RequestQueue, |_| {});
    let twice = Options {
        stages: vec![entry, entry],
        ..options(Profile::Balanced)
    };
    let error = only_error(&twice, &totals(), "isolation.stage[RequestQueue]");
    assert!(error.ends_with("is given twice"), "{error}");
}

#[test]
fn trusted_owners_belong_to_one_profile() {
    for profile in [Profile::SharedOnly, Profile::FairShare, Profile::Balanced] {
        let options = Options {
            trusted_owners: vec![TrustedOwner::new("plant")],
            has_classifier: true,
            ..options(profile)
        };
        only_error(&options, &totals(), "isolation.trusted-owner");
    }
}

#[test]
fn trusted_reservations_need_a_classifier_and_an_owner() {
    let options = Options {
        profile: Profile::TrustedReservations,
        ..Options::default()
    };
    let found = errors(&options, &totals());
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("needs a classifier"), "{found:?}");
    assert!(found[1].contains("needs at least one trusted owner"), "{found:?}");
}

fn trusted(change: impl FnOnce(&mut TrustedOwner)) -> Options {
    let mut options = options(Profile::TrustedReservations);
    change(&mut options.trusted_owners[0]);
    options
}

fn reserve(stage: Stage, reserved: u64, hard_limit: Option<u64>) -> Reservation {
    Reservation {
        stage,
        reserved,
        hard_limit,
    }
}

#[test]
fn trusted_keys_are_unique_and_not_empty_and_bounded() {
    let empty = trusted(|owner| owner.key.clear());
    only_error(&empty, &totals(), "isolation.trusted-owner[0].key");
    let mut twice = options(Profile::TrustedReservations);
    twice.trusted_owners.push(TrustedOwner::new("plant"));
    only_error(&twice, &totals(), "isolation.trusted-owner[1].key");
    let fits = trusted(|owner| owner.key = "k".repeat(256));
    assert!(Plan::derive(&fits, &totals()).is_ok());
    let long = trusted(|owner| owner.key = "k".repeat(257));
    let error = only_error(&long, &totals(), "isolation.trusted-owner[0].key");
    assert!(error.contains("257") && error.contains("256"), "{error}");
}

#[test]
fn weights_are_positive() {
    let zero = trusted(|owner| owner.weight = 0);
    only_error(&zero, &totals(), "isolation.trusted-owner[0].weight");
    let zero = Options {
        default_weight: 0,
        ..options(Profile::FairShare)
    };
    only_error(&zero, &totals(), "isolation.default-weight");
}

#[test]
fn trusted_reservations_stand_once_per_stage() {
    let twice = trusted(|owner| owner.reservations = vec![reserve(Stage::Handshake, 1, None); 2]);
    only_error(&twice, &totals(), "isolation.trusted-owner[0].reservation[Handshake]");
}

#[test]
fn trusted_hard_limits_hold_the_floor_and_fit_the_capacity() {
    let limit =
        |floor, limit| trusted(|owner| owner.reservations = vec![reserve(Stage::RequestQueue, floor, Some(limit))]);
    let option = "isolation.trusted-owner[0].reservation[RequestQueue].hard-limit";
    assert_eq!(
        plan(&limit(5, 5)).trusted()[0].hard_limits[Stage::RequestQueue.index()],
        5
    );
    assert!(Plan::derive(&limit(0, 1), &totals()).is_ok());
    for (floor, wrong) in [(5, 4), (0, 0), (5, 201)] {
        only_error(&limit(floor, wrong), &totals(), option);
    }
    let mut by_stage = trusted(|owner| owner.reservations = vec![reserve(Stage::RequestQueue, 5, None)]);
    by_stage.stages = vec![stage(Stage::RequestQueue, |entry| entry.owner_hard_limit = Some(4))];
    only_error(&by_stage, &totals(), option);
}

#[test]
fn trusted_hard_limits_default_to_the_stages() {
    let mut options = options(Profile::TrustedReservations);
    options.stages = vec![stage(Stage::RequestQueue, |entry| entry.owner_hard_limit = Some(9))];
    assert_eq!(plan(&options).trusted()[0].hard_limits[Stage::RequestQueue.index()], 9);
}

#[test]
fn trusted_floors_are_nothing_or_a_unit() {
    let floor = |floor| trusted(|owner| owner.reservations = vec![reserve(Stage::RequestQueueBytes, floor, None)]);
    assert_eq!(plan(&floor(0)).stage(Stage::RequestQueueBytes).trusted, 0);
    let option = "isolation.trusted-owner[0].reservation[RequestQueueBytes].reserved";
    only_error(&floor(999), &totals(), option);
}

#[test]
fn the_owner_table_holds_everybody_who_is_protected() {
    let sized = |profile, size| Options {
        max_tracked_owners: size,
        ..options(profile)
    };
    for (profile, least) in [
        (Profile::FairShare, 1),
        (Profile::Balanced, 4),
        (Profile::TrustedReservations, 5),
    ] {
        assert!(Plan::derive(&sized(profile, least), &totals()).is_ok(), "{profile}");
        let error = only_error(&sized(profile, least - 1), &totals(), "isolation.max-tracked-owners");
        assert!(error.contains(&format!("at least {least}:")), "{error}");
    }
    let mut without_control = sized(Profile::Balanced, 3);
    for name in Stage::ALL {
        without_control
            .stages
            .push(stage(name, |entry| entry.control_reserved = Some(0)));
    }
    assert!(Plan::derive(&without_control, &totals()).is_ok());
}

#[test]
fn key_length_is_positive() {
    let zero = Options {
        max_owner_key_length: 0,
        ..options(Profile::FairShare)
    };
    only_error(&zero, &totals(), "isolation.max-owner-key-length");
}

#[test]
fn the_handshake_timeout_is_checked_in_every_profile() {
    for profile in Profile::ALL {
        let timeout = |handshake_timeout| Options {
            handshake_timeout,
            ..options(profile)
        };
        for wrong in [Duration::ZERO, Duration::from_nanos(120_000_000_001), Duration::MAX] {
            only_error(&timeout(wrong), &totals(), "isolation.handshake-timeout");
        }
        for right in [Duration::from_nanos(1), Duration::from_secs(120)] {
            assert!(Plan::derive(&timeout(right), &totals()).is_ok(), "{profile}");
        }
    }
}

#[test]
fn the_rate_has_a_token_for_everybody_who_is_protected() {
    let rate = |profile, per_second, burst| Options {
        rate: RateOptions { per_second, burst },
        ..options(profile)
    };
    for (profile, least) in [(Profile::Balanced, 3), (Profile::TrustedReservations, 4)] {
        assert!(
            Plan::derive(&rate(profile, least, least), &totals()).is_ok(),
            "{profile}"
        );
        let error = only_error(&rate(profile, least - 1, least), &totals(), "isolation.rate.per-second");
        assert!(error.contains(&format!("at least {least}:")), "{error}");
        only_error(&rate(profile, least, least - 1), &totals(), "isolation.rate.burst");
    }
    assert!(Plan::derive(&rate(Profile::FairShare, 0, 0), &totals()).is_ok());
}

#[test]
fn all_errors_are_found_at_once() {
    let options = Options {
        handshake_timeout: Duration::ZERO,
        default_weight: 0,
        max_tracked_owners: 1,
        rate: RateOptions {
            per_second: 1,
            burst: 1,
        },
        stages: vec![
            stage(Stage::Handshake, |entry| entry.capacity = Some(100)),
            stage(Stage::RequestQueue, |entry| entry.owner_hard_limit = Some(0)),
        ],
        ..options(Profile::Balanced)
    };
    let few = Totals {
        channels: 5,
        ..totals()
    };
    let found = errors(&options, &few);
    for option in [
        "isolation.handshake-timeout",
        "isolation.default-weight",
        "isolation.max-tracked-owners",
        "isolation.rate.per-second",
        "isolation.rate.burst",
        "isolation.stage[Handshake].capacity",
        "isolation.stage[RequestQueue].owner-hard-limit",
        "limits.connections",
    ] {
        assert!(
            found.iter().any(|error| error.starts_with(option)),
            "{option}: {found:?}"
        );
    }
    assert_eq!(found.len(), 8, "{found:?}");
}
