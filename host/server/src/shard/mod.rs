//! Subscriptions live in shards: each is owned by one task, so that nothing in them is locked.
//!
//! Owns the doors: which shard a session belongs to, what can be asked of it, and the way back to the client. What a
//! subscription is belongs to the session crate; where values come from, to [`source`].

mod asking;
mod demand;
mod durable;
mod events;
mod meaning;
mod methods;
mod owner;
mod serve;
mod source;
mod task;
mod transfer;
mod watches;

use std::sync::Arc;
use std::time::Duration;

use backplane_session::{DurableLimits, Limits, SampleKey, SubscriptionRegistry};
use backplane_types::{
    CreateMonitoredItemsRequest, CreateSubscriptionRequest, DataValue, DeleteMonitoredItemsRequest,
    DeleteSubscriptionsRequest, ModifyMonitoredItemsRequest, ModifySubscriptionRequest, RepublishRequest,
    SetMonitoringModeRequest, SetPublishingModeRequest, SetTriggeringRequest, StatusCode, TransferSubscriptionsRequest,
    Variant,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

pub(crate) use durable::Kept;
use events::Lane;
pub(crate) use events::{Audience, Happened};
pub(crate) use task::run;

use self::demand::DemandBoard;
use self::owner::{Abandoned, Owner};
use self::transfer::{Collected, Surrendered};
use crate::admission::Held;
use crate::config::ServerLimits;
use crate::link::{Answer, Bound, Outbound, OutboundSender};

/// The queue of an event item whose client leaves its size to the server.
const DEFAULT_EVENT_QUEUE: u32 = 1_000;

/// The way back to the client of one request.
#[derive(Debug, Clone)]
pub(crate) struct ReplyTo {
    pub(crate) connection: u64,
    pub(crate) request_id: u32,
    pub(crate) request_handle: u32,
    pub(crate) outbound: OutboundSender,
}

impl ReplyTo {
    /// Sends the whole response message; what the request `held` goes back when it is sealed.
    fn send(&self, message: Vec<u8>, held: Option<Held>) {
        // The connection may be gone: then nobody waits for the answer, and messages stay for Republish.
        let _ = self.outbound.send(Outbound {
            answer: Answer::One {
                request_id: self.request_id,
                message,
            },
            activated: None,
            held: held.into_iter().collect(),
        });
    }
}

/// A request for subscriptions.
#[derive(Debug)]
pub(crate) enum Work {
    Publish {
        acknowledgements: Vec<(u32, u32)>,
        deadline: Option<Duration>,
    },
    Republish(RepublishRequest),
    CreateSubscription(CreateSubscriptionRequest),
    ModifySubscription(ModifySubscriptionRequest),
    DeleteSubscriptions(DeleteSubscriptionsRequest),
    SetPublishingMode(SetPublishingModeRequest),
    CreateMonitoredItems(CreateMonitoredItemsRequest),
    ModifyMonitoredItems(ModifyMonitoredItemsRequest),
    DeleteMonitoredItems(DeleteMonitoredItemsRequest),
    SetMonitoringMode(SetMonitoringModeRequest),
    SetTriggering(SetTriggeringRequest),
    TransferSubscriptions(TransferSubscriptionsRequest),
    /// Answered with `already` plus the Publish requests that it ended.
    Cancel {
        request_handle: u32,
        already: u32,
    },
}

impl Work {
    /// Whether it may change which variables are monitored, or how fast.
    fn changes_demand(&self) -> bool {
        matches!(
            self,
            Self::DeleteSubscriptions(_)
                | Self::CreateMonitoredItems(_)
                | Self::ModifyMonitoredItems(_)
                | Self::DeleteMonitoredItems(_)
                | Self::SetMonitoringMode(_)
        )
    }
}

/// What a shard is told.
#[derive(Debug)]
enum Command {
    Request {
        bound: Box<Bound>,
        reply: ReplyTo,
        work: Box<Work>,
        held: Option<Held>,
    },
    SessionClosed {
        session: u32,
        delete: bool,
    },
    ConnectionClosed {
        connection: u64,
    },
    /// The server is about to stop: every waiting Publish request is answered, then `done` is told.
    /// With what is to be saved.
    Halt {
        done: oneshot::Sender<Vec<Kept>>,
    },
    /// A durable subscription comes back, for a session that there is not.
    Restore {
        session: u32,
        kept: Box<Kept>,
        away: Duration,
        /// It, where it cannot come back now.
        done: oneshot::Sender<Option<Kept>>,
    },
    /// A session wants one of another's subscriptions.
    Surrender {
        session: u32,
        subscription_id: u32,
        claimant: Box<Owner>,
        done: oneshot::Sender<Surrendered>,
    },
    /// What was collected for a session.
    Adopt(Collected),
    /// A method of the Server object.
    Method {
        session: u32,
        subscription_id: u32,
        ask: methods::Ask,
        done: oneshot::Sender<Result<Vec<Variant>, StatusCode>>,
    },
    /// Something happened that somebody in the shard listens to.
    Happened(Arc<Happened>),
    /// Answers of managers for on-demand variables, by session.
    Samples(Vec<(u32, Vec<(SampleKey, DataValue)>)>),
}

/// The doors to all shards. Unbounded in type only: every request has a place, everything else is one of a bounded kind.
#[derive(Debug, Clone)]
pub(crate) struct Shards {
    doors: Arc<[UnboundedSender<Command>]>,
    registry: Arc<SubscriptionRegistry>,
    abandoned: Arc<Abandoned>,
    /// One for each door.
    lanes: Vec<Arc<Lane>>,
}

/// The inner side of a door.
pub(crate) struct Door {
    /// Which of the shards it leads to.
    number: usize,
    demand: Arc<DemandBoard>,
    commands: UnboundedReceiver<Command>,
    /// For answers that tasks of the shard bring back.
    own: UnboundedSender<Command>,
    lane: Arc<Lane>,
}

impl Shards {
    /// Doors to `count` shards; each [`Door`] is for one [`run`].
    pub(crate) fn new(count: usize, limits: &ServerLimits, registry: Arc<SubscriptionRegistry>) -> (Self, Vec<Door>) {
        let demand = DemandBoard::new(count.max(1));
        let lanes: Vec<Arc<Lane>> = (0..count.max(1)).map(|_| Arc::default()).collect();
        let (doors, inner): (Vec<_>, _) = lanes
            .iter()
            .enumerate()
            .map(|(number, lane)| {
                let (own, commands) = unbounded_channel();
                let door = Door {
                    number,
                    demand: Arc::clone(&demand),
                    commands,
                    own: own.clone(),
                    lane: Arc::clone(lane),
                };
                (own, door)
            })
            .unzip();
        let shards = Self {
            doors: doors.into(),
            lanes,
            registry,
            abandoned: Abandoned::new(limits.subscriptions_per_session, limits.abandoned_subscriptions),
        };
        (shards, inner)
    }

    fn door(&self, session: u32) -> Option<&UnboundedSender<Command>> {
        self.doors.get(session as usize % self.doors.len().max(1))
    }

    fn tell(&self, session: u32, command: Command) -> Result<(), StatusCode> {
        let door = self.door(session).ok_or(StatusCode::BAD_INTERNAL_ERROR)?;
        // A shard ends only when the server stops.
        door.send(command).map_err(|_| StatusCode::BAD_SERVER_HALTED)
    }

    /// Hands a request over.
    ///
    /// # Errors
    /// `BadServerHalted` when the server stops.
    pub(crate) fn request(&self, bound: &Bound, reply: ReplyTo, work: Work, held: Held) -> Result<(), StatusCode> {
        let session = bound.session.handle.number();
        self.tell(
            session,
            Command::Request {
                bound: Box::new(bound.clone()),
                reply,
                work: Box::new(work),
                held: Some(held),
            },
        )
    }

    /// Ends the Publish requests of a session with a handle and answers the Cancel request.
    ///
    /// # Errors
    /// `BadServerHalted` when the server stops.
    pub(crate) fn cancel(
        &self,
        bound: &Bound,
        reply: ReplyTo,
        request_handle: u32,
        already: u32,
    ) -> Result<(), StatusCode> {
        let work = Box::new(Work::Cancel {
            request_handle,
            already,
        });
        self.tell(
            bound.session.handle.number(),
            Command::Request {
                bound: Box::new(bound.clone()),
                reply,
                work,
                held: None,
            },
        )
    }

    /// Whether there is an event item in any shard.
    pub(crate) fn anybody_listens(&self) -> bool {
        self.lanes.iter().any(|lane| lane.has_items())
    }

    /// Sends an event to every shard in which somebody listens.
    pub(crate) fn happened(&self, event: &Arc<Happened>) {
        for (lane, door) in self.lanes.iter().zip(self.doors.iter()) {
            if lane.has_items() && lane.enter(event) {
                // A shard that has ended has no clients.
                let _ = door.send(Command::Happened(Arc::clone(event)));
            }
        }
    }

    /// Events that full shards have lost since the start.
    pub(crate) fn lost_events(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.lost()).sum()
    }

    /// A session is over; without `delete` its subscriptions live on until their lifetime ends.
    pub(crate) fn session_closed(&self, session: u32, delete: bool) {
        // When the shard has ended, its subscriptions have too.
        let _ = self.tell(session, Command::SessionClosed { session, delete });
    }

    /// Answers every waiting Publish request `BadServerHalted`, and gives the durable subscriptions.
    pub(crate) async fn halt(&self) -> Vec<Kept> {
        let mut halted = Vec::with_capacity(self.doors.len());
        for door in self.doors.iter() {
            let (done, answer) = oneshot::channel();
            if door.send(Command::Halt { done }).is_ok() {
                halted.push(answer);
            }
        }
        let mut kept = Vec::new();
        for answer in halted {
            // A shard that has ended has answered before.
            kept.extend(answer.await.unwrap_or_default());
        }
        kept
    }

    /// Brings durable subscriptions back that were gone for `away`, before there are sessions. Those that cannot come back now are the answer.
    pub(crate) async fn restore(&self, kept: Vec<Kept>, away: Duration) -> Vec<Kept> {
        let mut not_now = Vec::new();
        // Sessions are numbered from the other end.
        for (session, kept) in (0..=u32::MAX).rev().zip(kept) {
            let (done, restored) = oneshot::channel();
            let kept = Box::new(kept);
            let command = Command::Restore {
                session,
                kept,
                away,
                done,
            };
            if self.tell(session, command).is_ok() {
                not_now.extend(restored.await.ok().flatten());
            }
        }
        not_now
    }

    /// A connection is over: its Publish requests are answered by nobody.
    pub(crate) fn connection_closed(&self, connection: u64) {
        for door in self.doors.iter() {
            let _ = door.send(Command::ConnectionClosed { connection });
        }
    }
}

/// The limits of subscriptions, from those of the server.
pub(crate) fn limits(server: &ServerLimits) -> Limits {
    let mut limits = Limits {
        max_subscriptions: server.subscriptions_per_session as usize,
        max_monitored_items: server.monitored_items_per_subscription as usize,
        max_operations: server.operations_per_request as usize,
        durable: DurableLimits {
            max_lifetime_hours: server.durable_lifetime_hours,
            max_queue_size: server.durable_queue,
            max_subscriptions: server.durable_subscriptions_per_session as usize,
            max_values: server.durable_values_per_subscription,
        },
        max_publish_requests: server.publish_requests_per_session as usize,
        max_queue_size: server.monitored_item_queue,
        max_event_queue_size: server.event_queue,
        default_event_queue_size: DEFAULT_EVENT_QUEUE.min(server.event_queue),
        min_publishing_interval: server.publishing_interval,
        min_sampling_interval: server.sampling_interval,
        min_processing_interval: server.processing_interval,
        ..Limits::default()
    };
    server.sampling.apply(&mut limits);
    limits
}
