//! Plugins as the host sees them: bad files, bad guests, restarts and reloads. One binary, because each links the whole of wasmtime.

mod components;
mod files;
mod guests;
mod supervision;
mod support;
