//! Publish, keep-alives, sequence numbers, acknowledgements, Republish and the end of subscriptions, as a client sees them.

#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use std::time::Duration;

use backplane_session::{Limits, State, SubscriptionParameters, SubscriptionRegistry};
use backplane_types::{BinaryDecode, DecodeLimits, Decoder, NotificationMessage, StatusCode};
use support::{PARAMETERS, bench, bench_in, bench_with};

#[test]
fn first_cycle_sends_a_keep_alive_with_the_next_sequence_number() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    it.publish_many(3);
    it.run(99);
    assert!(
        it.answers.is_empty(),
        "the first cycle ends after one publishing interval"
    );
    it.run(1);
    let first = it.message();
    assert!(first.is_keep_alive());
    assert_eq!((first.subscription, first.sequence), (id, 1));
    assert_eq!(first.available, [0u32; 0]);
    it.run(499);
    assert!(it.answers.is_empty());
    it.run(1);
    let second = it.message();
    assert!(second.is_keep_alive());
    assert_eq!(second.sequence, 1, "a keep-alive does not use its number");
}

#[test]
fn data_comes_with_the_first_cycle_and_uses_numbers_from_1() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    it.set(7, 1.5);
    it.items(id, &[7]);
    it.publish_many(3);
    it.run(100);
    let first = it.message();
    assert_eq!((first.sequence, first.numbers()), (1, vec![1.5]));
    assert_eq!(first.data[0].0, 7);
    assert_eq!(first.available, [1]);
    it.set(7, 2.5);
    it.run(100);
    assert_eq!(it.message().sequence, 2);
    it.run(500);
    let keep_alive = it.message();
    assert!(keep_alive.is_keep_alive());
    assert_eq!(keep_alive.sequence, 3);
    assert_eq!(keep_alive.available, [1, 2]);
    it.publish();
    it.set(7, 3.5);
    it.run(100);
    assert_eq!(it.message().sequence, 3, "the number that the keep-alive announced");
}

#[test]
fn a_late_subscription_answers_the_next_publish_at_once() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    it.set(1, 1);
    it.items(id, &[1]);
    it.run(150);
    assert_eq!(it.subscriptions.state(id), Some(State::Late));
    it.publish();
    assert_eq!(it.message().numbers(), [1.0]);
    assert_eq!(it.subscriptions.state(id), Some(State::Normal));
}

#[test]
fn keep_alives_of_a_day_come_on_time() {
    let mut it = bench();
    let id = it.create(&SubscriptionParameters {
        publishing_interval: 1000.0,
        lifetime_count: 60,
        max_keep_alive_count: 10,
        ..PARAMETERS
    });
    it.publish_many(2);
    let start = it.now.mono;
    let mut expected = 1;
    let mut count = 0;
    for _ in 0..86_400 {
        it.run(1000);
        while !it.answers.is_empty() {
            let message = it.message();
            assert!(message.is_keep_alive());
            assert_eq!((message.subscription, message.sequence), (id, 1));
            assert_eq!((it.now.mono - start).as_secs(), expected);
            expected += 10;
            count += 1;
            it.publish();
        }
    }
    assert_eq!(count, 8640);
    assert_eq!(it.subscriptions.len(), 1);
}

#[test]
fn a_subscription_without_items_lives_as_long_as_its_client_publishes() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    for _ in 0..20 {
        it.run(9000);
        it.publish();
    }
    assert_eq!(it.subscriptions.len(), 1);
    it.set(1, 1);
    it.items(id, &[1]);
    it.run(200);
    it.publish();
    assert!(it.messages().iter().any(|message| message.numbers() == [1.0]));
}

#[test]
fn twenty_publish_requests_in_flight_and_the_oldest_gives_way() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    it.publish_many(20);
    assert!(it.answers.is_empty());
    assert_eq!(it.subscriptions.waiting_requests(), 20);
    it.publish();
    assert_eq!(it.fault(), (1, StatusCode::BAD_TOO_MANY_PUBLISH_REQUESTS));
    it.publish();
    assert_eq!(it.fault(), (2, StatusCode::BAD_TOO_MANY_PUBLISH_REQUESTS));
    assert_eq!(it.subscriptions.counters().refused_requests, 2);
    it.items(id, &[1]);
    for value in 0..20 {
        it.set(1, value);
        it.run(100);
    }
    let tickets: Vec<u64> = it.answers.iter().map(|(ticket, _)| *ticket).collect();
    assert_eq!(
        tickets,
        (3..23).collect::<Vec<u64>>(),
        "answered in the order they came"
    );
    let sequences: Vec<u32> = it.messages().iter().map(|message| message.sequence).collect();
    assert_eq!(sequences, (1..=20).collect::<Vec<u32>>());
}

#[test]
fn a_flood_of_publish_requests_stays_bounded() {
    let mut it = bench();
    it.create(&PARAMETERS);
    it.publish_many(100_000);
    assert_eq!(it.subscriptions.waiting_requests(), 20);
    assert_eq!(it.answers.len(), 99_980, "everyone gets an answer");
}

#[test]
fn more_publish_requests_than_subscriptions_are_accepted() {
    let mut it = bench();
    for _ in 0..50 {
        it.create(&PARAMETERS);
    }
    it.publish_many(51);
    assert!(it.answers.is_empty());
    it.publish();
    assert_eq!(it.fault().1, StatusCode::BAD_TOO_MANY_PUBLISH_REQUESTS);
}

#[test]
fn publish_without_subscription() {
    let mut it = bench();
    it.publish();
    assert_eq!(it.fault(), (1, StatusCode::BAD_NO_SUBSCRIPTION));
    let id = it.create(&PARAMETERS);
    it.publish_many(2);
    assert_eq!(it.subscriptions.delete_subscriptions(&[id]), Ok(vec![StatusCode::GOOD]));
    it.collect();
    assert_eq!(it.fault(), (2, StatusCode::BAD_NO_SUBSCRIPTION));
    assert_eq!(it.fault(), (3, StatusCode::BAD_NO_SUBSCRIPTION));
}

#[test]
fn acknowledgements_are_answered_one_by_one_in_any_order() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    it.items(id, &[1]);
    for value in 1..=4 {
        it.set(1, value);
        it.publish();
        it.run(100);
    }
    assert_eq!(it.messages().last().unwrap().available, [1, 2, 3, 4]);
    let ticket = it.acknowledge(&[(id, 3), (id, 1), (id, 3), (id, 99), (id, 0), (id + 1, 1)]);
    it.set(1, 5);
    it.run(100);
    assert_eq!(it.answers[0].0, ticket);
    let message = it.message();
    assert_eq!(
        message.results,
        [
            StatusCode::GOOD,
            StatusCode::GOOD,
            StatusCode::BAD_SEQUENCE_NUMBER_UNKNOWN,
            StatusCode::BAD_SEQUENCE_NUMBER_UNKNOWN,
            StatusCode::BAD_SEQUENCE_NUMBER_INVALID,
            StatusCode::BAD_SUBSCRIPTION_ID_INVALID,
        ]
    );
    assert_eq!(message.available, [2, 4, 5]);
    it.publish();
    it.set(1, 6);
    it.run(100);
    assert!(it.message().results.is_empty());
}

#[test]
fn too_many_acknowledgements() {
    let mut it = bench_with(Limits {
        max_operations: 3,
        ..Limits::default()
    });
    let id = it.create(&PARAMETERS);
    it.acknowledge(&[(id, 1); 4]);
    assert_eq!(it.fault().1, StatusCode::BAD_TOO_MANY_OPERATIONS);
}

#[test]
fn messages_that_nobody_acknowledges_stay_bounded_and_the_oldest_go() {
    let mut it = bench_with(Limits {
        max_retransmission_messages: 5,
        ..Limits::default()
    });
    let id = it.create(&PARAMETERS);
    it.items(id, &[1]);
    let mut last = None;
    for value in 0..1000 {
        it.set(1, value);
        it.publish();
        it.run(100);
        last = Some(it.message());
    }
    assert_eq!(last.unwrap().available, [996, 997, 998, 999, 1000]);
    assert_eq!(it.subscriptions.counters().dropped_messages, 995);
}

#[test]
fn republish_gives_the_same_bytes_until_acknowledged() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    it.set(1, 42);
    it.items(id, &[1]);
    it.publish();
    it.run(100);
    let sent = it.message();
    let bytes = it.subscriptions.republish(id, 1).unwrap();
    let mut d = Decoder::new(&bytes, DecodeLimits::TRUSTED);
    let again = NotificationMessage::decode(&mut d).unwrap();
    assert!(d.is_empty());
    assert_eq!(again.sequence_number, sent.sequence);
    assert_eq!(again.notification_data.len(), 1);
    let shared = it.subscriptions.republish(id, 1).unwrap();
    assert!(std::sync::Arc::ptr_eq(&bytes, &shared), "never copied");
    let unavailable = Err(StatusCode::BAD_MESSAGE_NOT_AVAILABLE);
    assert_eq!(it.subscriptions.republish(id, 2), unavailable);
    it.acknowledge(&[(id, 1)]);
    assert_eq!(it.subscriptions.republish(id, 1), unavailable);
    let unknown = Err(StatusCode::BAD_SUBSCRIPTION_ID_INVALID);
    assert_eq!(it.subscriptions.republish(id + 1, 1), unknown);
}

#[test]
fn an_expired_subscription_says_so_with_the_next_publish() {
    let registry = SubscriptionRegistry::new(10, 10);
    let mut it = bench_in(Limits::default(), &registry);
    let id = it.create(&PARAMETERS);
    it.items(id, &[1]);
    it.run(9999);
    assert_eq!(it.subscriptions.len(), 1);
    it.run(1);
    assert_eq!(it.subscriptions.len(), 0);
    assert_eq!((registry.subscriptions(), registry.monitored_items()), (0, 0));
    assert_eq!(it.subscriptions.poll_ended(), Some(id));
    assert_eq!(it.subscriptions.poll_timeout(), None);
    it.publish();
    let message = it.message();
    assert_eq!(message.subscription, id);
    assert_eq!(message.status_change, Some(StatusCode::BAD_TIMEOUT));
    it.publish();
    assert_eq!(it.fault().1, StatusCode::BAD_NO_SUBSCRIPTION);
}

#[test]
fn a_parked_publish_request_keeps_the_subscription() {
    let mut it = bench();
    it.create(&PARAMETERS);
    for _ in 0..100 {
        it.publish();
        it.run(500);
        assert_eq!(it.subscriptions.len(), 1);
    }
}

#[test]
fn services_reset_the_lifetime() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    it.items(id, &[1]);
    for round in 0..5 {
        it.run(9000);
        match round {
            0 => drop(it.subscriptions.modify_subscription(it.now, id, &PARAMETERS)),
            1 => drop(it.subscriptions.set_publishing_mode(true, &[id])),
            2 => drop(it.subscriptions.republish(id, 1)),
            3 => drop(it.subscriptions.delete_monitored_items(id, &[99])),
            _ => {}
        }
    }
    assert_eq!(it.subscriptions.len(), 1, "the last reset was 9 s ago");
    it.run(1000);
    assert_eq!(it.subscriptions.len(), 0);
}

#[test]
fn subscriptions_of_a_closed_session_live_until_their_lifetime_ends() {
    let registry = SubscriptionRegistry::new(10, 10);
    let mut it = bench_in(Limits::default(), &registry);
    let id = it.create(&PARAMETERS);
    it.items(id, &[1]);
    it.publish_many(2);
    it.subscriptions.detach();
    it.collect();
    assert_eq!(it.fault(), (1, StatusCode::BAD_SESSION_CLOSED));
    assert_eq!(it.fault(), (2, StatusCode::BAD_SESSION_CLOSED));
    it.run(9000);
    assert!(!it.subscriptions.is_empty());
    it.run(1000);
    assert!(it.subscriptions.is_empty());
    assert_eq!(registry.subscriptions(), 0);
}

#[test]
fn closing_the_session_with_its_subscriptions_frees_everything() {
    let registry = SubscriptionRegistry::new(10, 10);
    let mut it = bench_in(Limits::default(), &registry);
    let id = it.create(&PARAMETERS);
    it.items(id, &[1, 2]);
    it.publish();
    it.subscriptions.close();
    it.collect();
    assert_eq!(it.fault(), (1, StatusCode::BAD_SESSION_CLOSED));
    assert_eq!((registry.subscriptions(), registry.monitored_items()), (0, 0));
}

#[test]
fn more_notifications_than_a_message_takes() {
    let mut it = bench();
    let id = it.create(&SubscriptionParameters {
        max_notifications_per_publish: 3,
        ..PARAMETERS
    });
    let nodes: Vec<u32> = (1..=8).collect();
    for node in &nodes {
        it.set(*node, f64::from(*node));
    }
    it.items(id, &nodes);
    it.publish_many(2);
    it.run(100);
    let (first, second) = (it.message(), it.message());
    assert_eq!((first.numbers(), first.more), (vec![1.0, 2.0, 3.0], true));
    assert_eq!((second.numbers(), second.more), (vec![4.0, 5.0, 6.0], true));
    it.publish();
    let third = it.message();
    assert_eq!((third.numbers(), third.more), (vec![7.0, 8.0], false));
    assert_eq!([first.sequence, second.sequence, third.sequence], [1, 2, 3]);
    it.publish();
    assert!(it.answers.is_empty());
}

#[test]
fn what_was_left_over_may_go_before_it_is_sent() {
    let mut it = bench();
    let id = it.create(&SubscriptionParameters {
        max_notifications_per_publish: 1,
        ..PARAMETERS
    });
    it.set(1, 1);
    it.set(2, 2);
    let items = it.items(id, &[1, 2]);
    it.publish();
    it.run(100);
    assert!(it.message().more);
    it.subscriptions.delete_monitored_items(id, &items).unwrap();
    it.publish();
    assert!(it.answers.is_empty(), "no empty message with a number of its own");
    it.run(600);
    let keep_alive = it.message();
    assert!(keep_alive.is_keep_alive());
    assert_eq!(keep_alive.sequence, 2);
}

#[test]
fn higher_priority_is_served_first_and_equals_in_turn() {
    let mut it = bench();
    let ids: Vec<u32> = [1u8, 5, 1]
        .iter()
        .map(|priority| {
            let id = it.create(&SubscriptionParameters {
                priority: *priority,
                ..PARAMETERS
            });
            it.items(id, &[1]);
            id
        })
        .collect();
    let mut served = Vec::new();
    for value in 0..4 {
        it.set(1, value);
        it.run(100);
        for _ in 0..3 {
            it.publish();
        }
        served.extend(it.messages().iter().map(|message| message.subscription));
    }
    let (low, high, other) = (ids[0], ids[1], ids[2]);
    assert_eq!(&served[..3], [high, low, other]);
    assert_eq!(served.iter().step_by(3).collect::<Vec<_>>(), [&high; 4]);
    // With two requests per cycle the high one takes one, the others share the second in turn.
    let mut one_each = Vec::new();
    for value in 10..16 {
        it.set(1, value);
        it.run(100);
        it.publish();
        it.publish();
        one_each.extend(it.messages().iter().map(|message| message.subscription));
    }
    let count = |id: u32| one_each.iter().filter(|served| **served == id).count();
    assert_eq!([count(high), count(low), count(other)], [6, 3, 3]);
}

#[test]
fn disabled_publishing_still_sends_keep_alives_and_keeps_values() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    it.items(id, &[1]);
    it.subscriptions.set_publishing_mode(false, &[id]).unwrap();
    it.publish_many(4);
    for value in 1..=6 {
        it.set(1, value);
        it.run(100);
    }
    let messages = it.messages();
    assert_eq!(messages.len(), 2);
    assert!(
        messages
            .iter()
            .all(|message| message.is_keep_alive() && message.sequence == 1)
    );
    let results = it.subscriptions.set_publishing_mode(true, &[id, 99]).unwrap();
    assert_eq!(results, [StatusCode::GOOD, StatusCode::BAD_SUBSCRIPTION_ID_INVALID]);
    it.run(100);
    assert_eq!(it.message().numbers(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
}

#[test]
fn publish_requests_time_out() {
    let mut it = bench();
    it.create(&PARAMETERS);
    it.publish_with(Some(50), &[]);
    it.publish_with(Some(10_000), &[]);
    it.run(49);
    assert!(it.answers.is_empty());
    it.run(1);
    assert_eq!(it.fault(), (1, StatusCode::BAD_TIMEOUT));
    it.run(50);
    assert!(it.message().is_keep_alive(), "the second request is still good");
}

#[test]
fn cancel_and_abort_answer_waiting_requests() {
    let mut it = bench();
    it.create(&PARAMETERS);
    it.publish_many(3);
    assert_eq!(it.subscriptions.cancel(2), 1);
    assert_eq!(it.subscriptions.cancel(2), 0);
    it.subscriptions
        .abort_requests(StatusCode::BAD_SECURE_CHANNEL_CLOSED, |ticket| ticket.0 == 3);
    it.collect();
    assert_eq!(it.fault(), (2, StatusCode::BAD_REQUEST_CANCELLED_BY_REQUEST));
    assert_eq!(it.fault(), (3, StatusCode::BAD_SECURE_CHANNEL_CLOSED));
    assert_eq!(it.subscriptions.waiting_requests(), 1);
}

#[test]
fn modify_changes_the_interval_from_now() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    it.publish_many(5);
    it.run(100);
    assert!(it.message().is_keep_alive());
    let revised = it
        .subscriptions
        .modify_subscription(
            it.now,
            id,
            &SubscriptionParameters {
                publishing_interval: 1000.0,
                max_keep_alive_count: 1,
                ..PARAMETERS
            },
        )
        .unwrap();
    assert_eq!((revised.publishing_interval, revised.max_keep_alive_count), (1000.0, 1));
    it.run(999);
    assert!(it.answers.is_empty());
    it.run(1);
    assert!(it.message().is_keep_alive());
    let unknown = it.subscriptions.modify_subscription(it.now, id + 1, &PARAMETERS);
    assert_eq!(unknown, Err(StatusCode::BAD_SUBSCRIPTION_ID_INVALID));
}

#[test]
fn limits_of_subscriptions() {
    let registry = SubscriptionRegistry::new(3, 10);
    let limits = Limits {
        max_subscriptions: 2,
        ..Limits::default()
    };
    let mut one = bench_in(limits.clone(), &registry);
    let mut two = bench_in(limits, &registry);
    let (first, second) = (one.create(&PARAMETERS), one.create(&PARAMETERS));
    let too_many = Err(StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS);
    assert_eq!(
        one.subscriptions.create_subscription(one.now, &PARAMETERS, true),
        too_many
    );
    let third = two.create(&PARAMETERS);
    assert_eq!(
        two.subscriptions.create_subscription(two.now, &PARAMETERS, true),
        too_many
    );
    assert!(
        first != second && second != third && first != third,
        "unique in the server"
    );
    assert_eq!(
        one.subscriptions.delete_subscriptions(&[first, third]),
        Ok(vec![StatusCode::GOOD, StatusCode::BAD_SUBSCRIPTION_ID_INVALID])
    );
    two.create(&PARAMETERS);
    let nothing = Err(StatusCode::BAD_NOTHING_TO_DO);
    assert_eq!(one.subscriptions.delete_subscriptions(&[]), nothing);
    assert_eq!(one.subscriptions.set_publishing_mode(true, &[]), nothing);
    assert_eq!(
        one.subscriptions.delete_subscriptions(&vec![1; 10_001]),
        Err(StatusCode::BAD_TOO_MANY_OPERATIONS)
    );
}

#[test]
fn a_notification_allocates_nothing_beside_its_message() {
    const ITEMS: u32 = 500;
    let mut it = bench();
    it.world.sampled.reserve(100_000);
    let id = it.create_every(100.0);
    let nodes: Vec<u32> = (0..ITEMS).collect();
    for node in &nodes {
        it.set(*node, 0);
    }
    it.items(id, &nodes);
    let mut values = 1..;
    let mut round = |it: &mut support::Bench| {
        let value: i32 = values.next().unwrap();
        for node in &nodes {
            it.set(*node, value);
        }
        let sequence = it.publish_with(None, &[]);
        assert_eq!(sequence, it.publish_with(None, &[]) - 1);
        it.now = it.now.after(Duration::from_millis(100));
        let counted = allocation_counter::measure(|| it.subscriptions.handle_timeout(it.now, &mut it.world));
        it.collect();
        assert_eq!(
            it.messages().iter().map(|message| message.data.len()).sum::<usize>(),
            ITEMS as usize
        );
        counted.count_total
    };
    for _ in 0..3 {
        round(&mut it);
    }
    let allocations = round(&mut it);
    assert!(
        allocations <= 8,
        "{allocations} allocations for a message of {ITEMS} notifications"
    );
}
