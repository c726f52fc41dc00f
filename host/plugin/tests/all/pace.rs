//! How fast calls and values are; run by hand, on a machine that does nothing else.

use std::time::{Duration, Instant};

use backplane_types::Variant;

use crate::guests::Plant;
use crate::support::{all, quick};

/// An on-demand variable of the simulator.
pub(crate) const POWER: u32 = 120;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement: cargo test --release -p backplane -p backplane-plugin -- --ignored --nocapture"]
async fn calls_through_the_mailbox() {
    let plant = Plant::new("too-few-results", quick()).await;
    let manager = plant.manager("Target");
    let rounds = 20_000_u32;
    for tags in [&[2_u32][..], &[2; 100]] {
        let began = Instant::now();
        for _ in 0..rounds {
            let call = plant.call(Duration::from_secs(30));
            assert!(manager.read(&call, tags, 0.0).await.is_err());
        }
        println!(
            "reader.read of {} tags: {:?} each",
            tags.len(),
            began.elapsed() / rounds
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement: cargo test --release -p backplane -p backplane-plugin -- --ignored --nocapture"]
async fn many_small_reads_of_one_caller() {
    let (jobs, rounds) = (100_u32, 200_u32);
    for merged in [1, 64, 1, 64] {
        let mut options = quick();
        options.limits.merged_reads = merged;
        let plant = Plant::new("simulator", options).await;
        let manager = plant.manager("Var1");
        let mut took = Vec::new();
        let before = plant.bench.status("simulator").counts.calls;
        for _ in 0..rounds {
            let call = plant.call(Duration::from_secs(30));
            let began = Instant::now();
            let answers = all((0..jobs).map(|_| manager.read(&call, &[POWER], 0.0))).await;
            took.push(began.elapsed() / jobs);
            assert!(answers.iter().all(Result::is_ok));
        }
        took.sort_unstable();
        let calls = plant.bench.status("simulator").counts.calls - before;
        println!(
            "{jobs} reads of 1 tag, up to {merged} in one call: {:?} each in the median, {calls} calls for {}",
            took[took.len() / 2],
            jobs * rounds
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement: cargo test --release -p backplane -p backplane-plugin -- --ignored --nocapture"]
async fn published_values() {
    let mut options = quick();
    options.limits.wake.cpu = Duration::from_secs(10);
    options.limits.memory = 128 << 20;
    let plant = Plant::new("huge-list", options).await;
    let before = plant.bench.status("huge-list").counts.published;
    let cell = plant.cell("Target");
    let began = Instant::now();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let published = plant.bench.status("huge-list").counts.published - before;
    println!(
        "{published} values published in {:?}, ticks {}",
        began.elapsed(),
        plant.bench.status("huge-list").counts.ticks
    );
    assert!(matches!(cell.read().value, Variant::Double(_)));
}
