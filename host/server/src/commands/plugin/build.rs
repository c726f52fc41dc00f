//! `backplane plugin build`: from a project to a component that would load.
//!
//! Owns how the compiler is called and where the component is put. What is wrong with the code, the compiler says.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use backplane_plugin::inspect;
use serde_json::Value;

use super::{look, package};
use crate::commands::{Failure, Outcome};

/// What components are compiled for.
const TARGET: &str = "wasm32-wasip2";
/// The profile that `backplane plugin new` writes for them; projects without it are built for release.
const PROFILE: &str = "guest";
/// Where components are put.
const FOLDER: &str = "dist";

pub(super) fn run(project: &Path, as_json: bool) -> Outcome {
    let manifest = project.join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).map_err(|error| {
        Failure::usage(format!(
            "{}: {error}: not the folder of a project in Rust",
            manifest.display()
        ))
    })?;
    let described: toml::Table = text
        .parse()
        .map_err(|error| Failure::usage(format!("{}: {error}", manifest.display())))?;
    let name = described
        .get("package")
        .and_then(|package| package.get("name"))
        .and_then(toml::Value::as_str)
        .ok_or_else(|| Failure::usage(format!("{}: no [package] with a name", manifest.display())))?;
    let has_profile = described
        .get("profile")
        .is_some_and(|profiles| profiles.get(PROFILE).is_some());
    let compiled = compile(project, name, if has_profile { PROFILE } else { "release" })?;
    let folder = project.join(FOLDER);
    let component = folder.join(format!("{name}.wasm"));
    install(&compiled, &folder, &component)?;
    let described = project.join("plugin.toml");
    if described.exists() {
        package::put_in(&component, &described)?;
    }
    let found = inspect(&component).map_err(Failure::other)?;
    if as_json {
        println!("{}", look::to_json(&component, &found));
    } else {
        println!("{}: {}, {} bytes", component.display(), look::kind(&found), found.size);
    }
    if found.loadable() {
        return Ok(());
    }
    Err(Failure::other(format!(
        "{} would not load: {}",
        component.display(),
        found.problems.join("; ")
    )))
}

/// Runs the compiler, which writes what it has to say to standard error, and answers where the component is.
fn compile(project: &Path, name: &str, profile: &str) -> Result<PathBuf, Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(&cargo)
        .current_dir(project)
        .args(["build", "--lib", "--profile", profile, "--target", TARGET])
        .args(["--package", name, "--message-format", "json-render-diagnostics"])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Failure::other(format!("{}: {error}: is Rust installed (rustup.rs)?", cargo.display())))?;
    if !output.status.success() {
        return Err(Failure::other(format!(
            "the project does not build; if the target is missing: rustup target add {TARGET}"
        )));
    }
    let wanted = name.replace('-', "_");
    let artifact = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| {
            message["reason"] == "compiler-artifact"
                && message["target"]["name"].as_str().map(|it| it.replace('-', "_")) == Some(wanted.clone())
        })
        .flat_map(|message| match &message["filenames"] {
            Value::Array(names) => names.clone(),
            _ => Vec::new(),
        })
        .filter_map(|file| file.as_str().map(PathBuf::from))
        .rfind(|file| file.extension().is_some_and(|extension| extension == "wasm"));
    artifact
        .ok_or_else(|| Failure::other("the build made no component: is crate-type = [\"cdylib\", \"rlib\"] in [lib]?"))
}

/// Puts a file in its place in one step: a server that watches the folder never sees half of it.
fn install(from: &Path, folder: &Path, to: &Path) -> Outcome {
    let failed = |path: &Path, error: std::io::Error| Failure::other(format!("{}: {error}", path.display()));
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let partial = to.with_extension("wasm.partial");
    std::fs::copy(from, &partial).map_err(|error| failed(from, error))?;
    std::fs::rename(&partial, to).map_err(|error| failed(to, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_no_project_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let failure = run(folder.path(), true).unwrap_err();
        assert_eq!(failure.code, 64);
        assert!(
            failure.message.contains("not the folder of a project"),
            "{}",
            failure.message
        );
        std::fs::write(folder.path().join("Cargo.toml"), "[workspace]\n").unwrap();
        let failure = run(folder.path(), true).unwrap_err();
        assert!(failure.message.contains("[package]"), "{}", failure.message);
    }
}
