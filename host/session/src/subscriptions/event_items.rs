//! Events on their way to the event items of a session (Part 4, 5.13 and 7.22.3).

use std::sync::Arc;

use backplane_types::Now;

use crate::events::Event;

use super::Subscriptions;

impl<S> Subscriptions<S> {
    /// Something happened. Each event item that it `reaches`, that is not disabled and whose filter it passes queues it, once. Which items an
    /// event reaches follows from their source: the notifier lies above the source of the event, and the session may receive it.
    ///
    /// True when some item took it.
    pub fn handle_event(&mut self, now: Now, event: &Arc<Event>, mut reaches: impl FnMut(&S) -> bool) -> bool {
        let mut taken = false;
        for subscription in &mut self.list {
            taken |= subscription.items.notify(event, now, &mut reaches);
        }
        taken
    }

    /// Events were lost on their way here, `lost` being the first of them. Each event item that it `reaches` says so with an event of
    /// EventQueueOverflowEventType, as if its own queue had lost them.
    pub fn events_lost(&mut self, now: Now, lost: &Event, mut reaches: impl FnMut(&S) -> bool) {
        for subscription in &mut self.list {
            subscription.items.notify_lost(lost, now, &mut reaches);
        }
    }

    /// Number of event items: without any there is no need to hand events over.
    #[must_use]
    pub fn event_items(&self) -> usize {
        self.list.iter().map(|it| it.items.event_items()).sum()
    }
}
