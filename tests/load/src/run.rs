//! One scenario on one server: start it, let the scenario run, say what it cost.
//!
//! Owns the life of the server during a run, and the reading of costs at the edges of the window.

use crate::cli::{Load, Pin, Scenario};
use crate::closed::Edge;
use crate::error::{LoadError, setup};
use crate::link::Target;
use crate::machine;
use crate::process::Sample;
use crate::report::{Cost, Row};
use crate::scenario;
use crate::server::{Launch, Server};

/// Lines of a server's log that an error shows.
const LOG_LINES: usize = 20;

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

    /// Whether it is the product in its demonstration configuration.
    fn is_product(&self) -> bool {
        matches!(self, Self::Started(launch) if launch.product.is_some())
    }
}

/// A server while it is measured, and what is wanted of it.
pub(crate) struct Run<'a> {
    pub(crate) scenario: Scenario,
    pub(crate) load: &'a Load,
    pub(crate) name: &'a str,
    pub(crate) is_product: bool,
    pub(crate) target: Target,
    pid: Option<u32>,
    server: Option<Server>,
}

/// Measures `subject` once.
pub(crate) fn measure(scenario: Scenario, load: &Load, subject: &Subject) -> Result<Vec<Row>, LoadError> {
    let (sessions, _, _) = load.shape(scenario);
    machine::allow_files(sessions)?;
    let pin = load.placing(machine::cores());
    let (server, url, pid) = match subject {
        Subject::Running { url, pid } => (None, url.clone(), *pid),
        Subject::Started(launch) => {
            let cpus = match &pin {
                Pin::Free => None,
                Pin::To { server, .. } => Some(server.as_str()),
            };
            let server = Server::start(launch, cpus)?;
            let (url, pid) = (server.url().to_owned(), server.pid());
            (Some(server), url, Some(pid))
        }
    };
    // A thread of its own is pinned; the next server is not started from it.
    let driven = std::thread::scope(|scope| {
        let driver = scope.spawn(move || {
            if let Pin::To { client, .. } = pin {
                machine::pin(client)?;
            }
            let run = Run {
                scenario,
                load,
                name: subject.name(),
                is_product: subject.is_product(),
                target: Target::discover(&url, load.policy, load.security.mode())?,
                pid,
                server,
            };
            scenario::run(&run).map_err(|error| run.with_log(error))
        });
        driver.join()
    });
    driven.unwrap_or_else(|_| Err(setup("the driver failed, which is a mistake in this program")))
}

impl Run<'_> {
    /// The server's state now.
    pub(crate) fn sample(&self) -> Option<Sample> {
        self.pid.and_then(Sample::of)
    }

    /// A row of the report.
    pub(crate) fn row(&self, outcome: &crate::closed::Outcome, cost: &Cost) -> Row {
        Row::new(self.scenario.name(), self.name, outcome, cost)
    }

    fn with_log(&self, error: LoadError) -> LoadError {
        let Some(server) = &self.server else { return error };
        let log = server.log();
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines.get(lines.len().saturating_sub(LOG_LINES)..).unwrap_or_default();
        setup(format!("{error}\nthe end of its log:\n{}", tail.join("\n")))
    }
}

/// Reads costs at the edges of the window.
pub(crate) struct Meter<'a> {
    run: &'a Run<'a>,
    server: Option<Sample>,
    client: Sample,
    allocations: Option<(u64, u64)>,
    /// From one edge to the other, once both were met.
    pub(crate) cost: Cost,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(run: &'a Run<'a>) -> Self {
        Self {
            run,
            server: None,
            client: Sample::default(),
            allocations: None,
            cost: Cost::default(),
        }
    }

    pub(crate) fn edge(&mut self, edge: Edge) {
        let allocations = || self.run.server.as_ref().and_then(Server::allocations);
        match edge {
            Edge::Begin => {
                self.allocations = allocations();
                self.server = self.run.sample();
                self.client = Sample::own().unwrap_or_default();
            }
            Edge::End => {
                let server = self.run.sample();
                let client = Sample::own().unwrap_or_default();
                self.cost = Cost {
                    server: server.zip(self.server).map(|(now, before)| now.since(&before)),
                    client: client.since(&self.client),
                    allocations: allocations()
                        .zip(self.allocations)
                        .map(|(now, before)| (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1))),
                };
            }
        }
    }
}
