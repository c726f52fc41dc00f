//! Every order that the memory model allows of a few leases: each is given back once, and the sums hold.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p backplane-queue --release --test loom_isolation`

#![cfg(loom)]
#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use backplane_queue::isolation::{
    Class, Identity, Isolation, Options, Owner, Plan, Profile, Reason, Stage, StageOptions, Totals,
};
use loom::thread;

/// A provider with `capacity` slots of execution, and how often it signalled.
fn provider(profile: Profile, capacity: u64) -> (Arc<Isolation>, Arc<AtomicUsize>) {
    let options = Options {
        profile,
        stages: vec![StageOptions {
            capacity: Some(capacity),
            ..StageOptions::new(Stage::RequestExecution)
        }],
        ..Options::default()
    };
    let plan = Plan::derive(&options, &Totals::default()).unwrap();
    // The standard library's, because the checker must not take it for something to explore.
    let signals = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&signals);
    let signal = move |_| _ = seen.fetch_add(1, Ordering::Relaxed);
    (Isolation::new(plan, Box::new(signal)), signals)
}

fn owner(isolation: &Isolation, name: &str) -> Owner {
    isolation.built_in(Identity::User(name), Class::Established).unwrap()
}

fn settled(isolation: &Isolation) {
    assert_eq!(
        (isolation.usage(Stage::RequestExecution), isolation.tracked_owners()),
        (0, 0)
    );
}

#[test]
fn two_callers_get_one_slot_and_give_it_back_once() {
    loom::model(|| {
        let (isolation, signals) = provider(Profile::FairShare, 1);
        let callers = ["a", "b"].map(|name| {
            let (isolation, owner) = (Arc::clone(&isolation), owner(&isolation, name));
            thread::spawn(move || isolation.try_acquire(Stage::RequestExecution, &owner, 1).ok())
        });
        let leases = callers.map(|caller| caller.join().unwrap());
        assert_eq!(leases.iter().flatten().count(), 1);
        assert_eq!(isolation.rejections(Stage::RequestExecution, Reason::Capacity), 1);
        drop(leases);
        settled(&isolation);
        assert_eq!(signals.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn one_key_comes_and_goes_on_two_threads() {
    loom::model(|| {
        let (isolation, signals) = provider(Profile::FairShare, 2);
        let owner = owner(&isolation, "a");
        let callers = [(); 2].map(|()| {
            let (isolation, owner) = (Arc::clone(&isolation), owner.clone());
            thread::spawn(move || drop(isolation.try_acquire(Stage::RequestExecution, &owner, 1).unwrap()))
        });
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        settled(&isolation);
        assert_eq!(signals.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn a_closing_provider_takes_back_what_it_granted() {
    loom::model(|| {
        let (isolation, signals) = provider(Profile::FairShare, 1);
        let owner = owner(&isolation, "a");
        let caller = {
            let isolation = Arc::clone(&isolation);
            thread::spawn(move || isolation.try_acquire(Stage::RequestExecution, &owner, 1).is_ok())
        };
        isolation.close();
        let granted = caller.join().unwrap();
        settled(&isolation);
        assert_eq!(signals.load(Ordering::Relaxed), usize::from(granted));
    });
}

#[test]
fn a_set_is_exchanged_while_another_gives_the_slot_back() {
    loom::model(|| {
        let (isolation, _) = provider(Profile::FairShare, 1);
        let (first, second) = (owner(&isolation, "a"), owner(&isolation, "b"));
        let lease = isolation.try_acquire(Stage::RequestExecution, &first, 1).unwrap();
        let mut set = isolation.try_acquire_set(&second, [(Stage::RequestQueue, 1)]).unwrap();
        let other = thread::spawn(move || drop(lease));
        let exchanged = set
            .try_exchange(&second, Stage::RequestQueue, Stage::RequestExecution, 1)
            .is_ok();
        other.join().unwrap();
        assert_eq!(isolation.usage(Stage::RequestExecution), u64::from(exchanged));
        assert_eq!(isolation.usage(Stage::RequestQueue), u64::from(!exchanged));
        drop(set);
        settled(&isolation);
    });
}
