//! A peer with a session that sends what it likes and takes the answers as they come, each with the time at which it came.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use backplane_client::ServiceRequest;
use backplane_types::{
    ArrayValues, AttributeId, BinaryDecode, CancelRequest, CancelResponse, CloseSessionRequest, DataValue,
    DecodeLimits, Decoder, NodeId, ReadRequest, ReadResponse, ReadValueId, RequestHeader, ServiceFault, StatusCode,
    Structure, Variant, ids,
};

use super::raw::encode;
use super::{Raw, Reachable};

/// The first id of a request that is not about the session itself.
const FIRST: u32 = 1_000;

/// One answer.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The request that it belongs to.
    pub(crate) request: u32,
    /// When it was there.
    pub(crate) at: Instant,
    /// Type id and structure.
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Good, or the status of a ServiceFault.
    pub(crate) fn status(&self) -> StatusCode {
        super::fault_of(&self.body)
    }

    /// The ServiceFault that it is.
    pub(crate) fn fault(&self) -> ServiceFault {
        self.decode()
    }

    /// The response that it is.
    pub(crate) fn decode<T: Structure>(&self) -> T {
        let mut decoder = Decoder::new(&self.body, DecodeLimits::DEFAULT);
        let type_id = NodeId::decode(&mut decoder).unwrap();
        assert_eq!(type_id, NodeId::numeric(0, T::ENCODING_ID), "{:?}", self.status());
        T::decode(&mut decoder).unwrap()
    }
}

/// See the module text.
pub(crate) struct Peer {
    pub(crate) raw: Raw,
    pub(crate) session: NodeId,
    next: u32,
}

impl Peer {
    /// With an anonymous session that lasts a minute, from 127.0.0.1.
    pub(crate) async fn new(server: &impl Reachable) -> Self {
        Self::from(server, Ipv4Addr::LOCALHOST).await
    }

    /// The same from another address.
    pub(crate) async fn from(server: &impl Reachable, source: Ipv4Addr) -> Self {
        Self::lasting(server, source, Duration::from_secs(60)).await
    }

    /// With a session timeout.
    pub(crate) async fn lasting(server: &impl Reachable, source: Ipv4Addr, timeout: Duration) -> Self {
        let mut raw = Raw::opened_from(server, source).await;
        let session = raw.create_session(server, timeout).await;
        raw.activate_session(&session).await;
        Self::of(raw, session)
    }

    /// With what is there already.
    pub(crate) fn of(raw: Raw, session: NodeId) -> Self {
        Self {
            raw,
            session,
            next: FIRST,
        }
    }

    /// The header of a request of the session. A hint of 0 is no hint.
    pub(crate) fn header(&self, request_handle: u32, timeout_hint: u32) -> RequestHeader {
        RequestHeader {
            authentication_token: self.session.clone(),
            request_handle,
            timeout_hint,
            ..RequestHeader::default()
        }
    }

    /// The bytes of a request with the next id, which comes with them. The header is taken as it is.
    pub(crate) fn bytes(&mut self, request: &impl Structure) -> (u32, Vec<u8>) {
        let id = self.next;
        self.next += 1;
        (id, self.raw.chunk(b"MSGF", id, &encode(request)))
    }

    /// Sends a request whose header is the session's, with its own handle and hint. Gives its id.
    pub(crate) async fn send<R: ServiceRequest>(&mut self, mut request: R) -> u32 {
        let own = std::mem::take(request.header_mut());
        *request.header_mut() = self.header(own.request_handle, own.timeout_hint);
        let (id, bytes) = self.bytes(&request);
        self.raw.send(&bytes).await;
        id
    }

    /// The next answer.
    pub(crate) async fn answer(&mut self) -> Answer {
        let (letters, fields) = self.raw.receive().await.expect("an answer");
        let at = Instant::now();
        assert_eq!(&letters, b"MSGF", "{fields:?}");
        let request = u32::from_le_bytes(fields[12..16].try_into().unwrap());
        Answer {
            request,
            at,
            body: fields[16..].to_vec(),
        }
    }

    /// So many answers.
    pub(crate) async fn answers(&mut self, count: usize) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(count);
        for _ in 0..count {
            answers.push(self.answer().await);
        }
        answers
    }

    /// Sends a request and takes the next answer, which is to that request.
    pub(crate) async fn ask<R: ServiceRequest>(&mut self, request: R) -> Answer {
        let id = self.send(request).await;
        let answer = self.answer().await;
        assert_eq!(answer.request, id, "another answer comes first: {:?}", answer.status());
        answer
    }

    /// Reads something that the server itself knows.
    pub(crate) async fn read_cached(&mut self) {
        let answer = self.ask(cached_read()).await;
        let response: ReadResponse = answer.decode();
        let [value] = response.results.as_slice() else {
            panic!("one result: {:?}", response.results)
        };
        assert!(matches!(value.value, Variant::Byte(255)), "ServiceLevel is {value:?}");
    }

    /// Cancels by handle; how many there were. Answers that come before that of Cancel are given too.
    pub(crate) async fn cancel(&mut self, request_handle: u32) -> (u32, Vec<Answer>) {
        let id = self
            .send(CancelRequest {
                request_handle,
                ..CancelRequest::default()
            })
            .await;
        let mut before = Vec::new();
        loop {
            let answer = self.answer().await;
            if answer.request == id {
                let response: CancelResponse = answer.decode();
                return (response.cancel_count, before);
            }
            before.push(answer);
        }
    }

    /// Closes the session, then the connection.
    pub(crate) async fn close(mut self) {
        let closed = self.ask(CloseSessionRequest::default()).await;
        assert_eq!(closed.status(), StatusCode::GOOD);
        self.raw.finish_sending().await;
    }

    /// The value of one node.
    pub(crate) async fn read(&mut self, node_id: NodeId) -> DataValue {
        let response: ReadResponse = self.ask(read_of(node_id)).await.decode();
        response.results.into_iter().next().expect("one result")
    }

    /// The index of a namespace, if the server has it.
    pub(crate) async fn namespace(&mut self, uri: &str) -> Option<u16> {
        let value = self
            .read(NodeId::numeric(0, ids::variable::SERVER_NAMESPACE_ARRAY))
            .await
            .value;
        let Variant::Array(array) = value else {
            panic!("NamespaceArray is {value:?}")
        };
        let ArrayValues::String(uris) = &array.values else {
            panic!("NamespaceArray is {array:?}")
        };
        let index = uris.iter().position(|known| known.text() == uri)?;
        Some(u16::try_from(index).unwrap())
    }
}

/// A Read that is answered in its own turn.
pub(crate) fn cached_read() -> ReadRequest {
    read_of(NodeId::numeric(0, ids::variable::SERVER_SERVICE_LEVEL))
}

/// A Read of one value.
pub(crate) fn read_of(node_id: NodeId) -> ReadRequest {
    let read = ReadValueId {
        node_id,
        attribute_id: AttributeId::VALUE.0,
        ..ReadValueId::default()
    };
    ReadRequest {
        nodes_to_read: vec![read],
        ..ReadRequest::default()
    }
}
