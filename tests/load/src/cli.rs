//! The command line: scenarios, switches, and what they mean when they are left out.
//!
//! Owns names, defaults and limits of all switches. Knows nothing of how a scenario is run.

use std::path::PathBuf;
use std::str::FromStr;

use backplane_crypto::SecurityPolicy;
use backplane_types::MessageSecurityMode;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Puts load on OPC UA servers and says what it costs them.
#[derive(Parser, Debug)]
#[command(name = "backplane-load", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Single-value Reads, pipelined: 10 sessions with 100 under way each
    O6read(Load),
    /// Reads of 100 values, one under way in each of 20 sessions
    Read(Load),
    /// Writes of 100 values, one under way in each of 20 sessions
    Write(Load),
    /// Browse of the Server object, forward, hierarchical, all fields; one under way in each of 20 sessions
    Browse(Load),
    /// As o6read, on variables that the plugin is asked for
    Ondemand(Load),
    /// One writer and 5 subscriptions with 100 items in each of 20 sessions; requests are notifications
    Sub(Load),
    /// Items on counters: did each get its samples? 99.9 %, and 99 % of counters that the plugin is asked for
    Counters(Load),
    /// As counters, on variables that count their reads, the way open62541's clients are measured: UInt64, sampled every 10 ms, published
    /// every second, a queue of one, no timestamps
    O6counters(Load),
    /// One subscription with 1,000 items of which 20 change, and one with only the 20: what do the others cost?
    Changes(Load),
    /// 10 sessions with 10,000 items each that are sampled every second: memory of an item, and whether a change is missed
    Items(Load),
    /// From the write of a value to its notification, publishing every 10 ms
    Latency(Load),
    /// 2,000 sessions that do nothing: memory of each, CPU of all
    Idle(Load),
    /// One session with one request at a time: alone, and beside 10 sessions of another user with 1,000 under way each
    Flood(Load),
    /// Compares two builds of the product: rounds in turn, medians
    Ab(Ab),
}

/// A scenario, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub(crate) enum Scenario {
    O6read,
    Read,
    Write,
    Browse,
    Ondemand,
    Sub,
    Counters,
    O6counters,
    Changes,
    Items,
    Latency,
    Idle,
    Flood,
}

impl Scenario {
    /// As on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::O6read => "o6read",
            Self::Read => "read",
            Self::Write => "write",
            Self::Browse => "browse",
            Self::Ondemand => "ondemand",
            Self::Sub => "sub",
            Self::Counters => "counters",
            Self::O6counters => "o6counters",
            Self::Changes => "changes",
            Self::Items => "items",
            Self::Latency => "latency",
            Self::Idle => "idle",
            Self::Flood => "flood",
        }
    }

    /// Sessions, requests under way in each, operations in each request.
    fn defaults(self) -> (u32, u32, u32) {
        match self {
            Self::O6read | Self::Ondemand => (10, 100, 1),
            Self::Read | Self::Write => (20, 1, 100),
            Self::Browse | Self::Sub => (20, 1, 1),
            Self::Counters | Self::O6counters | Self::Changes | Self::Latency => (1, 1, 1),
            Self::Items => (10, 1, 1),
            Self::Idle => (2_000, 1, 1),
            Self::Flood => (10, 1_000, 1),
        }
    }
}

impl Command {
    /// The scenario and its switches; `None` for a comparison of builds.
    pub(crate) fn scenario(&self) -> Option<(Scenario, &Load)> {
        Some(match self {
            Self::O6read(load) => (Scenario::O6read, load),
            Self::Read(load) => (Scenario::Read, load),
            Self::Write(load) => (Scenario::Write, load),
            Self::Browse(load) => (Scenario::Browse, load),
            Self::Ondemand(load) => (Scenario::Ondemand, load),
            Self::Sub(load) => (Scenario::Sub, load),
            Self::Counters(load) => (Scenario::Counters, load),
            Self::O6counters(load) => (Scenario::O6counters, load),
            Self::Changes(load) => (Scenario::Changes, load),
            Self::Items(load) => (Scenario::Items, load),
            Self::Latency(load) => (Scenario::Latency, load),
            Self::Idle(load) => (Scenario::Idle, load),
            Self::Flood(load) => (Scenario::Flood, load),
            Self::Ab(_) => return None,
        })
    }
}

/// The switches of a comparison of builds.
#[derive(Args, Clone, Debug)]
pub(crate) struct Ab {
    /// The product's binary as it was
    #[arg(long)]
    pub(crate) baseline: PathBuf,
    /// The product's binary as it is now
    #[arg(long)]
    pub(crate) candidate: PathBuf,
    /// Scenarios with their switches, one behind the other with semicolons between them
    #[arg(long, default_value = "o6read; read; write; browse")]
    pub(crate) scenarios: String,
    /// Runs of each build in each scenario
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// Length of the window that is measured, unless a scenario says it
    #[arg(long, default_value_t = 12.0, value_parser = seconds)]
    pub(crate) seconds: f64,
    /// Load before the window, unless a scenario says it
    #[arg(long, default_value_t = 6.0, value_parser = seconds)]
    pub(crate) warmup: f64,
    /// The plugin with the variables [default: where cargo builds it]
    #[arg(long)]
    pub(crate) plugin: Option<PathBuf>,
    /// One JSON object for each run instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// How channels are secured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Security {
    #[default]
    None,
    Sign,
    Encrypt,
}

impl Security {
    pub(crate) fn mode(self) -> MessageSecurityMode {
        match self {
            Self::None => MessageSecurityMode::NONE,
            Self::Sign => MessageSecurityMode::SIGN,
            Self::Encrypt => MessageSecurityMode::SIGN_AND_ENCRYPT,
        }
    }
}

/// The CPUs of the server (as `taskset -c` takes them) and the one of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pin {
    /// The operating system decides.
    Free,
    To {
        server: String,
        client: usize,
    },
}

impl FromStr for Pin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::Free);
        }
        let wrong = || format!("{text:?} is neither none nor SERVER,CLIENT such as 0,1 or 0-2,3");
        let (server, client) = text.rsplit_once(',').ok_or_else(wrong)?;
        let is_list = server
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'-' || byte == b',');
        let client = client.parse().map_err(|_| wrong())?;
        if server.is_empty() || !is_list {
            return Err(wrong());
        }
        Ok(Self::To {
            server: server.to_owned(),
            client,
        })
    }
}

/// The switches of every scenario.
#[derive(Args, Clone, Debug)]
pub(crate) struct Load {
    /// Connections, with a session each
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) sessions: Option<u32>,
    /// Requests under way in each session
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) inflight: Option<u32>,
    /// Values in each request
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) nodes: Option<u32>,
    /// Variables that take turns
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) variables: u32,
    /// Length of the window that is measured
    #[arg(long, default_value_t = 20.0, value_parser = seconds)]
    pub(crate) seconds: f64,
    /// Load before the window
    #[arg(long, default_value_t = 10.0, value_parser = seconds)]
    pub(crate) warmup: f64,
    /// Subscriptions of each session [default: sub: 5; others: 1]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) subs: Option<u32>,
    /// Items of each subscription [default: sub and latency: 100; counters and changes: 1000; items: 10000]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) items: Option<u32>,
    /// Publishing interval in ms [default: sub: 100; changes: 50; latency: 10; counters and items: 1000]
    #[arg(long, value_parser = milliseconds)]
    pub(crate) publishing: Option<f64>,
    /// Sampling interval in ms [default: sub and latency: 0; counters: 10; changes: 50; items: 1000]
    #[arg(long, value_parser = milliseconds)]
    pub(crate) sampling: Option<f64>,
    /// counters: those that the plugin is asked for, instead of those that the host keeps
    #[arg(long)]
    pub(crate) on_demand: bool,
    /// Queue of each item
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) item_queue: u32,
    /// ms between two writes [default: 50; items: 2000]
    #[arg(long, value_parser = milliseconds)]
    pub(crate) write_every: Option<f64>,
    /// The writer writes the first so many variables [default: all that have items; changes: 20; items: 100]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) write_nodes: Option<u32>,
    /// write: to variables whose plugin is asked about every write, which only the product has
    #[arg(long)]
    pub(crate) through_plugin: bool,
    /// Security of the channels
    #[arg(long, value_enum, default_value_t)]
    pub(crate) security: Security,
    /// The policy when there is security
    #[arg(long, default_value = "Basic256Sha256", value_parser = policy)]
    pub(crate) policy: SecurityPolicy,
    /// Cores of the server and of the client: SERVER,CLIENT or none [default: 0,1 where there are two]
    #[arg(long)]
    pub(crate) pin: Option<Pin>,
    /// Server and client share core 0
    #[arg(long, conflicts_with = "pin")]
    pub(crate) same_core: bool,
    /// The client sends every request by itself
    #[arg(long)]
    pub(crate) one_by_one: bool,
    /// One JSON object for each server instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Servers to compare with, run one after the other behind the product
    #[arg(long, value_delimiter = ',')]
    pub(crate) peers: Vec<String>,
    /// Leave the product out
    #[arg(long, conflicts_with_all = ["server", "url"])]
    pub(crate) peers_only: bool,
    /// How a peer is started, if not as usual: NAME=COMMAND; {nodes} is the number of variables
    #[arg(long, value_name = "NAME=COMMAND")]
    pub(crate) peer_command: Vec<String>,
    /// The product's binary [default: backplane beside this program]
    #[arg(long)]
    pub(crate) server: Option<PathBuf>,
    /// Requests that may wait in the product, instead of its demonstration's 20000
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) queue: Option<u32>,
    /// The product's configuration, instead of its demonstration's; it has to let anonymous users in
    #[arg(long, conflicts_with_all = ["queue", "url"])]
    pub(crate) config: Option<PathBuf>,
    /// The plugin with the variables [default: where cargo builds it]
    #[arg(long)]
    pub(crate) plugin: Option<PathBuf>,
    /// A server that runs already, instead of the product
    #[arg(long, conflicts_with = "server")]
    pub(crate) url: Option<String>,
    /// The process behind --url, if its cost is wanted
    #[arg(long, requires = "url")]
    pub(crate) pid: Option<u32>,
    /// Runs of each server, taking turns
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
}

impl Load {
    /// Sessions, requests under way, operations in a request.
    pub(crate) fn shape(&self, scenario: Scenario) -> (u32, u32, u32) {
        let (sessions, in_flight, nodes) = scenario.defaults();
        (
            self.sessions.unwrap_or(sessions),
            self.inflight.unwrap_or(in_flight),
            self.nodes.unwrap_or(nodes),
        )
    }

    /// Whether the counters of a scenario are variables that the plugin is asked for.
    pub(crate) fn asks(&self, scenario: Scenario) -> bool {
        self.on_demand || scenario == Scenario::O6counters
    }

    /// Where server and client run on a machine with `cores`.
    pub(crate) fn placing(&self, cores: usize) -> Pin {
        let to = |client| Pin::To {
            server: "0".to_owned(),
            client,
        };
        match (&self.pin, self.same_core) {
            (Some(pin), _) => pin.clone(),
            (None, true) => to(0),
            (None, false) if cores >= 2 => to(1),
            (None, false) => Pin::Free,
        }
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
    if (0.0..=86_400.0).contains(&value) {
        Ok(value)
    } else {
        Err("between 0 and 86400".to_owned())
    }
}

fn milliseconds(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
    if (0.0..=3_600_000.0).contains(&value) {
        Ok(value)
    } else {
        Err("between 0 and 3600000".to_owned())
    }
}

fn policy(text: &str) -> Result<SecurityPolicy, String> {
    SecurityPolicy::from_name(text)
        .filter(|policy| !policy.is_none())
        .ok_or_else(|| "Basic256Sha256, Aes128_Sha256_RsaOaep or Aes256_Sha256_RsaPss".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::{Cli, Pin, Scenario, Security};

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_is_left_out_depends_on_the_scenario() {
        let cli = Cli::try_parse_from(["backplane-load", "o6read", "--peers", "open62541,echo"]).unwrap();
        let (scenario, load) = cli.command.scenario().unwrap();
        assert_eq!((scenario, load.shape(scenario)), (Scenario::O6read, (10, 100, 1)));
        assert_eq!(load.peers, ["open62541", "echo"]);
        assert_eq!(load.security, Security::None);
        let cli = Cli::try_parse_from(["backplane-load", "write", "--sessions", "3", "--security", "encrypt"]).unwrap();
        let (scenario, load) = cli.command.scenario().unwrap();
        assert_eq!(load.shape(scenario), (3, 1, 100));
        assert_eq!(load.security, Security::Encrypt);
    }

    #[test]
    fn cores() {
        let load = |arguments: &[&str]| {
            let all = ["backplane-load", "read"].iter().chain(arguments);
            Cli::try_parse_from(all)
                .map(|cli| cli.command.scenario().unwrap().1.placing(2))
                .map_err(|error| error.to_string())
        };
        let to = |server: &str, client| {
            Ok(Pin::To {
                server: server.to_owned(),
                client,
            })
        };
        assert_eq!(load(&[]), to("0", 1));
        assert_eq!(load(&["--same-core"]), to("0", 0));
        assert_eq!(load(&["--pin", "0-2,3"]), to("0-2", 3));
        assert_eq!(load(&["--pin", "none"]), Ok(Pin::Free));
        for wrong in ["1", "a,1", ",1", "0,x"] {
            assert!(load(&["--pin", wrong]).is_err(), "{wrong}");
        }
        assert!(load(&["--pin", "0,1", "--same-core"]).is_err());
        let cli = Cli::try_parse_from(["backplane-load", "read"]).unwrap();
        assert_eq!(cli.command.scenario().unwrap().1.placing(1), Pin::Free);
    }

    #[test]
    fn a_comparison_is_no_scenario() {
        let cli = Cli::try_parse_from(["backplane-load", "ab", "--baseline", "a", "--candidate", "b"]).unwrap();
        assert!(cli.command.scenario().is_none());
        assert!(Cli::try_parse_from(["backplane-load", "ab", "--baseline", "a"]).is_err());
    }

    #[test]
    fn nonsense_is_refused() {
        for wrong in [
            ["--sessions", "0"],
            ["--seconds", "-1"],
            ["--security", "some"],
            ["--policy", "None"],
            ["--rounds", "0"],
        ] {
            let all = ["backplane-load", "read"].iter().chain(&wrong);
            assert!(Cli::try_parse_from(all).is_err(), "{wrong:?}");
        }
    }
}
