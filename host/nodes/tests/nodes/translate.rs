//! TranslateBrowsePathsToNodeIds and RegisterNodes (Part 4, 5.9.4 to 5.9.6).

use backplane_nodes::{Limits, services};
use backplane_types::{
    BinaryDecode, BinaryEncode, BrowsePath, BrowsePathResult, DataValue, DecodeLimits, Decoder, Encoder, NodeId,
    QualifiedName, RelativePath, RelativePathElement, StatusCode, ids,
};

use crate::common::{TestManager, World, builder, list, name, node, objects, standard};

fn world() -> World {
    world_with(Limits::default())
}

fn world_with(limits: Limits) -> World {
    let mut steps = builder();
    steps
        .folder(node("Plant"), objects(), name("Plant"))
        .object(
            node("Motor"),
            node("Plant"),
            name("Motor"),
            standard(ids::object_type::BASE_OBJECT_TYPE),
        )
        .variable(
            node("Speed"),
            node("Motor"),
            name("Speed"),
            1,
            standard(ids::data_type::DOUBLE),
            DataValue::new(1.0),
            1,
        );
    for number in 0..5 {
        let id = node(&format!("Twin{number}"));
        steps.object(
            id,
            node("Motor"),
            name("Twin"),
            standard(ids::object_type::BASE_OBJECT_TYPE),
        );
    }
    World::with(TestManager::default(), limits, &steps)
}

fn element(target: QualifiedName) -> RelativePathElement {
    RelativePathElement {
        reference_type_id: standard(ids::reference_type::HIERARCHICAL_REFERENCES),
        is_inverse: false,
        include_subtypes: true,
        target_name: target,
    }
}

fn path(start: NodeId, names: &[&str]) -> BrowsePath {
    let elements = names.iter().map(|text| element(name(text))).collect();
    BrowsePath {
        starting_node: start,
        relative_path: RelativePath { elements },
    }
}

fn translate(world: &World, paths: &[BrowsePath]) -> Result<Vec<BrowsePathResult>, StatusCode> {
    let mut body = Vec::new();
    paths.encode(&mut Encoder::new(&mut body));
    let mut out = Vec::new();
    services::translate_browse_paths(
        &world.space.snapshot(),
        &world.context(),
        &body,
        &mut Encoder::new(&mut out),
    )?;
    Ok(list(&out))
}

fn status(world: &World, path: BrowsePath) -> StatusCode {
    translate(world, &[path]).unwrap()[0].status_code
}

#[test]
fn follows_names_across_managers() {
    let world = world();
    let result = translate(&world, &[path(objects(), &["Plant", "Motor", "Speed"])])
        .unwrap()
        .pop()
        .unwrap();
    assert_eq!(result.status_code, StatusCode::GOOD);
    assert_eq!(result.targets.len(), 1);
    assert_eq!(result.targets[0].target_id.node_id, node("Speed"));
    assert_eq!(result.targets[0].remaining_path_index, u32::MAX);
    let twins = translate(&world, &[path(node("Motor"), &["Twin"])])
        .unwrap()
        .pop()
        .unwrap();
    assert_eq!(twins.targets.len(), 5);
}

#[test]
fn follows_backwards_and_any_type() {
    let world = world();
    let mut up = path(node("Motor"), &["Plant"]);
    up.relative_path.elements[0].is_inverse = true;
    assert_eq!(status(&world, up.clone()), StatusCode::GOOD);
    up.relative_path.elements[0].reference_type_id = NodeId::NULL;
    assert_eq!(status(&world, up.clone()), StatusCode::GOOD);
    up.relative_path.elements[0].reference_type_id = standard(ids::reference_type::AGGREGATES);
    up.relative_path.elements[0].include_subtypes = false;
    assert_eq!(status(&world, up), StatusCode::BAD_NO_MATCH);
}

#[test]
fn refusals() {
    let world = world_with(Limits {
        max_nodes_per_translate: 2,
        max_browse_path_targets: 3,
        ..Limits::default()
    });
    assert_eq!(
        status(&world, path(node("Nowhere"), &["Plant"])),
        StatusCode::BAD_NODE_ID_UNKNOWN
    );
    assert_eq!(status(&world, path(objects(), &[])), StatusCode::BAD_NOTHING_TO_DO);
    assert_eq!(status(&world, path(objects(), &["Nowhere"])), StatusCode::BAD_NO_MATCH);
    assert_eq!(
        status(&world, path(objects(), &["Plant", "Nowhere"])),
        StatusCode::BAD_NO_MATCH
    );
    assert_eq!(
        status(&world, path(objects(), &["Plant", ""])),
        StatusCode::BAD_BROWSE_NAME_INVALID
    );
    assert_eq!(
        status(&world, path(node("Motor"), &["Twin"])),
        StatusCode::BAD_TOO_MANY_MATCHES
    );
    assert_eq!(
        status(&world, path(objects(), &["Plant"; 65])),
        StatusCode::BAD_QUERY_TOO_COMPLEX
    );
    let mut unknown = path(objects(), &["Plant"]);
    unknown.relative_path.elements[0].reference_type_id = node("Nowhere");
    assert_eq!(status(&world, unknown), StatusCode::BAD_NO_MATCH);
    let one = path(objects(), &["Plant"]);
    assert_eq!(translate(&world, &[]), Err(StatusCode::BAD_NOTHING_TO_DO));
    assert_eq!(
        translate(&world, &vec![one; 3]),
        Err(StatusCode::BAD_TOO_MANY_OPERATIONS)
    );
}

#[test]
fn registered_nodes_keep_their_ids() {
    let world = world_with(Limits {
        max_nodes_per_register_nodes: 2,
        ..Limits::default()
    });
    let register = |ids: &[NodeId]| {
        let mut body = Vec::new();
        ids.encode(&mut Encoder::new(&mut body));
        let mut out = Vec::new();
        let snapshot = world.space.snapshot();
        services::register_nodes(&snapshot, &world.context(), &body, &mut Encoder::new(&mut out))?;
        let mut empty = Vec::new();
        services::unregister_nodes(&snapshot, &world.context(), &body, &mut Encoder::new(&mut empty))?;
        assert!(empty.is_empty());
        let mut decoder = Decoder::new(&out, DecodeLimits::DEFAULT);
        let ids = Vec::<NodeId>::decode(&mut decoder).unwrap();
        assert!(decoder.is_empty());
        Ok(ids)
    };
    let ids = [node("Speed"), NodeId::numeric(0, 85)];
    assert_eq!(register(&ids), Ok(ids.to_vec()));
    assert_eq!(register(&[]), Err(StatusCode::BAD_NOTHING_TO_DO));
    assert_eq!(register(&[NodeId::NULL]), Err(StatusCode::BAD_NODE_ID_INVALID));
    assert_eq!(
        register(&vec![node("Speed"); 3]),
        Err(StatusCode::BAD_TOO_MANY_OPERATIONS)
    );
}

#[test]
fn managers_can_follow_names_too() {
    let world = world();
    let snapshot = world.space.snapshot();
    assert_eq!(
        snapshot.follow_names(&objects(), &[name("Plant"), name("Motor")]),
        Ok(node("Motor"))
    );
    assert_eq!(
        snapshot.follow_names(&objects(), &[name("Nowhere")]),
        Err(StatusCode::BAD_NO_MATCH)
    );
    assert_eq!(
        snapshot.follow_names(&node("Nowhere"), &[]),
        Err(StatusCode::BAD_NODE_ID_UNKNOWN)
    );
}
