//! `[isolation]` as an operator writes it: what is refused before a port opens, with the option and the number that would do, and what the server says it does.

use std::fs;
use std::path::Path;

use backplane_client::SessionOptions;
use backplane_types::StatusCode;

use crate::support::{Server, connect, open, read_status, run, well_behaved};

/// Everything before `[limits]`, which is open at its end.
const HEAD: &str = "[server]\nlisten = \"127.0.0.1:0\"\n[security]\nallow-none = true\n[users]\nanonymous = true\n";
/// The same where a trusted owner has its floors too: they need more memory for messages than there is by default.
const MORE: &str = "sessions = 2\nconnections = 20\nreassembly-bytes = 340000000";
/// What a profile with trusted owners needs beside them.
const PLUGINS: &str = "[plugins]\nfolder = \"plugins\"\n";
/// Limits of most cases.
const TWENTY: &str = "sessions = 2\nconnections = 20";
/// The profile with trusted owners, and one.
const TRUSTED: &str = "[isolation]\nprofile = \"TrustedReservations\"\n[[isolation.trusted-owner]]\nkey = \"plant\"";

/// Exit code and everything that was said.
fn command(name: &str, folder: &Path, config: &str) -> (Option<i32>, String) {
    let file = folder.join("backplane.toml");
    fs::write(&file, config).unwrap();
    let output = run(&[name, "--config", file.to_str().unwrap()], "");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

/// A rule: the lines from `[limits]` on that break it, the option that is named, what is said of it, and lines that keep it by a hair.
struct Rule {
    wrong: String,
    option: &'static str,
    says: &'static str,
    right: String,
}

impl Rule {
    /// With a folder of plugins, where a classifier may be.
    fn with_plugins(mut self) -> Self {
        for text in [&mut self.wrong, &mut self.right] {
            text.insert_str(0, PLUGINS);
        }
        self
    }
}

/// The same limits, two isolation sections.
fn rule(limits: &str, wrong: &str, option: &'static str, says: &'static str, right: &str) -> Rule {
    Rule {
        wrong: format!("[limits]\n{limits}\n{wrong}\n"),
        option,
        says,
        right: format!("[limits]\n{limits}\n{right}\n"),
    }
}

/// In one stage.
fn stage(name: &str, wrong: &str, option: &'static str, says: &'static str, right: &str) -> Rule {
    let section = |lines: &str| format!("[[isolation.stage]]\nstage = \"{name}\"\n{lines}");
    rule(TWENTY, &section(wrong), option, says, &section(right))
}

/// A limit of the server, with the isolation section.
fn limit(isolation: &str, wrong: &str, option: &'static str, says: &'static str, right: &str) -> Rule {
    Rule {
        wrong: format!("[limits]\n{wrong}\n{isolation}\n"),
        option,
        says,
        right: format!("[limits]\n{right}\n{isolation}\n"),
    }
}

/// A line of `[isolation]`.
fn line(wrong: &str, option: &'static str, says: &'static str, right: &str) -> Rule {
    let section = |line: &str| format!("[isolation]\n{line}");
    rule(TWENTY, &section(wrong), option, says, &section(right))
}

/// A line of the trusted owner.
fn trusted(wrong: &str, option: &'static str, says: &'static str, right: &str) -> Rule {
    let section = |line: &str| format!("{TRUSTED}\n{line}");
    rule(MORE, &section(wrong), option, says, &section(right)).with_plugins()
}

fn connection_rules() -> Vec<Rule> {
    let balanced = "[isolation]";
    let fair = "[isolation]\nprofile = \"FairShare\"";
    let off = "[[isolation.stage]]\nstage = \"Connection\"\nbootstrap-reserved = 0\nreconnect-reserved = 0";
    let two = |connections: u32| format!("sessions = 2\nconnections = {connections}\nreassembly-bytes = 340000000");
    let hundred = |connections: u32| format!("sessions = 100\nconnections = {connections}");
    let connections = "limits.connections";
    vec![
        limit(balanced, &two(4), connections, "at least 5", &two(5)),
        limit(fair, &two(2), connections, "at least 3", &two(3)),
        limit(TRUSTED, &two(5), connections, "at least 6", &two(6)).with_plugins(),
        limit(off, &two(2), connections, "at least 3", &two(3)),
        limit(balanced, &hundred(101), connections, "at least 103", &hundred(103)),
        limit(balanced, &hundred(102), connections, "at least 103", &hundred(103)),
        limit(
            balanced,
            "sessions = 2\nconnections = 0",
            connections,
            "1 to 100000",
            &two(5),
        ),
        limit(
            balanced,
            "sessions = 0\nconnections = 5",
            "limits.sessions",
            "1 to 100000",
            &two(5),
        ),
        stage(
            "Connection",
            "capacity = 4",
            "isolation.stage[Connection].capacity",
            "at least 5",
            "capacity = 5",
        ),
    ]
}

fn stage_rules() -> Vec<Rule> {
    let most = "bootstrap-reserved = 9223372036854775807";
    let handshake = "[[isolation.stage]]\nstage = \"Handshake\"";
    vec![
        stage(
            "Handshake",
            "capacity = 21",
            "isolation.stage[Handshake].capacity",
            "from 1 to 20",
            "capacity = 20",
        ),
        stage(
            "Handshake",
            "capacity = 0",
            "isolation.stage[Handshake].capacity",
            "from 1 to 20",
            "capacity = 3",
        ),
        stage(
            "Handshake",
            "capacity = 2",
            "isolation.stage[Handshake].capacity",
            "at least 3",
            "capacity = 3",
        ),
        stage(
            "Handshake",
            "bootstrap-reserved = 19",
            "limits.connections",
            "at least 21",
            "bootstrap-reserved = 18",
        ),
        stage(
            "Handshake",
            most,
            "limits.connections",
            "at least 9223372036854775809",
            "bootstrap-reserved = 0",
        ),
        stage(
            "Handshake",
            "bootstrap-reserved = -1",
            "isolation.stage[0].bootstrap-reserved",
            "below 0",
            "",
        ),
        stage(
            "Handshake",
            "capacity = \"many\"",
            "isolation.stage[0].capacity",
            "a whole number",
            "",
        ),
        stage(
            "Handshake",
            "capacity = 4.5",
            "isolation.stage[0].capacity",
            "a whole number",
            "capacity = 4",
        ),
        stage(
            "Handshake",
            "size = 4",
            "isolation.stage[0].size",
            "unknown key",
            "capacity = 4",
        ),
        stage(
            "RequestQueue",
            "owner-hard-limit = 0",
            "isolation.stage[RequestQueue].owner-hard-limit",
            "from 1 to 4096",
            "owner-hard-limit = 1",
        ),
        stage(
            "RequestQueue",
            "owner-hard-limit = 4097",
            "isolation.stage[RequestQueue].owner-hard-limit",
            "from 1 to 4096",
            "owner-hard-limit = 4096",
        ),
        stage(
            "RequestQueue",
            "owner-hard-limit = 3\nreconnect-reserved = 4",
            "isolation.stage[RequestQueue].owner-hard-limit",
            "from 4 to 4096",
            "owner-hard-limit = 4\nreconnect-reserved = 4",
        ),
        stage(
            "RequestQueueBytes",
            "control-reserved = 16777215",
            "isolation.stage[RequestQueueBytes].control-reserved",
            "0 or at least 16777216",
            "control-reserved = 16777216",
        ),
        stage(
            "ReassemblyBytes",
            "owner-hard-limit = 67371003",
            "isolation.stage[ReassemblyBytes].owner-hard-limit",
            "from 67371004",
            "owner-hard-limit = 67371004",
        ),
        rule(
            TWENTY,
            &format!("{handshake}\n{handshake}"),
            "isolation.stage[Handshake]",
            "given twice",
            handshake,
        ),
        rule(
            TWENTY,
            "[[isolation.stage]]\nstage = \"Kitchen\"",
            "isolation.stage[0].stage",
            "Handshake",
            handshake,
        ),
        rule(
            TWENTY,
            "[[isolation.stage]]\ncapacity = 4",
            "isolation.stage[0].stage",
            "missing",
            handshake,
        ),
        rule(
            TWENTY,
            "[isolation.stage]\nstage = \"Handshake\"",
            "isolation.stage",
            "an array of tables",
            handshake,
        ),
    ]
}

fn byte_rules() -> Vec<Rule> {
    let of_bytes = |bytes: u64| format!("{TWENTY}\nreassembly-bytes = {bytes}");
    let establishing = |count: u32| format!("{TWENTY}\nsession-establishment = {count}");
    let with = |line: &str| format!("{TWENTY}\n{line}");
    vec![
        line(
            "bootstrap-reserved-bytes = 67371003",
            "isolation.bootstrap-reserved-bytes",
            "at least 67371004",
            "bootstrap-reserved-bytes = 67371004",
        ),
        line(
            "reconnect-reserved-bytes = 0",
            "isolation.reconnect-reserved-bytes",
            "at least 67371004",
            "reconnect-reserved-bytes = 67371004",
        ),
        line(
            "max-retained-message-bytes = 0",
            "isolation.max-retained-message-bytes",
            "at least 1",
            "max-retained-message-bytes = 1",
        ),
        limit(
            "",
            &of_bytes(202_113_011),
            "limits.reassembly-bytes",
            "at least 202113012",
            &of_bytes(202_113_012),
        ),
        limit(
            "",
            &establishing(2),
            "limits.session-establishment",
            "at least 3",
            &establishing(3),
        ),
        limit(
            "",
            &with("message-size = 0"),
            "limits.message-size",
            "8192 to",
            &with("message-size = 262144"),
        ),
        limit(
            "",
            &with("chunk-size = 0"),
            "limits.chunk-size",
            "8192 to",
            &with("chunk-size = 8192"),
        ),
        line(
            "profile = \"FairShare\"\nreconnect-reserved-bytes = 1",
            "isolation.reconnect-reserved-bytes",
            "no meaning in the profile FairShare",
            "profile = \"FairShare\"\nreconnect-reserved-bytes = 0",
        ),
        line(
            "profile = \"FairShare\"\n[[isolation.stage]]\nstage = \"RequestQueue\"\ncontrol-reserved = 1",
            "isolation.stage[RequestQueue].control-reserved",
            "no meaning in the profile FairShare",
            "profile = \"FairShare\"\n[[isolation.stage]]\nstage = \"RequestQueue\"\ncontrol-reserved = 0",
        ),
    ]
}

fn table_and_rate_rules() -> Vec<Rule> {
    let timeout = |ms: u32| format!("{TWENTY}\nhandshake-timeout-ms = {ms}");
    let shared = "[isolation]\nprofile = \"SharedOnly\"";
    vec![
        line(
            "max-tracked-owners = 3",
            "isolation.max-tracked-owners",
            "at least 4",
            "max-tracked-owners = 4",
        ),
        line(
            "max-tracked-owners = 0",
            "isolation.max-tracked-owners",
            "1 to",
            "max-tracked-owners = 4",
        ),
        line(
            "max-owner-key-length = 0",
            "isolation.max-owner-key-length",
            "1 to",
            "max-owner-key-length = 1",
        ),
        line(
            "default-weight = 0",
            "isolation.default-weight",
            "1 to",
            "default-weight = 1",
        ),
        line(
            "default-weight = \"heavy\"",
            "isolation.default-weight",
            "a whole number",
            "default-weight = 9",
        ),
        line(
            "profile = \"Fair\"",
            "isolation.profile",
            "SharedOnly, FairShare, Balanced",
            "profile = \"Balanced\"",
        ),
        line("weight = 1", "isolation.weight", "unknown key", ""),
        line(
            "[isolation.rate]\nper-second = 2",
            "isolation.rate.per-second",
            "at least 3",
            "[isolation.rate]\nper-second = 3",
        ),
        line(
            "[isolation.rate]\nburst = 2",
            "isolation.rate.burst",
            "at least 3",
            "[isolation.rate]\nburst = 3",
        ),
        line(
            "[isolation.rate]\nburst = 0",
            "isolation.rate.burst",
            "at least 3",
            "profile = \"FairShare\"\n[isolation.rate]\nburst = 0",
        ),
        limit(
            "",
            &timeout(120_001),
            "limits.handshake-timeout-ms",
            "120000",
            &timeout(120_000),
        ),
        limit(
            shared,
            &timeout(120_001),
            "limits.handshake-timeout-ms",
            "120000",
            &timeout(120_000),
        ),
    ]
}

fn trusted_rules() -> Vec<Rule> {
    let twice = "[[isolation.trusted-owner.reservation]]\nstage = \"Handshake\"\nreserved = 1\n";
    let reserve =
        |stage: &str, lines: &str| format!("[[isolation.trusted-owner.reservation]]\nstage = \"{stage}\"\n{lines}");
    let mut rules = vec![
        trusted(
            "weight = 0",
            "isolation.trusted-owner[0].weight",
            "at least 1",
            "weight = 1",
        ),
        trusted(
            &twice.repeat(2),
            "isolation.trusted-owner[0].reservation[Handshake]",
            "given twice",
            twice,
        ),
        trusted(
            &reserve("RequestQueue", "reserved = 5\nhard-limit = 4"),
            "isolation.trusted-owner[0].reservation[RequestQueue].hard-limit",
            "from 5 to 4096",
            &reserve("RequestQueue", "reserved = 5\nhard-limit = 5"),
        ),
        trusted(
            &reserve("RequestQueue", "reserved = 0\nhard-limit = 0"),
            "isolation.trusted-owner[0].reservation[RequestQueue].hard-limit",
            "from 1 to 4096",
            &reserve("RequestQueue", "reserved = 0\nhard-limit = 1"),
        ),
        trusted(
            &reserve("RequestQueueBytes", "reserved = 16777215"),
            "isolation.trusted-owner[0].reservation[RequestQueueBytes].reserved",
            "0 or at least 16777216",
            &reserve("RequestQueueBytes", "reserved = 16777216"),
        ),
        trusted(
            &reserve("Connection", "reserved = 16"),
            "limits.connections",
            "at least 21",
            &reserve("Connection", "reserved = 15"),
        ),
        trusted(
            &reserve("Handshake", "reserved = -1"),
            "isolation.trusted-owner[0].reservation[0].reserved",
            "below 0",
            &reserve("Handshake", "reserved = 1"),
        ),
        trusted(
            "[[isolation.trusted-owner]]\nkey = \"plant\"",
            "isolation.trusted-owner[1].key",
            "given twice",
            "[[isolation.trusted-owner]]\nkey = \"dock\"",
        ),
        trusted(
            "[[isolation.trusted-owner]]\nkey = \"\"",
            "isolation.trusted-owner[1].key",
            "is empty",
            "",
        ),
        trusted(
            "[[isolation.trusted-owner]]\nweight = 2",
            "isolation.trusted-owner[1].key",
            "is empty",
            "",
        ),
        trusted(
            "[isolation.rate]\nper-second = 3",
            "isolation.rate.per-second",
            "at least 4",
            "[isolation.rate]\nper-second = 4",
        ),
        trusted(
            "[isolation.rate]\nburst = 3",
            "isolation.rate.burst",
            "at least 4",
            "[isolation.rate]\nburst = 4",
        ),
    ];
    rules.extend(trusted_profile_rules());
    rules
}

/// What the profile with trusted owners needs, and what it needs them for.
fn trusted_profile_rules() -> Vec<Rule> {
    let owner = |key: &str| {
        format!("[isolation]\nprofile = \"TrustedReservations\"\n[[isolation.trusted-owner]]\nkey = \"{key}\"")
    };
    let lines = |before: &str, isolation: &str| format!("{before}[limits]\n{MORE}\n{isolation}\n");
    let long = |bytes: usize| lines(PLUGINS, &owner(&"k".repeat(bytes)));
    let balanced = TRUSTED.replace("TrustedReservations", "Balanced");
    let shared = TRUSTED.replace("TrustedReservations", "SharedOnly");
    let small = |owners: u32| {
        let line = format!("profile = \"TrustedReservations\"\nmax-tracked-owners = {owners}");
        lines(PLUGINS, &TRUSTED.replace("profile = \"TrustedReservations\"", &line))
    };
    let case = |wrong: String, option, says, right: String| Rule {
        wrong,
        option,
        says,
        right,
    };
    let right = || lines(PLUGINS, TRUSTED);
    let nobody = lines(PLUGINS, "[isolation]\nprofile = \"TrustedReservations\"");
    vec![
        case(lines("", TRUSTED), "isolation.profile", "needs a classifier", right()),
        case(nobody, "isolation.profile", "needs at least one trusted owner", right()),
        case(
            lines(PLUGINS, &balanced),
            "isolation.trusted-owner",
            "no meaning in the profile Balanced",
            right(),
        ),
        case(
            lines(PLUGINS, &shared),
            "isolation.trusted-owner",
            "no meaning in the profile SharedOnly",
            right(),
        ),
        case(long(257), "isolation.trusted-owner[0].key", "at most 256", long(256)),
        case(small(4), "isolation.max-tracked-owners", "at least 5", small(5)),
    ]
}

#[test]
fn a_plan_that_does_not_fit_is_refused_with_the_option_and_what_would_do() {
    let folder = tempfile::tempdir().unwrap();
    let rules = [
        connection_rules(),
        stage_rules(),
        byte_rules(),
        table_and_rate_rules(),
        trusted_rules(),
    ];
    for rule in rules.into_iter().flatten() {
        let (code, text) = command("check-config", folder.path(), &format!("{HEAD}{}", rule.wrong));
        let of_option = format!("{}: ", rule.option);
        let said = text.lines().map(str::trim_start);
        let said = said
            .filter(|line| line.starts_with(&of_option))
            .any(|line| line.contains(rule.says));
        assert!(
            code == Some(64) && said,
            "{:?} {:?} of\n{}\ngives {code:?}\n{text}",
            rule.option,
            rule.says,
            rule.wrong
        );
        let (code, text) = command("check-config", folder.path(), &format!("{HEAD}{}", rule.right));
        assert_eq!(code, Some(0), "{}\nis right, and gives\n{text}", rule.right);
    }
}

/// The number of connections that just suffice for two sessions, with everything that the profile needs.
fn just_enough(profile: &str, connections: u32) -> String {
    let trusted = if profile == "TrustedReservations" {
        "[[isolation.trusted-owner]]\nkey = \"plant\"\n"
    } else {
        ""
    };
    format!(
        "{HEAD}{PLUGINS}[limits]\nsessions = 2\nconnections = {connections}\nreassembly-bytes = 340000000\n[isolation]\nprofile = \"{profile}\"\n{trusted}"
    )
}

#[tokio::test]
async fn one_connection_less_than_sessions_and_floors_need_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    for (profile, least) in [("Balanced", 5), ("FairShare", 3), ("TrustedReservations", 6)] {
        let (code, text) = command("serve", folder.path(), &just_enough(profile, least - 1));
        assert_eq!(code, Some(64), "{profile}: {text}");
        let minimum = format!("at least {least}");
        let named = |line: &str| line.trim_start().starts_with("limits.connections: ") && line.contains(&minimum);
        assert!(text.lines().any(named), "{profile}: {text}");
        assert!(!text.contains("READY"), "{profile}: {text}");
        // With one more, all sessions and one more connection fit.
        let mut server = Server::configured(&just_enough(profile, least));
        let first = open(&server).await;
        let second = open(&server).await;
        let third = connect(&server).await.unwrap();
        let refused = third.create_session(SessionOptions::default()).await;
        let refused = refused.unwrap_err().status();
        assert_eq!(refused, Some(StatusCode::BAD_TOO_MANY_SESSIONS), "{profile}");
        read_status(&first).await.unwrap();
        read_status(&second).await.unwrap();
        first.close_session(true).await.unwrap();
        drop(third);
        server
            .usage_until("a connection less", |usage| usage.get("Connection") == 2)
            .await;
        well_behaved(&server).await;
    }
}

#[test]
fn the_plan_is_shown_by_check_config_and_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    for (profile, connections, lines) in [("Balanced", 5, 8), ("TrustedReservations", 6, 8), ("SharedOnly", 5, 1)] {
        let config = just_enough(profile, connections);
        let (code, text) = command("check-config", folder.path(), &config);
        assert_eq!(code, Some(0), "{text}");
        let start = format!("isolation {profile}: ");
        let plan: Vec<&str> = text.lines().filter(|line| line.starts_with(&start)).collect();
        assert_eq!(plan.len(), lines, "{text}");
        let mut server = Server::configured(&config);
        server.log.wait_for("accepting connections");
        for line in &plan {
            let logged = server.log.seen.iter().any(|logged| logged.ends_with(line));
            assert!(logged, "{line} is not in the log: {:#?}", server.log.seen);
        }
        let log = server.log.seen.join("\n");
        assert!(
            !log.contains("plant") && !text.contains("plant"),
            "keys are not shown: {text}\n{log}"
        );
        if profile == "TrustedReservations" {
            let connection =
                "Connection capacity 6 shared 3 bootstrap 1 reconnect 1 control 0 trusted 1 owner-hard-limit 6";
            assert!(plan[0].ends_with(connection), "{plan:#?}");
            let queue = "RequestQueue capacity 4096 shared 4092 bootstrap 1 reconnect 1 control 1 trusted 1 owner-hard-limit 4096";
            assert!(plan[4].ends_with(queue), "{plan:#?}");
        }
    }
}
