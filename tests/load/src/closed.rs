//! Closed loops: every connection has a fixed number of requests under way, and sends a new one for each response.
//!
//! Owns the event loop and the bookkeeping of what is under way. One thread, sockets that never block; all requests that became free in
//! one read leave in one write. Knows neither processes nor reports.

use std::time::Duration;

use mio::{Events, Poll};

use crate::client::{Client, Shared};
use crate::clock::Clock;
use crate::error::LoadError;
use crate::histogram::Histogram;
use crate::transport::SCRATCH;
use crate::verify::Verifier;

/// Events taken from the operating system at once.
const EVENTS: usize = 1_024;
/// How often the time is looked at when nothing comes.
const TICK: Duration = Duration::from_millis(50);
/// How long latencies are not counted after the costs were read.
const SETTLE: Duration = Duration::from_millis(50);
/// How long responses may take to come in after the window.
const DRAIN: Duration = Duration::from_secs(5);
/// Bytes of the buffer to read into when one client must not wait long for the others.
const SMALL_SCRATCH: usize = 64 * 1024;
/// Different problems kept in words.
const MOST_WORDS: usize = 5;

/// The edges of the time that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    Begin,
    End,
}

/// What went wrong, counted, and the first few in words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Problems {
    pub(crate) count: u64,
    pub(crate) words: Vec<String>,
}

impl Problems {
    pub(crate) fn add(&mut self, count: u64, words: impl FnOnce() -> String) {
        self.count = self.count.saturating_add(count);
        if self.words.len() < MOST_WORDS {
            let words = words();
            if !self.words.contains(&words) {
                self.words.push(words);
            }
        }
    }
}

/// What came of a loop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// Responses inside the window.
    pub(crate) requests: u64,
    /// Length of the window.
    pub(crate) time: Duration,
    /// From the write that took a request to the read that brought its response, in ns.
    pub(crate) latency: Histogram,
    /// At any time, also outside the window.
    pub(crate) problems: Problems,
}

/// One more client, which is looked after between any two reads of the others.
struct Beside {
    client: Client,
    outcome: Outcome,
}

/// See the module.
pub(crate) struct Loop {
    clients: Vec<Client>,
    beside: Option<Beside>,
    shared: Shared,
    outcome: Outcome,
    poll: Poll,
    refill: bool,
}

impl Loop {
    /// A loop over `clients`, whose responses `verifier` checks.
    pub(crate) fn new(clients: Vec<Client>, verifier: Verifier, clock: Clock) -> Result<Self, LoadError> {
        let poll = Poll::new()?;
        for (index, client) in clients.iter().enumerate() {
            client.register(&poll, index)?;
        }
        Ok(Self {
            clients,
            beside: None,
            shared: Shared {
                scratch: vec![0; SCRATCH],
                verifier,
                clock,
            },
            outcome: Outcome::default(),
            poll,
            refill: true,
        })
    }

    /// The same with one more client, counted by itself: what the others keep this thread busy with hardly delays it.
    pub(crate) fn beside(mut self, client: Client) -> Result<Self, LoadError> {
        client.register(&self.poll, self.clients.len())?;
        self.shared.scratch.truncate(SMALL_SCRATCH);
        self.beside = Some(Beside {
            client,
            outcome: Outcome::default(),
        });
        Ok(self)
    }

    /// Warms up, measures for `window`, and takes the responses that are still under way. The second outcome is that of the client beside
    /// the others.
    pub(crate) fn run(
        mut self,
        warm_up: Duration,
        window: Duration,
        edge: &mut dyn FnMut(Edge),
    ) -> Result<(Outcome, Outcome), LoadError> {
        let clock = self.shared.clock;
        for client in &mut self.clients {
            let result = client.fill(clock);
            client.settle(&mut self.outcome, result);
        }
        if let Some(Beside { client, outcome }) = &mut self.beside {
            let result = client.fill(clock);
            client.settle(outcome, result);
        }
        // A lone request needs no event loop: the thread waits in the read itself.
        let lone = self.beside.is_none() && matches!(self.clients.as_slice(), [client] if client.in_flight() == 1);
        if lone {
            for client in &self.clients {
                client.transport.stream().set_nonblocking(false)?;
                client.transport.stream().set_read_timeout(Some(TICK))?;
            }
        }
        self.turn_until(clock.elapsed().saturating_add(warm_up), lone)?;
        edge(Edge::Begin);
        let began = clock.elapsed();
        for outcome in self.outcomes() {
            outcome.requests = 0;
        }
        // Responses that came while the costs were read would look late.
        self.turn_until(began.saturating_add(SETTLE.min(window)), lone)?;
        for outcome in self.outcomes() {
            outcome.latency.clear();
        }
        self.turn_until(began.saturating_add(window), lone)?;
        let time = clock.elapsed().saturating_sub(began);
        edge(Edge::End);
        let measured: Vec<_> = self
            .outcomes()
            .map(|outcome| (outcome.requests, outcome.latency.clone()))
            .collect();
        self.refill = false;
        self.turn_until(clock.elapsed().saturating_add(DRAIN), lone)?;
        self.count_unanswered();
        for (outcome, (requests, latency)) in self.outcomes().zip(measured) {
            outcome.requests = requests;
            outcome.latency = latency;
            outcome.time = time;
        }
        Ok((
            self.outcome,
            self.beside.map(|beside| beside.outcome).unwrap_or_default(),
        ))
    }

    fn outcomes(&mut self) -> impl Iterator<Item = &mut Outcome> {
        std::iter::once(&mut self.outcome).chain(self.beside.as_mut().map(|beside| &mut beside.outcome))
    }

    fn count_unanswered(&mut self) {
        let all = self.clients.iter().map(|client| (client, false));
        let beside = self.beside.as_ref().map(|beside| (&beside.client, true));
        let waiting: Vec<_> = all
            .chain(beside)
            .filter(|(client, _)| client.waits())
            .map(|(client, is_beside)| (client.under_way(), is_beside))
            .collect();
        for (count, is_beside) in waiting {
            if let Some(outcome) = self.outcomes().nth(usize::from(is_beside)) {
                outcome.problems.add(count, || "no response within 5 s".to_owned());
            }
        }
    }

    /// Turns the loop until `end`, or until nothing is under way.
    fn turn_until(&mut self, end: Duration, lone: bool) -> Result<(), LoadError> {
        let mut events = Events::with_capacity(EVENTS);
        loop {
            let now = self.shared.clock.elapsed();
            let beside = self.beside.as_ref().is_some_and(|beside| beside.client.waits());
            if now >= end || !(beside || self.clients.iter().any(Client::waits)) {
                return Ok(());
            }
            if lone {
                self.turn(0, false);
                continue;
            }
            match self.poll.poll(&mut events, Some(TICK.min(end.saturating_sub(now)))) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                result => result?,
            }
            for event in &events {
                let index = event.token().0;
                if event.is_writable() {
                    self.flush(index);
                }
                if event.is_readable() {
                    self.turn(index, event.is_read_closed());
                }
            }
        }
    }

    fn flush(&mut self, index: usize) {
        let (client, outcome) = match (self.clients.get_mut(index), &mut self.beside) {
            (Some(client), _) => (client, &mut self.outcome),
            (None, Some(Beside { client, outcome })) => (client, outcome),
            (None, None) => return,
        };
        if client.unsent && client.alive {
            let result = client.flush();
            client.settle(outcome, result);
        }
    }

    /// Reads what is there on one connection and sends again what became free. `to_the_end`: the server has closed, so read until that
    /// shows.
    fn turn(&mut self, index: usize, to_the_end: bool) {
        let Self {
            clients,
            beside,
            shared,
            outcome,
            refill,
            ..
        } = self;
        let Some(client) = clients.get_mut(index).filter(|client| client.alive) else {
            if let Some(beside) = beside {
                beside.turn(shared, *refill);
            }
            return;
        };
        let mut read = || {
            while client.take(shared, outcome)? || to_the_end {
                if let Some(beside) = beside {
                    beside.turn(shared, *refill);
                }
            }
            if *refill { client.fill(shared.clock) } else { Ok(()) }
        };
        let result = read();
        client.settle(outcome, result);
        if let Some(beside) = beside {
            beside.turn(shared, *refill);
        }
    }
}

impl Beside {
    fn turn(&mut self, shared: &mut Shared, refill: bool) {
        let Self { client, outcome } = self;
        if !client.alive {
            return;
        }
        let mut result = client.take(shared, outcome).map(drop);
        if result.is_ok() && refill {
            result = client.fill(shared.clock);
        }
        client.settle(outcome, result);
    }
}
