//! Being told that cells were written, instead of looking at them again and again.
//!
//! Owns who watches a cell, and the list of cells written that a watcher empties. A watcher hears of one write and then of nothing until it has armed
//! the cell again: however fast a cell is written, its name is on the list no more often than it was armed. It must not know what a watcher does, nor wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

/// Watchers that one cell can have.
pub const MAX_WATCHERS: u8 = 64;

/// What a watcher hears of: tokens of the cells that were written.
pub struct ChangeFeed {
    /// At most one entry for each time that a cell was armed.
    changed: Mutex<Vec<u32>>,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for ChangeFeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChangeFeed").finish_non_exhaustive()
    }
}

impl ChangeFeed {
    /// An empty list. `wake` is called by writers when the first entry comes; it must return at once.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            changed: Mutex::new(Vec::new()),
            wake: Box::new(wake),
        })
    }

    /// Takes all entries. `into` is emptied first, and its room is used for the next ones.
    pub fn take(&self, into: &mut Vec<u32>) {
        into.clear();
        std::mem::swap(&mut *self.changed.lock(), into);
    }

    fn push(&self, token: u32) {
        let mut changed = self.changed.lock();
        changed.push(token);
        let first = changed.len() == 1;
        drop(changed);
        if first {
            (self.wake)();
        }
    }
}

/// One watcher of a cell, and those after it.
#[derive(Debug)]
struct Watcher {
    number: u8,
    token: u32,
    feed: Arc<ChangeFeed>,
    next: Option<Arc<Watcher>>,
}

/// The watchers of one cell.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    /// The bits of those who want to hear of the next write.
    armed: AtomicU64,
    list: ArcSwapOption<Watcher>,
}

impl Watchers {
    /// Whether anybody wants to hear of the next write.
    #[inline]
    pub(crate) fn are_armed(&self) -> bool {
        self.armed.load(Ordering::SeqCst) != 0
    }

    /// Tells those who wanted to hear of a write, which is over.
    #[cold]
    pub(crate) fn tell(&self) {
        let bits = self.armed.swap(0, Ordering::SeqCst);
        let list = self.list.load();
        let mut next = list.as_ref();
        while let Some(watcher) = next {
            if bits & bit(watcher.number) != 0 {
                watcher.feed.push(watcher.token);
            }
            next = watcher.next.as_ref();
        }
    }

    #[inline]
    pub(crate) fn arm(&self, number: u8) {
        if self.armed.load(Ordering::SeqCst) & bit(number) == 0 {
            self.armed.fetch_or(bit(number), Ordering::SeqCst);
        }
    }

    /// Adds a watcher, or gives the one with this number another token.
    pub(crate) fn add(&self, number: u8, token: u32, feed: &Arc<ChangeFeed>) {
        self.list.rcu(|old| {
            Some(Arc::new(Watcher {
                number,
                token,
                feed: Arc::clone(feed),
                next: without(old.as_ref(), number),
            }))
        });
    }

    pub(crate) fn remove(&self, number: u8) {
        self.list.rcu(|old| without(old.as_ref(), number));
        self.armed.fetch_and(!bit(number), Ordering::SeqCst);
    }

    /// The token that a watcher was added with.
    pub(crate) fn token(&self, number: u8) -> Option<u32> {
        let list = self.list.load();
        let mut next = list.as_ref();
        while let Some(watcher) = next {
            if watcher.number == number {
                return Some(watcher.token);
            }
            next = watcher.next.as_ref();
        }
        None
    }
}

fn bit(number: u8) -> u64 {
    1u64.checked_shl(u32::from(number)).unwrap_or(0)
}

/// The list without one of its watchers; a list is never longer than there are numbers.
fn without(list: Option<&Arc<Watcher>>, number: u8) -> Option<Arc<Watcher>> {
    let watcher = list?;
    if watcher.number == number {
        return watcher.next.clone();
    }
    Some(Arc::new(Watcher {
        number: watcher.number,
        token: watcher.token,
        feed: Arc::clone(&watcher.feed),
        next: without(watcher.next.as_ref(), number),
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

    use backplane_types::{DataValue, DateTime, StatusCode};

    use super::ChangeFeed;
    use crate::cell::ValueCell;

    fn feed() -> (Arc<ChangeFeed>, Arc<AtomicU32>) {
        let wakes = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&wakes);
        let feed = ChangeFeed::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        (feed, wakes)
    }

    fn taken(feed: &ChangeFeed) -> Vec<u32> {
        let mut tokens = vec![99];
        feed.take(&mut tokens);
        tokens
    }

    #[test]
    fn a_watcher_hears_of_one_write_until_it_arms_again() {
        let cell = ValueCell::new(DataValue::new(1));
        let (feed, wakes) = feed();
        cell.watch(3, 7, &feed);
        cell.write(DataValue::new(2));
        assert_eq!(taken(&feed), [0; 0], "not armed");
        assert!(cell.arm(3, cell.version()));
        for value in 3..6 {
            cell.write(DataValue::new(value));
        }
        cell.degrade(StatusCode::BAD_NO_COMMUNICATION, DateTime::MIN);
        assert_eq!(taken(&feed), [7]);
        assert_eq!(wakes.load(Ordering::Relaxed), 1);
        assert!(cell.arm(3, cell.version()));
        cell.degrade(StatusCode::BAD_NO_COMMUNICATION, DateTime::MIN);
        assert_eq!(taken(&feed), [7], "a status is a change");
        let seen = cell.version();
        cell.write(DataValue::new(9));
        assert!(!cell.arm(3, seen), "it was written since");
    }

    #[test]
    fn watchers_do_not_disturb_each_other() {
        let cell = ValueCell::new(DataValue::new(1));
        let ((a, _), (b, _)) = (feed(), feed());
        cell.watch(0, 5, &a);
        cell.watch(63, 6, &b);
        assert_eq!(
            (cell.watch_token(0), cell.watch_token(63), cell.watch_token(1)),
            (Some(5), Some(6), None)
        );
        let version = cell.version();
        assert!(cell.arm(0, version) && cell.arm(63, version));
        cell.write(DataValue::new(2));
        assert_eq!((taken(&a), taken(&b)), (vec![5], vec![6]));
        let version = cell.version();
        assert!(cell.arm(0, version) && cell.arm(63, version));
        cell.unwatch(0);
        cell.write(DataValue::new(3));
        assert_eq!((taken(&a), taken(&b)), (vec![], vec![6]));
        assert_eq!(cell.watch_token(0), None);
    }

    /// Whoever has armed without seeing the last write hears of it.
    #[test]
    fn no_write_is_lost_between_looking_and_arming() {
        const WRITES: u64 = 100_000;
        let cell = Arc::new(ValueCell::new(DataValue::new(0)));
        let (feed, _) = feed();
        cell.watch(0, 1, &feed);
        let written = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..WRITES {
                    cell.write(DataValue::new(1));
                    written.fetch_add(1, Ordering::Relaxed);
                }
            });
            let mut tokens = Vec::new();
            while written.load(Ordering::Relaxed) < WRITES {
                let seen = cell.version();
                if !cell.arm(0, seen) {
                    continue;
                }
                // It rests. If the cell moves on, its token must come.
                while cell.version() == seen && written.load(Ordering::Relaxed) < WRITES {
                    std::hint::spin_loop();
                }
                if cell.version() == seen {
                    break;
                }
                loop {
                    feed.take(&mut tokens);
                    // A look that came too late had armed the cell too, so that there may be a word of that write as well.
                    if tokens.contains(&1) {
                        break;
                    }
                    assert!(tokens.is_empty());
                    // The writer is between its store and its word.
                    if written.load(Ordering::Relaxed) == WRITES {
                        feed.take(&mut tokens);
                        assert!(tokens.contains(&1), "the word of a write is lost");
                        break;
                    }
                    std::thread::yield_now();
                }
            }
        });
    }
}
