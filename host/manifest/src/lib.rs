//! What a plugin says of itself, what the operator grants, and who vouches for it.
//!
//! Owns the manifest (`plugin.toml`), the grants and what follows from both, the package (a component with its manifest and signature in one file), signatures and
//! revocation. Works on bytes and text that the caller has read: this crate must not know files, clocks, WebAssembly engines or OPC UA.
