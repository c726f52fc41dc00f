//! What a lease costs: `cargo test -p backplane-queue --release --test isolation_cost -- --ignored --nocapture`.

#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use backplane_queue::isolation::{
    Binding, Caller, Class, Identity, Intent, Isolation, Options, OwnerCache, Plan, Profile, Stage, Totals,
};

/// Nanoseconds of one call: the best of some rounds, because other work on the machine only adds to it.
fn best(mut call: impl FnMut()) -> f64 {
    const CALLS: u32 = 2_000;
    let round = |call: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..CALLS).for_each(|_| call());
        start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    };
    (0..500).map(|_| round(&mut call)).fold(f64::INFINITY, f64::min)
}

#[test]
#[ignore = "a measurement: cargo test --release -p backplane-queue --test isolation_cost -- --ignored --nocapture"]
fn leases_and_owners() {
    let word = AtomicU64::new(0);
    println!(
        "one atomic addition: {:.1} ns",
        best(|| _ = black_box(word.fetch_add(1, Ordering::Relaxed)))
    );
    for profile in [Profile::SharedOnly, Profile::Balanced] {
        let options = Options {
            profile,
            ..Options::default()
        };
        let plan = Plan::derive(&options, &Totals::default()).unwrap();
        let isolation = Isolation::new(plan, Box::new(|_| {}));
        let owner = isolation
            .built_in(Identity::User("operator"), Class::Established)
            .unwrap();
        let one = |stage| best(|| drop(isolation.try_acquire(black_box(stage), &owner, 1).unwrap()));
        println!(
            "{profile}: one lease, owner not in the table: {:.1} ns",
            one(Stage::RequestExecution)
        );
        let kept = isolation.try_acquire(Stage::Connection, &owner, 1).unwrap();
        println!(
            "{profile}: one lease, owner in the table: {:.1} ns",
            one(Stage::RequestExecution)
        );
        let wanted = [
            (Stage::RequestQueue, 1),
            (Stage::RequestQueueBytes, 1),
            (Stage::ParkedRequest, 1),
        ];
        let three = best(|| drop(isolation.try_acquire_all(&owner, black_box(wanted)).unwrap()));
        println!("{profile}: three leases at once: {three:.1} ns");
        let request = best(|| {
            let mut set = isolation.try_acquire_set(&owner, black_box(wanted)).unwrap();
            set.try_exchange(&owner, Stage::RequestQueue, Stage::RequestExecution, 1)
                .unwrap();
        });
        println!("{profile}: a request in a set, four leases: {request:.1} ns");
        drop(kept);
        let binding = Binding {
            session: 1,
            activation: 1,
            user: Some("0123456789012345678901234567890123456789abc=".into()),
        };
        let caller = Caller {
            peer: None,
            application: None,
            binding: Some(&binding),
            intent: Intent::Work,
        };
        let mut cache = OwnerCache::default();
        let known = best(|| {
            drop(black_box(
                cache.request_owner(&isolation, None, black_box(&caller)).unwrap(),
            ))
        });
        println!("{profile}: a known owner: {known:.1} ns");
        let issued = best(|| drop(black_box(isolation.request_owner(None, black_box(&caller)).unwrap())));
        println!("{profile}: an owner issued: {issued:.1} ns");
    }
}
