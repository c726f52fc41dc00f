//! Subscriptions that change hands, and the methods and services on them that go through the shards: who may take what, and what is kept.

use std::sync::Arc;

use backplane_channel::OwnIdentity;
use backplane_client::{Client, ClientError, Identity, SessionOptions};
use backplane_types::{
    AttributeId, CallMethodRequest, CallMethodResult, CallRequest, CreateMonitoredItemsRequest,
    CreateSubscriptionRequest, DataChangeNotification, MonitoredItemCreateRequest, MonitoringMode,
    MonitoringParameters, NodeId, PublishRequest, PublishResponse, ReadValueId, RepublishRequest, SetTriggeringRequest,
    StatusChangeNotification, StatusCode, SubscriptionAcknowledgement, TimestampsToReturn, TransferResult,
    TransferSubscriptionsRequest, Variant, ids,
};

use crate::support::{Server, connect_secured, identity, open, run};

const DENIED: StatusCode = StatusCode::BAD_USER_ACCESS_DENIED;
const UNKNOWN: StatusCode = StatusCode::BAD_SUBSCRIPTION_ID_INVALID;
const STATE: u32 = ids::variable::SERVER_SERVER_STATUS_STATE;
const CURRENT_TIME: u32 = ids::variable::SERVER_SERVER_STATUS_CURRENT_TIME;

/// A client with a signed channel and an anonymous session.
async fn secured(server: &Server, own: &Arc<OwnIdentity>) -> Client {
    let endpoints = Client::discover(&server.url()).await.unwrap();
    let client = connect_secured(server, own, &endpoints[0].server_certificate)
        .await
        .unwrap();
    let options = SessionOptions {
        application_uri: "urn:backplane:test:client".into(),
        ..SessionOptions::default()
    };
    client.open_session(options, &Identity::Anonymous).await.unwrap();
    client
}

async fn subscribe(client: &Client, nodes: &[u32], mode: MonitoringMode) -> (u32, Vec<u32>) {
    let subscription = client
        .call(CreateSubscriptionRequest {
            requested_publishing_interval: 50.0,
            requested_lifetime_count: 10_000,
            requested_max_keep_alive_count: 1_000,
            publishing_enabled: true,
            ..CreateSubscriptionRequest::default()
        })
        .await
        .unwrap();
    let item = |node: &u32| MonitoredItemCreateRequest {
        item_to_monitor: ReadValueId {
            node_id: NodeId::numeric(0, *node),
            attribute_id: AttributeId::VALUE.0,
            ..ReadValueId::default()
        },
        monitoring_mode: mode,
        requested_parameters: MonitoringParameters {
            client_handle: *node,
            sampling_interval: 10.0,
            queue_size: 1,
            discard_oldest: true,
            ..MonitoringParameters::default()
        },
    };
    let created = client
        .call(CreateMonitoredItemsRequest {
            subscription_id: subscription.subscription_id,
            timestamps_to_return: TimestampsToReturn::BOTH,
            items_to_create: nodes.iter().map(item).collect(),
            ..CreateMonitoredItemsRequest::default()
        })
        .await
        .unwrap();
    let items = created.results.iter().map(|result| result.monitored_item_id).collect();
    (subscription.subscription_id, items)
}

async fn publish(client: &Client, acknowledged: &[(u32, u32)]) -> Result<PublishResponse, ClientError> {
    let acknowledgement = |(subscription_id, sequence_number): &(u32, u32)| SubscriptionAcknowledgement {
        subscription_id: *subscription_id,
        sequence_number: *sequence_number,
    };
    client
        .call(PublishRequest {
            subscription_acknowledgements: acknowledged.iter().map(acknowledgement).collect(),
            ..PublishRequest::default()
        })
        .await
}

/// Client handles of the data in a message.
fn handles(response: &PublishResponse) -> Vec<u32> {
    let data = response.notification_message.notification_data.iter();
    let data = data.filter_map(|part| part.decode_as::<DataChangeNotification>().ok());
    data.flat_map(|part| part.monitored_items)
        .map(|item| item.client_handle)
        .collect()
}

fn status_change(response: &PublishResponse) -> Option<StatusCode> {
    let data = response.notification_message.notification_data.first()?;
    let change: StatusChangeNotification = data.decode_as().ok()?;
    Some(change.status)
}

async fn transfer(client: &Client, subscriptions: &[u32], send_initial_values: bool) -> Vec<TransferResult> {
    client
        .call(TransferSubscriptionsRequest {
            subscription_ids: subscriptions.to_vec(),
            send_initial_values,
            ..TransferSubscriptionsRequest::default()
        })
        .await
        .unwrap()
        .results
}

async fn method(client: &Client, method: u32, subscription: u32) -> CallMethodResult {
    let request = CallMethodRequest {
        object_id: NodeId::numeric(0, ids::object::SERVER),
        method_id: NodeId::numeric(0, method),
        input_arguments: vec![Variant::from(subscription)],
    };
    let response = client
        .call(CallRequest {
            methods_to_call: vec![request],
            ..CallRequest::default()
        })
        .await
        .unwrap();
    response.results[0].clone()
}

#[tokio::test]
async fn a_subscription_outlives_a_cut_connection() {
    let server = Server::demo();
    let own = identity();
    let old = secured(&server, &own).await;
    let (subscription, _) = subscribe(&old, &[STATE], MonitoringMode::REPORTING).await;
    let first = publish(&old, &[]).await.unwrap();
    assert_eq!(handles(&first), [STATE]);
    // No CloseSession, no goodbye: the session is still there.
    drop(old);
    // More sessions than processors: some live in other shards than the old one.
    for send_initial_values in [true, false, true] {
        let new = secured(&server, &own).await;
        let results = transfer(&new, &[subscription, subscription, 77_777], send_initial_values).await;
        let statuses: Vec<StatusCode> = results.iter().map(|result| result.status_code).collect();
        assert_eq!(statuses, [StatusCode::GOOD, UNKNOWN, UNKNOWN]);
        let available = &results[0].available_sequence_numbers;
        let republished = new
            .call(RepublishRequest {
                subscription_id: subscription,
                retransmit_sequence_number: available[0],
                ..RepublishRequest::default()
            })
            .await
            .unwrap();
        assert_eq!(republished.notification_message.sequence_number, available[0]);
        if send_initial_values {
            let next = publish(&new, &[]).await.unwrap();
            assert_eq!(next.subscription_id, subscription);
            assert_eq!(handles(&next), [STATE], "the value did not change, and is sent again");
            assert_eq!(
                next.notification_message.sequence_number,
                available.last().unwrap() + 1,
                "no gap"
            );
        }
        let again = transfer(&new, &[subscription], false).await;
        assert_eq!(again[0].status_code, StatusCode::BAD_NOTHING_TO_DO);
        drop(new);
    }
}

#[tokio::test]
async fn the_old_session_is_told_and_has_it_no_more() {
    let server = Server::demo();
    let own = identity();
    let (old, new) = (secured(&server, &own).await, secured(&server, &own).await);
    let (subscription, _) = subscribe(&old, &[STATE], MonitoringMode::REPORTING).await;
    publish(&old, &[]).await.unwrap();
    let (told, moved) = tokio::join!(publish(&old, &[]), async {
        // The Publish request goes out first: the channel keeps the order, and the transfer needs a round trip of its own.
        let wait = method(&old, ids::method::SERVER_RESEND_DATA, 77_777).await;
        assert_eq!(wait.status_code, UNKNOWN);
        transfer(&new, &[subscription], false).await
    });
    assert_eq!(moved[0].status_code, StatusCode::GOOD);
    let told = told.unwrap();
    assert_eq!(
        (told.subscription_id, status_change(&told)),
        (subscription, Some(StatusCode::GOOD_SUBSCRIPTION_TRANSFERRED))
    );
    assert!(matches!(
        publish(&old, &[]).await,
        Err(ClientError::Fault(StatusCode::BAD_NO_SUBSCRIPTION))
    ));
    let items = method(&old, ids::method::SERVER_GET_MONITORED_ITEMS, subscription).await;
    assert_eq!(items.status_code, DENIED, "another session has it now");
    let items = method(&new, ids::method::SERVER_GET_MONITORED_ITEMS, subscription).await;
    assert_eq!(items.status_code, StatusCode::GOOD);
}

#[tokio::test]
async fn who_may_not_take_it_does_not_get_it() {
    let server = Server::demo();
    let own = identity();
    let old = secured(&server, &own).await;
    let (subscription, _) = subscribe(&old, &[STATE], MonitoringMode::REPORTING).await;
    let unsecured = open(&server).await;
    assert_eq!(
        transfer(&unsecured, &[subscription], false).await[0].status_code,
        DENIED
    );
    let impostor = secured(&server, &identity()).await;
    assert_eq!(
        transfer(&impostor, &[subscription], false).await[0].status_code,
        StatusCode::BAD_SECURITY_CHECKS_FAILED,
        "the same name with another certificate"
    );
    let (unproved, _) = subscribe(&unsecured, &[STATE], MonitoringMode::REPORTING).await;
    assert_eq!(transfer(&old, &[unproved], false).await[0].status_code, DENIED);
    let nothing = unsecured.call(TransferSubscriptionsRequest::default()).await;
    assert!(matches!(
        nothing,
        Err(ClientError::Fault(StatusCode::BAD_NOTHING_TO_DO))
    ));
    // It is where it was.
    assert_eq!(handles(&publish(&old, &[]).await.unwrap()), [STATE]);
    assert_eq!(handles(&publish(&unsecured, &[]).await.unwrap()), [STATE]);
}

#[tokio::test]
async fn subscriptions_left_behind_are_bounded() {
    let server = Server::with("subscriptions-per-session = 2\nabandoned-subscriptions = 3");
    let (first, second) = (identity(), identity());
    let mut left = Vec::new();
    for own in [&first, &first] {
        let client = secured(&server, own).await;
        for _ in 0..2 {
            left.push(subscribe(&client, &[STATE], MonitoringMode::REPORTING).await.0);
        }
        client.close_session(false).await.unwrap();
        client.close().await;
    }
    drop(second);
    let heir = secured(&server, &first).await;
    let results = transfer(&heir, &left, false).await;
    let statuses: Vec<StatusCode> = results.iter().map(|result| result.status_code).collect();
    assert_eq!(
        statuses,
        [StatusCode::GOOD, StatusCode::GOOD, UNKNOWN, UNKNOWN],
        "one owner may leave two behind; the others went with their session"
    );
    let more = heir.call(CreateSubscriptionRequest::default()).await;
    assert!(matches!(
        more,
        Err(ClientError::Fault(StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS))
    ));
}

#[tokio::test]
async fn methods_on_subscriptions() {
    let server = Server::demo();
    let (client, other) = (open(&server).await, open(&server).await);
    let (subscription, items) = subscribe(&client, &[STATE, CURRENT_TIME], MonitoringMode::SAMPLING).await;
    let found = method(&client, ids::method::SERVER_GET_MONITORED_ITEMS, subscription).await;
    assert_eq!(found.status_code, StatusCode::GOOD);
    assert_eq!(
        found.output_arguments,
        [Variant::from(items), Variant::from(vec![STATE, CURRENT_TIME])]
    );
    for asked in [
        ids::method::SERVER_GET_MONITORED_ITEMS,
        ids::method::SERVER_TYPE_GET_MONITORED_ITEMS,
        ids::method::SERVER_RESEND_DATA,
    ] {
        assert_eq!(method(&other, asked, subscription).await.status_code, DENIED);
        assert_eq!(method(&client, asked, 77_777).await.status_code, UNKNOWN);
    }
    let (reporting, _) = subscribe(&other, &[STATE], MonitoringMode::REPORTING).await;
    assert_eq!(handles(&publish(&other, &[]).await.unwrap()), [STATE]);
    let resent = method(&other, ids::method::SERVER_RESEND_DATA, reporting).await;
    assert_eq!(resent.status_code, StatusCode::GOOD);
    let again = publish(&other, &[(reporting, 1)]).await.unwrap();
    assert_eq!(handles(&again), [STATE], "its value has not changed");
    assert_eq!(again.results, [StatusCode::GOOD]);
}

#[tokio::test]
async fn triggering_through_the_service() {
    let server = Server::demo();
    let client = open(&server).await;
    let (subscription, items) = subscribe(&client, &[STATE, CURRENT_TIME], MonitoringMode::SAMPLING).await;
    let links = client
        .call(SetTriggeringRequest {
            subscription_id: subscription,
            triggering_item_id: items[1],
            links_to_add: vec![items[0], 77_777],
            links_to_remove: vec![items[0]],
            ..SetTriggeringRequest::default()
        })
        .await
        .unwrap();
    let unknown = StatusCode::BAD_MONITORED_ITEM_ID_INVALID;
    assert_eq!(links.add_results, [StatusCode::GOOD, unknown]);
    assert_eq!(links.remove_results, [unknown]);
    // The time goes on, and lets the state be reported, once; it is not reported itself.
    let mut seen = publish(&client, &[]).await.unwrap();
    while handles(&seen).is_empty() {
        seen = publish(&client, &[]).await.unwrap();
    }
    assert_eq!(handles(&seen), [STATE]);
}

/// A variable of namespace 0 that only the role ConfigureAdmin may read.
const RESTRICTED: u32 = 17_367;

#[tokio::test]
async fn another_user_of_the_session_sees_no_more_than_it_may() {
    let hash = String::from_utf8(run(&["user", "hash"], "tea for two\n").stdout).unwrap();
    let server = Server::configured(&format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n[security]\nallow-none = true\nauto-trust = true\n\
         [users]\nanonymous = true\n[[users.user]]\nname = \"engineer\"\npassword-hash = \"{}\"\nroles = [\"ConfigureAdmin\"]\n",
        hash.trim()
    ));
    let client = secured(&server, &identity()).await;
    let engineer = Identity::UserName {
        user: "engineer".to_owned(),
        password: "tea for two".to_owned(),
    };
    client.activate_session(&engineer).await.unwrap();
    let _subscribed = subscribe(&client, &[RESTRICTED, STATE], MonitoringMode::REPORTING).await;
    let first = publish(&client, &[]).await.unwrap();
    assert_eq!(
        values(&first),
        [(RESTRICTED, StatusCode::GOOD), (STATE, StatusCode::GOOD)]
    );
    client.activate_session(&Identity::Anonymous).await.unwrap();
    let second = publish(&client, &[]).await.unwrap();
    assert_eq!(values(&second), [(RESTRICTED, DENIED)]);
    client.activate_session(&engineer).await.unwrap();
    let third = publish(&client, &[]).await.unwrap();
    assert_eq!(values(&third), [(RESTRICTED, StatusCode::GOOD)]);
    client.close().await;
}

/// ClientHandles and statuses of the values in a response.
fn values(response: &PublishResponse) -> Vec<(u32, StatusCode)> {
    let data = response.notification_message.notification_data.iter();
    data.filter_map(|data| data.decode_as::<DataChangeNotification>().ok())
        .flat_map(|data| data.monitored_items)
        .map(|item| (item.client_handle, item.value.status()))
        .collect()
}
