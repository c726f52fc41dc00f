//! `cargo xtask demo`: build, then become the demonstration server.

use crate::build;
use crate::tools::{Outcome, command, run, target_dir};

/// Builds everything and serves until stopped.
pub(crate) fn demo(port: u16) -> Outcome {
    build::build()?;
    let mut server = command(build::server_binary());
    server.args(["serve", "--demo", "--port"]).arg(port.to_string());
    server.arg("--plugins").arg(build::plugin_folder());
    server.arg("--state").arg(target_dir().join("demo-state"));
    run(&mut server)
}
