//! `cargo xtask build`: the guests for wasm32-wasip2, then the host.

use std::fs;
use std::path::{Path, PathBuf};

use crate::tools::{Outcome, cargo, command, output, root, run, target_dir};

const GUEST_TARGET: &str = "wasm32-wasip2";

/// The components that the demonstration serves.
const SHIPPED: [&str; 1] = ["simulator"];

/// Shipped too, but for whoever wants them: a folder with a classifier in it needs settings for it.
const CLASSIFIERS: [&str; 2] = ["classifier-certificate", "classifier-network"];

/// Where `build` puts the shipped components: a plugin folder.
pub(crate) fn plugin_folder() -> PathBuf {
    target_dir().join("plugins")
}

/// Where `build` puts the shipped classifiers.
fn classifier_folder() -> PathBuf {
    target_dir().join("classifiers")
}

/// Where `build_test_guests` puts components that tests load.
pub(crate) fn test_guest_folder() -> PathBuf {
    target_dir().join("test-guests")
}

/// The server's binary.
pub(crate) fn server_binary() -> PathBuf {
    target_dir().join("release").join("backplane")
}

/// Builds the shipped components and the server.
pub(crate) fn build() -> Outcome {
    ensure_guest_target()?;
    build_guests(&SHIPPED, &[])?;
    build_guests(&CLASSIFIERS, &[])?;
    for name in SHIPPED {
        install(name, &plugin_folder(), name)?;
    }
    for name in CLASSIFIERS {
        install(name, &classifier_folder(), name)?;
    }
    run(cargo().args(["build", "--release", "-p", "backplane"]))
}

/// Builds the bad components, the example, the load plugin, the classifiers, and the simulator's second build for reload tests.
pub(crate) fn build_test_guests() -> Outcome {
    let bad = misdeeds()?;
    let mut names: Vec<&str> = bad.iter().map(String::as_str).collect();
    names.extend(["hello-plugin", "backplane-load-plugin"]);
    names.extend(CLASSIFIERS);
    build_guests(&names, &[])?;
    for name in &names {
        install(name, &test_guest_folder(), name)?;
    }
    // The changed simulator last, and the shipped one again after it: both share one output name.
    build_guests(&SHIPPED, &["simulator/variant-b"])?;
    install("simulator", &test_guest_folder(), "simulator-b")?;
    build_guests(&SHIPPED, &[])?;
    install("simulator", &test_guest_folder(), "simulator")
}

/// The package names of `tests/plugins/*`.
fn misdeeds() -> Outcome<Vec<String>> {
    let folder = root().join("tests").join("plugins");
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let manifest = entry.map_err(|error| error.to_string())?.path().join("Cargo.toml");
        let Ok(text) = fs::read_to_string(&manifest) else {
            continue;
        };
        let name = text
            .lines()
            .find_map(|line| line.strip_prefix("name = "))
            .map(|name| name.trim_matches('"').to_owned());
        names.push(name.ok_or_else(|| format!("{}: no package name", manifest.display()))?);
    }
    names.sort();
    Ok(names)
}

fn build_guests(names: &[&str], features: &[&str]) -> Outcome {
    let mut cargo = cargo();
    cargo.args(["build", "--profile", "guest", "--target", GUEST_TARGET]);
    for name in names {
        cargo.args(["-p", name]);
    }
    if !features.is_empty() {
        cargo.arg("--features").arg(features.join(","));
    }
    run(&mut cargo)
}

/// Copies a built component, by rename, so that a running server never sees half of it.
fn install(package: &str, folder: &Path, name: &str) -> Outcome {
    let built = target_dir()
        .join(GUEST_TARGET)
        .join("guest")
        .join(format!("{}.wasm", package.replace('-', "_")));
    let placed = folder.join(format!("{name}.wasm"));
    let partial = folder.join(format!("{name}.partial"));
    let place = || -> std::io::Result<()> {
        fs::create_dir_all(folder)?;
        if fs::read(&placed).ok() == Some(fs::read(&built)?) {
            return Ok(());
        }
        fs::copy(&built, &partial)?;
        fs::rename(&partial, &placed)
    };
    place().map_err(|error| format!("cannot place {} as {}: {error}", built.display(), placed.display()))
}

/// Adds the wasm target when it is missing; rustup does not do so by itself everywhere.
fn ensure_guest_target() -> Outcome {
    let sysroot = output(command("rustc").args(["--print", "sysroot"]))?;
    if Path::new(sysroot.trim())
        .join("lib/rustlib")
        .join(GUEST_TARGET)
        .exists()
    {
        return Ok(());
    }
    run(command("rustup").args(["target", "add", GUEST_TARGET]))
        .map_err(|error| format!("{error}\nplugins need the Rust target {GUEST_TARGET}"))
}
