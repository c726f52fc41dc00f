//! The fair queue as its callers see it: order, bounds, refusals, blocked owners, cancellation and stop, one step after the other.

#![cfg(not(any(loom, shuttle)))]
#![allow(missing_docs, clippy::unwrap_used)]

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use backplane_queue::fair::{Blocked, FairQueue, Order, OwnerHandle, QueueOptions, Refusal};

const ORDERS: [Order; 2] = [Order::Weighted, Order::Global];

fn queue<T>(capacity: usize, max_owners: usize, order: Order) -> FairQueue<T> {
    FairQueue::new(QueueOptions {
        capacity,
        max_owners,
        order,
    })
}

fn owner<T>(queue: &FairQueue<T>, key: &str, weight: u32) -> OwnerHandle {
    queue.owner(&Arc::from(key), weight).unwrap()
}

/// Takes everything for which there is always capacity.
fn all<T>(queue: &FairQueue<T>) -> Vec<T> {
    std::iter::from_fn(|| queue.take(|_| Ok(())).map(|(work, ())| work)).collect()
}

#[test]
fn turns_are_as_long_as_weights() {
    let queue = queue(64, 8, Order::Weighted);
    let (heavy, light) = (owner(&queue, "heavy", 3), owner(&queue, "light", 1));
    for number in 0..6 {
        queue.admit(&heavy, ('h', number)).unwrap();
        queue.admit(&light, ('l', number)).unwrap();
    }
    let order: String = all(&queue).into_iter().map(|(owner, _)| owner).collect();
    assert_eq!(order, "hhhlhhhlllll");
}

#[test]
fn an_owners_work_keeps_its_order() {
    for order in ORDERS {
        let queue = queue(64, 8, order);
        let owners = [owner(&queue, "a", 2), owner(&queue, "b", 5)];
        for number in 0..30 {
            queue.admit(&owners[number % 2], number).unwrap();
        }
        let taken = all(&queue);
        assert_eq!(taken.len(), 30);
        let of = |owner| taken.iter().copied().filter(move |number| number % 2 == owner);
        assert!(of(0).is_sorted() && of(1).is_sorted());
        if order == Order::Global {
            assert!(taken.is_sorted());
        }
    }
}

#[test]
fn the_last_token_queues_the_next_turn_behind_those_who_wait_only() {
    let queue = queue(64, 8, Order::Weighted);
    let (first, second, late) = (owner(&queue, "1", 1), owner(&queue, "2", 1), owner(&queue, "3", 1));
    queue.admit(&first, "1a").unwrap();
    queue.admit(&first, "1b").unwrap();
    queue.admit(&second, "2a").unwrap();
    assert_eq!(queue.take(|_| Ok(())).unwrap().0, "1a");
    queue.admit(&late, "3a").unwrap();
    assert_eq!(all(&queue), ["2a", "1b", "3a"]);
}

#[test]
fn an_owner_that_ran_empty_does_not_keep_its_turn() {
    let queue = queue(64, 8, Order::Weighted);
    let (quick, patient) = (owner(&queue, "quick", 1), owner(&queue, "patient", 1));
    queue.admit(&quick, "q0").unwrap();
    queue.admit(&patient, "p0").unwrap();
    queue.admit(&patient, "p1").unwrap();
    assert_eq!(queue.take(|_| Ok(())).unwrap().0, "q0");
    // Its only token is spent, so what it admits now waits for the turn of who stood behind it.
    queue.admit(&quick, "q1").unwrap();
    assert_eq!(all(&queue), ["p0", "q1", "p1"]);
}

#[test]
fn a_weight_costs_no_more_tokens_than_the_backlog() {
    let queue = queue(64, 8, Order::Weighted);
    let (heavy, light) = (owner(&queue, "heavy", 1_000_000), owner(&queue, "light", 2));
    let tickets: Vec<_> = (0..5).map(|number| queue.admit(&heavy, number).unwrap()).collect();
    for number in 0..5 {
        queue.admit(&light, number).unwrap();
    }
    assert_eq!(queue.tokens(), 5 + 2);
    for (number, ticket) in tickets.iter().enumerate() {
        assert_eq!(queue.cancel(*ticket), Some(number));
        assert_eq!(queue.tokens(), 4 - number as u64 + 2);
    }
    assert_eq!(all(&queue), [0, 1, 2, 3, 4]);
    assert_eq!(queue.tokens(), 0);
}

#[test]
fn cancelling_the_last_entry_leaves_no_tokens() {
    let queue = queue(8, 8, Order::Weighted);
    for _ in 0..1_000 {
        let tickets: Vec<_> = ["a", "b", "c"]
            .iter()
            .map(|key| queue.admit(&owner(&queue, key, 7), *key).unwrap())
            .collect();
        assert_eq!(queue.tokens(), 3);
        for ticket in tickets.into_iter().rev() {
            assert!(queue.cancel(ticket).is_some());
            assert!(queue.cancel(ticket).is_none());
        }
        assert_eq!((queue.tokens(), queue.len()), (0, 0));
        assert!(queue.take(|_| Ok(())).is_none());
    }
}

#[test]
fn refusals_give_the_work_back() {
    for order in ORDERS {
        let queue = queue(2, 1, order);
        let handle = owner(&queue, "a", 1);
        queue.admit(&handle, 1).unwrap();
        queue.admit(&handle, 2).unwrap();
        let refused = queue.admit(&handle, 3).unwrap_err();
        assert_eq!((refused.refusal, refused.work), (Refusal::Full, 3));
        assert_eq!(queue.owner(&Arc::from("b"), 1).unwrap_err(), Refusal::OwnersFull);
        assert_eq!(queue.take(|_| Ok(())), Some((1, ())));
        queue.admit(&handle, 4).unwrap();
        assert_eq!(queue.len(), 2);

        let mut left = queue.stop();
        left.sort_unstable();
        assert_eq!(left, [2, 4]);
        let refused = queue.admit(&handle, 5).unwrap_err();
        assert_eq!((refused.refusal, refused.work), (Refusal::Stopped, 5));
        assert_eq!(queue.owner(&Arc::from("a"), 1).unwrap_err(), Refusal::Stopped);
        assert!(queue.take(|_| Ok(())).is_none() && queue.is_stopped() && queue.is_empty());
        assert!(queue.stop().is_empty());
    }
}

#[test]
fn owners_are_forgotten_when_nobody_needs_them() {
    let queue = queue(8, 2, Order::Weighted);
    for number in 0..100 {
        let key: Arc<str> = format!("{number}").into();
        queue.owner(&key, 1).unwrap();
    }
    let kept = owner(&queue, "kept", 1);
    queue.admit(&owner(&queue, "busy", 1), 1).unwrap();
    assert_eq!(queue.owner(&Arc::from("other"), 1).unwrap_err(), Refusal::OwnersFull);
    // The same owner still: both entries are in one FIFO.
    queue.admit(&owner(&queue, "busy", 1), 2).unwrap();
    queue.admit(&kept, 3).unwrap();
    assert_eq!(all(&queue), [1, 3, 2]);
    queue.owner(&Arc::from("other"), 1).unwrap();
}

#[test]
fn equal_keys_are_one_owner_and_the_last_weight_counts() {
    let queue = queue(64, 8, Order::Weighted);
    let (one, same, other) = (owner(&queue, "a", 1), owner(&queue, "a", 2), owner(&queue, "b", 1));
    for number in 0..2 {
        queue.admit(&one, ('a', number)).unwrap();
        queue.admit(&same, ('a', 2 + number)).unwrap();
        queue.admit(&other, ('b', number)).unwrap();
    }
    let order: String = all(&queue).into_iter().map(|(owner, _)| owner).collect();
    assert_eq!(order, "aabaab");
    assert_eq!((one.weight(), &**same.key()), (2, "a"));
}

#[test]
fn a_blocked_owner_is_not_tried_again_until_the_capacity_changes() {
    let queue = queue(64, 8, Order::Weighted);
    let (blocked, free) = (owner(&queue, "blocked", 2), owner(&queue, "free", 1));
    for number in 0..3 {
        queue.admit(&blocked, ("blocked", number)).unwrap();
        queue.admit(&free, ("free", number)).unwrap();
    }
    let tried = Cell::new(0);
    let admit = |work: &(&str, i32)| {
        if work.0 == "blocked" {
            tried.set(tried.get() + 1);
            return Err(Blocked::Owner);
        }
        Ok(())
    };
    for number in 0..3 {
        assert_eq!(queue.take(admit), Some((("free", number), ())));
    }
    assert!(queue.take(admit).is_none() && queue.take(admit).is_none());
    assert_eq!((tried.get(), queue.len()), (1, 3));
    // New work of a blocked owner is not tried either.
    queue.admit(&blocked, ("blocked", 3)).unwrap();
    assert!(queue.take(admit).is_none());
    assert_eq!(tried.get(), 1);
    queue.capacity_changed();
    assert!(queue.take(admit).is_none());
    assert_eq!(tried.get(), 2);
    queue.capacity_changed();
    let order: Vec<_> = all(&queue).into_iter().map(|(_, number)| number).collect();
    assert_eq!(order, [0, 1, 2, 3]);
}

#[test]
fn a_turn_goes_on_after_it_was_blocked() {
    let queue = queue(64, 8, Order::Weighted);
    let (heavy, light) = (owner(&queue, "h", 3), owner(&queue, "l", 1));
    for _ in 0..6 {
        queue.admit(&heavy, 'h').unwrap();
        queue.admit(&light, 'l').unwrap();
    }
    // One slot: after each entry that gets it, everybody is refused until it is given back.
    let mut order = String::new();
    while !queue.is_empty() {
        let free = Cell::new(true);
        let admit = |_: &char| {
            if free.replace(false) {
                Ok(())
            } else {
                Err(Blocked::Owner)
            }
        };
        while let Some((work, ())) = queue.take(admit) {
            order.push(work);
        }
        queue.capacity_changed();
    }
    assert_eq!(order, "hhhlhhhlllll");
}

#[test]
fn nobody_is_tried_when_everyone_is_blocked() {
    for order in ORDERS {
        let queue = queue(64, 8, order);
        let tried = Cell::new(0);
        let admit = |_: &i32| -> Result<(), Blocked> {
            tried.set(tried.get() + 1);
            Err(Blocked::Everyone)
        };
        for number in 0..8 {
            let key = format!("{}", number % 4);
            queue.admit(&owner(&queue, &key, 1), number).unwrap();
            assert!(queue.take(admit).is_none());
        }
        assert_eq!(tried.get(), 1);
        queue.capacity_changed();
        assert!(queue.take(admit).is_none());
        assert_eq!(tried.get(), 2);
        queue.capacity_changed();
        let taken = all(&queue);
        assert_eq!(taken, [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}

#[test]
fn a_blocked_head_is_not_overtaken_in_global_order() {
    let queue = queue(64, 8, Order::Global);
    queue.admit(&owner(&queue, "blocked", 1), 0).unwrap();
    queue.admit(&owner(&queue, "free", 1), 1).unwrap();
    let admit = |work: &i32| if *work == 0 { Err(Blocked::Owner) } else { Ok(()) };
    assert!(queue.take(admit).is_none());
    queue.capacity_changed();
    assert!(queue.take(admit).is_none());
    // While the head is being offered, nobody else gets anything.
    queue.capacity_changed();
    let inner = Cell::new(0);
    let taken = queue.take(|_| {
        inner.set(inner.get() + usize::from(queue.take(|_| Ok(())).is_none()));
        Ok(())
    });
    assert_eq!((taken, inner.get()), (Some((0, ())), 1));
    assert_eq!(all(&queue), [1]);
}

#[test]
fn a_new_owner_does_not_inherit_that_the_last_one_was_blocked() {
    let queue = queue(4, 4, Order::Weighted);
    for round in 0..200 {
        let keys = ["a", "b", "c"].map(|key| format!("{key}{round}"));
        let tickets = keys
            .each_ref()
            .map(|key| queue.admit(&owner(&queue, key, 1), 0).unwrap());
        assert!(queue.take(|_| Err::<(), _>(Blocked::Owner)).is_none());
        for ticket in tickets {
            queue.cancel(ticket).unwrap();
        }
        // No capacity ever changes: what is admitted now was never refused.
        for key in ["x", "y", "z"] {
            queue.admit(&owner(&queue, key, 1), round).unwrap();
        }
        assert_eq!(all(&queue), [round; 3]);
    }
}

#[test]
fn cancelled_entries_behind_a_living_one_take_no_room() {
    for order in ORDERS {
        let queue = queue(4, 2, order);
        let handle = owner(&queue, "a", 1);
        queue.admit(&handle, 0).unwrap();
        for number in 1..10_000 {
            let tickets: Vec<_> = (0..3).map(|_| queue.admit(&handle, number).unwrap()).collect();
            assert!(queue.admit(&handle, 0).is_err());
            for ticket in tickets.iter().rev() {
                assert_eq!(queue.cancel(*ticket), Some(number));
            }
        }
        assert_eq!(all(&queue), [0]);
    }
}

#[test]
fn cancelling_what_is_offered_has_it_offered_once_more() {
    for order in ORDERS {
        let queue = queue(4, 2, order);
        let ticket = queue.admit(&owner(&queue, "a", 1), 7).unwrap();
        let cancelled = Cell::new(false);
        let offers = Cell::new(0);
        let taken = queue.take(|_| {
            offers.set(offers.get() + 1);
            if cancelled.get() {
                return Ok("cancelled");
            }
            cancelled.set(true);
            assert!(queue.cancel(ticket).is_none());
            Err(Blocked::Owner)
        });
        assert_eq!((taken, offers.get()), (Some((7, "cancelled")), 2));
        assert!(queue.cancel(ticket).is_none() && queue.is_empty());
    }
}

#[test]
fn a_panic_in_an_offer_leaves_the_entry_queued() {
    for order in ORDERS {
        let queue = queue(4, 2, order);
        queue.admit(&owner(&queue, "a", 1), 7).unwrap();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            queue.take(|_| -> Result<(), Blocked> { panic!("no capacity to ask for") })
        }));
        assert!(panicked.is_err());
        assert_eq!(all(&queue), [7]);
    }
}

#[test]
fn handles_and_waiters_of_another_queue_do_no_harm() {
    let (mine, other) = (queue(4, 2, Order::Weighted), queue::<i32>(4, 2, Order::Global));
    let foreign = owner(&other, "a", 1);
    let ticket = other.admit(&foreign, 1).unwrap();
    mine.admit(&foreign, 2).unwrap();
    mine.admit(&owner(&mine, "a", 1), 3).unwrap();
    assert_eq!(all(&mine), [2, 3]);
    assert_eq!((other.cancel(ticket), other.len()), (Some(1), 0));
    let mut waiter = other.waiter();
    let noted = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&noted));
    let mut cx = Context::from_waker(&waker);
    assert!(mine.poll_take(&mut cx, &mut waiter, |_| Ok(())).is_pending());
    mine.admit(&foreign, 4).unwrap();
    assert_eq!(noted.count(), 1);
    assert_eq!(
        mine.poll_take(&mut cx, &mut waiter, |_| Ok(())),
        Poll::Ready(Some((4, ())))
    );
}

#[derive(Default)]
struct Woken(AtomicUsize);

impl Woken {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn one_wake_up_is_under_way_at_a_time() {
    for order in ORDERS {
        let queue = queue(16, 4, order);
        let handle = owner(&queue, "a", 1);
        let noted: [_; 3] = std::array::from_fn(|_| Arc::new(Woken::default()));
        let wakers = noted.each_ref().map(|noted| Waker::from(Arc::clone(noted)));
        let waiters = RefCell::new(noted.each_ref().map(|_| queue.waiter()));
        let poll = |who: usize| {
            let mut cx = Context::from_waker(&wakers[who]);
            queue.poll_take(&mut cx, &mut waiters.borrow_mut()[who], |_| Ok(()))
        };
        let counts = || noted.each_ref().map(|noted| noted.count());
        (0..3).for_each(|who| assert!(poll(who).is_pending()));
        for number in 0..3 {
            queue.admit(&handle, number).unwrap();
        }
        assert_eq!(counts(), [1, 0, 0]);
        // Who was woken takes one and passes the wake-up on, for more is left.
        assert_eq!(poll(0), Poll::Ready(Some((0, ()))));
        assert_eq!(counts(), [1, 1, 0]);
        assert_eq!(poll(0), Poll::Ready(Some((1, ()))));
        assert_eq!(counts(), [1, 1, 0]);
        assert_eq!(poll(1), Poll::Ready(Some((2, ()))));
        assert_eq!(counts(), [1, 1, 0]);
        // Polled without a reason, it keeps one place only.
        assert!(poll(1).is_pending() && poll(1).is_pending());
        queue.admit(&handle, 3).unwrap();
        assert_eq!(counts(), [1, 1, 1]);
        assert_eq!(poll(2), Poll::Ready(Some((3, ()))));
        assert!(!queue.has_waiting());
        queue.stop();
        assert_eq!(counts(), [1, 2, 1]);
        assert_eq!(poll(1), Poll::Ready(None));
    }
}

#[test]
fn a_worker_that_goes_away_passes_its_wake_up_on() {
    let queue = queue(16, 4, Order::Weighted);
    let handle = owner(&queue, "a", 1);
    let noted: [_; 2] = std::array::from_fn(|_| Arc::new(Woken::default()));
    let mut waiters = Vec::new();
    for noted in &noted {
        let mut waiter = queue.waiter();
        let waker = Waker::from(Arc::clone(noted));
        let mut cx = Context::from_waker(&waker);
        assert!(queue.poll_take(&mut cx, &mut waiter, |_| Ok(())).is_pending());
        waiters.push(waiter);
    }
    queue.admit(&handle, 1).unwrap();
    drop(waiters.remove(0));
    assert_eq!(noted.each_ref().map(|noted| noted.count()), [1, 1]);
    drop(waiters);
    // Nobody waits: the next worker finds the work by itself.
    assert_eq!(all(&queue), [1]);
}

#[test]
fn capacity_that_changes_wakes_a_worker_for_the_blocked() {
    for order in ORDERS {
        let queue = queue(16, 4, order);
        queue.admit(&owner(&queue, "a", 1), 1).unwrap();
        let noted = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&noted));
        let mut cx = Context::from_waker(&waker);
        let mut waiter = queue.waiter();
        let refused = queue.poll_take(&mut cx, &mut waiter, |_| Err::<(), _>(Blocked::Owner));
        assert!(refused.is_pending());
        assert_eq!(noted.count(), 0);
        queue.capacity_changed();
        assert_eq!(noted.count(), 1);
        let taken = queue.poll_take(&mut cx, &mut waiter, |_| Ok(()));
        assert_eq!(taken, Poll::Ready(Some((1, ()))));
        queue.capacity_changed();
        assert_eq!(noted.count(), 1);
    }
}
