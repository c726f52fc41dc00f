//! What is monitored, told to the managers that want to know.
//!
//! Owns what each shard's items want, and the fastest of it. When a manager tells its plugin is the manager's business.

use std::collections::BTreeMap;
use std::sync::Arc;

use backplane_nodes::{ManagerId, Snapshot};
use parking_lot::Mutex;

/// Fastest sampling interval in ms by tag, for each manager.
pub(super) type Wanted = BTreeMap<ManagerId, BTreeMap<u32, f64>>;

/// What the items of each shard want.
#[derive(Debug)]
pub(super) struct DemandBoard {
    shards: Mutex<Vec<Wanted>>,
}

impl DemandBoard {
    pub(super) fn new(shards: usize) -> Arc<Self> {
        Arc::new(Self {
            shards: Mutex::new(vec![Wanted::new(); shards]),
        })
    }

    /// Puts down what one shard wants now, and tells every manager what all want of it.
    pub(super) fn submit(&self, shard: usize, wanted: Wanted, snapshot: &Snapshot) {
        // Held until all are told: what is told last is what was put down last.
        let mut shards = self.shards.lock();
        if let Some(of) = shards.get_mut(shard) {
            *of = wanted;
        }
        for (id, manager) in snapshot.demanding() {
            let mut merged = BTreeMap::new();
            for (tag, interval) in shards.iter().filter_map(|of| of.get(&id)).flatten() {
                note(&mut merged, *tag, *interval);
            }
            manager.watched(Arc::new(merged));
        }
    }
}

/// Notes that a variable is sampled every `interval` ms.
pub(super) fn note(wanted: &mut BTreeMap<u32, f64>, tag: u32, interval: f64) {
    wanted
        .entry(tag)
        .and_modify(|fastest| *fastest = fastest.min(interval))
        .or_insert(interval);
}
