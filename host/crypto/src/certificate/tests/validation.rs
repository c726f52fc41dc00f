//! Every step of validation, with a certificate that fails it.

use super::*;

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
    let sha1 = Certificate::parse(
        &crate::encoding::pem_blocks(include_bytes!("../../../tests/keys/sha1.pem")).unwrap()[0].der,
    )
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
        include_bytes!("../../../tests/keys/pss.pem").as_slice(),
        include_bytes!("../../../tests/keys/sha384.pem"),
        include_bytes!("../../../tests/keys/sha512.pem"),
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
