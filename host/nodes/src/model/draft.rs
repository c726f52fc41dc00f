//! A model while steps are applied to it.
//!
//! Owns the bookkeeping that every step needs: finding nodes here and in other models, links, references with their inverse, tags. It must not know
//! what a step means.

use std::sync::Arc;

use backplane_types::{NodeId, StatusCode, ids};
use hashbrown::HashMap;

use crate::graph::{Graph, NodeKey, standard_rule};
use crate::limits::Limits;
use crate::model::node::{Body, End, Handle, Link, Node, Reference};
use crate::model::{Export, Model, tag_of};
use crate::typing::TypeRule;

/// Why a step is wrong: the status and the reason.
pub(crate) type Refusal = (StatusCode, String);

/// Where a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Here(Handle),
    Elsewhere(NodeKey),
}

pub(crate) struct Draft<'g> {
    pub(crate) model: Model,
    graph: &'g Graph,
    /// Where the graph holds the version of this model before the change.
    own: Option<u32>,
    pub(crate) limits: Limits,
    rules: HashMap<NodeId, Option<TypeRule>>,
}

impl<'g> Draft<'g> {
    pub(crate) fn new(model: Model, graph: &'g Graph, own: Option<u32>, limits: Limits) -> Self {
        Self {
            model,
            graph,
            own,
            limits,
            rules: HashMap::new(),
        }
    }

    pub(crate) fn locate(&self, id: &NodeId) -> Option<Place> {
        if let Some(handle) = self.here(id) {
            return Some(Place::Here(handle));
        }
        // A node that this change has removed is still in the graph.
        self.graph
            .find(id)
            .filter(|key| Some(key.slot) != self.own)
            .map(Place::Elsewhere)
    }

    /// The handle of a node of this model. Most ids that steps name are of namespace 0, and need no look-up here.
    pub(crate) fn here(&self, id: &NodeId) -> Option<Handle> {
        if self.model.namespaces.contains_key(&id.namespace) {
            self.model.handle(id)
        } else {
            None
        }
    }

    pub(crate) fn node(&self, place: Place) -> Option<&Node> {
        match place {
            Place::Here(handle) => self.model.nodes.get(handle),
            Place::Elsewhere(key) => self.graph.node(key),
        }
    }

    pub(crate) fn class(&self, place: Place) -> u32 {
        self.node(place).map_or(0, |node| node.body.class())
    }

    pub(crate) fn id_of(&self, link: Link) -> Option<&NodeId> {
        match link.end() {
            End::Local(handle) => self.model.nodes.get(handle).map(|node| &node.id),
            End::Foreign(index) => self.model.foreign_id(index),
        }
    }

    /// A link to a node, here or elsewhere, there or not.
    pub(crate) fn link(&mut self, id: &NodeId) -> Result<Link, Refusal> {
        if let Some(handle) = self.here(id) {
            return Ok(Link::local(handle));
        }
        if let Some(index) = self.model.foreign_index.get(id) {
            return Ok(Link::foreign(*index));
        }
        let index = u32::try_from(self.model.foreign.len()).unwrap_or(u32::MAX);
        if index >= self.limits.max_references.min(crate::model::node::MAX_INDEX) {
            return Err((
                StatusCode::BAD_OUT_OF_MEMORY,
                "too many references to other managers' nodes".to_owned(),
            ));
        }
        Arc::make_mut(&mut self.model.foreign).push(id.clone());
        Arc::make_mut(&mut self.model.foreign_index).insert(id.clone(), index);
        Ok(Link::foreign(index))
    }

    fn supertype(&self, place: Place) -> Option<NodeId> {
        match place {
            Place::Elsewhere(key) => self
                .graph
                .supertype(key)
                .and_then(|key| self.graph.node(key))
                .map(|node| node.id.clone()),
            Place::Here(handle) => {
                let first = self.model.nodes.get(handle)?.references.first()?;
                let kind = self.id_of(first.kind())?;
                let is_supertype = !first.is_forward() && *kind == standard(ids::reference_type::HAS_SUBTYPE);
                if is_supertype {
                    self.id_of(first.target).cloned()
                } else {
                    None
                }
            }
        }
    }

    /// Whether a type is the standard one with this number, or derives from it.
    pub(crate) fn derives_from(&self, id: &NodeId, number: u32) -> bool {
        let wanted = standard(number);
        let mut at = id.clone();
        for _ in 0..self.limits.max_type_depth {
            if at == wanted {
                return true;
            }
            let Some(next) = self.locate(&at).and_then(|place| self.supertype(place)) else {
                return false;
            };
            at = next;
        }
        false
    }

    /// What values of a data type look like; none if it is not a data type.
    pub(crate) fn rule(&mut self, data_type: &NodeId) -> Option<TypeRule> {
        if let Some(rule) = standard_rule(data_type) {
            return Some(rule);
        }
        if let Some(rule) = self.rules.get(data_type) {
            return *rule;
        }
        let rule = self.find_rule(data_type);
        self.rules.insert(data_type.clone(), rule);
        rule
    }

    fn find_rule(&self, data_type: &NodeId) -> Option<TypeRule> {
        let mut at = data_type.clone();
        for _ in 0..self.limits.max_type_depth {
            if let Some(rule) = standard_rule(&at) {
                return Some(rule);
            }
            let place = self.locate(&at)?;
            if !matches!(self.node(place)?.body, Body::DataType(_)) {
                return None;
            }
            at = self.supertype(place)?;
        }
        None
    }

    /// Adds a node without references.
    pub(crate) fn insert(&mut self, node: Node) -> Result<Handle, Refusal> {
        let too_many = || (StatusCode::BAD_OUT_OF_MEMORY, "too many nodes".to_owned());
        self.check_new_id(&node.id)?;
        if self.model.nodes.len() >= self.limits.max_nodes as usize {
            return Err(too_many());
        }
        let tag = tag_of(&node);
        if tag != 0 && self.model.tagged(tag).is_some() {
            return Err((StatusCode::BAD_NODE_ATTRIBUTES_INVALID, format!("tag {tag} is in use")));
        }
        let id = node.id.clone();
        let handle = self.model.nodes.insert(node).ok_or_else(too_many)?;
        self.model.by_id.insert(&id, handle.0);
        self.set_tag_index(tag, handle);
        *self.model.namespaces.entry(id.namespace).or_insert(0) += 1;
        self.rules.remove(&id);
        self.localise(&id, handle);
        Ok(handle)
    }

    fn check_new_id(&self, id: &NodeId) -> Result<(), Refusal> {
        if id.is_null() {
            return Err((StatusCode::BAD_NODE_ID_INVALID, "the NodeId is null".to_owned()));
        }
        // A model that is not attached may be the next generation of one that is. Whose nodes are in its way is known when it is attached.
        let unknown_owner = self.own.is_none() && id.namespace != 0;
        match self.locate(id) {
            Some(Place::Elsewhere(_)) if unknown_owner => Ok(()),
            Some(_) => Err((StatusCode::BAD_NODE_ID_EXISTS, "the NodeId is in use".to_owned())),
            None => Ok(()),
        }
    }

    fn set_tag_index(&mut self, tag: u32, handle: Handle) {
        if tag == 0 {
            return;
        }
        self.model.by_tag.insert(&tag, handle.0);
    }

    /// Gives a node another tag.
    pub(crate) fn retag(&mut self, handle: Handle, tag: u32) -> Result<(), Refusal> {
        if tag != 0
            && self
                .model
                .tagged(tag)
                .is_some_and(|node| self.model.handle(&node.id) != Some(handle))
        {
            return Err((StatusCode::BAD_NODE_ATTRIBUTES_INVALID, format!("tag {tag} is in use")));
        }
        let before = self.model.nodes.get(handle).map_or(0, tag_of);
        if before == tag {
            return Ok(());
        }
        if before != 0 {
            self.model.by_tag.remove(&before, handle.0);
        }
        match self.model.nodes.get_mut(handle).map(|node| &mut node.body) {
            Some(Body::Variable(variable)) => variable.tag = tag,
            Some(Body::Method(method)) => method.tag = tag,
            _ => {
                return Err((
                    StatusCode::BAD_NODE_CLASS_INVALID,
                    "only variables and methods have tags".to_owned(),
                ));
            }
        }
        self.set_tag_index(tag, handle);
        Ok(())
    }

    /// References to `id` were made before the node was: they stay in the model from now on.
    fn localise(&mut self, id: &NodeId, handle: Handle) {
        let Some(exports) = self.model.exports.remove(id) else {
            return;
        };
        let Some(index) = self.model.foreign_index.get(id).copied() else {
            return;
        };
        let outside = Link::foreign(index);
        for export in exports.iter() {
            if let Some(source) = self.model.nodes.get_mut(export.source) {
                for reference in source
                    .references
                    .iter_mut()
                    .filter(|reference| reference.target == outside)
                {
                    *reference = Reference::new(reference.kind(), reference.is_forward(), Link::local(handle));
                }
            }
            if let Some(node) = self.model.nodes.get_mut(handle) {
                node.references
                    .push(Reference::new(export.kind, !export.forward, Link::local(export.source)));
                self.model.references = self.model.references.saturating_add(1);
            }
        }
    }

    /// Adds a reference and its inverse, where the ends are in this model.
    pub(crate) fn connect(&mut self, source: &NodeId, kind: &NodeId, target: &NodeId) -> Result<(), Refusal> {
        let ends = (self.here(source), self.here(target));
        self.connect_ends((source, ends.0), kind, (target, ends.1))
    }

    /// The same with ends whose handles are known; none for nodes elsewhere.
    pub(crate) fn connect_ends(
        &mut self,
        source: (&NodeId, Option<Handle>),
        kind: &NodeId,
        target: (&NodeId, Option<Handle>),
    ) -> Result<(), Refusal> {
        let kind_link = self.link(kind)?;
        let ((source, from), (target, to)) = (source, target);
        if from.is_none() && to.is_none() {
            let reason = "neither end of the reference is a node of this manager".to_owned();
            return Err((StatusCode::BAD_SOURCE_NODE_ID_INVALID, reason));
        }
        let both_ways = keeps_inverse(kind);
        if let Some(handle) = from {
            self.add_reference(handle, (kind, kind_link), true, (target, to), both_ways)?;
        }
        if let Some(handle) = to
            && (both_ways || from.is_none())
            && from != to
        {
            self.add_reference(handle, (kind, kind_link), false, (source, from), both_ways)?;
        }
        Ok(())
    }

    fn add_reference(
        &mut self,
        handle: Handle,
        (kind, kind_link): (&NodeId, Link),
        forward: bool,
        (other, there): (&NodeId, Option<Handle>),
        exported: bool,
    ) -> Result<(), Refusal> {
        if self.model.references >= self.limits.max_references {
            return Err((StatusCode::BAD_OUT_OF_MEMORY, "too many references".to_owned()));
        }
        let target = match there {
            Some(handle) => Link::local(handle),
            None => self.link(other)?,
        };
        let reference = Reference::new(kind_link, forward, target);
        let first = (forward && *kind == standard(ids::reference_type::HAS_TYPE_DEFINITION))
            || (!forward && *kind == standard(ids::reference_type::HAS_SUBTYPE));
        let Some(node) = self.model.nodes.get_mut(handle) else {
            return Ok(());
        };
        if first {
            node.references.insert(0, reference);
        } else {
            node.references.push(reference);
        }
        self.model.references = self.model.references.saturating_add(1);
        if exported && matches!(target.end(), End::Foreign(_)) {
            let list = self.model.exports.entry(other.clone()).or_default();
            Arc::make_mut(list).push(Export {
                kind: kind_link,
                forward,
                source: handle,
            });
        }
        Ok(())
    }

    /// Whether there is such a reference, looking at the end that is in this model (both ends would tell the same).
    pub(crate) fn is_connected(&mut self, source: &NodeId, kind: &NodeId, target: &NodeId) -> Result<bool, Refusal> {
        let both_ways = keeps_inverse(kind);
        let kind = self.link(kind)?;
        let (node, forward, other) = match (self.model.handle(source), self.model.handle(target)) {
            (None, Some(handle)) => (handle, false, self.link(source)?),
            // The node with fewer references is looked through, where both have it.
            (Some(from), Some(to)) if both_ways && self.reference_count(to) < self.reference_count(from) => {
                (to, false, Link::local(from))
            }
            (Some(handle), _) => (handle, true, self.link(target)?),
            (None, None) => return Ok(false),
        };
        let wanted = Reference::new(kind, forward, other);
        Ok(self
            .model
            .nodes
            .get(node)
            .is_some_and(|node| node.references.contains(&wanted)))
    }

    fn reference_count(&self, handle: Handle) -> usize {
        self.model.nodes.get(handle).map_or(0, |node| node.references.len())
    }
}

/// The id of a node of namespace 0.
pub(crate) fn standard(number: u32) -> NodeId {
    NodeId::numeric(0, number)
}

/// Nobody follows these backwards, and a type with a million instances would have a million of them.
pub(crate) fn keeps_inverse(kind: &NodeId) -> bool {
    *kind != standard(ids::reference_type::HAS_TYPE_DEFINITION)
        && *kind != standard(ids::reference_type::HAS_MODELLING_RULE)
}
