//! Renewal of tokens under traffic.

use std::time::Duration;

use backplane_crypto::{CertificateChain, SecurityPolicy, SystemRandom};
use backplane_types::{
    ByteString, MessageSecurityMode, OpenSecureChannelRequest, SecurityTokenRequestType, StatusCode,
};

use super::{SECURED, Seen, Setup, Wire, all_securities, client_identity, long_identity, u32_at};
use crate::asymmetric::{OpenChunk, Parties, PeerKey};
use crate::opening::encode_body;
use crate::token::Token;

fn renew(wire: &mut Wire) {
    wire.client.open(wire.now, &mut wire.to_server).unwrap();
    assert_eq!(wire.serve(), [Seen::Opened { renewed: true }]);
    assert_eq!(wire.receive(), [Seen::Opened { renewed: true }]);
}

/// The token of the last message to the client.
fn token_of_answer(wire: &mut Wire, request_id: u32) -> u32 {
    assert!(wire.to_client.is_empty());
    wire.server
        .send(wire.now, request_id, b"answer", &mut wire.to_client)
        .unwrap();
    let token = u32_at(&wire.to_client, 12);
    assert_eq!(wire.receive(), [Seen::Message(request_id, b"answer".to_vec())]);
    token
}

#[test]
fn ten_renewals_under_traffic_in_every_policy() {
    for (policy, mode) in all_securities() {
        let mut setup = Setup::new(policy, mode);
        setup.lifetime = Duration::from_secs(10);
        let mut wire = setup.open();
        let (channel, mut token) = wire.client.ids().unwrap();
        for round in 0..10_u8 {
            // Requests before, around and behind the renewal, all under way at once.
            let before = wire.client.send(wire.now, &[round; 50], &mut wire.to_server).unwrap();
            wire.now = wire.now.after(Duration::from_millis(7_500));
            assert_eq!(wire.client.handle_timeout(wire.now, &mut wire.to_server), None);
            let around = wire.client.send(wire.now, &[round; 60], &mut wire.to_server).unwrap();
            assert_eq!(
                wire.serve(),
                [
                    Seen::Message(before, vec![round; 50]),
                    Seen::Opened { renewed: true },
                    Seen::Message(around, vec![round; 60])
                ]
            );
            // The server goes on with the token the client used.
            wire.server
                .send(wire.now, before, &[round; 5], &mut wire.to_client)
                .unwrap();
            wire.server
                .send(wire.now, around, &[round; 6], &mut wire.to_client)
                .unwrap();
            assert_eq!(
                wire.receive(),
                [
                    Seen::Opened { renewed: true },
                    Seen::Message(before, vec![round; 5]),
                    Seen::Message(around, vec![round; 6])
                ]
            );
            let (same, next) = wire.client.ids().unwrap();
            assert_eq!(same, channel);
            assert_ne!(next, token);
            token = next;
            wire.echo(b"with the new token");
        }
    }
}

#[test]
fn the_server_seals_with_the_old_token_until_the_client_used_the_new_one() {
    for policy in SECURED {
        let mut wire = Setup::new(policy, MessageSecurityMode::SIGN_AND_ENCRYPT).open();
        let old = wire.client.ids().unwrap().1;
        renew(&mut wire);
        let new = wire.client.ids().unwrap().1;
        assert_eq!(token_of_answer(&mut wire, 1), old);
        assert_eq!(wire.server.secure().tokens.ids(), [old, new]);
        wire.client.send(wire.now, b"request", &mut wire.to_server).unwrap();
        assert_eq!(wire.serve().len(), 1);
        assert_eq!(token_of_answer(&mut wire, 1), new);
        assert_eq!(wire.server.secure().tokens.ids(), [new]);
        assert_eq!(wire.client.secure().tokens.ids(), [new]);
    }
}

#[test]
fn messages_with_the_old_token_are_taken_until_the_new_one_was_used() {
    let mut wire = Setup::new(SECURED[1], MessageSecurityMode::SIGN_AND_ENCRYPT).open();
    renew(&mut wire);
    // The client holds the new token back, as one does that has requests sealed already.
    let held = take_newest(&mut wire);
    for _ in 0..3 {
        wire.client.send(wire.now, b"old", &mut wire.to_server).unwrap();
        assert_eq!(wire.serve().len(), 1);
    }
    let mut old = Vec::new();
    wire.client.send(wire.now, b"late", &mut old).unwrap();
    wire.client.secure().tokens.add(held);
    // The numbers go on, the tokens do not go back.
    wire.to_server = old;
    assert_eq!(wire.serve().len(), 1);
    wire.client.send(wire.now, b"new", &mut wire.to_server).unwrap();
    assert_eq!(wire.serve().len(), 1);
    let used = u32_at(
        &{
            let mut out = Vec::new();
            wire.client.send(wire.now, b"again", &mut out).unwrap();
            wire.to_server = out.clone();
            out
        },
        12,
    );
    assert_eq!(wire.serve().len(), 1);
    assert_eq!(wire.server.secure().tokens.ids(), [used]);
}

#[test]
fn the_old_token_is_unknown_once_the_new_one_was_used() {
    let mut wire = Setup::new(SECURED[0], MessageSecurityMode::SIGN).open();
    renew(&mut wire);
    let held = take_newest(&mut wire);
    let mut late = Vec::new();
    // Sealed with the old token, numbered behind the next.
    wire.client.secure().outgoing.set_last(3);
    wire.client.send(wire.now, b"late", &mut late).unwrap();
    wire.client.secure().outgoing.set_last(2);
    wire.client.secure().tokens.add(held);
    wire.client.send(wire.now, b"new", &mut wire.to_server).unwrap();
    assert_eq!(wire.serve().len(), 1);
    assert_eq!(wire.refuse(&late).wire, StatusCode::BAD_SECURE_CHANNEL_TOKEN_UNKNOWN);
}

/// Takes the newest token away from the client.
fn take_newest(wire: &mut Wire) -> Token {
    wire.client.secure().tokens.pop().unwrap()
}

#[test]
fn a_token_is_accepted_a_quarter_of_its_lifetime_late_and_no_longer() {
    for (late, good) in [(12_499, true), (12_500, false)] {
        let mut setup = Setup::new(SECURED[1], MessageSecurityMode::SIGN);
        setup.lifetime = Duration::from_secs(10);
        let mut wire = setup.open();
        wire.client.send(wire.now, b"slow", &mut wire.to_server).unwrap();
        wire.now = wire.now.after(Duration::from_millis(late));
        if good {
            assert_eq!(wire.serve().len(), 1);
        } else {
            assert_eq!(wire.refuse(&[]).wire, StatusCode::BAD_SECURE_CHANNEL_TOKEN_UNKNOWN);
        }
    }
}

#[test]
fn when_the_old_token_expires_the_server_seals_with_the_new_one() {
    let mut setup = Setup::new(SECURED[1], MessageSecurityMode::SIGN);
    setup.lifetime = Duration::from_secs(10);
    let mut wire = setup.open();
    wire.now = wire.now.after(Duration::from_secs(8));
    renew(&mut wire);
    let new = wire.client.ids().unwrap().1;
    assert_ne!(token_of_answer(&mut wire, 1), new);
    wire.now = wire.now.after(Duration::from_secs(2));
    assert_eq!(token_of_answer(&mut wire, 1), new);
}

#[test]
fn a_flood_of_renewals_keeps_three_tokens() {
    let mut wire = Setup::none().open();
    for _ in 0..1_000 {
        wire.client.open(wire.now, &mut wire.to_server).unwrap();
        assert_eq!(wire.serve(), [Seen::Opened { renewed: true }]);
        assert_eq!(wire.receive(), [Seen::Opened { renewed: true }]);
        assert!(wire.server.secure().tokens.ids().len() <= 3);
    }
    wire.echo(b"still there");
}

pub(super) fn renewal(wire: &mut Wire, policy: SecurityPolicy, change: impl FnOnce(&mut Change)) -> Vec<u8> {
    let mut change_made = Change {
        policy,
        own: client_identity(),
        request: OpenSecureChannelRequest {
            request_type: SecurityTokenRequestType::RENEW,
            security_mode: MessageSecurityMode::SIGN_AND_ENCRYPT,
            client_nonce: ByteString::from(vec![9; 32]),
            requested_lifetime: 60_000,
            ..OpenSecureChannelRequest::default()
        },
    };
    change(&mut change_made);
    let chain = CertificateChain::parse(wire.identity.chain()).unwrap();
    let parties = Parties {
        own: &change_made.own,
        peer: PeerKey::of(&chain).unwrap(),
    };
    let secure = wire.client.secure();
    OpenChunk {
        policy: change_made.policy,
        channel_id: secure.channel_id,
        sequence_number: secure.outgoing.next(),
        request_id: 40,
        body: &encode_body(&change_made.request),
    }
    .seal(
        (!change_made.policy.is_none()).then_some(parties),
        &mut SystemRandom,
        65_536,
    )
    .unwrap()
}

pub(super) struct Change {
    policy: SecurityPolicy,
    own: std::sync::Arc<crate::OwnIdentity>,
    pub(super) request: OpenSecureChannelRequest,
}

#[test]
fn a_renewal_changes_neither_policy_nor_mode_nor_certificate_and_repeats_no_nonce() {
    let policy = SECURED[1];
    let open = || Setup::new(policy, MessageSecurityMode::SIGN_AND_ENCRYPT).open();
    // The unchanged one is good.
    let mut wire = open();
    wire.to_server = renewal(&mut wire, policy, |_| {});
    assert_eq!(wire.serve(), [Seen::Opened { renewed: true }]);
    // Its nonce again.
    let bytes = renewal(&mut wire, policy, |_| {});
    assert_eq!(wire.refuse(&bytes).wire, StatusCode::BAD_NONCE_INVALID);

    for other in [SecurityPolicy::None, SECURED[0], SECURED[2]] {
        let mut wire = open();
        let bytes = renewal(&mut wire, policy, |change| change.policy = other);
        assert_eq!(wire.refuse(&bytes).wire, StatusCode::BAD_SECURITY_POLICY_REJECTED);
    }
    let mut wire = open();
    let bytes = renewal(&mut wire, policy, |change| {
        change.request.security_mode = MessageSecurityMode::SIGN
    });
    assert_eq!(wire.refuse(&bytes).wire, StatusCode::BAD_SECURITY_MODE_REJECTED);
    let mut wire = open();
    let bytes = renewal(&mut wire, policy, |change| change.own = long_identity());
    let error = wire.refuse(&bytes);
    assert_eq!(error.wire, StatusCode::BAD_SECURITY_CHECKS_FAILED);
    assert_eq!(error.reason, StatusCode::BAD_CERTIFICATE_INVALID);
    let mut wire = open();
    let bytes = renewal(&mut wire, policy, |change| {
        change.request.request_type = SecurityTokenRequestType::ISSUE;
    });
    assert_eq!(wire.refuse(&bytes).wire, StatusCode::BAD_REQUEST_TYPE_INVALID);
}

#[test]
fn the_number_of_a_renewal_counts_too() {
    let mut wire = Setup::new(SECURED[1], MessageSecurityMode::SIGN_AND_ENCRYPT).open();
    wire.client.secure().outgoing.next();
    let bytes = renewal(&mut wire, SECURED[1], |_| {});
    let error = wire.refuse(&bytes);
    assert_eq!(error.wire, StatusCode::BAD_SECURITY_CHECKS_FAILED);
    assert_eq!(error.reason, StatusCode::BAD_SEQUENCE_NUMBER_INVALID);
}

/// What is sent while the renewal is worked on is numbered behind its response and leaves behind it.
#[test]
fn messages_sent_during_a_renewal_leave_behind_its_response() {
    for (policy, mode) in all_securities() {
        let mut wire = Setup::new(policy, mode).open();
        let request_id = wire.client.send(wire.now, b"request", &mut wire.to_server).unwrap();
        wire.client.open(wire.now, &mut wire.to_server).unwrap();
        wire.hold_work = true;
        assert_eq!(wire.serve().len(), 1);
        for answer in [&b"one"[..], b"two"] {
            wire.server
                .send(wire.now, request_id, answer, &mut wire.to_client)
                .unwrap();
            assert!(wire.to_client.is_empty());
        }
        assert_eq!(wire.run_held(), Seen::Opened { renewed: true });
        wire.server
            .send(wire.now, request_id, b"three", &mut wire.to_client)
            .unwrap();
        assert_eq!(
            wire.receive(),
            [
                Seen::Opened { renewed: true },
                Seen::Message(request_id, b"one".to_vec()),
                Seen::Message(request_id, b"two".to_vec()),
                Seen::Message(request_id, b"three".to_vec())
            ]
        );
    }
}
