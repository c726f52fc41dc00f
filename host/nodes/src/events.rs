//! What the address space says about events (Part 3, 4.7 and 5.5; Part 5, 6.4): event types and their fields, and which notifiers lie above a
//! source.
//!
//! Owns the walks through types and notifiers, and the rights on them. It must not know events themselves, nor who listens.

use std::sync::{Arc, OnceLock};

use backplane_types::{NodeId, QualifiedName, StatusCode, UaString, Variant, ids};
use hashbrown::{HashMap, HashSet};

use crate::graph::NodeKey;
use crate::manager::CallContext;
use crate::model::node::{Body, Node};
use crate::rights::{self, permission};
use crate::space::Snapshot;
use crate::typing;

/// Names in the path of a field.
const MAX_PATH: usize = 8;
/// Fields of all event types that are known by path; more are found only by the type that has them.
const MAX_FIELDS: usize = 200_000;
/// Notifiers that one event can reach.
const MAX_NOTIFIERS: usize = 1_000;
/// The SubscribeToEvents bit of EventNotifier (Part 3, 8.59).
const SUBSCRIBE_TO_EVENTS: u8 = 1;

/// Fields of events of any type, by path.
pub(crate) type FieldTable = OnceLock<HashMap<Box<[QualifiedName]>, EventFieldClass>>;

/// What a field of an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventFieldClass {
    /// A Variable: the event has a value for it.
    Variable,
    /// An Object, or the event itself.
    Object,
}

impl Snapshot {
    /// An event type, its supertype and so on up to BaseEventType; `None` for a node that is none.
    #[must_use]
    pub fn event_type(&self, id: &NodeId) -> Option<Arc<[NodeId]>> {
        let chain = self.event_chain(id)?;
        let types = chain.iter().filter_map(|key| Some(self.node(*key)?.id.clone()));
        Some(types.collect())
    }

    /// What a path leads to in events of a type, inherited fields included; for BaseEventType in events of any type.
    #[must_use]
    pub fn event_field(&self, event_type: &NodeId, path: &[QualifiedName]) -> Option<EventFieldClass> {
        if event_type.as_standard() == Some(ids::object_type::BASE_EVENT_TYPE)
            && let Some(found) = self.event_fields.get_or_init(|| self.all_event_fields()).get(path)
        {
            return Some(*found);
        }
        if path.is_empty() {
            return self.event_chain(event_type).map(|_| EventFieldClass::Object);
        }
        class_of(self.node(self.declaration(event_type, path)?)?)
    }

    /// Checks the value of a field against its declaration, and makes of it what the declaration wants where that is the same value.
    ///
    /// # Errors
    /// `BadNodeIdUnknown` when events of the type have no such field, `BadTypeMismatch` or `BadOutOfRange` for the value.
    pub fn fit_event_field(
        &self,
        event_type: &NodeId,
        path: &[QualifiedName],
        value: Variant,
    ) -> Result<Variant, StatusCode> {
        let unknown = StatusCode::BAD_NODE_ID_UNKNOWN;
        let key = self.declaration(event_type, path).ok_or(unknown)?;
        let variable = self.node(key).and_then(Node::variable).ok_or(unknown)?;
        if value.is_empty() {
            return Ok(value);
        }
        typing::fit(value, variable.rule, variable.rank, variable.dimensions())
    }

    /// The nodes at which events of a source are seen: the source, what lies above it by HasEventSource, HasNotifier and their subtypes, and the
    /// Server object, which sees everything.
    #[must_use]
    pub fn notifiers(&self, source: &NodeId) -> Arc<[NodeId]> {
        let server = NodeId::numeric(0, ids::object::SERVER);
        let mut found = vec![server.clone()];
        if *source != server {
            found.push(source.clone());
        }
        let has_event_source = self
            .graph
            .find(&NodeId::numeric(0, ids::reference_type::HAS_EVENT_SOURCE));
        if let (Some(start), Some(kind)) = (self.graph.find(source), has_event_source) {
            let mut seen: HashSet<NodeKey> = HashSet::from_iter([start]);
            let mut open = vec![start];
            while let Some(key) = open.pop() {
                for (_, edge) in self.graph.edges(key, 0) {
                    if edge.forward || !self.graph.is_a(edge.kind, kind) || !seen.insert(edge.target) {
                        continue;
                    }
                    if found.len() >= MAX_NOTIFIERS {
                        return found.into();
                    }
                    open.push(edge.target);
                    found.extend(
                        self.node(edge.target)
                            .map(|node| node.id.clone())
                            .filter(|id| *id != server),
                    );
                }
            }
        }
        found.into()
    }

    /// Whether a client may monitor the events of a node.
    ///
    /// # Errors
    /// `BadNodeIdUnknown`, `BadAttributeIdInvalid` (neither Object nor View), `BadFilterNotAllowed` (it is no notifier),
    /// `BadSecurityModeInsufficient`, `BadUserAccessDenied`.
    pub fn check_notifier(&self, call: &CallContext, id: &NodeId) -> Result<(), StatusCode> {
        let key = self.graph.find(id).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
        let node = self.node(key).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
        let (Body::Object { event_notifier } | Body::View { event_notifier, .. }) = &node.body else {
            return Err(StatusCode::BAD_ATTRIBUTE_ID_INVALID);
        };
        if event_notifier & SUBSCRIBE_TO_EVENTS == 0 {
            return Err(StatusCode::BAD_FILTER_NOT_ALLOWED);
        }
        rights::check(&self.graph, key.slot, node, call, permission::BROWSE)
    }

    /// Whether a caller may see events of a type from a source: it needs ReceiveEvents on both (Part 3, 8.55). A node that is not there
    /// forbids nothing.
    #[must_use]
    pub fn may_receive(&self, call: &CallContext, event_type: &NodeId, source: &NodeId) -> bool {
        [event_type, source].into_iter().all(|id| {
            let found = self.graph.find(id).and_then(|key| Some((key, self.node(key)?)));
            found.is_none_or(|(key, node)| {
                rights::check(&self.graph, key.slot, node, call, permission::RECEIVE_EVENTS).is_ok()
            })
        })
    }

    /// The text of a node's DisplayName: the SourceName of its events.
    #[must_use]
    pub fn display_text(&self, id: &NodeId) -> Option<UaString> {
        let node = self.graph.find(id).and_then(|key| self.node(key))?;
        Some(node.display_name().text)
    }

    /// An event type and its supertypes up to BaseEventType.
    fn event_chain(&self, id: &NodeId) -> Option<Vec<NodeKey>> {
        let base = self
            .graph
            .find(&NodeId::numeric(0, ids::object_type::BASE_EVENT_TYPE))?;
        let mut at = self.graph.find(id)?;
        let mut chain = vec![at];
        while at != base {
            if chain.len() >= self.limits.max_type_depth as usize {
                return None;
            }
            at = self.graph.supertype(at)?;
            chain.push(at);
        }
        Some(chain)
    }

    /// The node that declares a field: in the type itself or the nearest supertype that has it.
    fn declaration(&self, event_type: &NodeId, path: &[QualifiedName]) -> Option<NodeKey> {
        if path.is_empty() || path.len() > MAX_PATH {
            return None;
        }
        self.event_chain(event_type)?.into_iter().find_map(|start| {
            path.iter().try_fold(start, |at, name| {
                self.parts(at)
                    .find(|target| self.node(*target).is_some_and(|node| node.browse_name == *name))
            })
        })
    }

    /// The Objects and Variables that a node refers to by hierarchical references.
    fn parts(&self, key: NodeKey) -> impl Iterator<Item = NodeKey> + '_ {
        let hierarchical = self.graph.known.hierarchical;
        self.graph.edges(key, 0).filter_map(move |(_, edge)| {
            let part = edge.forward && self.node(edge.target).and_then(class_of).is_some();
            (part && self.graph.is_a(edge.kind, hierarchical?)).then_some(edge.target)
        })
    }

    /// The fields of all event types.
    fn all_event_fields(&self) -> HashMap<Box<[QualifiedName]>, EventFieldClass> {
        let mut fields = HashMap::new();
        fields.insert(Box::from([]), EventFieldClass::Object);
        let mut types: Vec<NodeKey> = Vec::new();
        types.extend(self.graph.find(&NodeId::numeric(0, ids::object_type::BASE_EVENT_TYPE)));
        let mut seen: HashSet<NodeKey> = types.iter().copied().collect();
        while let Some(event_type) = types.pop() {
            let mut open = vec![(event_type, Vec::new())];
            while let Some((key, path)) = open.pop() {
                for part in self.parts(key) {
                    let Some(node) = self.node(part) else { continue };
                    let mut path: Vec<QualifiedName> = path.clone();
                    path.push(node.browse_name.clone());
                    let Some(class) = class_of(node) else { continue };
                    if fields.len() < MAX_FIELDS && path.len() < MAX_PATH {
                        fields.entry(path.clone().into_boxed_slice()).or_insert(class);
                        open.push((part, path));
                    }
                }
            }
            for (_, edge) in self.graph.edges(event_type, 0) {
                if edge.forward && Some(edge.kind) == self.graph.known.has_subtype && seen.insert(edge.target) {
                    types.push(edge.target);
                }
            }
        }
        fields
    }
}

fn class_of(node: &Node) -> Option<EventFieldClass> {
    match node.body {
        Body::Variable(_) => Some(EventFieldClass::Variable),
        Body::Object { .. } => Some(EventFieldClass::Object),
        _ => None,
    }
}
