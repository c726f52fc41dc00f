//! Publishers' keys, their signatures over components, and what is thought of one.
//!
//! Owns the text form of keys, the signed message and the verdict. Randomness and files are the caller's.
//!
//! **The signed message** is `backplane component signature v1`, a zero byte and the 32 bytes of the [digest](crate::Digest). The signature section holds a byte 1, the
//! publisher's public key (32 bytes) and the Ed25519 signature (64 bytes); it is verified strictly (no key of small order, no second form of a signature).

use std::collections::BTreeMap;
use std::fmt;

use base64ct::{Base64, Encoding as _};
use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};
use zeroize::Zeroizing;

use crate::manifest::Manifest;
use crate::package::{Digest, Package};
use crate::problem::{Problem, Problems};
use crate::revocation::{Revocations, RevokedBy};

const DOMAIN: &[u8] = b"backplane component signature v1\0";
const VERSION: u8 = 1;
/// Bytes of the content of a signature section.
pub(crate) const SIGNATURE_BYTES: usize = 1 + 32 + 64;
/// Publishers of one trust folder.
pub const MAX_PUBLISHERS: usize = 1_024;
/// Bytes of a key file.
pub const MAX_KEY_FILE: usize = 4_096;
const PUBLIC: &str = "backplane-publisher";
const SECRET: &str = "backplane-publisher-secret";

/// A public key of a publisher; its text form is `ed25519:` and base64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublisherKey([u8; 32]);

impl PublisherKey {
    /// Reads `ed25519:` and base64.
    ///
    /// # Errors
    /// The rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bytes = key_bytes(text)?;
        match VerifyingKey::from_bytes(&bytes) {
            Ok(key) if !key.is_weak() => Ok(Self(*bytes)),
            _ => Err("not a public key of Ed25519".to_owned()),
        }
    }
}

impl fmt::Display for PublisherKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ed25519:{}", Base64::encode_string(&self.0))
    }
}

impl fmt::Debug for PublisherKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A publisher: a key and what the operator calls whoever holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publisher {
    /// The key.
    pub key: PublisherKey,
    /// For people.
    pub name: String,
}

impl Publisher {
    /// Reads a key file: `backplane-publisher ed25519:<base64> <name>` on one line; empty lines and lines that begin with `#` are passed over.
    ///
    /// # Errors
    /// The rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (key, name) = key_line(text, PUBLIC)?;
        Ok(Self {
            key: PublisherKey::parse(key)?,
            name: name.to_owned(),
        })
    }

    /// The text of the key file.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("{PUBLIC} {} {}\n", self.key, self.name)
    }
}

/// A secret key of a publisher. Its file is for its owner alone (mode 0600).
pub struct PublisherSecret {
    key: SigningKey,
    name: String,
}

impl fmt::Debug for PublisherSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublisherSecret")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl PublisherSecret {
    /// A key made of 32 bytes that have to be random.
    ///
    /// # Errors
    /// The rule that the name breaks.
    pub fn from_seed(seed: &Zeroizing<[u8; 32]>, name: &str) -> Result<Self, String> {
        Ok(Self {
            key: SigningKey::from_bytes(seed),
            name: publisher_name(name)?.to_owned(),
        })
    }

    /// Reads a secret key file: `backplane-publisher-secret ed25519:<base64> <name>`.
    ///
    /// # Errors
    /// The rule that the text breaks, without any of the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (key, name) = key_line(text, SECRET)?;
        Self::from_seed(&key_bytes(key)?, name)
    }

    /// The text of the secret file.
    #[must_use]
    pub fn to_text(&self) -> Zeroizing<String> {
        let key = Zeroizing::new(Base64::encode_string(self.key.as_bytes()));
        Zeroizing::new(format!("{SECRET} ed25519:{} {}\n", *key, self.name))
    }

    /// The public half.
    #[must_use]
    pub fn publisher(&self) -> Publisher {
        Publisher {
            key: PublisherKey(self.key.verifying_key().to_bytes()),
            name: self.name.clone(),
        }
    }

    /// Signs a component, in place of an earlier signature.
    ///
    /// # Errors
    /// See [`PackageError`](crate::PackageError).
    pub fn sign(&self, component: &[u8]) -> Result<Vec<u8>, crate::PackageError> {
        let digest = Package::read(component)?.digest;
        let signature = Signature {
            key: self.key.verifying_key().to_bytes(),
            bytes: self.key.sign(&message(&digest)).to_bytes(),
        };
        crate::package::attach(component, &signature)
    }
}

fn message(digest: &Digest) -> Vec<u8> {
    [DOMAIN, &digest.0].concat()
}

/// A signature as it stands in a file: nothing of it is believed yet.
#[derive(Clone, PartialEq, Eq)]
pub struct Signature {
    key: [u8; 32],
    bytes: [u8; 64],
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signature")
            .field("key", &self.key())
            .finish_non_exhaustive()
    }
}

impl Signature {
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (version, rest) = bytes.split_first()?;
        let (key, signature) = rest.split_first_chunk::<32>()?;
        (*version == VERSION).then_some(())?;
        Some(Self {
            key: *key,
            bytes: signature.try_into().ok()?,
        })
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        [&[VERSION][..], &self.key, &self.bytes].concat()
    }

    /// The key it says it was made with.
    #[must_use]
    pub fn key(&self) -> PublisherKey {
        PublisherKey(self.key)
    }

    /// Whether it was made with that key, of that digest.
    #[must_use]
    pub fn is_of(&self, digest: &Digest) -> bool {
        let Ok(key) = VerifyingKey::from_bytes(&self.key) else {
            return false;
        };
        let signature = ed25519_dalek::Signature::from_bytes(&self.bytes);
        key.verify_strict(&message(digest), &signature).is_ok()
    }
}

/// The publishers that an operator trusts, and what has been revoked.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    publishers: BTreeMap<PublisherKey, String>,
    /// What is not taken whoever signed it.
    pub revocations: Revocations,
    /// Whether a component has to be signed by one of the publishers.
    pub require_signed: bool,
}

impl Trust {
    /// Nobody is trusted yet, and nothing is revoked.
    #[must_use]
    pub fn new(require_signed: bool) -> Self {
        Self {
            require_signed,
            ..Self::default()
        }
    }

    /// Adds a publisher.
    ///
    /// # Errors
    /// When there are [`MAX_PUBLISHERS`] already.
    pub fn add(&mut self, publisher: Publisher) -> Result<(), Problems> {
        if self.publishers.len() >= MAX_PUBLISHERS && !self.publishers.contains_key(&publisher.key) {
            return Err(Problem::new("", "", format!("more than {MAX_PUBLISHERS} publishers")).into());
        }
        self.publishers.insert(publisher.key, publisher.name);
        Ok(())
    }

    /// How many publishers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.publishers.len()
    }

    /// Whether there is no publisher.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.publishers.is_empty()
    }

    /// What is thought of a package by its digest and signature alone: before its manifest is parsed.
    #[must_use]
    pub fn judge(&self, package: &Package<'_>) -> Verdict {
        if let Some(by) = self.revocations.digest(&package.digest) {
            return Verdict::Revoked(by);
        }
        let Some(signature) = &package.signature else {
            return Verdict::Unsigned;
        };
        let key = signature.key();
        if !signature.is_of(&package.digest) {
            return Verdict::BadSignature(key);
        }
        if let Some(by) = self.revocations.publisher(&key) {
            return Verdict::Revoked(by);
        }
        match self.publishers.get(&key) {
            Some(name) => Verdict::Trusted(Publisher {
                key,
                name: name.clone(),
            }),
            None => Verdict::UnknownPublisher(key),
        }
    }

    /// What is thought of it once its manifest is known: versions may be revoked too.
    #[must_use]
    pub fn judge_manifest(&self, verdict: Verdict, manifest: Option<&Manifest>) -> Verdict {
        let by = manifest.and_then(|manifest| self.revocations.version(&manifest.id, &manifest.version));
        by.map_or(verdict, Verdict::Revoked)
    }

    /// Whether a component of this verdict may be loaded, or restored by a rollback.
    ///
    /// # Errors
    /// The rule, the value and what to change.
    pub fn admit(&self, verdict: &Verdict) -> Result<(), String> {
        match verdict {
            Verdict::Trusted(_) => Ok(()),
            Verdict::Unsigned | Verdict::UnknownPublisher(_) if !self.require_signed => Ok(()),
            Verdict::Unsigned => Err(format!(
                "{verdict}, and require-signed = true: sign it, or set require-signed = false in [plugins]"
            )),
            Verdict::UnknownPublisher(_) => Err(format!(
                "{verdict}, and require-signed = true: put the publisher's key file into the trust folder"
            )),
            Verdict::BadSignature(_) => Err(format!("{verdict}: the file was changed after signing")),
            Verdict::Revoked(_) => Err(format!("{verdict}: see the revocation file")),
        }
    }
}

/// What is thought of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody vouches for it.
    Unsigned,
    /// A publisher of the trust folder does.
    Trusted(Publisher),
    /// Signed properly, by nobody who is trusted.
    UnknownPublisher(PublisherKey),
    /// Not what was signed, or not signed with the key that stands there.
    BadSignature(PublisherKey),
    /// On the revocation list.
    Revoked(RevokedBy),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsigned => f.write_str("unsigned"),
            Self::Trusted(publisher) => write!(f, "signed by {}", publisher.name),
            Self::UnknownPublisher(key) => write!(f, "signed by {key}, who is not in the trust folder"),
            Self::BadSignature(key) => write!(f, "the signature by {key} is not one of this component"),
            Self::Revoked(by) => write!(f, "revoked: {by}"),
        }
    }
}

/// The one line of a key file, behind its first word: key and name.
fn key_line<'a>(text: &'a str, word: &str) -> Result<(&'a str, &'a str), String> {
    let rule = || format!("a key file has one line: {word} ed25519:<base64> <name>");
    if text.len() > MAX_KEY_FILE {
        return Err(rule());
    }
    let mut lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let line = lines.next().ok_or_else(rule)?;
    let rest = line
        .strip_prefix(word)
        .and_then(|rest| rest.strip_prefix(' '))
        .ok_or_else(rule)?;
    let (key, name) = rest.trim_start().split_once(' ').ok_or_else(rule)?;
    if lines.next().is_some() {
        return Err(rule());
    }
    Ok((key, publisher_name(name.trim())?))
}

fn publisher_name(name: &str) -> Result<&str, String> {
    let bad = |c: char| c.is_control();
    if name.is_empty() || name.len() > 128 || name.contains(bad) || name != name.trim() {
        return Err("a publisher's name has 1 to 128 bytes on one line".to_owned());
    }
    Ok(name)
}

fn key_bytes(text: &str) -> Result<Zeroizing<[u8; 32]>, String> {
    let rule = || "a key is ed25519: and base64 of 32 bytes".to_owned();
    let encoded = text.strip_prefix("ed25519:").ok_or_else(rule)?;
    let mut bytes = Zeroizing::new([0_u8; 32]);
    // Longer input does not fit into the buffer and is an error.
    let read = Base64::decode(encoded, &mut *bytes).map_err(|_| rule())?;
    if read.len() != 32 {
        return Err(rule());
    }
    Ok(bytes)
}

#[cfg(test)]
#[path = "signature/tests.rs"]
mod tests;
