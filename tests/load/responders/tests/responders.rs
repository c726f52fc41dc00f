//! The built binaries, driven by a client with its ordinary handshake.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use backplane_client::{Client, ClientError, Identity, Options, SessionOptions};
use backplane_responders::{NAMESPACE, NAMESPACE_INDEX};
use backplane_types::{
    ArrayValues, BrowseRequest, DataValue, NodeId, ReadRequest, ReadResponse, ReadValueId, StatusCode,
    TimestampsToReturn, Variant,
};

/// A responder that ends with the test.
struct Running {
    child: Child,
    url: String,
}

impl Running {
    fn start(binary: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(binary);
        let mut child = command.args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let (url, pid) = line.trim().strip_prefix("READY ").unwrap().split_once(" pid=").unwrap();
        assert_eq!(pid, child.id().to_string());
        assert!(url.starts_with("opc.tcp://127.0.0.1:") && url.ends_with('/'), "{url}");
        let url = url.to_owned();
        Self { child, url }
    }

    async fn session(&self) -> Client {
        let client = Client::connect(Options::new(self.url.as_str())).await.unwrap();
        client
            .open_session(SessionOptions::default(), &Identity::Anonymous)
            .await
            .unwrap();
        client
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn read_of(ids: impl IntoIterator<Item = NodeId>, timestamps: TimestampsToReturn) -> ReadRequest {
    let value = |node_id| ReadValueId {
        node_id,
        attribute_id: 13,
        ..ReadValueId::default()
    };
    ReadRequest {
        timestamps_to_return: timestamps,
        nodes_to_read: ids.into_iter().map(value).collect(),
        ..ReadRequest::default()
    }
}

fn node(name: &str) -> NodeId {
    NodeId::string(NAMESPACE_INDEX, name)
}

async fn read(client: &Client, ids: Vec<NodeId>) -> Vec<DataValue> {
    let response: ReadResponse = client.call(read_of(ids, TimestampsToReturn::BOTH)).await.unwrap();
    response.results
}

async fn namespace_is_found(client: &Client) {
    let results = read(client, vec![NodeId::numeric(0, 2_255)]).await;
    let Variant::Array(array) = &results[0].value else {
        panic!("{results:?}")
    };
    let ArrayValues::String(names) = &array.values else {
        panic!("{array:?}")
    };
    assert_eq!(names[usize::from(NAMESPACE_INDEX)].text(), NAMESPACE);
}

#[tokio::test]
async fn parsing_reads_what_is_asked_for() {
    for threads in ["1", "2"] {
        let running = Running::start(env!("CARGO_BIN_EXE_parsing"), &["--nodes", "200", "--threads", threads]);
        let client = running.session().await;
        namespace_is_found(&client).await;
        let ids = (0..200).map(|number| node(&format!("v{number}"))).collect();
        for (number, value) in read(&client, ids).await.into_iter().enumerate() {
            assert_eq!(value.value, Variant::Double(f64::from(u32::try_from(number).unwrap())));
            assert!(value.source_timestamp.is_some() && value.server_timestamp.is_some());
        }
        client.close_session(true).await.unwrap();
        client.close().await;
    }
}

#[tokio::test]
async fn parsing_answers_each_operation_by_itself() {
    let running = Running::start(env!("CARGO_BIN_EXE_parsing"), &["--nodes", "2"]);
    let client = running.session().await;
    let mut request = read_of(
        [
            node("v1"),
            node("v2"),
            NodeId::string(1, "v1"),
            NodeId::numeric(0, 2_256),
            node("v1"),
            node("v1"),
        ],
        TimestampsToReturn::SOURCE,
    );
    request.nodes_to_read[4].attribute_id = 1;
    request.nodes_to_read[5].index_range = "0:1".into();
    let results = client.call(request).await.unwrap().results;
    let statuses: Vec<_> = results
        .iter()
        .map(|result| result.status.unwrap_or(StatusCode::GOOD))
        .collect();
    let unknown = StatusCode::BAD_NODE_ID_UNKNOWN;
    let expected = [
        StatusCode::GOOD,
        unknown,
        unknown,
        unknown,
        StatusCode::BAD_ATTRIBUTE_ID_INVALID,
        StatusCode::BAD_INDEX_RANGE_NO_DATA,
    ];
    assert_eq!(statuses, expected);
    assert!(results[0].source_timestamp.is_some() && results[0].server_timestamp.is_none());
}

#[tokio::test]
async fn parsing_says_what_it_cannot_do() {
    let running = Running::start(env!("CARGO_BIN_EXE_parsing"), &[]);
    let client = running.session().await;
    let fault = |result: Result<(), ClientError>| match result {
        Err(ClientError::Fault(status)) => status,
        other => panic!("{other:?}"),
    };
    let browse = client.call(BrowseRequest::default()).await.map(drop);
    assert_eq!(fault(browse), StatusCode::BAD_SERVICE_UNSUPPORTED);
    let nothing = client.call(read_of([], TimestampsToReturn::BOTH)).await.map(drop);
    assert_eq!(fault(nothing), StatusCode::BAD_NOTHING_TO_DO);
    let large = client
        .call(read_of(vec![node("v0"); 2_600], TimestampsToReturn::BOTH))
        .await
        .map(drop);
    assert_eq!(fault(large), StatusCode::BAD_RESPONSE_TOO_LARGE);
}

#[tokio::test]
async fn echo_always_says_the_same() {
    let running = Running::start(env!("CARGO_BIN_EXE_echo"), &["--bytes", "2660"]);
    let client = running.session().await;
    namespace_is_found(&client).await;
    for _ in 0..40 {
        assert_eq!(read(&client, vec![node("v0")]).await.len(), 100);
    }
    client.close_session(true).await.unwrap();
    client.close().await;
}
