//! The scenarios. Each sets its sessions up, puts its load on, and returns rows of the report.

mod counters;
mod flood;
mod idle;
mod requests;
mod sub;
mod subscriber;
mod variables;

use crate::cli::Scenario;
use crate::error::LoadError;
use crate::report::Row;
use crate::run::Run;

/// Runs the scenario that `run` names.
pub(crate) fn run(run: &Run<'_>) -> Result<Vec<Row>, LoadError> {
    match run.scenario {
        Scenario::O6read | Scenario::Read | Scenario::Write | Scenario::Browse | Scenario::Ondemand => {
            requests::run(run)
        }
        Scenario::Sub => sub::run(run),
        Scenario::Changes => sub::changes(run),
        Scenario::Items => sub::items(run),
        Scenario::Latency => sub::latency(run),
        Scenario::Counters | Scenario::O6counters => counters::run(run),
        Scenario::Idle => idle::run(run),
        Scenario::Flood => flood::run(run),
    }
}

/// A count as an index; every count on the command line is far below the largest.
fn to_usize(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
