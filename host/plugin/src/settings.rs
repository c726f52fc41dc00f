//! The operator's file beside a component: settings, limits, namespaces, grants.
//!
//! Owns parsing and look-up by dotted path. It must not know how a plugin is run.

use backplane_manifest::Asks;
use serde::Deserialize;

use crate::component::PluginKind;
use crate::limits::LimitOverrides;

/// `<name>.toml` beside `<name>.wasm`. Every part is optional; unknown keys are errors.
///
/// ```
/// let file = backplane_plugin::PluginFile::parse(r#"
/// kind = "node-manager"
/// namespaces = ["urn:acme:boiler"]
///
/// [settings]                          # whatever the plugin asks for
/// line = "north"
/// poll = { period = 250 }             # settings.get("poll.period") is 250
///
/// [limits]                            # what differs from the server's own, see `Limits`
/// memory = "96MiB"                    # sizes: bytes, or with KiB, MiB, GiB
/// read = { cpu = "100ms", wall = "2s" }
/// mailbox = 256
///
/// [grants]
/// log = true
///
/// [grants.network]                    # beside it the manifest in the component has to ask
/// connect = ["10.0.0.0/8:502"]
/// "#)?;
/// # assert_eq!(file.namespaces, ["urn:acme:boiler"]);
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginFile {
    /// `"node-manager"` or `"isolation-classifier"`: what the file beside it has to be. Left out: whatever it is. Where it says classifier, everybody is refused
    /// while there is none that runs.
    pub kind: Option<PluginKind>,
    /// Namespace URIs of the plugin, in the order of its local indexes 1, 2, ... Empty: the plugin asks the host for each.
    #[serde(default)]
    pub namespaces: Vec<String>,
    /// Anything: what `settings.get` answers from.
    #[serde(default)]
    pub settings: toml::Table,
    /// Bounds that differ from the host's defaults.
    #[serde(default)]
    pub limits: LimitOverrides,
    /// What the operator allows beyond nothing.
    #[serde(default)]
    pub grants: Grants,
    /// The digest of asks that the operator has read and agrees to, for a component that asks more than the one before.
    pub consent: Option<String>,
}

/// What a plugin may use of the world outside, if its manifest asks for it: see [`Asks`]. The default is nothing but the log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "toml::Table")]
pub struct Grants {
    /// Whether log lines and the standard streams reach the host's tracing; `true` when left out.
    pub log: Option<bool>,
    asks: Asks,
}

impl TryFrom<toml::Table> for Grants {
    type Error = backplane_manifest::Problems;

    fn try_from(table: toml::Table) -> Result<Self, Self::Error> {
        Ok(Self {
            log: table.get("log").and_then(toml::Value::as_bool),
            asks: backplane_manifest::read_grants(&table)?,
        })
    }
}

impl Grants {
    /// Whether the plugin may log.
    #[must_use]
    pub fn may_log(&self) -> bool {
        self.log.unwrap_or(true)
    }

    /// Everything but the log.
    #[must_use]
    pub fn asks(&self) -> &Asks {
        &self.asks
    }
}

impl PluginFile {
    /// Reads the text of a settings file.
    ///
    /// # Errors
    /// The first thing that is wrong, in one line, with the place.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: Self = toml::from_str(text).map_err(|error| {
            let line = error
                .span()
                .and_then(|span| text.get(..span.start))
                .map_or(1, |before| before.matches('\n').count() + 1);
            format!("line {line}: {}", error.message().replace('\n', " "))
        })?;
        if let Some(empty) = file.namespaces.iter().position(|uri| uri.is_empty()) {
            return Err(format!("namespaces: entry {} is empty", empty + 1));
        }
        Ok(file)
    }

    /// The settings as one JSON value, made once and then looked up in.
    #[must_use]
    pub fn settings_json(&self) -> serde_json::Value {
        to_json(&toml::Value::Table(self.settings.clone()))
    }
}

/// TOML as JSON; dates become text in RFC 3339, numbers JSON cannot hold become null.
fn to_json(value: &toml::Value) -> serde_json::Value {
    match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => {
            serde_json::Number::from_f64(*number).map_or(serde_json::Value::Null, serde_json::Value::Number)
        }
        toml::Value::Boolean(value) => (*value).into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(items) => items.iter().map(to_json).collect(),
        toml::Value::Table(table) => table
            .iter()
            .map(|(key, value)| (key.clone(), to_json(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

/// The value at a dotted path as JSON text; numbers index arrays, the empty path is everything.
pub(crate) fn lookup(settings: &serde_json::Value, path: &str) -> Option<String> {
    let mut at = settings;
    if !path.is_empty() {
        for part in path.split('.') {
            at = match at {
                serde_json::Value::Object(map) => map.get(part)?,
                serde_json::Value::Array(items) => items.get(part.parse::<usize>().ok()?)?,
                _ => return None,
            };
        }
    }
    Some(at.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_looked_up_by_path() {
        let file = PluginFile::parse(
            "namespaces = [\"urn:a\"]\n[settings]\nrate = 2.5\nwhen = 2026-01-02\n[settings.line]\nnames = [\"x\", \"y\"]",
        )
        .unwrap();
        let json = file.settings_json();
        assert_eq!(lookup(&json, "rate").unwrap(), "2.5");
        assert_eq!(lookup(&json, "line.names.1").unwrap(), "\"y\"");
        assert_eq!(lookup(&json, "when").unwrap(), "\"2026-01-02\"");
        assert_eq!(lookup(&json, "line.names.2"), None);
        assert_eq!(lookup(&json, "rate.x"), None);
        assert!(lookup(&json, "").unwrap().starts_with('{'));
        assert!(file.grants.may_log());
    }

    #[test]
    fn unknown_keys_name_their_line() {
        let error = PluginFile::parse("namespaces = []\n[grants]\nnetwork = true").unwrap_err();
        assert!(error.contains("grants.network = true: a table is expected"), "{error}");
        let error = PluginFile::parse("namespaces = [\"urn:a\", \"\"]").unwrap_err();
        assert_eq!(error, "namespaces: entry 2 is empty");
    }
}
