//! Certificates, chains and revocation lists, in DER and PEM, and what is asked of them.
//!
//! Input: a byte that chooses the form, then the file or blob.

use backplane_crypto::certificate::Suppress;
use backplane_crypto::{
    Certificate, CertificateChain, CertificateError, Purpose, RevocationList, SecurityPolicy, TrustStoreView,
    ValidationRules, certificates_from_pem_or_der, revocation_lists_from_pem_or_der, validate,
};
use backplane_types::{DateTime, StatusCode};

use crate::channel_setup::now;
use crate::check::within;
use crate::feedback::note;

/// The forms.
pub(crate) mod form {
    /// SenderCertificate: a chain.
    pub(crate) const CHAIN: u8 = 0;
    /// A file of a trust list.
    pub(crate) const CERTIFICATE_FILE: u8 = 1;
    /// A file of revocation lists.
    pub(crate) const REVOCATION_FILE: u8 = 2;
    /// A chain, a length of two bytes in front of it, and behind it a revocation list.
    pub(crate) const BOTH: u8 = 3;
    /// How many there are.
    pub(crate) const COUNT: u8 = 4;
}

/// Bytes that reading and validating may hold, beside those in proportion to the input: numbers of 8,192 bits, and their powers.
const FREE: u64 = 512 * 1_024;
const PER_BYTE: u64 = 96;

/// Reading accepts or refuses. A certificate that is accepted is written back byte for byte, answers every question, and is validated in bounded
/// time: a chain that runs in a circle or has many links ends like any other.
pub fn certificate(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else {
        return;
    };
    let limit = FREE + PER_BYTE * bytes.len() as u64;
    within(limit, || match choice % form::COUNT {
        form::CHAIN => chain(bytes, &[]),
        form::CERTIFICATE_FILE => certificate_file(bytes),
        form::REVOCATION_FILE => drop(revocation_file(bytes)),
        _ => both(bytes),
    });
}

fn both(bytes: &[u8]) {
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else {
        return;
    };
    let length = usize::from(u16::from_be_bytes(*length)).min(rest.len());
    let (first, second) = rest.split_at(length);
    chain(first, &revocation_file(second));
}

fn chain(bytes: &[u8], lists: &[RevocationList]) {
    match CertificateChain::parse(bytes) {
        Ok(chain) => {
            note(chain.issuers().len());
            assert_eq!(chain.to_der(), bytes);
            ask(chain.leaf());
            chain.issuers().iter().for_each(ask);
            for list in lists {
                let _ = (list.is_from(chain.leaf()), list.lists(chain.leaf()));
            }
            judge(&chain, lists);
        }
        Err(error) => refused(&error),
    }
}

fn certificate_file(bytes: &[u8]) {
    match certificates_from_pem_or_der(bytes) {
        Ok(certificates) => {
            assert!(!certificates.is_empty());
            certificates.iter().for_each(ask);
        }
        Err(error) => refused(&error),
    }
}

fn revocation_file(bytes: &[u8]) -> Vec<RevocationList> {
    let lists = match revocation_lists_from_pem_or_der(bytes) {
        Ok(lists) => lists,
        Err(error) => {
            refused(&error);
            return Vec::new();
        }
    };
    assert!(!lists.is_empty());
    for list in &lists {
        note(list.len());
        let again = RevocationList::parse(list.der());
        assert!(again.is_ok_and(|again| again.len() == list.len() && again.this_update() == list.this_update()));
        line(list.issuer());
        let _ = (list.next_update(), list.is_current_at(now().utc));
    }
    lists
}

fn refused(error: &CertificateError) {
    assert!(error.status().is_bad() && error.peer_status().is_bad());
    note(error.to_string());
}

/// Text for one line of a log.
fn line(text: &str) {
    assert!(!text.chars().any(char::is_control), "{text:?}");
}

fn ask(certificate: &Certificate) {
    let again = Certificate::parse(certificate.der());
    assert!(again.is_ok_and(|again| again == *certificate && again.thumbprint() == certificate.thumbprint()));
    let pem = certificates_from_pem_or_der(certificate.to_pem().as_bytes());
    assert!(pem.is_ok_and(|pem| pem == [certificate.clone()]));
    line(&certificate.subject());
    line(&certificate.issuer());
    line(&certificate.common_name().unwrap_or_default());
    assert!(certificate.uris().first().map(String::as_str) == certificate.application_uri());
    for uri in certificate.uris() {
        assert!(uri.is_empty() || certificate.check_application_uri(uri).is_ok());
    }
    for name in certificate.dns_names() {
        let plain = name.parse::<std::net::IpAddr>().is_err() && !name.contains(['[', ']']);
        assert!(!plain || certificate.check_host_name(name).is_ok(), "{name:?}");
    }
    for address in certificate.ip_addresses() {
        assert!(certificate.check_host_name(&address.to_string()).is_ok());
    }
    match certificate.public_key() {
        Ok(key) => {
            assert_eq!(key.size(), (key.bits() as usize).div_ceil(8));
            note(key.bits());
        }
        Err(error) => assert!(error.status().is_bad()),
    }
    let _ = (
        certificate.is_valid_at(DateTime::MIN),
        certificate.is_valid_at(DateTime::MAX),
        certificate.is_self_issued(),
        certificate.is_authority(),
        certificate.path_length(),
        certificate.serial_number().len(),
        certificate.key_usage(),
        certificate.extended_key_usage(),
    );
}

/// Validates against lists that trust nothing, the last of the chain, and all of it.
fn judge(chain: &CertificateChain, lists: &[RevocationList]) {
    let everything: Vec<Certificate> = chain.clone().into_certificates();
    let last = everything.get(everything.len() - 1..).unwrap_or_default();
    for trusted in [&[], last, &everything] {
        let store = TrustStoreView {
            trusted,
            trusted_crls: lists,
            issuers: &everything,
            issuer_crls: lists,
        };
        let suppress = Suppress {
            time: true,
            issuer_time: true,
            usage: true,
            revocation_unknown: true,
            issuer_revocation_unknown: true,
            weak_signature: true,
            ..Suppress::default()
        };
        for rules in [
            ValidationRules::new(Purpose::ClientApplication, SecurityPolicy::Basic256Sha256),
            ValidationRules::new(Purpose::User, SecurityPolicy::None).with_suppressed(suppress),
        ] {
            match validate(chain, &store, now().utc, &rules) {
                Ok(validated) => {
                    assert!(validated.chain.first() == Some(chain.leaf()));
                    assert!(
                        validated.chain.iter().any(|one| trusted.contains(one)),
                        "trusted by nobody"
                    );
                    assert!(validated.chain.len() <= everything.len());
                }
                Err(error) => {
                    refused(&error);
                    assert_ne!(error.status(), StatusCode::GOOD);
                }
            }
        }
    }
}
