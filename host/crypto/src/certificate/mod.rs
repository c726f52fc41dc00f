//! X.509 certificates as OPC UA uses them (Part 6, 6.2): reading them, asking them, and checking what one
//! says about itself. Whether to trust one is decided in [`mod@validate`]; making one is in [`create`].
//!
//! A certificate comes from a peer before anything is known about it. Its length and the length of its
//! chain are bounded before it is parsed, and its key is bounded before any arithmetic is done with it.

pub mod create;
mod error;
mod extensions;
pub mod revocation;
mod signature;
#[cfg(test)]
mod tests;
pub mod validate;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use backplane_types::DateTime;
use der::{Decode, Encode};

pub use create::{
    ApplicationCertificateRequest, CreateError, NewCertificate, create_application_certificate, self_sign,
};
pub use error::CertificateError;
pub use extensions::{ExtendedKeyUsage, KeyUsage};
pub use revocation::RevocationList;
pub use validate::{Purpose, Suppress, TrustStoreView, Validated, ValidationRules, validate};

use crate::encoding;
use crate::keys::{KeyError, PublicKey};
use crate::limits::Limits;
use extensions::Extensions;

/// A parsed X.509 certificate. Cloning shares it.
#[derive(Clone)]
pub struct Certificate {
    inner: Arc<Inner>,
}

struct Inner {
    der: Box<[u8]>,
    parsed: x509_cert::Certificate,
    subject: Vec<u8>,
    issuer: Vec<u8>,
    thumbprint: [u8; 20],
    not_before: DateTime,
    not_after: DateTime,
    public_key: Result<PublicKey, KeyError>,
    extensions: Extensions,
}

impl Certificate {
    /// Reads exactly one certificate in DER.
    ///
    /// # Errors
    /// [`CertificateError::Invalid`] when it is too long, malformed, or followed by anything. A key that is
    /// not RSA or out of bounds is no error here but in [`public_key`](Self::public_key): trust lists may
    /// hold such certificates.
    pub fn parse(der: &[u8]) -> Result<Self, CertificateError> {
        if der.len() > Limits::DEFAULT.certificate_bytes {
            return Err(CertificateError::invalid("the certificate is too long"));
        }
        let parsed = x509_cert::Certificate::from_der(der)
            .map_err(|error| CertificateError::invalid(format!("the certificate cannot be read: {error}")))?;
        let tbs = parsed.tbs_certificate();
        if tbs.signature() != parsed.signature_algorithm() {
            return Err(CertificateError::invalid(
                "the certificate names two signature algorithms",
            ));
        }
        let name = |name: &x509_cert::name::Name| {
            name.to_der()
                .map_err(|_| CertificateError::invalid("a name cannot be encoded"))
        };
        let inner = Inner {
            subject: name(tbs.subject())?,
            issuer: name(tbs.issuer())?,
            thumbprint: crate::sha1(der),
            not_before: date_time(tbs.validity().not_before),
            not_after: date_time(tbs.validity().not_after),
            public_key: public_key(tbs.subject_public_key_info()),
            extensions: Extensions::read(tbs)?,
            der: der.into(),
            parsed,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The certificate in DER, exactly as it came.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.inner.der
    }

    /// The certificate as a PEM document.
    #[must_use]
    pub fn to_pem(&self) -> String {
        encoding::to_pem("CERTIFICATE", self.der())
    }

    /// SHA-1 of the DER: how messages name a certificate (Part 6, 6.7.2.3).
    #[must_use]
    pub fn thumbprint(&self) -> [u8; 20] {
        self.inner.thumbprint
    }

    /// The thumbprint as 40 lower-case hexadecimal digits: how people name a certificate.
    #[must_use]
    pub fn thumbprint_hex(&self) -> String {
        hex(&self.inner.thumbprint)
    }

    /// The subject as text, for logs ("CN=...,O=..."). Control characters are replaced.
    #[must_use]
    pub fn subject(&self) -> String {
        printable(&self.inner.parsed.tbs_certificate().subject().to_string())
    }

    /// The issuer as text, for logs.
    #[must_use]
    pub fn issuer(&self) -> String {
        printable(&self.inner.parsed.tbs_certificate().issuer().to_string())
    }

    /// The common name of the subject, if it has one. Control characters are replaced.
    #[must_use]
    pub fn common_name(&self) -> Option<String> {
        let name = self
            .inner
            .parsed
            .tbs_certificate()
            .subject()
            .common_name()
            .ok()
            .flatten()?;
        Some(printable(&name.value()))
    }

    /// The serial number, big-endian.
    #[must_use]
    pub fn serial_number(&self) -> &[u8] {
        self.inner.parsed.tbs_certificate().serial_number().as_bytes()
    }

    /// When the certificate becomes valid.
    #[must_use]
    pub fn not_before(&self) -> DateTime {
        self.inner.not_before
    }

    /// When the certificate expires.
    #[must_use]
    pub fn not_after(&self) -> DateTime {
        self.inner.not_after
    }

    /// Whether `when` lies within the validity period, both ends included.
    #[must_use]
    pub fn is_valid_at(&self, when: DateTime) -> bool {
        self.inner.not_before <= when && when <= self.inner.not_after
    }

    /// The public key.
    ///
    /// # Errors
    /// [`KeyError`] when it is not RSA or outside [`Limits`].
    pub fn public_key(&self) -> Result<&PublicKey, KeyError> {
        self.inner.public_key.as_ref().map_err(Clone::clone)
    }

    /// The uris of the subject's alternative name, as they stand there, in their order. The first one is
    /// the ApplicationUri of an ApplicationInstanceCertificate (Part 6, 6.2.2).
    #[must_use]
    pub fn uris(&self) -> &[String] {
        &self.inner.extensions.uris
    }

    /// The ApplicationUri: the first uri of the subject's alternative name.
    #[must_use]
    pub fn application_uri(&self) -> Option<&str> {
        self.inner.extensions.uris.first().map(String::as_str)
    }

    /// The host names of the subject's alternative name.
    #[must_use]
    pub fn dns_names(&self) -> &[String] {
        &self.inner.extensions.dns_names
    }

    /// The IP addresses of the subject's alternative name.
    #[must_use]
    pub fn ip_addresses(&self) -> &[IpAddr] {
        &self.inner.extensions.ip_addresses
    }

    /// What the key may be used for; `None` when the certificate does not restrict it.
    #[must_use]
    pub fn key_usage(&self) -> Option<KeyUsage> {
        self.inner.extensions.key_usage
    }

    /// Which roles the subject may play; `None` when the certificate does not restrict it.
    #[must_use]
    pub fn extended_key_usage(&self) -> Option<ExtendedKeyUsage> {
        self.inner.extensions.extended_key_usage
    }

    /// Whether BasicConstraints make this a certification authority.
    #[must_use]
    pub fn is_authority(&self) -> bool {
        self.inner.extensions.authority
    }

    /// How many certification authorities may follow below this one; `None` for no limit.
    #[must_use]
    pub fn path_length(&self) -> Option<u8> {
        self.inner.extensions.path_length
    }

    /// Whether subject and issuer are the same. Says nothing about the signature.
    #[must_use]
    pub fn is_self_issued(&self) -> bool {
        self.inner.subject == self.inner.issuer
    }

    /// Whether the certificate was issued by itself and its signature, checked with its own key, says so.
    #[must_use]
    pub fn is_self_signed(&self) -> bool {
        self.is_self_issued() && self.public_key().is_ok_and(|key| self.verify_with(key).is_ok())
    }

    /// Compares the ApplicationUri byte by byte; spaces and other characters that a strict uri would
    /// encode are accepted, because peers use them.
    ///
    /// # Errors
    /// [`CertificateError::UriInvalid`] naming both uris.
    pub fn check_application_uri(&self, expected: &str) -> Result<(), CertificateError> {
        if !expected.is_empty() && self.uris().iter().any(|uri| uri == expected) {
            return Ok(());
        }
        Err(CertificateError::UriInvalid {
            expected: printable(expected),
            found: printable(self.application_uri().unwrap_or_default()),
        })
    }

    /// Checks that the certificate was issued to this host name or IP address, as a client does with the
    /// host of the url it connected to. Names are compared without case; `*.` covers one label.
    ///
    /// # Errors
    /// [`CertificateError::HostNameInvalid`] naming the host.
    pub fn check_host_name(&self, host: &str) -> Result<(), CertificateError> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let found = match bare.parse::<IpAddr>() {
            // Some certificates carry addresses among their DNS names.
            Ok(ip) => self.ip_addresses().contains(&ip) || self.dns_names().iter().any(|name| name == bare),
            Err(_) => self.dns_names().iter().any(|name| host_matches(name, bare)),
        };
        if found {
            Ok(())
        } else {
            Err(CertificateError::HostNameInvalid { host: printable(host) })
        }
    }

    /// Whether `other` may be the issuer by name and key identifiers; the signature is another question.
    pub(crate) fn may_be_issued_by(&self, other: &Certificate) -> bool {
        if self.inner.issuer != other.inner.subject {
            return false;
        }
        match (
            &self.inner.extensions.authority_key,
            &other.inner.extensions.subject_key,
        ) {
            (Some(authority), Some(subject)) => authority == subject,
            _ => true,
        }
    }

    pub(crate) fn extensions(&self) -> &Extensions {
        &self.inner.extensions
    }

    pub(crate) fn parsed(&self) -> &x509_cert::Certificate {
        &self.inner.parsed
    }

    pub(crate) fn subject_name_der(&self) -> &[u8] {
        &self.inner.subject
    }
}

impl PartialEq for Certificate {
    /// Equal bytes, never equal names or identities.
    fn eq(&self, other: &Self) -> bool {
        self.inner.der == other.inner.der
    }
}

impl Eq for Certificate {}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificate({}, {})", self.thumbprint_hex(), self.subject())
    }
}

/// A certificate and the issuer certificates that came with it (Part 6, 6.2.6).
#[derive(Clone, Debug)]
pub struct CertificateChain {
    leaf: Certificate,
    issuers: Vec<Certificate>,
}

impl CertificateChain {
    /// Reads a blob of concatenated DER certificates, the leaf first.
    ///
    /// # Errors
    /// [`CertificateError::Invalid`] when it is empty, has more certificates than
    /// [`Limits::chain_length`], or anything in it is not a certificate. The number is checked on the
    /// outer headers, before the first certificate is parsed.
    pub fn parse(blob: &[u8]) -> Result<Self, CertificateError> {
        let limits = Limits::DEFAULT;
        let mut pieces = Vec::new();
        let mut rest = blob;
        while !rest.is_empty() {
            if pieces.len() == limits.chain_length {
                return Err(CertificateError::invalid("the chain has too many certificates"));
            }
            let (length, _) = encoding::der_element(rest)
                .filter(|_| rest.first() == Some(&0x30))
                .ok_or_else(|| CertificateError::invalid("the chain holds something that is not a certificate"))?;
            let (piece, after) = rest.split_at(length);
            pieces.push(piece);
            rest = after;
        }
        let mut pieces = pieces.into_iter();
        let leaf = pieces
            .next()
            .ok_or_else(|| CertificateError::invalid("there is no certificate"))?;
        let leaf = Certificate::parse(leaf)?;
        let issuers = pieces.map(Certificate::parse).collect::<Result<_, _>>()?;
        Ok(Self { leaf, issuers })
    }

    /// A chain of one certificate.
    #[must_use]
    pub fn of(leaf: Certificate) -> Self {
        Self {
            leaf,
            issuers: Vec::new(),
        }
    }

    /// The certificate the chain is about.
    #[must_use]
    pub fn leaf(&self) -> &Certificate {
        &self.leaf
    }

    /// The certificates that came with it, in their order.
    #[must_use]
    pub fn issuers(&self) -> &[Certificate] {
        &self.issuers
    }

    /// All of them, the leaf first.
    #[must_use]
    pub fn into_certificates(self) -> Vec<Certificate> {
        std::iter::once(self.leaf).chain(self.issuers).collect()
    }

    /// The chain as one blob of DER, the leaf first.
    #[must_use]
    pub fn to_der(&self) -> Vec<u8> {
        let mut blob = self.leaf.der().to_vec();
        self.issuers
            .iter()
            .for_each(|issuer| blob.extend_from_slice(issuer.der()));
        blob
    }
}

fn public_key(info: &x509_cert::SubjectPublicKeyInfo) -> Result<PublicKey, KeyError> {
    if info.algorithm.oid != rsa::pkcs1::ALGORITHM_OID {
        return Err(KeyError::NotRsa);
    }
    let bytes = info
        .subject_public_key
        .as_bytes()
        .ok_or(KeyError::Malformed("the key is not whole bytes"))?;
    PublicKey::from_pkcs1_der(bytes)
}

pub(crate) fn date_time(time: x509_cert::time::Time) -> DateTime {
    let nanos = i128::try_from(time.to_unix_duration().as_nanos()).unwrap_or(i128::MAX);
    DateTime::from_unix_nanos(nanos)
}

fn host_matches(pattern: &str, host: &str) -> bool {
    let (pattern, host) = (pattern.trim_end_matches('.'), host.trim_end_matches('.'));
    if pattern.eq_ignore_ascii_case(host) {
        return true;
    }
    match (pattern.strip_prefix("*."), host.split_once('.')) {
        (Some(domain), Some((first, rest))) => !first.is_empty() && domain.eq_ignore_ascii_case(rest),
        _ => false,
    }
}

/// Text from a certificate, safe for one line of a log.
pub(crate) fn printable(text: &str) -> String {
    const LONGEST: usize = 512;
    text.chars()
        .take(LONGEST)
        .map(|c| if c.is_control() { '\u{FFFD}' } else { c })
        .collect()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}
