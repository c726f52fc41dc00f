//! Reads that wait for the same instance, made into one call: crossing into a guest costs more than a tag does.
//!
//! Owns which reads belong together and who gets which values. It must not know why they are asked.

use std::sync::Arc;
use std::time::Duration;

use backplane_nodes::{CallContext, Fault};
use backplane_types::DataValue;
use tokio::runtime::Handle;

use crate::actor::{Envelope, Inbox, Reply, Work, answer};
use crate::instance::{Death, Instance};
use crate::state::{Cancelled, Clock, Waiters};

/// Deadlines that lie no further apart are one to a guest: it is told the latest, and whoever has an earlier one stops waiting by itself.
const CLOSE: Duration = Duration::from_millis(100);

/// One read.
pub(crate) struct Job {
    pub(crate) context: CallContext,
    pub(crate) cancelled: Cancelled,
    pub(crate) tags: Vec<u32>,
    pub(crate) max_age: f64,
    pub(crate) reply: Reply<Vec<DataValue>>,
    /// The runtime that waits for it.
    pub(crate) home: Option<Handle>,
}

/// Who gets a part of a call's answer.
struct Rider {
    count: usize,
    reply: Reply<Vec<DataValue>>,
    home: Option<Handle>,
}

/// Reads for `first`, and for those that wait right behind it, up to the limits: those of the same caller, or of all callers if the guest cannot tell
/// them apart. Nothing is overtaken.
pub(crate) async fn serve(instance: &mut Instance, first: Job, inbox: &mut Inbox, clock: &Clock) -> Result<(), Death> {
    let (jobs, most) = instance.merging();
    let asks_who = instance.asks_who();
    let Job {
        mut context,
        cancelled,
        mut tags,
        max_age,
        reply,
        home,
    } = first;
    let own = tags.len();
    let mut waiters = Waiters::from(cancelled);
    let mut riders = Vec::new();
    while riders.len().saturating_add(1) < jobs {
        let Some(envelope) = inbox.waiting() else { break };
        let Some(envelope) = envelope.in_time(clock) else {
            continue;
        };
        let left = most.saturating_sub(tags.len());
        let fits = |other: &CallContext| is_close(other, &context) && (!asks_who || is_same_caller(other, &context));
        match fitting(envelope, fits, max_age, left) {
            Ok(job) => {
                later(&mut context, &job.context);
                waiters.add(job.cancelled);
                tags.extend_from_slice(&job.tags);
                riders.push(Rider {
                    count: job.tags.len(),
                    reply: job.reply,
                    home: job.home,
                });
            }
            Err(other) => {
                inbox.put_back(*other);
                break;
            }
        }
    }
    let outcome = instance.read(context, waiters, &tags, max_age).await;
    if riders.is_empty() {
        return answer(reply, outcome);
    }
    let first = Rider {
        count: own,
        reply,
        home,
    };
    share(first, riders, outcome)
}

/// The envelope as a job for the same call, or back.
fn fitting(
    envelope: Envelope,
    fits: impl FnOnce(&CallContext) -> bool,
    max_age: f64,
    left: usize,
) -> Result<Job, Box<Envelope>> {
    let Envelope {
        context,
        cancelled,
        work,
    } = envelope;
    match work {
        Work::Read {
            tags,
            max_age: age,
            reply,
            home,
        } if age.to_bits() == max_age.to_bits() && tags.len() <= left && fits(&context) => Ok(Job {
            context,
            cancelled,
            tags,
            max_age,
            reply,
            home,
        }),
        work => Err(Box::new(Envelope {
            context,
            cancelled,
            work,
        })),
    }
}

/// Whether a guest that asks about its caller gets the same answers for both.
fn is_same_caller(one: &CallContext, other: &CallContext) -> bool {
    Arc::ptr_eq(&one.caller, &other.caller) && one.internal == other.internal && one.trace_parent == other.trace_parent
}

/// Whether one of the two deadlines is no more than a little later.
fn is_close(one: &CallContext, other: &CallContext) -> bool {
    one.deadline.abs_diff(other.deadline) <= CLOSE
}

fn later(call: &mut CallContext, other: &CallContext) {
    if other.deadline > call.deadline {
        call.deadline = other.deadline;
        call.deadline_utc = other.deadline_utc;
    }
}

/// Gives each its part of the answer; a fault is everybody's.
fn share(first: Rider, riders: Vec<Rider>, outcome: Result<Result<Vec<DataValue>, Fault>, Death>) -> Result<(), Death> {
    let home = first.home.clone();
    let all = std::iter::once(first).chain(riders);
    let (outcome, end) = match outcome {
        Ok(outcome) => (outcome, Ok(())),
        Err(death) => (Err(death.fault()), Err(death)),
    };
    let deliver = move || match outcome {
        Ok(values) => {
            let mut values = values.into_iter();
            for rider in all {
                let part = values.by_ref().take(rider.count).collect();
                drop(rider.reply.send(Ok(part)));
            }
        }
        Err(fault) => all.for_each(|rider| drop(rider.reply.send(Err(fault.clone())))),
    };
    match home {
        // Those who wait are tasks of another runtime: it is woken once, and not for each of them.
        Some(home) => drop(home.spawn(async move { deliver() })),
        None => deliver(),
    }
    end
}
