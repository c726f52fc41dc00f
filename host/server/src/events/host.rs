//! Events of the host itself: the structure changed, a plugin was given up; and the way in for events of plugins.

use std::sync::{Arc, Weak};

use backplane_nodes::{NodeChange, StructureChange};
use backplane_plugin::{EventSink, PluginEvent};
use backplane_types::{ByteString, ExtensionObject, ModelChangeStructureDataType, NodeId, Variant, ids};

use crate::shard::Audience;
use crate::shared::Shared;

/// Nodes in one GeneralModelChangeEvent. When more have changed a BaseModelChangeEvent says that something did.
const MAX_CHANGES: usize = 1_000;
/// Severity of an event that nobody has to act upon.
const INFORMATION: u16 = 100;
/// Severity of a plugin that was given up: its values are bad until somebody acts.
const FAILURE: u16 = 800;

fn standard(id: u32) -> NodeId {
    NodeId::numeric(0, id)
}

/// From now on changes of the address space are events of the Server object (Part 5, 6.4.31 and 6.4.32).
pub(crate) fn watch_structure(shared: &Arc<Shared>) {
    let weak = Arc::downgrade(shared);
    let watched = shared.space.watch(move |change| {
        if let Some(shared) = weak.upgrade() {
            shared.structure_changed(change);
        }
    });
    if !watched {
        tracing::error!("somebody else watches the address space: its changes are no events");
    }
}

impl Shared {
    fn structure_changed(&self, change: &StructureChange) {
        let changes = change.nodes(MAX_CHANGES);
        let version = change.new.epoch().to_string();
        let now = self.clock.now().utc;
        for node in changes.iter().flatten() {
            change.new.set_node_version(&node.affected, &version, now);
        }
        let server = standard(ids::object::SERVER);
        match changes {
            Some(changes) if changes.is_empty() => {}
            Some(changes) => {
                let general = standard(ids::object_type::GENERAL_MODEL_CHANGE_EVENT_TYPE);
                self.raise(&general, &server, Audience::All, |event| {
                    let changes: Vec<ExtensionObject> = changes.iter().map(described).collect();
                    event
                        .message("Nodes or references changed")
                        .severity(INFORMATION)
                        .field("Changes", Variant::from(changes))
                });
            }
            None => {
                let base = standard(ids::object_type::BASE_MODEL_CHANGE_EVENT_TYPE);
                self.raise(&base, &server, Audience::All, |event| {
                    event.message("Many nodes or references changed").severity(INFORMATION)
                });
            }
        }
    }
}

fn described(change: &NodeChange) -> ExtensionObject {
    ExtensionObject::from_structure(&ModelChangeStructureDataType {
        affected: change.affected.clone(),
        affected_type: change.affected_type.clone(),
        verb: change.verb,
    })
}

/// Where plugins raise their events.
pub(crate) struct PluginEvents(pub(crate) Weak<Shared>);

impl EventSink for PluginEvents {
    fn emit(&self, event: PluginEvent) -> Option<ByteString> {
        let shared = self.0.upgrade()?;
        let fields = event.fields;
        Some(
            shared.raise(&event.event_type, &event.source, Audience::All, |builder| {
                let add = |builder: backplane_session::EventBuilder, (path, value)| builder.path(path, value);
                fields.into_iter().fold(builder, add)
            }),
        )
    }

    fn quarantined(&self, plugin: &str, reason: &str) {
        let Some(shared) = self.0.upgrade() else { return };
        // The reason names what is inside the plugin; that is for the log.
        let _ = reason;
        let failure = standard(ids::object_type::DEVICE_FAILURE_EVENT_TYPE);
        let server = standard(ids::object::SERVER);
        shared.raise(&failure, &server, Audience::All, |event| {
            event
                .message(format!("The plugin {plugin} failed too often and is not restarted"))
                .severity(FAILURE)
        });
    }
}
