//! Two builds of the product against each other: rounds in turn, the one that starts changes each round, medians.
//!
//! Owns the order of the runs and the comparison.

use std::path::Path;

use clap::Parser;

use crate::cli::{Ab, Cli, Load, Scenario};
use crate::error::{LoadError, setup};
use crate::report::{Row, median};
use crate::table::{aligned, brief, thousands};
use crate::{run, subjects};

/// A figure that is compared: its name, and where it stands.
type Figure = (&'static str, fn(&Row) -> Option<f64>);

const FIGURES: [Figure; 8] = [
    ("requests/s", |row| Some(row.requests_per_s)),
    ("server us/req", |row| row.server_us_per_request),
    ("client us/req", |row| Some(row.client_us_per_request)),
    ("p50 us", |row| Some(row.p50_us)),
    ("p99 us", |row| Some(row.p99_us)),
    ("allocations/req", |row| row.allocations_per_request),
    ("allocated bytes/req", |row| row.allocated_bytes_per_request),
    ("RSS KiB/session", |row| row.rss_per_session_kib),
];

/// Runs the comparison; false if there were errors.
pub(crate) fn run(ab: &Ab) -> Result<bool, LoadError> {
    let mut good = true;
    let mut table = Vec::new();
    for text in ab.scenarios.split(';').map(str::trim).filter(|text| !text.is_empty()) {
        let (scenario, load) = parse(ab, text)?;
        let (baseline, candidate) = rounds(ab, scenario, &load)?;
        good &= baseline.iter().chain(&candidate).all(|row| row.errors == 0);
        table.extend(compare(text, &baseline, &candidate));
    }
    if !ab.json {
        let header = ["scenario", "figure", "baseline -> candidate", "ratio"].map(str::to_owned);
        print!("{}", aligned(&header, &table));
    }
    Ok(good)
}

/// A scenario and its switches, as they would stand on a command line of their own.
fn parse(ab: &Ab, text: &str) -> Result<(Scenario, Load), LoadError> {
    let mut words = vec!["backplane-load".to_owned()];
    words.extend(text.split_ascii_whitespace().map(str::to_owned));
    let has = |switch: &str| text.split_ascii_whitespace().any(|word| word.starts_with(switch));
    for (switch, value) in [("--seconds", ab.seconds), ("--warmup", ab.warmup)] {
        if !has(switch) {
            words.extend([switch.to_owned(), value.to_string()]);
        }
    }
    let cli = Cli::try_parse_from(words).map_err(|error| setup(format!("{text:?}: {error}")))?;
    let (scenario, load) = cli
        .command
        .scenario()
        .ok_or_else(|| setup(format!("{text:?} is no scenario")))?;
    let plugin = load.plugin.clone().or_else(|| ab.plugin.clone());
    Ok((scenario, Load { plugin, ..load.clone() }))
}

/// All runs of both builds.
fn rounds(ab: &Ab, scenario: Scenario, load: &Load) -> Result<(Vec<Row>, Vec<Row>), LoadError> {
    let (mut baseline, mut candidate) = (Vec::new(), Vec::new());
    for round in 0..ab.rounds {
        let first_is_baseline = round % 2 == 0;
        for is_baseline in [first_is_baseline, !first_is_baseline] {
            let (name, binary, rows): (_, &Path, _) = if is_baseline {
                ("baseline", &ab.baseline, &mut baseline)
            } else {
                ("candidate", &ab.candidate, &mut candidate)
            };
            let subject = subjects::product(scenario, load, name, binary)?;
            for row in run::measure(scenario, load, &subject)? {
                if ab.json {
                    println!("{}", row.json()?);
                }
                if row.errors > 0 {
                    eprintln!("{}: {} errors: {}", row.peer, row.errors, row.problems.join("; "));
                }
                rows.push(row);
            }
        }
    }
    Ok((baseline, candidate))
}

/// Lines of the table. A scenario with several rows (flood) is compared row by row.
fn compare(text: &str, baseline: &[Row], candidate: &[Row]) -> Vec<Vec<String>> {
    let part = |row: &Row| {
        row.peer
            .split_once(' ')
            .map(|(_, part)| part.to_owned())
            .unwrap_or_default()
    };
    let mut parts: Vec<String> = baseline.iter().map(part).collect();
    parts.dedup();
    parts.sort();
    parts.dedup();
    let mut lines = Vec::new();
    for wanted in parts {
        let of = |rows: &[Row]| {
            let rows: Vec<Row> = rows.iter().filter(|row| part(row) == wanted).cloned().collect();
            median(&rows)
        };
        let (Some(before), Some(after)) = (of(baseline), of(candidate)) else {
            continue;
        };
        for (name, figure) in FIGURES {
            let (Some(old), Some(new)) = (figure(&before), figure(&after)) else {
                continue;
            };
            let show = |value: f64| {
                if value < 1_000.0 {
                    brief(value)
                } else {
                    thousands(value)
                }
            };
            let ratio = if old > 0.0 {
                format!("{:.3}", new / old)
            } else {
                "-".to_owned()
            };
            lines.push(vec![
                format!("{text} {wanted}").trim_end().to_owned(),
                name.to_owned(),
                format!("{} -> {}", show(old), show(new)),
                ratio,
            ]);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{compare, parse};
    use crate::cli::{Cli, Command, Scenario};
    use crate::report::Row;

    #[test]
    fn scenarios_have_switches_of_their_own() {
        let cli = Cli::try_parse_from([
            "backplane-load",
            "ab",
            "--baseline",
            "a",
            "--candidate",
            "b",
            "--warmup",
            "1",
        ]);
        let Command::Ab(ab) = cli.unwrap().command else {
            panic!("not ab");
        };
        let (scenario, load) = parse(&ab, "o6read --inflight 1000 --seconds 3").unwrap();
        assert_eq!((scenario, load.inflight), (Scenario::O6read, Some(1_000)));
        assert_eq!((load.seconds, load.warmup), (3.0, 1.0));
        assert!(parse(&ab, "tea").is_err());
        assert!(parse(&ab, "ab --baseline a --candidate b").is_err());
    }

    #[test]
    fn medians_are_compared_part_by_part() {
        let row = |peer: &str, requests_per_s| Row {
            peer: peer.to_owned(),
            requests_per_s,
            ..Row::default()
        };
        let baseline = [
            row("baseline alone", 100.0),
            row("baseline flooded", 10.0),
            row("baseline alone", 300.0),
        ];
        let candidate = [row("candidate alone", 400.0), row("candidate flooded", 5.0)];
        let lines = compare("flood", &baseline, &candidate);
        let rates: Vec<_> = lines.iter().filter(|line| line[1] == "requests/s").collect();
        assert_eq!(rates[0][..], ["flood alone", "requests/s", "200 -> 400", "2.000"]);
        assert_eq!(rates[1][..], ["flood flooded", "requests/s", "10.0 -> 5.00", "0.500"]);
        assert!(lines.iter().all(|line| line[1] != "server us/req"));
    }
}
