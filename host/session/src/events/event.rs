//! One event that happened: its type, its source and its fields (Part 5, 6.4.2).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use backplane_types::{
    ByteString, DateTime, ExtensionObject, LocalizedText, NodeId, Now, QualifiedName, TimeZoneDataType, UaString,
    Variant, ids,
};

/// Severity of the least and the most urgent event.
const SEVERITY: std::ops::RangeInclusive<u16> = 1..=1000;
/// SourceName of an event that says that others were lost (Part 5, 6.4.34).
const OVERFLOW_SOURCE: &str = "Internal/EventQueueOverflow";

/// An event: made once, shared by everyone who is told of it, never changed.
#[derive(Debug)]
pub struct Event {
    event_type: NodeId,
    /// The type and its supertypes up to BaseEventType.
    types: Arc<[NodeId]>,
    source: NodeId,
    id: ByteString,
    fields: Box<[(Box<[QualifiedName]>, Variant)]>,
}

/// What an event is made of.
pub(crate) struct EventParts<'a> {
    pub(crate) types: &'a [NodeId],
    pub(crate) source: &'a NodeId,
    pub(crate) id: &'a ByteString,
    pub(crate) fields: &'a [(Box<[QualifiedName]>, Variant)],
}

impl Event {
    /// Everything that has to be saved of it.
    pub(crate) fn parts(&self) -> EventParts<'_> {
        EventParts {
            types: &self.types,
            source: &self.source,
            id: &self.id,
            fields: &self.fields,
        }
    }

    /// The event again.
    pub(crate) fn from_parts(
        types: Vec<NodeId>,
        source: NodeId,
        id: ByteString,
        fields: Vec<(Box<[QualifiedName]>, Variant)>,
    ) -> Arc<Self> {
        Arc::new(Self {
            event_type: types.first().cloned().unwrap_or_default(),
            types: types.into(),
            source,
            id,
            fields: fields.into_boxed_slice(),
        })
    }

    /// The type of the event.
    #[must_use]
    pub fn event_type(&self) -> &NodeId {
        &self.event_type
    }

    /// Whether the event is of a type or a subtype of it.
    #[must_use]
    pub fn is_of_type(&self, event_type: &NodeId) -> bool {
        self.types.contains(event_type)
    }

    /// The node that the event comes from.
    #[must_use]
    pub fn source(&self) -> &NodeId {
        &self.source
    }

    /// EventId: the same bytes never name two events.
    #[must_use]
    pub fn id(&self) -> &ByteString {
        &self.id
    }

    /// The value of a field by its path from the event; for an empty path the NodeId of the event's own node, which only Conditions have.
    #[must_use]
    pub fn field(&self, path: &[QualifiedName]) -> Option<&Variant> {
        let found = self.fields.iter().find(|(name, _)| **name == *path);
        found.map(|(_, value)| value)
    }

    /// What takes the place of events that a full queue lost, `lost` being the first of them. It names the Server as its source.
    pub(crate) fn overflow(lost: &Self, now: Now) -> Arc<Self> {
        let mut id = lost.id.bytes().to_vec();
        id.push(b'!');
        EventBuilder::new(
            [
                NodeId::standard(ids::object_type::EVENT_QUEUE_OVERFLOW_EVENT_TYPE),
                NodeId::standard(ids::object_type::BASE_EVENT_TYPE),
            ],
            NodeId::standard(ids::object::SERVER),
            OVERFLOW_SOURCE,
        )
        .message("Events were lost: a queue was full")
        .severity(500)
        .build(id, now.utc)
    }
}

/// Collects the fields of an event. What every event must have is set: by the caller, or to what is right where nobody said anything.
#[derive(Debug)]
pub struct EventBuilder {
    types: Arc<[NodeId]>,
    source: NodeId,
    source_name: UaString,
    time: Option<DateTime>,
    message: LocalizedText,
    severity: u16,
    fields: Vec<(Box<[QualifiedName]>, Variant)>,
}

impl EventBuilder {
    /// An event of a type, given with its supertypes up to BaseEventType, from a source node with this name.
    #[must_use]
    pub fn new(types: impl Into<Arc<[NodeId]>>, source: NodeId, source_name: impl Into<UaString>) -> Self {
        Self {
            types: types.into(),
            source,
            source_name: source_name.into(),
            time: None,
            message: LocalizedText::default(),
            severity: *SEVERITY.start(),
            fields: Vec::new(),
        }
    }

    /// Message, without a locale.
    #[must_use]
    pub fn message(mut self, text: impl Into<UaString>) -> Self {
        self.message = LocalizedText::plain(text);
        self
    }

    /// Severity, 1 to 1000; what lies outside becomes the nearest.
    #[must_use]
    pub fn severity(mut self, severity: u16) -> Self {
        self.severity = severity.clamp(*SEVERITY.start(), *SEVERITY.end());
        self
    }

    /// Time: when it happened, if that is not now.
    #[must_use]
    pub fn time(mut self, time: DateTime) -> Self {
        self.time = Some(time);
        self
    }

    /// A field by its name in namespace 0.
    #[must_use]
    pub fn field(self, name: &str, value: impl Into<Variant>) -> Self {
        self.path(vec![QualifiedName::from(name)], value.into())
    }

    /// A field by its path. A field that was set before gets this value; Message, Severity, Time, SourceName and LocalTime are such fields
    /// too. EventId, EventType, SourceNode and ReceiveTime are not for the caller to say and are ignored. A value of a wrong type for
    /// Message, Severity or Time is ignored as well: the caller checks types.
    #[must_use]
    pub fn path(mut self, path: Vec<QualifiedName>, value: Variant) -> Self {
        if let [name] = path.as_slice()
            && name.namespace == 0
        {
            match (name.name.text(), value) {
                ("EventId" | "EventType" | "SourceNode" | "ReceiveTime", _) => return self,
                ("Message", Variant::LocalizedText(text)) => self.message = *text,
                ("Message", Variant::String(text)) => self.message = LocalizedText::plain(text),
                ("Severity", Variant::UInt16(severity)) => return self.severity(severity),
                ("Time", Variant::DateTime(time)) if !time.is_null() => self.time = Some(time),
                ("SourceName", Variant::String(name)) => self.source_name = name,
                ("Message" | "Severity" | "Time" | "SourceName", _) => {}
                (_, value) => self.set(path, value),
            }
            return self;
        }
        self.set(path, value);
        self
    }

    fn set(&mut self, path: Vec<QualifiedName>, value: Variant) {
        match self.fields.iter_mut().find(|(name, _)| **name == *path) {
            Some((_, old)) => *old = value,
            None => self.fields.push((path.into_boxed_slice(), value)),
        }
    }

    /// The event. `id` has never been used before; `now` is when the server learned of it.
    #[must_use]
    pub fn build(self, id: impl Into<ByteString>, now: DateTime) -> Arc<Event> {
        let id = id.into();
        let event_type = self.types.first().cloned().unwrap_or_default();
        let own = [
            ("EventId", Variant::ByteString(id.clone())),
            ("EventType", event_type.clone().into()),
            ("SourceNode", self.source.clone().into()),
            ("SourceName", self.source_name.into()),
            // Nothing happens after it was reported.
            ("Time", self.time.unwrap_or(now).min(now).into()),
            ("ReceiveTime", now.into()),
            ("Message", self.message.into()),
            ("Severity", self.severity.into()),
        ];
        let mut fields = self.fields;
        let local_time = [QualifiedName::from("LocalTime")];
        if !fields.iter().any(|(name, _)| **name == local_time) {
            // Everything in the server is UTC.
            let utc = ExtensionObject::from_structure(&TimeZoneDataType::default());
            fields.push((local_time.into(), utc.into()));
        }
        let own = own
            .into_iter()
            .map(|(name, value)| ([QualifiedName::from(name)].into(), value));
        Arc::new(Event {
            event_type,
            types: self.types,
            source: self.source,
            id,
            fields: own.chain(fields).collect(),
        })
    }
}

/// Gives out EventIds.
#[derive(Debug)]
pub struct EventIds {
    prefix: [u8; 8],
    next: AtomicU64,
}

impl EventIds {
    /// Ids that start with `prefix`, which is random, so that a restarted server does not give one out again.
    #[must_use]
    pub fn new(prefix: [u8; 8]) -> Self {
        Self {
            prefix,
            next: AtomicU64::new(1),
        }
    }

    /// An id of 16 bytes that was not given out before.
    #[must_use]
    pub fn next(&self) -> ByteString {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut id = [0; 16];
        let (prefix, count) = id.split_at_mut(8);
        prefix.copy_from_slice(&self.prefix);
        count.copy_from_slice(&number.to_be_bytes());
        ByteString::from(&id)
    }
}
