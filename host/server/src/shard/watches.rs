//! The cells that a shard's items rest on, so that what does not change costs nothing.
//!
//! Owns which items wait for which cell, and the feed in which writers name the cells that they have written. What a woken item does is the session
//! crate's business. An item joins when it goes to rest for the first time, and leaves when its source is dropped.

use std::sync::Arc;

use backplane_nodes::{ChangeFeed, MAX_WATCHERS, ValueCell};
use backplane_session::SampleKey;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// End of a list.
const NONE: u32 = u32::MAX;

/// One item of a cell, in the list of that cell's items.
#[derive(Debug, Clone, Copy)]
struct Member {
    session: u32,
    key: SampleKey,
    next: u32,
    before: u32,
    /// The watch it belongs to; none: the place is free.
    watch: u32,
}

/// One cell.
#[derive(Debug)]
struct Watch {
    cell: Option<Arc<ValueCell>>,
    first: u32,
}

/// An item's place among those of its cell. Given up when it is dropped.
#[derive(Debug)]
pub(super) struct Membership {
    place: u32,
    left: Arc<Mutex<Vec<u32>>>,
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.left.lock().push(self.place);
    }
}

/// See the module text.
#[derive(Debug)]
pub(super) struct Watches {
    /// This shard's number among the watchers of a cell; none: there are too many shards, and its items never rest.
    number: Option<u8>,
    feed: Arc<ChangeFeed>,
    written: Arc<Notify>,
    watches: Vec<Watch>,
    free_watches: Vec<u32>,
    members: Vec<Member>,
    free_members: Vec<u32>,
    /// Places of items that are gone.
    left: Arc<Mutex<Vec<u32>>>,
    /// What was taken from the feed; kept for its room.
    tokens: Vec<u32>,
}

impl Watches {
    pub(super) fn new(shard: usize) -> Self {
        let written = Arc::new(Notify::new());
        let notify = Arc::clone(&written);
        Self {
            number: u8::try_from(shard).ok().filter(|number| *number < MAX_WATCHERS),
            feed: ChangeFeed::new(move || notify.notify_one()),
            written,
            watches: Vec::new(),
            free_watches: Vec::new(),
            members: Vec::new(),
            free_members: Vec::new(),
            left: Arc::default(),
            tokens: Vec::new(),
        }
    }

    /// Is notified when a cell was written that an item rests on.
    pub(super) fn written(&self) -> Arc<Notify> {
        Arc::clone(&self.written)
    }

    /// Lets an item rest on `cell`, of which it has seen `version`, unless that is the latest no more. `membership` is what the item has from earlier.
    pub(super) fn rest(
        &mut self,
        session: u32,
        key: SampleKey,
        cell: &Arc<ValueCell>,
        version: u64,
        membership: &mut Option<Membership>,
    ) -> bool {
        let Some(number) = self.number else {
            return false;
        };
        let known = membership
            .as_ref()
            .filter(|it| Arc::ptr_eq(&it.left, &self.left))
            .and_then(|it| self.members.get_mut(it.place as usize));
        match known {
            Some(member) => {
                member.session = session;
                member.key = key;
            }
            None => *membership = self.join(number, session, key, cell),
        }
        membership.is_some() && cell.arm(number, version)
    }

    fn join(&mut self, number: u8, session: u32, key: SampleKey, cell: &Arc<ValueCell>) -> Option<Membership> {
        self.forget_left();
        let watch = match cell.watch_token(number) {
            Some(watch) => watch,
            None => {
                let watch = self.free_watches.pop().or_else(|| {
                    self.watches.push(Watch {
                        cell: None,
                        first: NONE,
                    });
                    index(self.watches.len())
                })?;
                *self.watches.get_mut(watch as usize)? = Watch {
                    cell: Some(Arc::clone(cell)),
                    first: NONE,
                };
                cell.watch(number, watch, &self.feed);
                watch
            }
        };
        let found = self.watches.get_mut(watch as usize)?;
        let member = Member {
            session,
            key,
            next: found.first,
            before: NONE,
            watch,
        };
        let place = self.free_members.pop().or_else(|| {
            self.members.push(member);
            index(self.members.len())
        })?;
        *self.members.get_mut(place as usize)? = member;
        let next = std::mem::replace(&mut found.first, place);
        if let Some(next) = self.members.get_mut(next as usize) {
            next.before = place;
        }
        Some(Membership {
            place,
            left: Arc::clone(&self.left),
        })
    }

    /// Frees the places of items that are gone, and lets go of cells that no item rests on.
    fn forget_left(&mut self) {
        let left = std::mem::take(&mut *self.left.lock());
        for place in left {
            let Some(member) = self.members.get(place as usize).copied() else {
                continue;
            };
            if let Some(next) = self.members.get_mut(member.next as usize) {
                next.before = member.before;
            }
            match self.members.get_mut(member.before as usize) {
                Some(before) => before.next = member.next,
                None => self.shorten(member.watch, member.next),
            }
            self.free_members.push(place);
        }
    }

    /// The first item of a cell is gone; `next` is the one after it.
    fn shorten(&mut self, watch: u32, next: u32) {
        let Some(found) = self.watches.get_mut(watch as usize) else {
            return;
        };
        found.first = next;
        if next != NONE {
            return;
        }
        if let (Some(cell), Some(number)) = (found.cell.take(), self.number) {
            cell.unwatch(number);
            self.free_watches.push(watch);
        }
    }

    /// Every item whose cell was written, with its session. `into` is emptied first.
    pub(super) fn woken(&mut self, into: &mut Vec<(u32, SampleKey)>) {
        into.clear();
        self.forget_left();
        let mut tokens = std::mem::take(&mut self.tokens);
        self.feed.take(&mut tokens);
        for token in &tokens {
            let mut place = self.watches.get(*token as usize).map_or(NONE, |watch| watch.first);
            while let Some(member) = self.members.get(place as usize) {
                into.push((member.session, member.key));
                place = member.next;
            }
        }
        self.tokens = tokens;
    }

    /// Cells that items rest on.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.watches.iter().filter(|watch| watch.cell.is_some()).count()
    }
}

/// The place of the element that was pushed last.
fn index(length: usize) -> Option<u32> {
    u32::try_from(length).ok()?.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use backplane_nodes::ValueCell;
    use backplane_session::SampleKey;
    use backplane_types::DataValue;

    use super::{Membership, Watches};

    fn woken(watches: &mut Watches) -> Vec<u32> {
        let mut items = Vec::new();
        watches.woken(&mut items);
        let mut sessions: Vec<u32> = items.into_iter().map(|(session, _)| session).collect();
        sessions.sort_unstable();
        sessions
    }

    fn rest(watches: &mut Watches, session: u32, cell: &Arc<ValueCell>, place: &mut Option<Membership>) -> bool {
        watches.rest(session, SampleKey::default(), cell, cell.version(), place)
    }

    #[test]
    fn all_items_of_a_cell_are_woken_until_they_are_gone() {
        let mut watches = Watches::new(0);
        let (one, other) = (Arc::new(ValueCell::waiting()), Arc::new(ValueCell::waiting()));
        let mut places: Vec<Option<Membership>> = (0..4).map(|_| None).collect();
        for (session, place) in (0u32..).zip(&mut places) {
            let cell = if session == 3 { &other } else { &one };
            assert!(rest(&mut watches, session, cell, place));
        }
        one.write(DataValue::new(1));
        assert_eq!(woken(&mut watches), [0, 1, 2]);
        assert!(woken(&mut watches).is_empty());
        one.write(DataValue::new(2));
        assert!(woken(&mut watches).is_empty(), "none rests");
        for gone in [1, 0] {
            places[gone] = None;
        }
        assert!(rest(&mut watches, 2, &one, &mut places[2]));
        one.write(DataValue::new(3));
        other.write(DataValue::new(3));
        assert_eq!(woken(&mut watches), [2, 3]);
        places.clear();
        other.write(DataValue::new(4));
        assert_eq!(
            (woken(&mut watches), watches.len()),
            (vec![], 0),
            "nothing is kept of what is gone"
        );
        assert_eq!(one.watch_token(0), None);
        let mut place = None;
        assert!(rest(&mut watches, 7, &other, &mut place));
        other.write(DataValue::new(5));
        assert_eq!(woken(&mut watches), [7]);
        assert_eq!(
            (watches.members.len(), watches.watches.len()),
            (4, 2),
            "places are used again"
        );
    }

    #[test]
    fn an_item_that_comes_to_another_shard_joins_there() {
        let (mut from, mut to) = (Watches::new(0), Watches::new(1));
        let cell = Arc::new(ValueCell::waiting());
        let mut place = None;
        assert!(rest(&mut from, 1, &cell, &mut place));
        assert!(rest(&mut to, 2, &cell, &mut place));
        cell.write(DataValue::new(1));
        assert_eq!((woken(&mut from), woken(&mut to)), (vec![], vec![2]));
        assert_eq!(from.len(), 0);
    }

    #[test]
    fn shards_beyond_the_last_number_let_nothing_rest() {
        let cell = Arc::new(ValueCell::waiting());
        assert!(!rest(&mut Watches::new(64), 1, &cell, &mut None));
    }
}
