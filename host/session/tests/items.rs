//! Monitored items: creating, modifying, deleting, modes, queues, filters and timestamps, as a client sees them.

#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use std::time::Duration;

use backplane_session::{ItemTraits, Limits, ResolvedItem, SubscriptionRegistry};
use backplane_types::{
    DataChangeTrigger, DataValue, DateTime, ExtensionObject, MonitoredItemModifyRequest, MonitoringMode,
    MonitoringParameters, StatusCode, TimestampsToReturn, Variant,
};
use support::{NUMBER, PARAMETERS, bench, bench_in, bench_with, data_filter, request, source};

fn modify(id: u32, change: impl FnOnce(&mut MonitoringParameters)) -> MonitoredItemModifyRequest {
    let mut parameters = request(1).requested_parameters;
    change(&mut parameters);
    MonitoredItemModifyRequest {
        monitored_item_id: id,
        requested_parameters: parameters,
    }
}

fn overflow(value: &DataValue) -> bool {
    value.status().0 & StatusCode::OVERFLOW_BITS != 0
}

#[test]
fn results_have_the_order_of_the_requests() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    let good = request(1);
    let mut mode = request(2);
    mode.monitoring_mode = MonitoringMode(7);
    let mut filter = request(3);
    filter.requested_parameters.filter = data_filter(DataChangeTrigger::STATUS_VALUE, 1, -1.0);
    let ok = || {
        Ok(ResolvedItem {
            source: source(1),
            initial: None,
            traits: NUMBER,
        })
    };
    let results = it
        .subscriptions
        .create_monitored_items(
            it.now,
            id,
            TimestampsToReturn::BOTH,
            vec![
                (&good, Err(StatusCode::BAD_NODE_ID_UNKNOWN)),
                (&good, ok()),
                (&mode, ok()),
                (&filter, ok()),
                (&good, ok()),
            ],
        )
        .unwrap();
    let statuses: Vec<StatusCode> = results.iter().map(|result| result.status_code).collect();
    assert_eq!(
        statuses,
        [
            StatusCode::BAD_NODE_ID_UNKNOWN,
            StatusCode::GOOD,
            StatusCode::BAD_MONITORING_MODE_INVALID,
            StatusCode::BAD_DEADBAND_FILTER_INVALID,
            StatusCode::GOOD,
        ]
    );
    assert_ne!(results[1].monitored_item_id, results[4].monitored_item_id);
    assert_eq!(
        (results[1].revised_sampling_interval, results[1].revised_queue_size),
        (100.0, 10)
    );
    assert_eq!(results[0].monitored_item_id, 0);
    assert_eq!(it.subscriptions.monitored_items(id).unwrap().count(), 2);
}

#[test]
fn service_results() {
    let mut it = bench_with(Limits {
        max_operations: 2,
        ..Limits::default()
    });
    let id = it.create(&PARAMETERS);
    let (now, both) = (it.now, TimestampsToReturn::BOTH);
    let subscriptions = &mut it.subscriptions;
    assert_eq!(
        subscriptions.create_monitored_items(now, id, both, Vec::new()),
        Err(StatusCode::BAD_NOTHING_TO_DO)
    );
    let one = request(1);
    let items = |count: usize| {
        (0..count)
            .map(|_| (&one, Err(StatusCode::BAD_NODE_ID_UNKNOWN)))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        subscriptions.create_monitored_items(now, id, both, items(3)),
        Err(StatusCode::BAD_TOO_MANY_OPERATIONS)
    );
    assert_eq!(
        subscriptions.create_monitored_items(now, id + 1, both, items(1)),
        Err(StatusCode::BAD_SUBSCRIPTION_ID_INVALID)
    );
    assert_eq!(
        subscriptions.create_monitored_items(now, id, TimestampsToReturn(4), items(1)),
        Err(StatusCode::BAD_TIMESTAMPS_TO_RETURN_INVALID)
    );
    assert_eq!(
        subscriptions.modify_monitored_items(now, id, TimestampsToReturn(9), &[modify(1, |_| {})]),
        Err(StatusCode::BAD_TIMESTAMPS_TO_RETURN_INVALID)
    );
    assert_eq!(
        subscriptions.set_monitoring_mode(now, id, MonitoringMode(3), &[1]),
        Err(StatusCode::BAD_MONITORING_MODE_INVALID)
    );
    assert_eq!(
        subscriptions.set_monitoring_mode(now, id, MonitoringMode::SAMPLING, &[1]),
        Ok(vec![StatusCode::BAD_MONITORED_ITEM_ID_INVALID])
    );
    assert_eq!(
        subscriptions.delete_monitored_items(id, &[]),
        Err(StatusCode::BAD_NOTHING_TO_DO)
    );
    assert_eq!(
        subscriptions.delete_monitored_items(id, &[1]),
        Ok(vec![StatusCode::BAD_MONITORED_ITEM_ID_INVALID])
    );
    assert_eq!(subscriptions.check_items(id, 2), Ok(()));
    assert_eq!(
        subscriptions.check_items(id, 3),
        Err(StatusCode::BAD_TOO_MANY_OPERATIONS)
    );
    assert_eq!(
        subscriptions.check_items(9, 1),
        Err(StatusCode::BAD_SUBSCRIPTION_ID_INVALID)
    );
}

#[test]
fn items_are_limited_by_subscription_and_by_server() {
    let registry = SubscriptionRegistry::new(10, 5);
    let mut it = bench_in(
        Limits {
            max_monitored_items: 3,
            ..Limits::default()
        },
        &registry,
    );
    let (one, two) = (it.create(&PARAMETERS), it.create(&PARAMETERS));
    let requests = vec![request(1); 4];
    let statuses = |results: Vec<backplane_types::MonitoredItemCreateResult>| {
        results
            .iter()
            .map(|result| result.status_code.is_good())
            .collect::<Vec<_>>()
    };
    let first = it.try_items(one, &[1; 4], &requests);
    assert_eq!(first[3].status_code, StatusCode::BAD_TOO_MANY_MONITORED_ITEMS);
    assert_eq!(statuses(first), [true, true, true, false]);
    let second = it.try_items(two, &[1; 4], &requests);
    assert_eq!(second[2].status_code, StatusCode::BAD_TOO_MANY_MONITORED_ITEMS);
    assert_eq!(statuses(second), [true, true, false, false]);
    assert_eq!(registry.monitored_items(), 5);
    it.subscriptions.delete_monitored_items(one, &[1, 2]).unwrap();
    assert_eq!(registry.monitored_items(), 3);
    assert!(it.try_items(two, &[1], &requests[..1])[0].status_code.is_good());
}

#[test]
fn absurd_parameters_are_revised() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    for (interval, queue, expected) in [
        (f64::NAN, 0, (100.0, 1)),
        (-1.0, u32::MAX, (100.0, 100)),
        (0.0, 1, (10.0, 1)),
        (1e9, 5, (1e9, 5)),
        (f64::INFINITY, 5, (365.0 * 86_400_000.0, 5)),
    ] {
        let mut request = request(1);
        request.requested_parameters.sampling_interval = interval;
        request.requested_parameters.queue_size = queue;
        let result = &it.try_items(id, &[1], &[request])[0];
        assert_eq!((result.revised_sampling_interval, result.revised_queue_size), expected);
    }
    it.run(1000);
}

#[test]
fn sampling_faster_than_publishing_queues_every_value() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    it.item(id, 1, |request| request.sampling_interval = 10.0);
    it.publish_many(20);
    for value in 0..100 {
        it.set(1, value);
        it.run(10);
    }
    let values: Vec<f64> = it.messages().iter().flat_map(|message| message.numbers()).collect();
    assert_eq!(values, (0..100).map(f64::from).collect::<Vec<f64>>());
}

#[test]
fn overflow_is_told_on_the_neighbour_of_what_was_lost() {
    for (queue_size, discard_oldest, expected) in [
        (1, true, vec![(5.0, false)]),
        (1, false, vec![(5.0, false)]),
        (2, true, vec![(4.0, true), (5.0, false)]),
        (2, false, vec![(1.0, false), (5.0, true)]),
        (
            5,
            true,
            vec![(1.0, false), (2.0, false), (3.0, false), (4.0, false), (5.0, false)],
        ),
    ] {
        let mut it = bench();
        let id = it.create(&PARAMETERS);
        it.item(id, 1, |request| {
            request.sampling_interval = 10.0;
            request.queue_size = queue_size;
            request.discard_oldest = discard_oldest;
        });
        for value in 1..=5 {
            it.set(1, value);
            it.run(10);
        }
        it.publish();
        it.run(50);
        let message = it.message();
        let seen: Vec<(f64, bool)> = message
            .data
            .iter()
            .map(|(_, value)| (value.value.as_f64().unwrap(), overflow(value)))
            .collect();
        assert_eq!(seen, expected, "queue {queue_size}, discardOldest {discard_oldest}");
    }
}

#[test]
fn two_clients_on_the_same_nodes_each_get_everything() {
    let registry = SubscriptionRegistry::new(10, 100);
    let mut one = bench_in(Limits::default(), &registry);
    let mut two = bench_in(Limits::default(), &registry);
    let nodes = [1, 2, 3, 4];
    for it in [&mut one, &mut two] {
        let id = it.create(&PARAMETERS);
        it.items(id, &nodes);
    }
    let mut seen = [Vec::new(), Vec::new()];
    for value in 0..50 {
        for (it, seen) in [&mut one, &mut two].into_iter().zip(&mut seen) {
            it.publish();
            for node in nodes {
                it.set(node, value);
            }
            it.run(100);
            seen.extend(it.messages().iter().flat_map(|message| message.numbers()));
        }
    }
    assert_eq!(seen[0].len(), 200);
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn two_subscriptions_on_the_same_nodes_are_independent() {
    let mut it = bench();
    let (fast, slow) = (it.create_every(50.0), it.create_every(500.0));
    it.item(fast, 1, |request| request.sampling_interval = 50.0);
    it.item(slow, 1, |request| request.sampling_interval = 50.0);
    it.publish_many(20);
    for value in 0..10 {
        it.set(1, value);
        it.run(50);
    }
    let messages = it.messages();
    let of = |id: u32| -> Vec<f64> {
        messages
            .iter()
            .filter(|message| message.subscription == id)
            .flat_map(|message| message.numbers())
            .collect()
    };
    let all: Vec<f64> = (0..10).map(f64::from).collect();
    assert_eq!(of(fast), all);
    assert_eq!(of(slow), all);
    let numbers = |id| {
        messages
            .iter()
            .filter(move |it| it.subscription == id)
            .map(|it| it.sequence)
    };
    assert_eq!(numbers(fast).collect::<Vec<_>>(), (1..=10).collect::<Vec<_>>());
    assert_eq!(numbers(slow).collect::<Vec<_>>(), [1]);
}

#[test]
fn timestamps_to_return() {
    let source_time = DateTime::from_ticks(777);
    let server_time = DateTime::from_ticks(888);
    for (wanted, source, server) in [
        (TimestampsToReturn::SOURCE, true, false),
        (TimestampsToReturn::SERVER, false, true),
        (TimestampsToReturn::BOTH, true, true),
        (TimestampsToReturn::NEITHER, false, false),
    ] {
        let mut it = bench();
        let id = it.create(&PARAMETERS);
        let value = |server_timestamp| DataValue {
            source_timestamp: Some(source_time),
            source_picoseconds: Some(5),
            server_timestamp,
            ..DataValue::new(1.0)
        };
        let (one, two) = (request(1), request(2));
        let resolved = |initial| {
            Ok(ResolvedItem {
                source: support::source(1),
                initial: Some(initial),
                traits: NUMBER,
            })
        };
        it.subscriptions
            .create_monitored_items(
                it.now,
                id,
                wanted,
                vec![
                    (&one, resolved(value(Some(server_time)))),
                    (&two, resolved(value(None))),
                ],
            )
            .unwrap();
        let created = it.now.utc;
        it.publish();
        it.run(100);
        let message = it.message();
        let stamps = |index: usize| {
            let value = &message.data[index].1;
            (value.source_timestamp, value.source_picoseconds, value.server_timestamp)
        };
        let expected = |server_at| {
            (
                source.then_some(source_time),
                source.then_some(5),
                server.then_some(server_at),
            )
        };
        assert_eq!(stamps(0), expected(server_time));
        assert_eq!(stamps(1), expected(created), "the server stamps what has no time");
    }
}

#[test]
fn default_trigger_ignores_timestamps_and_modify_changes_it() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    let at = |ticks| DataValue {
        source_timestamp: Some(DateTime::from_ticks(ticks)),
        ..DataValue::new("same")
    };
    it.world.set_value(1, at(1));
    let item = it.item(id, 1, |_| {});
    it.publish_many(5);
    it.run(100);
    assert_eq!(it.message().data.len(), 1);
    it.world.set_value(1, at(2));
    it.run(200);
    assert!(it.answers.is_empty(), "same value, new timestamp");
    let filter = data_filter(DataChangeTrigger::STATUS_VALUE_TIMESTAMP, 0, 0.0);
    let results = it
        .subscriptions
        .modify_monitored_items(
            it.now,
            id,
            TimestampsToReturn::BOTH,
            &[modify(item, |request| request.filter = filter), modify(99, |_| {})],
        )
        .unwrap();
    assert_eq!(results[0].status_code, StatusCode::GOOD);
    assert_eq!(results[1].status_code, StatusCode::BAD_MONITORED_ITEM_ID_INVALID);
    it.world.set_value(1, at(3));
    it.run(100);
    assert_eq!(it.message().data[0].1.source_timestamp, Some(DateTime::from_ticks(3)));
}

#[test]
fn deadband_holds_back_small_changes_from_the_last_reported_value() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    let filter = data_filter(DataChangeTrigger::STATUS_VALUE, 1, 1.0);
    it.item(id, 1, |request| request.filter = filter);
    it.publish_many(20);
    for value in [0.0, 0.6, 0.9, 1.1, 1.9, 2.2, 0.0] {
        it.set(1, value);
        it.run(100);
    }
    let values: Vec<f64> = it.messages().iter().flat_map(|message| message.numbers()).collect();
    assert_eq!(values, [0.0, 1.1, 2.2, 0.0]);
}

#[test]
fn percent_deadband_uses_the_range_of_the_source() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    let mut one = request(1);
    one.requested_parameters.filter = data_filter(DataChangeTrigger::STATUS_VALUE, 2, 10.0);
    let with = |eu_range| {
        Ok(ResolvedItem {
            source: source(1),
            initial: None,
            traits: ItemTraits { eu_range, ..NUMBER },
        })
    };
    let results = it
        .subscriptions
        .create_monitored_items(
            it.now,
            id,
            TimestampsToReturn::BOTH,
            vec![(&one, with(None)), (&one, with(Some((0.0, 50.0))))],
        )
        .unwrap();
    assert_eq!(results[0].status_code, StatusCode::BAD_DEADBAND_FILTER_INVALID);
    it.publish_many(5);
    for value in [0.0, 5.0, 5.1] {
        it.set(1, value);
        it.run(100);
    }
    let values: Vec<f64> = it.messages().iter().flat_map(|message| message.numbers()).collect();
    assert_eq!(values, [0.0, 5.1]);
}

#[test]
fn not_a_number_is_reported_once() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    it.items(id, &[1]);
    it.publish_many(10);
    for _ in 0..5 {
        it.set(1, f64::NAN);
        it.run(100);
    }
    assert_eq!(it.messages().iter().map(|message| message.data.len()).sum::<usize>(), 1);
}

#[test]
fn monitoring_modes() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    let item = it.items(id, &[1])[0];
    let mode = |it: &mut support::Bench, mode| {
        let results = it.subscriptions.set_monitoring_mode(it.now, id, mode, &[item]).unwrap();
        assert_eq!(results, [StatusCode::GOOD]);
    };
    it.publish_many(15);
    it.set(1, 1);
    it.run(100);
    assert_eq!(it.message().numbers(), [1.0]);
    // Sampling: values are queued, nothing is sent but keep-alives.
    mode(&mut it, MonitoringMode::SAMPLING);
    for value in 2..=4 {
        it.set(1, value);
        it.run(100);
    }
    assert!(it.answers.is_empty());
    mode(&mut it, MonitoringMode::REPORTING);
    it.run(100);
    assert_eq!(it.message().numbers(), [2.0, 3.0, 4.0]);
    // A backlog of an item that left Reporting is not sent.
    it.set(1, 5);
    it.run(99);
    mode(&mut it, MonitoringMode::SAMPLING);
    it.run(101);
    assert!(it.answers.is_empty());
    // Disabled: everything is forgotten and nothing is sampled.
    mode(&mut it, MonitoringMode::DISABLED);
    let samples = it.world.sampled.len();
    it.set(1, 6);
    it.run(300);
    assert_eq!(it.world.sampled.len(), samples);
    // Enabled again: the first sample comes as soon as possible and is always reported.
    it.messages();
    mode(&mut it, MonitoringMode::REPORTING);
    it.run(100);
    assert_eq!(it.message().numbers(), [6.0]);
    // Also when the value is still the one that was reported before.
    mode(&mut it, MonitoringMode::DISABLED);
    mode(&mut it, MonitoringMode::REPORTING);
    it.run(100);
    assert_eq!(it.message().numbers(), [6.0]);
    let again = it.item(id, 1, |_| {});
    assert_ne!(again, item);
}

#[test]
fn an_item_created_disabled_or_sampling_does_not_report() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    it.set(1, 1);
    let mut requests = vec![request(1), request(2)];
    requests[0].monitoring_mode = MonitoringMode::DISABLED;
    requests[1].monitoring_mode = MonitoringMode::SAMPLING;
    let items = it.items_as(id, &[1, 1], &requests);
    it.publish_many(4);
    it.run(200);
    assert!(it.message().is_keep_alive());
    assert!(it.answers.is_empty());
    let reporting = MonitoringMode::REPORTING;
    it.subscriptions
        .set_monitoring_mode(it.now, id, reporting, &items)
        .unwrap();
    it.run(100);
    let message = it.message();
    let handles: Vec<u32> = message.data.iter().map(|(handle, _)| *handle).collect();
    assert_eq!(
        handles,
        [2, 1],
        "the queued value, and the first sample of the disabled item"
    );
    it.set(1, 2);
    it.run(100);
    assert_eq!(it.message().numbers(), [2.0, 2.0]);
}

#[test]
fn modify_changes_handle_queue_and_interval() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    let item = it.items(id, &[1])[0];
    for value in 1..=5 {
        it.set(1, value);
        it.run(100);
    }
    let request = modify(item, |request| {
        request.client_handle = 77;
        request.queue_size = 3;
        request.sampling_interval = 1000.0;
    });
    let result = &it
        .subscriptions
        .modify_monitored_items(it.now, id, TimestampsToReturn::BOTH, &[request])
        .unwrap()[0];
    assert_eq!(
        (result.revised_sampling_interval, result.revised_queue_size),
        (1000.0, 3)
    );
    it.publish();
    let message = it.message();
    assert_eq!(message.numbers(), [3.0, 4.0, 5.0]);
    assert!(overflow(&message.data[0].1) && !overflow(&message.data[1].1));
    assert!(message.data.iter().all(|(handle, _)| *handle == 77));
    let samples = it.world.sampled.len();
    it.run(999);
    assert_eq!(it.world.sampled.len(), samples);
    it.run(1);
    assert_eq!(it.world.sampled.len(), samples + 1);
    let keep = modify(item, |request| {
        request.queue_size = 0;
        request.sampling_interval = -1.0;
    });
    let result = &it
        .subscriptions
        .modify_monitored_items(it.now, id, TimestampsToReturn::BOTH, &[keep])
        .unwrap()[0];
    assert_eq!(
        (result.revised_sampling_interval, result.revised_queue_size),
        (1000.0, 3)
    );
}

#[test]
fn deleting_an_item_forgets_its_values() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    it.set(1, 1);
    it.set(2, 2);
    let items = it.items(id, &[1, 2, 1]);
    it.run(50);
    it.subscriptions.delete_monitored_items(id, &items[..1]).unwrap();
    it.items(id, &[2]);
    it.publish();
    it.run(50);
    assert_eq!(it.message().numbers(), [2.0, 1.0, 2.0]);
}

#[test]
fn creating_and_deleting_for_ever_keeps_lists_consistent() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    it.subscriptions.set_publishing_mode(false, &[id]).unwrap();
    let mut live = Vec::new();
    let mut seed = 1u32;
    for round in 0..2000u32 {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let node = seed >> 24;
        it.set(node, round);
        if seed.is_multiple_of(3) && !live.is_empty() {
            let item = live.swap_remove(seed as usize % live.len());
            it.subscriptions.delete_monitored_items(id, &[item]).unwrap();
        } else {
            live.push(it.item(id, node, |request| request.client_handle = round));
        }
        it.run(10);
        it.publish();
    }
    it.world.sampled.clear();
    it.run(1000);
    assert_eq!(it.world.sampled.len(), 10 * live.len(), "each once per interval");
    it.publish_many(5);
    it.answers.clear();
    it.subscriptions.set_publishing_mode(true, &[id]).unwrap();
    it.run(200);
    let mut handles: Vec<u32> = it
        .messages()
        .iter()
        .flat_map(|message| message.data.iter().map(|(handle, _)| *handle))
        .collect();
    handles.sort_unstable();
    handles.dedup();
    assert_eq!(handles.len(), it.subscriptions.monitored_items(id).unwrap().count());
    assert_eq!(handles.len(), live.len());
}

#[test]
fn a_value_too_long_for_a_message_is_replaced_by_a_status() {
    let mut it = bench_with(Limits {
        max_message_size: 1000,
        ..Limits::default()
    });
    let id = it.create(&PARAMETERS);
    it.set(1, 1);
    it.set(2, "x".repeat(5000).as_str());
    it.set(3, 3);
    for node in 4..10 {
        it.set(node, "y".repeat(400).as_str());
    }
    it.items(id, &(1..10).collect::<Vec<_>>());
    it.publish_many(5);
    it.run(100);
    let messages = it.messages();
    assert_eq!(messages.len(), 2, "split by size: {messages:?}");
    let values: Vec<&DataValue> = messages
        .iter()
        .flat_map(|message| message.data.iter().map(|(_, value)| value))
        .collect();
    assert_eq!(values.len(), 9);
    assert_eq!(values[1].status(), StatusCode::BAD_ENCODING_LIMITS_EXCEEDED);
    assert_eq!(values[1].value, Variant::Empty);
    assert_eq!(values[2].value.as_f64(), Some(3.0));
}

#[test]
fn resend_data_reports_newest_values_again() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    it.set(1, 1);
    it.set(2, 2);
    it.items(id, &[1, 2]);
    it.publish_many(3);
    it.run(100);
    assert_eq!(it.message().numbers(), [1.0, 2.0]);
    it.subscriptions.resend_data(id).unwrap();
    it.run(100);
    assert_eq!(it.message().numbers(), [1.0, 2.0]);
    assert_eq!(
        it.subscriptions.resend_data(id + 1),
        Err(StatusCode::BAD_SUBSCRIPTION_ID_INVALID)
    );
}

#[test]
fn a_filter_is_not_needed_for_text_with_any_trigger() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    let mut request = request(1);
    request.requested_parameters.filter = data_filter(DataChangeTrigger::STATUS_VALUE_TIMESTAMP, 0, 0.0);
    let text = ResolvedItem {
        source: source(1),
        initial: Some(DataValue::new("a")),
        traits: ItemTraits::default(),
    };
    let results = it
        .subscriptions
        .create_monitored_items(it.now, id, TimestampsToReturn::BOTH, vec![(&request, Ok(text))])
        .unwrap();
    assert_eq!(results[0].status_code, StatusCode::GOOD);
    assert_eq!(results[0].filter_result, ExtensionObject::NULL);
    assert_eq!(it.now.mono, Duration::from_secs(1000));
}

#[test]
fn changed_meaning_is_said_once_with_the_next_notification() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    it.set(1, 1.0);
    it.set(2, 2.0);
    let items = it.items(id, &[1, 2]);
    it.publish_many(10);
    it.run(100);
    it.message();
    let (semantics, structure) = (StatusCode::SEMANTICS_CHANGED, StatusCode::STRUCTURE_CHANGED);
    assert!(it.subscriptions.mark_changed(support::key(id, items[0]), semantics));
    assert!(!it.subscriptions.mark_changed(support::key(id, 99), semantics));
    it.run(300);
    assert!(it.answers.is_empty(), "it is no notification of its own");
    it.set(1, 1.5);
    it.set(2, 2.5);
    it.run(100);
    let bits =
        |message: &support::Message| -> Vec<u32> { message.data.iter().map(|(_, value)| value.status().0).collect() };
    assert_eq!(bits(&it.message()), [semantics, 0]);
    it.set(1, 2.0);
    it.run(100);
    assert_eq!(bits(&it.message()), [0], "once");
    it.subscriptions.mark_changed(support::key(id, items[1]), structure);
    it.subscriptions.mark_changed(support::key(id, items[1]), semantics);
    it.subscriptions.resend_data(id).unwrap();
    it.run(100);
    assert_eq!(bits(&it.message()), [0, semantics | structure]);
    // Resent once more: the bits were no part of the value.
    it.subscriptions.resend_data(id).unwrap();
    it.run(100);
    assert_eq!(bits(&it.message()), [0, 0]);
}
