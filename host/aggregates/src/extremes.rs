//! Lowest and highest values of an interval, with and without simple bounds (Part 13, 5.4.3.10 to 5.4.3.19).
//!
//! It owns the choice among equals. It must not know how bounds come about.

use backplane_types::Variant;

use crate::bounds::Bound;
use crate::sample::{Quality, Sample};

/// Where an extreme was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Raw,
    /// A bound between raw values.
    Interpolated,
    /// A raw value at the edge that the interval excludes.
    RawBound,
}

#[derive(Debug, Clone)]
pub(crate) struct Pick {
    /// In ticks.
    pub(crate) time: i64,
    pub(crate) number: f64,
    pub(crate) value: Variant,
    pub(crate) origin: Origin,
}

/// The lowest value, or the highest one.
#[derive(Debug, Clone)]
pub(crate) struct Extreme {
    highest: bool,
    pub(crate) pick: Option<Pick>,
    /// Several values are as low or as high.
    pub(crate) multiple: bool,
}

impl Extreme {
    fn new(highest: bool) -> Self {
        Self {
            highest,
            pick: None,
            multiple: false,
        }
    }

    /// Whether a number is further out than the one picked.
    fn beyond(&self, number: f64, picked: f64) -> bool {
        if self.highest { number > picked } else { number < picked }
    }

    #[allow(clippy::float_cmp)]
    fn push(&mut self, number: f64, pick: impl FnOnce() -> Pick) {
        match &self.pick {
            Some(picked) if picked.number == number => self.multiple = true,
            Some(picked) if !self.beyond(number, picked.number) => {}
            _ => {
                self.pick = Some(pick());
                self.multiple = false;
            }
        }
    }
}

/// Both ends.
#[derive(Debug, Clone)]
pub(crate) struct Extremes {
    pub(crate) lowest: Extreme,
    pub(crate) highest: Extreme,
    /// The range of the Uncertain values, which only cast doubt.
    uncertain: Option<(f64, f64)>,
}

impl Extremes {
    pub(crate) fn new() -> Self {
        Self {
            lowest: Extreme::new(false),
            highest: Extreme::new(true),
            uncertain: None,
        }
    }

    /// A raw value counts if it is Good, and with `uncertain` if it is usable at all.
    pub(crate) fn push(&mut self, sample: &Sample, uncertain: bool) {
        if sample.quality == Quality::Good || (uncertain && sample.is_usable()) {
            let pick = || Pick {
                time: sample.time,
                number: sample.number,
                value: sample.value.clone(),
                origin: Origin::Raw,
            };
            self.lowest.push(sample.number, pick);
            self.highest.push(sample.number, pick);
        } else if sample.quality == Quality::Uncertain {
            let (low, high) = self.uncertain.unwrap_or((sample.number, sample.number));
            self.uncertain = Some((low.min(sample.number), high.max(sample.number)));
        }
    }

    /// A bound counts if there is one; `time` is what it is stamped with.
    pub(crate) fn push_bound(&mut self, bound: &Bound, time: i64) {
        if let Some(number) = bound.number {
            let pick = || Pick {
                time,
                number,
                value: bound.value.clone(),
                origin: if bound.interpolated {
                    Origin::Interpolated
                } else {
                    Origin::RawBound
                },
            };
            self.lowest.push(number, pick);
            self.highest.push(number, pick);
        }
    }

    /// Whether an Uncertain value lies below the lowest, or above the highest.
    pub(crate) fn doubtful(&self, highest: bool) -> bool {
        let extreme = if highest { &self.highest } else { &self.lowest };
        match (&extreme.pick, self.uncertain) {
            (Some(pick), Some((low, high))) => extreme.beyond(if highest { high } else { low }, pick.number),
            _ => false,
        }
    }
}
