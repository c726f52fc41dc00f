//! The extensions of a certificate that matter to OPC UA (Part 6, 6.2.2), read once when it is parsed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use der::asn1::ObjectIdentifier;
use x509_cert::TbsCertificate;
use x509_cert::ext::pkix;

use super::error::CertificateError;
use crate::encoding::der_element;

const SUBJECT_ALT_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.17");
const SERVER_AUTH: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1");
const CLIENT_AUTH: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.2");
const ANY_EXTENDED_KEY_USAGE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.37.0");

/// Extensions this crate understands well enough to accept them as critical: subject key identifier, key usage,
/// alternative names, basic constraints, CRL distribution points, certificate policies (no policy is
/// required here), authority key identifier, extended key usage, authority information access.
const UNDERSTOOD: [ObjectIdentifier; 9] = [
    ObjectIdentifier::new_unwrap("2.5.29.14"),
    ObjectIdentifier::new_unwrap("2.5.29.15"),
    SUBJECT_ALT_NAME,
    ObjectIdentifier::new_unwrap("2.5.29.19"),
    ObjectIdentifier::new_unwrap("2.5.29.31"),
    ObjectIdentifier::new_unwrap("2.5.29.32"),
    ObjectIdentifier::new_unwrap("2.5.29.35"),
    ObjectIdentifier::new_unwrap("2.5.29.37"),
    ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.1.1"),
];

/// What the key of a certificate may be used for (RFC 5280, 4.2.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUsage(u16);

impl KeyUsage {
    /// Signing data.
    pub const DIGITAL_SIGNATURE: KeyUsage = KeyUsage(1);
    /// Signing what shall be binding.
    pub const NON_REPUDIATION: KeyUsage = KeyUsage(1 << 1);
    /// Encrypting keys.
    pub const KEY_ENCIPHERMENT: KeyUsage = KeyUsage(1 << 2);
    /// Encrypting data.
    pub const DATA_ENCIPHERMENT: KeyUsage = KeyUsage(1 << 3);
    /// Signing certificates.
    pub const KEY_CERT_SIGN: KeyUsage = KeyUsage(1 << 5);
    /// Signing revocation lists.
    pub const CRL_SIGN: KeyUsage = KeyUsage(1 << 6);

    /// Whether all uses of `other` are allowed.
    #[must_use]
    pub fn contains(self, other: KeyUsage) -> bool {
        self.0 & other.0 == other.0
    }

    /// The uses of both.
    #[must_use]
    pub const fn union(self, other: KeyUsage) -> KeyUsage {
        KeyUsage(self.0 | other.0)
    }

    pub(crate) fn bits(self) -> u16 {
        self.0
    }
}

/// Which roles the subject of a certificate may play (RFC 5280, 4.2.1.12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtendedKeyUsage {
    /// It may be a server.
    pub server_auth: bool,
    /// It may be a client.
    pub client_auth: bool,
}

/// The extensions of one certificate.
#[derive(Debug, Default)]
pub(crate) struct Extensions {
    pub(crate) uris: Vec<String>,
    pub(crate) dns_names: Vec<String>,
    pub(crate) ip_addresses: Vec<IpAddr>,
    pub(crate) key_usage: Option<KeyUsage>,
    pub(crate) extended_key_usage: Option<ExtendedKeyUsage>,
    pub(crate) authority: bool,
    pub(crate) path_length: Option<u8>,
    pub(crate) subject_key: Option<Vec<u8>>,
    pub(crate) authority_key: Option<Vec<u8>>,
    /// A critical extension that is not understood: such a certificate must not be accepted.
    pub(crate) not_understood: Option<ObjectIdentifier>,
}

impl Extensions {
    pub(crate) fn read(tbs: &TbsCertificate) -> Result<Self, CertificateError> {
        let broken = |_| CertificateError::invalid("an extension is malformed or given twice");
        let mut found = Extensions::default();
        if let Some((_, usage)) = tbs.get_extension::<pkix::KeyUsage>().map_err(broken)? {
            found.key_usage = Some(KeyUsage(usage.0.bits()));
        }
        if let Some((_, usage)) = tbs.get_extension::<pkix::ExtendedKeyUsage>().map_err(broken)? {
            let any = usage.0.contains(&ANY_EXTENDED_KEY_USAGE);
            found.extended_key_usage = Some(ExtendedKeyUsage {
                server_auth: any || usage.0.contains(&SERVER_AUTH),
                client_auth: any || usage.0.contains(&CLIENT_AUTH),
            });
        }
        if let Some((_, constraints)) = tbs.get_extension::<pkix::BasicConstraints>().map_err(broken)? {
            found.authority = constraints.ca;
            found.path_length = constraints.path_len_constraint;
        }
        if let Some((_, key)) = tbs.get_extension::<pkix::SubjectKeyIdentifier>().map_err(broken)? {
            found.subject_key = Some(key.0.as_bytes().to_vec());
        }
        if let Some((_, key)) = tbs.get_extension::<pkix::AuthorityKeyIdentifier>().map_err(broken)? {
            found.authority_key = key.key_identifier.map(|id| id.as_bytes().to_vec());
        }
        let mut names_seen = false;
        for extension in tbs.extensions().map(Vec::as_slice).unwrap_or_default() {
            if extension.extn_id == SUBJECT_ALT_NAME {
                if std::mem::replace(&mut names_seen, true) {
                    return Err(CertificateError::invalid("the alternative name is given twice"));
                }
                found
                    .read_names(extension.extn_value.as_bytes())
                    .ok_or_else(|| CertificateError::invalid("the alternative name is malformed"))?;
            }
            if extension.critical && !UNDERSTOOD.contains(&extension.extn_id) {
                found.not_understood.get_or_insert(extension.extn_id);
            }
        }
        Ok(found)
    }

    /// Reads GeneralNames by hand: some certificates carry UTF-8 where IA5 belongs, and shall still be
    /// compared byte by byte. `None` when the structure is malformed.
    fn read_names(&mut self, der: &[u8]) -> Option<()> {
        let (total, header) = der_element(der)?;
        if der.first() != Some(&0x30) || total != der.len() {
            return None;
        }
        let mut rest = der.get(header..)?;
        while let Some(&tag) = rest.first() {
            let (length, header) = der_element(rest)?;
            let (element, after) = rest.split_at(length);
            let value = element.get(header..)?;
            match tag {
                0x82 => self.dns_names.push(String::from_utf8_lossy(value).into_owned()),
                0x86 => self.uris.push(String::from_utf8_lossy(value).into_owned()),
                0x87 => self.ip_addresses.extend(ip_address(value)),
                _ => {}
            }
            rest = after;
        }
        Some(())
    }
}

fn ip_address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(v4).into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(|v6| Ipv6Addr::from(v6).into())
}
