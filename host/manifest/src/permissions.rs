//! What a plugin may do: what its manifest asks and what the operator grants.
//!
//! Owns the decision about each thing, and who has to change which key when it is no. It must not carry anything out.

use std::fmt;

use crate::address::{Endpoint, HostName, HostPattern, Origin, Peer, RequestHost};
use crate::asks::Asks;

/// Which of the two does not have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Missing {
    /// The manifest does not ask for it.
    Ask,
    /// The operator does not grant it.
    Grant,
}

/// A no: what was wanted, and the key that says so.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Denial {
    /// Whose no it is.
    pub missing: Missing,
    /// The key to change, without `asks.` or `grants.`: `network.connect`.
    pub key: &'static str,
    /// What was wanted.
    pub value: String,
}

impl Denial {
    /// The key to change, `asks.network.connect`: in the manifest, or in the operator's file.
    #[must_use]
    pub fn full_key(&self) -> String {
        match self.missing {
            Missing::Ask => format!("asks.{}", self.key),
            Missing::Grant => format!("grants.{}", self.key),
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = crate::problem::shorten(&self.value);
        match self.missing {
            Missing::Ask => write!(f, "{value}: not asked in the manifest: {}", self.full_key()),
            Missing::Grant => write!(f, "{value}: not granted by the operator: {}", self.full_key()),
        }
    }
}

impl std::error::Error for Denial {}

/// The read-only folder of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportFolder {
    /// Where it is.
    pub path: String,
    /// Bytes that may lie in it: the smaller of what was asked and what was granted.
    pub quota: u64,
}

/// What is asked and granted. The default allows nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions {
    asks: Asks,
    grants: Asks,
}

impl Permissions {
    /// What follows from a manifest's asks and an operator's grants.
    #[must_use]
    pub fn new(asks: Asks, grants: Asks) -> Self {
        Self { asks, grants }
    }

    /// What the manifest asks.
    #[must_use]
    pub fn asks(&self) -> &Asks {
        &self.asks
    }

    /// Whether some network use may be allowed, so that sockets are worth making.
    #[must_use]
    pub fn any_tcp(&self) -> bool {
        let both = |list: fn(&Asks) -> &[Endpoint]| !list(&self.asks).is_empty() && !list(&self.grants).is_empty();
        both(|asks| &asks.connect) || both(|asks| &asks.listen)
    }

    /// Whether datagrams to or from somebody may be allowed.
    #[must_use]
    pub fn any_udp(&self) -> bool {
        !self.asks.udp.is_empty() && !self.grants.udp.is_empty()
    }

    /// Whether a TCP connection may be made to a peer.
    ///
    /// # Errors
    /// The key that says no.
    pub fn connect(&self, peer: &Peer<'_>) -> Result<(), Denial> {
        self.endpoint("network.connect", |asks| &asks.connect, peer)
    }

    /// Whether an address of this machine may be listened at by TCP.
    ///
    /// # Errors
    /// The key that says no.
    pub fn listen(&self, local: &Peer<'_>) -> Result<(), Denial> {
        self.endpoint("network.listen", |asks| &asks.listen, local)
    }

    /// Whether datagrams may be sent to a peer, or an own address be bound for them.
    ///
    /// # Errors
    /// The key that says no.
    pub fn udp(&self, peer: &Peer<'_>) -> Result<(), Denial> {
        self.endpoint("network.udp", |asks| &asks.udp, peer)
    }

    /// Whether a name may be looked up: it is in `network.names`, or a host of `network.connect` or `network.udp`.
    ///
    /// # Errors
    /// The key that says no.
    pub fn lookup(&self, name: &HostName) -> Result<(), Denial> {
        let value = || name.to_string();
        self.both("network.names", value, |asks| {
            let hosts = asks.connect.iter().chain(&asks.udp).map(|endpoint| &endpoint.host);
            asks.names
                .iter()
                .chain(hosts)
                .any(|host: &HostPattern| host.means_name(name))
        })
    }

    /// Whether an HTTP request may go to a host.
    ///
    /// # Errors
    /// The key that says no.
    pub fn http(&self, tls: bool, host: &RequestHost, port: u16) -> Result<(), Denial> {
        let value = || format!("{}://{host}:{port}", if tls { "https" } else { "http" });
        let means = |asks: &Asks| asks.origins.iter().any(|origin: &Origin| origin.means(tls, host, port));
        self.both("http.origins", value, means)
    }

    /// Whether a variable of the environment may be seen.
    ///
    /// # Errors
    /// The key that says no.
    pub fn environment(&self, name: &str) -> Result<(), Denial> {
        let has = |asks: &Asks| asks.environment.iter().any(|entry| entry == name);
        self.both("environment", || name.to_owned(), has)
    }

    /// The variables of the environment that may be seen.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let asked = self.asks.environment.iter().map(String::as_str);
        asked.filter(|name| self.environment(name).is_ok())
    }

    /// Whether a secret may be read.
    ///
    /// # Errors
    /// The key that says no.
    pub fn secret(&self, name: &str) -> Result<(), Denial> {
        let has = |asks: &Asks| asks.secrets.iter().any(|entry| entry == name);
        self.both("secrets", || name.to_owned(), has)
    }

    /// Whether the time of day may be read.
    ///
    /// # Errors
    /// The key that says no.
    pub fn wall_clock(&self) -> Result<(), Denial> {
        self.both("clock.wall", || "true".to_owned(), |asks| asks.wall_clock)
    }

    /// Whether the exact monotonic clock may be read.
    ///
    /// # Errors
    /// The key that says no.
    pub fn monotonic_clock(&self) -> Result<(), Denial> {
        self.both("clock.monotonic", || "true".to_owned(), |asks| asks.monotonic_clock)
    }

    /// Whether randomness may be had that nobody can foresee.
    ///
    /// # Errors
    /// The key that says no.
    pub fn random(&self) -> Result<(), Denial> {
        self.both("random", || "true".to_owned(), |asks| asks.random)
    }

    /// The quota of the plugin's own folder in bytes.
    ///
    /// # Errors
    /// The key that says no.
    pub fn own_data(&self) -> Result<u64, Denial> {
        let value = || "a folder of its own".to_owned();
        self.both("folders.own-data", value, |asks| asks.own_data.is_some())?;
        Ok(quota(&self.asks.own_data).min(quota(&self.grants.own_data)))
    }

    /// The folder that may be read.
    ///
    /// # Errors
    /// The key that says no.
    pub fn import(&self) -> Result<ImportFolder, Denial> {
        let value = || "a folder to import from".to_owned();
        self.both("folders.import", value, |asks| asks.import.is_some())?;
        let path = self.grants.import.as_ref().and_then(|folder| folder.path.clone());
        let path = path.ok_or_else(|| Denial {
            missing: Missing::Grant,
            key: "folders.import.path",
            value: value(),
        })?;
        Ok(ImportFolder {
            path,
            quota: quota(&self.asks.import).min(quota(&self.grants.import)),
        })
    }

    fn endpoint(&self, key: &'static str, list: fn(&Asks) -> &[Endpoint], peer: &Peer<'_>) -> Result<(), Denial> {
        let value = || {
            let address = std::net::SocketAddr::new(peer.address, peer.port);
            let names: Vec<_> = peer.names.iter().take(4).map(HostName::as_str).collect();
            match names.as_slice() {
                [] => address.to_string(),
                names => format!("{address} ({})", names.join(", ")),
            }
        };
        self.both(key, value, |asks| {
            list(asks).iter().any(|endpoint| endpoint.means(peer))
        })
    }

    fn both(
        &self,
        key: &'static str,
        value: impl FnOnce() -> String,
        has: impl Fn(&Asks) -> bool,
    ) -> Result<(), Denial> {
        let missing = match (has(&self.asks), has(&self.grants)) {
            (true, true) => return Ok(()),
            (false, _) => Missing::Ask,
            (true, false) => Missing::Grant,
        };
        Err(Denial {
            missing,
            key,
            value: value(),
        })
    }
}

fn quota(folder: &Option<crate::asks::Folder>) -> u64 {
    folder.as_ref().map_or(0, |folder| folder.quota)
}

#[cfg(test)]
#[path = "permissions/tests.rs"]
mod tests;
