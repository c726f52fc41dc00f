//! The index of sessions by token: the table's verdicts, without the table.

#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use backplane_session::{
    ChannelId, ChannelInfo, CloseReason, Identity, IdentityKind, NotValidated, RandomSource, RandomUnavailable,
    SessionHandle, SessionLimits, SessionParameters, Sessions, Standing, VerifiedUser,
};
use backplane_types::{ByteString, DateTime, MessageSecurityMode, NodeId, Now, StatusCode, UaString};

type Random = Box<dyn FnMut(&mut [u8]) -> Result<(), RandomUnavailable> + Send>;

/// Numbers that repeat only after all of them were there.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

fn random() -> Random {
    let mut numbers = Numbers(1);
    Box::new(move |buffer| {
        for part in buffer.chunks_mut(8) {
            part.copy_from_slice(&numbers.next().to_le_bytes()[..part.len()]);
        }
        Ok(())
    })
}

fn sessions(max_sessions: usize) -> Sessions<Random> {
    let limits = SessionLimits {
        max_sessions,
        ..SessionLimits::default()
    };
    Sessions::new(limits, random()).unwrap()
}

fn start() -> Now {
    Now::new(Duration::from_secs(50), DateTime::from_ticks(133_000_000_000_000_000))
}

fn channel(id: u64) -> ChannelInfo {
    ChannelInfo {
        id: ChannelId(id),
        client_certificate: ByteString::NULL,
        security_policy: UaString::from("policy"),
        security_mode: MessageSecurityMode::NONE,
    }
}

fn parameters() -> SessionParameters {
    SessionParameters {
        session_name: UaString::from("test"),
        client_application_uri: UaString::from("urn:client"),
        endpoint_url: UaString::from("opc.tcp://localhost"),
        client_nonce: ByteString::NULL,
        requested_timeout: 60_000.0,
        max_response_message_size: 0,
    }
}

fn user(name: &str) -> VerifiedUser {
    VerifiedUser {
        identity: Identity {
            kind: IdentityKind::UserName,
            client_user_id: UaString::from(name),
        },
        roles: Arc::from([]),
        locales: Vec::new(),
    }
}

fn create(sessions: &mut Sessions<Random>, now: Now, on: u64) -> Arc<SessionHandle> {
    sessions.create(now, &channel(on), parameters()).unwrap().session
}

fn activate(sessions: &mut Sessions<Random>, now: Now, token: &NodeId, on: u64, name: &str) -> Result<(), StatusCode> {
    let check = sessions.begin_activate(now, token, &channel(on))?;
    sessions.complete_activate(now, check, user(name)).map(drop)
}

fn active(sessions: &mut Sessions<Random>, now: Now, on: u64) -> Arc<SessionHandle> {
    let handle = create(sessions, now, on);
    activate(sessions, now, handle.authentication_token(), on, "ann").unwrap();
    handle
}

/// Asks both, the index first because the table may close a session, and compares.
fn same_verdict(sessions: &mut Sessions<Random>, now: Now, handle: &SessionHandle, on: u64) -> Result<(), StatusCode> {
    let by_index = sessions.index().validate(now, handle.token_bytes(), ChannelId(on));
    assert!(
        by_index.is_err() || handle.last_activity() == now.mono,
        "the request was not noted"
    );
    let by_table = sessions.validate(now, handle.authentication_token(), ChannelId(on));
    match (by_index, by_table) {
        (Ok(one), Ok(other)) => {
            assert!(one.is_same_activation(&other));
            assert!(Arc::ptr_eq(&one.snapshot, &other.snapshot));
            Ok(())
        }
        (Err(NotValidated::Refused(one)), Err(other)) => {
            assert_eq!(one, other);
            assert_ne!(one, StatusCode::BAD_SESSION_NOT_ACTIVATED, "has to close the session");
            Err(one)
        }
        (Err(NotValidated::AskTable), Err(status)) => {
            assert_eq!(status, StatusCode::BAD_SESSION_NOT_ACTIVATED);
            assert!(handle.is_closed());
            Err(status)
        }
        (one, other) => panic!("index {one:?}, table {other:?}"),
    }
}

#[test]
fn each_verdict_is_the_tables() {
    let (mut sessions, now) = (sessions(10), start());
    let other_channel = Err(StatusCode::BAD_SECURE_CHANNEL_ID_INVALID);
    let unknown = Err(StatusCode::BAD_SESSION_ID_INVALID);

    let fresh = create(&mut sessions, now, 1);
    assert_eq!(same_verdict(&mut sessions, now, &fresh, 2), other_channel);
    assert!(!fresh.is_closed(), "only its own channel can hurt it");
    assert_eq!(
        same_verdict(&mut sessions, now, &fresh, 1),
        Err(StatusCode::BAD_SESSION_NOT_ACTIVATED)
    );
    assert_eq!(same_verdict(&mut sessions, now, &fresh, 1), unknown);

    let bound = active(&mut sessions, now, 1);
    assert_eq!(same_verdict(&mut sessions, now, &bound, 1), Ok(()));
    assert_eq!(same_verdict(&mut sessions, now, &bound, 2), other_channel);
    activate(&mut sessions, now, bound.authentication_token(), 2, "ann").unwrap();
    assert_eq!(same_verdict(&mut sessions, now, &bound, 1), other_channel);
    assert_eq!(same_verdict(&mut sessions, now, &bound, 2), Ok(()));
    sessions
        .close(bound.authentication_token(), ChannelId(2), true)
        .unwrap();
    assert_eq!(same_verdict(&mut sessions, now, &bound, 2), unknown);

    let index = sessions.index();
    for bytes in [&[][..], &[0; 31], &[0; 32], &[0; 33]] {
        let refused = index.validate(now, bytes, ChannelId(1)).unwrap_err();
        assert_eq!(refused, NotValidated::Refused(StatusCode::BAD_SESSION_ID_INVALID));
        assert!(index.get(bytes).is_none());
    }
}

#[test]
fn verdicts_agree_whatever_happened_before() {
    let mut numbers = Numbers(7);
    let mut verdicts = [0; 4];
    let (mut sessions, mut now) = (sessions(40), start());
    let mut known: Vec<Arc<SessionHandle>> = Vec::new();
    for _ in 0..20_000 {
        let on = numbers.below(4);
        let picked = known.get(numbers.below(60) as usize).map(Arc::clone);
        match (numbers.below(8), picked) {
            (0 | 1, _) => {
                if let Ok(created) = sessions.create(now, &channel(on), parameters()) {
                    known.insert(0, created.session);
                    known.truncate(80);
                }
            }
            (2 | 3, Some(it)) => drop(activate(&mut sessions, now, it.authentication_token(), on, "ann")),
            (4, Some(it)) => drop(sessions.close(it.authentication_token(), ChannelId(on), true)),
            (5, _) if numbers.below(20) == 0 => sessions.channel_closed(ChannelId(on)),
            (6, _) => {
                now = now.after(Duration::from_millis(numbers.below(3000)));
                sessions.handle_timeout(now);
            }
            (_, Some(it)) => {
                let verdict = same_verdict(&mut sessions, now, &it, on);
                let place = match verdict {
                    Ok(()) => 0,
                    Err(StatusCode::BAD_SESSION_ID_INVALID) => 1,
                    Err(StatusCode::BAD_SECURE_CHANNEL_ID_INVALID) => 2,
                    Err(_) => 3,
                };
                verdicts[place] += 1;
            }
            _ => {}
        }
        sessions
            .take_closed()
            .iter()
            .for_each(|closed| assert!(closed.session.is_closed()));
    }
    assert!(verdicts.iter().all(|count| *count > 50), "{verdicts:?}");
    // Nothing in one that is not in the other.
    let index = sessions.index();
    assert!(sessions.iter().all(|it| index.get(it.token_bytes()).is_some()));
    let gone = known.iter().filter(|it| it.is_closed());
    assert!(gone.filter(|it| index.get(it.token_bytes()).is_some()).count() == 0);
}

#[test]
fn sessions_that_share_a_place_are_told_apart() {
    let (mut sessions, now) = (sessions(1), start());
    let index = sessions.index();
    for _ in 0..300 {
        let only = active(&mut sessions, now, 1);
        assert!(Arc::ptr_eq(&index.get(only.token_bytes()).unwrap(), &only));
        sessions.terminate(&only);
        assert!(index.get(only.token_bytes()).is_none());
    }
    // As many sessions as places: some share one.
    let mut sessions = self::sessions(64);
    let index = sessions.index();
    let all: Vec<_> = (0..64).map(|on| create(&mut sessions, now, on)).collect();
    let found = |it: &Arc<SessionHandle>| index.get(it.token_bytes()).is_some_and(|found| Arc::ptr_eq(&found, it));
    assert!(all.iter().all(found));
    for it in all.iter().step_by(2) {
        sessions.terminate(it);
    }
    assert!(
        all.iter()
            .enumerate()
            .all(|(number, it)| found(it) == (number % 2 == 1))
    );
}

#[test]
fn what_a_request_was_charged_to_is_compared_by_its_activation() {
    let (mut sessions, now) = (sessions(10), start());
    let handle = active(&mut sessions, now, 3);
    let valid = sessions
        .index()
        .validate(now, handle.token_bytes(), ChannelId(3))
        .unwrap();
    let binding = valid.binding();
    assert_eq!((binding.session, binding.channel), (handle.number(), ChannelId(3)));
    assert_eq!(binding.user(), "ann");
    assert_eq!(handle.standing_since(binding.generation), Standing::Current);
    assert_eq!(valid.standing(), Standing::Current);
    activate(&mut sessions, now, handle.authentication_token(), 3, "bob").unwrap();
    assert_eq!(valid.standing(), Standing::ActivatedAgain);
    let again = sessions
        .index()
        .validate(now, handle.token_bytes(), ChannelId(3))
        .unwrap();
    assert!(!again.is_same_activation(&valid));
    assert_ne!(again.binding(), binding);
    assert_eq!(
        (again.binding().user(), again.standing()),
        (&UaString::from("bob"), Standing::Current)
    );
    let other = active(&mut sessions, now, 3);
    let other = sessions
        .index()
        .validate(now, other.token_bytes(), ChannelId(3))
        .unwrap();
    assert_ne!(
        other.binding().generation,
        again.binding().generation,
        "unique in the table"
    );
    sessions.terminate(&handle);
    assert_eq!(
        (valid.standing(), again.standing()),
        (Standing::Closed, Standing::Closed)
    );
}

/// A token of one byte value, 171 or 0xab, that nothing else contains.
#[derive(Debug)]
struct Telling(bool);

impl RandomSource for Telling {
    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), RandomUnavailable> {
        buffer.fill(if std::mem::replace(&mut self.0, true) { 5 } else { 171 });
        Ok(())
    }
}

#[test]
fn tokens_are_in_no_debug_output() {
    let mut sessions = Sessions::new(SessionLimits::default(), Telling(false)).unwrap();
    let created = sessions.create(start(), &channel(1), parameters()).unwrap();
    let token = created.session.authentication_token();
    assert_eq!(created.session.token_bytes(), [171; 32]);
    let check = sessions.begin_activate(start(), token, &channel(1)).unwrap();
    let before = format!("{sessions:?} {check:?} {created:?} {:?}", sessions.index());
    sessions.complete_activate(start(), check, user("ann")).unwrap();
    let valid = sessions.validate(start(), token, ChannelId(1)).unwrap();
    let after = format!("{valid:?} {:?} {:?}", valid.binding(), valid.handle.enter(start()));
    for shown in [before, after] {
        let shown: String = shown.to_lowercase().split_whitespace().collect();
        assert!(
            ["171,171", "ab,ab", "abab"].iter().all(|part| !shown.contains(part)),
            "{shown}"
        );
    }
}

/// How far the life of a session has come, as told by whoever drives it.
const ACTIVE: u8 = 1;
const CLOSING: u8 = 2;
const CLOSED: u8 = 3;

struct Life {
    handle: Arc<SessionHandle>,
    channel: u64,
    phase: AtomicU8,
}

/// One look-up of a session that others create, activate and close at the same moment.
fn look(index: &backplane_session::SessionIndex, life: &Life, seen: &[AtomicUsize; 2]) {
    let before = life.phase.load(Ordering::Acquire);
    let verdict = index.validate(start(), life.handle.token_bytes(), ChannelId(life.channel));
    let after = life.phase.load(Ordering::Acquire);
    match verdict {
        Ok(valid) => {
            assert!(Arc::ptr_eq(&valid.handle, &life.handle), "another session");
            assert_eq!(valid.snapshot.channel, ChannelId(life.channel));
            assert_ne!(before, CLOSED, "found after it was closed");
            seen[0].fetch_add(1, Ordering::Relaxed);
        }
        Err(NotValidated::AskTable) => assert_eq!(before, 0, "it was activated"),
        Err(NotValidated::Refused(status)) => {
            assert_eq!(status, StatusCode::BAD_SESSION_ID_INVALID);
            assert!(after >= CLOSING, "not found while it was there");
            seen[1].fetch_add(1, Ordering::Relaxed);
        }
    }
    let stranger = index.validate(start(), life.handle.token_bytes(), ChannelId(u64::MAX));
    assert!(matches!(stranger, Err(NotValidated::Refused(_))));
}

#[test]
fn look_ups_race_create_activate_and_close() {
    const EACH: usize = 1_500;
    const KEPT: usize = 16;
    let table = Mutex::new(sessions(64));
    let index = table.lock().unwrap().index();
    let lives: Mutex<Vec<Arc<Life>>> = Mutex::new(Vec::new());
    let seen = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    let now = lives.lock().unwrap().clone();
                    now.iter().for_each(|life| look(&index, life, &seen));
                    thread::yield_now();
                }
            });
        }
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let (table, lives) = (&table, &lives);
                scope.spawn(move || {
                    for turn in 0..EACH {
                        let channel = (writer * EACH + turn) as u64;
                        let handle = create(&mut table.lock().unwrap(), start(), channel);
                        let life = Arc::new(Life {
                            handle: Arc::clone(&handle),
                            channel,
                            phase: AtomicU8::new(0),
                        });
                        lives.lock().unwrap().push(Arc::clone(&life));
                        let token = handle.authentication_token();
                        activate(&mut table.lock().unwrap(), start(), token, channel, "ann").unwrap();
                        life.phase.store(ACTIVE, Ordering::Release);
                        activate(&mut table.lock().unwrap(), start(), token, channel, "bob").unwrap();
                        thread::yield_now();
                        life.phase.store(CLOSING, Ordering::Release);
                        table.lock().unwrap().close(token, ChannelId(channel), true).unwrap();
                        life.phase.store(CLOSED, Ordering::Release);
                        let mut lives = lives.lock().unwrap();
                        if lives.len() > KEPT {
                            lives.remove(0);
                        }
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Release);
    });
    let mut table = table.into_inner().unwrap();
    assert!(table.is_empty());
    assert_eq!(table.take_closed().len(), 2 * EACH);
    assert!(table.poll_closed().is_none());
    assert!(seen.iter().all(|count| count.load(Ordering::Relaxed) > 0), "{seen:?}");
}

/// Sessions on as many channels, all closed at once by as few threads as there are processors, as their connections' tasks would.
fn close_all(
    count: u64,
    activated: bool,
    close: impl Fn(&mut Sessions<Random>, u64, &SessionHandle) + Sync,
) -> Duration {
    let mut sessions = sessions(count as usize);
    let all: Vec<_> = (0..count)
        .map(|on| match activated {
            true => active(&mut sessions, start(), on),
            false => create(&mut sessions, start(), on),
        })
        .collect();
    let table = Mutex::new(sessions);
    let begin = Instant::now();
    thread::scope(|scope| {
        for half in 0..2 {
            let (table, all, close) = (&table, &all, &close);
            scope.spawn(move || {
                for (on, handle) in all.iter().enumerate().skip(half).step_by(2) {
                    close(&mut table.lock().unwrap(), on as u64, handle);
                }
            });
        }
    });
    let took = begin.elapsed();
    let mut sessions = table.into_inner().unwrap();
    assert!(sessions.is_empty() && sessions.poll_timeout().is_none());
    assert_eq!(sessions.take_closed().len(), count as usize);
    took
}

/// Generous: milliseconds in a release build, and a busy machine. Work in the square of the sessions takes minutes.
const SOON: Duration = Duration::from_secs(5);

#[test]
fn closing_all_sessions_at_once_takes_no_time() {
    for count in [1_000, 10_000] {
        let by_client = close_all(count, true, |sessions, on, handle| {
            sessions
                .close(handle.authentication_token(), ChannelId(on), true)
                .unwrap();
        });
        let by_channel = close_all(count, false, |sessions, on, _| sessions.channel_closed(ChannelId(on)));
        let by_server = close_all(count, true, |sessions, _, handle| assert!(sessions.terminate(handle)));
        println!("{count} sessions: client {by_client:?}, channel {by_channel:?}, server {by_server:?}");
        assert!(by_client < SOON && by_channel < SOON && by_server < SOON);
    }
}

#[test]
fn a_channel_that_closes_takes_its_own_sessions_only() {
    let (mut sessions, now) = (sessions(10), start());
    let (one, two) = (create(&mut sessions, now, 1), create(&mut sessions, now, 1));
    let other = create(&mut sessions, now, 2);
    let activated = active(&mut sessions, now, 1);
    let withdrawn = create(&mut sessions, now, 1);
    sessions.terminate(&withdrawn);
    sessions.channel_closed(ChannelId(1));
    let closed: Vec<_> = sessions.take_closed().into_iter().collect();
    assert_eq!(closed.len(), 3);
    assert!(Arc::ptr_eq(&closed[1].session, &one) && Arc::ptr_eq(&closed[2].session, &two));
    assert!(closed[1..].iter().all(|it| it.reason == CloseReason::NeverActivated));
    assert!(!other.is_closed() && !activated.is_closed());
    assert_eq!(sessions.len(), 2);
}

/// Processor time of this thread, which a busy machine does not lengthen. Linux only.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
}

/// Prints what a look-up costs; run with `--release`, `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn measure_look_ups() {
    const LOOK_UPS: u32 = 2_000_000;
    let mut sessions = sessions(1_000);
    let all: Vec<_> = (0..1_000).map(|on| active(&mut sessions, start(), on)).collect();
    let index = sessions.index();
    let begin = cpu();
    for turn in 0..LOOK_UPS {
        let on = (turn as usize * 7) % all.len();
        let valid = index.validate(start(), all[on].token_bytes(), ChannelId(on as u64));
        assert!(valid.is_ok());
    }
    println!("index: {:?} a look-up", (cpu() - begin) / LOOK_UPS);
    let table = Mutex::new(sessions);
    let begin = cpu();
    for turn in 0..LOOK_UPS {
        let on = (turn as usize * 7) % all.len();
        let token = all[on].authentication_token();
        let valid = table.lock().unwrap().validate(start(), token, ChannelId(on as u64));
        assert!(valid.is_ok());
    }
    println!(
        "table, its lock uncontended: {:?} a look-up",
        (cpu() - begin) / LOOK_UPS
    );
}
