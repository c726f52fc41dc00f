//! Developer tools of the workspace, behind `cargo xtask`.
//!
//! The commands are library functions, so that tests can run them; `main.rs` only parses the command line.

pub mod codegen;

use std::path::{Path, PathBuf};

/// The folder of the workspace's Cargo.toml.
pub fn repository_root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_path_buf()
}
