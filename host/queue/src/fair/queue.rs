//! The queue: admission, cancellation, stop, and waiting for an offer.
//!
//! It owns the bound and the order in which the parts are changed. It must not know what the work is, nor what capacity is.

use std::fmt;
use std::task::{Context, Poll};

use super::fifo::Fifos;
use super::owners::{Owner, OwnerHandle, Owners};
use super::signal::{Signal, Waiter};
use super::turns::{NEVER, Turns};
use super::vocabulary::{Blocked, MAX_CAPACITY, MAX_OWNERS, Order, QueueOptions, Refusal, Refused, Ticket};
use super::word::{FifoName, Members, Phase};
use crate::sync::{Arc, AtomicU64, Ordering::SeqCst, yield_now};

/// FIFOs and entries beyond those in use, for threads that hold one between two steps.
const SPARE: usize = if cfg!(any(loom, shuttle)) { 2 } else { 64 };
/// In the count of entries: the queue is stopped.
pub(super) const STOPPED: u64 = 1 << 63;

/// A bounded queue of work that many owners share fairly. It is shared by `Arc`.
pub struct FairQueue<T> {
    pub(super) order: Order,
    capacity: u64,
    /// Admitted entries that have not left, and [`STOPPED`].
    pub(super) count: Alone,
    /// The version of the capacity at which nobody has any.
    pub(super) exhausted: AtomicU64,
    pub(super) fifos: Fifos<T>,
    pub(super) turns: Turns,
    owners: Owners,
    pub(super) signal: Arc<Signal>,
}

/// A word alone on its cache line.
#[repr(align(64))]
pub(super) struct Alone(pub(super) AtomicU64);

impl<T> FairQueue<T> {
    /// A queue with everything it will ever need: admission and service allocate nothing.
    pub fn new(options: QueueOptions) -> Self {
        let capacity = options.capacity.clamp(1, MAX_CAPACITY);
        let max_owners = options.max_owners.clamp(1, MAX_OWNERS);
        let count = match options.order {
            // Only owners with work have a FIFO.
            Order::Weighted => max_owners.min(capacity) + SPARE,
            Order::Global => 1,
        };
        let fifos = Fifos::new(count, capacity, SPARE);
        let none = FifoName::new(0, Members::RETIRED);
        let first = match options.order {
            Order::Weighted => none,
            // The one FIFO of all owners; the entry counted at its start never leaves, so it never retires.
            Order::Global => fifos.start().unwrap_or(none),
        };
        Self {
            order: options.order,
            capacity: capacity as u64,
            count: Alone(AtomicU64::new(0)),
            exhausted: AtomicU64::new(NEVER),
            turns: Turns::new(count),
            fifos,
            owners: Owners::new(max_owners, first),
            signal: Signal::new(),
        }
    }

    /// The owner of this key; a weight of 0 counts as 1. A later call with another weight changes it from the next time on that the owner's work
    /// starts to queue. An owner is forgotten, when room is needed, once nobody holds a handle of it and nothing of it is queued.
    ///
    /// # Errors
    ///
    /// [`Refusal::OwnersFull`] (BadServerTooBusy) and [`Refusal::Stopped`] (BadServerHalted).
    pub fn owner(&self, key: &Arc<str>, weight: u32) -> Result<OwnerHandle, Refusal> {
        if self.is_stopped() {
            return Err(Refusal::Stopped);
        }
        let has_work = |name| self.order == Order::Weighted && self.fifos.is_live(name);
        self.owners.get(key, weight, has_work)
    }

    /// Queues work behind the owner's earlier work. A handle of another queue counts as its key and weight.
    ///
    /// Without workers that wait, whoever calls this must then [`take`](Self::take) until nothing is left to take.
    ///
    /// # Errors
    ///
    /// The work is given back with [`Refusal::Stopped`], [`Refusal::Full`] or [`Refusal::OwnersFull`].
    pub fn admit(&self, owner: &OwnerHandle, work: T) -> Result<Ticket, Refused<T>> {
        match self.place(owner) {
            Ok((fifo, entry)) => {
                let state = self.fifos.slab.fill(entry, fifo, work);
                self.fifos.append(fifo, entry);
                if self.order == Order::Weighted {
                    self.turns.start(fifo);
                }
                self.signal.wake();
                Ok(Ticket {
                    index: entry as u32,
                    tag: state.tag(),
                })
            }
            Err(refusal) => Err(Refused { refusal, work }),
        }
    }

    /// Reserves one of the entries, a place in the owner's FIFO, and an entry for it.
    fn place(&self, owner: &OwnerHandle) -> Result<(usize, usize), Refusal> {
        let mut count = self.count.0.load(SeqCst);
        loop {
            if count & STOPPED != 0 {
                return Err(Refusal::Stopped);
            }
            if count >= self.capacity {
                return Err(Refusal::Full);
            }
            match self.count.0.compare_exchange(count, count + 1, SeqCst, SeqCst) {
                Ok(_) => break,
                Err(now) => count = now,
            }
        }
        let placed = self.fifo_and_entry(owner);
        if placed.is_err() {
            self.count.0.fetch_sub(1, SeqCst);
        }
        placed
    }

    fn fifo_and_entry(&self, owner: &OwnerHandle) -> Result<(usize, usize), Refusal> {
        let fifo = if self.owners.are_of(owner) {
            self.enter(&owner.0)
        } else {
            self.enter(&self.owner(owner.key(), owner.weight())?.0)
        };
        let fifo = fifo.ok_or(Refusal::OwnersFull)?;
        match self.fifos.slab.allocate() {
            Some(entry) => Ok((fifo, entry)),
            None => {
                self.fifos.leave(fifo);
                Err(Refusal::Full)
            }
        }
    }

    /// Counts one more entry in the owner's FIFO, and starts a new one if the last has retired.
    fn enter(&self, owner: &Owner) -> Option<usize> {
        loop {
            let name = Members(owner.fifo.load(SeqCst));
            if let Some(fifo) = self.fifos.join(name) {
                return Some(fifo);
            }
            let Some(new) = self.fifos.start() else {
                if owner.fifo.load(SeqCst) == name.0 {
                    return None;
                }
                continue;
            };
            let fifo = new.count() as usize;
            self.turns.adopt(fifo, owner.weight.load(SeqCst));
            if owner.fifo.compare_exchange(name.0, new.0, SeqCst, SeqCst).is_ok() {
                return Some(fifo);
            }
            self.fifos.leave(fifo);
        }
    }

    /// Takes an entry back out: exactly once against service and stop.
    ///
    /// `None` when it is not queued any more, and when it is being offered right now. In that case, should the offer be refused, it is made
    /// once more: so whoever marks the work as cancelled before calling this, and has `admit` find room for cancelled work, gets it out at once.
    pub fn cancel(&self, ticket: Ticket) -> Option<T> {
        let entry = ticket.index as usize;
        if entry >= self.fifos.slab.size() {
            return None;
        }
        loop {
            let state = self.fifos.slab.state(entry);
            if state.tag() != ticket.tag {
                return None;
            }
            match state.phase() {
                Phase::Queued if self.fifos.slab.change(entry, state, Phase::Leaving) => {
                    let work = self.fifos.slab.empty(entry);
                    let more = self.fifos.bury(state.fifo(), entry);
                    self.left(state.fifo());
                    if !more && self.order == Order::Weighted {
                        // Places without work that are first in line go at once, the others when their turn comes.
                        let _next = self.turns.next(|fifo| self.fifos.first(fifo));
                    }
                    return work;
                }
                Phase::Offered if self.fifos.slab.change(entry, state, Phase::OfferedAgain) => return None,
                Phase::Queued | Phase::Offered => {}
                Phase::OfferedAgain | Phase::Leaving | Phase::Dead => return None,
            }
        }
    }

    /// An entry was buried: its FIFO and the queue have one less.
    pub(super) fn left(&self, fifo: usize) {
        self.fifos.leave(fifo);
        self.count.0.fetch_sub(1, SeqCst);
    }

    /// Takes the next entry for which `admit` finds capacity, and what it found.
    ///
    /// An entry that `admit` refuses stays first of its owner, who is not tried again before [`capacity_changed`](Self::capacity_changed).
    /// `None` means: what is queued is blocked, or is being offered by another thread that goes on after it. So whoever got an entry calls
    /// again, until there is none. `admit` is short; it may use this queue, but neither wait for anything nor stop it.
    pub fn take<L>(&self, mut admit: impl FnMut(&T) -> Result<L, Blocked>) -> Option<(T, L)> {
        match self.order {
            Order::Weighted => self.take_by_turn(&mut admit),
            Order::Global => self.take_head(&mut admit),
        }
    }

    /// [`take`](Self::take) for a worker that waits: `Ready(None)` when the queue is stopped.
    ///
    /// A waiter of another queue is replaced by a new one of this.
    pub fn poll_take<L>(
        &self,
        cx: &mut Context<'_>,
        waiter: &mut Waiter,
        mut admit: impl FnMut(&T) -> Result<L, Blocked>,
    ) -> Poll<Option<(T, L)>> {
        if !waiter.is_of(&self.signal) {
            *waiter = self.waiter();
        }
        // The wake-up ends before the look: what comes later wakes again.
        waiter.look();
        if let Some(taken) = self.take(&mut admit) {
            self.pass_on();
            return Poll::Ready(Some(taken));
        }
        waiter.wait(cx.waker());
        if self.is_stopped() {
            waiter.look();
            return Poll::Ready(None);
        }
        match self.take(&mut admit) {
            Some(taken) => {
                waiter.look();
                self.pass_on();
                Poll::Ready(Some(taken))
            }
            None => Poll::Pending,
        }
    }

    /// Wakes another worker if this one leaves work behind.
    fn pass_on(&self) {
        let more = self.version_to_try().is_some();
        if more && (self.order == Order::Global || self.turns.may_be_ready()) {
            self.signal.wake();
        }
    }

    /// A place for one worker among those who wait. It is made once per worker: waiting then allocates nothing.
    pub fn waiter(&self) -> Waiter {
        Waiter::new(&self.signal)
    }

    /// Says that capacity was given back: the blocked are tried again, and a waiting worker is woken.
    ///
    /// Without workers that wait, whoever calls this must then [`take`](Self::take) until nothing is left to take.
    pub fn capacity_changed(&self) {
        self.turns.capacity_changed();
        if self.has_waiting() {
            self.signal.wake();
        }
    }

    /// Stops the queue and gives back everything still queued, exactly once, in no particular order. Later admissions are refused, and waiting
    /// workers end.
    ///
    /// Admissions and offers that have begun are waited for; they are short. What such an offer takes is not in the list.
    pub fn stop(&self) -> Vec<T> {
        self.count.0.fetch_or(STOPPED, SeqCst);
        self.signal.wake_all();
        let slab = &self.fifos.slab;
        let mut all = Vec::new();
        loop {
            for entry in 0..slab.size() {
                let state = slab.state(entry);
                if state.phase() == Phase::Queued && slab.change(entry, state, Phase::Leaving) {
                    all.extend(slab.empty(entry));
                    self.fifos.bury(state.fifo(), entry);
                    self.left(state.fifo());
                }
            }
            if self.is_empty() {
                return all;
            }
            yield_now();
        }
    }

    /// Whether [`stop`](Self::stop) was called.
    pub fn is_stopped(&self) -> bool {
        self.count.0.load(SeqCst) & STOPPED != 0
    }

    /// How many entries are queued, with those being admitted or offered.
    pub fn len(&self) -> usize {
        (self.count.0.load(SeqCst) & !STOPPED) as usize
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether anything is queued: one atomic load.
    pub fn has_waiting(&self) -> bool {
        !self.is_empty()
    }

    /// How many turn tokens there are: of each owner as many as it has entries, up to what is left of its weight. None in [`Order::Global`].
    /// It walks along all owners, and is exact only while nobody changes the queue.
    pub fn tokens(&self) -> u64 {
        self.turns.tokens(|fifo| self.fifos.living(fifo))
    }
}

impl<T> fmt::Debug for FairQueue<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("FairQueue")
            .field("order", &self.order)
            .field("capacity", &self.capacity)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
