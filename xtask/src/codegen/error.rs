//! What can go wrong while generating.

use std::path::PathBuf;

/// Why nothing was generated.
#[derive(Debug, thiserror::Error)]
pub enum CodegenError {
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A schema file is not well-formed XML.
    #[error("not well-formed XML: {0}")]
    Xml(String),
    /// A schema file says something that the generator does not expect.
    #[error("{0}")]
    Schema(String),
}

impl CodegenError {
    /// A schema error about something named.
    pub(crate) fn schema(about: impl std::fmt::Display, what: impl std::fmt::Display) -> Self {
        Self::Schema(format!("{about}: {what}"))
    }
}
