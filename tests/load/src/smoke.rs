//! Whole runs against a responder in this process: what is good is counted, what is not is an error.

use clap::Parser;

use crate::cli::Cli;
use crate::report::Row;
use crate::responder::{Misdeeds, serve};
use crate::run::{Subject, measure};

fn run(misdeeds: Misdeeds, arguments: &[&str]) -> Row {
    let common = ["--seconds", "0.2", "--warmup", "0.05", "--pin", "none"];
    let all = ["backplane-load"].iter().chain(arguments).chain(&common);
    let cli = Cli::try_parse_from(all).unwrap();
    let (scenario, load) = cli.command.scenario().unwrap();
    let subject = Subject::Running {
        url: serve(misdeeds),
        pid: Some(std::process::id()),
    };
    measure(scenario, load, &subject).unwrap().remove(0)
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
