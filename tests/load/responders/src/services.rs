//! The services a client calls before and after it reads: GetEndpoints, CreateSession, ActivateSession, CloseSession.
//!
//! Nothing is remembered of a session: every request gets an answer, whatever token it carries. All of it is written with
//! `backplane-types`, because all of it is rare.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use backplane_types::{
    ActivateSessionRequest, ActivateSessionResponse, ApplicationDescription, ApplicationType, Array, ArrayValues,
    BinaryDecode, BinaryEncode, ByteString, CloseSessionRequest, CloseSessionResponse, CreateSessionRequest,
    CreateSessionResponse, DateTime, DecodeError, DecodeLimits, Decoder, Encoder, EndpointDescription,
    GetEndpointsRequest, GetEndpointsResponse, LocalizedText, MessageSecurityMode, NodeId, RequestHeader, ServerState,
    StatusCode, Structure, UserTokenPolicy, UserTokenType, Variant,
};

use crate::channel::{Message, Reply, response_header};

/// The namespace of the nodes `v0`, `v1`, ...
pub const NAMESPACE: &str = "urn:backplane:load";
/// Its index.
pub const NAMESPACE_INDEX: u16 = 2;

const BASE_NAMESPACE: &str = "http://opcfoundation.org/UA/";
const APPLICATION: &str = "urn:backplane:responder";
const POLICY_NONE: &str = "http://opcfoundation.org/UA/SecurityPolicy#None";
const BINARY: &str = "http://opcfoundation.org/UA-Profile/Transport/uatcp-uasc-uabinary";

/// Bytes of an authentication token, as many as of a server that means it.
const TOKEN: usize = 32;

static NEXT_SESSION: AtomicU32 = AtomicU32::new(1);

/// Answers the services around a session.
#[derive(Clone, Debug)]
pub struct Services {
    endpoints: Arc<[EndpointDescription]>,
}

impl Services {
    /// For a server that is reached at `url`.
    #[must_use]
    pub fn new(url: &str) -> Self {
        let server = ApplicationDescription {
            application_uri: APPLICATION.into(),
            product_uri: APPLICATION.into(),
            application_name: LocalizedText::plain("responder"),
            application_type: ApplicationType::SERVER,
            discovery_urls: vec![url.into()],
            ..ApplicationDescription::default()
        };
        let endpoint = EndpointDescription {
            endpoint_url: url.into(),
            server,
            security_mode: MessageSecurityMode::NONE,
            security_policy_uri: POLICY_NONE.into(),
            user_identity_tokens: vec![UserTokenPolicy {
                policy_id: "anonymous".into(),
                token_type: UserTokenType::ANONYMOUS,
                ..UserTokenPolicy::default()
            }],
            transport_profile_uri: BINARY.into(),
            ..EndpointDescription::default()
        };
        Self {
            endpoints: [endpoint].into(),
        }
    }

    /// Answers a request that is not a Read. Services that are none of these get a ServiceFault with BadServiceUnsupported, bodies that
    /// cannot be read one with BadDecodingError.
    pub fn answer(&self, message: Message<'_>, reply: &mut Reply<'_>) {
        if self.known(message, reply).is_err() {
            fault(message.now, 0, StatusCode::BAD_DECODING_ERROR, reply);
        }
    }

    fn known(&self, message: Message<'_>, reply: &mut Reply<'_>) -> Result<(), DecodeError> {
        let now = message.now;
        let mut decoder = Decoder::new(message.body, DecodeLimits::DEFAULT);
        let type_id = NodeId::decode(&mut decoder)?.as_standard().unwrap_or(0);
        match type_id {
            GetEndpointsRequest::ENCODING_ID => {
                let request = GetEndpointsRequest::decode(&mut decoder)?;
                let response = GetEndpointsResponse {
                    response_header: response_header(now, request.request_header.request_handle),
                    endpoints: self.endpoints.to_vec(),
                };
                put(&response, reply);
            }
            CreateSessionRequest::ENCODING_ID => {
                let request = CreateSessionRequest::decode(&mut decoder)?;
                put(&self.create_session(&request, now), reply);
            }
            ActivateSessionRequest::ENCODING_ID => {
                let request = ActivateSessionRequest::decode(&mut decoder)?;
                let response = ActivateSessionResponse {
                    response_header: response_header(now, request.request_header.request_handle),
                    server_nonce: nonce(),
                    ..ActivateSessionResponse::default()
                };
                put(&response, reply);
            }
            CloseSessionRequest::ENCODING_ID => {
                let request = CloseSessionRequest::decode(&mut decoder)?;
                let response = CloseSessionResponse {
                    response_header: response_header(now, request.request_header.request_handle),
                };
                put(&response, reply);
            }
            _ => {
                let header = RequestHeader::decode(&mut decoder)?;
                fault(now, header.request_handle, StatusCode::BAD_SERVICE_UNSUPPORTED, reply);
            }
        }
        Ok(())
    }

    fn create_session(&self, request: &CreateSessionRequest, now: DateTime) -> CreateSessionResponse {
        let number = NEXT_SESSION.fetch_add(1, Ordering::Relaxed);
        let mut token = [0; TOKEN];
        if let Some(place) = token.first_chunk_mut() {
            *place = number.to_le_bytes();
        }
        CreateSessionResponse {
            response_header: response_header(now, request.request_header.request_handle),
            session_id: NodeId::numeric(1, number),
            authentication_token: NodeId::opaque(0, token.as_slice()),
            revised_session_timeout: request.requested_session_timeout,
            server_nonce: nonce(),
            server_endpoints: self.endpoints.to_vec(),
            ..CreateSessionResponse::default()
        }
    }
}

/// The nodes of namespace 0 that clients read when they connect, with their Variants as bytes: ServerArray, NamespaceArray and
/// ServerStatus.State.
pub(crate) fn standard_values() -> [(u32, Vec<u8>); 3] {
    let strings = |texts: &[&str]| {
        let texts = texts.iter().map(|text| (*text).into()).collect();
        Variant::Array(Box::new(Array::new(ArrayValues::String(texts))))
    };
    [
        (2_254, strings(&[APPLICATION])),
        (2_255, strings(&[BASE_NAMESPACE, APPLICATION, NAMESPACE])),
        (2_259, Variant::Int32(ServerState::RUNNING.0)),
    ]
    .map(|(id, value)| {
        let mut bytes = Vec::new();
        value.encode(&mut Encoder::new(&mut bytes));
        (id, bytes)
    })
}

/// Appends a ServiceFault instead of what `reply` holds.
pub(crate) fn fault(now: DateTime, request_handle: u32, status: StatusCode, reply: &mut Reply<'_>) {
    reply.clear();
    reply.encoder().service_fault(now, request_handle, status);
}

fn put<T: Structure>(response: &T, reply: &mut Reply<'_>) {
    let mut encoder = reply.encoder();
    NodeId::numeric(0, T::ENCODING_ID).encode(&mut encoder);
    response.encode(&mut encoder);
}

/// Of the right length, and of no use: the policy is None.
fn nonce() -> ByteString {
    [0x5A; 32].as_slice().into()
}
