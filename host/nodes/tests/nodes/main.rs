//! The crate as the server and the plugins use it, with the whole of namespace 0.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod browse;
mod call;
mod cell;
mod common;
mod events;
mod managers;
mod meaning;
mod model;
mod namespaces;
mod nodeset;
mod ns0;
mod random;
mod read;
mod read_batch;
mod rights;
mod source;
mod translate;
mod write;
