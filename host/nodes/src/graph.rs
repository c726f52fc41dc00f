//! The nodes of all managers as one graph: look-ups and references across models.
//!
//! Owns the routes from namespaces to models, the resolution of references that leave a model, and their inverse. It is immutable and holds no
//! manager, so that a continuation point may keep it. It must not know services.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use backplane_types::view::NodeIdBytes;
use backplane_types::{NodeId, NodeIdRef, ids};
use hashbrown::{DefaultHashBuilder, HashMap};

use crate::defaults::Defaults;
use crate::model::node::{End, Handle, Link, Node, Reference};
use crate::model::{Export, Model, store};
use crate::namespace::NamespaceTable;
use crate::services::pages::Pages;
use crate::typing::TypeRule;

/// A node of a graph. Means nothing in another graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct NodeKey {
    pub(crate) slot: u32,
    pub(crate) handle: Handle,
}

/// A reference with both ends resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) kind: NodeKey,
    pub(crate) forward: bool,
    pub(crate) target: NodeKey,
}

/// The model of one manager in a graph.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) model: Arc<Model>,
    /// What the foreign ids of the model are in this graph.
    links: Vec<Option<NodeKey>>,
    /// What the model's namespaces say about the rights of its nodes.
    defaults: Vec<Defaults>,
}

/// Types that services ask for all the time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Known {
    pub(crate) has_subtype: Option<NodeKey>,
    pub(crate) has_type_definition: Option<NodeKey>,
    pub(crate) has_component: Option<NodeKey>,
    pub(crate) has_property: Option<NodeKey>,
    pub(crate) hierarchical: Option<NodeKey>,
}

/// See the module text.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    parts: Vec<Part>,
    /// By namespace: the parts that have nodes in it.
    routes: Vec<Vec<u32>>,
    /// By node: the parts that refer to it from outside its own model.
    overlay: HashMap<NodeKey, Vec<u32>>,
    /// Whether some part has defaults.
    has_any_defaults: bool,
    /// The one of all indexes.
    hasher: DefaultHashBuilder,
    pub(crate) known: Known,
    pub(crate) max_type_depth: u32,
    /// What Browse has answered about it.
    pub(crate) pages: Pages,
}

impl Graph {
    pub(crate) fn new(models: &[Arc<Model>], max_type_depth: u32, namespaces: &NamespaceTable) -> Self {
        let parts = models
            .iter()
            .map(|model| Part {
                model: Arc::clone(model),
                links: Vec::new(),
                defaults: Vec::new(),
            })
            .collect();
        let mut graph = Self {
            parts,
            hasher: store::hasher(),
            max_type_depth,
            ..Self::default()
        };
        graph.route();
        graph.link();
        let standard = |id| graph.find(&NodeId::numeric(0, id));
        graph.known = Known {
            has_subtype: standard(ids::reference_type::HAS_SUBTYPE),
            has_type_definition: standard(ids::reference_type::HAS_TYPE_DEFINITION),
            has_component: standard(ids::reference_type::HAS_COMPONENT),
            has_property: standard(ids::reference_type::HAS_PROPERTY),
            hierarchical: standard(ids::reference_type::HIERARCHICAL_REFERENCES),
        };
        let defaults = Defaults::find(&graph, namespaces, graph.parts.len());
        graph.has_any_defaults = defaults.iter().any(|defaults| !defaults.is_empty());
        for (part, defaults) in graph.parts.iter_mut().zip(defaults) {
            part.defaults = defaults;
        }
        graph
    }

    fn route(&mut self) {
        for (slot, part) in (0u32..).zip(&self.parts) {
            for namespace in part.model.namespaces.keys() {
                let index = usize::from(*namespace);
                if self.routes.len() <= index {
                    self.routes.resize(index + 1, Vec::new());
                }
                if let Some(route) = self.routes.get_mut(index) {
                    route.push(slot);
                }
            }
        }
    }

    fn link(&mut self) {
        let links: Vec<Vec<Option<NodeKey>>> = self
            .parts
            .iter()
            .map(|part| part.model.foreign.iter().map(|id| self.find(id)).collect())
            .collect();
        for (part, links) in self.parts.iter_mut().zip(links) {
            part.links = links;
        }
        let mut overlay: HashMap<NodeKey, Vec<u32>> = HashMap::new();
        for (slot, part) in (0u32..).zip(&self.parts) {
            for target in part.model.exports.keys() {
                if let Some(key) = self.find(target) {
                    overlay.entry(key).or_default().push(slot);
                }
            }
        }
        self.overlay = overlay;
    }

    pub(crate) fn part(&self, slot: u32) -> Option<&Part> {
        self.parts.get(slot as usize)
    }

    /// A node by its id.
    #[allow(
        clippy::manual_hash_one,
        reason = "hash_one is not inlined, and then costs a fourth more"
    )]
    pub(crate) fn look_up(&self, id: &NodeIdBytes<'_>) -> Option<(NodeKey, &Node)> {
        let (first, others) = self.routes.get(usize::from(id.namespace()))?.split_first()?;
        let mut hasher = self.hasher.build_hasher();
        id.hash(&mut hasher);
        let hash = hasher.finish();
        match self.look_up_in(*first, hash, id) {
            Some(found) => Some(found),
            None => self.look_up_among(others, hash, id),
        }
    }

    /// A namespace hardly ever belongs to several managers.
    #[cold]
    fn look_up_among(&self, slots: &[u32], hash: u64, id: &NodeIdBytes<'_>) -> Option<(NodeKey, &Node)> {
        slots.iter().find_map(|slot| self.look_up_in(*slot, hash, id))
    }

    #[inline(always)]
    fn look_up_in(&self, slot: u32, hash: u64, id: &NodeIdBytes<'_>) -> Option<(NodeKey, &Node)> {
        let (handle, node) = self.part(slot)?.model.look_up(hash, id)?;
        Some((NodeKey { slot, handle }, node))
    }

    /// The parts that have nodes in a namespace.
    pub(crate) fn slots(&self, namespace: u16) -> &[u32] {
        self.routes.get(usize::from(namespace)).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn find(&self, id: &NodeId) -> Option<NodeKey> {
        self.look_up(&id.into()).map(|(key, _)| key)
    }

    pub(crate) fn find_ref(&self, id: NodeIdRef<'_>) -> Option<NodeKey> {
        self.look_up(&(&id).into()).map(|(key, _)| key)
    }

    /// Whether a part has defaults for the rights of some of its nodes.
    #[inline]
    pub(crate) fn has_defaults(&self, slot: u32) -> bool {
        self.has_any_defaults && self.part(slot).is_some_and(|part| !part.defaults.is_empty())
    }

    /// Another number whenever the defaults for the rights of nodes may have changed.
    #[inline]
    pub(crate) fn rights_version(&self) -> u64 {
        if !self.has_any_defaults {
            return 0;
        }
        let all = self.parts.iter().flat_map(|part| &part.defaults);
        // Each of them only grows.
        all.fold(0, |sum, defaults| sum.wrapping_add(defaults.version()))
    }

    /// The defaults for the rights of the nodes that a part has in a namespace.
    pub(crate) fn defaults(&self, slot: u32, namespace: u16) -> Option<&Defaults> {
        self.part(slot)?
            .defaults
            .iter()
            .find(|defaults| defaults.namespace == namespace)
    }

    /// A property of namespace 0.
    pub(crate) fn property(&self, key: NodeKey, name: &str) -> Option<&Node> {
        let has_property = self.known.has_property?;
        self.edges(key, 0)
            .filter(|(_, edge)| edge.forward && edge.kind == has_property)
            .filter_map(|(_, edge)| self.node(edge.target))
            .find(|node| node.browse_name.namespace == 0 && node.browse_name.name.text() == name)
    }

    #[inline]
    pub(crate) fn node(&self, key: NodeKey) -> Option<&Node> {
        self.part(key.slot)?.model.nodes.get(key.handle)
    }

    /// What a link of a node of `slot` names here.
    pub(crate) fn follow(&self, slot: u32, link: Link) -> Option<NodeKey> {
        match link.end() {
            End::Local(handle) => Some(NodeKey { slot, handle }),
            End::Foreign(index) => self.part(slot)?.links.get(index as usize).copied().flatten(),
        }
    }

    /// The NodeId that a link of a node of `slot` names, whether the node is there or not.
    pub(crate) fn id_of(&self, slot: u32, link: Link) -> Option<&NodeId> {
        let part = self.part(slot)?;
        match link.end() {
            End::Local(handle) => part.model.nodes.get(handle).map(|node| &node.id),
            End::Foreign(index) => part.model.foreign_id(index),
        }
    }

    /// The references of a node that start at `position`, each with its position. References to nodes that are not there are passed over.
    pub(crate) fn edges(&self, key: NodeKey, position: usize) -> Edges<'_> {
        let own = self.node(key).map_or(&[][..], |node| node.references.as_slice());
        let outside = self.overlay.get(&key).map_or(&[][..], Vec::as_slice);
        Edges {
            graph: self,
            key,
            own,
            outside,
            position,
            block: 0,
            before: own.len(),
        }
    }

    /// No node has more references than this: the positions of [`Graph::edges`] are below it.
    pub(crate) fn edge_bound(&self, key: NodeKey) -> usize {
        let Some(node) = self.node(key) else { return 0 };
        let outside = self.overlay.get(&key).map_or(&[][..], Vec::as_slice);
        let exports = |slot: &u32| {
            self.part(*slot)
                .and_then(|part| part.model.exports.get(&node.id))
                .map_or(0, |exports| exports.len())
        };
        node.references.len().saturating_add(outside.iter().map(exports).sum())
    }

    /// The target of the first reference of a kind and direction, when that reference is kept first (see `Node::references`).
    fn first(&self, key: NodeKey, kind: Option<NodeKey>, forward: bool) -> Option<NodeKey> {
        let edge = self.edge(key.slot, *self.node(key)?.references.first()?)?;
        (Some(edge.kind) == kind && edge.forward == forward).then_some(edge.target)
    }

    pub(crate) fn edge(&self, slot: u32, reference: Reference) -> Option<Edge> {
        Some(Edge {
            kind: self.follow(slot, reference.kind())?,
            forward: reference.is_forward(),
            target: self.follow(slot, reference.target)?,
        })
    }

    /// The type that a type is derived from.
    pub(crate) fn supertype(&self, key: NodeKey) -> Option<NodeKey> {
        self.first(key, self.known.has_subtype, false)
    }

    /// The type definition of an object or variable.
    pub(crate) fn type_definition(&self, key: NodeKey) -> Option<NodeKey> {
        self.first(key, self.known.has_type_definition, true)
    }

    /// Whether `key` is `of` or derives from it.
    pub(crate) fn is_a(&self, key: NodeKey, of: NodeKey) -> bool {
        let mut at = Some(key);
        for _ in 0..self.max_type_depth {
            match at {
                Some(here) if here == of => return true,
                Some(here) => at = self.supertype(here),
                None => return false,
            }
        }
        false
    }
}

/// The rule of a data type of namespace 0 that has one of its own.
pub(crate) fn standard_rule(id: &NodeId) -> Option<TypeRule> {
    match id {
        NodeId {
            namespace: 0,
            identifier: backplane_types::Identifier::Numeric(number),
        } => TypeRule::of_standard_type(*number),
        _ => None,
    }
}

/// See [`Graph::edges`].
pub(crate) struct Edges<'g> {
    graph: &'g Graph,
    key: NodeKey,
    own: &'g [Reference],
    outside: &'g [u32],
    position: usize,
    /// Which of `outside` is next, and how many positions lie before it.
    block: usize,
    before: usize,
}

impl<'g> Edges<'g> {
    /// The references from outside that the current block holds.
    fn exports(&self) -> Option<(u32, &'g [Export])> {
        let slot = *self.outside.get(self.block)?;
        let id = &self.graph.node(self.key)?.id;
        let exports = self.graph.part(slot)?.model.exports.get(id);
        Some((slot, exports.map_or(&[], |exports| exports.as_slice())))
    }
}

impl Iterator for Edges<'_> {
    type Item = (usize, Edge);

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(reference) = self.own.get(self.position) {
            let position = self.position;
            self.position += 1;
            if let Some(edge) = self.graph.edge(self.key.slot, *reference) {
                return Some((position, edge));
            }
        }
        loop {
            let (slot, exports) = self.exports()?;
            let Some(export) = exports.get(self.position.saturating_sub(self.before)) else {
                self.before = self.before.saturating_add(exports.len());
                self.block += 1;
                continue;
            };
            let position = self.position;
            self.position += 1;
            if let Some(kind) = self.graph.follow(slot, export.kind) {
                let target = NodeKey {
                    slot,
                    handle: export.source,
                };
                return Some((
                    position,
                    Edge {
                        kind,
                        forward: !export.forward,
                        target,
                    },
                ));
            }
        }
    }
}
