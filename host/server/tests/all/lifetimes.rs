//! How requests that wait for a component end: at their deadline, cancelled, with their session, with the server. Each is answered exactly once.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use backplane_types::{
    CloseSessionRequest, CreateSubscriptionRequest, PublishRequest, ReadResponse, RequestHeader, StatusCode,
};

use crate::support::{Answer, Peer, Sleeper, Usage, activate_session, alone, cached_read};

/// How late a deadline is noticed at the most: it is looked for every 20 ms.
const SWEEP: Duration = Duration::from_millis(20);
/// How late everything else may be on a busy machine.
const SLACK: Duration = Duration::from_secs(2);
/// What most deadlines keep on a machine that is not too busy.
const USUAL_SLACK: Duration = Duration::from_millis(60);

const LIMITS: &str = "sessions = 8\nconnections = 20";

/// The status of a Read of one value, as a fault or as the value's.
fn ended_with(answer: &Answer) -> StatusCode {
    match answer.status() {
        StatusCode::GOOD => {
            let response: ReadResponse = answer.decode();
            response.results[0].status.unwrap_or(StatusCode::GOOD)
        }
        status => status,
    }
}

/// Asserts that there is one answer for each of these requests and no other, and that all end alike.
fn assert_all_end_with(answers: &[Answer], requests: &[u32], status: StatusCode) {
    let mut by_request: BTreeMap<u32, Vec<StatusCode>> = BTreeMap::new();
    for answer in answers {
        by_request.entry(answer.request).or_default().push(answer.status());
    }
    let expected: BTreeMap<u32, Vec<StatusCode>> = requests.iter().map(|request| (*request, vec![status])).collect();
    assert_eq!(by_request, expected);
}

/// Nothing waits and nothing is lent but connections.
fn is_quiet(usage: &Usage) -> bool {
    let idle = [
        "RequestQueue",
        "RequestExecution",
        "RequestQueueBytes",
        "ParkedRequest",
        "requests",
        "queued",
    ];
    idle.iter().all(|name| usage.get(name) == 0)
}

#[tokio::test]
async fn requests_end_at_their_own_deadlines() {
    let _machine = alone().await;
    let Some(mut sleeper) = Sleeper::start(LIMITS).await else {
        return;
    };
    let mut peer = Peer::new(&sleeper.server).await;
    // Sent at once, so that the server asks the component for all of them together.
    let mut sent = BTreeMap::new();
    let mut bytes = Vec::new();
    for number in 0_u32..24 {
        let hint = 100 + 50 * (number * 7 % 24);
        let mut request = sleeper.read(number, 0);
        request.request_header = peer.header(number, hint);
        let (id, request) = peer.bytes(&request);
        bytes.extend(request);
        sent.insert(id, Duration::from_millis(hint.into()));
    }
    let start = Instant::now();
    peer.raw.send(&bytes).await;
    let mut late = Vec::new();
    for answer in peer.answers(24).await {
        let hint = sent.remove(&answer.request).expect("one answer for each request");
        assert_eq!(ended_with(&answer), StatusCode::BAD_TIMEOUT);
        let after = answer.at - start;
        assert!(after >= hint, "after {after:?}, the deadline is {hint:?}");
        assert!(
            after <= hint + SWEEP + SLACK,
            "after {after:?}, the deadline is {hint:?}"
        );
        late.push(after - hint);
    }
    late.sort_unstable();
    let (median, worst) = (late[late.len() / 2], late[late.len() - 1]);
    eprintln!("deadlines of 24 requests: late by {median:?} in the middle, by {worst:?} at the most");
    assert!(median <= SWEEP + USUAL_SLACK, "late by {median:?} in the middle");
    peer.read_cached().await;
    sleeper.server.usage_until("requests that ended", is_quiet).await;
}

#[tokio::test]
async fn one_after_the_other_ends_at_its_deadline_too() {
    let _machine = alone().await;
    let Some(sleeper) = Sleeper::start(LIMITS).await else {
        return;
    };
    let mut peer = Peer::new(&sleeper.server).await;
    let hint = Duration::from_millis(150);
    let mut late = Vec::new();
    for handle in 0..9 {
        let start = Instant::now();
        let answer = peer.ask(sleeper.read(handle, 150)).await;
        assert_eq!(ended_with(&answer), StatusCode::BAD_TIMEOUT);
        let after = answer.at - start;
        assert!(after >= hint && after <= hint + SWEEP + SLACK, "after {after:?}");
        late.push(after - hint);
    }
    late.sort_unstable();
    assert!(late[4] <= SWEEP + USUAL_SLACK, "late by {late:?}");
}

/// A subscription that says nothing for a long time, and a Publish request with a handle.
async fn park(peer: &mut Peer, request_handle: u32) -> u32 {
    let subscription = CreateSubscriptionRequest {
        requested_publishing_interval: 60_000.0,
        requested_lifetime_count: 1_000,
        requested_max_keep_alive_count: 100,
        publishing_enabled: true,
        ..CreateSubscriptionRequest::default()
    };
    assert_eq!(peer.ask(subscription).await.status(), StatusCode::GOOD);
    peer.send(PublishRequest {
        request_header: RequestHeader {
            request_handle,
            ..RequestHeader::default()
        },
        ..PublishRequest::default()
    })
    .await
}

#[tokio::test]
async fn cancel_ends_what_carries_the_handle_and_says_how_many() {
    // Few workers: some of the requests run, others are queued.
    let Some(mut sleeper) = Sleeper::start("sessions = 8\nconnections = 20\nworkers = 2").await else {
        return;
    };
    let mut peer = Peer::new(&sleeper.server).await;
    let mut stranger = Peer::new(&sleeper.server).await;
    stranger.send(sleeper.read(77, 0)).await;
    stranger.read_cached().await;
    let mut cancelled = vec![park(&mut peer, 77).await];
    let mut kept = Vec::new();
    for number in 0..12 {
        let handle = if number % 3 == 0 { 5 } else { 77 };
        let id = peer.send(sleeper.read(handle, 0)).await;
        if handle == 77 {
            cancelled.push(id);
        } else {
            kept.push(id);
        }
        // Some go together, others by themselves.
        if number % 4 == 0 {
            peer.read_cached().await;
        }
    }
    let (count, mut answers) = peer.cancel(77).await;
    assert_eq!(count, 9, "eight Reads and a Publish request");
    // A Publish request is answered by another task than Cancel.
    while answers.len() < cancelled.len() {
        answers.push(peer.answer().await);
    }
    assert_all_end_with(&answers, &cancelled, StatusCode::BAD_REQUEST_CANCELLED_BY_REQUEST);
    let (again, none) = peer.cancel(77).await;
    assert_eq!((again, none.len()), (0, 0), "they have ended");
    let (rest, answers) = peer.cancel(5).await;
    assert_eq!(rest, 4);
    assert_all_end_with(&answers, &kept, StatusCode::BAD_REQUEST_CANCELLED_BY_REQUEST);
    let (count, answers) = stranger.cancel(77).await;
    assert_eq!((count, answers.len()), (1, 1), "a handle is one session's");
    peer.read_cached().await;
    sleeper.server.usage_until("cancelled requests", is_quiet).await;
}

#[tokio::test]
async fn closing_a_session_answers_what_waits_in_it() {
    let Some(mut sleeper) = Sleeper::start("sessions = 8\nconnections = 20\nworkers = 2").await else {
        return;
    };
    let mut peer = Peer::new(&sleeper.server).await;
    let mut stranger = Peer::new(&sleeper.server).await;
    let mut waiting = vec![park(&mut peer, 1).await];
    for handle in 2..12 {
        waiting.push(peer.send(sleeper.read(handle, 0)).await);
        if handle % 4 == 0 {
            peer.read_cached().await;
        }
    }
    let foreign = stranger.send(sleeper.read(1, 0)).await;
    stranger.read_cached().await;
    let closing = peer.send(CloseSessionRequest::default()).await;
    let answers = peer.answers(waiting.len() + 1).await;
    let (closed, ended): (Vec<Answer>, Vec<Answer>) = answers.into_iter().partition(|answer| answer.request == closing);
    assert_eq!(closed.len(), 1);
    assert_eq!(closed[0].status(), StatusCode::GOOD);
    // One that a worker was about to run just then is refused because its session is gone; all others are ended with it.
    let (refused, ended): (Vec<Answer>, Vec<Answer>) = ended
        .into_iter()
        .partition(|answer| answer.status() == StatusCode::BAD_SESSION_ID_INVALID);
    assert!(refused.len() <= 2, "{} of two workers", refused.len());
    waiting.retain(|request| refused.iter().all(|answer| answer.request != *request));
    assert_all_end_with(&ended, &waiting, StatusCode::BAD_SESSION_CLOSED);
    // The channel lives, and nothing else comes.
    assert_eq!(
        peer.ask(cached_read()).await.status(),
        StatusCode::BAD_SESSION_ID_INVALID
    );
    let (count, answers) = stranger.cancel(1).await;
    assert_eq!(count, 1);
    assert_all_end_with(&answers, &[foreign], StatusCode::BAD_REQUEST_CANCELLED_BY_REQUEST);
    sleeper
        .server
        .usage_until("a closed session's requests", is_quiet)
        .await;
}

#[tokio::test]
async fn a_server_that_stops_answers_what_waits_and_leaves_nothing() {
    let limits = "sessions = 8\nconnections = 20\nworkers = 2\ndrain-timeout-ms = 10000";
    let Some(mut sleeper) = Sleeper::start(limits).await else {
        return;
    };
    let mut peers = Vec::new();
    for last in 1..=3 {
        let mut peer = Peer::from(&sleeper.server, Ipv4Addr::new(127, 0, 0, last)).await;
        let mut waiting = vec![park(&mut peer, 1).await];
        for handle in 2..8 {
            waiting.push(peer.send(sleeper.read(handle, 0)).await);
            if handle % 3 == 0 {
                peer.read_cached().await;
            }
        }
        peer.read_cached().await;
        peers.push((peer, waiting));
    }
    sleeper
        .server
        .usage_until("requests that wait", |usage| {
            usage.get("requests") == 18 && usage.get("ParkedRequest") == 3
        })
        .await;
    sleeper.server.signal("TERM");
    for (peer, waiting) in &mut peers {
        let answers = peer.answers(waiting.len()).await;
        assert_all_end_with(&answers, waiting, StatusCode::BAD_SERVER_HALTED);
        assert_eq!(peer.raw.error().await, Some(StatusCode::BAD_SERVER_HALTED));
    }
    let left = sleeper.server.log.wait_for("left over: ");
    assert!(Usage::of(&left).is_nothing(), "{left}");
    assert_eq!(sleeper.server.wait().code(), Some(0));
}

#[tokio::test]
async fn a_request_that_waited_past_a_new_activation_does_not_run() {
    let Some(mut sleeper) = Sleeper::start("sessions = 8\nconnections = 20\nworkers = 1").await else {
        return;
    };
    let mut first = Peer::new(&sleeper.server).await;
    let mut second = Peer::new(&sleeper.server).await;
    first.send(sleeper.read(1, 0)).await;
    first.read_cached().await;
    sleeper
        .server
        .usage_until("the only worker is busy", |usage| usage.get("RequestExecution") == 1)
        .await;
    let before = second.send(sleeper.read(2, 0)).await;
    second.read_cached().await;
    assert_eq!(
        second.ask(activate_session(&second.session)).await.status(),
        StatusCode::GOOD
    );
    let after = second.send(sleeper.read(3, 300)).await;
    second.read_cached().await;
    // Both are in the queue until the worker is free.
    let usage = sleeper.server.usage();
    assert_eq!((usage.get("RequestQueue"), usage.get("requests")), (2, 3), "{usage:?}");
    let (count, _) = first.cancel(1).await;
    assert_eq!(count, 1);
    let answers = second.answers(2).await;
    let of = |request| answers.iter().find(|answer| answer.request == request).map(ended_with);
    assert_eq!(
        of(before),
        Some(StatusCode::BAD_SERVER_TOO_BUSY),
        "it was charged to another activation"
    );
    assert_eq!(of(after), Some(StatusCode::BAD_TIMEOUT), "it ran as far as it could");
    sleeper.server.usage_until("no requests", is_quiet).await;
}
