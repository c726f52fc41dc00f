//! A plugin as one file: a component with its manifest and its signature in custom sections.
//!
//! Owns the list of sections at the top level of a component binary, and the digest. What is inside of a section (nested modules and components with custom sections
//! of their own) is none of its business, and it must not know whether the component is valid: bytes are judged before anything compiles them.
//!
//! **Layout.** `00 61 73 6d 0d 00 01 00`, then sections: id (one byte), length (LEB128, 32 bits), content. A custom section has id 0 and begins with its name (length,
//! then UTF-8). `backplane:manifest` holds the canonical text of a manifest; `backplane:signature` holds a [signature](crate::Signature) and is the last section.
//!
//! **Digest.** SHA-256 over all bytes of the file but those of the signature section (its id, length and content). Since that section is the last one, this is SHA-256 of
//! everything before it: what an unsigned file has as its plain SHA-256, and what signing does not change.

use std::fmt;
use std::ops::Range;

use sha2::Sha256;

use crate::manifest::{MAX_MANIFEST_BYTES, Manifest, SettingsSchema};
use crate::problem::Problems;
use crate::signature::{SIGNATURE_BYTES, Signature};

/// The name of the section with the manifest.
pub const MANIFEST_SECTION: &str = "backplane:manifest";
/// The name of the section with the signature.
pub const SIGNATURE_SECTION: &str = "backplane:signature";
/// Sections of one file.
pub const MAX_SECTIONS: usize = 100_000;
/// Magic, version 13, layer 1: a component.
const HEADER: &[u8; 8] = b"\0asm\x0d\0\x01\0";
/// The highest id of a section of a component.
const LAST_ID: u8 = 12;

/// SHA-256 of a component without its signature section.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Of these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(<Sha256 as sha2::Digest>::digest(bytes).into())
    }

    /// Reads `sha256:` and 64 hexadecimal digits.
    ///
    /// # Errors
    /// The rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, String> {
        let rule = || "a digest is sha256: and 64 hexadecimal digits".to_owned();
        let digits = text.strip_prefix("sha256:").ok_or_else(rule)?.as_bytes();
        let mut bytes = [0_u8; 32];
        let (pairs, rest) = digits.as_chunks::<2>();
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return Err(rule());
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = digit(*high).ok_or_else(rule)? << 4 | digit(*low).ok_or_else(rule)?;
        }
        Ok(Self(bytes))
    }

    /// The 64 hexadecimal digits.
    #[must_use]
    pub fn hex(&self) -> String {
        self.to_string().split_off("sha256:".len())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a file is no package.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackageError {
    /// It does not begin like a component.
    #[error("not a component: the file does not begin with the header of one")]
    Header,
    /// A section is cut off, or its length is none.
    #[error("byte {0}: the file ends within a section, or a length is not LEB128 of 32 bits")]
    Truncated(usize),
    /// There is no such section in a component.
    #[error("byte {at}: a section with id {id}, which components do not have")]
    Section {
        /// Where it begins.
        at: usize,
        /// Its id.
        id: u8,
    },
    /// There are too many.
    #[error("more than {MAX_SECTIONS} sections")]
    TooMany,
    /// A section that there may be once is there twice.
    #[error("a second section {0}")]
    Duplicate(&'static str),
    /// Something comes after the signature.
    #[error("the section {SIGNATURE_SECTION} is not the last one: something was added after signing")]
    AfterSignature,
    /// The content of the signature section is none.
    #[error("the section {SIGNATURE_SECTION} does not hold a signature of a kind that this host knows")]
    Signature,
    /// The manifest is not one.
    #[error("the manifest in the component: {0}")]
    Manifest(#[from] Problems),
    /// The manifest is not text, or too long.
    #[error("the manifest in the component is not UTF-8 of at most {MAX_MANIFEST_BYTES} bytes")]
    ManifestText,
    /// The manifest names a file with its schema, instead of holding the schema.
    #[error("settings-schema = {0:?}: a packed manifest holds the schema itself, not the name of its file")]
    SchemaFile(String),
}

/// What is in a file, before anything is judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package<'a> {
    /// See the module text.
    pub digest: Digest,
    /// Not parsed yet: the signature comes first.
    manifest: Option<&'a [u8]>,
    /// None: unsigned. Not verified yet.
    pub signature: Option<Signature>,
}

impl<'a> Package<'a> {
    /// Finds manifest and signature in a component binary.
    ///
    /// # Errors
    /// See [`PackageError`]; the manifest is not looked at.
    pub fn read(bytes: &'a [u8]) -> Result<Self, PackageError> {
        let sections = Sections::find(bytes)?;
        let signature = match &sections.signature {
            None => None,
            Some(found) => {
                let content = bytes.get(found.content.clone()).unwrap_or_default();
                Some(Signature::from_bytes(content).ok_or(PackageError::Signature)?)
            }
        };
        let end = sections
            .signature
            .as_ref()
            .map_or(bytes.len(), |found| found.whole.start);
        Ok(Self {
            digest: Digest::of(bytes.get(..end).unwrap_or_default()),
            manifest: sections.manifest.and_then(|found| bytes.get(found.content)),
            signature,
        })
    }

    /// Whether there is a manifest.
    #[must_use]
    pub fn has_manifest(&self) -> bool {
        self.manifest.is_some()
    }

    /// Parses the manifest; None: there is none. To be called after the signature was judged.
    ///
    /// # Errors
    /// See [`PackageError`].
    pub fn manifest(&self) -> Result<Option<Manifest>, PackageError> {
        let Some(bytes) = self.manifest else { return Ok(None) };
        if bytes.len() > MAX_MANIFEST_BYTES {
            return Err(PackageError::ManifestText);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| PackageError::ManifestText)?;
        let manifest = Manifest::parse(text)?;
        no_file(&manifest)?;
        Ok(Some(manifest))
    }
}

/// Puts a manifest into a component, in place of the one that may be there. A signature is dropped: what it vouched for is another file now.
///
/// # Errors
/// See [`PackageError`].
pub fn pack(component: &[u8], manifest: &Manifest) -> Result<Vec<u8>, PackageError> {
    no_file(manifest)?;
    let text = manifest.to_text();
    if text.len() > MAX_MANIFEST_BYTES {
        return Err(PackageError::ManifestText);
    }
    // What is written has to be read back by those who load it.
    Manifest::parse(&text)?;
    let sections = Sections::find(component)?;
    let mut bytes = without(component, [sections.manifest, sections.signature]);
    append(&mut bytes, MANIFEST_SECTION, text.as_bytes());
    Ok(bytes)
}

/// Puts a signature at the end, in place of the one that may be there.
///
/// # Errors
/// See [`PackageError`].
pub(crate) fn attach(component: &[u8], signature: &Signature) -> Result<Vec<u8>, PackageError> {
    let sections = Sections::find(component)?;
    let mut bytes = without(component, [None, sections.signature]);
    append(&mut bytes, SIGNATURE_SECTION, &signature.to_bytes());
    Ok(bytes)
}

fn no_file(manifest: &Manifest) -> Result<(), PackageError> {
    match &manifest.settings {
        SettingsSchema::File(name) => Err(PackageError::SchemaFile(name.clone())),
        SettingsSchema::None | SettingsSchema::Inline(_) => Ok(()),
    }
}

struct Found {
    whole: Range<usize>,
    content: Range<usize>,
}

#[derive(Default)]
struct Sections {
    manifest: Option<Found>,
    signature: Option<Found>,
}

impl Sections {
    fn find(bytes: &[u8]) -> Result<Self, PackageError> {
        if bytes.first_chunk::<8>() != Some(HEADER) {
            return Err(PackageError::Header);
        }
        let mut sections = Self::default();
        let mut at = HEADER.len();
        let mut count = 0;
        while let Some(id) = bytes.get(at).copied() {
            count += 1;
            if count > MAX_SECTIONS {
                return Err(PackageError::TooMany);
            }
            if id > LAST_ID {
                return Err(PackageError::Section { at, id });
            }
            if sections.signature.is_some() {
                return Err(PackageError::AfterSignature);
            }
            let cut = PackageError::Truncated(at);
            let (length, begin) = leb128(bytes, at.saturating_add(1)).ok_or(cut.clone())?;
            let end = begin.checked_add(length).filter(|end| *end <= bytes.len()).ok_or(cut)?;
            if id == 0 {
                sections.custom(bytes, at..end, begin)?;
            }
            at = end;
        }
        Ok(sections)
    }

    /// A custom section whose content begins with its name at `begin`.
    fn custom(&mut self, bytes: &[u8], whole: Range<usize>, begin: usize) -> Result<(), PackageError> {
        let inner = bytes.get(..whole.end).unwrap_or_default();
        let cut = PackageError::Truncated(whole.start);
        let (length, at) = leb128(inner, begin).ok_or(cut.clone())?;
        let end = at.checked_add(length).filter(|end| *end <= inner.len()).ok_or(cut)?;
        let found = Found {
            content: end..whole.end,
            whole,
        };
        let name = inner.get(at..end).unwrap_or_default();
        let (slot, name) = if name == MANIFEST_SECTION.as_bytes() {
            (&mut self.manifest, MANIFEST_SECTION)
        } else if name == SIGNATURE_SECTION.as_bytes() {
            if found.content.len() != SIGNATURE_BYTES {
                return Err(PackageError::Signature);
            }
            (&mut self.signature, SIGNATURE_SECTION)
        } else {
            return Ok(());
        };
        if slot.replace(found).is_some() {
            return Err(PackageError::Duplicate(name));
        }
        Ok(())
    }
}

/// A number of 32 bits, and where it ends.
fn leb128(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut value = 0_u64;
    for shift in [0, 7, 14, 21, 28] {
        let byte = *bytes.get(at)?;
        at = at.checked_add(1)?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            let value = u32::try_from(value).ok()?;
            return Some((usize::try_from(value).ok()?, at));
        }
    }
    None
}

fn put_leb128(bytes: &mut Vec<u8>, mut value: usize) {
    while value > 0x7f {
        bytes.push(u8::try_from(value & 0x7f).unwrap_or(0) | 0x80);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).unwrap_or(0));
}

fn without(bytes: &[u8], gone: [Option<Found>; 2]) -> Vec<u8> {
    let mut gone: Vec<_> = gone.into_iter().flatten().map(|found| found.whole).collect();
    gone.sort_by_key(|range| range.start);
    let mut kept = Vec::with_capacity(bytes.len());
    let mut at = 0;
    for range in gone {
        kept.extend_from_slice(bytes.get(at..range.start).unwrap_or_default());
        at = range.end;
    }
    kept.extend_from_slice(bytes.get(at..).unwrap_or_default());
    kept
}

fn append(bytes: &mut Vec<u8>, name: &str, content: &[u8]) {
    let mut inner = Vec::with_capacity(name.len() + content.len() + 8);
    put_leb128(&mut inner, name.len());
    inner.extend_from_slice(name.as_bytes());
    inner.extend_from_slice(content);
    bytes.push(0);
    put_leb128(bytes, inner.len());
    bytes.extend_from_slice(&inner);
}

#[cfg(test)]
#[path = "package/tests.rs"]
mod tests;
