//! What a plugin was taken with, so that a component that asks more waits for the operator.
//!
//! Owns one file for each plugin: its id and asks. The first component of a name is taken as it is: the operator has put it there and has granted, or not. It must not
//! know what is granted.

use std::path::{Path, PathBuf};

use backplane_manifest::{Asks, MAX_MANIFEST_BYTES, Manifest, grown};

use super::SecurityOptions;
use super::admission::read;

fn file(name: &str, security: &SecurityOptions) -> Option<PathBuf> {
    Some(security.consents.as_ref()?.join(format!("{name}.asks")))
}

/// What `manifest` asks without consent; told as problems with the line that gives consent.
pub(super) fn missing(
    name: &str,
    manifest: &Manifest,
    consent: Option<&str>,
    security: &SecurityOptions,
) -> Vec<String> {
    let digest = manifest.asks.digest();
    let Some(path) = file(name, security) else {
        return Vec::new();
    };
    if consent == Some(digest.as_str()) {
        return Vec::new();
    }
    let old = match recorded(&path) {
        Ok(None) => return Vec::new(),
        Ok(Some((id, asks))) if id == manifest.id => asks,
        // Another plugin under the same name: nothing was consented to.
        Ok(Some(_)) => Asks::default(),
        Err(reason) => return vec![reason],
    };
    let growth = grown(&old, &manifest.asks);
    let mut problems: Vec<_> = growth
        .iter()
        .map(|more| format!("asks more than before: {more}"))
        .collect();
    if !problems.is_empty() {
        problems.push(format!("to allow that, write consent = \"{digest}\" into {name}.toml"));
    }
    problems
}

/// Remembers what was taken.
pub(crate) fn remember(name: &str, manifest: &Manifest, security: &SecurityOptions) -> Result<(), String> {
    let Some(path) = file(name, security) else {
        return Ok(());
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    let text = format!("# {}\n{}", manifest.id, manifest.asks.to_text());
    // Whole or not at all: a file cut short would read as less consent.
    let beside = path.with_extension("new");
    std::fs::write(&beside, text).map_err(failed)?;
    std::fs::rename(&beside, &path).map_err(failed)
}

fn recorded(path: &Path) -> Result<Option<(String, Asks)>, String> {
    if !path.exists() {
        return Ok(None);
    }
    let wrong = |reason: String| format!("{}: {reason}", path.display());
    let text = read(path, MAX_MANIFEST_BYTES).map_err(wrong)?;
    let (id, asks) = text.split_once('\n').unwrap_or((&text, ""));
    let id = id
        .strip_prefix("# ")
        .ok_or_else(|| wrong("does not begin with an id".to_owned()))?;
    let asks = Asks::parse(asks).map_err(|problems| wrong(problems.to_string()))?;
    Ok(Some((id.to_owned(), asks)))
}
