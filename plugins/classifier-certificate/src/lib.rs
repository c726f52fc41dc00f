//! An isolation classifier: owners by the certificate that a client has opened its channel with. See the README for its settings.
//!
//! Owns the settings and the look-up. It sees a certificate only where the client had to prove that it is its own: the host leaves it out under SecurityPolicy None.
#![forbid(unsafe_code)]

use std::collections::HashMap;

use backplane_sdk::{Classifier, Fault, Identity, Peer, Standing, StatusCode, setting_json};
use serde::Deserialize;

/// Certificates in the settings.
const MAX_CERTIFICATES: usize = 10_000;
/// Bytes of an ApplicationUri in the settings.
const MAX_URI: usize = 4_096;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    certificates: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Entry {
    thumbprint: Option<String>,
    application_uri: Option<String>,
    key: String,
    standing: Option<String>,
}

/// The plugin.
#[derive(Debug, Default)]
pub struct ByCertificate {
    sha1: HashMap<[u8; 20], Identity>,
    sha256: HashMap<[u8; 32], Identity>,
    uris: HashMap<String, Identity>,
}

impl Classifier for ByCertificate {
    fn start() -> Result<Self, Fault> {
        let json = setting_json("").unwrap_or_else(|| "{}".to_owned());
        Self::parse(&json)
            .map_err(|problem| Fault::new(StatusCode::BAD_CONFIGURATION_ERROR, format!("[settings] {problem}")))
    }

    /// There is no certificate yet.
    fn ingress(&self, _peer: Peer) -> Result<Option<Identity>, Fault> {
        Ok(None)
    }

    /// The thumbprint counts before the URI: it names one certificate, the URI whatever a trusted authority has put it into.
    fn established(&self, peer: Peer) -> Result<Option<Identity>, Fault> {
        let by_sha256 = || self.sha256.get(&digest(peer.certificate_sha256())?);
        let by_sha1 = || self.sha1.get(&digest(peer.certificate_sha1())?);
        let by_uri = || self.uris.get(&peer.application_uri()?);
        // What is not in the settings is not asked for.
        let owner = (!self.sha256.is_empty()).then(by_sha256).flatten();
        let owner = owner.or_else(|| (!self.sha1.is_empty()).then(by_sha1).flatten());
        let owner = owner.or_else(|| (!self.uris.is_empty()).then(by_uri).flatten());
        Ok(owner.cloned())
    }
}

fn digest<const N: usize>(bytes: Option<Vec<u8>>) -> Option<[u8; N]> {
    bytes?.try_into().ok()
}

impl ByCertificate {
    fn parse(json: &str) -> Result<Self, String> {
        let settings: Settings = serde_json::from_str(json).map_err(|error| plain(&error))?;
        if settings.certificates.len() > MAX_CERTIFICATES {
            return Err(format!("certificates: more than {MAX_CERTIFICATES}"));
        }
        let mut all = Self::default();
        for (index, entry) in settings.certificates.into_iter().enumerate() {
            let number = index.saturating_add(1);
            all.add(entry)
                .map_err(|problem| format!("certificate {number}: {problem}"))?;
        }
        Ok(all)
    }

    fn add(&mut self, entry: Entry) -> Result<(), String> {
        let identity = identity(entry.key, entry.standing.as_deref())?;
        let before = match (entry.thumbprint, entry.application_uri) {
            (Some(thumbprint), None) => {
                let bytes = hexadecimal(&thumbprint).unwrap_or_default();
                if let Ok(sha1) = <[u8; 20]>::try_from(bytes.as_slice()) {
                    self.sha1.insert(sha1, identity)
                } else if let Ok(sha256) = <[u8; 32]>::try_from(bytes.as_slice()) {
                    self.sha256.insert(sha256, identity)
                } else {
                    return Err("thumbprint: 40 hexadecimal digits of SHA-1 or 64 of SHA-256".to_owned());
                }
            }
            (None, Some(uri)) if !uri.is_empty() && uri.len() <= MAX_URI => self.uris.insert(uri, identity),
            (None, Some(_)) => return Err(format!("application-uri: 1 to {MAX_URI} bytes")),
            _ => return Err("either thumbprint or application-uri".to_owned()),
        };
        match before {
            None => Ok(()),
            Some(_) => Err("it is there twice".to_owned()),
        }
    }
}

fn identity(key: String, standing: Option<&str>) -> Result<Identity, String> {
    if key.is_empty() || key.len() > Identity::MAX_KEY {
        return Err(format!("key: 1 to {} bytes, not {}", Identity::MAX_KEY, key.len()));
    }
    let standing = match standing {
        None => Standing::Trusted,
        Some(name) => Standing::from_name(name).ok_or_else(|| {
            format!("standing: {name:?} is not one of bootstrap, established, reconnect, trusted, control")
        })?,
    };
    Ok(Identity { key, standing })
}

/// Digits in pairs; colons and spaces between them are how some tools show them.
fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| !matches!(c, ':' | ' '))
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect::<Option<_>>()?;
    let pairs = digits.chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some(high << 4 | low),
            _ => None,
        })
        .collect()
}

/// Without the place: the JSON is not what the operator wrote.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

backplane_sdk::classifier!(ByCertificate);
