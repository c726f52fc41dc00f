//! Many random schedules of longer runs on the table of waiting requests.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p backplane-queue --release --test shuttle_lifetime`

#![cfg(all(shuttle, not(loom)))]
#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use backplane_queue::lifetime::{Key, RequestTable, Terminal};
use shuttle::sync::atomic::{AtomicU32, Ordering};
use shuttle::thread;

const WORKERS: usize = 3;
const EACH: usize = 6;
const SCHEDULES: usize = 2_000;
/// Scheduling points between two changes of priority, of the schedules that look for deep bugs.
const DEPTH: usize = 4;

fn key(worker: usize, turn: usize) -> Key {
    Key {
        session: turn as u64 % 2,
        connection: worker as u64,
        handle: 1,
    }
}

fn ends_once(slots: usize) {
    let table = Arc::new(RequestTable::new(slots));
    let answered: Arc<Vec<AtomicU32>> = Arc::new((0..WORKERS * EACH).map(|_| AtomicU32::new(0)).collect());
    let workers: Vec<_> = (0..WORKERS)
        .map(|worker| {
            let (table, answered) = (Arc::clone(&table), Arc::clone(&answered));
            thread::spawn(move || {
                for turn in 0..EACH {
                    let number = worker * EACH + turn;
                    let deadline = (turn % 2 == 0).then(|| Duration::from_millis(turn as u64));
                    let answer = match table.register(key(worker, turn), deadline, number) {
                        Ok(it) => {
                            thread::yield_now();
                            let state = it.registration.state();
                            let answer = it.registration.complete();
                            assert!(state == Terminal::Pending || answer.is_none());
                            answer
                        }
                        Err(refused) => Some(refused.answer),
                    };
                    if let Some(number) = answer {
                        answered[number].fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    let count = |number: usize| {
        answered[number].fetch_add(1, Ordering::Relaxed);
    };
    table.sweep(Duration::from_millis(3), count);
    table.cancel(Duration::ZERO, 0, 1, count);
    table.close_connection(2, count);
    table.close_session(1, count);
    table.drain(count);
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    assert!(answered.iter().all(|it| it.load(Ordering::Relaxed) == 1));
    assert!(table.is_empty());
}

#[test]
fn each_request_ends_once_in_random_schedules() {
    shuttle::check_random(|| ends_once(1), SCHEDULES);
    shuttle::check_random(|| ends_once(4), SCHEDULES);
}

#[test]
fn each_request_ends_once_in_schedules_that_look_for_deep_bugs() {
    shuttle::check_pct(|| ends_once(2), SCHEDULES, DEPTH);
}

fn always_swept() {
    let table = Arc::new(RequestTable::new(2));
    let running = Arc::new(AtomicU32::new(0));
    let workers: Vec<_> = (0..2)
        .map(|worker| {
            let (table, running) = (Arc::clone(&table), Arc::clone(&running));
            thread::spawn(move || {
                for turn in 0..3 {
                    let it = table
                        .register(key(worker, turn), Some(Duration::from_millis(1)), ())
                        .unwrap();
                    if it.watched_started {
                        running.fetch_add(1, Ordering::SeqCst);
                        let (table, running) = (Arc::clone(&table), Arc::clone(&running));
                        thread::spawn(move || {
                            while table.sweep(Duration::from_millis(2), |()| ()).watched > 0 {
                                thread::yield_now();
                            }
                            running.fetch_sub(1, Ordering::SeqCst);
                        });
                    }
                    // Without a sweeper this waits for ever.
                    while it.registration.state() == Terminal::Pending {
                        thread::yield_now();
                    }
                }
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    while running.load(Ordering::SeqCst) > 0 {
        thread::yield_now();
    }
    assert!(table.is_empty() && !table.is_watched());
}

#[test]
fn a_watched_request_always_has_a_sweeper() {
    shuttle::check_random(always_swept, SCHEDULES);
}
