//! The classifier as a host runs it.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use backplane_sdk::testing::{FakeClassifier, PeerEvidence};
use backplane_sdk::{Identity, Standing};
use classifier_certificate::ByCertificate;

const SETTINGS: &str = r#"{ "certificates": [
    { "thumbprint": "0101010101010101010101010101010101010101", "key": "by-sha1" },
    { "thumbprint": "02:02:02:02:02:02:02:02:02:02:02:02:02:02:02:02:02:02:02:02:02:02:02:02:02:02:02:02:02:02:02:AB", "key": "by-sha256" },
    { "application-uri": "urn:acme:historian", "key": "by-uri", "standing": "established" }
] }"#;

fn start(json: &str) -> Result<FakeClassifier<ByCertificate>, String> {
    FakeClassifier::start(&[("", json)]).map_err(|fault| fault.detail)
}

fn sha256() -> Vec<u8> {
    let mut sha256 = vec![2; 32];
    sha256[31] = 0xab;
    sha256
}

fn peer(sha1: &[u8], sha256: &[u8], uri: &str) -> PeerEvidence {
    PeerEvidence {
        security_mode: 2,
        application_uri: Some(uri.to_owned()),
        certificate_sha1: Some(sha1.to_vec()),
        certificate_sha256: Some(sha256.to_vec()),
        certificate: Some(vec![0x30]),
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
fn a_thumbprint_counts_before_the_uri() {
    let classifier = start(SETTINGS).unwrap();
    let historian = "urn:acme:historian";
    for (peer, expected) in [
        (peer(&[1; 20], &[9; 32], historian), of("by-sha1", Standing::Trusted)),
        (peer(&[9; 20], &sha256(), historian), of("by-sha256", Standing::Trusted)),
        (peer(&[9; 20], &[9; 32], historian), of("by-uri", Standing::Established)),
        (peer(&[9; 20], &[9; 32], "urn:acme:Historian"), None),
    ] {
        assert_eq!(classifier.established(&peer).unwrap(), expected);
        // Before the channel is open nothing is known, whatever this peer brings later.
        assert_eq!(classifier.ingress(&peer).unwrap(), None);
    }
}

#[test]
fn without_a_certificate_there_is_no_opinion() {
    let classifier = start(SETTINGS).unwrap();
    assert_eq!(classifier.established(&PeerEvidence::default()), Ok(None));
}

#[test]
fn settings_that_cannot_be_used_are_refused_in_words() {
    let one = |entry: &str| format!(r#"{{ "certificates": [ {{ {entry} }} ] }}"#);
    let sha1 = "01".repeat(20);
    for (json, problem) in [
        ("{}".to_owned(), "[settings] missing field `certificates`"),
        (
            one(r#""key": "a""#),
            "certificate 1: either thumbprint or application-uri",
        ),
        (
            one(&format!(
                r#""key": "a", "thumbprint": "{sha1}", "application-uri": "u""#
            )),
            "either thumbprint or",
        ),
        (
            one(&format!(r#""key": "", "thumbprint": "{sha1}""#)),
            "key: 1 to 256 bytes, not 0",
        ),
        (
            one(&format!(r#""key": "a", "thumbprint": "{sha1}", "standing": "vip""#)),
            r#""vip" is not one of"#,
        ),
        (one(r#""key": "a", "thumbprint": "0101""#), "40 hexadecimal digits"),
        (
            one(&format!(r#""key": "a", "thumbprint": "{}""#, &sha1[..39])),
            "40 hexadecimal digits",
        ),
        (
            one(&format!(r#""key": "a", "thumbprint": "{}x""#, &sha1[..39])),
            "40 hexadecimal digits",
        ),
        (
            one(r#""key": "a", "application-uri": """#),
            "application-uri: 1 to 4096 bytes",
        ),
        (one(r#""key": "a", "uri": "x""#), "unknown field `uri`"),
        (
            format!(
                r#"{{ "certificates": [ {{ "key": "a", "thumbprint": "{sha1}" }}, {{ "key": "b", "thumbprint": "{sha1}" }} ] }}"#
            ),
            "certificate 2: it is there twice",
        ),
    ] {
        let said = start(&json).map(|_| ()).unwrap_err();
        assert!(said.contains(problem), "{problem:?} is not in {said:?}");
        assert!(!said.contains('\n') && !said.contains(" at line "), "{said}");
    }
}
