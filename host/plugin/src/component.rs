//! Looking at a component file: what it is, what it wants, whether this host would run it.
//!
//! Owns validation, and the one clear line about each thing that is wrong. It runs nothing but the throw-away instance that checks types.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use sha2::{Digest, Sha256};
use wasmtime::component::{Component, InstancePre};

use crate::bindings::{FacetIndices, KNOWN_FACETS, one_line};
use crate::engine::PluginEngine;
use crate::state::State;

/// The first four bytes of anything WebAssembly.
const MAGIC: &[u8] = b"\0asm";
/// Version and layer of a core module, and of a component.
const CORE: &[u8] = &[1, 0, 0, 0];
const COMPONENT: &[u8] = &[0x0d, 0, 1, 0];

/// Interfaces of the host, without version.
const OFFERED: &[&str] = &[
    "backplane:types/ua",
    "backplane:host/log",
    "backplane:host/metrics",
    "backplane:host/settings",
    "backplane:host/store",
    "backplane:host/address-space",
    "backplane:host/values",
    "backplane:host/events",
    "backplane:host/context",
    "backplane:host/timers",
    "backplane:host/clock",
    "backplane:host/evidence",
];
/// Packages of WASI that are linked.
const OFFERED_WASI: &[&str] = &[
    "wasi:cli/",
    "wasi:clocks/",
    "wasi:filesystem/",
    "wasi:io/",
    "wasi:random/",
    "wasi:sockets/",
];

/// Interfaces of the host that a classifier may import: it has no nodes, no timers and no clients' calls.
const OFFERED_TO_CLASSIFIERS: &[&str] = &[
    "backplane:types/ua",
    "backplane:host/log",
    "backplane:host/metrics",
    "backplane:host/settings",
    "backplane:host/evidence",
];
/// Names that only the text of a classifier has.
const MARKS_OF_CLASSIFIERS: &[&str] = &["backplane:guest/classify", "backplane:host/evidence"];

/// What a component is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PluginKind {
    /// Serves nodes: exports `lifecycle`.
    NodeManager,
    /// Tells whose work a peer's requests are: exports `classify`.
    IsolationClassifier,
}

impl PluginKind {
    /// The name in the contract.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NodeManager => "node-manager",
            Self::IsolationClassifier => "isolation-classifier",
        }
    }
}

/// One optional interface that a component exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FacetInfo {
    /// Its name under `backplane:guest/`.
    pub name: &'static str,
    /// Whether this version of the host calls it.
    pub served: bool,
}

/// The interface through which a guest asks about its caller.
const CONTEXT: &str = "backplane:host/context@";

/// What [`inspect`](crate::inspect) found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// Bytes of the file.
    pub size: u64,
    /// SHA-256 of the file, in hexadecimal.
    pub digest: String,
    /// None when the exports do not tell.
    pub kind: Option<PluginKind>,
    /// Interfaces the component imports, with versions.
    pub imports: Vec<String>,
    /// Interfaces and functions it exports, with versions.
    pub exports: Vec<String>,
    /// The known facets among the exports.
    pub facets: Vec<FacetInfo>,
    /// Why it would not load, one line each; empty: it would.
    pub problems: Vec<String>,
}

impl Inspection {
    /// Whether this host would load the component.
    #[must_use]
    pub fn loadable(&self) -> bool {
        self.problems.is_empty()
    }
}

/// A component that passed every check and can be instantiated.
pub(crate) struct Prepared {
    pub(crate) pre: InstancePre<State>,
    pub(crate) facets: FacetIndices,
    pub(crate) kind: PluginKind,
    /// Whether it can ask who calls: it imports `backplane:host/context`.
    pub(crate) asks_who: bool,
    pub(crate) digest: Arc<str>,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared")
            .field("kind", &self.kind)
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

/// SHA-256 in hexadecimal.
pub(crate) fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes)
        .iter()
        .fold(String::with_capacity(64), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// Looks at the bytes of a component and, where nothing is wrong, makes it ready for instances. Compiles, so it is slow; instances check types later.
pub(crate) fn prepare(engine: &PluginEngine, bytes: &[u8]) -> (Inspection, Option<Prepared>) {
    let mut found = Inspection {
        size: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        digest: digest(bytes),
        kind: None,
        imports: Vec::new(),
        exports: Vec::new(),
        facets: Vec::new(),
        problems: Vec::new(),
    };
    if let Err(problem) = header(bytes) {
        found.problems.push(problem);
        return (found, None);
    }
    // What the judges of a file cannot read is not taken, whatever a compiler makes of it.
    if let Err(error) = backplane_manifest::Package::read(bytes) {
        found.problems.push(format!("not a valid component: {error}"));
        return (found, None);
    }
    let component = match engine.compile(bytes) {
        Ok(component) => component,
        Err(reason) => {
            found.problems.push(format!("not a valid component: {reason}"));
            return (found, None);
        }
    };
    names(engine, &component, &mut found);
    let Some(kind) = found.kind else { return (found, None) };
    if !found.problems.is_empty() {
        return (found, None);
    }
    let linked = engine
        .linker()
        .instantiate_pre(&component)
        .map_err(|error| {
            format!(
                "imports that this host does not offer in this form: {}",
                one_line(&error)
            )
        })
        .and_then(|pre| FacetIndices::find(&pre).map(|facets| (pre, facets)));
    match linked {
        Ok((pre, facets)) => {
            let digest = found.digest.as_str().into();
            let asks_who = found.imports.iter().any(|import| import.starts_with(CONTEXT));
            (
                found,
                Some(Prepared {
                    pre,
                    facets,
                    kind,
                    asks_who,
                    digest,
                }),
            )
        }
        Err(problem) => {
            found.problems.push(problem);
            (found, None)
        }
    }
}

fn header(bytes: &[u8]) -> Result<(), String> {
    match (bytes.get(..4), bytes.get(4..8)) {
        (Some(MAGIC), Some(COMPONENT)) => Ok(()),
        (Some(MAGIC), Some(CORE)) => Err(
            "a core module, not a component: build it for wasm32-wasip2, or wrap it with wasm-tools component new"
                .to_owned(),
        ),
        (Some(MAGIC), None) => Err("the file ends within its header".to_owned()),
        (Some(MAGIC), Some(_)) => Err("a component of a version that this host does not know".to_owned()),
        (None, _) => Err("the file is empty or shorter than a header".to_owned()),
        _ => Err("not WebAssembly: the file does not begin with \\0asm".to_owned()),
    }
}

/// Fills in imports, exports, facets and kind, and what is wrong with them.
fn names(engine: &PluginEngine, component: &Component, found: &mut Inspection) {
    let types = component.component_type();
    for (name, _) in types.imports(engine.wasmtime()) {
        if !offered(name) {
            found
                .problems
                .push(format!("imports {name}, which this host does not offer"));
        }
        found.imports.push(name.to_owned());
    }
    for (name, _) in types.exports(engine.wasmtime()) {
        found.exports.push(name.to_owned());
        let Some(facet) = name.strip_prefix("backplane:guest/") else {
            continue;
        };
        match KNOWN_FACETS
            .iter()
            .find(|(known, _)| facet.split_once('@') == Some((known, "0.1.0")) || is_0_1(facet, known))
        {
            Some((known, served)) => found.facets.push(FacetInfo {
                name: known,
                served: *served,
            }),
            None => found.problems.push(format!(
                "exports {name}, a facet that this host does not know (it knows {} at 0.1)",
                KNOWN_FACETS
                    .iter()
                    .map(|(known, _)| *known)
                    .collect::<Vec<_>>()
                    .join(", ")
            )),
        }
    }
    if found.facets.iter().any(|facet| facet.name == "classify") {
        let foreign = found.imports.iter().filter(|import| !offered_to_classifiers(import));
        let foreign = foreign.map(|import| format!("imports {import}, which classifiers are not offered"));
        found.problems.extend(foreign.collect::<Vec<_>>());
    }
    let has = |name: &str| found.facets.iter().any(|facet| facet.name == name);
    match (has("lifecycle"), has("classify")) {
        (true, false) => found.kind = Some(PluginKind::NodeManager),
        (false, true) if found.facets.len() == 1 => found.kind = Some(PluginKind::IsolationClassifier),
        (true, true) => found
            .problems
            .push("exports both lifecycle and classify: a component is one or the other".to_owned()),
        _ => {
            let facets: Vec<_> = found.facets.iter().map(|facet| facet.name).collect();
            found.problems.push(if facets.is_empty() {
                "exports neither backplane:guest/lifecycle@0.1.0 (a node manager) nor backplane:guest/classify@0.1.0 (a classifier)".to_owned()
            } else {
                format!("exports {} but not backplane:guest/lifecycle@0.1.0, which every node manager needs", facets.join(", "))
            });
        }
    }
}

/// Whether an import is linked, going by its name; single functions are checked when it is linked.
fn offered(name: &str) -> bool {
    let Some((interface, version)) = name.split_once('@') else {
        return false;
    };
    if interface.starts_with("backplane:") {
        return OFFERED.contains(&interface) && version.starts_with("0.1.");
    }
    OFFERED_WASI.iter().any(|package| interface.starts_with(package)) && version.starts_with("0.2.")
}

/// Whether an import of the host is one that classifiers may have.
fn offered_to_classifiers(import: &str) -> bool {
    let interface = import.split_once('@').map_or(import, |(interface, _)| interface);
    !OFFERED.contains(&interface) || OFFERED_TO_CLASSIFIERS.contains(&interface)
}

/// Whether a file that cannot be loaded is, or was meant to be, a classifier: half a file still has some of the names.
pub(crate) fn looks_like_a_classifier(bytes: &[u8]) -> bool {
    let has = |mark: &str| bytes.windows(mark.len()).any(|part| part == mark.as_bytes());
    MARKS_OF_CLASSIFIERS.iter().any(|mark| has(mark))
}

/// Whether `facet` ("reader@0.1.2") is `known` in a compatible version.
fn is_0_1(facet: &str, known: &str) -> bool {
    facet
        .strip_prefix(known)
        .and_then(|rest| rest.strip_prefix("@0.1."))
        .is_some_and(|patch| patch.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The name a plugin has by its file: the stem, which must be plain enough for logs, metrics and file names.
pub(crate) fn plugin_name(path: &Path) -> Result<Arc<str>, String> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if stem.is_empty() || stem.len() > 64 || !stem.chars().all(plain) {
        return Err(format!(
            "{}: a plugin's file name has 1 to 64 of the characters a-z, A-Z, 0-9, -, _ and .",
            path.display()
        ));
    }
    Ok(stem.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_told_apart() {
        assert!(header(b"").unwrap_err().contains("empty"));
        assert!(header(b"\0asm\x01\0\0\0").unwrap_err().contains("core module"));
        assert!(header(b"\0asm\x0d\0\x01\0").is_ok());
        assert!(header(b"\0asm\x0d").unwrap_err().contains("ends within"));
        assert!(header(b"#!/bin/sh").unwrap_err().contains("not WebAssembly"));
    }

    #[test]
    fn imports_are_matched_by_compatible_version() {
        assert!(offered("backplane:host/log@0.1.0") && offered("backplane:host/log@0.1.7"));
        assert!(!offered("backplane:host/log@0.2.0") && !offered("backplane:host/logs@0.1.0") && !offered("log"));
        assert!(
            offered("wasi:io/streams@0.2.6") && !offered("wasi:http/types@0.2.6") && !offered("wasi:io/streams@0.3.0")
        );
        assert!(
            is_0_1("reader@0.1.3", "reader")
                && !is_0_1("reader-2@0.1.0", "reader")
                && !is_0_1("reader@0.2.0", "reader")
        );
    }

    #[test]
    fn names_of_files_become_names_of_plugins() {
        assert_eq!(&*plugin_name(Path::new("/x/boiler-2.wasm")).unwrap(), "boiler-2");
        assert!(plugin_name(Path::new("/x/bo iler.wasm")).is_err());
        assert!(plugin_name(Path::new("/")).is_err());
    }
}
