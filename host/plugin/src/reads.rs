//! Reads that wait for the same instance, made into one call: crossing into a guest costs more than a tag does.
//!
//! Owns which reads belong together and who gets which values. It must not know why they are asked.

use std::sync::Arc;
use std::time::Duration;

use backplane_nodes::{CallContext, Fault};
use backplane_types::DataValue;

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
}

/// A read that goes along in the call of another one.
struct Rider {
    count: usize,
    reply: Reply<Vec<DataValue>>,
}

/// Reads for `first`, and for those of the same caller that wait right behind it, up to the limits. Nothing is overtaken.
pub(crate) async fn serve(instance: &mut Instance, first: Job, inbox: &mut Inbox, clock: &Clock) -> Result<(), Death> {
    let (jobs, most) = instance.merging();
    let Job {
        mut context,
        cancelled,
        mut tags,
        max_age,
        reply,
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
        match fitting(envelope, &context, max_age, left) {
            Ok(job) => {
                later(&mut context, &job.context);
                waiters.add(job.cancelled);
                tags.extend_from_slice(&job.tags);
                riders.push(Rider {
                    count: job.tags.len(),
                    reply: job.reply,
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
    share(Rider { count: own, reply }, riders, outcome)
}

/// The envelope as a job for the same call, or back.
fn fitting(envelope: Envelope, call: &CallContext, max_age: f64, left: usize) -> Result<Job, Box<Envelope>> {
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
        } if age.to_bits() == max_age.to_bits() && tags.len() <= left && alike(&context, call) => Ok(Job {
            context,
            cancelled,
            tags,
            max_age,
            reply,
        }),
        work => Err(Box::new(Envelope {
            context,
            cancelled,
            work,
        })),
    }
}

/// Whether a guest that asks about its caller gets the same answers for both, but for a deadline that is a little later.
fn alike(one: &CallContext, other: &CallContext) -> bool {
    Arc::ptr_eq(&one.caller, &other.caller)
        && one.internal == other.internal
        && one.trace_parent == other.trace_parent
        && one.deadline.abs_diff(other.deadline) <= CLOSE
}

fn later(call: &mut CallContext, other: &CallContext) {
    if other.deadline > call.deadline {
        call.deadline = other.deadline;
        call.deadline_utc = other.deadline_utc;
    }
}

/// Gives each its part of the answer; a fault is everybody's.
fn share(first: Rider, riders: Vec<Rider>, outcome: Result<Result<Vec<DataValue>, Fault>, Death>) -> Result<(), Death> {
    let all = std::iter::once(first).chain(riders);
    let values = match outcome {
        Ok(Ok(values)) => values,
        Ok(Err(fault)) => {
            all.for_each(|rider| drop(rider.reply.send(Err(fault.clone()))));
            return Ok(());
        }
        Err(death) => {
            all.for_each(|rider| drop(rider.reply.send(Err(death.fault()))));
            return Err(death);
        }
    };
    let mut values = values.into_iter();
    for rider in all {
        let part = values.by_ref().take(rider.count).collect();
        drop(rider.reply.send(Ok(part)));
    }
    Ok(())
}
