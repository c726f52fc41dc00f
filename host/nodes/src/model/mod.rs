//! The nodes and references of one manager, as an immutable and cheaply copied value.
//!
//! Owns the nodes, their indexes by NodeId and by tag, and the list of references that leave the model. Changes are made by
//! [`ModelBuilder`]; a [`Model`] never changes after that, only the value cells in it do. It must not know other managers' models.

pub(crate) mod apply;
mod attributes;
mod builder;
mod create;
pub(crate) mod draft;
pub(crate) mod node;
mod remove;
pub(crate) mod store;
mod target;

use std::hash::BuildHasher;
use std::sync::Arc;

use backplane_types::view::NodeIdBytes;
use backplane_types::{DataValue, DateTime, NodeId, StatusCode};
use hashbrown::HashMap;

pub use builder::{ChangeError, MethodArgument, ModelBuilder};
pub use target::ScalarTarget;

use crate::cell::ValueCell;
use crate::typing;
use node::{Handle, Link, Node, Source};
use store::{Arena, Index};

/// A reference that leaves the model: how its other end looks in here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Export {
    /// Type and direction, seen from the node in this model.
    pub(crate) kind: Link,
    pub(crate) forward: bool,
    pub(crate) source: Handle,
}

/// See the module text. `Default` is a model without nodes.
#[derive(Debug, Clone, Default)]
pub struct Model {
    pub(crate) nodes: Arena,
    pub(crate) by_id: Index,
    pub(crate) by_tag: Index,
    /// Ids of nodes of other models, by the index in a foreign [`Link`].
    pub(crate) foreign: Arc<Vec<NodeId>>,
    pub(crate) foreign_index: Arc<HashMap<NodeId, u32>>,
    /// References to nodes of other models, by target. Type definitions and modelling rules are not listed: nobody follows them backwards.
    pub(crate) exports: HashMap<NodeId, Arc<Vec<Export>>>,
    /// How many nodes there are in each namespace.
    pub(crate) namespaces: HashMap<u16, u32>,
    pub(crate) references: u32,
}

impl Model {
    /// A model without nodes.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// How many nodes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.len() == 0
    }

    /// Whether the node is in this model.
    #[must_use]
    pub fn contains(&self, id: &NodeId) -> bool {
        self.handle(id).is_some()
    }

    /// The NodeIds, in no particular order.
    pub fn node_ids(&self) -> impl Iterator<Item = &NodeId> {
        self.nodes.iter().map(|(_, node)| &node.id)
    }

    /// The cell of the variable with this tag, if the host keeps its value.
    #[must_use]
    pub fn cell(&self, tag: u32) -> Option<&Arc<ValueCell>> {
        match &self.tagged(tag)?.variable()?.source {
            Source::Cell(cell) => Some(cell),
            _ => None,
        }
    }

    /// The cell of a variable, if the host keeps its value.
    #[must_use]
    pub fn cell_of(&self, id: &NodeId) -> Option<&Arc<ValueCell>> {
        match &self.nodes.get(self.handle(id)?)?.variable()?.source {
            Source::Cell(cell) => Some(cell),
            _ => None,
        }
    }

    /// The node with this tag.
    #[must_use]
    pub fn node_of_tag(&self, tag: u32) -> Option<&NodeId> {
        self.tagged(tag).map(|node| &node.id)
    }

    /// Sets the current value of a variable, as its manager reports it. `now` becomes the server time, and the source time if there is none.
    ///
    /// # Errors
    /// `BadNodeIdUnknown` for a tag without a node, `BadTypeMismatch` or `BadOutOfRange` for a value that the declaration does not allow (a bad status
    /// allows every value), `BadNotWritable` for a node whose value the host does not keep.
    pub fn publish(&self, tag: u32, value: DataValue, now: DateTime) -> Result<(), StatusCode> {
        let node = self.tagged(tag).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
        let variable = node.variable().ok_or(StatusCode::BAD_ATTRIBUTE_ID_INVALID)?;
        let Source::Cell(cell) = &variable.source else {
            return Err(StatusCode::BAD_NOT_WRITABLE);
        };
        cell.write(prepared(variable, value, now)?);
        Ok(())
    }

    /// Puts a status over the values of all variables that the host keeps, or of those with the listed tags. Values and source times stay.
    pub fn degrade(&self, tags: Option<&[u32]>, status: StatusCode, now: DateTime) {
        match tags {
            Some(tags) => {
                for tag in tags {
                    if let Some(cell) = self.cell(*tag) {
                        cell.degrade(status, now);
                    }
                }
            }
            None => {
                for (_, node) in self.nodes.iter() {
                    if let Some(node::Variable {
                        source: Source::Cell(cell),
                        ..
                    }) = node.variable()
                    {
                        cell.degrade(status, now);
                    }
                }
            }
        }
    }

    pub(crate) fn handle(&self, id: &NodeId) -> Option<Handle> {
        let id = NodeIdBytes::from(id);
        self.look_up(store::hasher().hash_one(id), &id)
            .map(|(handle, _)| handle)
    }

    /// A node by its id, and what [`store::hasher`] makes of that.
    #[inline(always)]
    pub(crate) fn look_up(&self, hash: u64, id: &NodeIdBytes<'_>) -> Option<(Handle, &Node)> {
        self.by_id.get(hash, |number| {
            let node = self.nodes.get(Handle(number))?;
            (*id == node.id).then_some((Handle(number), node))
        })
    }

    pub(crate) fn tagged(&self, tag: u32) -> Option<&Node> {
        if tag == 0 {
            return None;
        }
        self.by_tag.get(store::hasher().hash_one(tag), |number| {
            let node = self.nodes.get(Handle(number))?;
            (tag_of(node) == tag).then_some(node)
        })
    }

    pub(crate) fn foreign_id(&self, index: u32) -> Option<&NodeId> {
        self.foreign.get(index as usize)
    }
}

/// The tag of a node; 0 for none.
pub(crate) fn tag_of(node: &Node) -> u32 {
    match &node.body {
        node::Body::Variable(variable) => variable.tag,
        node::Body::Method(method) => method.tag,
        _ => 0,
    }
}

/// A value as the cell should hold it: checked, with times.
pub(crate) fn prepared(
    variable: &node::Variable,
    mut value: DataValue,
    now: DateTime,
) -> Result<DataValue, StatusCode> {
    if !value.status.is_some_and(|status| status.is_bad()) {
        value.value = typing::fit(value.value, variable.rule, variable.rank, variable.dimensions())?;
    }
    value.source_timestamp = value.source_timestamp.or(Some(now));
    value.server_timestamp = Some(now);
    value.server_picoseconds = None;
    Ok(value)
}
