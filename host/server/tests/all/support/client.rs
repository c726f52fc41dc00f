//! A client that behaves, and the bodies of its requests.

use backplane_client::{Client, ClientError, Identity, Options, SessionOptions};
use backplane_types::{
    AttributeId, BinaryDecode, DecodeLimits, Decoder, Encoder, NodeId, ReadRequest, ReadValueId, RequestHeader,
    ServiceFault, StatusCode, Structure, Variant, ids,
};

use super::{PATIENCE, Reachable};

/// Type id and structure of a request.
pub(crate) fn body<T: Structure>(request: &T) -> Vec<u8> {
    super::raw::encode(request)
}

/// Type id and request header of a service, with the client's session; the rest of the body is the caller's.
pub(crate) fn head(client: &Client, encoding_id: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out);
    encoder.put(&NodeId::numeric(0, encoding_id));
    encoder.put(&client.header(RequestHeader::default()));
    out
}

/// The result of a response body: Good unless it is a ServiceFault.
pub(crate) fn fault_of(response: &[u8]) -> StatusCode {
    let mut decoder = Decoder::new(response, DecodeLimits::DEFAULT);
    if NodeId::decode(&mut decoder).unwrap() != NodeId::numeric(0, ServiceFault::ENCODING_ID) {
        return StatusCode::GOOD;
    }
    ServiceFault::decode(&mut decoder)
        .unwrap()
        .response_header
        .service_result
}

/// A client without session.
pub(crate) async fn connect(server: &impl Reachable) -> Result<Client, ClientError> {
    let options = Options {
        call_timeout: PATIENCE,
        connect_timeout: PATIENCE,
        ..Options::new(server.url())
    };
    Client::connect(options).await
}

/// A client with an anonymous session.
pub(crate) async fn open(server: &impl Reachable) -> Client {
    let client = connect(server).await.unwrap();
    client
        .open_session(SessionOptions::default(), &Identity::Anonymous)
        .await
        .unwrap();
    client
}

/// Reads ServerStatus.
pub(crate) async fn read_status(client: &Client) -> Result<(), ClientError> {
    let node_id = NodeId::numeric(0, ids::variable::SERVER_SERVER_STATUS);
    let read = ReadValueId {
        node_id,
        attribute_id: AttributeId::VALUE.0,
        ..ReadValueId::default()
    };
    let response = client
        .call(ReadRequest {
            nodes_to_read: vec![read],
            ..ReadRequest::default()
        })
        .await?;
    let [value] = response.results.as_slice() else {
        panic!("one result: {:?}", response.results)
    };
    assert!(
        matches!(value.value, Variant::ExtensionObject(_)),
        "ServerStatus is {value:?}"
    );
    Ok(())
}

/// A whole visit of a client that behaves: connect, session, read, close.
pub(crate) async fn well_behaved(server: &impl Reachable) {
    let client = open(server).await;
    read_status(&client).await.unwrap();
    client.close_session(true).await.unwrap();
    client.close().await;
}
