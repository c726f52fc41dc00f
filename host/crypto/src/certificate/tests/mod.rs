//! Making and reading certificates, whole and damaged.

mod validation;

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
