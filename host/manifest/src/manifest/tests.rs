use proptest::prelude::*;

use super::*;

const FULL: &str = r#"
id = "com.acme.boiler"
version = "1.2.0-rc.1"
kind = "node-manager"
namespaces = ["urn:acme:boiler", "urn:acme:common"]
host = "0.1.2"
state = { writes = 2, reads = [1, 2] }
settings-schema = { type = "object", properties = { rate = { type = "number" } } }

[asks]
environment = ["TZ"]
secrets = ["plc-password"]
random = true
[asks.network]
connect = ["PLC.example.:502", "10.0.0.0/8:502-510", "[fd00::/8]:502"]
listen = ["127.0.0.1:9000"]
udp = ["*:47808"]
names = ["*.example"]
[asks.http]
origins = ["https://api.example.com"]
[asks.clock]
wall = true
monotonic = true
[asks.folders]
own-data = { quota = "64MiB" }
import = { quota = "1GiB" }
"#;

#[test]
fn canonical_text_is_read_back() {
    let manifest = Manifest::parse(FULL).unwrap();
    let text = manifest.to_text();
    assert_eq!(Manifest::parse(&text).unwrap(), manifest, "{text}");
    assert_eq!(Manifest::parse(&text).unwrap().to_text(), text);
    assert_eq!(Asks::parse(&manifest.asks.to_text()).unwrap(), manifest.asks);
    assert_eq!(manifest.asks.connect[0].to_string(), "plc.example:502");
    let file = Manifest::parse("id = \"a\"\nversion = \"1.0.0\"\nkind = \"classifier\"\nsettings-schema = \"s.json\"")
        .unwrap();
    assert_eq!(Manifest::parse(&file.to_text()).unwrap(), file);
}

#[test]
fn everything_wrong_is_told_with_key_value_and_rule() {
    let text = r#"
id = "Com.Acme"
version = "1.2"
kind = "driver"
namespaces = ["urn:a", "urn:a", "http://opcfoundation.org/UA/", ""]
colour = "red"
state = { reads = [1, -1], x = 2 }
settings-schema = { "$ref" = "https://example.com" }
[asks]
random = "yes"
environment = ["A B"]
secrets = ["../x"]
[asks.network]
connect = ["10.0.0.1/8", 5]
listen = ["plc.example:5"]
names = ["10.0.0.1"]
conect = []
[asks.http]
origins = ["https://a.b/c"]
[asks.clock]
wall = 1
[asks.folders]
own-data = { quota = "many", path = "/x" }
import = {}
[asks.folders.temp]
quota = "1MiB"
"#;
    let Problems(problems) = Manifest::parse(text).unwrap_err();
    let keys: Vec<_> = problems.iter().map(|problem| problem.key.as_str()).collect();
    for key in [
        "id",
        "version",
        "kind",
        "namespaces[1]",
        "namespaces[2]",
        "namespaces[3]",
        "colour",
        "state.writes",
        "state.reads[1]",
        "state.x",
        "settings-schema/$ref",
        "asks.random",
        "asks.environment[0]",
        "asks.secrets[0]",
        "asks.network.connect[0]",
        "asks.network.connect[1]",
        "asks.network.listen[0]",
        "asks.network.names[0]",
        "asks.network.conect",
        "asks.http.origins[0]",
        "asks.clock.wall",
        "asks.folders.own-data.quota",
        "asks.folders.own-data.path",
        "asks.folders.import.quota",
        "asks.folders.temp",
    ] {
        assert!(keys.contains(&key), "{key} in {keys:?}");
    }
    assert_eq!(keys.len(), 25, "{keys:?}");
    let kind = problems.iter().find(|problem| problem.key == "kind").unwrap();
    assert_eq!(
        kind.to_string(),
        "kind = \"driver\": a plugin is a node-manager or a classifier"
    );
}

#[test]
fn missing_keys_broken_text_and_sizes() {
    let Problems(problems) = Manifest::parse("").unwrap_err();
    let keys: Vec<_> = problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["id", "version", "kind"]);
    assert!(
        Manifest::parse("id = \n")
            .unwrap_err()
            .to_string()
            .starts_with("line 1: ")
    );
    let long = format!(
        "id = \"a\"\nversion = \"1.0.0\"\nkind = \"classifier\"\n# {}",
        "x".repeat(MAX_MANIFEST_BYTES)
    );
    assert!(Manifest::parse(&long).unwrap_err().to_string().contains("more than"));
    let many: Vec<_> = (0..200).map(|n| format!("\"urn:{n}\"")).collect();
    let many = format!(
        "id = \"a\"\nversion = \"1.0.0\"\nkind = \"classifier\"\nnamespaces = [{}]",
        many.join(",")
    );
    assert!(Manifest::parse(&many).unwrap_err().to_string().contains("at most 128"));
    let unknown: String = (0..500).map(|n| format!("k{n} = 1\n")).collect();
    assert_eq!(Manifest::parse(&unknown).unwrap_err().0.len(), crate::MAX_PROBLEMS + 1);
}

#[test]
fn schema_files_have_plain_names() {
    for name in ["../s.json", "/s.json", "a/b", "", ".s"] {
        let text = format!("id = \"a\"\nversion = \"1.0.0\"\nkind = \"classifier\"\nsettings-schema = {name:?}");
        assert!(Manifest::parse(&text).is_err(), "{name}");
    }
}

proptest! {
    #[test]
    fn whatever_is_read_is_told_or_taken(text in "[a-z\\[\\]\\.=\" {}0-9\n,-]{0,200}") {
        let _ = Manifest::parse(&text);
    }

    #[test]
    fn what_is_taken_is_written_and_read_back(
        hosts in proptest::collection::hash_set("[a-z]{1,8}(\\.[a-z]{1,8}){0,2}(:[1-9][0-9]{0,3})?", 0..6),
        wall: bool,
        quota in 0_u64..1 << 41,
    ) {
        let list: Vec<_> = hosts.iter().map(|host| format!("{host:?}")).collect();
        let text = format!(
            "id = \"a\"\nversion = \"1.0.0\"\nkind = \"classifier\"\n[asks]\nclock = {{ wall = {wall} }}\nnetwork = {{ connect = [{}] }}\nfolders = {{ own-data = {{ quota = \"{quota}\" }} }}",
            list.join(", ")
        );
        if let Ok(manifest) = Manifest::parse(&text) {
            prop_assert_eq!(Manifest::parse(&manifest.to_text()).unwrap(), manifest);
        } else {
            prop_assert!(quota > crate::MAX_QUOTA);
        }
    }
}
