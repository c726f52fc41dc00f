//! From what is known of a caller to its owner, and whether that still holds later. Owns these rules only; calls no classifier: its
//! opinion is handed in.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use super::errors::OwnerError;
use super::owner::{Identity, Origin, Owner};
use super::provider::Isolation;
use super::vocabulary::{Class, Stage};

/// A network address without port, in 16 bytes; an IPv4 address and the same one mapped to IPv6 are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerAddress([u8; 16]);

impl PeerAddress {
    /// The bytes to hash for [`Identity::Peer`].
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The address, as IPv4 where it is one.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        Ipv6Addr::from(self.0).to_canonical()
    }
}

impl From<IpAddr> for PeerAddress {
    fn from(address: IpAddr) -> Self {
        Self(match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        })
    }
}

/// How messages of a channel are protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protection {
    /// Not at all.
    None,
    /// Signed.
    Sign,
    /// Signed and encrypted.
    SignAndEncrypt,
}

/// What the transport established about a caller. A snapshot: it is compared by value later.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// The logical channel.
    pub channel: u64,
    /// Where it comes from, if that is known.
    pub peer: Option<PeerAddress>,
    /// How it is protected.
    pub protection: Protection,
    /// The security policy; `None` for the policy without any security.
    pub policy: Option<Arc<str>>,
    /// The certificate of the client, if it sent one.
    pub certificate: Option<Arc<[u8]>>,
    /// Who a proxy in front of the server says it is.
    pub upstream: Option<Arc<str>>,
}

impl Evidence {
    /// The certificate, if the client has proved that it is its own: without a security policy it has not, and neither a classifier nor
    /// an owner key may see it.
    #[must_use]
    pub fn proved_certificate(&self) -> Option<&[u8]> {
        match (&self.policy, self.protection) {
            (None, _) | (_, Protection::None) => None,
            (Some(_), Protection::Sign | Protection::SignAndEncrypt) => self.certificate.as_deref(),
        }
    }

    /// The evidence as a classifier may see it: without a certificate when the security policy is none.
    #[must_use]
    pub fn for_classifier(&self) -> Self {
        let mut shown = self.clone();
        if shown.policy.is_none() {
            shown.certificate = None;
        }
        shown
    }

    /// Whether this is still the same channel. A certificate that proves nothing is not compared.
    #[must_use]
    pub fn same_channel(&self, other: &Self) -> bool {
        self.channel == other.channel
            && self.peer == other.peer
            && self.protection == other.protection
            && self.policy == other.policy
            && self.upstream == other.upstream
            && (self.policy.is_none() || self.certificate == other.certificate)
    }
}

/// A live session: activated, not expired, and on the channel of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The session.
    pub session: u64,
    /// Which activation of it; another one is another binding.
    pub activation: u64,
    /// The hashed identity of the user, if there is one.
    pub user: Option<Arc<str>>,
}

/// What a request is for, as far as it decides on its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Intent {
    /// It does work.
    Work,
    /// It creates or activates a session.
    Establish,
    /// It cancels requests or closes a session.
    End,
}

/// What a classifier answers, if it has an opinion.
#[derive(Clone, Copy)]
pub struct Mapping<'a> {
    /// The key, without prefix. Sensitive.
    pub key: &'a str,
    /// The class.
    pub class: Class,
}

impl std::fmt::Debug for Mapping<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mapping")
            .field("class", &self.class)
            .finish_non_exhaustive()
    }
}

/// What the built-in rules go by when no classifier has an opinion. Texts are hashed already.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// The hashed address.
    pub peer: Option<&'a str>,
    /// The hashed [`Evidence::proved_certificate`].
    pub application: Option<&'a str>,
    /// The session the request names, if it is live.
    pub binding: Option<&'a Binding>,
    /// What the request is for.
    pub intent: Intent,
}

impl<'a> Caller<'a> {
    /// What a request says of itself grants nothing; together with a live session it may.
    #[must_use]
    pub fn class(&self) -> Class {
        class_of(self.binding, self.intent)
    }

    /// The most that is known: the user, or the application, or the address.
    #[must_use]
    pub fn identity(&self) -> Identity<'a> {
        let user = self.binding.and_then(|binding| binding.user.as_deref());
        match (user, self.application) {
            (Some(user), _) => Identity::User(user),
            (None, Some(application)) => Identity::Application(application),
            (None, None) => Identity::Peer(self.peer),
        }
    }
}

fn class_of(binding: Option<&Binding>, intent: Intent) -> Class {
    match (binding, intent) {
        (Some(_), Intent::End) => Class::Control,
        (Some(_), Intent::Establish) => Class::Reconnect,
        (Some(_), Intent::Work) | (None, _) => Class::Established,
    }
}

/// Whether a request may still run as the owner it was admitted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Good,
    /// The channel is another one: BadSecureChannelIdInvalid.
    ChannelChanged,
    /// The session is gone: BadSessionIdInvalid.
    SessionGone,
    /// The owner would be another one: BadServerTooBusy. The caller may try again as what it is now.
    OwnerChanged,
}

/// What an owner was, or would be, issued on.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    /// The channel.
    pub evidence: &'a Evidence,
    /// The live session.
    pub binding: Option<&'a Binding>,
}

impl Isolation {
    /// The owner of a new connection: as the classifier says of its address, or its address.
    ///
    /// # Errors
    ///
    /// A mapping that is not valid: the connection is closed.
    pub fn connection_owner(&self, ingress: Option<Mapping<'_>>, peer: Option<&str>) -> Result<Owner, OwnerError> {
        match ingress {
            Some(mapping) => self.mapped(mapping.key, mapping.class),
            None => self.built_in(Identity::Peer(peer), Class::Established),
        }
    }

    /// The owner of a request. `mapping` is the classifier's opinion on the channel and session, or else the one on the address.
    ///
    /// # Errors
    ///
    /// A mapping that is not valid: the request fails.
    pub fn request_owner(&self, mapping: Option<Mapping<'_>>, caller: &Caller<'_>) -> Result<Owner, OwnerError> {
        match mapping {
            Some(mapping) => self.mapped(mapping.key, mapping.class),
            None => self.built_in(caller.identity(), caller.class()),
        }
    }

    /// Who the incomplete message on a channel is charged to. `owner` is the owner of a request on it, `activated` whether the channel
    /// has carried the activation of a session that lives. Holds for one message; ask again for the next.
    ///
    /// # Errors
    ///
    /// An owner of another provider.
    pub fn reassembly_owner(&self, owner: &Owner, activated: bool) -> Result<Owner, OwnerError> {
        let continues = activated && owner.0.class == Class::Established && owner.0.origin == Origin::BuiltIn;
        // Without a floor there is nothing to continue with, and a second key would only be a second hard limit.
        if continues && self.plan().stage(Stage::ReassemblyBytes).reconnect > 0 {
            return self.continuity(owner);
        }
        if self.issued(owner) {
            Ok(owner.clone())
        } else {
            Err(OwnerError::Foreign)
        }
    }

    /// Whether a request that was admitted as `owner` on the ground of `then` may run now. `mapping` is the classifier's opinion now.
    #[must_use]
    pub fn revalidate(
        &self,
        owner: &Owner,
        then: Ground<'_>,
        now: Ground<'_>,
        mapping: Option<Mapping<'_>>,
        intent: Intent,
    ) -> Verdict {
        if !self.issued(owner) || owner.only_stage().is_some() {
            return Verdict::OwnerChanged;
        }
        if !then.evidence.same_channel(now.evidence) {
            return Verdict::ChannelChanged;
        }
        match (then.binding, now.binding) {
            (Some(_), None) => return Verdict::SessionGone,
            (then, now) if then != now => return Verdict::OwnerChanged,
            _ => {}
        }
        let unchanged = match mapping {
            Some(mapping) => owner.is_mapping(&mapping),
            None => !owner.is_mapped() && owner.class() == class_of(now.binding, intent),
        };
        if unchanged {
            Verdict::Good
        } else {
            Verdict::OwnerChanged
        }
    }
}

impl Owner {
    /// Whether a classifier's answer names this owner.
    pub(crate) fn is_mapping(&self, mapping: &Mapping<'_>) -> bool {
        let prefix = match self.0.origin {
            Origin::Mapped => "mapped:",
            Origin::Trusted(_) => "trusted:",
            Origin::BuiltIn | Origin::Continuity => return false,
        };
        self.0.class == mapping.class && self.0.key.strip_prefix(prefix) == Some(mapping.key)
    }
}
