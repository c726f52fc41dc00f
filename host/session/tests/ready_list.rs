//! The ready list against a model that looks at every item: whatever is done to items, the client gets the same messages.

#![allow(missing_docs, clippy::unwrap_used)]

#[path = "ready/model.rs"]
mod model;
mod support;

use std::collections::HashMap;

use backplane_session::{ItemTraits, Limits, ResolvedItem};
use backplane_types::{
    MonitoredItemModifyRequest, MonitoringMode, SetTriggeringRequest, StatusCode, TimestampsToReturn,
};
use model::{Answer, Model};
use support::{Bench, NUMBER, PARAMETERS, bench_with, key, request, source};

const DISABLED: MonitoringMode = MonitoringMode::DISABLED;
const SAMPLING: MonitoringMode = MonitoringMode::SAMPLING;
const REPORTING: MonitoringMode = MonitoringMode::REPORTING;
const MODES: [MonitoringMode; 3] = [DISABLED, SAMPLING, REPORTING];
const MAX_NOTIFICATIONS: u32 = 4;
const MAX_REQUESTS: usize = 6;

/// A real subscription and its model, to which the same is done.
struct Twin {
    it: Bench,
    id: u32,
    model: Model,
    values: HashMap<u32, f64>,
    done: Vec<String>,
}

fn twin() -> Twin {
    let mut it = bench_with(Limits {
        max_publish_requests: MAX_REQUESTS,
        // Values come one by one, when they are said to have changed.
        exception_interval: std::time::Duration::from_secs(86_400),
        ..Limits::default()
    });
    let id = it.create(&backplane_session::SubscriptionParameters {
        lifetime_count: 1_000_000,
        max_notifications_per_publish: MAX_NOTIFICATIONS,
        ..PARAMETERS
    });
    Twin {
        it,
        id,
        model: Model::new(100, MAX_NOTIFICATIONS as usize, 5, MAX_REQUESTS),
        values: HashMap::new(),
        done: Vec::new(),
    }
}

impl Twin {
    fn note(&mut self, what: String) {
        self.done.push(what);
    }

    fn create(&mut self, node: u32, mode: MonitoringMode, capacity: u32, discard_oldest: bool) -> u32 {
        self.note(format!("create {node} {mode:?} {capacity} {discard_oldest}"));
        let value = self.values.get(&node).copied().unwrap_or(0.5);
        self.values.insert(node, value);
        self.it.set(node, value);
        let mut wanted = request(node);
        wanted.monitoring_mode = mode;
        wanted.requested_parameters.sampling_interval = 0.0;
        wanted.requested_parameters.queue_size = capacity;
        wanted.requested_parameters.discard_oldest = discard_oldest;
        let resolved = ResolvedItem {
            source: source(node),
            initial: Some(backplane_types::DataValue::new(value)),
            traits: ItemTraits {
                minimum_sampling_interval: 0.0,
                ..NUMBER
            },
        };
        let created = self.it.subscriptions.create_monitored_items(
            self.it.now,
            self.id,
            TimestampsToReturn::BOTH,
            vec![(&wanted, Ok(resolved))],
        );
        let id = created.unwrap()[0].monitored_item_id;
        // The handle of an item is the number of its node, and that of the item here.
        assert_eq!(id, node, "create items of nodes 1, 2, 3 and so on");
        self.model.create(id, mode, capacity as usize, discard_oldest, value);
        self.check();
        id
    }

    fn delete(&mut self, id: u32) {
        self.note(format!("delete {id}"));
        let real = self.it.subscriptions.delete_monitored_items(self.id, &[id]).unwrap();
        assert_eq!(real, [self.model.delete(id)]);
        self.check();
    }

    fn modify(&mut self, id: u32, capacity: u32, discard_oldest: bool) {
        self.note(format!("modify {id} {capacity} {discard_oldest}"));
        let mut parameters = request(id).requested_parameters;
        parameters.sampling_interval = 0.0;
        parameters.queue_size = capacity;
        parameters.discard_oldest = discard_oldest;
        let modify = MonitoredItemModifyRequest {
            monitored_item_id: id,
            requested_parameters: parameters,
        };
        self.it
            .subscriptions
            .modify_monitored_items(self.it.now, self.id, TimestampsToReturn::BOTH, &[modify])
            .unwrap();
        self.model.modify(id, capacity as usize, discard_oldest);
        self.check();
    }

    fn value(&mut self, id: u32, value: f64) {
        self.note(format!("value {id} {value}"));
        self.values.insert(id, value);
        self.it.set(id, value);
        let item = key(self.id, id);
        self.it
            .subscriptions
            .notify_changed(self.it.now, item, &mut self.it.world);
        self.model.value(id, value);
        self.check();
    }

    fn mode(&mut self, ids: &[u32], mode: MonitoringMode) {
        self.note(format!("mode {ids:?} {mode:?}"));
        self.it
            .subscriptions
            .set_monitoring_mode(self.it.now, self.id, mode, ids)
            .unwrap();
        let mut enabled = Vec::new();
        for id in ids {
            let was_disabled = self.model.item(*id).is_some_and(|item| item.mode == DISABLED);
            self.model.mode(*id, mode);
            if was_disabled && mode != DISABLED {
                enabled.push(*id);
            }
        }
        // The first samples are taken at once.
        for id in enabled {
            self.model.value(id, self.values[&id]);
        }
        self.it.subscriptions.handle_timeout(self.it.now, &mut self.it.world);
        self.check();
    }

    fn link(&mut self, trigger: u32, add: &[u32], remove: &[u32]) {
        self.note(format!("link {trigger} +{add:?} -{remove:?}"));
        let real = self.it.subscriptions.set_triggering(&SetTriggeringRequest {
            subscription_id: self.id,
            triggering_item_id: trigger,
            links_to_add: add.to_vec(),
            links_to_remove: remove.to_vec(),
            ..SetTriggeringRequest::default()
        });
        let real = real.unwrap();
        assert_eq!((real.add, real.remove), self.model.link(trigger, add, remove));
        self.check();
    }

    fn resend(&mut self) {
        self.note("resend".to_owned());
        self.it.subscriptions.resend_data(self.id).unwrap();
        self.model.resend();
        self.check();
    }

    fn enable_publishing(&mut self, enabled: bool) {
        self.note(format!("publishing {enabled}"));
        self.it.subscriptions.set_publishing_mode(enabled, &[self.id]).unwrap();
        self.model.enable_publishing(enabled);
        self.check();
    }

    fn publish(&mut self, acknowledged: &[u32]) {
        self.note(format!("publish {acknowledged:?}"));
        let pairs: Vec<(u32, u32)> = acknowledged.iter().map(|number| (self.id, *number)).collect();
        let ticket = self.it.acknowledge(&pairs);
        self.model.publish(ticket, acknowledged);
        self.check();
    }

    fn run(&mut self, ms: u64) {
        self.note(format!("run {ms}"));
        self.it.run(ms);
        self.model.run(ms);
        self.check();
    }

    /// Both have said the same so far.
    fn check(&mut self) {
        self.it.collect();
        let real: Vec<(u64, Answer)> = self
            .it
            .answers
            .iter()
            .map(|(ticket, answer)| (*ticket, shown(answer)))
            .collect();
        let expected: Vec<(u64, Answer)> = self.model.answers.iter().cloned().collect();
        assert_eq!(real, expected, "after {:#?}", self.done);
    }

    /// Values in all messages so far; afterwards they are forgotten.
    fn data(&mut self) -> Vec<(u32, f64)> {
        self.it.answers.clear();
        let answers = self.model.answers.drain(..);
        let data = answers.filter_map(|(_, answer)| match answer {
            Answer::Message { data, .. } => Some(data),
            Answer::Fault(_) => None,
        });
        data.flatten().map(|(handle, value, _)| (handle, value)).collect()
    }

    fn publish_many(&mut self, count: usize) {
        for _ in 0..count {
            self.publish(&[]);
        }
    }
}

fn shown(answer: &Result<support::Message, StatusCode>) -> Answer {
    match answer {
        Err(status) => Answer::Fault(*status),
        Ok(message) => Answer::Message {
            sequence: message.sequence,
            available: message.available.clone(),
            more: message.more,
            results: message.results.clone(),
            data: message
                .data
                .iter()
                .map(|(handle, value)| {
                    let overflow = value.status().0 & StatusCode::OVERFLOW_BITS != 0;
                    (*handle, value.value.as_f64().unwrap(), overflow)
                })
                .collect(),
        },
    }
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit.max(1)
    }

    fn pick(&mut self, from: &[u32]) -> Vec<u32> {
        (0..self.below(4)).map(|_| from[self.below(from.len())]).collect()
    }
}

/// One step of a script.
fn step(twin: &mut Twin, dice: &mut Dice, next: &mut u32) {
    let ids = twin.model.ids();
    let any = |dice: &mut Dice| ids.get(dice.below(ids.len())).copied();
    let action = dice.below(100);
    let Some(item) = any(dice).filter(|_| action >= 8) else {
        if ids.len() < 12 {
            let (mode, capacity) = (MODES[dice.below(3)], u32::try_from(1 + dice.below(4)).unwrap());
            twin.create(*next, mode, capacity, dice.below(2) == 0);
            *next += 1;
        }
        return;
    };
    match action {
        8..=10 => twin.delete(item),
        11..=15 => {
            let capacity = u32::try_from(1 + dice.below(4)).unwrap();
            twin.modify(item, capacity, dice.below(2) == 0);
        }
        16..=27 => {
            let mut some = dice.pick(&ids);
            some.push(item);
            twin.mode(&some, MODES[dice.below(3)]);
        }
        28..=35 => {
            let (add, remove) = (dice.pick(&ids), dice.pick(&ids));
            if !add.is_empty() || !remove.is_empty() {
                twin.link(item, &add, &remove);
            }
        }
        36..=39 => twin.resend(),
        40..=43 => twin.enable_publishing(dice.below(3) > 0),
        44..=58 => {
            let acknowledged: Vec<u32> = (0..dice.below(3))
                .map(|_| u32::try_from(dice.below(40)).unwrap())
                .collect();
            twin.publish(&acknowledged);
        }
        59..=70 => twin.run(u64::try_from(dice.below(260)).unwrap()),
        _ => {
            let value = u32::try_from(dice.below(6)).unwrap();
            twin.value(item, f64::from(value));
        }
    }
}

#[test]
fn random_scripts_say_the_same_as_the_model() {
    let mut messages = 0;
    for seed in 0..250 {
        let mut twin = twin();
        let mut dice = Dice(seed);
        let mut next = 1;
        for _ in 0..250 {
            step(&mut twin, &mut dice, &mut next);
            // What was compared is not compared again and again.
            if twin.it.answers.len() > 20 {
                messages += twin.data().len();
            }
        }
        // Then everything that is left, to the end.
        twin.enable_publishing(true);
        for _ in 0..10 {
            twin.publish_many(3);
            twin.run(100);
        }
        messages += twin.data().len();
    }
    assert!(messages > 8_000, "only {messages} values: the scripts say too little");
}

#[test]
fn from_sampling_to_reporting_and_back() {
    let mut t = twin();
    let id = t.create(1, SAMPLING, 3, true);
    t.publish_many(4);
    t.value(id, 1.0);
    t.run(300);
    assert_eq!(t.data(), []);
    t.mode(&[id], REPORTING);
    t.run(100);
    assert_eq!(t.data(), [(1, 0.5), (1, 1.0)], "what was queued before it reported");
    t.value(id, 2.0);
    t.mode(&[id], SAMPLING);
    t.run(300);
    assert_eq!(t.data(), [], "it left Reporting with a value that was ready");
    t.mode(&[id], REPORTING);
    t.value(id, 3.0);
    t.run(100);
    assert_eq!(t.data(), [(1, 2.0), (1, 3.0)]);
}

#[test]
fn disabled_before_publish() {
    let mut t = twin();
    let ids = [t.create(1, REPORTING, 3, true), t.create(2, REPORTING, 3, true)];
    t.publish_many(4);
    t.mode(&ids[..1], DISABLED);
    t.value(1, 7.0);
    t.run(100);
    assert_eq!(t.data(), [(2, 0.5)]);
    t.mode(&ids[..1], REPORTING);
    t.run(100);
    assert_eq!(
        t.data(),
        [(1, 7.0)],
        "the first sample is reported, whatever was before"
    );
}

#[test]
fn disabled_publishing_with_keep_alives_and_resend_data() {
    let mut t = twin();
    let id = t.create(1, REPORTING, 3, true);
    t.enable_publishing(false);
    t.publish_many(4);
    t.run(1500);
    assert!(t.it.answers.len() >= 2, "keep-alives are sent all the same");
    assert_eq!(t.data(), []);
    t.resend();
    t.value(id, 1.0);
    t.run(300);
    t.resend();
    t.publish_many(4);
    t.run(300);
    assert_eq!(t.data(), []);
    t.enable_publishing(true);
    t.run(100);
    assert_eq!(t.data(), [(1, 0.5), (1, 1.0)], "queued once, for all that was resent");
    t.resend();
    t.run(100);
    assert_eq!(t.data(), [(1, 1.0)]);
    t.enable_publishing(false);
    t.resend();
    t.run(500);
    t.publish_many(2);
    t.enable_publishing(true);
    t.run(100);
    assert_eq!(t.data(), [(1, 1.0)], "it waited for publishing");
}

#[test]
fn a_value_queued_while_the_item_is_in_the_list() {
    let mut t = twin();
    let ids = [t.create(1, REPORTING, 4, true), t.create(2, REPORTING, 4, true)];
    for value in 1..=3 {
        t.value(ids[0], f64::from(value));
        t.value(ids[1], f64::from(value));
    }
    // Eight values, four in a message, one request: the second half stays in the list.
    t.publish(&[]);
    t.run(100);
    assert_eq!(t.data(), [(1, 0.5), (1, 1.0), (1, 2.0), (1, 3.0)]);
    t.value(ids[0], 9.0);
    t.value(ids[1], 9.0);
    t.publish(&[]);
    assert_eq!(
        t.data(),
        [(2, 1.0), (2, 2.0), (2, 3.0), (2, 9.0)],
        "no need to wait: there was more"
    );
    t.publish(&[]);
    assert_eq!(t.data(), [(1, 9.0)]);
    t.value(ids[0], 10.0);
    t.publish(&[]);
    t.run(100);
    assert_eq!(t.data(), [(1, 10.0)], "it left the list and came back");
}

#[test]
fn the_backlog_of_an_item_that_left_reporting() {
    let mut t = twin();
    let ids = [t.create(1, REPORTING, 4, true), t.create(2, SAMPLING, 4, true)];
    t.link(ids[0], &[ids[1]], &[]);
    for value in 1..=3 {
        t.value(ids[0], f64::from(value));
        t.value(ids[1], f64::from(value));
    }
    t.publish(&[]);
    t.run(100);
    assert_eq!(t.data(), [(1, 0.5), (1, 1.0), (1, 2.0), (1, 3.0)]);
    // The triggered backlog is still to be sent when its item changes: no longer triggered, it stays queued.
    t.mode(&ids[1..], REPORTING);
    t.mode(&ids[1..], SAMPLING);
    t.publish_many(2);
    t.run(300);
    assert_eq!(t.data(), []);
    t.value(ids[0], 4.0);
    t.publish_many(2);
    t.run(100);
    assert_eq!(t.data(), [(1, 4.0), (2, 0.5), (2, 1.0), (2, 2.0), (2, 3.0)]);
}

#[test]
fn a_triggered_item_that_reports_from_now_on_keeps_its_place() {
    let mut t = twin();
    let ids = [1, 2, 3].map(|node| t.create(node, SAMPLING, 4, true));
    t.run(100);
    t.link(ids[0], &ids[1..2], &[]);
    t.value(ids[0], 1.0);
    t.run(100);
    t.mode(&ids[2..], REPORTING);
    t.mode(&ids[1..2], REPORTING);
    t.publish(&[]);
    assert_eq!(t.data(), [(2, 0.5), (3, 0.5)]);
}
