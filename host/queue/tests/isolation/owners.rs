//! Who is who: keys, classes, and what grants nothing.

use std::sync::Arc;

use backplane_queue::isolation::{
    Binding, Caller, Class, Evidence, Identity, Intent, Isolation, Mapping, Options, OwnerCache, OwnerError,
    PeerAddress, Profile, Protection, Reason, Stage,
};

use crate::support::{established, exhaust, of_profile, options, provider, refusal, user};

pub(crate) fn evidence() -> Evidence {
    Evidence {
        channel: 7,
        peer: Some(PeerAddress::from("192.0.2.1".parse::<std::net::IpAddr>().unwrap())),
        protection: Protection::Sign,
        policy: Some(Arc::from("policy")),
        certificate: Some(Arc::from(&b"certificate"[..])),
        upstream: None,
    }
}

pub(crate) fn binding(user: Option<&str>) -> Binding {
    Binding {
        session: 1,
        activation: 1,
        user: user.map(Arc::from),
    }
}

fn caller<'a>(binding: Option<&'a Binding>, intent: Intent) -> Caller<'a> {
    Caller {
        peer: Some("address"),
        application: Some("certificate"),
        binding,
        intent,
    }
}

#[test]
fn keys_have_their_name_space() {
    let isolation = of_profile(Profile::TrustedReservations);
    let built_in = |identity| isolation.built_in(identity, Class::Established).unwrap();
    assert_eq!(&**built_in(Identity::Peer(Some("a"))).key(), "peer:a");
    assert_eq!(&**built_in(Identity::Peer(None)).key(), "peer:unknown");
    assert_eq!(&**built_in(Identity::Application("a")).key(), "application:a");
    assert_eq!(&**built_in(Identity::User("a")).key(), "user:a");
    assert_eq!(&**isolation.mapped("a", Class::Reconnect).unwrap().key(), "mapped:a");
    assert_eq!(&**isolation.trusted("plant").unwrap().key(), "trusted:plant");
    let continuity = isolation.continuity(&built_in(Identity::User("a"))).unwrap();
    assert_eq!(&**continuity.key(), "continuity:user:a");
}

#[test]
fn a_mapped_key_is_never_a_built_in_one() {
    let isolation = of_profile(Profile::FairShare);
    let mapped = isolation.mapped("user:a", Class::Established).unwrap();
    assert_ne!(mapped, established(&isolation, "a"));
    assert_ne!(mapped.key(), established(&isolation, "a").key());
}

#[test]
fn keys_that_are_not_valid_are_errors() {
    let isolation = of_profile(Profile::TrustedReservations);
    let long = "k".repeat(257);
    let too_long = OwnerError::KeyTooLong {
        length: 257,
        maximum: 256,
    };
    assert_eq!(
        isolation.mapped("", Class::Established).err(),
        Some(OwnerError::EmptyKey)
    );
    assert_eq!(isolation.mapped(&long, Class::Established).err(), Some(too_long));
    assert!(isolation.mapped(&long[1..], Class::Established).is_ok());
    assert_eq!(isolation.trusted("").err(), Some(OwnerError::EmptyKey));
    assert_eq!(isolation.trusted(&long).err(), Some(too_long));
    let built_in = |identity| isolation.built_in(identity, Class::Established).err();
    assert_eq!(built_in(Identity::User("")), Some(OwnerError::EmptyKey));
    assert_eq!(built_in(Identity::Application(&long)), Some(too_long));
}

#[test]
fn a_short_key_length_does_not_lock_out_built_in_identities() {
    let isolation = provider(&Options {
        max_owner_key_length: 4,
        ..options(Profile::FairShare)
    });
    assert!(isolation.mapped("12345", Class::Established).is_err());
    let hash = "0123456789012345678901234567890123456789abc=";
    assert!(isolation.built_in(Identity::User(hash), Class::Established).is_ok());
}

#[test]
fn a_trusted_owner_must_be_configured() {
    let isolation = of_profile(Profile::TrustedReservations);
    assert!(isolation.mapped("plant", Class::Trusted).unwrap().trusted_index() == Some(0));
    for key in ["Plant", "plant ", "trusted:plant", "other"] {
        let error = isolation.mapped(key, Class::Trusted).err();
        assert_eq!(error, Some(OwnerError::Unprovisioned), "{key}");
    }
    let balanced = of_profile(Profile::Balanced);
    let error = balanced.mapped("plant", Class::Trusted).err();
    assert_eq!(error, Some(OwnerError::Unprovisioned));
}

#[test]
fn the_name_of_a_trusted_owner_without_its_class_is_not_trusted() {
    let isolation = of_profile(Profile::TrustedReservations);
    let owner = isolation.mapped("plant", Class::Established).unwrap();
    assert_eq!((owner.trusted_index(), &**owner.key()), (None, "mapped:plant"));
}

#[test]
fn built_in_identities_are_never_trusted_or_bootstrap() {
    let isolation = of_profile(Profile::TrustedReservations);
    for class in [Class::Trusted, Class::Bootstrap] {
        let error = isolation.built_in(Identity::Application("plant"), class).err();
        assert_eq!(error, Some(OwnerError::WrongClass(class)));
    }
}

#[test]
fn weights_and_limits_come_from_the_configuration() {
    let mut options = options(Profile::TrustedReservations);
    options.default_weight = 2;
    options.trusted_owners[0].weight = 9;
    let isolation = provider(&options);
    assert_eq!(isolation.mapped("a", Class::Bootstrap).unwrap().weight(), 2);
    assert_eq!(established(&isolation, "a").weight(), 2);
    assert_eq!(isolation.trusted("plant").unwrap().weight(), 9);
    assert_eq!(established(&isolation, "a").hard_limit(Stage::Connection), 20);
}

#[test]
fn forged_and_foreign_owners_are_refused() {
    let (ours, theirs) = (of_profile(Profile::Balanced), of_profile(Profile::Balanced));
    let foreign = established(&theirs, "a");
    for stage in Stage::ALL {
        assert_eq!(refusal(&ours, stage, &foreign, 1), Some(Reason::InvalidOwner));
        assert_eq!(ours.rejections(stage, Reason::InvalidOwner), 1);
    }
    assert_eq!(ours.continuity(&foreign).err(), Some(OwnerError::Foreign));
    assert_eq!(ours.reassembly_owner(&foreign, false).err(), Some(OwnerError::Foreign));
    assert_ne!(foreign, established(&ours, "a"));
}

#[test]
fn a_port_and_another_spelling_of_an_address_give_no_identity() {
    let address = |text: &str| {
        let socket: std::net::SocketAddr = text.parse().unwrap();
        PeerAddress::from(socket.ip())
    };
    let plain = address("192.0.2.1:4840");
    assert_eq!(plain, address("192.0.2.1:50000"));
    assert_eq!(plain, address("[::ffff:192.0.2.1]:4840"));
    assert_eq!(plain.bytes(), address("[::ffff:c000:201]:1").bytes());
    assert_ne!(plain, address("192.0.2.2:4840"));
    assert_eq!(plain.address().to_string(), "192.0.2.1");
    assert_eq!(address("[2001:db8::1]:1").address().to_string(), "2001:db8::1");
}

#[test]
fn a_certificate_without_security_gives_no_identity() {
    assert!(evidence().proved_certificate().is_some());
    let unsigned = Evidence {
        protection: Protection::None,
        ..evidence()
    };
    let no_policy = Evidence {
        policy: None,
        ..evidence()
    };
    assert_eq!(unsigned.proved_certificate(), None);
    assert_eq!(no_policy.proved_certificate(), None);
    let isolation = of_profile(Profile::Balanced);
    let unproved = Caller {
        application: None,
        ..caller(None, Intent::Work)
    };
    let owner = isolation.request_owner(None, &unproved).unwrap();
    assert_eq!(&**owner.key(), "peer:address");
}

#[test]
fn a_classifier_sees_no_certificate_without_a_policy() {
    let no_policy = Evidence {
        policy: None,
        protection: Protection::None,
        ..evidence()
    };
    assert_eq!(no_policy.for_classifier().certificate, None);
    assert!(no_policy.certificate.is_some());
    assert!(evidence().for_classifier().certificate.is_some());
}

#[test]
fn applications_behind_one_address_are_separate_owners() {
    let isolation = of_profile(Profile::Balanced);
    let owner = |application| {
        let caller = Caller {
            application: Some(application),
            ..caller(None, Intent::Work)
        };
        isolation.request_owner(None, &caller).unwrap()
    };
    assert_eq!(&**owner("one").key(), "application:one");
    assert_ne!(owner("one"), owner("two"));
    assert_eq!(owner("one"), owner("one"));
}

#[test]
fn a_user_is_one_owner_on_all_its_channels() {
    let isolation = of_profile(Profile::Balanced);
    let binding = binding(Some("operator"));
    let owner = |application| {
        let caller = Caller {
            application,
            ..caller(Some(&binding), Intent::Work)
        };
        isolation.request_owner(None, &caller).unwrap()
    };
    assert_eq!(&**owner(Some("one")).key(), "user:operator");
    assert_eq!(owner(Some("one")), owner(None));
}

#[test]
fn only_a_live_session_promotes_a_request() {
    let live = binding(Some("operator"));
    for (binding, intent, class) in [
        (Some(&live), Intent::Work, Class::Established),
        (Some(&live), Intent::Establish, Class::Reconnect),
        (Some(&live), Intent::End, Class::Control),
        (None, Intent::Work, Class::Established),
        (None, Intent::Establish, Class::Established),
        (None, Intent::End, Class::Established),
    ] {
        assert_eq!(caller(binding, intent).class(), class, "{binding:?} {intent:?}");
    }
}

#[test]
fn an_anonymous_session_is_established() {
    let isolation = of_profile(Profile::TrustedReservations);
    let anonymous = binding(None);
    let owner = isolation
        .request_owner(None, &caller(Some(&anonymous), Intent::Work))
        .unwrap();
    assert_eq!(
        (owner.class(), &**owner.key()),
        (Class::Established, "application:certificate")
    );
}

#[test]
fn a_classifiers_opinion_goes_before_the_built_in_rules() {
    let isolation = of_profile(Profile::TrustedReservations);
    let live = binding(Some("operator"));
    let mapping = |class| Some(Mapping { key: "plant", class });
    let request = caller(Some(&live), Intent::End);
    let owner = isolation.request_owner(mapping(Class::Trusted), &request).unwrap();
    assert_eq!((owner.class(), &**owner.key()), (Class::Trusted, "trusted:plant"));
    let owner = isolation
        .connection_owner(mapping(Class::Bootstrap), Some("address"))
        .unwrap();
    assert_eq!((owner.class(), &**owner.key()), (Class::Bootstrap, "mapped:plant"));
    let owner = isolation.connection_owner(None, Some("address")).unwrap();
    assert_eq!((owner.class(), &**owner.key()), (Class::Established, "peer:address"));
    let owner = isolation.connection_owner(None, None).unwrap();
    assert_eq!(&**owner.key(), "peer:unknown");
}

#[test]
fn a_mapping_that_is_not_valid_fails_the_request() {
    let isolation = of_profile(Profile::TrustedReservations);
    let request = caller(None, Intent::Work);
    for (key, class) in [("", Class::Established), ("stranger", Class::Trusted)] {
        assert!(isolation.request_owner(Some(Mapping { key, class }), &request).is_err());
        assert!(isolation.connection_owner(Some(Mapping { key, class }), None).is_err());
    }
}

#[test]
fn a_continuity_owner_is_valid_for_incomplete_messages_only() {
    let isolation = of_profile(Profile::Balanced);
    let owner = isolation.reassembly_owner(&established(&isolation, "a"), true).unwrap();
    assert_eq!(
        (owner.class(), owner.only_stage()),
        (Class::Reconnect, Some(Stage::ReassemblyBytes))
    );
    for stage in Stage::ALL {
        let expected = (stage != Stage::ReassemblyBytes).then_some(Reason::InvalidOwner);
        assert_eq!(refusal(&isolation, stage, &owner, 1), expected, "{stage}");
    }
}

#[test]
fn a_continuity_owner_may_use_the_floor_of_those_that_reconnect() {
    let isolation = of_profile(Profile::Balanced);
    let base = established(&isolation, "a");
    let hog = established(&isolation, "hog");
    let shared = isolation.plan().stage(Stage::ReassemblyBytes).shared;
    let _all = isolation.try_acquire(Stage::ReassemblyBytes, &hog, shared).unwrap();
    assert_eq!(
        refusal(&isolation, Stage::ReassemblyBytes, &base, 1),
        Some(Reason::Capacity)
    );
    let owner = isolation.reassembly_owner(&base, true).unwrap();
    assert_eq!(refusal(&isolation, Stage::ReassemblyBytes, &owner, 1), None);
}

#[test]
fn only_an_established_owner_on_a_channel_with_a_session_continues() {
    let isolation = of_profile(Profile::Balanced);
    let continues = |owner| {
        let charged = isolation.reassembly_owner(&owner, true).unwrap();
        charged != owner
    };
    assert!(continues(established(&isolation, "a")));
    assert!(!continues(user(&isolation, "a", Class::Control)));
    assert!(!continues(user(&isolation, "a", Class::Reconnect)));
    assert!(!continues(isolation.mapped("a", Class::Established).unwrap()));
    let owner = established(&isolation, "a");
    assert_eq!(isolation.reassembly_owner(&owner, false).unwrap(), owner);
    let mapped = isolation.mapped("a", Class::Established).unwrap();
    let error = isolation.continuity(&mapped).err();
    assert_eq!(error, Some(OwnerError::WrongClass(Class::Established)));
}

#[test]
fn without_a_floor_nothing_continues() {
    let isolation = of_profile(Profile::FairShare);
    let owner = established(&isolation, "a");
    assert_eq!(isolation.reassembly_owner(&owner, true).unwrap(), owner);
}

#[test]
fn an_owner_does_not_show_its_key() {
    let isolation = of_profile(Profile::Balanced);
    assert!(!format!("{:?}", established(&isolation, "secret")).contains("secret"));
    let mapping = Mapping {
        key: "secret",
        class: Class::Bootstrap,
    };
    assert!(!format!("{mapping:?}").contains("secret"));
}

#[test]
fn a_cache_answers_only_what_fits() {
    let isolation = of_profile(Profile::TrustedReservations);
    let live = binding(Some("operator"));
    let mut cache = OwnerCache::default();
    let callers = [
        caller(None, Intent::Work),
        caller(Some(&live), Intent::Work),
        caller(Some(&live), Intent::End),
        caller(Some(&live), Intent::Establish),
    ];
    let mappings = [
        None,
        Some(Mapping {
            key: "plant",
            class: Class::Trusted,
        }),
        Some(Mapping {
            key: "plant",
            class: Class::Bootstrap,
        }),
        Some(Mapping {
            key: "operator",
            class: Class::Established,
        }),
    ];
    for _ in 0..3 {
        for caller in &callers {
            for mapping in mappings {
                let cached = cache.request_owner(&isolation, mapping, caller).unwrap();
                assert_eq!(cached, isolation.request_owner(mapping, caller).unwrap());
            }
        }
    }
    let unknown = Some(Mapping {
        key: "stranger",
        class: Class::Trusted,
    });
    assert!(cache.request_owner(&isolation, unknown, &callers[0]).is_err());
    let other = of_profile(Profile::TrustedReservations);
    let owner = cache.request_owner(&other, None, &callers[0]).unwrap();
    assert!(other.issued(&owner));
    let peer = cache.connection_owner(&isolation, None, None).unwrap();
    assert_eq!(&**peer.key(), "peer:unknown");
}

#[test]
fn a_restart_makes_a_new_provider_from_the_new_configuration() {
    let old = of_profile(Profile::Balanced);
    let owner = established(&old, "a");
    let (held, _) = exhaust(&old, Stage::Connection, &owner);
    let new = of_profile(Profile::FairShare);
    old.close();
    assert_eq!(new.usage(Stage::Connection), 0);
    assert_eq!(refusal(&new, Stage::Connection, &owner, 1), Some(Reason::InvalidOwner));
    assert_eq!(refusal(&old, Stage::Connection, &owner, 1), Some(Reason::Closed));
    let (all, _) = exhaust(&new, Stage::Connection, &established(&new, "a"));
    assert_eq!((all.len(), held.len()), (20, 18));
    drop(held);
    assert_eq!((old.usage(Stage::Connection), new.usage(Stage::Connection)), (0, 20));
}

#[test]
fn isolation_is_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    fn sent<T: Send>() {}
    shared::<Isolation>();
    shared::<backplane_queue::isolation::Owner>();
    sent::<backplane_queue::isolation::Lease>();
}
