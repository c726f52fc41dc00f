//! The ready list of a subscription: its items that have something to report, in the order in which they got it.
//!
//! It owns the links between them and the way of what they have into a message. It must not know when a message is due.

use super::item::NONE;
use super::message::NotificationWriter;
use super::table::ItemTable;

impl<S> ItemTable<S> {
    /// Writes waiting notifications, item by item in the order in which they became ready, until `max` or the message is full.
    pub(crate) fn write(&mut self, writer: &mut NotificationWriter<'_>, max: u32) {
        while self.ready_first != NONE {
            let slot = self.ready_first;
            let Some(item) = self.slots.get_mut(slot as usize).and_then(Option::as_mut) else {
                return;
            };
            let before = item.queued();
            let mut full = false;
            let mut left = before;
            while left > 0 && !full {
                item.write_next(writer);
                left -= 1;
                full = writer.count() >= max || writer.is_full();
            }
            item.triggered &= left > 0;
            self.available -= before - left;
            if left == 0 {
                self.unlink_ready(slot);
            }
            if full {
                return;
            }
        }
    }

    #[inline]
    pub(super) fn link_ready(&mut self, slot: u32) {
        let last = self.ready_last;
        let Some(item) = self.item(slot) else {
            return;
        };
        if std::mem::replace(&mut item.ready, true) {
            return;
        }
        item.ready_before = last;
        item.ready_after = NONE;
        match self.item(last) {
            Some(before) => before.ready_after = slot,
            None => self.ready_first = slot,
        }
        self.ready_last = slot;
    }

    #[inline]
    pub(super) fn unlink_ready(&mut self, slot: u32) {
        let Some(item) = self.item(slot) else {
            return;
        };
        if !std::mem::take(&mut item.ready) {
            return;
        }
        let (before, after) = (item.ready_before, item.ready_after);
        item.ready_before = NONE;
        item.ready_after = NONE;
        match self.item(before) {
            Some(item) => item.ready_after = after,
            None => self.ready_first = after,
        }
        match self.item(after) {
            Some(item) => item.ready_before = before,
            None => self.ready_last = before,
        }
    }
}
