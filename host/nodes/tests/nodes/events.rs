//! Event types, their fields, notifiers above a source, who may receive, and what changed from one structure to the next.

use std::sync::{Arc, Mutex};

use backplane_nodes::{CallContext, Caller, EventFieldClass, NodeChange, Role};
use backplane_types::{
    AttributeId, DataValue, ExtensionObject, NodeId, PermissionType, QualifiedName, RolePermissionType, StatusCode,
    Variant, ids,
};

use crate::common::{World, builder, caller, name, node, objects, standard, standard_nodes};

const VARIABLE: Option<EventFieldClass> = Some(EventFieldClass::Variable);
const OBJECT: Option<EventFieldClass> = Some(EventFieldClass::Object);

fn path(names: &[&str]) -> Vec<QualifiedName> {
    names.iter().map(|name| QualifiedName::from(*name)).collect()
}

fn operator() -> NodeId {
    standard(ids::object::WELL_KNOWN_ROLE_OPERATOR)
}

/// Area > Boiler > Tank as notifiers, Tank > Level as event source, a type with two fields, and an object that only operators get events of.
fn world() -> World {
    let mut steps = builder();
    let object = || standard(ids::object_type::BASE_OBJECT_TYPE);
    for (id, parent) in [
        ("Area", objects()),
        ("Boiler", objects()),
        ("Tank", objects()),
        ("Secret", objects()),
    ] {
        steps.object(node(id), parent, name(id), object());
        steps.attribute(node(id), AttributeId::EVENT_NOTIFIER, Variant::Byte(1));
    }
    steps.object(node("Level"), node("Tank"), name("Level"), object());
    let has_notifier = standard(ids::reference_type::HAS_NOTIFIER);
    let has_event_source = standard(ids::reference_type::HAS_EVENT_SOURCE);
    steps
        .reference(standard(ids::object::SERVER), has_notifier.clone(), true, node("Area"))
        .reference(node("Area"), has_notifier.clone(), true, node("Boiler"))
        .reference(node("Boiler"), has_notifier.clone(), true, node("Tank"))
        // A circle must not be walked for ever.
        .reference(node("Tank"), has_notifier, true, node("Area"))
        .reference(node("Tank"), has_event_source, true, node("Level"));
    let only_operators = ExtensionObject::from_structure(&RolePermissionType {
        role_id: operator(),
        permissions: PermissionType(1 | 1 << 11),
    });
    steps.attribute(
        node("Secret"),
        AttributeId::ROLE_PERMISSIONS,
        Variant::from(vec![only_operators]),
    );
    steps.object_type(
        node("AlarmType"),
        standard(ids::object_type::SYSTEM_EVENT_TYPE),
        name("AlarmType"),
    );
    let double = standard(ids::data_type::DOUBLE);
    steps.property(
        node("AlarmLevel"),
        node("AlarmType"),
        name("Level"),
        0,
        double,
        DataValue::new(0.0),
    );
    World::new(&steps)
}

#[test]
fn types_and_their_fields() {
    let world = world();
    let snapshot = world.space.snapshot();
    let base = standard(ids::object_type::BASE_EVENT_TYPE);
    let alarm = snapshot.event_type(&node("AlarmType")).unwrap();
    let system = standard(ids::object_type::SYSTEM_EVENT_TYPE);
    assert_eq!(*alarm, [node("AlarmType"), system.clone(), base.clone()]);
    assert_eq!(snapshot.event_type(&standard(ids::object_type::BASE_OBJECT_TYPE)), None);
    assert_eq!(snapshot.event_type(&node("Nowhere")), None);
    for (event_type, path, expected) in [
        (&base, path(&["Severity"]), VARIABLE),
        (&base, vec![name("Level")], VARIABLE),
        (&base, vec![], OBJECT),
        (&node("AlarmType"), vec![name("Level")], VARIABLE),
        (&node("AlarmType"), path(&["Message"]), VARIABLE),
        (&system, vec![name("Level")], None),
        (&base, path(&["Nonsense"]), None),
        (&base, path(&["EnabledState", "Id"]), VARIABLE),
        (
            &standard(ids::object_type::CONDITION_TYPE),
            path(&["EnabledState", "Id"]),
            VARIABLE,
        ),
        (&standard(ids::object_type::CONDITION_TYPE), path(&["Enable"]), None),
        (&node("Nowhere"), path(&["Message"]), None),
    ] {
        assert_eq!(
            snapshot.event_field(event_type, &path),
            expected,
            "{event_type} {path:?}"
        );
    }
    assert_eq!(standard_nodes().event_field(&base, &[name("Level")]), None);
}

#[test]
fn fields_are_checked_against_their_declaration() {
    let snapshot = world().space.snapshot();
    let fit = |path: &[QualifiedName], value: Variant| snapshot.fit_event_field(&node("AlarmType"), path, value);
    assert_eq!(fit(&[name("Level")], 1.5.into()), Ok(1.5.into()));
    assert_eq!(fit(&[name("Level")], Variant::Empty), Ok(Variant::Empty));
    assert_eq!(fit(&[name("Level")], "high".into()), Err(StatusCode::BAD_TYPE_MISMATCH));
    assert_eq!(
        fit(&path(&["Severity"]), 1.5.into()),
        Err(StatusCode::BAD_TYPE_MISMATCH)
    );
    assert_eq!(
        fit(&path(&["Nonsense"]), 1.into()),
        Err(StatusCode::BAD_NODE_ID_UNKNOWN)
    );
    assert_eq!(fit(&[], 1.into()), Err(StatusCode::BAD_NODE_ID_UNKNOWN));
}

#[test]
fn an_event_is_seen_at_every_notifier_above_its_source() {
    let snapshot = world().space.snapshot();
    let sorted = |source: &NodeId| {
        let mut found: Vec<String> = snapshot.notifiers(source).iter().map(ToString::to_string).collect();
        found.sort();
        found
    };
    let server = standard(ids::object::SERVER).to_string();
    let ids = |names: &[&str]| -> Vec<String> {
        std::iter::once(server.clone())
            .chain(names.iter().map(|it| node(it).to_string()))
            .collect()
    };
    assert_eq!(sorted(&node("Level")), ids(&["Area", "Boiler", "Level", "Tank"]));
    assert_eq!(sorted(&node("Secret")), ids(&["Secret"]));
    assert_eq!(sorted(&node("Nowhere")), ids(&["Nowhere"]));
    assert_eq!(sorted(&standard(ids::object::SERVER)), ids(&[]));
}

fn somebody(roles: &[NodeId]) -> CallContext {
    let role = |id: &NodeId| Role {
        id: id.clone(),
        name: Arc::from("role"),
    };
    CallContext {
        caller: Arc::new(Caller {
            roles: roles.iter().map(role).collect(),
            ..Caller::anonymous()
        }),
        ..caller()
    }
}

#[test]
fn rights_on_notifiers_types_and_sources() {
    let snapshot = world().space.snapshot();
    let check = |id: &NodeId, roles: &[NodeId]| snapshot.check_notifier(&somebody(roles), id);
    assert_eq!(check(&standard(ids::object::SERVER), &[]), Ok(()));
    assert_eq!(check(&node("Tank"), &[]), Ok(()));
    assert_eq!(check(&node("Level"), &[]), Err(StatusCode::BAD_FILTER_NOT_ALLOWED));
    assert_eq!(check(&node("Nowhere"), &[]), Err(StatusCode::BAD_NODE_ID_UNKNOWN));
    let variable = standard(ids::variable::SERVER_SERVER_STATUS);
    assert_eq!(check(&variable, &[]), Err(StatusCode::BAD_ATTRIBUTE_ID_INVALID));
    assert_eq!(check(&node("Secret"), &[]), Err(StatusCode::BAD_USER_ACCESS_DENIED));
    assert_eq!(check(&node("Secret"), &[operator()]), Ok(()));
    let receive =
        |source: &str, roles: &[NodeId]| snapshot.may_receive(&somebody(roles), &node("AlarmType"), &node(source));
    assert!(receive("Tank", &[]) && receive("Nowhere", &[]));
    assert!(!receive("Secret", &[]) && receive("Secret", &[operator()]));
}

#[test]
fn changes_are_told_node_by_node() {
    let world = world();
    let seen: Arc<Mutex<Vec<Option<Vec<NodeChange>>>>> = Arc::default();
    let keep = Arc::clone(&seen);
    assert!(world.space.watch(move |change| {
        let changes = change.nodes(3).map(|mut changes| {
            changes.sort_by_key(|change| change.affected.to_string());
            changes
        });
        keep.lock().unwrap().push(changes);
    }));
    assert!(!world.space.watch(|_| {}), "one watcher");
    let object = || standard(ids::object_type::BASE_OBJECT_TYPE);
    let mut steps = builder();
    steps.object(node("New"), objects(), name("New"), object());
    world.space.update(world.id, &steps).unwrap();
    let mut steps = builder();
    steps.remove(node("New"));
    world.space.update(world.id, &steps).unwrap();
    let mut steps = builder();
    for number in 0..5 {
        let id = format!("New{number}");
        steps.object(node(&id), objects(), name(&id), object());
    }
    world.space.update(world.id, &steps).unwrap();
    let change = |affected: NodeId, affected_type: NodeId, verb| NodeChange {
        affected,
        affected_type,
        verb,
    };
    let folder = standard(ids::object_type::FOLDER_TYPE);
    let seen = seen.lock().unwrap();
    let expected = [
        Some(vec![
            change(objects(), folder.clone(), 4),
            change(node("New"), object(), 1),
        ]),
        Some(vec![change(objects(), folder, 8), change(node("New"), object(), 2)]),
        None,
    ];
    assert_eq!(*seen, expected);
}

#[test]
fn a_node_version_is_set_where_there_is_one() {
    let mut steps = builder();
    let object = standard(ids::object_type::BASE_OBJECT_TYPE);
    let string = standard(ids::data_type::STRING);
    let property = QualifiedName::from("NodeVersion");
    steps.object(node("O"), objects(), name("O"), object);
    steps.property(node("Version"), node("O"), property, 7, string, DataValue::new("1"));
    let world = World::new(&steps);
    world.space.snapshot().set_node_version(&node("O"), "2", world.time.utc);
    world.space.snapshot().set_node_version(&objects(), "2", world.time.utc);
    assert_eq!(world.value(&node("Version")), "2".into());
}
