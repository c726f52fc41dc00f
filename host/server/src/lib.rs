//! The Backplane server: sockets, runtime, trust store, configuration, command line and wiring.
//!
//! This crate owns everything that touches the machine: clocks, sockets, files, processes. What OPC UA means lives in the
//! crates below it, and none of them knows this one.

mod admission;
#[cfg(feature = "count-allocations")]
pub mod allocations;
mod channels;
mod classify;
pub mod cli;
mod clock;
pub mod commands;
pub mod config;
mod connection;
mod durable;
pub mod endpoints;
mod events;
mod link;
mod listener;
pub mod logging;
mod namespaces;
pub mod pki;
mod respond;
mod roles;
pub mod server;
mod server_object;
mod services;
mod shard;
mod shared;
pub mod users;
