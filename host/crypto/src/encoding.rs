//! The two ways certificates, keys and revocation lists lie in files: DER, or PEM around it
//! (RFC 7468, read leniently), and the little of DER that has to be looked at before anything is parsed.

use base64ct::{Base64, Encoding};
use zeroize::{Zeroize, Zeroizing};

use crate::certificate::{Certificate, CertificateError, RevocationList};
use crate::limits::Limits;

/// Why a PEM document cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PemError {
    /// A BEGIN line without its END line, or text that is not UTF-8.
    #[error("the PEM document is not complete")]
    Incomplete,
    /// The text between BEGIN and END is not Base64.
    #[error("the PEM block {label} is not valid Base64")]
    Base64 {
        /// What the BEGIN line calls the block.
        label: String,
    },
    /// More blocks than [`Limits::pem_blocks`].
    #[error("the PEM document has more than {0} blocks")]
    TooMany(usize),
    /// No block of the wanted kind.
    #[error("the PEM document has no block {0}")]
    Missing(&'static str),
}

/// One block of a PEM document. Its bytes may be a key: they are erased when dropped.
pub(crate) struct PemBlock {
    pub(crate) label: String,
    pub(crate) der: Zeroizing<Vec<u8>>,
}

/// Whether the bytes look like PEM: DER never begins with a dash or white space before one.
pub(crate) fn is_pem(bytes: &[u8]) -> bool {
    bytes.first() != Some(&0x30) && bytes.windows(10).any(|window| window == b"-----BEGIN")
}

/// All blocks of a PEM document; text between them is ignored, as are line lengths.
pub(crate) fn pem_blocks(bytes: &[u8]) -> Result<Vec<PemBlock>, PemError> {
    let mut rest = std::str::from_utf8(bytes).map_err(|_| PemError::Incomplete)?;
    let limit = Limits::DEFAULT.pem_blocks;
    let mut blocks = Vec::new();
    while let Some((_, after)) = rest.split_once("-----BEGIN ") {
        if blocks.len() == limit {
            return Err(PemError::TooMany(limit));
        }
        let (label, after) = after.split_once("-----").ok_or(PemError::Incomplete)?;
        let end = format!("-----END {label}-----");
        let (body, after) = after.split_once(end.as_str()).ok_or(PemError::Incomplete)?;
        // Header lines ("Proc-Type: 4,ENCRYPTED") belong to the old encrypted form.
        let encrypted = body.contains("ENCRYPTED");
        let mut text: String = body
            .lines()
            .filter(|line| !line.contains(':'))
            .flat_map(str::chars)
            .filter(|c| !c.is_whitespace())
            .collect();
        let decoded = Base64::decode_vec(&text);
        text.zeroize();
        let label = if encrypted {
            "ENCRYPTED PRIVATE KEY".to_owned()
        } else {
            label.to_owned()
        };
        match decoded {
            Ok(der) => blocks.push(PemBlock {
                label,
                der: Zeroizing::new(der),
            }),
            Err(_) => return Err(PemError::Base64 { label }),
        }
        rest = after;
    }
    Ok(blocks)
}

/// A PEM document of one block, 64 characters a line.
#[must_use]
pub(crate) fn to_pem(label: &str, der: &[u8]) -> String {
    let text = Base64::encode_string(der);
    let mut pem = format!("-----BEGIN {label}-----\n");
    let mut line = text.as_str();
    while !line.is_empty() {
        let (head, tail) = line.split_at(line.len().min(64));
        pem.push_str(head);
        pem.push('\n');
        line = tail;
    }
    pem.push_str("-----END ");
    pem.push_str(label);
    pem.push_str("-----\n");
    pem
}

/// The total length of the DER element at the start of `bytes`, and the length of its header.
/// `None` when the header is cut off, indefinite or not minimal, or the element reaches beyond `bytes`.
pub(crate) fn der_element(bytes: &[u8]) -> Option<(usize, usize)> {
    let (&_tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (header, length) = match first {
        0..=0x7F => (2, usize::from(first)),
        0x81..=0x84 => {
            let count = usize::from(first & 0x7F);
            let digits = rest.get(..count)?;
            let length = digits
                .iter()
                .try_fold(0usize, |value, &b| value.checked_mul(256)?.checked_add(b.into()))?;
            if digits.first() == Some(&0) || length < 0x80 {
                return None;
            }
            (2 + count, length)
        }
        _ => return None,
    };
    let total = length.checked_add(header)?;
    (total <= bytes.len()).then_some((total, header))
}

/// The to-be-signed part of a certificate or revocation list: the first element inside the outer
/// sequence, exactly as it came, because that is what the signature covers.
pub(crate) fn signed_part(der: &[u8]) -> Option<&[u8]> {
    let (total, header) = der_element(der)?;
    let inner = der.get(header..total)?;
    let (length, _) = der_element(inner)?;
    inner.get(..length)
}

/// Reads all certificates of a file, which is PEM with any number of blocks, or DER with one
/// certificate or a chain.
///
/// # Errors
/// [`CertificateError::Invalid`] saying what is wrong with the file.
pub fn certificates_from_pem_or_der(bytes: &[u8]) -> Result<Vec<Certificate>, CertificateError> {
    if !is_pem(bytes) {
        return Ok(crate::CertificateChain::parse(bytes)?.into_certificates());
    }
    let blocks = pem_blocks(bytes).map_err(CertificateError::pem)?;
    let certificates: Vec<_> = blocks
        .iter()
        .filter(|block| {
            matches!(
                block.label.as_str(),
                "CERTIFICATE" | "X509 CERTIFICATE" | "TRUSTED CERTIFICATE"
            )
        })
        .map(|block| Certificate::parse(&block.der))
        .collect::<Result<_, _>>()?;
    if certificates.is_empty() {
        return Err(CertificateError::pem(PemError::Missing("CERTIFICATE")));
    }
    Ok(certificates)
}

/// Reads all revocation lists of a file, which is PEM with any number of blocks, or DER with one list.
///
/// # Errors
/// [`CertificateError::Invalid`] saying what is wrong with the file.
pub fn revocation_lists_from_pem_or_der(bytes: &[u8]) -> Result<Vec<RevocationList>, CertificateError> {
    if !is_pem(bytes) {
        return Ok(vec![RevocationList::parse(bytes)?]);
    }
    let blocks = pem_blocks(bytes).map_err(CertificateError::pem)?;
    let lists: Vec<_> = blocks
        .iter()
        .filter(|block| matches!(block.label.as_str(), "X509 CRL" | "CRL"))
        .map(|block| RevocationList::parse(&block.der))
        .collect::<Result<_, _>>()?;
    if lists.is_empty() {
        return Err(CertificateError::pem(PemError::Missing("X509 CRL")));
    }
    Ok(lists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn der_headers_are_read_strictly() {
        assert_eq!(der_element(&[0x30, 0x02, 1, 2, 9]), Some((4, 2)));
        assert_eq!(der_element(&[0x30, 0x03, 1, 2]), None);
        assert_eq!(der_element(&[0x30, 0x80, 0, 0]), None);
        assert_eq!(der_element(&[0x30, 0x81, 0x7F]), None);
        assert_eq!(der_element(&[0x30, 0x84, 0xFF, 0xFF, 0xFF, 0xFF]), None);
        assert_eq!(der_element(&[0x30]), None);
        assert_eq!(der_element(&[]), None);
        let mut long = vec![0x30, 0x82, 0x01, 0x00];
        long.resize(4 + 256, 0);
        assert_eq!(der_element(&long), Some((260, 4)));
    }

    #[test]
    fn pem_is_read_leniently_and_written_in_lines() {
        let pem = to_pem("THING", &[7; 100]);
        assert!(pem.lines().all(|line| line.len() <= 64));
        let noisy = format!("subject=/CN=x\r\n{}\n{}", pem.replace('\n', "\r\n"), pem);
        let blocks = pem_blocks(noisy.as_bytes()).unwrap();
        assert_eq!(blocks.len(), 2);
        assert!(
            blocks
                .iter()
                .all(|b| b.label == "THING" && b.der.as_slice() == [7; 100])
        );
    }

    #[test]
    fn broken_pem_is_an_error() {
        assert_eq!(pem_blocks(b"-----BEGIN X-----\nAAAA").err(), Some(PemError::Incomplete));
        assert_eq!(pem_blocks(b"-----BEGIN X").err(), Some(PemError::Incomplete));
        assert!(matches!(
            pem_blocks(b"-----BEGIN X-----\n!!\n-----END X-----").err(),
            Some(PemError::Base64 { .. })
        ));
        let many = to_pem("X", &[1]).repeat(Limits::DEFAULT.pem_blocks + 1);
        assert!(matches!(pem_blocks(many.as_bytes()).err(), Some(PemError::TooMany(_))));
    }
}
