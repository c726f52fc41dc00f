//! The task of one instance: its mailbox, one call at a time, its timers.
//!
//! Owns the order of calls and that each is answered. When another generation is to take over it holds: it finishes the call that runs, gives the guest's state away
//! and asks nothing more, while calls go on arriving in the mailbox; then the mailbox itself goes to the successor, or it goes on as if nothing had been. It must
//! not know restarts and why there is a reload: it ends, and says why.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use backplane_nodes::{CallContext, CallOutcome, Fault, WriteOperation};
use backplane_types::{DataValue, NodeId, StatusCode, Variant};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use crate::demand::{Demand, Watched};
use crate::instance::{Death, Handover, Instance};
use crate::reads::{self, Job};
use crate::state::{Cancelled, Clock};

/// Where the answer to one call goes.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, Fault>>;

/// One call for the guest.
pub(crate) struct Envelope {
    pub(crate) context: CallContext,
    pub(crate) cancelled: Cancelled,
    pub(crate) work: Work,
}

pub(crate) enum Work {
    Read {
        tags: Vec<u32>,
        max_age: f64,
        reply: Reply<Vec<DataValue>>,
        /// The runtime that waits for it.
        home: Option<Handle>,
    },
    Write {
        writes: Vec<WriteOperation>,
        reply: Reply<Vec<StatusCode>>,
    },
    Call {
        object: NodeId,
        tag: u32,
        inputs: Vec<Variant>,
        reply: Reply<CallOutcome>,
    },
    /// Die, to see what comes of it.
    Break,
}

/// What a supervisor has to say to the instance that serves; it comes before everything in the mailbox.
pub(crate) enum Control {
    /// Ask the guest nothing more, until `after` says what becomes of the mailbox. With `save`, its state first.
    Hold {
        save: bool,
        reply: oneshot::Sender<Result<Option<Handover>, Fault>>,
        after: oneshot::Receiver<oneshot::Sender<Inbox>>,
    },
}

impl Work {
    /// The variables or the method that it is about.
    fn tags(&self) -> impl Iterator<Item = u32> {
        let (reads, writes, method) = match self {
            Self::Read { tags, .. } => (tags.as_slice(), [].as_slice(), None),
            Self::Write { writes, .. } => ([].as_slice(), writes.as_slice(), None),
            Self::Call { tag, .. } => ([].as_slice(), [].as_slice(), Some(*tag)),
            Self::Break => ([].as_slice(), [].as_slice(), None),
        };
        let writes = writes.iter().map(|write| write.tag);
        reads.iter().copied().chain(writes).chain(method)
    }

    /// Answers without asking the guest.
    fn refuse(self, fault: Fault) {
        match self {
            Self::Read { reply, .. } => drop(reply.send(Err(fault))),
            Self::Write { reply, .. } => drop(reply.send(Err(fault))),
            Self::Call { reply, .. } => drop(reply.send(Err(fault))),
            Self::Break => {}
        }
    }
}

/// How a task has ended.
#[derive(Debug)]
pub(crate) enum Exit {
    /// Nobody can send it anything any more; everything sent before is answered.
    Stopped,
    /// The guest has trapped or has taken too long.
    Died(Death),
}

/// Serves until the mailbox has no sender any more, or the guest dies.
pub(crate) async fn serve(
    mut instance: Instance,
    mut inbox: Inbox,
    mut control: mpsc::Receiver<Control>,
    clock: Clock,
    watched: watch::Receiver<Watched>,
) -> Exit {
    let (per_second, most) = instance.demand_pace();
    let mut demand = Demand::new(watched, per_second, most);
    // What `start` has changed in the store counts from now on.
    let mut done = instance.keep().await;
    loop {
        if let Err(death) = done {
            inbox.inbox.close();
            while let Some(envelope) = inbox.waiting() {
                let reason = format!("not called: the plugin died before ({})", death.reason);
                envelope
                    .work
                    .refuse(Fault::new(StatusCode::BAD_NO_COMMUNICATION, reason));
            }
            return Exit::Died(death);
        }
        let serves = instance.is_serving();
        let due = if serves { instance.next_timer() } else { None };
        done = tokio::select! {
            biased;
            Some(order) = control.recv() => match hold(&mut instance, order).await {
                Ok(None) => Ok(()),
                Ok(Some(successor)) => {
                    // The successor is gone only if the host goes too.
                    let _ = successor.send(inbox);
                    return ending(instance).await;
                }
                Err(death) => Err(death),
            },
            message = inbox.next() => match message {
                Some(envelope) => handle(&mut instance, envelope, &mut inbox, &clock).await,
                None => break,
            },
            () = sleep_until(due.unwrap_or_else(far)), if due.is_some() => {
                // It may have been retired while it slept.
                if instance.is_serving() { instance.wake().await } else { Ok(()) }
            }
            () = demand.due(), if serves && instance.wants_demand() => {
                if instance.is_serving() { instance.demand(&demand.take(Instant::now())).await } else { Ok(()) }
            }
        };
    }
    ending(instance).await
}

async fn ending(mut instance: Instance) -> Exit {
    match instance.stop().await {
        Ok(()) => Exit::Stopped,
        Err(death) => Exit::Died(death),
    }
}

/// Gives the state away and waits for what comes of it: the mailbox goes to a successor, or (none) everything goes on.
async fn hold(instance: &mut Instance, order: Control) -> Result<Option<oneshot::Sender<Inbox>>, Death> {
    let Control::Hold { save, reply, after } = order;
    let state = if save { instance.save().await? } else { Ok(None) };
    // Whoever asked may have given up meanwhile: then `after` ends at once.
    let _ = reply.send(state);
    Ok(after.await.ok())
}

fn far() -> Instant {
    Instant::now() + Duration::from_secs(86_400)
}

/// The mailbox, with envelopes that were taken out of it to look at.
pub(crate) struct Inbox {
    inbox: mpsc::Receiver<Envelope>,
    ahead: VecDeque<Envelope>,
}

impl Inbox {
    pub(crate) fn new(inbox: mpsc::Receiver<Envelope>) -> Self {
        Self {
            inbox,
            ahead: VecDeque::new(),
        }
    }

    /// Refuses what waits for tags that do not mean what they meant when it was sent.
    pub(crate) fn keep_if(&mut self, same: impl Fn(u32) -> bool) {
        while let Ok(envelope) = self.inbox.try_recv() {
            self.ahead.push_back(envelope);
        }
        for envelope in std::mem::take(&mut self.ahead) {
            if envelope.work.tags().all(&same) {
                self.ahead.push_back(envelope);
            } else {
                let detail = "the plugin was replaced, and its tag is another node's now";
                envelope
                    .work
                    .refuse(Fault::new(StatusCode::BAD_NO_COMMUNICATION, detail));
            }
        }
    }

    /// The next one; none: there will be none. Nothing is lost when this is dropped.
    async fn next(&mut self) -> Option<Envelope> {
        match self.ahead.pop_front() {
            Some(envelope) => Some(envelope),
            None => self.inbox.recv().await,
        }
    }

    /// The next one, if it waits already.
    pub(crate) fn waiting(&mut self) -> Option<Envelope> {
        self.ahead.pop_front().or_else(|| self.inbox.try_recv().ok())
    }

    /// Makes an envelope that was taken out too early the next one.
    pub(crate) fn put_back(&mut self, envelope: Envelope) {
        self.ahead.push_front(envelope);
    }
}

impl Envelope {
    /// Gives the envelope back, unless it has waited too long: then nobody would see the answer, and a write would come as a surprise.
    pub(crate) fn in_time(self, clock: &Clock) -> Option<Self> {
        if clock().mono < self.context.deadline && !self.cancelled.load(Ordering::Relaxed) {
            return Some(self);
        }
        self.work.refuse(Fault::new(
            StatusCode::BAD_TIMEOUT,
            "waited for the plugin until its deadline",
        ));
        None
    }
}

/// Makes one call and answers it, and with it those behind it that ask for the same thing.
async fn handle(instance: &mut Instance, envelope: Envelope, inbox: &mut Inbox, clock: &Clock) -> Result<(), Death> {
    let Some(envelope) = envelope.in_time(clock) else {
        return Ok(());
    };
    let Envelope {
        context,
        cancelled,
        work,
    } = envelope;
    match work {
        Work::Break => Err(Death::unexpected("it was broken on purpose")),
        Work::Read {
            tags,
            max_age,
            reply,
            home,
        } => {
            let first = Job {
                context,
                cancelled,
                tags,
                max_age,
                reply,
                home,
            };
            reads::serve(instance, first, inbox, clock).await
        }
        Work::Write { writes, reply } => answer(reply, instance.write(context, cancelled.into(), writes).await),
        Work::Call {
            object,
            tag,
            inputs,
            reply,
        } => answer(
            reply,
            instance.call(context, cancelled.into(), &object, tag, inputs).await,
        ),
    }
}

/// Sends the answer, whether there is one or the guest has died over it.
pub(crate) fn answer<T>(reply: Reply<T>, outcome: Result<Result<T, Fault>, Death>) -> Result<(), Death> {
    match outcome {
        Ok(answer) => {
            drop(reply.send(answer));
            Ok(())
        }
        Err(death) => {
            drop(reply.send(Err(death.fault())));
            Err(death)
        }
    }
}
