//! A small world for tests: values with versions, a session's subscriptions, a clock that is moved by hand, and answers decoded from the
//! bytes that would go out.

#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use backplane_session::{
    ItemKey, ItemTraits, Limits, PublishReply, PublishRequest, PublishTicket, ResolvedItem, SampleKey, Sampled,
    Sampler, SubscriptionParameters, SubscriptionRegistry, Subscriptions,
};
use backplane_types::{
    BinaryDecode, BinaryEncode, DataChangeFilter, DataChangeNotification, DataChangeTrigger, DataValue, DateTime,
    DecodeLimits, Decoder, Encoder, ExtensionObject, MonitoredItemCreateRequest, MonitoredItemCreateResult,
    MonitoringMode, MonitoringParameters, Now, PublishResponse, ResponseHeader, StatusChangeNotification, StatusCode,
    TimestampsToReturn, Variant,
};

/// A node, and the version of its value that was seen last.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    pub node: u32,
    pub seen: u64,
}

pub fn source(node: u32) -> Source {
    Source { node, seen: 0 }
}

/// Current values by node. A node without one is fetched on demand.
#[derive(Debug, Default)]
pub struct World {
    pub values: BTreeMap<u32, (u64, DataValue)>,
    pub sampled: Vec<(Duration, u32)>,
    pub asked: Vec<(SampleKey, u32)>,
    /// Whether sources tell when they change.
    pub tells: bool,
    /// Items that rest until their source has changed.
    pub resting: Vec<(SampleKey, u32)>,
}

impl World {
    pub fn set(&mut self, node: u32, value: impl Into<Variant>) {
        self.set_value(node, DataValue::new(value));
    }

    pub fn set_value(&mut self, node: u32, value: DataValue) {
        let entry = self.values.entry(node).or_default();
        entry.0 += 1;
        entry.1 = value;
    }
}

impl Sampler<Source> for World {
    fn sample(&mut self, key: SampleKey, source: &mut Source, now: Now) -> Sampled {
        self.sampled.push((now.mono, source.node));
        match self.values.get(&source.node) {
            None => {
                self.asked.push((key, source.node));
                Sampled::Pending
            }
            Some((version, _)) if *version == source.seen && !key.first => Sampled::Unchanged,
            Some((version, value)) => {
                source.seen = *version;
                Sampled::Value(value.clone())
            }
        }
    }

    fn rest(&mut self, key: SampleKey, source: &mut Source) -> bool {
        let unchanged = self
            .values
            .get(&source.node)
            .is_some_and(|(version, _)| *version == source.seen);
        let rests = self.tells && unchanged;
        if rests {
            self.resting.push((key, source.node));
        }
        rests
    }
}

/// A message as a client sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub subscription: u32,
    pub sequence: u32,
    pub available: Vec<u32>,
    pub more: bool,
    pub results: Vec<StatusCode>,
    /// Client handle and value.
    pub data: Vec<(u32, DataValue)>,
    pub status_change: Option<StatusCode>,
}

impl Message {
    pub fn is_keep_alive(&self) -> bool {
        self.data.is_empty() && self.status_change.is_none()
    }

    pub fn numbers(&self) -> Vec<f64> {
        let number = |(_, value): &(u32, DataValue)| value.value.as_f64().unwrap_or(f64::NAN);
        self.data.iter().map(number).collect()
    }
}

/// One session's subscriptions with a clock and a client.
pub struct Bench {
    pub now: Now,
    pub subscriptions: Subscriptions<Source>,
    pub world: World,
    pub answers: VecDeque<(u64, Result<Message, StatusCode>)>,
    next_ticket: u64,
}

pub fn bench() -> Bench {
    bench_with(Limits::default())
}

pub fn bench_with(limits: Limits) -> Bench {
    bench_in(limits, &SubscriptionRegistry::new(1000, 1_000_000))
}

pub fn bench_in(limits: Limits, registry: &Arc<SubscriptionRegistry>) -> Bench {
    limits.check().unwrap();
    Bench {
        now: Now::new(Duration::from_secs(1000), DateTime::from_ticks(133_000_000_000_000_000)),
        subscriptions: Subscriptions::new(Arc::new(limits), Arc::clone(registry)),
        world: World::default(),
        answers: VecDeque::new(),
        next_ticket: 1,
    }
}

/// 100 ms, keep-alive after 5 cycles, lifetime 100 cycles.
pub const PARAMETERS: SubscriptionParameters = SubscriptionParameters {
    publishing_interval: 100.0,
    lifetime_count: 100,
    max_keep_alive_count: 5,
    max_notifications_per_publish: 0,
    priority: 0,
};

pub fn request(client_handle: u32) -> MonitoredItemCreateRequest {
    MonitoredItemCreateRequest {
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters {
            client_handle,
            sampling_interval: 100.0,
            filter: ExtensionObject::NULL,
            queue_size: 10,
            discard_oldest: true,
        },
        ..MonitoredItemCreateRequest::default()
    }
}

pub fn data_filter(trigger: DataChangeTrigger, deadband_type: u32, value: f64) -> ExtensionObject {
    ExtensionObject::from_structure(&DataChangeFilter {
        trigger,
        deadband_type,
        deadband_value: value,
    })
}

pub const NUMBER: ItemTraits = ItemTraits {
    is_value: true,
    is_notifier: false,
    is_number: true,
    is_boolean: false,
    minimum_sampling_interval: -1.0,
    eu_range: None,
};

pub fn key(subscription_id: u32, monitored_item_id: u32) -> ItemKey {
    ItemKey {
        subscription_id,
        monitored_item_id,
    }
}

impl Bench {
    pub fn create(&mut self, parameters: &SubscriptionParameters) -> u32 {
        self.subscriptions
            .create_subscription(self.now, parameters, true)
            .unwrap()
            .subscription_id
    }

    /// A subscription of [`PARAMETERS`] with another interval in ms.
    pub fn create_every(&mut self, interval: f64) -> u32 {
        self.create(&SubscriptionParameters {
            publishing_interval: interval,
            ..PARAMETERS
        })
    }

    /// Items of nodes whose numbers are also their client handles.
    pub fn items(&mut self, subscription: u32, nodes: &[u32]) -> Vec<u32> {
        let requests: Vec<_> = nodes.iter().map(|node| request(*node)).collect();
        self.items_as(subscription, nodes, &requests)
    }

    pub fn items_as(&mut self, subscription: u32, nodes: &[u32], requests: &[MonitoredItemCreateRequest]) -> Vec<u32> {
        let results = self.try_items(subscription, nodes, requests);
        results
            .iter()
            .map(|result| {
                assert_eq!(result.status_code, StatusCode::GOOD);
                result.monitored_item_id
            })
            .collect()
    }

    pub fn try_items(
        &mut self,
        subscription: u32,
        nodes: &[u32],
        requests: &[MonitoredItemCreateRequest],
    ) -> Vec<MonitoredItemCreateResult> {
        let resolved = |node: &u32| {
            Ok(ResolvedItem {
                source: source(*node),
                initial: None,
                traits: NUMBER,
            })
        };
        let items = requests.iter().zip(nodes.iter().map(resolved)).collect();
        self.subscriptions
            .create_monitored_items(self.now, subscription, TimestampsToReturn::BOTH, items)
            .unwrap()
    }

    /// One item of a node with the request changed.
    pub fn item(&mut self, subscription: u32, node: u32, change: impl FnOnce(&mut MonitoringParameters)) -> u32 {
        let mut request = request(node);
        change(&mut request.requested_parameters);
        self.items_as(subscription, &[node], &[request])[0]
    }

    /// Sends a Publish request and returns its ticket.
    pub fn publish(&mut self) -> u64 {
        self.publish_with(None, &[])
    }

    pub fn acknowledge(&mut self, acknowledgements: &[(u32, u32)]) -> u64 {
        self.publish_with(None, acknowledgements)
    }

    pub fn publish_with(&mut self, timeout: Option<u64>, acks: &[(u32, u32)]) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let request = PublishRequest {
            ticket: PublishTicket(ticket),
            request_handle: u32::try_from(ticket).unwrap(),
            deadline: timeout.map(|ms| self.now.mono + Duration::from_millis(ms)),
        };
        self.subscriptions.publish(self.now, request, acks.iter().copied());
        self.collect();
        ticket
    }

    pub fn publish_many(&mut self, count: usize) {
        for _ in 0..count {
            self.publish();
        }
    }

    /// Lets time pass as a server does: it wakes when it asked to, and not between.
    pub fn run(&mut self, ms: u64) {
        let end = self.now.mono + Duration::from_millis(ms);
        while let Some(next) = self.subscriptions.poll_timeout().filter(|next| *next <= end) {
            if next > self.now.mono {
                self.now = self.now.after(next - self.now.mono);
            }
            self.subscriptions.handle_timeout(self.now, &mut self.world);
            self.collect();
        }
        self.now = self.now.after(end - self.now.mono);
    }

    /// Takes the answers that are ready.
    pub fn collect(&mut self) {
        while let Some((ticket, reply)) = self.subscriptions.poll_response() {
            self.answers.push_back((ticket.0, decode(reply)));
        }
    }

    /// The oldest answer that was not looked at; it must be a message.
    pub fn message(&mut self) -> Message {
        let (_, answer) = self.answers.pop_front().expect("an answer");
        answer.expect("a message")
    }

    /// All messages that were not looked at.
    pub fn messages(&mut self) -> Vec<Message> {
        self.answers
            .drain(..)
            .map(|(_, answer)| answer.expect("a message"))
            .collect()
    }

    /// The values of all messages that were not looked at.
    pub fn all_numbers(&mut self) -> Vec<f64> {
        self.messages().iter().flat_map(Message::numbers).collect()
    }

    pub fn fault(&mut self) -> (u64, StatusCode) {
        let (ticket, answer) = self.answers.pop_front().expect("an answer");
        (ticket, answer.expect_err("a fault"))
    }

    pub fn set(&mut self, node: u32, value: impl Into<Variant>) {
        self.world.set(node, value);
    }
}

/// Decodes an answer from its bytes, with a header before them as the server writes it.
pub fn decode(reply: PublishReply) -> Result<Message, StatusCode> {
    let message = match reply {
        PublishReply::Fault(status) => return Err(status),
        PublishReply::Message(message) => message,
    };
    let mut bytes = Vec::new();
    let mut e = Encoder::new(&mut bytes);
    ResponseHeader::default().encode(&mut e);
    let start = e.position();
    message.encode_body(&mut e);
    assert_eq!(e.position() - start, message.body_length());
    let mut d = Decoder::new(&bytes, DecodeLimits::TRUSTED);
    let response = PublishResponse::decode(&mut d).unwrap();
    assert!(d.is_empty(), "bytes left over");
    let mut data = Vec::new();
    let mut status_change = None;
    for part in &response.notification_message.notification_data {
        if part.is::<DataChangeNotification>() {
            let part: DataChangeNotification = part.decode_as().unwrap();
            data.extend(part.monitored_items.into_iter().map(|it| (it.client_handle, it.value)));
        } else {
            let part: StatusChangeNotification = part.decode_as().unwrap();
            status_change = Some(part.status);
        }
    }
    Ok(Message {
        subscription: response.subscription_id,
        sequence: response.notification_message.sequence_number,
        available: response.available_sequence_numbers,
        more: response.more_notifications,
        results: response.results,
        data,
        status_change,
    })
}
