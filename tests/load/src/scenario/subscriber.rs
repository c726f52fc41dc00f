//! A session with subscriptions: creates them with their items, keeps Publish requests waiting, acknowledges what comes.
//!
//! Owns the order of these services. What a notification means is its caller's business.

use backplane_types::{
    CreateMonitoredItemsRequest, CreateSubscriptionRequest, DataChangeNotification, ExtensionObject,
    MonitoredItemCreateRequest, MonitoredItemNotification, MonitoringMode, MonitoringParameters, NodeId,
    PublishRequest, PublishResponse, StatusChangeNotification, SubscriptionAcknowledgement, TimestampsToReturn,
};

use crate::closed::Problems;
use crate::error::LoadError;
use crate::link::{Link, Target, decode};
use crate::requests::{finish, header, value_of};
use crate::transport::Transport;

/// Items created by one request.
const ITEMS_AT_ONCE: usize = 1_000;
/// Publish requests that wait beside one for each subscription.
const SPARE: u32 = 2;
/// Most Publish requests of a session; servers take no more than they have to.
const MOST_PUBLISHES: u32 = 20;

/// What the subscriptions of a session are like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) subscriptions: u32,
    /// One item for each, in every subscription. The client handle is its place in the list.
    pub(crate) nodes: &'a [NodeId],
    pub(crate) publishing_ms: f64,
    pub(crate) sampling_ms: f64,
    pub(crate) lifetime_count: u32,
    pub(crate) keep_alive_count: u32,
    pub(crate) queue: u32,
    pub(crate) timestamps: TimestampsToReturn,
}

/// See the module.
pub(crate) struct Subscriber {
    transport: Transport,
    token: NodeId,
    /// Said with the next Publish request.
    acknowledgements: Vec<SubscriptionAcknowledgement>,
    to_publish: u32,
}

impl Subscriber {
    /// Opens a session and creates everything. An item or a subscription that the server refuses or revises upwards is an error.
    pub(crate) fn open(target: &Target, wanted: &Wanted<'_>) -> Result<Self, LoadError> {
        let mut link = Link::with_session(target)?;
        for _ in 0..wanted.subscriptions {
            subscribe(&mut link, wanted)?;
        }
        Ok(Self {
            token: link.token().clone(),
            transport: link.into_transport(0)?,
            acknowledgements: Vec::new(),
            to_publish: wanted.subscriptions.saturating_add(SPARE).min(MOST_PUBLISHES),
        })
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }

    /// Sends the Publish requests that are missing.
    pub(crate) fn publish(&mut self) -> Result<(), LoadError> {
        while self.to_publish > 0 {
            let request = PublishRequest {
                request_header: header(&self.token),
                subscription_acknowledgements: std::mem::take(&mut self.acknowledgements),
            };
            self.transport.queue(&finish(&request), 0)?;
            self.to_publish = self.to_publish.saturating_sub(1);
        }
        self.transport.flush().map(drop)
    }

    /// Reads once, gives every value that came to `on`, and sends new Publish requests. True if there may be more to read.
    pub(crate) fn take(
        &mut self,
        scratch: &mut [u8],
        problems: &mut Problems,
        on: &mut dyn FnMut(&MonitoredItemNotification),
    ) -> Result<bool, LoadError> {
        let Self {
            transport,
            acknowledgements,
            to_publish,
            ..
        } = self;
        let more = transport.receive(scratch, |_, body| {
            *to_publish = to_publish.saturating_add(1);
            let response: PublishResponse = match decode("Publish", body) {
                Ok(response) => response,
                Err(LoadError::Service(service, status)) => {
                    problems.add(1, || format!("{service}: {status}"));
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            let message = response.notification_message;
            if !message.notification_data.is_empty() {
                acknowledgements.push(SubscriptionAcknowledgement {
                    subscription_id: response.subscription_id,
                    sequence_number: message.sequence_number,
                });
            }
            for data in &message.notification_data {
                notifications(data, problems, on)?;
            }
            Ok(())
        })?;
        self.publish()?;
        Ok(more)
    }
}

fn notifications(
    data: &ExtensionObject,
    problems: &mut Problems,
    on: &mut dyn FnMut(&MonitoredItemNotification),
) -> Result<(), LoadError> {
    if data.is::<DataChangeNotification>() {
        for item in &data.decode_as::<DataChangeNotification>()?.monitored_items {
            if item.value.status().is_bad() {
                problems.add(1, || format!("an item has {}", item.value.status()));
            } else {
                on(item);
            }
        }
    } else if data.is::<StatusChangeNotification>() {
        let status = data.decode_as::<StatusChangeNotification>()?.status;
        problems.add(1, || format!("a subscription ended: {status}"));
    }
    Ok(())
}

fn subscribe(link: &mut Link, wanted: &Wanted<'_>) -> Result<(), LoadError> {
    let created = link.call(
        "CreateSubscription",
        CreateSubscriptionRequest {
            requested_publishing_interval: wanted.publishing_ms,
            requested_lifetime_count: wanted.lifetime_count,
            requested_max_keep_alive_count: wanted.keep_alive_count,
            publishing_enabled: true,
            ..CreateSubscriptionRequest::default()
        },
    )?;
    if created.revised_publishing_interval > wanted.publishing_ms {
        return Err(crate::error::setup(format!(
            "the server publishes every {} ms at best",
            created.revised_publishing_interval
        )));
    }
    for (part, nodes) in wanted.nodes.chunks(ITEMS_AT_ONCE).enumerate() {
        let first = part.saturating_mul(ITEMS_AT_ONCE);
        let item = |(index, node): (usize, &NodeId)| MonitoredItemCreateRequest {
            item_to_monitor: value_of(node),
            monitoring_mode: MonitoringMode::REPORTING,
            requested_parameters: MonitoringParameters {
                client_handle: u32::try_from(first.saturating_add(index)).unwrap_or(u32::MAX),
                sampling_interval: wanted.sampling_ms,
                queue_size: wanted.queue,
                discard_oldest: true,
                ..MonitoringParameters::default()
            },
        };
        let response = link.call(
            "CreateMonitoredItems",
            CreateMonitoredItemsRequest {
                subscription_id: created.subscription_id,
                timestamps_to_return: wanted.timestamps,
                items_to_create: nodes.iter().enumerate().map(item).collect(),
                ..CreateMonitoredItemsRequest::default()
            },
        )?;
        let refused = response.results.iter().find(|result| result.status_code.is_bad());
        if let Some(refused) = refused {
            return Err(LoadError::Service("an item", refused.status_code));
        }
        if response.results.len() != nodes.len() {
            return Err(LoadError::Response("another number of items"));
        }
    }
    Ok(())
}
