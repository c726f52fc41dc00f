//! What a client has to know of a variable to understand its value, and whether that changed (Part 8, 5.2 and 5.3; Part 4, 7.39.1).
//!
//! Owns the list of properties that give values their meaning, and the comparison of two structures. Knows nothing of subscriptions: whoever
//! watches a variable asks.

use std::sync::Arc;

use backplane_types::{DataValue, NodeId};

use crate::cell::ValueCell;
use crate::graph::{Graph, NodeKey};
use crate::model::node::{Node, Source};
use crate::space::Snapshot;

/// Properties whose change is one of the semantics of the value (Part 8, 5.3.2 to 5.3.4).
const PROPERTIES: [&str; 13] = [
    "EURange",
    "EngineeringUnits",
    "InstrumentRange",
    "EnumStrings",
    "EnumValues",
    "EnumDictionaryEntries",
    "TrueState",
    "FalseState",
    "Title",
    "AxisScaleType",
    "AxisDefinition",
    "XAxisDefinition",
    "YAxisDefinition",
];

/// What changed about a variable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MeaningChange {
    /// A property that gives the value its meaning: SemanticsChanged.
    pub semantics: bool,
    /// DataType, ValueRank or ArrayDimensions: StructureChanged.
    pub structure: bool,
}

fn properties(graph: &Graph, key: NodeKey) -> impl Iterator<Item = &Node> {
    let has_property = graph.known.has_property;
    graph
        .edges(key, 0)
        .filter(move |(_, edge)| edge.forward && Some(edge.kind) == has_property)
        .filter_map(|(_, edge)| graph.node(edge.target))
        .filter(|node| node.browse_name.namespace == 0 && PROPERTIES.contains(&node.browse_name.name.text()))
}

fn value(node: &Node) -> Option<DataValue> {
    match &node.variable()?.source {
        Source::Static(value) => Some(value.as_ref().clone()),
        Source::Cell(cell) => Some(cell.read()),
        Source::OnDemand | Source::Live(_) => None,
    }
}

/// Whether a property is another one now, or says something else. What is written to a cell that stays is not seen here.
fn property_changed(old: &Node, new: &Node) -> bool {
    match (old.variable().map(|it| &it.source), new.variable().map(|it| &it.source)) {
        (Some(Source::Cell(old)), Some(Source::Cell(new))) if Arc::ptr_eq(old, new) => false,
        (Some(Source::Static(old)), Some(Source::Static(new))) if Arc::ptr_eq(old, new) => false,
        _ => match (value(old), value(new)) {
            (Some(old), Some(new)) => !old.value.is_same(&new.value),
            (None, None) => false,
            _ => true,
        },
    }
}

impl Snapshot {
    /// The cells of properties that give the values of a variable their meaning: when the version of one changes, so did that.
    #[must_use]
    pub fn meaning_cells(&self, id: &NodeId) -> Vec<Arc<ValueCell>> {
        let Some(key) = self.graph.find(id) else {
            return Vec::new();
        };
        let cell = |node: &Node| match &node.variable()?.source {
            Source::Cell(cell) => Some(Arc::clone(cell)),
            _ => None,
        };
        properties(&self.graph, key).filter_map(cell).collect()
    }

    /// What is different about a variable in a `newer` structure. Nothing, when it is missing in one of them.
    #[must_use]
    pub fn meaning_change(&self, newer: &Self, id: &NodeId) -> MeaningChange {
        let both = self.graph.find(id).zip(newer.graph.find(id));
        both.and_then(|(old, new)| compare((&self.graph, old), (&newer.graph, new)))
            .unwrap_or_default()
    }
}

fn compare((old_graph, old): (&Graph, NodeKey), (new_graph, new): (&Graph, NodeKey)) -> Option<MeaningChange> {
    let same_model = Arc::ptr_eq(&old_graph.part(old.slot)?.model, &new_graph.part(new.slot)?.model);
    if same_model {
        return None;
    }
    let (before, after) = (old_graph.node(old)?.variable()?, new_graph.node(new)?.variable()?);
    let structure = before.rank != after.rank
        || before.dimensions() != after.dimensions()
        || old_graph.id_of(old.slot, before.data_type) != new_graph.id_of(new.slot, after.data_type);
    let mut semantics = properties(old_graph, old).count() != properties(new_graph, new).count();
    for property in properties(old_graph, old) {
        let same_name = |other: &&Node| other.browse_name == property.browse_name;
        let kept = properties(new_graph, new).find(same_name);
        semantics |= kept.is_none_or(|kept| property_changed(property, kept));
    }
    Some(MeaningChange { semantics, structure })
}
