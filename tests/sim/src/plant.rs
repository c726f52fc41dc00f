//! What is watched: two managers with their nodes, the values they give them, and the truth about each value.
//!
//! Manager 0 pushes values into the host's cells; manager 1 is asked for them. Owns the truth that samples are compared with, kept beside the
//! value cells and never read from them. Managers stall, answer late, trap and are replaced, all by dice of their own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backplane_nodes::{AddressSpace, Fault, Limits, ManagerId, Model, ModelBuilder, NamespaceTable, NodeManager, ns0};
use backplane_types::{DataValue, DateTime, NodeId, Now, QualifiedName, StatusCode, Variant, ids};

use crate::log::{Log, Rule};
use crate::manager::{Answer, Asked, Calls, MAX_OPEN, Manager, Numbering, lock};
use crate::oracle::Truth;
use crate::random::Dice;

/// Namespace index of the simulated nodes.
pub(crate) const NAMESPACE: u16 = 2;
/// Nodes whose values are pushed, and nodes whose values are asked for.
pub(crate) const PUSHED: u32 = 8;
pub(crate) const ASKED: u32 = 4;
/// EURange of nodes that have one.
pub(crate) const RANGE: (f64, f64) = (0.0, 200.0);
/// After a trap the manager is away for so long.
const BACKOFF: Duration = Duration::from_millis(200);
/// Readable and writable.
const ACCESS: u32 = 3;

/// One generation of one manager as the plant sees it.
#[derive(Debug)]
struct Generation {
    id: ManagerId,
    number: u32,
    numbering: Numbering,
    model: Arc<Model>,
    /// Back after a trap at this time.
    down_until: Option<Duration>,
    /// Nodes that this generation does not have.
    absent: Vec<u32>,
}

/// What the plant does at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Answer(u64),
    Push(u32),
    Drift(u32),
    Reload(usize),
    Return(usize),
}

/// How the plant behaves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manners {
    /// Mean time between two values of a pushed node, in ms.
    pub(crate) pace: u64,
    /// Whether managers trap, stall and lose answers.
    pub(crate) faults: bool,
    /// Whether managers are replaced by chance.
    pub(crate) reloads: bool,
    /// Whether generations give their nodes other tags.
    pub(crate) renumbers: bool,
    /// Whether generations lack nodes that others have.
    pub(crate) vanishes: bool,
}

/// See the module text.
pub(crate) struct Plant {
    pub(crate) space: Arc<AddressSpace>,
    pub(crate) calls: Arc<Mutex<Calls>>,
    managers: Vec<Generation>,
    truth: BTreeMap<String, Truth>,
    /// Until when a node was absent last.
    absent_until: BTreeMap<String, Duration>,
    events: BTreeMap<(Duration, u64), Event>,
    next_event: u64,
    dice: Dice,
    reload_dice: Dice,
    answer_dice: Dice,
    manners: Manners,
    /// Calls of managers so far: the boundaries at which a reload can be asked for.
    pub(crate) boundaries: u64,
    pub(crate) quiet: bool,
}

/// The name of a node: `c0` to `c7` are pushed, `d0` to `d3` asked for.
pub(crate) fn name_of(manager: usize, number: u32) -> String {
    format!("{}{number}", if manager == 0 { 'c' } else { 'd' })
}

pub(crate) fn node(name: &str) -> NodeId {
    NodeId::string(NAMESPACE, name)
}

fn bare(now: Now) -> Option<AddressSpace> {
    let namespaces = Arc::new(NamespaceTable::new("urn:sim:server", &["urn:sim:plant".to_owned()], 16));
    let space = AddressSpace::new(Limits::default(), namespaces);
    let info = ns0::ServerInfo {
        application_uri: "urn:sim:server".to_owned(),
        ..ns0::ServerInfo::default()
    };
    let status = Arc::new(ns0::ServerStatus::new(now.utc, backplane_types::BuildInfo::default()));
    ns0::attach(
        &space,
        &info,
        &crate::settings::capabilities(),
        &status,
        Arc::new(ns0::NoMethods),
    )
    .ok()?;
    Some(space)
}

impl Plant {
    /// A plant, running from `now`. None if its own nodes were refused, which no seed can cause.
    pub(crate) fn new(seed: u64, manners: Manners, now: Now) -> Option<Self> {
        let mut plant = Self {
            space: Arc::new(bare(now)?),
            calls: Arc::default(),
            managers: Vec::new(),
            truth: BTreeMap::new(),
            absent_until: BTreeMap::new(),
            events: BTreeMap::new(),
            next_event: 0,
            dice: Dice::of(seed, "plant", 0),
            reload_dice: Dice::of(seed, "reload", 0),
            answer_dice: Dice::of(seed, "answers", 0),
            manners,
            boundaries: 0,
            quiet: false,
        };
        for manager in 0..2 {
            let count = if manager == 0 { PUSHED } else { ASKED };
            let numbering = Numbering { count, shift: 0 };
            let model = plant.model(now, manager, numbering, &[])?;
            let native: Arc<dyn NodeManager> = Arc::new(plant.instance(manager, numbering));
            let (id, model) = plant.space.attach(native, model).ok()?;
            plant.managers.push(Generation {
                id,
                number: 0,
                numbering,
                model,
                down_until: None,
                absent: Vec::new(),
            });
            for number in 0..count {
                let initial = DataValue {
                    status: Some(StatusCode::BAD_WAITING_FOR_INITIAL_DATA),
                    ..DataValue::default()
                };
                let value = if manager == 0 {
                    initial
                } else {
                    value_at(now.utc, asked_value(number, 0))
                };
                plant
                    .truth
                    .insert(name_of(manager, number), Truth { value, version: 1 });
                let event = if manager == 0 {
                    Event::Push(number)
                } else {
                    Event::Drift(number)
                };
                plant.schedule_next(now, event);
            }
            if manners.reloads {
                plant.schedule_next(now, Event::Reload(manager));
            }
        }
        Some(plant)
    }

    fn instance(&self, number: usize, numbering: Numbering) -> Manager {
        Manager {
            number,
            numbering,
            calls: Arc::clone(&self.calls),
        }
    }

    fn model(&self, now: Now, manager: usize, numbering: Numbering, absent: &[u32]) -> Option<Model> {
        let mut steps = ModelBuilder::new(Limits::default(), now);
        for number in (0..numbering.count).filter(|number| !absent.contains(number)) {
            let name = name_of(manager, number);
            let objects = NodeId::numeric(0, ids::object::OBJECTS_FOLDER);
            let double = NodeId::numeric(0, ids::data_type::DOUBLE);
            let browse_name = QualifiedName::new(NAMESPACE, name.as_str());
            let tag = numbering.tag(number);
            steps.variable(
                node(&name),
                objects,
                browse_name,
                tag,
                double,
                DataValue::default(),
                ACCESS,
            );
            if manager == 1 {
                steps.on_demand(node(&name), -1.0);
            } else if number.is_multiple_of(2) {
                steps.analog(node(&name), RANGE.0, RANGE.1, "");
            }
        }
        Model::empty().changed(&steps, &self.space.snapshot()).ok()
    }

    /// The truth about a node whose value the host keeps.
    pub(crate) fn truth(&self, name: &str) -> Option<&Truth> {
        self.truth.get(name)
    }

    /// Whether an answer to a question about a node can be one: its value of some time, or a reason why there is none.
    pub(crate) fn can_be(&self, name: &str, value: &DataValue, now: Now) -> bool {
        let Some(number) = name.strip_prefix('d').and_then(|it| it.parse::<u32>().ok()) else {
            return true;
        };
        match (&value.value, value.status()) {
            (Variant::Double(value), StatusCode::GOOD) => {
                let low = asked_value(number, 0);
                (low..low + 1_000.0).contains(value)
            }
            (_, StatusCode::BAD_NODE_ID_UNKNOWN) => {
                let since = self.absent_until.get(name).copied();
                since.is_some_and(|until| now.mono <= until + crate::settings::REQUEST_TIMEOUT * 2)
            }
            (_, status) => status == StatusCode::BAD_TIMEOUT || status == StatusCode::BAD_NO_COMMUNICATION,
        }
    }

    /// EURange of a node.
    pub(crate) fn range(name: &str) -> Option<(f64, f64)> {
        let number: u32 = name.strip_prefix('c')?.parse().ok()?;
        number.is_multiple_of(2).then_some(RANGE)
    }

    fn schedule(&mut self, at: Duration, event: Event) {
        self.next_event += 1;
        self.events.insert((at, self.next_event), event);
    }

    fn schedule_next(&mut self, now: Now, event: Event) {
        let pace = self.manners.pace;
        let ms = match event {
            Event::Push(_) => {
                if self.dice.percent(20) {
                    self.dice.between(1, 3)
                } else {
                    self.dice.between(pace / 4, pace * 2)
                }
            }
            Event::Drift(_) => self.dice.between(pace, pace * 3),
            Event::Reload(_) => self.reload_dice.between(1_000, 15_000),
            Event::Answer(_) | Event::Return(_) => 0,
        };
        let us = if matches!(event, Event::Reload(_)) {
            self.reload_dice.below(1000)
        } else {
            self.dice.below(1000)
        };
        self.schedule(now.mono + Duration::from_micros(ms * 1000 + us), event);
    }

    /// When something happens next.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    /// Whether the plant has calls to answer that the world has not seen.
    pub(crate) fn look_at_calls(&mut self, log: &mut Log, now: Now) {
        let fresh = lock(&self.calls).take_fresh();
        for id in fresh {
            self.boundaries += 1;
            let (manager, kind) = match lock(&self.calls).get(id) {
                Some(open) => (open.manager, kind_of(&open.asked)),
                None => continue,
            };
            let delay = match self.answer_dice.below(100) {
                _ if self.quiet => self.answer_dice.between(100, 3_000),
                0..=1 if self.manners.faults => 60_000_000,
                2..=4 if self.manners.faults => {
                    self.trap(log, now, manager);
                    continue;
                }
                5..=19 => self.answer_dice.between(20_000, 300_000),
                _ => self.answer_dice.between(100, 10_000),
            };
            log.say(
                "plant",
                format_args!("manager {manager} {kind} call {id}, answered in {delay} us"),
            );
            self.schedule(now.mono + Duration::from_micros(delay), Event::Answer(id));
        }
        let open = lock(&self.calls).len();
        log.check(
            open <= MAX_OPEN,
            Rule::Bounded,
            format_args!("{open} calls of managers are open"),
        );
        for complaint in std::mem::take(&mut lock(&self.calls).complaints) {
            log.say("plant", format_args!("misbehaved: {complaint}"));
        }
    }

    /// Does what is due. True if tasks may go on.
    pub(crate) fn run(&mut self, log: &mut Log, now: Now) -> bool {
        let mut stirred = false;
        while let Some(((at, number), event)) = self.events.first_key_value().map(|(key, event)| (*key, *event)) {
            if at > now.mono {
                break;
            }
            self.events.remove(&(at, number));
            match event {
                Event::Answer(id) => {
                    self.answer(now, id);
                    stirred = true;
                }
                Event::Push(number) => {
                    self.push(log, now, number);
                    self.again(now, event);
                }
                Event::Drift(number) => {
                    let next = self.dice.between(0, 2_000);
                    self.set_truth(1, number, value_at(now.utc, asked_value(number, next)));
                    self.again(now, event);
                }
                Event::Reload(manager) => {
                    self.reload(log, now, manager, true);
                    self.again(now, event);
                }
                Event::Return(manager) => self.come_back(log, now, manager),
            }
        }
        stirred
    }

    fn again(&mut self, now: Now, event: Event) {
        if !self.quiet {
            self.schedule_next(now, event);
        }
    }

    fn set_truth(&mut self, manager: usize, number: u32, value: DataValue) {
        if let Some(truth) = self.truth.get_mut(&name_of(manager, number)) {
            truth.value = value;
            truth.version += 1;
        }
    }

    fn push(&mut self, log: &mut Log, now: Now, number: u32) {
        let next = self.dice.below(40);
        let odd = self.dice.below(100);
        let Some(generation) = self.managers.first() else {
            return;
        };
        if generation.down_until.is_some() || generation.absent.contains(&number) {
            return;
        }
        let name = name_of(0, number);
        let old = self.truth.get(&name).and_then(|truth| match truth.value.value {
            Variant::Double(old) => Some(old),
            _ => None,
        });
        // A walk with small and large steps, so that deadbands matter; sometimes the same value again.
        let step = (f64::from(u32::try_from(next).unwrap_or(0)) - 20.0) / 4.0;
        let mut value = value_at(now.utc, (old.unwrap_or(100.0) + step).clamp(RANGE.0, RANGE.1));
        match odd {
            0..=4 => value.status = Some(StatusCode::UNCERTAIN),
            5..=6 => {
                value.status = Some(StatusCode::BAD_DEVICE_FAILURE);
                value.value = Variant::Empty;
            }
            _ => {}
        }
        let tag = generation.numbering.tag(number);
        match generation.model.publish(tag, value.clone(), now.utc) {
            Ok(()) => {
                log.say("plant", format_args!("{name} = {:?} {}", value.value, value.status()));
                self.set_truth(0, number, value);
            }
            Err(status) => log.broken(Rule::Answers, format_args!("{name} cannot be published: {status}")),
        }
    }

    /// Answers a call with what its nodes are now.
    fn answer(&mut self, now: Now, id: u64) {
        let mut calls = lock(&self.calls);
        let Some(open) = calls.get(id) else { return };
        let answer = match &open.asked {
            Asked::Read(tags) => {
                let value = |tag: &u32| {
                    let number = open.numbering.number(*tag);
                    let truth = self.truth.get(&name_of(open.manager, number));
                    truth.map_or_else(
                        || DataValue::from_status(StatusCode::BAD_NODE_ID_UNKNOWN),
                        |truth| truth.value.clone(),
                    )
                };
                Answer::Values(tags.iter().map(value).collect())
            }
            Asked::Write(writes) => {
                let statuses = vec![StatusCode::GOOD; writes.len()];
                Answer::Statuses(statuses)
            }
            Asked::Invoke => Answer::Outcome,
        };
        calls.answer(id, Ok(answer));
        drop(calls);
        let _ = now;
    }

    /// The instance of a manager is gone: open calls fail, its values are of before, and it comes back after a while.
    fn trap(&mut self, log: &mut Log, now: Now, manager: usize) {
        log.stats.traps += 1;
        log.say("plant", format_args!("manager {manager} traps"));
        {
            let mut calls = lock(&self.calls);
            for id in calls.of(manager) {
                calls.answer(id, Err(Fault::new(StatusCode::BAD_NO_COMMUNICATION, "trapped")));
            }
        }
        let Some(generation) = self.managers.get_mut(manager) else {
            return;
        };
        let back = now.mono + BACKOFF;
        generation.down_until = Some(back);
        let (id, absent) = (generation.id, generation.absent.clone());
        let status = StatusCode::BAD_NO_COMMUNICATION;
        self.space.degrade(id, None, status, now.utc);
        if manager == 0 {
            for number in (0..PUSHED).filter(|number| !absent.contains(number)) {
                if let Some(truth) = self.truth.get_mut(&name_of(0, number)) {
                    truth.value.status = Some(status);
                    truth.value.value = Variant::Empty;
                    truth.version += 1;
                }
            }
        }
        self.schedule(back, Event::Return(manager));
    }

    fn come_back(&mut self, log: &mut Log, now: Now, manager: usize) {
        if let Some(generation) = self.managers.get_mut(manager) {
            generation.down_until = None;
        }
        self.reload(log, now, manager, false);
    }

    /// Puts a new generation in the place of a manager. `by_chance`: it may differ from the one before.
    pub(crate) fn reload(&mut self, log: &mut Log, now: Now, manager: usize, by_chance: bool) {
        let Some(old) = self.managers.get(manager) else { return };
        if old.down_until.is_some() {
            return;
        }
        let (id, number) = (old.id, old.number + 1);
        let (mut numbering, mut absent) = (old.numbering, old.absent.clone());
        let count = numbering.count;
        if by_chance && self.manners.renumbers {
            numbering.shift = u32::try_from(self.reload_dice.below(count.into())).unwrap_or(0);
        }
        if by_chance && self.manners.vanishes {
            let goes = self.reload_dice.percent(40);
            absent.clear();
            if goes && !self.quiet {
                absent.push(u32::try_from(self.reload_dice.below(count.into())).unwrap_or(0));
            }
        }
        let Some(model) = self.model(now, manager, numbering, &absent) else {
            log.broken(Rule::Answers, format_args!("no model of generation {number}"));
            return;
        };
        let native: Arc<dyn NodeManager> = Arc::new(self.instance(manager, numbering));
        let Ok(model) = self.space.replace(id, native, model) else {
            log.broken(Rule::Answers, format_args!("generation {number} is refused"));
            return;
        };
        log.stats.reloads += 1;
        log.say(
            "plant",
            format_args!(
                "manager {manager} is generation {number}, shifted by {}, without {absent:?}",
                numbering.shift
            ),
        );
        let Some(generation) = self.managers.get_mut(manager) else {
            return;
        };
        let returned: Vec<u32> = generation
            .absent
            .iter()
            .filter(|it| !absent.contains(it))
            .copied()
            .collect();
        for number in &absent {
            self.absent_until.insert(name_of(manager, *number), Duration::MAX / 2);
        }
        for number in &returned {
            self.absent_until.insert(name_of(manager, *number), now.mono);
        }
        generation.number = number;
        generation.numbering = numbering;
        generation.model = model;
        generation.absent = absent;
        if manager == 0 {
            // A node that comes back has a new cell, in which there is nothing yet.
            for number in returned {
                let value = DataValue {
                    status: Some(StatusCode::BAD_WAITING_FOR_INITIAL_DATA),
                    ..DataValue::default()
                };
                self.set_truth(0, number, value);
            }
        }
    }

    /// From now on nothing changes any more, every node is there, and calls are answered soon.
    pub(crate) fn calm_down(&mut self, log: &mut Log, now: Now) {
        self.quiet = true;
        for manager in 0..2 {
            if let Some(generation) = self.managers.get_mut(manager) {
                generation.down_until = None;
            }
            if self.manners.reloads {
                self.reload(log, now, manager, true);
            }
        }
    }
}

fn kind_of(asked: &Asked) -> &'static str {
    match asked {
        Asked::Read(_) => "read",
        Asked::Write(_) => "write",
        Asked::Invoke => "invoke",
    }
}

/// Values of nodes that are asked for differ by node, so that one that goes astray is seen.
fn asked_value(number: u32, at: u64) -> f64 {
    f64::from(number) * 1_000.0 + f64::from(u32::try_from(at).unwrap_or(0)) / 10.0
}

fn value_at(utc: DateTime, value: f64) -> DataValue {
    DataValue {
        value: Variant::Double(value),
        source_timestamp: Some(utc),
        ..DataValue::default()
    }
}
