//! Keys, certificates and trust lists on disk, and the decision whom to trust.
//!
//! Owns the folder `pki`: the server's own key and certificate, who is trusted, whose certificates are needed to tell, and who
//! was turned away. What makes a certificate valid is the crypto crate's business; when and how a peer is told is the channel's.
//!
//! Trust lists are read at start, on SIGHUP, and whenever a file was added or removed: the folders are looked at before each
//! check, which costs nothing beside the RSA operations that follow.

mod error;
mod folders;
mod lists;
mod manage;
mod own;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use backplane_channel::{CertificateVerifier, OwnIdentity};
use backplane_crypto::certificate::Suppress;
use backplane_crypto::{
    Certificate, CertificateChain, CertificateError, Purpose, SecurityPolicy, ValidationRules, validate,
};
use backplane_types::DateTime;
use parking_lot::Mutex;

pub use error::PkiError;
pub use manage::{Entry, Listing, list, trust};

use folders::{Folders, MAX_FILES, file_name};
use lists::Lists;
use own::Own;

/// Certificates kept in `rejected`; the oldest make room for new ones.
const MAX_REJECTED: usize = 100;
/// Certificates turned away that are stored and logged within one [`WINDOW`]: who floods the server with certificates shall
/// fill neither the log nor the disk.
const MAX_REFUSALS: u32 = 60;
const WINDOW: Duration = Duration::from_secs(60);

/// Where keys and trust lists are, and what the own certificate shall say.
#[derive(Clone, Debug)]
pub struct PkiOptions {
    /// The folder that holds everything.
    pub folder: PathBuf,
    /// The ApplicationUri of the server.
    pub application_uri: String,
    /// The common name of a certificate made here.
    pub common_name: String,
    /// Host names and addresses, also as `host:port`, that a certificate made here is issued to, beside this machine's name and loopback.
    pub hosts: Vec<String>,
    /// Trust every client certificate and remember it: for demonstrations and tests.
    pub auto_trust: bool,
}

/// The keys and trust lists of a running server.
pub struct Pki {
    folders: Folders,
    certificate: Certificate,
    identity: Arc<OwnIdentity>,
    auto_trust: bool,
    lists: ArcSwap<Lists>,
    state: Mutex<State>,
}

/// What changes as the server runs. Held while files are written.
struct State {
    changed: [Option<cap_std::time::SystemTime>; 4],
    window: DateTime,
    refusals: u32,
}

impl Pki {
    /// Opens the folder, making what is missing: at the first start also the key and the certificate of the server.
    ///
    /// # Errors
    /// [`PkiError`], naming the file at fault. Broken files among the trust lists are logged and left out; an expired
    /// certificate of the server is logged and used.
    pub fn open(options: &PkiOptions, now: DateTime) -> Result<Self, PkiError> {
        let folders = Folders::open(&options.folder)?;
        let own = Own::open(&folders, options, now)?;
        let changed = folders.changed();
        let lists = Lists::read(&folders)?;
        let (trusted, issuers, revocation_lists) = lists.counts();
        tracing::info!(folder = %options.folder.display(), trusted, issuers, revocation_lists, "trust lists read");
        if options.auto_trust {
            tracing::warn!("client certificates that are not known are trusted and stored (auto-trust)");
        }
        Ok(Self {
            folders,
            certificate: own.certificate,
            identity: Arc::new(own.identity),
            auto_trust: options.auto_trust,
            lists: ArcSwap::from_pointee(lists),
            state: Mutex::new(State {
                changed,
                window: now,
                refusals: 0,
            }),
        })
    }

    /// The key and the certificate of the server.
    #[must_use]
    pub fn identity(&self) -> Arc<OwnIdentity> {
        Arc::clone(&self.identity)
    }

    /// The certificate of the server.
    #[must_use]
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// Reads the trust lists again. The own certificate is read at start only.
    ///
    /// # Errors
    /// [`PkiError`] when a folder cannot be read; the lists stay as they were.
    pub fn reload(&self) -> Result<(), PkiError> {
        self.reload_locked(&mut self.state.lock())
    }

    fn reload_locked(&self, state: &mut State) -> Result<(), PkiError> {
        // Asked before reading: what changes while it is read is read again next time.
        let changed = self.folders.changed();
        let lists = Lists::read(&self.folders)?;
        let (trusted, issuers, revocation_lists) = lists.counts();
        tracing::info!(trusted, issuers, revocation_lists, "trust lists read again");
        self.lists.store(Arc::new(lists));
        state.changed = changed;
        Ok(())
    }

    /// Reads the lists again when a file was added, removed or replaced since.
    fn refresh(&self) {
        let mut state = self.state.lock();
        if state.changed != self.folders.changed()
            && let Err(error) = self.reload_locked(&mut state)
        {
            tracing::error!(%error, "trust lists not read again: the old ones stay in use");
        }
    }

    /// Auto-trust: stores a certificate that is right in everything but being known.
    fn trust_unknown(
        &self,
        chain: &CertificateChain,
        rules: &ValidationRules<'_>,
        now: DateTime,
    ) -> Result<(), CertificateError> {
        let leaf = chain.leaf();
        let suppress = Suppress {
            revocation_unknown: true,
            issuer_revocation_unknown: true,
            ..Suppress::default()
        };
        let mut with_leaf = Lists::clone(&self.lists.load());
        with_leaf.trusted.push(leaf.clone());
        match validate(chain, &with_leaf.view(), now, &rules.with_suppressed(suppress)) {
            // Its issuers are unknown too, and nobody is asked to bring them.
            Ok(_) | Err(CertificateError::ChainIncomplete { .. }) => {}
            Err(error) => return Err(error),
        }
        let mut state = self.state.lock();
        let known = self.lists.load();
        if known.trusted.contains(leaf) {
            return Ok(());
        }
        if known.trusted.len() >= MAX_FILES {
            tracing::error!(limit = MAX_FILES, "too many trusted certificates: none is added");
            return Err(CertificateError::Untrusted {
                subject: leaf.subject(),
                thumbprint: leaf.thumbprint_hex(),
            });
        }
        let name = file_name(&leaf.thumbprint_hex(), &leaf.common_name().unwrap_or_default());
        tracing::warn!(
            subject = leaf.subject(),
            thumbprint = leaf.thumbprint_hex(),
            "unknown client certificate trusted and stored (auto-trust)"
        );
        if let Err(error) = self.folders.trusted_certs.write(&name, leaf.der(), false) {
            tracing::error!(%error, "the certificate is trusted until the server stops, but not stored");
        }
        state.changed = self.folders.changed();
        // From the lists as they are now: another connection may have added one meanwhile.
        let mut lists = Lists::clone(&known);
        lists.trusted.push(leaf.clone());
        self.lists.store(Arc::new(lists));
        Ok(())
    }

    /// Logs why a client was turned away, and keeps its certificate when an administrator can do something about it.
    fn turn_away(&self, chain: &CertificateChain, error: &CertificateError, now: DateTime) {
        let mut state = self.state.lock();
        if now.saturating_since(state.window) >= WINDOW || now < state.window {
            state.window = now;
            state.refusals = 0;
        }
        if state.refusals >= MAX_REFUSALS {
            return;
        }
        state.refusals += 1;
        if state.refusals == MAX_REFUSALS {
            tracing::warn!(
                limit = MAX_REFUSALS,
                "too many client certificates refused within a minute: the next ones are not logged"
            );
        }
        let leaf = chain.leaf();
        let thumbprint = leaf.thumbprint_hex();
        let (status, subject) = (error.status(), leaf.subject());
        match error {
            CertificateError::Untrusted { .. } => {
                tracing::warn!(%status, subject, "client certificate refused: not trusted. To trust it: backplane cert trust {thumbprint}");
            }
            CertificateError::ChainIncomplete { issuer, .. } => {
                tracing::warn!(%status, subject, issuer, "client certificate refused: its issuer is unknown. Put the issuer's certificate into issuers/certs (or trusted/certs) and its revocation list beside it, then: backplane cert trust {thumbprint}");
            }
            _ => {
                tracing::warn!(%status, subject, thumbprint, %error, "client certificate refused");
                return;
            }
        }
        if let Err(error) = self.keep_rejected(chain, &thumbprint) {
            tracing::error!(%error, "the refused certificate cannot be kept");
        }
    }

    /// Stores the chain in `rejected`, unless it is there, and removes the oldest beyond the limit.
    fn keep_rejected(&self, chain: &CertificateChain, thumbprint: &str) -> Result<(), PkiError> {
        let folder = &self.folders.rejected;
        let name = file_name(thumbprint, &chain.leaf().common_name().unwrap_or_default());
        if folder.dir.exists(&name) {
            return Ok(());
        }
        let mut files = folder.files()?;
        if files.len() >= MAX_REJECTED {
            files.sort_by_cached_key(|name| folder.modified(name));
            for name in files.iter().take(files.len() + 1 - MAX_REJECTED) {
                folder.remove(name)?;
            }
        }
        folder.write(&name, &chain.to_der(), false)
    }
}

impl CertificateVerifier for Pki {
    fn verify(&self, chain: &CertificateChain, policy: SecurityPolicy, now: DateTime) -> Result<(), CertificateError> {
        self.refresh();
        let rules = ValidationRules::new(Purpose::ClientApplication, policy);
        let error = match validate(chain, &self.lists.load().view(), now, &rules) {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        let unknown = matches!(
            error,
            CertificateError::Untrusted { .. }
                | CertificateError::ChainIncomplete { .. }
                | CertificateError::RevocationUnknown { .. }
                | CertificateError::IssuerRevocationUnknown { .. }
        );
        let answer = if self.auto_trust && unknown {
            self.trust_unknown(chain, &rules, now)
        } else {
            Err(error)
        };
        answer.inspect_err(|error| self.turn_away(chain, error, now))
    }
}

impl fmt::Debug for Pki {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pki")
            .field("certificate", &self.certificate)
            .finish_non_exhaustive()
    }
}
