//! What is counted of each plugin, and the plugin's own metrics.
//!
//! Owns numbers that many threads add to. It must not know who shows them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// Counts since the plugin was loaded first, over all its generations.
        #[derive(Debug, Default)]
        pub(crate) struct Counters { $(pub(crate) $name: Counter,)+ }

        /// A copy of the counts of one plugin, since it was loaded first, over all its generations.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counts { $($(#[$doc])* pub $name: u64,)+ }

        impl Counters {
            pub(crate) fn copy(&self) -> Counts {
                Counts { $($name: self.$name.get(),)+ }
            }
        }

        impl Counts {
            /// Names and numbers, for exposition.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)+].into_iter()
            }
        }
    };
}

counters! {
    /// Calls of any export.
    calls,
    /// Operations of Read that the plugin was asked for.
    reads,
    /// Operations of Write.
    writes,
    /// Methods invoked.
    methods,
    /// Timers that were due.
    wakes,
    /// Times that the plugin was told what is watched.
    demands,
    /// Values published and taken.
    published,
    /// Values refused: unknown tag, wrong type, too large.
    refused,
    /// Events raised.
    events,
    /// Events refused: no such type or field, a wrong value, too many.
    refused_events,
    /// Changes of the model that were applied.
    changes,
    /// Calls that the plugin answered with a fault of its own.
    answered_faults,
    /// Answers that broke the contract: too few results, wrong types.
    misbehaviour,
    /// Calls turned away because the mailbox was full.
    turned_away,
    /// Traps and exceeded deadlines: each ends an instance.
    faults,
    /// Instances started after a fault.
    restarts,
    /// Generations swapped in by a reload.
    reloads,
    /// Epoch ticks during which the guest was computing.
    ticks,
}

/// One count.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn one(&self) {
        self.add(1);
    }

    pub(crate) fn add(&self, count: usize) {
        self.0
            .fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The series of a plugin's own, by name and labels.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    series: Mutex<BTreeMap<String, f64>>,
}

/// Bytes of one series' name with its labels.
const SERIES_NAME: usize = 1_024;

impl Metrics {
    /// Adds to a series, or sets it. False: there are too many series, or the name is too long, or the number is none.
    pub(crate) fn record(&self, name: &str, labels: &[(String, String)], value: f64, add: bool, limit: usize) -> bool {
        let mut key = name.to_owned();
        if !labels.is_empty() {
            let labels: Vec<_> = labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
            key = format!("{name}{{{}}}", labels.join(","));
        }
        if key.len() > SERIES_NAME || !value.is_finite() {
            return false;
        }
        let mut series = self.series.lock();
        if !series.contains_key(&key) && series.len() >= limit {
            return false;
        }
        let entry = series.entry(key).or_insert(0.0);
        *entry = if add { *entry + value } else { value };
        true
    }

    pub(crate) fn copy(&self) -> BTreeMap<String, f64> {
        self.series.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_bounded_and_named_with_their_labels() {
        let metrics = Metrics::default();
        let labels = [("line".to_owned(), "a\"b".to_owned())];
        assert!(metrics.record("frames", &labels, 2.0, true, 1));
        assert!(metrics.record("frames", &labels, 3.0, true, 1));
        assert!(!metrics.record("other", &[], 1.0, false, 1));
        assert!(!metrics.record("frames", &labels, f64::NAN, false, 1));
        assert_eq!(
            metrics.copy().into_iter().collect::<Vec<_>>(),
            [("frames{line=\"a\\\"b\"}".to_owned(), 5.0)]
        );
    }
}
