//! Read: every rule of Part 4, 5.11.2 and 7.27, and managers that answer what they should not.

use backplane_nodes::{Facets, Fault, Limits, NodeManager, services};
use backplane_types::{
    Array, ArrayValues, AttributeId, DataValue, Encoder, NodeId, QualifiedName, ReadValueId, StatusCode, Variant, ids,
};

use crate::common::{TestManager, World, builder, name, node, now, objects, read_body, read_value, standard, time};

fn world() -> World {
    let mut steps = builder();
    steps
        .folder(node("Plant"), objects(), name("Plant"))
        .variable(
            node("Speed"),
            node("Plant"),
            name("Speed"),
            1,
            standard(ids::data_type::DOUBLE),
            DataValue::default(),
            3,
        )
        .variable(
            node("Hidden"),
            node("Plant"),
            name("Hidden"),
            2,
            standard(ids::data_type::INT32),
            DataValue::new(1i32),
            2,
        )
        .variable(
            node("Text"),
            node("Plant"),
            name("Text"),
            3,
            standard(ids::data_type::STRING),
            DataValue::new("grüße"),
            1,
        )
        .variable(
            node("Bytes"),
            node("Plant"),
            name("Bytes"),
            4,
            standard(ids::data_type::BYTE_STRING),
            DataValue::new(backplane_types::ByteString::from(vec![1, 2, 3, 4])),
            1,
        )
        .variable(
            node("Array"),
            node("Plant"),
            name("Array"),
            5,
            standard(ids::data_type::INT32),
            DataValue::new(vec![10i32, 11, 12, 13]),
            1,
        )
        .variable(
            node("Matrix"),
            node("Plant"),
            name("Matrix"),
            6,
            standard(ids::data_type::INT32),
            DataValue::new(matrix()),
            1,
        )
        .variable(
            node("Structure"),
            node("Plant"),
            name("Structure"),
            7,
            standard(ids::data_type::RANGE),
            DataValue::default(),
            1,
        );
    World::new(&steps)
}

fn matrix() -> Array {
    Array::matrix(ArrayValues::Int32((0..6).collect()), vec![2, 3]).unwrap()
}

#[test]
fn waits_for_the_first_value_then_reads_it() {
    let world = world();
    let before = world.read(&node("Speed"), AttributeId::VALUE);
    assert_eq!(before.status(), StatusCode::BAD_WAITING_FOR_INITIAL_DATA);
    assert!(before.value.is_empty() && before.server_timestamp.is_some());
    world.publish(1, 7.5);
    let value = world.read(&node("Speed"), AttributeId::VALUE);
    assert_eq!((value.value, value.status), (Variant::Double(7.5), None));
    assert_eq!(value.source_timestamp, Some(time(10)));
}

#[test]
fn refuses_by_operation() {
    let world = world();
    let status = |id: NodeId, attribute| world.read(&id, attribute).status();
    assert_eq!(
        status(node("Nowhere"), AttributeId::VALUE),
        StatusCode::BAD_NODE_ID_UNKNOWN
    );
    assert_eq!(
        status(NodeId::numeric(99, 1), AttributeId::VALUE),
        StatusCode::BAD_NODE_ID_UNKNOWN
    );
    assert_eq!(
        status(NodeId::NULL, AttributeId::VALUE),
        StatusCode::BAD_NODE_ID_UNKNOWN
    );
    assert_eq!(
        status(node("Speed"), AttributeId(0)),
        StatusCode::BAD_ATTRIBUTE_ID_INVALID
    );
    assert_eq!(
        status(node("Speed"), AttributeId(28)),
        StatusCode::BAD_ATTRIBUTE_ID_INVALID
    );
    assert_eq!(
        status(node("Plant"), AttributeId::VALUE),
        StatusCode::BAD_ATTRIBUTE_ID_INVALID
    );
    assert_eq!(status(node("Hidden"), AttributeId::VALUE), StatusCode::BAD_NOT_READABLE);
}

#[test]
fn refusals_carry_the_times_that_are_asked_for() {
    let world = world();
    let value = world.read(&node("Hidden"), AttributeId::VALUE);
    assert!(value.source_timestamp.is_some() && value.server_timestamp.is_some());
    let body = read_body(0.0, 3, &[read_value(&node("Hidden"), AttributeId::VALUE, "")]);
    let value = world.read_all(&body).unwrap().pop().unwrap();
    assert!(value.source_timestamp.is_none() && value.server_timestamp.is_none());
    // Attributes other than Value have no source.
    let value = world.read(&node("Plant"), AttributeId::DISPLAY_NAME);
    assert!(value.source_timestamp.is_none() && value.server_timestamp.is_some());
}

#[test]
fn refuses_as_a_whole() {
    let world = world();
    let one = [read_value(&node("Speed"), AttributeId::VALUE, "")];
    let refused =
        |age, times, operations: &[ReadValueId]| world.read_all(&read_body(age, times, operations)).unwrap_err();
    assert_eq!(refused(0.0, 2, &[]), StatusCode::BAD_NOTHING_TO_DO);
    assert_eq!(refused(-1.0, 2, &one), StatusCode::BAD_MAX_AGE_INVALID);
    assert_eq!(refused(f64::NAN, 2, &one), StatusCode::BAD_MAX_AGE_INVALID);
    for times in [4, 5, u32::MAX] {
        assert_eq!(refused(0.0, times, &one), StatusCode::BAD_TIMESTAMPS_TO_RETURN_INVALID);
    }
    let body = read_body(0.0, 2, &one);
    for end in 0..body.len() {
        assert!(world.read_all(&body[..end]).is_err(), "cut at {end}");
    }
}

#[test]
fn an_id_that_is_no_text_is_the_message_s_fault() {
    let world = world();
    let operations = ["Speed", "Swxyz"].map(|id| read_value(&node(id), AttributeId::VALUE, ""));
    let mut body = read_body(0.0, 2, &operations);
    assert_eq!(world.read_all(&body).unwrap().len(), 2);
    let place = body.windows(5).position(|window| window == b"Swxyz").unwrap();
    body[place + 1] = 0xff;
    assert_eq!(world.read_all(&body), Err(StatusCode::BAD_DECODING_ERROR));
}

#[test]
fn counts_operations_exactly() {
    let limits = Limits {
        max_nodes_per_read: 3,
        ..Limits::default()
    };
    let world = World::with(TestManager::default(), limits, &builder());
    let operations = vec![read_value(&objects(), AttributeId::NODE_ID, ""); 4];
    assert_eq!(world.read_all(&read_body(0.0, 2, &operations[..3])).unwrap().len(), 3);
    assert_eq!(
        world.read_all(&read_body(0.0, 2, &operations)),
        Err(StatusCode::BAD_TOO_MANY_OPERATIONS)
    );
}

#[test]
fn index_ranges() {
    let world = world();
    let good = |id: &str, range: &str| {
        let value = world.read_range(&node(id), range);
        assert!(value.status().is_good(), "{id} {range}: {}", value.status());
        value.value
    };
    assert_eq!(good("Array", "1:2"), Variant::from(vec![11, 12]));
    assert_eq!(good("Array", "3"), Variant::from(vec![13]));
    assert_eq!(good("Array", "2:99999999"), Variant::from(vec![12, 13]));
    assert_eq!(good("Text", "0:1"), Variant::from("gr"));
    assert_eq!(
        good("Bytes", "3:8388607"),
        Variant::from(backplane_types::ByteString::from(vec![4]))
    );
    let part = Array::matrix(ArrayValues::Int32(vec![1, 2, 4, 5]), vec![2, 2]).unwrap();
    assert_eq!(good("Matrix", "0:1,1:2"), Variant::from(part));
    let status = |id: &str, range: &str| world.read_range(&node(id), range).status();
    for range in ["2:1", "1:1", "a", "-1", "1:", ":", "1,", " 1", "1 :2", "0:1,a"] {
        assert_eq!(status("Array", range), StatusCode::BAD_INDEX_RANGE_INVALID, "{range}");
    }
    for (id, range) in [
        ("Array", "4"),
        ("Array", "4:9"),
        ("Array", "0,0"),
        ("Matrix", "0"),
        ("Matrix", "2,0"),
        ("Text", "5"),
    ] {
        assert_eq!(status(id, range), StatusCode::BAD_INDEX_RANGE_NO_DATA, "{id} {range}");
    }
    world.publish(1, 1.0);
    assert_eq!(status("Speed", "0"), StatusCode::BAD_INDEX_RANGE_NO_DATA);
}

#[test]
fn index_ranges_of_other_attributes() {
    let world = world();
    let read = |attribute, range: &str| {
        let body = read_body(0.0, 3, &[read_value(&node("Matrix"), attribute, range)]);
        world.read_all(&body).unwrap().pop().unwrap()
    };
    assert_eq!(
        read(AttributeId::ARRAY_DIMENSIONS, "1").value,
        Variant::from(vec![0u32])
    );
    assert_eq!(
        read(AttributeId::VALUE_RANK, "0").status(),
        StatusCode::BAD_INDEX_RANGE_NO_DATA
    );
    assert_eq!(
        read(AttributeId::VALUE_RANK, "x").status(),
        StatusCode::BAD_INDEX_RANGE_INVALID
    );
}

#[test]
fn data_encodings() {
    let world = world();
    world.publish(1, 1.0);
    let read = |id: &str, attribute: AttributeId, encoding: QualifiedName| {
        let operation = ReadValueId {
            data_encoding: encoding,
            ..read_value(&node(id), attribute, "")
        };
        world
            .read_all(&read_body(0.0, 3, &[operation]))
            .unwrap()
            .pop()
            .unwrap()
            .status()
    };
    let encoding = |text: &str| QualifiedName::new(0, text);
    assert_eq!(
        read("Speed", AttributeId::VALUE, encoding("Default Binary")),
        StatusCode::GOOD
    );
    assert_eq!(
        read("Speed", AttributeId::VALUE, encoding("Default XML")),
        StatusCode::BAD_DATA_ENCODING_INVALID
    );
    assert_eq!(
        read("Structure", AttributeId::VALUE, encoding("Default XML")),
        StatusCode::BAD_DATA_ENCODING_UNSUPPORTED
    );
    assert_eq!(
        read("Structure", AttributeId::VALUE, QualifiedName::new(5, "Default Binary")),
        StatusCode::BAD_DATA_ENCODING_UNSUPPORTED
    );
    assert_eq!(
        read("Speed", AttributeId::BROWSE_NAME, encoding("Default Binary")),
        StatusCode::BAD_DATA_ENCODING_INVALID
    );
}

#[test]
fn a_response_that_grows_too_large_is_a_fault() {
    let world = world();
    let body = read_body(0.0, 2, &vec![read_value(&node("Text"), AttributeId::VALUE, ""); 1_000]);
    let mut cx = world.context();
    cx.max_response_size = 1_000;
    let mut out = Vec::new();
    let result = services::read(&world.space.snapshot(), &cx, &body, &mut Encoder::new(&mut out));
    assert_eq!(result, Err(StatusCode::BAD_RESPONSE_TOO_LARGE));
    assert!(out.len() < 2_000);
}

fn on_demand(reader: impl Fn(&[u32]) -> Result<Vec<DataValue>, Fault> + Send + Sync + 'static) -> World {
    let mut steps = builder();
    for tag in 1..=3u32 {
        let id = node(&format!("D{tag}"));
        steps
            .variable(
                id.clone(),
                objects(),
                name(&format!("D{tag}")),
                tag,
                standard(ids::data_type::INT32),
                DataValue::default(),
                3,
            )
            .on_demand(id, 100.0);
    }
    let array = node("DA");
    steps
        .variable(
            array.clone(),
            objects(),
            name("DA"),
            4,
            standard(ids::data_type::INT32),
            DataValue::new(vec![0i32]),
            3,
        )
        .on_demand(array, 100.0)
        .variable(
            node("Kept"),
            objects(),
            name("Kept"),
            9,
            standard(ids::data_type::INT32),
            DataValue::new(9i32),
            3,
        );
    World::with(
        TestManager {
            reader: Some(Box::new(reader)),
            ..TestManager::default()
        },
        Limits::default(),
        &steps,
    )
}

fn of(tag: u32) -> DataValue {
    if tag == 4 {
        DataValue::new(vec![40i32, 41, 42])
    } else {
        DataValue::new(tag as i32 * 10)
    }
}

fn mixed() -> Vec<u8> {
    read_body(
        0.0,
        3,
        &[
            read_value(&node("D2"), AttributeId::VALUE, ""),
            read_value(&node("Kept"), AttributeId::VALUE, ""),
            read_value(&node("Nowhere"), AttributeId::VALUE, ""),
            read_value(&node("D1"), AttributeId::VALUE, ""),
            read_value(&node("D2"), AttributeId::NODE_CLASS, ""),
            read_value(&node("DA"), AttributeId::VALUE, "1"),
        ],
    )
}

#[test]
fn asks_a_manager_once_and_keeps_the_order() {
    let world = on_demand(|tags| {
        assert_eq!(tags, [2, 1, 4]);
        Ok(tags.iter().map(|tag| of(*tag)).collect())
    });
    let values: Vec<Variant> = world
        .read_all(&mixed())
        .unwrap()
        .into_iter()
        .map(|value| value.value)
        .collect();
    let wanted = [
        20.into(),
        9.into(),
        Variant::Empty,
        10.into(),
        2.into(),
        Variant::from(vec![41i32]),
    ];
    assert_eq!(values, wanted);
    assert_eq!(world.manager.calls.load(std::sync::atomic::Ordering::Relaxed), 1);
}

#[test]
fn a_failing_manager_fails_only_its_variables() {
    let world = on_demand(|_| Err(Fault::new(StatusCode::BAD_NO_COMMUNICATION, "unplugged")));
    let statuses: Vec<StatusCode> = world
        .read_all(&mixed())
        .unwrap()
        .iter()
        .map(DataValue::status)
        .collect();
    let down = StatusCode::BAD_NO_COMMUNICATION;
    assert_eq!(
        statuses,
        [
            down,
            StatusCode::GOOD,
            StatusCode::BAD_NODE_ID_UNKNOWN,
            down,
            StatusCode::GOOD,
            down
        ]
    );
    let world = on_demand(|_| Err(Fault::new(StatusCode::GOOD, "a fault that is none")));
    assert_eq!(
        world.read(&node("D1"), AttributeId::VALUE).status(),
        StatusCode::BAD_INTERNAL_ERROR
    );
}

#[test]
fn too_few_and_wrong_answers_are_internal_errors_and_reported() {
    let world = on_demand(|tags| Ok(tags.iter().take(1).map(|tag| of(*tag)).collect()));
    let statuses: Vec<StatusCode> = world
        .read_all(&mixed())
        .unwrap()
        .iter()
        .map(DataValue::status)
        .collect();
    assert_eq!(statuses[0], StatusCode::GOOD);
    assert_eq!(
        (statuses[3], statuses[5]),
        (StatusCode::BAD_INTERNAL_ERROR, StatusCode::BAD_INTERNAL_ERROR)
    );
    assert_eq!(world.manager.complaints.lock().unwrap().len(), 1);
    let world = on_demand(|tags| Ok(tags.iter().map(|_| DataValue::new("not a number")).collect()));
    assert_eq!(
        world.read(&node("D1"), AttributeId::VALUE).status(),
        StatusCode::BAD_INTERNAL_ERROR
    );
    assert_eq!(world.manager.complaints.lock().unwrap().len(), 1);
    let world = on_demand(|tags| Ok(vec![of(1); tags.len() + 5]));
    assert_eq!(world.read(&node("D1"), AttributeId::VALUE).value, Variant::Int32(10));
    assert_eq!(world.manager.complaints.lock().unwrap().len(), 1);
}

#[test]
fn without_a_reader_on_demand_variables_are_not_readable() {
    let mut steps = builder();
    steps
        .variable(
            node("D"),
            objects(),
            name("D"),
            1,
            standard(ids::data_type::INT32),
            DataValue::default(),
            3,
        )
        .on_demand(node("D"), 100.0);
    let world = World::new(&steps);
    assert_eq!(
        world.manager.facets(),
        Facets {
            writes: backplane_nodes::Writes::ToCell,
            ..Facets::default()
        }
    );
    assert_eq!(
        world.read(&node("D"), AttributeId::VALUE).status(),
        StatusCode::BAD_NOT_READABLE
    );
    assert_eq!(
        world.read(&node("D"), AttributeId::MINIMUM_SAMPLING_INTERVAL).value,
        Variant::Double(100.0)
    );
}

#[test]
fn good_values_carry_the_present_as_server_time() {
    let mut world = world();
    world.publish(1, 1.0);
    world.time = now(99);
    let value = world.read(&node("Speed"), AttributeId::VALUE);
    assert_eq!(
        (value.source_timestamp, value.server_timestamp),
        (Some(time(10)), Some(time(99)))
    );
}

#[test]
fn a_degraded_manager_shows_its_status_and_keeps_values() {
    let world = world();
    world.publish(1, 4.5);
    world
        .space
        .degrade(world.id, None, StatusCode::BAD_NO_COMMUNICATION, time(11));
    assert_eq!(
        world.read(&node("Speed"), AttributeId::VALUE).status(),
        StatusCode::BAD_NO_COMMUNICATION
    );
    assert_eq!(
        world.read(&node("Text"), AttributeId::VALUE).status(),
        StatusCode::BAD_NO_COMMUNICATION
    );
    assert_eq!(world.model().cell(1).unwrap().read().value, Variant::Double(4.5));
    world.publish(1, 4.6);
    assert_eq!(world.value(&node("Speed")), Variant::Double(4.6));
    world
        .space
        .degrade(world.id, Some(&[1]), StatusCode::BAD_DEVICE_FAILURE, time(12));
    assert_eq!(
        world.read(&node("Speed"), AttributeId::VALUE).status(),
        StatusCode::BAD_DEVICE_FAILURE
    );
    world
        .space
        .degrade(world.id, Some(&[]), StatusCode::BAD_OUT_OF_SERVICE, time(12));
    assert_eq!(
        world.read(&node("Speed"), AttributeId::VALUE).status(),
        StatusCode::BAD_DEVICE_FAILURE
    );
}
