//! Events that the server makes, its own and those of plugins, on their way to whoever listens.
//!
//! Owns EventIds and the making of an event from its type, source and fields. Who listens is the shards' business, which types there are the
//! address space's.

mod audit;
mod host;
mod types;

use std::sync::Arc;

use backplane_session::{EventBuilder, EventIds};
use backplane_types::{ByteString, NodeId};

pub(crate) use audit::{Actor, SessionAction};
pub(crate) use host::{PluginEvents, watch_structure};
pub(crate) use types::SpaceTypes;

use crate::shard::{Audience, Happened};
use crate::shared::Shared;

/// What events need of the server.
#[derive(Debug)]
pub(crate) struct Events {
    ids: EventIds,
    auditing: bool,
    server_uri: Arc<str>,
}

impl Events {
    /// `prefix` is random: EventIds start with it. Audit events name the server by its ApplicationUri.
    pub(crate) fn new(prefix: [u8; 8], auditing: bool, server_uri: &str) -> Self {
        Self {
            ids: EventIds::new(prefix),
            auditing,
            server_uri: server_uri.into(),
        }
    }
}

impl Shared {
    /// Makes an event of a type from a source and sends it to whoever listens; `fill` adds what is not said by these two, and is not called when
    /// nobody does. The EventId.
    pub(crate) fn raise(
        &self,
        event_type: &NodeId,
        source: &NodeId,
        audience: Audience,
        fill: impl FnOnce(EventBuilder) -> EventBuilder,
    ) -> ByteString {
        let id = self.events.ids.next();
        if !self.shards.anybody_listens() {
            return id;
        }
        let snapshot = self.space.load();
        let Some(types) = snapshot.event_type(event_type) else {
            tracing::error!(%event_type, "an event of a type that is not there");
            return id;
        };
        let name = snapshot.display_text(source).unwrap_or_default();
        let builder = EventBuilder::new(types, source.clone(), name);
        let event = fill(builder).build(id.clone(), self.clock.now().utc);
        self.shards.happened(&Arc::new(Happened {
            event,
            notifiers: snapshot.notifiers(source),
            audience,
        }));
        id
    }
}
