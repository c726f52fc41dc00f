//! Sessions used wrongly: before they are activated, on another channel, after their end, too many of them, and by those who guess
//! passwords (Part 4, 5.7).

use std::time::{Duration, Instant};

use backplane_client::{Client, ClientError, Identity, SessionOptions};
use backplane_types::{
    ActivateSessionRequest, AnonymousIdentityToken, ByteString, CancelRequest, CloseSessionRequest,
    CreateSubscriptionRequest, ExtensionObject, Identifier, NodeId, PublishRequest, ReadRequest, RequestHeader,
    StatusCode,
};
use tokio::task::JoinSet;

use crate::support::{
    PATIENCE, Peer, Raw, Server, body, connect, create_session, fault_of, open, read_status, well_behaved,
};

fn token_of(client: &Client) -> NodeId {
    client.header(RequestHeader::default()).authentication_token
}

/// A header with somebody's token.
fn as_session(token: &NodeId) -> RequestHeader {
    RequestHeader {
        authentication_token: token.clone(),
        ..RequestHeader::default()
    }
}

/// What a read with this token ends in; it has no nodes, so that nothing but the session can be wrong before BadNothingToDo.
async fn read_as(client: &Client, token: &NodeId) -> StatusCode {
    let request = ReadRequest {
        request_header: as_session(token),
        ..ReadRequest::default()
    };
    match client.call(request).await {
        Err(ClientError::Fault(status)) => status,
        other => panic!("a read of nothing: {other:?}"),
    }
}

async fn create(client: &Client) -> Result<NodeId, ClientError> {
    client.create_session(SessionOptions::default()).await
}

fn password(user: &str, password: &str) -> Identity {
    Identity::UserName {
        user: user.to_owned(),
        password: password.to_owned(),
    }
}

/// The session on which a read of nothing says so is a live one.
const ALIVE: StatusCode = StatusCode::BAD_NOTHING_TO_DO;

#[tokio::test]
async fn a_session_used_before_its_activation_is_closed() {
    let server = Server::demo();
    let client = connect(&server).await.unwrap();
    create(&client).await.unwrap();
    let token = token_of(&client);
    assert_eq!(read_as(&client, &token).await, StatusCode::BAD_SESSION_NOT_ACTIVATED);
    assert_eq!(read_as(&client, &token).await, StatusCode::BAD_SESSION_ID_INVALID);
    let activated = client.activate_session(&Identity::Anonymous).await.unwrap_err();
    assert_eq!(activated.status(), Some(StatusCode::BAD_SESSION_ID_INVALID));
    well_behaved(&server).await;
}

#[tokio::test]
async fn a_session_belongs_to_its_channel() {
    let server = Server::demo();
    let (owner, thief) = (open(&server).await, open(&server).await);
    let token = token_of(&owner);
    let other = StatusCode::BAD_SECURE_CHANNEL_ID_INVALID;
    assert_eq!(read_as(&thief, &token).await, other);
    let close = CloseSessionRequest {
        request_header: as_session(&token),
        ..CloseSessionRequest::default()
    };
    assert_eq!(thief.call(close).await.unwrap_err().status(), Some(other));
    // One that waits for its activation is not to be had either.
    let waiting = connect(&server).await.unwrap();
    create(&waiting).await.unwrap();
    assert_eq!(activate(&thief, &token_of(&waiting)).await, other);
    assert_eq!(read_as(&thief, &token_of(&waiting)).await, other);
    waiting.activate_session(&Identity::Anonymous).await.unwrap();
    read_status(&owner).await.unwrap();
    read_status(&thief).await.unwrap();
    read_status(&waiting).await.unwrap();
}

async fn activate(client: &Client, token: &NodeId) -> StatusCode {
    let user_identity_token = ExtensionObject::from_structure(&AnonymousIdentityToken {
        policy_id: "anonymous".into(),
    });
    let request = ActivateSessionRequest {
        request_header: as_session(token),
        user_identity_token,
        ..ActivateSessionRequest::default()
    };
    match client.call(request).await {
        Ok(_) => StatusCode::GOOD,
        Err(error) => error.status().unwrap(),
    }
}

#[tokio::test]
async fn a_session_moves_to_the_channel_that_activates_it() {
    let server = Server::demo();
    let old = open(&server).await;
    let token = token_of(&old);
    let new = connect(&server).await.unwrap();
    // An empty policy id, as a null token has it, is the anonymous one.
    let request = ActivateSessionRequest {
        request_header: as_session(&token),
        ..ActivateSessionRequest::default()
    };
    new.call(request).await.unwrap();
    assert_eq!(read_as(&new, &token).await, ALIVE);
    assert_eq!(read_as(&old, &token).await, StatusCode::BAD_SECURE_CHANNEL_ID_INVALID);
    old.close().await;
    assert_eq!(
        read_as(&new, &token).await,
        ALIVE,
        "the end of its old channel does not matter"
    );
}

#[tokio::test]
async fn tokens_of_no_session_are_refused() {
    let server = Server::demo();
    let client = open(&server).await;
    let opaque = |bytes: &[u8]| NodeId {
        namespace: 0,
        identifier: Identifier::Opaque(ByteString::from(bytes)),
    };
    let own = token_of(&client);
    let Identifier::Opaque(bytes) = &own.identifier else {
        panic!("the token is {own}")
    };
    let mut near = bytes.bytes().to_vec();
    near[0] ^= 1;
    let foreign = NodeId {
        namespace: 1,
        ..own.clone()
    };
    // A null token cannot be sent by this client: it would put its own in.
    let tokens = [
        NodeId::numeric(0, 7),
        NodeId::string(1, "session"),
        opaque(&[1]),
        opaque(&[0; 32]),
        opaque(&[7; 4_000]),
        opaque(&near),
        foreign,
    ];
    for token in tokens {
        assert_eq!(
            read_as(&client, &token).await,
            StatusCode::BAD_SESSION_ID_INVALID,
            "{token}"
        );
        assert_eq!(
            activate(&client, &token).await,
            StatusCode::BAD_SESSION_ID_INVALID,
            "{token}"
        );
    }
    let visitor = connect(&server).await.unwrap();
    let without = fault_of(&visitor.call_raw(body(&ReadRequest::default())).await.unwrap());
    assert_eq!(without, StatusCode::BAD_SESSION_ID_INVALID, "a null token");
    assert_eq!(read_as(&client, &own).await, ALIVE);
    well_behaved(&server).await;
}

#[tokio::test]
async fn a_session_ends_once() {
    let server = Server::demo();
    let client = open(&server).await;
    let token = token_of(&client);
    client.close_session(true).await.unwrap();
    let again = CloseSessionRequest {
        request_header: as_session(&token),
        ..CloseSessionRequest::default()
    };
    assert_eq!(
        client.call(again).await.unwrap_err().status(),
        Some(StatusCode::BAD_SESSION_ID_INVALID)
    );
    assert_eq!(read_as(&client, &token).await, StatusCode::BAD_SESSION_ID_INVALID);
    // The channel takes the next session.
    client
        .open_session(SessionOptions::default(), &Identity::Anonymous)
        .await
        .unwrap();
    read_status(&client).await.unwrap();
    well_behaved(&server).await;
}

/// Sessions that end at the same time, and connections they are on.
const CLOSED_AT_ONCE: usize = 1_000;
const CONNECTIONS: usize = 10;

#[tokio::test]
async fn a_thousand_sessions_close_at_once() {
    let server = Server::with("sessions = 1000\nconnections = 1100");
    let mut tasks = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let place = server.place();
        tasks.spawn(async move {
            let mut raw = Raw::opened(&place).await;
            let mut tokens = Vec::new();
            for _ in 0..CLOSED_AT_ONCE / CONNECTIONS {
                let token = raw.create_session(&place, PATIENCE).await;
                raw.activate_session(&token).await;
                tokens.push(token);
            }
            (raw, tokens)
        });
    }
    let mut connections = tasks.join_all().await;
    let mut late = Peer::of(Raw::opened(&server).await, NodeId::NULL);
    let create = || create_session(&server, PATIENCE);
    assert_eq!(late.ask(create()).await.status(), StatusCode::BAD_TOO_MANY_SESSIONS);
    // Everything is sent before anything is read.
    let mut bytes = Vec::new();
    for (raw, tokens) in &mut connections {
        bytes.clear();
        for (id, token) in (5_000..).zip(tokens.iter()) {
            let close = CloseSessionRequest {
                request_header: as_session(token),
                delete_subscriptions: true,
            };
            bytes.extend(raw.chunk(b"MSGF", id, &body(&close)));
        }
        raw.send(&bytes).await;
    }
    let start = Instant::now();
    for (raw, tokens) in &mut connections {
        for (id, _) in (5_000..).zip(tokens.iter()) {
            assert_eq!(raw.fault(id).await, StatusCode::GOOD);
        }
    }
    eprintln!("{CLOSED_AT_ONCE} sessions closed within {:?}", start.elapsed());
    // All of their places are free.
    for _ in 0..3 {
        assert_eq!(late.ask(create()).await.status(), StatusCode::GOOD);
    }
    well_behaved(&server).await;
}

#[tokio::test]
async fn activated_sessions_stay_when_there_are_too_many() {
    let server = Server::with("sessions = 3\nconnections = 40");
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(open(&server).await);
    }
    let late = connect(&server).await.unwrap();
    assert_eq!(
        create(&late).await.unwrap_err().status(),
        Some(StatusCode::BAD_TOO_MANY_SESSIONS)
    );
    for client in &clients {
        read_status(client).await.unwrap();
    }
    clients.pop().unwrap().close_session(true).await.unwrap();
    // Sessions that are only created give way to the next.
    let mut hoard = Vec::new();
    for _ in 0..20 {
        let client = connect(&server).await.unwrap();
        create(&client).await.unwrap();
        hoard.push(client);
    }
    late.open_session(SessionOptions::default(), &Identity::Anonymous)
        .await
        .unwrap();
    for client in clients.iter().chain([&late]) {
        read_status(client).await.unwrap();
    }
}

#[tokio::test]
async fn two_hundred_visits_leave_no_session() {
    let server = Server::with("sessions = 4\nconnections = 8");
    for round in 0..200 {
        let client = open(&server).await;
        read_status(&client)
            .await
            .unwrap_or_else(|error| panic!("visit {round}: {error}"));
        client.close_session(true).await.unwrap();
        client.close().await;
    }
    // As many as there may be, at once.
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(open(&server).await);
    }
    for client in &clients {
        read_status(client).await.unwrap();
    }
}

#[tokio::test]
async fn a_session_whose_client_is_gone_ends_with_its_timeout() {
    let mut server = Server::with("sessions = 1\nconnections = 8\nsession-timeout-min-ms = 200");
    let client = connect(&server).await.unwrap();
    let options = SessionOptions {
        timeout: Duration::from_millis(200),
        ..SessionOptions::default()
    };
    client.open_session(options, &Identity::Anonymous).await.unwrap();
    let token = token_of(&client);
    server.log.wait_for("TimedOut");
    assert_eq!(read_as(&client, &token).await, StatusCode::BAD_SESSION_ID_INVALID);
    well_behaved(&server).await;
}

#[tokio::test]
async fn a_parked_publish_request_is_cancelled() {
    let server = Server::demo();
    let client = open(&server).await;
    let subscription = CreateSubscriptionRequest {
        requested_publishing_interval: 60_000.0,
        requested_lifetime_count: 1_000,
        requested_max_keep_alive_count: 100,
        publishing_enabled: true,
        ..CreateSubscriptionRequest::default()
    };
    client.call(subscription).await.unwrap();
    let request_header = client.header(RequestHeader::default());
    let request_handle = request_header.request_handle;
    let publish = client.call_raw(body(&PublishRequest {
        request_header,
        ..PublishRequest::default()
    }));
    let cancel = client.call(CancelRequest {
        request_handle,
        ..CancelRequest::default()
    });
    // The requests leave in this order.
    let (published, cancelled) = tokio::join!(publish, cancel);
    assert_eq!(
        fault_of(&published.unwrap()),
        StatusCode::BAD_REQUEST_CANCELLED_BY_REQUEST
    );
    assert_eq!(cancelled.unwrap().cancel_count, 1);
    let nothing = client
        .call(CancelRequest {
            request_handle: 4_711,
            ..CancelRequest::default()
        })
        .await
        .unwrap();
    assert_eq!(nothing.cancel_count, 0);
    read_status(&client).await.unwrap();
    well_behaved(&server).await;
}

#[tokio::test]
async fn guessing_passwords_gets_slower() {
    let server = Server::demo();
    let client = connect(&server).await.unwrap();
    create(&client).await.unwrap();
    let mut since = Instant::now();
    for attempt in 1..=7 {
        if attempt == 5 {
            // The first that costs its successor something.
            since = Instant::now();
        }
        let refused = client.activate_session(&password("user1", "guess")).await.unwrap_err();
        assert_eq!(
            refused.status(),
            Some(StatusCode::BAD_IDENTITY_TOKEN_REJECTED),
            "attempt {attempt}"
        );
    }
    assert!(
        since.elapsed() >= Duration::from_millis(1_500),
        "three more guesses took {:?}",
        since.elapsed()
    );
    // Others do not wait with the guesser.
    let start = Instant::now();
    well_behaved(&server).await;
    let other = connect(&server).await.unwrap();
    create(&other).await.unwrap();
    let refused = other.activate_session(&password("user2", "guess")).await.unwrap_err();
    assert_eq!(refused.status(), Some(StatusCode::BAD_IDENTITY_TOKEN_REJECTED));
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn many_logins_at_once_do_not_take_the_memory() {
    let server = Server::demo();
    let client = std::sync::Arc::new(connect(&server).await.unwrap());
    create(&client).await.unwrap();
    let before = server.peak_memory();
    let mut logins = JoinSet::new();
    for number in 0..48 {
        let client = std::sync::Arc::clone(&client);
        logins.spawn(async move {
            client
                .activate_session(&password(&format!("nobody{number}"), "guess"))
                .await
        });
    }
    while let Some(login) = logins.join_next().await {
        assert_eq!(
            login.unwrap().unwrap_err().status(),
            Some(StatusCode::BAD_IDENTITY_TOKEN_REJECTED)
        );
    }
    // One check of a password takes 19 MiB; those of a machine's few processors may run side by side.
    let grown = server.peak_memory() - before;
    assert!(grown < 200 * 1024, "48 logins took {grown} KiB");
    well_behaved(&server).await;
}

#[tokio::test]
async fn guesses_made_at_once_wait_for_each_other() {
    let server = Server::demo();
    let client = std::sync::Arc::new(connect(&server).await.unwrap());
    create(&client).await.unwrap();
    let start = Instant::now();
    let mut guesses = JoinSet::new();
    for _ in 0..60 {
        let client = std::sync::Arc::clone(&client);
        guesses.spawn(async move { client.activate_session(&password("user1", "guess")).await });
    }
    let mut answered = 0;
    while start.elapsed() < Duration::from_secs(3) {
        let left = Duration::from_secs(3).saturating_sub(start.elapsed());
        match tokio::time::timeout(left, guesses.join_next()).await {
            Ok(Some(guess)) => {
                assert!(guess.unwrap().is_err());
                answered += 1;
            }
            Ok(None) | Err(_) => break,
        }
    }
    // Four are free, and each later one waits longer: half a second, one, two.
    assert!(answered <= 7, "{answered} guesses of 60 were answered in three seconds");
    guesses.abort_all();
    well_behaved(&server).await;
}
