//! What every manifest and every source file of the workspace keeps to.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use cargo_metadata::MetadataCommand;
use toml::{Table, Value};

/// Lines that no hand-written source file exceeds.
const LONGEST_FILE: usize = 800;

/// Folders of the repository that hold hand-written Rust.
const SOURCES: &[&str] = &["host", "sdk", "plugins", "tests", "xtask", "examples"];

/// Crates that set lints of their own: `sdk/rust` and `future-facet` contain generated bindings, which cannot do without unsafe code.
const OWN_LINTS: &[&str] = &["backplane-sdk", "future-facet"];

fn manifests() -> Vec<(String, Table)> {
    let root = xtask::repository_root().join("Cargo.toml");
    let metadata = MetadataCommand::new().manifest_path(root).no_deps().exec().unwrap();
    let read = |path: &Path| std::fs::read_to_string(path).unwrap().parse::<Table>().unwrap();
    let packages = metadata.packages.iter();
    packages
        .map(|package| (package.name.to_string(), read(package.manifest_path.as_std_path())))
        .collect()
}

/// Every dependency table in a manifest, those of targets included.
fn dependencies(manifest: &Table) -> Vec<(&String, &Value)> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let sections = targets
        .into_iter()
        .flat_map(|targets| targets.values())
        .filter_map(Value::as_table);
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    std::iter::once(manifest)
        .chain(sections)
        .flat_map(|section| kinds.iter().filter_map(|kind| section.get(*kind)?.as_table()))
        .flatten()
        .collect()
}

#[test]
fn versions_stand_in_one_place() {
    for (package, manifest) in manifests() {
        for (name, dependency) in dependencies(&manifest) {
            let inherited = dependency.get("workspace").and_then(Value::as_bool) == Some(true);
            assert!(
                inherited,
                "{package}: {name} does not come from [workspace.dependencies]"
            );
        }
    }
}

#[test]
fn lints_and_edition_are_the_workspaces() {
    for (package, manifest) in manifests() {
        let inherits = |table: &Value| table.get("workspace").and_then(Value::as_bool) == Some(true);
        let edition = manifest.get("package").and_then(|table| table.get("edition"));
        assert!(edition.is_some_and(inherits), "{package} sets an edition of its own");
        if !OWN_LINTS.contains(&package.as_str()) {
            assert!(
                manifest.get("lints").is_some_and(inherits),
                "{package} does not inherit the lints"
            );
        }
    }
}

/// All Rust sources below a folder, without generated ones and without what builds leave behind.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.map(Result::unwrap) {
        let path = entry.path();
        let name = entry.file_name();
        let skipped = ["target", "generated", "node_modules"]
            .iter()
            .any(|skipped| name == *skipped);
        if entry.file_type().unwrap().is_dir() && !skipped {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn files_are_rooms_not_halls() {
    let root = xtask::repository_root();
    let mut found = Vec::new();
    for folder in SOURCES {
        sources(&root.join(folder), &mut found);
    }
    assert!(found.len() > 20);
    for path in found {
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= LONGEST_FILE, "{} has {lines} lines", path.display());
    }
}
