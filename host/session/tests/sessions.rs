//! The session table: creating, activating, moving, closing, timing out, and who may use what where.

#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use backplane_session::{
    ChannelId, ChannelInfo, CloseReason, CreatedSession, Identity, IdentityKind, RandomUnavailable, SessionLimits,
    SessionParameters, Sessions, ValidatedSession, VerifiedUser,
};
use backplane_types::{ByteString, DateTime, Identifier, MessageSecurityMode, NodeId, Now, StatusCode, UaString};

type Random = Box<dyn FnMut(&mut [u8]) -> Result<(), RandomUnavailable>>;

struct Bench {
    now: Now,
    sessions: Sessions<Random>,
}

/// Numbers that never repeat.
fn counting() -> Random {
    let mut count = 0u64;
    Box::new(move |buffer| {
        count += 1;
        for (place, byte) in buffer.iter_mut().zip(count.to_le_bytes().iter().cycle()) {
            *place = *byte;
        }
        Ok(())
    })
}

fn bench(limits: SessionLimits) -> Bench {
    Bench {
        now: Now::new(Duration::from_secs(50), DateTime::from_ticks(133_000_000_000_000_000)),
        sessions: Sessions::new(limits, counting()).unwrap(),
    }
}

fn channel(id: u64) -> ChannelInfo {
    ChannelInfo {
        id: ChannelId(id),
        client_certificate: ByteString::from(&[1u8, 2, 3]),
        security_policy: UaString::from("policy"),
        security_mode: MessageSecurityMode::SIGN_AND_ENCRYPT,
    }
}

fn parameters() -> SessionParameters {
    SessionParameters {
        session_name: UaString::from("test"),
        client_application_uri: UaString::from("urn:client"),
        endpoint_url: UaString::from("opc.tcp://localhost"),
        client_nonce: ByteString::from(&[7u8; 32]),
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

impl Bench {
    fn create(&mut self, on: u64) -> CreatedSession {
        self.sessions.create(self.now, &channel(on), parameters()).unwrap()
    }

    fn activate(&mut self, token: &NodeId, on: u64, name: &str) -> Result<ByteString, StatusCode> {
        let check = self.sessions.begin_activate(self.now, token, &channel(on))?;
        let activated = self.sessions.complete_activate(self.now, check, user(name))?;
        Ok(activated.server_nonce)
    }

    fn active(&mut self, on: u64) -> NodeId {
        let token = token(&self.create(on));
        self.activate(&token, on, "ann").unwrap();
        token
    }

    fn validate(&mut self, token: &NodeId, on: u64) -> Result<ValidatedSession, StatusCode> {
        self.sessions.validate(self.now, token, ChannelId(on))
    }

    fn pass(&mut self, seconds: u64) {
        self.now = self.now.after(Duration::from_secs(seconds));
        self.sessions.handle_timeout(self.now);
    }

    fn closed(&mut self) -> Vec<CloseReason> {
        std::iter::from_fn(|| self.sessions.poll_closed())
            .map(|closed| {
                assert!(closed.session.is_closed());
                closed.reason
            })
            .collect()
    }
}

fn token(created: &CreatedSession) -> NodeId {
    created.session.authentication_token().clone()
}

#[test]
fn a_session_has_an_opaque_token_and_a_long_nonce() {
    let mut it = bench(SessionLimits::default());
    let (one, two) = (it.create(1), it.create(1));
    for created in [&one, &two] {
        assert!(created.server_nonce.bytes().len() >= 32);
        match &created.session.authentication_token().identifier {
            Identifier::Opaque(bytes) => assert_eq!(bytes.bytes().len(), 32),
            other => panic!("{other:?}"),
        }
    }
    assert_ne!(one.session.session_id(), two.session.session_id());
    assert_ne!(token(&one), token(&two));
    assert_ne!(one.server_nonce, two.server_nonce);
    assert_eq!(one.session.timeout(), Duration::from_secs(60));
}

#[test]
fn the_timeout_is_revised() {
    let mut it = bench(SessionLimits::default());
    for (requested, seconds) in [
        (0.0, 10),
        (-5.0, 10),
        (f64::NAN, 10),
        (1.0, 10),
        (f64::INFINITY, 3600),
        (1e300, 3600),
        (20_000.0, 20),
    ] {
        let parameters = SessionParameters {
            requested_timeout: requested,
            ..parameters()
        };
        let created = it.sessions.create(it.now, &channel(1), parameters).unwrap();
        assert_eq!(created.session.timeout().as_secs(), seconds, "{requested}");
    }
}

#[test]
fn a_secured_channel_needs_a_client_nonce() {
    let mut it = bench(SessionLimits::default());
    let short = SessionParameters {
        client_nonce: ByteString::from(&[7u8; 31]),
        ..parameters()
    };
    let refused = it.sessions.create(it.now, &channel(1), short.clone());
    assert_eq!(refused.err(), Some(StatusCode::BAD_NONCE_INVALID));
    let open = ChannelInfo {
        client_certificate: ByteString::NULL,
        security_mode: MessageSecurityMode::NONE,
        ..channel(1)
    };
    assert!(it.sessions.create(it.now, &open, short).is_ok());
}

#[test]
fn requests_are_accepted_on_the_activated_channel_only() {
    let mut it = bench(SessionLimits::default());
    let token = it.active(1);
    let valid = it.validate(&token, 1).unwrap();
    assert_eq!(valid.snapshot.identity.client_user_id, "ann");
    assert_eq!(
        it.validate(&token, 2).err(),
        Some(StatusCode::BAD_SECURE_CHANNEL_ID_INVALID)
    );
    let unknown = NodeId {
        namespace: 0,
        identifier: Identifier::Opaque(ByteString::from(&[9u8; 32])),
    };
    for bad in [unknown, NodeId::NULL, NodeId::numeric(0, 1), NodeId::string(0, "x")] {
        assert_eq!(it.validate(&bad, 1).err(), Some(StatusCode::BAD_SESSION_ID_INVALID));
        let activated = it.activate(&bad, 1, "ann");
        assert_eq!(activated, Err(StatusCode::BAD_SESSION_ID_INVALID));
    }
}

#[test]
fn a_request_before_activation_closes_the_session() {
    let mut it = bench(SessionLimits::default());
    let token = token(&it.create(1));
    let wrong_channel = it.validate(&token, 2).err();
    assert_eq!(wrong_channel, Some(StatusCode::BAD_SECURE_CHANNEL_ID_INVALID));
    assert_eq!(
        it.validate(&token, 1).err(),
        Some(StatusCode::BAD_SESSION_NOT_ACTIVATED)
    );
    assert_eq!(it.closed(), [CloseReason::UsedBeforeActivation]);
    assert_eq!(it.validate(&token, 1).err(), Some(StatusCode::BAD_SESSION_ID_INVALID));
}

#[test]
fn the_first_activation_comes_on_the_channel_of_create() {
    let mut it = bench(SessionLimits::default());
    let token = token(&it.create(1));
    assert_eq!(
        it.activate(&token, 2, "ann"),
        Err(StatusCode::BAD_SECURE_CHANNEL_ID_INVALID)
    );
    assert!(it.activate(&token, 1, "ann").is_ok());
}

#[test]
fn each_activation_has_a_new_nonce_and_a_used_one_is_refused() {
    let mut it = bench(SessionLimits::default());
    let created = it.create(1);
    let token = token(&created);
    let check = it.sessions.begin_activate(it.now, &token, &channel(1)).unwrap();
    assert_eq!(check.server_nonce, created.server_nonce);
    let raced = it.sessions.begin_activate(it.now, &token, &channel(1)).unwrap();
    let first = it.sessions.complete_activate(it.now, check, user("ann")).unwrap();
    assert_ne!(first.server_nonce, created.server_nonce);
    let refused = it.sessions.complete_activate(it.now, raced, user("eve"));
    assert_eq!(refused.err(), Some(StatusCode::BAD_NONCE_INVALID));
    let check = it.sessions.begin_activate(it.now, &token, &channel(1)).unwrap();
    assert_eq!(check.server_nonce, first.server_nonce);
    assert_eq!(it.validate(&token, 1).unwrap().snapshot.identity.client_user_id, "ann");
}

#[test]
fn a_failed_verification_leaves_the_session_as_it_was() {
    let mut it = bench(SessionLimits::default());
    let created = it.create(1);
    let token = token(&created);
    for _ in 0..3 {
        let check = it.sessions.begin_activate(it.now, &token, &channel(1)).unwrap();
        assert_eq!(check.server_nonce, created.server_nonce);
    }
    assert!(it.activate(&token, 1, "ann").is_ok());
}

#[test]
fn moving_to_another_channel_needs_the_same_certificate_security_and_user() {
    let mut it = bench(SessionLimits::default());
    let token = it.active(1);
    let others = [
        ChannelInfo {
            client_certificate: ByteString::from(&[1u8, 2, 4]),
            ..channel(2)
        },
        ChannelInfo {
            client_certificate: ByteString::NULL,
            ..channel(2)
        },
        ChannelInfo {
            security_mode: MessageSecurityMode::SIGN,
            ..channel(2)
        },
        ChannelInfo {
            security_policy: UaString::from("weaker"),
            ..channel(2)
        },
    ];
    for other in others {
        let refused = it.sessions.begin_activate(it.now, &token, &other).err();
        assert_eq!(refused, Some(StatusCode::BAD_SECURITY_CHECKS_FAILED), "{other:?}");
    }
    let refused = it.activate(&token, 2, "eve");
    assert_eq!(refused, Err(StatusCode::BAD_IDENTITY_CHANGE_NOT_SUPPORTED));
    assert!(it.validate(&token, 1).is_ok());
    let check = it.sessions.begin_activate(it.now, &token, &channel(2)).unwrap();
    assert!(check.moves_channel());
    let moved = it.sessions.complete_activate(it.now, check, user("ann")).unwrap();
    assert_eq!(moved.previous.unwrap().channel, ChannelId(1));
    assert!(it.validate(&token, 2).is_ok());
    assert_eq!(
        it.validate(&token, 1).err(),
        Some(StatusCode::BAD_SECURE_CHANNEL_ID_INVALID)
    );
}

#[test]
fn null_and_empty_certificates_differ() {
    let mut it = bench(SessionLimits::default());
    let with = |id, certificate| ChannelInfo {
        client_certificate: certificate,
        ..channel(id)
    };
    let null = with(1, ByteString::NULL);
    let created = it.sessions.create(it.now, &null, parameters()).unwrap();
    let token = token(&created);
    let check = it.sessions.begin_activate(it.now, &token, &null).unwrap();
    it.sessions.complete_activate(it.now, check, user("ann")).unwrap();
    let empty = with(2, ByteString::from(Vec::new()));
    let refused = it.sessions.begin_activate(it.now, &token, &empty).err();
    assert_eq!(refused, Some(StatusCode::BAD_SECURITY_CHECKS_FAILED));
}

#[test]
fn the_user_may_change_on_the_same_channel_and_locales_stay() {
    let mut it = bench(SessionLimits::default());
    let token = token(&it.create(1));
    let locales = |snapshot: &[UaString]| snapshot.iter().map(UaString::to_string).collect::<Vec<_>>();
    let check = it.sessions.begin_activate(it.now, &token, &channel(1)).unwrap();
    let german = VerifiedUser {
        locales: vec![UaString::from("de-DE")],
        ..user("ann")
    };
    let first = it.sessions.complete_activate(it.now, check, german).unwrap();
    assert!(first.previous.is_none());
    it.activate(&token, 1, "bob").unwrap();
    let snapshot = it.validate(&token, 1).unwrap().snapshot;
    assert_eq!(snapshot.identity.client_user_id, "bob");
    assert_eq!(locales(&snapshot.locales), ["de-DE"]);
    let check = it.sessions.begin_activate(it.now, &token, &channel(1)).unwrap();
    let many = VerifiedUser {
        locales: vec![UaString::from("x"); 17],
        ..user("bob")
    };
    let refused = it.sessions.complete_activate(it.now, check, many).err();
    assert_eq!(refused, Some(StatusCode::BAD_TOO_MANY_OPERATIONS));
}

#[test]
fn a_cached_session_is_current_until_something_changes() {
    let mut it = bench(SessionLimits::default());
    let token = it.active(1);
    let other = it.active(1);
    let cached = it.validate(&token, 1).unwrap();
    let bytes = cached.handle.token_bytes().to_vec();
    assert!(cached.is_current(&bytes));
    let foreign = it.validate(&other, 1).unwrap().handle.token_bytes().to_vec();
    assert!(!cached.is_current(&foreign));
    assert!(!cached.is_current(&[]));
    it.activate(&token, 1, "ann").unwrap();
    assert!(!cached.is_current(&bytes), "activated again");
    let renewed = ValidatedSession::of(&cached.handle, ChannelId(1)).unwrap();
    assert!(renewed.is_current(&bytes));
    it.sessions.close(&token, ChannelId(1), true).unwrap();
    assert!(!renewed.is_current(&bytes), "closed");
    let refused = ValidatedSession::of(&cached.handle, ChannelId(1)).err();
    assert_eq!(refused, Some(StatusCode::BAD_SESSION_ID_INVALID));
}

#[test]
fn close_is_for_the_bound_channel() {
    let mut it = bench(SessionLimits::default());
    let fresh = token(&it.create(1));
    let wrong = Some(StatusCode::BAD_SECURE_CHANNEL_ID_INVALID);
    assert_eq!(it.sessions.close(&fresh, ChannelId(2), true).err(), wrong);
    assert!(it.sessions.close(&fresh, ChannelId(1), true).is_ok());
    let active = it.active(1);
    it.activate(&active, 2, "ann").unwrap();
    assert_eq!(it.sessions.close(&active, ChannelId(1), true).err(), wrong);
    assert!(it.sessions.close(&active, ChannelId(2), false).is_ok());
    let again = it.sessions.close(&active, ChannelId(2), false).err();
    assert_eq!(again, Some(StatusCode::BAD_SESSION_ID_INVALID));
    let by_client = |delete_subscriptions| CloseReason::Client { delete_subscriptions };
    assert_eq!(it.closed(), [by_client(true), by_client(false)]);
    assert!(it.sessions.is_empty());
    assert_eq!(it.sessions.poll_timeout(), None);
}

#[test]
fn connecting_and_closing_200_times_leaves_room() {
    let mut it = bench(SessionLimits {
        max_sessions: 5,
        ..SessionLimits::default()
    });
    for _ in 0..200 {
        let token = it.active(1);
        it.sessions.close(&token, ChannelId(1), true).unwrap();
    }
    assert!(it.sessions.is_empty());
}

#[test]
fn a_full_table_drops_the_oldest_session_that_was_never_activated() {
    let mut it = bench(SessionLimits {
        max_sessions: 3,
        ..SessionLimits::default()
    });
    let active = it.active(1);
    let oldest = token(&it.create(1));
    let newer = token(&it.create(1));
    let newest = token(&it.create(1));
    assert_eq!(it.closed(), [CloseReason::NeverActivated]);
    assert_eq!(it.activate(&oldest, 1, "ann"), Err(StatusCode::BAD_SESSION_ID_INVALID));
    it.activate(&newer, 1, "ann").unwrap();
    it.activate(&newest, 1, "ann").unwrap();
    let refused = it.sessions.create(it.now, &channel(1), parameters()).err();
    assert_eq!(refused, Some(StatusCode::BAD_TOO_MANY_SESSIONS));
    assert!(it.validate(&active, 1).is_ok());
    it.sessions.close(&active, ChannelId(1), true).unwrap();
    it.create(1);
}

#[test]
fn a_flood_of_create_session_leaves_the_table_bounded() {
    let mut it = bench(SessionLimits {
        max_sessions: 100,
        ..SessionLimits::default()
    });
    let good = it.active(1);
    for _ in 0..10_000 {
        it.create(2);
    }
    assert_eq!(it.sessions.len(), 100);
    assert!(it.validate(&good, 1).is_ok());
    it.pass(30);
    assert_eq!(it.sessions.len(), 1);
}

#[test]
fn a_session_times_out_without_requests() {
    let mut it = bench(SessionLimits::default());
    let token = it.active(1);
    for _ in 0..10 {
        it.pass(59);
        it.validate(&token, 1).unwrap();
    }
    assert_eq!(it.sessions.len(), 1);
    it.pass(59);
    assert_eq!(it.sessions.len(), 1);
    let wake = it.sessions.poll_timeout().unwrap();
    it.now = it.now.after(wake - it.now.mono);
    it.sessions.handle_timeout(it.now);
    assert_eq!(it.closed(), [CloseReason::TimedOut]);
    assert_eq!(it.validate(&token, 1).err(), Some(StatusCode::BAD_SESSION_ID_INVALID));
}

#[test]
fn a_timeout_is_counted_from_the_last_request() {
    let mut it = bench(SessionLimits::default());
    let token = it.active(1);
    let created = it.now.mono;
    it.pass(37);
    let handle = it.validate(&token, 1).unwrap().handle;
    // A request only notes its time; the timer finds out and goes to sleep again.
    assert_eq!(it.sessions.poll_timeout(), Some(created + handle.timeout()));
    it.pass(23);
    let end = handle.last_activity() + handle.timeout();
    assert_eq!(it.sessions.poll_timeout(), Some(end));
    it.now = it.now.after(end - it.now.mono - Duration::from_nanos(1));
    it.sessions.handle_timeout(it.now);
    assert!(!handle.is_closed());
    it.now = it.now.after(Duration::from_nanos(1));
    it.sessions.handle_timeout(it.now);
    assert_eq!(it.closed(), [CloseReason::TimedOut]);
}

#[test]
fn requests_that_use_the_handle_alone_keep_the_session() {
    let mut it = bench(SessionLimits::default());
    let token = it.active(1);
    let cached = it.validate(&token, 1).unwrap();
    for _ in 0..10 {
        it.pass(50);
        cached.handle.touch(it.now);
    }
    assert!(!cached.handle.is_closed());
}

#[test]
fn a_session_with_outstanding_requests_does_not_time_out() {
    let mut it = bench(SessionLimits::default());
    let token = it.active(1);
    let handle = it.validate(&token, 1).unwrap().handle;
    let guard = handle.enter(it.now);
    let second = handle.enter(it.now);
    assert_eq!(handle.outstanding(), 2);
    drop(second);
    for _ in 0..100 {
        it.pass(61);
    }
    assert_eq!(it.sessions.len(), 1);
    drop(guard);
    it.pass(59);
    it.pass(2);
    assert_eq!(it.closed(), [CloseReason::TimedOut]);
}

#[test]
fn a_session_that_is_never_activated_has_little_time() {
    let mut it = bench(SessionLimits::default());
    it.create(1);
    it.pass(29);
    assert_eq!(it.sessions.len(), 1);
    it.pass(1);
    assert_eq!(it.closed(), [CloseReason::NeverActivated]);
}

#[test]
fn a_closed_channel_takes_its_unactivated_sessions_along() {
    let mut it = bench(SessionLimits::default());
    let active = it.active(1);
    it.create(1);
    it.create(2);
    it.sessions.channel_closed(ChannelId(1));
    assert_eq!(it.closed(), [CloseReason::NeverActivated]);
    assert_eq!(it.sessions.len(), 2);
    it.activate(&active, 3, "ann").unwrap();
    assert!(it.validate(&active, 3).is_ok());
}

#[test]
fn without_random_bytes_there_is_no_session() {
    let none: Random = Box::new(|_| Err(RandomUnavailable));
    let mut sessions = Sessions::new(SessionLimits::default(), none).unwrap();
    let now = Now::default();
    let refused = sessions.create(now, &channel(1), parameters()).err();
    assert_eq!(refused, Some(StatusCode::BAD_INTERNAL_ERROR));
    assert!(sessions.is_empty());
    let wrong = SessionLimits {
        max_sessions: 0,
        ..SessionLimits::default()
    };
    assert!(Sessions::new(wrong, counting()).is_err());
}

#[test]
fn handles_are_shared_between_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<ValidatedSession>();
    shared::<backplane_session::RequestGuard>();
    fn sent<T: Send + 'static>() {}
    sent::<backplane_session::Subscriptions<u32>>();
}

#[test]
fn terminate_is_the_servers_decision() {
    let mut it = bench(SessionLimits::default());
    let token = it.active(1);
    let handle = it.validate(&token, 1).unwrap().handle;
    assert!(it.sessions.terminate(&handle));
    assert!(!it.sessions.terminate(&handle));
    assert_eq!(it.closed(), [CloseReason::Server]);
}
