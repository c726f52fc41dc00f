//! The built `backplane` binary under attack, over real sockets: what a peer, an operator or a file can do wrong ends in the code that the
//! standard gives or in a closed connection, memory stays bounded, and a well-behaved client is served as if nothing had happened.

#![allow(clippy::unwrap_used)]

mod bodies;
mod handshake;
mod kills;
mod lifecycle;
mod limits;
mod sessions;
mod support;
