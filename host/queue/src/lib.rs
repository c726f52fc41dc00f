//! The room of the fair, bounded request queue and its isolation budgets: generic, without any knowledge of OPC UA.
//!
//! What waits, waits in [`fair`]; what it may hold is counted in [`isolation`]; how it ends is decided in [`lifetime`].

pub mod fair;
pub mod isolation;
pub mod lifetime;
mod sync;
