//! The trust lists in memory: read from their folders, replaced as a whole.
//!
//! A file that cannot be read is left out and named in the log: one broken file must not lock every client out, and leaving
//! a revocation list out refuses, not admits, what it is about.

use backplane_crypto::{
    Certificate, CertificateError, RevocationList, TrustStoreView, certificates_from_pem_or_der,
    revocation_lists_from_pem_or_der,
};

use super::error::PkiError;
use super::folders::{Folder, Folders};

/// What is trusted, and what is needed to tell.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists {
    pub(super) trusted: Vec<Certificate>,
    trusted_crls: Vec<RevocationList>,
    issuers: Vec<Certificate>,
    issuer_crls: Vec<RevocationList>,
}

impl Lists {
    pub(super) fn read(folders: &Folders) -> Result<Self, PkiError> {
        Ok(Self {
            trusted: read(&folders.trusted_certs, certificates_from_pem_or_der)?,
            trusted_crls: read(&folders.trusted_crl, revocation_lists_from_pem_or_der)?,
            issuers: read(&folders.issuers_certs, certificates_from_pem_or_der)?,
            issuer_crls: read(&folders.issuers_crl, revocation_lists_from_pem_or_der)?,
        })
    }

    pub(super) fn view(&self) -> TrustStoreView<'_> {
        TrustStoreView {
            trusted: &self.trusted,
            trusted_crls: &self.trusted_crls,
            issuers: &self.issuers,
            issuer_crls: &self.issuer_crls,
        }
    }

    /// How many trusted certificates, issuers and revocation lists, for the log.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        (
            self.trusted.len(),
            self.issuers.len(),
            self.trusted_crls.len() + self.issuer_crls.len(),
        )
    }
}

/// All there is in the files of a folder.
fn read<T>(folder: &Folder, parse: impl Fn(&[u8]) -> Result<Vec<T>, CertificateError>) -> Result<Vec<T>, PkiError> {
    let mut found = Vec::new();
    for name in folder.files()? {
        match folder.read(&name) {
            Ok(None) => {}
            Ok(Some(content)) => match parse(&content) {
                Ok(items) => found.extend(items),
                Err(error) => {
                    tracing::error!(file = %folder.path.join(&name).display(), %error, "left out of the trust list");
                }
            },
            Err(error) => tracing::error!(%error, "left out of the trust list"),
        }
    }
    Ok(found)
}
