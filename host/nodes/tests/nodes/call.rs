//! Call: finding the method, checking arguments, and what managers answer (Part 4, 5.12.2).

use backplane_nodes::{CallOutcome, Fault, Limits, MethodArgument};
use backplane_types::{
    Argument, AttributeId, CallMethodRequest, CallMethodResult, DataValue, ExtensionObject, NodeId, Range, StatusCode,
    Variant, ids,
};

use crate::common::{TestManager, World, builder, name, node, objects, standard};

fn argument(text: &str, data_type: u32, rank: i32) -> MethodArgument {
    MethodArgument {
        name: text.to_owned(),
        data_type: standard(data_type),
        value_rank: rank,
        dimensions: Vec::new(),
        description: String::new(),
    }
}

fn world(caller: impl Fn(&NodeId, u32, &[Variant]) -> Result<CallOutcome, Fault> + Send + Sync + 'static) -> World {
    let mut steps = builder();
    let inputs = vec![
        argument("a", ids::data_type::DOUBLE, -1),
        argument("mode", ids::data_type::NODE_CLASS, -1),
        argument("list", ids::data_type::INT32, 1),
        argument("range", ids::data_type::RANGE, -1),
    ];
    let outputs = vec![argument("sum", ids::data_type::DOUBLE, -1)];
    steps
        .object_type(
            node("MotorType"),
            standard(ids::object_type::BASE_OBJECT_TYPE),
            name("MotorType"),
        )
        .object_type(node("FastType"), node("MotorType"), name("FastType"))
        .method(
            node("MotorType.Start"),
            node("MotorType"),
            name("Start"),
            1,
            Vec::new(),
            Vec::new(),
        )
        .method(
            node("MotorType.Stop"),
            node("MotorType"),
            name("Stop"),
            2,
            Vec::new(),
            Vec::new(),
        )
        .object(node("Motor"), objects(), name("Motor"), node("FastType"))
        .method(
            node("Motor.Start"),
            node("Motor"),
            name("Start"),
            3,
            Vec::new(),
            Vec::new(),
        )
        .object(
            node("Other"),
            objects(),
            name("Other"),
            standard(ids::object_type::BASE_OBJECT_TYPE),
        )
        .method(node("Add"), node("Other"), name("Add"), 4, inputs, outputs)
        .method(node("Locked"), node("Other"), name("Locked"), 5, Vec::new(), Vec::new())
        .attribute(node("Locked"), AttributeId::EXECUTABLE, Variant::Boolean(false))
        .method(
            node("Untagged"),
            node("Other"),
            name("Untagged"),
            0,
            Vec::new(),
            Vec::new(),
        )
        .variable(
            node("V"),
            objects(),
            name("V"),
            9,
            standard(ids::data_type::INT32),
            DataValue::new(1i32),
            1,
        );
    let manager = TestManager {
        caller: Some(Box::new(caller)),
        ..TestManager::default()
    };
    World::with(
        manager,
        Limits {
            max_nodes_per_method_call: 5,
            ..Limits::default()
        },
        &steps,
    )
}

/// Answers its tag.
fn echo() -> World {
    world(|_, tag, _| {
        Ok(CallOutcome {
            status: StatusCode(0x4000_0000 | tag),
            ..CallOutcome::default()
        })
    })
}

fn adding() -> World {
    world(|_, _, inputs| {
        let Variant::Double(a) = inputs[0] else { panic!() };
        let Variant::Array(list) = &inputs[2] else { panic!() };
        let sum = a + list.values.iter().filter_map(|value| value.as_f64()).sum::<f64>();
        Ok(CallOutcome {
            outputs: vec![Variant::Double(sum)],
            ..CallOutcome::default()
        })
    })
}

fn good_inputs() -> Vec<Variant> {
    let range = ExtensionObject::from_structure(&Range { low: 0.0, high: 1.0 });
    vec![1.5.into(), 1i32.into(), vec![2i32, 3].into(), range.into()]
}

#[test]
fn calls_and_returns_outputs() {
    let world = adding();
    let result = world.invoke(&node("Other"), &node("Add"), good_inputs());
    assert_eq!(result.status_code, StatusCode::GOOD);
    assert_eq!(result.output_arguments, [Variant::Double(6.5)]);
    assert!(result.input_argument_results.is_empty());
}

#[test]
fn arguments_are_counted_and_checked() {
    let world = adding();
    let call = |inputs: Vec<Variant>| world.invoke(&node("Other"), &node("Add"), inputs);
    assert_eq!(
        call(good_inputs()[..3].to_vec()).status_code,
        StatusCode::BAD_ARGUMENTS_MISSING
    );
    let mut many = good_inputs();
    many.push(1.into());
    assert_eq!(call(many).status_code, StatusCode::BAD_TOO_MANY_ARGUMENTS);
    let wrong = vec![Variant::from("x"), 1u32.into(), 1i32.into(), good_inputs()[3].clone()];
    let result = call(wrong);
    assert_eq!(result.status_code, StatusCode::BAD_INVALID_ARGUMENT);
    let mismatch = StatusCode::BAD_TYPE_MISMATCH;
    assert_eq!(
        result.input_argument_results,
        [mismatch, mismatch, mismatch, StatusCode::GOOD]
    );
    assert!(result.output_arguments.is_empty());
    let other = ExtensionObject::from_structure(&Argument::default());
    let mut wrong = good_inputs();
    wrong[3] = other.into();
    assert_eq!(call(wrong).input_argument_results[3], mismatch);
    assert_eq!(
        world.manager.calls.load(std::sync::atomic::Ordering::Relaxed),
        0,
        "the manager was never asked"
    );
}

#[test]
fn methods_of_the_object_and_of_its_types() {
    let world = echo();
    let tag = |object: &str, method: &str| {
        let status = world.invoke(&node(object), &node(method), Vec::new()).status_code;
        if status.is_bad() {
            Err(status)
        } else {
            Ok(status.0 & 0xffff)
        }
    };
    assert_eq!(tag("Motor", "Motor.Start"), Ok(3));
    assert_eq!(
        tag("Motor", "MotorType.Start"),
        Ok(3),
        "the object's own method of that name"
    );
    assert_eq!(tag("Motor", "MotorType.Stop"), Ok(2), "inherited over two types");
    assert_eq!(tag("MotorType", "MotorType.Start"), Ok(1));
    assert_eq!(tag("FastType", "MotorType.Start"), Ok(1));
    assert_eq!(tag("Other", "MotorType.Start"), Err(StatusCode::BAD_METHOD_INVALID));
    assert_eq!(tag("Other", "Motor.Start"), Err(StatusCode::BAD_METHOD_INVALID));
}

#[test]
fn refusals() {
    let world = echo();
    let status = |object: NodeId, method: NodeId| world.invoke(&object, &method, Vec::new()).status_code;
    assert_eq!(status(node("Nowhere"), node("Add")), StatusCode::BAD_NODE_ID_UNKNOWN);
    assert_eq!(status(node("V"), node("Add")), StatusCode::BAD_NODE_ID_INVALID);
    assert_eq!(status(node("Other"), node("Nowhere")), StatusCode::BAD_METHOD_INVALID);
    assert_eq!(status(node("Other"), node("V")), StatusCode::BAD_METHOD_INVALID);
    assert_eq!(status(node("Other"), node("Locked")), StatusCode::BAD_NOT_EXECUTABLE);
    assert_eq!(status(node("Other"), node("Untagged")), StatusCode::BAD_NOT_IMPLEMENTED);
    let server = standard(ids::object::SERVER);
    let resend = standard(ids::method::SERVER_RESEND_DATA);
    assert_eq!(
        world.invoke(&server, &resend, vec![1u32.into()]).status_code,
        StatusCode::BAD_NOT_IMPLEMENTED
    );
    assert_eq!(
        world.invoke(&server, &resend, vec![]).status_code,
        StatusCode::BAD_ARGUMENTS_MISSING
    );
    assert_eq!(world.call_all(&[]), Err(StatusCode::BAD_NOTHING_TO_DO));
    assert_eq!(
        world.call_all(&vec![CallMethodRequest::default(); 6]),
        Err(StatusCode::BAD_TOO_MANY_OPERATIONS)
    );
}

#[test]
fn several_calls_keep_their_order() {
    let world = echo();
    let call = |object: &str, method: &str| CallMethodRequest {
        object_id: node(object),
        method_id: node(method),
        input_arguments: Vec::new(),
    };
    let calls = [
        call("Motor", "MotorType.Stop"),
        call("Nowhere", "Add"),
        call("Motor", "Motor.Start"),
    ];
    let statuses: Vec<u32> = world
        .call_all(&calls)
        .unwrap()
        .iter()
        .map(|result| result.status_code.0)
        .collect();
    assert_eq!(statuses, [0x4000_0002, StatusCode::BAD_NODE_ID_UNKNOWN.0, 0x4000_0003]);
}

fn add(world: &World) -> CallMethodResult {
    world.invoke(&node("Other"), &node("Add"), good_inputs())
}

#[test]
fn what_a_manager_must_not_answer() {
    let wrong_count = world(|_, _, _| Ok(CallOutcome::default()));
    assert_eq!(add(&wrong_count).status_code, StatusCode::BAD_INTERNAL_ERROR);
    assert_eq!(wrong_count.manager.complaints.lock().unwrap().len(), 1);
    let wrong_type = world(|_, _, _| {
        Ok(CallOutcome {
            outputs: vec!["x".into()],
            ..CallOutcome::default()
        })
    });
    assert_eq!(add(&wrong_type).status_code, StatusCode::BAD_INTERNAL_ERROR);
    assert_eq!(wrong_type.manager.complaints.lock().unwrap().len(), 1);
    let fault = world(|_, _, _| Err(Fault::new(StatusCode::BAD_DEVICE_FAILURE, "smoke")));
    assert_eq!(add(&fault).status_code, StatusCode::BAD_DEVICE_FAILURE);
    let refused = world(|_, _, _| {
        Ok(CallOutcome {
            status: StatusCode::BAD_INVALID_ARGUMENT,
            input_status: vec![
                StatusCode::BAD_OUT_OF_RANGE,
                StatusCode::GOOD,
                StatusCode::GOOD,
                StatusCode::GOOD,
            ],
            outputs: vec![1.0.into()],
        })
    });
    let result = add(&refused);
    assert_eq!(result.status_code, StatusCode::BAD_INVALID_ARGUMENT);
    assert_eq!(result.input_argument_results[0], StatusCode::BAD_OUT_OF_RANGE);
    assert!(result.output_arguments.is_empty());
}

#[test]
fn arguments_are_properties_as_clients_expect_them() {
    let mut world = echo();
    let result = world.browse(&node("Add"));
    let found: Vec<_> = result
        .references
        .iter()
        .map(|r| (r.browse_name.namespace, r.browse_name.name.text()))
        .collect();
    assert_eq!(found, [(0, "InputArguments"), (0, "OutputArguments")]);
    let inputs = result.references[0].node_id.node_id.clone();
    assert_eq!(
        world.read(&inputs, AttributeId::DATA_TYPE).value,
        Variant::from(standard(ids::data_type::ARGUMENT))
    );
    assert_eq!(world.read(&inputs, AttributeId::VALUE_RANK).value, Variant::Int32(1));
    let objects: Vec<ExtensionObject> = world.value(&inputs).try_into().unwrap();
    assert_eq!(objects.len(), 4);
    let first: Argument = objects[0].decode_as().unwrap();
    assert_eq!(
        (first.name.text(), first.data_type, first.value_rank),
        ("a", standard(ids::data_type::DOUBLE), -1)
    );
}
