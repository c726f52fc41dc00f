//! o6read, read, write, browse and ondemand: one closed loop over all sessions.

use std::time::Duration;

use super::to_usize;
use super::variables::Variables;
use crate::cli::Scenario;
use crate::client::Client;
use crate::closed::Loop;
use crate::error::LoadError;
use crate::link::{Link, Target};
use crate::report::Row;
use crate::requests::{Ask, prepare, window};
use crate::run::{Meter, Run};
use crate::transport::Prepared;
use crate::verify::Verifier;

/// Requests of one session that take turns, at least.
const TURNS: usize = 16;

pub(crate) fn run(run: &Run<'_>) -> Result<Vec<Row>, LoadError> {
    let (ask, prefix) = match run.scenario {
        Scenario::Write if run.load.through_plugin => (Ask::Write, "w"),
        Scenario::Write => (Ask::Write, "v"),
        Scenario::Ondemand => (Ask::Read, "d"),
        Scenario::Browse => (Ask::Browse, ""),
        _ => (Ask::Read, "v"),
    };
    let variables = match prefix {
        "" => None,
        prefix => Some(Variables::find(&run.target, prefix, run.load.variables)?),
    };
    let (sessions, in_flight, operations) = run.load.shape(run.scenario);
    let mut clients = Vec::new();
    for session in 0..to_usize(sessions) {
        let asking = Asking {
            ask,
            variables: variables.as_ref(),
            operations: to_usize(operations),
            in_flight,
            one_by_one: run.load.one_by_one,
        };
        clients.push(asking.client(&run.target, session)?);
    }
    let mut meter = Meter::new(run);
    let verifier = Verifier::new(ask, to_usize(operations));
    let (outcome, _) = Loop::new(clients, verifier, run.target.clock)?.run(
        Duration::from_secs_f64(run.load.warmup),
        Duration::from_secs_f64(run.load.seconds),
        &mut |edge| meter.edge(edge),
    )?;
    Ok(vec![run.row(&outcome, &meter.cost)])
}

/// What one client of a closed loop asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking<'a> {
    pub(crate) ask: Ask,
    pub(crate) variables: Option<&'a Variables>,
    pub(crate) operations: usize,
    pub(crate) in_flight: u32,
    pub(crate) one_by_one: bool,
}

impl Asking<'_> {
    /// Opens session number `session`, which begins with other variables than the one before.
    pub(crate) fn client(&self, target: &Target, session: usize) -> Result<Client, LoadError> {
        let link = Link::with_session(target)?;
        let all = self.variables.map_or(&[][..], |variables| &variables.ids);
        // As many requests as it takes to get around all variables, but no more than are under way.
        let turns = all
            .len()
            .div_ceil(self.operations.max(1))
            .clamp(1, to_usize(self.in_flight).max(TURNS));
        let requests: Vec<_> = (0..turns)
            .map(|turn| {
                let first = session.saturating_mul(7).saturating_add(turn);
                let nodes = window(all, first.saturating_mul(self.operations), self.operations);
                let number = i32::try_from(first).unwrap_or(0);
                let value = self.variables.map(|variables| variables.value(number));
                prepare(self.ask, link.token(), &nodes, &value.unwrap_or_default())
            })
            .collect();
        let largest = requests.iter().map(Prepared::size).max().unwrap_or(0);
        Ok(Client::new(
            link.into_transport(largest)?,
            requests,
            self.in_flight,
            self.one_by_one,
        ))
    }
}
