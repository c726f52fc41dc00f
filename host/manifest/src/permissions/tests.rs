use super::*;
use crate::asks::{Folder, Growth, grown, read_grants, read_secrets};
use crate::{Manifest, Problems};

fn asks(text: &str) -> Asks {
    Asks::parse(text).unwrap()
}

fn grants(text: &str) -> Asks {
    read_grants(&toml::from_str(text).unwrap()).unwrap()
}

fn peer(address: &str, port: u16) -> Peer<'static> {
    Peer {
        address: address.parse().unwrap(),
        port,
        names: &[],
    }
}

#[test]
fn nothing_is_allowed_by_default() {
    let none = Permissions::default();
    assert_eq!(
        none.connect(&peer("10.0.0.1", 502)).unwrap_err().to_string(),
        "10.0.0.1:502: not asked in the manifest: asks.network.connect"
    );
    let name = HostName::parse("a.b").unwrap();
    let keys = [
        none.listen(&peer("::1", 1)).unwrap_err().key,
        none.udp(&peer("::1", 1)).unwrap_err().key,
        none.lookup(&name).unwrap_err().key,
        none.http(true, &RequestHost::Name(name), 443).unwrap_err().key,
        none.environment("TZ").unwrap_err().key,
        none.secret("x").unwrap_err().key,
        none.wall_clock().unwrap_err().key,
        none.monotonic_clock().unwrap_err().key,
        none.random().unwrap_err().key,
        none.own_data().unwrap_err().key,
        none.import().unwrap_err().key,
    ];
    let expected = [
        "network.listen",
        "network.udp",
        "network.names",
        "http.origins",
        "environment",
        "secrets",
        "clock.wall",
        "clock.monotonic",
        "random",
        "folders.own-data",
        "folders.import",
    ];
    assert_eq!(keys, expected);
    assert!(!none.any_tcp() && !none.any_udp() && none.variables().next().is_none());
}

#[test]
fn asked_and_granted_are_both_needed() {
    let asked = asks("environment = [\"TZ\", \"HOME\"]\nnetwork = { connect = [\"10.0.0.0/8:502\"] }");
    let granted = grants("log = false\nenvironment = [\"TZ\", \"PATH\"]\nnetwork = { connect = [\"10.1.0.0/16\"] }");
    let both = Permissions::new(asked, granted);
    assert!(both.connect(&peer("10.1.2.3", 502)).is_ok() && both.any_tcp());
    let no_grant = both.connect(&peer("10.2.0.1", 502)).unwrap_err();
    assert_eq!(
        no_grant.to_string(),
        "10.2.0.1:502: not granted by the operator: grants.network.connect"
    );
    assert_eq!(both.connect(&peer("10.1.2.3", 80)).unwrap_err().missing, Missing::Ask);
    assert_eq!(both.variables().collect::<Vec<_>>(), ["TZ"]);
    assert_eq!(both.environment("PATH").unwrap_err().full_key(), "asks.environment");
    assert_eq!(both.environment("HOME").unwrap_err().full_key(), "grants.environment");
}

#[test]
fn folders_have_the_smaller_quota() {
    let asked = asks("folders = { own-data = { quota = \"2MiB\" }, import = { quota = \"1KiB\" } }");
    let granted =
        grants("folders = { own-data = { quota = \"1MiB\" }, import = { quota = \"1GiB\", path = \"/srv/in\" } }");
    let both = Permissions::new(asked.clone(), granted);
    assert_eq!(both.own_data().unwrap(), 1 << 20);
    let import = both.import().unwrap();
    assert_eq!((import.path.as_str(), import.quota), ("/srv/in", 1 << 10));
    let wrong = toml::from_str("folders = { import = { quota = \"1GiB\", path = \"in\" } }\nnetwrk = {}").unwrap();
    let Problems(problems) = read_grants(&wrong).unwrap_err();
    let keys: Vec<_> = problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["grants.folders.import.path", "grants.netwrk"]);
}

#[test]
fn names_in_connect_may_be_looked_up() {
    let text = "network = { connect = [\"plc.example:502\"], names = [\"*.lab\"] }";
    let both = Permissions::new(asks(text), grants(text));
    let ok = |name: &str| both.lookup(&HostName::parse(name).unwrap()).is_ok();
    assert!(ok("PLC.example.") && ok("a.lab") && !ok("lab") && !ok("plc.example.evil"));
    let names = [HostName::parse("plc.example").unwrap()];
    assert!(
        both.connect(&Peer {
            names: &names,
            ..peer("10.0.0.1", 502)
        })
        .is_ok()
    );
    assert!(both.connect(&peer("10.0.0.1", 502)).is_err());
}

#[test]
fn growth_is_what_nothing_covers() {
    let old = asks(
        "random = true\nenvironment = [\"TZ\"]\nnetwork = { connect = [\"10.0.0.0/8:502\"] }\nfolders = { own-data = { quota = \"1MiB\" } }",
    );
    let less = asks("network = { connect = [\"10.1.0.0/16:502\"] }\nfolders = { own-data = { quota = \"1KiB\" } }");
    assert!(grown(&old, &less).is_empty() && grown(&old, &old).is_empty());
    let more = asks(
        "environment = [\"TZ\", \"HOME\"]\nclock = { wall = true }\nnetwork = { connect = [\"10.0.0.0/8:502-503\"] }\nfolders = { own-data = { quota = \"2MiB\" }, import = { quota = \"0\" } }",
    );
    let growth: Vec<_> = grown(&old, &more).iter().map(Growth::to_string).collect();
    assert_eq!(
        growth,
        [
            "asks.network.connect 10.0.0.0/8:502-503",
            "asks.environment HOME",
            "asks.folders.own-data 2MiB",
            "asks.folders.import 0",
            "asks.clock.wall true",
        ]
    );
    assert_ne!(old.digest(), more.digest());
    assert_eq!(old.digest(), asks(&old.to_text()).digest());
    let same = Folder {
        quota: 1 << 20,
        path: None,
    };
    assert_eq!(old.own_data, Some(same));
}

#[test]
fn asks_of_a_manifest_have_their_own_digest() {
    let head = "id = \"a\"\nversion = \"1.0.0\"\nkind = \"classifier\"\n";
    let one = Manifest::parse(&format!("{head}[asks]\nrandom = true")).unwrap();
    let two = Manifest::parse(&format!("{head}asks = {{ random = true, environment = [] }}")).unwrap();
    assert_eq!(one.asks.digest(), two.asks.digest());
    assert!(one.asks.digest().starts_with("sha256:"));
}

#[test]
fn secrets_are_never_repeated() {
    let secrets = read_secrets("plc-password = \"hunter2\"").unwrap();
    assert_eq!(secrets["plc-password"].as_str(), "hunter2");
    for wrong in [
        "plc = \"hunter2",
        "plc = 2222",
        "\"a b\" = \"hunter2\"",
        "x = [\"hunter2\"]",
        "x = hunter2",
    ] {
        let problem = read_secrets(wrong).unwrap_err().to_string();
        assert!(!problem.contains("hunter2") && !problem.contains("2222"), "{problem}");
    }
}
