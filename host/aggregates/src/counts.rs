//! What counting the raw values of an interval gives: numbers by quality, mean and variance, first and last, transitions, worst status.
//!
//! It owns everything that needs no bounds and no durations. It must not know time beyond the order of the values.

use backplane_types::{AggregateConfiguration, StatusCode};

use crate::bounds::Past;
use crate::sample::{Quality, Sample};
use crate::status::by_share;

/// The worst status among values (Part 13, 5.4.3.35).
#[derive(Debug, Clone, Default)]
pub(crate) struct Worst {
    worst: Option<(u8, StatusCode)>,
    /// Several values have it, and it is not Good.
    pub(crate) multiple: bool,
}

impl Worst {
    pub(crate) fn push(&mut self, status: StatusCode) {
        let rank = if status.is_good() {
            0
        } else if status.is_uncertain() {
            1
        } else {
            2
        };
        match self.worst {
            Some((worst, _)) if worst > rank => {}
            Some((worst, _)) if worst == rank => self.multiple = rank > 0,
            _ => {
                self.worst = Some((rank, status));
                self.multiple = false;
            }
        }
    }

    pub(crate) fn status(&self) -> Option<StatusCode> {
        self.worst.map(|(_, status)| status)
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    pub(crate) total: i64,
    pub(crate) good: i64,
    pub(crate) bad: i64,
    /// Mean and sum of squared differences from it, of the Good values.
    pub(crate) mean: f64,
    squares: f64,
    pub(crate) first: Option<Sample>,
    pub(crate) last: Option<Sample>,
    pub(crate) first_good: Option<Sample>,
    pub(crate) last_good: Option<Sample>,
    pub(crate) transitions: i64,
    pub(crate) worst: Worst,
}

impl Counts {
    #[allow(clippy::cast_precision_loss)]
    pub(crate) fn push(&mut self, sample: &Sample, past: &Past) {
        self.total += 1;
        self.worst.push(sample.status);
        if self.first.is_none() {
            self.first = Some(sample.clone());
        }
        self.last = Some(sample.clone());
        match sample.quality {
            Quality::Good => {
                self.good += 1;
                // Welford: no sum of squares that could cancel out.
                let difference = sample.number - self.mean;
                self.mean += difference / self.good as f64;
                self.squares += difference * (sample.number - self.mean);
                if self.first_good.is_none() {
                    self.first_good = Some(sample.clone());
                }
                self.last_good = Some(sample.clone());
            }
            Quality::Uncertain => {}
            Quality::Bad => self.bad += 1,
        }
        let changed = |before: &Sample| !before.value.is_same(&sample.value);
        if sample.is_usable() && past.usable.as_ref().is_none_or(changed) {
            self.transitions += 1;
        }
    }

    /// The status by the number of values.
    pub(crate) fn status(&self, configuration: &AggregateConfiguration) -> StatusCode {
        by_share(configuration, self.good, self.bad, self.total)
    }

    /// The variance of the Good values; 0 for a single one.
    #[allow(clippy::cast_precision_loss)]
    pub(crate) fn variance(&self, sample: bool) -> f64 {
        let divisor = if sample { self.good - 1 } else { self.good };
        if divisor > 0 {
            (self.squares / divisor as f64).max(0.0)
        } else {
            0.0
        }
    }

    /// Whether the first or the last value is not Good, so that a Good one had to be looked for.
    pub(crate) fn skipped_at_edges(&self) -> bool {
        let not_good = |sample: &Option<Sample>| sample.as_ref().is_some_and(|sample| sample.quality != Quality::Good);
        not_good(&self.first) || not_good(&self.last)
    }
}
