//! Triggering (Part 4, 5.13.1.6 and 5.13.5): items that only report when another item gets something.
//!
//! It owns the links between items of one subscription. It must not know queues or modes beyond whether an item has something queued. A
//! triggering item that gets a notification is noted, and when the publishing timer expires its links are followed: what lies in the queues
//! of the linked items by then is reported, so that it does not matter which of two items of one sampling tick was sampled first.

use std::collections::BTreeSet;

use backplane_types::{MonitoringMode, SetTriggeringRequest, StatusCode};

use super::Subscriptions;
use super::table::ItemTable;

/// What became of the links of a SetTriggering request, in the order of its lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TriggeringResults {
    /// One status for each of linksToAdd.
    pub add: Vec<StatusCode>,
    /// One status for each of linksToRemove.
    pub remove: Vec<StatusCode>,
}

/// The links of one subscription, by MonitoredItemIds.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// Triggering item, item to report.
    forward: BTreeSet<(u32, u32)>,
    /// The same the other way round, so that an item finds the links that die with it.
    backward: BTreeSet<(u32, u32)>,
    /// Triggering items that got something since their links were followed last.
    fired: BTreeSet<u32>,
}

impl Links {
    /// An item got something to report.
    #[inline]
    pub(crate) fn note(&mut self, id: u32) {
        if !self.forward.is_empty() && self.targets(id).next().is_some() {
            self.fired.insert(id);
        }
    }

    /// What an item got does not count any more: it was disabled.
    pub(crate) fn forget(&mut self, id: u32) {
        self.fired.remove(&id);
    }

    /// An item is gone, and its links with it.
    pub(crate) fn remove_item(&mut self, id: u32) {
        self.fired.remove(&id);
        if self.forward.is_empty() {
            return;
        }
        let targets: Vec<u32> = self.targets(id).collect();
        for target in targets {
            self.remove(id, target);
        }
        let triggers: Vec<u32> = self.backward.range((id, 0)..=(id, u32::MAX)).map(|it| it.1).collect();
        for trigger in triggers {
            self.remove(trigger, id);
        }
    }

    /// All links: triggering and triggered item.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.forward.iter().copied()
    }

    fn targets(&self, id: u32) -> impl Iterator<Item = u32> {
        self.forward.range((id, 0)..=(id, u32::MAX)).map(|link| link.1)
    }

    /// False when there are `most` links and this would be another.
    pub(crate) fn add(&mut self, trigger: u32, target: u32, most: usize) -> bool {
        let known = self.forward.contains(&(trigger, target));
        if !known && self.forward.len() >= most {
            return false;
        }
        self.forward.insert((trigger, target));
        self.backward.insert((target, trigger));
        true
    }

    fn remove(&mut self, trigger: u32, target: u32) -> bool {
        self.backward.remove(&(target, trigger));
        self.forward.remove(&(trigger, target))
    }
}

impl<S> ItemTable<S> {
    /// Follows the links of the triggering items that got something: what linked sampling items have queued can be sent.
    pub(crate) fn follow_links(&mut self) {
        if self.links.fired.is_empty() {
            return;
        }
        let mut links = std::mem::take(&mut self.links);
        for trigger in std::mem::take(&mut links.fired) {
            for target in links.targets(trigger) {
                self.release(target);
            }
        }
        self.links = links;
    }

    /// What a sampling item has queued can be sent.
    pub(super) fn release(&mut self, id: u32) {
        let Some(slot) = self.slot_of(id) else {
            return;
        };
        let Some(item) = self.item(slot) else {
            return;
        };
        let queued = item.queued();
        if item.mode == MonitoringMode::SAMPLING && !item.triggered && queued > 0 {
            item.triggered = true;
            self.available += queued;
            self.link_ready(slot);
        }
    }
}

impl<S> Subscriptions<S> {
    /// SetTriggering (Part 4, 5.13.5). Links are removed before others are added; one that is there already is added with success.
    ///
    /// # Errors
    /// `BadSubscriptionIdInvalid`, `BadNothingToDo`, `BadTooManyOperations`, `BadMonitoredItemIdInvalid` for the triggering item. For one
    /// link `BadMonitoredItemIdInvalid`, also when there is no such link to remove, and `BadTooManyMonitoredItems` when there are
    /// `max_triggering_links` of them.
    pub fn set_triggering(&mut self, request: &SetTriggeringRequest) -> Result<TriggeringResults, StatusCode> {
        let count = request.links_to_add.len().saturating_add(request.links_to_remove.len());
        let (limits, _, subscription) = self.begin(request.subscription_id, count)?;
        let items = &mut subscription.items;
        let trigger = request.triggering_item_id;
        let unknown = StatusCode::BAD_MONITORED_ITEM_ID_INVALID;
        items.slot_of(trigger).ok_or(unknown)?;
        // A link works from now on, not for what came before.
        items.follow_links();
        let remove = |target: &u32| {
            if items.links.remove(trigger, *target) {
                StatusCode::GOOD
            } else {
                unknown
            }
        };
        let removed = request.links_to_remove.iter().map(remove).collect();
        let add = |target: &u32| {
            if items.slot_of(*target).is_none() {
                unknown
            } else if items.links.add(trigger, *target, limits.max_triggering_links) {
                StatusCode::GOOD
            } else {
                StatusCode::BAD_TOO_MANY_MONITORED_ITEMS
            }
        };
        let added = request.links_to_add.iter().map(add).collect();
        Ok(TriggeringResults {
            add: added,
            remove: removed,
        })
    }
}
