//! The operator's configuration: one TOML file, read and judged as a whole before a port opens.
//!
//! Owns the names of the keys, their defaults and the relations between them. Knows nothing of sockets, keys or plugins:
//! paths and names are checked by whoever opens them.

pub(crate) mod isolation;
mod limits;
mod sampling;
mod section;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use backplane_crypto::SecurityPolicy;
use backplane_queue::isolation::{Options, RateOptions};

pub use limits::ServerLimits;
pub use sampling::SamplingOptions;
use section::{Problems, Section};

/// Why a configuration is not used. Each line names the key and what is wrong with it.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The file is no TOML.
    #[error("{path} is not valid TOML: {reason}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Line, column and what was expected.
        reason: String,
    },
    /// Everything else, all of it at once.
    #[error("{path} has {} problem(s):\n  {}", .lines.len(), .lines.join("\n  "))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// `key: what is wrong`.
        lines: Vec<String>,
    },
}

/// A user that may log in with a name and a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserEntry {
    /// The login name.
    pub name: String,
    /// An argon2id hash in PHC form (`$argon2id$v=19$...`).
    pub password_hash: String,
    /// Roles beyond AuthenticatedUser, by name (Part 18 4.2).
    pub roles: Vec<String>,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// What the server is and does.
#[derive(Debug, Clone)]
pub struct Config {
    /// The file it came from; shown in messages.
    pub source: PathBuf,
    /// ApplicationUri (Part 4 7.2); also namespace 1.
    pub application_uri: String,
    /// ApplicationName, shown to people.
    pub application_name: String,
    /// ProductUri.
    pub product_uri: String,
    /// Where connections are accepted; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Host names (or `host:port`) to advertise in GetEndpoints before any other.
    pub advertised_hosts: Vec<String>,
    /// Additional host names and addresses for the application certificate.
    pub certificate_hosts: Vec<String>,
    /// Keys, trust lists, compile cache and plugin state live below this folder.
    pub state: PathBuf,
    /// Offer SecurityPolicy None.
    pub allow_none: bool,
    /// The policies offered beside None.
    pub policies: Vec<SecurityPolicy>,
    /// Offer MessageSecurityMode Sign beside SignAndEncrypt.
    pub allow_sign: bool,
    /// Trust every client certificate: for demonstrations and tests.
    pub auto_trust: bool,
    /// Make audit events.
    pub auditing: bool,
    /// Accept anonymous users.
    pub anonymous: bool,
    /// Users with passwords.
    pub users: Vec<UserEntry>,
    /// The folder with `.wasm` node managers; none: no plugins.
    pub plugins: Option<PathBuf>,
    /// Whether plugins have to be signed by a publisher whose key lies in `plugins/trust` of the state folder.
    pub require_signed: bool,
    /// The list of plugins that must not run; none: nothing is revoked.
    pub revocations: Option<PathBuf>,
    /// Bounds on everything.
    pub limits: ServerLimits,
    /// How the capacity that the limits give is divided.
    pub isolation: Options,
    /// Log line format.
    pub log_format: LogFormat,
    /// Log filter, as `tracing_subscriber::EnvFilter` reads it.
    pub log_filter: String,
}

impl Config {
    /// The configuration without a file: loopback, secure policies only, nobody trusted.
    #[must_use]
    pub fn defaults() -> Self {
        let host = crate::endpoints::host_name();
        Self {
            source: PathBuf::from("(defaults)"),
            application_uri: format!("urn:{host}:backplane"),
            application_name: "Backplane".to_owned(),
            product_uri: "urn:backplane".to_owned(),
            listen: SocketAddr::from(([127, 0, 0, 1], 4840)),
            advertised_hosts: Vec::new(),
            certificate_hosts: Vec::new(),
            state: PathBuf::from("state"),
            allow_none: false,
            policies: vec![
                SecurityPolicy::Basic256Sha256,
                SecurityPolicy::Aes128Sha256RsaOaep,
                SecurityPolicy::Aes256Sha256RsaPss,
            ],
            allow_sign: true,
            auto_trust: false,
            auditing: false,
            anonymous: false,
            users: Vec::new(),
            plugins: None,
            require_signed: false,
            revocations: None,
            limits: ServerLimits::default(),
            isolation: Options::default(),
            log_format: LogFormat::Text,
            log_filter: "info".to_owned(),
        }
    }

    /// The configuration of `backplane serve --demo`: on loopback, every policy including None, anonymous and
    /// `user1`/`password1`, every client trusted.
    ///
    /// # Errors
    /// When the password cannot be hashed, which no input causes.
    pub fn demo() -> Result<Self, crate::users::HashError> {
        let user = UserEntry {
            name: "user1".to_owned(),
            password_hash: crate::users::hash_password("password1")?,
            roles: vec!["Operator".to_owned()],
        };
        let mut config = Self::defaults();
        config.source = PathBuf::from("(demo)");
        config.application_name = "Backplane demo".to_owned();
        config.allow_none = true;
        config.auto_trust = true;
        config.anonymous = true;
        config.users = vec![user];
        config.limits = ServerLimits::demo();
        // Load tests connect by the thousand.
        config.isolation.rate = RateOptions {
            per_second: 10_000,
            burst: 20_000,
        };
        Ok(config)
    }

    /// Reads and judges a file.
    ///
    /// # Errors
    /// [`ConfigError`] with every problem found, not only the first.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text, path)
    }

    /// [`read`](Self::read) for a text that is already there; relative paths in it are taken from the file's folder.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| ConfigError::Syntax {
            path: path.to_owned(),
            reason: error.to_string().trim_end().to_owned(),
        })?;
        let mut problems = Problems::default();
        let mut config = Self::defaults();
        config.source = path.to_owned();
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut root = Section::root(table, &mut problems);
        config.read_server(&mut root, folder);
        config.read_security(&mut root);
        config.read_users(&mut root);
        let mut plugins = root.section("plugins");
        config.plugins = plugins.text("folder").map(|name| folder.join(name));
        config.require_signed = plugins.switch("require-signed", false);
        config.revocations = plugins.text("revocations").map(|name| folder.join(name));
        plugins.finish();
        let mut limits = root.section("limits");
        config.limits = ServerLimits::read(&mut limits);
        limits.finish();
        let mut sampling = root.section("sampling");
        config.limits.sampling = SamplingOptions::read(&mut sampling, config.limits.publishing_interval);
        sampling.finish();
        let mut section = root.section("isolation");
        config.isolation = isolation::read(&mut section);
        section.finish();
        config.isolation.handshake_timeout = Duration::from_secs_f64(config.limits.handshake_timeout / 1000.0);
        config.isolation.has_classifier = config.plugins.is_some();
        config.read_log(&mut root);
        root.finish();
        isolation::judge(&config.isolation, &config.limits, &mut problems);
        let lines = problems.into_lines();
        if lines.is_empty() {
            Ok(config)
        } else {
            Err(ConfigError::Invalid {
                path: path.to_owned(),
                lines,
            })
        }
    }

    fn read_server(&mut self, root: &mut Section<'_>, folder: &Path) {
        let mut server = root.section("server");
        if let Some(uri) = server.text("application-uri") {
            if uri.is_empty() || !uri.contains(':') {
                server.problem("application-uri", format_args!("{uri:?} is not a URI"));
            }
            self.application_uri = uri;
        }
        if let Some(name) = server.text("application-name") {
            self.application_name = name;
        }
        if let Some(uri) = server.text("product-uri") {
            self.product_uri = uri;
        }
        if let Some(listen) = server.text("listen") {
            match listen.parse() {
                Ok(address) => self.listen = address,
                Err(_) => server.problem(
                    "listen",
                    format_args!("{listen:?} is not an address and port such as 127.0.0.1:4840 or [::]:4840"),
                ),
            }
        }
        if let Some(hosts) = server.texts("advertised-hosts") {
            self.advertised_hosts = hosts;
        }
        if let Some(hosts) = server.texts("certificate-hosts") {
            self.certificate_hosts = hosts;
        }
        self.state = folder.join(server.text("state").unwrap_or_else(|| "state".to_owned()));
        server.finish();
    }

    fn read_security(&mut self, root: &mut Section<'_>) {
        let mut security = root.section("security");
        self.allow_none = security.switch("allow-none", self.allow_none);
        self.allow_sign = security.switch("allow-sign", self.allow_sign);
        self.auto_trust = security.switch("auto-trust", self.auto_trust);
        self.auditing = security.switch("auditing", self.auditing);
        if let Some(names) = security.texts("policies") {
            self.policies.clear();
            for name in names {
                match SecurityPolicy::from_name(&name) {
                    Some(SecurityPolicy::None) => security.problem("policies", "None is offered by allow-none = true"),
                    Some(policy) if self.policies.contains(&policy) => {
                        security.problem("policies", format_args!("{name} is named twice"))
                    }
                    Some(policy) => self.policies.push(policy),
                    None => security.problem(
                        "policies",
                        format_args!("{name:?} is none of Basic256Sha256, Aes128_Sha256_RsaOaep, Aes256_Sha256_RsaPss"),
                    ),
                }
            }
        }
        if self.policies.is_empty() && !self.allow_none {
            security.problem(
                "policies",
                "nothing to offer: name at least one policy or set allow-none = true",
            );
        }
        security.finish();
    }

    fn read_users(&mut self, root: &mut Section<'_>) {
        let mut users = root.section("users");
        self.anonymous = users.switch("anonymous", self.anonymous);
        self.users = users.sections("user", |user| {
            let entry = UserEntry {
                name: user.text("name").unwrap_or_default(),
                password_hash: user.text("password-hash").unwrap_or_default(),
                roles: user.texts("roles").unwrap_or_default(),
            };
            if entry.name.is_empty() {
                user.problem("name", "missing");
            }
            for role in entry.roles.iter().filter(|role| crate::roles::by_name(role).is_none()) {
                user.problem("roles", format_args!("{role:?} is none of {}", crate::roles::names()));
            }
            if let Err(error) = crate::users::check_hash(&entry.password_hash) {
                user.problem("password-hash", error);
            }
            entry
        });
        for (index, user) in self.users.iter().enumerate() {
            if self.users[..index].iter().any(|other| other.name == user.name) {
                users.problem("user", format_args!("{:?} is there twice", user.name));
            }
        }
        if self.users.is_empty() && !self.anonymous {
            users.problem(
                "anonymous",
                "nobody could log in: add a [[users.user]] or set anonymous = true",
            );
        }
        users.finish();
    }

    fn read_log(&mut self, root: &mut Section<'_>) {
        let mut log = root.section("log");
        match log.text("format").as_deref() {
            None | Some("text") => {}
            Some("json") => self.log_format = LogFormat::Json,
            Some(other) => log.problem("format", format_args!("{other:?} is neither text nor json")),
        }
        if let Some(filter) = log.text("filter") {
            if let Err(error) = filter.parse::<tracing_subscriber::EnvFilter>() {
                log.problem("filter", error);
            }
            self.log_filter = filter;
        }
        log.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        match Config::parse(text, Path::new("backplane.toml")) {
            Err(ConfigError::Invalid { lines, .. }) => lines,
            other => panic!("expected problems, got {other:?}"),
        }
    }

    #[test]
    fn everything_wrong_is_reported_at_once() {
        let lines = problems(
            "[server]\nlisten = \"nowhere\"\nport = 1\n[security]\npolicies = [\"Basic1\"]\nallow-none = 3\n[users]\nanonymous = true\n[limits]\nsessions = 0\n[tea]\npot = 1\n",
        );
        for key in [
            "server.listen",
            "server.port: unknown key",
            "security.policies",
            "security.allow-none",
            "limits.sessions",
            "tea: unknown key",
        ] {
            assert!(
                lines.iter().any(|line| line.contains(key)),
                "{key} is missing in {lines:#?}"
            );
        }
    }

    #[test]
    fn a_server_that_nobody_can_enter_is_refused() {
        assert!(problems("").iter().any(|line| line.starts_with("users.anonymous")));
        assert!(
            problems("[users]\nanonymous = true\n[security]\npolicies = []\n")
                .iter()
                .any(|line| line.starts_with("security.policies"))
        );
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        let config = Config::parse(
            "[users]\nanonymous = true\n[plugins]\nfolder = \"plugins\"\n",
            Path::new("/etc/backplane/backplane.toml"),
        )
        .unwrap();
        assert_eq!(config.state, Path::new("/etc/backplane/state"));
        assert_eq!(config.plugins.as_deref(), Some(Path::new("/etc/backplane/plugins")));
    }

    #[test]
    fn a_plain_password_is_no_hash() {
        let lines = problems("[[users.user]]\nname = \"u\"\npassword-hash = \"secret\"\n");
        assert!(
            lines.iter().any(|line| line.starts_with("users.user[0].password-hash")),
            "{lines:?}"
        );
    }
}
