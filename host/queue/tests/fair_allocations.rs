//! Admission, service, cancellation and waiting allocate nothing, from the first on.

#![cfg(not(any(loom, shuttle)))]
#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Arc;
use std::task::{Context, Waker};

use backplane_queue::fair::{Blocked, FairQueue, Order, QueueOptions};

#[test]
fn nothing_is_allocated() {
    for order in [Order::Weighted, Order::Global] {
        let queue = FairQueue::new(QueueOptions {
            capacity: 100,
            max_owners: 10,
            order,
        });
        let owners: Vec<_> = (0..10)
            .map(|number| queue.owner(&Arc::from(format!("{number}")), number).unwrap())
            .collect();
        let mut waiters = [queue.waiter(), queue.waiter()];
        let waker = Waker::noop();
        let allocations = allocation_counter::measure(|| {
            let mut cx = Context::from_waker(waker);
            for round in 0..100 {
                for waiter in &mut waiters {
                    assert!(queue.poll_take(&mut cx, waiter, |_| Ok(())).is_pending());
                }
                for owner in owners.iter().cycle().take(50) {
                    queue.admit(&owner.clone(), round).unwrap();
                    let ticket = queue.admit(owner, round).unwrap();
                    queue.cancel(ticket).unwrap();
                }
                let refused = queue.take(|_| Err::<(), _>(Blocked::Owner));
                assert!(refused.is_none());
                queue.capacity_changed();
                assert!(queue.poll_take(&mut cx, &mut waiters[0], |_| Ok(())).is_ready());
                while queue.take(|_| Ok(())).is_some() {}
                assert!(queue.is_empty());
            }
        });
        assert_eq!(allocations.count_total, 0, "{order:?}");
    }
}
