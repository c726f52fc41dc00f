//! The life of a request that has to wait: it ends exactly once, whoever ends it.
//!
//! Owns the table of waiting requests and the decision between the ends that race for each of them: it is complete, its client cancelled it,
//! its deadline passed, its session or connection closed, the server stops. Whoever wins gets what is needed to answer the request, and
//! nobody else does. It must not know clocks (`now` is handed in), tasks, or what a request is.
//!
//! # Marks and fences
//! [`RequestTable::close_session`] and [`RequestTable::close_connection`] end what is in the table; a request that is registered a moment
//! later they cannot see. So the caller first marks the session or connection as closed, then calls them; and who registers looks at the
//! mark *afterwards*, ending its own registration when it is set:
//!
//! ```text
//! close:     mark = closed;                 table.close_session(...)
//! request:   table.register(...);           if mark == closed { registration.complete() and answer }
//! ```
//!
//! Both sides contain a full fence between their two steps, so at least one of them sees the other, and the table lets only one of them answer.
//! [`RequestTable::drain`] does the same with a mark of its own.

mod registration;
mod slot;
mod table;

pub use registration::{Observer, Registered, Registration};
pub use table::{MAX_SLOTS, OTHER_PLACES, OVERFLOW_LIMIT, PROBES, RequestTable};

use std::fmt;
use std::time::Duration;

/// How often [`RequestTable::sweep`] is to be called while anything is watched: no deadline fires later than this.
pub const SWEEP_INTERVAL: Duration = Duration::from_millis(20);

/// Who sent a request. Need not be unique: a client may give all its requests one handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// Its session.
    pub session: u64,
    /// Its connection.
    pub connection: u64,
    /// The handle its client chose for it, by which it may be cancelled.
    pub handle: u32,
}

/// How far a request has come. Every value but [`Terminal::Pending`] is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Terminal {
    /// Nobody has ended it.
    Pending,
    /// Its worker finished it, or gave it up; also what an [`Observer`] sees of every request whose registration is gone.
    Complete,
    /// Its client cancelled it.
    Cancelled,
    /// Its deadline passed.
    TimedOut,
    /// The server stops.
    Stopped,
    /// Its session or connection closed.
    Closed,
}

/// Why a request was not taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The server stops.
    Draining,
    /// All slots near its hash are taken and the overflow set is at its limit.
    Full,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Draining => "no requests are taken any more",
            Self::Full => "too many requests wait",
        })
    }
}

impl std::error::Error for Refusal {}

/// A request that was not taken in, with what is needed to answer it.
#[derive(Debug)]
pub struct Refused<T> {
    /// Why.
    pub reason: Refusal,
    /// What was handed in.
    pub answer: T,
}

/// What a sweep left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SweepOutcome {
    /// Requests that still wait for their deadline. With none the caller stops sweeping, and starts again when a registration says so
    /// ([`Registered::watched_started`]).
    pub watched: usize,
}
