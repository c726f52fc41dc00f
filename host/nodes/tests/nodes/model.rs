//! Models: what steps make, what they refuse and how they say it, and changes on top of changes.

use std::sync::Arc;

use backplane_nodes::{AttachError, ChangeError, Limits, Model, ModelBuilder, NodeManager, UpdateError};
use backplane_types::{
    ArrayValues, AttributeId, BrowseDescription, BrowseDirection, DataValue, EUInformation, EnumDefinition, EnumField,
    ExtensionObject, LocalizedText, NodeId, QualifiedName, Range, StatusCode, StructureDefinition, Variant, ids,
};

use crate::common::{
    NS, TestManager, World, bare, builder, forward, name, node, now, objects, standard, standard_nodes, time,
};

fn plant() -> ModelBuilder {
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
            3,
        )
        .property(
            node("Serial"),
            node("Motor"),
            name("Serial"),
            2,
            standard(ids::data_type::STRING),
            DataValue::new("A1"),
        );
    steps
}

fn refused(steps: &ModelBuilder) -> ChangeError {
    Model::empty().changed(steps, &standard_nodes()).unwrap_err()
}

fn inverse(id: &NodeId, kind: u32) -> BrowseDescription {
    BrowseDescription {
        browse_direction: BrowseDirection::INVERSE,
        reference_type_id: standard(kind),
        ..forward(id)
    }
}

#[test]
fn parents_refer_by_the_right_type() {
    let mut world = World::new(&plant());
    let mut kinds = |id: &NodeId| -> Vec<NodeId> {
        let result = world
            .browse_all(0, &[inverse(id, ids::reference_type::HIERARCHICAL_REFERENCES)])
            .unwrap();
        result[0]
            .references
            .iter()
            .map(|reference| reference.reference_type_id.clone())
            .collect()
    };
    assert_eq!(kinds(&node("Plant")), [standard(ids::reference_type::ORGANIZES)]);
    assert_eq!(kinds(&node("Motor")), [standard(ids::reference_type::HAS_COMPONENT)]);
    assert_eq!(kinds(&node("Speed")), [standard(ids::reference_type::HAS_COMPONENT)]);
    assert_eq!(kinds(&node("Serial")), [standard(ids::reference_type::HAS_PROPERTY)]);
}

#[test]
fn shape_follows_the_first_value_until_it_is_given() {
    let mut steps = builder();
    let matrix = backplane_types::Array::matrix(ArrayValues::Int32(vec![0; 6]), vec![2, 3]).unwrap();
    let int = || standard(ids::data_type::INT32);
    steps
        .variable(node("S"), objects(), name("S"), 0, int(), DataValue::new(1i32), 1)
        .variable(node("A"), objects(), name("A"), 0, int(), DataValue::new(vec![1i32]), 1)
        .variable(node("M"), objects(), name("M"), 0, int(), DataValue::new(matrix), 1)
        .variable(node("E"), objects(), name("E"), 0, int(), DataValue::default(), 1)
        .variable(node("G"), objects(), name("G"), 0, int(), DataValue::default(), 1)
        .attribute(node("G"), AttributeId::VALUE_RANK, Variant::Int32(2))
        .attribute(node("G"), AttributeId::ARRAY_DIMENSIONS, Variant::from(vec![0u32, 0]));
    let world = World::new(&steps);
    let shape = |id: &str| {
        let rank = world.read(&node(id), AttributeId::VALUE_RANK).value;
        let dimensions = world.read(&node(id), AttributeId::ARRAY_DIMENSIONS);
        (rank, dimensions.value)
    };
    assert_eq!(shape("S"), (Variant::Int32(-1), Variant::Empty));
    assert_eq!(shape("A"), (Variant::Int32(1), Variant::from(vec![0u32])));
    assert_eq!(shape("M"), (Variant::Int32(2), Variant::from(vec![0u32, 0])));
    assert_eq!(shape("E"), (Variant::Int32(-1), Variant::Empty));
    assert_eq!(shape("G"), (Variant::Int32(2), Variant::from(vec![0u32, 0])));
}

#[test]
fn a_refusal_names_the_step() {
    let mut steps = plant();
    steps.variable(
        node("Late"),
        node("Nowhere"),
        name("Late"),
        3,
        standard(ids::data_type::INT32),
        DataValue::default(),
        1,
    );
    let error = refused(&steps);
    assert_eq!((error.step, error.status), (5, StatusCode::BAD_PARENT_NODE_ID_INVALID));
    assert_eq!(error.what, format!("variable {}", node("Late")));
    assert!(error.detail.contains("Nowhere"), "{error}");
}

fn done(_: &mut ModelBuilder) {}

#[test]
fn every_refusal() {
    let int = || standard(ids::data_type::INT32);
    let base = || standard(ids::object_type::BASE_OBJECT_TYPE);
    let check = |status: StatusCode, make: &dyn Fn(&mut ModelBuilder)| {
        let mut steps = plant();
        make(&mut steps);
        let error = refused(&steps);
        assert_eq!((error.step, error.status), (steps.len(), status), "{error}");
    };
    check(StatusCode::BAD_NODE_ID_EXISTS, &|s| {
        done(s.folder(node("Plant"), objects(), name("P")))
    });
    check(StatusCode::BAD_NODE_ID_EXISTS, &|s| {
        done(s.folder(standard(85), objects(), name("P")))
    });
    check(StatusCode::BAD_NODE_ID_INVALID, &|s| {
        done(s.folder(NodeId::NULL, objects(), name("P")))
    });
    check(StatusCode::BAD_BROWSE_NAME_INVALID, &|s| {
        done(s.folder(node("F"), objects(), name("")))
    });
    check(StatusCode::BAD_BROWSE_NAME_INVALID, &|s| {
        done(s.folder(node("F"), objects(), name(&"x".repeat(5_000))))
    });
    check(StatusCode::BAD_PARENT_NODE_ID_INVALID, &|s| {
        done(s.folder(node("F"), node("Speed"), name("F")))
    });
    check(StatusCode::BAD_PARENT_NODE_ID_INVALID, &|s| {
        done(s.method(node("F"), node("Speed"), name("F"), 9, vec![], vec![]))
    });
    check(StatusCode::BAD_PARENT_NODE_ID_INVALID, &|s| {
        done(s.object_type(node("F"), node("Motor"), name("F")))
    });
    check(StatusCode::BAD_TYPE_DEFINITION_INVALID, &|s| {
        done(s.object(node("F"), objects(), name("F"), node("Nowhere")))
    });
    check(StatusCode::BAD_TYPE_DEFINITION_INVALID, &|s| {
        done(s.object(node("F"), objects(), name("F"), int()))
    });
    check(StatusCode::BAD_DATA_TYPE_ID_UNKNOWN, &|s| {
        done(s.variable(
            node("F"),
            objects(),
            name("F"),
            0,
            node("Nowhere"),
            DataValue::default(),
            1,
        ))
    });
    check(StatusCode::BAD_DATA_TYPE_ID_UNKNOWN, &|s| {
        done(s.variable(node("F"), objects(), name("F"), 0, base(), DataValue::default(), 1))
    });
    check(StatusCode::BAD_NODE_ATTRIBUTES_INVALID, &|s| {
        done(s.variable(node("F"), objects(), name("F"), 1, int(), DataValue::default(), 1))
    });
    check(StatusCode::BAD_TYPE_MISMATCH, &|s| {
        done(s.variable(node("F"), objects(), name("F"), 9, int(), DataValue::new("text"), 1))
    });
    check(StatusCode::BAD_NODE_ID_UNKNOWN, &|s| {
        done(s.on_demand(node("Nowhere"), 1.0))
    });
    check(StatusCode::BAD_NODE_CLASS_INVALID, &|s| {
        done(s.on_demand(node("Motor"), 1.0))
    });
    check(StatusCode::BAD_NODE_ATTRIBUTES_INVALID, &|s| {
        done(s.on_demand(node("Speed"), f64::NAN))
    });
    check(StatusCode::BAD_NODE_ATTRIBUTES_INVALID, &|s| {
        done(s.analog(node("Speed"), 1.0, 0.0, ""))
    });
    check(StatusCode::BAD_NODE_ATTRIBUTES_INVALID, &|s| {
        done(s.analog(node("Speed"), 0.0, 1.0, "no such unit"))
    });
    check(StatusCode::BAD_NODE_ATTRIBUTES_INVALID, &|s| {
        done(s.analog(node("Serial"), 0.0, 1.0, "CEL"))
    });
    check(StatusCode::BAD_ATTRIBUTE_ID_INVALID, &|s| {
        done(s.attribute(node("Motor"), AttributeId::VALUE_RANK, Variant::Int32(1)))
    });
    check(StatusCode::BAD_ATTRIBUTE_ID_INVALID, &|s| {
        done(s.attribute(node("Motor"), AttributeId::NODE_ID, Variant::Int32(1)))
    });
    check(StatusCode::BAD_TYPE_MISMATCH, &|s| {
        done(s.attribute(node("Motor"), AttributeId::DISPLAY_NAME, Variant::Int32(1)))
    });
    check(StatusCode::BAD_NODE_ATTRIBUTES_INVALID, &|s| {
        done(s.attribute(node("Speed"), AttributeId::VALUE_RANK, Variant::Int32(-4)))
    });
    check(StatusCode::BAD_TYPE_MISMATCH, &|s| {
        done(s.attribute(node("Speed"), AttributeId::VALUE_RANK, Variant::Int32(1)))
    });
    check(StatusCode::BAD_REFERENCE_TYPE_ID_INVALID, &|s| {
        done(s.reference(node("Motor"), node("Nowhere"), true, node("Plant")))
    });
    check(StatusCode::BAD_REFERENCE_TYPE_ID_INVALID, &|s| {
        done(s.reference(node("Motor"), int(), true, node("Plant")))
    });
    check(StatusCode::BAD_REFERENCE_NOT_ALLOWED, &|s| {
        done(s.reference(
            node("Motor"),
            standard(ids::reference_type::HIERARCHICAL_REFERENCES),
            true,
            node("Plant"),
        ))
    });
    check(StatusCode::BAD_REFERENCE_NOT_ALLOWED, &|s| {
        done(s.reference(
            node("Motor"),
            standard(ids::reference_type::HAS_TYPE_DEFINITION),
            true,
            standard(ids::object_type::FOLDER_TYPE),
        ))
    });
    check(StatusCode::BAD_SOURCE_NODE_ID_INVALID, &|s| {
        done(s.reference(
            objects(),
            standard(ids::reference_type::ORGANIZES),
            true,
            standard(ids::object::SERVER),
        ))
    });
    check(StatusCode::BAD_DUPLICATE_REFERENCE_NOT_ALLOWED, &|s| {
        done(s.reference(
            node("Plant"),
            standard(ids::reference_type::HAS_COMPONENT),
            true,
            node("Motor"),
        ))
    });
    check(StatusCode::BAD_DUPLICATE_REFERENCE_NOT_ALLOWED, &|s| {
        done(s.reference(
            node("Plant"),
            standard(ids::reference_type::ORGANIZES),
            false,
            objects(),
        ))
    });
    check(StatusCode::BAD_NODE_ID_UNKNOWN, &|s| done(s.bind(node("Nowhere"), 5)));
    check(StatusCode::BAD_NODE_ATTRIBUTES_INVALID, &|s| {
        done(s.bind(node("Serial"), 1))
    });
    check(StatusCode::BAD_NODE_CLASS_INVALID, &|s| done(s.bind(node("Motor"), 5)));
    check(StatusCode::BAD_NODE_ID_UNKNOWN, &|s| done(s.remove(node("Nowhere"))));
    check(StatusCode::BAD_NODE_ID_UNKNOWN, &|s| done(s.remove(objects())));
}

#[test]
fn limits_are_kept() {
    let mut steps = ModelBuilder::new(
        Limits {
            max_nodes: 2,
            ..Limits::default()
        },
        now(1),
    );
    for text in ["A", "B", "C"] {
        steps.folder(node(text), objects(), name(text));
    }
    assert_eq!(
        (refused(&steps).step, refused(&steps).status),
        (3, StatusCode::BAD_OUT_OF_MEMORY)
    );
    let mut steps = ModelBuilder::new(
        Limits {
            max_references: 4,
            ..Limits::default()
        },
        now(1),
    );
    for text in ["A", "B", "C"] {
        steps.folder(node(text), objects(), name(text));
    }
    assert_eq!(
        (refused(&steps).step, refused(&steps).status),
        (3, StatusCode::BAD_OUT_OF_MEMORY)
    );
}

#[test]
fn analog_items_have_ranges_and_units() {
    let mut steps = plant();
    steps.analog(node("Speed"), -10.0, 50.0, "CEL");
    let world = World::new(&steps);
    let snapshot = world.space.snapshot();
    assert_eq!(
        snapshot.eu_range(&node("Speed")),
        Some(Range { low: -10.0, high: 50.0 })
    );
    let Some(DataValue {
        value: Variant::ExtensionObject(unit),
        ..
    }) = snapshot.property(&node("Speed"), "EngineeringUnits")
    else {
        panic!()
    };
    let unit: EUInformation = unit.decode_as().unwrap();
    assert_eq!(unit.unit_id, 4_408_652);
    assert!(snapshot.is_numeric(&node("Speed")) && !snapshot.is_numeric(&node("Serial")));
    assert!(!snapshot.is_boolean(&node("Speed")));
    assert!(snapshot.is_boolean(&standard(ids::variable::SERVER_AUDITING)));
}

#[test]
fn a_unit_alone_makes_no_range() {
    let mut steps = plant();
    steps.analog(node("Speed"), 0.0, 0.0, "CEL");
    let world = World::new(&steps);
    let snapshot = world.space.snapshot();
    assert_eq!(snapshot.eu_range(&node("Speed")), None);
    assert!(snapshot.property(&node("Speed"), "EngineeringUnits").is_some());
    assert_eq!(world.write(&node("Speed"), 1e9), StatusCode::GOOD);
}

#[test]
fn types_and_their_instances() {
    let mut steps = builder();
    let encoding = node("Point.Binary");
    let structure = StructureDefinition {
        default_encoding_id: encoding.clone(),
        ..StructureDefinition::default()
    };
    let field = |value: i64, text: &str| EnumField {
        value,
        name: text.into(),
        ..EnumField::default()
    };
    let counting = EnumDefinition {
        fields: vec![field(0, "Off"), field(1, "On")],
    };
    let sparse = EnumDefinition {
        fields: vec![field(1, "One"), field(5, "Five")],
    };
    let point = ExtensionObject {
        type_id: encoding.clone(),
        ..ExtensionObject::from_structure(&Range::default())
    };
    steps
        .data_type(
            node("Point"),
            standard(ids::data_type::STRUCTURE),
            name("Point"),
            Some(ExtensionObject::from_structure(&structure)),
        )
        .data_type(
            node("Counting"),
            standard(ids::data_type::ENUMERATION),
            name("Counting"),
            Some(ExtensionObject::from_structure(&counting)),
        )
        .data_type(
            node("Sparse"),
            standard(ids::data_type::ENUMERATION),
            name("Sparse"),
            Some(ExtensionObject::from_structure(&sparse)),
        )
        .data_type(node("Percent"), standard(ids::data_type::DOUBLE), name("Percent"), None)
        .reference_type(
            node("Drives"),
            standard(ids::reference_type::HIERARCHICAL_REFERENCES),
            name("Drives"),
            LocalizedText::plain("DrivenBy"),
        )
        .variable_type(
            node("PercentType"),
            standard(ids::variable_type::BASE_DATA_VARIABLE_TYPE),
            name("PercentType"),
            node("Percent"),
        )
        .variable(
            node("P"),
            objects(),
            name("P"),
            1,
            node("Point"),
            DataValue::new(point),
            3,
        )
        .variable(
            node("C"),
            objects(),
            name("C"),
            2,
            node("Counting"),
            DataValue::new(1i32),
            3,
        )
        .variable(
            node("Q"),
            objects(),
            name("Q"),
            3,
            node("Percent"),
            DataValue::new(50.0),
            3,
        )
        .reference(node("P"), node("Drives"), true, node("Q"));
    let mut world = World::new(&steps);
    let Variant::ExtensionObject(definition) = world.read(&node("Point"), AttributeId::DATA_TYPE_DEFINITION).value
    else {
        panic!()
    };
    assert!(definition.is::<StructureDefinition>());
    let result = world
        .browse_all(0, &[inverse(&encoding, ids::reference_type::HAS_ENCODING)])
        .unwrap();
    assert_eq!(result[0].references[0].node_id.node_id, node("Point"));
    let snapshot = world.space.snapshot();
    let strings = snapshot.property(&node("Counting"), "EnumStrings").unwrap().value;
    assert_eq!(
        strings,
        Variant::from(vec![LocalizedText::plain("Off"), LocalizedText::plain("On")])
    );
    assert!(snapshot.property(&node("Sparse"), "EnumValues").is_some());
    assert_eq!(world.write(&node("Q"), 20.0), StatusCode::GOOD);
    assert_eq!(world.write(&node("Q"), 20i32), StatusCode::BAD_TYPE_MISMATCH);
    let wrong = ExtensionObject::from_structure(&Range::default());
    assert_eq!(world.write(&node("P"), wrong), StatusCode::BAD_TYPE_MISMATCH);
    // A new reference type is a hierarchical one for everybody.
    let found = world.browse(&node("P"));
    assert_eq!(found.references[0].reference_type_id, node("Drives"));
    assert_eq!(
        world.read(&node("Drives"), AttributeId::INVERSE_NAME).value,
        Variant::from(LocalizedText::plain("DrivenBy"))
    );
    let mut steps = builder();
    steps.remove(node("Percent"));
    let Err(UpdateError::Change(error)) = world.space.update(world.id, &steps) else {
        panic!()
    };
    assert_eq!(error.status, StatusCode::BAD_NODE_ID_REJECTED);
}

#[test]
fn changes_are_all_or_nothing_and_keep_cells() {
    let world = World::new(&plant());
    let (epoch, cell) = (world.space.epoch(), Arc::clone(world.model().cell(1).unwrap()));
    let mut steps = builder();
    steps
        .folder(node("New"), objects(), name("New"))
        .folder(node("New"), objects(), name("Again"));
    assert!(world.space.update(world.id, &steps).is_err());
    assert_eq!(world.space.epoch(), epoch);
    assert!(!world.space.snapshot().contains(&node("New")));
    let mut steps = builder();
    steps
        .variable(
            node("Extra"),
            node("Motor"),
            name("Extra"),
            7,
            standard(ids::data_type::INT32),
            DataValue::new(5i32),
            1,
        )
        .attribute(node("Motor"), AttributeId::DISPLAY_NAME, Variant::from("The motor"))
        .remove(node("Serial"));
    let model = world.space.update(world.id, &steps).unwrap();
    assert_ne!(world.space.epoch(), epoch);
    assert!(Arc::ptr_eq(model.cell(1).unwrap(), &cell));
    assert!(model.cell(2).is_none() && model.cell(7).is_some());
    assert_eq!(world.value(&node("Extra")), Variant::Int32(5));
    assert_eq!(
        world.read(&node("Serial"), AttributeId::VALUE).status(),
        StatusCode::BAD_NODE_ID_UNKNOWN
    );
    let shown = world.read(&node("Motor"), AttributeId::DISPLAY_NAME).value;
    assert_eq!(shown, Variant::from(LocalizedText::plain("The motor")));
}

#[test]
fn a_removed_id_and_tag_can_come_back() {
    let mut world = World::new(&plant());
    for round in 0..5i32 {
        let mut steps = builder();
        steps
            .remove(node("Plant"))
            .folder(node("Plant"), objects(), name("Plant"))
            .variable(
                node("Speed"),
                node("Plant"),
                name("Speed"),
                1,
                standard(ids::data_type::INT32),
                DataValue::new(round),
                3,
            );
        world.space.update(world.id, &steps).unwrap();
        assert_eq!(world.value(&node("Speed")), Variant::Int32(round));
        assert_eq!(
            world.read(&node("Motor"), AttributeId::NODE_ID).status(),
            StatusCode::BAD_NODE_ID_UNKNOWN
        );
        assert_eq!(world.model().len(), 2);
        assert_eq!(world.browse(&node("Plant")).references.len(), 1);
    }
    let plants = world
        .browse(&objects())
        .references
        .iter()
        .filter(|r| r.browse_name == name("Plant"))
        .count();
    assert_eq!(plants, 1);
}

#[test]
fn removal_takes_what_only_the_node_aggregates() {
    let mut steps = plant();
    steps
        .object(
            node("Shelf"),
            objects(),
            name("Shelf"),
            standard(ids::object_type::BASE_OBJECT_TYPE),
        )
        .reference(
            node("Shelf"),
            standard(ids::reference_type::HAS_COMPONENT),
            true,
            node("Speed"),
        );
    let mut world = World::new(&steps);
    let mut change = builder();
    change.remove(node("Motor"));
    world.space.update(world.id, &change).unwrap();
    let snapshot = world.space.snapshot();
    assert!(!snapshot.contains(&node("Motor")) && !snapshot.contains(&node("Serial")));
    assert!(snapshot.contains(&node("Speed")), "the shelf has it too");
    let parents = world
        .browse_all(0, &[inverse(&node("Speed"), ids::reference_type::AGGREGATES)])
        .unwrap();
    assert_eq!(parents[0].references.len(), 1);
}

#[test]
fn references_between_managers_come_and_go_with_them() {
    let mut world = World::new(&plant());
    let other = Arc::new(TestManager::default());
    let far = |text: &str| NodeId::string(3, text);
    let mut steps = builder();
    steps
        .folder(far("Room"), node("Plant"), QualifiedName::new(3, "Room"))
        .reference(
            far("Room"),
            standard(ids::reference_type::HAS_EFFECT),
            true,
            node("Speed"),
        )
        .reference(
            far("Room"),
            standard(ids::reference_type::ORGANIZES),
            true,
            node("Later"),
        );
    let model = Model::empty().changed(&steps, &world.space.snapshot()).unwrap();
    let (id, _) = world
        .space
        .attach(Arc::clone(&other) as Arc<dyn NodeManager>, model)
        .unwrap();
    let below = |world: &mut World, id: &NodeId| -> Vec<NodeId> {
        world
            .browse(id)
            .references
            .into_iter()
            .map(|reference| reference.node_id.node_id)
            .collect()
    };
    assert_eq!(below(&mut world, &node("Plant")), [node("Motor"), far("Room")]);
    let inverses = world
        .browse_all(0, &[inverse(&node("Speed"), ids::reference_type::HAS_EFFECT)])
        .unwrap();
    assert_eq!(inverses[0].references.len(), 1);
    assert!(
        below(&mut world, &far("Room")).is_empty(),
        "its target is not there yet"
    );
    let mut later = builder();
    later.folder(node("Later"), objects(), name("Later"));
    world.space.update(world.id, &later).unwrap();
    assert_eq!(below(&mut world, &far("Room")), [node("Later")]);
    world.space.detach(id).unwrap();
    assert_eq!(below(&mut world, &node("Plant")), [node("Motor")]);
    assert_eq!(world.space.detach(id), Err(AttachError::Unknown));
}

#[test]
fn a_reference_may_precede_its_target() {
    let mut steps = plant();
    steps
        .reference(
            node("Motor"),
            standard(ids::reference_type::HAS_EFFECT),
            true,
            node("Ahead"),
        )
        .folder(node("Ahead"), objects(), name("Ahead"));
    let mut world = World::new(&steps);
    let found = world
        .browse_all(0, &[inverse(&node("Ahead"), ids::reference_type::HAS_EFFECT)])
        .unwrap();
    assert_eq!(found[0].references[0].node_id.node_id, node("Motor"));
    let mut change = builder();
    change.remove(node("Ahead"));
    world.space.update(world.id, &change).unwrap();
    let description = BrowseDescription {
        reference_type_id: standard(ids::reference_type::HAS_EFFECT),
        ..forward(&node("Motor"))
    };
    assert!(world.browse_all(0, &[description]).unwrap()[0].references.is_empty());
}

#[test]
fn two_managers_cannot_have_one_node() {
    let world = World::new(&plant());
    let mut steps = builder();
    steps.folder(NodeId::string(3, "Mine"), objects(), name("Mine"));
    let model = Model::empty().changed(&steps, &world.space.snapshot()).unwrap();
    let (id, _) = world
        .space
        .attach(Arc::new(TestManager::default()), model.clone())
        .unwrap();
    let error = world.space.attach(Arc::new(TestManager::default()), model).unwrap_err();
    assert!(matches!(error, AttachError::Duplicate { .. }), "{error}");
    assert_eq!(error.status(), StatusCode::BAD_NODE_ID_EXISTS);
    // Sharing a namespace is fine.
    let mut steps = builder();
    steps.folder(node("Shared"), objects(), name("Shared"));
    world.space.update(id, &steps).unwrap();
    assert_eq!(world.space.snapshot().owner(&node("Shared")), Some(id));
    assert_eq!(world.space.snapshot().owner(&node("Plant")), Some(world.id));
}

#[test]
fn another_generation_keeps_cells_and_published_values() {
    let world = World::new(&plant());
    world.publish(1, 42.0);
    let cell = Arc::clone(world.model().cell(1).unwrap());
    let version = cell.version();
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
            11,
            standard(ids::data_type::DOUBLE),
            DataValue::new(0.0),
            3,
        )
        .property(
            node("Serial"),
            node("Motor"),
            name("Serial"),
            12,
            standard(ids::data_type::STRING),
            DataValue::new("B2"),
        );
    let snapshot = world.space.snapshot();
    let next = Model::empty().changed_beside(&steps, &snapshot, world.id).unwrap();
    let model = world
        .space
        .replace(world.id, Arc::new(TestManager::default()), next)
        .unwrap();
    assert!(Arc::ptr_eq(model.cell(11).unwrap(), &cell));
    assert_eq!(cell.version(), version, "equal to before: nothing to report");
    assert_eq!(
        world.value(&node("Speed")),
        Variant::Double(42.0),
        "the last value stays"
    );
    assert_eq!(
        world.value(&node("Serial")),
        Variant::from("B2"),
        "never published, so the declaration counts"
    );
    assert!(model.cell(1).is_none());
}

#[test]
fn after_a_crash_declared_values_are_good_again() {
    let world = World::new(&plant());
    world.publish(1, 42.0);
    world
        .space
        .degrade(world.id, None, StatusCode::BAD_NO_COMMUNICATION, time(20));
    let next = Model::empty()
        .changed_beside(&plant(), &world.space.snapshot(), world.id)
        .unwrap();
    let model = world
        .space
        .replace(world.id, Arc::new(TestManager::default()), next)
        .unwrap();
    assert_eq!(world.value(&node("Serial")), Variant::from("A1"));
    assert_eq!(world.value(&node("Speed")), Variant::Double(1.0));
    assert!(!model.cell(1).unwrap().is_degraded());
}

#[test]
fn another_type_under_the_same_id_keeps_the_cell_but_not_the_value() {
    let world = World::new(&plant());
    world.publish(1, 42.0);
    let cell = Arc::clone(world.model().cell(1).unwrap());
    let mut steps = builder();
    steps.variable(
        node("Speed"),
        objects(),
        name("Speed"),
        1,
        standard(ids::data_type::STRING),
        DataValue::new("fast"),
        3,
    );
    let next = Model::empty()
        .changed_beside(&steps, &world.space.snapshot(), world.id)
        .unwrap();
    let model = world
        .space
        .replace(world.id, Arc::new(TestManager::default()), next)
        .unwrap();
    assert!(Arc::ptr_eq(model.cell(1).unwrap(), &cell));
    assert_eq!(world.value(&node("Speed")), Variant::from("fast"));
}

#[test]
fn what_is_published_must_fit() {
    let world = World::new(&plant());
    let model = world.model();
    let publish = |tag, value: DataValue| model.publish(tag, value, time(30));
    assert_eq!(publish(1, DataValue::new(1i32)), Err(StatusCode::BAD_TYPE_MISMATCH));
    assert_eq!(publish(99, DataValue::new(1i32)), Err(StatusCode::BAD_NODE_ID_UNKNOWN));
    assert_eq!(publish(0, DataValue::new(1i32)), Err(StatusCode::BAD_NODE_ID_UNKNOWN));
    assert_eq!(
        publish(1, DataValue::from_status(StatusCode::BAD_SENSOR_FAILURE)),
        Ok(())
    );
    assert_eq!(
        world.read(&node("Speed"), AttributeId::VALUE).status(),
        StatusCode::BAD_SENSOR_FAILURE
    );
}

#[test]
fn namespaces_only_grow() {
    let space = bare(Limits::default());
    let table = space.namespaces();
    assert_eq!(
        (
            table.index("http://opcfoundation.org/UA/"),
            table.index("urn:test:server"),
            table.index(crate::common::URI)
        ),
        (Some(0), Some(1), Some(NS))
    );
    assert_eq!(table.register("urn:a"), Ok(3));
    assert_eq!(table.register("urn:a"), Ok(3));
    assert_eq!(table.register(""), Err(StatusCode::BAD_INVALID_ARGUMENT));
    for number in 4..100 {
        assert_eq!(table.register(&format!("urn:{number}")), Ok(number));
    }
    assert_eq!(table.register("urn:one too many"), Err(StatusCode::BAD_OUT_OF_MEMORY));
    assert_eq!(table.uri(3).unwrap().text(), "urn:a");
    assert_eq!(table.uri(100), None);
}
