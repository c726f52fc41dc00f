//! What a component reaches, and which components are taken at all.

use std::path::Path;

use backplane_manifest::{Manifest, Package, PublisherSecret, Zeroizing, pack};
use backplane_plugin::{LoadError, PluginOptions, SecurityOptions};

use crate::guests::guest;
use crate::support::{Bench, quick};

const NAME: &str = "reaches-out.wasm";

fn options(folder: &Path) -> PluginOptions {
    let folder = |name: &str| Some(folder.join(name));
    PluginOptions {
        security: SecurityOptions {
            trust: folder("trust"),
            secrets: folder("secrets"),
            data: folder("data"),
            consents: folder("consents"),
            ..SecurityOptions::default()
        },
        ..quick()
    }
}

fn packed(version: &str, asks: &str) -> Vec<u8> {
    let manifest = format!("id = \"test.reaches-out\"\nversion = \"{version}\"\nkind = \"node-manager\"\n{asks}");
    pack(&guest("reaches-out"), &Manifest::parse(&manifest).unwrap()).unwrap()
}

/// Why it was refused before it ran; panics when it ran.
async fn refused(bench: &Bench, bytes: &[u8]) -> String {
    match bench.host.load(&bench.put(NAME, bytes)).await {
        Err(LoadError::Rejected { problems, .. }) => problems.join("; "),
        other => panic!("{other:?}"),
    }
}

/// What it says came of its tries.
async fn tries(bench: &Bench, bytes: &[u8]) -> String {
    match bench.host.load(&bench.put(NAME, bytes)).await {
        Err(LoadError::Start { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

fn has(tries: &str, what: &str) -> bool {
    tries.split_whitespace().any(|word| word == what)
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_manifest_or_a_grant_nothing_is_reached() {
    let folder = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let asks =
        "[asks.network]\nconnect = [\"127.0.0.0/8\", \"localhost\"]\n[asks.folders]\nown-data = { quota = \"1MiB\" }";
    for bytes in [guest("reaches-out"), packed("1.0.0", asks)] {
        let bench = Bench::new(options(folder.path()));
        let settings = format!("[settings]\naddress = \"{}\"", listener.local_addr().unwrap());
        bench.put("reaches-out.toml", settings.as_bytes());
        let came = tries(&bench, &bytes).await;
        let reached = came.split_whitespace().any(|word| word.ends_with("=ok"));
        assert!(!reached, "{came}");
        for what in [
            "connect=PermissionDenied",
            "variable=none",
            "secret=none",
            "early=true",
            "alive=true",
        ] {
            assert!(has(&came, what), "{what}: {came}");
        }
    }
    assert!(!folder.path().join("data").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_and_granted_is_reached_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for name in ["data/reaches-out", "secrets", "in"] {
        std::fs::create_dir_all(at.join(name)).unwrap();
    }
    std::os::unix::fs::symlink("/etc/passwd", at.join("data/reaches-out/link")).unwrap();
    std::fs::write(at.join("in/in"), "x").unwrap();
    std::fs::write(at.join("secrets/reaches-out.toml"), "key = \"sesame\"\nother = \"no\"").unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let asks = format!(
        "[asks]\nenvironment = [\"PATH\"]\nsecrets = [\"key\"]\n[asks.network]\nconnect = [\"127.0.0.1:{}\"]\nnames = [\"localhost\"]\n[asks.clock]\nwall = true\n[asks.folders]\nown-data = {{ quota = \"100KiB\" }}\nimport = {{ quota = \"1MiB\" }}",
        address.port()
    );
    let grants = asks.replace("asks", "grants").replace(
        "import = { quota = \"1MiB\" }",
        &format!("import = {{ quota = \"1MiB\", path = {:?} }}", at.join("in")),
    );
    let bench = Bench::new(options(at));
    bench.put(
        "reaches-out.toml",
        format!("[settings]\naddress = \"{address}\"\n{grants}").as_bytes(),
    );
    let secrets = at.join("secrets/reaches-out.toml");
    let open = refused(&bench, &packed("1.0.0", &asks)).await;
    assert!(
        open.contains("others may read secrets") && !open.contains("sesame"),
        "{open}"
    );
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&secrets, mode).unwrap();
    let came = tries(&bench, &packed("1.0.0", &asks)).await;
    for what in [
        "own=ok",
        "import=ok",
        "connect=ok",
        "lookup=ok",
        "variable=some",
        "secret=sesame",
        "early=false",
    ] {
        assert!(has(&came, what), "{what}: {came}");
    }
    for what in ["passwd=ok", "escape=ok", "link=ok", "much=ok", "import-write=ok"] {
        assert!(!has(&came, what), "{what}: {came}");
    }
    assert!(std::fs::metadata(at.join("data/reaches-out/own")).unwrap().len() == 10_000 && !at.join("in/out").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_a_trusted_publisher_signed_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut options = options(at);
    options.security.require_signed = true;
    options.security.revocations = Some(at.join("revoked.toml"));
    std::fs::write(at.join("revoked.toml"), "").unwrap();
    let bench = Bench::new(options);
    let acme = PublisherSecret::from_seed(&Zeroizing::new([1; 32]), "ACME").unwrap();
    let signed = acme.sign(&packed("1.0.0", "")).unwrap();
    assert!(
        refused(&bench, &packed("1.0.0", ""))
            .await
            .contains("require-signed = true")
    );
    assert!(refused(&bench, &signed).await.contains("trust folder"));
    std::fs::create_dir(at.join("trust")).unwrap();
    std::fs::write(at.join("trust/acme.pub"), acme.publisher().to_text()).unwrap();
    tries(&bench, &signed).await;
    let mut tampered = signed.clone();
    tampered[5_000] ^= 1;
    assert!(refused(&bench, &tampered).await.contains("changed after signing"));
    let digest = Package::read(&signed).unwrap().digest;
    for entry in [
        format!("digest = \"{digest}\""),
        "id = \"test.reaches-out\"\nversions = \"<2.0.0\"".to_owned(),
    ] {
        std::fs::write(at.join("revoked.toml"), format!("[[revoked]]\n{entry}")).unwrap();
        assert!(refused(&bench, &signed).await.contains("revoked"));
    }
    std::fs::remove_file(at.join("revoked.toml")).unwrap();
    assert!(
        refused(&bench, &signed).await.contains("revoked.toml"),
        "a list that is gone revokes nothing"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn manifests_are_held_to_what_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::new(options(folder.path()));
    let lies = packed("1.0.0", "").len();
    let manifest = "id = \"a\"\nversion = \"1.0.0\"\nkind = \"classifier\"";
    let classifier = pack(&guest("reaches-out"), &Manifest::parse(manifest).unwrap()).unwrap();
    assert!(lies > 0 && refused(&bench, &classifier).await.contains("kind = \"classifier\""));
    assert!(
        refused(&bench, &packed("1.0.0", "host = \"0.2.0\""))
            .await
            .contains("host = \"0.2.0\"")
    );
    let schema = "settings-schema = { properties = { address = { type = \"string\" } } }";
    bench.put("reaches-out.toml", b"[settings]\naddress = 5");
    let wrong = refused(&bench, &packed("1.0.0", schema)).await;
    assert!(wrong.contains("reaches-out.toml: settings.address = 5"), "{wrong}");
    tries(&bench, &packed("1.0.0", "[asks]\nenvironment = [\"TZ\"]")).await;
    let more = packed("1.1.0", "[asks]\nrandom = true");
    let waits = refused(&bench, &more).await;
    assert!(waits.contains("asks more than before: asks.random true"), "{waits}");
    let line = waits
        .split("write ")
        .nth(1)
        .and_then(|rest| rest.split(" into").next())
        .unwrap();
    bench.put("reaches-out.toml", line.as_bytes());
    tries(&bench, &more).await;
}
