//! `[sampling]`: what requested intervals, counts and lifetimes of subscriptions and monitored items are revised to.
//!
//! Owns the keys, their defaults and relations. The arithmetic is the session crate's; shortest intervals and queue sizes are limits and stand in
//! `[limits]`.

use std::time::Duration;

use backplane_session::{Limits, SamplingRates};

use super::section::Section;

/// Most entries of `[[sampling.rate]]`.
const MAX_RATES: usize = 64;
/// A year: no sampling interval is longer.
const LONGEST: f64 = 365.0 * 86_400_000.0;

/// How requested intervals are revised. Times in ms.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplingOptions {
    /// How often items that report by exception are sampled at most.
    pub exception_interval: f64,
    /// Runs of sampling intervals, ascending: others are rounded up to them.
    pub rates: Vec<SamplingRates>,
    /// Longest publishing interval.
    pub publishing_interval_max: f64,
    /// Publishing intervals are multiples of it.
    pub publishing_resolution: f64,
    /// Shortest and longest lifetime of a subscription.
    pub lifetime: (f64, f64),
    /// The keep-alive count of clients that ask for none.
    pub keep_alive_count: u32,
    /// Most notifications in one message.
    pub notifications_per_publish: u32,
}

impl Default for SamplingOptions {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            exception_interval: limits.exception_interval.as_secs_f64() * 1000.0,
            rates: limits.sampling_rates,
            publishing_interval_max: limits.max_publishing_interval,
            publishing_resolution: limits.publishing_resolution,
            lifetime: (limits.min_lifetime, limits.max_lifetime),
            keep_alive_count: limits.default_keep_alive_count,
            notifications_per_publish: limits.max_notifications_per_publish,
        }
    }
}

impl SamplingOptions {
    /// Reads the section; `publishing_interval_min` is what `[limits]` says.
    pub(super) fn read(section: &mut Section<'_>, publishing_interval_min: f64) -> Self {
        const DAY: f64 = 86_400_000.0;
        let mut it = Self::default();
        it.exception_interval = section.milliseconds("exception-interval-ms", it.exception_interval, 1.0..=60_000.0);
        let (key, max) = ("publishing-interval-max-ms", it.publishing_interval_max);
        it.publishing_interval_max = section.milliseconds(key, max, 10.0..=DAY);
        if it.publishing_interval_max < publishing_interval_min {
            section.problem(
                key,
                format_args!("is below limits.publishing-interval-min-ms ({publishing_interval_min})"),
            );
        }
        let resolution = it.publishing_resolution;
        it.publishing_resolution = section.milliseconds("publishing-resolution-ms", resolution, 0.1..=60_000.0);
        it.lifetime.0 = section.milliseconds("lifetime-min-ms", it.lifetime.0, 1.0..=DAY);
        it.lifetime.1 = section.milliseconds("lifetime-max-ms", it.lifetime.1, 1_000.0..=DAY * 30.0);
        if it.lifetime.0 > it.lifetime.1 {
            let (min, max) = it.lifetime;
            section.problem(
                "lifetime-min-ms",
                format_args!("{min} is above lifetime-max-ms ({max})"),
            );
        }
        it.keep_alive_count = section.number32("keep-alive-count", it.keep_alive_count, 1..=1_000_000);
        let (key, most) = ("notifications-per-publish", it.notifications_per_publish);
        it.notifications_per_publish = section.number32(key, most, 1..=1_000_000);
        let rates = section.sections("rate", read_rates);
        if !rates.is_empty() {
            it.rates = rates;
        }
        it.check_rates(section);
        it
    }

    fn check_rates(&self, section: &mut Section<'_>) {
        if self.rates.len() > MAX_RATES {
            section.problem("rate", format_args!("more than {MAX_RATES} entries"));
        }
        for (index, pair) in self.rates.windows(2).enumerate() {
            let [before, after] = pair else { continue };
            if after.start <= before.start {
                section.problem(
                    &format!("rate[{}].start-ms", index + 1),
                    format_args!(
                        "{} is not above {}, where the entry before it starts",
                        after.start, before.start
                    ),
                );
            }
        }
    }

    /// Puts everything into the limits of subscriptions.
    pub(crate) fn apply(&self, limits: &mut Limits) {
        let interval = Duration::try_from_secs_f64(self.exception_interval / 1000.0);
        limits.exception_interval = interval.unwrap_or(limits.exception_interval);
        limits.sampling_rates.clone_from(&self.rates);
        limits.max_publishing_interval = self.publishing_interval_max;
        limits.publishing_resolution = self.publishing_resolution;
        (limits.min_lifetime, limits.max_lifetime) = self.lifetime;
        limits.default_keep_alive_count = self.keep_alive_count;
        limits.max_notifications_per_publish = self.notifications_per_publish;
    }
}

fn read_rates(section: &mut Section<'_>) -> SamplingRates {
    let start = section.milliseconds("start-ms", 0.0, 0.1..=LONGEST);
    if start == 0.0 {
        section.problem("start-ms", "is missing");
    }
    SamplingRates {
        start,
        step: section.milliseconds("step-ms", start.max(0.1), 0.1..=LONGEST),
        count: section.number32("count", 0, 0..=1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use backplane_session::Limits;

    use super::SamplingOptions;
    use crate::config::section::{Problems, Section};

    fn read(text: &str) -> Result<SamplingOptions, Vec<String>> {
        let mut problems = Problems::default();
        let mut root = Section::root(toml::from_str(text).unwrap(), &mut problems);
        let mut section = root.section("sampling");
        let options = SamplingOptions::read(&mut section, 10.0);
        section.finish();
        let lines = problems.into_lines();
        if lines.is_empty() { Ok(options) } else { Err(lines) }
    }

    #[test]
    fn nothing_given_is_what_the_session_crate_has() {
        let mut limits = Limits::default();
        read("").unwrap().apply(&mut limits);
        assert_eq!(limits, Limits::default());
        limits.check().unwrap();
    }

    #[test]
    fn rates_round_what_clients_ask_for() {
        let options = read(
            "[sampling]\nexception-interval-ms = 5\nlifetime-min-ms = 2000\n\
             [[sampling.rate]]\nstart-ms = 5\nstep-ms = 5\ncount = 3\n[[sampling.rate]]\nstart-ms = 100\n",
        )
        .unwrap();
        let mut limits = Limits {
            min_sampling_interval: 1.0,
            ..Limits::default()
        };
        options.apply(&mut limits);
        limits.check().unwrap();
        for (asked, revised) in [(1.0, 5.0), (11.0, 15.0), (20.0, 20.0), (21.0, 100.0), (101.0, 101.0)] {
            assert_eq!(
                limits.revise_sampling_interval(asked, 0.0, -1.0, true),
                revised,
                "{asked}"
            );
        }
        assert_eq!(limits.exception_interval.as_millis(), 5);
        assert_eq!(limits.min_lifetime, 2000.0);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let lines = read(
            "[sampling]\nexception-interval-ms = 0\npublishing-interval-max-ms = \"soon\"\nlifetime-min-ms = 5000\nlifetime-max-ms = 1000\ntea = 1\n\
             [[sampling.rate]]\nstep-ms = 5\n[[sampling.rate]]\nstart-ms = 50\nstep-ms = 10\ncount = 5\n[[sampling.rate]]\nstart-ms = 40\n",
        )
        .unwrap_err();
        for key in [
            "sampling.exception-interval-ms",
            "sampling.publishing-interval-max-ms",
            "sampling.lifetime-min-ms",
            "sampling.rate[0].start-ms: is missing",
            "sampling.rate[2].start-ms",
            "sampling.tea",
        ] {
            assert!(lines.iter().any(|line| line.starts_with(key)), "{key} in {lines:?}");
        }
    }
}
