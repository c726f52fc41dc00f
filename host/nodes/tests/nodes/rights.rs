//! RolePermissions and AccessRestrictions: what a caller may see, read, write and call (Part 3, 5.2.9 to 5.2.11).

use std::sync::Arc;

use backplane_nodes::{CallContext, CallOutcome, Caller, Limits, Role};
use backplane_types::{
    AttributeId, DataValue, ExtensionObject, MessageSecurityMode, NodeId, PermissionType, QualifiedName,
    RolePermissionType, StatusCode, Variant, ids,
};

use crate::common::{TestManager, World, builder, caller, name, node, objects, standard};

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
