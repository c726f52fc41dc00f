//! The cores of the server in a world that one seed makes: virtual time, split and delayed pipes, managers that stall, answer late, trap and
//! are replaced, clients that follow a script. The channel at both ends, sessions, subscriptions, the request queue, value cells and the
//! services on nodes are the real ones; only what a runtime would do is played.
//!
//! Checkers are always on. Beside each session's subscriptions an oracle keeps what they must do ([`Rule`] says what is watched), and clients
//! check what only they can see. A run stops at the first rule that is broken, and the same seed gives the same run again:
//!
//! ```text
//! cargo run --release -p backplane-sim -- --seed 17          # the trace of seed 17
//! BACKPLANE_SIM_SEED=17 cargo test --release -p backplane-sim # the tests with this seed only
//! ```

mod client;
mod executor;
mod log;
mod manager;
mod mutant;
mod oracle;
mod pipe;
mod plant;
mod random;
mod server;
mod settings;
mod world;

use std::collections::BTreeMap;
use std::time::Duration;

pub use log::{Rule, Stats, Violation};
pub use mutant::Mutant;

/// What a run is made of.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where all chance comes from.
    pub seed: u64,
    /// How long the scripts go on, in virtual time.
    pub duration: Duration,
    /// Clients.
    pub clients: u64,
    /// Mean time between two values of a node, in ms.
    pub pace: u64,
    /// Managers trap, stall and lose answers.
    pub faults: bool,
    /// Managers are replaced by chance.
    pub reloads: bool,
    /// Generations give their nodes other tags.
    pub renumbers: bool,
    /// Generations lack nodes that others have.
    pub vanishes: bool,
    /// Clients break their connections.
    pub drops: bool,
    /// The server stalls now and then.
    pub stalls: bool,
    /// Managers are replaced at these calls of theirs, counted from 1.
    pub reload_at: Vec<u64>,
    /// Managers are replaced at every call of theirs.
    pub reload_every_boundary: bool,
    /// A fault to put in.
    pub mutant: Option<Mutant>,
    /// Keep the trace.
    pub trace: bool,
}

impl Options {
    /// Everything that can happen, for 20 seconds.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            duration: Duration::from_secs(20),
            clients: 2 + seed % 3,
            pace: 150,
            faults: true,
            reloads: true,
            renumbers: true,
            vanishes: true,
            drops: true,
            stalls: true,
            reload_at: Vec::new(),
            reload_every_boundary: false,
            mutant: None,
            trace: false,
        }
    }
}

/// What became of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Hash of the whole trace: equal runs have equal ones.
    pub hash: u64,
    /// What was counted.
    pub stats: Stats,
    /// The rules that were broken; none if all is well.
    pub violations: Vec<Violation>,
    /// The trace, if it was to be kept.
    pub trace: Vec<String>,
    /// What each client got for each item: by the place of the subscription among its own and the client handle, oldest first.
    pub streams: Vec<BTreeMap<(u32, u32), Vec<String>>>,
    /// Calls of managers.
    pub boundaries: u64,
}

/// Makes a world and lets it run. None if the world's own settings are refused, which no seed can cause.
#[must_use]
pub fn run(options: &Options) -> Option<Outcome> {
    Some(world::World::new(options)?.run(options))
}
