//! What a plugin may use of the world outside: what its manifest asks, and what the operator grants, in one form.
//!
//! Owns the keys of `[asks]` and `[grants]`, their text, and what one has more than another. It must not know who decides, nor carry anything out.

use sha2::{Digest as _, Sha256};
use toml::{Table, Value};

use crate::address::{Endpoint, HostPattern, Origin};
use crate::problem::{Found, Problem};
use crate::section::{Section, quoted};
use crate::size::{parse_size, size_text};

/// The most bytes that a folder may be given.
pub const MAX_QUOTA: u64 = 1 << 40;

/// What is asked, or granted. The default is nothing.
///
/// ```toml
/// [asks]                                  # in the operator's file: [grants]
/// environment = ["TZ"]                    # variables of the server's own environment
/// secrets = ["plc-password"]
/// random = true                           # wasi:random/random
///
/// [asks.network]
/// connect = ["plc.example:502", "10.0.0.0/8:502"]
/// listen = ["127.0.0.1:9000"]
/// udp = ["*:47808"]
/// names = ["*.example"]                   # may be looked up, beside the names in connect and udp
///
/// [asks.http]
/// origins = ["https://api.example.com"]
///
/// [asks.clock]
/// wall = true
/// monotonic = true
///
/// [asks.folders]
/// own-data = { quota = "64MiB" }          # read and write, `/data` for the plugin
/// import = { quota = "1GiB" }             # read only, `/import`; [grants] also has path = "/srv/recipes"
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asks {
    /// `network.connect`: TCP connections to others.
    pub connect: Vec<Endpoint>,
    /// `network.listen`: addresses of this machine to be reached at by TCP.
    pub listen: Vec<Endpoint>,
    /// `network.udp`: peers to exchange datagrams with, and own addresses to bind.
    pub udp: Vec<Endpoint>,
    /// `network.names`: names that may be looked up, beside those in `connect` and `udp`.
    pub names: Vec<HostPattern>,
    /// `http.origins`.
    pub origins: Vec<Origin>,
    /// `folders.own-data`.
    pub own_data: Option<Folder>,
    /// `folders.import`.
    pub import: Option<Folder>,
    /// `environment`.
    pub environment: Vec<String>,
    /// `secrets`.
    pub secrets: Vec<String>,
    /// `clock.wall`.
    pub wall_clock: bool,
    /// `clock.monotonic`.
    pub monotonic_clock: bool,
    /// `random`.
    pub random: bool,
}

/// A folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Bytes that may lie in it.
    pub quota: u64,
    /// Where it is; only in grants, and only of `import`.
    pub path: Option<String>,
}

/// One thing that is asked and was not before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Growth {
    /// The key, `asks.network.connect`.
    pub key: String,
    /// What is new there.
    pub value: String,
}

impl std::fmt::Display for Growth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.key, self.value)
    }
}

impl Asks {
    /// Reads `[asks]` or `[grants]`; what is wrong goes to `found`.
    pub(crate) fn read(mut root: Section<'_>, grants: bool, found: &mut Found) -> Self {
        if grants {
            // Read by whoever runs plugins; here it only has to be known.
            root.flag("log", found);
        }
        let mut network = root.section("network", found);
        let mut http = root.section("http", found);
        let mut clock = root.section("clock", found);
        let mut folders = root.section("folders", found);
        let asks = Self {
            connect: network.list("connect", found, Endpoint::parse),
            listen: network.list("listen", found, local_endpoint),
            udp: network.list("udp", found, Endpoint::parse),
            names: network.list("names", found, name_pattern),
            origins: http.list("origins", found, Origin::parse),
            own_data: folder(folders.section("own-data", found), false, found),
            import: folder(folders.section("import", found), grants, found),
            environment: root.list("environment", found, variable),
            secrets: root.list("secrets", found, secret_name),
            wall_clock: clock.flag("wall", found),
            monotonic_clock: clock.flag("monotonic", found),
            random: root.flag("random", found),
        };
        for section in [network, http, clock, folders, root] {
            section.finish(found);
        }
        asks
    }

    /// As a table of TOML, with no key that says nothing.
    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new();
        put_list(&mut table, "environment", &self.environment);
        put_list(&mut table, "secrets", &self.secrets);
        put_flag(&mut table, "random", self.random);
        let mut network = Table::new();
        put_list(&mut network, "connect", &self.connect);
        put_list(&mut network, "listen", &self.listen);
        put_list(&mut network, "udp", &self.udp);
        put_list(&mut network, "names", &self.names);
        put_table(&mut table, "network", network);
        let mut http = Table::new();
        put_list(&mut http, "origins", &self.origins);
        put_table(&mut table, "http", http);
        let mut clock = Table::new();
        put_flag(&mut clock, "wall", self.wall_clock);
        put_flag(&mut clock, "monotonic", self.monotonic_clock);
        put_table(&mut table, "clock", clock);
        let mut folders = Table::new();
        for (key, folder) in [("own-data", &self.own_data), ("import", &self.import)] {
            if let Some(folder) = folder {
                let mut inner = Table::new();
                inner.insert("quota".to_owned(), size_text(folder.quota).into());
                if let Some(path) = &folder.path {
                    inner.insert("path".to_owned(), path.clone().into());
                }
                folders.insert(key.to_owned(), Value::Table(inner));
            }
        }
        put_table(&mut table, "folders", folders);
        table
    }

    /// The canonical text of these asks, keys without `asks.`: equal asks have equal text.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.table().to_string()
    }

    /// Reads [`to_text`](Self::to_text) back.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn parse(text: &str) -> Result<Self, crate::Problems> {
        let table = crate::section::parse_table(text, crate::manifest::MAX_MANIFEST_BYTES)?;
        let mut found = Found::default();
        let asks = Self::read(Section::root(&table), false, &mut found);
        found.done(asks)
    }

    /// SHA-256 of [`to_text`](Self::to_text), as `sha256:` and hexadecimal digits: what an operator consents to.
    #[must_use]
    pub fn digest(&self) -> String {
        crate::package::Digest(Sha256::digest(self.to_text().as_bytes()).into()).to_string()
    }

    /// Whether nothing is asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What `new` asks beyond `old`: entries that no single entry of `old` covers, larger quotas. Empty: consent to `old` is consent to `new`.
#[must_use]
pub fn grown(old: &Asks, new: &Asks) -> Vec<Growth> {
    let mut growth = Vec::new();
    let mut beyond = |key: &str, value: String| {
        growth.push(Growth {
            key: format!("asks.{key}"),
            value,
        });
    };
    uncovered(
        "network.connect",
        &old.connect,
        &new.connect,
        Endpoint::covers,
        &mut beyond,
    );
    uncovered(
        "network.listen",
        &old.listen,
        &new.listen,
        Endpoint::covers,
        &mut beyond,
    );
    uncovered("network.udp", &old.udp, &new.udp, Endpoint::covers, &mut beyond);
    uncovered(
        "network.names",
        &old.names,
        &new.names,
        HostPattern::covers,
        &mut beyond,
    );
    uncovered("http.origins", &old.origins, &new.origins, Origin::covers, &mut beyond);
    uncovered(
        "environment",
        &old.environment,
        &new.environment,
        PartialEq::eq,
        &mut beyond,
    );
    uncovered("secrets", &old.secrets, &new.secrets, PartialEq::eq, &mut beyond);
    let quota = |folder: &Option<Folder>| folder.as_ref().map(|folder| folder.quota);
    for (key, old, new) in [
        ("folders.own-data", quota(&old.own_data), quota(&new.own_data)),
        ("folders.import", quota(&old.import), quota(&new.import)),
    ] {
        if let Some(quota) = new.filter(|_| new > old) {
            beyond(key, size_text(quota));
        }
    }
    for (key, old, new) in [
        ("clock.wall", old.wall_clock, new.wall_clock),
        ("clock.monotonic", old.monotonic_clock, new.monotonic_clock),
        ("random", old.random, new.random),
    ] {
        if new && !old {
            beyond(key, "true".to_owned());
        }
    }
    growth
}

fn uncovered<T: std::fmt::Display>(
    key: &str,
    old: &[T],
    new: &[T],
    covers: impl Fn(&T, &T) -> bool,
    beyond: &mut impl FnMut(&str, String),
) {
    for entry in new.iter().filter(|entry| !old.iter().any(|old| covers(old, entry))) {
        beyond(key, entry.to_string());
    }
}

fn folder(mut section: Section<'_>, with_path: bool, found: &mut Found) -> Option<Folder> {
    let there = section.is_there();
    if !there {
        return None;
    }
    let quota = section.required("quota", found, |text| {
        let rule = || format!("a quota is at most {}", size_text(MAX_QUOTA));
        parse_size(text).and_then(|quota| (quota <= MAX_QUOTA).then_some(quota).ok_or_else(rule))
    });
    let path = with_path
        .then(|| section.required("path", found, absolute_path))
        .flatten();
    section.finish(found);
    Some(Folder {
        quota: quota.unwrap_or(0),
        path,
    })
}

fn absolute_path(text: &str) -> Result<String, String> {
    if !std::path::Path::new(text).is_absolute() || text.contains('\0') {
        return Err("a path begins at the root".to_owned());
    }
    Ok(text.to_owned())
}

fn local_endpoint(text: &str) -> Result<Endpoint, String> {
    let endpoint = Endpoint::parse(text)?;
    match endpoint.host {
        HostPattern::Net(_) | HostPattern::Any => Ok(endpoint),
        _ => Err("where to listen is an address of this machine, or *".to_owned()),
    }
}

fn name_pattern(text: &str) -> Result<HostPattern, String> {
    match HostPattern::parse(text)? {
        HostPattern::Net(_) => Err("a name that may be looked up, not an address".to_owned()),
        pattern => Ok(pattern),
    }
}

fn variable(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if text.is_empty() || !text.bytes().all(plain) || text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err("a variable is letters, digits and _, not a digit first".to_owned());
    }
    Ok(text.to_owned())
}

/// Reads the name of a secret: 1 to 64 of the characters a-z, A-Z, 0-9, `-`, `_`, `.`.
pub(crate) fn secret_name(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if text.is_empty() || text.len() > 64 || !text.bytes().all(plain) {
        return Err("a secret's name is 1 to 64 letters, digits, -, _ and .".to_owned());
    }
    Ok(text.to_owned())
}

fn put_list<T: std::fmt::Display>(table: &mut Table, key: &str, items: &[T]) {
    if !items.is_empty() {
        let items = items.iter().map(|item| Value::String(item.to_string())).collect();
        table.insert(key.to_owned(), Value::Array(items));
    }
}

fn put_flag(table: &mut Table, key: &str, flag: bool) {
    if flag {
        table.insert(key.to_owned(), true.into());
    }
}

fn put_table(table: &mut Table, key: &str, inner: Table) {
    if !inner.is_empty() {
        table.insert(key.to_owned(), Value::Table(inner));
    }
}

/// The operator's `[grants]`, from a table of that name.
///
/// # Errors
/// Everything that is wrong, keys beginning with `grants.`.
pub fn read_grants(table: &Table) -> Result<Asks, crate::Problems> {
    let mut found = Found::default();
    let grants = Asks::read(Section::at("grants".to_owned(), Some(table)), true, &mut found);
    found.done(grants)
}

/// Secrets by name, overwritten when they are dropped.
pub type Secrets = std::collections::BTreeMap<String, zeroize::Zeroizing<String>>;

/// Reads secrets: one `name = "value"` for each, as an operator's file holds them.
///
/// # Errors
/// Everything that is wrong; no value is ever repeated.
pub fn read_secrets(text: &str) -> Result<Secrets, crate::Problems> {
    // The parser's own message may repeat part of the line.
    let table: Table = toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map_or(1, |before| before.matches('\n').count() + 1);
        crate::Problems::from(Problem::new("", "", format!("line {line}: not name = \"value\"")))
    })?;
    let mut found = Found::default();
    let mut secrets = Secrets::new();
    for (name, value) in table {
        match (secret_name(&name), value) {
            (Ok(name), Value::String(value)) => {
                secrets.insert(name, zeroize::Zeroizing::new(value));
            }
            (Err(rule), _) => found.add(Problem::new(quoted(&name), "", rule)),
            (Ok(name), _) => found.add(Problem::new(name, "", "a secret is a text")),
        }
    }
    found.done(secrets)
}
