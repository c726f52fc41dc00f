//! The room of the fair, bounded request queue and its isolation budgets: generic, without any knowledge of OPC UA.
//!
//! There is nothing in it yet. Requests that cannot block run on their connection's task; those that wait for a plugin are
//! tasks of their own, bounded per connection by the server's `waiting-requests-per-connection`.

pub mod fair;
pub mod isolation;
pub mod lifetime;
mod sync;
