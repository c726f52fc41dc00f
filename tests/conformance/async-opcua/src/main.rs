//! async-opcua against a running server: `async-opcua-client services|reload|misdeeds|losses|durable URL SCRATCH`.
//!
//! Prints one JSON line per case; see ../../src/client.rs for the protocol.

mod cases;
mod connection;
mod live;
mod losses;
mod subscriptions;

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use connection::{Security, Setup};
use tokio::io::{AsyncBufReadExt, BufReader};

/// The result of a case: a sentence on failure.
pub type Case<T = ()> = Result<T, String>;

/// Prints one line of the protocol.
pub fn say(key: &str, value: &str) {
    println!("{}", serde_json::json!({ key: value }));
}

/// Says an event, and waits for the word that the harness answers when it has done what that asks for.
pub async fn ask_harness(event: &str) -> Case<String> {
    say("event", event);
    let mut line = String::new();
    // Unbuffered, as far as lines go: nothing is sent before it is asked for.
    let read = BufReader::new(tokio::io::stdin()).read_line(&mut line).await;
    read.map_err(|error| error.to_string())?;
    Ok(line.trim().to_owned())
}

/// Runs one case and reports it.
pub async fn run(name: &str, case: impl Future<Output = Case>) {
    let result = match tokio::time::timeout(Duration::from_secs(90), case).await {
        Ok(result) => result,
        Err(_) => Err("did not end within 90 s".to_owned()),
    };
    match result {
        Ok(()) => say("case", name),
        Err(problem) => println!("{}", serde_json::json!({ "case": name, "problem": problem })),
    }
}

/// An error when the condition does not hold.
pub fn check(condition: bool, text: impl Into<String>) -> Case {
    if condition { Ok(()) } else { Err(text.into()) }
}

async fn services(setup: &Setup) {
    run("discovery", cases::discovery(setup)).await;
    for security in [Security::NONE, Security::all()[2]] {
        let name = security.name();
        run(&format!("server object {name}"), cases::server_object(setup, security)).await;
        run(&format!("browse {name}"), cases::browse(setup, security)).await;
        run(&format!("translate {name}"), cases::translate(setup, security)).await;
        run(&format!("every type {name}"), cases::every_type(setup, security)).await;
        run(&format!("wrong writes {name}"), cases::wrong_writes(setup, security)).await;
        run(&format!("index ranges {name}"), cases::index_ranges(setup, security)).await;
        run(
            &format!("aggregates {name}"),
            subscriptions::aggregates(setup, security),
        )
        .await;
        run(&format!("events {name}"), subscriptions::events(setup, security)).await;
        run(
            &format!("triggering {name}"),
            subscriptions::triggering(setup, security),
        )
        .await;
        run(
            &format!("methods and republish {name}"),
            subscriptions::methods_and_republish(setup, security),
        )
        .await;
        run(&format!("transfer {name}"), subscriptions::transfer(setup, security)).await;
    }
    for security in Security::all() {
        for user in [false, true] {
            let kind = if user { "user" } else { "anonymous" };
            run(
                &format!("session {} {kind}", security.name()),
                live::short_session(setup, security, user),
            )
            .await;
        }
    }
    run("wrong password", cases::wrong_password(setup)).await;
    let renewals = Security::all().map(|security| {
        let setup = setup.clone();
        tokio::spawn(async move { run(&format!("renewal {}", security.name()), live::renewal(&setup, security)).await })
    });
    for renewal in renewals {
        if let Err(error) = renewal.await {
            eprintln!("{error}");
        }
    }
}

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [script, url, scratch] = words.as_slice() else {
        eprintln!("usage: async-opcua-client services|reload|misdeeds|losses|durable URL SCRATCH");
        std::process::exit(2);
    };
    let setup = Setup {
        url: url.clone(),
        scratch: PathBuf::from(scratch),
        retries: 0,
    };
    match script.as_str() {
        "services" => services(&setup).await,
        "reload" => run("no reconnect, no error, new values", live::reload(&setup)).await,
        "misdeeds" => run("p99 within twice", live::misdeeds(&setup)).await,
        "losses" => losses::losses(&setup).await,
        "durable" => losses::durable(&setup).await,
        other => {
            eprintln!("unknown script {other}");
            std::process::exit(2);
        }
    }
}
