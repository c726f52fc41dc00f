//! Durable subscriptions: a client cannot tell from what it is told that the server was stopped and started in between.

#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use backplane_session::{
    DurableLimits, Found, Limits, ResolvedItem, SavedItem, SavedSubscription, SubscriptionRegistry, Subscriptions,
};
use backplane_types::{
    DataChangeTrigger, DataValue, MonitoringMode, SetTriggeringRequest, StatusCode, TimestampsToReturn,
};
use support::{Bench, Message, NUMBER, PARAMETERS, Source, bench, bench_in, data_filter, key, request};

fn saved(bench: &Bench) -> Vec<SavedSubscription> {
    let bytes: Vec<Vec<u8>> = bench.subscriptions.save_durable().map(|it| it.to_bytes()).collect();
    let read = bytes.iter().map(|bytes| SavedSubscription::from_bytes(bytes).unwrap());
    read.collect()
}

/// What a server finds for an item: the node whose number is the client handle, with its present value.
fn there(bench: &Bench) -> impl Fn(&SavedItem) -> Found<Source> + use<> {
    let values = bench.world.values.clone();
    move |item| {
        let node = item.request.requested_parameters.client_handle;
        let (seen, value) = values.get(&node).cloned().unwrap_or_default();
        Found::There(ResolvedItem {
            source: Source { node, seen },
            initial: (seen > 0).then_some(value),
            traits: NUMBER,
        })
    }
}

/// Stops the server and starts another one; what the client does next it does with a new session.
fn restart(old: Bench, away: Duration) -> Bench {
    let saved = saved(&old);
    let registry = SubscriptionRegistry::new(1000, 1_000_000);
    let mut new = bench_in(Limits::default(), &registry);
    new.now = old.now.after(away);
    new.world = old.world;
    new.subscriptions = Subscriptions::new(Arc::new(Limits::default()), registry).owned_by(u32::MAX);
    new.subscriptions.detach();
    for subscription in saved {
        let find = there(&new);
        assert_eq!(
            new.subscriptions.restore(new.now, subscription, away, find),
            Ok(Vec::new())
        );
    }
    let mut client = bench_in(Limits::default(), &SubscriptionRegistry::new(1000, 1_000_000));
    client.now = new.now;
    let ids: Vec<u32> = new.subscriptions.iter().map(|it| it.subscription_id).collect();
    client.subscriptions = Subscriptions::new(Arc::new(Limits::default()), SubscriptionRegistry::new(9, 9)).owned_by(2);
    for id in ids {
        let detached = new.subscriptions.detach_subscription(new.now, id).unwrap();
        client.subscriptions.adopt_subscription(new.now, detached, false);
    }
    client.world = new.world;
    client
}

/// Plays a script; with `restarts`, the server is restarted after each of these steps.
fn play(restarts: &[u32]) -> Vec<(u32, Vec<(u32, DataValue)>)> {
    let mut it = bench();
    for node in 1..=4 {
        it.set(node, f64::from(node));
    }
    let id = it.create(&PARAMETERS);
    assert_eq!(it.subscriptions.set_durable(id, 5), Ok(5));
    it.items(id, &[1]);
    it.item(id, 2, |parameters| {
        parameters.filter = data_filter(DataChangeTrigger::STATUS_VALUE, 1, 2.0);
    });
    it.item(id, 3, |parameters| parameters.queue_size = 2);
    let mut sampling = request(4);
    sampling.monitoring_mode = MonitoringMode::SAMPLING;
    let triggered = it.items_as(id, &[4], &[sampling])[0];
    let links = SetTriggeringRequest {
        subscription_id: id,
        triggering_item_id: 1,
        links_to_add: vec![triggered],
        ..SetTriggeringRequest::default()
    };
    it.subscriptions.set_triggering(&links).unwrap();
    let mut told = Vec::new();
    for step in 0..12_u32 {
        // Every third step the client is away: values wait in queues, and one of the queues is too short.
        for part in 0..3 {
            let value = f64::from(step * 3 + part);
            it.set(3, value);
            if step % 2 == 0 {
                it.set(2, value);
                it.set(4, value);
            }
            if step % 4 == 1 {
                it.set(1, value);
            }
            it.run(100);
        }
        if restarts.contains(&step) {
            it = restart(it, Duration::ZERO);
        }
        if step % 3 != 2 {
            it.publish_many(2);
            it.run(200);
            told.extend(it.messages());
            it.subscriptions
                .abort_requests(StatusCode::BAD_SECURE_CHANNEL_CLOSED, |_| true);
            it.collect();
            it.answers.clear();
        }
    }
    let told = told.into_iter().filter(|message: &Message| !message.is_keep_alive());
    told.map(|message| {
        let data = message.data.into_iter().map(|(handle, value)| {
            let bare = DataValue {
                source_timestamp: None,
                server_timestamp: None,
                ..value
            };
            (handle, bare)
        });
        (message.sequence, data.collect())
    })
    .collect()
}

/// Notifications of one item in order, whatever the message that they came in.
fn streams(told: &[(u32, Vec<(u32, DataValue)>)]) -> Vec<Vec<DataValue>> {
    let of = |handle: u32| {
        let all = told.iter().flat_map(|(_, data)| data);
        all.filter(|(it, _)| *it == handle)
            .map(|(_, value)| value.clone())
            .collect()
    };
    (1..=4).map(of).collect()
}

#[test]
fn the_client_is_told_the_same_with_and_without_restarts() {
    let without = play(&[]);
    let sequence: Vec<u32> = without.iter().map(|(number, _)| *number).collect();
    assert!(
        sequence.len() > 6 && streams(&without).iter().all(|stream| stream.len() > 2),
        "{without:?}"
    );
    for restarts in [
        &[0][..],
        &[2],
        &[3],
        &[7],
        &[2, 5, 8],
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
    ] {
        let with = play(restarts);
        assert_eq!(streams(&with), streams(&without), "restarts after {restarts:?}");
        let numbers: Vec<u32> = with.iter().map(|(number, _)| *number).collect();
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    }
}

#[test]
fn what_could_be_read_before_the_stop_is_not_missing() {
    let mut it = bench();
    it.set(1, 1.0);
    let id = it.create(&PARAMETERS);
    it.subscriptions.set_durable(id, 2).unwrap();
    it.item(id, 1, |parameters| parameters.sampling_interval = 3_600_000.0);
    it.run(200);
    it.set(1, 2.0);
    it.subscriptions.sample_durable(it.now, &mut it.world);
    it.set(1, 3.0);
    let mut it = restart(it, Duration::ZERO);
    it.publish();
    it.run(100);
    assert_eq!(it.all_numbers(), [1.0, 2.0, 3.0]);
}

#[test]
fn only_before_there_are_items_and_within_limits() {
    let mut it = bench();
    let id = it.create(&PARAMETERS);
    assert_eq!(
        it.subscriptions.set_durable(id + 1, 1),
        Err(StatusCode::BAD_SUBSCRIPTION_ID_INVALID)
    );
    assert_eq!(it.subscriptions.set_durable(id, 0), Ok(10));
    assert_eq!(it.subscriptions.set_durable(id, u32::MAX), Ok(10));
    assert_eq!(it.subscriptions.set_durable(id, 1), Ok(1));
    it.items(id, &[1]);
    assert_eq!(it.subscriptions.set_durable(id, 1), Err(StatusCode::BAD_INVALID_STATE));
    let limits = Limits {
        durable: DurableLimits {
            max_lifetime_hours: 0,
            ..DurableLimits::default()
        },
        ..Limits::default()
    };
    let mut none = bench_in(limits, &SubscriptionRegistry::new(9, 9));
    let id = none.create(&PARAMETERS);
    assert_eq!(
        none.subscriptions.set_durable(id, 1),
        Err(StatusCode::BAD_NOT_SUPPORTED)
    );
    let few = SubscriptionRegistry::with_durable(9, 9, 1, 1_000);
    let mut few = bench_in(Limits::default(), &few);
    let [first, second] = [few.create(&PARAMETERS), few.create(&PARAMETERS)];
    assert_eq!(few.subscriptions.set_durable(first, 1), Ok(1));
    assert_eq!(
        few.subscriptions.set_durable(second, 1),
        Err(StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS)
    );
    let limits = Limits {
        durable: DurableLimits {
            max_subscriptions: 1,
            ..DurableLimits::default()
        },
        ..Limits::default()
    };
    let mut own = bench_in(limits, &SubscriptionRegistry::new(9, 9));
    let [one, two] = [own.create(&PARAMETERS), own.create(&PARAMETERS)];
    assert_eq!(own.subscriptions.set_durable(one, 1), Ok(1));
    assert_eq!(own.subscriptions.set_durable(one, 2), Ok(2), "the same again");
    assert_eq!(
        own.subscriptions.set_durable(two, 1),
        Err(StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS)
    );
    few.subscriptions.drop_subscription(first);
    assert_eq!(few.subscriptions.set_durable(second, 1), Ok(1));
}

#[test]
fn queues_are_long_as_far_as_there_is_room() {
    let registry = SubscriptionRegistry::with_durable(9, 99, 9, 1_000);
    let mut it = bench_in(Limits::default(), &registry);
    let usual = it.create(&PARAMETERS);
    let durable = it.create(&PARAMETERS);
    it.subscriptions.set_durable(durable, 1).unwrap();
    let mut long = request(1);
    long.requested_parameters.queue_size = 700;
    let mut size = |subscription, requested: &[backplane_types::MonitoredItemCreateRequest]| {
        let results = it.try_items(subscription, &vec![1; requested.len()], requested);
        results
            .iter()
            .map(|result| result.revised_queue_size)
            .collect::<Vec<_>>()
    };
    assert_eq!(size(usual, &[long.clone()]), [100]);
    assert_eq!(
        size(durable, &[long.clone(), long.clone(), long.clone()]),
        [700, 500, 100]
    );
    // What an item had is free again when it goes.
    let ids: Vec<u32> = it
        .subscriptions
        .monitored_items(durable)
        .unwrap()
        .map(|item| item.monitored_item_id)
        .collect();
    it.subscriptions.delete_monitored_items(durable, &ids[..1]).unwrap();
    let results = it.try_items(durable, &[1], &[long]);
    assert_eq!(results[0].revised_queue_size, 700);
}

#[test]
fn what_has_no_room_any_more_is_cut_as_a_full_queue_is() {
    let mut it = bench();
    it.set(1, 0.0);
    let id = it.create(&PARAMETERS);
    it.subscriptions.set_durable(id, 1).unwrap();
    it.item(id, 1, |parameters| parameters.queue_size = 300);
    for value in 1..=150 {
        it.set(1, f64::from(value));
        it.run(100);
    }
    let [subscription] = saved(&it).try_into().unwrap();
    let mut new = bench_in(Limits::default(), &SubscriptionRegistry::with_durable(9, 9, 9, 0));
    let find = there(&it);
    assert_eq!(
        new.subscriptions.restore(new.now, subscription, Duration::ZERO, find),
        Ok(Vec::new())
    );
    new.publish();
    new.run(100);
    let message = new.message();
    assert_eq!(message.data.len(), 100, "as many as every item may have");
    assert_eq!(message.numbers().first(), Some(&51.0));
    assert!(
        message.data[0]
            .1
            .status
            .is_some_and(|status| status.0 & StatusCode::OVERFLOW_BITS != 0)
    );
}

#[test]
fn it_lives_for_hours_and_not_longer() {
    let hour = Duration::from_secs(3_600);
    let mut it = bench();
    it.set(1, 1.0);
    let id = it.create(&PARAMETERS);
    it.subscriptions.set_durable(id, 2).unwrap();
    it.items(id, &[1]);
    it.subscriptions.detach();
    it.run(3_600_000 + 1_800_000);
    assert_eq!(it.subscriptions.len(), 1, "after an hour and a half");
    let [subscription] = saved(&it).try_into().unwrap();
    let mut again = bench();
    let mut restore = |away, registry: u32| {
        let registry = SubscriptionRegistry::new(registry, 9);
        again.subscriptions = Subscriptions::new(Arc::new(Limits::default()), registry);
        let find = there(&it);
        again.subscriptions.restore(again.now, subscription.clone(), away, find)
    };
    assert_eq!(restore(hour, 9), Err(StatusCode::BAD_TIMEOUT));
    assert_eq!(restore(Duration::ZERO, 0), Err(StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS));
    assert_eq!(restore(hour / 4, 9), Ok(Vec::new()));
    again.subscriptions.detach();
    again.run(3_600_000 / 5);
    assert_eq!(again.subscriptions.len(), 1);
    again.run(3_600_000 / 10);
    assert_eq!(
        again.subscriptions.len(),
        0,
        "two hours in all, with the time that it was away"
    );
}

#[test]
fn ids_are_not_given_twice() {
    let mut it = bench();
    it.create(&PARAMETERS);
    let id = it.create(&PARAMETERS);
    it.subscriptions.set_durable(id, 2).unwrap();
    let items = it.items(id, &[1, 2]);
    let [subscription] = saved(&it).try_into().unwrap();
    let registry = SubscriptionRegistry::new(9, 9);
    let mut new = bench_in(Limits::default(), &registry);
    let find = there(&new);
    assert!(
        new.subscriptions
            .restore(new.now, subscription.clone(), Duration::ZERO, &find)
            .is_ok()
    );
    let twice = new.subscriptions.restore(new.now, subscription, Duration::ZERO, &find);
    assert_eq!(twice, Err(StatusCode::BAD_SUBSCRIPTION_ID_INVALID));
    assert!(new.create(&PARAMETERS) > id);
    let more = new.items(id, &[3]);
    assert!(!items.contains(&more[0]));
}

#[test]
fn a_node_that_is_not_there_any_more_is_said_once_and_may_come_back() {
    let mut it = bench();
    it.set(1, 1.0);
    let id = it.create(&PARAMETERS);
    it.subscriptions.set_durable(id, 2).unwrap();
    let item = it.items(id, &[1])[0];
    it.publish();
    it.run(100);
    assert_eq!(it.all_numbers(), [1.0]);
    for round in 0..2 {
        let [subscription] = saved(&it).try_into().unwrap();
        let mut new = bench();
        let missing = |saved: &SavedItem| {
            Found::Missing(Source {
                node: saved.request.requested_parameters.client_handle,
                seen: 0,
            })
        };
        assert_eq!(
            new.subscriptions
                .restore(new.now, subscription, Duration::ZERO, missing),
            Ok(Vec::new())
        );
        new.world = std::mem::take(&mut it.world);
        it = new;
        it.publish();
        it.run(100);
        if round == 0 {
            let message = it.message();
            assert_eq!(message.data[0].1.status, Some(StatusCode::BAD_NODE_ID_UNKNOWN));
            assert_eq!(message.sequence, 2);
        } else {
            assert!(it.answers.is_empty(), "it was said before");
        }
    }
    let source = Source { node: 1, seen: 1 };
    assert!(
        it.subscriptions
            .rebind(it.now, key(id, item), source, Some(DataValue::new(1.0)))
    );
    it.run(100);
    assert_eq!(it.all_numbers(), [1.0]);
}

#[test]
fn timestamps_and_republish_outlast_it() {
    let mut it = bench();
    it.set(1, 1.0);
    let id = it.create(&PARAMETERS);
    it.subscriptions.set_durable(id, 2).unwrap();
    let items = vec![(
        &request(1),
        Ok(ResolvedItem {
            source: support::source(1),
            initial: None,
            traits: NUMBER,
        }),
    )]
    .into_iter()
    .map(|(request, resolved)| (request.clone(), resolved))
    .collect::<Vec<_>>();
    let borrowed = items
        .iter()
        .map(|(request, resolved)| (request, resolved.clone()))
        .collect();
    it.subscriptions
        .create_monitored_items(it.now, id, TimestampsToReturn::NEITHER, borrowed)
        .unwrap();
    it.publish();
    it.run(100);
    let first = it.message();
    let sent = it.subscriptions.republish(id, first.sequence).unwrap();
    let mut it = restart(it, Duration::from_secs(1));
    assert_eq!(it.subscriptions.republish(id, first.sequence).unwrap(), sent);
    it.set(1, 2.0);
    it.publish();
    it.run(100);
    let next = it.message();
    assert_eq!((next.sequence, next.available), (2, vec![1, 2]));
    assert_eq!(
        (next.data[0].1.source_timestamp, next.data[0].1.server_timestamp),
        (None, None)
    );
}

/// Bytes from a disk: whatever is wrong with them is an error, and no panic.
#[test]
fn broken_bytes_are_refused() {
    let mut it = bench();
    it.set(1, 1.0);
    let id = it.create(&PARAMETERS);
    it.subscriptions.set_durable(id, 2).unwrap();
    it.items(id, &[1, 2]);
    it.publish();
    it.run(300);
    it.set(1, 2.0);
    it.run(300);
    let [subscription] = saved(&it).try_into().unwrap();
    let bytes = subscription.to_bytes();
    for length in 0..bytes.len() {
        assert!(
            SavedSubscription::from_bytes(&bytes[..length]).is_err(),
            "{length} bytes"
        );
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(SavedSubscription::from_bytes(&longer).is_err());
    assert!(SavedSubscription::from_bytes(&bytes).is_ok());
    let mut refused = 0;
    for place in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1 << (place % 8);
        match SavedSubscription::from_bytes(&flipped) {
            Err(_) => refused += 1,
            Ok(read) => {
                let mut new = bench();
                let find = there(&new);
                // Whatever comes of it.
                let _ = new.subscriptions.restore(new.now, read, Duration::ZERO, find);
                new.publish();
                new.run(200);
            }
        }
    }
    assert!(refused > 20, "{refused}");
}
