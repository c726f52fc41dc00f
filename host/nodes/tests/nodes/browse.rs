//! Browse and BrowseNext: filters, paging and continuation points (Part 4, 5.9.2, 5.9.3 and 7.9).

use backplane_nodes::{Limits, ModelBuilder};
use backplane_types::{
    BrowseDescription, BrowseDirection, BrowseResult, DataValue, NodeId, ReferenceDescription, StatusCode, ids,
};

use crate::common::{TestManager, World, builder, forward, name, node, objects, standard};

fn folder_of(children: u32) -> ModelBuilder {
    let mut steps = builder();
    steps.folder(node("Big"), objects(), name("Big"));
    for number in 0..children {
        let text = format!("V{number}");
        steps.variable(
            node(&text),
            node("Big"),
            name(&text),
            0,
            standard(ids::data_type::INT32),
            DataValue::new(1i32),
            1,
        );
    }
    steps
}

fn with_limits(limits: Limits, children: u32) -> World {
    World::with(TestManager::default(), limits, &folder_of(children))
}

fn point(result: &BrowseResult) -> Vec<u8> {
    result.continuation_point.bytes().to_vec()
}

fn names(references: &[ReferenceDescription]) -> Vec<String> {
    references
        .iter()
        .map(|reference| reference.browse_name.name.text().to_owned())
        .collect()
}

#[test]
fn pages_through_everything_once() {
    let mut world = with_limits(Limits::default(), 1_000);
    let mut result = world.browse_all(10, &[forward(&node("Big"))]).unwrap().pop().unwrap();
    let mut seen = names(&result.references);
    let mut pages = 1;
    while !result.continuation_point.is_null() {
        assert_eq!(result.references.len(), 10);
        let next = point(&result);
        result = world.browse_next(false, &[&next]).unwrap().pop().unwrap();
        assert_eq!(result.status_code, StatusCode::GOOD);
        seen.extend(names(&result.references));
        pages += 1;
    }
    assert_eq!(pages, 100);
    let wanted: Vec<String> = (0..1_000).map(|number| format!("V{number}")).collect();
    assert_eq!(seen, wanted);
    assert!(world.points.is_empty());
}

#[test]
fn an_exact_page_needs_no_continuation() {
    let mut world = with_limits(Limits::default(), 10);
    let result = world.browse_all(10, &[forward(&node("Big"))]).unwrap().pop().unwrap();
    assert_eq!(result.references.len(), 10);
    assert!(result.continuation_point.is_null());
}

#[test]
fn the_servers_own_limit_counts_too() {
    let mut world = with_limits(
        Limits {
            max_references_per_node: 7,
            ..Limits::default()
        },
        20,
    );
    for asked in [0, 100] {
        let result = world
            .browse_all(asked, &[forward(&node("Big"))])
            .unwrap()
            .pop()
            .unwrap();
        assert_eq!(result.references.len(), 7);
    }
}

#[test]
fn a_point_is_valid_once() {
    let mut world = with_limits(Limits::default(), 30);
    let first = world.browse_all(10, &[forward(&node("Big"))]).unwrap().pop().unwrap();
    let point = point(&first);
    assert_eq!(
        world.browse_next(false, &[&point]).unwrap()[0].status_code,
        StatusCode::GOOD
    );
    assert_eq!(
        world.browse_next(false, &[&point]).unwrap()[0].status_code,
        StatusCode::BAD_CONTINUATION_POINT_INVALID
    );
    for wrong in [&b""[..], b"x", b"0123456789", &[0xff; 8]] {
        let result = world.browse_next(false, &[wrong]).unwrap().pop().unwrap();
        assert_eq!(result.status_code, StatusCode::BAD_CONTINUATION_POINT_INVALID);
    }
    assert_eq!(world.browse_next(false, &[]), Err(StatusCode::BAD_NOTHING_TO_DO));
}

#[test]
fn released_points_are_gone() {
    let mut world = with_limits(Limits::default(), 30);
    let first = world.browse_all(10, &[forward(&node("Big"))]).unwrap().pop().unwrap();
    let point = point(&first);
    let released = world.browse_next(true, &[&point]).unwrap().pop().unwrap();
    assert_eq!(released.status_code, StatusCode::GOOD);
    assert!(released.references.is_empty() && released.continuation_point.is_null());
    assert!(world.points.is_empty());
    assert_eq!(
        world.browse_next(true, &[&point]).unwrap()[0].status_code,
        StatusCode::BAD_CONTINUATION_POINT_INVALID
    );
}

#[test]
fn the_oldest_point_gives_way_exactly_at_the_limit() {
    let mut world = with_limits(
        Limits {
            max_browse_continuation_points: 3,
            ..Limits::default()
        },
        30,
    );
    let points: Vec<Vec<u8>> = (0..4)
        .map(|_| point(&world.browse_all(10, &[forward(&node("Big"))]).unwrap()[0]))
        .collect();
    assert_eq!(world.points.len(), 3);
    let statuses: Vec<StatusCode> = points
        .iter()
        .map(|point| world.browse_next(true, &[point]).unwrap()[0].status_code)
        .collect();
    assert_eq!(
        statuses,
        [
            StatusCode::BAD_CONTINUATION_POINT_INVALID,
            StatusCode::GOOD,
            StatusCode::GOOD,
            StatusCode::GOOD
        ]
    );
}

#[test]
fn within_one_response_there_are_no_more_points_than_the_limit() {
    let mut world = with_limits(
        Limits {
            max_browse_continuation_points: 3,
            ..Limits::default()
        },
        30,
    );
    // Points of an earlier request give way.
    world.browse_all(10, &vec![forward(&node("Big")); 3]).unwrap();
    let results = world.browse_all(10, &vec![forward(&node("Big")); 5]).unwrap();
    let statuses: Vec<StatusCode> = results.iter().map(|result| result.status_code).collect();
    let full = StatusCode::BAD_NO_CONTINUATION_POINTS;
    assert_eq!(
        statuses,
        [StatusCode::GOOD, StatusCode::GOOD, StatusCode::GOOD, full, full]
    );
    assert!(results[3].references.is_empty());
    assert_eq!(world.points.len(), 3);
}

#[test]
fn paging_goes_on_over_a_change() {
    let mut world = with_limits(Limits::default(), 30);
    let first = world.browse_all(20, &[forward(&node("Big"))]).unwrap().pop().unwrap();
    let mut steps = builder();
    steps.remove(node("V0"));
    world.space.update(world.id, &steps).unwrap();
    let rest = world.browse_next(false, &[&point(&first)]).unwrap().pop().unwrap();
    assert_eq!(names(&rest.references).first().map(String::as_str), Some("V20"));
    assert_eq!(rest.references.len(), 10);
}

#[test]
fn filters() {
    let mut steps = folder_of(2);
    steps
        .object(
            node("O"),
            node("Big"),
            name("O"),
            standard(ids::object_type::BASE_OBJECT_TYPE),
        )
        .property(
            node("P"),
            node("Big"),
            name("P"),
            0,
            standard(ids::data_type::STRING),
            DataValue::new("p"),
        )
        .reference(node("O"), standard(ids::reference_type::HAS_EFFECT), true, node("V0"));
    let mut world = World::new(&steps);
    let base = forward(&node("Big"));
    let mut browse = |change: &dyn Fn(&mut BrowseDescription)| {
        let mut description = base.clone();
        change(&mut description);
        let result = world.browse_all(0, &[description]).unwrap().pop().unwrap();
        assert_eq!(result.status_code, StatusCode::GOOD);
        let mut found = names(&result.references);
        found.sort();
        found.join(" ")
    };
    assert_eq!(browse(&|_| {}), "O P V0 V1");
    assert_eq!(browse(&|d| d.node_class_mask = 2), "P V0 V1");
    assert_eq!(browse(&|d| d.node_class_mask = 1), "O");
    assert_eq!(
        browse(&|d| d.reference_type_id = standard(ids::reference_type::HAS_PROPERTY)),
        "P"
    );
    assert_eq!(
        browse(&|d| d.reference_type_id = standard(ids::reference_type::AGGREGATES)),
        "O P V0 V1"
    );
    assert_eq!(
        browse(&|d| {
            d.reference_type_id = standard(ids::reference_type::AGGREGATES);
            d.include_subtypes = false;
        }),
        ""
    );
    assert_eq!(browse(&|d| d.browse_direction = BrowseDirection::INVERSE), "Objects");
    assert_eq!(browse(&|d| d.reference_type_id = NodeId::NULL), "FolderType O P V0 V1");
    assert_eq!(
        browse(&|d| {
            d.browse_direction = BrowseDirection::BOTH;
            d.reference_type_id = NodeId::NULL;
        }),
        "FolderType O Objects P V0 V1"
    );
    assert_eq!(
        browse(&|d| {
            d.node_id = node("V0");
            d.browse_direction = BrowseDirection::INVERSE;
            d.reference_type_id = NodeId::NULL;
        }),
        "Big O"
    );
}

#[test]
fn result_mask_leaves_fields_out() {
    let mut world = with_limits(Limits::default(), 1);
    let mut masked = |mask: u32| {
        let description = BrowseDescription {
            result_mask: mask,
            ..forward(&node("Big"))
        };
        world
            .browse_all(0, &[description])
            .unwrap()
            .pop()
            .unwrap()
            .references
            .pop()
            .unwrap()
    };
    let all = masked(63);
    assert_eq!(all.node_id.node_id, node("V0"));
    assert_eq!(all.reference_type_id, standard(ids::reference_type::HAS_COMPONENT));
    assert!(all.is_forward);
    assert_eq!((all.browse_name, all.display_name.text.text()), (name("V0"), "V0"));
    assert_eq!(all.node_class.0, 2);
    assert_eq!(
        all.type_definition.node_id,
        standard(ids::variable_type::BASE_DATA_VARIABLE_TYPE)
    );
    let none = masked(0);
    assert_eq!(
        none,
        ReferenceDescription {
            node_id: node("V0").into(),
            ..ReferenceDescription::default()
        }
    );
    assert_eq!(
        masked(8),
        ReferenceDescription {
            browse_name: name("V0"),
            ..none
        }
    );
}

#[test]
fn refusals() {
    let mut world = with_limits(
        Limits {
            max_nodes_per_browse: 3,
            ..Limits::default()
        },
        1,
    );
    let mut status = |change: &dyn Fn(&mut BrowseDescription)| {
        let mut description = forward(&node("Big"));
        change(&mut description);
        world.browse_all(0, &[description]).unwrap()[0].status_code
    };
    assert_eq!(
        status(&|d| d.node_id = node("Nowhere")),
        StatusCode::BAD_NODE_ID_UNKNOWN
    );
    assert_eq!(status(&|d| d.node_id = NodeId::NULL), StatusCode::BAD_NODE_ID_UNKNOWN);
    assert_eq!(
        status(&|d| d.browse_direction = BrowseDirection(3)),
        StatusCode::BAD_BROWSE_DIRECTION_INVALID
    );
    assert_eq!(
        status(&|d| d.browse_direction = BrowseDirection(-1)),
        StatusCode::BAD_BROWSE_DIRECTION_INVALID
    );
    assert_eq!(
        status(&|d| d.reference_type_id = node("Nowhere")),
        StatusCode::BAD_REFERENCE_TYPE_ID_INVALID
    );
    assert_eq!(
        status(&|d| d.reference_type_id = objects()),
        StatusCode::BAD_REFERENCE_TYPE_ID_INVALID
    );
    let one = forward(&node("Big"));
    assert_eq!(world.browse_all(0, &[]), Err(StatusCode::BAD_NOTHING_TO_DO));
    assert_eq!(
        world.browse_all(0, &vec![one.clone(); 4]),
        Err(StatusCode::BAD_TOO_MANY_OPERATIONS)
    );
    assert_eq!(
        world.browse_view(node("Nowhere"), 0, std::slice::from_ref(&one)),
        Err(StatusCode::BAD_VIEW_ID_UNKNOWN)
    );
    assert_eq!(
        world.browse_view(objects(), 0, &[one]),
        Err(StatusCode::BAD_VIEW_ID_UNKNOWN)
    );
}

#[test]
fn a_view_can_be_named() {
    let mut steps = folder_of(1);
    steps.view(node("View"), standard(ids::object::VIEWS_FOLDER), name("View"));
    let mut world = World::new(&steps);
    let results = world.browse_view(node("View"), 0, &[forward(&node("Big"))]).unwrap();
    assert_eq!(results[0].references.len(), 1);
}

#[test]
fn the_folder_of_another_manager_shows_what_hangs_on_it() {
    let mut world = with_limits(Limits::default(), 1);
    assert!(names(&world.browse(&objects()).references).contains(&"Big".to_owned()));
    world.space.detach(world.id).unwrap();
    assert!(!names(&world.browse(&objects()).references).contains(&"Big".to_owned()));
    assert_eq!(world.browse(&node("Big")).status_code, StatusCode::BAD_NODE_ID_UNKNOWN);
}

/// Answers are remembered; nobody may notice.
#[test]
fn asking_again_gives_what_is_there_now() {
    let mut world = with_limits(Limits::default(), 3);
    for _ in 0..4 {
        assert_eq!(names(&world.browse(&node("Big")).references), ["V0", "V1", "V2"]);
    }
    let mut steps = builder();
    steps.remove(node("V1"));
    world.space.update(world.id, &steps).unwrap();
    for _ in 0..4 {
        assert_eq!(names(&world.browse(&node("Big")).references), ["V0", "V2"]);
    }
    let both = [forward(&node("Big")), forward(&node("V0")), forward(&node("Big"))];
    for _ in 0..4 {
        let results = world.browse_all(0, &both).unwrap();
        assert_eq!(names(&results[0].references), ["V0", "V2"]);
        assert_eq!(results[0], results[2]);
        assert_ne!(results[1], results[2]);
    }
}

#[test]
fn every_answer_that_is_cut_has_a_point_of_its_own() {
    let mut world = with_limits(Limits::default(), 3);
    let mut points = Vec::new();
    for _ in 0..4 {
        let result = world.browse_all(2, &[forward(&node("Big"))]).unwrap().pop().unwrap();
        assert_eq!(result.references.len(), 2);
        points.push(point(&result));
    }
    for point in points {
        let rest = world.browse_next(false, &[&point]).unwrap().pop().unwrap();
        assert_eq!(names(&rest.references), ["V2"]);
    }
}
