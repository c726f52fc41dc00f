//! Samples: whether each one is the truth, came when it must, and what the item makes of it.

use std::collections::BTreeMap;
use std::time::Duration;

use backplane_session::SampleKey;
use backplane_types::{DataValue, MonitoringMode, Now};

use super::SessionOracle;
use super::timing::Finding;
use crate::log::{Log, Rule};

/// What a node's value is, said by whoever made it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Truth {
    pub(crate) value: DataValue,
    /// Counts the changes.
    pub(crate) version: u64,
}

/// What the sampler answered the core.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    Unchanged,
    Value(DataValue),
    Pending,
}

/// One call of the sampler.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) key: SampleKey,
    pub(crate) outcome: Outcome,
    /// None for a value that has to be fetched.
    pub(crate) truth: Option<Truth>,
}

/// What a source became.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Changed {
    Gone,
    /// With its value, if it is there.
    Rebound(Option<(DataValue, Option<u64>)>),
}

impl SessionOracle {
    /// One call of `handle_timeout`: the samples it took, then the timers that are due. The core had asked to be called at `asked`.
    pub(crate) fn turn(&mut self, log: &mut Log, now: Now, asked: Option<Duration>, samples: Vec<Sample>) {
        let mut regular: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        // Whose value was being fetched when the turn began.
        let blind: Vec<(u32, u32)> = self
            .subscriptions
            .iter()
            .flat_map(|it| {
                it.items
                    .values()
                    .filter(|item| item.pending.is_some())
                    .map(|item| (it.id, item.id))
            })
            .collect();
        let mut fetched_first = Vec::new();
        for sample in samples {
            let (subscription_id, item_id) = (sample.key.item.subscription_id, sample.key.item.monitored_item_id);
            let first = self.take_sample(log, now, sample);
            let place = (subscription_id, item_id);
            if first {
                let pending = self
                    .find(subscription_id)
                    .and_then(|it| it.items.get(&item_id))
                    .is_some_and(|item| item.pending.is_some());
                if pending {
                    fetched_first.push(place);
                }
            } else {
                *regular.entry(place).or_default() += 1;
            }
        }
        let asked = asked.unwrap_or(now.mono).min(now.mono);
        for subscription in &mut self.subscriptions {
            let id = subscription.id;
            for item in subscription.items.values_mut() {
                let place = (id, item.id);
                let count = regular.get(&place).copied().unwrap_or(0);
                log.check(
                    count <= 1,
                    Rule::SampleTimes,
                    format_args!("item {}/{} sampled {count} times at once", id, item.id),
                );
                log.check(
                    !std::mem::take(&mut item.wants_first),
                    Rule::SampleTimes,
                    format_args!("item {}/{} did not get its first sample", id, item.id),
                );
                let is_blind = count == 0 && (blind.contains(&place) || fetched_first.contains(&place));
                let (finding, lag) = item.timing.turn(now.mono, asked, count > 0, is_blind);
                match finding {
                    Finding::Fine => {}
                    Finding::Early(by) => log.broken(
                        Rule::SampleTimes,
                        format_args!("item {}/{} sampled {by:?} too early", id, item.id),
                    ),
                    Finding::Missed(by) => log.broken(
                        Rule::SampleTimes,
                        format_args!("item {}/{} not sampled, {by:?} after its deadline", id, item.id),
                    ),
                }
                note_lag(log, lag);
                log.check(
                    item.waiting.len() <= item.most(),
                    Rule::Bounded,
                    format_args!("item {}/{} has {} values waiting", id, item.id, item.waiting.len()),
                );
            }
        }
        self.run_timers(log, now);
    }

    /// Returns whether it was a first sample, outside of the schedule.
    fn take_sample(&mut self, log: &mut Log, now: Now, sample: Sample) -> bool {
        log.stats.samples += 1;
        let key = sample.key;
        let (id, item_id) = (key.item.subscription_id, key.item.monitored_item_id);
        let Some(subscription) = self.find(id) else {
            log.broken(Rule::SampleTimes, format_args!("sampled for no subscription: {key:?}"));
            return false;
        };
        let mut first = false;
        let found = subscription.items.contains_key(&item_id);
        log.check(found, Rule::SampleTimes, format_args!("sampled for no item: {key:?}"));
        subscription.change(item_id, |item| {
            first = std::mem::take(&mut item.wants_first);
            log.check(
                item.is_sampled() && item.pending.is_none(),
                Rule::SampleTimes,
                format_args!(
                    "item {id}/{item_id} sampled though it is {:?}, gone {}, pending {}",
                    item.mode,
                    item.gone,
                    item.pending.is_some()
                ),
            );
            log.check(
                key.first == item.last.is_none(),
                Rule::SampleTimes,
                format_args!("item {id}/{item_id}: first is {}", key.first),
            );
            match sample.outcome {
                Outcome::Pending => item.pending = Some(key),
                Outcome::Unchanged => {
                    let unseen = sample
                        .truth
                        .as_ref()
                        .is_some_and(|truth| item.seen != Some(truth.version));
                    log.check(
                        !unseen,
                        Rule::Lost,
                        format_args!(
                            "item {id}/{item_id}: a change of {} was not seen: {:?}",
                            item.node, sample.truth
                        ),
                    );
                }
                Outcome::Value(value) => {
                    if let Some(truth) = &sample.truth {
                        check_truth(log, &item.node, &value, truth);
                        item.seen = Some(truth.version);
                    }
                    item.accept(value, now.utc);
                }
            }
        });
        first
    }

    /// The node that a fetched value is of, if somebody still waits for it.
    pub(crate) fn awaited(&mut self, key: SampleKey) -> Option<String> {
        let subscription = self.find(key.item.subscription_id)?;
        let item = subscription.items.get(&key.item.monitored_item_id)?;
        (item.pending == Some(key)).then(|| item.node.clone())
    }

    /// Values that were fetched have come.
    pub(crate) fn fetched(&mut self, now: Now, samples: &[(SampleKey, DataValue)]) {
        for (key, value) in samples {
            let Some(subscription) = self.find(key.item.subscription_id) else {
                continue;
            };
            subscription.change(key.item.monitored_item_id, |item| {
                // A late one, for another source, is nobody's.
                if item.pending == Some(*key) {
                    item.pending = None;
                    if item.is_sampled() {
                        item.accept(value.clone(), now.utc);
                    }
                }
            });
        }
    }

    /// The node of an item is gone, or has another source.
    pub(crate) fn source_changed(&mut self, now: Now, (id, item_id): (u32, u32), changed: &Changed) {
        let Some(subscription) = self.find(id) else { return };
        subscription.change(item_id, |item| match changed {
            Changed::Gone => {
                if item.gone {
                    return;
                }
                let was_sampled = item.is_sampled();
                item.gone = true;
                item.pending = None;
                item.wants_first = false;
                item.timing.stop();
                if was_sampled {
                    item.mark_gone();
                }
            }
            Changed::Rebound(value) => {
                item.gone = false;
                item.pending = None;
                if item.mode == MonitoringMode::DISABLED {
                    return;
                }
                item.timing.restart(now.mono);
                match value {
                    Some((value, version)) => {
                        item.seen = *version;
                        item.accept(value.clone(), now.utc);
                    }
                    None => item.wants_first = true,
                }
            }
        });
    }
}

/// A sample must be the value that the node has.
pub(crate) fn check_truth(log: &mut Log, node: &str, value: &DataValue, truth: &Truth) {
    let same = value.value == truth.value.value
        && value.status() == truth.value.status()
        && value.source_timestamp == truth.value.source_timestamp;
    log.check(
        same,
        Rule::WrongValue,
        format_args!("{node} was sampled as {value:?}, but is {:?}", truth.value),
    );
}

fn note_lag(log: &mut Log, lag: Duration) {
    if lag.is_zero() {
        return;
    }
    let us = u64::try_from(lag.as_micros()).unwrap_or(u64::MAX);
    log.stats.late_samples += 1;
    log.stats.jitter_us = log.stats.jitter_us.saturating_add(us);
    log.stats.worst_jitter_us = log.stats.worst_jitter_us.max(us);
}
