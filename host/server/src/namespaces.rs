//! The NamespaceArray over restarts: an index that a client has learned keeps its meaning.
//!
//! Owns one file in the state folder, a URI a line, in the order of their indexes from 2 on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use backplane_nodes::NamespaceTable;
use tokio::sync::watch;

const FILE: &str = "namespaces.txt";
/// How often new entries are looked for.
const INTERVAL: Duration = Duration::from_secs(1);
/// Entries before those that are kept: OPC UA and the server's own.
const FIXED: usize = 2;

/// The URIs known before this start. A file that cannot be read is reported; the server starts without it.
pub(crate) fn known(state: &Path) -> Vec<String> {
    let path = state.join(FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => text
            .lines()
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            tracing::warn!(file = %path.display(), %error, "namespace indexes may change: the list of the last run cannot be read");
            Vec::new()
        }
    }
}

/// Writes the file whenever there are new entries, until the server stops.
pub(crate) async fn keep(table: Arc<NamespaceTable>, state: PathBuf, mut stop: watch::Receiver<bool>) {
    let mut saved = 0;
    loop {
        let uris = table.all();
        if uris.len() != saved {
            let lines: Vec<String> = uris.iter().skip(FIXED).map(|uri| uri.text().to_owned()).collect();
            match save(&state, &lines) {
                Ok(()) => saved = uris.len(),
                Err(error) => {
                    tracing::warn!(file = %state.join(FILE).display(), %error, "namespace indexes may change at the next start: the list cannot be written")
                }
            }
        }
        if *stop.borrow() {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            _ = stop.changed() => {}
        }
    }
}

fn save(state: &Path, lines: &[String]) -> std::io::Result<()> {
    let partial = state.join(format!("{FILE}.partial"));
    std::fs::write(&partial, lines.join("\n"))?;
    std::fs::rename(partial, state.join(FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_known_at_the_next_start() {
        let folder = tempfile::tempdir().unwrap();
        assert!(known(folder.path()).is_empty());
        save(folder.path(), &["urn:a".to_owned(), "urn:b".to_owned()]).unwrap();
        assert_eq!(known(folder.path()), ["urn:a", "urn:b"]);
    }
}
