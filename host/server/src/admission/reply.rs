//! The way back to the client for one request that waits, taken by whoever ends the request.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Arc, OnceLock};

use backplane_queue::fair::{FairQueue, Ticket};
use backplane_queue::isolation::Lease;
use backplane_types::StatusCode;
use tokio::sync::Notify;

use super::Job;
use crate::clock::Clock;
use crate::link::{Answer, Outbound, OutboundSender};
use crate::respond::Context;

/// What a waiting request holds until its answer is sealed, so that a client that does not read is charged for it.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) leases: [Option<Lease>; 2],
    pub(crate) place: Option<Place>,
}

/// A request's place among those of its connection that wait; given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<AtomicUsize>,
    count: usize,
}

impl Place {
    /// Takes one of `limit` places.
    pub(crate) fn take(places: &Arc<AtomicUsize>, limit: usize) -> Option<Self> {
        let taken = places.try_update(Ordering::AcqRel, Ordering::Acquire, |used| {
            (used < limit).then_some(used + 1)
        });
        taken.ok().map(|_| Self {
            places: Arc::clone(places),
            count: 1,
        })
    }

    /// Takes one more for the same holder. False when there is none.
    pub(crate) fn grow(&mut self, limit: usize) -> bool {
        let taken = self
            .places
            .try_update(Ordering::AcqRel, Ordering::Acquire, |used| {
                (used < limit).then_some(used + 1)
            })
            .is_ok();
        self.count += usize::from(taken);
        taken
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.fetch_sub(self.count, Ordering::AcqRel);
    }
}

/// What the requests of one piece of work have in common: the way back, and who waits. Tells a worker that nobody waits for its work any more, and takes
/// the work out of the queue when it is still there.
pub(crate) struct Stop {
    clock: Clock,
    outbound: OutboundSender,
    left: AtomicUsize,
    nobody: Notify,
    queued: OnceLock<(Arc<FairQueue<Job>>, Ticket)>,
}

impl fmt::Debug for Stop {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Stop")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl Stop {
    /// For work that nobody waits for yet.
    pub(crate) fn new(clock: Clock, outbound: OutboundSender) -> Arc<Self> {
        Arc::new(Self {
            clock,
            outbound,
            left: AtomicUsize::new(0),
            nobody: Notify::new(),
            queued: OnceLock::new(),
        })
    }

    /// The work is in the queue, whole: no more requests will be part of it.
    pub(crate) fn queued(&self, queue: &Arc<FairQueue<Job>>, ticket: Ticket) {
        // It is set once: work is queued once.
        let _ = self.queued.set((Arc::clone(queue), ticket));
        // Between "it is in the queue" and "nobody waits": who ended the last request sees the first, or is seen here.
        fence(Ordering::SeqCst);
        if self.is_over() {
            self.leave_queue();
        }
    }

    fn one_less(&self) {
        if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.nobody.notify_one();
            fence(Ordering::SeqCst);
            self.leave_queue();
        }
    }

    fn is_over(&self) -> bool {
        self.left.load(Ordering::SeqCst) == 0
    }

    /// Work that a worker has taken is not there any more; that worker stops by itself.
    fn leave_queue(&self) {
        if let Some((queue, ticket)) = self.queued.get() {
            drop(queue.cancel(*ticket));
        }
    }

    /// Ready when all requests of the work were answered by others.
    pub(crate) async fn nobody_waits(&self) {
        // A request may have ended before the next one became part of the same work.
        while !self.is_over() {
            self.nobody.notified().await;
        }
    }
}

/// What answers one waiting request. One that is dropped unanswered, because its work panicked, answers BadInternalError. Small, as it goes into the
/// table of waiting requests and out again.
#[derive(Debug)]
pub(crate) struct Reply {
    request_id: u32,
    request_handle: u32,
    /// Nobody has answered.
    open: bool,
    stop: Arc<Stop>,
    /// Goes along with the answer.
    held: Option<Box<Held>>,
}

impl Reply {
    /// For a request that is part of the work of `stop`. `held`: what it holds itself.
    pub(crate) fn new(request_id: u32, request_handle: u32, stop: &Arc<Stop>, held: Option<Box<Held>>) -> Self {
        stop.left.fetch_add(1, Ordering::AcqRel);
        Self {
            request_id,
            request_handle,
            open: true,
            stop: Arc::clone(stop),
            held,
        }
    }

    pub(crate) fn request_handle(&self) -> u32 {
        self.request_handle
    }

    pub(crate) fn request_id(&self) -> u32 {
        self.request_id
    }

    /// Answers with a whole message.
    pub(crate) fn send(mut self, message: Vec<u8>, activated: Option<crate::link::Activated>) {
        self.answer(message, activated);
    }

    /// Answers with a fault.
    pub(crate) fn fault(mut self, status: StatusCode) {
        let message = self.fault_message(status);
        self.answer(message, None);
    }

    /// Answers with a fault in place of the worker, who may stop.
    pub(crate) fn end(self, status: StatusCode) {
        let stop = Arc::clone(&self.stop);
        self.fault(status);
        stop.one_less();
    }

    /// Takes what answers away: somebody sends the answer together with others.
    pub(crate) fn defuse(mut self) {
        self.open = false;
    }

    /// A whole ServiceFault for this request.
    pub(crate) fn fault_message(&self, status: StatusCode) -> Vec<u8> {
        let context = Context {
            now: self.stop.clock.now(),
            request_handle: self.request_handle,
        };
        context.fault_message(status)
    }

    fn answer(&mut self, message: Vec<u8>, activated: Option<crate::link::Activated>) {
        if !std::mem::take(&mut self.open) {
            return;
        }
        // The connection may be gone; then nobody waits for the answer.
        let _ = self.stop.outbound.send(Outbound {
            answer: Answer::One {
                request_id: self.request_id,
                message,
            },
            activated,
            held: self.held.take().map(|held| *held).into_iter().collect(),
        });
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if self.open {
            let message = self.fault_message(StatusCode::BAD_INTERNAL_ERROR);
            self.answer(message, None);
        }
    }
}
