//! `backplane plugin test`: a plugin in a server of its own, with a client, and everything done to it that a bad night does.
//!
//! Owns the order of the checks and what is said of them. Nothing of the machine's configuration is used, and nothing is left behind.

mod checks;
mod plant;
mod script;
mod soak;
mod torture;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use self::plant::{Plant, Trouble};
use self::torture::Torture;
use crate::cli::TestArgs;
use crate::commands::{Failure, Outcome};
use crate::config::LogFormat;
use crate::logging;

/// What was looked at, and what was found.
struct Check {
    name: &'static str,
    /// None: all is well; else what is not.
    problem: Option<String>,
    /// What was measured.
    detail: String,
}

impl Check {
    fn passed(name: &'static str, detail: impl Into<String>) -> Self {
        Self {
            name,
            problem: None,
            detail: detail.into(),
        }
    }

    /// Passed if there is no problem.
    fn of(name: &'static str, detail: impl Into<String>, problem: Option<String>) -> Self {
        Self {
            name,
            problem,
            detail: detail.into(),
        }
    }
}

pub(super) fn run(args: &TestArgs) -> Outcome {
    logging::install(LogFormat::Text, if args.verbose { "info" } else { "off" });
    let (component, settings) = files(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("test")
        .enable_all()
        .build()
        .map_err(Failure::other)?;
    let (checks, torture) = runtime
        .block_on(all(args, &component, settings.as_deref()))
        .map_err(|trouble| Failure::other(format!("{}: {trouble}", component.display())))?;
    let failed = checks.iter().filter(|check| check.problem.is_some()).count();
    let equal = torture.as_ref().is_none_or(|torture| torture.differences.is_empty());
    if args.json {
        println!("{}", document(&component, &checks, torture.as_ref()));
    } else {
        tell(&checks, torture.as_ref());
    }
    match (failed, equal) {
        (0, true) => Ok(()),
        (0, false) => Err(Failure::other("clients notice that the plugin is reloaded")),
        (failed, _) => Err(Failure::other(format!("{failed} of {} checks failed", checks.len()))),
    }
}

/// The component, and the settings beside it or those that were named.
fn files(args: &TestArgs) -> Result<(PathBuf, Option<String>), Failure> {
    let component = if args.component.is_dir() {
        built(&args.component)?
    } else {
        args.component.clone()
    };
    let settings = match &args.settings {
        Some(path) => Some(
            std::fs::read_to_string(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?,
        ),
        None => None,
    };
    Ok((component, settings))
}

/// The one component that `plugin build` has left in a project.
fn built(project: &Path) -> Result<PathBuf, Failure> {
    let folder = project.join("dist");
    let found = std::fs::read_dir(&folder).map(|entries| {
        let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
        paths
            .filter(|path| path.extension().is_some_and(|extension| extension == "wasm"))
            .collect::<Vec<_>>()
    });
    match found.as_deref() {
        Ok([component]) => Ok(component.clone()),
        Ok([]) | Err(_) => Err(Failure::usage(format!(
            "no component in {}: backplane plugin build makes one",
            folder.display()
        ))),
        Ok(_) => Err(Failure::usage(format!(
            "more than one component in {}",
            folder.display()
        ))),
    }
}

async fn all(
    args: &TestArgs,
    component: &Path,
    settings: Option<&str>,
) -> Result<(Vec<Check>, Option<Torture>), Trouble> {
    let bytes = std::fs::read(component).map_err(|error| Trouble::Other(error.to_string()))?;
    let name = component.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    let plant = Plant::start(&name, &bytes, settings).await?;
    let mut found = vec![Check::passed("loads", format!("in {} ms", plant.load_time.as_millis()))];
    let mut torture = None;
    if plant.is_node_manager() {
        found.extend(checks::of_nodes(&plant).await?);
        if args.reload_torture {
            torture = Some(torture::run(&plant, args.reloads, &args.ignore).await?);
        }
    }
    found.push(checks::restart(&plant).await?);
    found.push(checks::reload(&plant).await?);
    if let Some(reloads) = args.soak {
        found.push(soak::run(&plant, reloads).await?);
    }
    plant.stop().await;
    Ok((found, torture))
}

fn tell(checks: &[Check], torture: Option<&Torture>) {
    for check in checks {
        match &check.problem {
            None => println!("ok      {:<14} {}", check.name, check.detail),
            Some(problem) => println!("FAILED  {:<14} {}: {problem}", check.name, check.detail),
        }
    }
    let Some(torture) = torture else { return };
    println!(
        "{}  reload torture {} reloads, {} items compared, {} change by themselves{}",
        if torture.differences.is_empty() {
            "ok    "
        } else {
            "FAILED"
        },
        torture.reloads,
        torture.compared,
        torture.restless,
        match torture.pause_p99 {
            Some(pause) => format!(", pause {:.1} ms at p99", pause.as_secs_f64() * 1_000.0),
            None => ", no pause measured: nothing can be written or asked for".to_owned(),
        }
    );
    for difference in &torture.differences {
        println!("        {difference}");
    }
}

fn document(component: &Path, checks: &[Check], torture: Option<&Torture>) -> Value {
    let checks: Vec<Value> = checks
        .iter()
        .map(|check| json!({ "name": check.name, "passed": check.problem.is_none(), "detail": check.detail, "problem": check.problem }))
        .collect();
    let mut document = json!({ "component": component.display().to_string(), "checks": checks });
    if let Some(torture) = torture {
        let milliseconds = |pause: Option<std::time::Duration>| pause.map(|pause| pause.as_secs_f64() * 1_000.0);
        document["streams_equal"] = torture.differences.is_empty().into();
        document["differences"] = torture.differences.clone().into();
        document["reloads"] = torture.reloads.into();
        document["items_compared"] = torture.compared.into();
        document["items_restless"] = torture.restless.into();
        document["pause_p50_ms"] = milliseconds(torture.pause_p50).into();
        document["pause_p99_ms"] = milliseconds(torture.pause_p99).into();
    }
    document
}
