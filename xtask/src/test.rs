//! `cargo xtask test`: every test that fits in CI, in the one profile that the demonstration uses too.
//!
//! Real clients get folders of their own under `target/clients`. What cannot run is listed at the end; with
//! `--require-clients` it is a failure.

use std::fs;
use std::path::{Path, PathBuf};

use crate::build;
use crate::models;
use crate::tools::{Outcome, cargo, command, output, root, run, target_dir};

/// The Python client and its exact version.
const ASYNCUA: &str = "asyncua==2.1.0";
/// The JavaScript client and its exact version.
const NODE_OPCUA: &str = "node-opcua@2.182.2";

/// Runs everything; `require_clients` makes a missing client an error instead of a skip.
pub(crate) fn test(require_clients: bool) -> Outcome {
    build::build()?;
    build::build_test_guests()?;
    let guests = build::test_guest_folder();
    run(cargo()
        .args(["test", "--release", "--workspace", "--no-fail-fast"])
        .env("BACKPLANE_TEST_GUESTS", &guests))?;
    models::test()?;
    // Skips itself, loudly, where there is no valgrind.
    run(cargo().args(["run", "--release", "-p", "backplane-instructions", "--", "--check"]))?;
    let mut skipped = Vec::new();
    let mut conformance = cargo();
    conformance.args(["run", "--release", "-p", "conformance", "--"]);
    conformance.arg("--server").arg(build::server_binary());
    conformance.arg("--guests").arg(&guests);
    for (flag, prepare) in CLIENTS {
        match prepare() {
            Ok(path) => {
                conformance.arg(flag).arg(path);
            }
            Err(reason) if require_clients => return Err(format!("{flag}: {reason}")),
            Err(reason) => skipped.push(format!("{flag}: {reason}")),
        }
    }
    run(&mut conformance)?;
    for line in &skipped {
        eprintln!("xtask: SKIPPED real client {line}");
    }
    Ok(())
}

type Prepare = fn() -> Outcome<PathBuf>;
/// What each client needs before it can run: the interpreter, the module folder, the binary.
const CLIENTS: [(&str, Prepare); 3] = [("--python", python), ("--node", node), ("--async-opcua", async_opcua)];

fn folder(name: &str) -> Outcome<PathBuf> {
    let folder = target_dir().join("clients").join(name);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// Whether `folder` was filled for exactly `version`; a half-made one is not.
fn is_ready(folder: &Path, version: &str) -> bool {
    fs::read_to_string(folder.join("ready")).is_ok_and(|text| text == version)
}

fn mark_ready(folder: &Path, version: &str) -> Outcome {
    fs::write(folder.join("ready"), version).map_err(|error| format!("{}: {error}", folder.display()))
}

fn python() -> Outcome<PathBuf> {
    let folder = folder("python")?;
    let interpreter = folder.join("bin").join("python");
    if !is_ready(&folder, ASYNCUA) {
        output(command("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        output(command(&interpreter).args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            ASYNCUA,
        ]))?;
        mark_ready(&folder, ASYNCUA)?;
    }
    Ok(interpreter)
}

fn node() -> Outcome<PathBuf> {
    let folder = folder("node")?;
    if !is_ready(&folder, NODE_OPCUA) {
        fs::write(folder.join("package.json"), "{\"private\":true}").map_err(|error| error.to_string())?;
        output(
            command("npm")
                .args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
                .arg(&folder)
                .arg(NODE_OPCUA),
        )?;
        mark_ready(&folder, NODE_OPCUA)?;
    }
    Ok(folder)
}

fn async_opcua() -> Outcome<PathBuf> {
    let manifest = root().join("tests/conformance/async-opcua/Cargo.toml");
    let target = folder("async-opcua")?;
    let mut build = cargo();
    build
        .args(["build", "--release", "--locked", "--manifest-path"])
        .arg(&manifest)
        .arg("--target-dir")
        .arg(&target);
    run(&mut build)?;
    Ok(target.join("release").join("async-opcua-client"))
}
