//! What gives values their meaning, and whether it changed.

use backplane_nodes::{MeaningChange, ModelBuilder};
use backplane_types::{DataValue, EUInformation, ExtensionObject, NodeId, QualifiedName, Range, Variant, ids};

use crate::common::{World, builder, name, node, objects, standard};

fn range(high: f64) -> DataValue {
    DataValue::new(ExtensionObject::from_structure(&Range { low: 0.0, high }))
}

fn property(steps: &mut ModelBuilder, id: &str, browse_name: &str, tag: u32, value: DataValue) {
    let browse_name = QualifiedName {
        namespace: 0,
        name: browse_name.into(),
    };
    steps.property(
        node(id),
        node("V"),
        browse_name,
        tag,
        standard(ids::data_type::RANGE),
        value,
    );
}

fn variable(steps: &mut ModelBuilder, data_type: u32, value: impl Into<Variant>) {
    let initial = DataValue::new(value);
    steps.variable(node("V"), objects(), name("V"), 1, standard(data_type), initial, 3);
}

fn world() -> World {
    let mut steps = builder();
    variable(&mut steps, ids::data_type::DOUBLE, 1.0);
    property(&mut steps, "Range", "EURange", 0, range(10.0));
    property(&mut steps, "Instrument", "InstrumentRange", 2, range(10.0));
    property(&mut steps, "Note", "Note", 3, range(10.0));
    World::new(&steps)
}

/// What changes by these steps.
fn change(world: &World, steps: impl FnOnce(&mut ModelBuilder)) -> MeaningChange {
    let older = world.space.snapshot();
    let mut builder = builder();
    steps(&mut builder);
    world.space.update(world.id, &builder).unwrap();
    let newer = world.space.snapshot();
    assert_eq!(newer.meaning_change(&newer, &node("V")), MeaningChange::default());
    older.meaning_change(&newer, &node("V"))
}

#[test]
fn properties_that_can_be_written_tell_by_their_cells() {
    let world = world();
    let snapshot = world.space.snapshot();
    let cells = snapshot.meaning_cells(&node("V"));
    assert_eq!(
        cells.len(),
        1,
        "neither the one that is fixed nor the one that means nothing"
    );
    let version = cells[0].version();
    world.publish(3, ExtensionObject::from_structure(&Range::default()));
    assert_eq!(cells[0].version(), version);
    world.publish(2, ExtensionObject::from_structure(&Range::default()));
    assert_ne!(cells[0].version(), version);
    assert!(snapshot.meaning_cells(&node("Nowhere")).is_empty());
}

#[test]
fn fixed_properties_and_types_tell_by_the_structure() {
    let (none, semantics, structure) = (
        MeaningChange::default(),
        MeaningChange {
            semantics: true,
            structure: false,
        },
        MeaningChange {
            semantics: false,
            structure: true,
        },
    );
    let world = world();
    let set = |high: f64| {
        move |steps: &mut ModelBuilder| {
            steps.remove(node("Range"));
            property(steps, "Range", "EURange", 0, range(high));
        }
    };
    assert_eq!(change(&world, set(20.0)), semantics);
    assert_eq!(change(&world, set(20.0)), none, "the same again");
    let units = |steps: &mut ModelBuilder| {
        let unit = ExtensionObject::from_structure(&EUInformation::default());
        let name = QualifiedName {
            namespace: 0,
            name: "EngineeringUnits".into(),
        };
        let kind = standard(ids::data_type::EU_INFORMATION);
        steps.property(node("Units"), node("V"), name, 0, kind, DataValue::new(unit));
    };
    assert_eq!(change(&world, units), semantics, "it was not there before");
    let gone = |steps: &mut ModelBuilder| {
        steps.remove(node("Note"));
    };
    assert_eq!(change(&world, gone), none, "it meant nothing");
    let other = |steps: &mut ModelBuilder| {
        steps.remove(node("V"));
        variable(steps, ids::data_type::DOUBLE, vec![1.0, 2.0]);
        property(steps, "Range", "EURange", 0, range(20.0));
        property(steps, "Instrument", "InstrumentRange", 2, range(10.0));
    };
    let both = change(&world, other);
    assert!(both.structure && both.semantics, "an array now, and without units");
    let wider = |steps: &mut ModelBuilder| {
        steps.remove(node("V"));
        variable(steps, ids::data_type::FLOAT, vec![1f32, 2.0]);
        property(steps, "Range", "EURange", 0, range(20.0));
        property(steps, "Instrument", "InstrumentRange", 2, range(10.0));
    };
    assert_eq!(change(&world, wider), structure);
    let removed = |steps: &mut ModelBuilder| {
        steps.remove(node("V"));
    };
    let nothing: NodeId = node("V");
    assert_eq!(change(&world, removed), none, "{nothing} is gone");
}
