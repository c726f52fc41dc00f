//! How every command of this tool runs others: loudly, from the repository's root, stopping at the first failure.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The result of a command: a sentence for people on failure.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Where cargo builds.
pub(crate) fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// A command that runs in the root.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// cargo, the same one that runs this tool.
pub(crate) fn cargo() -> Command {
    command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs to the end; a non-zero exit is an error that shows the command.
pub(crate) fn run(command: &mut Command) -> Outcome {
    let shown = show(command);
    eprintln!("xtask: {shown}");
    let status = command
        .status()
        .map_err(|error| format!("cannot run {shown}: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{shown}: {status}"))
    }
}

/// [`run`], but quiet, and its output is returned (standard output, else standard error in the error).
pub(crate) fn output(command: &mut Command) -> Outcome<String> {
    let shown = show(command);
    let output = command
        .output()
        .map_err(|error| format!("cannot run {shown}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!(
        "{shown}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    ))
}

fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}
