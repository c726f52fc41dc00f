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
