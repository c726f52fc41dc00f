//! The timers of one instance.
//!
//! Owns due times and their bound. It must not sleep: the instance's task asks when the next one is due.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use tokio::time::Instant;

/// Longest period or delay; more than any plant stays up.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 86_400);

#[derive(Debug)]
pub(crate) struct Timers {
    limit: usize,
    minimum: Duration,
    by_token: HashMap<u64, (Instant, Option<Duration>)>,
    by_due: BTreeSet<(Instant, u64)>,
}

impl Timers {
    pub(crate) fn new(limit: usize, minimum: Duration) -> Self {
        Self {
            limit,
            minimum,
            by_token: HashMap::new(),
            by_due: BTreeSet::new(),
        }
    }

    /// Starts a timer, instead of the one with the same token if there is one. Milliseconds that are no number, or negative, and timers beyond the
    /// limit are refused.
    pub(crate) fn start(&mut self, now: Instant, milliseconds: f64, token: u64, repeat: bool) -> Result<(), String> {
        if !milliseconds.is_finite() || milliseconds < 0.0 {
            return Err(format!("a timer of {milliseconds} ms"));
        }
        let length = Duration::try_from_secs_f64(milliseconds / 1_000.0)
            .unwrap_or(LONGEST)
            .clamp(self.minimum, LONGEST);
        if !self.by_token.contains_key(&token) && self.by_token.len() >= self.limit {
            return Err(format!("more than {} timers", self.limit));
        }
        self.cancel(token);
        let due = now.checked_add(length).unwrap_or(now);
        self.by_token.insert(token, (due, repeat.then_some(length)));
        self.by_due.insert((due, token));
        Ok(())
    }

    pub(crate) fn cancel(&mut self, token: u64) {
        if let Some((due, _)) = self.by_token.remove(&token) {
            self.by_due.remove(&(due, token));
        }
    }

    /// When the next timer is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.by_due.first().map(|(due, _)| *due)
    }

    /// Takes one timer that is due. A repeated one stays on its grid: ticks that were missed are not made up for.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<u64> {
        let (due, token) = self.by_due.first().copied()?;
        if due > now {
            return None;
        }
        self.by_due.remove(&(due, token));
        let period = self.by_token.get(&token).and_then(|(_, period)| *period);
        match period {
            None => {
                self.by_token.remove(&token);
            }
            Some(period) => {
                let late = now.saturating_duration_since(due).as_nanos();
                let skipped = u32::try_from(late / period.as_nanos().max(1)).unwrap_or(u32::MAX);
                let step = period.saturating_mul(skipped.saturating_add(1));
                let next = due.checked_add(step).unwrap_or(now);
                self.by_token.insert(token, (next, Some(period)));
                self.by_due.insert((next, token));
            }
        }
        Some(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn late_ticks_are_taken_once_and_stay_on_the_grid() {
        let start = Instant::now();
        let mut timers = Timers::new(4, ms(1));
        timers.start(start, 10.0, 7, true).unwrap();
        timers.start(start, 5.0, 8, false).unwrap();
        assert_eq!(timers.take_due(start + ms(4)), None);
        assert_eq!(timers.next(), Some(start + ms(5)));
        assert_eq!(timers.take_due(start + ms(34)), Some(8));
        assert_eq!(timers.take_due(start + ms(34)), Some(7));
        assert_eq!(timers.take_due(start + ms(34)), None);
        assert_eq!(timers.next(), Some(start + ms(40)));
        timers.cancel(7);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn nonsense_and_too_many_are_refused() {
        let now = Instant::now();
        let mut timers = Timers::new(1, ms(1));
        assert!(timers.start(now, f64::NAN, 1, true).is_err());
        assert!(timers.start(now, -1.0, 1, true).is_err());
        timers.start(now, 0.0, 1, true).unwrap();
        assert!(timers.start(now, 1.0, 2, true).is_err());
        timers.start(now, 1e300, 1, false).unwrap();
        assert!(timers.next().is_some());
    }
}
