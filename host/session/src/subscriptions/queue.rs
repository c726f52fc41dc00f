//! The queue of one data-change item (Part 4, 5.13.1.5): what is kept, what is lost, and which value carries the Overflow bit.
//!
//! It owns values and their order. It must not know filters, modes or encoding. The newest value stays here after it was reported, because
//! the filter compares the next one with it: so no value is ever copied.

use std::collections::VecDeque;

use backplane_types::{DataValue, PlainValue, StatusCode};

use super::saved::SavedValue;

/// A value as it comes into a queue.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Incoming {
    Plain(PlainValue),
    Other(DataValue),
}

impl From<PlainValue> for Incoming {
    #[inline]
    fn from(value: PlainValue) -> Self {
        Self::Plain(value)
    }
}

impl From<DataValue> for Incoming {
    fn from(value: DataValue) -> Self {
        PlainValue::of(&value).map_or(Self::Other(value), Self::Plain)
    }
}

/// A value as a queue keeps it: few need the room of a DataValue.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kept {
    Plain(PlainValue),
    Other(Box<DataValue>),
}

impl Kept {
    /// The whole value.
    pub(crate) fn data_value(&self) -> DataValue {
        match self {
            Self::Plain(value) => value.data_value(),
            Self::Other(value) => value.as_ref().clone(),
        }
    }
}

impl From<Incoming> for Kept {
    #[inline]
    fn from(value: Incoming) -> Self {
        match value {
            Incoming::Plain(value) => Self::Plain(value),
            Incoming::Other(value) => Self::Other(Box::new(value)),
        }
    }
}

/// One value in the queue.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) value: Kept,
    /// Info bits to add to the status when it is sent; they are no part of the value that filters see. All lie in the lower half of a StatusCode.
    pub(crate) info_bits: u16,
    /// Says that the node is gone: is never lost and takes no place of the queue.
    pub(crate) marker: bool,
}

/// The Overflow bits of an info that is for data values.
#[allow(clippy::cast_possible_truncation)]
const OVERFLOW: u16 = StatusCode::OVERFLOW_BITS as u16;
const _: () = assert!(StatusCode::OVERFLOW_BITS <= 0xffff);

impl Entry {
    #[inline]
    fn new(value: impl Into<Kept>, marker: bool) -> Self {
        Self {
            value: value.into(),
            info_bits: 0,
            marker,
        }
    }

    fn overflowed(mut self) -> Self {
        self.info_bits |= OVERFLOW;
        self
    }
}

/// What became of a pushed value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// The queue is one longer.
    Added,
    /// A value was lost for it; the length is the same.
    Lost,
    /// It took the place of a newest value that needs no report any more; the length is the same.
    Replaced,
}

/// Values that wait before the newest one.
#[derive(Debug, Default)]
struct Older {
    entries: VecDeque<Entry>,
    /// Whether one of them is the marker.
    marker: bool,
}

#[derive(Debug)]
pub(crate) struct ItemQueue {
    /// Most items never have any, so they have no room for them either.
    older: Option<Box<Older>>,
    newest: Option<Entry>,
    unsent: bool,
    capacity: u32,
    discard_oldest: bool,
}

impl ItemQueue {
    /// A queue for `capacity` values, at least one.
    pub(crate) fn new(capacity: u32, discard_oldest: bool) -> Self {
        Self {
            older: None,
            newest: None,
            unsent: false,
            capacity: capacity.max(1),
            discard_oldest,
        }
    }

    /// Values to report.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.older_len() + usize::from(self.unsent)
    }

    /// The value that the filter compares with: the newest one that was ever queued, reported or not.
    #[inline]
    pub(crate) fn newest(&self) -> Option<&Kept> {
        self.newest.as_ref().map(|entry| &entry.value)
    }

    /// Queues a value.
    #[inline]
    pub(crate) fn push(&mut self, value: impl Into<Incoming>) -> Pushed {
        let value = value.into();
        let alone = self.capacity == 1 && self.newest.as_ref().is_some_and(|newest| !newest.marker);
        if !self.unsent || alone || self.waits_for_initial_data() {
            // What is overwritten is no overflow.
            self.overwrite(value);
            return if std::mem::replace(&mut self.unsent, true) {
                Pushed::Replaced
            } else {
                Pushed::Added
            };
        }
        self.push_behind(value)
    }

    /// Puts a value in the place of the newest one, and in its memory.
    #[inline]
    fn overwrite(&mut self, value: Incoming) {
        if let Incoming::Other(value) = value {
            self.overwrite_other(value);
            return;
        }
        self.newest = Some(Entry::new(value, false));
    }

    fn overwrite_other(&mut self, value: DataValue) {
        match &mut self.newest {
            Some(Entry {
                value: Kept::Other(old),
                info_bits,
                marker,
            }) => {
                **old = value;
                (*info_bits, *marker) = (0, false);
            }
            newest => *newest = Some(Entry::new(Incoming::Other(value), false)),
        }
    }

    /// Queues a value behind others that wait.
    fn push_behind(&mut self, value: Incoming) -> Pushed {
        let entry = Entry::new(value, false);
        if self.places_taken() < self.capacity as usize {
            self.shift(entry);
            return Pushed::Added;
        }
        if self.capacity == 1 {
            // A buffer of the newest value, whatever the discard policy, behind the marker.
            self.drop_oldest_marking(false);
            self.shift(entry);
            return Pushed::Replaced;
        }
        if self.discard_oldest {
            self.drop_oldest();
            self.shift(entry);
        } else {
            self.replace_last(entry.overflowed());
        }
        Pushed::Lost
    }

    /// Queues the marker that the node is gone. At most one marker waits: an earlier one that was not reported yet moves here.
    /// Returns the change in length.
    pub(crate) fn push_marker(&mut self, value: DataValue) -> isize {
        let before = self.len();
        if let Some(older) = &mut self.older
            && std::mem::take(&mut older.marker)
        {
            older.entries.retain(|entry| !entry.marker);
        }
        let entry = Entry::new(Incoming::from(value), true);
        let newest_is_marker = self.newest.as_ref().is_some_and(|newest| newest.marker);
        if self.unsent && !newest_is_marker {
            self.shift(entry);
        } else {
            self.newest = Some(entry);
            self.unsent = true;
        }
        self.len().wrapping_sub(before).cast_signed()
    }

    /// Takes the oldest value to report and shows it to `send`.
    #[inline]
    pub(crate) fn send_next<T>(&mut self, send: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        if let Some(older) = &mut self.older
            && let Some(mut entry) = older.entries.pop_front()
        {
            older.marker &= !entry.marker;
            return Some(send(&mut entry));
        }
        if !self.unsent {
            return None;
        }
        self.unsent = false;
        let entry = self.newest.as_mut()?;
        let sent = send(entry);
        entry.info_bits = 0;
        Some(sent)
    }

    /// Everything, to be saved: oldest first, and whether the last of them waits to be reported.
    pub(crate) fn saved(&self) -> (Vec<SavedValue>, bool) {
        let older = self.older.iter().flat_map(|older| older.entries.iter());
        let save = |entry: &Entry| SavedValue {
            value: entry.value.data_value(),
            info_bits: entry.info_bits,
            marker: entry.marker,
        };
        (older.chain(&self.newest).map(save).collect(), self.unsent)
    }

    /// Puts back what was saved; the queue is empty before.
    pub(crate) fn restore(&mut self, mut saved: Vec<SavedValue>, newest_waits: bool) {
        let entry = |saved: SavedValue| Entry {
            value: Incoming::from(saved.value).into(),
            info_bits: saved.info_bits,
            marker: saved.marker,
        };
        self.newest = saved.pop().map(entry);
        self.unsent = newest_waits && self.newest.is_some();
        if !saved.is_empty() {
            let marker = saved.iter().any(|value| value.marker);
            let entries = saved.into_iter().map(entry).collect();
            self.older = Some(Box::new(Older { entries, marker }));
        }
    }

    /// Reports the newest value again, if there is one and it is not waiting anyway. True when the length grew.
    pub(crate) fn resend(&mut self) -> bool {
        let again = !self.unsent && self.newest.is_some();
        self.unsent |= again;
        again
    }

    /// Forgets everything, also what the filter compares with.
    pub(crate) fn clear(&mut self) {
        self.older = None;
        self.newest = None;
        self.unsent = false;
    }

    /// Changes size and policy; values that remain keep their order.
    pub(crate) fn resize(&mut self, capacity: u32, discard_oldest: bool) {
        self.capacity = capacity.max(1);
        self.discard_oldest = discard_oldest;
        while self.unsent && self.places_taken() > self.capacity as usize {
            if self.capacity == 1 || self.discard_oldest {
                let mark = self.capacity > 1;
                self.drop_oldest_marking(mark);
            } else {
                self.drop_before_last();
            }
        }
        if self.older_len() == 0 {
            self.older = None;
        }
    }

    #[inline]
    fn waits_for_initial_data(&self) -> bool {
        let waiting = Some(StatusCode::BAD_WAITING_FOR_INITIAL_DATA);
        matches!(self.newest(), Some(Kept::Other(value)) if value.status == waiting)
    }

    /// Values that take a place: all but the marker.
    fn places_taken(&self) -> usize {
        let newest = self.unsent && self.newest.as_ref().is_some_and(|newest| !newest.marker);
        let marker = self.older.as_ref().is_some_and(|older| older.marker);
        (self.older_len() + usize::from(newest)).saturating_sub(usize::from(marker))
    }

    #[inline]
    fn older_len(&self) -> usize {
        self.older.as_ref().map_or(0, |older| older.entries.len())
    }

    fn shift(&mut self, entry: Entry) {
        if let Some(previous) = self.newest.replace(entry) {
            let older = self.older.get_or_insert_default();
            older.marker |= previous.marker;
            older.entries.push_back(previous);
        }
    }

    fn drop_oldest(&mut self) {
        self.drop_oldest_marking(true);
    }

    /// Drops the oldest value; the one after it becomes the oldest and carries the Overflow bit.
    fn drop_oldest_marking(&mut self, mark: bool) {
        let Some(older) = &mut self.older else { return };
        let Some(place) = older.entries.iter().position(|entry| !entry.marker) else {
            return;
        };
        older.entries.remove(place);
        if !mark {
            return;
        }
        let next = older.entries.iter_mut().skip(place).find(|entry| !entry.marker);
        if let Some(next) = next.or(self.newest.as_mut()) {
            next.info_bits |= OVERFLOW;
        }
    }

    /// Puts `entry` in the place of the value added last.
    fn replace_last(&mut self, entry: Entry) {
        if self.newest.as_ref().is_some_and(|newest| newest.marker) {
            self.drop_last_older();
            self.shift(entry);
        } else {
            self.newest = Some(entry);
        }
    }

    /// Shrinking that keeps the oldest: the last value takes the place of the one before it, and carries the Overflow bit.
    fn drop_before_last(&mut self) {
        let value_before =
            |older: &VecDeque<Entry>, end: usize| older.iter().take(end).rposition(|entry| !entry.marker);
        let Some(older) = &mut self.older else {
            if let Some(newest) = self.newest.as_mut().filter(|newest| !newest.marker) {
                newest.info_bits |= OVERFLOW;
            }
            return;
        };
        let entries = &mut older.entries;
        let mut end = entries.len();
        let last = match &mut self.newest {
            Some(newest) if !newest.marker => Some(newest),
            _ => {
                end = value_before(entries, end).unwrap_or(0);
                entries.get_mut(end)
            }
        };
        if let Some(last) = last {
            last.info_bits |= OVERFLOW;
        }
        if let Some(place) = value_before(entries, end) {
            entries.remove(place);
        }
    }

    fn drop_last_older(&mut self) {
        if let Some(older) = &mut self.older
            && let Some(place) = older.entries.iter().rposition(|entry| !entry.marker)
        {
            older.entries.remove(place);
        }
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
