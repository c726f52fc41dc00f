//! Namespace 0: that it is all there, how long it takes, and what the Server object says.

use std::time::Instant;

use crate::common::{World, bare, builder, forward, now, objects, standard};
use backplane_nodes::Limits;
use backplane_types::{
    AttributeId, BrowseDirection, NodeId, ServerState, ServerStatusDataType, StatusCode, Variant, ids,
};

#[test]
fn builds_quickly() {
    let start = Instant::now();
    let space = bare(Limits::default());
    let took = start.elapsed();
    let count = space.snapshot().node_count();
    println!("{count} nodes in {took:?}");
    assert!(count > 6_000, "{count} nodes");
    let bound = if cfg!(debug_assertions) { 5_000 } else { 100 };
    assert!(took.as_millis() < bound, "{took:?}");
}

#[test]
fn server_status_is_live() {
    let mut world = World::new(&builder());
    world.time = now(7);
    let current = standard(ids::variable::SERVER_SERVER_STATUS_CURRENT_TIME);
    let value = world.read(&current, AttributeId::VALUE);
    assert_eq!(value.value, Variant::DateTime(crate::common::time(7)));
    assert_eq!(value.source_timestamp, Some(crate::common::time(7)));
    world.time = now(8);
    assert_eq!(
        world.read(&current, AttributeId::VALUE).source_timestamp,
        Some(crate::common::time(8))
    );
    let Variant::ExtensionObject(object) = world.value(&standard(ids::variable::SERVER_SERVER_STATUS)) else {
        panic!("not a structure")
    };
    let status: ServerStatusDataType = object.decode_as().unwrap();
    assert_eq!(status.state, ServerState::RUNNING);
    assert_eq!(status.current_time, crate::common::time(8));
    assert_eq!(status.build_info.product_name.text(), "Backplane");
    assert_eq!(
        world.value(&standard(ids::variable::SERVER_SERVER_STATUS_STATE)),
        Variant::Int32(0)
    );
    assert_eq!(
        world.value(&standard(ids::variable::SERVER_SERVICE_LEVEL)),
        Variant::Byte(255)
    );
}

#[test]
fn arrays_and_limits_are_published() {
    let world = World::new(&builder());
    assert_eq!(
        world.value(&standard(ids::variable::SERVER_NAMESPACE_ARRAY)),
        crate::common::texts(&["http://opcfoundation.org/UA/", "urn:test:server", crate::common::URI])
    );
    assert_eq!(
        world.value(&standard(ids::variable::SERVER_SERVER_ARRAY)),
        crate::common::texts(&["urn:test:server"])
    );
    world.space.namespaces().register("urn:another").unwrap();
    let Variant::Array(array) = world.value(&standard(ids::variable::SERVER_NAMESPACE_ARRAY)) else {
        panic!()
    };
    assert_eq!(array.len(), 4);
    let read = standard(ids::variable::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_READ);
    assert_eq!(
        world.value(&read),
        Variant::UInt32(Limits::default().max_nodes_per_read)
    );
    let flag = standard(ids::variable::SERVER_SERVER_DIAGNOSTICS_ENABLED_FLAG);
    assert_eq!(world.value(&flag), Variant::Boolean(false));
}

#[test]
fn aggregate_functions_are_referenced_from_their_folder() {
    let mut world = World::new(&builder());
    let folder = standard(ids::object::SERVER_SERVER_CAPABILITIES_AGGREGATE_FUNCTIONS);
    let found = world.browse(&folder);
    let mut functions: Vec<_> = found
        .references
        .iter()
        .filter(|it| it.reference_type_id == standard(ids::reference_type::ORGANIZES))
        .map(|it| it.node_id.node_id.clone())
        .collect();
    functions.sort();
    let expected = [
        ids::object::AGGREGATE_FUNCTION_AVERAGE,
        ids::object::AGGREGATE_FUNCTION_COUNT,
    ]
    .map(standard);
    assert_eq!(functions, expected);
}

#[test]
fn every_variable_below_objects_has_a_value_or_a_reason() {
    let mut world = World::new(&builder());
    let mut open = vec![objects()];
    let mut seen = std::collections::HashSet::new();
    let mut variables = 0;
    while let Some(id) = open.pop() {
        for reference in world.browse(&id).references {
            let target = reference.node_id.node_id;
            if !seen.insert(target.clone()) {
                continue;
            }
            if reference.node_class.0 == 2 {
                variables += 1;
                let value = world.read(&target, AttributeId::VALUE);
                let explained = !value.value.is_empty() || value.status().is_bad();
                assert!(
                    explained,
                    "{target} {:?} has neither value nor reason",
                    reference.browse_name
                );
            }
            open.push(target);
        }
    }
    assert!(variables > 100, "{variables}");
}

#[test]
fn types_have_their_supertype_and_instances_their_definition() {
    let mut world = World::new(&builder());
    let mut inverse = forward(&standard(ids::object_type::FOLDER_TYPE));
    inverse.browse_direction = BrowseDirection::INVERSE;
    inverse.reference_type_id = standard(ids::reference_type::HAS_SUBTYPE);
    let result = world.browse_all(0, &[inverse]).unwrap().pop().unwrap();
    assert_eq!(result.references.len(), 1);
    assert_eq!(
        result.references[0].node_id.node_id,
        standard(ids::object_type::BASE_OBJECT_TYPE)
    );
    let root = world.browse(&standard(ids::object::ROOT_FOLDER));
    let names: Vec<_> = root
        .references
        .iter()
        .map(|r| r.browse_name.name.text().to_owned())
        .collect();
    assert_eq!(names, ["Objects", "Types", "Views"]);
    assert_eq!(
        root.references[0].type_definition.node_id,
        standard(ids::object_type::FOLDER_TYPE)
    );
}

#[test]
fn attributes_of_every_node_class_answer_or_refuse() {
    let world = World::new(&builder());
    let nodes = [
        ids::object::SERVER,
        ids::variable::SERVER_SERVER_STATUS,
        ids::method::SERVER_GET_MONITORED_ITEMS,
        ids::object_type::BASE_OBJECT_TYPE,
        ids::variable_type::BASE_VARIABLE_TYPE,
        ids::reference_type::ORGANIZES,
        ids::data_type::ARGUMENT,
    ];
    for number in nodes {
        for attribute in (0..30).map(AttributeId) {
            let value = world.read(&NodeId::numeric(0, number), attribute);
            let refused = matches!(
                value.status(),
                StatusCode::BAD_ATTRIBUTE_ID_INVALID | StatusCode::BAD_USER_ACCESS_DENIED
            );
            assert!(
                refused || value.status().is_good(),
                "i={number} attribute {attribute}: {}",
                value.status()
            );
            if (1..=7).contains(&attribute.0) {
                assert!(!refused, "i={number} attribute {attribute}");
            }
        }
    }
    let organizes = standard(ids::reference_type::ORGANIZES);
    assert!(!world.read(&organizes, AttributeId::INVERSE_NAME).value.is_empty());
    assert!(
        !world
            .read(&standard(ids::data_type::ARGUMENT), AttributeId::DATA_TYPE_DEFINITION)
            .value
            .is_empty()
    );
}
