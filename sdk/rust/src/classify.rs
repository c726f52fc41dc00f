//! Isolation classifiers: plugins that say whom the work of a peer is charged to. Knows nothing of node managers.

use crate::facets;
use crate::facets::classify::exports::backplane::guest::classify;
use crate::{Fault, Peer};

/// What a classifier takes a peer for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Standing {
    /// Not authenticated yet.
    Bootstrap = 0,
    /// Has an open channel.
    Established = 1,
    /// Was here before and comes back.
    Reconnect = 2,
    /// One of the owners that the operator has named as trusted; for any other key the host refuses the peer.
    Trusted = 3,
    /// An operator or controller that must always get through.
    Control = 4,
}

impl Standing {
    /// By the name that it has in settings: `bootstrap`, `established`, `reconnect`, `trusted` or `control`.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "bootstrap" => Self::Bootstrap,
            "established" => Self::Established,
            "reconnect" => Self::Reconnect,
            "trusted" => Self::Trusted,
            "control" => Self::Control,
            _ => return None,
        })
    }
}

/// The owner of a peer's work. Weights and limits come from the operator's policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Peers with the same key share a budget. 1 to [`MAX_KEY`](Self::MAX_KEY) bytes.
    pub key: String,
    /// What the peer is taken for.
    pub standing: Standing,
}

impl Identity {
    /// Bytes that a key may have; the host refuses a peer with a longer one, or an empty one.
    pub const MAX_KEY: usize = 256;
}

/// Maps a peer to the owner of its work. Pure and fast: the host asks again whenever the evidence changes, and may ask several instances.
///
/// Every error, panic and late answer refuses the peer: only `None` means that somebody else may decide.
pub trait Classifier: Sized + 'static {
    /// Reads the settings. Called once, before the first question. The host asks about a peer without any evidence before it lets a classifier serve.
    ///
    /// # Errors
    /// The settings cannot be used: every question is answered with this fault, and the host does not take the classifier.
    fn start() -> Result<Self, Fault>;

    /// Before authentication: only a network boundary that the deployment enforces is evidence. `None`: no opinion.
    ///
    /// # Errors
    /// The peer is refused.
    fn ingress(&self, peer: Peer) -> Result<Option<Identity>, Fault>;

    /// An open channel, and the live session if there is one. `None`: no opinion.
    ///
    /// # Errors
    /// The peer is refused.
    fn established(&self, peer: Peer) -> Result<Option<Identity>, Fault>;
}

/// The place of the one classifier of a component. Made by `classifier!`.
#[doc(hidden)]
pub trait ClassifierPlugin: Classifier {
    fn with<R>(run: impl FnOnce(&Result<Self, Fault>) -> R) -> R;
}

fn ask<T: ClassifierPlugin>(
    question: impl FnOnce(&T) -> Result<Option<Identity>, Fault>,
) -> Result<Option<classify::Identity>, Fault> {
    let answer = T::with(|classifier| match classifier {
        Ok(classifier) => question(classifier),
        Err(fault) => Err(fault.clone()),
    })?;
    Ok(answer.map(|identity| classify::Identity {
        key: identity.key,
        standing: identity.standing as u32,
    }))
}

impl<T: ClassifierPlugin> facets::classify::exports::backplane::guest::classify::Guest for T {
    fn ingress(who: u32) -> Result<Option<classify::Identity>, Fault> {
        ask::<T>(|classifier| classifier.ingress(Peer(who)))
    }
    fn established(who: u32) -> Result<Option<classify::Identity>, Fault> {
        ask::<T>(|classifier| classifier.established(Peer(who)))
    }
}
