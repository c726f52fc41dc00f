//! Subscriptions live in shards: each is owned by one task, so that nothing in them is locked.
//!
//! Owns the doors: which shard a session belongs to, what can be asked of it, and the way back to the client. What a
//! subscription is belongs to the session crate; where values come from, to [`source`].

mod serve;
mod source;
mod task;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use backplane_session::{Limits, SampleKey};
use backplane_types::{
    CreateMonitoredItemsRequest, CreateSubscriptionRequest, DataValue, DeleteMonitoredItemsRequest,
    DeleteSubscriptionsRequest, ModifyMonitoredItemsRequest, ModifySubscriptionRequest, RepublishRequest,
    SetMonitoringModeRequest, SetPublishingModeRequest, StatusCode,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

pub(crate) use task::run;

use crate::config::ServerLimits;
use crate::link::{Bound, Outbound, OutboundSender};

/// The way back to the client of one request.
#[derive(Debug, Clone)]
pub(crate) struct ReplyTo {
    pub(crate) connection: u64,
    pub(crate) request_id: u32,
    pub(crate) request_handle: u32,
    pub(crate) outbound: OutboundSender,
}

impl ReplyTo {
    /// Sends the whole response message.
    fn send(&self, message: Vec<u8>) {
        // The connection may be gone: then nobody waits for the answer, and messages stay for Republish.
        let _ = self.outbound.send(Outbound {
            request_id: self.request_id,
            message,
            waited: false,
            activated: None,
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
    /// Answered with `already` plus the Publish requests that it ended.
    Cancel {
        request_handle: u32,
        already: u32,
    },
}

/// A request's place on its way to a shard; given back when the shard has taken it up.
#[derive(Debug)]
pub(crate) struct Place(Arc<AtomicUsize>);

impl Place {
    /// Takes one of `limit` places.
    pub(crate) fn take(places: &Arc<AtomicUsize>, limit: usize) -> Option<Self> {
        let taken = places.try_update(Ordering::AcqRel, Ordering::Acquire, |used| {
            (used < limit).then_some(used + 1)
        });
        taken.ok().map(|_| Self(Arc::clone(places)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What a shard is told.
#[derive(Debug)]
enum Command {
    Request {
        bound: Box<Bound>,
        reply: ReplyTo,
        work: Box<Work>,
        place: Option<Place>,
    },
    SessionClosed {
        session: u32,
        delete: bool,
    },
    ConnectionClosed {
        connection: u64,
    },
    /// Answers of managers for on-demand variables.
    Samples {
        session: u32,
        samples: Vec<(SampleKey, DataValue)>,
    },
}

/// The doors to all shards. Unbounded in type only: every request has a [`Place`], everything else is one of a bounded kind.
#[derive(Debug)]
pub(crate) struct Shards {
    doors: Vec<UnboundedSender<Command>>,
}

/// The inner side of a door.
pub(crate) struct Door {
    commands: UnboundedReceiver<Command>,
    /// For answers that tasks of the shard bring back.
    own: UnboundedSender<Command>,
}

impl Shards {
    /// Doors to `count` shards; each [`Door`] is for one [`run`].
    pub(crate) fn new(count: usize) -> (Self, Vec<Door>) {
        let (doors, inner) = (0..count.max(1))
            .map(|_| {
                let (own, commands) = unbounded_channel();
                (own.clone(), Door { commands, own })
            })
            .unzip();
        (Self { doors }, inner)
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
    pub(crate) fn request(&self, bound: &Bound, reply: ReplyTo, work: Work, place: Place) -> Result<(), StatusCode> {
        let session = bound.session.handle.number();
        self.tell(
            session,
            Command::Request {
                bound: Box::new(bound.clone()),
                reply,
                work: Box::new(work),
                place: Some(place),
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
                place: None,
            },
        )
    }

    /// A session is over; without `delete` its subscriptions live on until their lifetime ends.
    pub(crate) fn session_closed(&self, session: u32, delete: bool) {
        // When the shard has ended, its subscriptions have too.
        let _ = self.tell(session, Command::SessionClosed { session, delete });
    }

    /// A connection is over: its Publish requests are answered by nobody.
    pub(crate) fn connection_closed(&self, connection: u64) {
        for door in &self.doors {
            let _ = door.send(Command::ConnectionClosed { connection });
        }
    }
}

/// The limits of subscriptions, from those of the server.
pub(crate) fn limits(server: &ServerLimits) -> Limits {
    Limits {
        max_subscriptions: server.subscriptions_per_session as usize,
        max_monitored_items: server.monitored_items_per_subscription as usize,
        max_operations: server.operations_per_request as usize,
        max_publish_requests: server.publish_requests_per_session as usize,
        max_queue_size: server.monitored_item_queue,
        min_publishing_interval: server.publishing_interval,
        min_sampling_interval: server.sampling_interval,
        ..Limits::default()
    }
}
