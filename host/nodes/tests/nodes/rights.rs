//! RolePermissions and AccessRestrictions: what a caller may see, read, write and call (Part 3, 5.2.9 to 5.2.11).

use std::sync::Arc;

use backplane_nodes::{CallContext, CallOutcome, Caller, Limits, Role, services};
use backplane_types::{
    AttributeId, DataValue, Encoder, ExtensionObject, MessageSecurityMode, NodeId, PermissionType, QualifiedName,
    RolePermissionType, StatusCode, Variant, ids,
};

use crate::common::{
    TestManager, URI, World, builder, caller, forward, list, name, node, objects, read_body, read_value, standard,
};

const BROWSE: u32 = 1;
const READ: u32 = 1 << 5;
const WRITE: u32 = 1 << 6;
const CALL: u32 = 1 << 12;

fn anonymous() -> NodeId {
    standard(ids::object::WELL_KNOWN_ROLE_ANONYMOUS)
}

fn operator() -> NodeId {
    standard(ids::object::WELL_KNOWN_ROLE_OPERATOR)
}

fn permissions(granted: &[(NodeId, u32)]) -> Variant {
    let entry = |(role, bits): &(NodeId, u32)| {
        ExtensionObject::from_structure(&RolePermissionType {
            role_id: role.clone(),
            permissions: PermissionType(*bits),
        })
    };
    Variant::from(granted.iter().map(entry).collect::<Vec<_>>())
}

fn world() -> World {
    let mut steps = builder();
    let int = || standard(ids::data_type::INT32);
    steps
        .object(
            node("O"),
            objects(),
            name("O"),
            standard(ids::object_type::BASE_OBJECT_TYPE),
        )
        .variable(node("V"), node("O"), name("V"), 1, int(), DataValue::new(1i32), 3)
        .attribute(
            node("V"),
            AttributeId::ROLE_PERMISSIONS,
            permissions(&[(anonymous(), BROWSE), (operator(), BROWSE | READ | WRITE)]),
        )
        .variable(
            node("Hidden"),
            node("O"),
            name("Hidden"),
            2,
            int(),
            DataValue::new(1i32),
            3,
        )
        .attribute(
            node("Hidden"),
            AttributeId::ROLE_PERMISSIONS,
            permissions(&[(operator(), BROWSE | READ)]),
        )
        .variable(
            node("Encrypted"),
            node("O"),
            name("Encrypted"),
            3,
            int(),
            DataValue::new(1i32),
            3,
        )
        .attribute(node("Encrypted"), AttributeId::ACCESS_RESTRICTIONS, Variant::UInt16(2))
        .variable(
            node("Secret"),
            node("O"),
            name("Secret"),
            4,
            int(),
            DataValue::new(1i32),
            3,
        )
        .attribute(node("Secret"), AttributeId::ACCESS_RESTRICTIONS, Variant::UInt16(2 | 8))
        .method(node("M"), node("O"), name("M"), 5, vec![], vec![])
        .attribute(
            node("M"),
            AttributeId::ROLE_PERMISSIONS,
            permissions(&[(anonymous(), BROWSE), (operator(), BROWSE | CALL)]),
        );
    let answer = |_: &NodeId, _, _: &[Variant]| Ok(CallOutcome::default());
    World::with(
        TestManager {
            caller: Some(Box::new(answer)),
            ..TestManager::default()
        },
        Limits::default(),
        &steps,
    )
}

fn somebody(roles: &[NodeId], security_mode: MessageSecurityMode) -> CallContext {
    let role = |id: &NodeId| Role {
        id: id.clone(),
        name: Arc::from("role"),
    };
    let caller_of = Caller {
        roles: roles.iter().map(role).collect(),
        security_mode,
        ..Caller::anonymous()
    };
    CallContext {
        caller: Arc::new(caller_of),
        ..caller()
    }
}

#[test]
fn roles_decide() {
    let mut world = world();
    let denied = StatusCode::BAD_USER_ACCESS_DENIED;
    assert_eq!(world.read(&node("V"), AttributeId::VALUE).status(), denied);
    assert_eq!(world.write(&node("V"), 2i32), denied);
    assert_eq!(
        world.read(&node("V"), AttributeId::BROWSE_NAME).status(),
        StatusCode::GOOD
    );
    assert_eq!(
        world.read(&node("V"), AttributeId::ACCESS_LEVEL).value,
        Variant::Byte(3)
    );
    assert_eq!(
        world.read(&node("V"), AttributeId::USER_ACCESS_LEVEL).value,
        Variant::Byte(0)
    );
    assert_eq!(world.read(&node("V"), AttributeId::ROLE_PERMISSIONS).status(), denied);
    assert_eq!(world.invoke(&node("O"), &node("M"), vec![]).status_code, denied);
    assert_eq!(
        world.read(&node("M"), AttributeId::EXECUTABLE).value,
        Variant::Boolean(true)
    );
    assert_eq!(
        world.read(&node("M"), AttributeId::USER_EXECUTABLE).value,
        Variant::Boolean(false)
    );
    world.call = somebody(&[operator()], MessageSecurityMode::NONE);
    assert_eq!(world.write(&node("V"), 2i32), StatusCode::GOOD);
    assert_eq!(world.value(&node("V")), Variant::Int32(2));
    assert_eq!(
        world.read(&node("V"), AttributeId::USER_ACCESS_LEVEL).value,
        Variant::Byte(3)
    );
    assert_eq!(
        world.invoke(&node("O"), &node("M"), vec![]).status_code,
        StatusCode::GOOD
    );
    assert_eq!(world.write(&node("Hidden"), 2i32), denied, "read only for operators");
}

#[test]
fn what_may_not_be_browsed_is_not_shown() {
    let mut world = world();
    let shown = |world: &mut World| -> Vec<String> {
        world
            .browse(&node("O"))
            .references
            .iter()
            .map(|r| r.browse_name.name.text().to_owned())
            .collect()
    };
    // More than once, as answers are remembered.
    for _ in 0..4 {
        assert_eq!(shown(&mut world), ["V", "Encrypted", "M"]);
    }
    assert_eq!(
        world.read(&node("Hidden"), AttributeId::DISPLAY_NAME).status(),
        StatusCode::BAD_USER_ACCESS_DENIED
    );
    world.call = somebody(&[operator()], MessageSecurityMode::SIGN_AND_ENCRYPT);
    for _ in 0..4 {
        assert_eq!(shown(&mut world), ["V", "Hidden", "Encrypted", "Secret", "M"]);
    }
    world.call = somebody(&[operator()], MessageSecurityMode::NONE);
    assert_eq!(shown(&mut world), ["V", "Hidden", "Encrypted", "M"]);
}

#[test]
fn restrictions_ask_for_security() {
    let mut world = world();
    let status = |world: &World| world.read(&node("Encrypted"), AttributeId::VALUE).status();
    assert_eq!(status(&world), StatusCode::BAD_SECURITY_MODE_INSUFFICIENT);
    assert_eq!(
        world.write(&node("Encrypted"), 1i32),
        StatusCode::BAD_SECURITY_MODE_INSUFFICIENT
    );
    world.call = somebody(&[], MessageSecurityMode::SIGN);
    assert_eq!(status(&world), StatusCode::BAD_SECURITY_MODE_INSUFFICIENT);
    world.call = somebody(&[], MessageSecurityMode::SIGN_AND_ENCRYPT);
    assert_eq!(status(&world), StatusCode::GOOD);
    assert_eq!(
        world.read(&node("Encrypted"), AttributeId::ACCESS_RESTRICTIONS).value,
        Variant::UInt16(2)
    );
    assert_eq!(
        world.read(&node("V"), AttributeId::ACCESS_RESTRICTIONS).status(),
        StatusCode::BAD_ATTRIBUTE_ID_INVALID
    );
}

#[test]
fn the_host_itself_sees_everything() {
    let mut world = world();
    world.call = CallContext {
        internal: true,
        ..caller()
    };
    for id in ["V", "Hidden", "Encrypted", "Secret"] {
        let resolved =
            world
                .space
                .snapshot()
                .resolve(&world.call, &node(id), AttributeId::VALUE, "", &QualifiedName::NULL);
        assert!(resolved.is_ok(), "{id}");
    }
}

#[test]
fn resolving_checks_the_same_rights() {
    let world = world();
    let resolve = |id: &str| {
        world
            .space
            .snapshot()
            .resolve(&world.call, &node(id), AttributeId::VALUE, "", &QualifiedName::NULL)
            .map(drop)
    };
    assert_eq!(resolve("V"), Err(StatusCode::BAD_USER_ACCESS_DENIED));
    assert_eq!(resolve("Secret"), Err(StatusCode::BAD_SECURITY_MODE_INSUFFICIENT));
}

/// What is asked about a node in every way there is. Single and multiple Reads answer alike, whatever stands around the node, itself included;
/// what a client samples is what it could read; what Browse shows is what can be looked at.
fn verdicts(world: &mut World, parent: &NodeId, id: &NodeId) -> (StatusCode, StatusCode, bool) {
    let read = |ids: &[&NodeId], attribute| -> Vec<StatusCode> {
        let operations: Vec<_> = ids.iter().map(|id| read_value(id, attribute, "")).collect();
        let values = world.read_all(&read_body(0.0, 3, &operations)).unwrap();
        values.iter().map(DataValue::status).collect()
    };
    let value = read(&[id], AttributeId::VALUE)[0];
    let (objects, nowhere) = (objects(), node("Nowhere"));
    let around = [&objects, id, &nowhere, id, parent, id];
    let together = read(&around, AttributeId::VALUE);
    assert_eq!([together[1], together[3], together[5]], [value; 3], "{id}");
    let name = read(&[id], AttributeId::BROWSE_NAME)[0];
    let together = read(&around, AttributeId::BROWSE_NAME);
    assert_eq!([together[1], together[3], together[5]], [name; 3], "{id}");
    let snapshot = world.space.snapshot();
    for (attribute, status) in [(AttributeId::VALUE, value), (AttributeId::BROWSE_NAME, name)] {
        let resolved = snapshot.resolve(&world.call, id, attribute, "", &QualifiedName::NULL);
        let sampled = resolved.map_or_else(|status| status, |_| StatusCode::GOOD);
        assert_eq!(sampled, status, "{id} {attribute}");
    }
    let shown = world
        .browse(parent)
        .references
        .iter()
        .any(|reference| reference.node_id.node_id == *id);
    let from_itself = world.browse_all(0, &[forward(id)]).unwrap().pop().unwrap().status_code;
    assert_eq!(from_itself, name, "{id}");
    (value, name, shown)
}

/// Restrictions that need not be applied to Browse hide nothing there, and refuse everything else (Part 3, 5.2.11).
#[test]
fn every_way_to_a_node_gives_the_same_verdict() {
    let mut world = world();
    let (good, denied) = (StatusCode::GOOD, StatusCode::BAD_USER_ACCESS_DENIED);
    let insecure = StatusCode::BAD_SECURITY_MODE_INSUFFICIENT;
    let anybody = somebody(&[], MessageSecurityMode::NONE);
    let operator_in_the_open = somebody(&[operator()], MessageSecurityMode::NONE);
    let safe_operator = somebody(&[operator()], MessageSecurityMode::SIGN_AND_ENCRYPT);
    let expected = [
        (
            anybody,
            [
                (denied, good, true),
                (denied, denied, false),
                (insecure, insecure, true),
                (insecure, insecure, false),
            ],
        ),
        (
            operator_in_the_open,
            [
                (good, good, true),
                (good, good, true),
                (insecure, insecure, true),
                (insecure, insecure, false),
            ],
        ),
        (safe_operator, [(good, good, true); 4]),
    ];
    for (call, wanted) in expected {
        world.call = call;
        for (id, wanted) in ["V", "Hidden", "Encrypted", "Secret"].iter().zip(wanted) {
            assert_eq!(verdicts(&mut world, &node("O"), &node(id)), wanted, "{id}");
        }
    }
}

/// A manager whose namespace has defaults: only operators, and only when it is encrypted. "Own" says otherwise about itself.
fn with_defaults() -> World {
    let mut steps = builder();
    let int = || standard(ids::data_type::INT32);
    let own = || QualifiedName::new(0, "");
    let property = |name: &str| QualifiedName {
        name: name.into(),
        ..own()
    };
    steps
        .object(
            node("Meta"),
            standard(ids::object::SERVER_NAMESPACES),
            name("Meta"),
            standard(ids::object_type::NAMESPACE_METADATA_TYPE),
        )
        .property(
            node("Uri"),
            node("Meta"),
            property("NamespaceUri"),
            0,
            standard(ids::data_type::STRING),
            DataValue::new(URI),
        )
        .property(
            node("Roles"),
            node("Meta"),
            property("DefaultRolePermissions"),
            7,
            standard(ids::data_type::ROLE_PERMISSION_TYPE),
            DataValue::new(permissions(&[(operator(), BROWSE | READ)])),
        )
        .property(
            node("Restrictions"),
            node("Meta"),
            property("DefaultAccessRestrictions"),
            8,
            standard(ids::data_type::ACCESS_RESTRICTION_TYPE),
            DataValue::new(2u16),
        )
        .object(
            node("O"),
            objects(),
            name("O"),
            standard(ids::object_type::BASE_OBJECT_TYPE),
        )
        .attribute(
            node("O"),
            AttributeId::ROLE_PERMISSIONS,
            permissions(&[(anonymous(), BROWSE)]),
        )
        .attribute(node("O"), AttributeId::ACCESS_RESTRICTIONS, Variant::UInt16(0))
        .variable(
            node("Silent"),
            node("O"),
            name("Silent"),
            1,
            int(),
            DataValue::new(1i32),
            3,
        )
        .variable(node("Own"), node("O"), name("Own"), 2, int(), DataValue::new(1i32), 3)
        .attribute(
            node("Own"),
            AttributeId::ROLE_PERMISSIONS,
            permissions(&[(anonymous(), BROWSE | READ)]),
        )
        .attribute(node("Own"), AttributeId::ACCESS_RESTRICTIONS, Variant::UInt16(0));
    World::new(&steps)
}

#[test]
fn a_namespace_says_what_its_nodes_do_not() {
    let mut world = with_defaults();
    let (good, denied) = (StatusCode::GOOD, StatusCode::BAD_USER_ACCESS_DENIED);
    let insecure = StatusCode::BAD_SECURITY_MODE_INSUFFICIENT;
    let ids = [node("Silent"), node("Own")];
    let expected = [
        (
            somebody(&[], MessageSecurityMode::SIGN_AND_ENCRYPT),
            (denied, denied, false),
        ),
        (
            somebody(&[operator()], MessageSecurityMode::SIGN),
            (insecure, insecure, true),
        ),
        (
            somebody(&[operator()], MessageSecurityMode::SIGN_AND_ENCRYPT),
            (good, good, true),
        ),
    ];
    for (call, silent) in expected {
        world.call = call;
        assert_eq!(verdicts(&mut world, &node("O"), &ids[0]), silent);
        assert_eq!(verdicts(&mut world, &node("O"), &ids[1]), (good, good, true));
        // Another namespace, and namespace 0, are none of its business.
        assert_eq!(
            world
                .read(&standard(ids::variable::SERVER_SERVICE_LEVEL), AttributeId::VALUE)
                .status(),
            good
        );
        assert_eq!(world.browse(&objects()).status_code, good);
    }
    assert_eq!(world.write(&ids[0], 2i32), denied, "operators may read");
    assert_eq!(world.write_plainly(&ids[0], 2i32), denied, "in the usual form too");
    let access = world.read(&ids[0], AttributeId::USER_ACCESS_LEVEL).value;
    assert_eq!(access, Variant::Byte(1));
}

#[test]
fn defaults_change_at_once() {
    let mut world = with_defaults();
    world.call = somebody(&[], MessageSecurityMode::NONE);
    let status = |world: &World| world.read(&node("Silent"), AttributeId::VALUE).status();
    assert_eq!(status(&world), StatusCode::BAD_SECURITY_MODE_INSUFFICIENT);
    world.publish(8, 0u16);
    assert_eq!(status(&world), StatusCode::BAD_USER_ACCESS_DENIED);
    // Nothing is configured.
    world.publish(7, permissions(&[]));
    assert_eq!(status(&world), StatusCode::GOOD);
    world.publish(7, permissions(&[(operator(), READ)]));
    assert_eq!(status(&world), StatusCode::BAD_USER_ACCESS_DENIED);
    world.publish(7, permissions(&[(anonymous(), READ)]));
    assert_eq!(status(&world), StatusCode::GOOD);
    // The manager dies: what it said still holds.
    world.publish(7, permissions(&[(operator(), BROWSE | READ)]));
    world
        .space
        .degrade(world.id, None, StatusCode::BAD_NO_COMMUNICATION, world.time.utc);
    assert_eq!(status(&world), StatusCode::BAD_USER_ACCESS_DENIED);
    // The metadata goes, and its defaults with it.
    let mut steps = builder();
    steps.remove(node("Meta"));
    world.space.update(world.id, &steps).unwrap();
    assert_eq!(status(&world), StatusCode::BAD_NO_COMMUNICATION);
}

/// What Browse has answered many times is not what it answers when rights are others, in the same structure.
#[test]
fn defaults_change_what_browse_shows() {
    let mut world = with_defaults();
    world.call = somebody(&[], MessageSecurityMode::NONE);
    let shown = |world: &mut World| {
        let look = |world: &mut World| {
            let references = world.browse(&node("O")).references;
            references
                .iter()
                .any(|reference| reference.node_id.node_id == node("Silent"))
        };
        let first = look(world);
        assert_eq!([look(world), look(world), look(world)], [first; 3]);
        first
    };
    assert!(!shown(&mut world), "no role of this caller may");
    world.publish(7, permissions(&[(anonymous(), BROWSE)]));
    assert!(shown(&mut world));
    world.publish(8, 2u16 | 1 << 3);
    assert!(!shown(&mut world), "the restrictions apply to Browse now");
    world.publish(8, 2u16);
    assert!(shown(&mut world));
    world.publish(7, permissions(&[(operator(), BROWSE)]));
    assert!(!shown(&mut world));
}

/// A reader never takes what was granted before for what is granted now, however the change falls.
#[test]
fn no_check_sees_what_was_granted_before() {
    let world = with_defaults();
    world.publish(8, 0u16);
    let operations = [read_value(&node("Silent"), AttributeId::VALUE, "")];
    let body = read_body(0.0, 3, &operations);
    let call = somebody(&[], MessageSecurityMode::NONE);
    let checks = || {
        let cx = services::ServiceContext {
            call: &call,
            ..world.context()
        };
        let mut out = Vec::new();
        services::read(&world.space.snapshot(), &cx, &body, &mut Encoder::new(&mut out)).unwrap();
        list::<DataValue>(&out)[0].status()
    };
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    checks();
                }
            });
        }
        for round in 0..2_000 {
            let granted = if round % 2 == 0 { BROWSE } else { BROWSE | READ };
            world.publish(7, permissions(&[(anonymous(), granted)]));
            let wanted = if round % 2 == 0 {
                StatusCode::BAD_USER_ACCESS_DENIED
            } else {
                StatusCode::GOOD
            };
            assert_eq!(checks(), wanted, "round {round}");
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
