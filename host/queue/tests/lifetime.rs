//! The table of waiting requests: who ends a request, exactly once, whatever races for it.

#![cfg(not(any(loom, shuttle)))]
#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use backplane_queue::lifetime::{Key, PROBES, Refusal, Registration, RequestTable, SWEEP_INTERVAL, Terminal};

fn key(session: u64, connection: u64, handle: u32) -> Key {
    Key {
        session,
        connection,
        handle,
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Counts how often a request was answered, and, when dropped, that nothing of it is left.
#[derive(Debug)]
struct Answer {
    number: usize,
    alive: Arc<AtomicU32>,
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct Ledger {
    alive: Arc<AtomicU32>,
    answered: Vec<AtomicU32>,
}

impl Ledger {
    fn new(requests: usize) -> Self {
        Self {
            alive: Arc::default(),
            answered: (0..requests).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    fn answer(&self, number: usize) -> Answer {
        self.alive.fetch_add(1, Ordering::Relaxed);
        Answer {
            number,
            alive: Arc::clone(&self.alive),
        }
    }

    fn count(&self, answer: Answer) {
        self.answered[answer.number].fetch_add(1, Ordering::Relaxed);
    }

    fn assert_each_once(&self) {
        for (number, answered) in self.answered.iter().enumerate() {
            assert_eq!(answered.load(Ordering::Relaxed), 1, "request {number}");
        }
        assert_eq!(self.alive.load(Ordering::Relaxed), 0, "answers leaked");
    }
}

fn register<T: std::fmt::Debug>(table: &RequestTable<T>, key: Key, answer: T) -> Registration<T> {
    table.register(key, None, answer).unwrap().registration
}

#[test]
fn a_completed_request_is_over() {
    let table = RequestTable::new(4);
    let one = register(&table, key(1, 1, 7), "one");
    assert_eq!((table.len(), one.state()), (1, Terminal::Pending));
    assert_eq!(one.complete(), Some("one"));
    assert!(table.is_empty());
    assert_eq!(table.cancel(ms(0), 1, 7, |_| unreachable!()), 0);
    assert_eq!(table.close_session(1, |_| unreachable!()), 0);
    assert_eq!(table.close_connection(1, |_| unreachable!()), 0);
    assert_eq!(table.drain(|_| unreachable!()), 0);
}

#[test]
fn a_dropped_registration_leaves_nothing() {
    let ledger = Ledger::new(1);
    let table = RequestTable::new(1);
    drop(register(&table, key(1, 1, 7), ledger.answer(0)));
    assert_eq!(ledger.alive.load(Ordering::Relaxed), 0);
    assert!(table.is_empty());
    // The one slot is there again, and so is a dropped table's content.
    let kept = register(&table, key(1, 1, 7), ledger.answer(0));
    assert_eq!(table.overflowed(), 0);
    drop(table);
    assert_eq!(kept.state(), Terminal::Pending);
    ledger.count(kept.complete().unwrap());
    ledger.assert_each_once();
}

#[test]
fn cancel_is_by_session_and_handle() {
    let table = RequestTable::new(64);
    let keys = [(1, 1, 7), (1, 1, 8), (2, 1, 7), (1, 2, 7)];
    let all: Vec<_> = keys
        .iter()
        .enumerate()
        .map(|(number, &(session, connection, handle))| register(&table, key(session, connection, handle), number))
        .collect();
    let mut cancelled = Vec::new();
    assert_eq!(table.cancel(ms(0), 1, 7, |number| cancelled.push(number)), 2);
    cancelled.sort_unstable();
    assert_eq!(cancelled, [0, 3]);
    assert_eq!(table.cancel(ms(0), 1, 7, |_| unreachable!()), 0, "only once");
    let states: Vec<_> = all.iter().map(Registration::state).collect();
    let (cancelled, pending) = (Terminal::Cancelled, Terminal::Pending);
    assert_eq!(states, [cancelled, pending, pending, cancelled]);
    let completed: Vec<_> = all.into_iter().map(Registration::complete).collect();
    assert_eq!(completed, [None, Some(1), Some(2), None]);
    assert!(table.is_empty());
}

#[test]
fn closing_ends_what_belongs_to_the_session_or_connection() {
    let table = RequestTable::new(64);
    let one = register(&table, key(1, 1, 0), 1);
    let two = register(&table, key(1, 2, 0), 2);
    let three = register(&table, key(2, 1, 0), 3);
    let mut closed = Vec::new();
    assert_eq!(table.close_session(1, |number| closed.push(number)), 2);
    assert_eq!(table.close_connection(1, |number| closed.push(number)), 1);
    closed.sort_unstable();
    assert_eq!(closed, [1, 2, 3]);
    for ended in [one, two, three] {
        assert_eq!(ended.state(), Terminal::Closed);
        assert_eq!(ended.complete(), None);
    }
    assert!(table.is_empty());
}

#[test]
fn an_ended_request_keeps_its_slot_until_its_worker_lets_go() {
    let table = RequestTable::with_overflow_limit(1, 0);
    let one = register(&table, key(1, 1, 1), 1);
    assert_eq!(table.cancel(ms(0), 1, 1, |_| ()), 1);
    assert_eq!(table.len(), 1);
    let refused = table.register(key(1, 1, 2), None, 2).unwrap_err();
    assert_eq!((refused.reason, refused.answer), (Refusal::Full, 2));
    assert_eq!(one.state(), Terminal::Cancelled);
    let seen = one.observe();
    drop(one);
    assert_eq!(seen.state(), Terminal::Complete);
    let two = register(&table, key(1, 1, 2), 2);
    assert_eq!((two.state(), seen.state()), (Terminal::Pending, Terminal::Complete));
    assert_eq!(two.complete(), Some(2));
}

#[test]
fn one_key_may_be_used_many_times_and_overflows() {
    const REQUESTS: usize = 100;
    let table = RequestTable::new(PROBES);
    let same = key(1, 1, 0);
    let mut all: Vec<_> = (0..REQUESTS).map(|number| register(&table, same, number)).collect();
    assert_eq!(table.len(), REQUESTS);
    assert_eq!(table.overflowed(), (REQUESTS - PROBES) as u64);
    // Half of the overflow set completes, in no order of its own.
    let rest = all.split_off(REQUESTS / 2);
    for (number, done) in rest.into_iter().enumerate().rev() {
        assert_eq!(done.complete(), Some(REQUESTS / 2 + number));
    }
    assert_eq!(table.len(), REQUESTS / 2);
    let mut cancelled = Vec::new();
    assert_eq!(table.cancel(ms(0), 1, 0, |number| cancelled.push(number)), 50);
    cancelled.sort_unstable();
    assert!(cancelled.into_iter().eq(0..REQUESTS / 2));
    assert!(all.into_iter().all(|it| it.complete().is_none()));
    assert!(table.is_empty());
}

#[test]
fn the_overflow_set_is_bounded() {
    let table = RequestTable::with_overflow_limit(1, 2);
    let all: Vec<_> = (0..3)
        .map(|number| register(&table, key(1, 1, number), number))
        .collect();
    let refused = table.register(key(1, 1, 3), None, 3).unwrap_err();
    assert_eq!((refused.reason, refused.answer), (Refusal::Full, 3));
    drop(all);
    assert!(table.is_empty());
    drop(table.register(key(1, 1, 3), None, 3).unwrap());
}

#[test]
fn slots_are_spread_before_any_overflows() {
    // A quarter full, with handles as clients choose them: counted up, and all the same.
    for same in [false, true] {
        let table = RequestTable::new(1024);
        let handle = |number| if same { 0 } else { number };
        let all: Vec<_> = (0..256)
            .map(|number| register(&table, key(1, 1, handle(number)), number))
            .collect();
        assert_eq!((table.len(), table.overflowed()), (256, 0));
        drop(all);
    }
}

#[test]
fn a_closure_may_use_the_table() {
    let table = RequestTable::new(1);
    let held: Vec<_> = (0..3)
        .map(|number| register(&table, key(1, 1, number), number))
        .collect();
    let mut nested = 0;
    table.close_session(1, |number| {
        nested += table.cancel(ms(0), 1, number, |_| ());
        let again = register(&table, key(2, 1, number), number);
        assert_eq!(again.complete(), Some(number));
    });
    assert_eq!(nested, 0);
    assert!(held.into_iter().all(|it| it.complete().is_none()));
    assert!(table.is_empty());
}

#[test]
fn no_deadline_fires_early_or_more_than_an_interval_late() {
    let table = RequestTable::new(8);
    let deadlines: Vec<Duration> = (0..200)
        .map(|number| ms(number * 7 % 400) + Duration::from_micros(number))
        .collect();
    let held: Vec<_> = deadlines
        .iter()
        .map(|deadline| table.register(key(1, 1, 0), Some(*deadline), *deadline).unwrap())
        .collect();
    let started = held.iter().filter(|it| it.watched_started).count();
    assert_eq!(started, 1);
    let mut now = ms(3);
    let mut ended = 0;
    loop {
        let outcome = table.sweep(now, |deadline| {
            assert!(deadline <= now, "early");
            assert!(now - deadline <= SWEEP_INTERVAL, "late: {deadline:?} at {now:?}");
            ended += 1;
        });
        assert_eq!(outcome.watched, deadlines.len() - ended);
        assert_eq!(table.is_watched(), outcome.watched > 0);
        if outcome.watched == 0 {
            break;
        }
        now += SWEEP_INTERVAL;
    }
    assert_eq!(ended, deadlines.len());
    for it in held {
        assert_eq!(it.registration.state(), Terminal::TimedOut);
        assert_eq!(it.registration.complete(), None);
    }
    assert!(table.is_empty());
}

#[test]
fn a_deadline_fires_at_its_very_moment() {
    let table = RequestTable::new(1);
    let one = table.register(key(1, 1, 1), Some(ms(100)), ()).unwrap().registration;
    let mut fired = 0;
    table.sweep(ms(100) - Duration::from_nanos(1), |()| fired += 1);
    assert_eq!((fired, one.state()), (0, Terminal::Pending));
    table.sweep(ms(100), |()| fired += 1);
    assert_eq!((fired, one.state()), (1, Terminal::TimedOut));
    table.sweep(ms(200), |()| fired += 1);
    assert_eq!(fired, 1);
}

#[test]
fn a_deadline_beyond_all_time_is_watched_and_never_fires() {
    let table = RequestTable::new(1);
    let far = table.register(key(1, 1, 1), Some(Duration::MAX), ()).unwrap();
    assert!(far.watched_started);
    let outcome = table.sweep(Duration::from_secs(1 << 33), |()| unreachable!());
    assert_eq!(outcome.watched, 1);
}

#[test]
fn sweeping_goes_on_only_while_something_is_watched() {
    let table = RequestTable::new(4);
    let plain = table.register(key(1, 1, 1), None, 1).unwrap();
    assert!(!plain.watched_started && !table.is_watched());
    let first = table.register(key(1, 1, 2), Some(ms(50)), 2).unwrap();
    let second = table.register(key(1, 1, 3), Some(ms(50)), 3).unwrap();
    assert!(first.watched_started && !second.watched_started && table.is_watched());
    assert_eq!(first.registration.complete(), Some(2));
    assert_eq!(table.sweep(ms(10), |_| unreachable!()).watched, 1);
    assert_eq!(second.registration.complete(), Some(3));
    assert_eq!(table.sweep(ms(30), |_| unreachable!()).watched, 0);
    assert!(!table.is_watched());
    let third = table.register(key(1, 1, 4), Some(ms(60)), 4).unwrap();
    assert!(third.watched_started, "somebody has to start again");
}

#[test]
fn what_ended_by_itself_is_not_cancelled() {
    let table = RequestTable::new(4);
    let late = table.register(key(1, 1, 1), Some(ms(50)), 1).unwrap().registration;
    assert_eq!(table.cancel(ms(50), 1, 1, |_| unreachable!()), 0);
    assert_eq!(late.state(), Terminal::Pending);
    let mut timed_out = 0;
    table.sweep(ms(55), |_| timed_out += 1);
    assert_eq!((timed_out, late.state()), (1, Terminal::TimedOut));
    let early = table.register(key(1, 1, 1), Some(ms(100)), 1).unwrap().registration;
    assert_eq!(table.cancel(ms(99), 1, 1, |_| ()), 1);
    assert_eq!(early.state(), Terminal::Cancelled);
}

#[test]
fn nothing_is_taken_in_once_draining() {
    let table = RequestTable::new(1);
    let held: Vec<_> = (0..3)
        .map(|number| register(&table, key(1, 1, number), number))
        .collect();
    let mut stopped = Vec::new();
    let count = table.drain(|number| {
        stopped.push(number);
        assert_eq!(table.cancel(ms(0), 1, 2, |_| unreachable!()), 0, "left to the drain");
    });
    assert_eq!((count, stopped.len()), (3, 3));
    let refused = table.register(key(1, 1, 9), Some(ms(1)), 9).unwrap_err();
    assert_eq!((refused.reason, refused.answer), (Refusal::Draining, 9));
    assert!(!table.is_watched());
    assert_eq!(table.drain(|_| unreachable!()), 0);
    for it in held {
        assert_eq!(it.state(), Terminal::Stopped);
        assert_eq!(it.complete(), None);
    }
    assert!(table.is_empty());
}

/// Runs workers that register and complete, beside an enemy that ends requests until all workers are done.
fn race(table: &RequestTable<Answer>, ledger: &Ledger, workers: usize, each: usize, enemy: impl Fn(usize) + Sync) {
    let running = AtomicU32::new(workers as u32);
    thread::scope(|scope| {
        for worker in 0..workers {
            let running = &running;
            scope.spawn(move || {
                for turn in 0..each {
                    let number = worker * each + turn;
                    let place = key(turn as u64 % 5, worker as u64, (turn % 3) as u32);
                    let deadline = (turn % 2 == 0).then(|| ms(number as u64 % 50));
                    let it = table.register(place, deadline, ledger.answer(number)).unwrap();
                    if turn % 16 == 0 {
                        thread::yield_now();
                    }
                    if let Some(answer) = it.registration.complete() {
                        ledger.count(answer);
                    }
                }
                running.fetch_sub(1, Ordering::Release);
            });
        }
        let mut turn = 0;
        while running.load(Ordering::Acquire) > 0 {
            enemy(turn);
            turn += 1;
        }
    });
}

#[test]
fn sweep_cancel_close_and_completion_race_for_each_request_once() {
    const EACH: usize = 5_000;
    // Few slots: half of the requests are in the overflow set.
    for slots in [2, 256] {
        let table = RequestTable::new(slots);
        let ledger = Ledger::new(3 * EACH);
        let ended = AtomicU32::new(0);
        race(&table, &ledger, 3, EACH, |turn| {
            let end = |answer| {
                ended.fetch_add(1, Ordering::Relaxed);
                ledger.count(answer);
            };
            match turn % 4 {
                0 => drop(table.sweep(ms(turn as u64 % 50), end)),
                1 => drop(table.cancel(ms(0), turn as u64 % 5, (turn % 3) as u32, end)),
                2 => drop(table.close_session(turn as u64 % 5, end)),
                _ => drop(table.close_connection(turn as u64 % 3, end)),
            }
        });
        ledger.assert_each_once();
        assert!(table.is_empty());
        assert_eq!(table.sweep(ms(100), |_| unreachable!()).watched, 0);
    }
}

#[test]
fn a_request_is_never_missed_while_others_come_and_go() {
    const EACH: usize = 5_000;
    for slots in [1, 64] {
        let table = RequestTable::new(slots);
        let ledger = Ledger::new(2 * EACH);
        let others = Ledger::new(1_000_000);
        let next = AtomicU32::new(0);
        race(&table, &ledger, 2, EACH, |_| {
            let number = next.fetch_add(1, Ordering::Relaxed) as usize;
            if number >= others.answered.len() {
                return;
            }
            // Registered before, so it must be found, whatever slots change hands meanwhile.
            let mine = register(&table, key(99, 99, 1), others.answer(number));
            let found = match number % 2 {
                0 => table.cancel(ms(0), 99, 1, |answer| others.count(answer)) as usize,
                _ => table.close_session(99, |answer| others.count(answer)),
            };
            assert_eq!(found, 1);
            drop(mine);
        });
        ledger.assert_each_once();
        let tried = next.load(Ordering::Relaxed) as usize;
        assert!(
            others
                .answered
                .iter()
                .take(tried)
                .all(|it| it.load(Ordering::Relaxed) == 1)
        );
        assert_eq!(others.alive.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn a_session_that_closes_leaves_no_request_behind() {
    for round in 0..500 {
        let table = RequestTable::new(1 + round % 3);
        let ledger = Ledger::new(4);
        let closed = AtomicBool::new(false);
        thread::scope(|scope| {
            for worker in 0..2 {
                let (table, ledger, closed) = (&table, &ledger, &closed);
                scope.spawn(move || {
                    let registered: Vec<_> = (0..2)
                        .map(|turn| register(table, key(1, 1, turn), ledger.answer(worker * 2 + turn as usize)))
                        .collect();
                    // Waits for ever, unless the session is closed: then either side answers.
                    if closed.load(Ordering::Relaxed) {
                        let mine = registered.into_iter().filter_map(Registration::complete);
                        mine.for_each(|answer| ledger.count(answer));
                    } else {
                        while registered.iter().any(|it| it.state() == Terminal::Pending) {
                            thread::yield_now();
                        }
                    }
                });
            }
            closed.store(true, Ordering::Relaxed);
            table.close_session(1, |answer| ledger.count(answer));
        });
        ledger.assert_each_once();
        assert!(table.is_empty());
    }
}

#[test]
fn a_drain_races_registration_and_completion() {
    for round in 0..500 {
        let table = RequestTable::new(1 + round % 3);
        let ledger = Ledger::new(6);
        thread::scope(|scope| {
            for worker in 0..2 {
                let (table, ledger) = (&table, &ledger);
                scope.spawn(move || {
                    for turn in 0..3 {
                        match table.register(key(1, 1, 1), Some(ms(5)), ledger.answer(worker * 3 + turn)) {
                            Ok(it) if turn == 1 => {
                                while it.registration.state() == Terminal::Pending {
                                    thread::yield_now();
                                }
                                assert_eq!(it.registration.state(), Terminal::Stopped);
                            }
                            Ok(it) => {
                                if let Some(answer) = it.registration.complete() {
                                    ledger.count(answer);
                                }
                            }
                            Err(refused) => {
                                assert_eq!(refused.reason, Refusal::Draining);
                                ledger.count(refused.answer);
                            }
                        }
                    }
                });
            }
            table.drain(|answer| ledger.count(answer));
        });
        ledger.assert_each_once();
        assert!(table.is_empty());
    }
}

#[test]
fn there_is_a_sweeper_whenever_something_is_watched() {
    const EACH: usize = 2_000;
    let table = RequestTable::new(2);
    let sweepers = AtomicU32::new(0);
    let most = AtomicU32::new(0);
    thread::scope(|scope| {
        for worker in 0..2 {
            let (table, sweepers, most) = (&table, &sweepers, &most);
            scope.spawn(move || {
                for turn in 0..EACH as u32 {
                    let it = table.register(key(1, worker, turn), Some(ms(1)), ()).unwrap();
                    if it.watched_started {
                        scope.spawn(move || {
                            most.fetch_max(1 + sweepers.fetch_add(1, Ordering::AcqRel), Ordering::Relaxed);
                            loop {
                                // What ends the last sweep and what starts the next may overlap: this one counts as gone before.
                                sweepers.fetch_sub(1, Ordering::AcqRel);
                                if table.sweep(ms(2), |()| ()).watched == 0 {
                                    break;
                                }
                                most.fetch_max(1 + sweepers.fetch_add(1, Ordering::AcqRel), Ordering::Relaxed);
                                thread::yield_now();
                            }
                        });
                    }
                    if turn % 2 == 0 {
                        // Only a sweep ends it: without a sweeper this waits for ever.
                        while it.registration.state() == Terminal::Pending {
                            thread::yield_now();
                        }
                    }
                }
            });
        }
    });
    assert_eq!(most.load(Ordering::Relaxed), 1, "never two at a time");
    assert!(!table.is_watched() && table.is_empty());
}

/// Processor time of this thread, which a busy machine does not lengthen. Linux only.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
}

/// Registers and completes, `held` requests at a time.
fn measure(name: &str, table: &RequestTable<u64>, deadline: Option<Duration>, held: u32) {
    const REQUESTS: u32 = 2_000_000;
    let mut waiting = Vec::with_capacity(held as usize);
    let begin = cpu();
    for first in (0..REQUESTS).step_by(held as usize) {
        waiting.extend((0..held).map(|turn| {
            let place = key(1, 1, first + turn);
            table.register(place, deadline, 1).unwrap().registration
        }));
        assert!(waiting.drain(..).all(|it| it.complete().is_some()));
    }
    println!("{name}, {held} at a time: {:?} each", (cpu() - begin) / REQUESTS);
}

/// Prints what the table costs; run with `--release`, `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn measure_registering_and_completing() {
    const SWEEPS: u32 = 20_000;
    let table = RequestTable::new(4096);
    measure("register and complete", &table, None, 1);
    measure("register and complete", &table, None, 64);
    measure("with a deadline", &table, Some(ms(1)), 1);
    assert_eq!(table.overflowed(), 0);
    let full = RequestTable::new(1);
    let occupant = register(&full, key(1, 1, 1), 1);
    measure("in the overflow set", &full, None, 64);
    drop(occupant);
    let held: Vec<_> = (0..1000)
        .map(|turn| table.register(key(1, 1, turn), Some(ms(9)), 1).unwrap())
        .collect();
    let begin = cpu();
    (0..SWEEPS).for_each(|_| assert_eq!(table.sweep(ms(1), |_| unreachable!()).watched, held.len()));
    println!("a sweep of 4096 slots, 1000 taken: {:?}", (cpu() - begin) / SWEEPS);
}

/// Prints what two threads cost each other.
#[test]
#[ignore = "a measurement"]
fn measure_two_threads() {
    let table = RequestTable::new(4096);
    thread::scope(|scope| {
        for connection in 0..2 {
            let table = &table;
            scope.spawn(move || {
                let begin = cpu();
                for turn in 0..1_000_000 {
                    let it = register(table, key(connection, connection, turn), 1);
                    assert_eq!(it.complete(), Some(1));
                }
                println!("one of two threads: {:?} each", (cpu() - begin) / 1_000_000);
            });
        }
    });
}
