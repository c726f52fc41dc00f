//! Deadlines, with simulated time.

use std::time::Duration;

use backplane_types::{MessageSecurityMode, Now, StatusCode};

use super::{RawChunk, SECURED, Seen, Setup, Wire, error_message};
use crate::Closed;
use crate::header::ChunkType;

/// Nothing happens one millisecond before the deadline; at it the channel is closed with `status`.
fn expires(mut wire: Wire, deadline: Now, status: StatusCode) {
    assert_eq!(wire.server.poll_timeout(), Some(deadline.mono));
    let before = Now::new(deadline.mono - Duration::from_millis(1), deadline.utc);
    assert_eq!(wire.server.handle_timeout(before, &mut wire.to_client), None);
    let Some(Closed::Error(error)) = wire.server.handle_timeout(deadline, &mut wire.to_client) else {
        panic!()
    };
    assert_eq!(error.wire, status);
    assert_eq!(error_message(&wire.to_client).0, status);
    assert_eq!(wire.server.poll_timeout(), None);
    assert_eq!(wire.server.handle_timeout(deadline, &mut wire.to_client), None);
}

#[test]
fn a_connection_that_says_nothing_is_closed() {
    let wire = Setup::none().wire();
    let deadline = wire.now.after(Duration::from_secs(10));
    expires(wire, deadline, StatusCode::BAD_TIMEOUT);
    // Half a Hello makes no difference.
    let mut wire = Setup::none().wire();
    wire.client.connect(wire.now, &mut wire.to_server);
    wire.to_server.truncate(20);
    wire.now = wire.now.after(Duration::from_secs(9));
    wire.serve();
    expires(wire, deadline, StatusCode::BAD_TIMEOUT);
}

#[test]
fn a_connection_that_never_opens_a_channel_is_closed() {
    let mut wire = Setup::none().wire();
    wire.now = wire.now.after(Duration::from_secs(5));
    wire.client.connect(wire.now, &mut wire.to_server);
    wire.serve();
    let deadline = wire.now.after(Duration::from_secs(30));
    expires(wire, deadline, StatusCode::BAD_TIMEOUT);
}

#[test]
fn an_open_whose_work_is_never_done_is_given_up() {
    let mut wire = Setup::none().wire();
    wire.client.connect(wire.now, &mut wire.to_server);
    wire.serve();
    wire.receive();
    wire.now = wire.now.after(Duration::from_secs(10));
    wire.client.open(wire.now, &mut wire.to_server).unwrap();
    wire.hold_work = true;
    wire.serve();
    let deadline = wire.now.after(Duration::from_secs(30));
    expires(wire, deadline, StatusCode::BAD_TIMEOUT);
}

#[test]
fn a_message_that_is_never_finished_closes_the_channel() {
    let open = || {
        let mut setup = Setup::none();
        setup.lifetime = Duration::from_secs(3_600);
        setup.open()
    };
    // Between chunks: further chunks do not prolong it.
    let mut wire = open();
    let deadline = wire.now.after(Duration::from_secs(30));
    for _ in 0..10 {
        let chunk = RawChunk::new(ChunkType::Intermediate, 1, b"more").seal(wire.client.secure(), wire.now);
        wire.to_server.extend_from_slice(&chunk);
        assert_eq!(wire.serve(), []);
        wire.now = wire.now.after(Duration::from_secs(2));
    }
    expires(wire, deadline, StatusCode::BAD_TIMEOUT);
    // Inside a chunk: byte by byte does not prolong it.
    let mut wire = open();
    let mut chunk = RawChunk::new(ChunkType::Final, 1, b"slow").seal(wire.client.secure(), wire.now);
    chunk.pop();
    let deadline = wire.now.after(Duration::from_secs(30));
    for byte in chunk {
        wire.to_server.push(byte);
        assert_eq!(wire.serve(), []);
        wire.now = wire.now.after(Duration::from_millis(100));
    }
    expires(wire, deadline, StatusCode::BAD_TIMEOUT);
}

#[test]
fn a_finished_message_ends_its_deadline() {
    let mut wire = Setup::none().open();
    let quiet = wire.server.poll_timeout();
    let message = RawChunk::new(ChunkType::Final, 1, b"slow").seal(wire.client.secure(), wire.now);
    let (head, tail) = message.split_at(10);
    wire.to_server.extend_from_slice(head);
    wire.serve();
    assert_ne!(wire.server.poll_timeout(), quiet);
    wire.to_server.extend_from_slice(tail);
    assert_eq!(wire.serve().len(), 1);
    assert_eq!(wire.server.poll_timeout(), quiet);
}

#[test]
fn a_token_that_is_not_renewed_closes_the_channel_a_quarter_late() {
    for (policy, mode) in [
        (SECURED[1], MessageSecurityMode::SIGN),
        (backplane_crypto::SecurityPolicy::None, MessageSecurityMode::NONE),
    ] {
        let mut setup = Setup::new(policy, mode);
        setup.lifetime = Duration::from_secs(20);
        let wire = setup.open();
        let deadline = wire.now.after(Duration::from_secs(25));
        expires(wire, deadline, StatusCode::BAD_SECURE_CHANNEL_CLOSED);
    }
}

#[test]
fn a_channel_that_renews_lives_on_for_a_day() {
    let mut setup = Setup::none();
    setup.lifetime = Duration::from_secs(60);
    let mut wire = setup.open();
    let end = wire.now.mono + Duration::from_secs(86_400);
    while wire.now.mono < end {
        let due = wire.client.poll_timeout().unwrap();
        assert!(due < wire.server.poll_timeout().unwrap());
        wire.now = wire.now.after(due - wire.now.mono);
        assert_eq!(wire.client.handle_timeout(wire.now, &mut wire.to_server), None);
        assert_eq!(wire.serve(), [Seen::Opened { renewed: true }]);
        assert_eq!(wire.receive(), [Seen::Opened { renewed: true }]);
        wire.echo(b"keep alive");
    }
}

#[test]
fn a_client_gives_up_on_a_silent_server() {
    let mut wire = Setup::none().wire();
    wire.client.connect(wire.now, &mut wire.to_server);
    wire.now = wire.now.after(Duration::from_secs(10));
    assert!(wire.client.handle_timeout(wire.now, &mut wire.to_server).is_some());
    let mut setup = Setup::none();
    setup.lifetime = Duration::from_secs(20);
    let mut wire = setup.open();
    wire.now = wire.now.after(Duration::from_secs(15));
    assert_eq!(wire.client.handle_timeout(wire.now, &mut wire.to_server), None);
    assert_eq!(
        wire.client.poll_timeout(),
        Some(wire.now.mono + Duration::from_secs(10))
    );
    wire.now = wire.now.after(Duration::from_secs(10));
    assert!(wire.client.handle_timeout(wire.now, &mut wire.to_server).is_some());
    assert!(!wire.client.is_open());
}
