//! The rate of new connections, in simulated time.

use std::time::Duration;

use backplane_queue::isolation::{Class, Options, Profile, RateClass, RateLimiter, RateOptions};

use crate::support::{bootstrap, established, of_profile, options, plan, user};

fn limiter(profile: Profile, per_second: u32, burst: u32) -> RateLimiter {
    RateLimiter::new(&plan(&Options {
        rate: RateOptions { per_second, burst },
        ..options(profile)
    }))
}

/// How many tokens there are at `now`.
fn tokens(limiter: &RateLimiter, now: Duration, class: RateClass) -> u32 {
    let mut count = 0;
    while limiter.try_take(now, class).is_ok() {
        count += 1;
    }
    count
}

const START: Duration = Duration::from_secs(1_000);

#[test]
fn a_burst_then_the_rate() {
    let limiter = limiter(Profile::FairShare, 10, 25);
    assert_eq!(tokens(&limiter, START, RateClass::Shared), 25);
    let second = START + Duration::from_secs(1);
    assert_eq!(tokens(&limiter, second, RateClass::Shared), 10);
    assert_eq!(
        tokens(&limiter, second + Duration::from_secs(60), RateClass::Shared),
        25
    );
}

#[test]
fn a_refusal_says_when_there_is_a_token() {
    let limiter = limiter(Profile::FairShare, 3, 1);
    assert_eq!(limiter.try_take(START, RateClass::Shared), Ok(()));
    let wait = limiter.try_take(START, RateClass::Shared).unwrap_err();
    assert_eq!(wait, Duration::from_nanos(333_333_334));
    let early = START + wait - Duration::from_nanos(1);
    assert_eq!(limiter.try_take(early, RateClass::Shared), Err(Duration::from_nanos(1)));
    assert_eq!(limiter.try_take(START + wait, RateClass::Shared), Ok(()));
}

#[test]
fn many_looks_at_the_time_lose_no_token() {
    let limiter = limiter(Profile::FairShare, 7, 2);
    let mut taken = 0;
    for step in 0..=100_000u64 {
        let now = START + Duration::from_micros(step * 100);
        taken += u32::from(limiter.try_take(now, RateClass::Shared).is_ok());
    }
    assert_eq!(taken, 72);
}

#[test]
fn shared_callers_leave_the_reserved_tokens() {
    let limiter = limiter(Profile::TrustedReservations, 10, 10);
    assert_eq!(tokens(&limiter, START, RateClass::Shared), 7);
    for class in [RateClass::Bootstrap, RateClass::Reconnect, RateClass::Trusted(0)] {
        assert_eq!(tokens(&limiter, START, class), 1, "{class:?}");
    }
    assert!(limiter.try_take(START, RateClass::Trusted(1)).is_err());
    let later = START + Duration::from_secs(1);
    assert_eq!(tokens(&limiter, later, RateClass::Shared), 7);
    assert_eq!(tokens(&limiter, later, RateClass::Reconnect), 1);
}

#[test]
fn reserved_callers_may_use_shared_tokens_and_the_total_holds() {
    let limiter = limiter(Profile::Balanced, 10, 10);
    assert_eq!(tokens(&limiter, START, RateClass::Bootstrap), 9);
    assert_eq!(tokens(&limiter, START, RateClass::Reconnect), 1);
    assert_eq!(tokens(&limiter, START, RateClass::Shared), 0);
    let wait = limiter.try_take(START, RateClass::Bootstrap).unwrap_err();
    assert_eq!(wait, Duration::from_millis(125));
}

#[test]
fn a_quiet_reserved_bucket_holds_one_token() {
    let limiter = limiter(Profile::Balanced, 3, 3);
    let later = START + Duration::from_secs(3600);
    assert_eq!(tokens(&limiter, later, RateClass::Shared), 1);
    assert_eq!(tokens(&limiter, later, RateClass::Bootstrap), 1);
}

#[test]
fn time_that_goes_back_gives_nothing() {
    let limiter = limiter(Profile::FairShare, 10, 5);
    assert_eq!(tokens(&limiter, START, RateClass::Shared), 5);
    assert_eq!(tokens(&limiter, Duration::ZERO, RateClass::Shared), 0);
    assert_eq!(tokens(&limiter, START, RateClass::Shared), 0);
    assert_eq!(tokens(&limiter, Duration::MAX, RateClass::Shared), 5);
}

#[test]
fn the_largest_rate_does_not_overflow() {
    let limiter = limiter(Profile::Balanced, u32::MAX, u32::MAX);
    for now in [Duration::ZERO, START, Duration::MAX] {
        assert_eq!(limiter.try_take(now, RateClass::Shared), Ok(()));
    }
}

#[test]
fn zero_is_no_limit_without_floors() {
    for profile in [Profile::SharedOnly, Profile::FairShare] {
        let limiter = limiter(profile, 0, 0);
        assert!((0..10_000).all(|_| limiter.try_take(START, RateClass::Shared).is_ok()));
    }
}

#[test]
fn an_owner_has_the_tokens_of_its_class() {
    let isolation = of_profile(Profile::TrustedReservations);
    let base = established(&isolation, "a");
    let continuity = isolation.continuity(&base).unwrap();
    for (owner, class) in [
        (bootstrap(&isolation, "a"), RateClass::Bootstrap),
        (user(&isolation, "a", Class::Reconnect), RateClass::Reconnect),
        (isolation.trusted("plant").unwrap(), RateClass::Trusted(0)),
        (base, RateClass::Shared),
        (user(&isolation, "a", Class::Control), RateClass::Shared),
        (continuity, RateClass::Shared),
    ] {
        assert_eq!(RateClass::from(&owner), class);
    }
}
