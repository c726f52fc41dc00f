//! Real components, the good and the bad ones of the repository, built when this runs.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use backplane_nodes::ns0::{self, Capabilities, NoMethods, ServerInfo, ServerStatus};
use backplane_nodes::{CallContext, Caller, NodeManager, ValueCell, WriteOperation};
use backplane_plugin::{EventSink, PluginOptions, PluginState};
use backplane_types::{BuildInfo, DataValue, NodeId, StatusCode, Variant};

use crate::support::{Bench, quick};

const GUESTS: &[&str] = &[
    "simulator",
    "classifier-certificate",
    "classifier-network",
    "classifies-badly",
    "asks-who",
    "deep-recursion",
    "duplicate-node",
    "follows-demand",
    "future-facet",
    "huge-list",
    "keeps",
    "log-flood",
    "memory-eater",
    "misbehaves",
    "panics-in-start",
    "panics-on-write",
    "reaches-out",
    "sleeps",
    "spins",
    "spins-in-start",
    "too-few-results",
    "wrong-type",
];

/// The bytes of a component of this repository.
pub(crate) fn guest(name: &str) -> Vec<u8> {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        // <target>/<profile>/deps/<this test>
        let test = std::env::current_exe().unwrap();
        let target = test.ancestors().nth(3).unwrap();
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .args([
                "build",
                "--profile",
                "guest",
                "--target",
                "wasm32-wasip2",
                "--target-dir",
            ])
            .arg(target);
        for name in GUESTS {
            cargo.args(["--package", name]);
        }
        assert!(cargo.status().unwrap().success(), "the guests do not build");
        target.join("wasm32-wasip2/guest")
    });
    assert!(GUESTS.contains(&name));
    std::fs::read(folder.join(format!("{}.wasm", name.replace('-', "_"))))
        .or_else(|_| std::fs::read(folder.join(format!("{name}.wasm"))))
        .unwrap()
}

/// The same component in other bytes: with one more custom section.
pub(crate) fn salted(mut component: Vec<u8>) -> Vec<u8> {
    component.extend([0, 6, 4]);
    component.extend(b"salt1");
    component
}

/// What the server object says it can do is of no interest here.
const NOTHING: Capabilities = Capabilities {
    min_supported_sample_rate: 0.0,
    max_array_length: 0,
    max_string_length: 0,
    max_byte_string_length: 0,
    max_sessions: 0,
    max_subscriptions: 0,
    max_subscriptions_per_session: 0,
    max_monitored_items: 0,
    max_monitored_items_per_subscription: 0,
    max_monitored_items_queue_size: 0,
    max_select_clause_parameters: 0,
    max_where_clause_parameters: 0,
    max_history_continuation_points: 0,
    max_monitored_items_per_call: 0,
    max_nodes_per_history_read_data: 0,
    max_nodes_per_history_read_events: 0,
    max_nodes_per_history_update_data: 0,
    max_nodes_per_history_update_events: 0,
    max_nodes_per_node_management: 0,
    aggregate_functions: &[],
};

/// A bench with namespace 0 and one guest loaded.
pub(crate) struct Plant {
    pub(crate) bench: Arc<Bench>,
    pub(crate) name: &'static str,
    namespace: u16,
}

fn bench(options: PluginOptions) -> Bench {
    let bench = Bench::new(options);
    let status = Arc::new(ServerStatus::new((bench.clock)().utc, BuildInfo::default()));
    let info = ServerInfo {
        application_uri: "urn:test".to_owned(),
        profiles: Vec::new(),
        locales: Vec::new(),
        auditing: false,
    };
    ns0::attach(&bench.space, &info, &NOTHING, &status, Arc::new(NoMethods)).unwrap();
    bench
}

impl Plant {
    pub(crate) async fn new(name: &'static str, options: PluginOptions) -> Self {
        Self::on(bench(options), name).await
    }

    /// With somebody who takes events.
    pub(crate) async fn listening(name: &'static str, options: PluginOptions, sink: Arc<dyn EventSink>) -> Self {
        Self::on(Self::bench_listening(options, sink), name).await
    }

    pub(crate) fn bench_listening(options: PluginOptions, sink: Arc<dyn EventSink>) -> Bench {
        let bench = bench(options);
        assert!(bench.host.set_events(sink));
        bench
    }

    /// The tag of a method.
    pub(crate) fn tag_of(&self, node: &str) -> u32 {
        let snapshot = self.bench.space.snapshot();
        let owner = snapshot.owner(&self.id(node)).unwrap();
        let model = snapshot.model(owner).unwrap();
        let id = self.id(node);
        (1..1_000).find(|tag| model.node_of_tag(*tag) == Some(&id)).unwrap()
    }

    async fn on(bench: Bench, name: &'static str) -> Self {
        let path = bench.put(&format!("{name}.wasm"), &guest(name));
        bench.host.load(&path).await.unwrap();
        let uri = match name {
            "simulator" => "urn:backplane:simulator".to_owned(),
            name => format!("urn:backplane:test:{name}"),
        };
        let namespace = bench.space.namespaces().index(&uri).unwrap();
        Self {
            bench: Arc::new(bench),
            name,
            namespace,
        }
    }

    /// Another plugin of this repository on the same host.
    pub(crate) fn neighbour(&self, name: &'static str) -> Self {
        let uri = format!("urn:backplane:test:{name}");
        Self {
            bench: Arc::clone(&self.bench),
            name,
            namespace: self.bench.space.namespaces().index(&uri).unwrap(),
        }
    }

    pub(crate) fn id(&self, node: &str) -> NodeId {
        NodeId::string(self.namespace, node)
    }

    fn exists(&self, node: &str) -> bool {
        self.bench.space.load().contains(&self.id(node))
    }

    pub(crate) fn cell(&self, node: &str) -> Arc<ValueCell> {
        let snapshot = self.bench.space.snapshot();
        let id = self.id(node);
        let owner = snapshot.owner(&id).expect("there is such a node");
        Arc::clone(
            snapshot
                .model(owner)
                .unwrap()
                .cell_of(&id)
                .expect("the host keeps its value"),
        )
    }

    fn value(&self, node: &str) -> Variant {
        self.cell(node).read().value
    }

    pub(crate) fn manager(&self, node: &str) -> Arc<dyn NodeManager> {
        let snapshot = self.bench.space.snapshot();
        let owner = snapshot.owner(&self.id(node)).unwrap();
        Arc::clone(snapshot.manager(owner).unwrap())
    }

    /// The context of a call that has `left` until its deadline.
    pub(crate) fn call(&self, left: Duration) -> CallContext {
        let now = (self.bench.clock)();
        CallContext {
            caller: Arc::new(Caller::anonymous()),
            deadline: now.mono + left,
            deadline_utc: now.utc.saturating_add(left),
            trace_parent: None,
            internal: false,
        }
    }

    pub(crate) async fn read(&self, tags: &[u32]) -> Result<Vec<DataValue>, StatusCode> {
        let call = self.call(Duration::from_secs(30));
        self.manager("Target")
            .read(&call, tags, 0.0)
            .await
            .map_err(|fault| fault.status)
    }

    pub(crate) async fn write(&self, tag: u32, value: f64) -> Result<Vec<StatusCode>, StatusCode> {
        let call = self.call(Duration::from_secs(30));
        let write = WriteOperation {
            tag,
            index_range: None,
            value: DataValue {
                value: Variant::Double(value),
                ..DataValue::default()
            },
        };
        self.manager("Target")
            .write(&call, vec![write])
            .await
            .map_err(|fault| fault.status)
    }

    /// Waits until a value is what `wanted` says; the plugin publishes it by a timer.
    pub(crate) async fn until(&self, node: &str, wanted: impl Fn(&Variant) -> bool) {
        let cell = self.cell(node);
        tokio::time::timeout(Duration::from_secs(60), async {
            while !wanted(&cell.read().value) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await
        .expect("it is published");
    }
}

fn above(limit: u64) -> impl Fn(&Variant) -> bool {
    move |value| match value {
        Variant::UInt32(number) => u64::from(*number) > limit,
        Variant::UInt64(number) => *number > limit,
        _ => false,
    }
}

/// Restarts only when a test asks.
fn patient() -> PluginOptions {
    let mut options = quick();
    options.restart.base = Duration::from_secs(3_600);
    options.restart.cap = Duration::from_secs(3_600);
    options
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_plugin_serves_values_writes_and_methods() {
    let plant = Plant::new("simulator", quick()).await;
    plant.until("Counter", above(2)).await;
    assert_eq!(plant.value("the.answer"), Variant::Int32(42));
    let manager = plant.manager("Var1");
    assert!(manager.facets().methods);
    let call = plant.call(Duration::from_secs(30));
    let inputs = vec![Variant::Double(1.5), Variant::Double(2.25)];
    let outcome = manager.call(&call, &plant.id("Dev"), 4, inputs).await.unwrap();
    assert_eq!(
        (outcome.status, outcome.outputs),
        (StatusCode::GOOD, vec![Variant::Double(3.75)])
    );
    let wrong = manager
        .call(&call, &plant.id("Dev"), 4, vec![Variant::Empty])
        .await
        .unwrap_err();
    assert_eq!(wrong.status, StatusCode::BAD_INVALID_ARGUMENT);
    let counts = plant.bench.status(plant.name).counts;
    assert_eq!((counts.methods, counts.answered_faults, counts.faults), (2, 1, 0));
    assert!(counts.published > 2 && counts.wakes > 2);
    // Unloaded, its nodes are gone.
    plant.bench.host.unload("simulator").await.unwrap();
    assert!(!plant.exists("Dev"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_keeps_cells_and_values() {
    let plant = Plant::new("simulator", quick()).await;
    let cell = plant.cell("the.answer");
    let counter = plant.cell("Counter");
    cell.write(DataValue {
        value: Variant::Int32(7),
        ..DataValue::default()
    });
    let version = cell.version();
    plant.until("Counter", above(0)).await;
    let Variant::UInt32(before) = plant.value("Counter") else {
        panic!("a counter")
    };
    let epoch = plant.bench.space.epoch();
    let path = plant.bench.put("simulator.wasm", &salted(guest("simulator")));
    plant.bench.host.load(&path).await.unwrap();
    let status = plant.bench.status("simulator");
    assert_eq!((status.generation, status.instance, status.counts.reloads), (2, 2, 1));
    assert_ne!(plant.bench.space.epoch(), epoch);
    assert!(Arc::ptr_eq(&cell, &plant.cell("the.answer")) && Arc::ptr_eq(&counter, &plant.cell("Counter")));
    // Nothing was sent for it: the last value is still the one that was written.
    assert_eq!((cell.version(), cell.read().value), (version, Variant::Int32(7)));
    // The new generation publishes into the same cell, and goes on from the state that was handed over.
    let Variant::UInt32(reached) = plant.value("Counter") else {
        panic!("a counter")
    };
    assert!(reached >= before);
    plant.until("Counter", above(reached.into())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_while_writing_degrades_the_nodes_until_it_runs_again() {
    let plant = Plant::new("panics-on-write", patient()).await;
    plant.until("Counter", above(0)).await;
    let before = plant.cell("Counter").read();
    assert_eq!(plant.write(1, 5.0).await, Err(StatusCode::BAD_UNEXPECTED_ERROR));
    let status = plant
        .bench
        .until(plant.name, |status| status.state.name() == "backoff")
        .await;
    let reason = status.last_error.unwrap();
    assert!(
        reason.contains("writer.write trapped") && reason.contains("it said: "),
        "{reason}"
    );
    let after = plant.cell("Counter").read();
    assert_eq!(after.status, Some(StatusCode::BAD_NO_COMMUNICATION));
    assert!(above(0)(&after.value) && after.source_timestamp >= before.source_timestamp);
    assert_eq!(
        plant.cell("Target").read().status,
        Some(StatusCode::BAD_NO_COMMUNICATION)
    );
    // While it is away it answers at once.
    assert_eq!(plant.write(1, 5.0).await, Err(StatusCode::BAD_NO_COMMUNICATION));
    plant.bench.host.release(plant.name).await.unwrap();
    assert_eq!(plant.cell("Target").read().status, None);
    assert_eq!(plant.value("Target"), Variant::Double(0.0));
    plant.until("Counter", |value| *value == Variant::UInt32(1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spinning_read_is_stopped_and_others_do_not_notice() {
    let bench = bench(patient());
    let good = bench.put("simulator.wasm", &guest("simulator"));
    bench.host.load(&good).await.unwrap();
    // Last, because it spins by itself too when it is not read for two seconds.
    let plant = Plant::on(bench, "spins").await;
    assert_eq!(plant.value("Target"), Variant::Double(1.0));
    assert_eq!(plant.read(&[2]).await, Err(StatusCode::BAD_TIMEOUT));
    let status = plant
        .bench
        .until(plant.name, |status| status.state.name() == "backoff")
        .await;
    assert!(
        status
            .last_error
            .unwrap()
            .contains("reader.read computed longer than 100 ms")
    );
    assert_eq!(plant.read(&[2]).await, Err(StatusCode::BAD_NO_COMMUNICATION));
    let good = plant.bench.status("simulator");
    assert_eq!(
        (good.state, good.instance, good.counts.faults),
        (PluginState::Serving, 1, 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sleeping_read_is_stopped_by_the_wall_deadline() {
    let mut options = patient();
    options.limits.read.wall = Duration::from_millis(100);
    let plant = Plant::new("sleeps", options).await;
    assert_eq!(plant.read(&[2]).await, Err(StatusCode::BAD_TIMEOUT));
    let status = plant
        .bench
        .until(plant.name, |status| status.state.name() == "backoff")
        .await;
    assert!(
        status
            .last_error
            .unwrap()
            .contains("reader.read took longer than 100 ms")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mailbox_is_bounded_and_deadlines_hold_in_it() {
    let mut options = patient();
    options.limits.mailbox = 1;
    options.limits.read.wall = Duration::from_secs(3_600);
    options.limits.wake.wall = Duration::from_secs(3_600);
    let plant = Plant::new("sleeps", options).await;
    let manager = plant.manager("Target");
    let call = plant.call(Duration::from_millis(200));
    // One sleeps; the place in the mailbox is free once it has begun.
    let first = manager.read(&call, &[2], 0.0);
    let rest = async {
        while plant.bench.status(plant.name).counts.reads == 0 {
            tokio::task::yield_now().await;
        }
        let second = manager.read(&call, &[2], 0.0);
        let third = async { manager.read(&call, &[2], 0.0).await };
        tokio::join!(biased; second, third)
    };
    let (first, (second, third)) = tokio::join!(first, rest);
    let status = |answer: Result<Vec<DataValue>, backplane_nodes::Fault>| answer.unwrap_err().status;
    assert_eq!(status(first), StatusCode::BAD_TIMEOUT);
    assert_eq!(status(second), StatusCode::BAD_TIMEOUT);
    assert_eq!(status(third), StatusCode::BAD_SERVER_TOO_BUSY);
    // The client's deadline is not the plugin's: it goes on.
    let status = plant.bench.status(plant.name);
    assert_eq!(
        (status.state, status.counts.faults, status.counts.turned_away),
        (PluginState::Serving, 0, 1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn eating_memory_ends_the_instance() {
    let mut options = patient();
    options.limits.memory = 16 << 20;
    let plant = Plant::new("memory-eater", options).await;
    assert_eq!(plant.write(1, 1.0).await, Err(StatusCode::BAD_UNEXPECTED_ERROR));
    let status = plant
        .bench
        .until(plant.name, |status| status.state.name() == "backoff")
        .await;
    assert!(status.last_error.unwrap().contains("growing memory"));
}

#[tokio::test(flavor = "multi_thread")]
async fn recursing_ends_the_instance() {
    let plant = Plant::new("deep-recursion", patient()).await;
    assert_eq!(plant.read(&[2]).await, Err(StatusCode::BAD_UNEXPECTED_ERROR));
    plant
        .bench
        .until(plant.name, |status| status.state.name() == "backoff")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_start_declares_before_it_fails_is_never_seen() {
    for (name, reason) in [
        ("panics-in-start", "is too much"),
        ("spins-in-start", "computed longer than"),
    ] {
        let bench = bench(patient());
        let path = bench.put(&format!("{name}.wasm"), &guest(name));
        let error = bench.host.load(&path).await.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        let namespace = bench
            .space
            .namespaces()
            .index(&format!("urn:backplane:test:{name}"))
            .unwrap();
        assert!(!bench.space.load().contains(&NodeId::string(namespace, "Target")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_all_or_nothing() {
    let plant = Plant::new("duplicate-node", quick()).await;
    assert_eq!(plant.value("Refused"), Variant::UInt32(4));
    assert!(plant.exists("Target") && !plant.exists("Sibling"));
    assert_eq!(plant.bench.status(plant.name).counts.changes, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_values_are_refused_one_by_one() {
    let plant = Plant::new("wrong-type", quick()).await;
    plant.until("Good", above(1)).await;
    plant.until("Refused", |value| *value == Variant::UInt32(8)).await;
    assert_eq!(plant.value("Target"), Variant::Double(1.0));
    let counts = plant.bench.status(plant.name).counts;
    assert!(counts.refused >= 16 && counts.faults == 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_the_wrong_length_fail_their_call_only() {
    let plant = Plant::new("too-few-results", quick()).await;
    for tags in [&[2][..], &[2, 3]] {
        assert_eq!(plant.read(tags).await, Err(StatusCode::BAD_INTERNAL_ERROR));
    }
    assert_eq!(plant.write(1, 2.0).await, Err(StatusCode::BAD_INTERNAL_ERROR));
    let status = plant.bench.status(plant.name);
    assert_eq!((status.state, status.instance), (PluginState::Serving, 1));
    assert_eq!((status.counts.misbehaviour, status.counts.faults), (3, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn huge_values_are_refused_or_end_the_instance() {
    let mut options = patient();
    options.limits.memory = 128 << 20;
    options.limits.wake.cpu = Duration::from_secs(10);
    options.limits.write.cpu = Duration::from_secs(10);
    let plant = Plant::new("huge-list", options).await;
    let outcome = plant.write(1, 1.0).await;
    assert!(matches!(&outcome, Err(status) if status.is_bad()), "{outcome:?}");
    assert_eq!(plant.value("Large"), Variant::from("small"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_log_lines_is_dropped() {
    let mut options = quick();
    options.limits.wake.cpu = Duration::from_secs(10);
    let plant = Plant::new("log-flood", options).await;
    plant.until("Lines", above(2_000)).await;
    assert_eq!(plant.bench.status(plant.name).counts.faults, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_facet_of_the_future_is_refused() {
    let bench = bench(quick());
    let path = bench.put("future-facet.wasm", &guest("future-facet"));
    let error = bench.host.load(&path).await.unwrap_err().to_string();
    assert!(
        error.contains("exports backplane:guest/reader@0.2.0, a facet that this host does not know"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_have_cannot_be_declared_again() {
    let plant = Plant::new("simulator", patient()).await;
    // The same component under another name has the same nodes.
    let path = plant.bench.put("copy.wasm", &guest("simulator"));
    let error = plant.bench.host.load(&path).await.unwrap_err().to_string();
    assert!(error.contains("belongs to manager simulator"), "{error}");
    assert_eq!(plant.bench.status("simulator").state, PluginState::Serving);
    assert_eq!(plant.bench.status("copy").state.name(), "backoff");
}
