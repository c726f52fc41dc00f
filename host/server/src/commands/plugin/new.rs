//! `backplane plugin new`: a project to start from.
//!
//! Owns what is in it: a small plugin that works, its tests, its manifest, and the SDK of this version, so that nothing else has to be found.

use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use serde_json::json;

use crate::cli::{Kind, Language, NewArgs};
use crate::commands::{Failure, Outcome};

static TEMPLATE: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../sdk/rust/template");
static SDK: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../sdk/rust/src");
static SDK_MANIFEST: &str = include_str!("../../../../../sdk/rust/Cargo.toml");
static CONTRACT: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../wit");
/// The versions of everything that this server was built and tested with.
static LOCK: &str = include_str!("../../../../../Cargo.lock");
/// Where the SDK's own dependencies have their versions.
static WORKSPACE: &str = include_str!("../../../../../Cargo.toml");

/// Longest name of a plugin.
const MAX_NAME: usize = 64;

pub(super) fn run(args: &NewArgs) -> Outcome {
    check_name(&args.name)?;
    let folder = args.dir.clone().unwrap_or_else(|| PathBuf::from(&args.name));
    must_be_free(&folder)?;
    let files = match args.lang {
        Language::Rust => rust_project(&args.name, args.kind)?,
    };
    let count = files.len();
    for (path, text) in files {
        write(&folder.join(path), &text)?;
    }
    if args.json {
        let document = json!({ "folder": folder.display().to_string(), "name": args.name, "files": count });
        println!("{document}");
    } else {
        println!(
            "{} is there. Next: cd {0} && cargo test && backplane plugin build",
            folder.display()
        );
    }
    Ok(())
}

fn check_name(name: &str) -> Outcome {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let good = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.len() <= MAX_NAME
        && name.chars().all(plain)
        && !name.ends_with('-')
        && !name.contains("--");
    if good {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{name:?} is no name of a plugin: 1 to {MAX_NAME} of a-z, 0-9 and single -, beginning with a letter"
    )))
}

fn must_be_free(folder: &Path) -> Outcome {
    match std::fs::read_dir(folder).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::usage(format!("{} is there and not empty", folder.display()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Failure::other(format!("{}: {error}", folder.display()))),
    }
}

/// The files of a project in Rust, by their paths in it.
fn rust_project(name: &str, kind: Kind) -> Result<Vec<(PathBuf, String)>, Failure> {
    let part = match kind {
        Kind::NodeManager => "node-manager",
        Kind::Classifier => "classifier",
    };
    let fill = |text: &str| -> Result<String, Failure> {
        Ok(text
            .replace("{{name}}", name)
            .replace("{{crate}}", &name.replace('-', "_"))
            .replace("{{version}}", env!("CARGO_PKG_VERSION"))
            .replace("{{rust-version}}", env!("CARGO_PKG_RUST_VERSION"))
            .replace("{{wit-bindgen}}", &bindings_version()?))
    };
    let mut files = vec![
        (PathBuf::from("Cargo.lock"), LOCK.to_owned()),
        (PathBuf::from("sdk/rust/Cargo.toml"), SDK_MANIFEST.to_owned()),
    ];
    let templates = [
        ("Cargo.toml".to_owned(), "Cargo.toml.in".to_owned()),
        (".gitignore".to_owned(), "gitignore.in".to_owned()),
        ("src/lib.rs".to_owned(), format!("{part}/lib.rs.in")),
        ("tests/all.rs".to_owned(), format!("{part}/tests.rs.in")),
        ("plugin.toml".to_owned(), format!("{part}/plugin.toml.in")),
        ("README.md".to_owned(), format!("{part}/README.md.in")),
    ];
    for (path, template) in templates {
        let text = TEMPLATE.get_file(&template).and_then(include_dir::File::contents_utf8);
        let text = text.ok_or_else(|| Failure::other(format!("this build lacks its template {template}")))?;
        files.push((path.into(), fill(text)?));
    }
    copy(&SDK, Path::new("sdk/rust/src"), &mut files)?;
    copy(&CONTRACT, Path::new("wit"), &mut files)?;
    Ok(files)
}

/// The version of wit-bindgen that the SDK is written for.
fn bindings_version() -> Result<String, Failure> {
    let broken = || Failure::other("this build does not know its version of wit-bindgen");
    let workspace: toml::Table = WORKSPACE.parse().map_err(|_| broken())?;
    let version = workspace
        .get("workspace")
        .and_then(|it| it.get("dependencies"))
        .and_then(|it| it.get("wit-bindgen"))
        .and_then(|it| it.get("version"))
        .and_then(toml::Value::as_str);
    version.map(str::to_owned).ok_or_else(broken)
}

/// Every file below a folder that was built in.
fn copy(folder: &Dir<'_>, to: &Path, files: &mut Vec<(PathBuf, String)>) -> Outcome {
    for file in folder.files() {
        let text = file.contents_utf8();
        let text = text.ok_or_else(|| Failure::other(format!("{} is no text", file.path().display())))?;
        files.push((to.join(file.path()), text.to_owned()));
    }
    folder.dirs().try_for_each(|inner| copy(inner, to, files))
}

fn write(path: &Path, text: &str) -> Outcome {
    let failed = |error: std::io::Error| Failure::other(format!("{}: {error}", path.display()));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    std::fs::write(path, text).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cargo_and_the_plugin_folder_both_take() {
        for good in ["pump", "pump-2", "a"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "Pump",
            "2pump",
            "pump_2",
            "pu mp",
            "../pump",
            "pump-",
            "a--b",
            &"a".repeat(65),
        ] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn nothing_is_left_to_fill_in() {
        for kind in [Kind::NodeManager, Kind::Classifier] {
            for (path, text) in
                rust_project("some-plugin", kind).unwrap_or_else(|failure| panic!("{}", failure.message))
            {
                let copied = path.starts_with("sdk") || path.starts_with("wit");
                assert!(copied || !text.contains("{{"), "{} has a gap", path.display());
            }
        }
    }

    #[test]
    fn a_folder_in_use_is_left_alone() {
        let folder = std::env::temp_dir();
        assert!(must_be_free(&folder).is_err());
        assert!(must_be_free(&folder.join("there-is-no-such-folder")).is_ok());
    }
}
