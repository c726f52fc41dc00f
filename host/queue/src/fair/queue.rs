//! The queue's interface. For now it serves in order of admission behind one lock; the weighted, lock-free inside follows.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Weak;
use std::task::{Context, Poll, Waker};

use super::vocabulary::{Blocked, QueueOptions, Refusal, Refused, Ticket};
use crate::sync::{Arc, AtomicBool, AtomicUsize, Mutex, Ordering};

/// A bounded queue of work that many owners share fairly. It is shared by `Arc`.
pub struct FairQueue<T> {
    options: QueueOptions,
    length: AtomicUsize,
    stopped: AtomicBool,
    inside: Mutex<Inside<T>>,
}

struct Inside<T> {
    next_tag: u64,
    entries: VecDeque<(u64, T)>,
    owners: Vec<(Arc<str>, Weak<str>)>,
    wakers: Vec<Waker>,
}

/// One owner of queued work; cheap to clone. Handles of equal keys are the same owner.
#[derive(Clone)]
pub struct OwnerHandle {
    key: Arc<str>,
}

impl OwnerHandle {
    /// The owner's key. It may say who somebody is: it belongs in no log.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl fmt::Debug for OwnerHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OwnerHandle").finish_non_exhaustive()
    }
}

/// A worker's place among those who wait. Dropping it gives up the place, and passes on a wake-up that it had.
#[derive(Debug)]
pub struct Waiter {
    _private: (),
}

impl<T: Send> FairQueue<T> {
    /// A queue with everything it will ever need: admission and service allocate nothing.
    pub fn new(options: QueueOptions) -> Self {
        let inside = Inside {
            next_tag: 0,
            entries: VecDeque::with_capacity(options.capacity),
            owners: Vec::new(),
            wakers: Vec::new(),
        };
        Self {
            options,
            length: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            inside: Mutex::new(inside),
        }
    }

    /// The owner of this key; a weight of 0 counts as 1. A later call with another weight changes it from the owner's next turn on.
    ///
    /// # Errors
    ///
    /// [`Refusal::OwnersFull`] (BadServerTooBusy) and [`Refusal::Stopped`] (BadServerHalted).
    pub fn owner(&self, key: &Arc<str>, _weight: u32) -> Result<OwnerHandle, Refusal> {
        if self.is_stopped() {
            return Err(Refusal::Stopped);
        }
        let mut inside = self.inside.lock();
        if let Some((_, known)) = inside.owners.iter().find(|(known, _)| known == key)
            && let Some(key) = known.upgrade()
        {
            return Ok(OwnerHandle { key });
        }
        inside.owners.retain(|(_, known)| known.strong_count() > 0);
        if inside.owners.len() >= self.options.max_owners {
            return Err(Refusal::OwnersFull);
        }
        let owner: Arc<str> = Arc::from(&**key);
        inside.owners.push((Arc::clone(key), Arc::downgrade(&owner)));
        Ok(OwnerHandle { key: owner })
    }

    /// Queues work behind the owner's earlier work.
    ///
    /// Whoever calls this without workers that wait must then [`take`](Self::take) until nothing is left to take.
    ///
    /// # Errors
    ///
    /// The work is given back with [`Refusal::Full`], [`Refusal::Stopped`] or [`Refusal::OwnersFull`].
    pub fn admit(&self, _owner: &OwnerHandle, work: T) -> Result<Ticket, Refused<T>> {
        let mut inside = self.inside.lock();
        let refusal = if self.is_stopped() {
            Some(Refusal::Stopped)
        } else {
            (inside.entries.len() >= self.options.capacity).then_some(Refusal::Full)
        };
        if let Some(refusal) = refusal {
            return Err(Refused { refusal, work });
        }
        let tag = inside.next_tag;
        inside.next_tag += 1;
        inside.entries.push_back((tag, work));
        self.length.store(inside.entries.len(), Ordering::Release);
        let waker = inside.wakers.pop();
        drop(inside);
        waker.into_iter().for_each(Waker::wake);
        Ok(Ticket { index: 0, tag })
    }

    /// Takes an entry back out: exactly once against service and stop.
    ///
    /// `None` when it is not queued any more, and when it is being offered right now. In that case a refused offer is made once more, so that
    /// a function which looks at the work's own cancelled state sees it.
    pub fn cancel(&self, ticket: Ticket) -> Option<T> {
        let mut inside = self.inside.lock();
        let position = inside.entries.iter().position(|(tag, _)| *tag == ticket.tag)?;
        let (_, work) = inside.entries.remove(position)?;
        self.length.store(inside.entries.len(), Ordering::Release);
        Some(work)
    }

    /// Takes the next entry for which `admit` finds capacity, and what it found.
    ///
    /// An entry that `admit` refuses stays first of its owner, who is not tried again before [`capacity_changed`](Self::capacity_changed).
    /// `None` means: what is queued is blocked, or being offered by another thread that goes on after it. So whoever got an entry calls
    /// again, until there is none. `admit` must not wait, and must not stop this queue.
    pub fn take<L>(&self, mut admit: impl FnMut(&T) -> Result<L, Blocked>) -> Option<(T, L)> {
        let mut inside = self.inside.lock();
        let lease = admit(&inside.entries.front()?.1).ok()?;
        let (_, work) = inside.entries.pop_front()?;
        self.length.store(inside.entries.len(), Ordering::Release);
        Some((work, lease))
    }

    /// [`take`](Self::take) for a worker that waits: `Ready(None)` when the queue is stopped.
    pub fn poll_take<L>(
        &self,
        cx: &mut Context<'_>,
        _waiter: &mut Waiter,
        admit: impl FnMut(&T) -> Result<L, Blocked>,
    ) -> Poll<Option<(T, L)>> {
        self.inside.lock().wakers.push(cx.waker().clone());
        if self.is_stopped() {
            return Poll::Ready(None);
        }
        self.take(admit).map_or(Poll::Pending, |taken| Poll::Ready(Some(taken)))
    }

    /// A place for one worker among those who wait. It is made once per worker: waiting then allocates nothing.
    pub fn waiter(&self) -> Waiter {
        Waiter { _private: () }
    }

    /// Says that capacity was given back: blocked owners are tried again, and a waiting worker is woken.
    pub fn capacity_changed(&self) {
        let wakers = std::mem::take(&mut self.inside.lock().wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Stops the queue and gives back everything still queued, exactly once; later admissions are refused and waiting workers end.
    pub fn stop(&self) -> Vec<T> {
        self.stopped.store(true, Ordering::SeqCst);
        self.capacity_changed();
        let mut inside = self.inside.lock();
        self.length.store(0, Ordering::Release);
        inside.entries.drain(..).map(|(_, work)| work).collect()
    }

    /// Whether [`stop`](Self::stop) was called.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// How many entries are queued, those being offered included.
    pub fn len(&self) -> usize {
        self.length.load(Ordering::Acquire)
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether anything is queued: one atomic load.
    pub fn has_waiting(&self) -> bool {
        !self.is_empty()
    }
}

impl<T> fmt::Debug for FairQueue<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("FairQueue")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
