//! One monitored item: its parameters, its queue and its links into the lists of its subscription.

use std::sync::Arc;

use backplane_types::{DataValue, MonitoringMode, MonitoringParameters, Now, PlainValue};

use crate::events::EventQueue;

use super::filter::{AggregateFeed, EventFeed, ItemFilter, ItemTraits};
use super::limits::Limits;
use super::message::{NotificationWriter, Timestamps};
use super::queue::{Incoming, ItemQueue, Kept, Pushed};

/// Names a monitored item in a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemKey {
    /// SubscriptionId.
    pub subscription_id: u32,
    /// MonitoredItemId, unique in its subscription.
    pub monitored_item_id: u32,
}

/// Names one source of a monitored item: an answer that comes after the item got another source is recognised as stale.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct SampleKey {
    /// Which item.
    pub item: ItemKey,
    /// The item has no value yet, or none any more since it was disabled: what its source saw before does not count, and the answer must
    /// not be [`Sampled::Unchanged`].
    pub first: bool,
    pub(crate) binding: u32,
    /// Where the item is found without a search.
    pub(crate) slot: u32,
    pub(crate) group: u32,
}

/// Names a sampling group of a subscription, whose items are woken together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct GroupKey {
    /// SubscriptionId.
    pub subscription_id: u32,
    pub(crate) group: u32,
}

impl SampleKey {
    /// The sampling group that the item is in.
    #[inline]
    #[must_use]
    pub fn group(&self) -> GroupKey {
        GroupKey {
            subscription_id: self.item.subscription_id,
            group: self.group,
        }
    }

    /// The item's number among those of its subscription, for [`wake_all`](super::Subscriptions::wake_all); another one may have it later.
    #[inline]
    #[must_use]
    pub fn slot(&self) -> u32 {
        self.slot
    }
}

/// What the caller found out about the node and attribute of an item.
#[derive(Debug, Clone)]
pub struct ResolvedItem<S> {
    /// What the sampler reads from; carries the attribute, the index range and the data encoding, and remembers what it saw last.
    pub source: S,
    /// The first value, if the caller has it; else the first sample is taken at the next [`handle_timeout`], at once.
    ///
    /// [`handle_timeout`]: super::Subscriptions::handle_timeout
    pub initial: Option<DataValue>,
    /// What the node allows.
    pub traits: ItemTraits,
}

/// What a sample brought.
#[derive(Debug, Clone, PartialEq)]
pub enum Sampled {
    /// The source has nothing newer than at the last call.
    Unchanged,
    /// The current value. Equal ones may be given again: the item's filter decides.
    Value(DataValue),
    /// As `Value`, in the form that costs least.
    Plain(PlainValue),
    /// The value has to be fetched; the caller hands it to [`handle_samples`](super::Subscriptions::handle_samples), good or bad. Until
    /// then the item is not sampled.
    Pending,
}

/// Reads the sources of monitored items.
pub trait Sampler<S> {
    /// Samples one source. It may keep in `source` what it saw, such as the version of a value cell, to answer `Unchanged` next time.
    /// Not when the key says that this is the `first` sample.
    fn sample(&mut self, key: SampleKey, source: &mut S, now: Now) -> Sampled;

    /// Whether the source need not be looked at until the caller says [`wake`](super::Subscriptions::wake) with this key. Asked after a sample: a
    /// change that came since must be answered with false, and every later one must lead to a `wake`, or it is lost.
    fn rest(&mut self, key: SampleKey, source: &mut S) -> bool {
        let _ = (key, source);
        false
    }
}

/// End of a list.
pub(crate) const NONE: u32 = u32::MAX;

/// Parameters as revised.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Revised {
    pub(crate) client_handle: u32,
    /// In ms; 0 is by exception.
    pub(crate) sampling_interval: f64,
    pub(crate) queue_size: u32,
    pub(crate) discard_oldest: bool,
    pub(crate) timestamps: Timestamps,
}

impl Revised {
    /// Revises what a client asks for. `default_sampling_interval` and `default_queue_size` stand for -1 and 0.
    pub(crate) fn new(
        limits: &Limits,
        requested: &MonitoringParameters,
        traits: &ItemTraits,
        timestamps: Timestamps,
        default_sampling_interval: f64,
        default_queue_size: u32,
    ) -> Self {
        if traits.is_notifier {
            return Self {
                client_handle: requested.client_handle,
                // Events come when they happen.
                sampling_interval: 0.0,
                queue_size: limits.revise_event_queue_size(requested.queue_size),
                discard_oldest: requested.discard_oldest,
                timestamps,
            };
        }
        Self {
            client_handle: requested.client_handle,
            sampling_interval: limits.revise_sampling_interval(
                requested.sampling_interval,
                default_sampling_interval,
                traits.minimum_sampling_interval,
                traits.is_value,
            ),
            queue_size: limits.revise_queue_size(requested.queue_size, default_queue_size),
            discard_oldest: requested.discard_oldest,
            timestamps,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Item<S> {
    pub(crate) id: u32,
    pub(crate) source: S,
    pub(crate) revised: Revised,
    pub(crate) filter: ItemFilter,
    /// Shared by items that have the same.
    pub(crate) traits: Arc<ItemTraits>,
    pub(crate) mode: MonitoringMode,
    pub(crate) queue: ItemQueue,
    /// Counts sources, to recognise late samples.
    pub(crate) binding: u32,
    /// A sample is being fetched.
    pub(crate) pending: bool,
    /// The node is gone; nothing is sampled until it returns.
    pub(crate) gone: bool,
    /// It is there, but the user may not read it.
    pub(crate) denied: bool,
    /// A triggering item lets its queue be reported, although it only samples; until the queue is sent.
    pub(crate) triggered: bool,
    /// Info bits of the status that the next notification carries: SemanticsChanged, StructureChanged.
    pub(crate) news: u16,
    /// Waits for its first sample.
    pub(crate) wants_first: bool,
    /// Its source tells when it changes: it is not sampled until then.
    pub(crate) resting: bool,
    /// The tick of its group at which it was sampled last.
    pub(crate) sampled_tick: u32,
    /// The sampling group and, unless it rests, the place in it.
    pub(crate) group: u32,
    pub(crate) group_place: u32,
    /// Neighbours in the ready list.
    pub(crate) ready: bool,
    pub(crate) ready_before: u32,
    pub(crate) ready_after: u32,
}

impl<S> Item<S> {
    pub(crate) fn new(
        id: u32,
        source: S,
        revised: Revised,
        mut filter: ItemFilter,
        traits: Arc<ItemTraits>,
        mode: MonitoringMode,
    ) -> Self {
        if let ItemFilter::Event(feed) = &mut filter {
            feed.queue = EventQueue::new(revised.queue_size, revised.discard_oldest);
        }
        Self {
            id,
            source,
            revised,
            filter,
            traits,
            mode,
            queue: ItemQueue::new(revised.queue_size, revised.discard_oldest),
            binding: 0,
            pending: false,
            gone: false,
            denied: false,
            triggered: false,
            news: 0,
            wants_first: false,
            resting: false,
            sampled_tick: 0,
            group: NONE,
            group_place: NONE,
            ready: false,
            ready_before: NONE,
            ready_after: NONE,
        }
    }

    #[inline]
    pub(crate) fn sample_key(&self, subscription_id: u32, slot: u32) -> SampleKey {
        SampleKey {
            item: ItemKey {
                subscription_id,
                monitored_item_id: self.id,
            },
            first: self.wants_value(),
            binding: self.binding,
            slot,
            group: self.group,
        }
    }

    #[inline]
    pub(crate) fn is_sampled(&self) -> bool {
        self.mode != MonitoringMode::DISABLED && !self.gone && self.events().is_none()
    }

    /// What an event item has in place of a queue of values.
    #[inline]
    pub(crate) fn events(&self) -> Option<&EventFeed> {
        match &self.filter {
            ItemFilter::Event(feed) => Some(feed),
            ItemFilter::Data(_) | ItemFilter::Aggregate(_) => None,
        }
    }

    /// As [`Item::events`], to change it.
    pub(crate) fn events_mut(&mut self) -> Option<&mut EventFeed> {
        match &mut self.filter {
            ItemFilter::Event(feed) => Some(feed),
            ItemFilter::Data(_) | ItemFilter::Aggregate(_) => None,
        }
    }

    /// What an aggregate item computes with.
    pub(crate) fn aggregate(&mut self) -> Option<&mut AggregateFeed> {
        match &mut self.filter {
            ItemFilter::Aggregate(feed) => Some(feed),
            ItemFilter::Data(_) | ItemFilter::Event(_) => None,
        }
    }

    /// Whether it has seen no value yet, or none since it was disabled.
    #[inline]
    pub(crate) fn wants_value(&self) -> bool {
        match &self.filter {
            ItemFilter::Aggregate(feed) => !feed.has_value(),
            ItemFilter::Data(_) | ItemFilter::Event(_) => self.queue.newest().is_none(),
        }
    }

    /// Appends the oldest of what is to be reported.
    #[inline]
    pub(crate) fn write_next(&mut self, writer: &mut NotificationWriter<'_>) {
        let (handle, timestamps) = (self.revised.client_handle, self.revised.timestamps);
        if let ItemFilter::Event(feed) = &mut self.filter {
            if let Some(event) = feed.queue.pop() {
                writer.push_event(handle, &feed.filter, &event);
            }
            return;
        }
        let news = std::mem::take(&mut self.news);
        self.queue.send_next(|entry| {
            entry.info_bits |= news;
            writer.push(handle, entry, timestamps);
        });
    }

    /// Values or events to report.
    #[inline]
    pub(crate) fn queued(&self) -> usize {
        self.events().map_or_else(|| self.queue.len(), |feed| feed.queue.len())
    }

    /// Forgets what is queued.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.news = 0;
        if let Some(feed) = self.events_mut() {
            feed.queue.clear();
        }
    }

    /// Changes size and policy of the queue to the revised ones; returns how many events were lost.
    pub(crate) fn resize(&mut self, now: Now) -> u64 {
        let (size, discard_oldest) = (self.revised.queue_size, self.revised.discard_oldest);
        match self.events_mut() {
            Some(feed) => feed.queue.resize(size, discard_oldest, now),
            None => {
                self.queue.resize(size, discard_oldest);
                0
            }
        }
    }

    /// Whether what it has queued can be sent.
    #[inline]
    pub(crate) fn reports(&self) -> bool {
        self.mode == MonitoringMode::REPORTING || self.triggered
    }

    /// Queues a sample if it passes the filter.
    #[inline]
    pub(crate) fn accept(&mut self, value: Incoming, now: Now) -> Option<Pushed> {
        match value {
            Incoming::Plain(value) => self.accept_plain(value, now),
            Incoming::Other(value) => self.accept_other(value, now),
        }
    }

    /// As [`Item::accept`].
    #[inline(always)]
    pub(crate) fn accept_plain(&mut self, mut value: PlainValue, now: Now) -> Option<Pushed> {
        let ItemFilter::Data(filter) = &self.filter else {
            return None;
        };
        let passes = match self.queue.newest() {
            Some(Kept::Plain(last)) => filter.passes_plain(last, &value),
            Some(Kept::Other(last)) => filter.passes(last, &value.data_value()),
            None => true,
        };
        if !passes {
            return None;
        }
        self.revised.timestamps.stamp_plain(&mut value, now.utc);
        Some(self.queue.push(value))
    }

    fn accept_other(&mut self, mut value: DataValue, now: Now) -> Option<Pushed> {
        let ItemFilter::Data(filter) = &self.filter else {
            return None;
        };
        let passes = match self.queue.newest() {
            Some(Kept::Plain(last)) => filter.passes(&last.data_value(), &value),
            Some(Kept::Other(last)) => filter.passes(last, &value),
            None => true,
        };
        if !passes {
            return None;
        }
        self.revised.timestamps.stamp(&mut value, now.utc);
        Some(self.queue.push(Incoming::Other(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::Item;

    /// There are a great many items, and each tick goes through those that are awake.
    #[test]
    fn an_item_is_small() {
        assert!(
            size_of::<Option<Item<()>>>() <= 152,
            "{}",
            size_of::<Option<Item<()>>>()
        );
    }
}
