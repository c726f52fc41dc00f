//! The entries: a slab made once, its list of free entries, and how one entry changes hands.
//!
//! Whoever has an entry to itself stores with release; a compare-and-swap, which everything that must be seen in one order is, publishes it.
//! Nothing in it is ever freed, so whoever reads an entry late reads a later state of the same entry and finds its tag or version changed.
//! It must not know owners, turns or capacity.

use super::word::{Link, NONE, Phase, State};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering::Release, Ordering::SeqCst};

/// One place for work.
struct Entry<T> {
    state: AtomicU64,
    /// The next entry of its FIFO, or of the free ones.
    next: AtomicU64,
    /// Touched only by who took the entry from the free ones, or who changed its state to `Offered` or `Leaving`: never contended.
    work: Mutex<Option<T>>,
}

/// All entries.
pub(super) struct Slab<T> {
    entries: Box<[Entry<T>]>,
    free: AtomicU64,
}

impl<T> Slab<T> {
    /// A slab of `size` entries, all of them free.
    pub(super) fn new(size: usize) -> Self {
        let entry = |index| Entry {
            state: AtomicU64::new(State::new(0, Phase::Dead, 0).0),
            next: AtomicU64::new(Link::new(0, if index + 1 < size { index + 1 } else { NONE }).0),
            work: Mutex::new(None),
        };
        Self {
            entries: (0..size).map(entry).collect(),
            free: AtomicU64::new(Link::new(0, if size > 0 { 0 } else { NONE }).0),
        }
    }

    pub(super) fn size(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn state(&self, index: usize) -> State {
        State(self.entries[index].state.load(SeqCst))
    }

    pub(super) fn next(&self, index: usize) -> &AtomicU64 {
        &self.entries[index].next
    }

    /// Changes an entry's state; whether it was in the one expected.
    pub(super) fn change(&self, index: usize, from: State, to: Phase) -> bool {
        let state = &self.entries[index].state;
        state.compare_exchange(from.0, from.with(to).0, SeqCst, SeqCst).is_ok()
    }

    /// Takes a free entry, not yet linked to anything.
    pub(super) fn allocate(&self) -> Option<usize> {
        loop {
            let first = Link(self.free.load(SeqCst));
            if first.is_none() {
                return None;
            }
            let index = first.index();
            let next = Link(self.next(index).load(SeqCst));
            let rest = first.to(next.index());
            if self.free.compare_exchange(first.0, rest.0, SeqCst, SeqCst).is_ok() {
                self.next(index).store(next.to(NONE).0, Release);
                return Some(index);
            }
        }
    }

    /// Gives back an entry that was allocated, or that the caller has unlinked.
    pub(super) fn free(&self, index: usize) {
        let link = Link(self.next(index).load(SeqCst));
        loop {
            let first = Link(self.free.load(SeqCst));
            self.next(index).store(link.to(first.index()).0, Release);
            let new = first.to(index);
            if self.free.compare_exchange(first.0, new.0, SeqCst, SeqCst).is_ok() {
                return;
            }
        }
    }

    /// Puts work into an entry just allocated, which is queued once it is linked; its state from then on.
    pub(super) fn fill(&self, index: usize, fifo: usize, work: T) -> State {
        let entry = &self.entries[index];
        let state = State::new(self.state(index).tag() + 1, Phase::Queued, fifo);
        *entry.work.lock() = Some(work);
        entry.state.store(state.0, Release);
        state
    }

    /// The work of an entry that the caller offers, or has leaving. The entry is dead, and may be unlinked, only after [`bury`](Self::bury).
    pub(super) fn work(&self, index: usize) -> Option<MutexGuard<'_, Option<T>>> {
        self.entries[index].work.try_lock()
    }

    /// Takes the work out of an entry that the caller has leaving.
    pub(super) fn empty(&self, index: usize) -> Option<T> {
        self.work(index).and_then(|mut work| work.take())
    }

    /// Ends an entry whose work the caller took out.
    pub(super) fn bury(&self, index: usize) {
        let state = self.state(index).with(Phase::Dead);
        // Not a store: a late cancellation of an offered entry changes the same word.
        self.entries[index].state.swap(state.0, SeqCst);
    }
}
