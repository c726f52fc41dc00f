//! Where monitored items get their values: the same glue as the server's shard has, and beside it the truth that samples are compared with.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use backplane_nodes::services::sample;
use backplane_nodes::{CallContext, Caller, ManagerId, ReadSource, Snapshot};
use backplane_session::{ItemTraits, ResolvedItem, SampleKey, Sampled, Sampler, SourceChange};
use backplane_types::{AttributeId, DataValue, MonitoredItemCreateRequest, Now, ReadValueId, StatusCode};

use crate::executor::Executor;
use crate::mutant::Mutant;
use crate::oracle::{Changed, Found, Outcome, Sample};
use crate::plant::Plant;
use crate::settings::REQUEST_TIMEOUT;

use super::Done;

/// What one item samples.
#[derive(Debug)]
pub(crate) struct Source {
    wanted: ReadValueId,
    pub(crate) name: String,
    read: ReadSource,
    seen: Option<u64>,
    gone: bool,
    /// The structure that `read` was found in.
    epoch: u64,
}

pub(crate) fn call_context(caller: &Arc<Caller>, now: Now, timeout: Duration) -> CallContext {
    CallContext {
        caller: Arc::clone(caller),
        deadline: now.mono.saturating_add(timeout),
        deadline_utc: now.utc.saturating_add(timeout),
        trace_parent: None,
        internal: false,
    }
}

fn find(snapshot: &Snapshot, caller: &Arc<Caller>, wanted: &ReadValueId, now: Now) -> Result<ReadSource, StatusCode> {
    snapshot.resolve(
        &call_context(caller, now, Duration::ZERO),
        &wanted.node_id,
        AttributeId(wanted.attribute_id),
        wanted.index_range.text(),
        &wanted.data_encoding,
    )
}

fn name_of(wanted: &ReadValueId) -> String {
    match &wanted.node_id.identifier {
        backplane_types::Identifier::String(text) => text.text().to_owned(),
        other => format!("{other:?}"),
    }
}

/// Finds out what a client wants to monitor, for the core and for the oracle.
pub(crate) fn resolve(
    plant: &Plant,
    snapshot: &Snapshot,
    caller: &Arc<Caller>,
    item: &MonitoredItemCreateRequest,
    now: Now,
) -> Result<(ResolvedItem<Source>, Found), StatusCode> {
    let wanted = &item.item_to_monitor;
    let attribute = AttributeId(wanted.attribute_id);
    let read = find(snapshot, caller, wanted, now)?;
    let traits = ItemTraits {
        is_value: attribute == AttributeId::VALUE,
        is_number: snapshot.is_numeric(&wanted.node_id),
        minimum_sampling_interval: snapshot.minimum_sampling(&wanted.node_id, attribute),
        eu_range: snapshot.eu_range(&wanted.node_id).map(|range| (range.low, range.high)),
        ..ItemTraits::default()
    };
    let seen = read.version();
    let initial = read.read(now);
    let name = name_of(wanted);
    let found = Found {
        node: name.clone(),
        initial: initial
            .clone()
            .map(|value| (value, plant.truth(&name).map(|truth| truth.version))),
        range: Plant::range(&name),
    };
    let source = Source {
        wanted: wanted.clone(),
        name,
        read,
        seen,
        gone: false,
        epoch: snapshot.epoch(),
    };
    Ok((
        ResolvedItem {
            source,
            initial,
            traits,
        },
        found,
    ))
}

/// What a source is after nodes came or went.
pub(crate) fn follow(
    plant: &Plant,
    snapshot: &Snapshot,
    caller: &Arc<Caller>,
    now: Now,
    source: &mut Source,
) -> (SourceChange<Source>, Option<Changed>) {
    match find(snapshot, caller, &source.wanted, now) {
        Ok(read) if !source.gone && read.is_same(&source.read) => {
            source.epoch = snapshot.epoch();
            (SourceChange::Keep, None)
        }
        Ok(read) => {
            let seen = read.version();
            let value = read.read(now);
            let version = plant.truth(&source.name).map(|truth| truth.version);
            let changed = Changed::Rebound(value.clone().map(|value| (value, version)));
            let source = Source {
                wanted: source.wanted.clone(),
                name: source.name.clone(),
                read,
                seen,
                gone: false,
                epoch: snapshot.epoch(),
            };
            (SourceChange::Rebound { source, value }, Some(changed))
        }
        Err(_) if source.gone => (SourceChange::Keep, None),
        Err(_) => {
            source.gone = true;
            (SourceChange::Gone, Some(Changed::Gone))
        }
    }
}

/// Samples the sources of one session at one turn, and notes what it answered.
pub(crate) struct SpaceSampler<'a> {
    pub(crate) plant: &'a Plant,
    pub(crate) mutant: Option<Mutant>,
    caller: &'a Arc<Caller>,
    /// The structure in which managers are asked.
    snapshot: Arc<Snapshot>,
    asked: BTreeMap<ManagerId, Vec<(SampleKey, u32, ReadSource)>>,
    pub(crate) samples: Vec<Sample>,
}

impl<'a> SpaceSampler<'a> {
    pub(crate) fn new(plant: &'a Plant, caller: &'a Arc<Caller>, mutant: Option<Mutant>) -> Self {
        Self {
            plant,
            mutant,
            caller,
            snapshot: plant.space.snapshot(),
            asked: BTreeMap::new(),
            samples: Vec::new(),
        }
    }

    /// Asks each manager once for everything that this turn needs of it. Returns what was sampled.
    pub(crate) fn ask_managers(
        self,
        session: u32,
        caller: &Arc<Caller>,
        tasks: &mut Executor<Done>,
        now: Now,
    ) -> Vec<Sample> {
        let snapshot = self.snapshot;
        for (manager, wanted) in self.asked {
            let call = call_context(caller, now, REQUEST_TIMEOUT);
            let snapshot = Arc::clone(&snapshot);
            let keys: Vec<(SampleKey, ReadSource)> =
                wanted.iter().map(|(key, _, source)| (*key, source.clone())).collect();
            let late_keys: Vec<SampleKey> = keys.iter().map(|(key, _)| *key).collect();
            let future = async move {
                let tags: Vec<u32> = wanted.iter().map(|(_, tag, _)| *tag).collect();
                let values = sample(&snapshot, &call, manager, &tags, 0.0, now).await;
                let samples = keys.into_iter().zip(values);
                Done::Samples {
                    session,
                    samples: samples.map(|((key, source), value)| (key, source.cut(value))).collect(),
                }
            };
            let late = move || Done::Samples {
                session,
                samples: late_keys
                    .into_iter()
                    .map(|key| (key, DataValue::from_status(StatusCode::BAD_TIMEOUT)))
                    .collect(),
            };
            tasks.spawn(now.mono + REQUEST_TIMEOUT, future, late);
        }
        self.samples
    }

    /// A tag belongs to a generation: another one may have given it to another node.
    fn is_current(&self, source: &mut Source, now: Now) -> bool {
        if source.epoch == self.snapshot.epoch() || self.mutant == Some(Mutant::AsksWithOldTags) {
            return true;
        }
        match find(&self.snapshot, self.caller, &source.wanted, now) {
            Ok(read) if read.on_demand().is_some() => {
                source.read = read;
                source.epoch = self.snapshot.epoch();
                true
            }
            _ => false,
        }
    }

    fn answer(&mut self, key: SampleKey, source: &mut Source, now: Now) -> Sampled {
        if source.read.on_demand().is_some() && !self.is_current(source, now) {
            // Its node is gone; the next look at the structure says so.
            return Sampled::Pending;
        }
        if let Some((manager, tag)) = source.read.on_demand() {
            let asked = self.asked.entry(manager).or_default();
            asked.push((key, tag, source.read.clone()));
            return Sampled::Pending;
        }
        let version = source.read.version();
        if version.is_some() && version == source.seen && !key.first {
            return Sampled::Unchanged;
        }
        if self.mutant == Some(Mutant::OverlooksChange) && !key.first {
            source.seen = version;
            return Sampled::Unchanged;
        }
        source.seen = version;
        if let Some(value) = source.read.read_plain(now) {
            return Sampled::Plain(value);
        }
        source.read.read(now).map_or(Sampled::Unchanged, Sampled::Value)
    }
}

impl Sampler<Source> for SpaceSampler<'_> {
    fn sample(&mut self, key: SampleKey, source: &mut Source, now: Now) -> Sampled {
        let mut sampled = self.answer(key, source, now);
        if let (Some(Mutant::FalsifiesValue), Sampled::Plain(value)) = (self.mutant, &sampled) {
            sampled = Sampled::Value(value.data_value());
        }
        if self.mutant == Some(Mutant::FalsifiesValue)
            && let Sampled::Value(value) = &mut sampled
            && let backplane_types::Variant::Double(number) = &mut value.value
        {
            *number += 1.0;
        }
        if self.mutant == Some(Mutant::SkipsSamples) && !key.first && key.item.monitored_item_id.is_multiple_of(3) {
            return Sampled::Unchanged;
        }
        let outcome = match &sampled {
            Sampled::Unchanged => Outcome::Unchanged,
            Sampled::Value(value) => Outcome::Value(value.clone()),
            Sampled::Plain(value) => Outcome::Value(value.data_value()),
            Sampled::Pending => Outcome::Pending,
        };
        let truth = match sampled {
            Sampled::Pending => None,
            _ => self.plant.truth(&source.name).cloned(),
        };
        self.samples.push(Sample { key, outcome, truth });
        sampled
    }
}
