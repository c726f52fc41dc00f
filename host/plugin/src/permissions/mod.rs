//! What a plugin may do of the world outside, carried out: judging its file, and what WASI and secrets give it.
//!
//! Owns the files that decide (trust folder, revocation list, secrets, consents), the order in which a component is judged, and saying no. The rules themselves are in
//! `backplane_manifest`. It must not know how an instance is run.

mod access;
mod admission;
mod consent;
mod folders;
mod link;
mod wasi;

use std::path::PathBuf;

pub(crate) use access::Access;
pub(crate) use admission::admit;
pub(crate) use consent::remember;
pub(crate) use link::shadow;
pub(crate) use wasi::context;

/// Who is trusted, and where the files are that plugins may be given. The default trusts everybody and gives nothing.
#[derive(Debug, Clone, Default)]
pub struct SecurityOptions {
    /// Folder with publishers' key files (`*.pub`); read anew for each load. None, or no such folder: no publisher is known.
    pub trust: Option<PathBuf>,
    /// The revocation list; read anew for each load. One that is named and cannot be read lets nothing be loaded.
    pub revocations: Option<PathBuf>,
    /// Whether a component has to be signed by a publisher of the trust folder.
    pub require_signed: bool,
    /// Folder with `<name>.toml`, mode 0600: the secrets of a plugin.
    pub secrets: Option<PathBuf>,
    /// Folder in which each plugin that may has one of its own; made when first needed.
    pub data: Option<PathBuf>,
    /// Folder in which the asks are kept that each plugin was taken with. With it, a component that asks more waits for the operator's `consent`. None: nobody asks.
    pub consents: Option<PathBuf>,
}
