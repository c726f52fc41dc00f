//! What one monitored item must report, said as plainly as possible: a list of values, a filter, and the rules of Part 4, 5.13.1.5.
//!
//! It shares no code with the core: the queue is one list, nothing is linked, nothing is counted ahead.

use std::collections::VecDeque;

use backplane_session::SampleKey;
use backplane_types::{
    DataChangeFilter, DataChangeTrigger, DataValue, DateTime, MonitoringMode, MonitoringParameters, StatusCode,
    TimestampsToReturn, Variant,
};

use super::timing::Timing;

/// A value that waits to be reported.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Waiting {
    pub(crate) value: DataValue,
    pub(crate) overflow: bool,
    /// Says that the node is gone: takes no place and is never lost.
    pub(crate) marker: bool,
}

/// When a value is reported.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Filter {
    trigger: DataChangeTrigger,
    /// Absolute, also for a percent deadband.
    deadband: Option<f64>,
}

/// See the module text.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) id: u32,
    pub(crate) handle: u32,
    pub(crate) node: String,
    pub(crate) mode: MonitoringMode,
    pub(crate) waiting: VecDeque<Waiting>,
    /// What the filter compares with: the newest value ever queued.
    pub(crate) last: Option<DataValue>,
    size: u32,
    discard_oldest: bool,
    filter: Filter,
    timestamps: TimestampsToReturn,
    range: Option<(f64, f64)>,
    /// The sample that is being fetched.
    pub(crate) pending: Option<SampleKey>,
    pub(crate) gone: bool,
    /// Wants a sample at the next turn, whatever the schedule.
    pub(crate) wants_first: bool,
    pub(crate) timing: Timing,
    /// Revised, in ms.
    pub(crate) interval: f64,
    /// The version of the node's truth that was sampled last.
    pub(crate) seen: Option<u64>,
    /// Values lost to a full queue.
    pub(crate) overflows: u64,
}

impl Item {
    pub(crate) fn new(
        id: u32,
        node: String,
        mode: MonitoringMode,
        asked: &MonitoringParameters,
        size: u32,
        timestamps: TimestampsToReturn,
        range: Option<(f64, f64)>,
    ) -> Self {
        let mut item = Self {
            id,
            handle: asked.client_handle,
            node,
            mode,
            waiting: VecDeque::new(),
            last: None,
            size,
            discard_oldest: asked.discard_oldest,
            filter: Filter {
                trigger: DataChangeTrigger::STATUS_VALUE,
                deadband: None,
            },
            timestamps,
            range,
            pending: None,
            gone: false,
            wants_first: false,
            timing: Timing::default(),
            interval: 0.0,
            seen: None,
            overflows: 0,
        };
        item.set_parameters(asked, size, timestamps);
        item
    }

    fn set_parameters(&mut self, asked: &MonitoringParameters, size: u32, timestamps: TimestampsToReturn) {
        self.handle = asked.client_handle;
        self.size = size;
        self.discard_oldest = asked.discard_oldest;
        self.timestamps = timestamps;
        let filter: Option<DataChangeFilter> = asked.filter.decode_as().ok();
        self.filter = match filter {
            None => Filter {
                trigger: DataChangeTrigger::STATUS_VALUE,
                deadband: None,
            },
            Some(filter) => Filter {
                trigger: filter.trigger,
                deadband: match (filter.deadband_type, self.range) {
                    (1, _) => Some(filter.deadband_value),
                    (2, Some((low, high))) => Some(filter.deadband_value / 100.0 * (high - low)),
                    _ => None,
                },
            },
        };
    }

    /// ModifyMonitoredItems, as far as values are concerned.
    pub(crate) fn modify(&mut self, asked: &MonitoringParameters, size: u32, timestamps: TimestampsToReturn) {
        self.set_parameters(asked, size, timestamps);
        while self.places() > self.size as usize {
            if self.size == 1 || self.discard_oldest {
                self.lose_oldest(self.size > 1);
            } else {
                // The newest takes the place of the one before it.
                let Some(newest) = self.last_place() else { return };
                if let Some(newest) = self.waiting.get_mut(newest) {
                    newest.overflow = true;
                }
                let before = self.waiting.iter().take(newest).rposition(|it| !it.marker);
                if let Some(before) = before {
                    self.waiting.remove(before);
                }
            }
        }
    }

    pub(crate) fn is_sampled(&self) -> bool {
        self.mode != MonitoringMode::DISABLED && !self.gone
    }

    pub(crate) fn is_reporting(&self) -> bool {
        self.mode == MonitoringMode::REPORTING
    }

    /// How many values may wait at most: one marker beside the queue.
    pub(crate) fn most(&self) -> usize {
        self.size as usize + 1
    }

    /// A sample: queued if the filter lets it pass.
    pub(crate) fn accept(&mut self, mut value: DataValue, utc: DateTime) {
        if let Some(last) = &self.last
            && !self.passes(last, &value)
        {
            return;
        }
        let wants_server = matches!(self.timestamps, TimestampsToReturn::SERVER | TimestampsToReturn::BOTH);
        if wants_server && value.server_timestamp.is_none() {
            value.server_timestamp = Some(utc);
        }
        self.last = Some(value.clone());
        self.queue(value);
    }

    fn queue(&mut self, value: DataValue) {
        let mut entry = Waiting {
            value,
            overflow: false,
            marker: false,
        };
        let initial = |it: &Waiting| it.value.status == Some(StatusCode::BAD_WAITING_FOR_INITIAL_DATA);
        if self.waiting.back().is_some_and(initial) {
            self.waiting.pop_back();
            self.waiting.push_back(entry);
        } else if self.places() < self.size as usize {
            self.waiting.push_back(entry);
        } else if self.size == 1 {
            // Only the newest is kept, and that is no overflow.
            self.lose_oldest(false);
            self.waiting.push_back(entry);
        } else if self.discard_oldest {
            self.overflows += 1;
            self.lose_oldest(true);
            self.waiting.push_back(entry);
        } else {
            self.overflows += 1;
            if let Some(newest) = self.last_place() {
                self.waiting.remove(newest);
            }
            entry.overflow = true;
            self.waiting.push_back(entry);
        }
    }

    /// Values that take a place.
    fn places(&self) -> usize {
        self.waiting.iter().filter(|it| !it.marker).count()
    }

    fn last_place(&self) -> Option<usize> {
        self.waiting.iter().rposition(|it| !it.marker)
    }

    /// Drops the oldest value; the next one says so, if `mark`.
    fn lose_oldest(&mut self, mark: bool) {
        if let Some(oldest) = self.waiting.iter().position(|it| !it.marker) {
            self.waiting.remove(oldest);
        }
        if mark && let Some(next) = self.waiting.iter_mut().find(|it| !it.marker) {
            next.overflow = true;
        }
    }

    /// The node is gone: one marker waits, the newest.
    pub(crate) fn mark_gone(&mut self) {
        self.waiting.retain(|it| !it.marker);
        let value = DataValue::from_status(StatusCode::BAD_NODE_ID_UNKNOWN);
        self.last = Some(value.clone());
        self.waiting.push_back(Waiting {
            value,
            overflow: false,
            marker: true,
        });
    }

    /// Disabling forgets everything.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.last = None;
    }

    fn passes(&self, last: &DataValue, value: &DataValue) -> bool {
        if last.status() != value.status() {
            return true;
        }
        let changed = match (self.filter.deadband, number(&last.value), number(&value.value)) {
            (Some(deadband), Some(last), Some(value)) => (last - value).abs() > deadband,
            _ => last.value != value.value,
        };
        match self.filter.trigger {
            DataChangeTrigger::STATUS => false,
            DataChangeTrigger::STATUS_VALUE_TIMESTAMP if self.filter.deadband.is_none() => {
                changed || last.source_timestamp != value.source_timestamp
            }
            _ => changed,
        }
    }

    /// The value as the client must see it.
    pub(crate) fn shown(&self, waiting: &Waiting) -> DataValue {
        let source = matches!(self.timestamps, TimestampsToReturn::SOURCE | TimestampsToReturn::BOTH);
        let server = matches!(self.timestamps, TimestampsToReturn::SERVER | TimestampsToReturn::BOTH);
        let mut value = waiting.value.clone();
        if waiting.overflow {
            value.status = Some(StatusCode(value.status().0 | StatusCode::OVERFLOW_BITS));
        }
        value.status = value.status.filter(|status| *status != StatusCode::GOOD);
        value.source_timestamp = value.source_timestamp.filter(|_| source);
        value.server_timestamp = value.server_timestamp.filter(|_| server);
        value
    }
}

fn number(value: &Variant) -> Option<f64> {
    match value {
        Variant::Double(value) => Some(*value),
        _ => None,
    }
}
