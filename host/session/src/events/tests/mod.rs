//! Events from the filter to the bytes of a message. What field experience with other servers asks for has a test here by its symptom; conditions and
//! their acknowledgement (an EventId that an Acknowledge names) have none, because there are no conditions.

mod filters;
mod items;
mod operators;
mod queues;

use std::sync::Arc;
use std::time::Duration;

use backplane_types::{
    AttributeId, ContentFilter, ContentFilterElement, DateTime, ElementOperand, EventFilter, ExtensionObject,
    FilterOperator, LiteralOperand, NodeId, Now, QualifiedName, SimpleAttributeOperand, UaString, Variant,
};

use super::{Event, EventBuilder, EventField, EventIds, EventTypes};

const BASE: NodeId = NodeId::standard(2041);
const SYSTEM: NodeId = NodeId::standard(2130);
const LEVEL: NodeId = NodeId::numeric(2, 1000);

/// BaseEventType, SystemEventType below it, and below that a type with the fields `2:Level`, `2:Levels` and the object `2:Tank`.
#[derive(Debug)]
struct Types;

impl EventTypes for Types {
    fn is_event_type(&self, id: &NodeId) -> bool {
        [BASE, SYSTEM, LEVEL].contains(id)
    }

    fn field(&self, event_type: &NodeId, path: &[QualifiedName]) -> Option<EventField> {
        if let Some(found) = super::BaseEventTypes.field(&BASE, path) {
            return Some(found);
        }
        let [name] = path else { return None };
        let own = *event_type == LEVEL || *event_type == BASE;
        match name.name.text() {
            "Level" | "Levels" if own => Some(EventField::Variable),
            "Tank" if own => Some(EventField::Object),
            _ => None,
        }
    }
}

fn now() -> Now {
    Now::new(Duration::from_secs(1000), DateTime::from_ticks(133_000_000_000_000_000))
}

fn level_event(level: impl Into<Variant>) -> EventBuilder {
    let types = [LEVEL, SYSTEM, BASE];
    EventBuilder::new(types, NodeId::numeric(2, 1), "Tank")
        .message("Level")
        .severity(500)
        .path(vec![QualifiedName::new(2, "Level")], level.into())
}

fn event(level: impl Into<Variant>) -> Arc<Event> {
    static IDS: std::sync::LazyLock<EventIds> = std::sync::LazyLock::new(|| EventIds::new([7; 8]));
    level_event(level).build(IDS.next(), now().utc)
}

fn operand(event_type: NodeId, path: &[(u16, &str)]) -> SimpleAttributeOperand {
    SimpleAttributeOperand {
        type_definition_id: event_type,
        browse_path: path
            .iter()
            .map(|(index, name)| QualifiedName::new(*index, *name))
            .collect(),
        attribute_id: AttributeId::VALUE.0,
        index_range: UaString::NULL,
    }
}

fn field(path: &[(u16, &str)]) -> ExtensionObject {
    ExtensionObject::from_structure(&operand(BASE, path))
}

fn literal(value: impl Into<Variant>) -> ExtensionObject {
    ExtensionObject::from_structure(&LiteralOperand { value: value.into() })
}

fn element(index: u32) -> ExtensionObject {
    ExtensionObject::from_structure(&ElementOperand { index })
}

fn content(elements: Vec<(FilterOperator, Vec<ExtensionObject>)>) -> ContentFilter {
    let element = |(filter_operator, filter_operands)| ContentFilterElement {
        filter_operator,
        filter_operands,
    };
    ContentFilter {
        elements: elements.into_iter().map(element).collect(),
    }
}

fn event_filter(
    select: Vec<SimpleAttributeOperand>,
    elements: Vec<(FilterOperator, Vec<ExtensionObject>)>,
) -> ExtensionObject {
    ExtensionObject::from_structure(&EventFilter {
        select_clauses: select,
        where_clause: content(elements),
    })
}
