//! A client's script: a subscription of many items, and the stream of what it was told of each.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use backplane_types::{
    AttributeId, CreateMonitoredItemsRequest, CreateSubscriptionRequest, DataChangeNotification,
    DeleteSubscriptionsRequest, MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters, NodeId,
    PublishRequest, ReadValueId, StatusCode, SubscriptionAcknowledgement, TimestampsToReturn, Variant,
};

use super::plant::{BATCH, PATIENCE, Plant, Trouble};

/// The shortest publishing interval there is, so that a script of hundreds of steps takes seconds.
const PUBLISHING_MS: f64 = 10.0;
/// Values that an item may have waiting.
const QUEUE: u32 = 100;
/// A keep-alive this many intervals after the last message says that nothing more comes.
const KEEP_ALIVE: u32 = 10;

/// What a client was told of one item, in order: value and status, timestamps left out.
pub(super) type Stream = Vec<(Variant, StatusCode)>;

/// One subscription of the client, and what it has brought.
pub(super) struct Watching {
    subscription: u32,
    /// By client handle.
    pub(super) streams: Vec<Stream>,
    places: HashMap<NodeId, usize>,
    acknowledge: Option<u32>,
}

impl Watching {
    pub(super) async fn start(plant: &Plant, nodes: &[NodeId]) -> Result<Self, Trouble> {
        let created = plant
            .client
            .call(CreateSubscriptionRequest {
                requested_publishing_interval: PUBLISHING_MS,
                requested_max_keep_alive_count: KEEP_ALIVE,
                requested_lifetime_count: 60_000,
                publishing_enabled: true,
                ..CreateSubscriptionRequest::default()
            })
            .await?;
        let watching = Self {
            subscription: created.subscription_id,
            streams: vec![Stream::new(); nodes.len()],
            places: nodes.iter().cloned().zip(0..).collect(),
            acknowledge: None,
        };
        for (number, part) in nodes.chunks(BATCH).enumerate() {
            let item = |(place, node): (usize, &NodeId)| MonitoredItemCreateRequest {
                item_to_monitor: ReadValueId {
                    node_id: node.clone(),
                    attribute_id: AttributeId::VALUE.0,
                    ..ReadValueId::default()
                },
                monitoring_mode: MonitoringMode::REPORTING,
                requested_parameters: MonitoringParameters {
                    client_handle: u32::try_from(number * BATCH + place).unwrap_or(u32::MAX),
                    sampling_interval: 0.0,
                    queue_size: QUEUE,
                    discard_oldest: true,
                    ..MonitoringParameters::default()
                },
            };
            let response = plant
                .client
                .call(CreateMonitoredItemsRequest {
                    subscription_id: watching.subscription,
                    timestamps_to_return: TimestampsToReturn::NEITHER,
                    items_to_create: part.iter().enumerate().map(item).collect(),
                    ..CreateMonitoredItemsRequest::default()
                })
                .await?;
            if let Some(refused) = response.results.iter().find(|result| result.status_code.is_bad()) {
                return Err(Trouble::Other(format!("an item was refused: {}", refused.status_code)));
            }
        }
        Ok(watching)
    }

    /// Takes one message. False: it was a keep-alive.
    async fn take(&mut self, plant: &Plant) -> Result<bool, Trouble> {
        let acknowledgement = |sequence_number| SubscriptionAcknowledgement {
            subscription_id: self.subscription,
            sequence_number,
        };
        let request = PublishRequest {
            subscription_acknowledgements: self.acknowledge.take().map(acknowledgement).into_iter().collect(),
            ..PublishRequest::default()
        };
        let response = plant.client.call(request).await?;
        let message = response.notification_message;
        if message.notification_data.is_empty() {
            return Ok(false);
        }
        self.acknowledge = Some(message.sequence_number);
        for part in &message.notification_data {
            let data: DataChangeNotification = part
                .decode_as()
                .map_err(|error| Trouble::Other(format!("a notification that is no data change: {error}")))?;
            for item in data.monitored_items {
                let stream = usize::try_from(item.client_handle)
                    .ok()
                    .and_then(|place| self.streams.get_mut(place));
                let stream =
                    stream.ok_or_else(|| Trouble::Other(format!("handle {} was never given", item.client_handle)))?;
                stream.push((item.value.value, item.value.status.unwrap_or(StatusCode::GOOD)));
            }
        }
        Ok(true)
    }

    pub(super) fn silent(&self) -> usize {
        self.streams.iter().filter(|stream| stream.is_empty()).count()
    }

    pub(super) async fn until_all_have_a_value(&mut self, plant: &Plant) -> Result<(), Trouble> {
        let started = Instant::now();
        while self.silent() > 0 && started.elapsed() < PATIENCE {
            self.take(plant).await?;
        }
        Ok(())
    }

    /// Takes messages until the last value of a node is `value`, but no longer than `patience`.
    pub(super) async fn until_value(
        &mut self,
        plant: &Plant,
        node: &NodeId,
        value: &Variant,
        patience: Duration,
    ) -> Result<(), Trouble> {
        let Some(&place) = self.places.get(node) else {
            return Ok(());
        };
        let started = Instant::now();
        while started.elapsed() < patience {
            let last = self.streams.get(place).and_then(|stream| stream.last());
            if last.is_some_and(|(last, _)| last == value) {
                break;
            }
            self.take(plant).await?;
        }
        Ok(())
    }

    /// Takes messages until there are no more, but no longer than some keep-alives: a plugin may never be quiet.
    pub(super) async fn until_quiet(&mut self, plant: &Plant) -> Result<(), Trouble> {
        let bound = Duration::from_secs_f64(PUBLISHING_MS * f64::from(KEEP_ALIVE) * 3.0 / 1_000.0);
        let started = Instant::now();
        while started.elapsed() < bound && self.take(plant).await? {}
        Ok(())
    }

    pub(super) async fn end(self, plant: &Plant) -> Result<Vec<Stream>, Trouble> {
        plant
            .client
            .call(DeleteSubscriptionsRequest {
                subscription_ids: vec![self.subscription],
                ..DeleteSubscriptionsRequest::default()
            })
            .await?;
        Ok(self.streams)
    }
}
