//! What one generation of a plugin may use, with what that needs: folders, variables, secrets, names that were looked up.
//!
//! Owns the answers to a guest's calls and telling the operator of each no, once. It must not know WASI.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backplane_manifest::{Denial, HostName, Missing, Peer, Permissions, Secrets, normal_address, read_secrets};
use parking_lot::Mutex;

use super::SecurityOptions;
use super::admission::read;
use super::folders::{Quota, used};

/// Bytes of a file with secrets.
const MAX_SECRETS: usize = 256 << 10;
/// Addresses of which is remembered under which names they were looked up.
const MAX_RESOLVED: usize = 1_024;
/// Names that are remembered of one address.
const MAX_NAMES: usize = 16;

/// See the module text. The default allows nothing.
#[derive(Default)]
pub(crate) struct Access {
    name: Box<str>,
    pub(crate) permissions: Permissions,
    pub(crate) own_data: Option<Arc<Quota>>,
    pub(crate) import: Option<PathBuf>,
    pub(crate) environment: Vec<(String, String)>,
    secrets: Secrets,
    resolved: Mutex<HashMap<IpAddr, Vec<HostName>>>,
    told: Mutex<BTreeSet<(Missing, &'static str)>>,
}

impl Access {
    /// Makes ready what is allowed.
    ///
    /// # Errors
    /// A folder or a file with secrets that is allowed and cannot be used, in one line.
    pub(crate) fn open(name: &str, permissions: Permissions, security: &SecurityOptions) -> Result<Self, String> {
        let own_data = match (permissions.own_data(), &security.data) {
            (Ok(quota), Some(data)) => Some(Arc::new(Quota::open(&data.join(name), quota)?)),
            (Ok(_), None) => {
                return Err("grants.folders.own-data: this host has no folder for data of plugins".to_owned());
            }
            (Err(_), _) => None,
        };
        let import = permissions.import().ok();
        if let Some(import) = &import {
            let path = Path::new(&import.path);
            let bytes = used(path, import.quota)
                .map_err(|error| format!("grants.folders.import.path = {:?}: {error}", import.path))?;
            if bytes > import.quota {
                return Err(format!(
                    "grants.folders.import.quota: more than {} bytes lie in {:?}",
                    import.quota, import.path
                ));
            }
        }
        let variables = permissions.variables().map(str::to_owned);
        let environment = variables
            .filter_map(|name| std::env::var(&name).ok().map(|value| (name, value)))
            .collect();
        Ok(Self {
            name: name.into(),
            own_data,
            import: import.map(|import| import.path.into()),
            environment,
            secrets: secrets(name, &permissions, security)?,
            permissions,
            ..Self::default()
        })
    }

    /// A yes, or a no that the operator is told of: once for each key and whose no it is.
    pub(crate) fn allowed(&self, decision: Result<(), Denial>) -> bool {
        let Err(denial) = decision else { return true };
        if self.told.lock().insert((denial.missing, denial.key)) {
            tracing::warn!(target: "plugin", plugin = &*self.name, key = denial.full_key(), "denied: {denial}");
        }
        false
    }

    /// A secret that is asked, granted and there.
    pub(crate) fn secret(&self, name: &str) -> Option<String> {
        self.allowed(self.permissions.secret(name)).then_some(())?;
        self.secrets.get(name).map(|secret| secret.as_str().to_owned())
    }

    /// Remembers that a name that may be looked up had this address as an answer.
    pub(crate) fn resolved(&self, name: &HostName, address: IpAddr) {
        let address = normal_address(address);
        let mut resolved = self.resolved.lock();
        if resolved.len() >= MAX_RESOLVED && !resolved.contains_key(&address) {
            return;
        }
        let names = resolved.entry(address).or_default();
        if names.len() < MAX_NAMES && !names.contains(name) {
            names.push(name.clone());
        }
    }

    /// Asks about an address with the names it was looked up under.
    pub(crate) fn peer(
        &self,
        address: SocketAddr,
        ask: impl Fn(&Permissions, &Peer<'_>) -> Result<(), Denial>,
    ) -> bool {
        let ip = normal_address(address.ip());
        let names = self.resolved.lock().get(&ip).cloned().unwrap_or_default();
        let peer = Peer {
            address: ip,
            port: address.port(),
            names: &names,
        };
        self.allowed(ask(&self.permissions, &peer))
    }
}

/// Reads the secrets that may be had; only then is the file looked at.
fn secrets(name: &str, permissions: &Permissions, security: &SecurityOptions) -> Result<Secrets, String> {
    let wanted: Vec<_> = permissions
        .asks()
        .secrets
        .iter()
        .filter(|secret| permissions.secret(secret).is_ok())
        .collect();
    let (Some(folder), false) = (&security.secrets, wanted.is_empty()) else {
        return Ok(BTreeMap::new());
    };
    let path = folder.join(format!("{name}.toml"));
    let failed = |reason: String| format!("{}: {reason}", path.display());
    #[cfg(unix)]
    {
        let metadata = std::fs::metadata(&path).map_err(|error| failed(error.to_string()))?;
        let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions());
        if mode & 0o077 != 0 {
            return Err(failed(format!(
                "others may read secrets (mode {:o}); make it mode 600",
                mode & 0o777
            )));
        }
    }
    let text = backplane_manifest::Zeroizing::new(read(&path, MAX_SECRETS).map_err(failed)?);
    let mut secrets = read_secrets(&text).map_err(|problems| failed(problems.to_string()))?;
    secrets.retain(|secret, _| wanted.contains(&secret));
    Ok(secrets)
}
