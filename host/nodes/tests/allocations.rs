//! That the request path allocates nothing, and how much a large model costs. Alone in its binary: the counter replaces the allocator.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "nodes/common.rs"]
#[allow(dead_code, reason = "shared with the other test binary")]
mod common;

use std::time::Instant;

use backplane_nodes::services::{self, Progress};
use backplane_nodes::{Limits, Model, ModelBuilder, NodeManager};
use backplane_types::{
    AttributeId, BinaryEncode, DataValue, Encoder, NodeId, QualifiedName, ReadValueId, WriteValue, ids,
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
        .attach(
            std::sync::Arc::new(TestManager::default()) as std::sync::Arc<dyn NodeManager>,
            model.unwrap(),
        )
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
