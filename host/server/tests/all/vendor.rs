//! From nothing to a plugin that serves: the commands of a vendor, as the documentation has them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use backplane_types::{DataValue, NodeId, StatusCode, Variant, WriteRequest, WriteResponse, WriteValue};

use crate::support::{GUESTS, Peer, Server, binary, guest, run};

/// The target folder that this test was built in: what the project needs is there already.
pub(crate) fn target() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(3).unwrap().to_owned()
}

/// Whether components can be built here, as those were that other tests load.
pub(crate) fn can_build() -> bool {
    let can = std::env::var_os(GUESTS).is_some();
    if !can {
        eprintln!(
            "SKIPPED: projects are not built: {GUESTS} names no folder of components, so there may be no target for them"
        );
    }
    can
}

fn in_project(project: &Path, program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Output {
    let output = Command::new(program)
        .current_dir(project)
        .env("CARGO_TARGET_DIR", target())
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{arguments:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// `backplane plugin new`, then `build`; the bytes of the component.
fn built(folder: &Path, name: &str, kind: &str) -> Vec<u8> {
    let project = folder.join(name);
    let made = run(
        &[
            "plugin",
            "new",
            name,
            "--kind",
            kind,
            "--dir",
            project.to_str().unwrap(),
            "--json",
        ],
        "",
    );
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let output = in_project(&project, binary(), &["plugin", "build", "--json"]);
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&said["loads"], said["problems"].as_array().unwrap().len()),
        (&true.into(), 0),
        "{said}"
    );
    fs::read(project.join("dist").join(format!("{name}.wasm"))).unwrap()
}

#[tokio::test]
async fn a_new_node_manager_builds_and_serves() {
    if !can_build() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let component = built(folder.path(), "tank", "node-manager");
    let server = Server::with_plugins(&[("tank.wasm", component)]);
    let mut peer = Peer::new(&server).await;
    let namespace = peer.namespace("urn:example:tank").await.expect("it is there");
    let set_point = NodeId::string(namespace, "SetPoint");
    assert_eq!(peer.read(set_point.clone()).await.value, Variant::Double(50.0));
    for (value, status) in [(80.0, StatusCode::GOOD), (800.0, StatusCode::BAD_OUT_OF_RANGE)] {
        let write = WriteValue {
            node_id: set_point.clone(),
            attribute_id: 13,
            value: DataValue {
                value: Variant::Double(value),
                ..DataValue::default()
            },
            ..WriteValue::default()
        };
        let request = WriteRequest {
            nodes_to_write: vec![write],
            ..WriteRequest::default()
        };
        let answer: WriteResponse = peer.ask(request).await.decode();
        assert_eq!(answer.results, [status]);
    }
    assert_eq!(peer.read(set_point).await.value, Variant::Double(80.0));
}

/// Runs a command that has to end well; what it says with `--json`.
fn done(arguments: &[&str]) -> serde_json::Value {
    let output = run(&[arguments, &["--json"]].concat(), "");
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What a command that is refused says on standard error.
fn refused(arguments: &[&str]) -> String {
    let output = run(arguments, "");
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

const MANIFEST: &str = r#"
id = "com.example.plant"
version = "1.2.0"
kind = "node-manager"
namespaces = ["urn:backplane:test:asks-who"]
settings-schema = "settings.json"
[asks.network]
connect = ["plc.example:502"]
"#;
const SCHEMA: &str = r#"{ "type": "object", "properties": { "rate": { "type": "number", "minimum": 1 } }, "additionalProperties": false }"#;

#[test]
fn a_component_is_packed_signed_and_vouched_for() {
    let Some(component) = guest("asks-who") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let file = path("plant.wasm");
    fs::write(&file, component).unwrap();
    fs::write(path("plugin.toml"), MANIFEST).unwrap();
    fs::write(path("settings.json"), SCHEMA).unwrap();

    let key = path("acme.key");
    assert!(
        refused(&["plugin", "sign", &file, "--key", &key]).contains("acme.key"),
        "there is no key yet"
    );
    done(&["plugin", "key", &key, "--name", "Acme"]);
    assert!(
        refused(&["plugin", "key", &key, "--name", "Acme"]).contains("acme.key"),
        "not over a key that is there"
    );
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&key).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert!(refused(&["plugin", "sign", &file, "--key", &key]).contains("plugin pack"));

    assert_eq!(done(&["plugin", "pack", &file])["id"], "com.example.plant");
    let unsigned = done(&["plugin", "verify", &file]);
    assert_eq!(
        (&unsigned["verdict"], &unsigned["version"]),
        (&"unsigned".into(), &"1.2.0".into())
    );
    assert!(refused(&["plugin", "verify", &file, "--require-signed"]).contains("require-signed"));

    done(&["plugin", "sign", &file, "--key", &key]);
    let public = path("acme.pub");
    let trusted = done(&["plugin", "verify", &file, "--trust", &public, "--require-signed"]);
    assert_eq!(
        (&trusted["trusted"], &trusted["verdict"]),
        (&true.into(), &"signed by Acme".into())
    );
    assert!(refused(&["plugin", "verify", &file, "--require-signed"]).contains("trust folder"));
    let digest = trusted["digest"].as_str().unwrap().trim_start_matches("sha256:");
    let entry = format!("[[revoked]]\ndigest = \"sha256:{digest}\"\nreason = \"a hole in it\"\n");
    fs::write(path("revoked"), entry).unwrap();
    let said = refused(&[
        "plugin",
        "verify",
        &file,
        "--trust",
        &public,
        "--revoked",
        &path("revoked"),
    ]);
    assert!(said.contains("revoked") && said.contains("a hole in it"), "{said}");

    let mut bytes = fs::read(&file).unwrap();
    let place = bytes.len() / 2;
    bytes[place] ^= 1;
    fs::write(path("changed.wasm"), bytes).unwrap();
    let said = refused(&["plugin", "verify", &path("changed.wasm"), "--trust", &public]);
    assert!(said.contains("signature") || said.contains("section"), "{said}");
    // It runs as it did.
    let tested = done(&["plugin", "test", &file]);
    assert!(
        tested["checks"]
            .as_array()
            .unwrap()
            .iter()
            .all(|check| check["passed"] == true),
        "{tested:#}"
    );
}

#[test]
fn check_says_in_words_what_a_component_is_and_what_is_wrong() {
    let Some(component) = guest("asks-who") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let file = path("plant.wasm");
    fs::write(&file, component).unwrap();
    fs::write(path("plugin.toml"), MANIFEST).unwrap();
    fs::write(path("settings.json"), SCHEMA).unwrap();
    let bare = done(&["plugin", "check", &file]);
    assert!(bare["report"].to_string().contains("asks for nothing"), "{bare:#}");
    assert_eq!(bare["minimum_host"], "0.1.0");
    done(&["plugin", "pack", &file]);
    let said = done(&["plugin", "check", &file]);
    let report = said["report"].to_string();
    assert!(
        report.contains("plc.example:502") && report.contains("com.example.plant 1.2.0"),
        "{said:#}"
    );
    fs::write(path("good.toml"), "[settings]\nrate = 5").unwrap();
    done(&["plugin", "check", &file, "--settings", &path("good.toml")]);
    fs::write(path("bad.toml"), "[settings]\nrate = 0\nrat = 1").unwrap();
    let output = run(&["plugin", "check", &file, "--settings", &path("bad.toml")], "");
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said.contains("bad.toml") && said.contains("rate") && said.contains("rat"),
        "{said}"
    );
    fs::write(path("plugin.toml"), MANIFEST.replace("node-manager", "classifier")).unwrap();
    done(&["plugin", "pack", &file]);
    let output = run(&["plugin", "check", &file], "");
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("kind = \"classifier\"")
    );
    fs::write(path("plugin.toml"), "id = \"Plant\"\ncolour = 1").unwrap();
    let said = refused(&["plugin", "pack", &file]);
    assert!(
        said.contains("colour") && said.contains("version") && said.contains("Plant"),
        "everything at once: {said}"
    );
}

/// What `plugin test --reload-torture` says of a component of this repository.
fn tortured(name: &str, more: &[&str]) -> Option<serde_json::Value> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(format!("{name}.wasm"));
    fs::write(&file, guest(name)?).unwrap();
    let mut arguments = vec!["plugin", "test", file.to_str().unwrap(), "--json"];
    arguments.extend(["--reload-torture", "--reloads", RELOADS]);
    arguments.extend(more);
    let output = run(&arguments, "");
    let said = serde_json::from_slice(&output.stdout);
    let said: serde_json::Value = said.unwrap_or_else(|error| {
        panic!("{name}: {error}: {}", String::from_utf8_lossy(&output.stderr));
    });
    assert!(output.status.success(), "{said:#}");
    Some(said)
}

const RELOADS: &str = "24";

#[test]
fn clients_cannot_tell_that_a_plugin_is_reloaded_at_every_boundary_of_their_calls() {
    // The boiler and the signals go with the time.
    let by_time: &[&str] = &["--ignore", "Boiler", "--ignore", "Signals"];
    for (name, more, at_least) in [("holds-state", &[][..], 10_003), ("simulator", by_time, 300)] {
        let Some(said) = tortured(name, more) else { return };
        assert_eq!(
            (&said["streams_equal"], &said["reloads"]),
            (&true.into(), &24.into()),
            "{said:#}"
        );
        assert!(said["items_compared"].as_u64().unwrap() >= at_least, "{said:#}");
        println!(
            "{name}: {} items, pause {} ms at p50, {} ms at p99",
            said["items_compared"], said["pause_p50_ms"], said["pause_p99_ms"]
        );
    }
}

/// A component whose clients do notice: the command has to say so.
#[test]
fn a_plugin_that_forgets_fails_its_test() {
    let folder = tempfile::tempdir().unwrap();
    let Some(component) = guest("panics-on-write") else {
        return;
    };
    let file = folder.path().join("panics-on-write.wasm");
    fs::write(&file, component).unwrap();
    let output = run(&["plugin", "test", file.to_str().unwrap(), "--json"], "");
    assert_eq!(output.status.code(), Some(1));
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let writes = said["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["name"] == "writes");
    assert_eq!(writes.unwrap()["passed"], false, "{said:#}");
}

#[test]
fn a_new_classifier_builds() {
    if !can_build() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    built(folder.path(), "by-line", "classifier");
}

/// Its tests run natively: what a vendor does before there is a component.
#[test]
fn the_tests_of_a_new_plugin_are_there() {
    for kind in ["node-manager", "classifier"] {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("made");
        let made = run(
            &[
                "plugin",
                "new",
                "made",
                "--kind",
                kind,
                "--dir",
                project.to_str().unwrap(),
            ],
            "",
        );
        assert!(made.status.success());
        let tests = fs::read_to_string(project.join("tests/all.rs")).unwrap();
        assert!(tests.contains("#[test]") && tests.contains("use made::"), "{tests}");
        assert!(project.join("sdk/rust/src/lib.rs").exists() && project.join("wit/worlds.wit").exists());
        // A second time it would write over what is there.
        let again = run(
            &[
                "plugin",
                "new",
                "made",
                "--kind",
                kind,
                "--dir",
                project.to_str().unwrap(),
            ],
            "",
        );
        assert_eq!(again.status.code(), Some(64));
    }
}
