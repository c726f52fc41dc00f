//! The task of one instance: its mailbox, one call at a time, its timers.
//!
//! Owns the order of calls and that each is answered. It must not know restarts and reloads: it ends, and says why.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use backplane_nodes::{CallContext, CallOutcome, Fault, WriteOperation};
use backplane_types::{DataValue, NodeId, StatusCode, Variant};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::instance::{Death, Handover, Instance};
use crate::state::Clock;

/// Set when nobody waits for an answer any more.
pub(crate) type Cancelled = Arc<AtomicBool>;

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
pub(crate) async fn serve(mut instance: Instance, mut inbox: mpsc::Receiver<Envelope>, clock: Clock) -> Exit {
    loop {
        let due = if instance.is_serving() {
            instance.next_timer()
        } else {
            None
        };
        let done = tokio::select! {
            message = inbox.recv() => match message {
                Some(envelope) => handle(&mut instance, envelope, &clock).await,
                None => break,
            },
            () = sleep_until(due.unwrap_or_else(far)), if due.is_some() => {
                // It may have been retired while it slept.
                if instance.is_serving() { instance.wake().await } else { Ok(()) }
            }
        };
        if let Err(death) = done {
            inbox.close();
            while let Ok(envelope) = inbox.try_recv() {
                let reason = format!("not called: the plugin died before ({})", death.reason);
                envelope
                    .work
                    .refuse(Fault::new(StatusCode::BAD_NO_COMMUNICATION, reason));
            }
            return Exit::Died(death);
        }
    }
    match instance.stop().await {
        Ok(()) => Exit::Stopped,
        Err(death) => Exit::Died(death),
    }
}

fn far() -> Instant {
    Instant::now() + Duration::from_secs(86_400)
}

/// Makes one call and answers it.
async fn handle(instance: &mut Instance, envelope: Envelope, clock: &Clock) -> Result<(), Death> {
    let Envelope {
        context,
        cancelled,
        work,
    } = envelope;
    // It has waited too long already: nobody would see the answer, and a write would come as a surprise.
    if clock().mono >= context.deadline || cancelled.load(Ordering::Relaxed) {
        work.refuse(Fault::new(
            StatusCode::BAD_TIMEOUT,
            "waited for the plugin until its deadline",
        ));
        return Ok(());
    }
    match work {
        Work::Save { reply } => answer(reply, instance.save().await.map(Ok)),
        Work::Read { tags, max_age, reply } => answer(reply, instance.read(context, cancelled, &tags, max_age).await),
        Work::Write { writes, reply } => answer(reply, instance.write(context, cancelled, writes).await),
        Work::Call {
            object,
            tag,
            inputs,
            reply,
        } => answer(reply, instance.call(context, cancelled, &object, tag, inputs).await),
    }
}

/// Sends the answer, whether there is one or the guest has died over it.
fn answer<T>(reply: Reply<T>, outcome: Result<Result<T, Fault>, Death>) -> Result<(), Death> {
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
