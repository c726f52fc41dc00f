//! What changed from one structure to the next: the nodes that came, went, or have other references (Part 5, 6.4.32 and 12.16).
//!
//! Owns the comparison. It must not know who wants to hear of it: it costs something only when somebody asks.

use std::sync::Arc;

use backplane_types::{NodeId, Variant};
use hashbrown::{HashMap, HashSet};

use crate::model::node::{Node, Source};
use crate::model::{Export, Model};
use crate::space::Snapshot;

/// Verbs of ModelChangeStructureDataType (Part 5, 12.16).
mod verb {
    pub(super) const NODE_ADDED: u8 = 1;
    pub(super) const NODE_DELETED: u8 = 1 << 1;
    pub(super) const REFERENCE_ADDED: u8 = 1 << 2;
    pub(super) const REFERENCE_DELETED: u8 = 1 << 3;
}

/// One node that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeChange {
    /// The node.
    pub affected: NodeId,
    /// Its type definition; null for nodes without one.
    pub affected_type: NodeId,
    /// What happened to it: the bits of ModelChangeStructureDataType.
    pub verb: u8,
}

/// Two structures, one right after the other.
#[derive(Debug)]
pub struct StructureChange {
    /// What was there.
    pub old: Arc<Snapshot>,
    /// What is there now.
    pub new: Arc<Snapshot>,
}

/// Who is told of changes.
pub(crate) struct Watcher(pub(crate) Box<dyn Fn(&StructureChange) + Send + Sync>);

/// A reference by the ids of its ends.
type Named<'a> = (&'a NodeId, bool, &'a NodeId);

impl StructureChange {
    /// The nodes that changed, in no particular order; `None` when they are more than `limit`.
    #[must_use]
    pub fn nodes(&self, limit: usize) -> Option<Vec<NodeChange>> {
        let empty = Model::default();
        let mut verbs: HashMap<&NodeId, u8> = HashMap::new();
        let old: HashMap<_, &Model> = self.old.attached.iter().map(|it| (it.id, it.model.as_ref())).collect();
        let new: HashMap<_, &Model> = self.new.attached.iter().map(|it| (it.id, it.model.as_ref())).collect();
        let managers: HashSet<_> = old.keys().chain(new.keys()).copied().collect();
        for manager in managers {
            let before = old.get(&manager).copied().unwrap_or(&empty);
            let after = new.get(&manager).copied().unwrap_or(&empty);
            if std::ptr::eq(before, after) {
                continue;
            }
            compare_nodes(before, after, &mut verbs, limit);
            compare_exports(before, after, &mut verbs);
            if verbs.len() > limit {
                return None;
            }
        }
        let change = |(id, verb): (&NodeId, u8)| NodeChange {
            affected: id.clone(),
            affected_type: self
                .new
                .type_of(id)
                .or_else(|| self.old.type_of(id))
                .unwrap_or_default(),
            verb,
        };
        Some(verbs.into_iter().map(change).collect())
    }
}

fn compare_nodes<'a>(before: &'a Model, after: &'a Model, verbs: &mut HashMap<&'a NodeId, u8>, limit: usize) {
    for id in before.node_ids().filter(|id| !after.contains(id)) {
        if verbs.len() > limit {
            return;
        }
        *verbs.entry(id).or_default() |= verb::NODE_DELETED;
    }
    for (_, node) in after.nodes.iter() {
        if verbs.len() > limit {
            return;
        }
        let id = &node.id;
        let Some(old) = before.handle(id).and_then(|handle| before.nodes.get(handle)) else {
            *verbs.entry(id).or_default() |= verb::NODE_ADDED;
            continue;
        };
        let (was, is) = (references(before, old), references(after, node));
        if was == is {
            continue;
        }
        let (was, is): (HashSet<_>, HashSet<_>) = (was.into_iter().collect(), is.into_iter().collect());
        mark(
            id,
            is.difference(&was).next().is_some(),
            was.difference(&is).next().is_some(),
            verbs,
        );
    }
}

fn mark<'a>(id: &'a NodeId, added: bool, deleted: bool, verbs: &mut HashMap<&'a NodeId, u8>) {
    if added {
        *verbs.entry(id).or_default() |= verb::REFERENCE_ADDED;
    }
    if deleted {
        *verbs.entry(id).or_default() |= verb::REFERENCE_DELETED;
    }
}

fn references<'a>(model: &'a Model, node: &'a Node) -> Vec<Named<'a>> {
    let named = |reference: &crate::model::node::Reference| {
        let kind = link_id(model, reference.kind())?;
        Some((kind, reference.is_forward(), link_id(model, reference.target)?))
    };
    node.references.iter().filter_map(named).collect()
}

fn link_id(model: &Model, link: crate::model::node::Link) -> Option<&NodeId> {
    match link.end() {
        crate::model::node::End::Local(handle) => model.nodes.get(handle).map(|node| &node.id),
        crate::model::node::End::Foreign(index) => model.foreign_id(index),
    }
}

/// References between a model and nodes of others change those nodes as well.
fn compare_exports<'a>(before: &'a Model, after: &'a Model, verbs: &mut HashMap<&'a NodeId, u8>) {
    fn ends<'m>(model: &'m Model, id: &NodeId) -> HashSet<Named<'m>> {
        let exports = model.exports.get(id).map_or(&[][..], |exports| exports.as_slice());
        let named = |export: &Export| {
            let source = model.nodes.get(export.source).map(|node| &node.id)?;
            Some((link_id(model, export.kind)?, export.forward, source))
        };
        exports.iter().filter_map(named).collect()
    }
    for target in before.exports.keys().chain(after.exports.keys()) {
        let (was, is) = (ends(before, target), ends(after, target));
        mark(
            target,
            is.difference(&was).next().is_some(),
            was.difference(&is).next().is_some(),
            verbs,
        );
    }
}

impl Snapshot {
    fn type_of(&self, id: &NodeId) -> Option<NodeId> {
        let definition = self.graph.type_definition(self.graph.find(id)?)?;
        self.node(definition).map(|node| node.id.clone())
    }

    /// Sets the NodeVersion property of a node, if it has one whose value the host keeps.
    pub fn set_node_version(&self, id: &NodeId, version: &str, now: backplane_types::DateTime) {
        let Some(key) = self.graph.find(id) else { return };
        let property = self.graph.edges(key, 0).find_map(|(_, edge)| {
            let node = self
                .node(edge.target)
                .filter(|_| edge.forward && Some(edge.kind) == self.graph.known.has_property)?;
            (node.browse_name.namespace == 0 && node.browse_name.name.text() == "NodeVersion").then_some(node)
        });
        let Some(variable) = property.and_then(Node::variable) else {
            return;
        };
        if let Source::Cell(cell) = &variable.source
            && let Ok(value) =
                crate::model::prepared(variable, backplane_types::DataValue::new(Variant::from(version)), now)
        {
            cell.write(value);
        }
    }
}
