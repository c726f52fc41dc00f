//! What only the inside shows: that FIFOs retire without losing work, and that lists keep little that is dead.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

use super::{FairQueue, Order, OwnerHandle, QueueOptions};
use crate::sync::Arc;

fn queue(capacity: usize) -> FairQueue<usize> {
    FairQueue::new(QueueOptions {
        capacity,
        max_owners: 4,
        order: Order::Weighted,
    })
}

fn owner(queue: &FairQueue<usize>, key: &str) -> OwnerHandle {
    queue.owner(&Arc::from(key), 1).unwrap()
}

/// The FIFO runs empty, and before it can retire, work of the same owner arrives: that work is in no FIFO that retires.
#[test]
fn admission_between_the_last_entry_and_retirement() {
    let queue = Arc::new(queue(8));
    let handle = owner(&queue, "a");
    let late = Arc::new(Barrier::new(2));
    let early = Arc::clone(&late);
    let once = AtomicUsize::new(0);
    queue.fifos.before_retirement.get_or_init(|| {
        Box::new(move || {
            if once.fetch_add(1, SeqCst) == 0 {
                early.wait();
                early.wait();
            }
        })
    });
    queue.admit(&handle, 1).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(queue.take(|_| Ok(())), Some((1, ()))));
        late.wait();
        queue.admit(&handle, 2).unwrap();
        late.wait();
    });
    assert_eq!(queue.tokens(), 1);
    queue.admit(&handle, 3).unwrap();
    assert_eq!(queue.take(|_| Ok(())), Some((2, ())));
    assert_eq!(queue.take(|_| Ok(())), Some((3, ())));
    // Retired now: the owner's next entry starts another FIFO, and so does another owner's in the same place.
    assert!(!queue.fifos.is_live(super::word::Members(handle.0.fifo.load(SeqCst))));
    queue.admit(&owner(&queue, "b"), 4).unwrap();
    queue.admit(&handle, 5).unwrap();
    assert_eq!(queue.take(|_| Ok(())), Some((4, ())));
    assert_eq!(queue.take(|_| Ok(())), Some((5, ())));
    assert_eq!((queue.len(), queue.tokens()), (0, 0));
}

/// The same with the window held open by every retirement, for many threads.
#[test]
fn retirement_races_admission() {
    const EACH: usize = 2_000;
    let queue = queue(64);
    queue
        .fifos
        .before_retirement
        .get_or_init(|| Box::new(thread::yield_now));
    let taken = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..4 {
            let (queue, taken) = (&queue, &taken);
            scope.spawn(move || {
                let handle = owner(queue, ["a", "b"][thread % 2]);
                for number in 0..EACH {
                    let ticket = queue.admit(&handle, number).unwrap();
                    if number % 3 == 0 && queue.cancel(ticket).is_some() {
                        taken.fetch_add(1, SeqCst);
                    }
                    while queue.take(|_| Ok(())).is_some() {
                        taken.fetch_add(1, SeqCst);
                    }
                }
            });
        }
    });
    assert_eq!(taken.load(SeqCst), 4 * EACH);
    assert_eq!((queue.len(), queue.tokens()), (0, 0));
}

/// However entries are cancelled, no more are kept dead than living, and one for each FIFO; and none gets lost.
#[test]
fn lists_keep_no_more_dead_than_living() {
    let queue = queue(64);
    let all = queue.fifos.slab.size();
    let handles = ["a", "b", "c"].map(|key| owner(&queue, key));
    let places = queue.fifos.census().1;
    let mut tickets = Vec::new();
    let mut seed = 7_usize;
    for number in 0..20_000 {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let random = seed >> 33;
        if let Ok(ticket) = queue.admit(&handles[random % 3], number) {
            tickets.push(ticket);
        }
        if random % 5 < 3 && !tickets.is_empty() {
            let ticket = tickets.swap_remove(random % tickets.len());
            queue.cancel(ticket);
        }
        if random.is_multiple_of(50) {
            queue.take(|_| Ok(()));
        }
        let (living, dead) = queue.fifos.census();
        assert_eq!(living, queue.len());
        assert!(dead <= living + places + 3, "{dead} dead, {living} living");
    }
    queue.stop();
    assert_eq!(queue.fifos.census(), (0, places));
    let free: Vec<_> = std::iter::from_fn(|| queue.fifos.slab.allocate()).collect();
    assert_eq!(free.len() + places, all);
}
