//! Aggregates, events, triggering, the methods of the Server object on subscriptions, Republish and transfer.
//!
//! The library's request builders are used, and Publish requests sent one by one: its own loop would acknowledge what
//! these cases want to find again.

use std::time::Duration;

use opcua::client::UARequest;
use opcua::client::services::{
    CreateMonitoredItems, CreateSubscription, DeleteSubscriptions, Publish, Republish, SetTriggering,
    TransferSubscriptions,
};
use opcua::types::{
    AggregateConfiguration, AggregateFilter, AggregateFilterResult, AttributeId, ByteString, CallMethodRequest,
    ContentFilterBuilder, DateTime, Error, EventFilter, ExtensionObject, MonitoredItemCreateRequest,
    MonitoredItemCreateResult, MonitoringMode, MonitoringParameters, NodeId, NotificationMessage, Operand, ReadValueId,
    SimpleAttributeOperand, StatusCode, TimestampsToReturn, TransferResult, Variant,
};

use crate::connection::{Connection, Security, Setup};
use crate::{Case, check};

/// An id that no item and no subscription has.
pub const UNKNOWN: u32 = 77_777;

/// Client handles and values.
type Values = Vec<(u32, Option<Variant>)>;

pub fn text(error: Error) -> String {
    error.to_string()
}

pub fn equal<T: PartialEq + std::fmt::Debug>(found: T, expected: T, what: &str) -> Case {
    check(
        found == expected,
        format!("{what}: expected {expected:?}, found {found:?}"),
    )
}

/// A subscription with one item for each node, which have the client handles 1, 2, 3 and so on.
pub struct Subscription<'a> {
    connection: &'a Connection,
    pub id: u32,
    items: Vec<u32>,
}

impl<'a> Subscription<'a> {
    async fn create(
        connection: &'a Connection,
        items: Vec<(ReadValueId, ExtensionObject)>,
        mode: MonitoringMode,
    ) -> Case<Self> {
        let session = &connection.session;
        let created = CreateSubscription::new(session)
            .publishing_interval(Duration::from_millis(50))
            .max_lifetime_count(10_000)
            .max_keep_alive_count(1_000)
            .send(session.channel())
            .await
            .map_err(text)?;
        let mut subscription = Self::existing(connection, created.subscription_id);
        if items.is_empty() {
            return Ok(subscription);
        }
        for result in subscription.add(items, mode).await? {
            equal(result.status_code, StatusCode::Good, "monitored item")?;
            subscription.items.push(result.monitored_item_id);
        }
        Ok(subscription)
    }

    /// One that is there already, of which the items are not known.
    pub fn existing(connection: &'a Connection, id: u32) -> Self {
        Self {
            connection,
            id,
            items: Vec::new(),
        }
    }

    /// Creates items, and answers what the server says of each.
    async fn add(
        &self,
        items: Vec<(ReadValueId, ExtensionObject)>,
        mode: MonitoringMode,
    ) -> Case<Vec<MonitoredItemCreateResult>> {
        let session = &self.connection.session;
        let items = (1..).zip(items).map(|(client_handle, (item, filter))| {
            let parameters = MonitoringParameters {
                client_handle,
                sampling_interval: 50.0,
                filter,
                queue_size: 100,
                discard_oldest: true,
            };
            MonitoredItemCreateRequest::new(item, mode, parameters)
        });
        let answer = CreateMonitoredItems::new(self.id, session)
            .timestamps_to_return(TimestampsToReturn::Both)
            .items_to_create(items.collect())
            .send(session.channel())
            .await
            .map_err(text)?;
        Ok(answer.results.into_iter().map(|created| created.result).collect())
    }

    /// Items on values.
    pub async fn of_values(connection: &'a Connection, nodes: &[NodeId], mode: MonitoringMode) -> Case<Self> {
        let items = nodes.iter().map(|node| (node.clone().into(), ExtensionObject::null()));
        Self::create(connection, items.collect(), mode).await
    }

    /// Reporting items on values, beside those that there are.
    pub async fn add_values(&self, nodes: &[NodeId]) -> Case {
        let items = nodes.iter().map(|node| (node.clone().into(), ExtensionObject::null()));
        for result in self.add(items.collect(), MonitoringMode::Reporting).await? {
            equal(result.status_code, StatusCode::Good, "monitored item")?;
        }
        Ok(())
    }

    pub async fn delete(self) -> Case {
        let session = &self.connection.session;
        let request = DeleteSubscriptions::new(session).subscription(self.id);
        request.send(session.channel()).await.map(|_| ()).map_err(text)
    }
}

/// What one Publish request brings; empty for a keep-alive.
pub async fn publish(connection: &Connection, acknowledge: Option<(u32, u32)>) -> Case<NotificationMessage> {
    let session = &connection.session;
    let mut request = Publish::new(session);
    if let Some((subscription, number)) = acknowledge {
        request = request.ack(subscription, number);
    }
    let answer = tokio::time::timeout(Duration::from_secs(10), request.send(session.channel()))
        .await
        .map_err(|_| "no answer to Publish within 10 s".to_owned())?
        .map_err(text)?;
    Ok(answer.notification_message)
}

/// The next message of any subscription of the session that has notifications.
async fn next_message(connection: &Connection, mut acknowledge: Option<(u32, u32)>) -> Case<NotificationMessage> {
    loop {
        let message = publish(connection, acknowledge.take()).await?;
        let data = message.notification_data.as_deref();
        if data.is_some_and(|parts| !parts.is_empty()) {
            return Ok(message);
        }
    }
}

/// The values in a message, in the order of the client handles.
pub fn values(message: NotificationMessage) -> Values {
    let changes = message.into_notifications().map(|(changes, _)| changes);
    let items = changes.into_iter().flatten().flat_map(|part| part.monitored_items);
    let mut values: Values = items
        .flatten()
        .map(|item| (item.client_handle, item.value.value))
        .collect();
    values.sort_by_key(|(handle, _)| *handle);
    values
}

pub async fn republish(connection: &Connection, subscription: u32, number: u32) -> Result<NotificationMessage, Error> {
    let session = &connection.session;
    let request = Republish::new(subscription, number, session);
    request
        .send(session.channel())
        .await
        .map(|answer| answer.notification_message)
}

/// A sampling item is reported when another one, which only samples too, gets something.
pub async fn triggering(setup: &Setup, security: Security) -> Case {
    let connection = setup.connect(security, None, None).await?;
    let session = &connection.session;
    let nodes = [NodeId::new(0, 2259_u32), connection.node("Counter")];
    let subscription = Subscription::of_values(&connection, &nodes, MonitoringMode::Sampling).await?;
    let answer = SetTriggering::new(subscription.id, subscription.items[1], session)
        .links_to_add(vec![subscription.items[0], UNKNOWN])
        .links_to_remove(vec![subscription.items[0]])
        .send(session.channel())
        .await
        .map_err(text)?;
    let unknown = StatusCode::BadMonitoredItemIdInvalid;
    equal(answer.add_results, Some(vec![StatusCode::Good, unknown]), "links added")?;
    equal(answer.remove_results, Some(vec![unknown]), "links removed")?;
    let seen = values(next_message(&connection, None).await?);
    equal(seen, vec![(1, Some(Variant::Int32(0)))], "what the counter triggered")?;
    subscription.delete().await?;
    connection.close().await
}

/// GetMonitoredItems, ResendData, and Republish of a message that was received but not acknowledged.
pub async fn methods_and_republish(setup: &Setup, security: Security) -> Case {
    let connection = setup.connect(security, None, None).await?;
    let session = &connection.session;
    let nodes = [NodeId::new(0, 2259_u32), connection.node("the.answer")];
    let subscription = Subscription::of_values(&connection, &nodes, MonitoringMode::Reporting).await?;
    let message = next_message(&connection, None).await?;
    let number = message.sequence_number;
    let first = values(message);
    let expected = vec![(1, Some(Variant::Int32(0))), (2, Some(Variant::Int32(42)))];
    equal(&first, &expected, "the first values")?;
    let handles = session.call_get_monitored_items(subscription.id).await.map_err(text)?;
    equal(handles, (subscription.items.clone(), vec![1, 2]), "GetMonitoredItems")?;
    let again = republish(&connection, subscription.id, number).await.map_err(text)?;
    equal(again.sequence_number, number, "the number of the republished message")?;
    equal(&values(again), &first, "the republished message")?;
    let (server, resend) = (NodeId::new(0, 2253_u32), NodeId::new(0, 12_873_u32));
    let resend = CallMethodRequest::from((server, resend, Some(vec![Variant::UInt32(subscription.id)])));
    let called = session.call_one(resend).await.map_err(text)?;
    equal(called.status_code, StatusCode::Good, "ResendData")?;
    let later = next_message(&connection, Some((subscription.id, number))).await?;
    equal(later.sequence_number, number + 1, "the number of what was resent")?;
    equal(&values(later), &first, "what was resent")?;
    match republish(&connection, subscription.id, number).await {
        Ok(_) => return Err("an acknowledged message is still there".to_owned()),
        Err(error) => equal(
            error.status(),
            StatusCode::BadMessageNotAvailable,
            "an acknowledged message",
        )?,
    }
    subscription.delete().await?;
    connection.close().await
}

pub async fn take_over(connection: &Connection, ids: &[u32]) -> Case<Vec<TransferResult>> {
    let session = &connection.session;
    let request = TransferSubscriptions::new(session).subscription_ids(ids.to_vec());
    let answer = request.send(session.channel()).await.map_err(text)?;
    Ok(answer.results.unwrap_or_default())
}

/// The connection of a user is cut; another session of the user takes the subscription over and misses nothing. Each
/// client here has a certificate of its own, so that nobody who is anonymous gets anything.
pub async fn transfer(setup: &Setup, security: Security) -> Case {
    let user = Some(("user1", "password1"));
    let old = setup.connect(security, user, None).await?;
    let counter = [old.node("Counter")];
    let subscription = Subscription::of_values(&old, &counter, MonitoringMode::Reporting)
        .await?
        .id;
    let message = next_message(&old, None).await?;
    let number = message.sequence_number;
    let first = values(message);
    old.cut().await;
    let stranger = setup.connect(security, None, None).await?;
    let codes: Vec<_> = take_over(&stranger, &[subscription, UNKNOWN])
        .await?
        .iter()
        .map(|it| it.status_code)
        .collect();
    let denied = vec![StatusCode::BadUserAccessDenied, StatusCode::BadSubscriptionIdInvalid];
    equal(codes, denied, "a transfer to somebody else")?;
    stranger.close().await?;
    let new = setup.connect(security, user, None).await?;
    let results = take_over(&new, &[subscription]).await?;
    let result = results.first().ok_or("no result of the transfer")?;
    equal(result.status_code, StatusCode::Good, "the transfer")?;
    let available = result.available_sequence_numbers.as_deref().unwrap_or_default();
    check(available.contains(&number), format!("{number} in {available:?}"))?;
    let again = republish(&new, subscription, number).await.map_err(text)?;
    equal(&values(again), &first, "the republished message")?;
    let later = next_message(&new, Some((subscription, number))).await?;
    equal(later.sequence_number, number + 1, "the sequence number goes on")?;
    match (first.last(), values(later).first()) {
        (Some((_, Some(Variant::UInt32(last)))), Some((_, Some(Variant::UInt32(next))))) => {
            equal(*next, last + 1, "the first value after the cut")?;
        }
        other => return Err(format!("values around the cut: {other:?}")),
    }
    let again = take_over(&new, &[subscription]).await?;
    let codes: Vec<_> = again.iter().map(|it| it.status_code).collect();
    equal(codes, vec![StatusCode::BadNothingToDo], "a second transfer")?;
    Subscription::existing(&new, subscription).delete().await?;
    new.close().await
}

/// An aggregate over `interval` ms, by the id of its function.
fn aggregate(function: u32, interval: f64) -> ExtensionObject {
    ExtensionObject::from_message(AggregateFilter {
        start_time: DateTime::now(),
        aggregate_type: NodeId::new(0, function),
        processing_interval: interval,
        aggregate_configuration: AggregateConfiguration {
            use_server_capabilities_defaults: true,
            ..AggregateConfiguration::default()
        },
    })
}

/// Values and source timestamps of item 1, message by message, until there are `count`.
async fn results(connection: &Connection, count: usize) -> Case<Vec<(u32, DateTime)>> {
    let mut seen = Vec::new();
    while seen.len() < count {
        let message = next_message(connection, None).await?;
        let changes = message.into_notifications().map(|(changes, _)| changes);
        let items = changes.into_iter().flatten().flat_map(|part| part.monitored_items);
        for item in items.flatten() {
            match (item.client_handle, item.value.value, item.value.source_timestamp) {
                (1, Some(Variant::UInt32(value)), Some(time)) => seen.push((value, time)),
                other => return Err(format!("not a maximum of the counter: {other:?}")),
            }
        }
    }
    seen.truncate(count);
    Ok(seen)
}

/// What the server refuses as an aggregate, what it revises, and one result for each interval.
pub async fn aggregates(setup: &Setup, security: Security) -> Case {
    let connection = setup.connect(security, None, None).await?;
    let subscription = Subscription::of_values(&connection, &[], MonitoringMode::Reporting).await?;
    let (maximum, average, annotations) = (2_347, 2_342, 2_351);
    let counter: ReadValueId = connection.node("Counter").into();
    let text: ReadValueId = NodeId::new(0, 2261_u32).into();
    let items = vec![
        (counter.clone(), aggregate(maximum, 500.0)),
        (counter, aggregate(annotations, 500.0)),
        (text, aggregate(average, 500.0)),
    ];
    let created = subscription.add(items, MonitoringMode::Reporting).await?;
    let codes: Vec<_> = created.iter().map(|item| item.status_code).collect();
    let expected = vec![
        StatusCode::Good,
        StatusCode::BadAggregateNotSupported,
        StatusCode::BadAggregateInvalidInputs,
    ];
    equal(codes, expected, "Maximum, AnnotationCount, Average of a String")?;
    let revised = created[0].filter_result.inner_as::<AggregateFilterResult>();
    let revised = revised.map(|result| result.revised_processing_interval);
    equal(revised, Some(500.0), "the revised processing interval")?;
    let seen = results(&connection, 3).await?;
    check(
        seen.windows(2).all(|pair| pair[1].0 > pair[0].0),
        format!("the maximum does not grow: {seen:?}"),
    )?;
    let steps: Vec<_> = seen
        .windows(2)
        .map(|pair| (pair[1].1 - pair[0].1).num_milliseconds())
        .collect();
    equal(steps, vec![500, 500], "the distance of the timestamps")?;
    subscription.delete().await?;
    connection.close().await
}

/// A filter that selects fields of BaseEventType, where the event is a device failure of a severity of at least `severity`.
fn failures(severity: u16) -> ExtensionObject {
    let select = |name: &str| SimpleAttributeOperand::new_value(NodeId::new(0, 2041_u32), name);
    let failure = NodeId::new(0, 2131_u32);
    let filter = EventFilter {
        select_clauses: Some(
            ["EventId", "EventType", "SourceNode", "SourceName", "Severity"]
                .map(select)
                .to_vec(),
        ),
        where_clause: ContentFilterBuilder::new()
            .and(Operand::element(1), Operand::element(2))
            .of_type(Operand::literal(failure))
            .gte(select("Severity"), Operand::literal(severity))
            .build(),
    };
    ExtensionObject::from_message(filter)
}

/// Events of the boiler, at the boiler and at the server, with a where clause of type and severity.
pub async fn events(setup: &Setup, security: Security) -> Case {
    let connection = setup.connect(security, None, None).await?;
    let boiler = connection.node("Boiler");
    let at = |node: &NodeId| ReadValueId {
        node_id: node.clone(),
        attribute_id: AttributeId::EventNotifier as u32,
        ..ReadValueId::default()
    };
    let server = NodeId::new(0, 2253_u32);
    let items = vec![
        (at(&boiler), failures(500)),
        (at(&server), failures(500)),
        (at(&server), failures(501)),
    ];
    let subscription = Subscription::create(&connection, items, MonitoringMode::Reporting).await?;
    let inputs = vec![Variant::Int32(1), Variant::Double(0.1)];
    let inject = CallMethodRequest::from((boiler.clone(), connection.node("Boiler.InjectFault"), Some(inputs)));
    let called = connection.session.call_one(inject).await.map_err(text)?;
    equal(called.status_code, StatusCode::Good, "InjectFault")?;
    let message = next_message(&connection, None).await?;
    let lists = message
        .into_notifications()
        .map(|(_, events)| events)
        .unwrap_or_default();
    let mut seen: Vec<_> = lists
        .into_iter()
        .flat_map(|list| list.events.unwrap_or_default())
        .collect();
    seen.sort_by_key(|event| event.client_handle);
    let handles: Vec<_> = seen.iter().map(|event| event.client_handle).collect();
    equal(handles, vec![1, 2], "who got the event")?;
    let expected = [
        Variant::from(NodeId::new(0, 2131_u32)),
        Variant::from(boiler),
        Variant::from("Boiler"),
        Variant::UInt16(500),
    ];
    for event in &seen {
        let fields = event.event_fields.as_deref().unwrap_or_default();
        let Some((Variant::ByteString(ByteString { value: Some(id) }), rest)) = fields.split_first() else {
            return Err(format!("the event has no EventId: {fields:?}"));
        };
        equal(id.len(), 16, "bytes of EventId")?;
        equal(rest, &expected, "the event")?;
    }
    equal(
        &seen[0].event_fields,
        &seen[1].event_fields,
        "the event at the boiler and at the server",
    )?;
    subscription.delete().await?;
    connection.close().await
}
