//! Who may use how much of the server, and when: the queue crate's budgets, turns and request table, wired to OPC UA.
//!
//! Owns the gate for turns on the connections' tasks, the fair queue for requests that wait and its workers, the table of
//! waiting requests with its deadlines, and the way from what is known of a peer to whom its work is charged to. Knows
//! nothing of sockets and of what a service does.

mod charge;
mod gate;
mod job;
mod pieces;
mod place;
mod reply;
mod workers;

use std::sync::Arc;
use std::time::Duration;

use backplane_queue::fair::{FairQueue, Order, QueueOptions};
use backplane_queue::isolation::{
    Counters, Isolation, Lease, Owner, Plan, Profile, RateLimiter, Reason, Refused, Stage,
};
use backplane_queue::lifetime::{Key, Registration, RequestTable};
use backplane_types::StatusCode;
use tokio::sync::Notify;

pub(crate) use charge::{Charge, ChargeError, Charges};
pub(crate) use gate::Turns;
pub(crate) use job::{Job, Standing, refuse_all};
pub(crate) use place::{ConnectionPlace, Leave};
pub(crate) use reply::{Held, Place, Reply, Stop};
pub(crate) use workers::{sweep, work};

use crate::classify::Classifiers;
use crate::config::{ServerLimits, isolation};
use crate::link::KEPT_SESSIONS;
use crate::listener::Connections;
use gate::Gate;
use pieces::Pieces;

/// Slots of the table of waiting requests. All are looked at in a sweep; more requests than slots wait in its overflow set.
const TABLE_SLOTS: usize = 4_096;

/// How many owners there can be at once: of each connection, of its channel and of the sessions that it remembers, and of the sessions that
/// no connection remembers.
fn most_owners(limits: &ServerLimits) -> usize {
    let of_connections = (limits.connections as usize).saturating_mul(2 + KEPT_SESSIONS);
    of_connections.saturating_add(limits.sessions as usize)
}

/// See the module text.
pub(crate) struct Admission {
    isolation: Arc<Isolation>,
    pieces: Arc<Pieces>,
    rate: RateLimiter,
    gate: Arc<Gate>,
    queue: Arc<FairQueue<Job>>,
    requests: RequestTable<Reply>,
    /// Wakes the sweep of deadlines.
    watched: Notify,
    classifiers: Classifiers,
}

impl Admission {
    /// Everything that a plan needs. `turns`: how many connections run at a time.
    pub(crate) fn new(
        plan: Plan,
        limits: &ServerLimits,
        turns: usize,
        connections: &Arc<Connections>,
        classifiers: Classifiers,
    ) -> Self {
        let fair = plan.profile() != Profile::SharedOnly;
        // As many as the plan's stage has places, so that a place that is kept for somebody is one in the queue.
        let places = isolation::totals(limits).of(Stage::RequestQueue).unwrap_or(u64::MAX);
        let queued = usize::try_from(places).unwrap_or(usize::MAX);
        let owners = most_owners(limits);
        let queue = Arc::new(FairQueue::new(QueueOptions {
            capacity: queued,
            max_owners: owners,
            order: if fair { Order::Weighted } else { Order::Global },
        }));
        let rate = RateLimiter::new(&plan);
        let incomplete = isolation::totals(limits).of(Stage::ReassemblyBytes).unwrap_or(u64::MAX);
        let pieces = Pieces::new(&plan, incomplete);
        let (jobs, room) = (Arc::clone(&queue), Arc::clone(connections));
        let available = move |stage| match stage {
            Stage::RequestExecution => jobs.capacity_changed(),
            Stage::Connection => room.room.notify_waiters(),
            _ => {}
        };
        Self {
            isolation: Isolation::new(plan, Box::new(available)),
            pieces,
            rate,
            gate: Gate::new(turns, limits.connections as usize, owners, fair),
            queue,
            requests: RequestTable::new(queued.min(TABLE_SLOTS)),
            watched: Notify::new(),
            classifiers,
        }
    }

    /// Where connections take their turns.
    pub(crate) fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Who says whose a peer's work is.
    pub(crate) fn classifiers(&self) -> &Classifiers {
        &self.classifiers
    }

    /// New connections per second.
    pub(crate) fn rate(&self) -> &RateLimiter {
        &self.rate
    }

    /// Memory of messages whose last chunk has not come.
    pub(crate) fn pieces(&self) -> &Arc<Pieces> {
        &self.pieces
    }

    /// Charges `amount` of a stage to an owner.
    ///
    /// # Errors
    /// When the plan does not allow it now.
    pub(crate) fn acquire(&self, stage: Stage, owner: &Owner, amount: u64) -> Result<Lease, Refused> {
        self.isolation.try_acquire(stage, owner, amount)
    }

    /// Several amounts, all or none.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub(crate) fn acquire_all<const N: usize>(
        &self,
        owner: &Owner,
        wanted: [(Stage, u64); N],
    ) -> Result<[Lease; N], Refused> {
        self.isolation
            .try_acquire_all(owner, wanted)
            .map_err(|(_, refused)| refused)
    }

    /// Notes a request that waits, so that it is answered exactly once whatever happens.
    ///
    /// # Errors
    /// `BadServerHalted` when the server stops, `BadServerTooBusy` when the table is full. The request is not answered by
    /// this.
    pub(crate) fn register(
        &self,
        key: Key,
        deadline: Option<Duration>,
        reply: Reply,
    ) -> Result<Registration<Reply>, StatusCode> {
        use backplane_queue::lifetime::Refusal;
        match self.requests.register(key, deadline, reply) {
            Ok(registered) => {
                if registered.watched_started {
                    self.watched.notify_one();
                }
                Ok(registered.registration)
            }
            Err(refused) => {
                refused.answer.defuse();
                Err(match refused.reason {
                    Refusal::Draining => StatusCode::BAD_SERVER_HALTED,
                    Refusal::Full => StatusCode::BAD_SERVER_TOO_BUSY,
                })
            }
        }
    }

    /// Puts a job into the queue of its owner. One that is not taken is answered: `BadServerTooBusy` when the queue is full,
    /// `BadServerHalted` when the server stops.
    pub(crate) fn admit(&self, charge: &Charge, job: Job) {
        use backplane_queue::fair::Refusal;
        let stop = Arc::clone(&job.stop);
        match self.queue.admit(charge.jobs(), job) {
            Ok(ticket) => stop.queued(&self.queue, ticket),
            Err(refused) => refused.work.work.refuse(match refused.refusal {
                Refusal::Stopped => StatusCode::BAD_SERVER_HALTED,
                Refusal::Full | Refusal::OwnersFull => StatusCode::BAD_SERVER_TOO_BUSY,
            }),
        }
    }

    /// Ends the waiting requests of a session that carry a handle. How many there were.
    pub(crate) fn cancel(&self, now: Duration, session: u32, request_handle: u32) -> u32 {
        self.requests.cancel(now, session.into(), request_handle, |reply| {
            reply.end(StatusCode::BAD_REQUEST_CANCELLED_BY_REQUEST);
        })
    }

    /// Ends the waiting requests of a session that has closed.
    pub(crate) fn session_closed(&self, session: u32) {
        self.requests
            .close_session(session.into(), |reply| reply.end(StatusCode::BAD_SESSION_CLOSED));
    }

    /// Ends the waiting requests of a connection that is gone.
    pub(crate) fn connection_closed(&self, connection: u64) {
        self.requests
            .close_connection(connection, |reply| reply.end(StatusCode::BAD_SECURE_CHANNEL_CLOSED));
    }

    /// Server stop: no new work, and everything that waits is answered `BadServerHalted`.
    pub(crate) fn stop(&self) {
        self.isolation.close();
        self.requests.drain(|reply| reply.end(StatusCode::BAD_SERVER_HALTED));
        for job in self.queue.stop() {
            job.work.refuse(StatusCode::BAD_SERVER_HALTED);
        }
    }

    /// Everything that is counted of the stages, by class of owner.
    pub(crate) fn counters(&self) -> Counters {
        self.isolation.counters()
    }

    /// Counts a refusal for a limit that belongs to no account.
    pub(crate) fn refuse(&self, stage: Stage, owner: &Owner, reason: Reason) -> Refused {
        self.isolation.refuse(stage, owner, reason)
    }

    /// What is in use, for the log and for tests: one number per stage, owners, waiting requests.
    pub(crate) fn usage(&self) -> String {
        let stages = Stage::ALL.map(|stage| format!("{}={}", stage.name(), self.isolation.usage(stage)));
        format!(
            "{} owners={} requests={} queued={}",
            stages.join(" "),
            self.isolation.tracked_owners(),
            self.requests.len(),
            self.queue.len()
        )
    }
}
