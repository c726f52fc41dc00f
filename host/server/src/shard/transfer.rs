//! TransferSubscriptions between sessions, wherever they live (Part 4, 5.14.7).
//!
//! The shard of the new session keeps places, a task asks the shards of the old sessions one after the other, and what it got comes
//! back through the door as one command. In between a subscription belongs to that command alone: who asks for it meanwhile is told
//! `BadSubscriptionIdInvalid`.

use backplane_session::Detached;
use backplane_types::{Now, StatusCode, TransferResult, TransferSubscriptionsRequest, TransferSubscriptionsResponse};
use tokio::sync::oneshot;

use super::owner::Owner;
use super::serve::encoded;
use super::source::Source;
use super::task::Shard;
use super::{Command, ReplyTo, Shards};
use crate::link::Bound;
use crate::respond::Context;

/// What a shard gives up, or why it does not.
pub(super) type Surrendered = Result<Box<Detached<Source>>, StatusCode>;

/// Subscriptions that have been collected for a session.
#[derive(Debug)]
pub(super) struct Collected {
    pub(super) bound: Box<Bound>,
    pub(super) reply: ReplyTo,
    /// In the order of the request.
    pub(super) results: Vec<Collecting>,
    pub(super) send_initial_values: bool,
}

/// One subscription of the request.
#[derive(Debug)]
pub(super) enum Collecting {
    /// It was clear at once that it cannot be had.
    Refused(StatusCode),
    /// A place was kept for it.
    Asked(Surrendered),
}

/// A subscription to ask for: the session that has it.
enum Plan {
    Refused(StatusCode),
    Ask { subscription_id: u32, owner: u32 },
}

impl Shard {
    /// Starts a transfer. The response comes when everything has been collected.
    ///
    /// # Errors
    /// `BadNothingToDo`, `BadTooManyOperations`.
    pub(super) fn transfer(
        &mut self,
        bound: &Bound,
        reply: &ReplyTo,
        asked: &TransferSubscriptionsRequest,
    ) -> Result<(), StatusCode> {
        if asked.subscription_ids.is_empty() {
            return Err(StatusCode::BAD_NOTHING_TO_DO);
        }
        if asked.subscription_ids.len() > self.limits.max_operations {
            return Err(StatusCode::BAD_TOO_MANY_OPERATIONS);
        }
        let plans: Vec<Plan> = asked.subscription_ids.iter().map(|id| self.plan(bound, *id)).collect();
        let (claimant, bound, reply) = (Owner::of(bound), Box::new(bound.clone()), reply.clone());
        let (shards, door) = (self.shared.shards.clone(), self.door.own.clone());
        let send_initial_values = asked.send_initial_values;
        self.shared.runtime.spawn(async move {
            let mut results = Vec::with_capacity(plans.len());
            for plan in plans {
                results.push(match plan {
                    Plan::Refused(status) => Collecting::Refused(status),
                    Plan::Ask { subscription_id, owner } => {
                        Collecting::Asked(shards.surrender(owner, subscription_id, &claimant).await)
                    }
                });
            }
            // The shard ends only with the server.
            let _ = door.send(Command::Adopt(Collected {
                bound,
                reply,
                results,
                send_initial_values,
            }));
        });
        Ok(())
    }

    fn plan(&mut self, bound: &Bound, subscription_id: u32) -> Plan {
        let session = bound.session.handle.number();
        match self.registry.owner(subscription_id) {
            None => Plan::Refused(StatusCode::BAD_SUBSCRIPTION_ID_INVALID),
            Some(owner) if owner == session => Plan::Refused(StatusCode::BAD_NOTHING_TO_DO),
            Some(owner) => match self.entry(bound).subscriptions.reserve_place() {
                Ok(()) => Plan::Ask { subscription_id, owner },
                Err(status) => Plan::Refused(status),
            },
        }
    }

    /// Gives up a subscription to who may take it over.
    pub(super) fn surrender(&mut self, now: Now, session: u32, subscription_id: u32, claimant: &Owner) -> Surrendered {
        let unknown = StatusCode::BAD_SUBSCRIPTION_ID_INVALID;
        let entry = self.sessions.get_mut(&session).ok_or(unknown)?;
        if entry.subscriptions.state(subscription_id).is_none() {
            return Err(unknown);
        }
        entry.who.owner.yields_to(claimant)?;
        let detached = entry.subscriptions.detach_subscription(now, subscription_id)?;
        entry.places.remove(&subscription_id);
        self.settle(now, session);
        Ok(Box::new(detached))
    }

    /// Ends a transfer: what was collected joins its session, and the client is answered.
    pub(super) fn adopt(&mut self, now: Now, collected: Collected) {
        let Collected {
            bound,
            reply,
            results,
            send_initial_values,
        } = collected;
        let session = bound.session.handle.number();
        let entry = self.entry(&bound);
        let adopt = |result: Collecting| match result {
            Collecting::Refused(status_code) => failed(status_code),
            Collecting::Asked(surrendered) => {
                entry.subscriptions.free_place();
                match surrendered {
                    Ok(detached) => {
                        tracing::info!(
                            session,
                            subscription = detached.subscription_id(),
                            "subscription transferred"
                        );
                        TransferResult {
                            status_code: StatusCode::GOOD,
                            available_sequence_numbers: entry.subscriptions.adopt_subscription(
                                now,
                                *detached,
                                send_initial_values,
                            ),
                        }
                    }
                    Err(status_code) => failed(status_code),
                }
            }
        };
        let results = results.into_iter().map(adopt).collect();
        self.watch_meanings(now, session);
        let context = Context {
            now,
            request_handle: reply.request_handle,
        };
        reply.send(
            encoded(&TransferSubscriptionsResponse {
                response_header: context.header(),
                results,
                diagnostic_infos: Vec::new(),
            }),
            None,
        );
        // The session may have ended meanwhile: then they wait for the next one.
        if bound.session.handle.is_closed() {
            self.abandon(now, session);
        } else {
            self.settle(now, session);
        }
    }
}

fn failed(status_code: StatusCode) -> TransferResult {
    TransferResult {
        status_code,
        available_sequence_numbers: Vec::new(),
    }
}

impl Shards {
    /// Asks the shard of a session for one of its subscriptions.
    async fn surrender(&self, session: u32, subscription_id: u32, claimant: &Owner) -> Surrendered {
        let (done, answer) = oneshot::channel();
        self.tell(
            session,
            Command::Surrender {
                session,
                subscription_id,
                claimant: Box::new(claimant.clone()),
                done,
            },
        )?;
        answer.await.unwrap_or(Err(StatusCode::BAD_SERVER_HALTED))
    }
}
