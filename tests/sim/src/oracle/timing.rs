//! When an item must be sampled: deadlines one period apart, whatever happened to the wake-ups before.
//!
//! The phase of an item is not known beforehand: items of one interval may share it. So the next deadline is known between two bounds, and
//! every turn of the server narrows them: a sample says that the deadline had passed, none says that it had not.

use std::time::Duration;

/// A lag beyond which missed samples are given up, if four periods are shorter.
const SHORTEST_GIVE_UP: Duration = Duration::from_millis(500);

/// The next deadline of an item lies between the two, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    low: Duration,
    high: Duration,
}

/// What a turn of the server says about an item's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finding {
    Fine,
    /// Sampled so much before its deadline.
    Early(Duration),
    /// Not sampled, so much after its deadline.
    Missed(Duration),
}

/// See the module text.
#[derive(Debug, Default)]
pub(crate) struct Timing {
    period: Duration,
    window: Option<Window>,
}

impl Timing {
    /// Starts anew: the first deadline is at most one period away.
    pub(crate) fn start(&mut self, now: Duration, period: Duration) {
        self.period = period;
        // No lower bound: others of the same interval may be behind.
        self.window = Some(Window {
            low: Duration::ZERO,
            high: now + period,
        });
    }

    /// Starts anew with the same period.
    pub(crate) fn restart(&mut self, now: Duration) {
        self.start(now, self.period);
    }

    pub(crate) fn set_period(&mut self, period: Duration) {
        self.period = period;
    }

    pub(crate) fn stop(&mut self) {
        self.window = None;
    }

    /// A turn of the server at `now`, which had asked to be called at `asked`: no deadline that had not passed lies before that.
    /// `sampled`: whether the item was sampled by its schedule. `blind`: it could not be, as its value is being fetched.
    /// Returns what is wrong and, for a sample, how late it was at least.
    pub(crate) fn turn(&mut self, now: Duration, asked: Duration, sampled: bool, blind: bool) -> (Finding, Duration) {
        let Some(window) = &mut self.window else {
            return (Finding::Fine, Duration::ZERO);
        };
        if blind {
            if now >= window.high {
                self.take(now);
            } else if now >= window.low {
                window.high += self.period;
            }
            return (Finding::Fine, Duration::ZERO);
        }
        if !sampled {
            window.low = window.low.max(now + Duration::from_nanos(1));
            if window.low > window.high {
                let missed = Finding::Missed(now - window.high);
                window.high = window.low;
                return (missed, Duration::ZERO);
            }
            return (Finding::Fine, Duration::ZERO);
        }
        if now < window.low {
            return (Finding::Early(window.low - now), Duration::ZERO);
        }
        // The server had asked for the earliest deadline.
        window.low = window.low.max(asked.min(window.high));
        window.high = window.high.min(now);
        let lag = now - window.high;
        self.take(now);
        (Finding::Fine, lag)
    }

    /// Goes to the next deadline.
    fn take(&mut self, now: Duration) {
        let give_up = (self.period * 4).max(SHORTEST_GIVE_UP);
        let Some(window) = &mut self.window else { return };
        // Beyond the lag the schedule starts anew from now; where in between it is, nobody knows.
        let oldest = now.saturating_sub(give_up);
        *window = if window.high < oldest {
            Window {
                low: now + self.period,
                high: now + self.period,
            }
        } else if window.low >= oldest {
            Window {
                low: window.low + self.period,
                high: window.high + self.period,
            }
        } else {
            Window {
                low: oldest + self.period,
                high: (window.high + self.period).max(now + self.period),
            }
        };
    }
}
