//! flood: one owner sends one request at a time, and then again while another owner floods the server.
//!
//! With the product the flood comes from the user `user1` and the other is anonymous, so that they are different owners.

use std::time::Duration;

use super::requests::Asking;
use super::to_usize;
use super::variables::Variables;
use crate::closed::{Edge, Loop, Outcome};
use crate::error::LoadError;
use crate::link::Target;
use crate::report::{Cost, Row};
use crate::requests::Ask;
use crate::run::{Meter, Run};
use crate::verify::Verifier;

pub(crate) fn run(run: &Run<'_>) -> Result<Vec<Row>, LoadError> {
    let load = run.load;
    let variables = Variables::find(&run.target, "v", load.variables)?;
    let (sessions, in_flight, operations) = load.shape(run.scenario);
    let flooding = Target {
        user: run.is_product.then(|| ("user1".to_owned(), "password1".to_owned())),
        ..run.target.clone()
    };
    let asking = Asking {
        ask: Ask::Read,
        variables: Some(&variables),
        operations: to_usize(operations),
        in_flight,
        one_by_one: load.one_by_one,
    };
    let single = Asking { in_flight: 1, ..asking };
    let verifier = Verifier::new(Ask::Read, to_usize(operations));
    let clock = run.target.clock;
    let warm_up = Duration::from_secs_f64(load.warmup);
    let window = Duration::from_secs_f64(load.seconds);

    let mut meter = Meter::new(run);
    let lone = vec![single.client(&run.target, 0)?];
    let (idle, _) = Loop::new(lone, verifier.clone(), clock)?.run(warm_up, window, &mut |edge| meter.edge(edge))?;
    let mut rows = vec![named(run, "alone", &idle, &meter.cost)];

    let mut clients = Vec::new();
    for session in 0..to_usize(sessions) {
        clients.push(asking.client(&flooding, session)?);
    }
    let other = single.client(&run.target, 0)?;
    let mut meter = Meter::new(run);
    let mut on_edge = |edge: Edge| meter.edge(edge);
    let (flood, other) = Loop::new(clients, verifier, clock)?
        .beside(other)?
        .run(warm_up, window, &mut on_edge)?;
    rows.push(named(run, "flooded", &other, &Cost::default()));
    rows.push(named(run, "flood", &flood, &meter.cost));
    Ok(rows)
}

fn named(run: &Run<'_>, part: &str, outcome: &Outcome, cost: &Cost) -> Row {
    let mut row = run.row(outcome, cost);
    row.peer = format!("{} {part}", run.name);
    row
}
