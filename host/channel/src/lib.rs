//! Secure channels over OPC UA TCP without sockets: Hello and Acknowledge (Part 6, 7.1), chunks, sequence numbers, tokens and sealing
//! (Part 6, 6.7), at the server end and at the client end.
//!
//! A channel is a plain struct. Readable bytes go in and are decoded where they lie; a message that came in one chunk is handed out as a
//! slice of the input. What is to be sent is appended to the caller's buffer and sealed there. The time comes in with each call, slow
//! RSA work leaves as [`OpenWork`] and comes back as [`OpenOutcome`], randomness is passed to whoever needs it. In steady state a
//! message costs no allocation.
//!
//! This crate knows no socket, no clock, no session, no trust store and no service but OpenSecureChannel.

mod assemble;
mod asymmetric;
mod body;
mod client;
mod error;
mod header;
mod hello;
mod identity;
mod limits;
mod opening;
mod protection;
mod reattach;
mod secure;
mod sequence;
mod server;
#[cfg(test)]
mod tests;
mod token;

pub use body::Body;
pub use client::{ClientChannel, ClientConfig, ClientEvent, ClientSecurity};
pub use error::{ChannelError, Closed, Fault, SendError};
pub use header::CHUNK_HEADER;
pub use hello::{Negotiated, ReverseHello};
pub use identity::{CertificateVerifier, ChannelEvidence, OwnIdentity};
pub use limits::{Limits, LimitsError, MAX_ENDPOINT_URL, MIN_BUFFER_SIZE};
pub use opening::{OpenOutcome, OpenWork};
pub use reattach::{DetachedChannel, Reattachment};
pub use server::{ChannelIds, Event, Mark, Opened, ServerChannel, ServerConfig};
