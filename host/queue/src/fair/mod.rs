//! The fair bounded queue: work of many owners, served in weighted turns.
//!
//! It owns the order of service, the bound, exactly-once hand-out and the wake-up of waiting workers. It must not know what the work is,
//! what capacity is, nor any runtime: capacity is asked for by the caller's function when an entry is offered, and workers wait as futures.
//!
//! Admission, cancellation and service take no lock and wait for nobody. Everything lives in slabs made with the queue; places in them are named
//! by an index and a growing number in one 64-bit word, so nothing is freed while somebody may look at it and no change goes unseen.
//!
//! | part | owns |
//! |---|---|
//! | `word` | the packed words |
//! | `slab` | the entries, and how one changes hands |
//! | `fifo` | each owner's entries in order of admission |
//! | `turns` | whose turn it is |
//! | `owners` | owners by key |
//! | `signal` | waking workers |
//! | `offer` | asking for capacity, and what becomes of an entry then |
//! | `queue` | the bound, and the order in which the parts are changed |

mod fifo;
mod offer;
mod owners;
mod queue;
mod signal;
mod slab;
mod turns;
mod vocabulary;
mod word;

#[cfg(test)]
mod tests;

pub use owners::OwnerHandle;
pub use queue::FairQueue;
pub use signal::Waiter;
pub use vocabulary::{Blocked, MAX_CAPACITY, MAX_OWNERS, MAX_WEIGHT, Order, QueueOptions, Refusal, Refused, Ticket};
