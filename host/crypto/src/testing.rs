//! What the unit tests of this crate share: fixed keys, a small certification authority, and its lists.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::OnceLock;
use std::time::Duration;

use backplane_types::DateTime;
use der::asn1::{BitString, Ia5String};
use der::{Decode, Encode};
use x509_cert::ext::pkix::name::GeneralName;

use crate::certificate::create::{Template, distinguished_name, time, validity};
use crate::certificate::{ApplicationCertificateRequest, Certificate, KeyUsage, RevocationList, self_sign};
use crate::keys::PrivateKey;
use crate::policy::AsymmetricSignature;
use crate::random::SystemRandom;

pub(crate) const URI: &str = "urn:host:test application";
pub(crate) const DAY: Duration = Duration::from_secs(86_400);

macro_rules! fixed_key {
    ($name:ident, $file:literal) => {
        pub(crate) fn $name() -> &'static PrivateKey {
            static KEY: OnceLock<PrivateKey> = OnceLock::new();
            KEY.get_or_init(|| PrivateKey::from_pem_or_der(include_bytes!(concat!("../tests/keys/", $file))).unwrap())
        }
    };
}

fixed_key!(key_a, "rsa2048-a.pem");
fixed_key!(key_b, "rsa2048-b.pem");
fixed_key!(key_c, "rsa2048-c.pem");
fixed_key!(key_1024, "rsa1024.pem");
fixed_key!(key_3072, "rsa3072.pem");
fixed_key!(key_4096, "rsa4096.pem");

/// The day all tests happen on.
pub(crate) fn today() -> DateTime {
    DateTime::from_unix_nanos(1_900_000_000_000_000_000)
}

pub(crate) fn request() -> ApplicationCertificateRequest {
    ApplicationCertificateRequest {
        application_uri: URI.to_owned(),
        common_name: "Test, the \"application\"".to_owned(),
        organization: "Müller & Söhne".to_owned(),
        dns_names: vec!["host".to_owned(), "localhost".to_owned()],
        ip_addresses: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
        key_bits: 2048,
        not_before: today().saturating_sub(DAY),
        validity: DAY * 365,
    }
}

pub(crate) fn self_signed(key: &PrivateKey) -> Certificate {
    self_sign(&request(), key, &mut SystemRandom).unwrap()
}

/// A template of an application certificate with everything right.
pub(crate) fn application(name: &str) -> Template {
    Template {
        subject: distinguished_name(name, "").unwrap(),
        names: vec![GeneralName::UniformResourceIdentifier(Ia5String::new(URI).unwrap())],
        key_usage: Some(
            KeyUsage::DIGITAL_SIGNATURE
                .union(KeyUsage::KEY_ENCIPHERMENT)
                .union(KeyUsage::DATA_ENCIPHERMENT),
        ),
        extended_key_usage: Vec::new(),
        authority: false,
        path_length: None,
        validity: validity(today().saturating_sub(DAY), DAY * 365).unwrap(),
    }
}

/// A template of an authority with everything right.
pub(crate) fn authority(name: &str) -> Template {
    Template {
        names: Vec::new(),
        key_usage: Some(KeyUsage::KEY_CERT_SIGN.union(KeyUsage::CRL_SIGN)),
        authority: true,
        ..application(name)
    }
}

pub(crate) fn issue(
    template: Template,
    subject: &PrivateKey,
    issuer: Option<&Certificate>,
    signer: &PrivateKey,
) -> Certificate {
    template
        .issue(&subject.public_key(), issuer, signer, &mut SystemRandom)
        .unwrap()
}

/// A revocation list of `issuer` that is due again after `length` from `from`.
pub(crate) fn revocation_list(
    issuer: &Certificate,
    signer: &PrivateKey,
    revoked: &[&Certificate],
    from: DateTime,
    length: Duration,
) -> RevocationList {
    let parsed = issuer.parsed();
    let entries = revoked
        .iter()
        .map(|certificate| x509_cert::crl::RevokedCert {
            serial_number: certificate.parsed().tbs_certificate().serial_number().clone(),
            revocation_date: time(from).unwrap(),
            crl_entry_extensions: None,
        })
        .collect::<Vec<_>>();
    let algorithm = parsed.signature_algorithm().clone();
    let tbs = x509_cert::crl::TbsCertList::<x509_cert::certificate::Rfc5280> {
        version: x509_cert::Version::V2,
        signature: algorithm.clone(),
        issuer: parsed.tbs_certificate().subject().clone(),
        this_update: time(from).unwrap(),
        next_update: Some(time(from.saturating_add(length)).unwrap()),
        revoked_certificates: (!entries.is_empty()).then_some(entries),
        crl_extensions: None,
    };
    let signed = tbs.to_der().unwrap();
    let signature = signer
        .sign(AsymmetricSignature::RsaPkcs15Sha256, &[&signed], &mut SystemRandom)
        .unwrap();
    let list = x509_cert::crl::CertificateList::<x509_cert::certificate::Rfc5280> {
        tbs_cert_list: x509_cert::crl::TbsCertList::from_der(&signed).unwrap(),
        signature_algorithm: algorithm,
        signature: BitString::from_bytes(&signature).unwrap(),
    };
    RevocationList::parse(&list.to_der().unwrap()).unwrap()
}
