//! Event items through the services: created, modified, disabled, and their events beside values in one message.

use super::*;
use crate::{
    FilterLimits, ItemTraits, Limits, PublishReply, PublishRequest, PublishTicket, ResolvedItem, SampleKey, Sampled,
    Sampler, SubscriptionParameters, SubscriptionRegistry, Subscriptions,
};
use backplane_types::{
    BinaryDecode, DataChangeFilter, DataChangeNotification, DataValue, DecodeLimits, Decoder, Encoder, EventFieldList,
    EventNotificationList, MonitoredItemCreateRequest, MonitoredItemModifyRequest, MonitoringMode,
    MonitoringParameters, PublishResponse, ResponseHeader, StatusCode, TimestampsToReturn,
};

/// Values are the time; for event items nobody asks.
struct Clock;

impl Sampler<u32> for Clock {
    fn sample(&mut self, _: SampleKey, source: &mut u32, now: Now) -> Sampled {
        assert!(*source < 100, "events are not sampled");
        Sampled::Value(DataValue::new(now.mono.as_secs_f64()))
    }
}

struct Session {
    subscriptions: Subscriptions<u32>,
    subscription: u32,
    now: Now,
    tickets: u64,
}

const NOTIFIER: ItemTraits = ItemTraits {
    is_value: false,
    is_notifier: true,
    is_number: false,
    is_boolean: false,
    minimum_sampling_interval: -1.0,
    eu_range: None,
};

fn session() -> Session {
    session_with(FilterLimits::default())
}

fn session_with(event_filter: FilterLimits) -> Session {
    let limits = Limits {
        max_event_queue_size: 2000,
        max_message_size: 4000,
        event_filter,
        ..Limits::default()
    };
    let registry = SubscriptionRegistry::new(10, 1000);
    let mut subscriptions = Subscriptions::new(Arc::new(limits), registry).with_event_types(Arc::new(Types));
    let parameters = SubscriptionParameters {
        publishing_interval: 100.0,
        lifetime_count: 100,
        max_keep_alive_count: 5,
        max_notifications_per_publish: 0,
        priority: 0,
    };
    let revised = subscriptions.create_subscription(now(), &parameters, true).unwrap();
    Session {
        subscriptions,
        subscription: revised.subscription_id,
        now: now(),
        tickets: 0,
    }
}

fn parameters(filter: ExtensionObject) -> MonitoringParameters {
    MonitoringParameters {
        client_handle: 7,
        sampling_interval: -1.0,
        filter,
        queue_size: 0,
        discard_oldest: true,
    }
}

fn select_level() -> ExtensionObject {
    event_filter(vec![operand(BASE, &[(2, "Level")])], Vec::new())
}

impl Session {
    fn create(&mut self, source: u32, requested_parameters: MonitoringParameters) -> Result<(u32, u32), StatusCode> {
        let request = MonitoredItemCreateRequest {
            monitoring_mode: MonitoringMode::REPORTING,
            requested_parameters,
            ..MonitoredItemCreateRequest::default()
        };
        let traits = if source < 100 { ItemTraits::default() } else { NOTIFIER };
        let resolved = ResolvedItem {
            source,
            initial: None,
            traits,
        };
        let both = TimestampsToReturn::BOTH;
        let items = vec![(&request, Ok(resolved))];
        let results = self
            .subscriptions
            .create_monitored_items(self.now, self.subscription, both, items)
            .unwrap();
        match results[0].status_code {
            StatusCode::GOOD => Ok((results[0].monitored_item_id, results[0].revised_queue_size)),
            status => Err(status),
        }
    }

    fn happen(&mut self, level: impl Into<Variant>) -> bool {
        self.subscriptions
            .handle_event(self.now, &event(level), |source| *source >= 100)
    }

    fn publish(&mut self) -> (Vec<(u32, DataValue)>, Vec<EventFieldList>) {
        self.tickets += 1;
        let request = PublishRequest {
            ticket: PublishTicket(self.tickets),
            request_handle: 1,
            deadline: None,
        };
        self.subscriptions.publish(self.now, request, Vec::new());
        self.now = Now::new(
            self.now.mono + Duration::from_millis(100),
            self.now.utc.saturating_add(Duration::from_millis(100)),
        );
        self.subscriptions.handle_timeout(self.now, &mut Clock);
        let mut found = (Vec::new(), Vec::new());
        let Some((_, PublishReply::Message(message))) = self.subscriptions.poll_response() else {
            return found;
        };
        let mut out = Vec::new();
        let mut e = Encoder::new(&mut out);
        e.put(&ResponseHeader::default());
        message.encode_body(&mut e);
        let response = PublishResponse::decode(&mut Decoder::new(&out, DecodeLimits::default())).unwrap();
        for data in response.notification_message.notification_data {
            if let Ok(values) = data.decode_as::<DataChangeNotification>() {
                let item = |it: backplane_types::MonitoredItemNotification| (it.client_handle, it.value);
                found.0.extend(values.monitored_items.into_iter().map(item));
            } else {
                found
                    .1
                    .extend(data.decode_as::<EventNotificationList>().unwrap().events);
            }
        }
        found
    }

    fn levels(&mut self) -> Vec<Variant> {
        let (values, events) = self.publish();
        assert!(values.is_empty());
        events.into_iter().map(|it| it.event_fields[0].clone()).collect()
    }
}

#[test]
fn events_are_reported_in_the_order_in_which_they_happened() {
    let mut session = session();
    assert!(!session.happen(0));
    session.create(100, parameters(select_level())).unwrap();
    assert_eq!(session.subscriptions.event_items(), 1);
    assert!(session.happen(1));
    assert!(session.happen(2));
    assert_eq!(session.levels(), [Variant::from(1), 2.into()]);
    assert!(session.levels().is_empty());
}

#[test]
fn values_and_events_share_a_message() {
    let mut session = session();
    session.create(1, parameters(ExtensionObject::NULL)).unwrap();
    let event_parameters = MonitoringParameters {
        client_handle: 8,
        ..parameters(select_level())
    };
    session.create(100, event_parameters).unwrap();
    session.happen(5);
    let (values, events) = session.publish();
    assert_eq!((values.len(), values[0].0), (1, 7));
    assert_eq!(
        (events.len(), events[0].client_handle, &events[0].event_fields),
        (1, 8, &vec![5.into()])
    );
}

#[test]
fn modes_decide_what_is_queued() {
    let mut session = session();
    let (item, _) = session.create(100, parameters(select_level())).unwrap();
    let subscription = session.subscription;
    let set = |session: &mut Session, mode| {
        session
            .subscriptions
            .set_monitoring_mode(session.now, subscription, mode, &[item])
            .unwrap()
    };
    set(&mut session, MonitoringMode::SAMPLING);
    assert!(session.happen(1));
    assert!(session.levels().is_empty());
    set(&mut session, MonitoringMode::REPORTING);
    assert_eq!(session.levels(), [Variant::from(1)]);
    session.happen(2);
    set(&mut session, MonitoringMode::DISABLED);
    assert!(!session.happen(3));
    set(&mut session, MonitoringMode::REPORTING);
    assert!(session.levels().is_empty(), "disabling forgets");
    session.happen(4);
    assert_eq!(session.levels(), [Variant::from(4)]);
}

/// The symptom: the filter of an item is changed, and no event comes any more.
#[test]
fn a_changed_filter_holds_for_what_comes() {
    let mut session = session();
    let (item, _) = session.create(100, parameters(select_level())).unwrap();
    let high = vec![(FilterOperator::GREATER_THAN, vec![field(&[(2, "Level")]), literal(10)])];
    let modify = |session: &mut Session, filter| {
        let request = MonitoredItemModifyRequest {
            monitored_item_id: item,
            requested_parameters: parameters(filter),
        };
        let both = TimestampsToReturn::BOTH;
        let (now, subscription) = (session.now, session.subscription);
        let results = session
            .subscriptions
            .modify_monitored_items(now, subscription, both, &[request]);
        results.unwrap()[0].status_code
    };
    session.happen(1);
    let select = vec![operand(BASE, &[(2, "Level")])];
    assert_eq!(modify(&mut session, event_filter(select, high)), StatusCode::GOOD);
    assert!(!session.happen(2));
    assert!(session.happen(20));
    assert_eq!(session.levels(), [Variant::from(1), 20.into()], "what is queued stays");
    assert_eq!(
        modify(&mut session, ExtensionObject::NULL),
        StatusCode::BAD_EVENT_FILTER_INVALID
    );
    assert_eq!(modify(&mut session, select_level()), StatusCode::GOOD);
    assert!(session.happen(2));
    assert_eq!(session.levels(), [Variant::from(2)]);
}

#[test]
fn queue_sizes() {
    let mut session = session();
    for (requested, revised) in [(0, 1000), (1, 1), (50, 50), (u32::MAX, 2000)] {
        let asked = MonitoringParameters {
            queue_size: requested,
            ..parameters(select_level())
        };
        assert_eq!(session.create(100, asked).unwrap().1, revised, "{requested}");
    }
    session.happen(1);
    session.happen(2);
    assert_eq!(session.subscriptions.counters().lost_events, 1);
}

#[test]
fn the_filter_must_fit_the_attribute() {
    let mut session = session();
    let data = ExtensionObject::from_structure(&DataChangeFilter::default());
    let not_allowed = Err(StatusCode::BAD_FILTER_NOT_ALLOWED);
    assert_eq!(session.create(100, parameters(data)), not_allowed);
    assert_eq!(session.create(1, parameters(select_level())), not_allowed);
    let none = session.create(100, parameters(ExtensionObject::NULL));
    assert_eq!(none, Err(StatusCode::BAD_EVENT_FILTER_INVALID));
    let mut broken = select_level();
    broken.body = backplane_types::ExtensionBody::Binary((&[1_u8, 2]).into());
    assert_eq!(
        session.create(100, parameters(broken)),
        Err(StatusCode::BAD_EVENT_FILTER_INVALID)
    );
}

#[test]
fn fields_longer_than_a_message_are_replaced_by_a_status() {
    let mut session = session();
    session.create(100, parameters(select_level())).unwrap();
    session.happen("x".repeat(5000));
    session.happen(1);
    let mut levels = session.levels();
    levels.extend(session.levels());
    let too_long = Variant::StatusCode(StatusCode::BAD_ENCODING_LIMITS_EXCEEDED);
    assert_eq!(levels, [too_long, 1.into()]);
}

/// The symptom: deleting a node, or an item, with events waiting crashes.
#[test]
fn items_and_nodes_go_while_events_wait() {
    let mut session = session();
    let (item, _) = session.create(100, parameters(select_level())).unwrap();
    let key = crate::ItemKey {
        subscription_id: session.subscription,
        monitored_item_id: item,
    };
    session.happen(1);
    assert!(session.subscriptions.node_gone(key));
    assert!(!session.happen(2), "the notifier is gone");
    assert_eq!(session.levels(), [Variant::from(1)]);
    assert!(session.subscriptions.rebind(session.now, key, 101, None));
    assert!(session.happen(3));
    let deleted = session
        .subscriptions
        .delete_monitored_items(session.subscription, &[item]);
    assert_eq!(deleted, Ok(vec![StatusCode::GOOD]));
    assert!(!session.happen(4));
    assert!(session.levels().is_empty());
    assert_eq!(session.subscriptions.event_items(), 0);
}

#[test]
fn events_lost_on_their_way_are_reported_by_every_item_that_they_would_have_reached() {
    let mut session = session();
    let select = || event_filter(vec![operand(BASE, &[(0, "EventType")])], Vec::new());
    session.create(100, parameters(select())).unwrap();
    session.create(200, parameters(select())).unwrap();
    let lost = event(1);
    session
        .subscriptions
        .events_lost(session.now, &lost, |source| *source == 100);
    session
        .subscriptions
        .events_lost(session.now, &lost, |source| *source == 100);
    assert_eq!(
        session.levels(),
        [NodeId::standard(3035).into()],
        "once until it was reported"
    );
    session
        .subscriptions
        .events_lost(session.now, &lost, |source| *source == 100);
    assert_eq!(session.levels().len(), 1);
}

#[test]
fn an_event_lets_linked_values_be_reported() {
    let mut session = session();
    let (notifier, _) = session.create(100, parameters(select_level())).unwrap();
    let (value, _) = session.create(1, parameters(ExtensionObject::NULL)).unwrap();
    session
        .subscriptions
        .set_monitoring_mode(
            session.now,
            session.subscription,
            MonitoringMode::SAMPLING,
            &[value, notifier],
        )
        .unwrap();
    let links = backplane_types::SetTriggeringRequest {
        subscription_id: session.subscription,
        triggering_item_id: notifier,
        links_to_add: vec![value],
        ..backplane_types::SetTriggeringRequest::default()
    };
    assert_eq!(
        session.subscriptions.set_triggering(&links).unwrap().add,
        [StatusCode::GOOD]
    );
    let (values, events) = session.publish();
    assert!(values.is_empty() && events.is_empty(), "nothing has happened");
    assert!(session.happen(1i32));
    let (values, events) = session.publish();
    assert!(!values.is_empty(), "the event triggers");
    assert!(events.is_empty(), "and is not reported itself");
    let (values, _) = session.publish();
    assert!(values.is_empty(), "once");
}

/// Filters that are allowed one by one can be too much together; what is deleted makes room, and what is replaced too.
#[test]
fn filters_of_a_session_have_a_budget() {
    let matching = |length: usize| {
        let pattern = literal("a".repeat(length));
        let elements = vec![(FilterOperator::LIKE, vec![field(&[(0, "Message")]), pattern])];
        parameters(event_filter(vec![operand(BASE, &[(2, "Level")])], elements))
    };
    let too_many = Err(StatusCode::BAD_TOO_MANY_MONITORED_ITEMS);
    // A field counts for 64 bytes: one of 100 characters takes some 6,400 steps.
    let limits = FilterLimits {
        max_session_work: 20_000,
        ..FilterLimits::default()
    };
    let mut steps = session_with(limits);
    let ids: Vec<_> = (0..3).map(|_| steps.create(100, matching(100)).unwrap().0).collect();
    assert_eq!(steps.create(100, matching(100)), too_many);
    let (now, subscription) = (steps.now, steps.subscription);
    steps
        .subscriptions
        .delete_monitored_items(subscription, &ids[..1])
        .unwrap();
    assert!(steps.create(100, matching(100)).is_ok());
    assert_eq!(steps.create(100, matching(100)), too_many);
    let mut modify = |length| {
        let item = MonitoredItemModifyRequest {
            monitored_item_id: ids[1],
            requested_parameters: matching(length),
        };
        let both = TimestampsToReturn::BOTH;
        let results = steps
            .subscriptions
            .modify_monitored_items(now, subscription, both, &[item])
            .unwrap();
        results[0].status_code
    };
    assert_eq!(modify(120), StatusCode::BAD_TOO_MANY_MONITORED_ITEMS);
    assert_eq!(modify(5), StatusCode::GOOD);
    assert_eq!(modify(10), StatusCode::GOOD);
    let limits = FilterLimits {
        max_session_bytes: 1_600,
        ..FilterLimits::default()
    };
    let mut bytes = session_with(limits);
    assert!(bytes.create(100, parameters(select_level())).is_ok());
    assert_eq!(bytes.create(100, matching(127)).map(|_| 0), Ok(0));
    assert_eq!(bytes.create(100, matching(127)), too_many);
}
