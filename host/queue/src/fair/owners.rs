//! The owners by key, and which FIFO each of them uses now.
//!
//! It must not know entries or turns. Its locks are taken when an owner is looked up, never when work is admitted or served.

use std::collections::BTreeMap;
use std::fmt;

use super::vocabulary::Refusal;
use super::word::{FifoName, Members};
use crate::sync::{Arc, AtomicU32, AtomicU64, AtomicUsize, Mutex, Ordering::SeqCst};

const SHARDS: usize = if cfg!(any(loom, shuttle)) { 1 } else { 16 };

/// Tells queues apart, so that a handle works with its own only. It is not the model checkers' business: an address would do.
static NEXT_QUEUE: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

pub(super) struct Owner {
    queue: u64,
    key: Arc<str>,
    pub(super) weight: AtomicU32,
    /// The FIFO used last.
    pub(super) fifo: AtomicU64,
}

/// One owner of queued work; cheap to clone. Handles of equal keys are the same owner.
#[derive(Clone)]
pub struct OwnerHandle(pub(super) Arc<Owner>);

impl OwnerHandle {
    /// The owner's key. It may say who somebody is: it belongs in no log.
    pub fn key(&self) -> &Arc<str> {
        &self.0.key
    }

    /// The weight given last.
    pub fn weight(&self) -> u32 {
        self.0.weight.load(SeqCst)
    }
}

impl fmt::Debug for OwnerHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OwnerHandle").finish_non_exhaustive()
    }
}

type Shard = Mutex<BTreeMap<Arc<str>, Arc<Owner>>>;

/// All owners that somebody holds a handle of, or that have work; and others until room is needed.
pub(super) struct Owners {
    queue: u64,
    most: usize,
    count: AtomicUsize,
    shards: Box<[Shard]>,
    /// The FIFO of an owner before its first admission.
    first: FifoName,
}

impl Owners {
    pub(super) fn new(most: usize, first: FifoName) -> Self {
        Self {
            queue: NEXT_QUEUE.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
            most,
            count: AtomicUsize::new(0),
            shards: (0..SHARDS).map(|_| Mutex::new(BTreeMap::new())).collect(),
            first,
        }
    }

    /// Whether a handle is of this queue.
    pub(super) fn are_of(&self, owner: &OwnerHandle) -> bool {
        owner.0.queue == self.queue
    }

    fn shard(&self, key: &str) -> &Shard {
        // FNV-1a: the keys are spread, not protected; a shard that is hit often is one lock, as all of them would be without shards.
        let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        &self.shards[hash as usize % SHARDS]
    }

    /// The owner of a key. `has_work` says whether a FIFO is still its owner's.
    pub(super) fn get(
        &self,
        key: &Arc<str>,
        weight: u32,
        has_work: impl Fn(FifoName) -> bool,
    ) -> Result<OwnerHandle, Refusal> {
        let mut swept = false;
        loop {
            let mut shard = self.shard(key).lock();
            if let Some(owner) = shard.get(key) {
                owner.weight.store(weight, SeqCst);
                return Ok(OwnerHandle(Arc::clone(owner)));
            }
            let more = |count| (count < self.most).then_some(count + 1);
            if self.count.fetch_update(SeqCst, SeqCst, more).is_ok() {
                let owner = Arc::new(Owner {
                    queue: self.queue,
                    key: Arc::clone(key),
                    weight: AtomicU32::new(weight),
                    fifo: AtomicU64::new(self.first.0),
                });
                shard.insert(Arc::clone(key), Arc::clone(&owner));
                return Ok(OwnerHandle(owner));
            }
            drop(shard);
            if swept {
                return Err(Refusal::OwnersFull);
            }
            self.sweep(&has_work);
            swept = true;
        }
    }

    /// Forgets owners without handles and without work.
    fn sweep(&self, has_work: impl Fn(FifoName) -> bool) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            let before = shard.len();
            // Only this map clones an owner that nobody else holds, under this lock.
            shard.retain(|_, owner| Arc::strong_count(owner) > 1 || has_work(Members(owner.fifo.load(SeqCst))));
            self.count.fetch_sub(before - shard.len(), SeqCst);
        }
    }
}
