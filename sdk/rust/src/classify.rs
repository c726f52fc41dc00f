//! Isolation classifiers: plugins that say whom the work of a peer is charged to. Knows nothing of node managers.

use crate::facets;
use crate::facets::classify::exports::backplane::guest::classify;
use crate::{Fault, Peer};

/// What a classifier knows about a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Standing {
    /// Not authenticated yet.
    Bootstrap = 0,
    /// Has an open channel.
    Established = 1,
    /// Was here before and comes back.
    Reconnect = 2,
    /// Known and trusted.
    Trusted = 3,
    /// An operator or controller that must always get through.
    Control = 4,
}

/// The owner of a peer's work. Weights and limits come from the operator's policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Peers with the same key share a budget.
    pub key: String,
    /// How well the peer is known.
    pub standing: Standing,
}

/// Maps a peer to the owner of its work. Pure and fast, without state: the host asks again whenever the evidence changes.
pub trait Classifier {
    /// Before authentication: only a network boundary that the deployment enforces is evidence. `None`: no opinion.
    ///
    /// # Errors
    /// The host falls back to its own classification.
    fn ingress(peer: Peer) -> Result<Option<Identity>, Fault>;

    /// An open channel, and the live session if there is one. `None`: no opinion.
    ///
    /// # Errors
    /// The host falls back to its own classification.
    fn established(peer: Peer) -> Result<Option<Identity>, Fault>;
}

/// So that `classifier!` also needs the trait in native builds.
#[doc(hidden)]
pub fn __classifies<T: Classifier>() {}

fn raw(identity: Option<Identity>) -> Option<classify::Identity> {
    identity.map(|identity| classify::Identity {
        key: identity.key,
        standing: identity.standing as u32,
    })
}

impl<T: Classifier> facets::classify::exports::backplane::guest::classify::Guest for T {
    fn ingress(who: u32) -> Result<Option<classify::Identity>, Fault> {
        T::ingress(Peer(who)).map(raw)
    }
    fn established(who: u32) -> Result<Option<classify::Identity>, Fault> {
        T::established(Peer(who)).map(raw)
    }
}
