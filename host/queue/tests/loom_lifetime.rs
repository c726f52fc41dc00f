//! Every order that the memory model allows of a few operations on the table of waiting requests.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p backplane-queue --release --test loom_lifetime`

#![cfg(loom)]
#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use backplane_queue::lifetime::{Key, Refusal, Registration, RequestTable, Terminal};
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::thread;

const MINE: Key = Key {
    session: 1,
    connection: 1,
    handle: 1,
};
const OTHER: Key = Key {
    session: 2,
    connection: 2,
    handle: 2,
};
const SOON: Option<Duration> = Some(Duration::from_millis(1));
const LATER: Duration = Duration::from_millis(2);

/// How often each request was answered.
#[derive(Debug, Default)]
struct Answers([std::sync::atomic::AtomicU32; 3]);

impl Answers {
    fn count(&self, number: usize) {
        self.0[number].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }

    fn of(&self, number: usize) -> u32 {
        self.0[number].load(std::sync::atomic::Ordering::Relaxed)
    }
}

fn register(table: &RequestTable<usize>, key: Key, number: usize) -> Registration<usize> {
    table.register(key, None, number).unwrap().registration
}

fn complete(registration: Registration<usize>, answers: &Answers) {
    if let Some(number) = registration.complete() {
        answers.count(number);
    }
}

fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = None;
    builder.check(f);
}

#[test]
fn sweep_cancel_and_completion_end_a_request_once() {
    model(|| {
        let table = Arc::new(RequestTable::with_overflow_limit(1, 0));
        let answers = Arc::new(Answers::default());
        let mine = table.register(MINE, SOON, 0).unwrap().registration;
        let sweeper = {
            let (table, answers) = (Arc::clone(&table), Arc::clone(&answers));
            thread::spawn(move || table.sweep(LATER, |number| answers.count(number)))
        };
        let canceller = {
            let (table, answers) = (Arc::clone(&table), Arc::clone(&answers));
            thread::spawn(move || table.cancel(Duration::ZERO, 1, 1, |number| answers.count(number)))
        };
        complete(mine, &answers);
        sweeper.join().unwrap();
        canceller.join().unwrap();
        assert_eq!(answers.of(0), 1);
        assert!(table.is_empty());
    });
}

#[test]
fn a_slot_that_changes_hands_is_not_ended_for_its_predecessor() {
    for overflow in [false, true] {
        model(move || {
            let table = Arc::new(RequestTable::with_overflow_limit(1, 2));
            let answers = Arc::new(Answers::default());
            let occupant = overflow.then(|| register(&table, OTHER, 2));
            let mine = register(&table, MINE, 0);
            let closer = {
                let (table, answers) = (Arc::clone(&table), Arc::clone(&answers));
                thread::spawn(move || {
                    table.close_session(1, |number| {
                        assert_eq!(number, 0, "of another session");
                        answers.count(number);
                    })
                })
            };
            complete(mine, &answers);
            let other = register(&table, OTHER, 1);
            assert_eq!(other.state(), Terminal::Pending);
            assert_eq!(other.complete(), Some(1));
            closer.join().unwrap();
            assert_eq!(answers.of(0), 1);
            drop(occupant);
            assert!(table.is_empty());
        });
    }
}

#[test]
fn an_answer_is_not_left_in_a_slot_whose_registration_was_dropped() {
    model(|| {
        let table = Arc::new(RequestTable::with_overflow_limit(1, 0));
        let answer = Arc::new(());
        let mine = table.register(MINE, None, Arc::clone(&answer)).unwrap().registration;
        let closer = {
            let table = Arc::clone(&table);
            thread::spawn(move || table.close_connection(1, drop))
        };
        let drainer = {
            let table = Arc::clone(&table);
            thread::spawn(move || table.drain(drop))
        };
        drop(mine);
        closer.join().unwrap();
        drainer.join().unwrap();
        assert_eq!(Arc::strong_count(&answer), 1);
        assert!(table.is_empty());
    });
}

#[test]
fn a_registration_beside_a_drain_is_refused_stopped_or_complete() {
    for overflow in [false, true] {
        model(move || {
            let table = Arc::new(RequestTable::with_overflow_limit(1, 2));
            let answers = Arc::new(Answers::default());
            let occupant = overflow.then(|| register(&table, OTHER, 1));
            let drainer = {
                let (table, answers) = (Arc::clone(&table), Arc::clone(&answers));
                thread::spawn(move || {
                    table.drain(|number| answers.count(number));
                })
            };
            let registered = table.register(MINE, None, 0);
            drainer.join().unwrap();
            match registered {
                Ok(it) => {
                    assert_eq!(it.registration.state(), Terminal::Stopped);
                    complete(it.registration, &answers);
                }
                Err(refused) => {
                    assert_eq!(refused.reason, Refusal::Draining);
                    answers.count(refused.answer);
                }
            }
            assert_eq!(answers.of(0), 1);
            drop(occupant);
            assert!(table.is_empty());
        });
    }
}

#[test]
fn a_registration_beside_a_session_close_is_seen_or_sees_the_mark() {
    for overflow in [false, true] {
        model(move || {
            let table = Arc::new(RequestTable::with_overflow_limit(1, 2));
            let answers = Arc::new(Answers::default());
            let closed = Arc::new(AtomicBool::new(false));
            let occupant = overflow.then(|| register(&table, OTHER, 1));
            let closer = {
                let (table, answers, closed) = (Arc::clone(&table), Arc::clone(&answers), Arc::clone(&closed));
                thread::spawn(move || {
                    closed.store(true, Ordering::Release);
                    table.close_session(1, |number| answers.count(number));
                })
            };
            let mine = register(&table, MINE, 0);
            let kept = if closed.load(Ordering::Acquire) {
                complete(mine, &answers);
                None
            } else {
                Some(mine)
            };
            closer.join().unwrap();
            assert_eq!(answers.of(0), 1);
            drop((kept, occupant));
            assert!(table.is_empty());
        });
    }
}

#[test]
fn nobody_is_watched_without_a_sweeper() {
    for overflow in [false, true] {
        model(move || {
            let table = Arc::new(RequestTable::with_overflow_limit(1, 2));
            let occupant = overflow.then(|| register(&table, OTHER, 1));
            let first = table.register(OTHER, SOON, 2).unwrap();
            assert!(first.watched_started);
            drop(first);
            // The sweeper of the first request is about to stop.
            let sweeper = {
                let table = Arc::clone(&table);
                thread::spawn(move || table.sweep(Duration::ZERO, |_| unreachable!("early")).watched)
            };
            let second = table.register(MINE, SOON, 0).unwrap();
            let goes_on = sweeper.join().unwrap() > 0;
            let sweepers = u32::from(goes_on) + u32::from(second.watched_started);
            assert_eq!(sweepers, 1);
            assert!(table.is_watched());
            drop((second, occupant));
        });
    }
}

#[test]
fn what_the_worker_wrote_before_is_seen_by_who_answers() {
    model(|| {
        let table = Arc::new(RequestTable::with_overflow_limit(1, 0));
        let answer = Arc::new(AtomicU32::new(0));
        let seen = Arc::new(AtomicU32::new(u32::MAX));
        let worker = {
            let (table, answer) = (Arc::clone(&table), Arc::clone(&answer));
            thread::spawn(move || {
                answer.store(1, Ordering::Relaxed);
                drop(table.register(MINE, None, answer).unwrap());
            })
        };
        table.close_session(1, |answer| {
            seen.store(answer.load(Ordering::Relaxed), Ordering::Relaxed)
        });
        worker.join().unwrap();
        assert_ne!(seen.load(Ordering::Relaxed), 0);
    });
}
