//! A subscription that moves from one session to another, as both clients see it.

#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use backplane_session::{Limits, SubscriptionRegistry, Subscriptions};
use backplane_types::{MonitoringMode, StatusCode};
use support::{Bench, PARAMETERS, bench_in};

const TRANSFERRED: StatusCode = StatusCode::GOOD_SUBSCRIPTION_TRANSFERRED;

/// Two sessions of one server, at the same time of day, with the same nodes.
fn sessions(limits: &Limits) -> (Bench, Bench, Arc<SubscriptionRegistry>) {
    let registry = SubscriptionRegistry::new(1000, 1_000_000);
    let mut both = [1, 2].map(|owner| {
        let mut it = bench_in(limits.clone(), &registry);
        it.subscriptions = Subscriptions::new(Arc::new(limits.clone()), Arc::clone(&registry)).owned_by(owner);
        for node in 1..=3 {
            it.set(node, f64::from(node));
        }
        it
    });
    let new = std::mem::replace(&mut both[1], bench_in(limits.clone(), &registry));
    let [old, _] = both;
    (old, new, registry)
}

/// Moves a subscription; time goes on from where the old session was.
fn transfer(old: &mut Bench, new: &mut Bench, id: u32, send_initial_values: bool) -> Vec<u32> {
    new.now = old.now;
    new.subscriptions.reserve_place().unwrap();
    let detached = old.subscriptions.detach_subscription(old.now, id).unwrap();
    assert_eq!(detached.subscription_id(), id);
    new.subscriptions.free_place();
    let available = new
        .subscriptions
        .adopt_subscription(new.now, detached, send_initial_values);
    old.collect();
    new.collect();
    available
}

#[test]
fn everything_moves_and_the_old_client_is_told() {
    let (mut old, mut new, registry) = sessions(&Limits::default());
    let id = old.create(&PARAMETERS);
    old.items(id, &[1, 2]);
    assert_eq!(registry.owner(id), Some(1));
    old.publish_many(3);
    old.run(100);
    let first = old.message();
    assert_eq!((first.sequence, first.numbers()), (1, vec![1.0, 2.0]));
    old.set(1, 10.0);
    old.run(50);
    let available = transfer(&mut old, &mut new, id, false);
    assert_eq!(available, [1]);
    assert_eq!(registry.owner(id), Some(2));
    let told = old.message();
    assert_eq!((told.subscription, told.status_change), (id, Some(TRANSFERRED)));
    assert_eq!(
        old.fault().1,
        StatusCode::BAD_NO_SUBSCRIPTION,
        "nobody is left to answer it"
    );
    assert!(old.answers.is_empty());
    assert!(old.subscriptions.is_empty());
    assert_eq!(
        old.subscriptions.republish(id, 1),
        Err(StatusCode::BAD_SUBSCRIPTION_ID_INVALID)
    );
    assert!(new.subscriptions.republish(id, 1).is_ok());
    new.publish();
    new.set(1, 10.0);
    new.run(100);
    let next = new.message();
    assert_eq!(next.sequence, 2, "no gap: what the old client was told used no number");
    assert_eq!(next.numbers(), [10.0]);
    assert_eq!(next.available, [1, 2]);
}

#[test]
fn a_client_that_is_gone_is_told_nothing() {
    let (mut old, mut new, _) = sessions(&Limits::default());
    let id = old.create(&PARAMETERS);
    old.items(id, &[1]);
    old.publish();
    old.subscriptions.detach();
    old.collect();
    assert_eq!(old.fault().1, StatusCode::BAD_SESSION_CLOSED);
    old.run(350);
    old.set(1, 5.0);
    old.run(100);
    assert_eq!(transfer(&mut old, &mut new, id, false), [] as [u32; 0]);
    assert!(old.answers.is_empty());
    new.publish();
    new.collect();
    assert_eq!(
        new.message().numbers(),
        [1.0, 5.0],
        "it was late: answered at once, with what was sampled meanwhile"
    );
}

#[test]
fn initial_values_on_request() {
    for wanted in [false, true] {
        let (mut old, mut new, _) = sessions(&Limits::default());
        let id = old.create(&PARAMETERS);
        let items = old.items(id, &[1, 2, 3]);
        old.publish();
        old.run(100);
        assert_eq!(old.message().numbers(), [1.0, 2.0, 3.0]);
        old.subscriptions
            .set_monitoring_mode(old.now, id, MonitoringMode::SAMPLING, &items[2..])
            .unwrap();
        old.set(2, 20.0);
        old.set(2, 21.0);
        old.run(100);
        transfer(&mut old, &mut new, id, wanted);
        new.set(2, 21.0);
        new.publish();
        new.run(100);
        let expected: &[f64] = if wanted { &[21.0, 1.0] } else { &[21.0] };
        assert_eq!(
            new.message().numbers(),
            expected,
            "what waits is sent once; sampling items send nothing"
        );
    }
}

#[test]
fn a_value_that_was_being_fetched_is_asked_for_again() {
    let (mut old, mut new, _) = sessions(&Limits::default());
    let id = old.create(&PARAMETERS);
    // Node 9 has no value: it is fetched.
    old.items(id, &[9]);
    old.run(0);
    let (key, _) = old.world.asked[0];
    transfer(&mut old, &mut new, id, false);
    new.run(0);
    let (again, node) = new.world.asked[0];
    assert_eq!((again.item, node), (key.item, 9));
    let value = |value: f64| backplane_types::DataValue::new(value);
    new.subscriptions.handle_samples(new.now, [(key, value(1.0))]);
    new.subscriptions.handle_samples(new.now, [(again, value(2.0))]);
    new.publish();
    new.run(100);
    assert_eq!(new.message().numbers(), [2.0], "the answer to the old session is stale");
}

#[test]
fn an_item_at_rest_is_looked_at_again_where_it_comes_to() {
    let (mut old, mut new, _) = sessions(&Limits::default());
    (old.world.tells, new.world.tells) = (true, true);
    let id = old.create(&PARAMETERS);
    old.items(id, &[1]);
    old.run(500);
    assert_eq!(old.world.resting.len(), 1);
    transfer(&mut old, &mut new, id, false);
    new.run(200);
    assert_eq!(new.world.sampled.len(), 1);
    assert_eq!(new.world.resting.len(), 1, "whoever wakes it is told where it is");
    new.set(1, 7.0);
    let (key, _) = new.world.resting[0];
    assert!(new.subscriptions.wake(new.now, key));
    new.publish_many(2);
    new.run(200);
    let numbers = new.all_numbers();
    assert_eq!(numbers.last(), Some(&7.0), "{numbers:?}");
}

#[test]
fn places_are_limited() {
    let limits = Limits {
        max_subscriptions: 2,
        ..Limits::default()
    };
    let (mut old, mut new, _) = sessions(&limits);
    let id = old.create(&PARAMETERS);
    let too_many = Err(StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS);
    new.create(&PARAMETERS);
    new.subscriptions.reserve_place().unwrap();
    assert_eq!(new.subscriptions.reserve_place(), too_many);
    assert_eq!(
        new.subscriptions
            .create_subscription(new.now, &PARAMETERS, true)
            .map(|_| ()),
        too_many,
        "a kept place is taken"
    );
    new.subscriptions.free_place();
    transfer(&mut old, &mut new, id, false);
    assert_eq!(new.subscriptions.reserve_place(), too_many);
}

#[test]
fn the_lifetime_starts_anew_and_runs_on() {
    let (mut old, mut new, registry) = sessions(&Limits::default());
    let id = old.create(&PARAMETERS);
    old.items(id, &[1]);
    old.subscriptions.detach();
    old.run(9_000);
    transfer(&mut old, &mut new, id, false);
    new.run(9_000);
    assert_eq!(
        registry.owner(id),
        Some(2),
        "alive: the transfer counts as a sign of life"
    );
    new.run(1_100);
    assert_eq!(registry.owner(id), None);
    assert_eq!(new.subscriptions.poll_ended(), Some(id));
    assert_eq!((registry.subscriptions(), registry.monitored_items()), (0, 0));
}

#[test]
fn unknown_and_dropped_in_between() {
    let (mut old, _, registry) = sessions(&Limits::default());
    let id = old.create(&PARAMETERS);
    assert!(old.subscriptions.detach_subscription(old.now, 99).is_err());
    let detached = old.subscriptions.detach_subscription(old.now, id).unwrap();
    assert_eq!(
        old.subscriptions.detach_subscription(old.now, id).map(|_| ()),
        Err(StatusCode::BAD_SUBSCRIPTION_ID_INVALID),
        "it belongs to who took it"
    );
    drop(detached);
    assert_eq!(registry.owner(id), None, "nothing is left of it");
    let id = old.create(&PARAMETERS);
    assert!(old.subscriptions.drop_subscription(id));
    assert!(!old.subscriptions.drop_subscription(id));
    assert_eq!(registry.subscriptions(), 0);
}
