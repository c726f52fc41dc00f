//! The task of one instance: its mailbox, one call at a time, its timers.
//!
//! Owns the order of calls and that each is answered. It must not know restarts and reloads: it ends, and says why.

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
    /// State for the next generation.
    Save {
        reply: Reply<Result<Option<Handover>, Fault>>,
    },
}

impl Work {
    /// Answers without asking the guest.
    fn refuse(self, fault: Fault) {
        match self {
            Self::Read { reply, .. } => drop(reply.send(Err(fault))),
            Self::Write { reply, .. } => drop(reply.send(Err(fault))),
            Self::Call { reply, .. } => drop(reply.send(Err(fault))),
            Self::Save { reply } => drop(reply.send(Err(fault))),
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
    inbox: mpsc::Receiver<Envelope>,
    clock: Clock,
    watched: watch::Receiver<Watched>,
) -> Exit {
    let mut inbox = Inbox { inbox, ahead: None };
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
    match instance.stop().await {
        Ok(()) => Exit::Stopped,
        Err(death) => Exit::Died(death),
    }
}

fn far() -> Instant {
    Instant::now() + Duration::from_secs(86_400)
}

/// The mailbox, of which one envelope may have been taken out to look at.
pub(crate) struct Inbox {
    inbox: mpsc::Receiver<Envelope>,
    ahead: Option<Envelope>,
}

impl Inbox {
    /// The next one; none: there will be none. Nothing is lost when this is dropped.
    async fn next(&mut self) -> Option<Envelope> {
        match self.ahead.take() {
            Some(envelope) => Some(envelope),
            None => self.inbox.recv().await,
        }
    }

    /// The next one, if it waits already.
    pub(crate) fn waiting(&mut self) -> Option<Envelope> {
        self.ahead.take().or_else(|| self.inbox.try_recv().ok())
    }

    /// Makes an envelope that was taken out too early the next one.
    pub(crate) fn put_back(&mut self, envelope: Envelope) {
        self.ahead = Some(envelope);
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
        Work::Save { reply } => answer(reply, instance.save().await.map(Ok)),
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
