//! Bodies that nobody would send: no service may panic, and what it answers as done must decode.

use backplane_nodes::Limits;
use std::cell::RefCell;

use backplane_nodes::services::{self, ContinuationPoints, Progress};
use backplane_types::{AttributeId, DataValue, Encoder, QualifiedName, StatusCode, Variant, ids};
use proptest::prelude::*;

use crate::common::{
    TestManager, World, block_on, builder, forward, name, node, objects, read_body, read_value, standard,
};

fn world() -> World {
    let mut steps = builder();
    steps
        .variable(
            node("A"),
            objects(),
            name("A"),
            1,
            standard(ids::data_type::INT32),
            DataValue::new(vec![1i32, 2, 3]),
            3,
        )
        .variable(
            node("B"),
            objects(),
            name("B"),
            2,
            standard(ids::data_type::BASE_DATA_TYPE),
            DataValue::new("b"),
            0xffff,
        )
        .variable(
            node("D"),
            objects(),
            name("D"),
            3,
            standard(ids::data_type::INT32),
            DataValue::default(),
            3,
        )
        .on_demand(node("D"), 1.0);
    let reader = |tags: &[u32]| Ok(tags.iter().map(|tag| DataValue::new(*tag as i32)).collect());
    World::with(
        TestManager {
            reader: Some(Box::new(reader)),
            ..TestManager::default()
        },
        Limits::default(),
        &steps,
    )
}

/// Every service on one body.
fn all(world: &World, body: &[u8]) {
    let snapshot = world.space.snapshot();
    let cx = world.context();
    let mut points = ContinuationPoints::new();
    let mut out = Vec::new();
    if services::read(&snapshot, &cx, body, &mut Encoder::new(&mut out)) == Ok(Progress::MustWait) {
        assert!(out.is_empty());
        let _ = block_on(services::read_waiting(&snapshot, &cx, body, &mut out));
    }
    let mut out = Vec::new();
    if services::write(&snapshot, &cx, body, &mut Encoder::new(&mut out)) == Ok(Progress::MustWait) {
        let _ = block_on(services::write_waiting(&snapshot, &cx, body, &mut out));
    }
    if services::call(&snapshot, &cx, body, &mut Encoder::new(&mut Vec::new())) == Ok(Progress::MustWait) {
        let _ = block_on(services::call_waiting(&snapshot, &cx, body, &mut Vec::new()));
    }
    let _ = services::browse(&snapshot, &cx, &mut points, body, &mut Encoder::new(&mut Vec::new()));
    let _ = services::browse_next(&snapshot, &cx, &mut points, body, &mut Encoder::new(&mut Vec::new()));
    let _ = services::translate_browse_paths(&snapshot, &cx, body, &mut Encoder::new(&mut Vec::new()));
    let _ = services::register_nodes(&snapshot, &cx, body, &mut Encoder::new(&mut Vec::new()));
    let _ = services::unregister_nodes(&snapshot, &cx, body, &mut Encoder::new(&mut Vec::new()));
}

thread_local! {
    static WORLD: RefCell<World> = RefCell::new(world());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        WORLD.with_borrow(|world| all(world, &body));
    }

    #[test]
    fn damaged_reads(place in 0usize..200, byte in any::<u8>(), range in "[0-9:,]{0,8}", attribute in 0u32..40) {
        let operations = [
            read_value(&node("A"), AttributeId(attribute), &range),
            read_value(&node("D"), AttributeId::VALUE, &range),
            read_value(&standard(2256), AttributeId::VALUE, ""),
        ];
        let mut body = read_body(0.0, 2, &operations);
        if let Some(there) = body.get_mut(place) {
            *there = byte;
        }
        WORLD.with_borrow(|world| all(world, &body));
    }

    #[test]
    fn random_ranges_of_writes(range in "[0-9:,]{0,8}", length in 0usize..5, text in ".{0,6}") {
        WORLD.with_borrow(|world| {
            let part = DataValue::new(vec![9i32; length]);
            let status = world.write_value(&node("A"), &range, part);
            let Variant::Array(array) = world.value(&node("A")) else { panic!("{range}") };
            // Only a write without a range may change the length.
            prop_assert!(!range.is_empty() || status == StatusCode::GOOD);
            prop_assert!(range.is_empty() || array.len() <= 5);
            world.write_value(&node("B"), &range, DataValue::new(text.as_str()));
            Ok(())
        })?;
    }

    #[test]
    fn pages_of_any_size_show_every_reference_once(size in 1u32..40) {
        WORLD.with(|world| {
            let mut world = world.borrow_mut();
            let server = standard(ids::object::SERVER);
            let whole = world.browse(&server).references;
            let mut result = world.browse_all(size, &[forward(&server)]).unwrap().pop().unwrap();
            let mut pieces = result.references;
            while !result.continuation_point.is_null() {
                let point = result.continuation_point.bytes().to_vec();
                result = world.browse_next(false, &[&point]).unwrap().pop().unwrap();
                pieces.append(&mut result.references);
            }
            prop_assert_eq!(pieces, whole);
            Ok(())
        })?;
    }

    #[test]
    fn resolving_never_panics(range in ".{0,10}", encoding in ".{0,10}", attribute in any::<u32>()) {
        WORLD.with_borrow(|world| {
            for id in [node("A"), node("B"), node("D"), objects()] {
                let encoding = QualifiedName::new(0, encoding.as_str());
                let _ = world.space.snapshot().resolve(&world.call, &id, AttributeId(attribute), &range, &encoding);
            }
        });
    }
}
