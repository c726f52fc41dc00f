//! What a plugin keeps, and what it does not.

use backplane_plugin::PluginOptions;
use backplane_types::{StatusCode, Variant};

use crate::guests::{Plant, guest, salted};
use crate::support::quick;

/// Reads `s=Kept` and `s=Starts`.
async fn kept(plant: &Plant) -> (f64, u32) {
    let values = plant.read(&[2, 3]).await.unwrap();
    match (&values[0].value, &values[1].value) {
        (Variant::Double(kept), Variant::UInt32(starts)) => (*kept, *starts),
        other => panic!("{other:?}"),
    }
}

fn in_folder(folder: &tempfile::TempDir) -> PluginOptions {
    PluginOptions {
        store: Some(folder.path().join("stores")),
        ..quick()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_call_keeps_survives_reloads_and_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let plant = Plant::new("keeps", in_folder(&folder)).await;
    assert_eq!(kept(&plant).await, (0.0, 1));
    assert_eq!(plant.write(1, 5.0).await, Ok(vec![StatusCode::GOOD]));
    let path = plant.bench.put("keeps.wasm", &salted(guest("keeps")));
    plant.bench.host.load(&path).await.unwrap();
    assert_eq!(kept(&plant).await, (5.0, 2));
    plant.bench.host.shutdown().await;
    drop(plant);
    let again = Plant::new("keeps", in_folder(&folder)).await;
    assert_eq!(kept(&again).await, (5.0, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_call_that_traps_nothing_is_kept() {
    let plant = Plant::new("keeps", quick()).await;
    assert_eq!(plant.write(1, 5.0).await, Ok(vec![StatusCode::GOOD]));
    assert_eq!(plant.write(1, -1.0).await, Err(StatusCode::BAD_UNEXPECTED_ERROR));
    plant
        .bench
        .until("keeps", |status| {
            status.instance == 2 && status.state.name() == "serving"
        })
        .await;
    assert_eq!(kept(&plant).await, (5.0, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_generation_that_never_serves_nothing_is_kept() {
    let plant = Plant::new("keeps", quick()).await;
    assert_eq!(kept(&plant).await, (0.0, 1));
    plant.bench.put("keeps.toml", b"[settings]\nrefuse = true");
    let path = plant.bench.put("keeps.wasm", &salted(guest("keeps")));
    plant.bench.host.load(&path).await.unwrap_err();
    assert_eq!(kept(&plant).await, (0.0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_store_is_refused_and_goes_on() {
    let mut options = quick();
    options.limits.store = 1 << 20;
    let plant = Plant::new("keeps", options).await;
    assert_eq!(plant.write(1, 1e9).await, Err(StatusCode::BAD_OUT_OF_MEMORY));
    assert_eq!(plant.write(1, 7.0).await, Ok(vec![StatusCode::GOOD]));
    assert_eq!(kept(&plant).await, (7.0, 1));
}
