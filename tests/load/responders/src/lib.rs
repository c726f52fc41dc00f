//! The physical limits that a load test compares servers with: responders that do as little as can be done for a request.
//!
//! Owns what both have in common: the command line, the connection loop that answers everything of one receive in one write, the handshake
//! of the policy None, and the rare services a client needs before it can read. It checks no session, no sequence number and no limit but
//! its own buffers, and knows no security: it is no server, and no figure of it is one that a server could reach.

pub mod arguments;
mod channel;
mod echo;
mod parsing;
mod serve;
mod services;
mod wire;

pub use channel::{Message, Reply};
pub use echo::Echo;
pub use parsing::{Parsing, Table};
pub use serve::{Responder, serve};
pub use services::{NAMESPACE, NAMESPACE_INDEX, Services};
