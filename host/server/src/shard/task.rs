//! The task of one shard: takes what comes through its door, runs the timers of its sessions, sends what they have to say.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use backplane_nodes::Snapshot;
use backplane_session::{EventTypes, PublishReply, PublishTicket, SourceChange, SubscriptionRegistry, Subscriptions};
use backplane_types::service::RequestKind;
use backplane_types::{Encoder, Now, StatusCode};

use super::asking::Asking;
use super::demand::{self, Wanted};
use super::meaning::{self, Meanings};
use super::owner::{AbandonedPlace, Who};
use super::serve::{Scene, serve};
use super::source::{Source, SpaceSampler, follow_structure};
use super::watches::Watches;
use super::{Command, Door, Happened, ReplyTo, Work, methods};
use crate::admission::Held;
use crate::events::SpaceTypes;
use crate::link::Bound;
use crate::respond::Context;
use crate::shared::Shared;

/// Commands taken before timers are looked at again.
const COMMANDS_PER_TURN: usize = 256;
/// How often a shard with items looks whether nodes have come or gone.
const STRUCTURE_CHECK: Duration = Duration::from_millis(100);

/// How soon what is monitored is summed up again for those who want to know.
const DEMAND_PAUSE: Duration = Duration::from_millis(100);

/// The subscriptions of one session.
pub(super) struct Entry {
    pub(super) subscriptions: Subscriptions<Source>,
    /// Whose they are: who asks managers for values, and who may take them over.
    pub(super) who: Who,
    /// When the session is over: the places of its subscriptions, by id.
    pub(super) places: HashMap<u32, AbandonedPlace>,
    /// Its place in the timers.
    deadline: Option<Duration>,
    /// Its event items.
    event_items: usize,
    /// The session is over; the entry goes when its last subscription does.
    closed: bool,
    /// One of its items has just been woken.
    woken: bool,
}

pub(super) struct Shard {
    pub(super) shared: Arc<Shared>,
    pub(super) door: Door,
    pub(super) limits: Arc<backplane_session::Limits>,
    pub(super) registry: Arc<SubscriptionRegistry>,
    pub(super) sessions: HashMap<u32, Entry>,
    /// Sessions with event items.
    listeners: BTreeSet<u32>,
    pub(super) event_types: Arc<dyn EventTypes>,
    timers: BTreeSet<(Duration, u32)>,
    /// Publish requests that wait, by ticket, with what they hold meanwhile.
    tickets: HashMap<u64, (ReplyTo, Option<Held>)>,
    next_ticket: u64,
    /// The structure that the sources belong to.
    epoch: u64,
    /// The namespaces' defaults for rights that the sources were found under.
    rights: u64,
    /// That structure, to compare the next one with.
    structure: Arc<Snapshot>,
    pub(super) meanings: Meanings,
    next_structure_check: Duration,
    pub(super) watches: Watches,
    /// What is monitored may have changed since it was summed up; that is not done again before.
    demand_changed: bool,
    next_demand: Duration,
    /// Sessions of which items have just been woken; empty between turns and kept for its room.
    touched: Vec<u32>,
}

/// Runs a shard until the server stops; then every waiting Publish request is answered `BadServerHalted`.
pub(crate) async fn run(shared: Arc<Shared>, door: Door) {
    let registry = Arc::clone(&shared.shards.registry);
    let limits = Arc::new(super::limits(&shared.limits));
    let structure = shared.space.snapshot();
    let (epoch, rights) = (structure.epoch(), structure.rights_version());
    let mut shard = Shard {
        limits,
        registry,
        watches: Watches::new(door.number),
        touched: Vec::new(),
        demand_changed: false,
        next_demand: Duration::ZERO,
        door,
        sessions: HashMap::new(),
        listeners: BTreeSet::new(),
        event_types: Arc::new(SpaceTypes(Arc::clone(&shared.space))),
        timers: BTreeSet::new(),
        tickets: HashMap::new(),
        next_ticket: 0,
        epoch,
        rights,
        structure,
        meanings: Meanings::default(),
        next_structure_check: Duration::ZERO,
        shared,
    };
    shard.run().await;
}

impl Shard {
    async fn run(&mut self) {
        let mut stop = self.shared.stopping.subscribe();
        let mut turn = VecDeque::new();
        let written = self.watches.written();
        loop {
            let next = self
                .timers
                .first()
                .map(|(deadline, _)| (*deadline).min(self.next_structure_check))
                .into_iter()
                .chain(self.demand_changed.then_some(self.next_demand))
                .min();
            let clock = self.shared.clock;
            let sleep = async {
                match next {
                    Some(deadline) => tokio::time::sleep_until(clock.instant(deadline)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Some(command) = self.door.commands.recv() => {
                    turn.push_back(command);
                    while turn.len() < COMMANDS_PER_TURN && let Ok(command) = self.door.commands.try_recv() {
                        turn.push_back(command);
                    }
                }
                () = sleep => {}
                () = written.notified() => {}
                _ = stop.changed() => {
                    self.halt();
                    return;
                }
            }
            let now = self.shared.clock.now();
            for command in turn.drain(..) {
                self.obey(now, command);
            }
            self.check_structure(now);
            self.wake_items(now);
            self.run_timers(now);
            self.sum_up_demand(now);
        }
    }

    fn obey(&mut self, now: Now, command: Command) {
        match command {
            Command::Request {
                bound,
                reply,
                work,
                held,
            } => {
                // It has arrived: its place is for the next. What a Publish request holds beside it stays until it is answered.
                let held = held.map(|held| Held { place: None, ..held });
                self.serve(now, *bound, reply, *work, held);
            }
            Command::SessionClosed { session, delete } => {
                if !delete {
                    self.abandon(now, session);
                } else if let Some(entry) = self.sessions.get_mut(&session) {
                    entry.closed = true;
                    self.demand_changed = true;
                    entry.subscriptions.close();
                    self.settle(now, session);
                }
            }
            Command::ConnectionClosed { connection } => self.forget_connection(now, connection),
            Command::Halt { done } => {
                self.halt();
                // The server waits for this; if it does not, nobody needs to know.
                let _ = done.send(self.kept(now));
            }
            Command::Restore {
                session,
                kept,
                away,
                done,
            } => {
                // The server waits for this before it takes connections.
                let _ = done.send(self.restore(now, session, *kept, away));
            }
            Command::Surrender {
                session,
                subscription_id,
                claimant,
                done,
            } => {
                // Who asked waits for this; only when the server stops it does not.
                let _ = done.send(self.surrender(now, session, subscription_id, &claimant));
            }
            Command::Adopt(collected) => {
                self.demand_changed = true;
                self.adopt(now, collected);
            }
            Command::Method {
                session,
                subscription_id,
                ask,
                done,
            } => {
                let unknown = StatusCode::BAD_SUBSCRIPTION_ID_INVALID;
                let entry = self.sessions.get_mut(&session).ok_or(unknown);
                let answer = entry.and_then(|it| methods::run(&mut it.subscriptions, subscription_id, ask));
                // The call may have timed out.
                let _ = done.send(answer);
                self.settle(now, session);
            }
            Command::Happened(event) => self.deliver(now, &event),
            Command::Samples(parts) => {
                for (session, samples) in parts {
                    if let Some(entry) = self.sessions.get_mut(&session) {
                        entry.subscriptions.handle_samples(now, samples);
                        self.settle(now, session);
                    }
                }
            }
        }
    }

    fn serve(&mut self, now: Now, bound: Bound, reply: ReplyTo, work: Work, held: Option<Held>) {
        let context = Context {
            now,
            request_handle: reply.request_handle,
        };
        let session = bound.session.handle.number();
        if bound.session.handle.is_closed() {
            // It waited behind the news that its session is over.
            reply.send(context.fault_message(StatusCode::BAD_SESSION_CLOSED), held);
            return;
        }
        if let Work::TransferSubscriptions(asked) = &work {
            if let Err(status) = self.transfer(&bound, &reply, asked) {
                reply.send(context.fault_message(status), None);
            }
            return;
        }
        self.next_ticket = self.next_ticket.wrapping_add(1);
        let ticket = self.next_ticket;
        let snapshot = self.shared.space.snapshot();
        self.demand_changed |= work.changes_demand();
        if matches!(work, Work::Publish { .. }) {
            self.tickets.insert(ticket, (reply.clone(), held));
        }
        let entry = self.entry(&bound);
        let mut scene = Scene {
            subscriptions: &mut entry.subscriptions,
            snapshot: &snapshot,
            caller: &bound.caller,
            context,
            made: Vec::new(),
            ticket: PublishTicket(ticket),
        };
        let served = serve(&mut scene, work);
        let made = std::mem::take(&mut scene.made);
        // Before the answer: from then on the client counts on its events.
        self.count_event_items(session);
        match served {
            Ok(Some(message)) => reply.send(message, None),
            Ok(None) => {}
            Err(status) => reply.send(context.fault_message(status), None),
        }
        for (key, node) in made {
            self.meanings.add(&snapshot, &node, (session, key));
        }
        self.settle(now, session);
    }

    /// The entry of a session, made when there is none.
    pub(super) fn entry(&mut self, bound: &Bound) -> &mut Entry {
        let session = bound.session.handle.number();
        let (limits, registry, types) = (&self.limits, &self.registry, &self.event_types);
        let entry = self.sessions.entry(session).or_insert_with(|| Entry {
            subscriptions: Subscriptions::new(Arc::clone(limits), Arc::clone(registry))
                .owned_by(session)
                .with_event_types(Arc::clone(types)),
            who: Who::of(bound),
            places: HashMap::new(),
            deadline: None,
            event_items: 0,
            closed: false,
            woken: false,
        });
        if entry.who.generation != Some(bound.session.snapshot.generation) {
            entry.who = Who::of(bound);
            // Another user may have lost rights, or gained some.
            let now = self.shared.clock.now();
            follow_structure(
                &mut entry.subscriptions,
                &self.shared.space.snapshot(),
                &entry.who.caller,
                now,
            );
            self.demand_changed = true;
        }
        entry
    }

    /// Takes in a subscription that outlived the server, with its place among those without a session.
    pub(super) fn admit_restored(
        &mut self,
        session: u32,
        subscriptions: Subscriptions<Source>,
        who: Who,
        (subscription, place): (u32, AbandonedPlace),
    ) {
        self.demand_changed = true;
        let entry = Entry {
            subscriptions,
            who,
            places: HashMap::from([(subscription, place)]),
            deadline: None,
            event_items: 0,
            closed: true,
            woken: false,
        };
        self.sessions.insert(session, entry);
    }

    /// A session is over and leaves its subscriptions: they live on until their lifetime ends or somebody takes them over. Those for
    /// which there is no place are deleted.
    pub(super) fn abandon(&mut self, now: Now, session: u32) {
        let Some(entry) = self.sessions.get_mut(&session) else {
            return;
        };
        entry.closed = true;
        entry.subscriptions.detach();
        let owner = entry.who.owner.clone();
        let left: Vec<u32> = entry.subscriptions.iter().map(|it| it.subscription_id).collect();
        for subscription in left {
            if entry.places.contains_key(&subscription) {
                continue;
            }
            if let Some(place) = self.shared.shards.abandoned.take(&owner) {
                entry.places.insert(subscription, place);
            } else {
                entry.subscriptions.drop_subscription(subscription);
                tracing::warn!(
                    session,
                    subscription,
                    "subscription deleted with its session: too many are without one (limits.abandoned-subscriptions, limits.subscriptions-per-session)"
                );
            }
        }
        self.settle(now, session);
    }

    /// Publish requests of a connection that is gone: nobody waits for their answers, and messages must not be spent on them.
    fn forget_connection(&mut self, now: Now, connection: u64) {
        let tickets = &self.tickets;
        let of_connection = |ticket: PublishTicket| {
            tickets
                .get(&ticket.0)
                .is_some_and(|(reply, _)| reply.connection == connection)
        };
        let mut touched = Vec::new();
        for (session, entry) in &mut self.sessions {
            let before = entry.subscriptions.waiting_requests();
            entry
                .subscriptions
                .abort_requests(StatusCode::BAD_SECURE_CHANNEL_CLOSED, of_connection);
            if entry.subscriptions.waiting_requests() != before {
                touched.push(*session);
            }
        }
        for session in touched {
            self.settle(now, session);
        }
    }

    /// Hands an event to the sessions that listen and may see it.
    fn deliver(&mut self, now: Now, happened: &Happened) {
        let lost = self.door.lane.leave();
        let snapshot = self.shared.space.snapshot();
        let listeners: Vec<u32> = self.listeners.iter().copied().collect();
        for session in listeners {
            let Some(entry) = self.sessions.get_mut(&session) else {
                continue;
            };
            let (subscriptions, caller) = (&mut entry.subscriptions, &entry.who.caller);
            if let Some(lost) = lost.as_ref().filter(|lost| lost.is_for(caller, &snapshot, now)) {
                subscriptions.events_lost(now, &lost.event, |source| lost.reaches(source));
            }
            if happened.is_for(caller, &snapshot, now) {
                subscriptions.handle_event(now, &happened.event, |source| happened.reaches(source));
            }
            self.settle(now, session);
        }
    }

    /// Tells the lane how many event items a session has now.
    pub(super) fn count_event_items(&mut self, session: u32) {
        let Some(entry) = self.sessions.get_mut(&session) else {
            return;
        };
        let after = entry.subscriptions.event_items();
        let before = std::mem::replace(&mut entry.event_items, after);
        if before == after {
            return;
        }
        self.door.lane.count(before, after);
        if after > 0 {
            self.listeners.insert(session);
        } else {
            self.listeners.remove(&session);
        }
    }

    fn run_timers(&mut self, now: Now) {
        if self.timers.first().is_none_or(|(deadline, _)| *deadline > now.mono) {
            return;
        }
        let mut asking = Asking::default();
        let snapshot = self.shared.space.snapshot();
        let newer = (snapshot.epoch() != self.epoch).then_some(&*snapshot);
        while let Some((deadline, session)) = self.timers.first().copied() {
            if deadline > now.mono {
                break;
            }
            let Some(entry) = self.sessions.get_mut(&session) else {
                self.timers.pop_first();
                continue;
            };
            let mut sampler = SpaceSampler::new(session, &entry.who.caller, &mut self.watches, &mut asking, newer);
            entry.subscriptions.handle_timeout(now, &mut sampler);
            self.settle(now, session);
            // Sampling that is behind asks for its time again at once; others must get theirs in between.
            if self.timers.first().is_some_and(|first| *first == (deadline, session)) {
                break;
            }
        }
        asking.ask(&self.shared, &snapshot, &self.door.own, now);
    }

    /// Lets managers know what is monitored, if that may have changed.
    fn sum_up_demand(&mut self, now: Now) {
        if !self.demand_changed || now.mono < self.next_demand {
            return;
        }
        self.demand_changed = false;
        self.next_demand = now.mono.saturating_add(DEMAND_PAUSE);
        let mut wanted = Wanted::new();
        let sources = self
            .sessions
            .values()
            .flat_map(|entry| entry.subscriptions.sampled_sources());
        for (source, interval) in sources {
            if let Some((manager, tag)) = source.demand() {
                demand::note(wanted.entry(manager).or_default(), tag, interval);
            }
        }
        let snapshot = self.shared.space.snapshot();
        self.door.demand.submit(self.door.number, wanted, &snapshot);
    }

    /// Items that rested on cells that were written are sampled again.
    fn wake_items(&mut self, now: Now) {
        let (sessions, touched) = (&mut self.sessions, &mut self.touched);
        self.watches.woken(|session, group, slots| {
            if let Some(entry) = sessions.get_mut(&session) {
                entry.subscriptions.wake_all(now, group, slots);
                // None is timed more often than once.
                if !std::mem::replace(&mut entry.woken, true) {
                    touched.push(session);
                }
            }
        });
        while let Some(session) = self.touched.pop() {
            if let Some(entry) = self.sessions.get_mut(&session) {
                entry.woken = false;
            }
            self.set_timer(session);
        }
    }

    /// After anything that a session's subscriptions did: sends their answers, sets their timer, and drops what is over.
    pub(super) fn settle(&mut self, now: Now, session: u32) {
        self.count_event_items(session);
        let Some(entry) = self.sessions.get_mut(&session) else {
            return;
        };
        while let Some((ticket, reply)) = entry.subscriptions.poll_response() {
            if let Some((to, held)) = self.tickets.remove(&ticket.0) {
                to.send(published(now, &to, &reply), held);
            }
        }
        while let Some(subscription) = entry.subscriptions.poll_ended() {
            entry.places.remove(&subscription);
            self.demand_changed = true;
            tracing::info!(
                session,
                subscription,
                "subscription expired: no Publish request within its lifetime"
            );
        }
        if entry.subscriptions.is_empty() && entry.closed {
            if let Some(old) = entry.deadline {
                self.timers.remove(&(old, session));
            }
            self.sessions.remove(&session);
            return;
        }
        self.set_timer(session);
    }

    fn set_timer(&mut self, session: u32) {
        let Some(entry) = self.sessions.get_mut(&session) else {
            return;
        };
        let deadline = entry.subscriptions.poll_timeout();
        if deadline != entry.deadline {
            if let Some(old) = entry.deadline {
                self.timers.remove(&(old, session));
            }
            if let Some(new) = deadline {
                self.timers.insert((new, session));
            }
            entry.deadline = deadline;
        }
    }

    /// Nodes have come or gone: items find their sources again.
    fn check_structure(&mut self, now: Now) {
        if now.mono < self.next_structure_check {
            return;
        }
        self.next_structure_check = now.mono.saturating_add(STRUCTURE_CHECK);
        self.mark_written_meanings();
        let snapshot = self.shared.space.snapshot();
        let (epoch, rights) = (snapshot.epoch(), snapshot.rights_version());
        if epoch == self.epoch && rights == self.rights {
            return;
        }
        (self.epoch, self.rights) = (epoch, rights);
        self.demand_changed = true;
        self.meanings.clear();
        let older = std::mem::replace(&mut self.structure, Arc::clone(&snapshot));
        let sessions: Vec<u32> = self.sessions.keys().copied().collect();
        for session in sessions {
            if let Some(entry) = self.sessions.get_mut(&session) {
                follow_structure(&mut entry.subscriptions, &snapshot, &entry.who.caller, now);
                follow_meanings(
                    &mut self.meanings,
                    session,
                    &mut entry.subscriptions,
                    (&older, &snapshot),
                    now,
                );
                self.settle(now, session);
            }
        }
    }

    /// Items have come from another shard: their variables' properties are watched here now.
    pub(super) fn watch_meanings(&mut self, now: Now, session: u32) {
        if let Some(entry) = self.sessions.get_mut(&session) {
            let same = (&*self.structure, &*self.structure);
            follow_meanings(&mut self.meanings, session, &mut entry.subscriptions, same, now);
        }
    }

    /// Properties that give values their meaning were written: the next notifications of their items say so.
    fn mark_written_meanings(&mut self) {
        for (session, key) in self.meanings.changed() {
            if let Some(entry) = self.sessions.get_mut(&session) {
                entry.subscriptions.mark_changed(key, StatusCode::SEMANTICS_CHANGED);
            }
        }
        let sessions = &mut self.sessions;
        let exists = |(session, key): meaning::Member| {
            // Nothing is marked: this asks whether there is such an item.
            let entry = sessions.get_mut(&session);
            entry.is_some_and(|entry| entry.subscriptions.mark_changed(key, 0))
        };
        self.meanings.prune(exists);
    }

    fn halt(&mut self) {
        let now = self.shared.clock.now();
        let sessions: Vec<u32> = self.sessions.keys().copied().collect();
        for session in sessions {
            if let Some(entry) = self.sessions.get_mut(&session) {
                entry
                    .subscriptions
                    .abort_requests(StatusCode::BAD_SERVER_HALTED, |_| true);
                self.settle(now, session);
            }
        }
    }
}

/// After nodes came or went: what values mean may be different, and properties may have other cells. `structures` are the old and the new one.
fn follow_meanings(
    meanings: &mut Meanings,
    session: u32,
    subscriptions: &mut Subscriptions<Source>,
    (older, newer): (&Snapshot, &Snapshot),
    now: Now,
) {
    let mut changed = Vec::new();
    subscriptions.visit_sources(now, |key, source| {
        if let Some(variable) = source.variable() {
            meanings.add(newer, variable, (session, key));
            let bits = meaning::bits(older.meaning_change(newer, variable));
            if bits != 0 {
                changed.push((key, bits));
            }
        }
        SourceChange::Keep
    });
    for (key, bits) in changed {
        subscriptions.mark_changed(key, bits);
    }
}

/// The whole response to a Publish request.
fn published(now: Now, to: &ReplyTo, reply: &PublishReply) -> Vec<u8> {
    let context = Context {
        now,
        request_handle: to.request_handle,
    };
    match reply {
        PublishReply::Fault(status) => context.fault_message(*status),
        PublishReply::Message(message) => {
            let mut out = Vec::with_capacity(message.body_length() + 32);
            context.begin(RequestKind::Publish, &mut out);
            message.encode_body(&mut Encoder::new(&mut out));
            out
        }
    }
}
