//! An interval as regions between simple bounds and raw values (Part 13, 5.4.3.2): how long data was Good, Bad or in a state, and the area
//! below it.
//!
//! It owns durations and the status by time. It must not know which function asks.

use backplane_types::{AggregateConfiguration, StatusCode};

use crate::TICKS_PER_MS;
use crate::bounds::Bound;
use crate::configuration::Settings;
use crate::sample::{Quality, Sample};
use crate::status::by_share;

/// Where a region begins or ends.
#[derive(Debug, Clone, Copy)]
struct Edge {
    time: i64,
    /// None: Bad, or no data.
    number: Option<f64>,
    /// Good or Uncertain; of no meaning without a number.
    quality: Quality,
}

impl Edge {
    fn of_bound(bound: &Bound) -> Self {
        Self {
            time: bound.time,
            number: bound.number,
            quality: if bound.status.is_good() {
                Quality::Good
            } else {
                Quality::Uncertain
            },
        }
    }

    fn of_sample(sample: &Sample) -> Self {
        Self {
            time: sample.time,
            number: sample.is_usable().then_some(sample.number),
            quality: sample.quality,
        }
    }
}

/// Sums of durations, in ticks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Regions {
    stepped: bool,
    uncertain_is_bad: bool,
    open: Option<Edge>,
    /// All regions together.
    pub(crate) total: i64,
    /// By the shares of the status calculation.
    good_share: i64,
    bad_share: i64,
    /// By the point a region starts with.
    good: i64,
    bad: i64,
    zero: i64,
    non_zero: i64,
    /// Regions with a value, and the area below them in value times ticks.
    used: i64,
    area: f64,
}

impl Regions {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            stepped: settings.stepped,
            uncertain_is_bad: settings.uncertain_is_bad(),
            ..Self::default()
        }
    }

    pub(crate) fn start(&mut self, bound: &Bound) {
        self.open = Some(Edge::of_bound(bound));
    }

    pub(crate) fn push(&mut self, sample: &Sample) {
        let edge = Edge::of_sample(sample);
        self.close(edge.time, Some(edge));
        self.open = Some(edge);
    }

    /// Ends the last region at `time`, with the bound there if data goes on.
    pub(crate) fn finish(&mut self, time: i64, bound: Option<&Bound>) {
        self.close(time, bound.map(Edge::of_bound));
    }

    #[allow(clippy::cast_precision_loss)]
    fn close(&mut self, time: i64, end: Option<Edge>) {
        let Some(start) = self.open.take() else { return };
        let length = time.saturating_sub(start.time);
        if length <= 0 {
            return;
        }
        self.total += length;
        let Some(number) = start.number else {
            self.bad_share += length;
            self.bad += length;
            return;
        };
        let end = end.and_then(|end| end.number.map(|number| (number, end.quality)));
        let quality = match end {
            _ if self.stepped => start.quality,
            Some((_, quality)) => start.quality.max(quality),
            None => Quality::Uncertain,
        };
        if quality == Quality::Uncertain && self.uncertain_is_bad {
            self.bad_share += length;
        } else {
            self.good_share += length;
        }
        match start.quality {
            Quality::Good => {
                self.good += length;
                if number == 0.0 {
                    self.zero += length;
                } else {
                    self.non_zero += length;
                }
            }
            _ if self.uncertain_is_bad => self.bad += length,
            _ => {}
        }
        self.used += length;
        let middle = match end {
            Some((end, _)) if !self.stepped => f64::midpoint(number, end),
            _ => number,
        };
        self.area += middle * length as f64;
    }

    /// The status by time.
    pub(crate) fn status(&self, configuration: &AggregateConfiguration) -> StatusCode {
        by_share(configuration, self.good_share, self.bad_share, self.total)
    }

    /// The mean over the regions that have a value; none without any.
    #[allow(clippy::cast_precision_loss)]
    pub(crate) fn average(&self) -> Option<f64> {
        (self.used > 0).then(|| self.area / self.used as f64)
    }

    /// The integral in value times seconds.
    #[allow(clippy::cast_precision_loss)]
    pub(crate) fn integral(&self) -> Option<f64> {
        (self.used > 0).then(|| self.area / (TICKS_PER_MS as f64 * 1000.0))
    }

    /// In milliseconds.
    pub(crate) fn in_state(&self, zero: bool) -> f64 {
        milliseconds(if zero { self.zero } else { self.non_zero })
    }

    /// In milliseconds.
    pub(crate) fn of_quality(&self, good: bool) -> f64 {
        milliseconds(if good { self.good } else { self.bad })
    }

    /// 0 to 100.
    pub(crate) fn percent(&self, good: bool) -> f64 {
        if self.total > 0 {
            self.of_quality(good) / milliseconds(self.total) * 100.0
        } else {
            0.0
        }
    }
}

#[allow(clippy::cast_precision_loss)]
fn milliseconds(ticks: i64) -> f64 {
    ticks as f64 / TICKS_PER_MS as f64
}
