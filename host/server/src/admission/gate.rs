//! Who may run now: connections take turns, owner by owner.
//!
//! A turn is the right to execute up to [`TURN_REQUESTS`](crate::connection) requests on the connection's own task. There are as many turns at a
//! time as the runtime has threads. When nobody waits and one is free, a connection takes it in passing: two atomic
//! operations. As soon as anybody waits, everybody queues in the fair queue, so that an owner with many connections gets no
//! more than its weight. Knows nothing of sockets, requests or budgets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use backplane_queue::fair::{FairQueue, Order, OwnerHandle, QueueOptions, Refusal, Ticket};
use parking_lot::Mutex;

/// Neither waiting nor running.
const AWAY: u8 = 0;
/// In the queue.
const WAITING: u8 = 1;
/// The turn is this seat's: it was granted, or taken in passing.
const RUNNING: u8 = 2;
/// The connection is over.
const GONE: u8 = 3;

/// The gate of a server.
#[derive(Debug)]
pub(crate) struct Gate {
    queue: FairQueue<Arc<Seat>>,
    free: AtomicUsize,
}

/// One connection's place at the gate.
#[derive(Debug)]
struct Seat {
    state: AtomicU8,
    /// Touched only when a connection waits.
    waker: Mutex<Option<Waker>>,
}

impl Gate {
    /// A gate for `turns` turns at a time and at most `connections` connections of `owners` owners. `fair` is off where owners do not count.
    pub(crate) fn new(turns: usize, connections: usize, owners: usize, fair: bool) -> Arc<Self> {
        Arc::new(Self {
            queue: FairQueue::new(QueueOptions {
                // A connection that left may still have an entry that nobody has passed by yet.
                capacity: connections.saturating_mul(2),
                max_owners: owners,
                order: if fair { Order::Weighted } else { Order::Global },
            }),
            free: AtomicUsize::new(turns.max(1)),
        })
    }

    /// The place of an owner among those that wait.
    ///
    /// # Errors
    /// When there are too many owners.
    pub(crate) fn owner(&self, key: &Arc<str>, weight: u32) -> Result<OwnerHandle, Refusal> {
        self.queue.owner(key, weight)
    }

    fn try_take(&self) -> bool {
        let take = |free: usize| free.checked_sub(1);
        self.free.try_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok()
    }

    /// Gives turns that are free to those that wait. Whoever queues calls it after queueing, whoever returns a turn after
    /// returning it: one of the two sees the other.
    fn pump(&self) {
        while self.queue.has_waiting() && self.try_take() {
            match self.queue.take(|_| Ok(())) {
                Some((seat, ())) if seat.grant() => {}
                _ => {
                    self.free.fetch_add(1, Ordering::SeqCst);
                }
            }
        }
    }

    fn give_back(&self) {
        self.free.fetch_add(1, Ordering::SeqCst);
        self.pump();
    }
}

impl Seat {
    /// False when the connection has gone.
    fn grant(&self) -> bool {
        let granted = self
            .state
            .compare_exchange(WAITING, RUNNING, Ordering::SeqCst, Ordering::SeqCst);
        if granted.is_err() {
            return false;
        }
        let waker = self.waker.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }
}

/// A connection's own end of its seat. Whatever it holds goes back when it is dropped.
#[derive(Debug)]
pub(crate) struct Turns {
    gate: Arc<Gate>,
    seat: Arc<Seat>,
    ticket: Option<Ticket>,
}

impl Turns {
    /// A seat at `gate`.
    pub(crate) fn new(gate: &Arc<Gate>) -> Self {
        Self {
            gate: Arc::clone(gate),
            seat: Arc::new(Seat {
                state: AtomicU8::new(AWAY),
                waker: Mutex::new(None),
            }),
            ticket: None,
        }
    }

    fn state(&self) -> u8 {
        self.seat.state.load(Ordering::SeqCst)
    }

    /// Takes a turn if that is possible at once, else queues for one behind `owner`. True when the turn is this connection's now.
    ///
    /// # Errors
    /// When the queue takes nobody.
    pub(crate) fn enter(&mut self, owner: &OwnerHandle) -> Result<bool, Refusal> {
        match self.state() {
            RUNNING => return Ok(true),
            WAITING => return Ok(false),
            _ => {}
        }
        if !self.gate.queue.has_waiting() && self.gate.try_take() {
            self.seat.state.store(RUNNING, Ordering::SeqCst);
            return Ok(true);
        }
        self.queue(owner)?;
        self.gate.pump();
        Ok(self.state() == RUNNING)
    }

    fn queue(&mut self, owner: &OwnerHandle) -> Result<(), Refusal> {
        self.seat.state.store(WAITING, Ordering::SeqCst);
        match self.gate.queue.admit(owner, Arc::clone(&self.seat)) {
            Ok(ticket) => {
                self.ticket = Some(ticket);
                Ok(())
            }
            Err(refused) => {
                self.seat.state.store(AWAY, Ordering::SeqCst);
                Err(refused.refusal)
            }
        }
    }

    /// Ends the turn, if there is one.
    pub(crate) fn leave(&mut self) {
        if self.state() == RUNNING {
            self.seat.state.store(AWAY, Ordering::SeqCst);
            self.gate.give_back();
        }
    }

    /// Ends the turn and queues for another one, behind those that wait. True when it is this connection's at once, or when it
    /// had none and may try to [`enter`](Self::enter).
    ///
    /// # Errors
    /// When the queue takes nobody.
    pub(crate) fn again(&mut self, owner: &OwnerHandle) -> Result<bool, Refusal> {
        if self.state() != RUNNING {
            return Ok(!self.is_waiting());
        }
        let queued = self.queue(owner);
        self.gate.give_back();
        queued?;
        Ok(self.state() == RUNNING)
    }

    /// Whether it neither waits nor has a turn.
    pub(crate) fn is_away(&self) -> bool {
        self.state() == AWAY
    }

    /// Whether the connection waits for a turn.
    pub(crate) fn is_waiting(&self) -> bool {
        self.state() == WAITING
    }

    /// Ready when a turn that was waited for is granted.
    pub(crate) fn poll_granted(&self, cx: &Context<'_>) -> Poll<()> {
        if self.state() == RUNNING {
            return Poll::Ready(());
        }
        let mut waker = self.seat.waker.lock();
        if !waker.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        drop(waker);
        // It may have been granted between the look and the waker.
        if self.state() == RUNNING {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        match self.seat.state.swap(GONE, Ordering::SeqCst) {
            RUNNING => self.gate.give_back(),
            WAITING => {
                if let Some(ticket) = self.ticket.take() {
                    self.gate.queue.cancel(ticket);
                }
                // Who took the entry meanwhile finds nobody and goes on with the next.
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Arc<str> {
        Arc::from(name)
    }

    #[test]
    fn a_free_turn_is_taken_in_passing() {
        let gate = Gate::new(1, 8, 8, true);
        let owner = gate.owner(&key("a"), 1).unwrap();
        let mut one = Turns::new(&gate);
        let mut two = Turns::new(&gate);
        assert_eq!(one.enter(&owner), Ok(true));
        assert_eq!(two.enter(&owner), Ok(false));
        assert!(two.is_waiting());
        one.leave();
        assert!(!two.is_waiting(), "the turn went to the one that waited");
    }

    #[test]
    fn who_floods_waits_behind_another_owner() {
        let gate = Gate::new(1, 8, 8, true);
        let flood = gate.owner(&key("flood"), 1).unwrap();
        let quiet = gate.owner(&key("quiet"), 1).unwrap();
        let mut first = Turns::new(&gate);
        let mut rest: Vec<Turns> = (0..5).map(|_| Turns::new(&gate)).collect();
        assert_eq!(first.enter(&flood), Ok(true));
        for turns in &mut rest {
            assert_eq!(turns.enter(&flood), Ok(false));
        }
        let mut visitor = Turns::new(&gate);
        assert_eq!(visitor.enter(&quiet), Ok(false));
        assert_eq!(first.again(&flood), Ok(false));
        assert_eq!(rest[0].again(&flood), Ok(false), "the first of the flood had the turn");
        assert!(!visitor.is_waiting(), "then it is the other owner's");
    }

    #[test]
    fn alone_one_goes_on() {
        let gate = Gate::new(1, 8, 8, true);
        let owner = gate.owner(&key("a"), 1).unwrap();
        let mut one = Turns::new(&gate);
        assert_eq!(one.enter(&owner), Ok(true));
        for _ in 0..1_000 {
            assert_eq!(one.again(&owner), Ok(true));
        }
    }

    #[test]
    fn what_is_dropped_gives_its_turn_back() {
        let gate = Gate::new(1, 8, 8, true);
        let owner = gate.owner(&key("a"), 1).unwrap();
        for _ in 0..100 {
            let mut running = Turns::new(&gate);
            assert_eq!(running.enter(&owner), Ok(true));
            let mut waiting = Turns::new(&gate);
            assert_eq!(waiting.enter(&owner), Ok(false));
            drop(waiting);
            drop(running);
        }
        let mut last = Turns::new(&gate);
        assert_eq!(last.enter(&owner), Ok(true));
    }
}
