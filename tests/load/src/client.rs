//! One connection of a closed loop: what is under way on it, and what it sends next.
//!
//! Owns the matching of responses with requests. Knows no event loop.

use std::os::fd::AsRawFd;

use mio::unix::SourceFd;
use mio::{Interest, Poll, Token};

use crate::clock::Clock;
use crate::closed::Outcome;
use crate::error::LoadError;
use crate::transport::{Prepared, Transport};
use crate::verify::{Verifier, Wrong};

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// 0: free.
    request_id: u32,
    sent: u64,
}

/// One connection of a closed loop.
pub(crate) struct Client {
    pub(crate) transport: Transport,
    requests: Vec<Prepared>,
    next: usize,
    slots: Vec<Slot>,
    free: Vec<u32>,
    one_by_one: bool,
    /// Whether something waits for room in the socket.
    pub(crate) unsent: bool,
    /// Whether the connection has not failed.
    pub(crate) alive: bool,
}

impl Client {
    /// Sends `requests` in turn, `in_flight` at a time.
    pub(crate) fn new(transport: Transport, requests: Vec<Prepared>, in_flight: u32, one_by_one: bool) -> Self {
        Self {
            transport,
            requests,
            next: 0,
            slots: (0..in_flight).map(|_| Slot::default()).collect(),
            free: (0..in_flight).rev().collect(),
            one_by_one,
            unsent: false,
            alive: true,
        }
    }

    /// Requests without a response.
    pub(crate) fn under_way(&self) -> u64 {
        self.slots.len().saturating_sub(self.free.len()) as u64
    }

    /// Sends as much as may be under way.
    pub(crate) fn fill(&mut self, clock: Clock) -> Result<(), LoadError> {
        let sent = clock.nanos();
        while let Some(handle) = self.free.pop() {
            let Some(request) = self.requests.get(self.next) else {
                return Ok(());
            };
            let request_id = self.transport.queue(request, handle)?;
            self.next = if self.next.saturating_add(1) < self.requests.len() {
                self.next.saturating_add(1)
            } else {
                0
            };
            if let Some(slot) = usize::try_from(handle).ok().and_then(|index| self.slots.get_mut(index)) {
                *slot = Slot { request_id, sent };
            }
            if self.one_by_one {
                self.unsent = !self.transport.flush()?;
            }
        }
        self.flush()
    }

    /// Writes what the socket did not take before.
    pub(crate) fn flush(&mut self) -> Result<(), LoadError> {
        self.unsent = !self.transport.flush()?;
        Ok(())
    }

    /// Reads once; true if there may be more to read.
    pub(crate) fn take(&mut self, shared: &mut Shared, outcome: &mut Outcome) -> Result<bool, LoadError> {
        let Self {
            transport, slots, free, ..
        } = self;
        let Shared {
            scratch,
            verifier,
            clock,
        } = shared;
        let mut now = None;
        transport.receive(scratch, |request_id, body| {
            let now = *now.get_or_insert_with(|| clock.nanos());
            let (handle, result) = verifier.check(body);
            if let Err(wrong) = result {
                outcome.problems.add(1, || words(wrong));
            }
            let slot = handle.and_then(|handle| slots.get_mut(usize::try_from(handle).ok()?));
            match (slot, handle) {
                (Some(slot), Some(handle)) if slot.request_id == request_id && request_id != 0 => {
                    slot.request_id = 0;
                    free.push(handle);
                    outcome.requests = outcome.requests.saturating_add(1);
                    outcome.latency.record(now.saturating_sub(slot.sent));
                    Ok(())
                }
                _ => Err(LoadError::Response("to a request that is not under way")),
            }
        })
    }

    /// Most requests under way.
    pub(crate) fn in_flight(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is anything to wait for.
    pub(crate) fn waits(&self) -> bool {
        self.alive && self.under_way() > 0
    }

    /// A connection that failed takes its requests with it.
    pub(crate) fn settle(&mut self, outcome: &mut Outcome, result: Result<(), LoadError>) {
        if let Err(error) = result {
            self.alive = false;
            let lost = self.under_way().max(1);
            outcome.problems.add(lost, || format!("a connection ended: {error}"));
        }
    }

    /// Tells `poll` to watch the connection, which stops blocking.
    pub(crate) fn register(&self, poll: &Poll, index: usize) -> Result<(), LoadError> {
        let stream = self.transport.stream();
        stream.set_nonblocking(true)?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        poll.registry()
            .register(&mut SourceFd(&stream.as_raw_fd()), Token(index), interest)?;
        Ok(())
    }
}

/// What is wrong with a response, in words.
pub(crate) fn words(wrong: Wrong) -> String {
    match wrong {
        Wrong::Fault(status) => format!("service result {status}"),
        Wrong::Operation(status) => format!("an operation's result {status}"),
        Wrong::Shape(what) => what.to_owned(),
    }
}

/// What all clients of a loop use in turn.
pub(crate) struct Shared {
    pub(crate) scratch: Vec<u8>,
    pub(crate) verifier: Verifier,
    pub(crate) clock: Clock,
}
