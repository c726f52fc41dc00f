//! Where monitored items get their values: resolved attributes of the address space.
//!
//! Owns what an item remembers of its source, how a source is found again after nodes changed, and the one list call per
//! manager and tick for variables on demand. Knows nothing of queues or filters.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use backplane_nodes::services::sample;
use backplane_nodes::{CallContext, ManagerId, ReadSource, Snapshot};
use backplane_session::{ItemKey, ItemTraits, ResolvedItem, SampleKey, Sampled, Sampler, SourceChange, Subscriptions};
use backplane_types::{AttributeId, DataValue, MonitoredItemCreateRequest, NodeId, Now, ReadValueId, StatusCode};
use tokio::sync::mpsc::UnboundedSender;

use super::Command;
use crate::link::Bound;
use crate::shared::Shared;

/// What one item samples.
#[derive(Debug)]
pub(super) struct Source {
    /// What the client asked for, to find it again.
    wanted: ReadValueId,
    read: ReadSource,
    /// Version of the value seen last.
    seen: Option<u64>,
    /// The node was gone at the last look.
    gone: bool,
}

impl Source {
    /// The node that is monitored.
    pub(super) fn node_id(&self) -> &NodeId {
        &self.wanted.node_id
    }

    /// The variable, if its value is sampled.
    pub(super) fn variable(&self) -> Option<&NodeId> {
        (self.wanted.attribute_id == AttributeId::VALUE.0).then_some(&self.wanted.node_id)
    }
}

pub(super) fn call_context(bound: &Bound, now: Now, timeout: Duration) -> CallContext {
    CallContext {
        caller: Arc::clone(&bound.caller),
        deadline: now.mono.saturating_add(timeout),
        deadline_utc: now.utc.saturating_add(timeout),
        trace_parent: None,
        internal: false,
    }
}

fn find(snapshot: &Snapshot, bound: &Bound, wanted: &ReadValueId, now: Now) -> Result<ReadSource, StatusCode> {
    let call = call_context(bound, now, Duration::ZERO);
    let attribute = AttributeId(wanted.attribute_id);
    snapshot.resolve(
        &call,
        &wanted.node_id,
        attribute,
        wanted.index_range.text(),
        &wanted.data_encoding,
    )
}

/// Finds out what a client wants to monitor.
pub(super) fn resolve(
    snapshot: &Snapshot,
    bound: &Bound,
    item: &MonitoredItemCreateRequest,
    now: Now,
) -> Result<ResolvedItem<Source>, StatusCode> {
    let wanted = &item.item_to_monitor;
    let attribute = AttributeId(wanted.attribute_id);
    let read = find(snapshot, bound, wanted, now)?;
    let is_notifier = attribute == AttributeId::EVENT_NOTIFIER;
    if is_notifier {
        snapshot.check_notifier(&call_context(bound, now, Duration::ZERO), &wanted.node_id)?;
    }
    let is_number = snapshot.is_numeric(&wanted.node_id);
    let traits = ItemTraits {
        is_value: attribute == AttributeId::VALUE,
        is_notifier,
        is_number,
        is_boolean: !is_number && snapshot.is_boolean(&wanted.node_id),
        minimum_sampling_interval: snapshot.minimum_sampling(&wanted.node_id, attribute),
        eu_range: snapshot.eu_range(&wanted.node_id).map(|range| (range.low, range.high)),
    };
    let seen = read.version();
    let initial = if is_notifier { None } else { read.read(now) };
    Ok(ResolvedItem {
        source: Source {
            wanted: wanted.clone(),
            read,
            seen,
            gone: false,
        },
        initial,
        traits,
    })
}

/// After nodes came or went: items whose node is gone say so once, the others go on with what is there now.
pub(super) fn follow_structure(
    subscriptions: &mut Subscriptions<Source>,
    snapshot: &Snapshot,
    bound: &Bound,
    now: Now,
) {
    subscriptions.visit_sources(now, |_: ItemKey, source: &mut Source| {
        match find(snapshot, bound, &source.wanted, now) {
            Ok(read) if !source.gone && read.is_same(&source.read) => SourceChange::Keep,
            Ok(read) => {
                let seen = read.version();
                let value = read.read(now);
                SourceChange::Rebound {
                    source: Source {
                        wanted: source.wanted.clone(),
                        read,
                        seen,
                        gone: false,
                    },
                    value,
                }
            }
            Err(_) if source.gone => SourceChange::Keep,
            Err(_) => {
                source.gone = true;
                SourceChange::Gone
            }
        }
    });
}

/// Samples the sources of one session at one tick.
pub(super) struct SpaceSampler<'a> {
    shared: &'a Arc<Shared>,
    session: u32,
    bound: &'a Bound,
    door: UnboundedSender<Command>,
    /// Items whose value has to be asked for.
    asked: BTreeMap<ManagerId, Vec<(SampleKey, u32, ReadSource)>>,
}

impl<'a> SpaceSampler<'a> {
    pub(super) fn new(shared: &'a Arc<Shared>, session: u32, bound: &'a Bound, door: UnboundedSender<Command>) -> Self {
        Self {
            shared,
            session,
            bound,
            door,
            asked: BTreeMap::new(),
        }
    }

    /// Asks each manager once for everything that this tick needs of it. The answers come back through the shard's door.
    pub(super) fn ask_managers(self, now: Now) {
        if self.asked.is_empty() {
            return;
        }
        let snapshot = self.shared.space.snapshot();
        let timeout = Duration::from_secs_f64(self.shared.limits.request_timeout / 1000.0);
        for (manager, wanted) in self.asked {
            let call = call_context(self.bound, now, timeout);
            let (session, door, snapshot) = (self.session, self.door.clone(), Arc::clone(&snapshot));
            self.shared.runtime.spawn(async move {
                let tags: Vec<u32> = wanted.iter().map(|(_, tag, _)| *tag).collect();
                let answer = tokio::time::timeout(timeout, sample(&snapshot, &call, manager, &tags, 0.0, now)).await;
                let values = answer.unwrap_or_default();
                let late = std::iter::repeat_with(|| DataValue::from_status(StatusCode::BAD_TIMEOUT));
                let samples = wanted.into_iter().zip(values.into_iter().chain(late));
                let samples = samples
                    .map(|((key, _, source), value)| (key, source.cut(value)))
                    .collect();
                // The shard ends only with the server.
                let _ = door.send(Command::Samples { session, samples });
            });
        }
    }
}

impl Sampler<Source> for SpaceSampler<'_> {
    fn sample(&mut self, key: SampleKey, source: &mut Source, now: Now) -> Sampled {
        if let Some((manager, tag)) = source.read.on_demand() {
            self.asked
                .entry(manager)
                .or_default()
                .push((key, tag, source.read.clone()));
            return Sampled::Pending;
        }
        let version = source.read.version();
        if version.is_some() && version == source.seen && !key.first {
            return Sampled::Unchanged;
        }
        // The version first: a write in between is seen at the next tick.
        source.seen = version;
        source.read.read(now).map_or(Sampled::Unchanged, Sampled::Value)
    }
}
