//! Who is charged for work. Owns what an owner is and how keys are spelled; issuing them is the business of the provider.

use std::fmt;
use std::sync::OnceLock;

use super::errors::OwnerError;
use super::vocabulary::{Class, Stage};
use crate::sync::{Arc, AtomicU32};

/// The longest hashed identity, in bytes. A Base64 SHA-256 has 44.
pub(crate) const MAX_IDENTITY: usize = 256;

/// An identity that needs no classifier. The text is hashed already, so that it says nothing in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity<'a> {
    /// The network address, without the port; `None` when it is not known.
    Peer(Option<&'a str>),
    /// The certificate of a channel that is signed.
    Application(&'a str),
    /// The user of an activated session.
    User(&'a str),
}

/// How an owner came about, which decides what it may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    BuiltIn,
    Mapped,
    Trusted(u32),
    Continuity,
}

/// The accounting identity that work is charged to. Cheap to clone; issued by [`Isolation`](super::Isolation), and good for nothing
/// with another one. It authorises nothing.
#[derive(Clone)]
pub struct Owner(pub(crate) Arc<OwnerData>);

pub(crate) struct OwnerData {
    /// Who issued it: compared by address, so that nobody can forge it.
    pub(crate) issuer: Arc<Issuer>,
    pub(crate) key: Arc<str>,
    pub(crate) hash: u64,
    pub(crate) class: Class,
    pub(crate) origin: Origin,
    pub(crate) weight: u32,
    pub(crate) hard_limits: [u64; Stage::COUNT],
    /// Where the accounts of this key were seen last; a hint that is checked.
    pub(crate) place: AtomicU32,
    /// The continuity owner of this one, made once.
    pub(crate) continuity: OnceLock<Owner>,
}

/// The mark of a provider. Not of size zero: its address must be its own.
#[derive(Debug, Default)]
pub(crate) struct Issuer(#[expect(dead_code, reason = "only its address is used")] u8);

impl Owner {
    /// What the accounts and the turns of the queue go by. Sensitive: in no log, no metric.
    #[must_use]
    pub fn key(&self) -> &Arc<str> {
        &self.0.key
    }

    /// On what ground this owner may use a floor.
    #[must_use]
    pub fn class(&self) -> Class {
        self.0.class
    }

    /// Turns per round between owners; at least 1.
    #[must_use]
    pub fn weight(&self) -> u32 {
        self.0.weight
    }

    /// The most that all leases on this key may hold in a stage.
    #[must_use]
    pub fn hard_limit(&self, stage: Stage) -> u64 {
        self.0.hard_limits[stage.index()]
    }

    /// The stage this owner is valid in, if it is not valid in all.
    #[must_use]
    pub fn only_stage(&self) -> Option<Stage> {
        matches!(self.0.origin, Origin::Continuity).then_some(Stage::ReassemblyBytes)
    }

    /// Whether a classifier named this owner.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        matches!(self.0.origin, Origin::Mapped | Origin::Trusted(_))
    }

    /// The place among the configured trusted owners.
    #[must_use]
    pub fn trusted_index(&self) -> Option<usize> {
        match self.0.origin {
            Origin::Trusted(index) => Some(index as usize),
            _ => None,
        }
    }
}

impl PartialEq for Owner {
    /// Whether both were issued by the same provider for the same key and class.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (Arc::ptr_eq(&self.0.issuer, &other.0.issuer)
                && self.0.class == other.0.class
                && self.0.origin == other.0.origin
                && self.0.key == other.0.key)
    }
}

impl Eq for Owner {}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owner")
            .field("class", &self.0.class)
            .field("weight", &self.0.weight)
            .finish_non_exhaustive()
    }
}

impl Identity<'_> {
    /// Whether `key` is how this identity is spelled.
    pub(crate) fn spells(&self, key: &str) -> bool {
        match self {
            Self::Peer(None) => key == UNKNOWN_PEER,
            Self::Peer(Some(text)) => key.strip_prefix("peer:") == Some(text),
            Self::Application(text) => key.strip_prefix("application:") == Some(text),
            Self::User(text) => key.strip_prefix("user:") == Some(text),
        }
    }
}

/// The key of everybody whose address is not known.
const UNKNOWN_PEER: &str = "peer:unknown";

/// Spells the key of a built-in owner.
pub(crate) fn identity_key(identity: Identity<'_>) -> Result<Arc<str>, OwnerError> {
    let (prefix, text) = match identity {
        Identity::Peer(None) => return Ok(Arc::from(UNKNOWN_PEER)),
        Identity::Peer(Some(text)) => ("peer:", text),
        Identity::Application(text) => ("application:", text),
        Identity::User(text) => ("user:", text),
    };
    check_key(text, MAX_IDENTITY)?;
    Ok(prefixed(prefix, text))
}

/// Checks a key before its prefix is added.
pub(crate) fn check_key(key: &str, maximum: usize) -> Result<(), OwnerError> {
    if key.is_empty() {
        return Err(OwnerError::EmptyKey);
    }
    if key.len() > maximum {
        return Err(OwnerError::KeyTooLong {
            length: key.len(),
            maximum,
        });
    }
    Ok(())
}

/// A key with its name space before it.
pub(crate) fn prefixed(prefix: &str, text: &str) -> Arc<str> {
    let mut key = String::with_capacity(prefix.len() + text.len());
    key.push_str(prefix);
    key.push_str(text);
    Arc::from(key)
}
