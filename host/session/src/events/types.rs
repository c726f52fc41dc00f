//! What the event core has to know of event types. The caller knows it from the address space.

use backplane_types::{NodeId, QualifiedName, ids};

/// What lies at the end of a path from an event type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventField {
    /// A Variable: it has a Value.
    Variable,
    /// An Object, or the event itself: it has a NodeId.
    Object,
}

/// Event types and their fields, as they are now.
pub trait EventTypes: std::fmt::Debug + Send + Sync {
    /// Whether this is BaseEventType or a subtype.
    fn is_event_type(&self, id: &NodeId) -> bool;

    /// What the path leads to in events of the type, inherited fields included; `None` when nothing. For BaseEventType: in events of any
    /// type, because a clause with it is evaluated without considering the type (Part 4, 7.22.3).
    fn field(&self, event_type: &NodeId, path: &[QualifiedName]) -> Option<EventField>;
}

/// Only BaseEventType and its own fields: what there is without an address space.
#[derive(Debug, Clone, Copy, Default)]
pub struct BaseEventTypes;

/// Fields of BaseEventType (Part 5, 6.4.2).
const BASE_FIELDS: [&str; 9] = [
    "EventId",
    "EventType",
    "SourceNode",
    "SourceName",
    "Time",
    "ReceiveTime",
    "LocalTime",
    "Message",
    "Severity",
];

impl EventTypes for BaseEventTypes {
    fn is_event_type(&self, id: &NodeId) -> bool {
        id.as_standard() == Some(ids::object_type::BASE_EVENT_TYPE)
    }

    fn field(&self, event_type: &NodeId, path: &[QualifiedName]) -> Option<EventField> {
        match path {
            _ if !self.is_event_type(event_type) => None,
            [] => Some(EventField::Object),
            [name] if name.namespace == 0 && BASE_FIELDS.contains(&name.name.text()) => Some(EventField::Variable),
            _ => None,
        }
    }
}
