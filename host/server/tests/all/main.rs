//! The built `backplane` binary under attack, over real sockets: what a peer, an operator or a file can do wrong ends in the code that the
//! standard gives or in a closed connection, memory stays bounded, and a well-behaved client is served as if nothing had happened.

#![allow(clippy::unwrap_used)]

mod bodies;
mod classify;
mod docs;
mod durable;
mod events;
mod fairness;
mod handshake;
mod isolation;
mod kills;
mod lifecycle;
mod lifetimes;
mod limits;
mod plans;
mod reattach;
mod sessions;
mod support;
mod transfers;
mod vendor;
