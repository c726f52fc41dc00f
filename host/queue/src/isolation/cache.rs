//! The owners of one channel. Owns that a channel's requests find their owner without making it again; decides nothing: it is asked with
//! everything that decides, and answers only with an owner that fits all of it.

use super::classify::{Caller, Mapping};
use super::errors::OwnerError;
use super::owner::{Identity, Origin, Owner};
use super::provider::Isolation;
use super::vocabulary::Class;

/// The last owners of one logical channel, at most [`OwnerCache::CAPACITY`]. It dies with the channel.
#[derive(Debug, Default)]
pub struct OwnerCache {
    owners: Vec<Owner>,
    /// The place that is used next once all are taken.
    next: usize,
}

impl OwnerCache {
    /// How many owners are kept: the classes and identities that alternate on one channel are few.
    pub const CAPACITY: usize = 8;

    /// As [`Isolation::request_owner`]; allocates nothing when the owner is known.
    ///
    /// # Errors
    ///
    /// As [`Isolation::request_owner`].
    pub fn request_owner(
        &mut self,
        isolation: &Isolation,
        mapping: Option<Mapping<'_>>,
        caller: &Caller<'_>,
    ) -> Result<Owner, OwnerError> {
        self.get(isolation, mapping, caller.identity(), caller.class(), || {
            isolation.request_owner(mapping, caller)
        })
    }

    /// As [`Isolation::connection_owner`]; allocates nothing when the owner is known.
    ///
    /// # Errors
    ///
    /// As [`Isolation::connection_owner`].
    pub fn connection_owner(
        &mut self,
        isolation: &Isolation,
        ingress: Option<Mapping<'_>>,
        peer: Option<&str>,
    ) -> Result<Owner, OwnerError> {
        self.get(isolation, ingress, Identity::Peer(peer), Class::Established, || {
            isolation.connection_owner(ingress, peer)
        })
    }

    fn get(
        &mut self,
        isolation: &Isolation,
        mapping: Option<Mapping<'_>>,
        identity: Identity<'_>,
        class: Class,
        issue: impl FnOnce() -> Result<Owner, OwnerError>,
    ) -> Result<Owner, OwnerError> {
        let fits = |owner: &&Owner| {
            isolation.issued(owner)
                && match &mapping {
                    Some(mapping) => owner.is_mapping(mapping),
                    None => owner.0.origin == Origin::BuiltIn && owner.class() == class && identity.spells(owner.key()),
                }
        };
        if let Some(owner) = self.owners.iter().find(fits) {
            return Ok(owner.clone());
        }
        let owner = issue()?;
        if self.owners.len() < Self::CAPACITY {
            self.owners.push(owner.clone());
        } else if let Some(place) = self.owners.get_mut(self.next) {
            *place = owner.clone();
            self.next = (self.next + 1) % Self::CAPACITY;
        }
        Ok(owner)
    }
}
