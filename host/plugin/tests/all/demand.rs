//! A plugin that wants to know what is monitored is told, together and not too often, and all over again after a reload.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use backplane_types::Variant;

use crate::guests::{Plant, guest, salted};
use crate::support::quick;

const NAME: &str = "follows-demand";

fn watched(items: &[(u32, f64)]) -> Arc<BTreeMap<u32, f64>> {
    Arc::new(items.iter().copied().collect())
}

async fn told(plant: &Plant, text: &str) {
    let is = |value: &Variant| matches!(value, Variant::String(told) if told.text() == text);
    plant.until("Told", is).await;
}

fn calls(plant: &Plant) -> u64 {
    plant.bench.status(NAME).counts.demands
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_is_told_what_is_monitored_also_after_a_reload() {
    let mut options = quick();
    options.limits.demand_calls = 10;
    let plant = Plant::new(NAME, options).await;
    let manager = plant.manager("Target");
    assert!(manager.facets().demand);
    assert_eq!(calls(&plant), 0, "nobody watches");
    let begun = Instant::now();
    manager.watched(watched(&[(1, 100.0), (3, 10.0)]));
    told(&plant, "1:100 3:10").await;
    assert_eq!(calls(&plant), 1, "in one call");
    // Many changes at once are told as what they come to.
    for step in 1..=100 {
        manager.watched(watched(&[(1, f64::from(step)), (2, 50.0)]));
    }
    told(&plant, "1:100 2:50").await;
    assert!(begun.elapsed() >= Duration::from_millis(100));
    let most = 1 + begun.elapsed().as_millis() as u64 / 100;
    assert!((2..=most).contains(&calls(&plant)), "{} calls", calls(&plant));

    let before = calls(&plant);
    let path = plant.bench.put(&format!("{NAME}.wasm"), &salted(guest(NAME)));
    plant.bench.host.load(&path).await.unwrap();
    told(&plant, "1:100 2:50").await;
    plant.until("Calls", |value| *value == Variant::UInt32(1)).await;
    assert_eq!(calls(&plant), before + 1, "the new instance is told everything, once");

    manager.watched(watched(&[]));
    told(&plant, "").await;
    let before = calls(&plant);
    plant
        .bench
        .host
        .load(&plant.bench.put(&format!("{NAME}.wasm"), &guest(NAME)))
        .await
        .unwrap();
    plant.until("Calls", |value| *value == Variant::UInt32(0)).await;
    assert_eq!(calls(&plant), before, "nobody watches");
}
