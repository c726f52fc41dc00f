//! The cells that a shard's items rest on, so that what does not change costs nothing.
//!
//! Owns which items wait for which cell, and the feed in which writers name the cells that they have written. What a woken item does is the session
//! crate's business. An item joins when it goes to rest for the first time, and leaves when its source is dropped.

use std::collections::HashMap;
use std::sync::Arc;

use backplane_nodes::{ChangeFeed, MAX_WATCHERS, ValueCell};
use backplane_session::{GroupKey, SampleKey};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// No place, no watch.
const NONE: u32 = u32::MAX;

/// One item of a cell.
#[derive(Debug, Clone, Copy)]
struct Member {
    flock: u32,
    /// Which of its subscription's items.
    slot: u32,
    place: u32,
}

/// One cell, and the items that rest on it.
#[derive(Debug)]
struct Watch {
    cell: Option<Arc<ValueCell>>,
    members: Vec<Member>,
}

/// Where a member is.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// None: the place is free.
    watch: u32,
    index: u32,
}

/// A sampling group of a session's subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FlockKey {
    session: u32,
    group: GroupKey,
}

/// The items of one sampling group, which are woken together.
#[derive(Debug)]
struct Flock {
    key: FlockKey,
    members: u32,
    /// The slots of those that are woken; empty but for the moment.
    woken: Vec<u32>,
}

/// An item's place among those of its cell. Given up when it is dropped.
#[derive(Debug)]
pub(super) struct Membership {
    place: u32,
    flock: u32,
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
    places: Vec<Place>,
    free_places: Vec<u32>,
    flocks: Vec<Flock>,
    free_flocks: Vec<u32>,
    by_key: HashMap<FlockKey, u32>,
    /// The flock that was asked for last: items of one group follow one another.
    last_flock: u32,
    /// Places of items that are gone.
    left: Arc<Mutex<Vec<u32>>>,
    /// What was taken from the feed, and which flocks that wakes; kept for their room.
    tokens: Vec<u32>,
    startled: Vec<u32>,
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
            places: Vec::new(),
            free_places: Vec::new(),
            flocks: Vec::new(),
            free_flocks: Vec::new(),
            by_key: HashMap::new(),
            last_flock: NONE,
            left: Arc::default(),
            tokens: Vec::new(),
            startled: Vec::new(),
        }
    }

    /// Is notified when a cell was written that an item rests on.
    pub(super) fn written(&self) -> Arc<Notify> {
        Arc::clone(&self.written)
    }

    /// Lets an item rest on `cell`, of which it has seen `version`, unless that is the latest no more. `membership` is what the item has from earlier.
    #[inline]
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
        let flock = FlockKey {
            session,
            group: key.group(),
        };
        match membership {
            Some(known) if Arc::ptr_eq(&known.left, &self.left) => {
                if self.flocks.get(known.flock as usize).is_none_or(|it| it.key != flock) {
                    self.move_over(known, flock);
                }
            }
            _ => *membership = self.join(number, flock, key.slot(), cell),
        }
        membership.is_some() && cell.arm(number, version)
    }

    /// An item is in another group now, or its subscription in another session.
    #[cold]
    fn move_over(&mut self, known: &mut Membership, key: FlockKey) {
        let Some(flock) = self.flock(key) else { return };
        self.count(flock);
        self.leave_flock(std::mem::replace(&mut known.flock, flock));
        let place = self.places.get(known.place as usize);
        let member = place.and_then(|place| {
            let watch = self.watches.get_mut(place.watch as usize)?;
            watch.members.get_mut(place.index as usize)
        });
        if let Some(member) = member {
            member.flock = flock;
        }
    }

    fn count(&mut self, flock: u32) {
        if let Some(flock) = self.flocks.get_mut(flock as usize) {
            flock.members += 1;
        }
    }

    /// The flock of a group, made if there is none.
    fn flock(&mut self, key: FlockKey) -> Option<u32> {
        let last = self.flocks.get(self.last_flock as usize);
        if last.is_some_and(|last| last.key == key && last.members > 0) {
            return Some(self.last_flock);
        }
        let flock = match self.by_key.get(&key) {
            Some(flock) => *flock,
            None => {
                let flock = self.free_flocks.pop().or_else(|| {
                    self.flocks.push(Flock {
                        key,
                        members: 0,
                        woken: Vec::new(),
                    });
                    index(self.flocks.len())
                })?;
                self.flocks.get_mut(flock as usize)?.key = key;
                self.by_key.insert(key, flock);
                flock
            }
        };
        self.last_flock = flock;
        Some(flock)
    }

    fn leave_flock(&mut self, number: u32) {
        let Some(flock) = self.flocks.get_mut(number as usize) else {
            return;
        };
        flock.members = flock.members.saturating_sub(1);
        if flock.members == 0 {
            self.by_key.remove(&flock.key);
            flock.woken = Vec::new();
            self.free_flocks.push(number);
        }
    }

    fn join(&mut self, number: u8, key: FlockKey, slot: u32, cell: &Arc<ValueCell>) -> Option<Membership> {
        self.forget_left();
        let watch = match cell.watch_token(number) {
            Some(watch) => watch,
            None => {
                let watch = self.free_watches.pop().or_else(|| {
                    self.watches.push(Watch {
                        cell: None,
                        // Most cells have one item.
                        members: Vec::with_capacity(1),
                    });
                    index(self.watches.len())
                })?;
                self.watches.get_mut(watch as usize)?.cell = Some(Arc::clone(cell));
                cell.watch(number, watch, &self.feed);
                watch
            }
        };
        let flock = self.flock(key)?;
        let place = self.free_places.pop().or_else(|| {
            self.places.push(Place {
                watch: NONE,
                index: NONE,
            });
            index(self.places.len())
        })?;
        let found = self.watches.get_mut(watch as usize)?;
        found.members.push(Member { flock, slot, place });
        *self.places.get_mut(place as usize)? = Place {
            watch,
            index: index(found.members.len())?,
        };
        self.count(flock);
        Some(Membership {
            place,
            flock,
            left: Arc::clone(&self.left),
        })
    }

    /// Frees the places of items that are gone, and lets go of cells that no item rests on.
    fn forget_left(&mut self) {
        let left = std::mem::take(&mut *self.left.lock());
        for place in left {
            self.forget(place);
        }
    }

    fn forget(&mut self, place: u32) -> Option<()> {
        let Place { watch, index } = *self.places.get(place as usize)?;
        let found = self.watches.get_mut(watch as usize)?;
        found.members.get(index as usize)?;
        let gone = found.members.swap_remove(index as usize);
        if let Some(moved) = found.members.get(index as usize)
            && let Some(its) = self.places.get_mut(moved.place as usize)
        {
            its.index = index;
        }
        if found.members.is_empty()
            && let (Some(cell), Some(number)) = (found.cell.take(), self.number)
        {
            cell.unwatch(number);
            self.free_watches.push(watch);
        }
        self.leave_flock(gone.flock);
        self.free_places.push(place);
        *self.places.get_mut(place as usize)? = Place {
            watch: NONE,
            index: NONE,
        };
        Some(())
    }

    /// Hands out the items whose cell was written: session, group and slots, group by group.
    pub(super) fn woken(&mut self, mut wake: impl FnMut(u32, GroupKey, &[u32])) {
        self.forget_left();
        self.feed.take(&mut self.tokens);
        for token in &self.tokens {
            let Some(watch) = self.watches.get(*token as usize) else {
                continue;
            };
            for member in &watch.members {
                if let Some(flock) = self.flocks.get_mut(member.flock as usize) {
                    if flock.woken.is_empty() {
                        self.startled.push(member.flock);
                    }
                    flock.woken.push(member.slot);
                }
            }
        }
        for number in self.startled.drain(..) {
            if let Some(flock) = self.flocks.get_mut(number as usize) {
                wake(flock.key.session, flock.key.group, &flock.woken);
                flock.woken.clear();
            }
        }
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
        let mut sessions = Vec::new();
        watches.woken(|session, _, slots| sessions.extend(slots.iter().map(|_| session)));
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
            (watches.places.len(), watches.watches.len()),
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
    fn an_item_of_another_session_is_woken_there() {
        let mut watches = Watches::new(0);
        let cell = Arc::new(ValueCell::waiting());
        let mut place = None;
        for session in [1, 2, 3] {
            assert!(rest(&mut watches, session, &cell, &mut place));
            cell.write(DataValue::new(session));
            assert_eq!(woken(&mut watches), [session]);
        }
        drop(place);
        assert!(woken(&mut watches).is_empty());
        assert_eq!((watches.by_key.len(), watches.flocks.len()), (0, 2), "two at a time");
    }

    #[test]
    fn shards_beyond_the_last_number_let_nothing_rest() {
        let cell = Arc::new(ValueCell::waiting());
        assert!(!rest(&mut Watches::new(64), 1, &cell, &mut None));
    }
}
