//! `backplane plugin pack`, `key`, `sign`, `verify`: one file that says what it is, and who vouches for it.
//!
//! Owns the files; what they mean is in `host/manifest`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use backplane_crypto::random_bytes;
use backplane_manifest::{
    Manifest, Package, Publisher, PublisherSecret, Revocations, SettingsSchema, Trust, Verdict, pack,
};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::cli::{KeyArgs, PackArgs, SignArgs, VerifyArgs};
use crate::commands::{Failure, Outcome};

/// Longest file of a schema, a key or a list that is read.
const MAX_TEXT: u64 = 4 << 20;

/// What went wrong with a file.
fn of(path: &Path, reason: impl std::fmt::Display) -> Failure {
    Failure::other(format!("{}: {reason}", path.display()))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| of(path, error))
}

fn read_text(path: &Path) -> Result<String, Failure> {
    let length = std::fs::metadata(path).map_err(|error| of(path, error))?.len();
    if length > MAX_TEXT {
        return Err(of(path, format_args!("longer than {MAX_TEXT} bytes")));
    }
    std::fs::read_to_string(path).map_err(|error| of(path, error))
}

/// Puts a file in its place in one step: a server that watches the folder never sees half of it.
fn replace(path: &Path, bytes: &[u8]) -> Outcome {
    let partial = path.with_extension("partial");
    std::fs::write(&partial, bytes).map_err(|error| of(&partial, error))?;
    std::fs::rename(&partial, path).map_err(|error| of(path, error))
}

/// The manifest in a file, with the schema that it names.
pub(super) fn manifest(path: &Path) -> Result<Manifest, Failure> {
    let text = read_text(path)?;
    let mut manifest = Manifest::parse(&text).map_err(|problems| of(path, problems))?;
    if let SettingsSchema::File(name) = &manifest.settings {
        let file = path.parent().unwrap_or(Path::new(".")).join(name);
        let schema = serde_json::from_str(&read_text(&file)?).map_err(|error| of(&file, error))?;
        manifest.settings = SettingsSchema::Inline(schema);
    }
    Ok(manifest)
}

/// Puts a manifest into a component, in its place.
pub(super) fn put_in(component: &Path, described: &Path) -> Outcome {
    let packed = pack(&read(component)?, &manifest(described)?).map_err(|error| of(component, error))?;
    replace(component, &packed)
}

/// `backplane plugin pack`.
pub(super) fn run_pack(args: &PackArgs) -> Outcome {
    let beside = args.component.parent().unwrap_or(Path::new(".")).join("plugin.toml");
    let manifest = manifest(args.manifest.as_ref().unwrap_or(&beside))?;
    let packed = pack(&read(&args.component)?, &manifest).map_err(|error| of(&args.component, error))?;
    let out = args.out.as_ref().unwrap_or(&args.component);
    replace(out, &packed)?;
    tell(
        args.json,
        &json!({ "file": out.display().to_string(), "id": manifest.id, "version": manifest.version.to_string(), "size": packed.len() }),
        || {
            format!(
                "{}: {} {}, {} bytes",
                out.display(),
                manifest.id,
                manifest.version,
                packed.len()
            )
        },
    );
    Ok(())
}

/// `backplane plugin key`.
pub(super) fn run_key(args: &KeyArgs) -> Outcome {
    let seed: [u8; 32] = random_bytes().map_err(Failure::other)?;
    let secret = PublisherSecret::from_seed(&Zeroizing::new(seed), &args.name).map_err(Failure::usage)?;
    // Never over a key that is there: what it has signed could not be signed again.
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&args.file).map_err(|error| of(&args.file, error))?;
    file.write_all(secret.to_text().as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(|error| of(&args.file, error))?;
    let public = args.file.with_extension("pub");
    std::fs::write(&public, secret.publisher().to_text()).map_err(|error| of(&public, error))?;
    let (secret_file, public_file) = (args.file.display().to_string(), public.display().to_string());
    tell(
        args.json,
        &json!({ "secret": secret_file, "public": public_file, "key": secret.publisher().key.to_string() }),
        || format!("{secret_file} is secret: it signs. {public_file} goes into the trust folder of operators"),
    );
    Ok(())
}

/// `backplane plugin sign`.
pub(super) fn run_sign(args: &SignArgs) -> Outcome {
    let text = Zeroizing::new(read_text(&args.key)?);
    let secret = PublisherSecret::parse(&text).map_err(|rule| of(&args.key, rule))?;
    let bytes = read(&args.component)?;
    let package = Package::read(&bytes).map_err(|error| of(&args.component, error))?;
    if !package.has_manifest() {
        return Err(of(
            &args.component,
            "it has no manifest: backplane plugin pack puts it in, then it can be signed",
        ));
    }
    let signed = secret.sign(&bytes).map_err(|error| of(&args.component, error))?;
    let out = args.out.as_ref().unwrap_or(&args.component);
    replace(out, &signed)?;
    let publisher = secret.publisher();
    tell(
        args.json,
        &json!({ "file": out.display().to_string(), "key": publisher.key.to_string(), "digest": package.digest.hex() }),
        || format!("{}: signed by {} ({})", out.display(), publisher.name, publisher.key),
    );
    Ok(())
}

/// `backplane plugin verify`.
pub(super) fn run_verify(args: &VerifyArgs) -> Outcome {
    let trust = trust(args)?;
    let bytes = read(&args.component)?;
    let package = Package::read(&bytes).map_err(|error| of(&args.component, error))?;
    let mut verdict = trust.judge(&package);
    let mut described = None;
    if !matches!(verdict, Verdict::BadSignature(_)) {
        let manifest = package.manifest().map_err(|error| of(&args.component, error))?;
        verdict = trust.judge_manifest(verdict, manifest.as_ref());
        described = manifest.map(|manifest| (manifest.id, manifest.version.to_string()));
    }
    let refused = trust.admit(&verdict).err();
    let (id, version) = described.unwrap_or_default();
    let document = json!({
        "file": args.component.display().to_string(),
        "digest": package.digest.hex(),
        "id": id,
        "version": version,
        "verdict": verdict.to_string(),
        "trusted": matches!(verdict, Verdict::Trusted(_)),
        "refused": refused,
    });
    tell(args.json, &document, || {
        let what = if id.is_empty() {
            "no manifest".to_owned()
        } else {
            format!("{id} {version}")
        };
        format!("{}: {what}, {verdict}", args.component.display())
    });
    refused.map_or(Ok(()), |reason| Err(of(&args.component, reason)))
}

/// Whom the arguments trust, and what they revoke.
fn trust(args: &VerifyArgs) -> Result<Trust, Failure> {
    let mut trust = Trust::default();
    trust.require_signed = args.require_signed;
    for path in &args.trust {
        for file in key_files(path)? {
            let publisher = Publisher::parse(&read_text(&file)?).map_err(|rule| of(&file, rule))?;
            trust.add(publisher).map_err(|problems| of(&file, problems))?;
        }
    }
    if let Some(path) = &args.revoked {
        trust.revocations = Revocations::parse(&read_text(path)?).map_err(|problems| of(path, problems))?;
    }
    Ok(trust)
}

/// A key file, or those in a folder.
fn key_files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(|error| of(path, error))? {
        let file = entry.map_err(|error| of(path, error))?.path();
        if file.extension().is_some_and(|extension| extension == "pub") {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn tell(as_json: bool, document: &Value, text: impl FnOnce() -> String) {
    if as_json {
        println!("{document}");
    } else {
        println!("{}", text());
    }
}
