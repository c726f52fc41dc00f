//! What can go wrong with the folder of keys and trust lists. Every message names the file and what to do.

use std::path::PathBuf;

use backplane_crypto::certificate::CreateError;

/// Why keys and trust lists cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// A folder cannot be made or opened.
    #[error("cannot use the folder {path}: {source}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A file cannot be read or written.
    #[error("cannot use {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{path}: {reason}")]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// No application certificate could be made.
    #[error("cannot make the application certificate: {0}")]
    Create(#[from] CreateError),
    /// No certificate with that thumbprint.
    #[error("no rejected certificate has a thumbprint that begins with {thumbprint}; `backplane cert list` shows them")]
    Unknown {
        /// What was asked for.
        thumbprint: String,
    },
    /// Several certificates with that beginning of a thumbprint.
    #[error("{count} rejected certificates have a thumbprint that begins with {thumbprint}; give more digits")]
    Ambiguous {
        /// What was asked for.
        thumbprint: String,
        /// How many match.
        count: usize,
    },
    /// Not the digits of a thumbprint.
    #[error("\"{thumbprint}\" is no thumbprint: give at least {least} hexadecimal digits of it")]
    Thumbprint {
        /// What was asked for.
        thumbprint: String,
        /// The fewest digits accepted.
        least: usize,
    },
}
