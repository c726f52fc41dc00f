//! What an administrator does with the folder while the server runs or not: look, and trust.

use std::path::Path;

use backplane_crypto::{Certificate, CertificateError, certificates_from_pem_or_der};
use backplane_types::DateTime;

use super::error::PkiError;
use super::folders::{Folder, Folders, file_name};

/// The fewest digits of a thumbprint that name a certificate.
const LEAST_DIGITS: usize = 4;

/// One certificate in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// SHA-1 in hexadecimal.
    pub thumbprint: String,
    /// The subject as text.
    pub subject: String,
    /// The ApplicationUri, if it has one.
    pub application_uri: Option<String>,
    /// When it expires.
    pub not_after: DateTime,
    /// The file it is in, without folder.
    pub file: String,
}

/// All certificates, by folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The server's own.
    pub own: Vec<Entry>,
    /// Trusted ones.
    pub trusted: Vec<Entry>,
    /// Those of issuers that are needed to check others.
    pub issuers: Vec<Entry>,
    /// Those that were turned away, latest last.
    pub rejected: Vec<Entry>,
    /// Files that could not be read, and why.
    pub problems: Vec<String>,
}

/// Lists the certificates below `folder`.
///
/// # Errors
/// [`PkiError`] when a folder cannot be read. Single files that cannot be read are listed as problems.
pub fn list(folder: &Path) -> Result<Listing, PkiError> {
    let folders = existing(folder)?;
    let mut listing = Listing::default();
    for (folder, entries) in [
        (&folders.own, &mut listing.own),
        (&folders.trusted_certs, &mut listing.trusted),
        (&folders.issuers_certs, &mut listing.issuers),
        (&folders.rejected, &mut listing.rejected),
    ] {
        let mut names = folder.files()?;
        names.sort_by_cached_key(|name| folder.modified(name));
        // Keys lie beside the own certificate and are nobody's to list.
        for name in names.iter().filter(|name| !name.starts_with("private-key.")) {
            match read(folder, name) {
                Ok(Some(certificates)) => {
                    entries.extend(certificates.iter().map(|certificate| entry(certificate, name)))
                }
                Ok(None) => {}
                Err(error) => listing.problems.push(error.to_string()),
            }
        }
    }
    Ok(listing)
}

/// Moves a rejected certificate to the trusted ones, and the issuers that came along to the issuers. A running server notices.
///
/// # Errors
/// [`PkiError`] when not exactly one rejected certificate has a thumbprint that begins so, or files cannot be moved.
pub fn trust(folder: &Path, thumbprint: &str) -> Result<Entry, PkiError> {
    let wanted: String = thumbprint
        .chars()
        .filter(|c| !matches!(c, ':' | ' '))
        .collect::<String>()
        .to_ascii_lowercase();
    if wanted.len() < LEAST_DIGITS || !wanted.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(PkiError::Thumbprint {
            thumbprint: thumbprint.to_owned(),
            least: LEAST_DIGITS,
        });
    }
    let folders = existing(folder)?;
    let mut found = Vec::new();
    for name in folders.rejected.files()? {
        // A file that is broken or gone by now is not the one that is meant.
        let Ok(Some(chain)) = read(&folders.rejected, &name) else {
            continue;
        };
        if chain
            .first()
            .is_some_and(|leaf| leaf.thumbprint_hex().starts_with(&wanted))
        {
            found.push((name, chain));
        }
    }
    let count = found.len();
    let (Some((name, chain)), 1) = (found.pop(), count) else {
        return Err(match count {
            0 => PkiError::Unknown { thumbprint: wanted },
            count => PkiError::Ambiguous {
                thumbprint: wanted,
                count,
            },
        });
    };
    // Issuers first: a server that looks in between finds a chain without trust, never trust without a chain.
    for issuer in chain.iter().skip(1) {
        store(&folders.issuers_certs, issuer)?;
    }
    let leaf = chain.first().ok_or_else(|| PkiError::Unknown {
        thumbprint: wanted.clone(),
    })?;
    let file = store(&folders.trusted_certs, leaf)?;
    folders.rejected.remove(&name)?;
    Ok(entry(leaf, &file))
}

/// Opens a folder that a server has made; a wrong path must not leave folders behind.
fn existing(folder: &Path) -> Result<Folders, PkiError> {
    if let Err(source) = std::fs::read_dir(folder) {
        return Err(PkiError::Folder {
            path: folder.to_owned(),
            source,
        });
    }
    Folders::open(folder)
}

fn store(folder: &Folder, certificate: &Certificate) -> Result<String, PkiError> {
    let name = file_name(
        &certificate.thumbprint_hex(),
        &certificate.common_name().unwrap_or_default(),
    );
    folder.write(&name, certificate.der(), false)?;
    Ok(name)
}

fn read(folder: &Folder, name: &str) -> Result<Option<Vec<Certificate>>, PkiError> {
    let parse = |content: Vec<u8>| certificates_from_pem_or_der(&content);
    let parsed: Result<Option<Vec<Certificate>>, CertificateError> = folder.read(name)?.map(parse).transpose();
    parsed.map_err(|error| folder.content(name, error))
}

fn entry(certificate: &Certificate, file: &str) -> Entry {
    Entry {
        thumbprint: certificate.thumbprint_hex(),
        subject: certificate.subject(),
        application_uri: certificate.application_uri().map(ToOwned::to_owned),
        not_after: certificate.not_after(),
        file: file.to_owned(),
    }
}
