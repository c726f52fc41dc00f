//! Durable subscriptions (Part 4, 6.8; Part 5, 9.3): they live for hours without a session, have long queues, and outlive the server.
//!
//! Owns what makes a subscription durable, what of it is saved, and how it comes back. It must not know files, and who may have it is the caller's matter.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use backplane_types::{
    DataValue, ExtensionObject, MonitoredItemCreateRequest, MonitoringParameters, Now, ReadValueId, StatusCode,
};

use super::Subscriptions;
use super::filter::{AggregateTerms, EventContext, ItemFilter, ItemTraits};
use super::item::{Item, ResolvedItem, Revised, Sampler};
use super::limits::{DurableRoom, Limits};
use super::message::Timestamps;
use super::saved::{SavedItem, SavedSubscription};
use super::state::StateMachine;
use super::subscription::{Subscription, SubscriptionParameters};

/// What a durable subscription has beside the others.
#[derive(Debug)]
pub(crate) struct Durable {
    hours: u32,
    /// How items were asked for, by MonitoredItemId.
    origins: HashMap<u32, Origin>,
    room: DurableRoom,
}

#[derive(Debug)]
struct Origin {
    item: ReadValueId,
    filter: ExtensionObject,
    /// Places of the queue beyond what every item may have.
    extra: u32,
}

impl Durable {
    /// Publishing intervals that its lifetime has.
    pub(crate) fn lifetime_count(&self, interval: f64) -> u32 {
        count(self.hours, interval)
    }

    /// Limits a queue that is longer than other items may have to what there is room for.
    pub(crate) fn grant_queue(
        &mut self,
        limits: &Limits,
        is_event: bool,
        revised: &mut Revised,
        requested: u32,
    ) -> u32 {
        let (usual, most) = if is_event {
            (
                limits.max_event_queue_size,
                limits.durable.max_queue_size.max(limits.max_event_queue_size),
            )
        } else {
            (
                limits.max_queue_size,
                limits.durable.max_queue_size.max(limits.max_queue_size),
            )
        };
        let wanted = requested.min(most);
        if wanted <= usual {
            return 0;
        }
        let extra = self.room.take(wanted - usual);
        revised.queue_size = usual + extra;
        extra
    }

    pub(crate) fn created(&mut self, id: u32, request: &MonitoredItemCreateRequest, extra: u32) {
        let origin = Origin {
            item: request.item_to_monitor.clone(),
            filter: request.requested_parameters.filter.clone(),
            extra,
        };
        self.origins.insert(id, origin);
    }

    /// An item is to get another queue: what its old one had beyond the usual is free.
    pub(crate) fn free_queue(&mut self, id: u32) {
        if let Some(origin) = self.origins.get_mut(&id) {
            self.room.give_back(std::mem::take(&mut origin.extra));
        }
    }

    pub(crate) fn modified(&mut self, id: u32, parameters: &MonitoringParameters, extra: u32) {
        if let Some(origin) = self.origins.get_mut(&id) {
            origin.filter = parameters.filter.clone();
            origin.extra = extra;
        }
    }

    pub(crate) fn deleted(&mut self, id: u32) {
        self.free_queue(id);
        self.origins.remove(&id);
    }
}

/// What the caller found for an item that comes back.
#[derive(Debug)]
pub enum Found<S> {
    /// The node is there.
    There(ResolvedItem<S>),
    /// It is not. The source remembers what was asked for: [`rebind`](Subscriptions::rebind) brings it back.
    Missing(S),
}

fn count(hours: u32, interval: f64) -> u32 {
    let intervals = f64::from(hours) * 3_600_000.0 / interval;
    // It fits: 10 ms for 10 hours are 3.6 million.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let count = intervals.min(f64::from(u32::MAX)).max(1.0) as u32;
    count
}

impl<S> Subscriptions<S> {
    /// SetSubscriptionDurable (Part 5, 9.3): answers the revised lifetime in hours.
    ///
    /// # Errors
    /// `BadNotSupported` where there are none, `BadSubscriptionIdInvalid`, `BadInvalidState` when it has items already,
    /// `BadTooManySubscriptions` when the session, or the server, has as many durable ones as it may.
    pub fn set_durable(&mut self, subscription_id: u32, lifetime_in_hours: u32) -> Result<u32, StatusCode> {
        let (limits, registry) = (Arc::clone(&self.limits), Arc::clone(&self.registry));
        let others = self
            .list
            .iter()
            .filter(|it| it.durable.is_some() && it.id() != subscription_id)
            .count();
        let subscription = self.find(subscription_id)?;
        if limits.durable.max_lifetime_hours == 0 {
            return Err(StatusCode::BAD_NOT_SUPPORTED);
        }
        if subscription.items.len() > 0 {
            return Err(StatusCode::BAD_INVALID_STATE);
        }
        if others >= limits.durable.max_subscriptions {
            return Err(StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS);
        }
        let hours = match lifetime_in_hours {
            // No wish: as long as it may be.
            0 => limits.durable.max_lifetime_hours,
            hours => hours.min(limits.durable.max_lifetime_hours),
        };
        match &mut subscription.durable {
            Some(durable) => durable.hours = hours,
            durable => {
                *durable = Some(Box::new(Durable {
                    hours,
                    origins: HashMap::new(),
                    room: registry.take_durable(&limits.durable)?,
                }));
            }
        }
        let interval = subscription.publishing_interval;
        let machine = &mut subscription.machine;
        machine.max_lifetime = count(hours, interval).max(machine.max_keep_alive.saturating_mul(3));
        machine.reset_lifetime();
        Ok(hours)
    }

    /// Samples the items of durable subscriptions once more, whatever their schedule: what clients could read before the server stopped is not to be missing.
    pub fn sample_durable(&mut self, now: Now, sampler: &mut impl Sampler<S>) {
        for subscription in self.list.iter_mut().filter(|it| it.durable.is_some()) {
            let ids: Vec<u32> = subscription.items.iter().map(|item| item.id).collect();
            for id in ids {
                if let Some(slot) = subscription.items.slot_of(id) {
                    subscription.items.sample(slot, now, sampler);
                }
            }
        }
    }

    /// The durable subscriptions, to be saved. Values that are being fetched are not waited for.
    pub fn save_durable(&self) -> impl Iterator<Item = SavedSubscription> {
        self.list
            .iter()
            .filter_map(|subscription| Some(save(subscription, subscription.durable.as_deref()?)))
    }

    /// Brings a saved subscription back. `away`: how long it was gone, which counts for its lifetime. Items whose filter cannot be had any more, and such as
    /// there is no room for, are left out; the answer is their ids.
    ///
    /// # Errors
    /// `BadTimeout`: its lifetime is over. `BadTooManySubscriptions`; `BadSubscriptionIdInvalid` when the id is in use.
    pub fn restore(
        &mut self,
        now: Now,
        saved: SavedSubscription,
        away: Duration,
        mut find: impl FnMut(&SavedItem) -> Found<S>,
    ) -> Result<Vec<u32>, StatusCode> {
        let intervals = away.as_secs_f64() * 1_000.0 / saved.publishing_interval;
        if intervals >= f64::from(saved.lifetime) {
            return Err(StatusCode::BAD_TIMEOUT);
        }
        let lease = self.registry.take_saved(saved.subscription_id, self.owner)?;
        let room = self.registry.take_durable(&self.limits.durable)?;
        let parameters = SubscriptionParameters {
            publishing_interval: saved.publishing_interval,
            lifetime_count: saved.max_lifetime,
            max_keep_alive_count: saved.max_keep_alive,
            max_notifications_per_publish: saved.max_notifications,
            priority: saved.priority,
        };
        let mut subscription = Subscription::new(lease, &self.limits, &parameters, saved.publishing_enabled, now);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let elapsed = intervals as u32;
        subscription.machine = StateMachine {
            lifetime: saved.lifetime.saturating_sub(elapsed).max(1),
            message_sent: saved.next_sequence_number > 1,
            ..StateMachine::new(saved.max_keep_alive, saved.max_lifetime, saved.publishing_enabled)
        };
        subscription
            .retransmission
            .restore(saved.next_sequence_number, saved.messages);
        subscription.durable = Some(Box::new(Durable {
            hours: saved.lifetime_hours,
            origins: HashMap::new(),
            room,
        }));
        let mut lost = Vec::new();
        for item in saved.items {
            let found = find(&item);
            let id = item.id;
            if restore_item(&mut subscription, (&self.limits, &self.events), item, found, now).is_err() {
                lost.push(id);
            }
        }
        subscription.items.continue_ids(saved.next_item_id);
        subscription
            .items
            .restore_links(&saved.links, self.limits.max_triggering_links);
        self.list.push(subscription);
        Ok(lost)
    }
}

fn save<S>(subscription: &Subscription<S>, durable: &Durable) -> SavedSubscription {
    let machine = &subscription.machine;
    let items = &subscription.items;
    SavedSubscription {
        subscription_id: subscription.id(),
        publishing_interval: subscription.publishing_interval,
        max_notifications: subscription.max_notifications,
        priority: subscription.priority,
        publishing_enabled: machine.publishing_enabled,
        max_keep_alive: machine.max_keep_alive,
        max_lifetime: machine.max_lifetime,
        lifetime: machine.lifetime,
        lifetime_hours: durable.hours,
        next_sequence_number: subscription.retransmission.next_sequence_number(),
        messages: subscription.retransmission.saved(),
        next_item_id: items.next_id(),
        items: items
            .iter()
            .filter_map(|item| Some(save_item(item, durable.origins.get(&item.id)?)))
            .collect(),
        links: items.links.iter().collect(),
    }
}

fn save_item<S>(item: &Item<S>, origin: &Origin) -> SavedItem {
    let revised = &item.revised;
    let (values, newest_waits) = item.queue.saved();
    SavedItem {
        id: item.id,
        request: MonitoredItemCreateRequest {
            item_to_monitor: origin.item.clone(),
            monitoring_mode: item.mode,
            requested_parameters: MonitoringParameters {
                client_handle: revised.client_handle,
                sampling_interval: revised.sampling_interval,
                filter: origin.filter.clone(),
                queue_size: revised.queue_size,
                discard_oldest: revised.discard_oldest,
            },
        },
        timestamps: revised.timestamps.asked(),
        traits: *item.traits,
        gone: item.gone,
        triggered: item.triggered,
        info_bits: item.news,
        values,
        newest_waits,
        events: item.events().map_or_else(Vec::new, |feed| feed.queue.saved()),
    }
}

fn restore_item<S>(
    subscription: &mut Subscription<S>,
    (limits, events): (&Limits, &EventContext),
    saved: SavedItem,
    found: Found<S>,
    now: Now,
) -> Result<(), StatusCode> {
    let (source, initial, traits, is_there) = match found {
        Found::There(resolved) => (resolved.source, resolved.initial, resolved.traits, true),
        Found::Missing(source) => (source, None, saved.traits, false),
    };
    let parameters = &saved.request.requested_parameters;
    let mut revised = Revised {
        client_handle: parameters.client_handle,
        sampling_interval: limits.allow_sampling_interval(parameters.sampling_interval),
        queue_size: parameters.queue_size,
        discard_oldest: parameters.discard_oldest,
        timestamps: Timestamps::from_request(saved.timestamps)?,
    };
    let terms = AggregateTerms::new(limits, &revised, now);
    let filter = |traits: &ItemTraits| ItemFilter::from_request(&parameters.filter, traits, events, &terms);
    // A node that has become another one may not allow the filter; its item goes on as it was promised.
    let (filter, _) = filter(&traits)
        .or_else(|_| filter(&saved.traits))
        .map_err(|refused| refused.status)?;
    subscription.lease.take_item()?;
    if let Some(durable) = subscription.durable.as_deref_mut() {
        let extra = durable.grant_queue(limits, traits.is_notifier, &mut revised, parameters.queue_size);
        durable.created(saved.id, &saved.request, extra);
    }
    let items = &mut subscription.items;
    let traits = items.share(traits);
    let mut item = Item::new(saved.id, source, revised, filter, traits, saved.request.monitoring_mode);
    item.gone = !is_there;
    item.news = saved.info_bits;
    items.insert(item, None, now);
    let Some(slot) = items.slot_of(saved.id) else {
        return Err(StatusCode::BAD_INTERNAL_ERROR);
    };
    let SavedItem {
        id,
        values,
        newest_waits,
        events,
        triggered,
        gone,
        ..
    } = saved;
    items.recount(slot, |item| {
        item.queue.restore(values, newest_waits);
        if let Some(feed) = item.events_mut() {
            feed.queue.restore(events);
        }
        // There may be less room than there was.
        item.resize(now)
    });
    if triggered {
        items.release(id);
    }
    if !is_there && !gone {
        items.mark_gone(slot);
    }
    if let Some(value) = initial {
        restored_value(items, slot, value, now);
    }
    Ok(())
}

/// The value that the node has now: reported, unless it is the one that was there before.
fn restored_value<S>(items: &mut super::table::ItemTable<S>, slot: u32, value: DataValue, now: Now) {
    if items.item(slot).is_some_and(|item| item.is_sampled()) {
        items.accept(slot, value, now);
    }
}
