//! What the event filters of one session may take together: memory while their items live, and time for every event.
//!
//! It owns two sums. It must not know what makes a filter long or slow.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use backplane_types::StatusCode;

use crate::events::FilterLimits;

/// The sums of a session.
#[derive(Debug, Default)]
pub(crate) struct FilterBudget {
    bytes: AtomicU64,
    steps: AtomicU64,
}

/// The part of one filter, given back when the filter goes. A subscription that goes to another session leaves its filters on the account
/// of the session that made them.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<FilterBudget>,
    bytes: u64,
    steps: u64,
}

impl Charge {
    /// Takes what a filter needs.
    ///
    /// # Errors
    /// `BadTooManyMonitoredItems` when the filters of the session would be too much together.
    pub(crate) fn take(
        budget: &Arc<FilterBudget>,
        limits: &FilterLimits,
        bytes: u64,
        steps: u64,
    ) -> Result<Self, StatusCode> {
        let all_bytes = budget.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let all_steps = budget.steps.fetch_add(steps, Ordering::Relaxed).saturating_add(steps);
        // Dropped on the way out, which gives it back.
        let charge = Self {
            budget: Arc::clone(budget),
            bytes,
            steps,
        };
        if all_bytes > limits.max_session_bytes || all_steps > limits.max_session_work {
            return Err(StatusCode::BAD_TOO_MANY_MONITORED_ITEMS);
        }
        Ok(charge)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.budget.steps.fetch_sub(self.steps, Ordering::Relaxed);
    }
}
