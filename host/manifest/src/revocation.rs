//! The revocation list: what must not run, whoever signed it.
//!
//! Owns its file form and matching. Versions are compared as numbers, pre-releases among them, so that no version slips through a range.

use std::cmp::Ordering;
use std::fmt;

use semver::Version;
use toml::Value;

use crate::package::Digest;
use crate::problem::{Found, Problem, Problems};
use crate::section::{Section, parse_table};
use crate::signature::PublisherKey;

/// Bytes of a revocation file.
pub const MAX_REVOCATION_BYTES: usize = 4 << 20;
/// Entries of a revocation list.
pub const MAX_REVOCATIONS: usize = 10_000;

/// A revocation list.
///
/// ```
/// let list = backplane_manifest::Revocations::parse(r#"
/// [[revoked]]
/// digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
/// reason = "opens the valve"
///
/// [[revoked]]
/// id = "com.acme.boiler"
/// versions = ">=1.0.0, <1.2.4"          # left out: all
/// "#)?;
/// assert_eq!(list.len(), 2);
/// # Ok::<(), backplane_manifest::Problems>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Revocations(Vec<(What, String)>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Digest(Digest),
    Publisher(PublisherKey),
    Versions(String, Vec<(Comparison, Version)>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Less,
    LessOrEqual,
    Equal,
    GreaterOrEqual,
    Greater,
}

/// The entry of a revocation list that a component is hit by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokedBy {
    /// The key of the entry and its value.
    pub entry: String,
    /// What the list says about it.
    pub reason: String,
}

impl fmt::Display for RevokedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.entry)?;
        if !self.reason.is_empty() {
            write!(f, " ({})", self.reason)?;
        }
        Ok(())
    }
}

impl Revocations {
    /// Reads a revocation file.
    ///
    /// # Errors
    /// Everything that is wrong. A list that cannot be read revokes nothing, so whoever reads one must not go on without it.
    pub fn parse(text: &str) -> Result<Self, Problems> {
        let table = parse_table(text, MAX_REVOCATION_BYTES)?;
        let mut found = Found::default();
        let mut list = Vec::new();
        let mut root = Section::root(&table);
        match root.value("revoked") {
            None => {}
            Some(Value::Array(entries)) if entries.len() <= MAX_REVOCATIONS => {
                for (index, entry) in entries.iter().enumerate() {
                    let path = format!("revoked[{index}]");
                    match entry {
                        Value::Table(table) => list.extend(read_entry(Section::at(path, Some(table)), &mut found)),
                        other => found.add(Problem::new(path, other, "a table is expected")),
                    }
                }
            }
            Some(_) => {
                let rule = format!("at most {MAX_REVOCATIONS} tables [[revoked]] are expected");
                found.add(Problem::new("revoked", "", rule));
            }
        }
        root.finish(&mut found);
        found.done(Self(list))
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is revoked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a digest is revoked.
    #[must_use]
    pub fn digest(&self, digest: &Digest) -> Option<RevokedBy> {
        let by = |what: &What| (*what == What::Digest(*digest)).then(|| format!("digest = {digest}"));
        self.first(by)
    }

    /// Whether a publisher's key is revoked.
    #[must_use]
    pub fn publisher(&self, key: &PublisherKey) -> Option<RevokedBy> {
        self.first(|what| (*what == What::Publisher(*key)).then(|| format!("publisher = {key}")))
    }

    /// Whether a version of a plugin is revoked.
    #[must_use]
    pub fn version(&self, id: &str, version: &Version) -> Option<RevokedBy> {
        self.first(|what| match what {
            What::Versions(of, range) if of == id && range.iter().all(|(how, bound)| holds(*how, version, bound)) => {
                Some(format!("id = {id}, version {version}"))
            }
            _ => None,
        })
    }

    fn first(&self, by: impl Fn(&What) -> Option<String>) -> Option<RevokedBy> {
        self.0.iter().find_map(|(what, reason)| {
            by(what).map(|entry| RevokedBy {
                entry,
                reason: reason.clone(),
            })
        })
    }
}

fn read_entry(mut section: Section<'_>, found: &mut Found) -> Option<(What, String)> {
    let path = section.path_of("");
    let digest = section.parsed("digest", found, Digest::parse).map(What::Digest);
    let publisher = section
        .parsed("publisher", found, PublisherKey::parse)
        .map(What::Publisher);
    let id = section.text("id", found).map(str::to_owned);
    let says_versions = section.value("versions").is_some();
    let versions = section.parsed("versions", found, range);
    let reason = section.text("reason", found).unwrap_or_default().to_owned();
    let of = [section.value("digest"), section.value("publisher"), section.value("id")];
    if of.into_iter().flatten().count() != 1 || (says_versions && id.is_none()) {
        let rule = "an entry has one of digest, publisher and id; versions only beside id";
        found.add(Problem::new(path.trim_end_matches('.'), "", rule));
    }
    section.finish(found);
    let what = digest
        .or(publisher)
        .or(id.map(|id| What::Versions(id, versions.unwrap_or_default())));
    what.map(|what| (what, reason))
}

fn range(text: &str) -> Result<Vec<(Comparison, Version)>, String> {
    let rule = "a range is like \">=1.0.0, <1.2.4\", with whole versions behind <, <=, =, >= or >";
    let compare = |part: &str| {
        let part = part.trim();
        let signs = [
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
            ("=", Comparison::Equal),
        ];
        let found = signs
            .iter()
            .find_map(|(sign, how)| part.strip_prefix(sign).map(|rest| (*how, rest)));
        let (how, version) = found.ok_or_else(|| rule.to_owned())?;
        Ok((how, Version::parse(version.trim()).map_err(|_| rule.to_owned())?))
    };
    text.split(',').map(compare).collect()
}

fn holds(how: Comparison, version: &Version, bound: &Version) -> bool {
    // Build metadata is no part of the order.
    let order = version.cmp_precedence(bound);
    match how {
        Comparison::Less => order == Ordering::Less,
        Comparison::LessOrEqual => order != Ordering::Greater,
        Comparison::Equal => order == Ordering::Equal,
        Comparison::GreaterOrEqual => order != Ordering::Less,
        Comparison::Greater => order == Ordering::Greater,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_pre_releases_and_builds() {
        let list = "[[revoked]]\nid = \"a\"\nversions = \">=1.0.0, <1.2.4\"\n[[revoked]]\nid = \"b\"\n";
        let list = Revocations::parse(list).unwrap();
        let hit = |id: &str, version: &str| list.version(id, &version.parse().unwrap()).is_some();
        assert!(hit("a", "1.0.0") && hit("a", "1.2.4-beta") && hit("a", "1.1.0-rc.1") && hit("a", "1.2.3+build"));
        assert!(!hit("a", "1.2.4") && !hit("a", "0.9.9") && !hit("a", "1.2.4+x") && !hit("aa", "1.0.0"));
        assert!(hit("b", "7.0.0-x"));
    }

    #[test]
    fn entries_are_strict_and_all_problems_are_told() {
        let text = "[[revoked]]\ndigest = \"sha256:00\"\n[[revoked]]\nid = \"a\"\nversions = \"1.0\"\n[[revoked]]\nreason = \"x\"\n[[revoked]]\nid = \"a\"\nvresions = \"<1.0.0\"";
        let Problems(problems) = Revocations::parse(text).unwrap_err();
        let keys: Vec<_> = problems.iter().map(|problem| problem.key.as_str()).collect();
        assert_eq!(
            keys,
            [
                "revoked[0].digest",
                "revoked[1].versions",
                "revoked[2]",
                "revoked[3].vresions"
            ]
        );
    }
}
