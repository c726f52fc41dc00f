//! An event as bytes, for queues that outlive the server.

use std::sync::Arc;

use backplane_types::{
    BinaryDecode, BinaryEncode, ByteString, DecodeError, Decoder, Encoder, NodeId, QualifiedName, Variant,
};

use super::event::Event;

/// One event in a queue.
#[derive(Debug, Clone)]
pub(crate) struct SavedEvent {
    pub(crate) event: Arc<Event>,
    /// Says that events were lost.
    pub(crate) overflow: bool,
}

impl PartialEq for SavedEvent {
    /// An EventId never names two events.
    fn eq(&self, other: &Self) -> bool {
        self.event.id() == other.event.id() && self.overflow == other.overflow
    }
}

impl BinaryEncode for SavedEvent {
    fn encode(&self, e: &mut Encoder<'_>) {
        let parts = self.event.parts();
        e.bool(self.overflow);
        e.length(parts.types.len());
        parts.types.iter().for_each(|id| e.put(id));
        e.put(parts.source);
        e.put(parts.id);
        e.length(parts.fields.len());
        for (path, value) in parts.fields {
            e.length(path.len());
            path.iter().for_each(|name| e.put(name));
            e.put(value);
        }
    }
}

impl BinaryDecode for SavedEvent {
    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let overflow = d.bool()?;
        let types: Vec<NodeId> = read(d, 2, |d| d.get())?;
        let source: NodeId = d.get()?;
        let id: ByteString = d.get()?;
        let fields = read(d, 5, |d| {
            let path: Vec<QualifiedName> = read(d, 6, |d| d.get())?;
            let value: Variant = d.get()?;
            Ok((path.into_boxed_slice(), value))
        })?;
        let event = Event::from_parts(types, source, id, fields);
        Ok(Self { event, overflow })
    }
}

fn read<'a, T>(
    d: &mut Decoder<'a>,
    min_size: usize,
    mut one: impl FnMut(&mut Decoder<'a>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let count = d.array_length(min_size)?.unwrap_or(0);
    (0..count).map(|_| one(d)).collect()
}
