//! Which servers a run is about: the product, a server that runs already, and peers by name.
//!
//! Owns where each of them is looked for, and what builds it.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cli::{Load, Scenario, Security};
use crate::error::{LoadError, setup};
use crate::machine;
use crate::run::Subject;
use crate::server::{Launch, Product};

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
            product: None,
        }));
    }
    Ok(subjects)
}

/// A build of the product, with as many variables as the scenario needs.
pub(crate) fn product(scenario: Scenario, load: &Load, name: &str, binary: &Path) -> Result<Subject, LoadError> {
    let plugin = machine::find(load.plugin.as_deref(), PLUGIN, BUILD_PLUGIN)?;
    let (counters, kept) = match (scenario, load.asks(scenario)) {
        (Scenario::Counters | Scenario::O6counters, true) => (load.items.unwrap_or(1_000), 0),
        (Scenario::Counters, false) => (0, load.items.unwrap_or(1_000)),
        _ => (0, 0),
    };
    // A counter that the host keeps advances as often as it is sampled.
    let advance = load.sampling.unwrap_or(10.0).max(1.0).round();
    let variables = variables(scenario, load);
    let settings = format!(
        "[settings]\nvariables = {variables}\non_demand = {}\ncounters = {counters}\nkept = {kept}\nadvance = {advance}\n",
        load.variables
    );
    let config = match (&load.config, load.queue) {
        (Some(file), _) => {
            let text = std::fs::read_to_string(file);
            Some(text.map_err(|error| setup(format!("{}: {error}", file.display())))?)
        }
        (None, Some(queue)) => Some(configuration(queue, &password_hash(binary)?)),
        (None, None) => None,
    };
    Ok(Subject::Started(Launch {
        name: name.to_owned(),
        command: vec![binary.into()],
        product: Some(Product {
            plugin,
            settings,
            config,
        }),
    }))
}

/// The demonstration's configuration as a file, but for the requests that may wait.
fn configuration(queue: u32, password_hash: &str) -> String {
    format!(
        "[security]\nallow-none = true\nauto-trust = true\n\
         [users]\nanonymous = true\n\
         [[users.user]]\nname = \"user1\"\npassword-hash = \"{password_hash}\"\nroles = [\"Operator\"]\n\
         [limits]\nconnections = 10100\nsessions = 10000\nwaiting-requests-per-connection = 2000\nqueued-requests = {queue}\n\
         [isolation.rate]\nper-second = 10000\nburst = 20000\n"
    )
}

/// What the product makes of the demonstration's password.
fn password_hash(binary: &Path) -> Result<String, LoadError> {
    let mut child = Command::new(binary)
        .args(["user", "hash"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(b"password1")?;
    }
    let output = child.wait_with_output()?;
    let hash = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() && !hash.is_empty() {
        Ok(hash)
    } else {
        Err(setup(format!("{} user hash: {}", binary.display(), output.status)))
    }
}

fn variables(scenario: Scenario, load: &Load) -> u32 {
    match scenario {
        Scenario::Sub | Scenario::Latency => load.variables.max(load.items.unwrap_or(100)),
        Scenario::Changes => load.variables.max(load.items.unwrap_or(1_000)),
        Scenario::Items => load.variables.max(load.items.unwrap_or(10_000)),
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
