//! What a plugin says of itself, what the operator grants, and who vouches for it.
//!
//! Owns the manifest (`plugin.toml`), the grants and what follows from both, the package (a component with its manifest and signature in one file), signatures and
//! revocation. Works on bytes and text that the caller has read: this crate must not know files, clocks, WebAssembly engines or OPC UA.
//!
//! A file is judged in this order: [`Package::read`] (digest), [`Trust::judge`] (signature, revocation), [`Package::manifest`] (parse), [`Trust::judge_manifest`],
//! and only then is anything compiled. What a plugin may do is what it [asks](Asks) and what is granted: [`Permissions`].

mod address;
mod asks;
mod manifest;
mod package;
mod permissions;
mod problem;
mod revocation;
mod schema;
mod seal;
mod section;
mod signature;
mod size;

pub use zeroize::Zeroizing;

pub use address::{Endpoint, HostName, HostPattern, Net, Origin, Peer, Ports, RequestHost, normal_address};
pub use asks::{Asks, Folder, Growth, MAX_QUOTA, Secrets, grown, read_grants, read_secrets};
pub use manifest::{Kind, MAX_MANIFEST_BYTES, MAX_STATE_SCHEMAS, Manifest, SettingsSchema, StateSchemas};
pub use package::{Digest, MANIFEST_SECTION, MAX_SECTIONS, Package, PackageError, SIGNATURE_SECTION, pack};
pub use permissions::{Denial, ImportFolder, Missing, Permissions};
pub use problem::{MAX_PROBLEMS, Problem, Problems};
pub use revocation::{MAX_REVOCATION_BYTES, MAX_REVOCATIONS, Revocations, RevokedBy};
pub use schema::{MAX_DEPTH, MAX_SCHEMA_BYTES, Schema, check_settings};
pub use seal::{SealError, SealKey};
pub use section::{MAX_ENTRIES, MAX_TEXT};
pub use signature::{
    MAX_KEY_FILE, MAX_PUBLISHERS, Publisher, PublisherKey, PublisherSecret, Signature, Trust, Verdict,
};
