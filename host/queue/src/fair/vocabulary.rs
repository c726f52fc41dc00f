//! The words of the fair queue: its options, what it refuses and why, and the ticket of a queued entry.
//!
//! It must not know how the queue works.

use std::fmt;

/// The most entries a queue can be made for.
pub const MAX_CAPACITY: usize = 1 << 20;
/// The most owners a queue can be made for.
pub const MAX_OWNERS: usize = 1 << 20;
/// The heaviest weight; what is above it counts as this.
pub const MAX_WEIGHT: u32 = (1 << 20) - 1;

/// How large a queue is, and in which order it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueOptions {
    /// The most entries queued at once, of all owners together; 1 to [`MAX_CAPACITY`], values outside count as the nearer bound.
    pub capacity: usize,
    /// The most owners at once; 1 to [`MAX_OWNERS`], values outside count as the nearer bound.
    pub max_owners: usize,
    /// Who is next.
    pub order: Order,
}

/// Who is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Owners in turns, each as long as its weight; within an owner the order of admission.
    Weighted,
    /// The order of admission, whoever the owner; a blocked head is not overtaken.
    Global,
}

/// Why the queue did not take an entry, or an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// As many entries are queued as may be. The caller's answer is BadServerTooBusy.
    #[error("the queue is full")]
    Full,
    /// The queue was stopped. The caller's answer is BadServerHalted.
    #[error("the queue is stopped")]
    Stopped,
    /// As many owners are known as may be. The caller's answer is BadServerTooBusy.
    #[error("the queue has no room for another owner")]
    OwnersFull,
}

/// A refused admission: the reason, and the work as it was given.
#[derive(thiserror::Error)]
#[error("{refusal}")]
pub struct Refused<T> {
    /// Why.
    pub refusal: Refusal,
    /// What was not queued.
    pub work: T,
}

impl<T> fmt::Debug for Refused<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Refused")
            .field("refusal", &self.refusal)
            .finish_non_exhaustive()
    }
}

/// Why an offered entry cannot be executed now.
///
/// It stays where it is, first of its owner. Whoever holds the capacity that it lacks must call
/// [`FairQueue::capacity_changed`](super::FairQueue::capacity_changed) after giving it back: nothing else offers the entry again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// This owner has no capacity; others are offered theirs. So if the capacity that it lacks is everybody's, and comes back before that is said,
    /// others may take it first.
    Owner,
    /// Nobody has: nothing more is offered until the capacity changes, and turns keep their order.
    Everyone,
}

/// Names one admitted entry, for its cancellation. It goes stale when the entry leaves the queue, and stale tickets do nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    pub(super) index: u32,
    pub(super) tag: u64,
}
