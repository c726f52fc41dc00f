//! What happened in a run: the trace with its hash, the rules that were broken, and what was counted.
//!
//! Every line goes into the hash, kept or not, so that two runs of a seed can be compared without keeping either.

use std::fmt::{self, Write};
use std::time::Duration;

/// What the checkers watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// A notification that had to come did not.
    Lost,
    /// A notification came twice, or came though nothing asked for it.
    Doubled,
    /// A notification carries another value, status or time than it must.
    WrongValue,
    /// Sequence numbers of a subscription are not continuous.
    SequenceNumbers,
    /// The list of available sequence numbers is not what is kept for Republish, or Republish gives something else.
    Available,
    /// A Publish response, a keep-alive or the end of a lifetime that the state table does not have.
    StateTable,
    /// A request was answered twice, not at all, or with the answer of another.
    Answers,
    /// A queue, a list or a table is longer than its limit, or something is left when everything is over.
    Bounded,
    /// A sample was taken too early, too late or not at all.
    SampleTimes,
    /// Responses left a connection out of order.
    WireOrder,
}

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which one.
    pub rule: Rule,
    /// When, in virtual time from the start of the run.
    pub at: Duration,
    /// What was found and what was expected.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:?}: {}", self.rule, self.at, self.what)
    }
}

/// What a run counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Requests that clients sent.
    pub requests: u64,
    /// NotificationMessages with data that left the core.
    pub messages: u64,
    /// Notifications in them.
    pub notifications: u64,
    /// Keep-alive messages.
    pub keep_alives: u64,
    /// Messages that clients got by Republish.
    pub republished: u64,
    /// Subscriptions that expired.
    pub expired: u64,
    /// Connections that broke.
    pub drops: u64,
    /// Generations that replaced another.
    pub reloads: u64,
    /// Managers that trapped.
    pub traps: u64,
    /// Samples taken.
    pub samples: u64,
    /// Values lost to full queues, as they must be.
    pub overflows: u64,
    /// The latest sample behind its deadline, in microseconds.
    pub worst_jitter_us: u64,
    /// The sum of all lags, in microseconds.
    pub jitter_us: u64,
    /// Samples later than their deadline.
    pub late_samples: u64,
    /// Subscriptions that moved to another session.
    pub transfers: u64,
}

/// See the module text.
#[derive(Debug)]
pub(crate) struct Log {
    /// Virtual time from the start of the run.
    pub(crate) now: Duration,
    /// What was counted.
    pub(crate) stats: Stats,
    hash: u64,
    pub(crate) ledger: crate::oracle::Ledger,
    lines: Option<Vec<String>>,
    violations: Vec<Violation>,
    buffer: String,
}

/// Violations kept; the first one says what is wrong.
const MAX_VIOLATIONS: usize = 16;
const FNV_OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01B3;

impl Log {
    /// An empty log; without `keep` only the hash remains of the trace.
    #[must_use]
    pub(crate) fn new(keep: bool) -> Self {
        Self {
            now: Duration::ZERO,
            stats: Stats::default(),
            hash: FNV_OFFSET,
            ledger: crate::oracle::Ledger::default(),
            lines: keep.then(Vec::new),
            violations: Vec::new(),
            buffer: String::new(),
        }
    }

    /// Adds a line to the trace.
    pub(crate) fn say(&mut self, who: &str, what: fmt::Arguments<'_>) {
        self.buffer.clear();
        // Writing to a String does not fail.
        let _ = write!(self.buffer, "{:>12.6} {who}: {what}", self.now.as_secs_f64());
        for byte in self.buffer.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
        }
        if let Some(lines) = &mut self.lines {
            lines.push(self.buffer.clone());
        }
    }

    /// Notes a broken rule.
    pub(crate) fn broken(&mut self, rule: Rule, what: fmt::Arguments<'_>) {
        self.say("BROKEN", format_args!("{rule:?}: {what}"));
        if self.violations.len() < MAX_VIOLATIONS {
            self.violations.push(Violation {
                rule,
                at: self.now,
                what: what.to_string(),
            });
        }
    }

    /// Notes a broken rule unless it holds.
    pub(crate) fn check(&mut self, holds: bool, rule: Rule, what: fmt::Arguments<'_>) {
        if !holds {
            self.broken(rule, what);
        }
    }

    /// Whether a rule was broken.
    #[must_use]
    pub(crate) fn is_broken(&self) -> bool {
        !self.violations.is_empty()
    }

    /// The hash of the trace so far.
    #[must_use]
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// Everything: violations, the kept lines.
    #[must_use]
    pub(crate) fn finish(self) -> (Vec<Violation>, Vec<String>) {
        (self.violations, self.lines.unwrap_or_default())
    }
}

impl Stats {
    /// Adds the counts of another run; of times the worse one stays.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.messages += other.messages;
        self.notifications += other.notifications;
        self.keep_alives += other.keep_alives;
        self.republished += other.republished;
        self.expired += other.expired;
        self.drops += other.drops;
        self.reloads += other.reloads;
        self.traps += other.traps;
        self.samples += other.samples;
        self.overflows += other.overflows;
        self.worst_jitter_us = self.worst_jitter_us.max(other.worst_jitter_us);
        self.jitter_us += other.jitter_us;
        self.late_samples += other.late_samples;
        self.transfers += other.transfers;
    }
}
