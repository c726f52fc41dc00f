//! Reading certificates, and every step of validation with a certificate that fails it.

use std::time::{Duration, Instant};

use backplane_types::StatusCode;
use der::asn1::{ObjectIdentifier, OctetString};
use x509_cert::ext::pkix::name::GeneralName;

use super::create::{Template, distinguished_name, validity};
use super::*;
use crate::keys::PrivateKey;
use crate::policy::SecurityPolicy;
use crate::random::SystemRandom;
use crate::testing::*;

const POLICY: SecurityPolicy = SecurityPolicy::Basic256Sha256;
const CLIENT_AUTH: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.2");
const SERVER_AUTH: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1");

/// Trust lists that own what a [`TrustStoreView`] borrows.
#[derive(Default)]
struct Lists {
    trusted: Vec<Certificate>,
    issuers: Vec<Certificate>,
    crls: Vec<RevocationList>,
}

impl Lists {
    fn trusting(certificate: &Certificate) -> Self {
        Self {
            trusted: vec![certificate.clone()],
            ..Self::default()
        }
    }

    fn check(&self, chain: &[&Certificate], rules: &ValidationRules<'_>) -> Result<Validated, CertificateError> {
        self.check_at(chain, rules, today())
    }

    fn check_at(
        &self,
        chain: &[&Certificate],
        rules: &ValidationRules<'_>,
        when: backplane_types::DateTime,
    ) -> Result<Validated, CertificateError> {
        let blob: Vec<u8> = chain
            .iter()
            .flat_map(|certificate| certificate.der().to_vec())
            .collect();
        let view = TrustStoreView {
            trusted: &self.trusted,
            trusted_crls: &self.crls,
            issuers: &self.issuers,
            issuer_crls: &[],
        };
        validate(&CertificateChain::parse(&blob)?, &view, when, rules)
    }

    fn status(&self, chain: &[&Certificate], rules: &ValidationRules<'_>) -> StatusCode {
        self.check(chain, rules)
            .map_or_else(|error| error.status(), |_| StatusCode::GOOD)
    }
}

fn rules() -> ValidationRules<'static> {
    ValidationRules::new(Purpose::ClientApplication, POLICY)
}

/// A root, an authority below it and an application below that, with current lists.
struct Three {
    root: Certificate,
    middle: Certificate,
    leaf: Certificate,
    lists: Lists,
}

fn three() -> Three {
    let root = issue(authority("root"), key_a(), None, key_a());
    let middle = issue(authority("middle"), key_b(), Some(&root), key_a());
    let leaf = issue(application("leaf"), key_c(), Some(&middle), key_b());
    let crls = vec![
        revocation_list(&root, key_a(), &[], today().saturating_sub(DAY), DAY * 30),
        revocation_list(&middle, key_b(), &[], today().saturating_sub(DAY), DAY * 30),
    ];
    let lists = Lists {
        trusted: vec![root.clone()],
        issuers: vec![middle.clone()],
        crls,
    };
    Three {
        root,
        middle,
        leaf,
        lists,
    }
}

#[test]
fn a_created_certificate_says_what_was_asked() {
    let certificate = self_signed(key_a());
    assert_eq!(certificate.application_uri(), Some(URI));
    assert_eq!(certificate.common_name().as_deref(), Some("Test, the \"application\""));
    assert!(certificate.subject().contains("Müller & Söhne"));
    assert_eq!(certificate.dns_names(), ["host", "localhost"]);
    assert_eq!(certificate.ip_addresses(), [IpAddr::from([127, 0, 0, 1])]);
    assert_eq!(certificate.not_before(), today().saturating_sub(DAY));
    assert_eq!(certificate.not_after(), today().saturating_add(DAY * 364));
    let usage = certificate.key_usage().unwrap();
    for expected in [
        KeyUsage::DIGITAL_SIGNATURE,
        KeyUsage::NON_REPUDIATION,
        KeyUsage::KEY_ENCIPHERMENT,
        KeyUsage::DATA_ENCIPHERMENT,
        KeyUsage::KEY_CERT_SIGN,
    ] {
        assert!(usage.contains(expected));
    }
    assert!(!usage.contains(KeyUsage::CRL_SIGN));
    assert_eq!(
        certificate.extended_key_usage(),
        Some(ExtendedKeyUsage {
            server_auth: true,
            client_auth: true
        })
    );
    assert!(!certificate.is_authority() && certificate.is_self_signed());
    assert_eq!(*certificate.public_key().unwrap(), key_a().public_key());
    assert_eq!(certificate.thumbprint(), crate::sha1(certificate.der()));
    assert_eq!(certificate.thumbprint_hex().len(), 40);
    assert_eq!(certificate.serial_number().len(), 16);
    assert_ne!(certificate.serial_number(), self_signed(key_a()).serial_number());
    assert_eq!(
        certificate.extensions().subject_key,
        certificate.extensions().authority_key
    );
}

#[test]
fn creating_makes_a_key_and_a_certificate_for_it() {
    let mut request = request();
    // The smallest key, because a debug build takes its time.
    request.key_bits = 1024;
    let new = create_application_certificate(&request, &mut SystemRandom).unwrap();
    let key = PrivateKey::from_pem_or_der(new.private_key_pem.as_bytes()).unwrap();
    assert_eq!(*new.certificate.public_key().unwrap(), key.public_key());
    assert!(new.private_key_pem.starts_with("-----BEGIN PRIVATE KEY-----"));
    request.application_uri = "urn:höst".to_owned();
    assert!(matches!(
        create_application_certificate(&request, &mut SystemRandom),
        Err(CreateError::Name { .. })
    ));
    request.application_uri = String::new();
    assert!(matches!(
        create_application_certificate(&request, &mut SystemRandom),
        Err(CreateError::Name { .. })
    ));
}

#[test]
fn a_trusted_self_signed_certificate_is_accepted() {
    let certificate = self_signed(key_a());
    let lists = Lists::trusting(&certificate);
    for policy in SecurityPolicy::ALL {
        for purpose in [Purpose::ClientApplication, Purpose::ServerApplication, Purpose::User] {
            let rules = ValidationRules::new(purpose, policy)
                .with_application_uri(URI)
                .with_host_name("LOCALHOST");
            let validated = lists.check(&[&certificate], &rules).unwrap();
            assert_eq!(validated.chain, std::slice::from_ref(&certificate));
            assert_eq!(validated.suppressed, []);
        }
    }
}

#[test]
fn an_unknown_certificate_is_untrusted_and_told_nothing() {
    let certificate = self_signed(key_a());
    let error = Lists::trusting(&self_signed(key_b()))
        .check(&[&certificate], &rules())
        .unwrap_err();
    assert_eq!(error.status(), StatusCode::BAD_CERTIFICATE_UNTRUSTED);
    assert_eq!(error.peer_status(), StatusCode::BAD_SECURITY_CHECKS_FAILED);
    // An issuer list is for building chains, not for trusting.
    let lists = Lists {
        issuers: vec![certificate.clone()],
        ..Lists::default()
    };
    assert_eq!(
        lists.status(&[&certificate], &rules()),
        StatusCode::BAD_CERTIFICATE_UNTRUSTED
    );
}

#[test]
fn validity_includes_both_ends() {
    let certificate = self_signed(key_a());
    let lists = Lists::trusting(&certificate);
    let second = Duration::from_secs(1);
    let at = |when| {
        lists
            .check_at(&[&certificate], &rules(), when)
            .map_or_else(|e| e.status(), |_| StatusCode::GOOD)
    };
    assert_eq!(at(certificate.not_before()), StatusCode::GOOD);
    assert_eq!(at(certificate.not_after()), StatusCode::GOOD);
    assert_eq!(
        at(certificate.not_before().saturating_sub(second)),
        StatusCode::BAD_CERTIFICATE_TIME_INVALID
    );
    assert_eq!(
        at(certificate.not_after().saturating_add(second)),
        StatusCode::BAD_CERTIFICATE_TIME_INVALID
    );
    let late = certificate.not_after().saturating_add(second);
    let accepting = rules().with_suppressed(Suppress {
        time: true,
        ..Suppress::default()
    });
    let validated = lists.check_at(&[&certificate], &accepting, late).unwrap();
    assert_eq!(validated.suppressed.len(), 1);
    assert_eq!(
        validated.suppressed[0].status(),
        StatusCode::BAD_CERTIFICATE_TIME_INVALID
    );
}

#[test]
fn uri_and_host_must_match() {
    let certificate = self_signed(key_a());
    let lists = Lists::trusting(&certificate);
    for uri in [
        "",
        "urn:host:test%20application",
        "urn:host:Test application",
        "urn:other",
    ] {
        let error = lists
            .check(&[&certificate], &rules().with_application_uri(uri))
            .unwrap_err();
        assert_eq!(error.status(), StatusCode::BAD_CERTIFICATE_URI_INVALID);
        assert!(error.to_string().contains(URI));
    }
    let hosts = [
        ("host", true),
        ("Host", true),
        ("127.0.0.1", true),
        ("other", false),
        ("127.0.0.2", false),
        ("", false),
    ];
    for (host, accepted) in hosts {
        let status = lists.status(&[&certificate], &rules().with_host_name(host));
        let expected = if accepted {
            StatusCode::GOOD
        } else {
            StatusCode::BAD_CERTIFICATE_HOST_NAME_INVALID
        };
        assert_eq!(status, expected, "{host}");
    }
    assert!(host_matches("*.plant.example", "a.plant.example"));
    assert!(!host_matches("*.plant.example", "a.b.plant.example"));
    assert!(!host_matches("*.plant.example", "plant.example"));
    let no_uri = issue(
        Template {
            names: Vec::new(),
            ..application("x")
        },
        key_a(),
        None,
        key_a(),
    );
    assert!(no_uri.check_application_uri("").is_err());
    let suppress = Suppress {
        application_uri: true,
        host_name: true,
        ..Suppress::default()
    };
    let rules = rules()
        .with_application_uri("urn:x")
        .with_host_name("x")
        .with_suppressed(suppress);
    assert_eq!(lists.check(&[&certificate], &rules).unwrap().suppressed.len(), 2);
}

#[test]
fn usage_is_checked_for_the_purpose() {
    let with = |usage: Option<KeyUsage>, extended: &[ObjectIdentifier]| {
        let template = Template {
            key_usage: usage,
            extended_key_usage: extended.to_vec(),
            ..application("usage")
        };
        issue(template, key_a(), None, key_a())
    };
    let usual = KeyUsage::DIGITAL_SIGNATURE
        .union(KeyUsage::KEY_ENCIPHERMENT)
        .union(KeyUsage::DATA_ENCIPHERMENT);
    let (client, server, user) = (Purpose::ClientApplication, Purpose::ServerApplication, Purpose::User);
    for (certificate, purpose, accepted) in [
        (with(None, &[]), client, true),
        (with(Some(usual), &[CLIENT_AUTH]), client, true),
        (with(Some(usual), &[CLIENT_AUTH]), server, false),
        (with(Some(usual), &[SERVER_AUTH]), client, false),
        (with(Some(usual), &[SERVER_AUTH]), server, true),
        (with(Some(KeyUsage::DIGITAL_SIGNATURE), &[]), client, false),
        (with(Some(KeyUsage::DIGITAL_SIGNATURE), &[]), user, true),
        (with(Some(KeyUsage::DATA_ENCIPHERMENT), &[]), client, false),
        (with(Some(KeyUsage::DATA_ENCIPHERMENT), &[]), user, false),
    ] {
        let rules = ValidationRules::new(purpose, POLICY);
        let expected = if accepted {
            StatusCode::GOOD
        } else {
            StatusCode::BAD_CERTIFICATE_USE_NOT_ALLOWED
        };
        assert_eq!(
            Lists::trusting(&certificate).status(&[&certificate], &rules),
            expected,
            "{purpose:?}"
        );
    }
    // Old peers call themselves an authority in their self-signed certificate.
    for path_length in [None, Some(0)] {
        let template = Template {
            authority: true,
            path_length,
            ..application("old")
        };
        let old = issue(template, key_a(), None, key_a());
        assert_eq!(Lists::trusting(&old).status(&[&old], &rules()), StatusCode::GOOD);
    }
}

#[test]
fn keys_and_signatures_must_suit_the_policy() {
    let short = issue(application("short"), key_1024(), None, key_1024());
    let lists = Lists::trusting(&short);
    assert_eq!(
        lists.status(&[&short], &rules()),
        StatusCode::BAD_CERTIFICATE_POLICY_CHECK_FAILED
    );
    let none = ValidationRules::new(Purpose::ClientApplication, SecurityPolicy::None);
    assert_eq!(lists.status(&[&short], &none), StatusCode::GOOD);
    let long = issue(application("long"), key_4096(), None, key_4096());
    assert_eq!(Lists::trusting(&long).status(&[&long], &rules()), StatusCode::GOOD);
    let sha1 =
        Certificate::parse(&crate::encoding::pem_blocks(include_bytes!("../../tests/keys/sha1.pem")).unwrap()[0].der)
            .unwrap();
    let lists = Lists::trusting(&sha1);
    let when = sha1.not_before();
    let error = lists.check_at(&[&sha1], &rules(), when).unwrap_err();
    assert_eq!(error.status(), StatusCode::BAD_CERTIFICATE_POLICY_CHECK_FAILED);
    let accepting = rules().with_suppressed(Suppress {
        weak_signature: true,
        ..Suppress::default()
    });
    assert_eq!(lists.check_at(&[&sha1], &accepting, when).unwrap().suppressed.len(), 1);
}

#[test]
fn pss_and_longer_hashes_are_verified() {
    for pem in [
        include_bytes!("../../tests/keys/pss.pem").as_slice(),
        include_bytes!("../../tests/keys/sha384.pem"),
        include_bytes!("../../tests/keys/sha512.pem"),
    ] {
        let certificate = Certificate::parse(&crate::encoding::pem_blocks(pem).unwrap()[0].der).unwrap();
        assert!(certificate.is_self_signed());
        let lists = Lists::trusting(&certificate);
        assert!(
            lists
                .check_at(&[&certificate], &rules(), certificate.not_before())
                .is_ok()
        );
    }
}

#[test]
fn chains_are_completed_from_the_lists_or_from_what_came_along() {
    let Three {
        root,
        middle,
        leaf,
        lists,
    } = three();
    let validated = lists.check(&[&leaf], &rules()).unwrap();
    assert_eq!(validated.chain, [leaf.clone(), middle.clone(), root.clone()]);
    let without_issuers = Lists {
        issuers: Vec::new(),
        crls: lists.crls.clone(),
        trusted: vec![root.clone()],
    };
    assert_eq!(without_issuers.status(&[&leaf, &middle], &rules()), StatusCode::GOOD);
    assert_eq!(
        without_issuers.status(&[&leaf, &root, &middle], &rules()),
        StatusCode::GOOD
    );
    assert_eq!(
        without_issuers.status(&[&leaf], &rules()),
        StatusCode::BAD_CERTIFICATE_CHAIN_INCOMPLETE
    );
    // Any link may be the trusted one, but the chain must reach a root all the same.
    for trusted in [&leaf, &middle, &root] {
        let lists = Lists {
            trusted: vec![trusted.clone()],
            issuers: vec![middle.clone(), root.clone()],
            crls: lists.crls.clone(),
        };
        assert_eq!(lists.status(&[&leaf], &rules()), StatusCode::GOOD);
    }
    let leaf_only = Lists::trusting(&leaf);
    assert_eq!(
        leaf_only.status(&[&leaf], &rules()),
        StatusCode::BAD_CERTIFICATE_CHAIN_INCOMPLETE
    );
    let untrusted = Lists {
        issuers: vec![middle, root],
        crls: lists.crls,
        ..Lists::default()
    };
    assert_eq!(
        untrusted.status(&[&leaf], &rules()),
        StatusCode::BAD_CERTIFICATE_UNTRUSTED
    );
}

#[test]
fn a_forged_issuer_does_not_help() {
    let Three { root, leaf, lists, .. } = three();
    // Right names, wrong key: the signature of the leaf does not verify with it.
    let forged = issue(
        Template {
            subject: distinguished_name("middle", "").unwrap(),
            ..authority("middle")
        },
        key_3072(),
        None,
        key_3072(),
    );
    let lists = Lists {
        trusted: vec![root, forged.clone()],
        issuers: Vec::new(),
        crls: lists.crls,
    };
    let status = lists.status(&[&leaf, &forged], &rules());
    assert_eq!(status, StatusCode::BAD_CERTIFICATE_CHAIN_INCOMPLETE);
    let mut der = self_signed(key_a()).der().to_vec();
    let last = der.len() - 1;
    der[last] ^= 1;
    let tampered = Certificate::parse(&der).unwrap();
    assert!(!tampered.is_self_signed());
    assert_eq!(
        Lists::trusting(&tampered).status(&[&tampered], &rules()),
        StatusCode::BAD_CERTIFICATE_INVALID
    );
}

#[test]
fn issuers_must_be_allowed_to_issue() {
    let root = issue(authority("root"), key_a(), None, key_a());
    let no_usage = Template {
        key_usage: None,
        ..authority("middle")
    };
    let wrong_usage = Template {
        key_usage: Some(KeyUsage::DIGITAL_SIGNATURE),
        ..authority("middle")
    };
    let no_authority = Template {
        authority: false,
        ..authority("middle")
    };
    for template in [no_usage, wrong_usage, no_authority] {
        let middle = issue(template, key_b(), Some(&root), key_a());
        let leaf = issue(application("leaf"), key_c(), Some(&middle), key_b());
        let lists = Lists {
            trusted: vec![root.clone()],
            issuers: vec![middle],
            crls: Vec::new(),
        };
        assert_eq!(
            lists.status(&[&leaf], &rules()),
            StatusCode::BAD_CERTIFICATE_ISSUER_USE_NOT_ALLOWED
        );
    }
    let root = issue(
        Template {
            path_length: Some(0),
            ..authority("root")
        },
        key_a(),
        None,
        key_a(),
    );
    let middle = issue(authority("middle"), key_b(), Some(&root), key_a());
    let leaf = issue(application("leaf"), key_c(), Some(&middle), key_b());
    let lists = Lists {
        trusted: vec![root],
        issuers: vec![middle],
        crls: Vec::new(),
    };
    assert_eq!(
        lists.status(&[&leaf], &rules()),
        StatusCode::BAD_CERTIFICATE_ISSUER_USE_NOT_ALLOWED
    );
    // An authority's certificate is not an application's.
    let Three { middle, lists, .. } = three();
    assert_eq!(
        lists.status(&[&middle], &rules()),
        StatusCode::BAD_CERTIFICATE_USE_NOT_ALLOWED
    );
}

#[test]
fn an_application_certificate_issues_nothing() {
    // Our own certificates carry keyCertSign as Part 6 asks, but cA is false.
    let application_certificate = self_signed(key_a());
    let leaf = issue(application("leaf"), key_b(), Some(&application_certificate), key_a());
    let lists = Lists::trusting(&application_certificate);
    assert_eq!(
        lists.status(&[&leaf], &rules()),
        StatusCode::BAD_CERTIFICATE_ISSUER_USE_NOT_ALLOWED
    );
}

#[test]
fn expired_issuers_are_told_apart_from_an_expired_leaf() {
    let past = validity(today().saturating_sub(DAY * 30), DAY * 10).unwrap();
    let root = issue(
        Template {
            validity: past,
            ..authority("root")
        },
        key_a(),
        None,
        key_a(),
    );
    let leaf = issue(application("leaf"), key_b(), Some(&root), key_a());
    let crls = vec![revocation_list(&root, key_a(), &[], today(), DAY)];
    let lists = Lists {
        trusted: vec![root],
        crls,
        ..Lists::default()
    };
    assert_eq!(
        lists.status(&[&leaf], &rules()),
        StatusCode::BAD_CERTIFICATE_ISSUER_TIME_INVALID
    );
    let suppress = Suppress {
        issuer_time: true,
        ..Suppress::default()
    };
    assert_eq!(
        lists.status(&[&leaf], &rules().with_suppressed(suppress)),
        StatusCode::GOOD
    );
}

#[test]
fn revocation_lists_decide() {
    let Three {
        root,
        middle,
        leaf,
        mut lists,
    } = three();
    let good = lists.crls.clone();
    let yesterday = today().saturating_sub(DAY);
    let cases: [(&str, Vec<RevocationList>, StatusCode); 7] = [
        ("none", vec![], StatusCode::BAD_CERTIFICATE_REVOCATION_UNKNOWN),
        (
            "none for the issuer",
            vec![good[1].clone()],
            StatusCode::BAD_CERTIFICATE_ISSUER_REVOCATION_UNKNOWN,
        ),
        (
            "leaf revoked",
            vec![
                good[0].clone(),
                revocation_list(&middle, key_b(), &[&leaf], yesterday, DAY * 30),
            ],
            StatusCode::BAD_CERTIFICATE_REVOKED,
        ),
        (
            "issuer revoked",
            vec![
                revocation_list(&root, key_a(), &[&middle], yesterday, DAY * 30),
                good[1].clone(),
            ],
            StatusCode::BAD_CERTIFICATE_ISSUER_REVOKED,
        ),
        (
            "outdated",
            vec![
                good[0].clone(),
                revocation_list(&middle, key_b(), &[], today().saturating_sub(DAY * 9), DAY),
            ],
            StatusCode::BAD_CERTIFICATE_REVOCATION_UNKNOWN,
        ),
        (
            "revoked in an outdated list",
            vec![
                good[0].clone(),
                revocation_list(&middle, key_b(), &[&leaf], today().saturating_sub(DAY * 9), DAY),
            ],
            StatusCode::BAD_CERTIFICATE_REVOKED,
        ),
        (
            "signed by somebody else",
            vec![
                good[0].clone(),
                revocation_list(&middle, key_c(), &[], yesterday, DAY * 30),
            ],
            StatusCode::BAD_CERTIFICATE_REVOCATION_UNKNOWN,
        ),
    ];
    for (what, crls, expected) in cases {
        lists.crls = crls;
        assert_eq!(lists.status(&[&leaf], &rules()), expected, "{what}");
    }
    lists.crls.clear();
    let suppress = Suppress {
        revocation_unknown: true,
        issuer_revocation_unknown: true,
        ..Suppress::default()
    };
    assert_eq!(
        lists
            .check(&[&leaf], &rules().with_suppressed(suppress))
            .unwrap()
            .suppressed
            .len(),
        2
    );
    assert_eq!((good[0].len(), good[0].is_empty()), (0, true));
}

#[test]
fn loops_of_issuers_end() {
    // A issued by B, and B issued by A: CVE-2022-37013.
    let a0 = issue(authority("A"), key_a(), None, key_a());
    let b = issue(authority("B"), key_b(), Some(&a0), key_a());
    let a = issue(authority("A"), key_a(), Some(&b), key_b());
    let started = Instant::now();
    for lists in [
        Lists::default(),
        Lists {
            issuers: vec![a.clone(), b.clone()],
            ..Lists::default()
        },
    ] {
        assert_eq!(
            lists.status(&[&a, &b, &a], &rules()),
            StatusCode::BAD_CERTIFICATE_CHAIN_INCOMPLETE
        );
        let leaf = issue(application("leaf"), key_c(), Some(&b), key_b());
        assert_eq!(
            lists.status(&[&leaf, &b, &a], &rules()),
            StatusCode::BAD_CERTIFICATE_CHAIN_INCOMPLETE
        );
    }
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn many_issuers_of_one_name_are_not_all_tried() {
    let root = issue(authority("root"), key_a(), None, key_a());
    let mut leaf = application("leaf");
    leaf.subject = distinguished_name("leaf", "").unwrap();
    let leaf = issue(leaf, key_c(), Some(&root), key_a());
    // The same key, so that the key identifiers fit, and many of them in front of the right one.
    let others = (0..100).map(|_| issue(authority("root"), key_a(), Some(&root), key_b()));
    let lists = Lists {
        trusted: others.collect(),
        ..Lists::default()
    };
    let error = lists.check(&[&leaf], &rules()).unwrap_err();
    assert_eq!(error.peer_status(), StatusCode::BAD_SECURITY_CHECKS_FAILED);
}

#[test]
fn long_chains_are_refused_before_they_are_parsed() {
    let certificate = self_signed(key_a());
    let thousand = certificate.der().repeat(1000);
    let started = Instant::now();
    for _ in 0..100 {
        let error = CertificateChain::parse(&thousand).unwrap_err();
        assert_eq!(error.status(), StatusCode::BAD_CERTIFICATE_INVALID);
    }
    // Parsing 100,000 certificates would take seconds.
    assert!(started.elapsed() < Duration::from_secs(1));
    let most = Limits::DEFAULT.chain_length;
    assert!(CertificateChain::parse(&certificate.der().repeat(most)).is_ok());
    assert!(CertificateChain::parse(&certificate.der().repeat(most + 1)).is_err());
}

#[test]
fn garbage_is_an_error_wherever_it_is() {
    let certificate = self_signed(key_a());
    let good = certificate.der();
    for garbage in [&[0u8][..], &[0x30], &[0x30, 0], b"garbage", &good[..good.len() - 1]] {
        let blob = [good, garbage].concat();
        assert!(CertificateChain::parse(&blob).is_err(), "{garbage:?}");
        assert!(Certificate::parse(&blob).is_err(), "{garbage:?}");
        assert!(CertificateChain::parse(garbage).is_err(), "{garbage:?}");
    }
    assert!(CertificateChain::parse(&[]).is_err());
    let mut long = vec![0x30, 0x83, 0, 0x80, 0];
    long.resize(40_000, 0);
    assert!(Certificate::parse(&long).is_err());
    let chain = CertificateChain::parse(&good.repeat(2)).unwrap();
    assert_eq!((chain.leaf(), chain.issuers().len()), (&certificate, 1));
    assert_eq!(chain.to_der(), good.repeat(2));
}

#[test]
fn mutations_never_panic() {
    let Three {
        middle, leaf, lists, ..
    } = three();
    let rules = rules().with_application_uri(URI).with_host_name("host");
    let der = leaf.der();
    let mut parsed = 0;
    for at in 0..der.len() {
        for flip in [0x01, 0x80, 0xFF] {
            let mut mutant = der.to_vec();
            mutant[at] ^= flip;
            if let Ok(certificate) = Certificate::parse(&mutant) {
                parsed += 1;
                // Only some are validated: every one of them costs a debug build some RSA.
                if parsed % 16 == 0 {
                    assert!(
                        lists.check(&[&certificate, &middle], &rules).is_err(),
                        "byte {at} ^ {flip}"
                    );
                }
            }
        }
        assert!(Certificate::parse(&der[..at]).is_err());
    }
    let crl = lists.crls[0].der();
    for at in 0..crl.len() {
        let mut mutant = crl.to_vec();
        mutant[at] ^= 0x41;
        let _ = RevocationList::parse(&mutant);
        assert!(RevocationList::parse(&crl[..at]).is_err());
    }
}

#[test]
fn huge_keys_are_refused_before_any_arithmetic() {
    let int = |bytes: &[u8]| rsa::BoxedUint::from_be_slice(bytes, 8 * bytes.len() as u32).unwrap();
    for (modulus, exponent) in [(2048, 3), (256, 256)] {
        let key = rsa::PublicKey::new_unchecked(int(&vec![0xFF; modulus]), int(&vec![0xFF; exponent]));
        let key = crate::PublicKey { inner: key };
        let huge = application("huge")
            .issue(&key, None, key_a(), &mut SystemRandom)
            .unwrap();
        assert!(huge.public_key().is_err());
        let started = Instant::now();
        let error = Lists::trusting(&huge).check(&[&huge], &rules()).unwrap_err();
        assert_eq!(error.status(), StatusCode::BAD_CERTIFICATE_INVALID);
        assert!(started.elapsed() < Duration::from_millis(200));
    }
}

#[test]
fn strange_alternative_names_are_kept_as_they_are() {
    let uri = "urn:PC 1:My App";
    let names = vec![
        GeneralName::UniformResourceIdentifier(der::asn1::Ia5String::new(uri).unwrap()),
        GeneralName::IpAddress(OctetString::new([0u8; 16]).unwrap()),
        GeneralName::IpAddress(OctetString::new([1u8; 5]).unwrap()),
    ];
    let certificate = issue(
        Template {
            names,
            ..application("x")
        },
        key_a(),
        None,
        key_a(),
    );
    assert!(certificate.check_application_uri(uri).is_ok());
    assert_eq!(certificate.ip_addresses(), [IpAddr::from([0u8; 16])]);
    assert!(certificate.check_host_name("[::]").is_ok());
    assert_eq!(printable("a\nb\u{7f}"), "a\u{FFFD}b\u{FFFD}");
    // UTF-8 where IA5 belongs, put in by hand: the same length, so that the DER stays whole.
    let mut der = certificate.der().to_vec();
    let at = der
        .windows(uri.len())
        .position(|window| window == uri.as_bytes())
        .unwrap();
    der[at + 4..at + 6].copy_from_slice("ü".as_bytes());
    let foreign = Certificate::parse(&der).unwrap();
    assert!(foreign.check_application_uri("urn:ü 1:My App").is_ok());
}

#[test]
fn files_may_be_pem_or_der_with_one_or_more() {
    let Three {
        middle, leaf, lists, ..
    } = three();
    let read = |bytes: &[u8]| crate::certificates_from_pem_or_der(bytes).map(|list| list.len()).ok();
    assert_eq!(read(leaf.der()), Some(1));
    assert_eq!(read(&[leaf.der(), middle.der()].concat()), Some(2));
    assert_eq!(read(leaf.to_pem().as_bytes()), Some(1));
    assert_eq!(
        read(format!("# note\n{}{}", leaf.to_pem(), middle.to_pem()).as_bytes()),
        Some(2)
    );
    assert_eq!(read(b""), None);
    assert_eq!(
        read(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
        None
    );
    let crl = &lists.crls[0];
    let pem = crate::encoding::to_pem("X509 CRL", crl.der());
    for bytes in [crl.der(), pem.as_bytes()] {
        assert_eq!(crate::revocation_lists_from_pem_or_der(bytes).unwrap().len(), 1);
    }
    assert!(crate::revocation_lists_from_pem_or_der(leaf.der()).is_err());
    assert!(crate::revocation_lists_from_pem_or_der(leaf.to_pem().as_bytes()).is_err());
}
