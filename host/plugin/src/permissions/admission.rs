//! Judging a plugin's file before anything of it is compiled: digest, revocation, signature, then the manifest, then the settings.
//!
//! Owns the order and reading the files that decide. Blocks on files; call it where that is allowed.

use std::io::Read as _;
use std::path::Path;

use backplane_manifest::{
    Kind, MAX_KEY_FILE, MAX_PUBLISHERS, MAX_REVOCATION_BYTES, Manifest, Package, Permissions, Publisher, Revocations,
    Schema, SettingsSchema, Trust, Verdict,
};
use semver::Version;

use super::{Access, SecurityOptions, consent};
use crate::component::PluginKind;
use crate::settings::PluginFile;

/// The version of the host's interfaces.
const HOST: Version = Version::new(0, 1, 0);

/// A component that may be compiled.
pub(crate) struct Admitted {
    pub(crate) manifest: Option<Manifest>,
    pub(crate) access: Access,
}

impl Admitted {
    /// What is wrong with the kind that the component turned out to have.
    pub(crate) fn kind_problem(&self, is: PluginKind) -> Option<String> {
        let says = self.manifest.as_ref()?.kind;
        let same = matches!(
            (says, is),
            (Kind::NodeManager, PluginKind::NodeManager) | (Kind::Classifier, PluginKind::IsolationClassifier)
        );
        (!same).then(|| format!("it is a {}, and its manifest says kind = {:?}", is.name(), says.name()))
    }
}

/// Judges the bytes of a component with the operator's file beside it.
///
/// # Errors
/// Everything that stands against it, with rule, value and key.
pub(crate) fn admit(
    name: &str,
    bytes: &[u8],
    file: &PluginFile,
    settings: &serde_json::Value,
    security: &SecurityOptions,
) -> Result<Admitted, Vec<String>> {
    let one = |problem: String| vec![problem];
    // Not a component at all: what compiles it has better words for that, and no signature can have been required then.
    let package = match Package::read(bytes) {
        Ok(package) => package,
        Err(error) if security.require_signed || bytes.first_chunk::<8>() == Some(b"\0asm\x0d\0\x01\0") => {
            return Err(one(format!("not a valid component: {error}")));
        }
        Err(_) => return Ok(nothing(name, file, security)),
    };
    let trust = trust(security).map_err(one)?;
    let verdict = trust.judge(&package);
    trust.admit(&verdict).map_err(one)?;
    let manifest = package.manifest().map_err(|error| one(error.to_string()))?;
    let verdict = trust.judge_manifest(verdict, manifest.as_ref());
    trust.admit(&verdict).map_err(one)?;
    match &verdict {
        Verdict::Trusted(publisher) => {
            tracing::info!(target: "plugin", plugin = name, digest = %package.digest, publisher = publisher.name, "signature verified");
        }
        Verdict::UnknownPublisher(_) => tracing::warn!(target: "plugin", plugin = name, "{verdict}"),
        _ => {}
    }
    let Some(manifest) = manifest else {
        return Ok(nothing(name, file, security));
    };
    let mut problems = Vec::new();
    if let Some(wants) = manifest.host.as_ref().filter(|wants| **wants > HOST) {
        problems.push(format!(
            "host = \"{wants}\" in its manifest: this host has version {HOST} of the interfaces"
        ));
    }
    problems.extend(wrong_settings(name, &manifest, settings));
    problems.extend(consent::missing(name, &manifest, file.consent.as_deref(), security));
    if !problems.is_empty() {
        return Err(problems);
    }
    let permissions = Permissions::new(manifest.asks.clone(), file.grants.asks().clone());
    let access = Access::open(name, permissions, security).map_err(one)?;
    Ok(Admitted {
        manifest: Some(manifest),
        access,
    })
}

/// Without a manifest nothing is asked.
fn nothing(name: &str, file: &PluginFile, security: &SecurityOptions) -> Admitted {
    let permissions = Permissions::new(backplane_manifest::Asks::default(), file.grants.asks().clone());
    Admitted {
        manifest: None,
        access: Access::open(name, permissions, security).unwrap_or_default(),
    }
}

fn wrong_settings(name: &str, manifest: &Manifest, settings: &serde_json::Value) -> Vec<String> {
    let SettingsSchema::Inline(schema) = &manifest.settings else {
        return Vec::new();
    };
    let checked = Schema::compile(schema).and_then(|schema| schema.check(settings));
    let problems = checked.err().map(|problems| problems.0).unwrap_or_default();
    problems
        .iter()
        .map(|problem| format!("{name}.toml: {problem}"))
        .collect()
}

/// Reads who is trusted and what is revoked.
fn trust(security: &SecurityOptions) -> Result<Trust, String> {
    let mut trust = Trust::new(security.require_signed);
    if let Some(path) = &security.revocations {
        let text = read(path, MAX_REVOCATION_BYTES).map_err(|reason| format!("{}: {reason}", path.display()))?;
        trust.revocations = Revocations::parse(&text).map_err(|problems| format!("{}: {problems}", path.display()))?;
    }
    let Some(folder) = &security.trust else {
        return Ok(trust);
    };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(trust),
        Err(error) => return Err(format!("{}: {error}", folder.display())),
    };
    for entry in entries.take(MAX_PUBLISHERS) {
        let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
        if path.extension().and_then(|extension| extension.to_str()) != Some("pub") {
            continue;
        }
        // One bad file takes nobody's trust but its own.
        match read(&path, MAX_KEY_FILE).and_then(|text| Publisher::parse(&text)) {
            Ok(publisher) => trust.add(publisher).map_err(|problems| problems.to_string())?,
            Err(reason) => tracing::warn!(target: "plugin", file = %path.display(), "not a publisher's key: {reason}"),
        }
    }
    Ok(trust)
}

/// A text file of bounded size.
pub(super) fn read(path: &Path, limit: usize) -> Result<String, String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX);
    file.take(most.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() > limit {
        return Err(format!("larger than {limit} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "not UTF-8".to_owned())
}
