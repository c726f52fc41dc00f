//! Limits of subscriptions and monitored items, and the revised values that follow from them (Part 4, 5.14.2, 5.14.3 and 7.21).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backplane_types::StatusCode;

use crate::events::FilterLimits;

/// A run of sampling intervals that are kept in groups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SamplingRates {
    /// First interval in ms.
    pub start: f64,
    /// Distance from one to the next in ms.
    pub step: f64,
    /// How many steps follow the first.
    pub count: u32,
}

/// Limits of [`Subscriptions`](super::Subscriptions). Every overflow has the status code named at the field.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Most subscriptions of one session: `BadTooManySubscriptions`.
    pub max_subscriptions: usize,
    /// Most monitored items of one subscription: `BadTooManyMonitoredItems` for each item above it.
    pub max_monitored_items: usize,
    /// Most operations of one service call, acknowledgements of a Publish request included: `BadTooManyOperations`.
    pub max_operations: usize,
    /// Most Publish requests waiting for one session: above it the oldest is answered `BadTooManyPublishRequests`.
    /// With more subscriptions than this it is one more than there are subscriptions.
    pub max_publish_requests: usize,
    /// Most notifications in one message.
    pub max_notifications_per_publish: u32,
    /// Longest NotificationMessage in bytes. A single value that is longer is replaced by `BadEncodingLimitsExceeded`.
    pub max_message_size: usize,
    /// Most messages that one subscription keeps for Republish; the oldest is dropped for a new one.
    pub max_retransmission_messages: usize,
    /// Most bytes that one subscription keeps for Republish; the oldest are dropped, but the newest message always stays.
    pub max_retransmission_bytes: usize,
    /// Most triggering links of one subscription: `BadTooManyMonitoredItems` for each link above it.
    pub max_triggering_links: usize,
    /// Longest queue of a monitored item; longer requests are revised.
    pub max_queue_size: u32,
    /// Longest queue of an event item; longer requests are revised.
    pub max_event_queue_size: u32,
    /// Queue of an event item whose client leaves the size to the server.
    pub default_event_queue_size: u32,
    /// Limits of durable subscriptions.
    pub durable: DurableLimits,
    /// Limits of event filters.
    pub event_filter: FilterLimits,
    /// Shortest publishing interval in ms.
    pub min_publishing_interval: f64,
    /// Longest publishing interval in ms; also the longest time between two messages.
    pub max_publishing_interval: f64,
    /// Publishing intervals are rounded up to a multiple of this, in ms.
    pub publishing_resolution: f64,
    /// Shortest lifetime in ms.
    pub min_lifetime: f64,
    /// Longest lifetime in ms; three keep-alive intervals are granted all the same.
    pub max_lifetime: f64,
    /// Keep-alive count when the client gives 0.
    pub default_keep_alive_count: u32,
    /// Shortest sampling interval of nodes that are not continuous, in ms (MinSupportedSampleRate).
    pub min_sampling_interval: f64,
    /// How often continuous nodes (sampling interval 0) are looked at, unless the server reports their changes itself.
    pub exception_interval: Duration,
    /// Shortest interval that an aggregate is computed for, in ms.
    pub min_processing_interval: f64,
    /// Intervals that others are rounded up to, in ascending order.
    pub sampling_rates: Vec<SamplingRates>,
}

/// Limits of durable subscriptions (Part 4, 6.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurableLimits {
    /// Longest lifetime in hours; 0: there are no durable subscriptions (`BadNotSupported`).
    pub max_lifetime_hours: u32,
    /// Longest queue of an item of a durable subscription; longer requests are revised.
    pub max_queue_size: u32,
    /// Durable subscriptions of one session: `BadTooManySubscriptions`.
    pub max_subscriptions: usize,
    /// Places that the queues of one subscription's items may have beyond those of other items; longer requests are revised.
    pub max_values: u32,
}

impl Default for DurableLimits {
    fn default() -> Self {
        Self {
            max_lifetime_hours: 10,
            max_queue_size: 200_000,
            max_subscriptions: 10,
            max_values: 1_000_000,
        }
    }
}

/// The longest sampling interval: one year in ms.
const MAX_SAMPLING_INTERVAL: f64 = 365.0 * 86_400_000.0;
/// Durable subscriptions of a server, and places of the long queues of all their items, unless it was configured otherwise.
const DURABLE_SUBSCRIPTIONS: u32 = 100;
const DURABLE_VALUES: u32 = 5_000_000;
/// Lifetime is at least so many keep-alive intervals (Part 4, 5.14.2.2).
const LIFETIME_PER_KEEP_ALIVE: u32 = 3;

impl Default for Limits {
    /// 10 ms is the shortest publishing and sampling interval, so that a control loop can be watched without configuration; publishing
    /// intervals have a resolution of 1 ms.
    fn default() -> Self {
        let rates = |start, step, count| SamplingRates { start, step, count };
        Self {
            max_subscriptions: 100,
            max_monitored_items: 100_000,
            max_operations: 10_000,
            max_publish_requests: 20,
            max_notifications_per_publish: 1000,
            max_message_size: 4 << 20,
            max_retransmission_messages: 40,
            max_retransmission_bytes: 16 << 20,
            max_triggering_links: 100_000,
            max_queue_size: 100,
            max_event_queue_size: 10_000,
            default_event_queue_size: 1000,
            durable: DurableLimits::default(),
            event_filter: FilterLimits::default(),
            min_publishing_interval: 10.0,
            max_publishing_interval: 3_600_000.0,
            publishing_resolution: 1.0,
            min_lifetime: 10_000.0,
            max_lifetime: 3_600_000.0,
            default_keep_alive_count: 3,
            min_sampling_interval: 0.0,
            exception_interval: Duration::from_millis(10),
            min_processing_interval: 100.0,
            sampling_rates: vec![
                rates(10.0, 10.0, 9),
                rates(100.0, 100.0, 4),
                rates(500.0, 250.0, 2),
                rates(1000.0, 1000.0, 4),
                rates(5000.0, 2500.0, 2),
                rates(10_000.0, 10_000.0, 4),
                rates(60_000.0, 30_000.0, 10),
                rates(300_000.0, 60_000.0, 15),
                rates(900_000.0, 300_000.0, 9),
                rates(3_600_000.0, 900_000.0, 0),
            ],
        }
    }
}

impl Limits {
    /// Checks the relations between the limits.
    ///
    /// # Errors
    /// The first relation that does not hold.
    pub fn check(&self) -> Result<(), crate::LimitsError> {
        let positive = |value: f64| value.is_finite() && value > 0.0;
        let rules = [
            (self.max_subscriptions > 0, "max_subscriptions must be at least 1"),
            (self.max_publish_requests > 0, "max_publish_requests must be at least 1"),
            (
                self.max_notifications_per_publish > 0,
                "max_notifications_per_publish must be at least 1",
            ),
            (
                self.max_retransmission_messages > 0,
                "max_retransmission_messages must be at least 1",
            ),
            (self.max_queue_size > 0, "max_queue_size must be at least 1"),
            (
                self.max_event_queue_size > 0 && self.default_event_queue_size <= self.max_event_queue_size,
                "max_event_queue_size must be at least 1 and not below default_event_queue_size",
            ),
            (
                positive(self.min_publishing_interval) && positive(self.publishing_resolution),
                "min_publishing_interval and publishing_resolution must be longer than 0",
            ),
            (
                self.min_publishing_interval <= self.max_publishing_interval
                    && self.max_publishing_interval.is_finite(),
                "min_publishing_interval must not exceed max_publishing_interval",
            ),
            (
                positive(self.min_lifetime) && self.min_lifetime <= self.max_lifetime && self.max_lifetime.is_finite(),
                "min_lifetime must not exceed max_lifetime",
            ),
            (
                self.min_sampling_interval.is_finite() && self.min_sampling_interval >= 0.0,
                "min_sampling_interval must not be negative",
            ),
            (
                positive(self.min_processing_interval),
                "min_processing_interval must be longer than 0",
            ),
            (
                !self.exception_interval.is_zero(),
                "exception_interval must be longer than 0",
            ),
            (
                self.sampling_rates
                    .iter()
                    .all(|rates| positive(rates.start) && positive(rates.step)),
                "sampling rates must be longer than 0",
            ),
        ];
        match rules.into_iter().find(|(holds, _)| !holds) {
            Some((_, problem)) => Err(crate::LimitsError(problem)),
            None => Ok(()),
        }
    }

    /// The revised publishing interval in ms. What is not a number or not positive gets the shortest one.
    #[must_use]
    pub fn revise_publishing_interval(&self, requested: f64) -> f64 {
        let interval = if requested.is_nan() || requested <= 0.0 {
            self.min_publishing_interval
        } else {
            requested.clamp(self.min_publishing_interval, self.max_publishing_interval)
        };
        (interval / self.publishing_resolution).ceil() * self.publishing_resolution
    }

    /// The revised keep-alive count for a revised publishing interval.
    #[must_use]
    pub fn revise_keep_alive_count(&self, requested: u32, publishing_interval: f64) -> u32 {
        let requested = if requested == 0 {
            self.default_keep_alive_count
        } else {
            requested
        };
        let longest = self.max_lifetime.min(self.max_publishing_interval);
        requested
            .min(cycles(longest, publishing_interval))
            .clamp(1, u32::MAX / LIFETIME_PER_KEEP_ALIVE)
    }

    /// The revised lifetime count for a revised publishing interval and keep-alive count.
    #[must_use]
    pub fn revise_lifetime_count(&self, requested: u32, keep_alive_count: u32, publishing_interval: f64) -> u32 {
        requested
            .min(cycles(self.max_lifetime, publishing_interval))
            .max(keep_alive_count.saturating_mul(LIFETIME_PER_KEEP_ALIVE))
            .max(cycles(self.min_lifetime, publishing_interval))
    }

    /// Most notifications in a message; 0 asks for the server's limit.
    #[must_use]
    pub fn revise_max_notifications(&self, requested: u32) -> u32 {
        if requested == 0 {
            self.max_notifications_per_publish
        } else {
            requested.min(self.max_notifications_per_publish)
        }
    }

    /// The revised queue size of a data item; `current` is what 0 stands for: 1 for a new item.
    #[must_use]
    pub fn revise_queue_size(&self, requested: u32, current: u32) -> u32 {
        let size = if requested == 0 { current } else { requested };
        size.clamp(1, self.max_queue_size)
    }

    /// The revised queue size of an event item: 0 stands for the server's default, the largest number for its maximum (Part 4, 7.21).
    #[must_use]
    pub fn revise_event_queue_size(&self, requested: u32) -> u32 {
        let size = if requested == 0 {
            self.default_event_queue_size
        } else {
            requested
        };
        size.clamp(1, self.max_event_queue_size)
    }

    /// The revised sampling interval in ms; 0 is by exception.
    ///
    /// A negative request, or one that is no number, stands for `default`: the publishing interval of a new item, the current sampling
    /// interval of one that is modified. `node_minimum` is the MinimumSamplingInterval of the node: 0 is continuous and has no lower bound,
    /// below 0 is unknown.
    #[must_use]
    pub fn revise_sampling_interval(&self, requested: f64, default: f64, node_minimum: f64, is_value: bool) -> f64 {
        let requested = if requested.is_nan() || requested < 0.0 {
            default
        } else {
            requested.min(MAX_SAMPLING_INTERVAL)
        };
        let continuous = is_value && node_minimum == 0.0;
        if continuous && requested == 0.0 {
            return 0.0;
        }
        let node_minimum = if is_value && node_minimum.is_finite() {
            node_minimum
        } else {
            0.0
        };
        let minimum = if continuous {
            0.0
        } else {
            node_minimum.max(self.min_sampling_interval)
        };
        self.round_up(requested.max(minimum).min(MAX_SAMPLING_INTERVAL))
    }

    fn round_up(&self, interval: f64) -> f64 {
        for rates in &self.sampling_rates {
            if interval <= rates.start {
                return rates.start;
            }
            let steps = ((interval - rates.start) / rates.step).ceil();
            if steps <= f64::from(rates.count) {
                return rates.start + steps * rates.step;
            }
        }
        interval
    }
}

/// How many publishing intervals cover a time, rounded up.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn cycles(time: f64, publishing_interval: f64) -> u32 {
    // A float conversion saturates, and both are positive.
    (time / publishing_interval).ceil() as u32
}

/// A time in ms as a duration; the longest one when it is too long.
pub(crate) fn duration(ms: f64) -> Duration {
    Duration::try_from_secs_f64(ms / 1000.0).unwrap_or(Duration::MAX)
}

/// What all sessions of a server share: subscription ids, and how many subscriptions and items there are.
#[derive(Debug)]
pub struct SubscriptionRegistry {
    next_id: AtomicU32,
    subscriptions: Budget,
    monitored_items: Budget,
    durable: Budget,
    /// Places of queues of durable items beyond what every item may have.
    durable_values: Budget,
    /// Who has which subscription. Locked when one is created, moves or ends.
    owners: Mutex<HashMap<u32, u32>>,
}

impl SubscriptionRegistry {
    /// A registry for at most so many subscriptions (`BadTooManySubscriptions`) and monitored items (`BadTooManyMonitoredItems`), those
    /// of closed sessions included.
    #[must_use]
    pub fn new(max_subscriptions: u32, max_monitored_items: u32) -> Arc<Self> {
        Self::with_durable(
            max_subscriptions,
            max_monitored_items,
            DURABLE_SUBSCRIPTIONS,
            DURABLE_VALUES,
        )
    }

    /// As [`new`](Self::new), with at most so many durable subscriptions (`BadTooManySubscriptions`), and so many places that the queues of all their items may
    /// have beyond the usual (longer requests are revised).
    #[must_use]
    pub fn with_durable(
        max_subscriptions: u32,
        max_monitored_items: u32,
        max_durable: u32,
        max_durable_values: u32,
    ) -> Arc<Self> {
        Arc::new(Self {
            next_id: AtomicU32::new(1),
            subscriptions: Budget::new(max_subscriptions),
            monitored_items: Budget::new(max_monitored_items),
            durable: Budget::new(max_durable),
            durable_values: Budget::new(max_durable_values),
            owners: Mutex::default(),
        })
    }

    /// Subscriptions of all sessions.
    #[must_use]
    pub fn subscriptions(&self) -> u32 {
        self.subscriptions.used.load(Ordering::Relaxed)
    }

    /// Monitored items of all sessions.
    #[must_use]
    pub fn monitored_items(&self) -> u32 {
        self.monitored_items.used.load(Ordering::Relaxed)
    }

    /// The session that has a subscription, as it was named by [`Subscriptions::owned_by`](super::Subscriptions::owned_by); none when there
    /// is no such subscription.
    #[must_use]
    pub fn owner(&self, subscription_id: u32) -> Option<u32> {
        self.with_owners(|owners| owners.get(&subscription_id).copied())
    }

    fn with_owners<T>(&self, act: impl FnOnce(&mut HashMap<u32, u32>) -> T) -> T {
        act(&mut self.owners.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn take_subscription(self: &Arc<Self>, owner: u32) -> Result<SubscriptionLease, StatusCode> {
        if !self.subscriptions.take() {
            return Err(StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS);
        }
        let mut id = self.next_id.fetch_add(1, Ordering::Relaxed);
        // One that was saved may have it.
        while self.with_owners(|owners| owners.contains_key(&id)) || id == 0 {
            id = self.next_id.fetch_add(1, Ordering::Relaxed);
        }
        self.with_owners(|owners| owners.insert(id, owner));
        Ok(SubscriptionLease {
            registry: Arc::clone(self),
            id,
            items: 0,
        })
    }

    /// The place of a subscription that comes back with its id; new ones get higher ids.
    pub(crate) fn take_saved(self: &Arc<Self>, id: u32, owner: u32) -> Result<SubscriptionLease, StatusCode> {
        if !self.subscriptions.take() {
            return Err(StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS);
        }
        let free = self.with_owners(|owners| match owners.entry(id) {
            Entry::Vacant(place) => {
                place.insert(owner);
                true
            }
            Entry::Occupied(_) => false,
        });
        if !free || id == 0 {
            self.subscriptions.give_back(1);
            return Err(StatusCode::BAD_SUBSCRIPTION_ID_INVALID);
        }
        self.next_id.fetch_max(id.wrapping_add(1), Ordering::Relaxed);
        Ok(SubscriptionLease {
            registry: Arc::clone(self),
            id,
            items: 0,
        })
    }

    /// The place of one durable subscription.
    pub(crate) fn take_durable(self: &Arc<Self>, limits: &DurableLimits) -> Result<DurableRoom, StatusCode> {
        if !self.durable.take() {
            return Err(StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS);
        }
        Ok(DurableRoom {
            registry: Arc::clone(self),
            values: 0,
            most: limits.max_values,
        })
    }
}

impl Limits {
    /// A sampling interval that was revised before, under limits that may have been others: 0 (by exception), or not shorter than all are now.
    pub(crate) fn allow_sampling_interval(&self, revised: f64) -> f64 {
        if revised <= 0.0 {
            return 0.0;
        }
        revised.max(self.min_sampling_interval).min(MAX_SAMPLING_INTERVAL)
    }
}

/// The place of one durable subscription in the registry, with the long queues of its items; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct DurableRoom {
    registry: Arc<SubscriptionRegistry>,
    values: u32,
    most: u32,
}

impl DurableRoom {
    /// Takes room for so many values, or for as many as there is room for.
    pub(crate) fn take(&mut self, wanted: u32) -> u32 {
        let own = self.most.saturating_sub(self.values);
        let granted = self.registry.durable_values.take_up_to(wanted.min(own));
        self.values += granted;
        granted
    }

    pub(crate) fn give_back(&mut self, count: u32) {
        let count = count.min(self.values);
        self.values -= count;
        self.registry.durable_values.give_back(count);
    }
}

impl Drop for DurableRoom {
    fn drop(&mut self) {
        self.registry.durable_values.give_back(self.values);
        self.registry.durable.give_back(1);
    }
}

#[derive(Debug)]
struct Budget {
    used: AtomicU32,
    limit: u32,
}

impl Budget {
    fn new(limit: u32) -> Self {
        Self {
            used: AtomicU32::new(0),
            limit,
        }
    }

    fn take(&self) -> bool {
        self.used
            .try_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                (used < self.limit).then_some(used + 1)
            })
            .is_ok()
    }

    /// Takes so many, or as many as there are.
    fn take_up_to(&self, wanted: u32) -> u32 {
        let mut granted = 0;
        // It never refuses: taking none is an update too.
        let _ = self.used.try_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            granted = wanted.min(self.limit.saturating_sub(used));
            Some(used + granted)
        });
        granted
    }

    fn give_back(&self, count: u32) {
        self.used.fetch_sub(count, Ordering::Relaxed);
    }
}

/// The place of one subscription and its items in the registry; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct SubscriptionLease {
    registry: Arc<SubscriptionRegistry>,
    id: u32,
    items: u32,
}

impl SubscriptionLease {
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    pub(crate) fn set_owner(&mut self, owner: u32) {
        self.registry.with_owners(|owners| owners.insert(self.id, owner));
    }

    pub(crate) fn take_item(&mut self) -> Result<(), StatusCode> {
        if self.registry.monitored_items.take() {
            self.items += 1;
            Ok(())
        } else {
            Err(StatusCode::BAD_TOO_MANY_MONITORED_ITEMS)
        }
    }

    pub(crate) fn give_back_item(&mut self) {
        if self.items > 0 {
            self.items -= 1;
            self.registry.monitored_items.give_back(1);
        }
    }
}

impl Drop for SubscriptionLease {
    fn drop(&mut self) {
        self.registry.with_owners(|owners| owners.remove(&self.id));
        self.registry.subscriptions.give_back(1);
        self.registry.monitored_items.give_back(self.items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publishing_interval_is_clamped_and_rounded_up() {
        let limits = Limits::default();
        for (requested, expected) in [
            (0.0, 10.0),
            (-1.0, 10.0),
            (f64::NAN, 10.0),
            (3.0, 10.0),
            (100.2, 101.0),
            (f64::INFINITY, 3_600_000.0),
            (f64::MAX, 3_600_000.0),
        ] {
            assert_eq!(limits.revise_publishing_interval(requested), expected, "{requested}");
        }
    }

    #[test]
    fn counts_follow_the_interval() {
        let limits = Limits::default();
        assert_eq!(limits.revise_keep_alive_count(0, 100.0), 3);
        assert_eq!(limits.revise_keep_alive_count(u32::MAX, 1000.0), 3600);
        assert_eq!(limits.revise_lifetime_count(0, 10, 1000.0), 30);
        assert_eq!(limits.revise_lifetime_count(0, 1, 1000.0), 10, "10 s at least");
        assert_eq!(limits.revise_lifetime_count(u32::MAX, 10, 1000.0), 3600);
        assert_eq!(limits.revise_lifetime_count(30, 3600, 1000.0), 10_800);
        assert_eq!(limits.revise_max_notifications(0), 1000);
        assert_eq!(limits.revise_max_notifications(5), 5);
        assert_eq!(limits.revise_queue_size(0, 1), 1);
        assert_eq!(limits.revise_queue_size(0, 7), 7);
        assert_eq!(limits.revise_queue_size(u32::MAX, 1), 100);
    }

    #[test]
    fn sampling_interval() {
        let limits = Limits::default();
        let revise = |requested, node| limits.revise_sampling_interval(requested, 500.0, node, true);
        for (requested, node, expected) in [
            (0.0, 0.0, 0.0),
            (0.0, -1.0, 10.0),
            (-1.0, -1.0, 500.0),
            (-7.0, 0.0, 500.0),
            (f64::NAN, -1.0, 500.0),
            (5.0, 0.0, 10.0),
            (11.0, -1.0, 20.0),
            (110.0, -1.0, 200.0),
            (501.0, -1.0, 750.0),
            (10.0, 1000.0, 1000.0),
            (3_600_001.0, -1.0, 3_600_001.0),
            (1e9, -1.0, 1e9),
            (f64::MAX, -1.0, MAX_SAMPLING_INTERVAL),
            (f64::INFINITY, -1.0, MAX_SAMPLING_INTERVAL),
        ] {
            assert_eq!(revise(requested, node), expected, "{requested} {node}");
        }
        assert_eq!(limits.revise_sampling_interval(0.0, 500.0, 0.0, false), 10.0);
    }

    #[test]
    fn the_revised_sampling_interval_is_never_shorter_than_asked() {
        let limits = Limits::default();
        for tenths in 0..100_000 {
            let requested = f64::from(tenths) * 0.7;
            assert!(limits.revise_sampling_interval(requested, 1.0, -1.0, true) >= requested);
        }
    }

    #[test]
    fn registry_counts_and_gives_back() {
        let registry = SubscriptionRegistry::new(1, 2);
        let mut lease = registry.take_subscription(7).unwrap();
        let id = lease.id();
        assert_eq!(registry.owner(id), Some(7));
        lease.set_owner(8);
        assert_eq!(registry.owner(id), Some(8));
        assert_eq!(
            registry.take_subscription(7).err(),
            Some(StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS)
        );
        lease.take_item().unwrap();
        lease.take_item().unwrap();
        assert_eq!(lease.take_item(), Err(StatusCode::BAD_TOO_MANY_MONITORED_ITEMS));
        drop(lease);
        assert_eq!(registry.owner(id), None);
        assert_eq!((registry.subscriptions(), registry.monitored_items()), (0, 0));
    }

    #[test]
    fn limits_are_checked() {
        Limits::default().check().unwrap();
        let wrong = Limits {
            min_publishing_interval: 5e6,
            ..Limits::default()
        };
        assert!(wrong.check().is_err());
    }
}
