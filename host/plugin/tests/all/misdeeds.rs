//! Every misdeed in every export of a node manager: what becomes of the call, of the plugin, and of its neighbour.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use backplane_plugin::{Deadline, PluginOptions, PluginState, PluginStatus};
use backplane_types::{StatusCode, Variant};

use crate::guests::{Plant, guest, salted};
use crate::support::quick;

/// A host whose deadlines are short, with a good neighbour of the one that misbehaves.
struct Street {
    plant: Plant,
    _cache: tempfile::TempDir,
}

const BAD: &str = "misbehaves";
const GOOD: &str = "asks-who";
const HOWS: [&str; 3] = ["trap", "spin", "sleep"];

fn settings(here: &str, how: &str) -> String {
    format!("[settings]\nwhere = \"{here}\"\nhow = \"{how}\"\n")
}

impl Street {
    /// The neighbour serves; the other one is not loaded.
    async fn new() -> Self {
        let cache = tempfile::tempdir().unwrap();
        let mut options: PluginOptions = quick();
        options.engine.cache = Some(cache.path().join("compiled"));
        let short = Deadline {
            cpu: Duration::from_millis(50),
            wall: Duration::from_millis(150),
        };
        let limits = &mut options.limits;
        for deadline in [
            &mut limits.wake,
            &mut limits.stop,
            &mut limits.read,
            &mut limits.write,
            &mut limits.call,
            &mut limits.demand,
            &mut limits.handover,
        ] {
            *deadline = short;
        }
        limits.start = Deadline {
            cpu: Duration::from_millis(500),
            wall: Duration::from_millis(1_500),
        };
        // Misdeeds are done as often as a test asks for them.
        options.restart.quarantine_after = usize::MAX;
        let plant = Plant::new(GOOD, options).await;
        Self { plant, _cache: cache }
    }

    async fn load(&self, here: &str, how: &str, again: bool) -> Result<(), String> {
        let bench = &self.plant.bench;
        bench.put("misbehaves.toml", settings(here, how).as_bytes());
        let bytes = if again { salted(guest(BAD)) } else { guest(BAD) };
        let path = bench.put("misbehaves.wasm", &bytes);
        bench
            .host
            .load(&path)
            .await
            .map(drop)
            .map_err(|error| error.to_string())
    }

    fn bad(&self) -> Plant {
        self.plant.neighbour(BAD)
    }

    /// Waits until another instance than `before` serves.
    async fn next_instance(&self, before: u64) -> PluginStatus {
        let bench = &self.plant.bench;
        bench
            .until(BAD, |status| {
                status.instance > before && status.state == PluginState::Serving
            })
            .await
    }

    async fn unload(&self) {
        self.plant.bench.host.unload(BAD).await.unwrap();
    }

    /// The neighbour is the same as ever.
    async fn nobody_else_noticed(&self) {
        let status = self.plant.bench.status(GOOD);
        assert_eq!((status.instance, status.counts.faults), (1, 0));
        let call = self.plant.call(Duration::from_secs(30));
        let answer = self.plant.manager("Asked").read(&call, &[1], 0.0).await.unwrap();
        assert_eq!(answer.len(), 1);
    }
}

/// What whoever asked is told: the outcome of a call that was cut is unknown.
fn told(how: &str) -> StatusCode {
    match how {
        "trap" => StatusCode::BAD_UNEXPECTED_ERROR,
        _ => StatusCode::BAD_TIMEOUT,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_call_of_a_client() {
    let street = Street::new().await;
    for here in ["read", "write", "invoke"] {
        for how in HOWS {
            street.load(here, how, false).await.unwrap();
            let (bad, before) = (street.bad(), street.plant.bench.status(BAD).instance);
            let manager = bad.manager("Target");
            let call = bad.call(Duration::from_secs(30));
            let status = match here {
                "read" => manager.read(&call, &[2], 0.0).await.map(drop),
                "write" => bad
                    .write(1, 1.0)
                    .await
                    .map(drop)
                    .map_err(|status| backplane_nodes::Fault::new(status, "")),
                _ => manager
                    .call(&call, &bad.id("Misbehaves"), 3, Vec::new())
                    .await
                    .map(drop),
            };
            assert_eq!(status.unwrap_err().status, told(how), "{how} in {here}");
            let reason = street.next_instance(before).await;
            assert!(reason.counts.faults <= 1, "{how} in {here}");
            // The next instance answers what the misdeed is not in.
            let other = if here == "read" {
                bad.write(1, 2.0).await.map(drop)
            } else {
                bad.read(&[2]).await.map(drop)
            };
            assert_eq!(other, Ok(()), "{how} in {here}");
            street.nobody_else_noticed().await;
            street.unload().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_what_the_host_calls_by_itself() {
    let street = Street::new().await;
    for here in ["wake", "demand"] {
        for how in HOWS {
            street.load(here, how, false).await.unwrap();
            let bad = street.bad();
            let before = street.plant.bench.status(BAD).instance;
            bad.manager("Target").watched(Arc::new(BTreeMap::from([(1, 100.0)])));
            street.next_instance(before).await;
            // Cached values are answered all the while.
            assert!(matches!(bad.cell("Target").read().value, Variant::Double(_)));
            street.nobody_else_noticed().await;
            street.unload().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_start() {
    let street = Street::new().await;
    for how in HOWS.into_iter().chain(["fault"]) {
        let refused = street.load("start", how, false).await.unwrap_err();
        assert!(refused.contains("lifecycle.start"), "{how}: {refused}");
        street.nobody_else_noticed().await;
        street.unload().await;
    }
}

/// A generation that cannot give its state away has lost it; one that cannot take it is not taken.
#[tokio::test(flavor = "multi_thread")]
async fn in_handing_over() {
    let street = Street::new().await;
    for how in HOWS {
        street.load("save", how, false).await.unwrap();
        street.load("nowhere", how, true).await.unwrap();
        let status = street.plant.bench.status(BAD);
        assert_eq!(
            (status.generation, status.state),
            (2, PluginState::Serving),
            "{how} in save"
        );
        assert!(street.bad().read(&[2]).await.is_ok());
        street.unload().await;

        street.load("nowhere", how, false).await.unwrap();
        let refused = street.load("restore", how, true).await.unwrap_err();
        assert!(refused.contains("handover.restore"), "{how}: {refused}");
        let status = street.plant.bench.status(BAD);
        assert_eq!(
            (status.generation, status.instance, status.state),
            (1, 1, PluginState::Serving)
        );
        assert!(street.bad().read(&[2]).await.is_ok(), "the old one goes on");
        street.nobody_else_noticed().await;
        street.unload().await;
    }
    // A refusal is neither: the old one keeps its state and serves on.
    street.load("save", "fault", false).await.unwrap();
    let refused = street.load("nowhere", "fault", true).await.unwrap_err();
    assert!(refused.contains("handover.save answered"), "{refused}");
    assert!(street.bad().read(&[2]).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn in_stop() {
    let street = Street::new().await;
    for how in HOWS {
        street.load("stop", how, false).await.unwrap();
        street.unload().await;
        street.nobody_else_noticed().await;
    }
}
