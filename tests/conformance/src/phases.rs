//! What is tried, in order: every service, a plugin replaced under subscribed clients, misbehaving plugins beside a good one,
//! connections that are lost with what was on its way, and a server that stops and starts again.

use std::path::{Path, PathBuf};

use crate::client::Client;
use crate::relay::Relay;
use crate::server::Server;
use crate::tally::Tally;

fn guest(guests: &Path, name: &str) -> PathBuf {
    guests.join(format!("{name}.wasm"))
}

/// The name that the harness itself reports under.
const HARNESS: &str = "server";

/// Each client by itself against a fresh server.
pub(crate) fn services(binary: &Path, guests: &Path, clients: &[Client], tally: &mut Tally) -> Result<(), String> {
    for client in clients {
        let server = Server::start(binary, &[(guest(guests, "simulator"), "simulator")])?;
        client
            .start("services", server.url(), &server.scratch(client.name())?)?
            .finish(tally)?;
        let stopped = server.stop();
        tally.record(
            HARNESS,
            &format!("stops after {}", client.name()),
            stopped.err().as_deref(),
        );
    }
    Ok(())
}

/// All clients at once are subscribed while the simulator is replaced by a changed build.
pub(crate) fn reload(binary: &Path, guests: &Path, clients: &[Client], tally: &mut Tally) -> Result<(), String> {
    let server = Server::start(binary, &[(guest(guests, "simulator"), "simulator")])?;
    let mut running = Vec::new();
    for client in clients {
        running.push(client.start("reload", server.url(), &server.scratch(client.name())?)?);
    }
    for script in &mut running {
        script.wait_for("subscribed", tally)?;
    }
    server.install(&guest(guests, "simulator-b"), "simulator")?;
    for script in &mut running {
        script.tell("replaced")?;
    }
    for script in running {
        script.finish(tally)?;
    }
    let stopped = server.stop();
    tally.record(HARNESS, "stops after reload", stopped.err().as_deref());
    Ok(())
}

/// A client measures its reads of the simulator alone, then beside plugins that spin, panic and eat memory. The script
/// fails when a request fails or its p99 more than doubles.
pub(crate) fn misdeeds(binary: &Path, guests: &Path, clients: &[Client], tally: &mut Tally) -> Result<(), String> {
    for client in clients {
        let mut server = Server::start(binary, &[(guest(guests, "simulator"), "simulator")])?;
        let mut script = client.start("misdeeds", server.url(), &server.scratch(client.name())?)?;
        script.wait_for("measured", tally)?;
        for name in ["spins", "panics-on-write", "memory-eater"] {
            server.install(&guest(guests, name), name)?;
        }
        script.tell("installed")?;
        script.finish(tally)?;
        let problem = (!server.is_running()).then(|| server.log());
        tally.record(
            HARNESS,
            &format!("survives misdeeds beside {}", client.name()),
            problem.as_deref(),
        );
        let stopped = server.stop();
        tally.record(
            HARNESS,
            &format!("stops after misdeeds beside {}", client.name()),
            stopped.err().as_deref(),
        );
    }
    Ok(())
}

/// Each client goes through a relay. When it says so, its connections are reset ("cut"), or what the server says next is dropped and
/// the connection then reset ("drop"); the script fails when anything of its subscriptions is missing afterwards.
pub(crate) fn losses(binary: &Path, guests: &Path, clients: &[Client], tally: &mut Tally) -> Result<(), String> {
    for client in clients {
        let server = Server::start(binary, &[(guest(guests, "simulator"), "simulator")])?;
        let relay = Relay::start(server.url())?;
        let mut script = client.start("losses", relay.url(), &server.scratch(client.name())?)?;
        while let Some(event) = script.next_event(tally)? {
            match event.as_str() {
                "drop" => relay.drop_next(),
                "cut" => relay.cut(),
                other => return Err(format!("{} losses: an unknown event {other}", client.name())),
            }
            script.tell(&event)?;
        }
        script.finish(tally)?;
        let stopped = server.stop();
        tally.record(
            HARNESS,
            &format!("stops after losses of {}", client.name()),
            stopped.err().as_deref(),
        );
    }
    Ok(())
}

/// Each client leaves a durable subscription behind and says "left"; the server is stopped and started again on what it has kept,
/// and the client told where it is. The script fails when a value is missing or comes twice.
pub(crate) fn durable(binary: &Path, guests: &Path, clients: &[Client], tally: &mut Tally) -> Result<(), String> {
    for client in clients {
        let mut server = Server::start(binary, &[(guest(guests, "simulator"), "simulator")])?;
        let mut script = client.start("durable", server.url(), &server.scratch(client.name())?)?;
        while let Some(event) = script.next_event(tally)? {
            if event != "left" {
                return Err(format!("{} durable: an unknown event {event}", client.name()));
            }
            server.restart()?;
            script.tell(server.url())?;
        }
        script.finish(tally)?;
        let stopped = server.stop();
        tally.record(
            HARNESS,
            &format!("stops after durable of {}", client.name()),
            stopped.err().as_deref(),
        );
    }
    Ok(())
}
