//! The client against a small server made of the server end of the same channel crate, over a real socket.

#![allow(clippy::unwrap_used)]

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use backplane_channel::{
    ChannelEvidence, ChannelIds, ClientSecurity, Event, Limits, OwnIdentity, ServerChannel, ServerConfig,
};
use backplane_client::{Client, ClientError, Identity, Options, SessionOptions};
use backplane_crypto::{
    ApplicationCertificateRequest, Certificate, CertificateChain, SecurityPolicy, SystemRandom,
    create_application_certificate, decrypt_user_secret,
};
use backplane_types::{
    ActivateSessionRequest, ActivateSessionResponse, BinaryDecode, BinaryEncode, ByteString, CloseSessionResponse,
    CreateSessionRequest, CreateSessionResponse, DataValue, DateTime, DecodeLimits, Decoder, Encoder,
    EndpointDescription, GetEndpointsRequest, GetEndpointsResponse, MessageSecurityMode, NodeId, Now, ReadRequest,
    ReadResponse, ResponseHeader, ServiceFault, SignatureData, StatusCode, Structure, UserNameIdentityToken,
    UserTokenPolicy, UserTokenType, Variant,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const TOKEN: NodeId = NodeId::numeric(0, 4_711);
const NONCE: [u8; 32] = [7; 32];

fn identity(cell: &'static OnceLock<Arc<OwnIdentity>>, name: &str) -> Arc<OwnIdentity> {
    Arc::clone(cell.get_or_init(|| {
        let made = create_application_certificate(
            &ApplicationCertificateRequest {
                application_uri: format!("urn:backplane:test:{name}"),
                common_name: name.to_owned(),
                organization: String::new(),
                dns_names: vec!["localhost".to_owned()],
                ip_addresses: Vec::new(),
                key_bits: 2_048,
                not_before: DateTime::from_unix_nanos(1_790_000_000_000_000_000),
                validity: Duration::from_secs(365 * 86_400),
            },
            &mut SystemRandom,
        )
        .unwrap();
        Arc::new(OwnIdentity::new(made.private_key, made.certificate.der(), &[]))
    }))
}

fn server_identity() -> Arc<OwnIdentity> {
    static CELL: OnceLock<Arc<OwnIdentity>> = OnceLock::new();
    identity(&CELL, "server")
}

fn client_identity() -> Arc<OwnIdentity> {
    static CELL: OnceLock<Arc<OwnIdentity>> = OnceLock::new();
    identity(&CELL, "client")
}

fn securities() -> Vec<(SecurityPolicy, MessageSecurityMode)> {
    let mut all = vec![(SecurityPolicy::None, MessageSecurityMode::NONE)];
    for policy in SecurityPolicy::ALL.into_iter().skip(1) {
        all.push((policy, MessageSecurityMode::SIGN));
        all.push((policy, MessageSecurityMode::SIGN_AND_ENCRYPT));
    }
    all
}

/// Serves connections until the runtime ends; returns the URL.
async fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("opc.tcp://{}", listener.local_addr().unwrap());
    let ids = Arc::new(ChannelIds::starting_at(1));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let ids = Arc::clone(&ids);
            tokio::spawn(connection(stream, ids));
        }
    });
    url
}

async fn connection(mut stream: TcpStream, ids: Arc<ChannelIds>) {
    let start = Instant::now();
    let now = || {
        Now::new(
            start.elapsed(),
            DateTime::from_system_time(std::time::SystemTime::now()),
        )
    };
    let config = ServerConfig {
        limits: Limits::default(),
        allowed: securities(),
    };
    let mut channel = ServerChannel::new(Arc::new(config), ids, now());
    let (mut input, mut filled, mut out) = (vec![0; 65_536], 0, Vec::new());
    loop {
        let got = stream.read(&mut input[filled..]).await.unwrap_or(0);
        if got == 0 {
            return;
        }
        filled += got;
        let mut at = 0;
        loop {
            let (consumed, event) = channel.handle_input(now(), &mut input[at..filled], &mut out);
            at += consumed;
            match event {
                Event::NeedMore { .. } | Event::Opening => break,
                Event::Open(work) => {
                    let trust = |_: &CertificateChain, _: SecurityPolicy, _: DateTime| Ok(());
                    let outcome = work.run(&server_identity(), &trust, &mut SystemRandom);
                    if channel.handle_opened(now(), outcome, &mut out).is_err() {
                        break;
                    }
                }
                Event::Message { request_id, body } => {
                    let evidence = Arc::clone(channel.evidence().unwrap());
                    if let Some(answer) = answer(&body, &evidence) {
                        channel.send(now(), request_id, &answer, &mut out).unwrap();
                    }
                }
                Event::Closed(_) => {
                    stream.write_all(&out).await.unwrap_or(());
                    return;
                }
                Event::Progress | Event::Aborted { .. } => {}
            }
        }
        input.copy_within(at..filled, 0);
        filled -= at;
        stream.write_all(&out).await.unwrap_or(());
        out.clear();
    }
}

fn endpoints() -> Vec<EndpointDescription> {
    securities()
        .into_iter()
        .map(|(policy, mode)| EndpointDescription {
            server_certificate: server_identity().certificate().clone(),
            security_mode: mode,
            security_policy_uri: policy.uri().into(),
            user_identity_tokens: vec![
                UserTokenPolicy {
                    policy_id: "anonymous".into(),
                    token_type: UserTokenType::ANONYMOUS,
                    ..UserTokenPolicy::default()
                },
                UserTokenPolicy {
                    policy_id: "username".into(),
                    token_type: UserTokenType::USER_NAME,
                    // Over None a policy of its own protects the password.
                    security_policy_uri: if policy.is_none() {
                        SecurityPolicy::Basic256Sha256.uri().into()
                    } else {
                        None::<&str>.into()
                    },
                    ..UserTokenPolicy::default()
                },
            ],
            ..EndpointDescription::default()
        })
        .collect()
}

fn encode<T: Structure>(message: &T) -> Vec<u8> {
    let mut body = Vec::new();
    let mut encoder = Encoder::new(&mut body);
    NodeId::numeric(0, T::ENCODING_ID).encode(&mut encoder);
    message.encode(&mut encoder);
    body
}

fn good(handle: u32) -> ResponseHeader {
    ResponseHeader {
        request_handle: handle,
        ..ResponseHeader::default()
    }
}

fn fault(status: StatusCode) -> Vec<u8> {
    encode(&ServiceFault {
        response_header: ResponseHeader {
            service_result: status,
            ..good(0)
        },
    })
}

/// The response body; none for a Read that asks for nothing, which is never answered.
fn answer(body: &[u8], evidence: &ChannelEvidence) -> Option<Vec<u8>> {
    let mut d = Decoder::new(body, DecodeLimits::DEFAULT);
    let type_id = NodeId::decode(&mut d).unwrap();
    let is = |id: u32| type_id == NodeId::numeric(0, id);
    Some(if is(GetEndpointsRequest::ENCODING_ID) {
        let request = GetEndpointsRequest::decode(&mut d).unwrap();
        encode(&GetEndpointsResponse {
            response_header: good(request.request_header.request_handle),
            endpoints: endpoints(),
        })
    } else if is(CreateSessionRequest::ENCODING_ID) {
        create_session(&CreateSessionRequest::decode(&mut d).unwrap(), evidence)
    } else if is(ActivateSessionRequest::ENCODING_ID) {
        activate_session(&ActivateSessionRequest::decode(&mut d).unwrap(), evidence)
    } else if is(ReadRequest::ENCODING_ID) {
        let request = ReadRequest::decode(&mut d).unwrap();
        if request.request_header.authentication_token != TOKEN {
            return Some(fault(StatusCode::BAD_SESSION_ID_INVALID));
        }
        if request.max_age < 0.0 {
            return None;
        }
        // The text comes back as long as the age says.
        let text = "x".repeat(request.max_age as usize);
        let value = DataValue {
            value: Variant::from(text.as_str()),
            ..DataValue::default()
        };
        encode(&ReadResponse {
            response_header: good(request.request_header.request_handle),
            results: vec![value],
            ..ReadResponse::default()
        })
    } else if is(backplane_types::CloseSessionRequest::ENCODING_ID) {
        encode(&CloseSessionResponse {
            response_header: good(0),
        })
    } else {
        fault(StatusCode::BAD_SERVICE_UNSUPPORTED)
    })
}

fn create_session(request: &CreateSessionRequest, evidence: &ChannelEvidence) -> Vec<u8> {
    let parameters = evidence.policy.parameters();
    let parts = [request.client_certificate.bytes(), request.client_nonce.bytes()];
    let signature = server_identity()
        .private_key()
        .sign(parameters.asymmetric_signature, &parts, &mut SystemRandom)
        .unwrap();
    encode(&CreateSessionResponse {
        response_header: good(request.request_header.request_handle),
        session_id: NodeId::numeric(1, 1),
        authentication_token: TOKEN,
        server_nonce: ByteString::from(&NONCE),
        server_certificate: server_identity().certificate().clone(),
        server_endpoints: endpoints(),
        server_signature: SignatureData {
            algorithm: parameters.asymmetric_signature_uri.into(),
            signature: signature.into(),
        },
        ..CreateSessionResponse::default()
    })
}

fn activate_session(request: &ActivateSessionRequest, evidence: &ChannelEvidence) -> Vec<u8> {
    if request.request_header.authentication_token != TOKEN {
        return fault(StatusCode::BAD_SESSION_ID_INVALID);
    }
    if !evidence.policy.is_none() {
        let client = Certificate::parse(evidence.client_certificate.bytes()).unwrap();
        let signed = client.public_key().unwrap().verify(
            evidence.policy.parameters().asymmetric_signature,
            &[server_identity().certificate().bytes(), &NONCE],
            request.client_signature.signature.bytes(),
        );
        if signed.is_err() {
            return fault(StatusCode::BAD_APPLICATION_SIGNATURE_INVALID);
        }
    }
    if let Ok(token) = request.user_identity_token.decode_as::<UserNameIdentityToken>() {
        let policy = if evidence.policy.is_none() {
            SecurityPolicy::Basic256Sha256
        } else {
            evidence.policy
        };
        assert_eq!(
            token.encryption_algorithm,
            policy.parameters().asymmetric_encryption_uri
        );
        let secret = decrypt_user_secret(
            server_identity().private_key(),
            policy,
            token.password.bytes(),
            &NONCE,
            &mut SystemRandom,
        );
        if token.user_name != "operator" || secret.unwrap().as_slice() != b"secret" {
            return fault(StatusCode::BAD_USER_ACCESS_DENIED);
        }
    }
    encode(&ActivateSessionResponse {
        server_nonce: ByteString::from(&NONCE),
        ..ActivateSessionResponse::default()
    })
}

fn options(url: &str, policy: SecurityPolicy, mode: MessageSecurityMode) -> Options {
    let options = Options::new(url);
    if policy.is_none() {
        return options;
    }
    options.secured(ClientSecurity {
        policy,
        mode,
        own: client_identity(),
        server_certificate: server_identity().certificate().clone(),
    })
}

fn user(password: &str) -> Identity {
    Identity::UserName {
        user: "operator".to_owned(),
        password: password.to_owned(),
    }
}

async fn read(client: &Client, length: u32) -> Result<usize, ClientError> {
    let response = client
        .call(ReadRequest {
            max_age: f64::from(length),
            ..ReadRequest::default()
        })
        .await?;
    let Variant::String(text) = &response.results[0].value else {
        panic!("{response:?}")
    };
    Ok(text.text().len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_in_every_policy_and_mode() {
    let url = serve().await;
    for (policy, mode) in securities() {
        let client = Client::connect(options(&url, policy, mode)).await.unwrap();
        let no_session = read(&client, 1).await.unwrap_err();
        assert_eq!(no_session.status(), Some(StatusCode::BAD_SESSION_ID_INVALID));
        client
            .open_session(SessionOptions::default(), &Identity::Anonymous)
            .await
            .unwrap();
        assert_eq!(read(&client, 10).await.unwrap(), 10);
        client.activate_session(&user("secret")).await.unwrap();
        let denied = client.activate_session(&user("guess")).await.unwrap_err();
        assert_eq!(denied.status(), Some(StatusCode::BAD_USER_ACCESS_DENIED));
        for _ in 0..3 {
            client.renew().await.unwrap();
            assert_eq!(read(&client, 200_000).await.unwrap(), 200_000);
        }
        client.close_session(true).await.unwrap();
        assert!(client.session_id().is_none());
        client.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_requests_are_under_way_at_once_across_renewals() {
    let url = serve().await;
    let (policy, mode) = (SecurityPolicy::Basic256Sha256, MessageSecurityMode::SIGN_AND_ENCRYPT);
    let client = Arc::new(Client::connect(options(&url, policy, mode)).await.unwrap());
    client
        .open_session(SessionOptions::default(), &Identity::Anonymous)
        .await
        .unwrap();
    let mut tasks = Vec::new();
    for index in 0..100_u32 {
        let client = Arc::clone(&client);
        tasks.push(tokio::spawn(async move {
            for round in 0..20 {
                if index == 0 && round % 5 == 0 {
                    client.renew().await.unwrap();
                }
                assert_eq!(read(&client, index * 10).await.unwrap(), index as usize * 10);
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn discovery_lists_the_endpoints() {
    let url = serve().await;
    assert_eq!(Client::discover(&url).await.unwrap().len(), securities().len());
}

#[tokio::test]
async fn a_request_that_is_never_answered_times_out_and_the_next_is_good() {
    let url = serve().await;
    let mut options = Options::new(&url);
    options.call_timeout = Duration::from_millis(200);
    let client = Client::connect(options).await.unwrap();
    client
        .open_session(SessionOptions::default(), &Identity::Anonymous)
        .await
        .unwrap();
    let unanswered = client
        .call(ReadRequest {
            max_age: -1.0,
            ..ReadRequest::default()
        })
        .await;
    assert!(matches!(unanswered, Err(ClientError::Timeout)));
    assert_eq!(read(&client, 5).await.unwrap(), 5);
}

#[tokio::test]
async fn a_refused_channel_says_why() {
    let url = serve().await;
    let mut wrong = options(&url, SecurityPolicy::Basic256Sha256, MessageSecurityMode::SIGN);
    // Encrypted for a key that is not the server's.
    if let Some(security) = &mut wrong.security {
        security.server_certificate = client_identity().certificate().clone();
    }
    let error = Client::connect(wrong).await.unwrap_err();
    assert_eq!(error.status(), Some(StatusCode::BAD_CERTIFICATE_INVALID), "{error}");
    let nobody = Client::connect(Options::new("opc.tcp://127.0.0.1:1"))
        .await
        .unwrap_err();
    assert!(matches!(nobody, ClientError::Io(_)));
}
