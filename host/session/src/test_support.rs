//! Time for unit tests.

use std::time::Duration;

use backplane_types::{DateTime, Now};

/// So many milliseconds after the start.
pub(crate) fn at(ms: u64) -> Now {
    Now::new(Duration::ZERO, DateTime::from_ticks(1)).after(Duration::from_millis(ms))
}
