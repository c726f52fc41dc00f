//! The FIFOs of the owners: lists of entries, and how many entries belong to each.
//!
//! A list is Michael and Scott's queue whose nodes are the entries. It is never without an entry: the last one, dead or not, stays. Others that
//! are dead are unlinked by whoever passes, at the head and anywhere else, after the link that leaves them was frozen (Michael's list).
//! The end that appending starts from is the last entry or the one before it, and an entry is unlinked only behind the end's back, so
//! no end ever points to an unlinked entry. Every link has a version, so a late change of a link that meanwhile changed fails.
//!
//! A place for a FIFO is used by one owner after the other. What is left in the list from earlier is dead; the epoch tells the uses apart.
//! It must not know turns, weights or capacity.

use super::slab::Slab;
use super::word::{FifoName, Link, Members, NONE, Phase, State};
use crate::sync::{AtomicU32, AtomicU64, Ordering::Release, Ordering::SeqCst};

/// One FIFO.
#[repr(align(64))]
struct Fifo {
    head: AtomicU64,
    tail: AtomicU64,
    members: AtomicU64,
    /// How many entries died behind a living one since the list was last cleared of them.
    dead: AtomicU32,
    /// The next free FIFO.
    next_free: AtomicU32,
}

/// All FIFOs, and the entries they are made of.
pub(super) struct Fifos<T> {
    pub(super) slab: Slab<T>,
    fifos: Box<[Fifo]>,
    free: AtomicU64,
    #[cfg(test)]
    pub(super) before_retirement: std::sync::OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// What a search of a FIFO found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// This entry, in this state, is queued.
    Queued(usize, State),
    /// The first entry is being offered.
    Offered,
    /// Nothing is queued.
    Nothing,
}

/// How far a walk along a FIFO goes; dead entries are unlinked on the way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Walk {
    /// To the first queued entry.
    Queued,
    /// To the first entry that is queued or being offered.
    Living,
    /// To the end.
    End,
}

impl<T> Fifos<T> {
    /// `count` FIFOs for up to `capacity` entries in all, and `spare` entries that may be between two lists.
    pub(super) fn new(count: usize, capacity: usize, spare: usize) -> Self {
        // Dead entries in a FIFO are at most as many as living ones, the one before the first, and one that is just dying.
        let slab = Slab::new(2 * capacity + 2 * count + spare);
        let fifo = |index: usize| {
            let entry = slab.allocate().unwrap_or(NONE);
            let next = if index + 1 < count { index as u32 + 1 } else { u32::MAX };
            Fifo {
                head: AtomicU64::new(Link::new(0, entry).0),
                tail: AtomicU64::new(Link::new(0, entry).0),
                members: AtomicU64::new(Members::new(0, Members::RETIRED).0),
                dead: AtomicU32::new(0),
                next_free: AtomicU32::new(next),
            }
        };
        Self {
            fifos: (0..count).map(fifo).collect(),
            slab,
            free: AtomicU64::new(Link::new(0, 0).0),
            #[cfg(test)]
            before_retirement: std::sync::OnceLock::new(),
        }
    }

    fn members(&self, fifo: usize) -> Members {
        Members(self.fifos[fifo].members.load(SeqCst))
    }

    /// How many entries belong to a FIFO: admitted, or about to be, and not served or cancelled.
    pub(super) fn living(&self, fifo: usize) -> u64 {
        match self.members(fifo).count() {
            Members::RETIRED => 0,
            count => count,
        }
    }

    /// Whether this FIFO is still its owner's.
    pub(super) fn is_live(&self, name: FifoName) -> bool {
        let members = self
            .fifos
            .get(name.count() as usize)
            .map(|fifo| Members(fifo.members.load(SeqCst)));
        members.is_some_and(|members| members.epoch() == name.epoch() && members.count() != Members::RETIRED)
    }

    /// Counts one more entry in a FIFO, unless it is retired or somebody else's by now.
    pub(super) fn join(&self, name: FifoName) -> Option<usize> {
        let fifo = name.count() as usize;
        let word = &self.fifos.get(fifo)?.members;
        loop {
            let members = Members(word.load(SeqCst));
            if members.epoch() != name.epoch() || members.count() == Members::RETIRED {
                return None;
            }
            let more = Members::new(members.epoch(), members.count() + 1);
            if word.compare_exchange(members.0, more.0, SeqCst, SeqCst).is_ok() {
                return Some(fifo);
            }
        }
    }

    /// Starts a FIFO with one entry counted.
    pub(super) fn start(&self) -> Option<FifoName> {
        loop {
            let first = Link(self.free.load(SeqCst));
            let index = first.index();
            let fifo = self.fifos.get(index)?;
            let next = match fifo.next_free.load(SeqCst) {
                u32::MAX => NONE,
                next => next as usize,
            };
            if self
                .free
                .compare_exchange(first.0, first.to(next).0, SeqCst, SeqCst)
                .is_ok()
            {
                let epoch = self.members(index).epoch() + 1;
                fifo.members.store(Members::new(epoch, 1).0, Release);
                return Some(FifoName::new(epoch, index as u64));
            }
        }
    }

    /// Counts one entry less. A FIFO without entries retires: no entry can join it again, and its place is free.
    pub(super) fn leave(&self, fifo: usize) {
        let word = &self.fifos[fifo].members;
        loop {
            let members = Members(word.load(SeqCst));
            let last = members.count() == 1;
            #[cfg(test)]
            if let (true, Some(pause)) = (last, self.before_retirement.get()) {
                pause();
            }
            let count = if last { Members::RETIRED } else { members.count() - 1 };
            let less = Members::new(members.epoch(), count);
            if word.compare_exchange(members.0, less.0, SeqCst, SeqCst).is_ok() {
                if last {
                    self.release(fifo);
                }
                return;
            }
        }
    }

    /// Puts a retired FIFO's place back among the free ones.
    fn release(&self, fifo: usize) {
        loop {
            let first = Link(self.free.load(SeqCst));
            let next = if first.is_none() {
                u32::MAX
            } else {
                first.index() as u32
            };
            self.fifos[fifo].next_free.store(next, Release);
            if self
                .free
                .compare_exchange(first.0, first.to(fifo).0, SeqCst, SeqCst)
                .is_ok()
            {
                return;
            }
        }
    }

    /// Links an entry behind the others of its FIFO.
    pub(super) fn append(&self, fifo: usize, entry: usize) {
        let tail = &self.fifos[fifo].tail;
        loop {
            let end = Link(tail.load(SeqCst));
            let link = self.slab.next(end.index());
            let last = Link(link.load(SeqCst));
            if tail.load(SeqCst) != end.0 {
                continue;
            }
            if !last.is_none() {
                self.advance(fifo, end, last);
                continue;
            }
            if link.compare_exchange(last.0, last.to(entry).0, SeqCst, SeqCst).is_ok() {
                self.advance(fifo, end, last.to(entry));
                return;
            }
        }
    }

    /// Moves the end of a list from the entry that `end` points to on to the next, unless somebody else has.
    fn advance(&self, fifo: usize, end: Link, next: Link) {
        let on = end.to(next.index());
        // Another has already moved it when this fails.
        let _moved = self.fifos[fifo].tail.compare_exchange(end.0, on.0, SeqCst, SeqCst);
    }

    /// The first queued entry.
    pub(super) fn first(&self, fifo: usize) -> Option<(usize, State)> {
        match self.walk(fifo, Walk::Queued) {
            Found::Queued(entry, state) => Some((entry, state)),
            Found::Offered | Found::Nothing => None,
        }
    }

    /// The first entry that is queued or being offered.
    pub(super) fn head(&self, fifo: usize) -> Found {
        self.walk(fifo, Walk::Living)
    }

    /// Walks along a list and unlinks the dead. Whatever changes under the walk sends it back to the start.
    fn walk(&self, fifo: usize, walk: Walk) -> Found {
        'again: loop {
            let mut before = &self.fifos[fifo].head;
            let mut link = Link(before.load(SeqCst));
            loop {
                let entry = link.index();
                let state = self.slab.state(entry);
                let next = Link(self.slab.next(entry).load(SeqCst));
                if before.load(SeqCst) != link.0 {
                    continue 'again;
                }
                // The entry was linked here all the while, so its state and its link are of this use.
                match state.phase() {
                    Phase::Dead if next.is_none() => return Found::Nothing,
                    Phase::Dead => {
                        match self.unlink(fifo, before, link, next) {
                            Some(on) => link = on,
                            None => continue 'again,
                        }
                        continue;
                    }
                    Phase::Queued if walk != Walk::End => return Found::Queued(entry, state),
                    Phase::Offered | Phase::OfferedAgain if walk == Walk::Living => return Found::Offered,
                    _ => {}
                }
                if next.is_none() {
                    return Found::Nothing;
                }
                if next.is_frozen() {
                    // It died between the two reads.
                    continue 'again;
                }
                before = self.slab.next(entry);
                link = next;
            }
        }
    }

    /// Unlinks the dead entry that `link`, read from `before`, points to; what `before` then holds.
    fn unlink(&self, fifo: usize, before: &AtomicU64, link: Link, next: Link) -> Option<Link> {
        let entry = link.index();
        if !next.is_frozen() {
            let frozen = next.frozen().0;
            let leaving = self.slab.next(entry);
            if leaving.compare_exchange(next.0, frozen, SeqCst, SeqCst).is_err() {
                return None;
            }
        }
        let end = Link(self.fifos[fifo].tail.load(SeqCst));
        if end.index() == entry {
            // Others may have unlinked the entry meanwhile, and it may be in use again as the last of this list.
            if before.load(SeqCst) != link.0 {
                return None;
            }
            self.advance(fifo, end, next);
        }
        let on = link.to(next.index());
        before.compare_exchange(link.0, on.0, SeqCst, SeqCst).ok()?;
        self.slab.free(entry);
        Some(on)
    }

    /// Ends an entry whose work was taken out, and unlinks what is dead; whether anything is queued behind.
    pub(super) fn bury(&self, fifo: usize, entry: usize) -> bool {
        let place = &self.fifos[fifo];
        let head = Link(place.head.load(SeqCst)).index();
        let is_first = head == entry || Link(self.slab.next(head).load(SeqCst)).index() == entry;
        self.slab.bury(entry);
        let more = self.first(fifo).is_some();
        // The dead behind a living entry stay until it goes, but never more of them than of the living.
        if !is_first && u64::from(place.dead.fetch_add(1, SeqCst)) > self.living(fifo) {
            place.dead.store(0, SeqCst);
            self.walk(fifo, Walk::End);
        }
        more
    }

    /// All linked entries that are not dead, and those that are, in a list nobody changes meanwhile.
    #[cfg(test)]
    pub(super) fn census(&self) -> (usize, usize) {
        let (mut living, mut dead) = (0, 0);
        for fifo in &self.fifos {
            let mut link = Link(fifo.head.load(SeqCst));
            while !link.is_none() {
                match self.slab.state(link.index()).phase() {
                    Phase::Dead => dead += 1,
                    _ => living += 1,
                }
                link = Link(self.slab.next(link.index()).load(SeqCst));
            }
        }
        (living, dead)
    }
}
