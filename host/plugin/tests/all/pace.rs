//! How fast calls and values are; run by hand, on a machine that does nothing else.

use std::time::{Duration, Instant};

use backplane_types::Variant;

use crate::guests::Plant;
use crate::support::quick;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
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
#[ignore = "a measurement"]
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
