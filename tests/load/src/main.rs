//! `backplane-load`: puts load on OPC UA servers and says what it costs them. `README.md` beside it tells how to use it.

mod ab;
mod cli;
mod client;
mod clock;
mod closed;
mod error;
mod histogram;
mod identity;
mod link;
mod machine;
mod process;
mod report;
mod requests;
#[cfg(test)]
mod responder;
mod run;
mod scenario;
mod server;
#[cfg(test)]
mod smoke;
mod subjects;
mod table;
mod transport;
mod verify;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command, Load, Scenario};
use crate::error::LoadError;
use crate::report::Row;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match &cli.command {
        Command::Ab(ab) => ab::run(ab),
        command => match command.scenario() {
            Some((scenario, load)) => measure(scenario, load),
            None => Ok(false),
        },
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs all rounds on all servers; false if anything went wrong in one of them.
fn measure(scenario: Scenario, load: &Load) -> Result<bool, LoadError> {
    let subjects = subjects::all(scenario, load)?;
    let mut rows: Vec<Row> = Vec::new();
    let mut good = true;
    for _ in 0..load.rounds {
        for subject in &subjects {
            match run::measure(scenario, load, subject) {
                Ok(measured) => {
                    for row in &measured {
                        good &= row.errors == 0;
                        if load.json {
                            println!("{}", row.json()?);
                        }
                    }
                    rows.extend(measured);
                }
                Err(error) => {
                    good = false;
                    eprintln!("error: {}: {error}", subject.name());
                }
            }
        }
    }
    if !load.json {
        print(&rows);
    }
    Ok(good)
}

/// One line for each server: the only run of it, or the median of all.
fn print(rows: &[Row]) {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.peer.as_str()) {
            names.push(&row.peer);
        }
    }
    let medians: Vec<Row> = names
        .iter()
        .filter_map(|name| {
            let of: Vec<Row> = rows.iter().filter(|row| row.peer == *name).cloned().collect();
            report::median(&of)
        })
        .collect();
    print!("{}", report::table(&medians));
    for row in &medians {
        if let Some(note) = &row.note {
            println!("{}: {note}", row.peer);
        }
        if row.errors > 0 {
            println!("{}: {} errors: {}", row.peer, row.errors, row.problems.join("; "));
        }
    }
}
