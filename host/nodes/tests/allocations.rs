//! That the request path allocates nothing, and how much a large model costs. Alone in its binary: the counter replaces the allocator.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "nodes/common.rs"]
#[allow(dead_code, reason = "shared with the other test binary")]
mod common;

use std::sync::Arc;
use std::time::Instant;

use backplane_nodes::services::{self, Progress, ReadBatch, Until};
use backplane_nodes::{Limits, Model, ModelBuilder, NodeManager};
use backplane_types::{
    AttributeId, BinaryEncode, DataValue, DecodeLimits, Encoder, NodeId, QualifiedName, ReadValueId, WriteValue, ids,
};
use common::{TestManager, World, builder, name, node, now, objects, read_body, read_value, standard};

const OPERATIONS: u32 = 100;

fn world() -> World {
    let mut steps = builder();
    for tag in 1..=OPERATIONS {
        let text = format!("Machine.Axis{tag}.Position");
        let value = DataValue::new(f64::from(tag));
        steps.variable(
            node(&text),
            objects(),
            name(&text),
            tag,
            standard(ids::data_type::DOUBLE),
            value,
            3,
        );
    }
    World::new(&steps)
}

fn ids_of() -> Vec<NodeId> {
    (1..=OPERATIONS)
        .map(|tag| node(&format!("Machine.Axis{tag}.Position")))
        .collect()
}

fn allocations(mut run: impl FnMut()) -> u64 {
    run();
    allocation_counter::measure(run).count_total
}

#[test]
fn reading_values_the_host_keeps_allocates_nothing() {
    let world = world();
    let mut operations: Vec<ReadValueId> = ids_of()
        .iter()
        .map(|id| read_value(id, AttributeId::VALUE, ""))
        .collect();
    // A node that is not there, and one that says how it is encoded.
    operations.push(read_value(&node("Nowhere"), AttributeId::VALUE, ""));
    let encoding = QualifiedName::new(0, "Default Binary");
    operations.push(ReadValueId {
        data_encoding: encoding,
        ..operations[0].clone()
    });
    let body = read_body(0.0, 2, &operations);
    let mut out = Vec::with_capacity(64 * 1024);
    let count = allocations(|| {
        out.clear();
        let snapshot = world.space.load();
        let done = services::read(&snapshot, &world.context(), &body, &mut Encoder::new(&mut out));
        assert_eq!(done, Ok(Progress::Done));
    });
    assert_eq!(count, 0);
    let start = Instant::now();
    let rounds = 1_000u32;
    for _ in 0..rounds {
        out.clear();
        let snapshot = world.space.load();
        services::read(&snapshot, &world.context(), &body, &mut Encoder::new(&mut out)).unwrap();
    }
    println!("read: {:?} per value", start.elapsed() / rounds / (OPERATIONS + 2));
}

/// The server's share of Reads that need a manager: what is asked, and how the answers become messages.
#[test]
fn a_batch_of_on_demand_reads_allocates_little() {
    const READS: u32 = 64;
    let mut steps = builder();
    for tag in 1..=READS {
        let text = format!("Machine.Axis{tag}.Position");
        let double = standard(ids::data_type::DOUBLE);
        steps
            .variable(
                node(&text),
                objects(),
                name(&text),
                tag,
                double,
                DataValue::default(),
                3,
            )
            .on_demand(node(&text), 0.0);
    }
    let reader = |tags: &[u32]| Ok(tags.iter().map(|tag| DataValue::new(f64::from(*tag))).collect());
    let manager = TestManager {
        reader: Some(Box::new(reader)),
        ..TestManager::default()
    };
    let world = World::with(manager, Limits::default(), &steps);
    let bodies: Vec<Vec<u8>> = (1..=READS)
        .map(|tag| node(&format!("Machine.Axis{tag}.Position")))
        .map(|id| read_body(0.0, 2, &[read_value(&id, AttributeId::VALUE, "")]))
        .collect();
    let until = Until {
        mono: world.call.deadline,
        utc: world.call.deadline_utc,
    };
    let snapshot = world.space.snapshot();
    let mut out = Vec::with_capacity(64 * 1024);
    let mut together = || {
        out.clear();
        let mut batch = ReadBatch::new(
            Arc::clone(&snapshot),
            world.call.clone(),
            world.time,
            DecodeLimits::DEFAULT,
        );
        for body in &bodies {
            let first = services::read(&snapshot, &world.context(), body, &mut Encoder::new(&mut out));
            assert_eq!(first, Ok(Progress::MustWait));
            batch.push(body, until, 1 << 20).unwrap();
        }
        let mut asking = batch.ask();
        let mut answered = 0;
        while let Some(read) = block_on_here(asking.next()) {
            asking
                .answer(read, world.time.mono, &mut Encoder::new(&mut out))
                .unwrap();
            answered += 1;
        }
        assert_eq!(answered, READS);
    };
    let count = allocations(&mut together);
    assert!(count < u64::from(READS), "{count} allocations");
    let rounds = 1_000;
    let start = Instant::now();
    for _ in 0..rounds {
        together();
    }
    println!(
        "on demand, together: {:?} and {} allocations per Read",
        start.elapsed() / rounds / READS,
        count as f64 / f64::from(READS)
    );
}

/// As `block_on`, without a box.
fn block_on_here<T>(future: impl Future<Output = T>) -> T {
    match std::pin::pin!(future).poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("the future waits for something"),
    }
}

#[test]
fn writing_scalars_to_cells_allocates_nothing() {
    let world = world();
    let writes: Vec<WriteValue> = ids_of()
        .into_iter()
        .map(|node_id| WriteValue {
            node_id,
            attribute_id: 13,
            value: DataValue::new(1.5),
            ..WriteValue::default()
        })
        .collect();
    let mut body = Vec::new();
    writes.encode(&mut Encoder::new(&mut body));
    let mut out = Vec::with_capacity(64 * 1024);
    let count = allocations(|| {
        out.clear();
        let snapshot = world.space.load();
        let done = services::write(&snapshot, &world.context(), &body, &mut Encoder::new(&mut out));
        assert_eq!(done, Ok(Progress::Done));
    });
    assert_eq!(count, 0);
}

#[test]
fn publishing_scalars_allocates_nothing() {
    let world = world();
    let model = world.model();
    let count = allocations(|| {
        for tag in 1..=OPERATIONS {
            model.publish(tag, DataValue::new(2.5), now(3).utc).unwrap();
        }
    });
    assert_eq!(count, 0);
}

#[test]
fn a_large_model_loads_in_seconds_and_changes_at_once() {
    // Without optimisation a tenth must do.
    let count: u32 = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
    let space = common::bare(Limits::default());
    let mut steps = ModelBuilder::new(Limits::default(), now(1));
    for folder in 0..1_000 {
        let text = format!("F{folder}");
        steps.folder(node(&text), objects(), name(&text));
    }
    for tag in 1..=count {
        let text = format!("V{tag}");
        let parent = node(&format!("F{}", tag % 1_000));
        steps.variable(
            node(&text),
            parent,
            name(&text),
            tag,
            standard(ids::data_type::DOUBLE),
            DataValue::new(0.0),
            3,
        );
    }
    let start = Instant::now();
    let mut model = None;
    let measured = allocation_counter::measure(|| {
        model = Some(Model::empty().changed(&steps, &space.snapshot()).unwrap());
    });
    let (id, _) = space
        .attach(Arc::new(TestManager::default()) as Arc<dyn NodeManager>, model.unwrap())
        .unwrap();
    let loaded = start.elapsed();
    drop(steps);
    let held = u64::try_from(measured.bytes_current).unwrap() / u64::from(count);
    println!("{count} variables in {loaded:?}, {held} bytes each");
    assert!(held < 600, "{held} bytes for each variable");
    assert!(loaded.as_secs() < 20, "{loaded:?}");
    for text in ["One", "Two"] {
        let mut one = builder();
        one.variable(
            node(text),
            node("F7"),
            name(text),
            0,
            standard(ids::data_type::DOUBLE),
            DataValue::new(0.0),
            3,
        );
        let start = Instant::now();
        space.update(id, &one).unwrap();
        let changed = start.elapsed();
        println!("one more variable in {changed:?}");
        assert!(changed.as_millis() < 1_000, "{changed:?}");
    }
}
