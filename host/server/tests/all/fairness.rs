//! An owner that floods the server, and another one that asks now and then: the second is served as if the first were not there.
//!
//! A flood of ten connections with a thousand Reads each keeps the server busy all the time. At the gate the second owner's connection waits for the turns that run,
//! and for no more. That is what the bound below means: three times of what it takes when nobody else is there, and one turn, or five milliseconds on a machine
//! that is busy with other things.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::support::{Flood, Latency, Server, latency};

const FLOOD: Ipv4Addr = Ipv4Addr::LOCALHOST;
const QUIET: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// The longest turn, with what is written at its end.
const TURN: Duration = Duration::from_micros(500);
/// What is good enough whatever else the machine does.
const GENEROUS: Duration = Duration::from_millis(5);
/// Single Reads in one look.
const READS: usize = 1_000;
/// Looks, of which one has to be good: whatever else the machine does can only make one worse.
const LOOKS: usize = 5;

const LIMITS: &str = "sessions = 200\nconnections = 220\n[isolation.rate]\nper-second = 10000\nburst = 20000\n";

/// How long single Reads take without a flood and beside one, and how many Reads of the flood were answered meanwhile.
async fn look(server: &Server, connections: usize) -> (Latency, Latency, u64) {
    let place = server.place();
    let idle = latency(&place, QUIET, READS).await.unwrap();
    let flood = Flood::from(&place, FLOOD, connections).await;
    let before = flood.answered();
    let beside = latency(&place, QUIET, READS).await.unwrap();
    let answered = flood.answered() - before;
    flood.stop().await;
    (idle, beside, answered)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_floods_does_not_slow_another_one_down() {
    let server = Server::with(LIMITS);
    let mut seen = Vec::new();
    for _ in 0..LOOKS {
        let (idle, beside, answered) = look(&server, 10).await;
        assert!(answered > 1_000, "the flood was answered {answered} times only");
        seen.push((idle, beside, answered));
        if beside.p99 <= (3 * idle.p99 + TURN).max(GENEROUS) {
            eprintln!("idle, beside the flood, Reads of the flood meanwhile: {seen:?}");
            return;
        }
    }
    panic!("single Reads beside a flood take too long: {seen:?}");
}

/// The control of the test above: the same in all profiles.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement: says what the test above would see without turns owner by owner"]
async fn what_a_flood_does_without_fair_turns() {
    for connections in [10, 100] {
        for profile in ["SharedOnly", "FairShare", "Balanced"] {
            let server = Server::with(&format!("{LIMITS}[isolation]\nprofile = \"{profile}\"\n"));
            for _ in 0..3 {
                let (idle, beside, answered) = look(&server, connections).await;
                eprintln!(
                    "{profile}, {connections} connections: idle {idle:?}, beside {beside:?}, {answered} Reads of the flood meanwhile"
                );
            }
        }
    }
}
