//! The monitored items of one subscription: by id, in sampling groups, and in the ready list.
//!
//! Items live in slots that keep their place, so that groups and lists are plain numbers. An item that gets something to report links
//! itself into the ready list; publishing looks at nothing else. It must not know Publish requests, messages kept or state tables.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use backplane_types::{DataValue, MonitoringMode, Now, StatusCode};

use crate::events::{Event, Queued};

use super::aggregates::Aggregates;
use super::filter::{ItemFilter, ItemTraits};
use super::item::{GroupKey, Item, NONE, SampleKey, Sampled, Sampler};
use super::limits::duration;
use super::queue::{Incoming, Kept, Pushed};
use super::schedule::Schedule;
use super::triggering::Links;

/// Items sampled at the same interval.
#[derive(Debug)]
struct Group {
    schedule: Schedule,
    /// Sampled at each tick.
    members: Vec<u32>,
    /// How many more there are whose sources tell when they change.
    resting: usize,
    /// Those of them whose sources have told: looked at no sooner than at the next tick. Some may be named twice, or be gone by then.
    woken: Vec<u32>,
    /// Sampling interval 0: sampled as soon as a change is known, once in a period at most.
    by_exception: bool,
    /// Counts ticks, and more where some were left out.
    tick: u32,
}

/// Where samples are at least so far apart, looking at a source is cheaper than being told of its changes.
const LONGEST_REST: Duration = Duration::from_millis(100);

/// Ticks of all groups lie on this grid, or on one of their interval if that is shorter: what is due in several subscriptions and sessions is
/// due at once.
const GRID: Duration = Duration::from_millis(100);

impl Group {
    fn is_empty(&self) -> bool {
        self.members.is_empty() && self.resting == 0
    }

    /// Nothing is to be sampled at its next tick.
    fn sleeps(&self) -> bool {
        self.members.is_empty() && self.woken.is_empty()
    }

    /// Something is to be sampled again after nothing was for a while.
    fn resume(&mut self, now: Duration) {
        let slept = if self.by_exception {
            self.schedule.resume_at_once(now)
        } else {
            self.schedule.resume(now)
        };
        if slept {
            self.tick = self.tick.wrapping_add(1);
        }
    }
}

/// A member's turn at a tick of its group.
#[derive(Clone, Copy)]
struct Turn {
    /// Which tick; none: in this group nothing ever rests.
    tick: Option<u32>,
    /// Its place among the members from then on.
    place: u32,
}

#[derive(Debug)]
pub(crate) struct ItemTable<S> {
    subscription_id: u32,
    exception_interval: Duration,
    pub(super) slots: Vec<Option<Item<S>>>,
    free: Vec<u32>,
    by_id: HashMap<u32, u32>,
    next_id: u32,
    pub(super) ready_first: u32,
    pub(super) ready_last: u32,
    /// Notifications of items that report.
    pub(super) available: usize,
    groups: Vec<Group>,
    /// Slots that wait for their first sample, and since when.
    first: Vec<u32>,
    first_since: Duration,
    pub(super) links: Links,
    /// Items that compute.
    pub(super) aggregates: Aggregates,
    /// Those of the item created last: most have the same.
    traits: Option<Arc<ItemTraits>>,
    /// Values lost to full queues.
    pub(crate) lost: u64,
    /// Samples not taken because the one before was not answered yet.
    pub(crate) skipped: u64,
    /// Slots of event items.
    notified: BTreeSet<u32>,
    /// Events lost to full queues.
    pub(crate) lost_events: u64,
}

impl<S> ItemTable<S> {
    pub(crate) fn new(subscription_id: u32, exception_interval: Duration) -> Self {
        Self {
            subscription_id,
            exception_interval,
            slots: Vec::new(),
            free: Vec::new(),
            by_id: HashMap::new(),
            next_id: 1,
            ready_first: NONE,
            ready_last: NONE,
            available: 0,
            groups: Vec::new(),
            first: Vec::new(),
            first_since: Duration::ZERO,
            links: Links::default(),
            aggregates: Aggregates::default(),
            traits: None,
            lost: 0,
            skipped: 0,
            notified: BTreeSet::new(),
            lost_events: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Notifications that can be sent.
    pub(crate) fn available(&self) -> usize {
        self.available
    }

    /// How often a sampling group was too late to make up for it.
    pub(crate) fn restarts(&self) -> u64 {
        self.groups.iter().map(|group| group.schedule.restarts()).sum()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Item<S>> {
        self.slots.iter().flatten()
    }

    /// The id for a new item: never one that is in use.
    pub(crate) fn fresh_id(&mut self) -> u32 {
        loop {
            let id = self.next_id;
            self.next_id = id.checked_add(1).unwrap_or(1);
            if !self.by_id.contains_key(&id) {
                return id;
            }
        }
    }

    /// The id that the next new item would have.
    pub(crate) fn next_id(&self) -> u32 {
        self.next_id
    }

    /// Gives out ids from this one on.
    pub(crate) fn continue_ids(&mut self, next: u32) {
        self.next_id = next.max(1);
    }

    /// Links items as they were linked before.
    pub(crate) fn restore_links(&mut self, links: &[(u32, u32)], most: usize) {
        for (trigger, target) in links {
            if self.by_id.contains_key(trigger) && self.by_id.contains_key(target) {
                self.links.add(*trigger, *target, most);
            }
        }
    }

    /// The traits in a form that items share.
    pub(crate) fn share(&mut self, traits: ItemTraits) -> Arc<ItemTraits> {
        match &self.traits {
            Some(last) if **last == traits => Arc::clone(last),
            _ => Arc::clone(self.traits.insert(Arc::new(traits))),
        }
    }

    pub(crate) fn slot_of(&self, id: u32) -> Option<u32> {
        self.by_id.get(&id).copied()
    }

    #[inline]
    pub(crate) fn item(&mut self, slot: u32) -> Option<&mut Item<S>> {
        self.slots.get_mut(slot as usize).and_then(Option::as_mut)
    }

    /// Adds an item and starts sampling it, with its first value if there is one.
    pub(crate) fn insert(&mut self, item: Item<S>, initial: Option<DataValue>, now: Now) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            u32::try_from(self.slots.len() - 1).unwrap_or(NONE)
        });
        let id = item.id;
        let sampled = item.is_sampled();
        if item.events().is_some() {
            self.notified.insert(slot);
        }
        let computes = matches!(item.filter, ItemFilter::Aggregate(_));
        let Some(place) = self.slots.get_mut(slot as usize) else {
            return;
        };
        *place = Some(item);
        self.by_id.insert(id, slot);
        if computes {
            self.note_end(slot);
        }
        if sampled {
            self.start_sampling(slot, initial, now);
        }
    }

    pub(crate) fn remove(&mut self, id: u32) -> bool {
        let Some(slot) = self.by_id.remove(&id) else {
            return false;
        };
        self.leave_group(slot);
        self.unlink_ready(slot);
        self.links.remove_item(id);
        if let Some(item) = self.slots.get_mut(slot as usize).and_then(Option::take) {
            if item.reports() {
                self.available -= item.queued();
            }
            if item.events().is_some() {
                self.notified.remove(&slot);
            }
            self.aggregates.leave(slot);
        }
        self.free.push(slot);
        true
    }

    /// Changes the monitoring mode (Part 4, 5.13.1.3). Disabling forgets all values; enabling takes a sample as soon as possible.
    pub(crate) fn set_mode(&mut self, slot: u32, mode: MonitoringMode, now: Now) {
        let Some(item) = self.item(slot) else {
            return;
        };
        if item.mode == mode {
            return;
        }
        let (reported, queued, id) = (item.reports(), item.queued(), item.id);
        let old = std::mem::replace(&mut item.mode, mode);
        item.triggered = false;
        // A triggered item that reports from now on keeps its place in the list.
        if reported && mode != MonitoringMode::REPORTING {
            self.available -= queued;
            self.unlink_ready(slot);
        }
        if mode == MonitoringMode::DISABLED {
            self.stop_sampling(slot);
            self.links.forget(id);
            if let Some(item) = self.item(slot) {
                item.clear();
            }
        } else if old == MonitoringMode::DISABLED {
            let (gone, sampled) = self
                .item(slot)
                .map_or((false, false), |item| (item.gone, item.is_sampled()));
            if sampled {
                self.restart_aggregate(slot, now);
                self.start_sampling(slot, None, now);
            } else if gone {
                self.mark_gone(slot);
            }
        } else if mode == MonitoringMode::REPORTING && queued > 0 && !reported {
            self.available += queued;
            self.link_ready(slot);
        }
    }

    /// Runs `change` on an item whose queue it may shorten or lengthen, and keeps count.
    pub(crate) fn recount<T>(&mut self, slot: u32, change: impl FnOnce(&mut Item<S>) -> T) -> Option<T> {
        let item = self.item(slot)?;
        let before = item.queued();
        let result = change(item);
        let after = item.queued();
        if item.reports() {
            self.available = self.available - before + after;
            if after > 0 {
                self.link_ready(slot);
            } else {
                self.unlink_ready(slot);
            }
        }
        Some(result)
    }

    /// Moves an item to the group of its current sampling interval.
    pub(crate) fn regroup(&mut self, slot: u32, now: Now) {
        self.leave_group(slot);
        if self.item(slot).is_some_and(|item| item.is_sampled()) {
            self.join_group(slot, now);
        }
    }

    /// A sample of an item, fresh from its source.
    pub(crate) fn accept(&mut self, slot: u32, value: impl Into<Incoming>, now: Now) {
        let Some(item) = self.item(slot) else {
            return;
        };
        if matches!(item.filter, ItemFilter::Aggregate(_)) {
            let value = Kept::from(value.into()).data_value();
            self.accept_aggregate(slot, &value, now);
            return;
        }
        if let Some(pushed) = item.accept(value.into(), now) {
            let (reporting, id) = (item.reports(), item.id);
            self.count(slot, id, reporting, pushed);
        }
    }

    /// Counts what came into the queue of an item.
    pub(super) fn pushed(&mut self, slot: u32, pushed: Pushed) {
        if let Some(item) = self.item(slot) {
            let (reporting, id) = (item.reports(), item.id);
            self.count(slot, id, reporting, pushed);
        }
    }

    #[inline]
    fn count(&mut self, slot: u32, id: u32, reporting: bool, pushed: Pushed) {
        self.links.note(id);
        match pushed {
            Pushed::Lost => self.lost = self.lost.saturating_add(1),
            Pushed::Replaced => {}
            Pushed::Added if reporting => {
                self.available += 1;
                self.link_ready(slot);
            }
            Pushed::Added => {}
        }
    }

    /// Hands an event to the event items that it reaches and whose filter it passes; true when one of them took it.
    pub(crate) fn notify(&mut self, event: &Arc<Event>, now: Now, mut reaches: impl FnMut(&S) -> bool) -> bool {
        let mut taken = false;
        // None comes or goes meanwhile.
        let notified = std::mem::take(&mut self.notified);
        for slot in notified.iter().copied() {
            let Some(item) = self.item(slot) else {
                continue;
            };
            if item.gone || item.mode == MonitoringMode::DISABLED || !reaches(&item.source) {
                continue;
            }
            if !item.events().is_some_and(|feed| feed.filter.passes(event)) {
                continue;
            }
            let push = |item: &mut Item<S>| item.events_mut().map(|feed| feed.queue.push(event, now));
            match self.recount(slot, push).flatten() {
                Some(Queued::Lost) => self.lost_events = self.lost_events.saturating_add(1),
                Some(Queued::Added) => {}
                Some(Queued::Duplicate) | None => continue,
            }
            if let Some(id) = self.item(slot).map(|item| item.id) {
                self.links.note(id);
            }
            taken = true;
        }
        self.notified = notified;
        taken
    }

    /// Puts into the queue of each event item that it `reaches` that events were lost on their way.
    pub(crate) fn notify_lost(&mut self, lost: &Event, now: Now, mut reaches: impl FnMut(&S) -> bool) {
        let notified = std::mem::take(&mut self.notified);
        for slot in notified.iter().copied() {
            let wanted =
                |item: &mut Item<S>| !item.gone && item.mode != MonitoringMode::DISABLED && reaches(&item.source);
            if self.item(slot).is_some_and(wanted) {
                self.recount(slot, |item| {
                    if let Some(feed) = item.events_mut() {
                        feed.queue.lose(lost, now);
                    }
                });
            }
        }
        self.notified = notified;
    }

    /// Number of event items.
    pub(crate) fn event_items(&self) -> usize {
        self.notified.len()
    }

    /// A sample that was fetched; ignored when the item or its source is another by now.
    pub(crate) fn accept_fetched(&mut self, key: SampleKey, value: DataValue, now: Now) -> bool {
        let slot = key.slot;
        let expected = self.item(slot).is_some_and(|item| {
            item.id == key.item.monitored_item_id
                && item.binding == key.binding
                && std::mem::take(&mut item.pending)
                && item.is_sampled()
        });
        if expected {
            self.accept(slot, value, now);
        }
        expected
    }

    /// Values that are being fetched will not come: their items are sampled anew, at once.
    // Items at rest are looked at again, too.
    pub(crate) fn forget_fetches(&mut self, now: Now) {
        for slot in (0..self.slots.len()).filter_map(|slot| u32::try_from(slot).ok()) {
            let Some(item) = self.item(slot) else {
                continue;
            };
            let (rests, group) = (item.resting, item.group);
            if std::mem::take(&mut item.pending) {
                item.binding = item.binding.wrapping_add(1);
                self.want_first(slot, now);
            }
            if rests {
                // Whoever was to wake it knows it by its old place.
                let key = GroupKey {
                    subscription_id: self.subscription_id,
                    group,
                };
                self.wake(key, &[slot], now);
            }
        }
    }

    /// The node of an item is gone, or its user may not read it any more: reports that once and stops sampling.
    pub(crate) fn source_lost(&mut self, slot: u32, denied: bool) {
        let Some(item) = self.item(slot) else {
            return;
        };
        if item.gone {
            return;
        }
        item.denied = denied;
        let was_sampled = item.is_sampled();
        item.gone = true;
        item.binding = item.binding.wrapping_add(1);
        if was_sampled {
            self.stop_sampling(slot);
            self.mark_gone(slot);
        }
    }

    /// The node of an item has another source. A value equal to the one reported last is not reported again.
    pub(crate) fn rebind(&mut self, slot: u32, source: S, initial: Option<DataValue>, now: Now) {
        let Some(item) = self.item(slot) else {
            return;
        };
        item.source = source;
        item.gone = false;
        item.binding = item.binding.wrapping_add(1);
        item.pending = false;
        if item.is_sampled() {
            self.leave_group(slot);
            self.start_sampling(slot, initial, now);
        }
    }

    pub(super) fn mark_gone(&mut self, slot: u32) {
        if let Some(id) = self.item(slot).map(|item| item.id) {
            self.links.note(id);
        }
        self.recount(slot, |item| {
            let status = if item.denied {
                StatusCode::BAD_USER_ACCESS_DENIED
            } else {
                StatusCode::BAD_NODE_ID_UNKNOWN
            };
            // An event item has no value to say it with: no more events come.
            if item.events().is_none() {
                item.queue.push_marker(DataValue::from_status(status));
            }
        });
    }

    fn start_sampling(&mut self, slot: u32, initial: Option<DataValue>, now: Now) {
        self.join_group(slot, now);
        self.note_end(slot);
        if let Some(value) = initial {
            self.accept(slot, value, now);
            return;
        }
        self.want_first(slot, now);
    }

    /// Has an item sampled as soon as possible.
    pub(super) fn want_first(&mut self, slot: u32, now: Now) {
        if self.first.is_empty() {
            self.first_since = now.mono;
        }
        if let Some(item) = self.item(slot)
            && !std::mem::replace(&mut item.wants_first, true)
        {
            self.first.push(slot);
        }
    }

    fn stop_sampling(&mut self, slot: u32) {
        self.leave_group(slot);
        if let Some(item) = self.item(slot) {
            item.pending = false;
            item.wants_first = false;
            item.binding = item.binding.wrapping_add(1);
        }
    }

    fn join_group(&mut self, slot: u32, now: Now) {
        let Some(item) = self.item(slot) else {
            return;
        };
        let interval = item.revised.sampling_interval;
        let by_exception = interval == 0.0;
        let period = if by_exception {
            self.exception_interval
        } else {
            duration(interval)
        };
        let same = |group: &Group| {
            group.schedule.period() == period && group.by_exception == by_exception && !group.is_empty()
        };
        let index = self.groups.iter().position(same).unwrap_or_else(|| {
            let group = Group {
                schedule: Schedule::aligned(now.mono, period, GRID),
                members: Vec::new(),
                resting: 0,
                woken: Vec::new(),
                by_exception,
                tick: 1,
            };
            match self.groups.iter_mut().enumerate().find(|(_, group)| group.is_empty()) {
                Some((index, empty)) => {
                    *empty = group;
                    index
                }
                None => {
                    self.groups.push(group);
                    self.groups.len() - 1
                }
            }
        });
        self.enter(slot, index, now);
    }

    /// Puts an item among those of a group that are sampled.
    fn enter(&mut self, slot: u32, index: usize, now: Now) {
        let Some(group) = self.groups.get_mut(index) else {
            return;
        };
        if group.sleeps() {
            group.resume(now.mono);
        }
        let place = group.members.len();
        group.members.push(slot);
        if let Some(item) = self.item(slot) {
            item.group = u32::try_from(index).unwrap_or(NONE);
            item.group_place = u32::try_from(place).unwrap_or(NONE);
        }
    }

    /// The sources of items that rest have changed: they are sampled at the next tick of their group. The items themselves are not looked at
    /// before: a change may be news to thousands of them.
    pub(crate) fn wake(&mut self, key: GroupKey, slots: &[u32], now: Now) {
        if let Some(group) = self.groups.get_mut(key.group as usize) {
            if group.sleeps() {
                group.resume(now.mono);
            }
            group.woken.extend_from_slice(slots);
        }
    }

    fn leave_group(&mut self, slot: u32) {
        let Some(item) = self.item(slot) else {
            return;
        };
        let place = std::mem::replace(&mut item.group_place, NONE);
        let index = std::mem::replace(&mut item.group, NONE);
        let rested = std::mem::take(&mut item.resting);
        let Some(group) = self.groups.get_mut(index as usize) else {
            return;
        };
        if rested {
            group.resting = group.resting.saturating_sub(1);
            return;
        }
        if (place as usize) < group.members.len() {
            group.members.swap_remove(place as usize);
        }
        if let Some(moved) = group.members.get(place as usize).copied()
            && let Some(moved) = self.item(moved)
        {
            moved.group_place = place;
        }
    }

    /// When the next sample, or the end of an interval of an aggregate, is due.
    pub(crate) fn next_sample(&self) -> Option<Duration> {
        let group = self
            .groups
            .iter()
            .filter(|group| !group.sleeps())
            .map(|group| group.schedule.next())
            .min();
        let first = (!self.first.is_empty()).then_some(self.first_since);
        [group, first, self.aggregates.due()].into_iter().flatten().min()
    }

    /// Samples what is due, each group at most once; a group that is behind stays due.
    pub(crate) fn sample_due(&mut self, now: Now, sampler: &mut impl Sampler<S>) {
        if !self.first.is_empty() {
            let mut first = std::mem::take(&mut self.first);
            for slot in first.drain(..) {
                if let Some(item) = self.item(slot)
                    && std::mem::take(&mut item.wants_first)
                {
                    self.sample(slot, now, sampler);
                }
            }
            self.first = first;
        }
        for index in 0..self.groups.len() {
            let Some(group) = self.groups.get_mut(index) else {
                break;
            };
            if group.sleeps() || !group.schedule.take(now.mono) {
                continue;
            }
            group.tick = group.tick.wrapping_add(1);
            let all = group.members.len() + group.resting;
            let tick = (group.schedule.period() <= LONGEST_REST).then_some(group.tick);
            // No other member joins or leaves while samples are taken.
            let mut members = std::mem::take(&mut group.members);
            let mut woken = std::mem::take(&mut group.woken);
            let mut place = 0u32;
            members.retain(|slot| {
                let rests = self.tick(*slot, Turn { tick, place }, now, sampler);
                place += u32::from(!rests);
                !rests
            });
            for slot in woken.drain(..) {
                // Some are named twice: what was sampled in this turn is done with.
                let wakes = |item: &&mut Item<S>| {
                    item.resting && item.group as usize == index && tick.is_none_or(|tick| item.sampled_tick != tick)
                };
                if self.item(slot).filter(wakes).is_some() && !self.tick(slot, Turn { tick, place }, now, sampler) {
                    members.push(slot);
                    place += 1;
                }
            }
            if let Some(group) = self.groups.get_mut(index) {
                group.resting = all - members.len();
                group.members = members;
                group.woken = woken;
            }
        }
        self.complete_intervals(now);
    }

    /// Samples a member of a group that is due. True if it needs no more ticks until it is woken.
    ///
    /// What has changed at two ticks in a row is left awake: looking at it again is cheaper than being told again.
    #[inline]
    fn tick(&mut self, slot: u32, turn: Turn, now: Now, sampler: &mut impl Sampler<S>) -> bool {
        let subscription_id = self.subscription_id;
        let Some(item) = self.slots.get_mut(slot as usize).and_then(Option::as_mut) else {
            return false;
        };
        let key = item.sample_key(subscription_id, slot);
        let mut changed = false;
        let mut pushed = None;
        let mut other = None;
        if item.pending {
            self.skipped = self.skipped.saturating_add(1);
        } else if item.is_sampled() {
            match sampler.sample(key, &mut item.source, now) {
                Sampled::Unchanged => {}
                Sampled::Pending => item.pending = true,
                Sampled::Plain(value) if matches!(item.filter, ItemFilter::Data(_)) => {
                    changed = true;
                    pushed = item.accept_plain(value, now);
                }
                Sampled::Plain(value) => other = Some(Incoming::Plain(value)),
                Sampled::Value(value) => other = Some(Incoming::from(value)),
            }
        }
        changed |= other.is_some();
        let rests = turn.tick.is_some_and(|tick| {
            let last = std::mem::replace(&mut item.sampled_tick, tick);
            let stays_awake = changed && last == tick.wrapping_sub(1);
            !item.pending && !stays_awake && sampler.rest(key, &mut item.source)
        });
        item.resting = rests;
        item.group_place = if rests { NONE } else { turn.place };
        let (id, reporting) = (item.id, item.reports());
        if let Some(pushed) = pushed {
            self.count(slot, id, reporting, pushed);
        }
        if let Some(value) = other {
            self.accept(slot, value, now);
        }
        rests
    }

    /// Samples one item now, whatever its schedule. True if that brought a value.
    #[inline]
    pub(crate) fn sample(&mut self, slot: u32, now: Now, sampler: &mut impl Sampler<S>) -> bool {
        let subscription_id = self.subscription_id;
        let Some(item) = self.item(slot) else {
            return false;
        };
        if item.pending {
            self.skipped = self.skipped.saturating_add(1);
            return false;
        }
        if !item.is_sampled() {
            return false;
        }
        let key = item.sample_key(subscription_id, slot);
        match sampler.sample(key, &mut item.source, now) {
            Sampled::Unchanged => return false,
            Sampled::Pending => {
                item.pending = true;
                return false;
            }
            Sampled::Plain(value) => self.accept(slot, value, now),
            Sampled::Value(value) => self.accept(slot, value, now),
        }
        true
    }
}
