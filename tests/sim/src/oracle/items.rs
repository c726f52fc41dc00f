//! The monitored item services, told after the core has answered them.

use std::time::Duration;

use backplane_types::{
    DataValue, MonitoredItemCreateRequest, MonitoredItemCreateResult, MonitoredItemModifyRequest,
    MonitoredItemModifyResult, MonitoringMode, Now, StatusCode, TimestampsToReturn,
};

use super::SessionOracle;
use super::item::Item;
use crate::log::{Log, Rule};

/// What was found for one item to create.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) node: String,
    /// Its first value and the version of the truth it is, if it did not have to be fetched.
    pub(crate) initial: Option<(DataValue, Option<u64>)>,
    pub(crate) range: Option<(f64, f64)>,
}

impl SessionOracle {
    fn period(&self, interval: f64) -> Duration {
        if interval == 0.0 {
            self.limits.exception_interval
        } else {
            Duration::try_from_secs_f64(interval / 1000.0).unwrap_or(Duration::MAX)
        }
    }

    /// CreateMonitoredItems was answered.
    pub(crate) fn items_created(
        &mut self,
        log: &mut Log,
        now: Now,
        id: u32,
        timestamps: TimestampsToReturn,
        asked: &[(MonitoredItemCreateRequest, Option<Found>)],
        answered: Result<&[MonitoredItemCreateResult], StatusCode>,
    ) {
        let most = self.limits.max_monitored_items;
        let Some(results) = self.answered(log, "CreateMonitoredItems", id, asked.len(), answered) else {
            return;
        };
        for ((request, found), result) in asked.iter().zip(results) {
            if result.status_code != StatusCode::GOOD {
                continue;
            }
            let Some(found) = found else {
                log.broken(Rule::Answers, format_args!("an item was made of what is not there"));
                continue;
            };
            let period = self.period(result.revised_sampling_interval);
            let parameters = &request.requested_parameters;
            let item_id = result.monitored_item_id;
            let size = result.revised_queue_size;
            let limit = self.limits.max_queue_size;
            log.check(
                (1..=limit).contains(&size),
                Rule::Bounded,
                format_args!("queue size revised to {size}"),
            );
            let Some(subscription) = self.find(id) else { return };
            let mode = request.monitoring_mode;
            let mut item = Item::new(
                item_id,
                found.node.clone(),
                mode,
                parameters,
                size,
                timestamps,
                found.range,
            );
            item.timing.set_period(period);
            item.interval = result.revised_sampling_interval;
            let old = subscription.items.insert(item_id, item);
            log.check(
                old.is_none(),
                Rule::Answers,
                format_args!("item id {item_id} is given twice"),
            );
            let count = subscription.items.len();
            log.check(count <= most, Rule::Bounded, format_args!("{count} monitored items"));
            if mode == MonitoringMode::DISABLED {
                continue;
            }
            subscription.change(item_id, |item| {
                item.timing.restart(now.mono);
                match &found.initial {
                    Some((value, version)) => {
                        item.seen = *version;
                        item.accept(value.clone(), now.utc);
                    }
                    None => item.wants_first = true,
                }
            });
        }
    }

    /// ModifyMonitoredItems was answered.
    pub(crate) fn items_modified(
        &mut self,
        log: &mut Log,
        now: Now,
        id: u32,
        timestamps: TimestampsToReturn,
        asked: &[MonitoredItemModifyRequest],
        answered: Result<&[MonitoredItemModifyResult], StatusCode>,
    ) {
        let Some(results) = self.answered(log, "ModifyMonitoredItems", id, asked.len(), answered) else {
            return;
        };
        for (request, result) in asked.iter().zip(results) {
            let period = self.period(result.revised_sampling_interval);
            let Some(subscription) = self.find(id) else { return };
            let there = subscription.items.contains_key(&request.monitored_item_id);
            log.check(
                there == (result.status_code != StatusCode::BAD_MONITORED_ITEM_ID_INVALID),
                Rule::Answers,
                format_args!("item {id}/{}: {}", request.monitored_item_id, result.status_code),
            );
            if result.status_code != StatusCode::GOOD {
                continue;
            }
            subscription.change(request.monitored_item_id, |item| {
                item.modify(&request.requested_parameters, result.revised_queue_size, timestamps);
                let interval = result.revised_sampling_interval;
                if std::mem::replace(&mut item.interval, interval)
                    .total_cmp(&interval)
                    .is_ne()
                {
                    item.timing.set_period(period);
                    if item.is_sampled() {
                        item.timing.restart(now.mono);
                    }
                }
            });
        }
    }

    /// SetMonitoringMode was answered.
    pub(crate) fn mode_set(
        &mut self,
        log: &mut Log,
        now: Now,
        id: u32,
        mode: MonitoringMode,
        ids: &[u32],
        answered: Result<&[StatusCode], StatusCode>,
    ) {
        let Some(results) = self.answered(log, "SetMonitoringMode", id, ids.len(), answered) else {
            return;
        };
        for (item_id, result) in ids.iter().zip(results) {
            let Some(subscription) = self.find(id) else { return };
            let there = subscription.items.contains_key(item_id);
            check_known(log, (id, *item_id), there, *result);
            subscription.change(*item_id, |item| {
                let old = std::mem::replace(&mut item.mode, mode);
                if old == mode {
                    return;
                }
                if mode == MonitoringMode::DISABLED {
                    item.timing.stop();
                    item.pending = None;
                    item.wants_first = false;
                    item.clear();
                } else if old == MonitoringMode::DISABLED {
                    if item.gone {
                        item.mark_gone();
                    } else {
                        item.timing.restart(now.mono);
                        item.wants_first = true;
                    }
                }
            });
        }
    }

    /// DeleteMonitoredItems was answered.
    pub(crate) fn items_deleted(
        &mut self,
        log: &mut Log,
        id: u32,
        ids: &[u32],
        answered: Result<&[StatusCode], StatusCode>,
    ) {
        let Some(results) = self.answered(log, "DeleteMonitoredItems", id, ids.len(), answered) else {
            return;
        };
        for (item_id, result) in ids.iter().zip(results) {
            let Some(subscription) = self.find(id) else { return };
            let gone = subscription.remove(*item_id);
            check_known(log, (id, *item_id), gone.is_some(), *result);
        }
    }

    /// The results of an item service, if the whole call went well; such a call shows that the client lives.
    fn answered<'r, T>(
        &mut self,
        log: &mut Log,
        service: &str,
        id: u32,
        count: usize,
        answered: Result<&'r [T], StatusCode>,
    ) -> Option<&'r [T]> {
        let limit = self.limits.max_operations;
        let expected = match self.find(id) {
            _ if count == 0 => StatusCode::BAD_NOTHING_TO_DO,
            _ if count > limit => StatusCode::BAD_TOO_MANY_OPERATIONS,
            None => StatusCode::BAD_SUBSCRIPTION_ID_INVALID,
            Some(subscription) => {
                subscription.alive();
                StatusCode::GOOD
            }
        };
        let status = answered.err().unwrap_or(StatusCode::GOOD);
        log.check(
            status == expected,
            Rule::Answers,
            format_args!("{service} on {id} answered {status} instead of {expected}"),
        );
        let results = answered.ok()?;
        log.check(
            results.len() == count,
            Rule::Answers,
            format_args!("{service}: {} results for {count} operations", results.len()),
        );
        Some(results)
    }
}

fn check_known(log: &mut Log, item: (u32, u32), there: bool, result: StatusCode) {
    let expected = if there {
        StatusCode::GOOD
    } else {
        StatusCode::BAD_MONITORED_ITEM_ID_INVALID
    };
    log.check(
        result == expected,
        Rule::Answers,
        format_args!("item {}/{}: {result} instead of {expected}", item.0, item.1),
    );
}
