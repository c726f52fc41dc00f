//! `plugin.toml`: what a plugin is and what it asks.
//!
//! Owns its keys, their rules and its canonical text. It must not know what is granted, nor look into the component.

use semver::Version;
use toml::{Table, Value};

use crate::asks::Asks;
use crate::problem::{Found, Problem, Problems};
use crate::schema::Schema;
use crate::section::{Section, parse_table, quoted};

/// Bytes of a manifest, its schema included.
pub const MAX_MANIFEST_BYTES: usize = 256 << 10;
/// Versions of state that a plugin may say it reads.
pub const MAX_STATE_SCHEMAS: usize = 64;

/// What a plugin is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Serves nodes.
    NodeManager,
    /// Tells whose work a peer's requests are.
    Classifier,
}

impl Kind {
    /// The word in the manifest.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NodeManager => "node-manager",
            Self::Classifier => "classifier",
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "node-manager" => Ok(Self::NodeManager),
            "classifier" | "isolation-classifier" => Ok(Self::Classifier),
            _ => Err("a plugin is a node-manager or a classifier".to_owned()),
        }
    }
}

/// The versions of the state that is handed from one generation to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateSchemas {
    /// What this build writes.
    pub writes: u32,
    /// What it reads.
    pub reads: Vec<u32>,
}

/// A manifest.
///
/// ```
/// let manifest = backplane_manifest::Manifest::parse(r#"
/// id = "com.acme.boiler"
/// version = "1.2.0"
/// kind = "node-manager"                  # or "classifier"
/// namespaces = ["urn:acme:boiler"]       # local indexes 1, 2, ...
/// host = "0.1.0"                         # the oldest version of the host's interfaces that it runs on
/// state = { writes = 2, reads = [1, 2] }
/// settings-schema = "settings.json"      # or an inline table; packed: the schema's JSON itself
///
/// [asks.network]
/// connect = ["10.0.0.0/8:502"]
/// "#)?;
/// assert_eq!(manifest.id, "com.acme.boiler");
/// # Ok::<(), backplane_manifest::Problems>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// Who it is, whatever its file is called: labels of a-z, 0-9 and `-` between dots.
    pub id: String,
    /// Its version.
    pub version: Version,
    /// What it is for.
    pub kind: Kind,
    /// Namespace URIs, in the order of the plugin's local indexes.
    pub namespaces: Vec<String>,
    /// The oldest version of the host's interfaces that it runs on.
    pub host: Option<Version>,
    /// Of the state it hands over.
    pub state: Option<StateSchemas>,
    /// What it asks of the world outside.
    pub asks: Asks,
    /// What its settings have to look like.
    pub settings: SettingsSchema,
}

/// Where the JSON Schema of a plugin's settings is.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum SettingsSchema {
    /// Any settings will do.
    #[default]
    None,
    /// In a file beside the manifest. Never in a package: packing puts the content here.
    File(String),
    /// Here.
    Inline(serde_json::Value),
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// Everything that is wrong: unknown keys, values that break a rule, a schema that is none.
    pub fn parse(text: &str) -> Result<Self, Problems> {
        let table = parse_table(text, MAX_MANIFEST_BYTES)?;
        let mut found = Found::default();
        let mut root = Section::root(&table);
        let id = root.required("id", &mut found, plugin_id);
        let version = root.required("version", &mut found, semantic);
        let kind = root.required("kind", &mut found, Kind::parse);
        let namespaces = root.list("namespaces", &mut found, namespace);
        let host = root.parsed("host", &mut found, semantic);
        let state = root.value("state").map(|_| root.section("state", &mut found));
        let state = state.map(|section| state_schemas(section, &mut found));
        let settings = settings_schema(&mut root, &mut found);
        let asks = Asks::read(root.section("asks", &mut found), false, &mut found);
        root.finish(&mut found);
        let (Some(id), Some(version), Some(kind)) = (id, version, kind) else {
            return found
                .done(())
                .and_then(|()| Err(Problem::new("", "", "not a manifest").into()));
        };
        found.done(Self {
            id,
            version,
            kind,
            namespaces,
            host,
            state,
            asks,
            settings,
        })
    }

    /// The canonical text: equal manifests have equal text, and [`parse`](Self::parse) reads an equal one back.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut table = Table::new();
        let mut put = |key: &str, value: Value| {
            table.insert(key.to_owned(), value);
        };
        put("id", self.id.clone().into());
        put("version", self.version.to_string().into());
        put("kind", self.kind.name().into());
        if !self.namespaces.is_empty() {
            put(
                "namespaces",
                Value::Array(self.namespaces.iter().map(|uri| uri.as_str().into()).collect()),
            );
        }
        if let Some(host) = &self.host {
            put("host", host.to_string().into());
        }
        match &self.settings {
            SettingsSchema::None => {}
            SettingsSchema::File(name) => put("settings-schema", name.as_str().into()),
            SettingsSchema::Inline(schema) => put("settings-schema", schema.to_string().into()),
        }
        if let Some(state) = &self.state {
            let mut inner = Table::new();
            inner.insert("writes".to_owned(), i64::from(state.writes).into());
            let reads = state.reads.iter().map(|schema| i64::from(*schema).into()).collect();
            inner.insert("reads".to_owned(), Value::Array(reads));
            put("state", Value::Table(inner));
        }
        if !self.asks.is_empty() {
            put("asks", Value::Table(self.asks.table()));
        }
        table.to_string()
    }
}

fn plugin_id(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let label =
        |label: &str| !label.is_empty() && label.bytes().all(plain) && !label.starts_with('-') && !label.ends_with('-');
    if text.len() > 128 || !text.split('.').all(label) {
        return Err("an id is at most 128 of a-z, 0-9 and - between dots, as in com.acme.boiler".to_owned());
    }
    Ok(text.to_owned())
}

fn semantic(text: &str) -> Result<Version, String> {
    Version::parse(text).map_err(|error| format!("a semantic version, as in 1.2.0: {error}"))
}

fn namespace(text: &str) -> Result<String, String> {
    if text.is_empty() || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err("a namespace URI is not empty and has no white space".to_owned());
    }
    if text == "http://opcfoundation.org/UA/" {
        return Err("namespace 0 is the host's".to_owned());
    }
    Ok(text.to_owned())
}

fn state_schemas(mut section: Section<'_>, found: &mut Found) -> StateSchemas {
    let number = |value: &Value| value.as_integer().and_then(|number| u32::try_from(number).ok());
    let rule = "a number from 0 to 4294967295";
    let mut state = StateSchemas {
        writes: 0,
        reads: Vec::new(),
    };
    match section.value("writes") {
        None => found.add(Problem::new(section.path_of("writes"), "", "is missing")),
        Some(value) => match number(value) {
            Some(writes) => state.writes = writes,
            None => found.add(Problem::new(section.path_of("writes"), value, rule)),
        },
    }
    match section.value("reads") {
        None => {}
        Some(Value::Array(items)) if items.len() <= MAX_STATE_SCHEMAS => {
            for (index, item) in items.iter().enumerate() {
                match number(item) {
                    Some(reads) => state.reads.push(reads),
                    None => found.add(Problem::new(
                        format!("{}[{index}]", section.path_of("reads")),
                        item,
                        rule,
                    )),
                }
            }
        }
        Some(_) => {
            let rule = format!("a list of at most {MAX_STATE_SCHEMAS} numbers is expected");
            found.add(Problem::new(section.path_of("reads"), "", rule));
        }
    }
    section.finish(found);
    state
}

fn settings_schema(root: &mut Section<'_>, found: &mut Found) -> SettingsSchema {
    let key = "settings-schema";
    let schema = match root.value(key) {
        None => return SettingsSchema::None,
        Some(Value::String(text)) if text.trim_start().starts_with('{') => match serde_json::from_str(text) {
            Ok(schema) => schema,
            Err(error) => {
                found.add(Problem::new(key, quoted(text), format!("not JSON: {error}")));
                return SettingsSchema::None;
            }
        },
        Some(Value::String(name)) => {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            if name.is_empty() || name.len() > 128 || name.starts_with('.') || !name.chars().all(plain) {
                let rule = "the name of a file beside the manifest, a table, or the JSON itself";
                found.add(Problem::new(key, quoted(name), rule));
            }
            return SettingsSchema::File(name.clone());
        }
        Some(table @ Value::Table(_)) => json(table),
        Some(other) => {
            found.add(Problem::new(
                key,
                other,
                "a table, the name of a file, or the JSON itself",
            ));
            return SettingsSchema::None;
        }
    };
    if let Err(Problems(problems)) = Schema::compile(&schema) {
        for mut problem in problems {
            problem.key = format!("{key}{}", problem.key);
            found.add(problem);
        }
    }
    SettingsSchema::Inline(schema)
}

/// TOML as JSON; dates become text, numbers that JSON cannot hold null.
fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::String(text) => text.as_str().into(),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) => serde_json::Number::from_f64(*number).map_or(serde_json::Value::Null, Into::into),
        Value::Boolean(flag) => (*flag).into(),
        Value::Datetime(time) => time.to_string().into(),
        Value::Array(items) => items.iter().map(json).collect(),
        Value::Table(table) => {
            let members = table.iter().map(|(key, value)| (key.clone(), json(value)));
            members.collect::<serde_json::Map<_, _>>().into()
        }
    }
}

#[cfg(test)]
#[path = "manifest/tests.rs"]
mod tests;
