//! An isolation classifier: owners by the network that a peer's address is in. See the README for its settings.
//!
//! This module is the plugin: it reads the settings and answers. What a network is, is in [`network`].
#![forbid(unsafe_code)]

pub mod network;

use std::net::IpAddr;

use backplane_sdk::{Classifier, Fault, Identity, Peer, Standing, StatusCode, setting_json};
use serde::Deserialize;

use network::Network;

/// Networks in the settings. Each costs a comparison for each question that no smaller network answers.
const MAX_NETWORKS: usize = 1_024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    networks: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    network: String,
    key: String,
    standing: Option<String>,
}

/// The plugin.
#[derive(Debug)]
pub struct ByNetwork {
    /// The longest prefixes first, so that the first match is the innermost network.
    owners: Vec<(Network, Identity)>,
}

impl Classifier for ByNetwork {
    fn start() -> Result<Self, Fault> {
        let json = setting_json("").unwrap_or_else(|| "{}".to_owned());
        owners(&json)
            .map(|owners| ByNetwork { owners })
            .map_err(|problem| Fault::new(StatusCode::BAD_CONFIGURATION_ERROR, format!("[settings] {problem}")))
    }

    fn ingress(&self, peer: Peer) -> Result<Option<Identity>, Fault> {
        let Some(address) = peer.address() else {
            return Ok(None);
        };
        let address: IpAddr = address
            .parse()
            .map_err(|_| Fault::new(StatusCode::BAD_DECODING_ERROR, "the host gave an address that is none"))?;
        let mut owners = self.owners.iter();
        Ok(owners
            .find(|(network, _)| network.contains(address))
            .map(|(_, owner)| owner.clone()))
    }

    /// By the same rule, so that a connection stays with its owner once its channel is open.
    fn established(&self, peer: Peer) -> Result<Option<Identity>, Fault> {
        self.ingress(peer)
    }
}

fn owners(json: &str) -> Result<Vec<(Network, Identity)>, String> {
    let settings: Settings = serde_json::from_str(json).map_err(|error| plain(&error))?;
    if settings.networks.len() > MAX_NETWORKS {
        return Err(format!("networks: more than {MAX_NETWORKS}"));
    }
    let mut owners: Vec<(Network, Identity)> = Vec::with_capacity(settings.networks.len());
    for entry in settings.networks {
        let text = entry.network.clone();
        let (network, identity) = owner(entry).map_err(|problem| format!("network {text:?}: {problem}"))?;
        if owners.iter().any(|(other, _)| *other == network) {
            return Err(format!("network {text:?}: {network} is there twice"));
        }
        owners.push((network, identity));
    }
    owners.sort_by_key(|(network, _)| std::cmp::Reverse(network.prefix()));
    Ok(owners)
}

fn owner(entry: Entry) -> Result<(Network, Identity), String> {
    let network = Network::parse(&entry.network)?;
    if entry.key.is_empty() || entry.key.len() > Identity::MAX_KEY {
        return Err(format!(
            "key: 1 to {} bytes, not {}",
            Identity::MAX_KEY,
            entry.key.len()
        ));
    }
    let standing = match &entry.standing {
        None => Standing::Trusted,
        Some(name) => Standing::from_name(name).ok_or_else(|| {
            format!("standing: {name:?} is not one of bootstrap, established, reconnect, trusted, control")
        })?,
    };
    Ok((
        network,
        Identity {
            key: entry.key,
            standing,
        },
    ))
}

/// Without the place: the JSON is not what the operator wrote.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

backplane_sdk::classifier!(ByNetwork);
