//! Events that a guest raises.
//!
//! Owns what is checked of an event before anybody else sees it: source, type, fields, size and rate. It must not know who listens: whoever runs the
//! host hands in an [`EventSink`].

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use backplane_nodes::Snapshot;
use backplane_types::{ByteString, NodeId, QualifiedName, StatusCode, Variant};

use crate::bindings::{host, ua};
use crate::convert;
use crate::hosts::{RETIRED, fault};
use crate::sizes;
use crate::state::{Phase, State};

/// Names in the path of a field.
const MAX_PATH: usize = 8;
/// Fields that the host alone sets.
const HOST_FIELDS: [&str; 4] = ["EventId", "EventType", "SourceNode", "ReceiveTime"];

/// An event of a plugin: its type is there, the source is a node of the plugin, and each field fits its declaration.
#[derive(Debug)]
pub struct PluginEvent {
    /// The type.
    pub event_type: NodeId,
    /// The node that it comes from.
    pub source: NodeId,
    /// Fields by path.
    pub fields: Vec<(Vec<QualifiedName>, Variant)>,
}

/// Where events go.
pub trait EventSink: Send + Sync {
    /// A plugin raises an event. Its EventId; `None` when there is nobody any more who could give one. Must return at once.
    fn emit(&self, event: PluginEvent) -> Option<ByteString>;

    /// A plugin has failed too often and is not restarted.
    fn quarantined(&self, plugin: &str, reason: &str);
}

/// The sink of a host, once there is one.
pub(crate) type Sink = Arc<OnceLock<Arc<dyn EventSink>>>;

/// Events of one instance in the last second.
#[derive(Debug)]
pub(crate) struct EventRate {
    per_second: u32,
    left: u32,
    since: Duration,
}

impl EventRate {
    pub(crate) fn new(per_second: u32) -> Self {
        Self {
            per_second,
            left: per_second,
            since: Duration::ZERO,
        }
    }

    fn take(&mut self, now: Duration) -> bool {
        if now.saturating_sub(self.since) >= Duration::from_secs(1) {
            self.since = now;
            self.left = self.per_second;
        }
        let one = self.left > 0;
        self.left = self.left.saturating_sub(1);
        one
    }
}

impl host::events::Host for State {
    fn emit(
        &mut self,
        source: ua::NodeId,
        event_type: ua::NodeId,
        fields: Vec<(String, ua::Value)>,
    ) -> Result<Vec<u8>, ua::Fault> {
        let serving = Arc::clone(&self.serving);
        let serving = serving.read();
        if self.is_retired(*serving) {
            return Err(fault(StatusCode::BAD_INVALID_STATE, RETIRED));
        }
        let emitted = self.check_event(source, event_type, fields).and_then(|event| {
            let sink = self.shared.events.get();
            let not_there = || fault(StatusCode::BAD_NOT_SUPPORTED, "this host has no events");
            sink.and_then(|sink| sink.emit(event)).ok_or_else(not_there)
        });
        let counters = &self.shared.counters;
        match emitted {
            Ok(id) => {
                counters.events.one();
                Ok(id.bytes().to_vec())
            }
            Err(refused) => {
                counters.refused_events.one();
                Err(refused)
            }
        }
    }
}

impl State {
    fn check_event(
        &mut self,
        source: ua::NodeId,
        event_type: ua::NodeId,
        fields: Vec<(String, ua::Value)>,
    ) -> Result<PluginEvent, ua::Fault> {
        let invalid = |status: StatusCode| fault(status, "a node id of an event");
        let source = convert::node_id(&self.names, source).map_err(invalid)?;
        let event_type = convert::node_id(&self.names, event_type).map_err(invalid)?;
        if matches!(self.phase, Phase::Hidden) {
            return Err(fault(
                StatusCode::BAD_INVALID_STATE,
                "nobody sees the plugin's nodes before start has returned, so nobody can see their events",
            ));
        }
        if !self.model.contains(&source) {
            let detail = format!("{source} is no node of this plugin, so its events are not for the plugin to raise");
            return Err(fault(StatusCode::BAD_NODE_ID_UNKNOWN, detail));
        }
        let snapshot = self.shared.space.snapshot();
        // Abstract or not: nearly all types of the standard are, and their events are raised all the same.
        if snapshot.event_type(&event_type).is_none() {
            let detail = format!("{event_type} is no event type");
            return Err(fault(StatusCode::BAD_TYPE_DEFINITION_INVALID, detail));
        }
        let limits = &self.shared.limits;
        if fields.len() > limits.event_fields {
            let detail = format!("more than {} fields", limits.event_fields);
            return Err(fault(StatusCode::BAD_ENCODING_LIMITS_EXCEEDED, detail));
        }
        let mut checked = Vec::with_capacity(fields.len());
        let mut bytes = 0_usize;
        for (name, value) in fields {
            let field = self.check_field(&snapshot, &event_type, &name, value);
            let (path, value) = field.map_err(|status| fault(status, format!("field {name:?}: {status}")))?;
            bytes = bytes.saturating_add(sizes::bytes(&value));
            checked.push((path, value));
        }
        if bytes > limits.event_bytes {
            let detail = format!("{bytes} bytes of fields, {} are allowed", limits.event_bytes);
            return Err(fault(StatusCode::BAD_ENCODING_LIMITS_EXCEEDED, detail));
        }
        if !self.event_rate.take(self.shared.now().mono) {
            let detail = format!("more than {} events in a second", limits.events_per_second);
            return Err(fault(StatusCode::BAD_RESOURCE_UNAVAILABLE, detail));
        }
        Ok(PluginEvent {
            event_type,
            source,
            fields: checked,
        })
    }

    fn check_field(
        &self,
        snapshot: &Snapshot,
        event_type: &NodeId,
        name: &str,
        value: ua::Value,
    ) -> Result<(Vec<QualifiedName>, Variant), StatusCode> {
        let path = name.split('/').take(MAX_PATH + 1).map(|part| self.field_name(part));
        let path: Vec<QualifiedName> = path.collect::<Result<_, _>>()?;
        if path.len() > MAX_PATH {
            return Err(StatusCode::BAD_NODE_ID_UNKNOWN);
        }
        if let [only] = path.as_slice()
            && only.namespace == 0
            && HOST_FIELDS.contains(&only.name.text())
        {
            return Err(StatusCode::BAD_NOT_WRITABLE);
        }
        let mut value = convert::variant(&self.names, value)?;
        // What a plugin author writes for a text.
        if path.len() == 1
            && path.first().is_some_and(|it| it.namespace == 0 && it.name == "Message")
            && let Variant::String(text) = value
        {
            value = backplane_types::LocalizedText::plain(text).into();
        }
        let value = snapshot.fit_event_field(event_type, &path, value)?;
        Ok((path, value))
    }

    /// "Severity" in namespace 0, "1:Level" in a namespace of the plugin.
    fn field_name(&self, text: &str) -> Result<QualifiedName, StatusCode> {
        let invalid = StatusCode::BAD_BROWSE_NAME_INVALID;
        let (namespace, name) = match text.split_once(':') {
            Some((index, name)) if index.bytes().all(|c| c.is_ascii_digit()) => {
                (index.parse::<u16>().map_err(|_| invalid)?, name)
            }
            _ => (0, text),
        };
        if name.is_empty() {
            return Err(invalid);
        }
        let namespace = self.names.server(namespace).map_err(|_| invalid)?;
        Ok(QualifiedName::new(namespace, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_counted_by_the_second() {
        let mut rate = EventRate::new(2);
        let at = Duration::from_millis;
        assert!(rate.take(at(5000)) && rate.take(at(5100)) && !rate.take(at(5999)));
        assert!(rate.take(at(6000)) && rate.take(at(6001)) && !rate.take(at(6002)));
    }
}
