//! Whose a subscription is, beyond its session: who may take it over (Part 4, 5.14.7.1), and how many without a session somebody may have.
//!
//! Owns the comparison of identities and the count of subscriptions whose session is over. Knows nothing of shards.

use std::collections::HashMap;
use std::sync::Arc;

use backplane_nodes::Caller;
use backplane_session::{Identity, IdentityKind};
use backplane_types::{ByteString, DecodeError, Decoder, Encoder, MessageSecurityMode, StatusCode, UaString};
use parking_lot::Mutex;

use crate::link::Bound;

/// Who is behind a session.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    identity: Identity,
    /// ApplicationUri of the client; proved when the channel is signed.
    application_uri: UaString,
    certificate: ByteString,
    mode: MessageSecurityMode,
}

impl Owner {
    /// Of a validated session.
    pub(crate) fn of(bound: &Bound) -> Self {
        Self {
            identity: bound.session.snapshot.identity.clone(),
            application_uri: bound.session.handle.parameters().client_application_uri.clone(),
            certificate: bound.client_certificate.clone(),
            mode: bound.caller.security_mode,
        }
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(super) fn mode(&self) -> MessageSecurityMode {
        self.mode
    }

    /// Whether somebody can prove after a restart of the server to be the same. Tokens of others are not kept, and nobody can tell unproved anonymous clients
    /// apart.
    pub(super) fn can_return(&self) -> bool {
        match self.identity.kind {
            IdentityKind::UserName | IdentityKind::Certificate => true,
            IdentityKind::Anonymous => self.is_signed(),
            IdentityKind::IssuedToken => false,
        }
    }

    /// Nothing secret: a name, a certificate.
    pub(super) fn encode(&self, e: &mut Encoder<'_>) {
        e.u8(match self.identity.kind {
            IdentityKind::Anonymous => 0,
            IdentityKind::UserName => 1,
            IdentityKind::Certificate => 2,
            IdentityKind::IssuedToken => 3,
        });
        e.put(&self.identity.client_user_id);
        e.put(&self.application_uri);
        e.put(&self.certificate);
        e.put(&self.mode);
    }

    pub(super) fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let kind = match d.u8()? {
            0 => IdentityKind::Anonymous,
            1 => IdentityKind::UserName,
            2 => IdentityKind::Certificate,
            _ => return Err(DecodeError::Malformed("kind of an identity")),
        };
        Ok(Self {
            identity: Identity {
                kind,
                client_user_id: d.get()?,
            },
            application_uri: d.get()?,
            certificate: d.get()?,
            mode: d.get()?,
        })
    }

    fn is_signed(&self) -> bool {
        self.mode == MessageSecurityMode::SIGN || self.mode == MessageSecurityMode::SIGN_AND_ENCRYPT
    }

    /// Whether `claimant` may take over what this owner has: the same user; for anonymous ones the same application, proved on both sides. What
    /// waits to be sent may be of nodes that are only shown over a secured channel, so the new one is secured as well as the old one.
    ///
    /// # Errors
    /// `BadUserAccessDenied`; `BadSecurityModeInsufficient`; `BadSecurityChecksFailed` when an anonymous application of the same name shows another
    /// certificate.
    pub(crate) fn yields_to(&self, claimant: &Self) -> Result<(), StatusCode> {
        if self.identity != claimant.identity {
            return Err(StatusCode::BAD_USER_ACCESS_DENIED);
        }
        if self.identity.kind == IdentityKind::Anonymous {
            self.is_the_application_of(claimant)?;
        }
        // None, Sign, SignAndEncrypt are 1, 2, 3 (Part 4, 7.20).
        if claimant.mode.0 < self.mode.0 {
            return Err(StatusCode::BAD_SECURITY_MODE_INSUFFICIENT);
        }
        Ok(())
    }

    fn is_the_application_of(&self, claimant: &Self) -> Result<(), StatusCode> {
        if !self.is_signed() || !claimant.is_signed() || self.application_uri != claimant.application_uri {
            return Err(StatusCode::BAD_USER_ACCESS_DENIED);
        }
        if self.certificate != claimant.certificate {
            return Err(StatusCode::BAD_SECURITY_CHECKS_FAILED);
        }
        Ok(())
    }

    /// Under which name its subscriptions without a session are counted. Nobody can tell unproved anonymous clients apart.
    fn account(&self) -> (IdentityKind, UaString) {
        let name = match self.identity.kind {
            IdentityKind::Anonymous if self.is_signed() => self.application_uri.clone(),
            _ => self.identity.client_user_id.clone(),
        };
        (self.identity.kind, name)
    }
}

type Account = (IdentityKind, UaString);

/// Whose the subscriptions of a session are: what of it outlives the session.
#[derive(Debug)]
pub(super) struct Who {
    pub(super) caller: Arc<Caller>,
    pub(super) owner: Owner,
    /// Which activation of the session they are of; one that was restored has none.
    pub(super) generation: Option<u64>,
}

impl Who {
    pub(super) fn of(bound: &Bound) -> Self {
        Self {
            caller: Arc::clone(&bound.caller),
            owner: Owner::of(bound),
            generation: Some(bound.session.snapshot.generation),
        }
    }
}

/// Counts subscriptions whose session is over.
#[derive(Debug)]
pub(crate) struct Abandoned {
    per_owner: u32,
    total: u32,
    counts: Mutex<(u32, HashMap<Account, u32>)>,
}

impl Abandoned {
    /// At most so many for one owner, and for all.
    pub(crate) fn new(per_owner: u32, total: u32) -> Arc<Self> {
        Arc::new(Self {
            per_owner,
            total,
            counts: Mutex::default(),
        })
    }

    /// A place for one subscription without a session, or none.
    pub(crate) fn take(self: &Arc<Self>, owner: &Owner) -> Option<AbandonedPlace> {
        let account = owner.account();
        let mut counts = self.counts.lock();
        let (total, owners) = &mut *counts;
        let own = owners.get(&account).copied().unwrap_or(0);
        if own >= self.per_owner || *total >= self.total {
            return None;
        }
        *total += 1;
        owners.insert(account.clone(), own + 1);
        Some(AbandonedPlace {
            ledger: Arc::clone(self),
            account,
        })
    }
}

/// The place of one subscription without a session; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct AbandonedPlace {
    ledger: Arc<Abandoned>,
    account: Account,
}

impl Drop for AbandonedPlace {
    fn drop(&mut self) {
        let mut counts = self.ledger.counts.lock();
        let (total, owners) = &mut *counts;
        *total = total.saturating_sub(1);
        if let Some(count) = owners.get_mut(&self.account) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                owners.remove(&self.account);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anonymous(uri: &str, certificate: &[u8], signed: bool) -> Owner {
        Owner {
            identity: Identity::ANONYMOUS,
            application_uri: uri.into(),
            certificate: ByteString::from(certificate),
            mode: if signed {
                MessageSecurityMode::SIGN
            } else {
                MessageSecurityMode::NONE
            },
        }
    }

    fn user(name: &str, kind: IdentityKind) -> Owner {
        Owner {
            identity: Identity {
                kind,
                client_user_id: name.into(),
            },
            ..anonymous("urn:a", b"certificate", true)
        }
    }

    #[test]
    fn the_same_user_from_any_application() {
        let ann = user("ann", IdentityKind::UserName);
        let elsewhere = Owner {
            certificate: ByteString::NULL,
            application_uri: "urn:b".into(),
            ..ann.clone()
        };
        assert_eq!(ann.yields_to(&elsewhere), Ok(()));
        let denied = Err(StatusCode::BAD_USER_ACCESS_DENIED);
        assert_eq!(ann.yields_to(&user("bob", IdentityKind::UserName)), denied);
        assert_eq!(ann.yields_to(&user("ann", IdentityKind::Certificate)), denied);
        assert_eq!(ann.yields_to(&anonymous("urn:a", b"certificate", true)), denied);
        assert_eq!(anonymous("urn:a", b"certificate", true).yields_to(&ann), denied);
    }

    #[test]
    fn never_to_a_channel_that_is_less_secured() {
        let modes = [
            MessageSecurityMode::NONE,
            MessageSecurityMode::SIGN,
            MessageSecurityMode::SIGN_AND_ENCRYPT,
        ];
        for (rank, mode) in modes.into_iter().enumerate() {
            let own = Owner {
                mode,
                ..user("ann", IdentityKind::UserName)
            };
            for (other, mode) in modes.into_iter().enumerate() {
                let expected = if other < rank {
                    Err(StatusCode::BAD_SECURITY_MODE_INSUFFICIENT)
                } else {
                    Ok(())
                };
                assert_eq!(own.yields_to(&Owner { mode, ..own.clone() }), expected);
            }
        }
    }

    #[test]
    fn anonymous_only_as_a_proved_application() {
        let own = anonymous("urn:a", b"certificate", true);
        let denied = Err(StatusCode::BAD_USER_ACCESS_DENIED);
        assert_eq!(own.yields_to(&own.clone()), Ok(()));
        assert_eq!(own.yields_to(&anonymous("urn:a", b"certificate", false)), denied);
        assert_eq!(anonymous("urn:a", b"certificate", false).yields_to(&own), denied);
        assert_eq!(own.yields_to(&anonymous("urn:b", b"certificate", true)), denied);
        assert_eq!(
            own.yields_to(&anonymous("urn:a", b"another", true)),
            Err(StatusCode::BAD_SECURITY_CHECKS_FAILED)
        );
    }

    #[test]
    fn abandoned_subscriptions_are_bounded_per_owner_and_in_total() {
        let ledger = Abandoned::new(2, 3);
        let (ann, bob) = (user("ann", IdentityKind::UserName), user("bob", IdentityKind::UserName));
        let first = ledger.take(&ann).unwrap();
        let _second = ledger.take(&ann).unwrap();
        assert!(ledger.take(&ann).is_none(), "two for one owner");
        let _third = ledger.take(&bob).unwrap();
        assert!(ledger.take(&bob).is_none(), "three for all");
        drop(first);
        assert!(ledger.take(&bob).is_some());
    }
}
