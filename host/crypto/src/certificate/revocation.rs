//! Certificate revocation lists (RFC 5280, section 5): reading one, and asking whether it lists a
//! certificate. Which list applies to which certificate is decided in [`validate`](mod@super::validate).

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use backplane_types::DateTime;
use der::{Decode, Encode};
use x509_cert::crl::CertificateList;

use super::error::CertificateError;
use super::signature::verify_signed;
use super::{Certificate, date_time, printable};
use crate::keys::PublicKey;
use crate::limits::Limits;

/// A parsed revocation list. Cloning shares it.
#[derive(Clone)]
pub struct RevocationList {
    inner: Arc<Inner>,
}

struct Inner {
    der: Box<[u8]>,
    issuer: Vec<u8>,
    issuer_text: String,
    algorithm: x509_cert::AlgorithmIdentifier,
    signature: der::asn1::BitString,
    this_update: DateTime,
    next_update: Option<DateTime>,
    revoked: HashSet<Box<[u8]>>,
}

impl RevocationList {
    /// Reads one revocation list in DER.
    ///
    /// # Errors
    /// [`CertificateError::Invalid`] when it is too long, malformed or incomplete by design (a delta list).
    pub fn parse(der: &[u8]) -> Result<Self, CertificateError> {
        if der.len() > Limits::DEFAULT.revocation_list_bytes {
            return Err(CertificateError::invalid("the revocation list is too long"));
        }
        let list = CertificateList::<x509_cert::certificate::Rfc5280>::from_der(der)
            .map_err(|error| CertificateError::invalid(format!("the revocation list cannot be read: {error}")))?;
        let tbs = list.tbs_cert_list;
        if tbs.signature != list.signature_algorithm {
            return Err(CertificateError::invalid(
                "the revocation list names two signature algorithms",
            ));
        }
        // Critical extensions limit what the list covers (delta lists, lists of other issuers): such a list
        // must not be taken for the whole truth.
        if tbs.crl_extensions.iter().flatten().any(|extension| extension.critical) {
            return Err(CertificateError::invalid("the revocation list covers a part only"));
        }
        let issuer = tbs
            .issuer
            .to_der()
            .map_err(|_| CertificateError::invalid("the issuer cannot be encoded"))?;
        let revoked = tbs
            .revoked_certificates
            .iter()
            .flatten()
            .map(|entry| Box::from(entry.serial_number.as_bytes()))
            .collect();
        let inner = Inner {
            der: der.into(),
            issuer,
            issuer_text: printable(&tbs.issuer.to_string()),
            algorithm: list.signature_algorithm,
            signature: list.signature,
            this_update: date_time(tbs.this_update),
            next_update: tbs.next_update.map(date_time),
            revoked,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The list in DER, exactly as it came.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.inner.der
    }

    /// Who issued the list, as text for logs.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.inner.issuer_text
    }

    /// When the list was issued.
    #[must_use]
    pub fn this_update(&self) -> DateTime {
        self.inner.this_update
    }

    /// When the next list is due, if it says so.
    #[must_use]
    pub fn next_update(&self) -> Option<DateTime> {
        self.inner.next_update
    }

    /// How many certificates are revoked.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.revoked.len()
    }

    /// Whether no certificate is revoked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inner.revoked.is_empty()
    }

    /// Whether the list names its issuer as `issuer` names itself.
    #[must_use]
    pub fn is_from(&self, issuer: &Certificate) -> bool {
        self.inner.issuer == issuer.subject_name_der()
    }

    /// Whether the list was issued before `when` and no newer one is due then.
    #[must_use]
    pub fn is_current_at(&self, when: DateTime) -> bool {
        self.inner.this_update <= when && self.inner.next_update.is_none_or(|next| when <= next)
    }

    /// Whether the list names the serial number. The caller has made sure that it is the right list.
    #[must_use]
    pub fn lists(&self, certificate: &Certificate) -> bool {
        self.inner.revoked.contains(certificate.serial_number())
    }

    /// Checks the signature with the issuer's key.
    ///
    /// # Errors
    /// [`CertificateError::Invalid`] when it is wrong.
    pub fn verify_with(&self, issuer: &PublicKey) -> Result<(), CertificateError> {
        verify_signed(&self.inner.der, &self.inner.algorithm, &self.inner.signature, issuer)
    }
}

impl fmt::Debug for RevocationList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RevocationList({}, {} revoked)", self.issuer(), self.len())
    }
}
