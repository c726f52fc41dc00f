//! What the table says about well-known nodes, and what its reader makes of damaged blobs.

use std::collections::BTreeMap;

use backplane_types::{
    Argument, ArrayValues, BinaryDecode, DecodeLimits, Decoder, EnumDefinition, ExtensionObject, LogRecord,
    ReadRequest, Structure, StructureDefinition, StructureType, Variant, ids,
};

use super::{BLOB, Cursor, NodeRecord, RawReference, Table};

fn records(table: &Table) -> BTreeMap<u32, NodeRecord<'_>> {
    table
        .records()
        .map(|record| record.unwrap())
        .map(|record| (record.id, record))
        .collect()
}

fn variant(bytes: &[u8]) -> Variant {
    let mut decoder = Decoder::new(bytes, DecodeLimits::default());
    let value = Variant::decode(&mut decoder).unwrap();
    assert!(decoder.is_empty());
    value
}

fn extension(bytes: &[u8]) -> ExtensionObject {
    match variant(bytes) {
        Variant::ExtensionObject(object) => *object,
        other => panic!("not an extension object: {other:?}"),
    }
}

fn structure<T: Structure>(record: &NodeRecord<'_>) -> T {
    extension(record.definition.unwrap()).decode_as().unwrap()
}

#[test]
fn every_node_is_there_once() {
    let table = Table::open().unwrap();
    let records = records(&table);
    assert_eq!(records.len(), table.len());
    assert_eq!(records.len(), 6_175);
    let of_class = |class| records.values().filter(|record| record.class == class).count();
    assert_eq!(
        [1, 2, 4, 8, 16, 32, 64, 128].map(of_class),
        [1_413, 3_378, 462, 281, 64, 80, 497, 0]
    );
    let mut references: Vec<_> = records
        .values()
        .flat_map(|record| record.references.iter().map(|reference| (record.id, *reference)))
        .collect();
    assert_eq!(references.len(), 14_336);
    assert!(
        references
            .iter()
            .all(|(_, reference)| records.contains_key(&reference.target))
    );
    references.dedup();
    assert_eq!(references.len(), 14_336);
}

#[test]
fn attributes_of_well_known_nodes() {
    let table = Table::open().unwrap();
    let records = records(&table);
    let organizes = &records[&ids::reference_type::ORGANIZES];
    assert_eq!(
        (organizes.browse_name, organizes.inverse_name),
        ("Organizes", Some("OrganizedBy"))
    );
    assert!(records[&ids::reference_type::REFERENCES].symmetric);
    assert!(records[&ids::data_type::NUMBER].is_abstract);
    let server = &records[&ids::object::SERVER];
    assert_eq!(server.event_notifier, 1);
    let status = RawReference {
        reference_type: ids::reference_type::HAS_COMPONENT,
        target: ids::variable::SERVER_SERVER_STATUS,
    };
    assert!(server.references.contains(&status));
    let array = &records[&ids::variable::SERVER_NAMESPACE_ARRAY];
    assert_eq!(
        (array.data_type, array.value_rank, &array.array_dimensions[..]),
        (12, 1, &[0][..])
    );
    assert!(records[&ids::data_type::READ_REQUEST].purpose.services_only);
    let restricted = records
        .values()
        .filter(|record| record.role_permissions.is_some())
        .count();
    assert_eq!(restricted, 558);
}

#[test]
fn values_and_definitions_decode() {
    let table = Table::open().unwrap();
    let (mut values, mut structures, mut enumerations) = (0, 0, 0);
    for record in records(&table).values() {
        if let Some(value) = record.value {
            assert_ne!(variant(value), Variant::Empty);
            values += 1;
        }
        let Some(definition) = record.definition else { continue };
        assert_eq!(record.class, 64);
        let object = extension(definition);
        if object.is::<StructureDefinition>() {
            object.decode_as::<StructureDefinition>().unwrap();
            structures += 1;
        } else {
            object.decode_as::<EnumDefinition>().unwrap();
            enumerations += 1;
        }
    }
    // All but the two schema documents, of 1,291; all 438 definitions.
    assert_eq!((values, structures, enumerations), (1_289, 370, 68));
}

#[test]
fn definitions_say_what_the_generated_types_say() {
    let table = Table::open().unwrap();
    let records = records(&table);
    let read: StructureDefinition = structure(&records[&ReadRequest::TYPE_ID]);
    assert_eq!(
        read.default_encoding_id,
        backplane_types::NodeId::numeric(0, ReadRequest::ENCODING_ID)
    );
    let names: Vec<_> = read.fields.iter().map(|field| field.name.text()).collect();
    assert_eq!(names, ["RequestHeader", "MaxAge", "TimestampsToReturn", "NodesToRead"]);
    let log: StructureDefinition = structure(&records[&LogRecord::TYPE_ID]);
    assert_eq!(log.structure_type, StructureType::STRUCTURE_WITH_OPTIONAL_FIELDS);
    assert_eq!(log.fields.iter().filter(|field| field.is_optional).count(), 5);
    // Inherited fields come first.
    let method: StructureDefinition = structure(&records[&ids::data_type::PUBLISHED_ACTION_METHOD_DATA_TYPE]);
    let base: StructureDefinition = structure(&records[&ids::data_type::PUBLISHED_ACTION_DATA_TYPE]);
    assert!(base.fields.len() < method.fields.len());
    assert_eq!(base.fields[..], method.fields[..base.fields.len()]);
    let classes: EnumDefinition = structure(&records[&ids::data_type::NODE_CLASS]);
    assert!(
        classes
            .fields
            .iter()
            .any(|field| field.value == 128 && field.name.text() == "View")
    );
}

#[test]
fn method_arguments_are_values() {
    let table = Table::open().unwrap();
    let records = records(&table);
    let arguments = &records[&ids::variable::SERVER_GET_MONITORED_ITEMS_INPUT_ARGUMENTS];
    let Variant::Array(array) = variant(arguments.value.unwrap()) else {
        panic!("not an array")
    };
    let ArrayValues::ExtensionObject(objects) = &array.values else {
        panic!("not extension objects")
    };
    let argument: Argument = objects[0].decode_as().unwrap();
    assert_eq!(argument.name.text(), "SubscriptionId");
    assert_eq!(
        argument.data_type,
        backplane_types::NodeId::numeric(0, ids::data_type::UINT32)
    );
    assert!(argument.description.text.is_null());
}

#[test]
fn damaged_blobs_are_errors() {
    let parse = |blob: Vec<u8>| {
        let blob: &'static [u8] = Vec::leak(blob);
        Table::parse(blob).and_then(|table| table.records().try_for_each(|record| record.map(drop)))
    };
    assert!(parse(Vec::new()).is_err());
    assert!(parse(b"BPN0\x02\x00\x00\x00".to_vec()).is_err());
    assert!(parse(b"BPN0\x01\x00\x00\x00".to_vec()).is_ok());
    assert!(parse(b"BPN0\x01\xFF\xFF\xFF\xFF\x0F".to_vec()).is_err());
    let whole = BLOB.len();
    for cut in (1..whole).step_by(whole / 40) {
        assert!(parse(BLOB[..cut].to_vec()).is_err(), "cut at {cut}");
    }
}

#[test]
fn signed_numbers_cover_their_range() {
    let mut cursor = Cursor {
        blob: &[1, 2, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F],
        at: 0,
    };
    assert_eq!(
        [cursor.signed(), cursor.signed(), cursor.signed()],
        [Ok(-1), Ok(1), Ok(i32::MIN)]
    );
    assert!(cursor.signed().is_err());
}
