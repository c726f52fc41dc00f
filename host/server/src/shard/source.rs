//! Where monitored items get their values: resolved attributes of the address space.
//!
//! Owns what an item remembers of its source, and how a source is found again after nodes changed. Knows nothing of queues or
//! filters.

use std::sync::Arc;
use std::time::Duration;

use backplane_nodes::{CallContext, Caller, ManagerId, ReadSource, Snapshot};
use backplane_session::{
    Found, ItemKey, ItemTraits, ResolvedItem, SampleKey, Sampled, Sampler, SourceChange, Subscriptions,
};
use backplane_types::{
    AttributeId, MonitoredItemCreateRequest, NodeId, Now, QualifiedName, ReadValueId, StatusCode, UaString,
};

use super::asking::{Asking, context};
use super::watches::{Membership, Watches};

/// What one item samples. Small: each tick goes through all of them.
#[derive(Debug)]
pub(super) struct Source {
    /// What no sample looks at.
    rare: Box<Rare>,
    read: ReadSource,
    /// Version of the value seen last; [`UNSEEN`] where only reading tells.
    seen: u64,
    /// Its place among the items that rest on its cell, once it did.
    membership: Option<Membership>,
}

#[derive(Debug, Clone)]
struct Rare {
    /// What the client asked for, to find it again.
    wanted: Wanted,
    /// The node was gone at the last look.
    gone: bool,
    /// The manager and the tag of the variable, if the manager wants to know that it is monitored.
    demand: Option<(ManagerId, u32)>,
}

/// No version: they count writes, which are fewer.
const UNSEEN: u64 = u64::MAX;

impl Source {
    /// The node that is monitored.
    pub(super) fn node_id(&self) -> &NodeId {
        &self.rare.wanted.node_id
    }

    /// The variable, if its value is sampled.
    pub(super) fn variable(&self) -> Option<&NodeId> {
        (self.rare.wanted.attribute == AttributeId::VALUE).then_some(&self.rare.wanted.node_id)
    }
}

/// The context of a look-up for the user of a session.
pub(super) fn call_context(caller: &Arc<Caller>, now: Now, timeout: Duration) -> CallContext {
    context(Arc::clone(caller), now, timeout)
}

/// A ReadValueId without what few have: there are a great many of these.
#[derive(Debug, Clone)]
struct Wanted {
    node_id: NodeId,
    attribute: AttributeId,
    part: Option<Box<Part>>,
}

/// Index range and data encoding.
#[derive(Debug, Clone)]
struct Part {
    range: UaString,
    encoding: QualifiedName,
}

impl Wanted {
    fn new(asked: &ReadValueId) -> Self {
        let is_whole = asked.index_range.text().is_empty() && asked.data_encoding == QualifiedName::default();
        Self {
            node_id: asked.node_id.clone(),
            attribute: AttributeId(asked.attribute_id),
            part: (!is_whole).then(|| {
                Box::new(Part {
                    range: asked.index_range.clone(),
                    encoding: asked.data_encoding.clone(),
                })
            }),
        }
    }
}

fn find(snapshot: &Snapshot, caller: &Arc<Caller>, wanted: &Wanted, now: Now) -> Result<ReadSource, StatusCode> {
    let call = call_context(caller, now, Duration::ZERO);
    let whole = QualifiedName::default();
    let (range, encoding) = match &wanted.part {
        Some(part) => (part.range.text(), &part.encoding),
        None => ("", &whole),
    };
    snapshot.resolve(&call, &wanted.node_id, wanted.attribute, range, encoding)
}

impl Source {
    /// The manager and the tag of the variable, if the manager wants to know that it is monitored.
    pub(super) fn demand(&self) -> Option<(ManagerId, u32)> {
        self.rare.demand
    }
}

fn demand(snapshot: &Snapshot, wanted: &Wanted) -> Option<(ManagerId, u32)> {
    (wanted.attribute == AttributeId::VALUE)
        .then(|| snapshot.demand(&wanted.node_id))
        .flatten()
}

/// Finds out what a client wants to monitor.
pub(super) fn resolve(
    snapshot: &Snapshot,
    caller: &Arc<Caller>,
    item: &MonitoredItemCreateRequest,
    now: Now,
) -> Result<ResolvedItem<Source>, StatusCode> {
    let wanted = Wanted::new(&item.item_to_monitor);
    let attribute = wanted.attribute;
    let read = find(snapshot, caller, &wanted, now)?;
    let is_notifier = attribute == AttributeId::EVENT_NOTIFIER;
    if is_notifier {
        let call = call_context(caller, now, Duration::ZERO);
        snapshot.check_notifier(&call, &wanted.node_id)?;
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
    let seen = read.version().unwrap_or(UNSEEN);
    let initial = if is_notifier { None } else { read.read(now) };
    Ok(ResolvedItem {
        source: Source {
            rare: Box::new(Rare {
                demand: demand(snapshot, &wanted),
                wanted,
                gone: false,
            }),
            read,
            seen,
            membership: None,
        },
        initial,
        traits,
    })
}

/// What an item monitored before the server was started. A node that is not there, or that its user may not see any more, may come back.
pub(super) fn resolve_again(
    snapshot: &Snapshot,
    caller: &Arc<Caller>,
    item: &MonitoredItemCreateRequest,
    now: Now,
) -> Found<Source> {
    match resolve(snapshot, caller, item, now) {
        Ok(resolved) => Found::There(resolved),
        Err(_) => Found::Missing(Source {
            rare: Box::new(Rare {
                wanted: Wanted::new(&item.item_to_monitor),
                gone: true,
                demand: None,
            }),
            read: ReadSource::missing(),
            seen: UNSEEN,
            membership: None,
        }),
    }
}

/// After nodes came or went: items whose node is gone say so once, the others go on with what is there now.
pub(super) fn follow_structure(
    subscriptions: &mut Subscriptions<Source>,
    snapshot: &Snapshot,
    caller: &Arc<Caller>,
    now: Now,
) {
    subscriptions.visit_sources(now, |_: ItemKey, source: &mut Source| {
        match find(snapshot, caller, &source.rare.wanted, now) {
            Ok(read) if !source.rare.gone && read.is_same(&source.read) => {
                source.rare.demand = demand(snapshot, &source.rare.wanted);
                SourceChange::Keep
            }
            Ok(read) => {
                let seen = read.version().unwrap_or(UNSEEN);
                let value = read.read(now);
                SourceChange::Rebound {
                    source: Source {
                        rare: Box::new(Rare {
                            wanted: source.rare.wanted.clone(),
                            gone: false,
                            demand: demand(snapshot, &source.rare.wanted),
                        }),
                        read,
                        seen,
                        membership: None,
                    },
                    value,
                }
            }
            Err(_) if source.rare.gone => SourceChange::Keep,
            Err(status) => {
                source.rare.gone = true;
                if status == StatusCode::BAD_USER_ACCESS_DENIED {
                    SourceChange::Denied
                } else {
                    SourceChange::Gone
                }
            }
        }
    });
}

/// Samples the sources of one session at one tick.
pub(super) struct SpaceSampler<'a> {
    session: u32,
    caller: &'a Arc<Caller>,
    watches: &'a mut Watches,
    asking: &'a mut Asking,
    /// The present structure, when it is newer than the one that the sources were found in.
    newer: Option<&'a Snapshot>,
}

impl<'a> SpaceSampler<'a> {
    pub(super) fn new(
        session: u32,
        caller: &'a Arc<Caller>,
        watches: &'a mut Watches,
        asking: &'a mut Asking,
        newer: Option<&'a Snapshot>,
    ) -> Self {
        Self {
            session,
            caller,
            watches,
            asking,
            newer,
        }
    }

    /// Finds the tag of a variable on demand in the structure that its manager is asked in: another generation of a plugin may
    /// know another variable by the old one. False when it is not there, or no longer on demand: then the source waits to be
    /// told what it is now.
    fn is_asked_as(&self, source: &mut Source, now: Now) -> bool {
        let Some(newer) = self.newer else { return true };
        match find(newer, self.caller, &source.rare.wanted, now) {
            Ok(read) if read.on_demand().is_some() => {
                source.read = read;
                true
            }
            _ => false,
        }
    }

    /// Samples what is not a plain value in a cell.
    fn sample_other(&mut self, key: SampleKey, source: &mut Source, now: Now) -> Sampled {
        if source.read.on_demand().is_some() && !self.is_asked_as(source, now) {
            return Sampled::Pending;
        }
        if let Some((manager, tag)) = source.read.on_demand() {
            let wanted = (key, tag, source.read.clone());
            self.asking.add(self.session, self.caller, manager, wanted);
            return Sampled::Pending;
        }
        let version = source.read.version().unwrap_or(UNSEEN);
        if version == source.seen && version != UNSEEN && !key.first {
            return Sampled::Unchanged;
        }
        // The version first: a write in between is seen at the next tick.
        source.seen = version;
        source.read.read(now).map_or(Sampled::Unchanged, Sampled::Value)
    }
}

impl Sampler<Source> for SpaceSampler<'_> {
    #[inline(always)]
    fn sample(&mut self, key: SampleKey, source: &mut Source, now: Now) -> Sampled {
        let Some(cell) = source.read.cell() else {
            return self.sample_other(key, source, now);
        };
        // As above, in what every tick goes through.
        let version = cell.version();
        if version == source.seen && !key.first {
            return Sampled::Unchanged;
        }
        match source.read.read_plain(now) {
            Some(value) => {
                source.seen = version;
                Sampled::Plain(value)
            }
            None => self.sample_other(key, source, now),
        }
    }

    #[inline(always)]
    fn rest(&mut self, key: SampleKey, source: &mut Source) -> bool {
        match source.read.cell() {
            Some(cell) => self
                .watches
                .rest(self.session, key, cell, source.seen, &mut source.membership),
            // A new structure brings a new source.
            None => source.read.is_constant(),
        }
    }
}
