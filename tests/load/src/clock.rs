//! The one clock of a run: ns since its start for latencies, and both times for channels.

use std::time::{Duration, Instant, SystemTime};

use backplane_types::{DateTime, Now};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
    utc: DateTime,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            utc: DateTime::from_system_time(SystemTime::now()),
        }
    }

    /// Time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// ns since the start; a u64 of them lasts 584 years.
    pub(crate) fn nanos(&self) -> u64 {
        u64::try_from(self.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Both times, for a channel.
    pub(crate) fn now(&self) -> Now {
        self.at(self.elapsed())
    }

    /// Both times, `elapsed` after the start.
    pub(crate) fn at(&self, elapsed: Duration) -> Now {
        Now::new(elapsed, self.utc.saturating_add(elapsed))
    }
}
