//! A request, or several Reads of one connection, on the way through the fair queue to a worker.
//!
//! Owns the order of a job's life: admitted with leases, revalidated and given an execution lease when its owner's turn
//! comes, run, answered. What the work is belongs to the services.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use backplane_queue::fair::Blocked;
use backplane_queue::isolation::{Lease, Owner, Stage};
use backplane_queue::lifetime::Registration;
use backplane_session::{SessionHandle, SessionSnapshot};
use backplane_types::StatusCode;

use super::Admission;
use super::reply::{Reply, Stop};
use crate::services::Work;

/// What was known of a request's session and connection when it was admitted. It must still hold when the request runs.
#[derive(Debug)]
pub(crate) struct Standing {
    session: Arc<SessionHandle>,
    activation: u64,
    /// Counts the changes of the connection's owner.
    evidence: Arc<AtomicU64>,
    seen: u64,
}

impl Standing {
    /// What holds now.
    pub(crate) fn new(session: &Arc<SessionHandle>, snapshot: &SessionSnapshot, evidence: &Arc<AtomicU64>) -> Self {
        Self {
            session: Arc::clone(session),
            activation: snapshot.generation,
            evidence: Arc::clone(evidence),
            seen: evidence.load(Ordering::Acquire),
        }
    }

    /// Compares generation numbers: no look-up, no lock.
    ///
    /// # Errors
    /// `BadSessionIdInvalid` when the session is gone, `BadServerTooBusy` when it was activated anew or its owner has changed:
    /// nothing is run for an owner that it was not charged to.
    pub(crate) fn check(&self) -> Result<(), StatusCode> {
        if self.session.is_closed() {
            return Err(StatusCode::BAD_SESSION_ID_INVALID);
        }
        if self.session.generation() != self.activation || self.evidence.load(Ordering::Acquire) != self.seen {
            return Err(StatusCode::BAD_SERVER_TOO_BUSY);
        }
        Ok(())
    }
}

/// See the module text.
pub(crate) struct Job {
    pub(crate) owner: Owner,
    pub(crate) standing: Standing,
    pub(crate) stop: Arc<Stop>,
    /// The place in the queue; given back when the job runs.
    pub(crate) queued: Lease,
    pub(crate) work: Work,
}

/// What a worker does with the job that it took.
pub(crate) enum Permit {
    /// Run it, holding the lease.
    Run(Lease),
    /// It no longer holds what it was admitted for.
    Refuse(StatusCode),
}

impl Job {
    /// Whether the job may run now.
    pub(crate) fn permit(&self, admission: &Admission) -> Result<Permit, Blocked> {
        if let Err(status) = self.standing.check() {
            return Ok(Permit::Refuse(status));
        }
        match admission.acquire(Stage::RequestExecution, &self.owner, 1) {
            Ok(lease) => Ok(Permit::Run(lease)),
            // Another owner may have a floor of its own.
            Err(_) => Err(Blocked::Owner),
        }
    }

    /// Does what the permit says.
    pub(crate) async fn run(self, permit: Permit) {
        let Self { stop, queued, work, .. } = self;
        drop(queued);
        match permit {
            Permit::Refuse(status) => work.refuse(status),
            Permit::Run(lease) => {
                // Nobody is asked for what nobody waits for.
                tokio::select! {
                    biased;
                    () = stop.nobody_waits() => {}
                    () = work.run() => {}
                }
                drop(lease);
            }
        }
    }
}

/// Completes registrations with a fault.
pub(crate) fn refuse_all(registrations: impl IntoIterator<Item = Registration<Reply>>, status: StatusCode) {
    for registration in registrations {
        if let Some(reply) = registration.complete() {
            reply.fault(status);
        }
    }
}
