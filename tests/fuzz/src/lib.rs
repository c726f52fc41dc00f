//! What may never happen, whatever bytes come in: one plain function per kind of input.
//!
//! Each [`Target`] takes bytes and panics when a promise is broken; what the promises are stands at its function. This crate owns the
//! functions, the seeds they start from and a driver that works on stable Rust. It must not know how the inputs were made.

mod channel_setup;
mod check;
pub mod corpus;
pub mod feedback;
mod splits;
pub mod targets;

pub use targets::{TARGETS, Target, target};
