//! One test for each row of the state table (Part 4, 5.14.1.2) that is not a service of its own.

use super::*;

const QUEUED: Facts = Facts {
    request_queued: true,
    notifications: false,
};
const QUEUED_DATA: Facts = Facts {
    request_queued: true,
    notifications: true,
};
const NOTHING: Facts = Facts {
    request_queued: false,
    notifications: false,
};
const DATA: Facts = Facts {
    request_queued: false,
    notifications: true,
};

fn machine(state: State) -> StateMachine {
    StateMachine {
        state,
        message_sent: true,
        ..StateMachine::new(5, 20, true)
    }
}

fn disabled(state: State) -> StateMachine {
    StateMachine {
        publishing_enabled: false,
        ..machine(state)
    }
}

#[test]
fn row_02_03_created() {
    let created = StateMachine::new(5, 20, true);
    assert_eq!(created.state, State::Normal);
    assert!(!created.message_sent);
    assert_eq!((created.keep_alive, created.lifetime), (5, 20));
}

#[test]
fn row_04_publish_is_queued_in_normal() {
    let mut it = machine(State::Normal);
    it.lifetime = 3;
    assert_eq!(it.on_publish(true), Action::Wait, "data waits for the timer");
    assert_eq!((it.state, it.lifetime), (State::Normal, 20));
    let mut it = disabled(State::Normal);
    it.more = true;
    assert_eq!(it.on_publish(true), Action::Wait);
}

#[test]
fn row_05_publish_takes_more_notifications_at_once() {
    let mut it = machine(State::Normal);
    it.more = true;
    it.message_sent = false;
    assert!(it.wants_publish(true));
    assert!(!it.wants_publish(false), "the rest is gone with its items");
    assert_eq!(it.on_publish(true), Action::Notifications);
    assert_eq!(it.state, State::Normal);
    assert!(it.message_sent);
}

#[test]
fn row_06_timer_sends_notifications() {
    let mut it = machine(State::Normal);
    it.message_sent = false;
    it.lifetime = 2;
    assert_eq!(it.on_timer(QUEUED_DATA), Action::Notifications);
    assert_eq!((it.state, it.lifetime), (State::Normal, 20));
    assert!(it.message_sent);
}

#[test]
fn row_07_first_timer_sends_a_keep_alive() {
    for mut it in [machine(State::Normal), disabled(State::Normal)] {
        it.message_sent = false;
        let facts = if it.publishing_enabled { QUEUED } else { QUEUED_DATA };
        assert_eq!(it.on_timer(facts), Action::KeepAlive);
        assert_eq!(it.state, State::Normal);
        assert!(it.message_sent);
    }
}

#[test]
fn row_08_no_request_makes_late() {
    let mut it = machine(State::Normal);
    assert_eq!(it.on_timer(DATA), Action::Wait);
    assert_eq!((it.state, it.lifetime), (State::Late, 19));
    let mut it = StateMachine::new(5, 20, true);
    it.on_timer(NOTHING);
    assert_eq!(it.state, State::Late, "the first message is due even without data");
}

#[test]
fn row_09_empty_cycle_starts_counting() {
    for facts in [QUEUED, NOTHING] {
        let mut it = machine(State::Normal);
        it.keep_alive = 1;
        assert_eq!(it.on_timer(facts), Action::Wait);
        assert_eq!((it.state, it.keep_alive), (State::KeepAlive, 4));
    }
    let mut it = disabled(State::Normal);
    assert_eq!(it.on_timer(QUEUED_DATA), Action::Wait);
    assert_eq!(it.state, State::KeepAlive);
}

#[test]
fn row_09_with_a_keep_alive_count_of_one_sends_every_cycle() {
    let mut it = StateMachine {
        message_sent: true,
        ..StateMachine::new(1, 3, true)
    };
    for _ in 0..5 {
        assert_eq!(it.on_timer(QUEUED), Action::KeepAlive);
    }
}

#[test]
fn row_10_late_publish_takes_notifications() {
    for more in [false, true] {
        let mut it = machine(State::Late);
        it.more = more;
        it.lifetime = 1;
        assert!(it.wants_publish(true));
        assert_eq!(it.on_publish(true), Action::Notifications);
        assert_eq!((it.state, it.lifetime), (State::Normal, 20));
    }
}

#[test]
fn row_11_late_publish_takes_a_keep_alive() {
    for (mut it, notifications) in [(machine(State::Late), false), (disabled(State::Late), true)] {
        it.keep_alive = 1;
        it.message_sent = false;
        assert_eq!(it.on_publish(notifications), Action::KeepAlive);
        assert_eq!((it.state, it.keep_alive), (State::KeepAlive, 5));
        assert!(it.message_sent);
    }
}

#[test]
fn row_12_late_stays_late() {
    for facts in [DATA, NOTHING] {
        let mut it = machine(State::Late);
        assert_eq!(it.on_timer(facts), Action::Wait);
        assert_eq!((it.state, it.lifetime), (State::Late, 19));
    }
}

#[test]
fn row_13_publish_is_queued_in_keep_alive() {
    let mut it = machine(State::KeepAlive);
    it.lifetime = 2;
    assert!(!it.wants_publish(true));
    assert_eq!(it.on_publish(true), Action::Wait);
    assert_eq!((it.state, it.lifetime), (State::KeepAlive, 20));
}

#[test]
fn row_14_keep_alive_sends_notifications() {
    let mut it = machine(State::KeepAlive);
    assert_eq!(it.on_timer(QUEUED_DATA), Action::Notifications);
    assert_eq!(it.state, State::Normal);
}

#[test]
fn row_15_last_empty_cycle_sends_the_keep_alive() {
    for (mut it, facts) in [
        (machine(State::KeepAlive), QUEUED),
        (disabled(State::KeepAlive), QUEUED_DATA),
    ] {
        it.keep_alive = 1;
        assert_eq!(it.on_timer(facts), Action::KeepAlive);
        assert_eq!((it.state, it.keep_alive), (State::KeepAlive, 5));
    }
}

#[test]
fn row_16_empty_cycle_counts_down() {
    for facts in [QUEUED, NOTHING] {
        let mut it = machine(State::KeepAlive);
        it.keep_alive = 2;
        assert_eq!(it.on_timer(facts), Action::Wait);
        assert_eq!((it.state, it.keep_alive), (State::KeepAlive, 1));
    }
}

#[test]
fn row_17_keep_alive_without_request_makes_late() {
    let mut it = machine(State::KeepAlive);
    it.keep_alive = 1;
    it.on_timer(NOTHING);
    assert_eq!(it.state, State::Late);
    let mut it = machine(State::KeepAlive);
    it.keep_alive = 4;
    it.on_timer(DATA);
    assert_eq!(it.state, State::Late);
}

#[test]
fn row_18_20_21_services_reset_the_lifetime() {
    let mut it = machine(State::Late);
    it.lifetime = 1;
    it.reset_lifetime();
    assert_eq!((it.state, it.lifetime), (State::Late, 20));
}

#[test]
fn row_19_publishing_mode() {
    let mut it = machine(State::Normal);
    it.more = true;
    it.lifetime = 1;
    it.set_publishing_enabled(false);
    assert!(!it.more && !it.publishing_enabled);
    assert_eq!(it.lifetime, 20);
}

#[test]
fn row_27_lifetime_ends_after_that_many_timers() {
    let mut it = StateMachine::new(5, 20, true);
    for cycle in 1..20 {
        assert_eq!(it.on_timer(NOTHING), Action::Wait, "cycle {cycle}");
    }
    assert_eq!(it.on_timer(NOTHING), Action::Expire);
}

#[test]
fn keep_alive_comes_every_max_keep_alive_cycles_after_the_first() {
    let mut it = StateMachine::new(5, 20, true);
    let sent: Vec<usize> = (1..=16).filter(|_| it.on_timer(QUEUED) == Action::KeepAlive).collect();
    assert_eq!(sent, [1, 6, 11, 16]);
}
