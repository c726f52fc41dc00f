//! Whether a structure in an ExtensionObject is of the data type that a variable or argument declares: itself or a subtype (Part 3, 5.6.2).

use backplane_types::{ArrayValues, ExtensionObject, NodeId, Variant, ids};

use crate::graph::{Graph, NodeKey};
use crate::model::node::Variable;
use crate::typing::TypeRule;

/// Whether the structures in `value` are what the variable declares. Values of other kinds always are.
pub(crate) fn fits(graph: &Graph, key: NodeKey, variable: &Variable, value: &Variant) -> bool {
    if variable.rule != TypeRule::STRUCTURE {
        return true;
    }
    graph
        .follow(key.slot, variable.data_type)
        .is_none_or(|declared| all_of(graph, declared, value))
}

/// The same for a data type by id.
pub(crate) fn fits_type(graph: &Graph, data_type: &NodeId, rule: TypeRule, value: &Variant) -> bool {
    rule != TypeRule::STRUCTURE
        || graph
            .find(data_type)
            .is_none_or(|declared| all_of(graph, declared, value))
}

fn all_of(graph: &Graph, declared: NodeKey, value: &Variant) -> bool {
    match value {
        Variant::ExtensionObject(object) => is_of(graph, declared, object),
        Variant::Array(array) => match &array.values {
            ArrayValues::ExtensionObject(objects) => objects.iter().all(|object| is_of(graph, declared, object)),
            _ => true,
        },
        _ => true,
    }
}

fn is_of(graph: &Graph, declared: NodeKey, object: &ExtensionObject) -> bool {
    let any = graph
        .node(declared)
        .is_some_and(|node| node.id == NodeId::numeric(0, ids::data_type::STRUCTURE));
    if any || object.is_null() {
        return true;
    }
    // Encodings hang on their data type by HasEncoding; some clients send the data type itself.
    let Some(encoding) = graph.find(&object.type_id) else {
        return false;
    };
    if graph.is_a(encoding, declared) {
        return true;
    }
    let has_encoding = NodeId::numeric(0, ids::reference_type::HAS_ENCODING);
    graph.edges(encoding, 0).any(|(_, edge)| {
        !edge.forward
            && graph.node(edge.kind).is_some_and(|kind| kind.id == has_encoding)
            && graph.is_a(edge.target, declared)
    })
}
