//! The classifier as a host runs it.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use backplane_sdk::testing::{FakeClassifier, PeerEvidence};
use backplane_sdk::{Identity, Standing};
use classifier_network::ByNetwork;

const SETTINGS: &str = r#"{ "networks": [
    { "network": "10.0.0.0/8", "key": "plant", "standing": "established" },
    { "network": "10.1.0.0/16", "key": "line1" },
    { "network": "2001:db8:1::/48", "key": "line1" },
    { "network": "10.1.2.3", "key": "panel", "standing": "control" }
] }"#;

fn start(json: &str) -> Result<FakeClassifier<ByNetwork>, String> {
    FakeClassifier::start(&[("", json)]).map_err(|fault| fault.detail)
}

fn peer(address: &str) -> PeerEvidence {
    PeerEvidence {
        address: Some(address.to_owned()),
        ..PeerEvidence::default()
    }
}

fn of(key: &str, standing: Standing) -> Option<Identity> {
    Some(Identity {
        key: key.to_owned(),
        standing,
    })
}

#[test]
fn the_innermost_network_names_the_owner_before_and_after_the_channel_is_open() {
    let classifier = start(SETTINGS).unwrap();
    for (address, expected) in [
        ("10.2.0.1", of("plant", Standing::Established)),
        ("10.1.2.4", of("line1", Standing::Trusted)),
        ("::ffff:10.1.2.4", of("line1", Standing::Trusted)),
        ("2001:db8:1::9", of("line1", Standing::Trusted)),
        ("10.1.2.3", of("panel", Standing::Control)),
        ("192.0.2.1", None),
        ("2001:db8:2::9", None),
    ] {
        assert_eq!(classifier.ingress(&peer(address)).unwrap(), expected, "{address}");
        assert_eq!(classifier.established(&peer(address)).unwrap(), expected, "{address}");
    }
}

#[test]
fn without_an_address_there_is_no_opinion() {
    let classifier = start(SETTINGS).unwrap();
    assert_eq!(classifier.ingress(&PeerEvidence::default()), Ok(None));
    assert!(classifier.ingress(&peer("localhost")).is_err());
}

#[test]
fn settings_that_cannot_be_used_are_refused_in_words() {
    let long = format!(
        r#"{{ "networks": [ {{ "network": "10.0.0.1", "key": "{}" }} ] }}"#,
        "k".repeat(257)
    );
    let many = (0..1_025).map(|n| format!(r#"{{ "network": "10.0.{}.{}", "key": "k" }}"#, n / 256, n % 256));
    let many = format!(r#"{{ "networks": [{}] }}"#, many.collect::<Vec<_>>().join(","));
    for (json, problem) in [
        ("{}", "[settings] missing field `networks`"),
        (
            r#"{ "networks": 5 }"#,
            "[settings] invalid type: integer `5`, expected a sequence",
        ),
        (r#"{ "networks": [], "network": 1 }"#, "unknown field `network`"),
        (
            r#"{ "networks": [ { "network": "10.0.0.1" } ] }"#,
            "missing field `key`",
        ),
        (
            r#"{ "networks": [ { "network": "10.0.0.1", "key": "a", "class": "x" } ] }"#,
            "unknown field `class`",
        ),
        (
            r#"{ "networks": [ { "network": "10.0.0.1", "key": "" } ] }"#,
            r#"network "10.0.0.1": key: 1 to 256 bytes"#,
        ),
        (&long, "key: 1 to 256 bytes, not 257"),
        (
            r#"{ "networks": [ { "network": "10.0.0.1/8", "key": "a" } ] }"#,
            r#"network "10.0.0.1/8": it has bits"#,
        ),
        (
            r#"{ "networks": [ { "network": "10.0.0.1", "key": "a", "standing": "vip" } ] }"#,
            r#"standing: "vip" is not one of"#,
        ),
        (
            r#"{ "networks": [ { "network": "10.0.0.1", "key": "a" }, { "network": "::ffff:10.0.0.1", "key": "b" } ] }"#,
            "10.0.0.1/32 is there twice",
        ),
        (&many, "networks: more than 1024"),
    ] {
        let said = start(json).map(|_| ()).unwrap_err();
        assert!(said.contains(problem), "{problem:?} is not in {said:?}");
        assert!(!said.contains('\n') && !said.contains(" at line "), "{said}");
    }
}
