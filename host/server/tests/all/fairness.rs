//! An owner that floods the server, and another one that asks now and then: the second is served as if the first were not there.
//!
//! At the gate the second owner's connection waits for the turns that run, and for no more, however many connections of the first one wait too. Without turns owner
//! by owner it waits for a turn of each of them. The control below, which is run by hand, shows what these tests would see then. On a machine with two processors, beside
//! 100 connections, in the middle of 1,000 Reads:
//!
//! | profile | idle | beside the flood | Reads of the flood answered meanwhile, each |
//! |---|---|---|---|
//! | SharedOnly | 0.02 to 0.1 ms | 2.6 ms | 6,800 |
//! | FairShare, Balanced | 0.01 to 0.09 ms | 0.10 to 0.14 ms | 260 to 400 |

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::support::{Flood, Latency, Server, alone, latency};

const FLOOD: Ipv4Addr = Ipv4Addr::LOCALHOST;
const QUIET: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// The longest turn, with what is written at its end.
const TURN: Duration = Duration::from_micros(500);
/// Good enough for nearly every Read whatever else the machine does: a few slices of its scheduler.
const GENEROUS: Duration = Duration::from_millis(8);
/// Single Reads in one look.
const READS: usize = 1_000;
/// Looks, of which one has to be good: whatever else the machine does can only make one worse.
const LOOKS: usize = 5;

const LIMITS: &str = "sessions = 2000\nconnections = 2200\n[isolation.rate]\nper-second = 10000\nburst = 20000\n";

/// How long single Reads take without a flood and beside one, and how many Reads of the flood were answered meanwhile.
#[derive(Debug)]
struct Look {
    idle: Latency,
    beside: Latency,
    answered: u64,
}

async fn look(server: &Server, connections: usize) -> Look {
    let place = server.place();
    let idle = latency(&place, QUIET, READS).await.unwrap();
    let flood = Flood::from(&place, FLOOD, connections).await;
    let before = flood.answered();
    let beside = latency(&place, QUIET, READS).await.unwrap();
    let answered = flood.answered() - before;
    flood.stop().await;
    assert!(answered > 1_000, "the flood was answered {answered} times only");
    Look { idle, beside, answered }
}

/// Looks until one is good.
async fn until_good(connections: usize, good: impl Fn(&Look) -> bool) {
    let server = Server::with(LIMITS);
    let mut seen = Vec::new();
    for _ in 0..LOOKS {
        seen.push(look(&server, connections).await);
        if seen.last().is_some_and(&good) {
            eprintln!("beside {connections} connections: {seen:?}");
            return;
        }
    }
    panic!("single Reads beside {connections} connections take too long: {seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_owner_that_floods_does_not_slow_another_one_down() {
    let _machine = alone().await;
    let good = |look: &Look| look.beside.p99 <= (3 * look.idle.p99 + TURN).max(GENEROUS);
    until_good(10, good).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn more_connections_do_not_get_an_owner_more() {
    let _machine = alone().await;
    // A turn of each of a hundred would take many times as long, and answer a hundred times 64. How many are answered meanwhile does not depend on the machine.
    let good =
        |look: &Look| look.beside.median <= 3 * look.idle.median + 2 * TURN || look.answered <= 2_000 * READS as u64;
    until_good(100, good).await;
}

/// The control of the tests above.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[ignore = "a measurement: says what the tests above would see without turns owner by owner"]
async fn what_a_flood_does_without_fair_turns() {
    for connections in [10, 100] {
        for profile in ["SharedOnly", "FairShare", "Balanced"] {
            let server = Server::with(&format!("{LIMITS}[isolation]\nprofile = \"{profile}\"\n"));
            for _ in 0..3 {
                let look = look(&server, connections).await;
                eprintln!("{profile}, {connections} connections: {look:?}");
            }
        }
    }
}
