//! Growing delays for failed logins, in a bounded table. The caller chooses the keys: a peer address, a user name, or both in turn.
//!
//! It owns counts and times only, and must not know passwords, tokens or sockets. A delay is a value that is handed back: the caller
//! answers only when it has passed, so that guessing costs the guesser time and not the server.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use backplane_types::Now;

/// Limits of a [`LoginThrottle`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThrottleLimits {
    /// Most keys remembered; above it the key whose last failure is longest ago is forgotten.
    pub max_keys: usize,
    /// Failures that cost no delay yet.
    pub free_failures: u32,
    /// Delay of the first failure that costs one; doubles with each further failure.
    pub first_delay: Duration,
    /// Longest delay.
    pub max_delay: Duration,
    /// A key without failure for so long starts anew.
    pub forget_after: Duration,
}

impl Default for ThrottleLimits {
    fn default() -> Self {
        Self {
            max_keys: 1024,
            free_failures: 4,
            first_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(30),
            forget_after: Duration::from_secs(900),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Record {
    failures: u32,
    last: Duration,
}

/// Failed logins by key.
#[derive(Debug)]
pub struct LoginThrottle<K> {
    limits: ThrottleLimits,
    records: HashMap<K, Record>,
}

impl<K: Hash + Eq + Clone> LoginThrottle<K> {
    /// An empty table.
    #[must_use]
    pub fn new(limits: ThrottleLimits) -> Self {
        Self {
            limits,
            records: HashMap::new(),
        }
    }

    /// How long a login with this key has still to wait; zero when it may be tried now.
    #[must_use]
    pub fn remaining(&self, now: Now, key: &K) -> Duration {
        let Some(record) = self.live(now, key) else {
            return Duration::ZERO;
        };
        let passed = now.mono.saturating_sub(record.last);
        self.delay(record.failures).saturating_sub(passed)
    }

    /// Counts a failure and returns the delay that it costs from now.
    pub fn failed(&mut self, now: Now, key: K) -> Duration {
        let failures = self
            .live(now, &key)
            .map_or(0, |record| record.failures)
            .saturating_add(1);
        if !self.records.contains_key(&key) {
            self.make_room(now);
        }
        self.records.insert(
            key,
            Record {
                failures,
                last: now.mono,
            },
        );
        self.delay(failures)
    }

    /// A successful login clears the key.
    pub fn succeeded(&mut self, key: &K) {
        self.records.remove(key);
    }

    /// Keys remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether no key is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    fn live(&self, now: Now, key: &K) -> Option<Record> {
        let record = self.records.get(key)?;
        (now.mono.saturating_sub(record.last) < self.limits.forget_after).then_some(*record)
    }

    fn delay(&self, failures: u32) -> Duration {
        let over = failures.saturating_sub(self.limits.free_failures);
        if over == 0 {
            return Duration::ZERO;
        }
        let factor = 1u32.checked_shl(over - 1).unwrap_or(u32::MAX);
        self.limits
            .first_delay
            .checked_mul(factor)
            .map_or(self.limits.max_delay, |delay| delay.min(self.limits.max_delay))
    }

    fn make_room(&mut self, now: Now) {
        if self.records.len() < self.limits.max_keys {
            return;
        }
        let forget_after = self.limits.forget_after;
        self.records
            .retain(|_, record| now.mono.saturating_sub(record.last) < forget_after);
        while self.records.len() >= self.limits.max_keys.max(1) {
            let oldest = self
                .records
                .iter()
                .min_by_key(|(_, record)| record.last)
                .map(|(key, _)| key.clone());
            match oldest {
                Some(key) => self.records.remove(&key),
                None => return,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::at;

    fn throttle(max_keys: usize) -> LoginThrottle<u32> {
        LoginThrottle::new(ThrottleLimits {
            max_keys,
            ..ThrottleLimits::default()
        })
    }

    #[test]
    fn delay_doubles_up_to_the_longest() {
        let mut table = throttle(10);
        let delays: Vec<u128> = (0..12).map(|_| table.failed(at(0), 7).as_millis()).collect();
        assert_eq!(
            delays,
            [0, 0, 0, 0, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]
        );
        assert_eq!(table.remaining(at(10_000), &7), Duration::from_secs(20));
        assert_eq!(table.remaining(at(0), &8), Duration::ZERO);
    }

    #[test]
    fn success_and_time_clear_a_key() {
        let mut table = throttle(10);
        for _ in 0..6 {
            table.failed(at(0), 7);
        }
        assert_eq!(table.remaining(at(0), &7), Duration::from_secs(1));
        table.succeeded(&7);
        assert_eq!(table.remaining(at(0), &7), Duration::ZERO);
        for _ in 0..6 {
            table.failed(at(0), 7);
        }
        assert_eq!(
            table.failed(at(900_000), 7),
            Duration::ZERO,
            "forgotten after 15 minutes"
        );
    }

    #[test]
    fn table_is_bounded_and_forgets_the_oldest() {
        let mut table = throttle(3);
        for key in 0..1000 {
            table.failed(at(u64::from(key)), key);
        }
        assert_eq!(table.len(), 3);
        for _ in 0..5 {
            table.failed(at(2000), 999);
        }
        assert!(table.remaining(at(2000), &999) > Duration::ZERO);
    }
}
