//! One scenario on one server: start it, find its variables, open the sessions, run the loop, ask what it cost.
//!
//! Owns the order of these steps.

use std::time::Duration;

use backplane_types::{DataValue, NodeId, ReadRequest, TimestampsToReturn, ids};

use crate::cli::{Load, Pin, Scenario};
use crate::closed::{Client, Edge, Loop, Outcome};
use crate::error::{LoadError, setup};
use crate::link::{Link, Target};
use crate::machine;
use crate::process::Sample;
use crate::report::{Cost, Row};
use crate::requests::{Ask, prepare, value_of, window};
use crate::server::{Launch, Server};
use crate::transport::Prepared;
use crate::verify::{Verifier, strings};

/// The namespace of the variables on every server.
const NAMESPACE: &str = "urn:backplane:load";
/// How long a server may take until its variables are there.
const VARIABLES: Duration = Duration::from_secs(30);
/// Requests of one session that take turns, at least.
const TURNS: usize = 16;

/// A server to be measured.
#[derive(Clone, Debug)]
pub(crate) enum Subject {
    /// Started for the run.
    Started(Launch),
    /// Runs already.
    Running { url: String, pid: Option<u32> },
}

impl Subject {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Started(launch) => &launch.name,
            Self::Running { url, .. } => url,
        }
    }
}

/// A server while it is measured.
struct Running {
    server: Option<Server>,
    url: String,
    pid: Option<u32>,
}

impl Running {
    fn start(subject: &Subject, pin: &Pin) -> Result<Self, LoadError> {
        match subject {
            Subject::Running { url, pid } => Ok(Self {
                server: None,
                url: url.clone(),
                pid: *pid,
            }),
            Subject::Started(launch) => {
                let cpus = match pin {
                    Pin::Free => None,
                    Pin::To { server, .. } => Some(server.as_str()),
                };
                let server = Server::start(launch, cpus)?;
                Ok(Self {
                    url: server.url().to_owned(),
                    pid: Some(server.pid()),
                    server: Some(server),
                })
            }
        }
    }
}

/// Reads costs at the edges of the window.
struct Meter<'a> {
    running: &'a Running,
    server: Option<Sample>,
    client: Sample,
    allocations: Option<(u64, u64)>,
    cost: Cost,
}

impl<'a> Meter<'a> {
    fn new(running: &'a Running) -> Self {
        Self {
            running,
            server: None,
            client: Sample::default(),
            allocations: None,
            cost: Cost::default(),
        }
    }

    fn edge(&mut self, edge: Edge) {
        let allocations = || self.running.server.as_ref().and_then(Server::allocations);
        match edge {
            Edge::Begin => {
                self.allocations = allocations();
                self.server = self.running.pid.and_then(Sample::of);
                self.client = Sample::own().unwrap_or_default();
            }
            Edge::End => {
                let server = self.running.pid.and_then(Sample::of);
                let client = Sample::own().unwrap_or_default();
                let counted = allocations();
                self.cost = Cost {
                    server: server.zip(self.server).map(|(now, before)| now.since(&before)),
                    client: client.since(&self.client),
                    allocations: counted
                        .zip(self.allocations)
                        .map(|(now, before)| (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1))),
                };
            }
        }
    }
}

/// Measures `subject` once.
pub(crate) fn measure(scenario: Scenario, load: &Load, subject: &Subject) -> Result<Row, LoadError> {
    let (sessions, _, _) = load.shape(scenario);
    machine::allow_files(sessions)?;
    let pin = load.placing(machine::cores());
    let running = Running::start(subject, &pin)?;
    if let Pin::To { client, .. } = pin {
        machine::pin(client)?;
    }
    let measured = closed_loop(scenario, load, &running);
    match (measured, &running.server) {
        (Ok((outcome, cost)), _) => Ok(Row::new(scenario.name(), subject.name(), &outcome, &cost)),
        (Err(error), Some(server)) => Err(setup(format!(
            "{error}\nthe log of {}:\n{}",
            subject.name(),
            tail(&server.log())
        ))),
        (Err(error), None) => Err(error),
    }
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines
        .get(lines.len().saturating_sub(20)..)
        .unwrap_or_default()
        .join("\n")
}

fn closed_loop(scenario: Scenario, load: &Load, running: &Running) -> Result<(Outcome, Cost), LoadError> {
    let target = Target::discover(&running.url, load.policy, load.security.mode())?;
    let (sessions, in_flight, operations) = load.shape(scenario);
    let operations = to_usize(operations);
    let (ask, prefix) = match scenario {
        Scenario::O6read | Scenario::Read => (Ask::Read, "v"),
        Scenario::Write => (Ask::Write, "v"),
        Scenario::Ondemand => (Ask::Read, "d"),
        Scenario::Browse => (Ask::Browse, ""),
    };
    let variables = if prefix.is_empty() {
        Vec::new()
    } else {
        find_variables(&target, prefix, load.variables)?
    };
    // As many requests as it takes to get around all variables, but no more than are under way.
    let turns = to_usize(load.variables)
        .div_ceil(operations.max(1))
        .min(to_usize(in_flight).max(TURNS));
    let mut clients = Vec::new();
    for session in 0..to_usize(sessions) {
        let link = Link::with_session(&target)?;
        let requests: Vec<_> = (0..turns)
            .map(|turn| {
                let first = session
                    .saturating_mul(7)
                    .saturating_add(turn)
                    .saturating_mul(operations);
                let nodes = window(&variables, first, operations);
                let number = i32::try_from(session.saturating_add(turn)).unwrap_or(0);
                prepare(&ask, link.token(), &nodes, number)
            })
            .collect();
        let largest = requests.iter().map(Prepared::size).max().unwrap_or(0);
        clients.push(Client::new(
            link.into_transport(largest)?,
            requests,
            in_flight,
            load.one_by_one,
        ));
    }
    let mut meter = Meter::new(running);
    let outcome = Loop::new(clients, Verifier::new(ask, operations), target.clock)?.run(
        Duration::from_secs_f64(load.warmup),
        Duration::from_secs_f64(load.seconds),
        &mut |edge| meter.edge(edge),
    )?;
    Ok((outcome, meter.cost))
}

fn to_usize(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// The ids of `prefix`0, `prefix`1, ...; waits until the first of them has a good value.
pub(crate) fn find_variables(target: &Target, prefix: &str, count: u32) -> Result<Vec<NodeId>, LoadError> {
    let begun = target.clock.elapsed();
    let mut link = Link::with_session(target)?;
    loop {
        let namespaces = read(&mut link, &NodeId::numeric(0, ids::variable::SERVER_NAMESPACE_ARRAY))?;
        // A responder that has one answer for everything has no namespaces; any index will do for it.
        let index = match strings(&namespaces) {
            None => Some(1),
            Some(uris) => uris.iter().position(|uri| uri == NAMESPACE),
        };
        if let Some(index) = index.and_then(|index| u16::try_from(index).ok()) {
            let id = |number: u32| NodeId::string(index, format!("{prefix}{number}").as_str());
            let value = read(&mut link, &id(0))?;
            if !value.status().is_bad() {
                return Ok((0..count).map(id).collect());
            }
        }
        if target.clock.elapsed().saturating_sub(begun) > VARIABLES {
            return Err(setup(format!("the server has no variable {prefix}0 in {NAMESPACE}")));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn read(link: &mut Link, node: &NodeId) -> Result<DataValue, LoadError> {
    let request = ReadRequest {
        timestamps_to_return: TimestampsToReturn::NEITHER,
        nodes_to_read: vec![value_of(node)],
        ..ReadRequest::default()
    };
    let response = link.call("Read", request)?;
    response
        .results
        .into_iter()
        .next()
        .ok_or(LoadError::Response("without a result"))
}
