//! Real clients drive the built server: asyncua, node-opcua and async-opcua, each in its own process.
//!
//! A client prints one JSON line per case; `expect.toml` lists the cases that a client cannot pass, each with its reason.
//! A case that fails without being listed fails the run, and so does a listed one that passes. The last line counts.

mod client;
mod expect;
mod phases;
mod relay;
mod server;
mod tally;

use std::path::PathBuf;
use std::process::ExitCode;

use client::{Client, Kind};
use tally::Tally;

/// What the command line says.
struct Options {
    server: PathBuf,
    guests: PathBuf,
    clients: Vec<Client>,
    only: Option<String>,
}

fn options() -> Result<Options, String> {
    let mut server = None;
    let mut guests = None;
    let mut only = None;
    let mut clients = Vec::new();
    let mut words = std::env::args_os().skip(1);
    while let Some(word) = words.next() {
        let mut path = || {
            words
                .next()
                .map(PathBuf::from)
                .ok_or_else(|| format!("{} needs a value", word.to_string_lossy()))
        };
        match word.to_str() {
            Some("--server") => server = Some(path()?),
            Some("--guests") => guests = Some(path()?),
            Some("--python") => clients.push(Client::new(Kind::Asyncua, path()?)),
            Some("--node") => clients.push(Client::new(Kind::NodeOpcua, path()?)),
            Some("--async-opcua") => clients.push(Client::new(Kind::AsyncOpcua, path()?)),
            Some("--only") => only = Some(path()?.to_string_lossy().into_owned()),
            _ => return Err(format!("{}: not an option of this program", word.to_string_lossy())),
        }
    }
    let absolute = |path: Option<PathBuf>, flag: &str| {
        let path = path.ok_or_else(|| format!("{flag} is missing"))?;
        path.canonicalize()
            .map_err(|error| format!("{flag} {}: {error}", path.display()))
    };
    Ok(Options {
        server: absolute(server, "--server")?,
        guests: absolute(guests, "--guests")?,
        clients,
        only,
    })
}

fn run(options: &Options) -> Result<Tally, String> {
    let expectations = expect::Expectations::read()?;
    let mut tally = Tally::new(expectations);
    let wanted = |phase: &str| options.only.as_deref().is_none_or(|only| phase.contains(only));
    if wanted("services") {
        phases::services(&options.server, &options.guests, &options.clients, &mut tally)?;
    }
    if wanted("reload") {
        phases::reload(&options.server, &options.guests, &options.clients, &mut tally)?;
    }
    if wanted("misdeeds") {
        phases::misdeeds(&options.server, &options.guests, &options.clients, &mut tally)?;
    }
    if wanted("losses") {
        phases::losses(&options.server, &options.guests, &options.clients, &mut tally)?;
    }
    if wanted("durable") {
        phases::durable(&options.server, &options.guests, &options.clients, &mut tally)?;
    }
    Ok(tally)
}

fn main() -> ExitCode {
    let result = options().and_then(|options| Ok((run(&options)?, options.only.is_none())));
    match result {
        Ok((tally, complete)) => tally.finish(complete),
        Err(error) => {
            eprintln!("conformance: {error}");
            ExitCode::FAILURE
        }
    }
}
