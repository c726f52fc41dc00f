//! `backplane plugin check`: what a component is, what it needs, and whether this host would load it, in words.

use std::path::Path;

use backplane_manifest::{Manifest, Package, SettingsSchema, check_settings};
use backplane_plugin::{Inspection, PluginFile, PluginKind, inspect};
use serde_json::{Value, json};

use super::look;
use crate::cli::CheckArgs;
use crate::commands::{Failure, Outcome};

/// Interfaces of the host before their versions.
const OURS: &str = "backplane:host/";

/// What was found, in order.
#[derive(Default)]
struct Report {
    lines: Vec<String>,
    /// Why it would not be loaded, or not as its author meant it.
    problems: Vec<String>,
}

pub(super) fn run(args: &CheckArgs) -> Outcome {
    let found = inspect(&args.component).map_err(Failure::other)?;
    let bytes = std::fs::read(&args.component)
        .map_err(|error| Failure::other(format!("{}: {error}", args.component.display())))?;
    let mut report = Report::default();
    report.component(&found);
    let manifest = report.manifest(&bytes, &found);
    report.operator(args.settings.as_deref(), manifest.as_ref())?;
    if args.json {
        println!("{}", document(&args.component, &found, &report));
    } else {
        report.lines.iter().for_each(|line| println!("{line}"));
        report
            .problems
            .iter()
            .for_each(|problem| println!("problem: {problem}"));
        println!(
            "{}",
            if report.problems.is_empty() {
                "this host would load it"
            } else {
                "this host would not load it as it is"
            }
        );
    }
    match report.problems.len() {
        0 => Ok(()),
        count => Err(Failure::other(format!(
            "{}: {count} problems",
            args.component.display()
        ))),
    }
}

impl Report {
    fn say(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    fn component(&mut self, found: &Inspection) {
        self.say(format!("{}, {} bytes", look::kind(found), found.size));
        if let Some(version) = minimum_host(found) {
            self.say(format!(
                "needs a host with its interfaces at {version} or later, as it imports them"
            ));
        }
        let facets: Vec<&str> = found.facets.iter().map(|facet| facet.name).collect();
        if !facets.is_empty() {
            self.say(format!("exports {}", facets.join(", ")));
        }
        for facet in found.facets.iter().filter(|facet| !facet.served) {
            self.say(format!("note: this host does not call {} yet", facet.name));
        }
        self.problems.extend(found.problems.iter().cloned());
    }

    /// What it says of itself, compared with what it is.
    fn manifest(&mut self, bytes: &[u8], found: &Inspection) -> Option<Manifest> {
        let package = match Package::read(bytes) {
            Ok(package) => package,
            Err(error) => {
                self.problems.push(error.to_string());
                return None;
            }
        };
        self.say(match (&package.signature, package.has_manifest()) {
            (Some(signature), _) => format!("signed by {}", signature.key()),
            (None, true) => "not signed".to_owned(),
            (None, false) => "no manifest and not signed: it asks for nothing, and nothing is granted".to_owned(),
        });
        let manifest = match package.manifest() {
            Ok(manifest) => manifest?,
            Err(error) => {
                self.problems.push(format!("manifest: {error}"));
                return None;
            }
        };
        self.say(format!("{} {}", manifest.id, manifest.version));
        let is = match found.kind {
            Some(PluginKind::NodeManager) => Some(backplane_manifest::Kind::NodeManager),
            Some(PluginKind::IsolationClassifier) => Some(backplane_manifest::Kind::Classifier),
            None => None,
        };
        if is.is_some_and(|is| is != manifest.kind) {
            self.problems.push(format!(
                "manifest: kind = {:?}, and the component is a {}",
                manifest.kind.name(),
                look::kind(found)
            ));
        }
        if let (Some(says), Some(needs)) = (&manifest.host, minimum_host(found))
            && *says < needs
        {
            self.problems
                .push(format!("manifest: host = \"{says}\", and its imports need {needs}"));
        }
        for uri in &manifest.namespaces {
            self.say(format!("namespace {uri}"));
        }
        if manifest.asks.is_empty() {
            self.say("asks for nothing of the world outside");
        } else {
            self.say("asks for:");
            let asks = manifest.asks.to_text();
            for line in asks.lines().filter(|line| !line.trim().is_empty()) {
                self.say(format!("    {line}"));
            }
        }
        Some(manifest)
    }

    /// What the operator's file beside it says.
    fn operator(&mut self, path: Option<&Path>, manifest: Option<&Manifest>) -> Outcome {
        let Some(path) = path else { return Ok(()) };
        let text =
            std::fs::read_to_string(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
        let file = match PluginFile::parse(&text) {
            Ok(file) => file,
            Err(reason) => {
                self.problems.push(format!("{}: {reason}", path.display()));
                return Ok(());
            }
        };
        if let Some(SettingsSchema::Inline(schema)) = manifest.map(|manifest| &manifest.settings)
            && let Err(problems) = check_settings(schema, &file.settings_json())
        {
            let of_file = problems
                .0
                .iter()
                .map(|problem| format!("{}: [settings] {problem}", path.display()));
            self.problems.extend(of_file);
        }
        Ok(())
    }
}

/// The oldest version of the host's interfaces that has everything it imports.
fn minimum_host(found: &Inspection) -> Option<semver::Version> {
    let versions = found.imports.iter().filter_map(|import| {
        let (name, version) = import.split_once('@')?;
        name.starts_with(OURS)
            .then(|| semver::Version::parse(version).ok())
            .flatten()
    });
    versions.max()
}

fn document(path: &Path, found: &Inspection, report: &Report) -> Value {
    let mut document = look::to_json(path, found);
    document["report"] = json!(report.lines);
    document["problems"] = json!(report.problems);
    document["loads"] = report.problems.is_empty().into();
    document["minimum_host"] = minimum_host(found).map(|version| version.to_string()).into();
    document
}
