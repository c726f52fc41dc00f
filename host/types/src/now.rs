//! Now: the only time that the cores know. It is read by whoever owns the clock and handed in.

use std::time::Duration;

use crate::DateTime;

/// One reading of both clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Now {
    /// Monotonic time since an arbitrary start; for timers.
    pub mono: Duration,
    /// UTC; for timestamps only, it may jump.
    pub utc: DateTime,
}

impl Now {
    /// Both readings.
    #[must_use]
    pub const fn new(mono: Duration, utc: DateTime) -> Self {
        Self { mono, utc }
    }

    /// Both clocks `duration` later.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self {
            mono: self.mono.saturating_add(duration),
            utc: self.utc.saturating_add(duration),
        }
    }
}
