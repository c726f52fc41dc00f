//! `backplane plugin inspect`, `list`: what is in a component, without a running server.

use std::path::{Path, PathBuf};

use backplane_plugin::{Inspection, PluginKind, inspect};
use serde_json::{Value, json};

use crate::commands::{Failure, Outcome};

/// `backplane plugin inspect`.
pub(super) fn at_one(file: &Path, json: bool) -> Outcome {
    let found = inspect(file).map_err(Failure::other)?;
    if json {
        println!("{}", to_json(file, &found));
    } else {
        println!("{}", describe(file, &found));
    }
    if found.loadable() {
        Ok(())
    } else {
        Err(Failure::other(format!("{} would not load", file.display())))
    }
}

/// `backplane plugin list`.
pub(super) fn at_folder(folder: &Path, json: bool) -> Outcome {
    let failed = |error: std::io::Error| Failure::other(format!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            files.push(path);
        }
    }
    files.sort();
    let mut broken = 0;
    let mut documents = Vec::new();
    for file in &files {
        let found = inspect(file);
        broken += usize::from(!found.as_ref().is_ok_and(Inspection::loadable));
        match (found, json) {
            (Ok(found), true) => documents.push(to_json(file, &found)),
            (Ok(found), false) => println!("{}", summary(file, &found)),
            (Err(error), true) => {
                documents.push(json!({ "file": file.display().to_string(), "problems": [error.to_string()] }))
            }
            (Err(error), false) => println!("{error}"),
        }
    }
    if json {
        println!("{}", Value::Array(documents));
    }
    if broken == 0 {
        Ok(())
    } else {
        Err(Failure::other(format!("{broken} of {} would not load", files.len())))
    }
}

pub(super) fn kind(found: &Inspection) -> &'static str {
    found.kind.map_or("unknown", |kind| match kind {
        PluginKind::NodeManager => "node-manager",
        PluginKind::IsolationClassifier => "isolation-classifier",
    })
}

fn file_name(file: &Path) -> String {
    file.file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn summary(file: &Path, found: &Inspection) -> String {
    let verdict = if found.loadable() {
        "loads".to_owned()
    } else {
        found.problems.join("; ")
    };
    format!("{}  {}  {} bytes  {verdict}", file_name(file), kind(found), found.size)
}

fn describe(file: &Path, found: &Inspection) -> String {
    let mut lines = vec![
        format!("file     {}", file.display()),
        format!("kind     {}", kind(found)),
        format!("size     {} bytes", found.size),
        format!("sha256   {}", found.digest),
    ];
    lines.extend(found.facets.iter().map(|facet| format!("facet    {}", facet.name)));
    lines.extend(found.imports.iter().map(|name| format!("imports  {name}")));
    lines.extend(found.exports.iter().map(|name| format!("exports  {name}")));
    lines.extend(found.problems.iter().map(|problem| format!("problem  {problem}")));
    lines.push(if found.loadable() {
        "this host would load it".to_owned()
    } else {
        "this host would not load it".to_owned()
    });
    lines.join("\n")
}

pub(super) fn to_json(file: &Path, found: &Inspection) -> Value {
    json!({
        "file": file.display().to_string(),
        "kind": kind(found),
        "size": found.size,
        "sha256": found.digest,
        "facets": found.facets.iter().map(|facet| facet.name).collect::<Vec<_>>(),
        "imports": found.imports,
        "exports": found.exports,
        "problems": found.problems,
        "loads": found.loadable(),
    })
}
