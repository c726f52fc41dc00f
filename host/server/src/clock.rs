//! The one place that reads the machine's clocks. Everything below the server is handed a [`Now`].

use std::time::{Duration, Instant, SystemTime};

use backplane_types::{DateTime, Now};

/// A monotonic zero that is fixed at start, and UTC beside it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    zero: Instant,
}

impl Clock {
    /// Zero is now.
    #[must_use]
    pub(crate) fn start() -> Self {
        Self { zero: Instant::now() }
    }

    /// Both clocks.
    #[must_use]
    pub(crate) fn now(&self) -> Now {
        Now {
            mono: self.zero.elapsed(),
            utc: DateTime::from_system_time(SystemTime::now()),
        }
    }

    /// The instant of a monotonic time, for timers.
    #[must_use]
    pub(crate) fn instant(&self, mono: Duration) -> tokio::time::Instant {
        // A deadline beyond the clock's range never comes; a day is as good.
        let instant = self
            .zero
            .checked_add(mono)
            .or_else(|| Instant::now().checked_add(Duration::from_secs(86_400)));
        tokio::time::Instant::from_std(instant.unwrap_or_else(Instant::now))
    }
}
