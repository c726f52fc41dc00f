//! `backplane-load`: puts load on OPC UA servers and says what it costs them. `README.md` beside it tells how to use it.

mod cli;
mod clock;
mod closed;
mod error;
mod histogram;
mod link;
mod machine;
mod process;
mod report;
mod requests;
#[cfg(test)]
mod responder;
mod run;
mod server;
#[cfg(test)]
mod smoke;
mod transport;
mod verify;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Load, Scenario};
use crate::error::{LoadError, setup};
use crate::report::Row;
use crate::run::Subject;
use crate::server::Launch;

/// What builds the product.
const BUILD_SERVER: &str = "cargo build --release -p backplane";
/// What builds the plugin.
const BUILD_PLUGIN: &str = "cargo build --profile guest --target wasm32-wasip2 -p backplane-load-plugin";
/// Where the plugin is built.
const PLUGIN: &str = "wasm32-wasip2/guest/backplane_load_plugin.wasm";

fn main() -> ExitCode {
    let cli = Cli::parse();
    let (scenario, load) = cli.command.scenario();
    match run(scenario, load) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs all rounds on all servers; false if anything went wrong in one of them.
fn run(scenario: Scenario, load: &Load) -> Result<bool, LoadError> {
    let subjects = subjects(load)?;
    let mut rows: Vec<Row> = Vec::new();
    let mut good = true;
    for _ in 0..load.rounds {
        for subject in &subjects {
            match run::measure(scenario, load, subject) {
                Ok(row) => {
                    good &= row.errors == 0;
                    if load.json {
                        println!("{}", json(&row)?);
                    }
                    rows.push(row);
                }
                Err(error) => {
                    good = false;
                    eprintln!("error: {}: {error}", subject.name());
                }
            }
        }
    }
    if !load.json {
        print!("{}", report::table(&rows));
        for row in rows.iter().filter(|row| row.errors > 0) {
            println!("{}: {} errors: {}", row.peer, row.errors, row.problems.join("; "));
        }
    }
    Ok(good)
}

fn json(row: &Row) -> Result<String, LoadError> {
    serde_json::to_string(row).map_err(|error| setup(error.to_string()))
}

/// The product first, then the peers.
fn subjects(load: &Load) -> Result<Vec<Subject>, LoadError> {
    let mut subjects = Vec::new();
    if let Some(url) = &load.url {
        subjects.push(Subject::Running {
            url: url.clone(),
            pid: load.pid,
        });
    } else if !load.peers_only {
        let binary = machine::find(load.server.as_deref(), "release/backplane", BUILD_SERVER)?;
        let plugin = machine::find(load.plugin.as_deref(), PLUGIN, BUILD_PLUGIN)?;
        let variables = load.variables;
        let settings = format!("[settings]\nvariables = {variables}\non_demand = {variables}\n");
        subjects.push(Subject::Started(Launch::product(&binary, &plugin, settings)));
    }
    for peer in &load.peers {
        subjects.push(Subject::Started(peer_launch(load, peer)?));
    }
    Ok(subjects)
}

fn peer_launch(load: &Load, name: &str) -> Result<Launch, LoadError> {
    let prefix = format!("{name}=");
    let command = load
        .peer_command
        .iter()
        .find_map(|command| command.strip_prefix(&prefix))
        .ok_or_else(|| setup(format!("how is {name} started? --peer-command {name}=COMMAND")))?;
    let nodes = load.variables.to_string();
    Ok(Launch {
        name: name.to_owned(),
        command: command
            .split_ascii_whitespace()
            .map(|word| word.replace("{nodes}", &nodes).into())
            .collect(),
        plugin: None,
    })
}
