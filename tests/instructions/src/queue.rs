//! The fair queue with a few owners.

use std::sync::Arc;

use backplane_queue::fair::{FairQueue, Order, OwnerHandle, QueueOptions};

/// A queue, and the owners that take turns.
pub(crate) struct Turns {
    pub(crate) queue: FairQueue<u64>,
    pub(crate) owners: Vec<OwnerHandle>,
}

impl Turns {
    pub(crate) fn new() -> Result<Self, String> {
        let queue = FairQueue::new(QueueOptions {
            capacity: 1_024,
            max_owners: 64,
            order: Order::Weighted,
        });
        let owner = |number: u32| queue.owner(&Arc::from(format!("owner {number}")), number + 1);
        let owners: Result<Vec<OwnerHandle>, _> = (0..4).map(owner).collect();
        let owners = owners.map_err(|refusal| format!("{refusal:?}"))?;
        Ok(Self { queue, owners })
    }
}
