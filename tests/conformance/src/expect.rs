//! `expect.toml`: what a client is known not to pass, and why.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

/// Client name, then case name, then the reason why that case does not pass.
#[derive(Debug, Deserialize)]
pub(crate) struct Expectations(BTreeMap<String, BTreeMap<String, String>>);

impl Expectations {
    /// Reads the file beside this package's manifest.
    pub(crate) fn read() -> Result<Self, String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("expect.toml");
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// The reason why `case` of `client` is not expected to pass.
    pub(crate) fn reason(&self, client: &str, case: &str) -> Option<&str> {
        self.0.get(client)?.get(case).map(String::as_str)
    }

    /// Every listed case of `client`.
    pub(crate) fn listed(&self, client: &str) -> impl Iterator<Item = &str> {
        self.0
            .get(client)
            .into_iter()
            .flat_map(|cases| cases.keys().map(String::as_str))
    }
}
