//! Sessions being created or activated: few at a time, charged to who asks, with a retry time for those that come when
//! there are too many.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use backplane_queue::isolation::{Lease, RETRY_AFTER, Stage};
use backplane_queue::lifetime::{Key, Registration};
use backplane_session::RequestGuard;
use backplane_types::StatusCode;
use tokio::sync::OwnedSemaphorePermit;

use super::{Progress, Request};
use crate::admission::{Held, Place, Reply, Stop};
use crate::link::{Activated, Link};
use crate::shared::Shared;

/// The right to establish one session; what it holds goes back when it is dropped.
pub(super) struct Turn {
    shared: Arc<Shared>,
    registration: Registration<Reply>,
    stop: Arc<Stop>,
    lease: Lease,
    permit: OwnedSemaphorePermit,
}

impl Turn {
    /// Takes a turn. Without one the fault is in `out`: it says when to try again.
    pub(super) fn take(shared: &Arc<Shared>, link: &Link, request: &Request<'_>, out: &mut Vec<u8>) -> Option<Self> {
        let start = out.len();
        match Self::try_take(shared, link, request) {
            Ok(turn) => Some(turn),
            Err(StatusCode::BAD_SERVER_TOO_BUSY) => {
                out.truncate(start);
                request.context.busy(RETRY_AFTER, out);
                None
            }
            Err(status) => {
                out.truncate(start);
                request.context.fault(status, out);
                None
            }
        }
    }

    fn try_take(shared: &Arc<Shared>, link: &Link, request: &Request<'_>) -> Result<Self, StatusCode> {
        let busy = StatusCode::BAD_SERVER_TOO_BUSY;
        let place = Place::take(link.waiting(), link.waiting_limit()).ok_or(StatusCode::BAD_TOO_MANY_OPERATIONS)?;
        // A live session of this channel makes it a reconnect, which has capacity of its own.
        let token = request.peek.header.authentication_token;
        let owner = match link.live(token) {
            Some(bound) => bound.charge.returning(),
            None => link.channel_charge().owner(),
        };
        // The owner's budget first, then the server's: what the second refuses, the first gets back.
        let lease = shared.admission.acquire(Stage::SessionEstablishment, owner, 1);
        let lease = lease.map_err(|_| busy)?;
        let permit = Arc::clone(&shared.establishing).try_acquire_owned();
        let permit = permit.map_err(|_| busy)?;
        let stop = Stop::new(shared.clock, link.outbound.clone());
        let held = Held {
            leases: [None, None],
            place: Some(place),
        };
        let reply = Reply::new(
            request.request_id,
            request.context.request_handle,
            &stop,
            Some(Box::new(held)),
        );
        let key = Key {
            session: 0,
            connection: link.channel.id.0,
            handle: request.context.request_handle,
        };
        let deadline = request.context.now.mono.saturating_add(limit(shared, request));
        Ok(Self {
            registration: shared.admission.register(key, Some(deadline), reply)?,
            shared: Arc::clone(shared),
            stop,
            lease,
            permit,
        })
    }

    /// Nothing is to be done: the request fails in its own turn, unless somebody has ended it before.
    ///
    /// # Errors
    /// `status`, the one answer that the request gets then.
    pub(super) fn fail(self, status: StatusCode) -> Result<Progress, StatusCode> {
        match self.registration.complete() {
            Some(reply) => {
                reply.defuse();
                Err(status)
            }
            None => Ok(Progress::HandedOver),
        }
    }

    /// Answers with what `work` ends with, unless somebody has ended the request before.
    pub(super) fn run(
        self,
        guard: Option<RequestGuard>,
        work: impl Future<Output = Result<(Vec<u8>, Option<Activated>), StatusCode>> + Send + 'static,
    ) -> Result<Progress, StatusCode> {
        let Self {
            shared,
            registration,
            stop,
            lease,
            permit,
        } = self;
        shared.runtime.spawn(async move {
            // Named here, or the task would be made without them and they would be given back before it begins.
            let _held = (lease, permit);
            let answered = tokio::select! {
                biased;
                answered = work => answered,
                () = stop.nobody_waits() => return,
            };
            drop(guard);
            let Some(reply) = registration.complete() else {
                return;
            };
            match answered {
                Ok((message, activated)) => reply.send(message, activated),
                Err(status) => reply.fault(status),
            }
        });
        Ok(Progress::HandedOver)
    }
}

/// How long it may take.
fn limit(shared: &Shared, request: &Request<'_>) -> Duration {
    let most = Duration::from_secs_f64(shared.limits.request_timeout / 1000.0);
    match request.peek.header.timeout_hint {
        0 => most,
        hint => most.min(Duration::from_millis(hint.into())),
    }
}
