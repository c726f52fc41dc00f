//! Totals, formulas, and the division that follows from them.

use std::time::Duration;

use backplane_queue::isolation::{
    Class, Options, Plan, Profile, RateOptions, Reason, Stage, Totals, TrustedOwner, Unit,
};

use crate::support::{errors, only_error, options, plan, stage, totals, with_stage};

const MIB: u64 = 1 << 20;

fn sized(message_size: u64) -> Totals {
    Totals {
        message_size,
        ..Totals::default()
    }
}

#[test]
fn names_are_read_back_and_others_refused() {
    for profile in Profile::ALL {
        assert_eq!(profile.to_string().parse::<Profile>(), Ok(profile));
    }
    for (index, stage) in Stage::ALL.into_iter().enumerate() {
        assert_eq!(stage.to_string().parse::<Stage>(), Ok(stage));
        assert_eq!(stage.index(), index);
    }
    for (index, class) in Class::ALL.into_iter().enumerate() {
        assert_eq!(class.to_string().parse::<Class>(), Ok(class));
        assert_eq!(class.index(), index);
    }
    for (index, reason) in Reason::ALL.into_iter().enumerate() {
        assert_eq!(reason.to_string().parse::<Reason>(), Ok(reason));
        assert_eq!(reason.index(), index);
    }
    let unknown = "balanced".parse::<Profile>().unwrap_err().to_string();
    assert_eq!(
        unknown,
        "not one of SharedOnly, FairShare, Balanced, TrustedReservations"
    );
    assert_eq!(Stage::RequestQueueBytes.unit(), Unit::Bytes);
    assert_eq!(Stage::ParkedRequest.unit(), Unit::Slots);
}

#[test]
fn defaults_are_the_documented_ones() {
    let options = Options::default();
    assert_eq!(options.profile, Profile::Balanced);
    assert_eq!(options.max_tracked_owners, 4096);
    assert_eq!(options.max_owner_key_length, 256);
    assert_eq!(options.default_weight, 1);
    assert_eq!(options.handshake_timeout, Duration::from_secs(120));
    let (per_second, burst) = (500, 1000);
    assert_eq!(options.rate, RateOptions { per_second, burst });
    assert!(Plan::derive(&options, &Totals::default()).is_ok());
}

#[test]
fn totals_follow_from_the_servers_limits() {
    let totals = Totals {
        cpus: 32,
        ..Totals::default()
    };
    let of = |stage| totals.of(stage).unwrap();
    assert_eq!(of(Stage::Connection), 1000);
    assert_eq!(of(Stage::Handshake), 1000);
    assert_eq!(of(Stage::ReassemblyBytes), 64 * MIB);
    assert_eq!(of(Stage::SessionEstablishment), 256);
    assert_eq!(of(Stage::RequestQueue), 200);
    assert_eq!(of(Stage::RequestExecution), 100);
    assert_eq!(of(Stage::RequestQueueBytes), (2 * 200 + 100) * 4 * MIB);
    assert_eq!(of(Stage::ParkedRequest), 200);
}

#[test]
fn totals_have_their_minimum() {
    let totals = Totals {
        queued_requests: 1,
        threads: (1, 2),
        cpus: 2,
        ..Totals::default()
    };
    assert_eq!(totals.of(Stage::RequestQueue), Some(100));
    assert_eq!(totals.of(Stage::RequestExecution), Some(100));
    assert_eq!(totals.of(Stage::SessionEstablishment), Some(128));
    let totals = Totals {
        threads: (300, 200),
        session_establishment: 7,
        ..totals
    };
    assert_eq!(totals.of(Stage::RequestExecution), Some(300));
    assert_eq!(totals.of(Stage::SessionEstablishment), Some(7));
}

#[test]
fn chunk_budget_is_sixteen_messages_within_bounds_and_always_four() {
    let budget = |message_size| sized(message_size).default_chunk_budget() / MIB;
    assert_eq!(budget(2 * MIB), 64);
    assert_eq!(budget(4 * MIB), 64);
    assert_eq!(budget(8 * MIB), 128);
    assert_eq!(budget(100 * MIB), 1024);
    assert_eq!(budget(512 * MIB), 2048);
    assert_eq!(budget(0), 1024);
    assert_eq!(sized(u64::MAX).default_chunk_budget(), u64::MAX);
}

#[test]
fn footprint_is_four_messages_with_a_bounded_buffer() {
    assert_eq!(sized(4 * MIB).footprint(), Some(17_039_360));
    let footprint = |buffer_size| {
        let totals = Totals {
            buffer_size,
            ..sized(1000)
        };
        totals.footprint().unwrap()
    };
    assert_eq!(footprint(1), 4 * (1000 + 8192));
    assert_eq!(footprint(10_000), 4 * (1000 + 10_000));
    assert_eq!(footprint(1_000_000), 4 * (1000 + 147_456));
    assert_eq!(sized(u64::MAX).footprint(), None);
}

#[test]
fn configured_footprint_replaces_the_formula() {
    let options = Options {
        max_retained_message_bytes: Some(5000),
        ..options(Profile::Balanced)
    };
    let plan = plan(&options);
    assert_eq!(plan.footprint(), 5000);
    assert_eq!(plan.stage(Stage::ReassemblyBytes).bootstrap, 5000);
    let zero = Options {
        max_retained_message_bytes: Some(0),
        ..options
    };
    let error = only_error(&zero, &totals(), "isolation.max-retained-message-bytes");
    assert!(error.contains("at least 1:"), "{error}");
}

#[test]
fn balanced_floors_are_one_unit_and_control_only_where_requests_are() {
    let plan = plan(&options(Profile::Balanced));
    for stage in Stage::ALL {
        let part = plan.stage(stage);
        assert_eq!((part.bootstrap, part.reconnect), (part.unit, part.unit), "{stage}");
        let control = if stage >= Stage::RequestQueue { part.unit } else { 0 };
        assert_eq!((part.control, part.trusted), (control, 0), "{stage}");
        assert_eq!(part.shared, part.capacity - 2 * part.unit - control, "{stage}");
        assert_eq!(part.hard_limit, part.capacity, "{stage}");
    }
    assert_eq!(plan.stage(Stage::ReassemblyBytes).unit, 4 * (1000 + 8192));
    assert_eq!(plan.stage(Stage::RequestQueueBytes).unit, 1000);
}

#[test]
fn fair_share_has_no_floors() {
    let plan = plan(&options(Profile::FairShare));
    for stage in Stage::ALL {
        let part = plan.stage(stage);
        assert_eq!(part.shared, part.capacity, "{stage}");
    }
}

#[test]
fn trusted_floors_default_to_one_unit_in_every_stage() {
    let plan = plan(&options(Profile::TrustedReservations));
    for stage in Stage::ALL {
        let part = plan.stage(stage);
        assert_eq!(part.trusted, part.unit, "{stage}");
        assert_eq!(plan.trusted()[0].floors[stage.index()], part.unit, "{stage}");
        assert_eq!(plan.trusted()[0].hard_limits[stage.index()], part.capacity, "{stage}");
    }
}

#[test]
fn one_hundred_sessions_need_103_channels_in_balanced() {
    let channels = |channels| Totals {
        channels,
        sessions: 100,
        ..totals()
    };
    let balanced = options(Profile::Balanced);
    for few in [101, 102] {
        let error = only_error(&balanced, &channels(few), "limits.connections");
        assert!(error.contains("at least 103:"), "{error}");
    }
    assert!(Plan::derive(&balanced, &channels(103)).is_ok());
}

#[test]
fn two_sessions_need_5_or_3_or_6_channels() {
    for (profile, least) in [
        (Profile::Balanced, 5),
        (Profile::FairShare, 3),
        (Profile::TrustedReservations, 6),
    ] {
        let channels = |channels| Totals {
            channels,
            sessions: 2,
            ..totals()
        };
        let error = only_error(&options(profile), &channels(least - 1), "limits.connections");
        assert!(error.contains(&format!("at least {least}:")), "{error}");
        assert!(Plan::derive(&options(profile), &channels(least)).is_ok(), "{profile}");
    }
}

#[test]
fn every_further_trusted_owner_needs_one_more_channel() {
    let mut three = options(Profile::TrustedReservations);
    three.trusted_owners.push(TrustedOwner::new("second"));
    three.trusted_owners.push(TrustedOwner::new("third"));
    let channels = |channels| Totals {
        channels,
        sessions: 2,
        ..totals()
    };
    only_error(&three, &channels(7), "limits.connections");
    assert!(Plan::derive(&three, &channels(8)).is_ok());
}

#[test]
fn zero_switches_a_floor_off() {
    let plan = plan(&with_stage(
        Profile::Balanced,
        stage(Stage::Connection, |entry| entry.bootstrap_reserved = Some(0)),
    ));
    let part = plan.stage(Stage::Connection);
    assert_eq!((part.bootstrap, part.reconnect, part.shared), (0, 1, 19));
    let options = with_stage(
        Profile::Balanced,
        stage(Stage::Connection, |entry| {
            entry.bootstrap_reserved = Some(0);
            entry.reconnect_reserved = Some(0);
        }),
    );
    let three = Totals {
        channels: 3,
        sessions: 2,
        ..totals()
    };
    assert!(Plan::derive(&options, &three).is_ok());
}

#[test]
fn zero_switches_a_byte_floor_off_that_the_top_level_sets() {
    let options = Options {
        bootstrap_reserved_bytes: Some(100_000),
        stages: vec![stage(Stage::ReassemblyBytes, |entry| {
            entry.bootstrap_reserved = Some(0)
        })],
        ..options(Profile::Balanced)
    };
    let part = *plan(&options).stage(Stage::ReassemblyBytes);
    assert_eq!((part.bootstrap, part.reconnect), (0, part.unit));
}

#[test]
fn handshakes_are_looked_at_twice_within_their_timeout() {
    let period = |timeout| {
        let options = Options {
            handshake_timeout: timeout,
            ..options(Profile::FairShare)
        };
        plan(&options).handshake_check_period()
    };
    assert_eq!(period(Duration::from_secs(120)), Duration::from_secs(1));
    assert_eq!(period(Duration::from_millis(500)), Duration::from_millis(250));
    assert_eq!(period(Duration::from_micros(10)), Duration::from_millis(1));
}

#[test]
fn shared_only_accepts_unlimited_totals() {
    let zero = Totals {
        channels: 0,
        sessions: 0,
        message_size: 0,
        buffer_size: 0,
        ..totals()
    };
    let plan = Plan::derive(&options(Profile::SharedOnly), &zero).unwrap();
    for stage in Stage::ALL {
        assert_eq!(plan.stage(stage).capacity, u64::MAX);
    }
    assert_eq!(plan.lines(), ["isolation SharedOnly: no stage is limited or divided"]);
}

#[test]
fn lines_give_all_numbers_and_no_name() {
    let lines = plan(&options(Profile::TrustedReservations)).lines();
    assert_eq!(lines.len(), Stage::COUNT);
    assert_eq!(
        lines[Stage::RequestQueue.index()],
        "isolation TrustedReservations: RequestQueue capacity 200 shared 196 bootstrap 1 reconnect 1 control 1 trusted 1 \
         owner-hard-limit 200"
    );
    assert!(lines.iter().all(|line| !line.contains("plant")), "{lines:?}");
}

#[test]
fn no_text_shows_a_key() {
    let mut twice = options(Profile::TrustedReservations);
    twice.trusted_owners.push(TrustedOwner::new("plant"));
    assert!(!errors(&twice, &totals()).concat().contains("plant"));
    let options = options(Profile::TrustedReservations);
    assert!(!format!("{options:?}").contains("plant"));
    assert!(!format!("{:?}", plan(&options)).contains("plant"));
}
