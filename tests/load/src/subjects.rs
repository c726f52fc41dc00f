//! Which servers a run is about: the product, a server that runs already, and peers by name.
//!
//! Owns where each of them is looked for, and what builds it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::cli::{Load, Scenario, Security};
use crate::error::{LoadError, setup};
use crate::machine;
use crate::run::Subject;
use crate::server::Launch;

/// What builds the product.
const BUILD_SERVER: &str = "cargo build --release -p backplane";
/// What builds the plugin.
const BUILD_PLUGIN: &str = "cargo build --profile guest --target wasm32-wasip2 -p backplane-load-plugin";
/// Where the plugin is built.
const PLUGIN: &str = "wasm32-wasip2/guest/backplane_load_plugin.wasm";
/// What builds the compiled peers.
const BUILD_PEERS: &str =
    "cargo build --release --locked --manifest-path tests/peers/Cargo.toml --target-dir target/peers";
/// What builds the responders.
const BUILD_RESPONDERS: &str = "cargo build --release -p backplane-responders";
/// Bytes of `echo`'s answer to a Read of no values, and of each Double in it.
const ECHO: (u32, u32) = (60, 26);

/// The product first, then the peers.
pub(crate) fn all(scenario: Scenario, load: &Load) -> Result<Vec<Subject>, LoadError> {
    let mut subjects = Vec::new();
    if let Some(url) = &load.url {
        subjects.push(Subject::Running {
            url: url.clone(),
            pid: load.pid,
        });
    } else if !load.peers_only {
        let binary = machine::find(load.server.as_deref(), "release/backplane", BUILD_SERVER)?;
        subjects.push(product(scenario, load, "backplane", &binary)?);
    }
    for name in &load.peers {
        subjects.push(Subject::Started(Launch {
            name: name.clone(),
            command: command(scenario, load, name)?,
            plugin: None,
        }));
    }
    Ok(subjects)
}

/// A build of the product, with as many variables as the scenario needs.
pub(crate) fn product(scenario: Scenario, load: &Load, name: &str, binary: &Path) -> Result<Subject, LoadError> {
    let plugin = machine::find(load.plugin.as_deref(), PLUGIN, BUILD_PLUGIN)?;
    let counters = match scenario {
        Scenario::Counters => load.items.unwrap_or(1_000),
        _ => 0,
    };
    let variables = variables(scenario, load);
    let settings = format!(
        "[settings]\nvariables = {variables}\non_demand = {}\ncounters = {counters}\n",
        load.variables
    );
    Ok(Subject::Started(Launch::product(name, binary, &plugin, settings)))
}

fn variables(scenario: Scenario, load: &Load) -> u32 {
    match scenario {
        Scenario::Sub => load.variables.max(load.items.unwrap_or(100)),
        _ => load.variables,
    }
}

fn command(scenario: Scenario, load: &Load, name: &str) -> Result<Vec<OsString>, LoadError> {
    let nodes = variables(scenario, load).to_string();
    let prefix = format!("{name}=");
    let given = load
        .peer_command
        .iter()
        .find_map(|command| command.strip_prefix(&prefix));
    if let Some(command) = given {
        let words = command.split_ascii_whitespace();
        return Ok(words.map(|word| word.replace("{nodes}", &nodes).into()).collect());
    }
    let mut words = usual(scenario, load, name)?;
    words.extend(["--port", "0"].map(OsString::from));
    if name != "echo" {
        words.extend(["--nodes", &nodes].map(OsString::from));
    }
    if load.security != Security::None {
        words.extend(["--policy", "encrypt"].map(OsString::from));
    }
    Ok(words)
}

/// How the peers of `tests/peers` and the responders of `tests/load/responders` are started.
fn usual(scenario: Scenario, load: &Load, name: &str) -> Result<Vec<OsString>, LoadError> {
    let script = |path: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../peers").join(path);
    let words = |parts: &[&Path]| parts.iter().map(|part| part.as_os_str().to_owned()).collect();
    let readme = "see tests/peers/README.md";
    Ok(match name {
        "open62541" | "async-opcua" => {
            let built = format!("peers/release/peer-{name}");
            words(&[&machine::find(None, &built, BUILD_PEERS)?])
        }
        "asyncua" => {
            let python = machine::find(None, "clients/python/bin/python", readme)?;
            words(&[&python, &script("asyncua/server.py")])
        }
        "node-opcua" => {
            let modules = machine::find(None, "clients/node/node_modules", readme)?;
            let path = PathBuf::from(format!("NODE_PATH={}", modules.display()));
            words(&[
                Path::new("env"),
                &path,
                Path::new("node"),
                &script("node-opcua/server.js"),
            ])
        }
        "parsing" => {
            let program = machine::find(None, "release/parsing", BUILD_RESPONDERS)?;
            words(&[&program, Path::new("--threads"), Path::new("1")])
        }
        "echo" => {
            let program = machine::find(None, "release/echo", BUILD_RESPONDERS)?;
            let (_, _, operations) = load.shape(scenario);
            let bytes = operations.saturating_mul(ECHO.1).saturating_add(ECHO.0).to_string();
            words(&[&program, Path::new("--bytes"), Path::new(&bytes)])
        }
        _ => {
            return Err(setup(format!(
                "{name} is none of open62541, async-opcua, asyncua, node-opcua, parsing and echo; how is it started? --peer-command \
                 {name}=COMMAND"
            )));
        }
    })
}
