//! From what is known of a peer to whom its work is charged to.
//!
//! Owns the built-in rules (user, else application certificate, else address) behind what classifiers say. Keys are hashes:
//! they appear in no log.

use std::collections::HashMap;
use std::fmt::Write;
use std::net::IpAddr;
use std::sync::Arc;

use backplane_channel::ChannelEvidence;
use backplane_queue::fair::OwnerHandle;
use backplane_queue::isolation::Binding;
use backplane_queue::isolation::{Caller, Class, Intent, Mapping, Owner, OwnerError, PeerAddress};
use backplane_session::ValidatedSession;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::Admission;
use backplane_plugin::ClassifyError;

use crate::classify::Opinion;

/// Why nobody could be found to charge: nothing is done then.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChargeError {
    /// A classifier failed, and nothing is done for whom it has not judged.
    #[error("classifier: {0}")]
    Classifier(#[from] ClassifyError),
    /// A classifier named an owner that is not there.
    #[error("classifier: {0}")]
    Owner(#[from] OwnerError),
    /// The queues have no room for another owner.
    #[error("too many owners")]
    Queue,
}

/// An owner with its places in the queues.
#[derive(Debug)]
pub(crate) struct Charge {
    owner: Owner,
    /// The same as one that comes back to its session.
    returning: Option<Owner>,
    /// At the gate.
    turns: OwnerHandle,
    /// In the queue of requests that wait.
    jobs: OwnerHandle,
}

impl Charge {
    /// The owner.
    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Whom the activation of a live session is charged to: it has capacity of its own.
    pub(crate) fn returning(&self) -> &Owner {
        self.returning.as_ref().unwrap_or(&self.owner)
    }

    /// Its place at the gate.
    pub(crate) fn turns(&self) -> &OwnerHandle {
        &self.turns
    }

    /// Its place in the queue.
    pub(crate) fn jobs(&self) -> &OwnerHandle {
        &self.jobs
    }

    /// Whether both charge the same owner.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.owner == other.owner
    }
}

/// Whom activated sessions are charged to, by session number: for a session that a connection uses again after it has
/// forgotten it.
#[derive(Debug, Default)]
pub(crate) struct Charges(Mutex<HashMap<u32, (u64, Arc<Charge>)>>);

impl Charges {
    /// Keeps the owner of an activation.
    pub(crate) fn keep(&self, session: &ValidatedSession, charge: &Arc<Charge>) {
        let activation = session.snapshot.generation;
        self.0
            .lock()
            .insert(session.handle.number(), (activation, Arc::clone(charge)));
        if session.handle.is_closed() {
            // It was closed, and cleaned up after, just before.
            self.forget(session.handle.number());
        }
    }

    /// The owner of the session's present activation.
    pub(crate) fn of(&self, session: &ValidatedSession) -> Option<Arc<Charge>> {
        let charges = self.0.lock();
        let (activation, charge) = charges.get(&session.handle.number())?;
        (*activation == session.snapshot.generation).then(|| Arc::clone(charge))
    }

    /// The session is closed.
    pub(crate) fn forget(&self, session: u32) {
        self.0.lock().remove(&session);
    }
}

/// A hash as text: an identity that says nothing.
fn hashed(bytes: &[u8]) -> Arc<str> {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text.into()
}

fn mapping(opinion: &Option<Opinion>) -> Option<Mapping<'_>> {
    opinion.as_ref().map(|opinion| Mapping {
        key: &opinion.key,
        class: opinion.class,
    })
}

impl Admission {
    /// The charge of an owner.
    ///
    /// # Errors
    /// When the queues have no room for another owner.
    fn charge(&self, owner: Owner, returning: Option<Owner>) -> Result<Arc<Charge>, ChargeError> {
        let turns = self.gate.owner(owner.key(), owner.weight());
        let jobs = self.queue.owner(owner.key(), owner.weight());
        Ok(Arc::new(Charge {
            turns: turns.map_err(|_| ChargeError::Queue)?,
            jobs: jobs.map_err(|_| ChargeError::Queue)?,
            owner,
            returning,
        }))
    }

    /// Whom a new connection is charged to: as a classifier says of its address, else its address.
    ///
    /// # Errors
    /// [`ChargeError`]: the connection is closed.
    pub(crate) async fn classify_connection(&self, peer: IpAddr) -> Result<Arc<Charge>, ChargeError> {
        let opinion = self.classifiers.ingress(peer).await?;
        let address = hashed(PeerAddress::from(peer).bytes());
        let owner = self.isolation.connection_owner(mapping(&opinion), Some(&address))?;
        self.charge(owner, None)
    }

    /// Whom requests on an open channel are charged to, of a session when there is one.
    ///
    /// # Errors
    /// [`ChargeError`]: requests are refused.
    pub(crate) async fn classify(
        &self,
        peer: IpAddr,
        evidence: &ChannelEvidence,
        session: Option<&ValidatedSession>,
    ) -> Result<Arc<Charge>, ChargeError> {
        let mut opinion = self.classifiers.established(peer, evidence, session).await?;
        if opinion.is_none() {
            opinion = self.classifiers.ingress(peer).await?;
        }
        self.owner(mapping(&opinion), peer, evidence, session)
    }

    fn owner(
        &self,
        mapping: Option<Mapping<'_>>,
        peer: IpAddr,
        evidence: &ChannelEvidence,
        session: Option<&ValidatedSession>,
    ) -> Result<Arc<Charge>, ChargeError> {
        let address = hashed(PeerAddress::from(peer).bytes());
        let application = (!evidence.policy.is_none()).then(|| hashed(evidence.client_certificate.bytes()));
        let binding = session.map(|session| Binding {
            session: session.handle.number().into(),
            activation: session.snapshot.generation,
            user: user(session),
        });
        let caller = |intent| Caller {
            peer: Some(&address),
            application: application.as_deref(),
            binding: binding.as_ref(),
            intent,
        };
        let owner = self.isolation.request_owner(mapping, &caller(Intent::Work))?;
        let returning = match mapping {
            None if session.is_some() => Some(self.isolation.request_owner(None, &caller(Intent::Establish))?),
            _ => None,
        };
        self.charge(owner, returning)
    }

    /// Whom the pieces of a message on a channel are charged to.
    pub(crate) fn reassembly_owner(&self, charge: &Charge, activated: bool) -> Owner {
        let owner = self.isolation.reassembly_owner(charge.owner(), activated);
        // Every owner here is of this provider.
        owner.unwrap_or_else(|_| charge.owner().clone())
    }

    /// What a live session's owner becomes after a classifier has changed: it may lose what it had at once, and gains
    /// nothing before its next activation.
    ///
    /// # Errors
    /// As [`classify`](Self::classify).
    pub(crate) async fn classify_again(
        &self,
        before: &Arc<Charge>,
        peer: IpAddr,
        evidence: &ChannelEvidence,
        session: Option<&ValidatedSession>,
    ) -> Result<Arc<Charge>, ChargeError> {
        let after = self.classify(peer, evidence, session).await?;
        if after.is_same(before) {
            return Ok(Arc::clone(before));
        }
        if after.owner().class() == Class::Established || session.is_none() {
            return Ok(after);
        }
        // It would gain: until it activates again it is what it is without any classifier.
        self.owner(None, peer, evidence, session)
    }
}

fn user(session: &ValidatedSession) -> Option<Arc<str>> {
    let user = session.snapshot.identity.client_user_id.text();
    (!user.is_empty()).then(|| hashed(user.as_bytes()))
}
