//! The simulated server: the real cores, and glue as thin as it can be between them.
//!
//! Owns connections (channel, unread input), the session table, the shard, the queue of requests that wait for managers, the workers. Bytes
//! come in and go out through the world; slow work is a task that the world polls.

mod connection;
mod mutate;
pub(crate) mod respond;
mod serve;
mod shard;
mod source;
mod waiting;
mod watched;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use backplane_channel::{ChannelIds, OwnIdentity, ServerConfig};
use backplane_crypto::{PrivateKey, SecurityPolicy};
use backplane_session::{SampleKey, Sessions, SubscriptionRegistry};
use backplane_types::{DataValue, MessageSecurityMode, Now, StatusCode};

pub(crate) use respond::encoded;

use crate::executor::Executor;
use crate::log::{Log, Rule};
use crate::mutant::Mutant;
use crate::plant::Plant;
use crate::random::Dice;
use crate::settings;
use connection::Connection;
use shard::{Around, Command, Outbound, Shard};
use waiting::Waiting;

/// What a task brings back.
pub(crate) enum Done {
    Samples {
        session: u32,
        samples: Vec<(SampleKey, DataValue)>,
    },
    /// A request that waited for a manager: the number of its job, and its response.
    Job { job: u64, message: Vec<u8> },
}

/// See the module text.
pub(crate) struct Server {
    config: Arc<ServerConfig>,
    ids: Arc<ChannelIds>,
    own: Arc<OwnIdentity>,
    dice: Dice,
    sessions: Sessions<Dice>,
    connections: BTreeMap<u64, Connection>,
    shard: Shard,
    waiting: Waiting,
    tasks: Executor<Done>,
    out: Vec<Outbound>,
    mutant: Option<Mutant>,
    mutated: bool,
    /// The shard sleeps until then, whatever it is asked.
    pub(crate) shard_free: Duration,
}

/// The key of the server. Channels of this world have no security, but an identity needs one.
fn own_identity() -> Option<Arc<OwnIdentity>> {
    let key = PrivateKey::from_pem_or_der(include_bytes!("../../../../host/crypto/tests/keys/rsa2048-a.pem")).ok()?;
    Some(Arc::new(OwnIdentity::new(key, &[], &[])))
}

impl Server {
    /// A server without connections. None if its own settings are refused, which no seed can cause.
    pub(crate) fn new(seed: u64, plant: &Plant, mutant: Option<Mutant>) -> Option<Self> {
        let limits = settings::limits();
        limits.check().ok()?;
        let registry = SubscriptionRegistry::new(settings::MAX_SUBSCRIPTIONS, settings::MAX_ITEMS);
        let config = ServerConfig {
            limits: backplane_channel::Limits::default(),
            allowed: vec![(SecurityPolicy::None, MessageSecurityMode::NONE)],
        };
        Some(Self {
            config: Arc::new(config),
            ids: Arc::new(ChannelIds::starting_at(1)),
            own: own_identity()?,
            dice: Dice::of(seed, "server", 0),
            sessions: Sessions::new(settings::session_limits(), Dice::of(seed, "tokens", 0)).ok()?,
            connections: BTreeMap::new(),
            shard: Shard::new(limits, registry, plant.space.epoch(), mutant),
            waiting: Waiting::new(),
            tasks: Executor::new(),
            out: Vec::new(),
            mutant,
            mutated: false,
            shard_free: Duration::ZERO,
        })
    }

    /// When the server has to be called next: its timers, and at once if something waits for the shard.
    pub(crate) fn next(&self, now: Duration) -> Option<Duration> {
        let shard = if self.shard.has_commands() {
            Some(now)
        } else {
            self.shard.next()
        };
        let shard = shard.map(|at| at.max(self.shard_free));
        let channels = self.connections.values().filter_map(|it| it.channel.poll_timeout());
        let others = [
            shard,
            self.sessions.poll_timeout(),
            self.tasks.next(),
            self.waiting.next(),
        ];
        channels.chain(others.into_iter().flatten()).min()
    }

    /// A client has connected.
    pub(crate) fn accept(&mut self, now: Now, number: u64) {
        let channel = backplane_channel::ServerChannel::new(Arc::clone(&self.config), Arc::clone(&self.ids), now);
        self.connections.insert(number, Connection::new(channel));
    }

    /// A connection is over.
    pub(crate) fn disconnected(&mut self, log: &mut Log, now: Now, number: u64) {
        if self.connections.remove(&number).is_none() {
            return;
        }
        log.say("server", format_args!("connection {number} is over"));
        self.sessions.channel_closed(backplane_session::ChannelId(number));
        self.waiting.connection_closed(number);
        self.shard.tell(Command::ConnectionClosed { connection: number });
        self.closed_sessions(log, now);
    }

    /// Sessions that ended: the shard and the waiting requests are told.
    fn closed_sessions(&mut self, log: &mut Log, now: Now) {
        while let Some(closed) = self.sessions.poll_closed() {
            let session = closed.session.number();
            let delete = match closed.reason {
                backplane_session::CloseReason::Client { delete_subscriptions } => delete_subscriptions,
                _ => false,
            };
            log.say("server", format_args!("session {session} is over: {:?}", closed.reason));
            for (reply, message) in self.waiting.session_closed(now, session) {
                self.out.push((reply.connection, reply.request_id, message));
            }
            self.shard.tell(Command::SessionClosed { session, delete });
        }
    }

    /// Bytes of a client; what has to be sent is in [`take_output`](Self::take_output) afterwards.
    pub(crate) fn receive(&mut self, log: &mut Log, plant: &Plant, now: Now, number: u64, bytes: &[u8]) {
        let Some(mut connection) = self.connections.remove(&number) else {
            return;
        };
        let is_over = self.take_input(log, plant, now, number, &mut connection, bytes);
        self.connections.insert(number, connection);
        self.flush(log, now);
        self.closed_sessions(log, now);
        if is_over && let Some(connection) = self.connections.get_mut(&number) {
            connection.is_over = true;
        }
    }

    /// Everything that is due.
    pub(crate) fn run(&mut self, log: &mut Log, plant: &Plant, now: Now) {
        self.sessions.handle_timeout(now);
        self.closed_sessions(log, now);
        for connection in self.connections.values_mut() {
            let mut out = std::mem::take(&mut connection.out);
            if connection.channel.handle_timeout(now, &mut out).is_some() {
                connection.is_over = true;
            }
            connection.out = out;
        }
        for (reply, message) in self.waiting.sweep(now) {
            self.out.push((reply.connection, reply.request_id, message));
        }
        self.poll_tasks(log, now);
        let due = self.shard.has_commands() || self.shard.next().is_some_and(|at| at <= now.mono);
        if due && now.mono >= self.shard_free {
            self.shard_turn(log, plant, now);
        }
        self.poll_tasks(log, now);
        self.waiting.dispatch(plant, now, &mut self.tasks);
        self.poll_tasks(log, now);
        self.flush(log, now);
    }

    fn shard_turn(&mut self, log: &mut Log, plant: &Plant, now: Now) {
        let mut around = Around {
            log,
            plant,
            tasks: &mut self.tasks,
            out: &mut self.out,
        };
        self.shard.turn(&mut around, now);
        let overshoot = match self.dice.below(40) {
            0 => self.dice.between(1_000, 15_000),
            1..=4 => self.dice.between(10, 1_000),
            _ => 0,
        };
        if overshoot > 0
            && let Some(next) = self.shard.next()
        {
            // The next wake-up comes a little late.
            self.shard_free = next.max(now.mono) + Duration::from_micros(overshoot);
        }
    }

    /// Tasks that can go on.
    pub(crate) fn poll_tasks(&mut self, log: &mut Log, now: Now) {
        for done in self.tasks.run(now.mono) {
            match done {
                Done::Samples { session, samples } => {
                    for (key, value) in &samples {
                        let item = key.item;
                        log.say(
                            "server",
                            format_args!(
                                "fetched {}/{} = {:?} {}",
                                item.subscription_id,
                                item.monitored_item_id,
                                value.value,
                                value.status()
                            ),
                        );
                    }
                    self.shard.tell(Command::Samples { session, samples });
                }
                Done::Job { job, message } => {
                    if let Some((reply, message)) = self.waiting.done(job, message) {
                        self.out.push((reply.connection, reply.request_id, message));
                    }
                }
            }
        }
    }

    /// Seals what was answered, in the order in which it was.
    fn flush(&mut self, log: &mut Log, now: Now) {
        for (number, request_id, message) in std::mem::take(&mut self.out) {
            let Some(connection) = self.connections.get_mut(&number) else {
                continue;
            };
            match self.mutant {
                Some(Mutant::NeverAnswers) if !self.mutated && request_id > 6 => {
                    self.mutated = true;
                    continue;
                }
                Some(Mutant::AnswersTwice) if !self.mutated && request_id > 6 => {
                    self.mutated = true;
                    connection.send(log, now, request_id, &message);
                }
                _ => {}
            }
            connection.send(log, now, request_id, &message);
        }
    }

    /// What has to be sent on a connection, and whether it ends behind that.
    pub(crate) fn take_output(&mut self, number: u64) -> (Vec<u8>, bool) {
        let mutant = self.mutant;
        self.connections
            .get_mut(&number)
            .map_or((Vec::new(), false), |connection| {
                let mut out = std::mem::take(&mut connection.out);
                if mutant == Some(Mutant::SwapsChunks) {
                    connection::swap_chunks(&mut out);
                }
                (out, connection.is_over)
            })
    }

    pub(crate) fn connections(&self) -> Vec<u64> {
        self.connections.keys().copied().collect()
    }

    /// What is held must be what the oracle knows of, and no more than the limits allow.
    pub(crate) fn check_bounds(&self, log: &mut Log) {
        let (subscriptions, items) = self.shard.expected_counts();
        let registry = &self.shard.registry;
        let counted = (registry.subscriptions() as usize, registry.monitored_items() as usize);
        log.check(
            counted == (subscriptions, items),
            Rule::Bounded,
            format_args!("subscriptions and items counted: {counted:?}, there are {subscriptions} and {items}"),
        );
        let waiting = self.waiting.len();
        log.check(
            waiting <= settings::MAX_WAITING * self.connections.len().max(1),
            Rule::Bounded,
            format_args!("{waiting} requests wait for managers"),
        );
    }

    /// When every client has gone: nothing must be left.
    pub(crate) fn check_empty(&self, log: &mut Log) {
        let registry = &self.shard.registry;
        let left = [
            ("connections", self.connections.len()),
            ("sessions", self.sessions.len()),
            ("sessions in the shard", self.shard.sessions()),
            ("subscriptions", registry.subscriptions() as usize),
            ("monitored items", registry.monitored_items() as usize),
            ("Publish requests", self.shard.waiting_tickets()),
            ("waiting requests", self.waiting.len()),
            ("tasks", self.tasks.len()),
        ];
        for (what, count) in left {
            log.check(
                count == 0,
                Rule::Bounded,
                format_args!("{count} {what} are left when all is over"),
            );
        }
    }
}

/// The fault for a request that cannot be decoded or has no service.
pub(crate) fn status_of(error: impl Into<StatusCode>) -> StatusCode {
    error.into()
}
