//! Resolved sources, as monitored items hold them.

use backplane_nodes::{Limits, services};
use backplane_types::{AttributeId, DataValue, NodeId, QualifiedName, StatusCode, Variant, ids};

use crate::common::{TestManager, World, block_on, builder, name, node, now, objects, standard, time};

fn world() -> World {
    let mut steps = builder();
    steps
        .variable(
            node("V"),
            objects(),
            name("V"),
            1,
            standard(ids::data_type::INT32),
            DataValue::new(vec![1i32, 2, 3]),
            3,
        )
        .variable(
            node("D"),
            objects(),
            name("D"),
            2,
            standard(ids::data_type::INT32),
            DataValue::default(),
            3,
        )
        .on_demand(node("D"), 250.0)
        .variable(
            node("W"),
            objects(),
            name("W"),
            3,
            standard(ids::data_type::INT32),
            DataValue::new(1i32),
            2,
        );
    let reader = |tags: &[u32]| Ok(tags.iter().map(|tag| DataValue::new(*tag as i32 + 40)).collect());
    World::with(
        TestManager {
            reader: Some(Box::new(reader)),
            ..TestManager::default()
        },
        Limits::default(),
        &steps,
    )
}

fn resolve(
    world: &World,
    id: &NodeId,
    attribute: AttributeId,
    range: &str,
) -> Result<backplane_nodes::ReadSource, StatusCode> {
    world
        .space
        .snapshot()
        .resolve(&world.call, id, attribute, range, &QualifiedName::NULL)
}

#[test]
fn a_cell_tells_by_its_version() {
    let world = world();
    let source = resolve(&world, &node("V"), AttributeId::VALUE, "1:2").unwrap();
    let version = source.version().unwrap();
    assert_eq!(source.read(now(5)).unwrap().value, Variant::from(vec![2, 3]));
    assert_eq!(source.version(), Some(version));
    world.publish(1, vec![7i32]);
    assert_ne!(source.version(), Some(version));
    let short = source.read(now(5)).unwrap();
    assert_eq!(short.status(), StatusCode::BAD_INDEX_RANGE_NO_DATA);
    assert!(short.value.is_empty());
    assert!(source.is_same(&resolve(&world, &node("V"), AttributeId::VALUE, "1:2").unwrap()));
    assert!(!source.is_same(&resolve(&world, &node("V"), AttributeId::VALUE, "").unwrap()));
}

#[test]
fn on_demand_sources_name_manager_and_tag() {
    let world = world();
    let source = resolve(&world, &node("D"), AttributeId::VALUE, "").unwrap();
    assert_eq!(source.on_demand(), Some((world.id, 2)));
    assert_eq!((source.version(), source.read(now(5))), (None, None));
    let snapshot = world.space.snapshot();
    let values = block_on(services::sample(&snapshot, &world.call, world.id, &[2, 2], 0.0, now(5)));
    assert_eq!(values.len(), 2);
    assert_eq!(source.cut(values[0].clone()).value, Variant::Int32(42));
    assert_eq!(values[0].source_timestamp, Some(time(5)));
    assert_eq!(snapshot.minimum_sampling(&node("D"), AttributeId::VALUE), 250.0);
    assert_eq!(snapshot.minimum_sampling(&node("V"), AttributeId::VALUE), 0.0);
}

#[test]
fn live_and_other_attributes() {
    let world = world();
    let current = standard(ids::variable::SERVER_SERVER_STATUS_CURRENT_TIME);
    let source = resolve(&world, &current, AttributeId::VALUE, "").unwrap();
    assert_eq!(source.version(), None);
    assert_eq!(source.read(now(6)).unwrap().value, Variant::DateTime(time(6)));
    let source = resolve(&world, &node("V"), AttributeId::BROWSE_NAME, "").unwrap();
    assert_eq!(source.version(), Some(0));
    assert_eq!(source.read(now(6)).unwrap().value, Variant::from(name("V")));
}

#[test]
fn refusals() {
    let world = world();
    let status = |id: &NodeId, attribute, range: &str| resolve(&world, id, attribute, range).unwrap_err();
    assert_eq!(
        status(&node("Nowhere"), AttributeId::VALUE, ""),
        StatusCode::BAD_NODE_ID_UNKNOWN
    );
    assert_eq!(
        status(&node("V"), AttributeId(77), ""),
        StatusCode::BAD_ATTRIBUTE_ID_INVALID
    );
    assert_eq!(
        status(&objects(), AttributeId::VALUE, ""),
        StatusCode::BAD_ATTRIBUTE_ID_INVALID
    );
    assert_eq!(status(&node("W"), AttributeId::VALUE, ""), StatusCode::BAD_NOT_READABLE);
    assert_eq!(
        status(&node("V"), AttributeId::VALUE, "2:1"),
        StatusCode::BAD_INDEX_RANGE_INVALID
    );
    assert_eq!(
        status(&node("V"), AttributeId::DISPLAY_NAME, "0"),
        StatusCode::BAD_INDEX_RANGE_NO_DATA
    );
}
