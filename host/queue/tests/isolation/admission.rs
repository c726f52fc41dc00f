//! Accepting connections and establishing sessions: the order of the limits, and what is given back.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use backplane_queue::isolation::{
    Class, Isolation, Lease, NotAccepted, NotEstablished, Options, Profile, RateClass, RateLimiter, RateOptions,
    Reason, Stage,
};

use crate::support::{established, exhaust, of_profile, options, plan, provider, stage};

const NOW: Duration = Duration::ZERO;

/// A limiter with `burst` tokens, and how many are left of it.
fn limiter(burst: u32) -> RateLimiter {
    RateLimiter::new(&plan(&Options {
        rate: RateOptions { per_second: 1, burst },
        ..options(Profile::FairShare)
    }))
}

fn left(rate: &RateLimiter) -> usize {
    (0..100)
        .filter(|_| rate.try_take(NOW, RateClass::Shared).is_ok())
        .count()
}

/// All of the shared connections, one lease each.
fn full(isolation: &Arc<Isolation>) -> Vec<Lease> {
    exhaust(isolation, Stage::Connection, &established(isolation, "hog")).0
}

fn usage(isolation: &Isolation) -> [u64; 2] {
    [Stage::Connection, Stage::Handshake].map(|stage| isolation.usage(stage))
}

fn never() -> bool {
    panic!("nothing may be reclaimed")
}

#[test]
fn an_accepted_connection_holds_two_slots_and_one_token() {
    let (isolation, rate) = (of_profile(Profile::Balanced), limiter(3));
    let owner = established(&isolation, "a");
    let accepted = isolation.try_accept(&owner, &rate, NOW, never).unwrap();
    assert_eq!(usage(&isolation), [1, 1]);
    drop(accepted.handshake);
    assert_eq!(usage(&isolation), [1, 0]);
    drop(accepted.connection);
    assert_eq!((usage(&isolation), left(&rate)), ([0, 0], 2));
}

#[test]
fn the_owners_own_limits_reclaim_nothing_and_cost_no_token() {
    let options = Options {
        max_tracked_owners: 4,
        stages: vec![stage(Stage::Connection, |entry| entry.owner_hard_limit = Some(1))],
        ..options(Profile::Balanced)
    };
    let (isolation, rate) = (provider(&options), limiter(3));
    let owner = established(&isolation, "a");
    let _first = isolation.try_acquire(Stage::Connection, &owner, 1).unwrap();
    for (owner, expected) in [
        (owner, Reason::OwnerLimit),
        (established(&isolation, "b"), Reason::OwnerTableFull),
    ] {
        let error = isolation.try_accept(&owner, &rate, NOW, never).unwrap_err();
        let NotAccepted::Refused { stage, refused } = error else {
            panic!("{error}")
        };
        assert_eq!((stage, refused.reason), (Stage::Connection, expected));
    }
    assert_eq!(left(&rate), 3);
}

#[test]
fn missing_capacity_may_reclaim_one_connection_for_one_token() {
    let (isolation, rate) = (of_profile(Profile::Balanced), limiter(3));
    let mut held = full(&isolation);
    let owner = established(&isolation, "a");
    let reclaim = || held.pop().is_some();
    let accepted = isolation.try_accept(&owner, &rate, NOW, reclaim).unwrap();
    assert_eq!((held.len(), usage(&isolation)), (17, [18, 1]));
    drop(accepted);
    assert_eq!(left(&rate), 2);
}

#[test]
fn nothing_is_reclaimed_without_a_token() {
    let (isolation, rate) = (of_profile(Profile::Balanced), limiter(1));
    left(&rate);
    let _held = full(&isolation);
    let error = isolation
        .try_accept(&established(&isolation, "a"), &rate, NOW, never)
        .unwrap_err();
    let retry_after = Duration::from_secs(1);
    assert_eq!(error, NotAccepted::TooFast { retry_after });
}

#[test]
fn a_token_is_not_given_back_when_nothing_can_be_reclaimed() {
    let (isolation, rate) = (of_profile(Profile::Balanced), limiter(3));
    let _held = full(&isolation);
    let owner = established(&isolation, "a");
    let error = isolation.try_accept(&owner, &rate, NOW, || false).unwrap_err();
    assert!(matches!(error, NotAccepted::Refused { refused, .. } if refused.reason == Reason::Capacity));
    assert_eq!(left(&rate), 2);
}

#[test]
fn there_is_one_retry() {
    let (isolation, rate) = (of_profile(Profile::Balanced), limiter(3));
    let _held = full(&isolation);
    let calls = Cell::new(0);
    let reclaim = || {
        calls.set(calls.get() + 1);
        true
    };
    let error = isolation.try_accept(&established(&isolation, "a"), &rate, NOW, reclaim);
    assert!(error.is_err());
    assert_eq!((calls.get(), left(&rate)), (1, 2));
}

#[test]
fn without_a_token_an_accepted_connection_gives_everything_back() {
    let (isolation, rate) = (of_profile(Profile::Balanced), limiter(1));
    left(&rate);
    let owner = established(&isolation, "a");
    let error = isolation.try_accept(&owner, &rate, NOW, never).unwrap_err();
    assert!(matches!(error, NotAccepted::TooFast { .. }));
    assert_eq!((usage(&isolation), isolation.tracked_owners()), ([0, 0], 0));
}

#[test]
fn a_handshake_without_room_leaves_no_connection_charged() {
    let options = Options {
        stages: vec![stage(Stage::Handshake, |entry| entry.capacity = Some(3))],
        ..options(Profile::Balanced)
    };
    let (isolation, rate) = (provider(&options), limiter(9));
    let owner = established(&isolation, "a");
    let _first = isolation.try_accept(&owner, &rate, NOW, never).unwrap();
    let error = isolation.try_accept(&owner, &rate, NOW, || false).unwrap_err();
    assert!(matches!(
        error,
        NotAccepted::Refused {
            stage: Stage::Handshake,
            ..
        }
    ));
    assert_eq!(usage(&isolation), [1, 1]);
    let back = isolation.mapped("back", Class::Reconnect).unwrap();
    assert!(isolation.try_accept(&back, &rate, NOW, never).is_ok());
}

fn establishing(isolation: &Isolation) -> u64 {
    isolation.usage(Stage::SessionEstablishment)
}

#[test]
fn establishment_refused_by_the_accounts_costs_no_permit() {
    let isolation = of_profile(Profile::Balanced);
    let owner = established(&isolation, "a");
    let (_held, _) = exhaust(&isolation, Stage::SessionEstablishment, &owner);
    let asked = Cell::new(false);
    let limit = || {
        asked.set(true);
        Ok::<(), ()>(())
    };
    let error = isolation.try_establish(&owner, limit).unwrap_err();
    assert!(matches!(error, NotEstablished::Refused(refused) if refused.reason == Reason::Capacity));
    assert!(!asked.get());
}

#[test]
fn establishment_refused_by_the_limit_gives_the_lease_back() {
    let isolation = of_profile(Profile::Balanced);
    let owner = established(&isolation, "a");
    let error = isolation.try_establish(&owner, || Err::<(), _>("no")).unwrap_err();
    assert_eq!(error, NotEstablished::Limit("no"));
    assert_eq!(establishing(&isolation), 0);
}

#[test]
fn establishment_whose_limit_fails_gives_the_lease_back() {
    let isolation = of_profile(Profile::Balanced);
    let owner = established(&isolation, "a");
    let failing = || -> Result<(), ()> { panic!("the limit failed") };
    let result = catch_unwind(AssertUnwindSafe(|| isolation.try_establish(&owner, failing)));
    assert!(result.is_err());
    assert_eq!((establishing(&isolation), isolation.tracked_owners()), (0, 0));
}

#[test]
fn establishment_gives_both_back_even_if_one_fails() {
    struct Failing<'a>(&'a Cell<u32>);
    impl Drop for Failing<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            panic!("the permit's release failed");
        }
    }
    let isolation = of_profile(Profile::Balanced);
    let owner = established(&isolation, "a");
    let released = Cell::new(0);
    let both = isolation
        .try_establish(&owner, || Ok::<_, ()>(Failing(&released)))
        .unwrap();
    assert_eq!(establishing(&isolation), 1);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(both))).is_err());
    assert_eq!((released.get(), establishing(&isolation)), (1, 0));
}
