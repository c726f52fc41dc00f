//! When a plugin that failed is started again, and when it is given up.
//!
//! Owns the arithmetic of backoff and quarantine over times that are passed in. It must not know clocks, tasks or wasm.

use std::collections::VecDeque;
use std::time::Duration;

/// How failures are answered. Times are monotonic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RestartPolicy {
    /// Delay after the first failure; doubled by each further one.
    pub base: Duration,
    /// Longest delay.
    pub cap: Duration,
    /// Part of the delay that is random, 0 to 1: 0.2 gives 80 % to 120 %.
    pub jitter: f64,
    /// After serving this long without failing the delay starts from `base` again.
    pub healthy: Duration,
    /// Failures within `window` that end in quarantine; `usize::MAX`: none do.
    pub quarantine_after: usize,
    /// How far back failures are counted.
    pub window: Duration,
}

impl Default for RestartPolicy {
    fn default() -> Self {
        Self {
            base: Duration::from_millis(200),
            cap: Duration::from_secs(30),
            jitter: 0.2,
            healthy: Duration::from_secs(60),
            quarantine_after: 5,
            window: Duration::from_secs(600),
        }
    }
}

impl RestartPolicy {
    /// The same, but a plugin is never given up.
    pub(crate) fn without_quarantine(self) -> Self {
        Self {
            quarantine_after: usize::MAX,
            ..self
        }
    }
}

/// What to do after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Start a fresh instance after this delay.
    Restart(Duration),
    /// Leave it stopped until the component changes or an operator asks.
    Quarantine,
}

/// The failures of one plugin so far.
#[derive(Debug)]
pub(crate) struct Restarts {
    policy: RestartPolicy,
    faults: VecDeque<Duration>,
    streak: u32,
    serving_since: Option<Duration>,
}

impl Restarts {
    pub(crate) fn new(policy: RestartPolicy) -> Self {
        Self {
            policy,
            faults: VecDeque::new(),
            streak: 0,
            serving_since: None,
        }
    }

    /// An instance has begun to serve.
    pub(crate) fn serving(&mut self, now: Duration) {
        self.serving_since = Some(now);
    }

    /// An instance has failed. `random` is uniform in 0..1.
    pub(crate) fn fault(&mut self, now: Duration, random: f64) -> Verdict {
        if let Some(since) = self.serving_since.take()
            && now.saturating_sub(since) >= self.policy.healthy
        {
            self.streak = 0;
        }
        while self
            .faults
            .front()
            .is_some_and(|at| now.saturating_sub(*at) > self.policy.window)
        {
            self.faults.pop_front();
        }
        if self.policy.quarantine_after < usize::MAX {
            self.faults.push_back(now);
        }
        if self.faults.len() >= self.policy.quarantine_after {
            self.faults.clear();
            return Verdict::Quarantine;
        }
        let doubled = self
            .policy
            .base
            .saturating_mul(1_u32.checked_shl(self.streak.min(20)).unwrap_or(u32::MAX));
        self.streak = self.streak.saturating_add(1);
        let factor = 1.0 + self.policy.jitter.clamp(0.0, 1.0) * (2.0 * random - 1.0);
        Verdict::Restart(doubled.min(self.policy.cap).mul_f64(factor.clamp(0.0, 2.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn delays_double_up_to_the_cap_and_fall_back_when_healthy() {
        let mut restarts = Restarts::new(RestartPolicy {
            quarantine_after: 100,
            ..RestartPolicy::default()
        });
        let mut now = s(0);
        let mut delays = Vec::new();
        for _ in 0..10 {
            restarts.serving(now);
            now += s(1);
            match restarts.fault(now, 0.5) {
                Verdict::Restart(delay) => delays.push(delay.as_millis()),
                Verdict::Quarantine => unreachable!("far from the bound"),
            }
        }
        assert_eq!(delays, [200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000]);
        restarts.serving(now);
        assert_eq!(
            restarts.fault(now + s(60), 0.5),
            Verdict::Restart(Duration::from_millis(200))
        );
    }

    #[test]
    fn jitter_stays_within_a_fifth() {
        let delay = |random| match Restarts::new(RestartPolicy::default()).fault(s(1), random) {
            Verdict::Restart(delay) => delay.as_millis(),
            Verdict::Quarantine => unreachable!("one fault"),
        };
        assert_eq!((delay(0.0), delay(0.5), delay(1.0)), (160, 200, 240));
    }

    #[test]
    fn five_faults_in_ten_minutes_are_quarantine_and_older_ones_do_not_count() {
        let mut restarts = Restarts::new(RestartPolicy::default());
        for minute in 0..4 {
            assert!(matches!(restarts.fault(s(minute * 60), 0.5), Verdict::Restart(_)));
        }
        // The first is 661 s ago by now, so this one is the fourth within the window.
        assert!(matches!(restarts.fault(s(661), 0.5), Verdict::Restart(_)));
        assert_eq!(
            restarts.fault(s(662), 0.5),
            Verdict::Restart(Duration::from_millis(6400))
        );
    }

    #[test]
    fn quarantine() {
        let mut restarts = Restarts::new(RestartPolicy::default());
        let verdicts: Vec<_> = (0..5).map(|at| restarts.fault(s(at), 0.5)).collect();
        assert_eq!(verdicts[4], Verdict::Quarantine);
        assert!(verdicts[..4].iter().all(|v| matches!(v, Verdict::Restart(_))));
        // Released, it gets its full budget again.
        assert!(matches!(restarts.fault(s(6), 0.5), Verdict::Restart(_)));
    }
}
