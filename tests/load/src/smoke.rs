//! Whole runs against a responder in this process: what is good is counted, what is not is an error.

use clap::Parser;

use crate::cli::Cli;
use crate::report::Row;
use crate::responder::{Misdeeds, serve};
use crate::run::{Subject, measure};

fn run(misdeeds: Misdeeds, arguments: &[&str]) -> Row {
    rows(misdeeds, arguments).remove(0)
}

fn rows(misdeeds: Misdeeds, arguments: &[&str]) -> Vec<Row> {
    let common = ["--seconds", "0.2", "--warmup", "0.05", "--pin", "none"];
    let all = ["backplane-load"].iter().chain(arguments).chain(&common);
    let cli = Cli::try_parse_from(all).unwrap();
    let (scenario, load) = cli.command.scenario().unwrap();
    let subject = Subject::Running {
        url: serve(misdeeds),
        pid: Some(std::process::id()),
    };
    measure(scenario, load, &subject).unwrap()
}

#[test]
fn every_loop_counts_good_responses() {
    for arguments in [
        &["o6read", "--sessions", "3", "--inflight", "20"][..],
        &["o6read", "--sessions", "1", "--inflight", "1"],
        &["o6read", "--sessions", "2", "--inflight", "5", "--one-by-one"],
        &["o6read", "--sessions", "2", "--inflight", "5", "--security", "sign"],
        &["o6read", "--sessions", "2", "--inflight", "5", "--security", "encrypt"],
        &["read", "--sessions", "2", "--nodes", "100"],
        // Answers of more than one chunk.
        &["read", "--sessions", "1", "--inflight", "2", "--nodes", "6000"],
        &["write", "--sessions", "2", "--nodes", "10"],
        &["browse", "--sessions", "2"],
        &["ondemand", "--sessions", "1", "--inflight", "4"],
    ] {
        let row = run(Misdeeds::default(), arguments);
        assert_eq!(row.errors, 0, "{arguments:?}: {row:?}");
        assert!(
            row.requests > 0 && row.p50_us > 0.0 && row.p50_us <= row.max_us,
            "{arguments:?}: {row:?}"
        );
        assert!(row.server_us_per_request.is_some(), "{row:?}");
    }
}

#[test]
fn a_bad_value_is_an_error() {
    // The set-up reads twice on a connection of its own.
    let misdeeds = Misdeeds {
        bad_value_at: Some(7),
        ..Misdeeds::default()
    };
    let row = run(misdeeds, &["o6read", "--sessions", "2", "--inflight", "3"]);
    assert_eq!(row.errors, 2, "{row:?}");
    assert!(row.problems[0].contains("BadNoCommunication"), "{row:?}");
}

#[test]
fn a_closed_connection_is_an_error_for_all_its_requests() {
    let misdeeds = Misdeeds {
        close_at: Some(9),
        ..Misdeeds::default()
    };
    let row = run(misdeeds, &["o6read", "--sessions", "1", "--inflight", "4"]);
    assert!((1..=4).contains(&row.errors), "{row:?}");
    assert!(row.problems[0].contains("connection"), "{row:?}");
}

#[test]
fn a_request_without_an_answer_is_an_error() {
    let misdeeds = Misdeeds {
        silent_at: Some(9),
        ..Misdeeds::default()
    };
    let row = run(misdeeds, &["o6read", "--sessions", "1", "--inflight", "4"]);
    assert_eq!(row.errors, 1, "{row:?}");
    assert!(row.requests > 0 && row.problems[0].contains("no response"), "{row:?}");
}

#[test]
fn notifications_are_told_from_the_write_they_come_from() {
    let arguments = [
        "sub",
        "--sessions",
        "2",
        "--subs",
        "1",
        "--items",
        "7",
        "--write-every",
        "10",
    ];
    let row = run(Misdeeds::default(), &arguments);
    assert_eq!(row.errors, 0, "{row:?}");
    assert!(row.requests > 0 && row.p50_us > 0.0, "{row:?}");
    assert!(row.expected_per_s.is_some() && row.note.is_some(), "{row:?}");
}

#[test]
fn counters_pass_when_they_count_and_fail_when_they_do_not() {
    // The counters of the responder count ms, so an item that should be sampled every 10 ms gets ten times its due.
    let arguments = [
        "counters",
        "--on-demand",
        "--items",
        "5",
        "--sampling",
        "10",
        "--publishing",
        "10",
    ];
    let row = run(Misdeeds::default(), &arguments);
    assert_eq!(row.errors, 0, "{row:?}");
    assert!(row.note.is_some_and(|note| note.starts_with("PASS: 5 items")));
    let stuck = Misdeeds {
        stuck: true,
        ..Misdeeds::default()
    };
    let row = run(stuck, &arguments);
    // Five items, and the counters as they are read.
    assert_eq!(row.errors, 6, "{row:?}");
    assert!(row.note.is_some_and(|note| note.starts_with("FAIL")));
}

#[test]
fn idle_sessions_are_still_there_afterwards() {
    let row = run(Misdeeds::default(), &["idle", "--sessions", "5"]);
    assert_eq!((row.errors, row.requests), (0, 5), "{row:?}");
    assert!(row.rss_per_session_kib.is_some(), "{row:?}");
    // The 1st Read of every session, which comes after the window, closes its connection.
    let misdeeds = Misdeeds {
        close_at: Some(1),
        ..Misdeeds::default()
    };
    let row = run(misdeeds, &["idle", "--sessions", "5"]);
    assert_eq!(row.errors, 6, "{row:?}");
}

#[test]
fn a_flood_is_measured_beside_the_one_it_hurts() {
    let rows = rows(Misdeeds::default(), &["flood", "--sessions", "2", "--inflight", "50"]);
    let parts: Vec<&str> = rows.iter().filter_map(|row| row.peer.rsplit(' ').next()).collect();
    assert_eq!(parts, ["alone", "flooded", "flood"]);
    for row in &rows {
        assert!(row.requests > 0 && row.errors == 0, "{row:?}");
    }
}
