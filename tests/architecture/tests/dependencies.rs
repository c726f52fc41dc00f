//! The dependency direction between the crates of the workspace.
//!
//! The graph is the architecture's; an arrow that is missing here is a decision to take there first.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

/// What each crate of the host may depend on, of ours.
const ALLOWED: &[(&str, &[&str])] = &[
    ("backplane-types", &[]),
    ("backplane-aggregates", &["backplane-types"]),
    ("backplane-crypto", &["backplane-types"]),
    ("backplane-channel", &["backplane-types", "backplane-crypto"]),
    ("backplane-session", &["backplane-types", "backplane-aggregates"]),
    ("backplane-queue", &[]),
    ("backplane-nodes", &["backplane-types"]),
    ("backplane-manifest", &[]),
    (
        "backplane-plugin",
        &[
            "backplane-types",
            "backplane-nodes",
            "backplane-queue",
            "backplane-manifest",
        ],
    ),
    (
        "backplane-client",
        &["backplane-types", "backplane-crypto", "backplane-channel"],
    ),
    (
        "backplane",
        &[
            "backplane-types",
            "backplane-crypto",
            "backplane-channel",
            "backplane-client",
            "backplane-session",
            "backplane-queue",
            "backplane-nodes",
            "backplane-manifest",
            "backplane-plugin",
        ],
    ),
];

/// Crates with a runtime and a clock.
const RUNTIME: &[&str] = &["backplane", "backplane-client", "backplane-plugin"];

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(xtask::repository_root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap()
}

/// Where a package lies below the repository's root.
fn folder(metadata: &Metadata, package: &Package) -> String {
    let folder = package.manifest_path.parent().unwrap();
    folder
        .strip_prefix(&metadata.workspace_root)
        .unwrap()
        .as_str()
        .replace('\\', "/")
}

/// The names of a package's dependencies that are linked into it, or run at its build.
fn linked(package: &Package) -> BTreeSet<&str> {
    let shipped = package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind != DependencyKind::Development);
    shipped.map(|dependency| dependency.name.as_str()).collect()
}

fn names_below(metadata: &Metadata, parent: &str) -> BTreeSet<String> {
    let below = metadata
        .packages
        .iter()
        .filter(|package| folder(metadata, package).starts_with(parent));
    below.map(|package| package.name.to_string()).collect()
}

#[test]
fn host_crates_point_in_one_direction() {
    let metadata = metadata();
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.iter().copied().collect();
    let host = names_below(&metadata, "host/");
    let ours: BTreeSet<&str> = metadata.packages.iter().map(|package| package.name.as_str()).collect();
    assert_eq!(host, allowed.keys().map(|name| (*name).to_owned()).collect());
    for package in metadata
        .packages
        .iter()
        .filter(|package| host.contains(package.name.as_str()))
    {
        let may: BTreeSet<&str> = allowed[package.name.as_str()].iter().copied().collect();
        let does: BTreeSet<&str> = linked(package).intersection(&ours).copied().collect();
        let wrong: Vec<_> = does.difference(&may).collect();
        assert!(wrong.is_empty(), "{} must not depend on {wrong:?}", package.name);
    }
}

#[test]
fn queue_depends_on_nothing_of_ours_even_in_tests() {
    let metadata = metadata();
    let ours: BTreeSet<&str> = metadata.packages.iter().map(|package| package.name.as_str()).collect();
    let queue = metadata
        .packages
        .iter()
        .find(|package| package.name.as_str() == "backplane-queue")
        .unwrap();
    assert!(
        queue
            .dependencies
            .iter()
            .all(|dependency| !ours.contains(dependency.name.as_str()))
    );
}

#[test]
fn guests_never_depend_on_the_host() {
    let metadata = metadata();
    let host = names_below(&metadata, "host/");
    let guests = metadata.packages.iter().filter(|package| {
        let folder = folder(&metadata, package);
        folder.starts_with("sdk/") || folder.starts_with("plugins/") || folder == "tests/plugins"
    });
    let mut seen = 0;
    for guest in guests {
        seen += 1;
        for dependency in &guest.dependencies {
            assert!(
                !host.contains(&dependency.name),
                "{} depends on {}",
                guest.name,
                dependency.name
            );
        }
    }
    assert!(seen >= 2, "sdk/rust and at least one plugin are in the workspace");
}

#[test]
fn only_server_client_and_plugin_have_a_runtime() {
    let metadata = metadata();
    let runtimes = ["tokio", "async-std", "smol", "mio", "futures-executor"];
    let host = names_below(&metadata, "host/");
    for package in metadata
        .packages
        .iter()
        .filter(|package| host.contains(package.name.as_str()))
    {
        if RUNTIME.contains(&package.name.as_str()) {
            continue;
        }
        let found: Vec<_> = linked(package)
            .into_iter()
            .filter(|name| runtimes.contains(name) || name.starts_with("tokio-"))
            .collect();
        assert!(found.is_empty(), "{} must not depend on {found:?}", package.name);
    }
}

#[test]
fn the_generator_does_not_need_what_it_generates() {
    let metadata = metadata();
    let host = names_below(&metadata, "host/");
    let xtask = metadata
        .packages
        .iter()
        .find(|package| package.name.as_str() == "xtask")
        .unwrap();
    assert!(linked(xtask).iter().all(|name| !host.contains(*name)));
}
