//! The process: what it prints, how it starts, why it does not, and how it ends.

use std::fs;
use std::path::Path;
use std::process::Output;

use backplane_client::{Client, ClientError, Identity, SessionOptions};
use backplane_types::{CreateSubscriptionRequest, PublishRequest, StatusCode};

use crate::support::{Raw, Server, connect, connect_secured, identity, open, read_status, run, well_behaved};

/// The lines on standard error that say why the process gave up.
fn complaints(output: &Output) -> Vec<String> {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    text.lines()
        .filter(|line| line.starts_with("backplane: "))
        .map(str::to_owned)
        .collect()
}

/// Writes a configuration and gives its path.
fn config(folder: &Path, text: &str) -> String {
    let file = folder.join("backplane.toml");
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn ready_is_the_only_line_and_a_signal_ends_it_well() {
    let mut server = Server::demo();
    let client = open(&server).await;
    let subscription = CreateSubscriptionRequest {
        requested_publishing_interval: 60_000.0,
        ..CreateSubscriptionRequest::default()
    };
    client.call(subscription).await.unwrap();
    let mut idle = Raw::opened(&server).await;
    let mut silent = Raw::connect(&server).await;
    let publishing = client.call(PublishRequest::default());
    let ending = async {
        read_status(&client).await.unwrap();
        server.signal("TERM");
    };
    let (published, ()) = tokio::join!(publishing, ending);
    assert!(published.is_err(), "nothing is published by a server that stops");
    assert_eq!(idle.error().await, Some(StatusCode::BAD_SERVER_HALTED));
    assert_eq!(silent.error().await, Some(StatusCode::BAD_SERVER_HALTED));
    assert_eq!(server.wait().code(), Some(0));
    let pid = server.pid();
    assert_eq!(server.out.seen, [format!("READY {} pid={pid}", server.url())]);
}

#[tokio::test]
async fn a_client_that_does_not_read_does_not_hold_the_end_up() {
    let mut server = Server::with("drain-timeout-ms = 300");
    let (mut raw, token) = Raw::with_session(&server).await;
    let request_header = backplane_types::RequestHeader {
        authentication_token: token,
        ..Default::default()
    };
    let request = crate::support::body(&backplane_types::GetEndpointsRequest {
        request_header,
        ..Default::default()
    });
    let bytes: Vec<u8> = (0..100_000)
        .flat_map(|id| raw.chunk(b"MSGF", 10 + id, &request))
        .collect();
    assert!(raw.fill(&bytes).await < bytes.len());
    server.signal("INT");
    assert_eq!(server.wait().code(), Some(0));
}

#[tokio::test]
async fn a_taken_port_is_said_in_one_line() {
    let server = Server::demo();
    let folder = tempfile::tempdir().unwrap();
    let port = server.address.rsplit_once(':').unwrap().1;
    let second = run(
        &[
            "serve",
            "--demo",
            "--port",
            port,
            "--state",
            folder.path().to_str().unwrap(),
        ],
        "",
    );
    assert_eq!(second.status.code(), Some(1));
    let lines = complaints(&second);
    assert!(
        matches!(lines.as_slice(), [line] if line.contains(&server.address)),
        "{lines:?}"
    );
    assert!(second.stdout.is_empty(), "no READY line");
    well_behaved(&server).await;
}

#[test]
fn wrong_command_lines_and_configurations_are_exit_code_64() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.toml");
    let missing = missing.to_str().unwrap();
    for arguments in [
        &["serve", "--config", missing][..],
        &["check-config", "--config", missing],
    ] {
        let output = run(arguments, "");
        assert_eq!(output.status.code(), Some(64), "{arguments:?}");
        let lines = complaints(&output);
        assert!(
            matches!(lines.as_slice(), [line] if line.contains(missing)),
            "{lines:?}"
        );
        assert!(output.stdout.is_empty());
    }
    let unknown = config(
        folder.path(),
        "[server]\nlisen = \"127.0.0.1:0\"\n[users]\nanonymous = true\n[limits]\nsession = 3\n[tea]\n",
    );
    for command in ["serve", "check-config"] {
        let output = run(&[command, "--config", &unknown], "");
        assert_eq!(output.status.code(), Some(64), "{command}");
        let text = String::from_utf8(output.stderr).unwrap();
        for key in [
            "server.lisen: unknown key",
            "limits.session: unknown key",
            "tea: unknown key",
        ] {
            assert!(text.contains(key), "{key} is missing in {text}");
        }
    }
    let broken = config(folder.path(), "[server\n");
    assert_eq!(run(&["check-config", "--config", &broken], "").status.code(), Some(64));
    for arguments in [
        &["serve"][..],
        &["serve", "--demo", "--port", "65536"],
        &["serve", "--demo", "--log", "==="],
        &["dance"],
        &[],
    ] {
        assert_eq!(run(arguments, "").status.code(), Some(64), "{arguments:?}");
    }
    for arguments in [&["--help"][..], &["--version"]] {
        let output = run(arguments, "");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_right_configuration_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = config(
        folder.path(),
        "[users]\nanonymous = true\n[security]\nallow-none = true\n[limits]\nsessions = 7\n",
    );
    let output = run(&["check-config", "--config", &file], "");
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["is valid", "security.allow-none = true", "sessions: 7", &file] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

#[tokio::test]
async fn broken_plugins_do_not_keep_the_server_from_starting() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    fs::create_dir(&plugins).unwrap();
    fs::write(plugins.join("broken.wasm"), b"\0asm nothing that could be a component").unwrap();
    fs::write(plugins.join("empty.wasm"), b"").unwrap();
    fs::write(plugins.join("readme.txt"), b"no plugin at all").unwrap();
    fs::create_dir(plugins.join("folder.wasm")).unwrap();
    let state = folder.path().join("state");
    let (state, plugins) = (state.to_str().unwrap().to_owned(), plugins.to_str().unwrap().to_owned());
    let mut server = Server::start(
        folder,
        &["--demo", "--port", "0", "--state", &state, "--plugins", &plugins],
    );
    well_behaved(&server).await;
    assert!(server.is_running());
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));
}

async fn log_in(server: &Server, user: &str, password: &str) -> Result<(), ClientError> {
    let client = connect(server).await?;
    client.create_session(SessionOptions::default()).await?;
    client
        .activate_session(&Identity::UserName {
            user: user.to_owned(),
            password: password.to_owned(),
        })
        .await
}

#[tokio::test]
async fn users_are_reread_on_sighup() {
    let hash = run(&["user", "hash"], "tea for two\n");
    assert_eq!(hash.status.code(), Some(0));
    let hash = String::from_utf8(hash.stdout).unwrap();
    assert!(hash.starts_with("$argon2id$"), "{hash}");
    let text = "[server]\nlisten = \"127.0.0.1:0\"\n[security]\nallow-none = true\n[users]\nanonymous = true\n";
    let mut server = Server::configured(text);
    let stays = open(&server).await;
    log_in(&server, "alice", "tea for two").await.unwrap_err();
    config(
        server.folder(),
        &format!(
            "{text}[[users.user]]\nname = \"alice\"\npassword-hash = \"{}\"\n",
            hash.trim()
        ),
    );
    server.signal("HUP");
    server.log.wait_for("reread");
    log_in(&server, "alice", "tea for two").await.unwrap();
    let wrong = log_in(&server, "alice", "tea for one").await.unwrap_err();
    assert_eq!(wrong.status(), Some(StatusCode::BAD_IDENTITY_TOKEN_REJECTED));
    // What cannot be read changes nothing.
    config(server.folder(), "[server\n");
    server.signal("HUP");
    server.log.wait_for("configuration not reread");
    log_in(&server, "alice", "tea for two").await.unwrap();
    read_status(&stays).await.unwrap();
}

/// A client's own key and certificate.
#[tokio::test]
async fn an_unknown_certificate_is_kept_for_the_operator_to_trust() {
    let server = Server::configured("[server]\nlisten = \"127.0.0.1:0\"\n[users]\nanonymous = true\n");
    let endpoints = Client::discover(&server.url()).await.unwrap();
    let certificate = endpoints[0].server_certificate.clone();
    let own = identity();
    let refused = connect_secured(&server, &own, &certificate).await.unwrap_err();
    assert_eq!(
        refused.status(),
        Some(StatusCode::BAD_SECURITY_CHECKS_FAILED),
        "{refused}"
    );
    let state = server.folder().join("state");
    let rejected = fs::read_dir(state.join("pki/rejected")).unwrap().count();
    assert_eq!(rejected, 1, "the certificate lies in the folder of rejected ones");
    let thumbprint: String = own.thumbprint().iter().map(|byte| format!("{byte:02x}")).collect();
    let state = state.to_str().unwrap();
    let listed = run(&["cert", "list", "--state", state], "");
    assert!(String::from_utf8(listed.stdout).unwrap().contains(&thumbprint));
    let unknown = run(&["cert", "trust", "0123456789", "--state", state], "");
    assert_eq!((unknown.status.code(), complaints(&unknown).len()), (Some(1), 1));
    let trusted = run(&["cert", "trust", &thumbprint, "--state", state], "");
    assert_eq!(trusted.status.code(), Some(0), "{:?}", complaints(&trusted));
    let client = connect_secured(&server, &own, &certificate).await.unwrap();
    let options = SessionOptions {
        application_uri: "urn:backplane:test:client".into(),
        ..SessionOptions::default()
    };
    client.open_session(options, &Identity::Anonymous).await.unwrap();
    read_status(&client).await.unwrap();
    client.close_session(true).await.unwrap();
}
