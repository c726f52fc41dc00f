//! A channel that goes on over a new connection: the order of the change, what is lost with the old connection, and who is refused.

use std::sync::Arc;
use std::time::Duration;

use backplane_crypto::{SecurityPolicy, SystemRandom};
use backplane_types::{MessageSecurityMode, SecurityTokenRequestType, StatusCode};

use super::renewal::renewal;
use super::{
    RawChunk, SECURED, Seen, Setup, Trusting, Wire, all_securities, client_identity, error_message, long_identity,
    u32_at,
};
use crate::header::ChunkType;
use crate::opening::{OpenOutcome, OpenWork};
use crate::{ChannelError, Closed, Opened, Reattachment, SendError, ServerChannel};

const BOTH: MessageSecurityMode = MessageSecurityMode::SIGN_AND_ENCRYPT;

/// An old connection, whose bytes never arrive any more, and a new one.
struct Moved {
    old: ServerChannel,
    /// The new connection.
    wire: Wire,
    work: Option<OpenWork>,
}

impl Moved {
    /// The client asks for its channel on a new connection; the server has the request in hand and has not looked at it.
    fn asked(mut wire: Wire) -> Self {
        wire.to_server.clear();
        wire.to_client.clear();
        let fresh = wire.server.sibling(wire.now);
        let old = std::mem::replace(&mut wire.server, fresh);
        wire.client.reconnect(wire.now, &mut wire.to_server).unwrap();
        let mut moved = Self { old, wire, work: None };
        moved.ask();
        moved
    }

    fn ask(&mut self) {
        let wire = &mut self.wire;
        assert_eq!(wire.serve(), []);
        assert_eq!(wire.receive(), [Seen::Acknowledged]);
        wire.client.open(wire.now, &mut wire.to_server).unwrap();
        wire.hold_work = true;
        assert_eq!(wire.serve(), []);
        wire.hold_work = false;
        self.work = wire.work.take();
    }

    fn verify(&mut self) -> Result<Reattachment, OpenOutcome> {
        let work = self.work.take().unwrap();
        let evidence = Arc::clone(self.old.evidence().unwrap());
        assert_eq!(work.reattaches(), Some(evidence.channel_id));
        work.verify(&evidence, &self.wire.identity, &Trusting, &mut SystemRandom)
    }

    /// The whole change, in its order.
    fn bring_over(&mut self) {
        let reattachment = self.verify().unwrap();
        self.old.admits(self.wire.now, &reattachment).unwrap();
        let detached = self.old.detach().unwrap();
        let outcome = reattachment.complete(self.wire.now, detached, &self.wire.identity, &mut SystemRandom);
        let opened = self
            .wire
            .server
            .handle_opened(self.wire.now, outcome, &mut self.wire.to_client);
        assert_eq!(opened, Ok(Opened::Reattached));
        assert_eq!(self.wire.receive(), [Seen::Opened { renewed: true }]);
    }

    /// The old connection knows nothing of what was tried.
    fn old_is_unhurt(&mut self) {
        let (now, mut out) = (self.wire.now, Vec::new());
        assert!(self.old.is_open());
        self.old.send(now, 1, b"still here", &mut out).unwrap();
        assert!(!out.is_empty());
    }

    fn refused(mut self, outcome: OpenOutcome) -> ChannelError {
        self.old_is_unhurt();
        let Seen::Closed(Closed::Error(error)) = self.wire.opened(outcome) else {
            panic!("not refused")
        };
        assert_eq!(error_message(&self.wire.to_client).0, error.wire);
        error
    }
}

fn open(policy: SecurityPolicy) -> Wire {
    Setup::new(policy, BOTH).open()
}

/// What both ends sealed for the old connection is held back; the old connection sends on until the very moment of the change.
#[test]
fn a_channel_goes_on_where_it_was_with_new_keys_and_numbers_that_never_come_again() {
    for (policy, mode) in all_securities().into_iter().skip(1) {
        let mut wire = Setup::new(policy, mode).open();
        wire.echo(b"before");
        let before = wire.client.ids().unwrap();
        let evidence = Arc::clone(wire.server.evidence().unwrap());
        wire.client
            .send(wire.now, b"never arrives", &mut wire.to_server)
            .unwrap();
        let held_by_client = std::mem::take(&mut wire.to_server);
        let mut held_by_server = Vec::new();
        wire.server
            .send(wire.now, 2, b"sealed early", &mut held_by_server)
            .unwrap();

        let mut moved = Moved::asked(wire);
        let now = moved.wire.now;
        moved.old.send(now, 3, b"asked", &mut held_by_server).unwrap();
        let reattachment = moved.verify().unwrap();
        moved.old.send(now, 4, b"verified", &mut held_by_server).unwrap();
        moved.old.admits(now, &reattachment).unwrap();
        moved.old.send(now, 5, b"admitted", &mut held_by_server).unwrap();
        let last_old = moved.old.secure().outgoing.last();
        let detached = moved.old.detach().unwrap();
        assert!(Arc::ptr_eq(detached.evidence(), &evidence));

        // Late responses are not sealed any more and take no number.
        let sealed = held_by_server.len();
        let late = moved.old.send(now, 6, b"late", &mut held_by_server);
        assert_eq!((late, held_by_server.len()), (Err(SendError::NotOpen), sealed));
        let Moved { wire, .. } = &mut moved;
        let early = wire.server.send(now, 6, b"before it is attached", &mut wire.to_client);
        assert_eq!((early, wire.to_client.len()), (Err(SendError::NotOpen), 0));

        let outcome = reattachment.complete(now, detached, &wire.identity, &mut SystemRandom);
        let opened = wire.server.handle_opened(now, outcome, &mut wire.to_client);
        assert_eq!(opened, Ok(Opened::Reattached));
        assert!(wire.server.is_open());
        assert_eq!(wire.to_client[..4], *b"OPNF", "the response comes first");
        wire.server.send(now, 6, b"behind it", &mut wire.to_client).unwrap();
        assert_eq!(
            wire.receive(),
            [Seen::Opened { renewed: true }, Seen::Message(6, b"behind it".to_vec())]
        );
        assert_eq!(wire.client.secure().incoming.last(), Some(last_old + 2));
        let after = wire.client.ids().unwrap();
        assert_eq!(after.0, before.0);
        assert_ne!(after.1, before.1);
        assert_eq!(wire.server.secure().tokens.ids(), [after.1]);
        assert_eq!(wire.client.secure().tokens.ids(), [after.1]);
        assert!(Arc::ptr_eq(wire.server.evidence().unwrap(), &evidence));
        wire.echo(b"after");

        // What was held back is of no use on the new connection, in either direction.
        let error = wire.refuse(&held_by_client);
        assert_eq!(error.wire, StatusCode::BAD_SECURE_CHANNEL_TOKEN_UNKNOWN);
        wire.to_client = held_by_server;
        assert!(matches!(wire.receive().as_slice(), [Seen::Closed(Closed::Error(_))]));
    }
}

#[test]
fn the_chunk_behind_the_response_follows_without_a_gap() {
    let mut moved = Moved::asked(Setup::new(SECURED[1], MessageSecurityMode::SIGN).open());
    moved.bring_over();
    let wire = &mut moved.wire;
    wire.client.secure().outgoing.next();
    wire.client.send(wire.now, b"one missing", &mut wire.to_server).unwrap();
    let bytes = std::mem::take(&mut wire.to_server);
    assert_eq!(wire.refuse(&bytes).reason, StatusCode::BAD_SEQUENCE_NUMBER_INVALID);
}

#[test]
fn a_channel_can_move_again_and_again() {
    for policy in SECURED {
        let mut wire = open(policy);
        for round in 0..4_u8 {
            wire.echo(&[round; 40]);
            // A renewal in between changes nothing.
            if round == 2 {
                wire.client.open(wire.now, &mut wire.to_server).unwrap();
                assert_eq!(wire.serve(), [Seen::Opened { renewed: true }]);
                assert_eq!(wire.receive(), [Seen::Opened { renewed: true }]);
            }
            let mut moved = Moved::asked(wire);
            moved.bring_over();
            wire = moved.wire;
        }
        wire.echo(b"arrived");
    }
}

/// The second attempt comes after one whose request, or whose response, was lost.
#[test]
fn an_attempt_that_broke_is_followed_by_another() {
    for response_was_made in [false, true] {
        let mut moved = Moved::asked(open(SECURED[0]));
        if response_was_made {
            let reattachment = moved.verify().unwrap();
            let detached = moved.old.detach().unwrap();
            let wire = &mut moved.wire;
            let outcome = reattachment.complete(wire.now, detached, &wire.identity, &mut SystemRandom);
            assert_eq!(wire.opened(outcome), Seen::Opened { renewed: false });
            let fresh = wire.server.sibling(wire.now);
            moved.old = std::mem::replace(&mut wire.server, fresh);
        } else {
            moved.wire.server = moved.wire.server.sibling(moved.wire.now);
        }
        moved.wire.to_server.clear();
        moved.wire.to_client.clear();
        moved
            .wire
            .client
            .reconnect(moved.wire.now, &mut moved.wire.to_server)
            .unwrap();
        moved.ask();
        moved.bring_over();
        moved.wire.echo(b"second attempt");
    }
}

#[test]
fn without_security_a_channel_does_not_move() {
    let mut wire = Setup::none().open();
    let fresh = wire.server.sibling(wire.now);
    let mut old = std::mem::replace(&mut wire.server, fresh);
    wire.client.reconnect(wire.now, &mut wire.to_server).unwrap();
    assert_eq!(wire.serve(), []);
    assert_eq!(wire.receive(), [Seen::Acknowledged]);
    wire.client.open(wire.now, &mut wire.to_server).unwrap();
    let error = wire.refuse(&[]);
    assert_eq!(error.wire, StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN);
    assert_eq!(error.reason, StatusCode::BAD_SECURE_CHANNEL_ID_INVALID);
    // The client learns that it has to open a new one.
    assert!(matches!(
        wire.receive().as_slice(),
        [Seen::Closed(Closed::PeerError {
            status: StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN,
            ..
        })]
    ));
    assert!(wire.client.reconnect(wire.now, &mut wire.to_server).is_err());
    assert!(old.is_open());
    assert!(old.detach().is_none());
    assert!(old.is_open(), "and nothing happened to it");
}

#[test]
fn a_channel_nobody_knows_is_refused_without_work() {
    let mut moved = Moved::asked(open(SECURED[1]));
    let work = moved.work.take().unwrap();
    let outcome = work.run(&moved.wire.identity, &Trusting, &mut SystemRandom);
    assert_eq!(moved.refused(outcome).wire, StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN);

    // The evidence of another channel.
    let mut moved = Moved::asked(open(SECURED[1]));
    let mut evidence = (**moved.old.evidence().unwrap()).clone();
    evidence.channel_id += 1;
    let work = moved.work.take().unwrap();
    let outcome = work
        .verify(&evidence, &moved.wire.identity, &Trusting, &mut SystemRandom)
        .unwrap_err();
    assert_eq!(moved.refused(outcome).wire, StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN);
}

/// Somebody else, with a certificate as trusted as the client's, names the channel.
fn stranger(setup: &Setup, wire: &mut Wire) -> Moved {
    let mut other = setup.wire();
    other.server = wire.server.sibling(wire.now);
    other.client.connect(wire.now, &mut other.to_server);
    assert_eq!(other.serve(), []);
    assert_eq!(other.receive(), [Seen::Acknowledged]);
    let named = wire.server.secure().continuation();
    other.client.secure().resume(named);
    other.client.secure().outgoing.set_last(1_000);
    other.client.open(other.now, &mut other.to_server).unwrap();
    other.hold_work = true;
    assert_eq!(other.serve(), []);
    let work = other.work.take();
    let placeholder = wire.server.sibling(wire.now);
    Moved {
        old: std::mem::replace(&mut wire.server, placeholder),
        wire: other,
        work,
    }
}

#[test]
fn nobody_else_gets_the_channel_or_cuts_it_off() {
    // The same client, so that the rest of this test is worth something.
    let setup = Setup::new(SECURED[1], BOTH);
    let mut moved = stranger(&setup, &mut setup.open());
    assert!(moved.verify().is_ok());

    let mut other_certificate = Setup::new(SECURED[1], BOTH);
    other_certificate.client = long_identity();
    let mut other_policy = Setup::new(SECURED[2], BOTH);
    let mut other_mode = Setup::new(SECURED[1], MessageSecurityMode::SIGN);
    // The right certificate without its key.
    let mut other_key = Setup::new(SECURED[1], BOTH);
    other_key.client = Arc::new(crate::OwnIdentity::new(
        super::server_identity().private_key().clone(),
        client_identity().certificate().bytes(),
        &[],
    ));
    for (setup, wire, reason) in [
        (
            &mut other_certificate,
            StatusCode::BAD_SECURITY_CHECKS_FAILED,
            StatusCode::BAD_CERTIFICATE_INVALID,
        ),
        (
            &mut other_key,
            StatusCode::BAD_SECURITY_CHECKS_FAILED,
            StatusCode::BAD_SECURITY_CHECKS_FAILED,
        ),
        (
            &mut other_policy,
            StatusCode::BAD_SECURITY_POLICY_REJECTED,
            StatusCode::BAD_SECURITY_POLICY_REJECTED,
        ),
        (
            &mut other_mode,
            StatusCode::BAD_SECURITY_MODE_REJECTED,
            StatusCode::BAD_SECURITY_MODE_REJECTED,
        ),
    ] {
        let mut moved = stranger(setup, &mut open(SECURED[1]));
        let outcome = moved.verify().unwrap_err();
        let error = moved.refused(outcome);
        assert_eq!((error.wire, error.reason), (wire, reason));
    }
}

/// A request that was verified for one channel takes no other one away, whomever the caller asks.
#[test]
fn a_verified_request_is_for_its_own_channel() {
    let mut moved = Moved::asked(open(SECURED[1]));
    let mut other = Setup::new(SECURED[1], BOTH).wire();
    other.server = moved.old.sibling(other.now);
    other.open();
    let reattachment = moved.verify().unwrap();
    assert_ne!(other.server.evidence().unwrap().channel_id, reattachment.channel_id());
    let refused = other.server.admits(moved.wire.now, &reattachment).unwrap_err();
    assert_eq!(refused.reason, StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN);
    moved.old.admits(moved.wire.now, &reattachment).unwrap();
}

#[test]
fn an_issue_with_the_id_of_a_channel_is_no_way_to_it() {
    for (request_type, good) in [
        (SecurityTokenRequestType::RENEW, true),
        (SecurityTokenRequestType::ISSUE, false),
    ] {
        let mut wire = open(SECURED[1]);
        let fresh = wire.server.sibling(wire.now);
        let old = std::mem::replace(&mut wire.server, fresh);
        wire.client.reconnect(wire.now, &mut wire.to_server).unwrap();
        wire.serve();
        wire.receive();
        wire.to_server = renewal(&mut wire, SECURED[1], |change| {
            change.request.request_type = request_type
        });
        wire.hold_work = true;
        wire.serve();
        let work = wire.work.take();
        let mut moved = Moved { old, wire, work };
        match moved.verify() {
            Ok(_) => assert!(good),
            Err(outcome) => {
                assert!(!good);
                assert_eq!(moved.refused(outcome).wire, StatusCode::BAD_REQUEST_TYPE_INVALID);
            }
        }
    }
}

#[test]
fn a_replayed_request_does_no_harm() {
    // A renewal, recorded on the old connection.
    let mut wire = open(SECURED[1]);
    wire.client.open(wire.now, &mut wire.to_server).unwrap();
    let renewal = wire.to_server.clone();
    assert_eq!(wire.serve(), [Seen::Opened { renewed: true }]);
    let replay = |old: ServerChannel, request: &[u8], wire: &Wire| {
        let mut replay = Setup::new(SECURED[1], BOTH).wire();
        replay.server = old.sibling(wire.now);
        replay.client.connect(wire.now, &mut replay.to_server);
        replay.serve();
        replay.to_client.clear();
        replay.to_server = request.to_vec();
        replay.hold_work = true;
        assert_eq!(replay.serve(), []);
        let work = replay.work.take();
        Moved {
            old,
            wire: replay,
            work,
        }
    };
    let server = std::mem::replace(&mut wire.server, super::server_channel(crate::Limits::default()));
    let mut moved = replay(server, &renewal, &wire);
    let reattachment = moved.verify().unwrap();
    let error = moved.old.admits(wire.now, &reattachment).unwrap_err();
    assert_eq!(error.wire, StatusCode::BAD_NONCE_INVALID);
    assert_eq!(moved.refused(reattachment.refuse(error)), error);

    // Its nonce was followed by another, so that only the number tells.
    let mut wire = open(SECURED[1]);
    wire.client.open(wire.now, &mut wire.to_server).unwrap();
    let renewal = wire.to_server.clone();
    wire.serve();
    wire.receive();
    wire.client.open(wire.now, &mut wire.to_server).unwrap();
    wire.serve();
    let server = std::mem::replace(&mut wire.server, super::server_channel(crate::Limits::default()));
    let mut moved = replay(server, &renewal, &wire);
    let reattachment = moved.verify().unwrap();
    let error = moved.old.admits(wire.now, &reattachment).unwrap_err();
    assert_eq!(error.wire, StatusCode::BAD_SECURITY_CHECKS_FAILED);
    assert_eq!(error.reason, StatusCode::BAD_SEQUENCE_NUMBER_INVALID);
    // Who completes it all the same loses the channel, but nobody gets it.
    let detached = moved.old.detach().unwrap();
    let outcome = reattachment.complete(wire.now, detached, &moved.wire.identity, &mut SystemRandom);
    assert_eq!(outcome.error().unwrap().reason, StatusCode::BAD_SEQUENCE_NUMBER_INVALID);

    // While a renewal is worked on, nobody knows its number: nothing can be told from its replay.
    let mut wire = open(SECURED[1]);
    wire.client.open(wire.now, &mut wire.to_server).unwrap();
    let renewal = wire.to_server.clone();
    wire.hold_work = true;
    wire.serve();
    let server = std::mem::replace(&mut wire.server, super::server_channel(crate::Limits::default()));
    let mut moved = replay(server, &renewal, &wire);
    let reattachment = moved.verify().unwrap();
    let error = moved.old.admits(wire.now, &reattachment).unwrap_err();
    assert_eq!(error.wire, StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN);
    // The renewal goes on.
    let work = wire.work.take().unwrap();
    let outcome = work.run(&wire.identity, &Trusting, &mut SystemRandom);
    let mut out = Vec::new();
    assert_eq!(
        moved.old.handle_opened(wire.now, outcome, &mut out),
        Ok(Opened::Renewed)
    );
}

#[test]
fn a_channel_without_a_connection_ends_with_its_token() {
    for (late, good) in [(24_999, true), (25_000, false)] {
        let mut setup = Setup::new(SECURED[1], BOTH);
        setup.lifetime = Duration::from_secs(20);
        let mut wire = setup.open();
        let start = wire.now;
        // The client does not give up before the server does.
        wire.client.secure().tokens.add(crate::token::Token {
            id: 99,
            created: start.mono + Duration::from_secs(20),
            lifetime: Duration::from_secs(60),
            protection: crate::protection::Protection::none(),
        });
        let detached = wire.server.detach().unwrap();
        assert_eq!(detached.end(), start.mono + Duration::from_secs(25));
        assert_eq!(wire.server.poll_timeout(), None);
        let evidence = Arc::clone(detached.evidence());
        wire.now = start.after(Duration::from_millis(late));
        let mut moved = Moved::asked(wire);
        let work = moved.work.take().unwrap();
        let now = moved.wire.now;
        let reattachment = work
            .verify(&evidence, &moved.wire.identity, &Trusting, &mut SystemRandom)
            .unwrap();
        let admitted = detached.admits(now, &reattachment);
        assert_eq!(admitted.is_ok(), good);
        let outcome = reattachment.complete(now, detached, &moved.wire.identity, &mut SystemRandom);
        let seen = moved.wire.opened(outcome);
        if good {
            assert_eq!(moved.wire.receive(), [Seen::Opened { renewed: true }]);
            moved.wire.echo(b"just in time");
        } else {
            assert_eq!(admitted.unwrap_err().wire, StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN);
            assert!(matches!(seen, Seen::Closed(Closed::Error(_))));
        }
    }
}

/// A client whose token is over does not even ask.
#[test]
fn a_client_goes_on_only_with_a_channel_that_it_has() {
    let mut wire = Setup::new(SECURED[1], BOTH).wire();
    assert!(wire.client.reconnect(wire.now, &mut wire.to_server).is_err());
    let mut wire = open(SECURED[1]);
    wire.now = wire.now.after(Duration::from_secs(75));
    let error = wire.client.reconnect(wire.now, &mut wire.to_server).unwrap_err();
    assert_eq!(error.reason, StatusCode::BAD_SECURE_CHANNEL_CLOSED);
    assert!(wire.to_server.is_empty());
    let mut wire = open(SECURED[1]);
    wire.client.close(wire.now, &mut wire.to_server);
    assert!(wire.client.reconnect(wire.now, &mut wire.to_server).is_err());
}

#[test]
fn what_a_session_was_allowed_to_send_goes_along() {
    for authenticated in [false, true] {
        let mut setup = Setup::new(SECURED[0], MessageSecurityMode::SIGN);
        setup.server_limits.unauthenticated_max_message_size = 1_000;
        let mut wire = setup.open();
        if authenticated {
            wire.server.set_limits_authenticated();
        }
        let mut moved = Moved::asked(wire);
        moved.bring_over();
        // And once more, so that it is not forgotten on the way.
        let mut moved = Moved::asked(moved.wire);
        moved.bring_over();
        let wire = &mut moved.wire;
        wire.client.send(wire.now, &[7; 5_000], &mut wire.to_server).unwrap();
        if authenticated {
            assert_eq!(wire.serve()[0].message(), [7; 5_000]);
        } else {
            assert_eq!(wire.refuse(&[]).wire, StatusCode::BAD_TCP_MESSAGE_TOO_LARGE);
        }
    }
}

#[test]
fn half_a_message_is_not_finished_on_another_connection() {
    let mut wire = open(SECURED[1]);
    let half = RawChunk::new(ChunkType::Intermediate, 5, b"first half").seal(wire.client.secure(), wire.now);
    wire.to_server = half;
    assert_eq!(wire.serve(), []);
    let mut moved = Moved::asked(wire);
    moved.bring_over();
    assert_eq!(moved.old.reassembly_bytes(), 0);
    let wire = &mut moved.wire;
    let rest = RawChunk::new(ChunkType::Final, 5, b"second half").seal(wire.client.secure(), wire.now);
    wire.to_server = rest;
    assert_eq!(wire.serve(), [Seen::Message(5, b"second half".to_vec())]);
}

/// A renewal that was under way when the connection broke is forgotten, with what waited behind its response.
#[test]
fn a_renewal_under_way_is_lost_with_its_connection() {
    let mut wire = open(SECURED[1]);
    wire.client.open(wire.now, &mut wire.to_server).unwrap();
    wire.hold_work = true;
    assert_eq!(wire.serve(), []);
    let renewal = wire.work.take().unwrap();
    wire.server.send(wire.now, 1, b"held", &mut wire.to_client).unwrap();
    let detached = wire.server.detach().unwrap();
    assert!(
        wire.server.evidence().is_none(),
        "the old connection has no channel any more"
    );
    let outcome = renewal.run(&wire.identity, &Trusting, &mut SystemRandom);
    assert!(matches!(wire.opened(outcome), Seen::Closed(Closed::Error(_))));
    assert!(
        wire.to_client.is_empty(),
        "not even an Error message: the connection is gone"
    );

    wire.hold_work = false;
    let evidence = Arc::clone(detached.evidence());
    let mut moved = Moved::asked(wire);
    let work = moved.work.take().unwrap();
    let now = moved.wire.now;
    let reattachment = work
        .verify(&evidence, &moved.wire.identity, &Trusting, &mut SystemRandom)
        .unwrap();
    let outcome = reattachment.complete(now, detached, &moved.wire.identity, &mut SystemRandom);
    assert_eq!(moved.wire.opened(outcome), Seen::Opened { renewed: false });
    // Nothing of what was held follows the response.
    assert_eq!(moved.wire.to_client.len(), u32_at(&moved.wire.to_client, 4) as usize);
    assert_eq!(moved.wire.receive(), [Seen::Opened { renewed: true }]);
    moved.wire.echo(b"on");
}

#[test]
fn an_old_connection_that_was_left_says_nothing_more() {
    let mut moved = Moved::asked(open(SECURED[2]));
    moved.bring_over();
    let mut out = Vec::new();
    let now = moved.wire.now;
    assert!(!moved.old.is_open() && moved.old.evidence().is_none());
    assert!(moved.old.detach().is_none());
    let later = now.after(Duration::from_secs(86_400));
    assert_eq!(moved.old.handle_timeout(later, &mut out), None);
    let mut input = b"MSGF".to_vec();
    let (consumed, event) = moved.old.handle_input(now, &mut input, &mut out);
    assert!(matches!((consumed, event), (4, crate::Event::Closed(Closed::Error(_)))));
    moved.old.close(StatusCode::BAD_SERVER_HALTED, &mut out);
    assert!(out.is_empty());
}
