//! One field of an event as a client names it: the SimpleAttributeOperand of select and where clauses (Part 4, 7.7.4.5 and 7.22.3).

use std::borrow::Cow;

use backplane_types::{
    AttributeId, NodeId, NumericRange, QualifiedName, SimpleAttributeOperand, StatusCode, Variant, ids,
};

use super::event::Event;
use super::types::{EventField, EventTypes};

/// A checked operand.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    /// Events of other types do not have the field; `None` is any type.
    event_type: Option<NodeId>,
    path: Box<[QualifiedName]>,
    range: Option<NumericRange>,
}

impl Selection {
    /// Checks an operand.
    ///
    /// # Errors
    /// `BadTypeDefinitionInvalid` (not an event type), `BadBrowseNameInvalid` (an empty name in the path), `BadNodeIdUnknown` (no event
    /// of that type has the field), `BadAttributeIdInvalid` (neither Value of a Variable nor NodeId of an Object), `BadIndexRangeInvalid`.
    pub(crate) fn new(operand: SimpleAttributeOperand, types: &dyn EventTypes) -> Result<Self, StatusCode> {
        let event_type = operand.type_definition_id;
        // A client that leaves the type out means any.
        let base = NodeId::standard(ids::object_type::BASE_EVENT_TYPE);
        let any = event_type.is_null() || event_type == base;
        if !any && !types.is_event_type(&event_type) {
            return Err(StatusCode::BAD_TYPE_DEFINITION_INVALID);
        }
        let path = operand.browse_path;
        if path.iter().any(|name| name.name.is_empty()) {
            return Err(StatusCode::BAD_BROWSE_NAME_INVALID);
        }
        let field = types.field(if any { &base } else { &event_type }, &path);
        match (
            field.ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?,
            AttributeId(operand.attribute_id),
        ) {
            (EventField::Variable, AttributeId::VALUE) | (EventField::Object, AttributeId::NODE_ID) => {}
            _ => return Err(StatusCode::BAD_ATTRIBUTE_ID_INVALID),
        }
        Ok(Self {
            event_type: (!any).then_some(event_type),
            path: path.into_boxed_slice(),
            range: NumericRange::parse(operand.index_range.text())?,
        })
    }

    /// The field of an event; null when it has none, the status of the index range when that does not fit.
    pub(crate) fn of<'e>(&self, event: &'e Event) -> Cow<'e, Variant> {
        if self.event_type.as_ref().is_some_and(|it| !event.is_of_type(it)) {
            return Cow::Owned(Variant::Empty);
        }
        let Some(value) = event.field(&self.path) else {
            return Cow::Owned(Variant::Empty);
        };
        match &self.range {
            None => Cow::Borrowed(value),
            Some(range) => Cow::Owned(range.read(value).unwrap_or_else(Variant::StatusCode)),
        }
    }
}
