//! Requests whose managers have to be asked: from the connection's turn into the fair queue, and what a worker does there.
//!
//! Reads of one turn and one session become one job, so that each manager is asked once for all of them. Writes and Calls
//! are jobs of their own.

use std::sync::Arc;
use std::time::Duration;

use backplane_nodes::services::{self, ReadBatch, ServiceContext, Until};
use backplane_nodes::{CallContext, Snapshot};
use backplane_queue::isolation::{Lease, Stage};
use backplane_queue::lifetime::{Key, Registration};
use backplane_session::RequestGuard;
use backplane_types::service::RequestKind;
use backplane_types::{DecodeLimits, Encoder, Now, StatusCode};

use super::Request;
use crate::admission::{Held, Job, Place, Reply, Standing, Stop, refuse_all};
use crate::clock::Clock;
use crate::events::Actor;
use crate::link::{Answer, Bound, Link, Outbound, OutboundSender};
use crate::respond::Context;
use crate::shared::Shared;

/// What a worker does.
pub(crate) enum Work {
    /// Reads of one session.
    Reads(Box<Reads>),
    /// A Write or a Call.
    Service(Box<Service>),
}

impl Work {
    /// Runs it to its end; every request is answered by then, here or by whoever ended it.
    pub(crate) async fn run(self) {
        match self {
            Self::Reads(reads) => reads.run().await,
            Self::Service(service) => service.run().await,
        }
    }

    /// Answers every request with a fault.
    pub(crate) fn refuse(self, status: StatusCode) {
        match self {
            Self::Reads(reads) => refuse_all(reads.requests.into_iter().filter_map(|read| read.registration), status),
            Self::Service(service) => refuse_all([service.registration], status),
        }
    }
}

/// When a request must be answered.
#[derive(Clone, Copy)]
pub(super) struct Deadline {
    pub(super) now: Now,
    pub(super) timeout: Duration,
}

impl Deadline {
    fn mono(self) -> Duration {
        self.now.mono.saturating_add(self.timeout)
    }

    fn until(self) -> Until {
        Until {
            mono: self.mono(),
            utc: self.now.utc.saturating_add(self.timeout),
        }
    }
}

/// Takes the leases and the place of one waiting request.
fn held(shared: &Shared, link: &Link, bound: &Bound) -> Result<(Held, Lease), StatusCode> {
    let place = Place::take(link.waiting(), link.waiting_limit()).ok_or(StatusCode::BAD_TOO_MANY_OPERATIONS)?;
    let owner = bound.charge.owner();
    let wanted = [
        (Stage::RequestQueue, 1),
        (Stage::RequestQueueBytes, u64::from(shared.limits.message_size)),
    ];
    let leases = shared.admission.acquire_all(owner, wanted);
    let [queued, bytes] = leases.map_err(|_| StatusCode::BAD_SERVER_TOO_BUSY)?;
    let held = Held {
        leases: [Some(bytes), None],
        place: Some(place),
    };
    Ok((held, queued))
}

fn register(
    shared: &Shared,
    link: &Link,
    bound: &Bound,
    deadline: Deadline,
    reply: Reply,
) -> Result<Registration<Reply>, StatusCode> {
    let key = Key {
        session: bound.session.handle.number().into(),
        connection: link.channel.id.0,
        handle: reply.request_handle(),
    };
    shared.admission.register(key, Some(deadline.mono()), reply)
}

fn admit(shared: &Arc<Shared>, link: &Link, bound: &Bound, stop: Arc<Stop>, queued: Lease, work: Work) {
    let job = Job {
        owner: bound.charge.owner().clone(),
        standing: Standing::new(&bound.session.handle, &bound.session.snapshot, link.evidence_revision()),
        stop,
        queued,
        work,
    };
    shared.admission.admit(&bound.charge, job);
}

/// Reads of one connection's turn that wait; see the module text.
#[derive(Default)]
pub(crate) struct Batch {
    open: Option<Open>,
    /// The last Read had to wait, so that the next one will too.
    is_hot: bool,
}

/// A batch that takes more Reads.
struct Open {
    bound: Bound,
    stop: Arc<Stop>,
    queued: Lease,
    /// Reads for which the leases are there already.
    prepaid: u64,
    reads: Box<Reads>,
}

/// Reads that the leases of a growing batch are taken for at a time: each time takes a lock.
const PREPAID: u64 = 16;

/// Reads that there is room for from the start, and bytes for the answer to one.
const USUAL_READS: usize = 64;
const USUAL_ANSWER: usize = 96;

/// The Reads of one job.
pub(crate) struct Reads {
    batch: ReadBatch,
    requests: Vec<BatchedRead>,
    outbound: OutboundSender,
    clock: Clock,
    held: Held,
    /// The session does not time out meanwhile.
    guard: RequestGuard,
}

struct BatchedRead {
    context: Context,
    registration: Option<Registration<Reply>>,
}

impl Batch {
    /// Adds a Read of the present session.
    ///
    /// # Errors
    /// The status of its fault.
    pub(super) fn push(
        &mut self,
        shared: &Arc<Shared>,
        link: &Link,
        bound: &Bound,
        snapshot: &Arc<Snapshot>,
        request: &Request<'_>,
        (call, deadline, max_response_size): (&CallContext, Deadline, usize),
    ) -> Result<(), StatusCode> {
        if self.fitting(bound, snapshot).is_none() {
            self.submit(shared, link);
            let (held, queued) = held(shared, link, bound)?;
            self.open = Some(Open {
                bound: bound.clone(),
                stop: Stop::new(shared.clock, link.outbound.clone()),
                queued,
                prepaid: 0,
                reads: Box::new(Reads {
                    batch: ReadBatch::new(Arc::clone(snapshot), call.clone(), deadline.now, shared.decode_limits),
                    requests: Vec::with_capacity(USUAL_READS),
                    outbound: link.outbound.clone(),
                    clock: shared.clock,
                    held,
                    guard: bound.session.handle.enter(deadline.now),
                }),
            });
        }
        let Some(open) = &mut self.open else {
            return Err(StatusCode::BAD_INTERNAL_ERROR);
        };
        let until = deadline.until();
        open.reads.batch.push(request.peek.body, until, max_response_size)?;
        self.is_hot = true;
        open.add(shared, link, bound, request, deadline)
    }

    /// The same for a Read that may not have to wait, while those before it do. False: it is not added, as no manager has to be asked for it, or
    /// nothing is known of the kind.
    ///
    /// # Errors
    /// The status of its fault.
    pub(super) fn push_next(
        &mut self,
        shared: &Arc<Shared>,
        link: &Link,
        bound: &Bound,
        snapshot: &Arc<Snapshot>,
        request: &Request<'_>,
        (deadline, max_response_size): (Deadline, usize),
    ) -> Result<bool, StatusCode> {
        if !self.is_hot {
            return Ok(false);
        }
        let Some(open) = self.fitting(bound, snapshot) else {
            return Ok(false);
        };
        let until = deadline.until();
        let pushed = open
            .reads
            .batch
            .push_asking(request.peek.body, until, max_response_size)?;
        if pushed.is_none() {
            self.is_hot = false;
            return Ok(false);
        }
        open.add(shared, link, bound, request, deadline).map(|()| true)
    }

    /// The open batch, if a Read of this session may be part of it.
    fn fitting(&mut self, bound: &Bound, snapshot: &Arc<Snapshot>) -> Option<&mut Open> {
        self.open.as_mut().filter(|open| {
            !open.reads.batch.is_full()
                && Arc::ptr_eq(open.reads.batch.snapshot(), snapshot)
                && Arc::ptr_eq(&open.bound.session.snapshot, &bound.session.snapshot)
        })
    }

    /// Hands what was gathered to the queue.
    pub(crate) fn submit(&mut self, shared: &Arc<Shared>, link: &Link) {
        let Some(mut open) = self.open.take() else { return };
        open.settle(shared);
        if open.reads.requests.is_empty() {
            return;
        }
        admit(
            shared,
            link,
            &open.bound,
            open.stop,
            open.queued,
            Work::Reads(open.reads),
        );
    }
}

impl Open {
    /// Notes who gets the answer of the Read that was pushed last.
    fn add(
        &mut self,
        shared: &Shared,
        link: &Link,
        bound: &Bound,
        request: &Request<'_>,
        deadline: Deadline,
    ) -> Result<(), StatusCode> {
        // The first one was paid for when the batch was opened.
        let paid = if self.reads.requests.is_empty() {
            Ok(())
        } else {
            self.grow(shared, link)
        };
        let registration = paid.and_then(|()| {
            let reply = Reply::new(request.request_id, request.context.request_handle, &self.stop, None);
            register(shared, link, bound, deadline, reply)
        });
        // One that was refused keeps its index; nobody is told.
        let (registration, refused) = match registration {
            Ok(registration) => (Some(registration), Ok(())),
            Err(status) => (None, Err(status)),
        };
        self.reads.requests.push(BatchedRead {
            context: request.context,
            registration,
        });
        refused
    }

    /// Room for one more Read.
    fn grow(&mut self, shared: &Shared, link: &Link) -> Result<(), StatusCode> {
        let held = &mut self.reads.held;
        let placed = held.place.as_mut().is_none_or(|place| place.grow(link.waiting_limit()));
        if !placed {
            return Err(StatusCode::BAD_TOO_MANY_OPERATIONS);
        }
        if self.prepaid > 0 {
            self.prepaid -= 1;
            return Ok(());
        }
        let busy = |_| StatusCode::BAD_SERVER_TOO_BUSY;
        let mut reads = self.queued.grow_between(1, PREPAID).map_err(busy)?;
        if let [Some(bytes), _] = &mut held.leases {
            let each = u64::from(shared.limits.message_size);
            match bytes.grow_between(each, each.saturating_mul(reads)) {
                Ok(more) if more == each && reads > 1 => {
                    self.queued.shrink(reads - 1);
                    reads = 1;
                }
                Ok(_) => {}
                Err(_) => {
                    self.queued.shrink(reads);
                    return Err(StatusCode::BAD_SERVER_TOO_BUSY);
                }
            }
        }
        self.prepaid = reads.saturating_sub(1);
        Ok(())
    }

    /// No more Reads will come: what was paid in advance goes back.
    fn settle(&mut self, shared: &Shared) {
        let prepaid = std::mem::take(&mut self.prepaid);
        if prepaid == 0 {
            return;
        }
        self.queued.shrink(prepaid);
        if let [Some(bytes), _] = &mut self.reads.held.leases {
            bytes.shrink(u64::from(shared.limits.message_size).saturating_mul(prepaid));
        }
    }
}

impl Reads {
    async fn run(mut self: Box<Self>) {
        let mut asking = self.batch.ask();
        let mut held = Some(std::mem::take(&mut self.held));
        while let Some(first) = asking.next().await {
            let mut bytes = Vec::with_capacity(self.requests.len().saturating_mul(USUAL_ANSWER));
            let mut parts = Vec::with_capacity(self.requests.len());
            let now = self.clock.now();
            let mut next = Some(first);
            while let Some(index) = next {
                next = asking.next_ready();
                let Some(read) = self.requests.get_mut(index) else {
                    continue;
                };
                let Some(reply) = read.registration.take().and_then(Registration::complete) else {
                    continue;
                };
                let start = bytes.len();
                read.context.begin(RequestKind::Read, &mut bytes);
                if let Err(status) = asking.answer(index, now.mono, &mut Encoder::new(&mut bytes)) {
                    bytes.truncate(start);
                    read.context.fault(status, &mut bytes);
                }
                parts.push((reply.request_id(), start..bytes.len()));
                reply.defuse();
            }
            // What is held goes back when the last answers are sealed.
            let held = if asking.is_done() { held.take() } else { None };
            // The connection may be gone; then nobody waits for the answers.
            let _ = self.outbound.send(Outbound {
                answer: Answer::Many { parts, bytes },
                activated: None,
                held: held.into_iter().collect(),
            });
        }
        drop(self.guard);
    }
}

/// A Write or a Call that waits.
pub(crate) struct Service {
    kind: RequestKind,
    context: Context,
    snapshot: Arc<Snapshot>,
    call: CallContext,
    timeout: Duration,
    decode: DecodeLimits,
    max_response_size: usize,
    body: Vec<u8>,
    /// The session does not time out meanwhile.
    guard: RequestGuard,
    registration: Registration<Reply>,
    /// Where it is told when it has run, and who asked.
    audit: Option<(Arc<Shared>, Actor)>,
}

/// Hands a Write or a Call to the queue.
///
/// # Errors
/// The status of its fault.
pub(super) fn service(
    shared: &Arc<Shared>,
    link: &Link,
    bound: &Bound,
    snapshot: &Arc<Snapshot>,
    request: &Request<'_>,
    (call, deadline, max_response_size): (&CallContext, Deadline, usize),
) -> Result<(), StatusCode> {
    let (held, queued) = held(shared, link, bound)?;
    let stop = Stop::new(shared.clock, link.outbound.clone());
    let reply = Reply::new(
        request.request_id,
        request.context.request_handle,
        &stop,
        Some(Box::new(held)),
    );
    let registration = register(shared, link, bound, deadline, reply)?;
    let work = Service {
        kind: request.kind,
        context: request.context,
        snapshot: Arc::clone(snapshot),
        call: call.clone(),
        timeout: deadline.timeout,
        decode: shared.decode_limits,
        max_response_size,
        body: request.peek.body.to_vec(),
        guard: bound.session.handle.enter(deadline.now),
        registration,
        audit: shared.audits().then(|| {
            let entry = request.peek.header.audit_entry_id.0;
            (Arc::clone(shared), Actor::of(&bound.caller, entry))
        }),
    };
    admit(shared, link, bound, stop, queued, Work::Service(Box::new(work)));
    Ok(())
}

impl Service {
    async fn run(self: Box<Self>) {
        let mut message = Vec::new();
        self.context.begin(self.kind, &mut message);
        let answer_at = message.len();
        // The managers keep the deadline; this one is for a manager that does not.
        let slack = Duration::from_millis(100);
        let result = tokio::time::timeout(self.timeout.saturating_add(slack), self.ask(&mut message)).await;
        let result = result.unwrap_or(Err(StatusCode::BAD_TIMEOUT));
        if let Some((shared, actor)) = &self.audit {
            let status = result.err().unwrap_or(StatusCode::BAD_INTERNAL_ERROR);
            let answer = result.is_ok().then(|| message.get(answer_at..)).flatten();
            shared.audit_operations(self.kind, actor, &self.body, answer, status);
        }
        drop(self.guard);
        if let Some(reply) = self.registration.complete() {
            match result {
                Ok(()) => reply.send(message, None),
                Err(status) => reply.fault(status),
            }
        }
    }

    async fn ask(&self, message: &mut Vec<u8>) -> Result<(), StatusCode> {
        let cx = ServiceContext {
            call: &self.call,
            now: self.context.now,
            decode: self.decode,
            max_response_size: self.max_response_size,
        };
        match self.kind {
            RequestKind::Write => services::write_waiting(&self.snapshot, &cx, &self.body, message).await,
            RequestKind::Call => services::call_waiting(&self.snapshot, &cx, &self.body, message).await,
            _ => Err(StatusCode::BAD_INTERNAL_ERROR),
        }
    }
}
