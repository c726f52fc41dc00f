//! The fair queue under many threads: nothing is lost or handed out twice, weights hold, nobody sleeps while there is work.

#![cfg(not(any(loom, shuttle)))]
#![allow(missing_docs, clippy::unwrap_used)]

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use backplane_queue::fair::{Blocked, FairQueue, Order, OwnerHandle, QueueOptions, Refusal, Ticket};

const ORDERS: [Order; 2] = [Order::Weighted, Order::Global];
/// When a test that should have ended is taken for one that sleeps.
const PATIENCE: Duration = Duration::from_secs(300);

fn queue<T>(capacity: usize, max_owners: usize, order: Order) -> Arc<FairQueue<T>> {
    Arc::new(FairQueue::new(QueueOptions {
        capacity,
        max_owners,
        order,
    }))
}

fn owner<T>(queue: &FairQueue<T>, key: &str, weight: u32) -> OwnerHandle {
    queue.owner(&Arc::from(key), weight).unwrap()
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Works until the queue is stopped.
fn work<T, L>(queue: &FairQueue<T>, mut admit: impl FnMut(&T) -> Result<L, Blocked>, mut done: impl FnMut(T, L)) {
    let mut waiter = queue.waiter();
    while let Some((work, lease)) = block_on(poll_fn(|cx| queue.poll_take(cx, &mut waiter, &mut admit))) {
        done(work, lease);
    }
}

/// Waits until something holds, without sleeping through it; panics when it never does.
fn until(what: &str, holds: impl Fn() -> bool) {
    let begin = std::time::Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        thread::yield_now();
    }
}

/// Work with a number, which counts how often it came out.
#[derive(Debug)]
struct Numbered(usize);

#[derive(Default)]
struct Tally(Vec<AtomicUsize>);

impl Tally {
    fn new(size: usize) -> Arc<Self> {
        Arc::new(Self((0..size).map(|_| AtomicUsize::new(0)).collect()))
    }

    fn count(&self, number: usize) {
        self.0[number].fetch_add(1, SeqCst);
    }

    fn all_are_one(&self) -> bool {
        self.0.iter().all(|count| count.load(SeqCst) == 1)
    }
}

/// A capacity of execution: at most so many leases at once.
#[derive(Clone)]
struct Capacity {
    free: Arc<AtomicUsize>,
    returned: Arc<AtomicUsize>,
}

struct Lease(Capacity);

impl Capacity {
    fn new(free: usize) -> Self {
        Self {
            free: Arc::new(AtomicUsize::new(free)),
            returned: Arc::default(),
        }
    }

    fn lease(&self, blocked: Blocked) -> Result<Lease, Blocked> {
        let less = |free: usize| free.checked_sub(1);
        match self.free.fetch_update(SeqCst, SeqCst, less) {
            Ok(_) => Ok(Lease(self.clone())),
            Err(_) => Err(blocked),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.free.fetch_add(1, SeqCst);
        self.0.returned.fetch_add(1, SeqCst);
    }
}

#[test]
fn weights_hold_under_eight_workers() {
    const EACH: usize = 20_000;
    for round in 0..5 {
        let queue = queue(2 * EACH, 4, Order::Weighted);
        let owners = [owner(&queue, "light", 1), owner(&queue, "heavy", 3)];
        for _ in 0..EACH {
            queue.admit(&owners[0], 0).unwrap();
            queue.admit(&owners[1], 1).unwrap();
        }
        let served = [AtomicUsize::new(0), AtomicUsize::new(0)];
        let start = Barrier::new(8);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    // Both are backlogged to the end of this.
                    while served[0].load(SeqCst) + served[1].load(SeqCst) < EACH {
                        let (who, ()) = queue.take(|_: &usize| Ok(())).unwrap();
                        served[who].fetch_add(1, SeqCst);
                    }
                });
            }
        });
        let [light, heavy] = served.each_ref().map(|served| served.load(SeqCst) as f64);
        let ratio = heavy / light;
        assert!((2.5..=3.5).contains(&ratio), "round {round}: {ratio}");
    }
}

#[test]
fn weights_hold_while_owners_admit_and_capacity_is_scarce() {
    for blocked in [Blocked::Owner, Blocked::Everyone] {
        let ratio = ratio_with_scarce_capacity(blocked);
        assert!((2.5..=3.5).contains(&ratio), "{blocked:?}: {ratio}");
    }
}

/// How much more often the heavier of two owners, with three times the weight, is served, while both keep their backlog.
fn ratio_with_scarce_capacity(blocked: Blocked) -> f64 {
    const TOTAL: usize = 20_000;
    let queue = queue(64, 4, Order::Weighted);
    let capacity = Capacity::new(2);
    let owners = [owner(&queue, "light", 1), owner(&queue, "heavy", 3)];
    let served = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let total = AtomicUsize::new(0);
    for number in 0..32 {
        queue.admit(&owners[number % 2], number % 2).unwrap();
    }
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                work(
                    &queue,
                    |_| capacity.lease(blocked),
                    |who, lease| {
                        // What comes after the last that counts does not: stopping takes its time.
                        if total.fetch_add(1, SeqCst) < TOTAL {
                            served[who].fetch_add(1, SeqCst);
                        }
                        drop(lease);
                        queue.capacity_changed();
                        let again = queue.admit(&owners[who], who);
                        assert!(again.is_ok() || queue.is_stopped());
                    },
                );
            });
        }
        until("work is done", || total.load(SeqCst) >= TOTAL);
        queue.stop();
    });
    let [light, heavy] = served.each_ref().map(|served| served.load(SeqCst) as f64);
    heavy / light
}

/// Fifty owners, sixteen workers, and cancellations: every entry comes out once, and every lease comes back.
#[test]
fn fifty_owners_and_sixteen_workers_with_cancellations() {
    const OWNERS: usize = 50;
    const EACH: usize = 400;
    const PRODUCERS: usize = 5;
    let queue = queue(300, OWNERS, Order::Weighted);
    let capacity = Capacity::new(6);
    let tally = Tally::new(OWNERS * EACH);
    let (cancelled, leases) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                work(
                    &queue,
                    |_| capacity.lease(Blocked::Owner),
                    |Numbered(number), lease| {
                        tally.count(number);
                        leases.fetch_add(1, SeqCst);
                        drop(lease);
                        queue.capacity_changed();
                    },
                );
            });
        }
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|producer| {
                let (queue, tally, cancelled) = (&queue, &tally, &cancelled);
                scope.spawn(move || {
                    let owners: Vec<_> = (0..OWNERS)
                        .map(|owner| self::owner(queue, &format!("{owner}"), 1 + owner as u32 % 7))
                        .collect();
                    let mut tickets: VecDeque<Ticket> = VecDeque::new();
                    for number in (producer..OWNERS * EACH).step_by(PRODUCERS) {
                        let mut work = Numbered(number);
                        loop {
                            match queue.admit(&owners[number % OWNERS], work) {
                                Ok(ticket) => break tickets.push_back(ticket),
                                Err(refused) => {
                                    assert_eq!(refused.refusal, Refusal::Full);
                                    work = refused.work;
                                    thread::yield_now();
                                }
                            }
                        }
                        let ticket = match number % 3 {
                            0 => tickets.pop_back(),
                            _ if tickets.len() > 20 => tickets.pop_front(),
                            _ => None,
                        };
                        if let Some(work) = ticket.and_then(|ticket| queue.cancel(ticket)) {
                            tally.count(work.0);
                            cancelled.fetch_add(1, SeqCst);
                        }
                    }
                })
            })
            .collect();
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        until("all work comes out", || queue.is_empty());
        queue.stop();
    });
    assert!(tally.all_are_one());
    assert_eq!(leases.load(SeqCst) + cancelled.load(SeqCst), OWNERS * EACH);
    assert_eq!(capacity.returned.load(SeqCst), leases.load(SeqCst));
    assert!(cancelled.load(SeqCst) > 0);
    assert_eq!(queue.tokens(), 0);
}

#[test]
fn no_wake_up_is_lost() {
    const EACH: usize = 600;
    for order in ORDERS {
        let queue = queue(64, 8, order);
        let tally = Tally::new(4 * EACH);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| work(&queue, |_| Ok(()), |number, ()| tally.count(number)));
            }
            for producer in 0..4 {
                let (queue, tally) = (&queue, &tally);
                scope.spawn(move || {
                    let owner = owner(queue, &format!("{producer}"), 1);
                    for number in (producer..4 * EACH).step_by(4) {
                        while queue.admit(&owner, number).is_err() {
                            thread::yield_now();
                        }
                        // Mostly each waits for its own work: so the workers sleep again and again, and a lost wake-up stays lost.
                        if number % 16 < 12 {
                            until("somebody wakes", || tally.0[number].load(SeqCst) > 0);
                        }
                    }
                });
            }
            until("all work is done", || tally.all_are_one());
            queue.stop();
        });
        assert!(tally.all_are_one());
    }
}

#[test]
fn no_change_of_capacity_is_lost() {
    const EACH: usize = 2_000;
    for (order, blocked) in [
        (Order::Weighted, Blocked::Owner),
        (Order::Weighted, Blocked::Everyone),
        (Order::Global, Blocked::Everyone),
    ] {
        let queue = queue(4 * EACH, 8, order);
        let capacity = Capacity::new(1);
        let tally = Tally::new(4 * EACH);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    work(
                        &queue,
                        |_| capacity.lease(blocked),
                        |number, lease| {
                            tally.count(number);
                            drop(lease);
                            queue.capacity_changed();
                        },
                    );
                });
            }
            for producer in 0..4 {
                let queue = &queue;
                scope.spawn(move || {
                    let owner = owner(queue, &format!("{producer}"), 2);
                    for number in (producer..4 * EACH).step_by(4) {
                        queue.admit(&owner, number).unwrap();
                    }
                });
            }
            until("all work is done", || tally.all_are_one());
            queue.stop();
        });
    }
}

/// Nobody waits: whoever admits or gives capacity back takes, until there is nothing to take.
#[test]
fn whoever_changes_something_takes_without_workers() {
    const THREADS: usize = 8;
    const EACH: usize = 3_000;
    for (order, blocked) in [
        (Order::Weighted, Blocked::Owner),
        (Order::Weighted, Blocked::Everyone),
        (Order::Global, Blocked::Everyone),
    ] {
        let queue = queue(THREADS * EACH, THREADS, order);
        let capacity = Capacity::new(2);
        let tally = Tally::new(THREADS * EACH);
        let pump = || {
            while let Some((number, lease)) = queue.take(|_| capacity.lease(blocked)) {
                tally.count(number);
                drop(lease);
                queue.capacity_changed();
            }
        };
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (queue, pump) = (&queue, &pump);
                scope.spawn(move || {
                    let owner = owner(queue, &format!("{thread}"), 2);
                    for number in (thread..THREADS * EACH).step_by(THREADS) {
                        queue.admit(&owner, number).unwrap();
                        pump();
                    }
                });
            }
        });
        // Everybody went away with nothing to take: so nothing is left.
        assert!(queue.is_empty() && tally.all_are_one(), "{} left", queue.len());
    }
}

#[test]
fn stop_while_workers_wait_and_admissions_race() {
    for round in 0..60 {
        let queue = queue(64, 8, ORDERS[round % 2]);
        let tally = Tally::new(4_000);
        let start = Barrier::new(13);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    work(&queue, |_| Ok(()), |number, ()| tally.count(number));
                });
            }
            for producer in 0..4 {
                let (queue, tally, start) = (&queue, &tally, &start);
                scope.spawn(move || {
                    let owner = owner(queue, &format!("{producer}"), 1);
                    start.wait();
                    for number in (producer..4_000).step_by(4) {
                        let mut work = number;
                        while let Err(refused) = queue.admit(&owner, work) {
                            work = refused.work;
                            if refused.refusal == Refusal::Stopped {
                                tally.count(work);
                                break;
                            }
                            thread::yield_now();
                        }
                    }
                });
            }
            start.wait();
            (0..round * 2_000).for_each(|_| std::hint::spin_loop());
            queue.stop().into_iter().for_each(|number| tally.count(number));
            assert!(queue.is_empty());
        });
        assert!(tally.all_are_one(), "round {round}");
    }
}

#[test]
fn a_cancellation_that_races_service_completes_or_is_served_once() {
    const ENTRIES: usize = 3_000;
    for order in ORDERS {
        let queue = queue(8, 4, order);
        let capacity = Capacity::new(8);
        let (served, cancelled, refused) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let flag = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    work(
                        &queue,
                        |flagged: &Arc<AtomicBool>| {
                            // Mostly refused at first, so that offers and cancellations meet.
                            match flagged.load(SeqCst) || flag.fetch_not(SeqCst) {
                                true => capacity.lease(Blocked::Owner),
                                false => Err(Blocked::Owner),
                            }
                        },
                        |_, lease| {
                            served.fetch_add(1, SeqCst);
                            drop(lease);
                        },
                    );
                });
            }
            let owner = owner(&queue, "a", 1);
            for number in 0..ENTRIES {
                let flagged = Arc::new(AtomicBool::new(false));
                let ticket = queue.admit(&owner, Arc::clone(&flagged)).unwrap();
                (0..number % 4).for_each(|_| std::hint::spin_loop());
                flagged.store(true, SeqCst);
                match queue.cancel(ticket) {
                    Some(_) => cancelled.fetch_add(1, SeqCst),
                    None => refused.fetch_add(1, SeqCst),
                };
                // Without any change of capacity: nothing that was cancelled stays behind.
                until("it comes out", || queue.is_empty());
            }
            until("all comes out", || served.load(SeqCst) == refused.load(SeqCst));
            queue.stop();
        });
        assert_eq!(served.load(SeqCst) + cancelled.load(SeqCst), ENTRIES);
        assert_eq!(capacity.returned.load(SeqCst), served.load(SeqCst));
    }
}

/// Owners that keep many requests in flight, each admitted again when it completes.
#[test]
fn pipelined_owners_with_ample_and_scarce_capacity() {
    for (owners, in_flight) in [(1, 200), (10, 100), (64, 1)] {
        for capacity in [owners * in_flight, 3] {
            let queue = queue(owners * in_flight, owners, Order::Weighted);
            let capacity = Capacity::new(capacity);
            let total = 6_000;
            let done = AtomicUsize::new(0);
            let served: Vec<_> = (0..owners).map(|_| AtomicUsize::new(0)).collect();
            let handles: Vec<_> = (0..owners)
                .map(|number| owner(&queue, &format!("{number}"), 1))
                .collect();
            for number in 0..owners * in_flight {
                queue.admit(&handles[number % owners], number % owners).unwrap();
            }
            thread::scope(|scope| {
                for _ in 0..6 {
                    scope.spawn(|| {
                        work(
                            &queue,
                            |_| capacity.lease(Blocked::Owner),
                            |owner, lease| {
                                served[owner].fetch_add(1, SeqCst);
                                drop(lease);
                                queue.capacity_changed();
                                if done.fetch_add(1, SeqCst) < total {
                                    let again = queue.admit(&handles[owner], owner);
                                    assert!(again.is_ok() || queue.is_stopped());
                                }
                            },
                        );
                    });
                }
                until("all is served", || done.load(SeqCst) >= total + owners * in_flight);
                assert!(queue.is_empty());
                queue.stop();
            });
            let least = served.iter().map(|served| served.load(SeqCst)).min().unwrap();
            // An owner with one request in flight has none while the thread that completes it is not running.
            let share = if in_flight > 1 { total / owners / 3 } else { 1 };
            assert!(least >= share, "{owners} x {in_flight}: {least}");
        }
    }
}

/// Within an owner, work is taken in the order of its admission also when consumers race: a later one is never taken before an earlier one's
/// taking began.
#[test]
fn order_within_an_owner_holds_with_racing_consumers() {
    let queue = queue(4_096, 2, Order::Weighted);
    let handle = owner(&queue, "a", 5);
    (0..4_096).for_each(|number| {
        queue.admit(&handle, number).unwrap();
    });
    let offered = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut last = None;
                while let Some((number, ())) = queue.take(|number: &usize| {
                    offered.lock().unwrap().push(*number);
                    Ok(())
                }) {
                    assert!(last < Some(number));
                    last = Some(number);
                }
            });
        }
    });
    // A consumer that is not running may note late what it was offered; everything was offered, and once.
    let mut offered = offered.into_inner().unwrap();
    offered.sort_unstable();
    assert!(offered.into_iter().eq(0..4_096));
}
