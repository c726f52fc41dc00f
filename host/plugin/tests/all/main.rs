//! Plugins as the host sees them: bad files, bad guests, restarts and reloads. One binary, because each links the whole of wasmtime.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod classify;
mod components;
mod demand;
mod events;
mod files;
mod guests;
mod merging;
mod misdeeds;
mod pace;
mod permissions;
mod store;
mod supervision;
mod support;
