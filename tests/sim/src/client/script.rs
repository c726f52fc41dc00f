//! What a client does next: its dice choose, its book says what there is to choose from.

use std::time::Duration;

use backplane_types::service::RequestKind;
use backplane_types::{
    AttributeId, CancelRequest, CloseSessionRequest, CreateMonitoredItemsRequest, CreateSubscriptionRequest,
    DataChangeFilter, DataChangeTrigger, DeleteMonitoredItemsRequest, DeleteSubscriptionsRequest, ExtensionObject,
    ModifyMonitoredItemsRequest, ModifySubscriptionRequest, MonitoredItemCreateRequest, MonitoredItemModifyRequest,
    MonitoringMode, MonitoringParameters, Now, PublishRequest, ReadRequest, ReadValueId, SetMonitoringModeRequest,
    SetPublishingModeRequest, SubscriptionAcknowledgement, TimestampsToReturn,
};

use super::{Client, Detail, Phase};
use crate::log::Log;
use crate::plant::{ASKED, PUSHED, name_of, node};

/// What a script can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Subscribe,
    Unsubscribe,
    ChangeSubscription,
    SwitchPublishing,
    AddItems,
    RemoveItems,
    ChangeItems,
    ChangeMode,
    Read,
    Silence,
    Break,
    Cancel,
    NewSession,
}

const STEPS: [(u64, Step); 13] = [
    (8, Step::Subscribe),
    (3, Step::Unsubscribe),
    (6, Step::ChangeSubscription),
    (5, Step::SwitchPublishing),
    (22, Step::AddItems),
    (6, Step::RemoveItems),
    (14, Step::ChangeItems),
    (12, Step::ChangeMode),
    (12, Step::Read),
    (5, Step::Silence),
    (4, Step::Break),
    (2, Step::Cancel),
    (1, Step::NewSession),
];

/// Filters that are tried: trigger, kind of deadband, its value.
const FILTERS: [(DataChangeTrigger, u32, f64); 6] = [
    (DataChangeTrigger::STATUS, 0, 0.0),
    (DataChangeTrigger::STATUS_VALUE, 0, 0.0),
    (DataChangeTrigger::STATUS_VALUE_TIMESTAMP, 0, 0.0),
    (DataChangeTrigger::STATUS_VALUE, 1, 2.5),
    (DataChangeTrigger::STATUS_VALUE_TIMESTAMP, 1, 1.0),
    (DataChangeTrigger::STATUS_VALUE, 2, 1.5),
];

impl Client {
    /// One step of the script. The number of a connection that was given up.
    pub(super) fn act(&mut self, log: &mut Log, now: Now) -> Option<u64> {
        let pause = match self.dice.below(10) {
            0 => self.dice.between(500, 4_000),
            _ => self.dice.between(5, 400),
        };
        self.next_act = now.mono + Duration::from_millis(pause);
        if self.calm {
            for id in self.book.alive() {
                self.ask_for_missing(log, now, id);
            }
            return None;
        }
        let alive = self.book.alive();
        let step = self.dice.weighted(&STEPS)?;
        let id = self.dice.pick(&alive).copied();
        match (step, id) {
            (Step::Break, _) if self.drops => {
                log.say(&self.name, format_args!("breaks off"));
                return self.hang_up(log, now);
            }
            (Step::Silence, _) => {
                let ms = match self.dice.below(4) {
                    0 => self.dice.between(3_000, 12_000),
                    _ => self.dice.between(100, 2_000),
                };
                log.say(&self.name, format_args!("is silent for {ms} ms"));
                self.silent_until = now.mono + Duration::from_millis(ms);
            }
            (Step::Read, _) => self.read(log, now),
            (Step::NewSession, _) => self.new_session(log, now),
            (Step::Subscribe, _) | (_, None) => self.subscribe(log, now),
            (Step::Unsubscribe, Some(id)) => self.unsubscribe(log, now, id),
            (Step::ChangeSubscription, Some(id)) => self.change_subscription(log, now, id),
            (Step::SwitchPublishing, Some(id)) => self.switch_publishing(log, now, id),
            (Step::AddItems, Some(id)) => self.add_items(log, now, id),
            (Step::RemoveItems, Some(id)) => self.remove_items(log, now, id),
            (Step::ChangeItems, Some(id)) => self.change_items(log, now, id),
            (Step::ChangeMode, Some(id)) => self.change_mode(log, now, id),
            (Step::Cancel, Some(_)) => self.cancel(log, now),
            (Step::Break, Some(_)) => {}
        }
        None
    }

    fn small(&mut self, low: u64, high: u64) -> u32 {
        u32::try_from(self.dice.between(low, high)).unwrap_or(0)
    }

    fn interval(&mut self) -> f64 {
        let choices = [20.0, 50.0, 100.0, 100.0, 250.0, 500.0, 1_000.0];
        self.dice.pick(&choices).copied().unwrap_or(100.0)
    }

    fn subscribe(&mut self, log: &mut Log, now: Now) {
        if self.book.alive().len() >= 5 {
            return;
        }
        let request = CreateSubscriptionRequest {
            requested_publishing_interval: self.interval(),
            requested_lifetime_count: self.small(1, 60),
            requested_max_keep_alive_count: self.small(0, 12),
            max_notifications_per_publish: if self.dice.percent(30) { self.small(1, 5) } else { 0 },
            publishing_enabled: self.dice.percent(85),
            priority: u8::try_from(self.dice.below(3)).unwrap_or(0),
            request_header: self.header(now, 0),
        };
        self.ask(
            log,
            now,
            RequestKind::CreateSubscription,
            &request,
            (0, 0),
            1,
            Detail::Nothing,
        );
    }

    fn unsubscribe(&mut self, log: &mut Log, now: Now, id: u32) {
        let request = DeleteSubscriptionsRequest {
            request_header: self.header(now, 0),
            subscription_ids: vec![id],
        };
        if let Some(subscription) = self.book.subscriptions.get_mut(&id) {
            subscription.doubtful = true;
        }
        let detail = Detail::Subscriptions(vec![id]);
        self.ask(log, now, RequestKind::DeleteSubscriptions, &request, (id, 0), 1, detail);
    }

    fn change_subscription(&mut self, log: &mut Log, now: Now, id: u32) {
        let request = ModifySubscriptionRequest {
            subscription_id: id,
            requested_publishing_interval: self.interval(),
            requested_lifetime_count: self.small(1, 60),
            requested_max_keep_alive_count: self.small(0, 12),
            max_notifications_per_publish: if self.dice.percent(30) { self.small(1, 5) } else { 0 },
            priority: u8::try_from(self.dice.below(3)).unwrap_or(0),
            request_header: self.header(now, 0),
        };
        self.ask(
            log,
            now,
            RequestKind::ModifySubscription,
            &request,
            (id, 0),
            1,
            Detail::Nothing,
        );
    }

    fn switch_publishing(&mut self, log: &mut Log, now: Now, id: u32) {
        let request = SetPublishingModeRequest {
            publishing_enabled: self.dice.percent(70),
            subscription_ids: vec![id],
            request_header: self.header(now, 0),
        };
        self.ask(
            log,
            now,
            RequestKind::SetPublishingMode,
            &request,
            (id, 0),
            1,
            Detail::Nothing,
        );
    }

    fn parameters(&mut self) -> MonitoringParameters {
        self.book.next_client_handle += 1;
        let sampling = [-1.0, 0.0, 0.0, 10.0, 20.0, 50.0, 100.0, 100.0, 300.0, 1_000.0];
        let filter = match self.dice.pick(&FILTERS).filter(|_| self.dice.clone().percent(50)) {
            None => ExtensionObject::NULL,
            Some((trigger, deadband_type, deadband_value)) => ExtensionObject::from_structure(&DataChangeFilter {
                trigger: *trigger,
                deadband_type: *deadband_type,
                deadband_value: *deadband_value,
            }),
        };
        MonitoringParameters {
            client_handle: self.book.next_client_handle,
            sampling_interval: self.dice.pick(&sampling).copied().unwrap_or(0.0),
            filter,
            queue_size: self.small(0, 10),
            discard_oldest: self.dice.percent(60),
        }
    }

    fn timestamps(&mut self) -> TimestampsToReturn {
        let all = [
            TimestampsToReturn::SOURCE,
            TimestampsToReturn::SERVER,
            TimestampsToReturn::BOTH,
            TimestampsToReturn::NEITHER,
        ];
        self.dice.pick(&all).copied().unwrap_or(TimestampsToReturn::BOTH)
    }

    fn mode(&mut self) -> MonitoringMode {
        let weights = [
            (70, MonitoringMode::REPORTING),
            (15, MonitoringMode::SAMPLING),
            (15, MonitoringMode::DISABLED),
        ];
        self.dice.weighted(&weights).unwrap_or(MonitoringMode::REPORTING)
    }

    fn some_node(&mut self) -> ReadValueId {
        let name = match self.dice.below(20) {
            0 => "nowhere".to_owned(),
            1..=6 => name_of(1, self.small(0, u64::from(ASKED) - 1)),
            _ => name_of(0, self.small(0, u64::from(PUSHED) - 1)),
        };
        ReadValueId {
            node_id: node(&name),
            attribute_id: AttributeId::VALUE.0,
            ..ReadValueId::default()
        }
    }

    fn add_items(&mut self, log: &mut Log, now: Now, id: u32) {
        let count = self.dice.between(1, 6);
        let mut items = Vec::new();
        let mut handles = Vec::new();
        for _ in 0..count {
            let requested_parameters = self.parameters();
            handles.push(requested_parameters.client_handle);
            items.push(MonitoredItemCreateRequest {
                item_to_monitor: self.some_node(),
                monitoring_mode: self.mode(),
                requested_parameters,
            });
        }
        let count = items.len();
        let request = CreateMonitoredItemsRequest {
            subscription_id: id,
            timestamps_to_return: self.timestamps(),
            items_to_create: items,
            request_header: self.header(now, 0),
        };
        let detail = Detail::Handles(handles);
        self.ask(
            log,
            now,
            RequestKind::CreateMonitoredItems,
            &request,
            (id, 0),
            count,
            detail,
        );
    }

    /// Some items of a subscription, now and then one that it does not have.
    fn some_items(&mut self, id: u32) -> Vec<u32> {
        let known: Vec<u32> = match self.book.subscriptions.get(&id) {
            Some(subscription) => subscription.items.keys().copied().collect(),
            None => Vec::new(),
        };
        let mut items: Vec<u32> = known.into_iter().filter(|_| self.dice.percent(40)).collect();
        if items.is_empty() || self.dice.percent(5) {
            items.push(9_999);
        }
        items.truncate(20);
        items
    }

    fn remove_items(&mut self, log: &mut Log, now: Now, id: u32) {
        let items = self.some_items(id);
        let request = DeleteMonitoredItemsRequest {
            subscription_id: id,
            monitored_item_ids: items.clone(),
            request_header: self.header(now, 0),
        };
        let count = items.len();
        self.ask(
            log,
            now,
            RequestKind::DeleteMonitoredItems,
            &request,
            (id, 0),
            count,
            Detail::Items(items),
        );
    }

    fn change_items(&mut self, log: &mut Log, now: Now, id: u32) {
        let items = self.some_items(id);
        let mut items_to_modify = Vec::new();
        for monitored_item_id in items {
            items_to_modify.push(MonitoredItemModifyRequest {
                monitored_item_id,
                requested_parameters: self.parameters(),
            });
        }
        let count = items_to_modify.len();
        let request = ModifyMonitoredItemsRequest {
            subscription_id: id,
            timestamps_to_return: self.timestamps(),
            items_to_modify,
            request_header: self.header(now, 0),
        };
        self.ask(
            log,
            now,
            RequestKind::ModifyMonitoredItems,
            &request,
            (id, 0),
            count,
            Detail::Nothing,
        );
    }

    fn change_mode(&mut self, log: &mut Log, now: Now, id: u32) {
        let items = self.some_items(id);
        let count = items.len();
        let request = SetMonitoringModeRequest {
            subscription_id: id,
            monitoring_mode: self.mode(),
            monitored_item_ids: items,
            request_header: self.header(now, 0),
        };
        self.ask(
            log,
            now,
            RequestKind::SetMonitoringMode,
            &request,
            (id, 0),
            count,
            Detail::Nothing,
        );
    }

    fn read(&mut self, log: &mut Log, now: Now) {
        let count = self.dice.between(1, 5);
        let nodes_to_read: Vec<ReadValueId> = (0..count).map(|_| self.some_node()).collect();
        let count = nodes_to_read.len();
        let request = ReadRequest {
            timestamps_to_return: TimestampsToReturn::BOTH,
            nodes_to_read,
            request_header: self.header(now, 0),
            ..ReadRequest::default()
        };
        self.ask(log, now, RequestKind::Read, &request, (0, 0), count, Detail::Nothing);
    }

    fn cancel(&mut self, log: &mut Log, now: Now) {
        let handles: Vec<u32> = self
            .outstanding
            .values()
            .filter(|asked| asked.kind == RequestKind::Publish)
            .map(|asked| asked.handle)
            .collect();
        let Some(handle) = self.dice.pick(&handles).copied() else {
            return;
        };
        let request = CancelRequest {
            request_handle: handle,
            request_header: self.header(now, 0),
        };
        self.ask(log, now, RequestKind::Cancel, &request, (0, 0), 1, Detail::Nothing);
    }

    /// Closes the session and makes another one, with or without leaving the subscriptions behind.
    fn new_session(&mut self, log: &mut Log, now: Now) {
        let request = CloseSessionRequest {
            delete_subscriptions: self.dice.percent(60),
            request_header: self.header(now, 0),
        };
        self.phase = Phase::Entering;
        self.ask(
            log,
            now,
            RequestKind::CloseSession,
            &request,
            (0, 0),
            1,
            Detail::Nothing,
        );
    }

    /// Keeps as many Publish requests under way as it wants to.
    pub(super) fn publish_more(&mut self, log: &mut Log, now: Now) {
        if self.phase != Phase::Up || now.mono < self.silent_until {
            return;
        }
        let under_way = self
            .outstanding
            .values()
            .filter(|asked| asked.kind == RequestKind::Publish)
            .count();
        let any = self.book.subscriptions.values().any(|it| !it.ended);
        if !any {
            return;
        }
        for _ in under_way..self.window {
            let acknowledgements = self.acknowledgements();
            let count = acknowledgements.len();
            let hint = if self.dice.percent(20) {
                self.small(200, 5_000)
            } else {
                0
            };
            let request = PublishRequest {
                request_header: self.header(now, hint),
                subscription_acknowledgements: acknowledgements,
            };
            self.ask(log, now, RequestKind::Publish, &request, (0, 0), count, Detail::Nothing);
        }
    }

    /// What is acknowledged now: most of what came, now and then nothing, or something that never was.
    fn acknowledgements(&mut self) -> Vec<SubscriptionAcknowledgement> {
        let mut all = Vec::new();
        for (id, subscription) in &mut self.book.subscriptions {
            if subscription.ended || self.dice.percent(25) {
                continue;
            }
            let acknowledge = |sequence_number| SubscriptionAcknowledgement {
                subscription_id: *id,
                sequence_number,
            };
            all.extend(subscription.to_acknowledge.drain(..).map(acknowledge));
        }
        if self.dice.percent(3) {
            all.push(SubscriptionAcknowledgement {
                subscription_id: self.small(0, 6),
                sequence_number: self.small(0, 3),
            });
        }
        all.truncate(20);
        all
    }
}
