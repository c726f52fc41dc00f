//! The fair bounded queue: work of many owners, served in weighted turns.
//!
//! It owns the order of service, the bound, exactly-once hand-out and the wake-up of waiting workers. It must not know what the work is,
//! what capacity is, nor any runtime: capacity is asked for by the caller's function when an entry is offered, and workers wait as futures.

mod queue;
mod vocabulary;

pub use queue::{FairQueue, OwnerHandle, Waiter};
pub use vocabulary::{Blocked, MAX_CAPACITY, MAX_OWNERS, MAX_WEIGHT, Order, QueueOptions, Refusal, Refused, Ticket};
