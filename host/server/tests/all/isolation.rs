//! Owners that want more than their share of a stage: they are told so, in the way that the stage has for it, and others go on.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use backplane_types::{
    ActivateSessionRequest, AdditionalParametersType, ByteString, CreateSubscriptionRequest, ExtensionObject, NodeId,
    PublishRequest, RequestHeader, ServiceFault, StatusCode, UserNameIdentityToken, Variant,
};

use crate::support::{
    Answer, PATIENCE, Peer, Raw, Server, Sleeper, activate_session, body, cached_read, create_session, fault_of,
    well_behaved,
};

/// Another owner than 127.0.0.1.
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Bytes of a chunk that nearly fills its message.
const CHUNK: usize = 60_000;
/// A user with a password.
const OPERATOR: &str = "[[users.user]]\nname = \"operator\"\npassword-hash = \"$argon2id$v=19$m=19456,t=2,p=1$D1ENhXSxrDizQSqMqCKQ1g$c5KRuPaGU4SWH+X1jSjz5272i/r5j0ZZa36mEnPv4zs\"";
const BUSY: StatusCode = StatusCode::BAD_SERVER_TOO_BUSY;

/// A subscription that says nothing for a long time.
fn silent_subscription() -> CreateSubscriptionRequest {
    CreateSubscriptionRequest {
        requested_publishing_interval: 60_000.0,
        requested_lifetime_count: 1_000,
        requested_max_keep_alive_count: 100,
        publishing_enabled: true,
        ..CreateSubscriptionRequest::default()
    }
}

/// A Publish request with a handle.
fn publish(request_handle: u32) -> PublishRequest {
    PublishRequest {
        request_header: RequestHeader {
            request_handle,
            ..RequestHeader::default()
        },
        ..PublishRequest::default()
    }
}

#[tokio::test]
async fn an_owner_at_its_limit_of_connections_is_shut_out_alone() {
    let mut server = Server::with(
        "sessions = 4\nconnections = 20\n[[isolation.stage]]\nstage = \"Connection\"\nowner-hard-limit = 3",
    );
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(Raw::opened(&server).await);
    }
    let mut late = Raw::connect(&server).await;
    assert_eq!(late.receive().await, None, "closed before anything was said");
    server.log.ever("isolation stages Connection");
    // Others are served, as many as they may be; nobody had to make room.
    let mut others = Vec::new();
    for _ in 0..2 {
        others.push(Peer::from(&server, OTHER).await);
    }
    for peer in &mut others {
        peer.read_cached().await;
    }
    for raw in &mut held {
        // A request without session is answered: the channel lives.
        raw.request(5, &body(&cached_read())).await;
        assert_eq!(raw.fault(5).await, StatusCode::BAD_SESSION_ID_INVALID);
    }
    held.pop();
    server
        .usage_until("a connection less", |usage| usage.get("Connection") == 4)
        .await;
    held.push(Raw::opened(&server).await);
    let usage = server.usage();
    assert_eq!((usage.get("Connection"), usage.get("owners")), (5, 2), "{usage:?}");
    // The same by class of owner, and what was refused, for who wants to know why.
    let numbers = |name: &str| {
        let lines = server.log.seen.iter().rev();
        lines
            .filter_map(|line| line.split_once(name))
            .next()
            .unwrap()
            .1
            .to_owned()
    };
    assert_eq!(numbers("in use by class: "), "Connection.Established=5");
    assert_eq!(
        numbers("refused since the start: "),
        "Connection.Established.OwnerLimit=1"
    );
}

#[tokio::test]
async fn connections_that_come_too_fast_are_refused() {
    // Of three tokens, one each is kept for those that come first and those that come back.
    let mut server = Server::with("sessions = 4\nconnections = 20\n[isolation.rate]\nper-second = 3\nburst = 3");
    let start = Instant::now();
    let mut first = Raw::opened(&server).await;
    let mut refused = 0;
    let mut pace = tokio::time::interval(Duration::from_millis(20));
    loop {
        pace.tick().await;
        let mut raw = Raw::connect_from(&server, OTHER).await;
        raw.send(&crate::support::hello(65_536, server.url().as_bytes())).await;
        if raw.receive().await.is_some() {
            break;
        }
        refused += 1;
        assert!(start.elapsed() < PATIENCE, "nobody gets in any more");
    }
    server.log.ever("too many new connections (isolation.rate)");
    // One comes in a second.
    assert!(
        start.elapsed() >= Duration::from_millis(990) && refused > 0,
        "{refused} were refused within {:?}",
        start.elapsed()
    );
    first.request(5, &body(&cached_read())).await;
    assert_eq!(
        first.fault(5).await,
        StatusCode::BAD_SESSION_ID_INVALID,
        "who is in stays in"
    );
    server
        .usage_until("refused connections hold nothing", |usage| usage.get("Connection") <= 2)
        .await;
}

/// A login with a password that is wrong.
fn guess(token: &NodeId, user: &str) -> ActivateSessionRequest {
    ActivateSessionRequest {
        request_header: RequestHeader {
            authentication_token: token.clone(),
            ..RequestHeader::default()
        },
        user_identity_token: ExtensionObject::from_structure(&UserNameIdentityToken {
            policy_id: "username".into(),
            user_name: user.into(),
            password: ByteString::from(&b"guess"[..]),
            ..UserNameIdentityToken::default()
        }),
        ..ActivateSessionRequest::default()
    }
}

/// When to try again, as a fault says in its additionalHeader.
fn retry_after(fault: &ServiceFault) -> u32 {
    let header = &fault.response_header;
    assert_eq!(header.service_result, BUSY);
    let parameters: AdditionalParametersType = header.additional_header.decode_as().unwrap();
    let [parameter] = parameters.parameters.as_slice() else {
        panic!("one parameter: {parameters:?}")
    };
    assert_eq!(
        (parameter.key.namespace, parameter.key.name.text()),
        (0, "RetryAfterMs")
    );
    let Variant::UInt32(milliseconds) = parameter.value else {
        panic!("{parameter:?}")
    };
    milliseconds
}

/// The answers to requests that all have been answered when one more is; each has one.
async fn all_answers(peer: &mut Peer, count: usize) -> Vec<Answer> {
    let mut answers = peer.answers(count).await;
    answers.sort_by_key(|answer| answer.request);
    assert!(
        answers.windows(2).all(|pair| pair[0].request < pair[1].request),
        "a request is answered twice"
    );
    answers
}

#[tokio::test]
async fn too_many_sessions_being_established_are_told_when_to_come_back() {
    // Of three places, one each is kept for those that come first and those that come back.
    let config = format!("sessions = 8\nconnections = 20\nsession-establishment = 3\n{OPERATOR}");
    let mut server = Server::with(&config);
    let mut member = Peer::new(&server).await;
    let mut raw = Raw::opened(&server).await;
    let token = raw.create_session(&server, PATIENCE).await;
    let mut guesser = Peer::of(raw, NodeId::NULL);
    let mut late = Peer::of(Raw::opened_from(&server, OTHER).await, NodeId::NULL);
    // Who guesses waits longer and longer, and holds the one place meanwhile.
    let mut refused = 0;
    for guesses in 1..=9 {
        let (id, bytes) = guesser.bytes(&guess(&token, "operator"));
        guesser.raw.send(&bytes).await;
        if guesses > 5 {
            server
                .usage_until("a login that waits", |usage| usage.get("SessionEstablishment") == 1)
                .await;
            let answer = late.ask(create_session(&server, PATIENCE)).await;
            if answer.status() == BUSY {
                refused += 1;
                assert_eq!(retry_after(&answer.fault()), 1_000);
                // A session that lives may be activated again: that is kept for those that come back.
                let again = member.ask(activate_session(&member.session)).await;
                assert_eq!(again.status(), StatusCode::GOOD);
            }
        }
        let answer = guesser.answer().await;
        assert_eq!(
            (answer.request, answer.status()),
            (id, StatusCode::BAD_IDENTITY_TOKEN_INVALID)
        );
        if refused > 0 {
            break;
        }
    }
    assert!(refused > 0, "nobody was refused beside a login that takes seconds");
    server
        .usage_until("what was lent for logins", |usage| {
            usage.get("SessionEstablishment") == 0 && usage.get("requests") == 0
        })
        .await;
    well_behaved(&server).await;
}

#[tokio::test]
async fn sessions_that_cannot_be_established_are_answered_once() {
    let mut server = Server::with("sessions = 2\nconnections = 20");
    let mut one = Peer::new(&server).await;
    let two = Peer::new(&server).await;
    let mut late = Peer::of(Raw::opened(&server).await, NodeId::NULL);
    let mut bytes = Vec::new();
    let no_such = NodeId {
        namespace: 0,
        identifier: backplane_types::Identifier::Opaque(ByteString::from(&[7; 32][..])),
    };
    let bad_identity = ActivateSessionRequest {
        user_identity_token: ExtensionObject::from_structure(&AdditionalParametersType::default()),
        ..activate_session(&two.session)
    };
    for _ in 0..5 {
        bytes.extend(late.bytes(&create_session(&server, PATIENCE)).1);
        bytes.extend(late.bytes(&activate_session(&no_such)).1);
        bytes.extend(late.bytes(&bad_identity).1);
    }
    late.raw.send(&bytes).await;
    let answers = all_answers(&mut late, 15).await;
    let expected = [
        StatusCode::BAD_TOO_MANY_SESSIONS,
        StatusCode::BAD_SESSION_ID_INVALID,
        StatusCode::BAD_IDENTITY_TOKEN_INVALID,
    ];
    for (answer, expected) in answers.iter().zip(expected.iter().cycle()) {
        assert_eq!(answer.status(), *expected, "request {}", answer.request);
    }
    // Whatever else had been on its way would come before the answer to a later request.
    let id = late.send(cached_read()).await;
    let next = late.answer().await;
    assert_eq!((next.request, next.status()), (id, StatusCode::BAD_SESSION_ID_INVALID));
    one.read_cached().await;
    server
        .usage_until("nobody establishes", |usage| usage.get("SessionEstablishment") == 0)
        .await;
}

/// Whether the final chunk of a message that has begun is answered; else the channel was closed for want of memory.
async fn finishes(raw: &mut Raw) -> bool {
    let chunk = raw.chunk(b"MSGF", 50, &[0; 10]);
    raw.send(&chunk).await;
    let (letters, fields) = raw.receive().await.expect("an answer or an Error message");
    if &letters == b"MSGF" {
        assert_eq!(fields[12..16], 50_u32.to_le_bytes());
        assert_ne!(fault_of(&fields[16..]), StatusCode::GOOD);
        return true;
    }
    assert_eq!(&letters, b"ERRF");
    let status = u32::from_le_bytes(fields[..4].try_into().unwrap());
    assert_eq!(StatusCode(status), StatusCode::BAD_TCP_NOT_ENOUGH_RESOURCES);
    assert_eq!(raw.receive().await, None, "an Error message is the last one");
    false
}

#[tokio::test]
async fn incomplete_messages_share_the_memory_there_is_for_them() {
    // A message takes four times a message and a chunk; there is one each for those that come first, that come back, and everybody.
    let footprint = 4 * (65_536 + 65_535);
    let limits = format!(
        "sessions = 8\nconnections = 40\nmessage-size = 65536\nunauthenticated-message-size = 65536\nreassembly-bytes = {}",
        3 * footprint
    );
    let mut server = Server::with(&limits);
    let mut member = Peer::new(&server).await;
    let mut peers = Vec::new();
    for _ in 0..16 {
        let mut raw = Raw::opened(&server).await;
        let chunk = raw.chunk(b"MSGC", 50, &[0; CHUNK]);
        raw.send(&chunk).await;
        peers.push(raw);
    }
    let full = server
        .usage_until("memory for messages", |usage| {
            usage.get("ReassemblyBytes") + CHUNK as u64 > footprint
        })
        .await;
    let used = full.get("ReassemblyBytes");
    assert!(used <= footprint, "{used} of {footprint} bytes");
    server.log.ever("isolation stage ReassemblyBytes");
    // Who has a session goes on: there is memory for those that come back.
    let (begun, rest) = {
        let mut request = cached_read();
        request.request_header = member.header(1, 0);
        let body = body(&request);
        let (first, last) = body.split_at(20);
        (member.raw.chunk(b"MSGC", 9, first), member.raw.chunk(b"MSGF", 9, last))
    };
    member.raw.send(&begun).await;
    member.raw.send(&rest).await;
    assert_eq!(member.raw.fault(9).await, StatusCode::GOOD);
    // The others are told, each for itself.
    let mut served = 0;
    for raw in &mut peers {
        served += u64::from(finishes(raw).await);
    }
    assert!(served > 0 && served < 16, "{served} of 16 were served");
    assert!(
        served * CHUNK as u64 <= footprint,
        "{served} messages of {CHUNK} in {footprint} bytes"
    );
    server
        .usage_until("memory of messages", |usage| usage.get("ReassemblyBytes") == 0)
        .await;
    member.read_cached().await;
    well_behaved(&server).await;
}

#[tokio::test]
async fn without_floors_half_of_the_memory_for_messages_is_for_those_with_a_session() {
    for profile in ["SharedOnly", "FairShare"] {
        let chunk = CHUNK as u64;
        // No message is late here, however busy the machine is; and a user with a password makes looking at what is in use cheap.
        let limits = format!(
            "sessions = 8\nconnections = 40\nmessage-size = 65536\nunauthenticated-message-size = 65536\nmessage-timeout-ms = 600000\nreassembly-bytes = {}\n[isolation]\nprofile = \"{profile}\"\n{OPERATOR}",
            10 * chunk
        );
        let mut server = Server::with(&limits);
        let mut members = Vec::new();
        for _ in 0..7 {
            members.push(Peer::new(&server).await);
        }
        // Strangers get as far as half of it, from however many addresses they come.
        let mut strangers = Vec::new();
        for number in 1..=5 {
            let mut raw = Raw::opened_from(&server, Ipv4Addr::new(127, 0, 1, number)).await;
            begin(&mut raw).await;
            let wanted = u64::from(number) * chunk;
            server
                .usage_until("a message has begun", |usage| usage.get("ReassemblyBytes") == wanted)
                .await;
            strangers.push(raw);
        }
        let mut late = Raw::opened_from(&server, OTHER).await;
        begin(&mut late).await;
        assert_eq!(late.error().await, Some(StatusCode::BAD_TCP_NOT_ENOUGH_RESOURCES));
        // The other half is for those who have sessions, and not more than that either.
        for (index, member) in members.iter_mut().enumerate() {
            begin(&mut member.raw).await;
            if index < 5 {
                let wanted = (6 + index as u64) * chunk;
                server
                    .usage_until("a member's message", |usage| usage.get("ReassemblyBytes") == wanted)
                    .await;
            } else {
                let status = member.raw.error().await;
                assert_eq!(status, Some(StatusCode::BAD_TCP_NOT_ENOUGH_RESOURCES), "{profile}");
            }
        }
        // Place that strangers leave is theirs again.
        drop(strangers.pop());
        server
            .usage_until("room again", |usage| usage.get("ReassemblyBytes") == 9 * chunk)
            .await;
        let mut next = Raw::opened_from(&server, OTHER).await;
        begin(&mut next).await;
        server
            .usage_until("a message in it", |usage| usage.get("ReassemblyBytes") == 10 * chunk)
            .await;
        drop((strangers, next, members));
        server
            .usage_until("memory of messages", |usage| usage.get("ReassemblyBytes") == 0)
            .await;
        server.log.ever("ReassemblyBytes.Established.Capacity=1");
        well_behaved(&server).await;
    }
}

/// Sends a chunk that is not the last one.
async fn begin(raw: &mut Raw) {
    let chunk = raw.chunk(b"MSGC", 50, &[0; CHUNK]);
    raw.send(&chunk).await;
}

#[tokio::test]
async fn a_message_has_to_be_complete_in_time_however_often_a_piece_of_it_comes() {
    let mut server = Server::with("message-timeout-ms = 500");
    let (mut slow, mut silent) = (Raw::opened(&server).await, Raw::opened(&server).await);
    let start = Instant::now();
    silent.send(b"MSGC\x40\0\0\0").await;
    let mut pace = tokio::time::interval(Duration::from_millis(50));
    loop {
        pace.tick().await;
        let chunk = slow.chunk(b"MSGC", 50, b"more");
        // It may end between the look and the bytes.
        if !slow.try_send(&chunk).await
            || server.usage().get("ReassemblyBytes") == 0 && start.elapsed().as_millis() > 400
        {
            break;
        }
        assert!(start.elapsed() < PATIENCE, "pieces prolong it");
    }
    assert_eq!(silent.error().await, Some(StatusCode::BAD_TIMEOUT));
    let took = start.elapsed();
    let fits = Duration::from_millis(500)..Duration::from_secs(20);
    assert!(fits.contains(&took), "not after half a second, but after {took:?}");
    server
        .usage_until("memory of what was not finished", |usage| usage.get("Connection") == 0)
        .await;
    well_behaved(&server).await;
}

#[tokio::test]
async fn publish_requests_above_an_owners_limit_are_refused_until_others_are_answered() {
    let mut server = Server::with(
        "sessions = 8\nconnections = 20\n[[isolation.stage]]\nstage = \"ParkedRequest\"\nowner-hard-limit = 3",
    );
    let mut peer = Peer::new(&server).await;
    assert_eq!(peer.ask(silent_subscription()).await.status(), StatusCode::GOOD);
    for handle in 1..=3 {
        peer.send(publish(handle)).await;
    }
    for handle in 4..=6 {
        assert_eq!(
            peer.ask(publish(handle)).await.status(),
            BUSY,
            "Publish request {handle}"
        );
    }
    // Another session of the same owner is not another owner; another address is.
    let mut second = Peer::new(&server).await;
    assert_eq!(second.ask(silent_subscription()).await.status(), StatusCode::GOOD);
    assert_eq!(second.ask(publish(1)).await.status(), BUSY);
    let mut other = Peer::from(&server, OTHER).await;
    assert_eq!(other.ask(silent_subscription()).await.status(), StatusCode::GOOD);
    other.send(publish(1)).await;
    other.read_cached().await;
    assert_eq!(server.usage().get("ParkedRequest"), 4);
    let (count, mut ended) = peer.cancel(2).await;
    assert_eq!(count, 1);
    if ended.is_empty() {
        // A Publish request is answered by another task than Cancel.
        ended.push(peer.answer().await);
    }
    let status: Vec<_> = ended.iter().map(Answer::status).collect();
    assert_eq!(status, [StatusCode::BAD_REQUEST_CANCELLED_BY_REQUEST]);
    // Its place is free when its answer has left.
    second.send(publish(7)).await;
    second.read_cached().await;
    assert_eq!(peer.ask(publish(8)).await.status(), BUSY);
    for peer in [peer, second, other] {
        drop(peer);
    }
    server
        .usage_until("parked requests of nobody", |usage| usage.is_nothing())
        .await;
}

#[tokio::test]
async fn requests_that_wait_fill_their_queue_and_nothing_else() {
    // Two workers; two places in the queue beside those that are kept for others.
    let limits =
        "sessions = 8\nconnections = 20\nworkers = 2\n[[isolation.stage]]\nstage = \"RequestQueue\"\ncapacity = 5";
    let Some(mut sleeper) = Sleeper::start(limits).await else {
        return;
    };
    let mut peer = Peer::new(&sleeper.server).await;
    for (handle, running) in [(1, 1), (2, 2), (3, 2), (4, 2)] {
        peer.send(sleeper.read(handle, 0)).await;
        let queued = u64::from(handle) - running;
        sleeper
            .server
            .usage_until("requests on their way", |usage| {
                usage.get("RequestExecution") == running && usage.get("RequestQueue") == queued
            })
            .await;
    }
    for handle in 5..8 {
        assert_eq!(
            peer.ask(sleeper.read(handle, 0)).await.status(),
            BUSY,
            "request {handle}"
        );
        peer.read_cached().await;
    }
    let mut other = Peer::from(&sleeper.server, OTHER).await;
    assert_eq!(
        other.ask(sleeper.read(1, 0)).await.status(),
        BUSY,
        "the queue is everybody's"
    );
    other.read_cached().await;
    // One that runs ends: one that is queued follows, and its place is free.
    let (count, ended) = peer.cancel(1).await;
    assert_eq!((count, ended.len()), (1, 1));
    sleeper
        .server
        .usage_until("the next in the queue", |usage| {
            usage.get("RequestExecution") == 2 && usage.get("RequestQueue") == 1
        })
        .await;
    other.send(sleeper.read(2, 0)).await;
    other.read_cached().await;
    assert_eq!(sleeper.server.usage().get("requests"), 4);
    // What is cancelled in the queue gives its place up at once, with both workers busy.
    let (count, _) = other.cancel(2).await;
    assert_eq!(count, 1);
    sleeper
        .server
        .usage_until("the place of a cancelled request", |usage| {
            usage.get("RequestQueue") == 1
        })
        .await;
    drop((peer, other));
    sleeper
        .server
        .usage_until("requests of nobody", |usage| usage.is_nothing())
        .await;
}

#[tokio::test]
async fn an_owner_at_its_limit_of_running_requests_does_not_hold_others_up() {
    let limits = "sessions = 8\nconnections = 20\nworkers = 4\n[[isolation.stage]]\nstage = \"RequestExecution\"\nowner-hard-limit = 1";
    let Some(mut sleeper) = Sleeper::start(limits).await else {
        return;
    };
    let mut peer = Peer::new(&sleeper.server).await;
    for handle in 1..=3 {
        peer.send(sleeper.read(handle, 0)).await;
        peer.read_cached().await;
    }
    sleeper
        .server
        .usage_until("one runs, two wait", |usage| {
            usage.get("RequestExecution") == 1 && usage.get("RequestQueue") == 2
        })
        .await;
    let mut other = Peer::from(&sleeper.server, OTHER).await;
    let sent = Instant::now();
    let id = other.send(sleeper.read(1, 400)).await;
    sleeper
        .server
        .usage_until("another owner's request runs", |usage| {
            usage.get("RequestExecution") == 2 && usage.get("RequestQueue") == 2
        })
        .await;
    let answer = other.answer().await;
    assert_eq!(answer.request, id);
    assert!(answer.at - sent >= Duration::from_millis(400));
    // The next of the first owner runs when its first has ended.
    let (count, _) = peer.cancel(1).await;
    assert_eq!(count, 1);
    sleeper
        .server
        .usage_until("the next one runs", |usage| {
            usage.get("RequestExecution") == 1 && usage.get("RequestQueue") == 1
        })
        .await;
}

#[tokio::test]
async fn many_owners_are_served_by_a_small_queue() {
    // One place for requests that wait does not limit who may connect.
    let server = Server::with("sessions = 40\nconnections = 60\nqueued-requests = 1");
    let mut peers = Vec::new();
    for number in 1..=30 {
        peers.push(Peer::from(&server, Ipv4Addr::new(127, 0, 1, number)).await);
    }
    for peer in &mut peers {
        peer.read_cached().await;
    }
}
