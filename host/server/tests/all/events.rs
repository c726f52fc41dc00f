//! Events as a client sees them: from a plugin, from the structure, at the notifiers above a source, and audit events for those who may.

use std::time::Duration;

use backplane_client::{Client, Identity, SessionOptions};
use backplane_types::{
    AttributeId, CallMethodRequest, CallRequest, ContentFilter, ContentFilterElement, CreateMonitoredItemsRequest,
    CreateSubscriptionRequest, EventFieldList, EventFilter, EventFilterResult, EventNotificationList, ExtensionObject,
    FilterOperator, LiteralOperand, MonitoredItemCreateRequest, MonitoredItemCreateResult, MonitoringMode,
    MonitoringParameters, NodeId, PublishRequest, QualifiedName, ReadRequest, ReadValueId, SimpleAttributeOperand,
    StatusCode, TimestampsToReturn, Variant, WriteRequest, WriteValue, ids,
};

use crate::support::{Server, connect_secured, guest, identity, open, run, with_guests};

const BASE: NodeId = NodeId::numeric(0, ids::object_type::BASE_EVENT_TYPE);
const SERVER: NodeId = NodeId::numeric(0, ids::object::SERVER);
const FAILURE: NodeId = NodeId::numeric(0, ids::object_type::DEVICE_FAILURE_EVENT_TYPE);

fn operand(namespace: u16, name: &str) -> SimpleAttributeOperand {
    SimpleAttributeOperand {
        type_definition_id: BASE,
        browse_path: vec![QualifiedName::new(namespace, name)],
        attribute_id: AttributeId::VALUE.0,
        ..SimpleAttributeOperand::default()
    }
}

/// EventType, SourceNode, Severity and what else is asked for, of events of a type.
fn filter(more: Vec<SimpleAttributeOperand>, of_type: &NodeId) -> ExtensionObject {
    let mut select_clauses = ["EventType", "SourceNode", "Severity"]
        .map(|name| operand(0, name))
        .to_vec();
    select_clauses.extend(more);
    let literal = ExtensionObject::from_structure(&LiteralOperand {
        value: of_type.clone().into(),
    });
    let element = ContentFilterElement {
        filter_operator: FilterOperator::OF_TYPE,
        filter_operands: vec![literal],
    };
    ExtensionObject::from_structure(&EventFilter {
        select_clauses,
        where_clause: ContentFilter {
            elements: vec![element],
        },
    })
}

fn item(node: &NodeId, client_handle: u32, filter: ExtensionObject) -> MonitoredItemCreateRequest {
    MonitoredItemCreateRequest {
        item_to_monitor: ReadValueId {
            node_id: node.clone(),
            attribute_id: AttributeId::EVENT_NOTIFIER.0,
            ..ReadValueId::default()
        },
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters {
            client_handle,
            filter,
            discard_oldest: true,
            ..MonitoringParameters::default()
        },
    }
}

async fn subscribe(client: &Client, items: Vec<MonitoredItemCreateRequest>) -> Vec<MonitoredItemCreateResult> {
    let created = client
        .call(CreateSubscriptionRequest {
            requested_publishing_interval: 10.0,
            requested_lifetime_count: 10_000,
            requested_max_keep_alive_count: 10,
            publishing_enabled: true,
            ..CreateSubscriptionRequest::default()
        })
        .await
        .unwrap();
    let request = CreateMonitoredItemsRequest {
        subscription_id: created.subscription_id,
        timestamps_to_return: TimestampsToReturn::BOTH,
        items_to_create: items,
        ..CreateMonitoredItemsRequest::default()
    };
    client.call(request).await.unwrap().results
}

/// The events of the next message that has some.
async fn events(client: &Client) -> Vec<EventFieldList> {
    loop {
        let published = client.call(PublishRequest::default()).await.unwrap();
        for data in published.notification_message.notification_data {
            if data.is::<EventNotificationList>() {
                return data.decode_as::<EventNotificationList>().unwrap().events;
            }
        }
    }
}

async fn invoke(client: &Client, object: &NodeId, method: &NodeId, inputs: Vec<Variant>) {
    let call = CallMethodRequest {
        object_id: object.clone(),
        method_id: method.clone(),
        input_arguments: inputs,
    };
    let answer = client
        .call(CallRequest {
            methods_to_call: vec![call],
            ..CallRequest::default()
        })
        .await
        .unwrap();
    assert_eq!(answer.results[0].status_code, StatusCode::GOOD);
}

/// The server's index of the simulator's namespace.
async fn simulator(client: &Client) -> u16 {
    let read = ReadValueId {
        node_id: NodeId::numeric(0, ids::variable::SERVER_NAMESPACE_ARRAY),
        attribute_id: AttributeId::VALUE.0,
        ..ReadValueId::default()
    };
    let request = ReadRequest {
        nodes_to_read: vec![read],
        ..ReadRequest::default()
    };
    let value = client.call(request).await.unwrap().results.remove(0).value;
    let names: Vec<backplane_types::UaString> = value.try_into().unwrap();
    let index = names.iter().position(|name| *name == "urn:backplane:simulator");
    u16::try_from(index.unwrap()).unwrap()
}

#[tokio::test]
async fn an_event_of_a_plugin_is_seen_at_its_source_and_at_the_server() {
    let Some(server) = with_guests("", &[("simulator", "[settings]\nperiod_ms = 10\n")]) else {
        return;
    };
    let client = open(&server).await;
    let namespace = simulator(&client).await;
    let boiler = NodeId::string(namespace, "Boiler");
    let nonsense = operand(0, "Nonsense");
    let results = subscribe(
        &client,
        vec![
            item(&boiler, 1, filter(vec![nonsense], &FAILURE)),
            item(&SERVER, 2, filter(vec![], &FAILURE)),
            item(
                &SERVER,
                3,
                filter(vec![], &NodeId::numeric(0, ids::object_type::AUDIT_EVENT_TYPE)),
            ),
            item(&NodeId::string(namespace, "Nowhere"), 4, filter(vec![], &BASE)),
            item(&NodeId::string(namespace, "Boiler.Level"), 5, filter(vec![], &BASE)),
            item(&NodeId::string(namespace, "Dev"), 6, filter(vec![], &BASE)),
        ],
    )
    .await;
    let statuses: Vec<StatusCode> = results.iter().map(|result| result.status_code).collect();
    let good = StatusCode::GOOD;
    let refused = [
        StatusCode::BAD_NODE_ID_UNKNOWN,
        StatusCode::BAD_ATTRIBUTE_ID_INVALID,
        StatusCode::BAD_FILTER_NOT_ALLOWED,
    ];
    assert_eq!(statuses, [good, good, good, refused[0], refused[1], refused[2]]);
    let told: EventFilterResult = results[0].filter_result.decode_as().unwrap();
    assert_eq!(
        told.select_clause_results,
        [good, good, good, StatusCode::BAD_NODE_ID_UNKNOWN]
    );

    let inject = NodeId::string(namespace, "Boiler.InjectFault");
    invoke(&client, &boiler, &inject, vec![Variant::Int32(1), Variant::Double(0.1)]).await;
    let mut seen = Vec::new();
    while seen.len() < 2 {
        seen.extend(events(&client).await);
    }
    seen.sort_by_key(|event| event.client_handle);
    let mut expected = vec![Variant::from(FAILURE), boiler.clone().into(), 500_u16.into()];
    assert_eq!((seen[1].client_handle, &seen[1].event_fields), (2, &expected));
    expected.push(Variant::Empty);
    assert_eq!((seen[0].client_handle, &seen[0].event_fields), (1, &expected));

    // The level goes over its limit by itself; its type is the plugin's own.
    let alarm = NodeId::string(namespace, "LevelAlarmType");
    let states = vec![operand(namespace, "State"), operand(namespace, "Level")];
    let created = subscribe(&client, vec![item(&boiler, 7, filter(states, &alarm))]).await;
    assert_eq!((created[0].status_code, created[0].revised_queue_size), (good, 1000));
    let alarms = tokio::time::timeout(Duration::from_secs(20), events(&client))
        .await
        .unwrap();
    assert_eq!(alarms[0].event_fields[0], Variant::from(alarm));
    assert!(alarms[0].event_fields[3].as_str().is_some());
    assert!(alarms[0].event_fields[4].as_f64().is_some());
    client.close_session(true).await.unwrap();
    client.close().await;
    a_plugin_that_comes_is_a_change_of_the_model(&server).await;
}

async fn a_plugin_that_comes_is_a_change_of_the_model(server: &Server) {
    let client = open(server).await;
    let change = NodeId::numeric(0, ids::object_type::BASE_MODEL_CHANGE_EVENT_TYPE);
    let created = subscribe(&client, vec![item(&SERVER, 1, filter(vec![], &change))]).await;
    assert_eq!(created[0].status_code, StatusCode::GOOD);
    // In one step, so that no half of it is looked at.
    let (partial, whole) = (
        server.folder().join("sleeps.partial"),
        server.folder().join("plugins/sleeps.wasm"),
    );
    std::fs::write(&partial, guest("sleeps").unwrap()).unwrap();
    std::fs::rename(partial, whole).unwrap();
    let changes = tokio::time::timeout(Duration::from_secs(20), events(&client))
        .await
        .unwrap();
    let general = NodeId::numeric(0, ids::object_type::GENERAL_MODEL_CHANGE_EVENT_TYPE);
    assert_eq!(changes[0].event_fields[..2], [Variant::from(general), SERVER.into()]);
    client.close().await;
}

/// A security administrator on an encrypted channel.
async fn administrator(server: &Server) -> Client {
    let endpoints = Client::discover(&server.url()).await.unwrap();
    let certificate = &endpoints[0].server_certificate;
    let client = connect_secured(server, &identity(), certificate).await.unwrap();
    let options = SessionOptions {
        application_uri: "urn:backplane:test:client".into(),
        ..SessionOptions::default()
    };
    let user = Identity::UserName {
        user: "admin".to_owned(),
        password: "tea for two".to_owned(),
    };
    client.open_session(options, &user).await.unwrap();
    client
}

#[tokio::test]
async fn audit_events_are_for_administrators_on_encrypted_channels() {
    let hash = String::from_utf8(run(&["user", "hash"], "tea for two\n").stdout).unwrap();
    let server = Server::configured(&format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n[security]\nallow-none = true\nauto-trust = true\nauditing = true\n\
         [users]\nanonymous = true\n[[users.user]]\nname = \"admin\"\npassword-hash = \"{}\"\nroles = [\"SecurityAdmin\"]\n",
        hash.trim()
    ));
    let audit = NodeId::numeric(0, ids::object_type::AUDIT_EVENT_TYPE);
    let fields = || vec![operand(0, "SourceName"), operand(0, "Status")];
    let (admin, anybody) = (administrator(&server).await, open(&server).await);
    for client in [&admin, &anybody] {
        let created = subscribe(client, vec![item(&SERVER, 1, filter(fields(), &audit))]).await;
        assert_eq!(created[0].status_code, StatusCode::GOOD);
    }
    let visitor = open(&server).await;
    let write = WriteRequest {
        nodes_to_write: vec![WriteValue {
            node_id: SERVER,
            attribute_id: AttributeId::VALUE.0,
            ..WriteValue::default()
        }],
        ..WriteRequest::default()
    };
    assert!(visitor.call(write).await.unwrap().results[0].is_bad());
    visitor.close_session(true).await.unwrap();
    let mut seen: Vec<(String, bool)> = Vec::new();
    while !seen.iter().any(|(service, _)| service == "Session/CloseSession") {
        for event in events(&admin).await {
            let succeeded = event.event_fields[4] == Variant::Boolean(true);
            seen.push((event.event_fields[3].as_str().unwrap().to_owned(), succeeded));
        }
    }
    let expected = [
        ("SecureChannel/OpenSecureChannel", true),
        ("Session/CreateSession", true),
        ("Session/ActivateSession", true),
        ("Attribute/Write", false),
        ("Session/CloseSession", true),
    ];
    assert_eq!(
        seen,
        expected.map(|(service, succeeded)| (service.to_owned(), succeeded))
    );
    let published = anybody.call(PublishRequest::default()).await.unwrap();
    assert!(
        published.notification_message.notification_data.is_empty(),
        "a keep-alive"
    );
}
