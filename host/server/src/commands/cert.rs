//! `backplane cert`: whom the server trusts, with the server running or not.

use std::path::{Path, PathBuf};

use super::{Failure, Outcome};
use crate::cli::{CertCommand, StateArgs};
use crate::config::Config;
use crate::pki::{self, Entry};

pub(super) fn run(command: &CertCommand) -> Outcome {
    match command {
        CertCommand::List { state } => list(&folder(state)?),
        CertCommand::Trust { thumbprint, state } => {
            let entry = pki::trust(&folder(state)?, thumbprint).map_err(Failure::other)?;
            println!("trusted: {}", describe(&entry));
            Ok(())
        }
    }
}

/// The folder of keys and trust lists that the arguments mean.
fn folder(args: &StateArgs) -> Result<PathBuf, Failure> {
    let state = match (&args.state, &args.config) {
        (Some(state), _) => state.clone(),
        (None, Some(path)) => Config::read(path).map_err(Failure::usage)?.state,
        (None, None) => Config::defaults().state,
    };
    Ok(state.join("pki"))
}

fn list(folder: &Path) -> Outcome {
    let listing = pki::list(folder).map_err(Failure::other)?;
    for (title, entries) in [
        ("own", &listing.own),
        ("trusted", &listing.trusted),
        ("issuers", &listing.issuers),
        ("rejected", &listing.rejected),
    ] {
        println!("{title}:{}", if entries.is_empty() { " none" } else { "" });
        for entry in entries {
            println!("  {}", describe(entry));
        }
    }
    if listing.problems.is_empty() {
        return Ok(());
    }
    Err(Failure::other(listing.problems.join("\nbackplane: ")))
}

fn describe(entry: &Entry) -> String {
    let uri = entry.application_uri.as_deref().unwrap_or("no application uri");
    format!(
        "{}  {}  {uri}  until {}  {}",
        entry.thumbprint, entry.subject, entry.not_after, entry.file
    )
}
