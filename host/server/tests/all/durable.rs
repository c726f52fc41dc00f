//! Durable subscriptions over a stop and a start of the server: nothing is lost, nothing comes twice, and only their owner gets them.

use std::fs;

use backplane_client::{Client, Identity, SessionOptions};
use backplane_types::{
    AttributeId, CallMethodRequest, CallRequest, CreateMonitoredItemsRequest, CreateSubscriptionRequest,
    DataChangeNotification, DataValue, MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters, NodeId,
    PublishRequest, ReadRequest, ReadValueId, RepublishRequest, StatusCode, SubscriptionAcknowledgement,
    TimestampsToReturn, TransferResult, TransferSubscriptionsRequest, Variant, WriteRequest, WriteValue, ids,
};

use crate::support::{Server, alone, connect, guest, open};

const FILE: &str = "state/durable-subscriptions";
const DENIED: StatusCode = StatusCode::BAD_USER_ACCESS_DENIED;

fn user(name: &str, password: &str) -> Identity {
    Identity::UserName {
        user: name.to_owned(),
        password: password.to_owned(),
    }
}

async fn session(server: &Server, identity: &Identity) -> Client {
    let client = connect(server).await.unwrap();
    client.open_session(SessionOptions::default(), identity).await.unwrap();
    client
}

fn node(namespace: u16, name: &str) -> NodeId {
    NodeId::string(namespace, name)
}

async fn namespace(client: &Client, uri: &str) -> u16 {
    let read = ReadValueId {
        node_id: NodeId::numeric(0, ids::variable::SERVER_NAMESPACE_ARRAY),
        attribute_id: AttributeId::VALUE.0,
        ..ReadValueId::default()
    };
    let response = client
        .call(ReadRequest {
            nodes_to_read: vec![read],
            ..ReadRequest::default()
        })
        .await
        .unwrap();
    let Variant::Array(array) = &response.results[0].value else {
        panic!("{:?}", response.results[0])
    };
    let place = array
        .values
        .iter()
        .position(|value| value == Variant::from(uri))
        .unwrap();
    u16::try_from(place).unwrap()
}

async fn subscription(client: &Client) -> u32 {
    let request = CreateSubscriptionRequest {
        requested_publishing_interval: 20.0,
        requested_lifetime_count: 600,
        requested_max_keep_alive_count: 10,
        publishing_enabled: true,
        ..CreateSubscriptionRequest::default()
    };
    client.call(request).await.unwrap().subscription_id
}

/// SetSubscriptionDurable: the status and the revised lifetime.
async fn durable(client: &Client, subscription: u32, hours: u32) -> (StatusCode, Vec<Variant>) {
    let request = CallMethodRequest {
        object_id: NodeId::numeric(0, ids::object::SERVER),
        method_id: NodeId::numeric(0, ids::method::SERVER_SET_SUBSCRIPTION_DURABLE),
        input_arguments: vec![subscription.into(), hours.into()],
    };
    let response = client
        .call(CallRequest {
            methods_to_call: vec![request],
            ..CallRequest::default()
        })
        .await
        .unwrap();
    (
        response.results[0].status_code,
        response.results[0].output_arguments.clone(),
    )
}

/// One item by exception; its revised queue.
async fn monitor(client: &Client, subscription: u32, node_id: NodeId, queue_size: u32) -> u32 {
    let item = MonitoredItemCreateRequest {
        item_to_monitor: ReadValueId {
            node_id,
            attribute_id: AttributeId::VALUE.0,
            ..ReadValueId::default()
        },
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters {
            client_handle: 7,
            sampling_interval: 0.0,
            queue_size,
            discard_oldest: true,
            ..MonitoringParameters::default()
        },
    };
    let response = client
        .call(CreateMonitoredItemsRequest {
            subscription_id: subscription,
            timestamps_to_return: TimestampsToReturn::BOTH,
            items_to_create: vec![item],
            ..CreateMonitoredItemsRequest::default()
        })
        .await
        .unwrap();
    assert_eq!(response.results[0].status_code, StatusCode::GOOD);
    response.results[0].revised_queue_size
}

/// Writes values one after the other, so slowly that each is sampled.
async fn write(client: &Client, node_id: &NodeId, values: std::ops::RangeInclusive<u32>) {
    for value in values {
        let write = WriteValue {
            node_id: node_id.clone(),
            attribute_id: AttributeId::VALUE.0,
            value: DataValue::new(f64::from(value)),
            ..WriteValue::default()
        };
        let response = client
            .call(WriteRequest {
                nodes_to_write: vec![write],
                ..WriteRequest::default()
            })
            .await
            .unwrap();
        assert_eq!(response.results, [StatusCode::GOOD]);
        // By exception: a change is looked at once in an interval.
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
}

async fn transfer(client: &Client, subscription: u32) -> TransferResult {
    let request = TransferSubscriptionsRequest {
        subscription_ids: vec![subscription],
        ..TransferSubscriptionsRequest::default()
    };
    client.call(request).await.unwrap().results.remove(0)
}

/// Values and sequence numbers of messages until a value comes that is the last.
async fn values_until(client: &Client, subscription: u32, last: f64) -> (Vec<f64>, Vec<u32>) {
    let (mut values, mut numbers) = (Vec::new(), Vec::new());
    let mut acknowledged = Vec::new();
    while values.last() != Some(&last) {
        let response = client
            .call(PublishRequest {
                subscription_acknowledgements: std::mem::take(&mut acknowledged),
                ..PublishRequest::default()
            })
            .await
            .unwrap();
        let message = response.notification_message;
        if message.notification_data.is_empty() {
            continue;
        }
        numbers.push(message.sequence_number);
        acknowledged.push(SubscriptionAcknowledgement {
            subscription_id: subscription,
            sequence_number: message.sequence_number,
        });
        for part in message.notification_data {
            let data: DataChangeNotification = part.decode_as().unwrap();
            for item in data.monitored_items {
                assert_eq!(item.client_handle, 7);
                let Variant::Double(value) = item.value.value else {
                    panic!("{:?}", item.value)
                };
                values.push(value);
            }
        }
    }
    (values, numbers)
}

const PLANT: &str = "urn:backplane:test:holds-state";

#[tokio::test]
async fn everything_is_there_after_a_restart_for_its_owner_only() {
    let Some(component) = guest("holds-state") else { return };
    // Values that come faster than they are sampled are one value: on a busy machine that would be any.
    let _alone = alone().await;
    let server = Server::with_plugins(&[("holds-state.wasm", component)]);
    let (owner, other) = (user("user1", "password1"), Identity::Anonymous);
    let client = session(&server, &owner).await;
    let stranger = session(&server, &other).await;
    let target = node(namespace(&client, PLANT).await, "Target");
    let id = subscription(&client).await;
    assert_eq!(durable(&stranger, id, 1).await.0, DENIED);
    assert_eq!(
        durable(&client, id, 24).await,
        (StatusCode::GOOD, vec![Variant::from(10_u32)])
    );
    assert_eq!(monitor(&client, id, target.clone(), 150_000).await, 150_000);
    assert_eq!(durable(&client, id, 1).await.0, StatusCode::BAD_INVALID_STATE);
    let ordinary = subscription(&client).await;
    write(&client, &target, 1..=3).await;
    // One message is on its way and never acknowledged, the rest waits.
    let (before, first) = values_until(&client, id, 3.0).await;
    assert_eq!(before, [0.0, 1.0, 2.0, 3.0]);
    client.close_session(false).await.unwrap();
    write(&stranger, &target, 4..=30).await;
    let server = server.restarted();
    assert!(!server.folder().join(FILE).exists(), "read once");

    let stranger = session(&server, &other).await;
    assert_eq!(transfer(&stranger, id).await.status_code, DENIED);
    // The plugin has begun anew: 0 is a value like another.
    write(&stranger, &target, 31..=40).await;
    let client = session(&server, &owner).await;
    assert_eq!(
        transfer(&client, ordinary).await.status_code,
        StatusCode::BAD_SUBSCRIPTION_ID_INVALID
    );
    let taken = transfer(&client, id).await;
    assert_eq!(taken.status_code, StatusCode::GOOD);
    let last = *first.last().unwrap();
    assert_eq!(taken.available_sequence_numbers, [last]);
    let republish = RepublishRequest {
        subscription_id: id,
        retransmit_sequence_number: last,
        ..RepublishRequest::default()
    };
    let again = client.call(republish).await.unwrap();
    assert_eq!(again.notification_message.sequence_number, last);
    let (values, numbers) = values_until(&client, id, 40.0).await;
    let expected = (4..=30).chain([0]).chain(31..=40).map(f64::from);
    assert_eq!(values, expected.collect::<Vec<_>>());
    assert!(
        numbers
            .iter()
            .copied()
            .eq(last + 1..=last + u32::try_from(numbers.len()).unwrap()),
        "{numbers:?}"
    );

    // A second stop while the owner is connected, and new ids after it.
    write(&client, &target, 41..=42).await;
    let server = server.restarted();
    let client = session(&server, &owner).await;
    assert!(subscription(&client).await > id);
    assert_eq!(transfer(&client, id).await.status_code, StatusCode::GOOD);
    let (values, _) = values_until(&client, id, 0.0).await;
    assert_eq!(values, [41.0, 42.0, 0.0]);
}

#[tokio::test]
async fn who_cannot_prove_to_be_the_owner_has_it_until_the_stop_only() {
    let server = Server::demo();
    let client = open(&server).await;
    let id = subscription(&client).await;
    assert_eq!(durable(&client, id, 1).await.0, StatusCode::GOOD);
    let mut server = server.restarted();
    server
        .log_until("started", |lines| {
            lines.iter().any(|line| line.contains("accepting connections"))
        })
        .await;
    let client = open(&server).await;
    assert_eq!(
        transfer(&client, id).await.status_code,
        StatusCode::BAD_SUBSCRIPTION_ID_INVALID
    );
}

/// One for which there is no place at one start is there at the next.
#[tokio::test]
async fn what_cannot_come_back_is_kept_for_another_start() {
    const NO_PLACE: &str = "[limits]\nabandoned-subscriptions = 0\n";
    let config = |limits: &str, state: &str| {
        format!(
            "[server]\napplication-uri = \"urn:backplane:test\"\nlisten = \"127.0.0.1:0\"\nstate = \"{state}\"\n[security]\nallow-none = true\nauto-trust = true\n[users]\nanonymous = true\n[[users.user]]\nname = \"ann\"\npassword-hash = \"{}\"\nroles = [\"Operator\"]\n{limits}",
            String::from_utf8(crate::support::run(&["user", "hash"], "secret").stdout)
                .unwrap()
                .trim()
        )
    };
    let ann = user("ann", "secret");
    let server = Server::configured(&config("", "state"));
    let client = session(&server, &ann).await;
    let id = subscription(&client).await;
    assert_eq!(durable(&client, id, 1).await.0, StatusCode::GOOD);
    let write = |limits: &'static str| {
        let text = config(limits, "state");
        move |folder: &std::path::Path| fs::write(folder.join("backplane.toml"), text).unwrap()
    };
    let mut server = server.stopped(write(NO_PLACE));
    server
        .log_until("said", |lines| {
            lines.iter().any(|line| line.contains("kept for another start"))
        })
        .await;
    let client = session(&server, &ann).await;
    assert_eq!(
        transfer(&client, id).await.status_code,
        StatusCode::BAD_SUBSCRIPTION_ID_INVALID
    );
    let server = server.stopped(write(""));
    let client = session(&server, &ann).await;
    assert_eq!(transfer(&client, id).await.status_code, StatusCode::GOOD);
}

#[tokio::test]
async fn a_damaged_file_stops_nothing() {
    let server = Server::demo();
    let client = session(&server, &user("user1", "password1")).await;
    let id = subscription(&client).await;
    assert_eq!(durable(&client, id, 1).await.0, StatusCode::GOOD);
    let mut server = server.stopped(|folder| {
        let mut bytes = fs::read(folder.join(FILE)).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(folder.join(FILE), bytes).unwrap();
    });
    server
        .log_until("said", |lines| {
            lines
                .iter()
                .any(|line| line.contains("durable subscriptions are lost") && line.contains("checksum"))
        })
        .await;
    assert!(server.folder().join(format!("{FILE}.damaged-0")).exists());
    let client = session(&server, &user("user1", "password1")).await;
    assert_eq!(
        transfer(&client, id).await.status_code,
        StatusCode::BAD_SUBSCRIPTION_ID_INVALID
    );
}
