//! The glue of the server's shard task: commands, timers of sessions, Publish requests and their way back, sources after a reload.
//!
//! It does what `host/server/src/shard` does in the same order, with turns that the world calls. It must not know connections but by number.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use backplane_nodes::Caller;
use backplane_session::{
    Limits, PublishMessage, PublishReply, PublishRequest, PublishTicket, SampleKey, SubscriptionRegistry,
};
use backplane_types::service::RequestKind;
use backplane_types::{DataValue, Encoder, Now, StatusCode};

use super::Done;
use super::respond::Context;
use super::serve::{Work, serve};
use super::watched::Watched;
use crate::executor::Executor;
use crate::log::Log;
use crate::mutant::Mutant;
use crate::plant::Plant;

/// How often a shard looks whether nodes have come or gone.
const STRUCTURE_CHECK: Duration = Duration::from_millis(100);

/// The way back to the client of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReplyTo {
    pub(crate) connection: u64,
    pub(crate) request_id: u32,
    pub(crate) request_handle: u32,
}

/// What a shard is told.
pub(crate) enum Command {
    Request {
        session: u32,
        /// The session ended meanwhile.
        closed: Box<dyn Fn() -> bool>,
        reply: ReplyTo,
        work: Work,
    },
    SessionClosed {
        session: u32,
        delete: bool,
    },
    ConnectionClosed {
        connection: u64,
    },
    Samples {
        session: u32,
        samples: Vec<(SampleKey, DataValue)>,
    },
}

struct Entry {
    watched: Watched,
    deadline: Option<Duration>,
    closed: bool,
}

/// A whole response on its way to a connection.
pub(crate) type Outbound = (u64, u32, Vec<u8>);

/// What a shard works with but does not own.
pub(crate) struct Around<'a> {
    pub(crate) log: &'a mut Log,
    pub(crate) plant: &'a Plant,
    pub(crate) tasks: &'a mut Executor<Done>,
    pub(crate) out: &'a mut Vec<Outbound>,
}

/// See the module text.
pub(crate) struct Shard {
    limits: Arc<Limits>,
    pub(crate) registry: Arc<SubscriptionRegistry>,
    caller: Arc<Caller>,
    sessions: BTreeMap<u32, Entry>,
    timers: BTreeSet<(Duration, u32)>,
    tickets: BTreeMap<u64, ReplyTo>,
    next_ticket: u64,
    epoch: u64,
    next_structure_check: Duration,
    commands: VecDeque<Command>,
    mutant: Option<Mutant>,
    /// The last message with data, for the mutant that sends it again.
    last: Option<PublishMessage>,
}

impl Shard {
    pub(crate) fn new(limits: Limits, registry: Arc<SubscriptionRegistry>, epoch: u64, mutant: Option<Mutant>) -> Self {
        Self {
            limits: Arc::new(limits),
            registry,
            caller: Arc::new(Caller::anonymous()),
            sessions: BTreeMap::new(),
            timers: BTreeSet::new(),
            tickets: BTreeMap::new(),
            next_ticket: 0,
            epoch,
            next_structure_check: Duration::ZERO,
            commands: VecDeque::new(),
            mutant,
            last: None,
        }
    }

    pub(crate) fn tell(&mut self, command: Command) {
        self.commands.push_back(command);
    }

    pub(crate) fn has_commands(&self) -> bool {
        !self.commands.is_empty()
    }

    /// When the next timer is due.
    pub(crate) fn next(&self) -> Option<Duration> {
        let timer = self.timers.first().map(|(deadline, _)| *deadline)?;
        Some(timer.min(self.next_structure_check))
    }

    pub(crate) fn waiting_tickets(&self) -> usize {
        self.tickets.len()
    }

    pub(crate) fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Subscriptions and items that there must be.
    pub(crate) fn expected_counts(&self) -> (usize, usize) {
        let entries = self.sessions.values();
        entries.fold((0, 0), |(subscriptions, items), entry| {
            let oracle = &entry.watched.oracle;
            (subscriptions + oracle.len(), items + oracle.items())
        })
    }

    /// One turn: what was told, the structure, the timers.
    pub(crate) fn turn(&mut self, around: &mut Around<'_>, now: Now) {
        for command in std::mem::take(&mut self.commands) {
            self.obey(around, now, command);
        }
        self.check_structure(around, now);
        self.run_timers(around, now);
    }

    fn obey(&mut self, around: &mut Around<'_>, now: Now, command: Command) {
        match command {
            Command::Request {
                session,
                closed,
                reply,
                work,
            } => {
                if closed() {
                    let context = Context {
                        now,
                        request_handle: reply.request_handle,
                    };
                    let fault = context.fault_message(StatusCode::BAD_SESSION_CLOSED);
                    around.out.push((reply.connection, reply.request_id, fault));
                } else {
                    self.serve(around, now, session, reply, work);
                }
            }
            Command::SessionClosed { session, delete } => {
                if let Some(entry) = self.sessions.get_mut(&session) {
                    entry.closed = true;
                    entry.watched.session_closed(around.log, delete);
                    self.settle(around, now, session);
                }
            }
            Command::ConnectionClosed { connection } => self.forget_connection(around, now, connection),
            Command::Samples { session, samples } => {
                if let Some(entry) = self.sessions.get_mut(&session) {
                    entry.watched.fetched(around.log, around.plant, now, samples);
                    self.settle(around, now, session);
                }
            }
        }
    }

    fn serve(&mut self, around: &mut Around<'_>, now: Now, session: u32, reply: ReplyTo, work: Work) {
        let context = Context {
            now,
            request_handle: reply.request_handle,
        };
        self.next_ticket += 1;
        let ticket = self.next_ticket;
        let (limits, registry, mutant) = (&self.limits, &self.registry, self.mutant);
        let entry = self.sessions.entry(session).or_insert_with(|| Entry {
            watched: Watched::new(session, limits, registry, mutant),
            deadline: None,
            closed: false,
        });
        let result = match work {
            Work::Publish {
                acknowledgements,
                deadline,
            } => {
                self.tickets.insert(ticket, reply);
                let request = PublishRequest {
                    ticket: PublishTicket(ticket),
                    request_handle: reply.request_handle,
                    deadline,
                };
                entry.watched.publish(around.log, now, request, &acknowledgements);
                Ok(None)
            }
            work => serve(&mut entry.watched, around, &self.caller, context, work).map(Some),
        };
        match result {
            Ok(Some(message)) => around.out.push((reply.connection, reply.request_id, message)),
            Ok(None) => {}
            Err(status) => {
                let fault = context.fault_message(status);
                around.out.push((reply.connection, reply.request_id, fault));
            }
        }
        self.settle(around, now, session);
    }

    fn forget_connection(&mut self, around: &mut Around<'_>, now: Now, connection: u64) {
        let tickets = &self.tickets;
        let of_connection = |ticket: u64| tickets.get(&ticket).is_some_and(|reply| reply.connection == connection);
        for entry in self.sessions.values_mut() {
            entry
                .watched
                .abort(StatusCode::BAD_SECURE_CHANNEL_CLOSED, of_connection);
        }
        let sessions: Vec<u32> = self.sessions.keys().copied().collect();
        for session in sessions {
            self.settle(around, now, session);
        }
    }

    fn run_timers(&mut self, around: &mut Around<'_>, now: Now) {
        while let Some((deadline, session)) = self.timers.first().copied() {
            if deadline > now.mono {
                return;
            }
            let Some(entry) = self.sessions.get_mut(&session) else {
                self.timers.pop_first();
                continue;
            };
            entry
                .watched
                .turn(around.log, (around.plant, &self.caller), around.tasks, now);
            self.settle(around, now, session);
            // Sampling that is behind asks for its time again at once; others must get theirs in between.
            if self.timers.first().is_some_and(|first| *first == (deadline, session)) {
                return;
            }
        }
    }

    fn settle(&mut self, around: &mut Around<'_>, now: Now, session: u32) {
        let Some(entry) = self.sessions.get_mut(&session) else {
            return;
        };
        while let Some((ticket, mut reply)) = entry.watched.poll(around.log, now) {
            if self.mutant == Some(Mutant::DoublesPublish) {
                super::mutate::again(&mut self.last, &mut reply);
            }
            if let Some(to) = self.tickets.remove(&ticket) {
                let message = published(now, to, reply, self.mutant);
                around.out.push((to.connection, to.request_id, message));
            } else {
                around.log.broken(
                    crate::log::Rule::Answers,
                    format_args!("Publish request {ticket} is answered, but does not wait"),
                );
            }
        }
        entry.watched.settle(around.log);
        while entry.watched.core.poll_ended().is_some() {}
        let deadline = entry.watched.core.poll_timeout();
        if deadline != entry.deadline {
            if let Some(old) = entry.deadline {
                self.timers.remove(&(old, session));
            }
            if let Some(new) = deadline {
                self.timers.insert((new, session));
            }
            entry.deadline = deadline;
        }
        if entry.watched.core.is_empty() && entry.closed {
            if let Some(old) = entry.deadline {
                self.timers.remove(&(old, session));
            }
            self.sessions.remove(&session);
        }
    }

    fn check_structure(&mut self, around: &mut Around<'_>, now: Now) {
        if now.mono < self.next_structure_check {
            return;
        }
        self.next_structure_check = now.mono.saturating_add(STRUCTURE_CHECK);
        let epoch = around.plant.space.epoch();
        if epoch == self.epoch {
            return;
        }
        self.epoch = epoch;
        let sessions: Vec<u32> = self.sessions.keys().copied().collect();
        for session in sessions {
            if let Some(entry) = self.sessions.get_mut(&session) {
                entry.watched.follow(around.log, (around.plant, &self.caller), now);
                self.settle(around, now, session);
            }
        }
    }
}

/// The whole response to a Publish request.
fn published(now: Now, to: ReplyTo, mut reply: PublishReply, mutant: Option<Mutant>) -> Vec<u8> {
    let context = Context {
        now,
        request_handle: to.request_handle,
    };
    if mutant == Some(Mutant::SkipsSequenceNumber)
        && let PublishReply::Message(message) = &mut reply
        && message.available_sequence_numbers.len() > 1
    {
        message.message = super::mutate::skip_number(&message.message);
    }
    match reply {
        PublishReply::Fault(status) => context.fault_message(status),
        PublishReply::Message(message) => {
            let mut out = Vec::with_capacity(message.body_length() + 32);
            context.begin(RequestKind::Publish, &mut out);
            message.encode_body(&mut Encoder::new(&mut out));
            out
        }
    }
}
