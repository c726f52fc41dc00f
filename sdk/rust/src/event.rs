//! Raising events. Owns the builder; the host checks types and fields.

use crate::{DateTime, Fault, LocalizedText, NodeId, QualifiedName, Typed, Value, emit};

/// An event that is about to be raised. Clients see it at its source, at every notifier above the source, and at the Server object. The host adds EventId,
/// SourceName, Time and ReceiveTime.
///
/// ```
/// # use backplane_sdk::{Event, Fault, NodeManager, StartReason, namespace, testing::FakeHost};
/// # #[derive(Default)]
/// # struct Tank;
/// # impl NodeManager for Tank {
/// #     fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
/// #         Ok(())
/// #     }
/// # }
/// # backplane_sdk::plugin!(Tank);
/// # fn main() {
/// # let host = FakeHost::<Tank>::new();
/// let ns = namespace("urn:example:tank");
/// let event = Event::new(ns.id("Tank"), ns.id("LevelAlarmType"))
///     .severity(700)
///     .message("The tank is nearly full")
///     .field(ns.name("Level"), 91.5);
/// # assert!(format!("{event:?}").contains("1:Level"));
/// let raised = event.raise();
/// # assert!(raised.is_ok());
/// # assert_eq!(host.events()[0].fields.len(), 3);
/// # }
/// ```
#[must_use = "an event happens when it is raised"]
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    source: NodeId,
    event_type: NodeId,
    fields: Vec<(String, Value)>,
}

impl Event {
    /// An event of a type, BaseEventType or a subtype, from a node of the plugin.
    pub fn new(source: impl Into<NodeId>, event_type: impl Into<NodeId>) -> Self {
        Event {
            source: source.into(),
            event_type: event_type.into(),
            fields: Vec::new(),
        }
    }

    /// How urgent it is, from 1 to 1000. Without, it is 1.
    pub fn severity(self, severity: u16) -> Self {
        self.standard("Severity", severity)
    }

    /// What happened, for people.
    pub fn message(self, message: impl Into<LocalizedText>) -> Self {
        self.standard("Message", message.into())
    }

    /// When it happened. Without, it is now.
    pub fn time(self, time: DateTime) -> Self {
        self.standard("Time", time)
    }

    /// A field of the event type, by its browse name.
    pub fn field<T: Typed>(mut self, name: QualifiedName, value: T) -> Self {
        self.fields
            .push((format!("{}:{}", name.namespace, name.name), value.into_value()));
        self
    }

    /// A field that namespace 0 declares, such as `NodeId` fields of the standard's own types.
    pub fn standard<T: Typed>(mut self, name: &str, value: T) -> Self {
        self.fields.push((name.to_owned(), value.into_value()));
        self
    }

    /// Raises it, and returns its EventId.
    ///
    /// # Errors
    /// `start` has not returned yet (`BAD_INVALID_STATE`), the source is no node of the plugin (`BAD_NODE_ID_UNKNOWN`), there is no such event type
    /// (`BAD_TYPE_DEFINITION_INVALID`), the type has no such field or it is of another type (`BAD_NODE_ID_UNKNOWN`, `BAD_TYPE_MISMATCH`), or there
    /// were too many in this second (`BAD_RESOURCE_UNAVAILABLE`).
    pub fn raise(self) -> Result<Vec<u8>, Fault> {
        let fields: Vec<(&str, Value)> = self
            .fields
            .iter()
            .map(|(name, value)| (name.as_str(), value.clone()))
            .collect();
        emit(&self.source, &self.event_type, &fields)
    }
}
