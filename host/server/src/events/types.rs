//! The event types of the address space, as event filters ask for them.

use std::sync::Arc;

use backplane_nodes::{AddressSpace, EventFieldClass};
use backplane_session::{EventField, EventTypes};
use backplane_types::{NodeId, QualifiedName};

/// The types that are there at the moment of the question.
#[derive(Debug)]
pub(crate) struct SpaceTypes(pub(crate) Arc<AddressSpace>);

impl EventTypes for SpaceTypes {
    fn is_event_type(&self, id: &NodeId) -> bool {
        self.0.load().event_type(id).is_some()
    }

    fn field(&self, event_type: &NodeId, path: &[QualifiedName]) -> Option<EventField> {
        let class = self.0.load().event_field(event_type, path)?;
        Some(match class {
            EventFieldClass::Variable => EventField::Variable,
            EventFieldClass::Object => EventField::Object,
        })
    }
}
