//! Requests that wait for managers: the fair queue, the table that decides who answers each, and the workers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use backplane_nodes::services::{self, ServiceContext};
use backplane_nodes::{CallContext, Snapshot};
use backplane_queue::fair::{FairQueue, Order, QueueOptions, Refusal};
use backplane_queue::lifetime::{Key, Registration, RequestTable, SWEEP_INTERVAL};
use backplane_session::{RequestGuard, ValidatedSession};
use backplane_types::service::RequestKind;
use backplane_types::{DecodeLimits, Now, StatusCode};

use super::Done;
use super::connection::MAX_RESPONSE;
use super::respond::Context;
use super::shard::ReplyTo;
use crate::executor::Executor;
use crate::plant::Plant;
use crate::settings::REQUEST_TIMEOUT;

/// Jobs that run at a time.
const WORKERS: usize = 3;
/// Jobs that wait at a time.
const QUEUE: usize = 64;

/// One request that waits.
struct Job {
    number: u64,
    snapshot: Arc<Snapshot>,
    call: CallContext,
    kind: RequestKind,
    context: Context,
    body: Vec<u8>,
}

/// What answers a request, beside the table's word on who may.
struct Held {
    registration: Registration<ReplyTo>,
    connection: u64,
    guard: RequestGuard,
}

/// See the module text.
pub(crate) struct Waiting {
    queue: FairQueue<Job>,
    table: RequestTable<ReplyTo>,
    held: BTreeMap<u64, Held>,
    running: usize,
    next_job: u64,
    /// The next sweep, while there is something to sweep.
    sweep_at: Option<Duration>,
}

impl Waiting {
    pub(crate) fn new() -> Self {
        Self {
            queue: FairQueue::new(QueueOptions {
                capacity: QUEUE,
                max_owners: 16,
                order: Order::Weighted,
            }),
            table: RequestTable::new(128),
            held: BTreeMap::new(),
            running: 0,
            next_job: 0,
            sweep_at: None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    pub(crate) fn next(&self) -> Option<Duration> {
        self.sweep_at
    }

    pub(crate) fn of_connection(&self, connection: u64) -> usize {
        self.held.values().filter(|held| held.connection == connection).count()
    }

    /// Takes a request in.
    ///
    /// # Errors
    /// `BadServerTooBusy` when the queue or the table is full.
    #[expect(clippy::too_many_arguments, reason = "a request is what it is")]
    pub(crate) fn admit(
        &mut self,
        snapshot: Arc<Snapshot>,
        call: CallContext,
        kind: RequestKind,
        context: Context,
        reply: ReplyTo,
        body: &[u8],
        session: &ValidatedSession,
    ) -> Result<(), StatusCode> {
        let busy = StatusCode::BAD_SERVER_TOO_BUSY;
        let now = context.now;
        let key = Key {
            session: session.handle.number().into(),
            connection: reply.connection,
            handle: reply.request_handle,
        };
        let deadline = now.mono + REQUEST_TIMEOUT;
        let registered = self.table.register(key, Some(deadline), reply).map_err(|_| busy)?;
        if registered.watched_started {
            self.sweep_at = Some(now.mono + SWEEP_INTERVAL);
        }
        self.next_job += 1;
        let number = self.next_job;
        let owner: Arc<str> = Arc::from(format!("session {}", session.handle.number()));
        let owner = self.queue.owner(&owner, 1).map_err(|_| busy)?;
        let job = Job {
            number,
            snapshot,
            call,
            kind,
            context,
            body: body.to_vec(),
        };
        self.queue.admit(&owner, job).map_err(|refused| match refused.refusal {
            Refusal::Stopped => StatusCode::BAD_SERVER_HALTED,
            _ => busy,
        })?;
        self.held.insert(
            number,
            Held {
                registration: registered.registration,
                connection: reply.connection,
                guard: session.handle.enter(now),
            },
        );
        Ok(())
    }

    /// Lets free workers take jobs.
    pub(crate) fn dispatch(&mut self, _plant: &Plant, now: Now, tasks: &mut Executor<Done>) {
        while self.running < WORKERS {
            let Some((job, ())) = self.queue.take(|_| Ok(())) else {
                return;
            };
            self.running += 1;
            let number = job.number;
            let (context, deadline) = (job.context, now.mono + REQUEST_TIMEOUT);
            let late = move || Done::Job {
                job: number,
                message: context.fault_message(StatusCode::BAD_TIMEOUT),
            };
            tasks.spawn(deadline, run(job), late);
        }
    }

    /// A job is done: its answer, unless somebody else has given one.
    pub(crate) fn done(&mut self, job: u64, message: Vec<u8>) -> Option<(ReplyTo, Vec<u8>)> {
        self.running = self.running.saturating_sub(1);
        let held = self.held.remove(&job)?;
        drop(held.guard);
        Some((held.registration.complete()?, message))
    }

    /// Requests whose deadline has passed.
    pub(crate) fn sweep(&mut self, now: Now) -> Vec<(ReplyTo, Vec<u8>)> {
        if self.sweep_at.is_none_or(|at| at > now.mono) {
            return Vec::new();
        }
        let mut over = Vec::new();
        self.table.sweep(now.mono, |reply| {
            over.push(faulted(now, reply, StatusCode::BAD_TIMEOUT))
        });
        self.sweep_at = self.table.is_watched().then(|| now.mono + SWEEP_INTERVAL);
        over
    }

    /// A session is over: its requests are answered.
    pub(crate) fn session_closed(&mut self, now: Now, session: u32) -> Vec<(ReplyTo, Vec<u8>)> {
        let mut over = Vec::new();
        self.table.close_session(session.into(), |reply| {
            over.push(faulted(now, reply, StatusCode::BAD_SESSION_CLOSED));
        });
        over
    }

    /// A connection is over: nobody waits for its answers.
    pub(crate) fn connection_closed(&mut self, connection: u64) {
        self.table.close_connection(connection, |_| {});
    }
}

fn faulted(now: Now, reply: ReplyTo, status: StatusCode) -> (ReplyTo, Vec<u8>) {
    let context = Context {
        now,
        request_handle: reply.request_handle,
    };
    (reply, context.fault_message(status))
}

async fn run(job: Job) -> Done {
    let mut message = Vec::new();
    job.context.begin(job.kind, &mut message);
    let cx = ServiceContext {
        call: &job.call,
        now: job.context.now,
        decode: DecodeLimits::DEFAULT,
        max_response_size: MAX_RESPONSE,
    };
    let result = match job.kind {
        RequestKind::Read => services::read_waiting(&job.snapshot, &cx, &job.body, &mut message).await,
        RequestKind::Write => services::write_waiting(&job.snapshot, &cx, &job.body, &mut message).await,
        RequestKind::Call => services::call_waiting(&job.snapshot, &cx, &job.body, &mut message).await,
        _ => Err(StatusCode::BAD_INTERNAL_ERROR),
    };
    if let Err(status) = result {
        message = job.context.fault_message(status);
    }
    Done::Job {
        job: job.number,
        message,
    }
}
