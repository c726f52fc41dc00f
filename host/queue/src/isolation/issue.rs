//! Issuing owners. Owns which keys and classes are valid, and that nobody but the provider makes an owner.

use std::hash::BuildHasher;
use std::sync::OnceLock;

use super::errors::OwnerError;
use super::owner::{Identity, Origin, Owner, OwnerData, check_key, identity_key, prefixed};
use super::provider::Isolation;
use super::vocabulary::{Class, Stage};
use crate::sync::{Arc, AtomicU32};

impl Isolation {
    /// The owner of an identity that no classifier named.
    ///
    /// # Errors
    ///
    /// An empty key, one longer than 256 bytes, or a class that only a classifier or the configuration can give.
    pub fn built_in(&self, identity: Identity<'_>, class: Class) -> Result<Owner, OwnerError> {
        match class {
            Class::Established | Class::Reconnect | Class::Control => {
                Ok(self.untrusted(identity_key(identity)?, class, Origin::BuiltIn))
            }
            Class::Bootstrap | Class::Trusted => Err(OwnerError::WrongClass(class)),
        }
    }

    /// The owner that a classifier named. With [`Class::Trusted`] this is [`Isolation::trusted`].
    ///
    /// # Errors
    ///
    /// An empty key, one longer than `isolation.max-owner-key-length` bytes, or a trusted owner that is not configured.
    pub fn mapped(&self, key: &str, class: Class) -> Result<Owner, OwnerError> {
        if class == Class::Trusted {
            return self.trusted(key);
        }
        check_key(key, self.plan.max_owner_key_length as usize)?;
        Ok(self.untrusted(prefixed("mapped:", key), class, Origin::Mapped))
    }

    /// A configured owner.
    ///
    /// # Errors
    ///
    /// An empty key, one longer than `isolation.max-owner-key-length` bytes, or an owner that is not configured.
    pub fn trusted(&self, key: &str) -> Result<Owner, OwnerError> {
        check_key(key, self.plan.max_owner_key_length as usize)?;
        self.trusted.get(key).cloned().ok_or(OwnerError::Unprovisioned)
    }

    /// The owner that incomplete messages of `owner` are charged to on a channel with an activated session. It is valid in
    /// [`Stage::ReassemblyBytes`] only, may use the floor of [`Class::Reconnect`] there, and is made once per owner.
    ///
    /// # Errors
    ///
    /// An owner of another provider, or one that is not built in and [`Class::Established`]: a mapping to the shared part stays there.
    pub fn continuity(&self, owner: &Owner) -> Result<Owner, OwnerError> {
        if !self.issued(owner) {
            return Err(OwnerError::Foreign);
        }
        if owner.0.class != Class::Established || owner.0.origin != Origin::BuiltIn {
            return Err(OwnerError::WrongClass(owner.0.class));
        }
        let make = || {
            let key = prefixed("continuity:", &owner.0.key);
            self.untrusted(key, Class::Reconnect, Origin::Continuity)
        };
        Ok(owner.0.continuity.get_or_init(make).clone())
    }

    /// Whether this provider issued `owner`.
    #[must_use]
    pub fn issued(&self, owner: &Owner) -> bool {
        Arc::ptr_eq(&self.issuer, &owner.0.issuer)
    }

    fn untrusted(&self, key: Arc<str>, class: Class, origin: Origin) -> Owner {
        let hard_limits = Stage::ALL.map(|stage| self.plan.stage(stage).hard_limit);
        self.issue(key, class, origin, self.plan.default_weight, hard_limits)
    }

    pub(super) fn issue(
        &self,
        key: Arc<str>,
        class: Class,
        origin: Origin,
        weight: u32,
        hard_limits: [u64; Stage::COUNT],
    ) -> Owner {
        Owner(Arc::new(OwnerData {
            issuer: Arc::clone(&self.issuer),
            hash: self.hasher.hash_one(&*key),
            key,
            class,
            origin,
            weight,
            hard_limits,
            place: AtomicU32::new(u32::MAX),
            continuity: OnceLock::new(),
        }))
    }
}
