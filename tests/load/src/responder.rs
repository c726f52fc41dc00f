//! A server inside the test process: sessions, a few services, and misbehaviour on demand. Owns its threads, which end with their sockets.
//!
//! A Publish request is answered with the values of all items at once, after a short time. The values of `c0`, `c1`, ... are the ms since the
//! start, as if they were sampled each ms.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backplane_channel::{ChannelIds, Event, Limits, OwnIdentity, ServerChannel, ServerConfig};
use backplane_client::ServiceRequest;
use backplane_crypto::{
    ApplicationCertificateRequest, CertificateChain, SecurityPolicy, SystemRandom, create_application_certificate,
};
use backplane_types::{
    ActivateSessionRequest, ActivateSessionResponse, Array, ArrayValues, BinaryDecode, BinaryEncode, BrowseRequest,
    BrowseResponse, BrowseResult, ByteString, CreateMonitoredItemsRequest, CreateMonitoredItemsResponse,
    CreateSessionRequest, CreateSessionResponse, CreateSubscriptionRequest, CreateSubscriptionResponse,
    DataChangeNotification, DataValue, DateTime, DecodeLimits, Decoder, Encoder, EndpointDescription, ExtensionObject,
    GetEndpointsRequest, GetEndpointsResponse, MessageSecurityMode, MonitoredItemCreateResult,
    MonitoredItemNotification, NodeId, NotificationMessage, PublishRequest, PublishResponse, ReadRequest, ReadResponse,
    ReferenceDescription, ResponseHeader, ServiceFault, StatusCode, Structure, UserTokenPolicy, UserTokenType, Variant,
    WriteRequest, WriteResponse, ids,
};

use crate::clock::Clock;

/// What goes wrong, after a number of Reads on one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Misdeeds {
    /// This Read answers with a bad value.
    pub(crate) bad_value_at: Option<u32>,
    /// This Read closes the connection.
    pub(crate) close_at: Option<u32>,
    /// This Read is never answered.
    pub(crate) silent_at: Option<u32>,
    /// All counters stand still.
    pub(crate) stuck: bool,
}

/// Serves until the process ends; returns the URL.
pub(crate) fn serve(misdeeds: Misdeeds) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("opc.tcp://{}/", listener.local_addr().unwrap());
    let identity = identity();
    let ids = Arc::new(ChannelIds::starting_at(1));
    let written = Arc::new(Mutex::new(HashMap::new()));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let responder = Responder {
                identity: Arc::clone(&identity),
                misdeeds,
                reads: 0,
                written: Arc::clone(&written),
                items: Vec::new(),
                clock: Clock::new(),
            };
            let ids = Arc::clone(&ids);
            std::thread::spawn(move || responder.run(stream.unwrap(), ids));
        }
    });
    url
}

fn identity() -> Arc<OwnIdentity> {
    let request = ApplicationCertificateRequest {
        application_uri: "urn:backplane:load:responder".to_owned(),
        common_name: "responder".to_owned(),
        organization: String::new(),
        dns_names: vec!["localhost".to_owned()],
        ip_addresses: Vec::new(),
        key_bits: 2_048,
        not_before: Clock::new().now().utc,
        validity: Duration::from_secs(86_400),
    };
    let made = create_application_certificate(&request, &mut SystemRandom).unwrap();
    Arc::new(OwnIdentity::new(made.private_key, made.certificate.der(), &[]))
}

const SECURITIES: [(SecurityPolicy, MessageSecurityMode); 3] = [
    (SecurityPolicy::None, MessageSecurityMode::NONE),
    (SecurityPolicy::Basic256Sha256, MessageSecurityMode::SIGN),
    (SecurityPolicy::Basic256Sha256, MessageSecurityMode::SIGN_AND_ENCRYPT),
];

struct Responder {
    identity: Arc<OwnIdentity>,
    misdeeds: Misdeeds,
    reads: u32,
    written: Arc<Mutex<HashMap<NodeId, Variant>>>,
    /// Client handle and node of each item.
    items: Vec<(u32, NodeId)>,
    clock: Clock,
}

/// What a request leads to.
enum Answer {
    Send(Vec<u8>),
    Nothing,
    Close,
}

impl Responder {
    fn run(mut self, mut stream: TcpStream, ids: Arc<ChannelIds>) {
        let clock = Clock::new();
        let config = ServerConfig {
            limits: Limits::default(),
            allowed: SECURITIES.into(),
        };
        let mut channel = ServerChannel::new(Arc::new(config), ids, clock.now());
        let (mut input, mut filled, mut out) = (vec![0; 1 << 20], 0, Vec::new());
        loop {
            match stream.read(&mut input[filled..]) {
                Ok(0) | Err(_) => return,
                Ok(got) => filled += got,
            }
            let mut at = 0;
            loop {
                let (consumed, event) = channel.handle_input(clock.now(), &mut input[at..filled], &mut out);
                at += consumed;
                match event {
                    Event::NeedMore { .. } | Event::Opening => break,
                    Event::Open(work) => {
                        let trust = |_: &CertificateChain, _: SecurityPolicy, _: DateTime| Ok(());
                        let outcome = work.run(&self.identity, &trust, &mut SystemRandom);
                        channel.handle_opened(clock.now(), outcome, &mut out).unwrap();
                        channel.set_limits_authenticated();
                    }
                    Event::Message { request_id, body } => match self.answer(&body) {
                        Answer::Send(answer) => channel.send(clock.now(), request_id, &answer, &mut out).unwrap(),
                        Answer::Nothing => {}
                        Answer::Close => return,
                    },
                    Event::Closed(_) => return,
                    Event::Progress | Event::Aborted { .. } => {}
                }
            }
            input.copy_within(at..filled, 0);
            filled -= at;
            if stream.write_all(&out).is_err() {
                return;
            }
            out.clear();
        }
    }

    fn answer(&mut self, body: &[u8]) -> Answer {
        let mut decoder = Decoder::new(body, DecodeLimits::DEFAULT);
        let type_id = NodeId::decode(&mut decoder).unwrap();
        let is = |id: u32| type_id == NodeId::numeric(0, id);
        let d = &mut decoder;
        Answer::Send(if is(GetEndpointsRequest::ENCODING_ID) {
            encode(&GetEndpointsResponse {
                response_header: good::<GetEndpointsRequest>(d).1,
                endpoints: self.endpoints(),
            })
        } else if is(CreateSessionRequest::ENCODING_ID) {
            encode(&CreateSessionResponse {
                response_header: good::<CreateSessionRequest>(d).1,
                authentication_token: NodeId::numeric(1, 77),
                server_nonce: ByteString::from(&[7; 32]),
                server_certificate: self.identity.certificate().clone(),
                server_endpoints: self.endpoints(),
                ..CreateSessionResponse::default()
            })
        } else if is(ActivateSessionRequest::ENCODING_ID) {
            encode(&ActivateSessionResponse {
                response_header: good::<ActivateSessionRequest>(d).1,
                ..ActivateSessionResponse::default()
            })
        } else if is(ReadRequest::ENCODING_ID) {
            return self.read(d);
        } else if is(WriteRequest::ENCODING_ID) {
            let (request, response_header) = good::<WriteRequest>(d);
            let mut written = self.written.lock().unwrap();
            for write in &request.nodes_to_write {
                written.insert(write.node_id.clone(), write.value.value.clone());
            }
            encode(&WriteResponse {
                response_header,
                results: vec![StatusCode::GOOD; request.nodes_to_write.len()],
                ..WriteResponse::default()
            })
        } else if is(BrowseRequest::ENCODING_ID) {
            let (request, response_header) = good::<BrowseRequest>(d);
            let result = BrowseResult {
                references: vec![ReferenceDescription::default(); 12],
                ..BrowseResult::default()
            };
            encode(&BrowseResponse {
                response_header,
                results: vec![result; request.nodes_to_browse.len()],
                ..BrowseResponse::default()
            })
        } else {
            return self.answer_subscription(&type_id, d);
        })
    }

    fn answer_subscription(&mut self, type_id: &NodeId, d: &mut Decoder<'_>) -> Answer {
        let is = |id: u32| *type_id == NodeId::numeric(0, id);
        Answer::Send(if is(CreateSubscriptionRequest::ENCODING_ID) {
            let (request, response_header) = good::<CreateSubscriptionRequest>(d);
            encode(&CreateSubscriptionResponse {
                response_header,
                subscription_id: 5,
                revised_publishing_interval: request.requested_publishing_interval,
                ..CreateSubscriptionResponse::default()
            })
        } else if is(CreateMonitoredItemsRequest::ENCODING_ID) {
            let (request, response_header) = good::<CreateMonitoredItemsRequest>(d);
            let items = request.items_to_create.iter();
            self.items.extend(items.map(|item| {
                (
                    item.requested_parameters.client_handle,
                    item.item_to_monitor.node_id.clone(),
                )
            }));
            encode(&CreateMonitoredItemsResponse {
                response_header,
                results: vec![MonitoredItemCreateResult::default(); request.items_to_create.len()],
                ..CreateMonitoredItemsResponse::default()
            })
        } else if is(PublishRequest::ENCODING_ID) {
            let (_, response_header) = good::<PublishRequest>(d);
            encode(&self.publish(response_header))
        } else {
            encode(&ServiceFault {
                response_header: ResponseHeader {
                    service_result: StatusCode::BAD_SERVICE_UNSUPPORTED,
                    ..ResponseHeader::default()
                },
            })
        })
    }

    /// The value of a counter; none for other nodes.
    fn count(&self, node: &NodeId) -> Option<Variant> {
        if !node.to_string().contains("s=c") {
            return None;
        }
        let count = if self.misdeeds.stuck {
            1
        } else {
            self.clock.elapsed().as_millis()
        };
        Some(Variant::UInt64(count.try_into().unwrap()))
    }

    fn publish(&self, response_header: ResponseHeader) -> PublishResponse {
        std::thread::sleep(Duration::from_millis(2));
        let written = self.written.lock().unwrap();
        let value = |node: &NodeId| {
            if let Some(count) = self.count(node) {
                return count;
            }
            written.get(node).cloned().unwrap_or(Variant::Int32(1))
        };
        let item = |(client_handle, node): &(u32, NodeId)| MonitoredItemNotification {
            client_handle: *client_handle,
            value: DataValue::new(value(node)),
        };
        let data = DataChangeNotification {
            monitored_items: self.items.iter().map(item).collect(),
            ..DataChangeNotification::default()
        };
        PublishResponse {
            response_header,
            subscription_id: 5,
            notification_message: NotificationMessage {
                sequence_number: 1,
                notification_data: vec![ExtensionObject::from_structure(&data)],
                ..NotificationMessage::default()
            },
            ..PublishResponse::default()
        }
    }

    fn read(&mut self, decoder: &mut Decoder<'_>) -> Answer {
        let (request, response_header) = good::<ReadRequest>(decoder);
        self.reads += 1;
        let now = Some(self.reads);
        if now == self.misdeeds.close_at {
            return Answer::Close;
        }
        if now == self.misdeeds.silent_at {
            return Answer::Nothing;
        }
        let bad = now == self.misdeeds.bad_value_at;
        let value = |node: &NodeId| {
            if *node == NodeId::numeric(0, ids::variable::SERVER_NAMESPACE_ARRAY) {
                let uris = ["http://opcfoundation.org/UA/", "urn:x", "urn:backplane:load"].map(Into::into);
                return DataValue::new(Variant::Array(Box::new(Array::new(ArrayValues::String(uris.into())))));
            }
            DataValue {
                status: bad.then_some(StatusCode::BAD_NO_COMMUNICATION),
                source_timestamp: Some(DateTime::from_unix_nanos(1_790_000_000_000_000_000)),
                ..DataValue::new(self.count(node).unwrap_or(Variant::Int32(1)))
            }
        };
        Answer::Send(encode(&ReadResponse {
            response_header,
            results: request.nodes_to_read.iter().map(|read| value(&read.node_id)).collect(),
            ..ReadResponse::default()
        }))
    }

    fn endpoints(&self) -> Vec<EndpointDescription> {
        let anonymous = UserTokenPolicy {
            policy_id: "a".into(),
            token_type: UserTokenType::ANONYMOUS,
            ..UserTokenPolicy::default()
        };
        let endpoint = |(policy, mode): (SecurityPolicy, MessageSecurityMode)| EndpointDescription {
            server_certificate: self.identity.certificate().clone(),
            security_mode: mode,
            security_policy_uri: policy.uri().into(),
            user_identity_tokens: vec![anonymous.clone()],
            ..EndpointDescription::default()
        };
        SECURITIES.map(endpoint).into()
    }
}

/// Decodes a request; returns it with the header of a good response.
fn good<R: ServiceRequest + BinaryDecode>(decoder: &mut Decoder<'_>) -> (R, ResponseHeader) {
    let mut request = R::decode(decoder).unwrap();
    let header = ResponseHeader {
        request_handle: request.header_mut().request_handle,
        ..ResponseHeader::default()
    };
    (request, header)
}

fn encode<T: Structure>(message: &T) -> Vec<u8> {
    let mut body = Vec::new();
    let mut encoder = Encoder::new(&mut body);
    NodeId::numeric(0, T::ENCODING_ID).encode(&mut encoder);
    message.encode(&mut encoder);
    body
}
