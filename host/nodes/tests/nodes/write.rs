//! Write: types, ranks, ranges, rights, and managers (Part 4, 5.11.4).

use std::sync::Mutex;

use backplane_nodes::{Fault, Limits, Writes};
use backplane_types::{
    Array, ArrayValues, AttributeId, BinaryEncode, ByteString, DataValue, Encoder, ExtensionObject, LocalizedText,
    NodeId, Range, StatusCode, Variant, WriteValue, ids,
};

use crate::common::{TestManager, World, builder, name, node, objects, standard, time};

const READ_WRITE: u32 = 3;

fn steps() -> backplane_nodes::ModelBuilder {
    let mut steps = builder();
    let declared = [
        ("Double", ids::data_type::DOUBLE, DataValue::new(1.0), READ_WRITE),
        ("Int", ids::data_type::INT32, DataValue::new(1i32), READ_WRITE),
        ("Number", ids::data_type::NUMBER, DataValue::new(1i32), READ_WRITE),
        ("Integer", ids::data_type::INTEGER, DataValue::new(1i32), READ_WRITE),
        ("UInteger", ids::data_type::UINTEGER, DataValue::new(1u32), READ_WRITE),
        ("Any", ids::data_type::BASE_DATA_TYPE, DataValue::new(1i32), READ_WRITE),
        ("Enum", ids::data_type::NODE_CLASS, DataValue::new(1i32), READ_WRITE),
        ("Utc", ids::data_type::UTC_TIME, DataValue::new(time(1)), READ_WRITE),
        (
            "Range",
            ids::data_type::RANGE,
            DataValue::new(range(0.0, 1.0)),
            READ_WRITE,
        ),
        (
            "Ranges",
            ids::data_type::RANGE,
            DataValue::new(vec![range(0.0, 1.0)]),
            READ_WRITE,
        ),
        (
            "Structure",
            ids::data_type::STRUCTURE,
            DataValue::new(range(0.0, 1.0)),
            READ_WRITE,
        ),
        (
            "Array",
            ids::data_type::INT32,
            DataValue::new(vec![10i32, 11, 12]),
            READ_WRITE,
        ),
        (
            "Matrix",
            ids::data_type::INT32,
            DataValue::new(matrix(&[0, 1, 2, 3], &[2, 2])),
            READ_WRITE,
        ),
        ("Byte[]", ids::data_type::BYTE, DataValue::new(vec![1u8, 2]), READ_WRITE),
        (
            "Bytes",
            ids::data_type::BYTE_STRING,
            DataValue::new(ByteString::from(vec![1, 2, 3])),
            READ_WRITE,
        ),
        ("Text", ids::data_type::STRING, DataValue::new("hello"), READ_WRITE),
        ("ReadOnly", ids::data_type::INT32, DataValue::new(1i32), 1),
        (
            "Status",
            ids::data_type::INT32,
            DataValue::new(1i32),
            READ_WRITE | 1 << 5,
        ),
        (
            "Whole",
            ids::data_type::INT32,
            DataValue::new(vec![1i32, 2]),
            READ_WRITE | 1 << 10,
        ),
    ];
    for (tag, (text, data_type, value, access)) in (1u32..).zip(declared) {
        steps.variable(
            node(text),
            objects(),
            name(text),
            tag,
            standard(data_type),
            value,
            access,
        );
    }
    steps
}

fn world() -> World {
    World::new(&steps())
}

fn range(low: f64, high: f64) -> ExtensionObject {
    ExtensionObject::from_structure(&Range { low, high })
}

fn matrix(values: &[i32], dimensions: &[u32]) -> Array {
    Array::matrix(ArrayValues::Int32(values.to_vec()), dimensions.to_vec()).unwrap()
}

#[test]
fn what_was_written_is_read() {
    let world = world();
    assert_eq!(world.write(&node("Double"), 2.5), StatusCode::GOOD);
    let value = world.read(&node("Double"), AttributeId::VALUE);
    assert_eq!(
        (value.value, value.source_timestamp),
        (Variant::Double(2.5), Some(world.time.utc))
    );
    let with_time = DataValue {
        source_timestamp: Some(time(-5)),
        ..DataValue::new(3.5)
    };
    assert_eq!(world.write_value(&node("Double"), "", with_time), StatusCode::GOOD);
    assert_eq!(
        world.read(&node("Double"), AttributeId::VALUE).source_timestamp,
        Some(time(-5))
    );
}

#[test]
fn writing_back_what_was_read_is_accepted() {
    let world = world();
    for id in [
        "Double",
        "Int",
        "Number",
        "Any",
        "Enum",
        "Utc",
        "Range",
        "Ranges",
        "Structure",
        "Array",
        "Matrix",
        "Byte[]",
        "Bytes",
        "Text",
    ] {
        let value = world.value(&node(id));
        assert_eq!(world.write(&node(id), value.clone()), StatusCode::GOOD, "{id}");
        assert_eq!(world.value(&node(id)), value, "{id}");
    }
}

#[test]
fn types_must_fit() {
    let world = world();
    let mismatch = |id: &str, value: Variant| {
        let before = world.value(&node(id));
        assert_eq!(
            world.write(&node(id), value.clone()),
            StatusCode::BAD_TYPE_MISMATCH,
            "{id} {value:?}"
        );
        assert_eq!(world.value(&node(id)), before);
    };
    let good = |id: &str, value: Variant| {
        assert_eq!(
            world.write(&node(id), value.clone()),
            StatusCode::GOOD,
            "{id} {value:?}"
        )
    };
    mismatch("Double", 1i32.into());
    mismatch("Double", 1f32.into());
    mismatch("Double", Variant::Empty);
    mismatch("Double", vec![1.0].into());
    mismatch("Int", 1u32.into());
    good("Number", 1.5.into());
    good("Number", 1u8.into());
    mismatch("Number", true.into());
    mismatch("Number", "1".into());
    good("Integer", 1i64.into());
    good("Integer", 1u16.into());
    mismatch("Integer", 1.0.into());
    good("UInteger", 1u64.into());
    mismatch("UInteger", 1i32.into());
    good("Any", "text".into());
    mismatch("Any", vec![1i32].into());
    good("Enum", 2i32.into());
    mismatch("Enum", 2u32.into());
    mismatch("Utc", 1i64.into());
    mismatch("Text", LocalizedText::plain("x").into());
    mismatch("Array", 1i32.into());
    mismatch("Array", matrix(&[0, 1, 2, 3], &[2, 2]).into());
    mismatch("Matrix", vec![1i32].into());
}

#[test]
fn structures_must_be_of_the_type() {
    let world = world();
    let other = ExtensionObject::from_structure(&backplane_types::EUInformation::default());
    assert_eq!(
        world.write(&node("Range"), other.clone()),
        StatusCode::BAD_TYPE_MISMATCH
    );
    assert_eq!(
        world.write(&node("Ranges"), vec![range(1.0, 2.0), other.clone()]),
        StatusCode::BAD_TYPE_MISMATCH
    );
    assert_eq!(world.write(&node("Structure"), other), StatusCode::GOOD);
    assert_eq!(world.write(&node("Range"), range(3.0, 4.0)), StatusCode::GOOD);
    assert_eq!(world.value(&node("Range")), Variant::from(range(3.0, 4.0)));
    let unknown = ExtensionObject {
        type_id: NodeId::numeric(7, 7),
        ..range(0.0, 1.0)
    };
    assert_eq!(world.write(&node("Range"), unknown), StatusCode::BAD_TYPE_MISMATCH);
}

#[test]
fn byte_arrays_and_byte_strings_stand_for_each_other() {
    let world = world();
    assert_eq!(
        world.write(&node("Byte[]"), ByteString::from(vec![7, 8])),
        StatusCode::GOOD
    );
    assert_eq!(world.value(&node("Byte[]")), Variant::from(vec![7u8, 8]));
    assert_eq!(world.write(&node("Bytes"), vec![9u8, 10]), StatusCode::GOOD);
    assert_eq!(
        world.value(&node("Bytes")),
        Variant::from(ByteString::from(vec![9, 10]))
    );
}

#[test]
fn ranges_are_put_into_the_value() {
    let world = world();
    let put = |id: &str, range: &str, value: Variant| world.write_value(&node(id), range, DataValue::new(value));
    assert_eq!(put("Array", "1:2", vec![21i32, 22].into()), StatusCode::GOOD);
    assert_eq!(world.value(&node("Array")), Variant::from(vec![10, 21, 22]));
    assert_eq!(put("Array", "0", vec![20i32].into()), StatusCode::GOOD);
    assert_eq!(world.value(&node("Array")), Variant::from(vec![20, 21, 22]));
    assert_eq!(
        put("Matrix", "0:1,1", matrix(&[8, 9], &[2, 1]).into()),
        StatusCode::GOOD
    );
    assert_eq!(
        world.value(&node("Matrix")),
        Variant::from(matrix(&[0, 8, 2, 9], &[2, 2]))
    );
    assert_eq!(put("Text", "1:2", "EL".into()), StatusCode::GOOD);
    assert_eq!(world.value(&node("Text")), Variant::from("hELlo"));
    assert_eq!(
        put("Byte[]", "0:1", ByteString::from(vec![5, 6]).into()),
        StatusCode::GOOD
    );
    assert_eq!(world.value(&node("Byte[]")), Variant::from(vec![5u8, 6]));
    let before = world.value(&node("Array"));
    for (id, range, value, status) in [
        (
            "Array",
            "2:1",
            vec![1i32, 2].into(),
            StatusCode::BAD_INDEX_RANGE_INVALID,
        ),
        ("Array", "x", vec![1i32].into(), StatusCode::BAD_INDEX_RANGE_INVALID),
        (
            "Array",
            "2:3",
            vec![1i32, 2].into(),
            StatusCode::BAD_INDEX_RANGE_NO_DATA,
        ),
        (
            "Array",
            "0:1",
            vec![1i32].into(),
            StatusCode::BAD_INDEX_RANGE_DATA_MISMATCH,
        ),
        ("Array", "0", vec![1.0].into(), StatusCode::BAD_TYPE_MISMATCH),
        ("Double", "0", 1.0.into(), StatusCode::BAD_INDEX_RANGE_NO_DATA),
        ("Whole", "0", vec![1i32].into(), StatusCode::BAD_WRITE_NOT_SUPPORTED),
    ] as [(&str, &str, Variant, StatusCode); 7]
    {
        assert_eq!(put(id, range, value), status, "{id} {range}");
    }
    assert_eq!(world.value(&node("Array")), before);
}

#[test]
fn only_values_of_writable_variables() {
    let world = world();
    assert_eq!(world.write(&node("ReadOnly"), 2i32), StatusCode::BAD_NOT_WRITABLE);
    assert_eq!(world.write(&node("Nowhere"), 2i32), StatusCode::BAD_NODE_ID_UNKNOWN);
    assert_eq!(
        world.write(&standard(ids::variable::SERVER_SERVER_STATUS_STATE), 0i32),
        StatusCode::BAD_NOT_WRITABLE
    );
    let write = |attribute: AttributeId, value: Variant| {
        let write = WriteValue {
            node_id: node("Int"),
            attribute_id: attribute.0,
            value: DataValue::new(value),
            ..WriteValue::default()
        };
        world.write_all(&[write]).unwrap()[0]
    };
    assert_eq!(
        write(AttributeId::DISPLAY_NAME, LocalizedText::plain("x").into()),
        StatusCode::BAD_NOT_WRITABLE
    );
    assert_eq!(
        write(AttributeId::EVENT_NOTIFIER, 1u8.into()),
        StatusCode::BAD_ATTRIBUTE_ID_INVALID
    );
    assert_eq!(write(AttributeId(99), 1u8.into()), StatusCode::BAD_ATTRIBUTE_ID_INVALID);
    let refused = World::with(
        TestManager {
            writes: Writes::Refused,
            ..TestManager::default()
        },
        Limits::default(),
        &steps(),
    );
    assert_eq!(refused.write(&node("Int"), 2i32), StatusCode::BAD_NOT_WRITABLE);
}

#[test]
fn a_status_needs_status_write() {
    let world = world();
    let bad = |value: i32| DataValue {
        status: Some(StatusCode::UNCERTAIN),
        ..DataValue::new(value)
    };
    assert_eq!(
        world.write_value(&node("Int"), "", bad(5)),
        StatusCode::BAD_WRITE_NOT_SUPPORTED
    );
    assert_eq!(world.write_value(&node("Status"), "", bad(5)), StatusCode::GOOD);
    assert_eq!(
        world.read(&node("Status"), AttributeId::VALUE).status(),
        StatusCode::UNCERTAIN
    );
    let server_time = DataValue {
        server_timestamp: Some(time(1)),
        ..DataValue::new(5i32)
    };
    assert_eq!(
        world.write_value(&node("Int"), "", server_time),
        StatusCode::BAD_WRITE_NOT_SUPPORTED
    );
    let good = DataValue {
        status: Some(StatusCode::GOOD),
        ..DataValue::new(6i32)
    };
    assert_eq!(world.write_value(&node("Int"), "", good), StatusCode::GOOD);
}

#[test]
fn lengths_and_limits() {
    let mut steps = builder();
    steps
        .variable(
            node("A"),
            objects(),
            name("A"),
            1,
            standard(ids::data_type::INT32),
            DataValue::new(vec![1i32]),
            3,
        )
        .attribute(node("A"), AttributeId::ARRAY_DIMENSIONS, Variant::from(vec![2u32]))
        .variable(
            node("Level"),
            objects(),
            name("Level"),
            2,
            standard(ids::data_type::DOUBLE),
            DataValue::new(5.0),
            3,
        )
        .analog(node("Level"), 0.0, 10.0, "CEL");
    let world = World::new(&steps);
    assert_eq!(world.write(&node("A"), vec![1i32, 2]), StatusCode::GOOD);
    assert_eq!(world.write(&node("A"), vec![1i32, 2, 3]), StatusCode::BAD_OUT_OF_RANGE);
    assert_eq!(world.write(&node("Level"), 10.0), StatusCode::GOOD);
    assert_eq!(world.write(&node("Level"), 10.5), StatusCode::BAD_OUT_OF_RANGE);
    assert_eq!(world.write(&node("Level"), f64::NAN), StatusCode::BAD_OUT_OF_RANGE);
}

/// With and without a manager that is asked.
#[test]
fn nothing_is_written_when_the_message_is_wrong_further_on() {
    for writes in [Writes::ToCell, Writes::ToManager] {
        let manager = TestManager {
            writes,
            writer: Some(Box::new(|_| panic!("asked"))),
            ..TestManager::default()
        };
        let world = World::with(manager, Limits::default(), &steps());
        let mut body = Vec::new();
        vec![int("Int", 2), int("Wxyz", 3)].encode(&mut Encoder::new(&mut body));
        let place = body.windows(4).position(|window| window == b"Wxyz").unwrap();
        body[place + 1] = 0xff;
        let whole = body.clone();
        for wrong in (0..place).map(|end| &body[..end]).chain([whole.as_slice()]) {
            assert_eq!(world.write_body(wrong), Err(StatusCode::BAD_DECODING_ERROR));
            assert_eq!(world.value(&node("Int")), Variant::Int32(1));
        }
    }
}

#[test]
fn counts_operations_exactly() {
    let limits = Limits {
        max_nodes_per_write: 2,
        ..Limits::default()
    };
    let world = World::with(TestManager::default(), limits, &steps());
    let write = || WriteValue {
        node_id: node("Int"),
        attribute_id: 13,
        value: DataValue::new(1i32),
        ..WriteValue::default()
    };
    assert_eq!(world.write_all(&[]), Err(StatusCode::BAD_NOTHING_TO_DO));
    assert_eq!(world.write_all(&[write(), write()]).unwrap().len(), 2);
    assert_eq!(
        world.write_all(&[write(), write(), write()]),
        Err(StatusCode::BAD_TOO_MANY_OPERATIONS)
    );
}

fn asked(
    writer: impl Fn(&[backplane_nodes::WriteOperation]) -> Result<Vec<StatusCode>, Fault> + Send + Sync + 'static,
) -> World {
    let manager = TestManager {
        writes: Writes::ToManager,
        writer: Some(Box::new(writer)),
        ..TestManager::default()
    };
    World::with(manager, Limits::default(), &steps())
}

fn int(id: &str, value: i32) -> WriteValue {
    WriteValue {
        node_id: node(id),
        attribute_id: 13,
        value: DataValue::new(value),
        ..WriteValue::default()
    }
}

#[test]
fn a_manager_is_asked_once_and_gets_what_the_client_sent() {
    static SEEN: Mutex<Vec<backplane_nodes::WriteOperation>> = Mutex::new(Vec::new());
    let world = asked(|writes| {
        SEEN.lock().unwrap().extend_from_slice(writes);
        Ok(writes
            .iter()
            .map(|write| {
                if write.tag == 3 {
                    StatusCode::BAD_OUT_OF_RANGE
                } else {
                    StatusCode::GOOD
                }
            })
            .collect())
    });
    let part = WriteValue {
        index_range: "1".into(),
        value: DataValue::new(vec![99i32]),
        ..int("Array", 0)
    };
    let writes = [
        int("Int", 5),
        int("ReadOnly", 5),
        int("Number", 6),
        part,
        int("Double", 7),
    ];
    let results = world.write_all(&writes).unwrap();
    assert_eq!(
        results,
        [
            StatusCode::GOOD,
            StatusCode::BAD_NOT_WRITABLE,
            StatusCode::BAD_OUT_OF_RANGE,
            StatusCode::GOOD,
            StatusCode::BAD_TYPE_MISMATCH
        ]
    );
    let seen = SEEN.lock().unwrap();
    assert_eq!(seen.iter().map(|write| write.tag).collect::<Vec<_>>(), [2, 3, 12]);
    assert_eq!(seen[0].value, DataValue::new(5i32), "no times are added");
    assert_eq!(seen[2].index_range.as_deref(), Some("1"));
    assert_eq!(world.value(&node("Int")), Variant::Int32(5));
    assert_eq!(world.value(&node("Number")), Variant::Int32(1), "refused, so not shown");
    assert_eq!(world.value(&node("Array")), Variant::from(vec![10, 99, 12]));
}

#[test]
fn the_last_of_several_writes_to_one_variable_stays() {
    let world = asked(|writes| Ok(vec![StatusCode::GOOD; writes.len()]));
    world.write_all(&[int("Int", 5), int("Int", 6), int("Int", 7)]).unwrap();
    assert_eq!(world.value(&node("Int")), Variant::Int32(7));
}

#[test]
fn what_the_manager_publishes_during_the_call_is_newer() {
    let cell = std::sync::Arc::new(std::sync::OnceLock::<std::sync::Arc<backplane_nodes::ValueCell>>::new());
    let inside = std::sync::Arc::clone(&cell);
    let world = asked(move |writes| {
        inside.get().unwrap().write(DataValue::new(1_000i32));
        Ok(vec![StatusCode::GOOD; writes.len()])
    });
    cell.set(std::sync::Arc::clone(world.model().cell(2).unwrap())).unwrap();
    assert_eq!(world.write(&node("Int"), 5i32), StatusCode::GOOD);
    assert_eq!(world.value(&node("Int")), Variant::Int32(1_000));
}

#[test]
fn managers_that_fail_or_answer_too_little() {
    let world = asked(|_| Err(Fault::new(StatusCode::BAD_TIMEOUT, "late")));
    assert_eq!(world.write(&node("Int"), 5i32), StatusCode::BAD_TIMEOUT);
    assert_eq!(world.value(&node("Int")), Variant::Int32(1));
    let world = asked(|_| Ok(vec![StatusCode::GOOD]));
    let results = world.write_all(&[int("Int", 5), int("Number", 6)]).unwrap();
    assert_eq!(results, [StatusCode::GOOD, StatusCode::BAD_INTERNAL_ERROR]);
    assert_eq!(world.manager.complaints.lock().unwrap().len(), 1);
    assert_eq!(world.value(&node("Number")), Variant::Int32(1));
}

/// A manager that is asked knows its variables by their tags.
#[test]
fn a_variable_without_a_tag_is_the_hosts_alone() {
    static ASKED: Mutex<Vec<u32>> = Mutex::new(Vec::new());
    let manager = TestManager {
        writes: Writes::ToManager,
        writer: Some(Box::new(|writes| {
            ASKED.lock().unwrap().extend(writes.iter().map(|write| write.tag));
            Ok(vec![StatusCode::GOOD; writes.len()])
        })),
        ..TestManager::default()
    };
    let mut all = steps();
    all.variable(
        node("Kept"),
        NodeId::numeric(0, 85),
        name("Kept"),
        0,
        NodeId::numeric(0, 6),
        DataValue::new(1i32),
        3,
    );
    let world = World::with(manager, Limits::default(), &all);
    assert_eq!(world.write_all(&[int("Kept", 7)]).unwrap(), [StatusCode::GOOD]);
    assert_eq!(world.value(&node("Kept")), Variant::Int32(7));
    assert!(ASKED.lock().unwrap().is_empty());
    let both = [int("Kept", 8), int("Int", 9)];
    assert_eq!(world.write_all(&both).unwrap(), [StatusCode::GOOD; 2]);
    assert_eq!(world.value(&node("Kept")), Variant::Int32(8));
    assert_eq!(world.value(&node("Int")), Variant::Int32(9));
    assert_eq!(ASKED.lock().unwrap().len(), 1);
}
