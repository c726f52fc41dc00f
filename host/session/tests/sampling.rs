//! When sources are sampled, values that have to be fetched, and nodes that go and come back.

#![allow(missing_docs, clippy::unwrap_used)]

#[path = "aggregates/mod.rs"]
mod aggregates;
mod support;

use std::time::Duration;

use backplane_session::{ItemTraits, ResolvedItem, SourceChange};
use backplane_types::{DataValue, MonitoredItemModifyRequest, MonitoringMode, StatusCode, TimestampsToReturn};
use support::{NUMBER, PARAMETERS, bench, key, request, source};

#[test]
fn the_first_sample_comes_at_once_and_the_next_on_schedule() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    it.set(1, 1);
    let start = it.now.mono;
    it.items(id, &[1]);
    assert_eq!(it.subscriptions.poll_timeout(), Some(start));
    it.run(350);
    let offsets: Vec<u128> = it
        .world
        .sampled
        .iter()
        .map(|(time, _)| (*time - start).as_millis())
        .collect();
    assert_eq!(offsets, [0, 100, 200, 300]);
}

#[test]
fn an_initial_value_saves_the_first_sample() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    let one = request(1);
    let resolved = ResolvedItem {
        source: source(1),
        initial: Some(DataValue::new(5)),
        traits: NUMBER,
    };
    it.subscriptions
        .create_monitored_items(it.now, id, TimestampsToReturn::BOTH, vec![(&one, Ok(resolved))])
        .unwrap();
    it.publish();
    it.run(99);
    assert!(it.world.sampled.is_empty());
    it.run(1);
    assert_eq!(it.message().numbers(), [5.0]);
}

#[test]
fn a_slow_caller_makes_up_for_missed_samples_and_restarts_after_a_stall() {
    let mut it = bench();
    let id = it.create_every(1000.0);
    it.set(1, 1);
    it.item(id, 1, |request| request.sampling_interval = 10.0);
    it.run(100);
    let before = it.world.sampled.len();
    // 200 ms without a wake-up.
    it.now = it.now.after(Duration::from_millis(200));
    it.run(0);
    assert_eq!(it.world.sampled.len(), before + 20);
    assert_eq!(it.subscriptions.counters().sampling_restarts, 0);
    // 3 s without a wake-up.
    let before = it.world.sampled.len();
    it.now = it.now.after(Duration::from_secs(3));
    it.run(0);
    assert_eq!(it.world.sampled.len(), before + 1);
    it.run(1000);
    assert_eq!(it.world.sampled.len(), before + 101);
    assert_eq!(it.subscriptions.counters().sampling_restarts, 1);
}

#[test]
fn nothing_is_due_without_subscriptions_and_items_cost_nothing_between_samples() {
    let mut it = bench();
    assert_eq!(it.subscriptions.poll_timeout(), None);
    let id = it.create_every(3_600_000.0);
    it.set(1, 1);
    it.item(id, 1, |request| request.sampling_interval = 3_600_000.0);
    it.run(1);
    let next = it.subscriptions.poll_timeout().unwrap();
    assert_eq!(next - it.now.mono, Duration::from_millis(3_599_999));
}

#[test]
fn items_of_one_interval_are_sampled_together() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    let nodes: Vec<u32> = (0..4096).collect();
    for node in &nodes {
        it.set(*node, 0);
    }
    it.items(id, &nodes);
    it.run(0);
    it.world.sampled.clear();
    it.run(1000);
    assert_eq!(it.world.sampled.len(), 40_960);
    let mut times: Vec<Duration> = it.world.sampled.iter().map(|(time, _)| *time).collect();
    times.dedup();
    assert_eq!(times.len(), 10);
}

#[test]
fn publishing_interval_as_sampling_interval() {
    let mut it = bench();
    let id = it.create_every(250.0);
    it.item(id, 1, |request| request.sampling_interval = -1.0);
    let info = it.subscriptions.monitored_items(id).unwrap().next().unwrap();
    assert_eq!(
        info.sampling_interval, 300.0,
        "the next supported one, never a shorter one"
    );
}

fn continuous(it: &mut support::Bench, subscription: u32, node: u32) -> u32 {
    let mut one = request(node);
    one.requested_parameters.sampling_interval = 0.0;
    let resolved = ResolvedItem {
        source: source(node),
        initial: None,
        traits: ItemTraits {
            minimum_sampling_interval: 0.0,
            ..NUMBER
        },
    };
    let results = it
        .subscriptions
        .create_monitored_items(
            it.now,
            subscription,
            TimestampsToReturn::BOTH,
            vec![(&one, Ok(resolved))],
        )
        .unwrap();
    assert_eq!(results[0].revised_sampling_interval, 0.0);
    results[0].monitored_item_id
}

#[test]
fn sampling_interval_0_reports_by_exception() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    let item = continuous(&mut it, id, 1);
    it.set(1, 0);
    it.publish_many(5);
    it.run(0);
    for value in 1..=3 {
        it.set(1, value);
        it.subscriptions.notify_changed(it.now, key(id, item), &mut it.world);
    }
    it.run(100);
    assert_eq!(it.message().numbers(), [0.0, 1.0, 2.0, 3.0]);
    // Without notification the item is looked at every 10 ms.
    it.set(1, 9);
    it.run(100);
    assert_eq!(it.message().numbers(), [9.0]);
    // An item with an interval keeps to it.
    let slow = it.items(id, &[1])[0];
    it.run(0);
    let samples = it.world.sampled.len();
    it.subscriptions.notify_changed(it.now, key(id, slow), &mut it.world);
    assert_eq!(it.world.sampled.len(), samples);
}

#[test]
fn values_that_have_to_be_fetched() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    let items = it.items(id, &[1, 2]);
    it.publish_many(5);
    it.run(0);
    assert_eq!(it.world.asked.len(), 2, "asked in one go");
    it.run(500);
    assert_eq!(it.world.asked.len(), 2, "not asked again while the answer is out");
    assert!(it.message().is_keep_alive());
    let asked = std::mem::take(&mut it.world.asked);
    it.subscriptions.handle_samples(
        it.now,
        [
            (asked[0].0, DataValue::new(1)),
            (asked[1].0, DataValue::from_status(StatusCode::BAD_TIMEOUT)),
        ],
    );
    it.run(100);
    let message = it.message();
    assert_eq!(message.data[0].1.value.as_f64(), Some(1.0));
    assert_eq!(message.data[1].1.status(), StatusCode::BAD_TIMEOUT);
    assert_eq!(it.world.asked.len(), 2, "and on with the schedule");
    // Answers that come too late are ignored: another source, disabled, deleted, or given twice.
    let asked = std::mem::take(&mut it.world.asked);
    it.subscriptions
        .rebind(it.now, key(id, items[0]), source(1), Some(DataValue::new(1)));
    it.subscriptions.delete_monitored_items(id, &items[1..]).unwrap();
    it.subscriptions
        .handle_samples(it.now, asked.iter().map(|(key, _)| (*key, DataValue::new(99))));
    it.run(200);
    assert!(it.answers.is_empty());
    let asked = std::mem::take(&mut it.world.asked);
    let disabled = MonitoringMode::DISABLED;
    it.subscriptions
        .set_monitoring_mode(it.now, id, disabled, &items[..1])
        .unwrap();
    let reporting = MonitoringMode::REPORTING;
    it.subscriptions
        .set_monitoring_mode(it.now, id, reporting, &items[..1])
        .unwrap();
    it.run(0);
    it.subscriptions
        .handle_samples(it.now, asked.iter().map(|(key, _)| (*key, DataValue::new(99))));
    assert_eq!(it.world.asked.len(), 1);
    let fresh = it.world.asked[0].0;
    let twice = [(fresh, DataValue::new(7)), (fresh, DataValue::new(8))];
    it.subscriptions.handle_samples(it.now, twice);
    it.run(100);
    assert_eq!(it.message().numbers(), [7.0]);
}

#[test]
fn a_node_that_is_gone_is_told_once_and_may_return() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    it.set(1, 1);
    let item = it.items(id, &[1])[0];
    it.publish_many(20);
    it.run(100);
    assert_eq!(it.message().numbers(), [1.0]);
    assert!(it.subscriptions.node_gone(key(id, item)));
    assert!(it.subscriptions.node_gone(key(id, item)));
    assert!(!it.subscriptions.node_gone(key(id, 99)));
    it.set(1, 2);
    it.run(100);
    let message = it.message();
    assert_eq!(message.data.len(), 1);
    assert_eq!(message.data[0].1.status(), StatusCode::BAD_NODE_ID_UNKNOWN);
    let samples = it.world.sampled.len();
    let mut modify = MonitoredItemModifyRequest {
        monitored_item_id: item,
        requested_parameters: request(1).requested_parameters,
    };
    modify.requested_parameters.sampling_interval = 50.0;
    let both = TimestampsToReturn::BOTH;
    it.subscriptions
        .modify_monitored_items(it.now, id, both, &[modify])
        .unwrap();
    it.run(400);
    assert!(it.answers.is_empty(), "nothing more until it returns");
    assert_eq!(it.world.sampled.len(), samples, "whatever is done to the item");
    it.subscriptions.rebind(it.now, key(id, item), source(1), None);
    it.run(100);
    assert_eq!(it.message().numbers(), [2.0]);
}

#[test]
fn gone_and_back_before_publishing_loses_neither_the_news_nor_the_value() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    let item = it.item(id, 1, |request| request.queue_size = 1);
    it.set(1, 1);
    it.publish_many(3);
    it.run(100);
    it.messages();
    it.subscriptions.node_gone(key(id, item));
    it.subscriptions.rebind(it.now, key(id, item), source(1), None);
    for value in 2..5 {
        it.set(1, value);
        it.run(10);
    }
    it.run(200);
    let data: Vec<_> = it.messages().into_iter().flat_map(|message| message.data).collect();
    let unknown = StatusCode::BAD_NODE_ID_UNKNOWN;
    assert_eq!(data.iter().filter(|(_, value)| value.status() == unknown).count(), 1);
    assert_eq!(data[0].1.status(), unknown);
    assert_eq!(data.last().unwrap().1.value.as_f64(), Some(4.0));
}

#[test]
fn another_source_with_an_equal_value_sends_nothing() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    it.set(1, 1);
    it.set(2, 1);
    let item = it.items(id, &[1])[0];
    it.publish_many(5);
    it.run(100);
    assert_eq!(it.message().numbers(), [1.0]);
    it.subscriptions.rebind(it.now, key(id, item), source(2), None);
    it.run(100);
    it.subscriptions
        .rebind(it.now, key(id, item), source(1), Some(DataValue::new(1)));
    it.run(100);
    assert!(it.answers.is_empty());
    it.subscriptions.visit_sources(it.now, |_, source| {
        assert_eq!(source.node, 1);
        SourceChange::Rebound {
            source: support::source(2),
            value: None,
        }
    });
    it.set(2, 3);
    it.run(100);
    assert_eq!(it.message().numbers(), [3.0]);
}

#[test]
fn visiting_sources_tells_which_are_gone() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    for node in 1..=4 {
        it.set(node, node);
    }
    it.items(id, &[1, 2, 3, 4]);
    it.publish_many(5);
    it.run(100);
    it.messages();
    it.subscriptions.visit_sources(it.now, |_, source| {
        if source.node % 2 == 0 {
            SourceChange::Gone
        } else {
            SourceChange::Keep
        }
    });
    for node in 1..=4 {
        it.set(node, node + 10);
    }
    it.run(100);
    let data = it.message().data;
    let seen: Vec<(u32, bool)> = data
        .iter()
        .map(|(handle, value)| (*handle, value.status().is_bad()))
        .collect();
    assert_eq!(seen, [(2, true), (4, true), (1, false), (3, false)]);
}

#[test]
fn a_disabled_item_whose_node_went_says_so_when_it_is_enabled() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    it.set(1, 1);
    let item = it.items(id, &[1])[0];
    it.publish_many(5);
    it.run(100);
    it.messages();
    let (disabled, reporting) = (MonitoringMode::DISABLED, MonitoringMode::REPORTING);
    it.subscriptions
        .set_monitoring_mode(it.now, id, disabled, &[item])
        .unwrap();
    it.subscriptions.node_gone(key(id, item));
    it.run(200);
    assert!(it.answers.is_empty());
    it.subscriptions
        .set_monitoring_mode(it.now, id, reporting, &[item])
        .unwrap();
    it.run(100);
    assert_eq!(it.message().data[0].1.status(), StatusCode::BAD_NODE_ID_UNKNOWN);
}

/// Changes a node and wakes the items that rest on it, as a caller does whose sources tell.
fn change(it: &mut support::Bench, node: u32, value: i32) {
    it.set(node, value);
    let (woken, resting) = std::mem::take(&mut it.world.resting)
        .into_iter()
        .partition(|(_, of)| *of == node);
    it.world.resting = resting;
    let woken: Vec<(backplane_session::SampleKey, u32)> = woken;
    for (key, _) in woken {
        assert!(it.subscriptions.wake(it.now, key));
    }
}

#[test]
fn a_thousand_items_of_which_few_change_cost_what_the_few_cost() {
    const SOME: u32 = 20;
    const ALL: u32 = 1000;
    let mut it = bench();
    it.world.tells = true;
    let id = it.create_every(50.0);
    let nodes: Vec<u32> = (0..ALL).collect();
    for node in &nodes {
        it.set(*node, 0);
        it.item(id, *node, |request| {
            request.sampling_interval = 50.0;
            request.queue_size = 100;
        });
    }
    it.publish();
    it.run(150);
    let mut got = it.all_numbers();
    assert_eq!(got.len(), 1000);
    it.world.sampled.clear();
    got.clear();
    for round in 1..=20 {
        for node in 0..SOME {
            change(&mut it, node, round);
        }
        it.publish();
        it.run(50);
        got.extend(it.all_numbers());
    }
    let looks = it.world.sampled.len();
    assert!(
        looks <= (SOME * 21) as usize,
        "{looks} looks at {SOME} items that changed 20 times"
    );
    assert_eq!(got.len(), (SOME * 20) as usize, "every change is reported");
    it.world.sampled.clear();
    it.run(1000);
    assert!(
        it.world.sampled.len() <= SOME as usize,
        "what does not change is not looked at"
    );
}

#[test]
fn an_item_at_rest_keeps_to_its_interval_and_to_the_latest_value() {
    let mut it = bench();
    it.world.tells = true;
    let id = it.create_every(10.0);
    it.set(1, 0);
    it.item(id, 1, |request| {
        request.sampling_interval = 50.0;
        request.queue_size = 100;
    });
    let start = it.now.mono;
    it.publish();
    it.run(1000);
    it.world.sampled.clear();
    it.all_numbers();
    it.run(7);
    for value in 1..=3 {
        change(&mut it, 1, value);
    }
    it.publish_many(2);
    it.run(43);
    assert_eq!(
        it.world.sampled,
        [(start + Duration::from_millis(1050), 1)],
        "on its grid, once"
    );
    it.run(10);
    assert_eq!(it.all_numbers(), [3.0]);
}

#[test]
fn what_changes_at_every_tick_is_looked_at_without_being_told() {
    let mut it = bench();
    it.world.tells = true;
    let id = it.create_every(100.0);
    it.set(1, 0);
    it.item(id, 1, |request| {
        request.sampling_interval = 10.0;
        request.queue_size = 1000;
    });
    it.run(100);
    let mut told = 0;
    for value in 1..=50 {
        told += it.world.resting.len();
        change(&mut it, 1, value);
        it.run(10);
    }
    assert!(told <= 3, "told {told} times");
    it.run(10);
    assert_eq!(it.world.resting.len(), 1, "it rests when it changes no more");
    it.publish();
    it.run(100);
    assert_eq!(it.all_numbers().len(), 51, "every sample was taken");
}

#[test]
fn what_is_reported_by_exception_is_sampled_when_it_changes_but_not_too_often() {
    let mut it = bench();
    it.world.tells = true;
    let id = it.create_every(1000.0);
    it.set(1, 0);
    let mut one = request(1);
    one.requested_parameters.sampling_interval = 0.0;
    let mut traits = NUMBER;
    traits.minimum_sampling_interval = 0.0;
    let resolved = ResolvedItem {
        source: source(1),
        initial: None,
        traits,
    };
    it.subscriptions
        .create_monitored_items(it.now, id, TimestampsToReturn::BOTH, vec![(&one, Ok(resolved))])
        .unwrap();
    it.run(500);
    it.world.sampled.clear();
    it.run(3);
    change(&mut it, 1, 1);
    let changed = it.now.mono;
    assert_eq!(it.subscriptions.poll_timeout(), Some(changed), "at once");
    it.run(0);
    change(&mut it, 1, 2);
    it.run(30);
    let times: Vec<Duration> = it.world.sampled.iter().map(|(time, _)| *time - changed).collect();
    assert_eq!(times.first(), Some(&Duration::ZERO));
    assert_eq!(times.get(1), Some(&Duration::from_millis(10)), "{times:?}");
    assert!(times.len() <= 3, "{times:?}");
}

#[test]
fn an_item_that_rests_can_be_deleted_disabled_modified_and_bound_anew() {
    let mut it = bench();
    it.world.tells = true;
    let id = it.create_every(10.0);
    for node in 1..=4 {
        it.set(node, 0);
    }
    let ids: Vec<u32> = (1..=4)
        .map(|node| it.item(id, node, |request| request.sampling_interval = 50.0))
        .collect();
    it.run(200);
    let keys = it.world.resting.clone();
    assert_eq!(keys.len(), 4);
    it.subscriptions.delete_monitored_items(id, &ids[..1]).unwrap();
    it.subscriptions
        .set_monitoring_mode(it.now, id, MonitoringMode::DISABLED, &ids[1..2])
        .unwrap();
    it.subscriptions.rebind(it.now, key(id, ids[2]), source(9), None);
    it.set(9, 7);
    for (key, _) in &keys {
        assert!(it.subscriptions.wake(it.now, *key));
    }
    let modify = MonitoredItemModifyRequest {
        monitored_item_id: ids[3],
        requested_parameters: {
            let mut parameters = request(4).requested_parameters;
            parameters.sampling_interval = 20.0;
            parameters
        },
    };
    it.subscriptions
        .modify_monitored_items(it.now, id, TimestampsToReturn::BOTH, &[modify])
        .unwrap();
    it.world.sampled.clear();
    it.run(200);
    let looked: std::collections::BTreeSet<u32> = it.world.sampled.iter().map(|(_, node)| *node).collect();
    assert_eq!(looked, [4, 9].into());
    it.subscriptions
        .set_monitoring_mode(it.now, id, MonitoringMode::REPORTING, &ids[1..2])
        .unwrap();
    it.world.sampled.clear();
    it.run(200);
    assert!(
        it.world.sampled.iter().any(|(_, node)| *node == 2),
        "enabled, it is sampled again"
    );
}

#[test]
fn rights_that_are_lost_are_said_as_such_and_once() {
    let mut it = bench();
    it.set(1, 1.0);
    let id = it.create(&PARAMETERS);
    let item = it.items(id, &[1])[0];
    it.publish_many(3);
    it.run(100);
    assert_eq!(it.all_numbers(), [1.0]);
    for _ in 0..2 {
        it.subscriptions.visit_sources(it.now, |_, _| SourceChange::Denied);
    }
    it.run(100);
    let message = it.message();
    assert_eq!(message.data.len(), 1);
    assert_eq!(message.data[0].1.status, Some(StatusCode::BAD_USER_ACCESS_DENIED));
    it.set(1, 2.0);
    assert!(
        it.subscriptions
            .rebind(it.now, key(id, item), source(1), Some(DataValue::new(2.0)))
    );
    it.run(100);
    assert_eq!(it.all_numbers(), [2.0]);
}
