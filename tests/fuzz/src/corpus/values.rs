//! Seeds of values: good ones of every type, and every way of being bad that is known.

use backplane_types::{
    Array, ArrayValues, BuiltInType, ByteString, DataValue, DateTime, Decimal, DiagnosticInfo, ExpandedNodeId,
    ExtensionBody, ExtensionObject, Guid, LocalizedText, NodeId, QualifiedName, StatusCode, UaString, Variant,
    XmlElement, structures,
};

use super::wire::{
    bytes, encode, nested_data_values, nested_diagnostics, nested_mixture, nested_objects, nested_variants,
};
use super::{Seed, truncated, with_bad_lengths};
use crate::targets::builtin::choice;
use crate::targets::extension;

/// A DataValue with everything.
pub(super) fn full_data_value(value: Variant) -> DataValue {
    DataValue {
        value,
        status: Some(StatusCode::UNCERTAIN_INITIAL_VALUE),
        source_timestamp: Some(DateTime::from_ticks(133_000_000_000_000_000)),
        source_picoseconds: Some(9_999),
        server_timestamp: Some(DateTime::MAX),
        server_picoseconds: Some(1),
    }
}

/// DiagnosticInfo with everything, once in itself.
pub(super) fn full_diagnostics() -> DiagnosticInfo {
    let inner = DiagnosticInfo {
        symbolic_id: Some(0),
        namespace_uri: Some(1),
        locale: Some(2),
        localized_text: Some(-1),
        additional_info: Some("more".into()),
        inner_status_code: Some(StatusCode::BAD_INTERNAL_ERROR),
        inner_diagnostic_info: None,
    };
    DiagnosticInfo {
        inner_diagnostic_info: Some(Box::new(inner.clone())),
        ..inner
    }
}

/// One value of every type.
pub(super) fn scalars() -> Vec<(&'static str, Variant)> {
    let object = ExtensionObject::from_structure(&structures::Range { low: -1.0, high: 1.0 });
    let expanded = ExpandedNodeId {
        node_id: NodeId::string(0, "node"),
        namespace_uri: "urn:namespace".into(),
        server_index: 3,
    };
    vec![
        ("empty", Variant::Empty),
        ("boolean", Variant::Boolean(true)),
        ("sbyte", Variant::SByte(-1)),
        ("byte", Variant::Byte(255)),
        ("int16", Variant::Int16(i16::MIN)),
        ("uint16", Variant::UInt16(u16::MAX)),
        ("int32", Variant::Int32(i32::MIN)),
        ("uint32", Variant::UInt32(u32::MAX)),
        ("int64", Variant::Int64(i64::MIN)),
        ("uint64", Variant::UInt64(u64::MAX)),
        ("float", Variant::Float(f32::NAN)),
        ("double", Variant::Double(-0.0)),
        ("string", Variant::String("ä€😀".into())),
        ("string-null", Variant::String(UaString::NULL)),
        ("date-time", Variant::DateTime(DateTime::from_ticks(1))),
        ("guid", Variant::Guid(Guid([0xC4; 16]))),
        ("byte-string", Variant::ByteString(ByteString::from(&[0, 255]))),
        ("byte-string-null", Variant::ByteString(ByteString::NULL)),
        ("xml", Variant::XmlElement(XmlElement("<a/>".into()))),
        ("node-id", Variant::NodeId(Box::new(NodeId::numeric(300, 70_000)))),
        ("expanded-node-id", Variant::ExpandedNodeId(Box::new(expanded))),
        ("status-code", Variant::StatusCode(StatusCode::BAD_TIMEOUT)),
        (
            "qualified-name",
            Variant::QualifiedName(Box::new(QualifiedName::new(1, "name"))),
        ),
        (
            "localized-text",
            Variant::LocalizedText(Box::new(LocalizedText::new("de", "Text"))),
        ),
        ("extension-object", Variant::ExtensionObject(Box::new(object))),
        (
            "data-value",
            Variant::DataValue(Box::new(full_data_value(Variant::Double(f64::NAN)))),
        ),
        ("diagnostic-info", Variant::DiagnosticInfo(Box::new(full_diagnostics()))),
    ]
}

/// Two of each in an array, and a matrix of six numbers and of six strings.
pub(super) fn arrays() -> Vec<(String, Variant)> {
    let mut all = Vec::new();
    for (name, scalar) in scalars() {
        if let Some(mut values) = ArrayValues::from_scalar(scalar) {
            let one = values.clone();
            values.extend_from(&one, 0, 1);
            all.push((format!("array-{name}"), Variant::from(values)));
        }
    }
    for built_in_type in [BuiltInType::Int32, BuiltInType::DataValue, BuiltInType::Variant] {
        all.push((
            format!("array-empty-{}", built_in_type.id()),
            Variant::from(ArrayValues::empty(built_in_type)),
        ));
    }
    let mixed = vec![
        Variant::Empty,
        Variant::from(ArrayValues::Byte(vec![1, 2])),
        Variant::Boolean(false),
    ];
    all.push(("array-variants".into(), Variant::from(ArrayValues::Variant(mixed))));
    for (name, values, dimensions) in [
        (
            "matrix-numbers",
            ArrayValues::UInt16(vec![1, 2, 3, 4, 5, 6]),
            vec![2, 3],
        ),
        (
            "matrix-strings",
            ArrayValues::String(["a", "bc", "", "d", "e", "f"].map(UaString::from).to_vec()),
            vec![3, 1, 2],
        ),
    ] {
        if let Ok(array) = Array::matrix(values, dimensions) {
            all.push((name.into(), Variant::from(array)));
        }
    }
    all
}

/// An array Variant by hand: the first byte, the length, the elements, the dimensions.
fn array(mask: u8, length: i32, elements: &[u8], dimensions: &[i32]) -> Vec<u8> {
    bytes(|e| {
        e.u8(mask);
        e.i32(length);
        e.raw(elements);
        if mask & 0x40 != 0 {
            e.put(dimensions);
        }
    })
}

/// Variants that are bad, or at the edge of being so.
fn odd_variants() -> Vec<(String, Vec<u8>)> {
    let most = i32::MAX;
    let mut all: Vec<(String, Vec<u8>)> = [
        ("dimensions-zero", array(0xC6, 0, &[], &[0, 0])),
        ("dimensions-zero-with-elements", array(0xC6, 1, &[0; 4], &[0, 1])),
        ("dimensions-huge", array(0xC6, 1, &[0; 4], &[most, most])),
        (
            "dimensions-huge-boolean",
            array(0xC1, 0, &[], &[most, most, most, most]),
        ),
        (
            "dimensions-overflow-to-one",
            array(0xC1, 1, &[0], &[0x1_0000, 0x1_0000, 0x1_0000, 0x1_0000]),
        ),
        ("dimensions-product-wrong", array(0xC6, 3, &[0; 12], &[2, 2])),
        ("dimensions-negative", array(0xC6, 1, &[0; 4], &[-1, -1])),
        ("dimensions-one", array(0xC6, 2, &[0; 8], &[2])),
        ("dimensions-none", array(0xC6, 2, &[0; 8], &[])),
        ("dimensions-many", array(0xC1, 1, &[1], &[1; 60])),
        ("dimensions-of-scalar", vec![0x46, 0, 0, 0, 0]),
        (
            "dimensions-length-largest",
            [array(0x86, 1, &[0; 4], &[]), vec![0xFF, 0xFF, 0xFF, 0x7F]].concat(),
        ),
        ("array-null", array(0x8C, -1, &[], &[])),
        ("array-null-with-dimensions", array(0xCC, -1, &[], &[2, 2])),
        ("variant-in-variant", vec![24, 1, 1]),
        ("type-26", vec![26, 2, 0, 0, 0, 1, 2]),
        ("type-31-array", array(0x9F, 1, &[1, 0, 0, 0, 9], &[])),
        ("type-32", vec![32, 0, 0, 0, 0]),
        ("type-63-array", array(0xBF, 0, &[], &[])),
        ("type-0-array", array(0x80, 0, &[], &[])),
        ("utf8-invalid", vec![12, 2, 0, 0, 0, 0xC3, 0x28]),
        ("utf8-surrogate", vec![12, 3, 0, 0, 0, 0xED, 0xA0, 0x80]),
        ("utf8-cut", vec![12, 1, 0, 0, 0, 0xE2]),
        ("utf8-invalid-in-array", array(0x8C, 1, &[1, 0, 0, 0, 0xFF], &[])),
        ("utf8-invalid-in-name", vec![20, 0, 0, 1, 0, 0, 0, 0x80]),
        ("boolean-two", vec![1, 2]),
        (
            "date-time-before-all-time",
            bytes(|e| {
                e.u8(13);
                e.i64(i64::MIN);
            }),
        ),
        (
            "date-time-last-tick",
            bytes(|e| {
                e.u8(13);
                e.i64(2_650_467_743_990_000_000);
            }),
        ),
    ]
    .map(|(name, bytes)| (name.to_owned(), bytes))
    .to_vec();
    for id in 1..=31 {
        all.push((
            format!("length-largest-type-{id}"),
            array(0x80 | id, most, &[0; 8], &[]),
        ));
    }
    for (name, length) in [("largest", i32::MAX), ("smallest", i32::MIN), ("minus-two", -2)] {
        for id in [12, 15, 16] {
            all.push((
                format!("length-{name}-scalar-{id}"),
                bytes(|e| {
                    e.u8(id);
                    e.i32(length);
                    e.raw(b"abc");
                }),
            ));
        }
    }
    for (name, levels) in [("fits", 100), ("too-deep", 101)] {
        all.push((format!("nested-variants-{name}"), nested_variants(levels)));
        all.push((format!("nested-data-values-{name}"), nested_data_values(levels)));
        all.push((
            format!("nested-diagnostics-{name}"),
            [vec![25], nested_diagnostics(levels - 1)].concat(),
        ));
        all.push((format!("nested-mixture-{name}"), nested_mixture(levels)));
    }
    all
}

/// NodeIds and ExpandedNodeIds by their first byte.
fn odd_node_ids() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("two-byte", vec![0, 85]),
        ("four-byte", vec![1, 2, 0x2C, 1]),
        ("numeric-small", vec![2, 0, 0, 85, 0, 0, 0]),
        ("numeric", vec![2, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
        ("string", vec![3, 1, 0, 1, 0, 0, 0, b'a']),
        ("string-null", vec![3, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF]),
        ("string-huge", vec![3, 0, 0, 0xFF, 0xFF, 0xFF, 0x7F]),
        ("guid", [vec![4, 1, 0], vec![7; 16]].concat()),
        ("opaque", vec![5, 1, 0, 2, 0, 0, 0, 0, 255]),
        ("opaque-null", vec![5, 1, 0, 0xFF, 0xFF, 0xFF, 0xFF]),
        ("form-6", vec![6, 0, 0, 0, 0, 0, 0]),
        ("form-63", vec![63, 0, 0, 0, 0, 0, 0]),
        ("uri", vec![0x80, 85, 1, 0, 0, 0, b'u']),
        ("uri-and-index", vec![0x82, 5, 0, 1, 0, 0, 0, 1, 0, 0, 0, b'u']),
        ("uri-empty-and-index", vec![0x82, 5, 0, 1, 0, 0, 0, 0, 0, 0, 0]),
        (
            "uri-null-and-index",
            vec![0x82, 5, 0, 1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF],
        ),
        ("server", vec![0x40, 85, 9, 0, 0, 0]),
        ("server-zero", vec![0x40, 85, 0, 0, 0, 0]),
        (
            "uri-and-server",
            vec![0xC3, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, b'u', 9, 0, 0, 0],
        ),
    ]
}

fn odd_data_values() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("nothing", vec![0]),
        ("status-good", vec![2, 0, 0, 0, 0]),
        ("value-empty", vec![1, 0]),
        (
            "times-zero",
            bytes(|e| {
                e.u8(0x3C);
                e.u64(0);
                e.u16(5);
                e.u64(0);
                e.u16(5);
            }),
        ),
        ("picoseconds-alone", vec![0x30, 5, 0, 6, 0]),
        (
            "picoseconds-zero",
            bytes(|e| {
                e.u8(0x14);
                e.u64(5);
                e.u16(0);
            }),
        ),
        (
            "picoseconds-largest",
            bytes(|e| {
                e.u8(0x14);
                e.u64(5);
                e.u16(u16::MAX);
            }),
        ),
        ("all-bits", vec![0xFF; 40]),
        ("reserved-bits", vec![0xC0]),
    ]
}

fn odd_objects() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("null", vec![0, 0, 0]),
        ("no-body", vec![1, 1, 5, 0, 0]),
        ("binary-null", vec![1, 1, 5, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF]),
        ("binary-empty", vec![1, 1, 5, 0, 1, 0, 0, 0, 0]),
        ("binary-huge", vec![1, 1, 5, 0, 1, 0xFF, 0xFF, 0xFF, 0x7F]),
        (
            "xml",
            encode(&ExtensionObject {
                type_id: NodeId::numeric(1, 5),
                body: ExtensionBody::Xml(XmlElement("<a/>".into())),
            }),
        ),
        ("xml-null", vec![1, 1, 5, 0, 2, 0xFF, 0xFF, 0xFF, 0xFF]),
        ("xml-invalid-utf8", vec![1, 1, 5, 0, 2, 1, 0, 0, 0, 0xFF]),
        ("body-3", vec![1, 1, 5, 0, 3, 0, 0, 0, 0]),
        ("decimal", encode(&Decimal::new(-1_234_567, 3).to_extension_object())),
        ("decimal-without-scale", vec![0, 50, 1, 1, 0, 0, 0, 0]),
        ("nested-3", nested_objects(3)),
    ]
}

fn of_type(place: u8, name: &str, bytes: &[u8]) -> Seed {
    Seed::new(name, [&[choice(place, false, false)], bytes].concat())
}

pub(super) fn builtin() -> Vec<Seed> {
    let mut all = Vec::new();
    for (name, value) in scalars() {
        all.push(of_type(0, &format!("variant-{name}"), &encode(&value)));
    }
    for (name, value) in arrays() {
        all.push(of_type(0, &format!("variant-{name}"), &encode(&value)));
        all.push(Seed::new(
            format!("tight-{name}"),
            [vec![choice(0, false, true)], encode(&value)].concat(),
        ));
    }
    for (name, value) in odd_variants() {
        all.push(of_type(0, &format!("variant-{name}"), &value));
    }
    for (name, value) in odd_data_values() {
        all.push(of_type(1, &format!("data-value-{name}"), &value));
    }
    for (name, value) in odd_objects() {
        all.push(of_type(2, &format!("object-{name}"), &value));
    }
    for (name, value) in odd_node_ids() {
        all.push(of_type(4, &format!("node-id-{name}"), &value));
        all.push(of_type(5, &format!("expanded-{name}"), &value));
    }
    all.push(of_type(3, "diagnostics-full", &encode(&full_diagnostics())));
    all.push(of_type(3, "diagnostics-fits", &nested_diagnostics(100)));
    all.push(of_type(3, "diagnostics-too-deep", &nested_diagnostics(101)));
    all.push(of_type(
        7,
        "text-all-bits",
        &[0xFF, 1, 0, 0, 0, b'd', 0xFF, 0xFF, 0xFF, 0xFF],
    ));
    for place in 0..25 {
        all.push(Seed::new(
            format!("list-empty-{place}"),
            [choice(place, true, false), 0, 0, 0, 0],
        ));
        all.push(Seed::new(
            format!("list-largest-{place}"),
            [choice(place, true, false), 0xFF, 0xFF, 0xFF, 0x7F, 0, 0],
        ));
        all.push(Seed::new(
            format!("list-zeros-{place}"),
            [vec![choice(place, true, false), 3, 0, 0, 0], vec![0; 48]].concat(),
        ));
    }
    all
}

/// Inputs too long for files: 10,000 levels, and elements that are small on the wire and large in memory.
pub(super) fn deep_builtin() -> Vec<Seed> {
    let mut all = Vec::new();
    for levels in [100, 101, 10_000] {
        for tight in [false, true] {
            let choice = |place| vec![choice(place, false, tight)];
            let name = |what: &str| format!("{what}-{levels}-{tight}");
            all.push(Seed::new(
                name("variants"),
                [choice(0), nested_variants(levels)].concat(),
            ));
            all.push(Seed::new(
                name("data-values"),
                [choice(0), nested_data_values(levels)].concat(),
            ));
            all.push(Seed::new(name("mixture"), [choice(0), nested_mixture(levels)].concat()));
            all.push(Seed::new(
                name("diagnostics"),
                [choice(3), nested_diagnostics(levels)].concat(),
            ));
            all.push(Seed::new(name("objects"), [choice(2), nested_objects(levels)].concat()));
        }
    }
    for id in 1..=25_u8 {
        let many = 20_000;
        let bytes = array(0x80 | id, many, &vec![0; many as usize * 4], &[]);
        all.push(of_type(0, &format!("many-small-{id}"), &bytes));
        let half = array(0x80 | id, many, &vec![0; many as usize + 7], &[]);
        all.push(of_type(0, &format!("many-small-cut-{id}"), &half));
    }
    let small: Vec<_> = builtin().into_iter().filter(|seed| seed.bytes.len() < 80).collect();
    all.extend(with_bad_lengths(&small));
    all.extend(truncated(&small));
    all
}

pub(super) fn extensions() -> Vec<Seed> {
    let mut all: Vec<Seed> = odd_objects()
        .into_iter()
        .map(|(name, bytes)| Seed::new(name, bytes))
        .collect();
    for (name, object) in extension::defaults() {
        all.push(Seed::new(format!("default-{name}"), encode(&object)));
        // One byte more than the structure.
        let longer = [object.binary().unwrap_or(&[]), &[0]].concat();
        let object = ExtensionObject {
            body: ExtensionBody::Binary(ByteString::from(longer)),
            ..object
        };
        all.push(Seed::new(format!("longer-{name}"), encode(&object)));
    }
    all.extend(
        super::messages::objects()
            .into_iter()
            .map(|(name, object)| Seed::new(name, encode(&object))),
    );
    all
}

pub(super) fn deep_extensions() -> Vec<Seed> {
    let seeds = extensions();
    let short: Vec<_> = seeds.into_iter().filter(|seed| seed.bytes.len() < 120).collect();
    let mut all = with_bad_lengths(&short);
    all.extend(truncated(&short));
    for levels in [100, 101, 10_000] {
        all.push(Seed::new(format!("nested-{levels}"), nested_objects(levels)));
        let literal = ExtensionObject {
            type_id: NodeId::standard(597),
            body: ExtensionBody::Binary(ByteString::from(nested_variants(levels))),
        };
        all.push(Seed::new(format!("literal-{levels}"), encode(&literal)));
    }
    all
}

pub(super) fn guests() -> Vec<Seed> {
    let mut all: Vec<Seed> = scalars()
        .into_iter()
        .map(|(name, value)| Seed::new(name, encode(&value)))
        .collect();
    all.extend(
        arrays()
            .into_iter()
            .map(|(name, value)| Seed::new(name, encode(&value))),
    );
    all.extend(odd_variants().into_iter().map(|(name, bytes)| Seed::new(name, bytes)));
    all.push(Seed::new("nothing", []));
    all.push(Seed::new("one-byte-more", [1, 1, 0]));
    all
}

pub(super) fn deep_guests() -> Vec<Seed> {
    let deep = deep_builtin().into_iter();
    let variants = deep.filter(|seed| seed.bytes.first() == Some(&choice(0, false, false)));
    variants
        .map(|seed| Seed::new(seed.name, seed.bytes.get(1..).unwrap_or_default()))
        .collect()
}
