//! Aggregate filters (Part 4, 7.22.4; Part 13, 4.3): which one an item may have, and what it makes of samples and of time.
//!
//! It owns the revision of start time, processing interval and configuration, and the time that a sample counts from. It must not know
//! queues or nodes. The functions themselves are in `backplane_aggregates`.
//!
//! Samples are what the source said when it was looked at; in between it is known that nothing changed. So a value holds until the next
//! one (it is stepped), and an interval is complete when a sample from after its end came, or one sampling interval after its end.

use std::time::Duration;

use backplane_aggregates::{Function, Live, Settings, defaults, effective};
use backplane_types::{AggregateFilter, AggregateFilterResult, DataValue, DateTime, ExtensionObject, Now, StatusCode};

use super::ItemTraits;
use crate::subscriptions::item::Revised;
use crate::subscriptions::limits::{Limits, duration};

/// What a client gets that names no processing interval, in ms, if it samples often enough for it.
const DEFAULT_PROCESSING_INTERVAL: f64 = 1000.0;
/// The longest processing interval: one year in ms.
const MAX_PROCESSING_INTERVAL: f64 = 365.0 * 86_400_000.0;

/// What the filter is revised with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AggregateTerms {
    /// In ms.
    pub(super) min_processing_interval: f64,
    /// How often the item is looked at.
    pub(super) sampling: Duration,
    pub(super) queue_size: u32,
    pub(super) now: Now,
}

impl AggregateTerms {
    pub(crate) fn new(limits: &Limits, revised: &Revised, now: Now) -> Self {
        Self {
            min_processing_interval: limits.min_processing_interval.max(revised.sampling_interval),
            sampling: if revised.sampling_interval > 0.0 {
                duration(revised.sampling_interval)
            } else {
                limits.exception_interval
            },
            queue_size: revised.queue_size,
            now,
        }
    }

    fn processing_interval(&self, requested: f64) -> f64 {
        let requested = if requested.is_finite() && requested > 0.0 {
            requested
        } else {
            DEFAULT_PROCESSING_INTERVAL
        };
        requested.max(self.min_processing_interval).min(MAX_PROCESSING_INTERVAL)
    }

    /// The start of the first interval: as requested, or so many whole intervals later that the queue can hold what lies in the past. A
    /// client that names none gets the interval that now is in.
    fn start(&self, requested: DateTime, width: Duration) -> DateTime {
        let width = i64::try_from(width.as_nanos() / 100).unwrap_or(i64::MAX).max(1);
        let now = self.now.utc.ticks();
        if requested.is_null() {
            return DateTime::from_ticks(now - now % width);
        }
        let oldest = now.saturating_sub(width.saturating_mul(i64::from(self.queue_size)));
        let behind = oldest.saturating_sub(requested.ticks());
        if behind <= 0 {
            return requested;
        }
        let skipped = behind / width + i64::from(behind % width != 0);
        DateTime::from_ticks(requested.ticks().saturating_add(skipped.saturating_mul(width)))
    }
}

/// The calculation of one item.
#[derive(Debug)]
pub(crate) struct AggregateFeed {
    live: Live,
    width: Duration,
    /// How long after its end an interval is waited for: as long as a sample from before the end may be under way.
    wait: Duration,
    /// When the current interval is over, in monotonic time.
    due: Duration,
    /// Source timestamp of the latest sample, as the source gave it.
    seen: Option<DateTime>,
}

impl AggregateFeed {
    /// The filter that a client asks for, and the AggregateFilterResult.
    ///
    /// # Errors
    /// `BadMonitoredItemFilterInvalid` (cannot be decoded); `BadAggregateNotSupported` (no function, or one that needs a historian);
    /// `BadAggregateInvalidInputs` (the function needs numbers, and the data type has none); `BadAggregateConfigurationRejected`.
    pub(crate) fn from_request(
        filter: &ExtensionObject,
        traits: &ItemTraits,
        terms: &AggregateTerms,
    ) -> Result<(Self, ExtensionObject), StatusCode> {
        let filter: AggregateFilter = filter
            .decode_as()
            .map_err(|_| StatusCode::BAD_MONITORED_ITEM_FILTER_INVALID)?;
        let function = Function::from_node_id(&filter.aggregate_type)
            .filter(|function| function.is_live())
            .ok_or(StatusCode::BAD_AGGREGATE_NOT_SUPPORTED)?;
        if function.needs_numbers() && !traits.is_number && !traits.is_boolean {
            return Err(StatusCode::BAD_AGGREGATE_INVALID_INPUTS);
        }
        let configuration = effective(&filter.aggregate_configuration, &defaults())?;
        let interval = terms.processing_interval(filter.processing_interval);
        let width = duration(interval);
        let start = terms.start(filter.start_time, width);
        let result = ExtensionObject::from_structure(&AggregateFilterResult {
            revised_start_time: start,
            revised_processing_interval: interval,
            revised_aggregate_configuration: configuration.clone(),
        });
        let settings = Settings {
            function,
            configuration,
            stepped: true,
        };
        let mut feed = Self {
            live: Live::new(settings, start, width),
            width,
            wait: terms.sampling.min(width),
            due: Duration::ZERO,
            seen: None,
        };
        feed.set_due(terms.now);
        Ok((feed, result))
    }

    /// Whether it has seen a value.
    pub(crate) fn has_value(&self) -> bool {
        self.live.latest().is_some()
    }

    /// When [`AggregateFeed::advance`] has something to do, in monotonic time.
    pub(crate) fn due(&self) -> Duration {
        self.due
    }

    /// A sample: the results of the intervals that it shows to be complete.
    ///
    /// It counts from its source timestamp on, if that is neither in the future nor before what was already computed: a source's clock that
    /// runs ahead must not end intervals that have not passed, and what comes late is the value from now on.
    pub(crate) fn accept(&mut self, value: &DataValue, now: Now) -> Vec<DataValue> {
        let mut results = Vec::new();
        let same_source = self.seen == value.source_timestamp;
        self.seen = value.source_timestamp;
        // The same reading again, such as after the source was bound anew.
        if !(same_source && self.live.is_latest(value)) {
            let stamp = value.source_timestamp.or(value.server_timestamp);
            let time = stamp.unwrap_or(now.utc).min(now.utc).max(self.live.earliest());
            self.live.push(time, value, |result| results.push(result));
            self.set_due(now);
        }
        results
    }

    /// Time has passed: the results of the intervals that are over.
    pub(crate) fn advance(&mut self, now: Now) -> Vec<DataValue> {
        let mut results = Vec::new();
        self.live
            .advance(now.utc.saturating_sub(self.wait), |result| results.push(result));
        self.set_due(now);
        results
    }

    /// Forgets all values and begins with the interval that now is in.
    pub(crate) fn restart(&mut self, now: Now) {
        let width = i64::try_from(self.width.as_nanos() / 100).unwrap_or(i64::MAX).max(1);
        let low = self.live.end().ticks().saturating_sub(width);
        let ahead = now.utc.ticks().saturating_sub(low).max(0);
        let start = DateTime::from_ticks(low.saturating_add(ahead - ahead % width));
        self.live = Live::new(self.live.settings().clone(), start, self.width);
        self.seen = None;
        self.set_due(now);
    }

    fn set_due(&mut self, now: Now) {
        let over = self.live.end().saturating_add(self.wait);
        self.due = now.mono.saturating_add(over.saturating_since(now.utc));
    }
}
