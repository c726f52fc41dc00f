//! A peer that may send anything: bytes by hand on a socket, without the channel that would keep it from doing wrong.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use backplane_types::{
    ActivateSessionRequest, ActivateSessionResponse, BinaryDecode, ByteString, CreateSessionRequest,
    CreateSessionResponse, DecodeLimits, Decoder, Encoder, MessageSecurityMode, NodeId, OpenSecureChannelRequest,
    OpenSecureChannelResponse, RequestHeader, SecurityTokenRequestType, StatusCode, Structure, UaString,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::{PATIENCE, Reachable};

/// The URI of the policy None.
const NONE: &[u8] = b"http://opcfoundation.org/UA/SecurityPolicy#None";

/// A message of the connection protocol: header and fields.
fn framed(letters: &[u8; 4], fields: &[u8]) -> Vec<u8> {
    let mut out = letters.to_vec();
    out.extend_from_slice(&u32::try_from(fields.len() + 8).unwrap().to_le_bytes());
    out.extend_from_slice(fields);
    out
}

fn with_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    let length = bytes.map_or(-1, |bytes| i32::try_from(bytes.len()).unwrap());
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(bytes.unwrap_or_default());
}

/// A Hello with these buffer sizes and this URL.
pub(crate) fn hello(buffer: u32, url: &[u8]) -> Vec<u8> {
    let mut fields = Vec::new();
    for number in [0, buffer, buffer, 0, 0] {
        fields.extend_from_slice(&number.to_le_bytes());
    }
    with_bytes(&mut fields, Some(url));
    framed(b"HELF", &fields)
}

/// An OpenSecureChannel chunk with these parts of its header; `None` for the policy None.
pub(crate) fn open_chunk(
    channel: u32,
    policy: Option<&[u8]>,
    certificate: Option<&[u8]>,
    sequence: u32,
    body: &[u8],
) -> Vec<u8> {
    let mut fields = channel.to_le_bytes().to_vec();
    with_bytes(&mut fields, Some(policy.unwrap_or(NONE)));
    with_bytes(&mut fields, certificate);
    with_bytes(&mut fields, None);
    fields.extend_from_slice(&sequence.to_le_bytes());
    fields.extend_from_slice(&1_u32.to_le_bytes());
    fields.extend_from_slice(body);
    framed(b"OPNF", &fields)
}

/// The body of an OpenSecureChannel request.
pub(crate) fn open_request(request_type: SecurityTokenRequestType, mode: MessageSecurityMode) -> Vec<u8> {
    let request = OpenSecureChannelRequest {
        request_type,
        security_mode: mode,
        client_nonce: ByteString::NULL,
        requested_lifetime: 3_600_000,
        ..OpenSecureChannelRequest::default()
    };
    super::body(&request)
}

/// A CreateSession request.
pub(crate) fn create_session(server: &impl Reachable, timeout: Duration) -> CreateSessionRequest {
    CreateSessionRequest {
        endpoint_url: server.url().as_str().into(),
        requested_session_timeout: timeout.as_secs_f64() * 1000.0,
        ..CreateSessionRequest::default()
    }
}

/// An ActivateSession request for an anonymous user.
pub(crate) fn activate_session(token: &NodeId) -> ActivateSessionRequest {
    ActivateSessionRequest {
        request_header: RequestHeader {
            authentication_token: token.clone(),
            ..RequestHeader::default()
        },
        ..ActivateSessionRequest::default()
    }
}

/// See the module text.
pub(crate) struct Raw {
    stream: TcpStream,
    pub(crate) channel: u32,
    pub(crate) token: u32,
    /// The number of the next chunk.
    pub(crate) sequence: u32,
}

impl Raw {
    pub(crate) async fn connect(server: &impl Reachable) -> Self {
        Self::connect_from(server, Ipv4Addr::LOCALHOST).await
    }

    /// Connected from one of the addresses of this machine, 127.0.0.0/8: to the server that is who it is.
    pub(crate) async fn connect_from(server: &impl Reachable, source: Ipv4Addr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((source, 0))).unwrap();
        let address = server.address().parse().unwrap();
        let connected = tokio::time::timeout(PATIENCE, socket.connect(address)).await;
        let stream = connected.expect("the server takes connections").unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            channel: 0,
            token: 0,
            sequence: 1,
        }
    }

    /// Says Hello and is greeted by the server.
    pub(crate) async fn greet(&mut self, server: &impl Reachable) {
        self.send(&hello(65_536, server.url().as_bytes())).await;
        let (letters, _) = self.receive().await.expect("an Acknowledge message");
        assert_eq!(&letters, b"ACKF");
    }

    /// Asks for a channel of the policy None.
    pub(crate) async fn send_open(&mut self) {
        let body = open_request(SecurityTokenRequestType::ISSUE, MessageSecurityMode::NONE);
        self.send(&open_chunk(0, None, None, 1, &body)).await;
    }

    /// Opens a channel of the policy None.
    pub(crate) async fn open(&mut self) {
        self.send_open().await;
        let (letters, fields) = self.receive().await.expect("an OpenSecureChannel response");
        assert_eq!(&letters, b"OPNF");
        let mut decoder = Decoder::new(&fields, DecodeLimits::DEFAULT);
        let mut read = || -> Result<OpenSecureChannelResponse, backplane_types::DecodeError> {
            decoder.u32()?;
            for _ in 0..3 {
                ByteString::decode(&mut decoder)?;
            }
            decoder.u64()?;
            assert_eq!(
                NodeId::decode(&mut decoder)?,
                NodeId::numeric(0, OpenSecureChannelResponse::ENCODING_ID)
            );
            OpenSecureChannelResponse::decode(&mut decoder)
        };
        let response = read().unwrap();
        self.channel = response.security_token.channel_id;
        self.token = response.security_token.token_id;
        self.sequence = 2;
    }

    /// Connected, and greeted by the server.
    pub(crate) async fn greeted(server: &impl Reachable) -> Self {
        let mut raw = Self::connect(server).await;
        raw.greet(server).await;
        raw
    }

    /// With a channel of the policy None.
    pub(crate) async fn opened(server: &impl Reachable) -> Self {
        Self::opened_from(server, Ipv4Addr::LOCALHOST).await
    }

    /// The same from another address.
    pub(crate) async fn opened_from(server: &impl Reachable, source: Ipv4Addr) -> Self {
        let mut raw = Self::connect_from(server, source).await;
        raw.greet(server).await;
        raw.open().await;
        raw
    }

    /// Creates a session on the open channel with request 1, and gives its token.
    pub(crate) async fn create_session(&mut self, server: &impl Reachable, timeout: Duration) -> NodeId {
        self.request(1, &encode(&create_session(server, timeout))).await;
        let created: CreateSessionResponse = self.response().await;
        created.authentication_token
    }

    /// Activates a session for an anonymous user with request 2.
    pub(crate) async fn activate_session(&mut self, token: &NodeId) {
        self.request(2, &encode(&activate_session(token))).await;
        let _: ActivateSessionResponse = self.response().await;
    }

    /// With a channel of the policy None and an anonymous session on it, whose token is given.
    pub(crate) async fn with_session(server: &impl Reachable) -> (Self, NodeId) {
        let mut raw = Self::opened(server).await;
        let token = raw.create_session(server, Duration::from_secs(60)).await;
        raw.activate_session(&token).await;
        (raw, token)
    }

    /// Ends the connection with RST: the server is told nothing but that it is over.
    pub(crate) fn reset(self) {
        self.stream.set_zero_linger().unwrap();
    }

    /// The next message, a response of that type.
    async fn response<T: Structure>(&mut self) -> T {
        let (letters, fields) = self.receive().await.expect("a response");
        assert_eq!(&letters, b"MSGF");
        let mut decoder = Decoder::new(&fields[16..], DecodeLimits::DEFAULT);
        assert_eq!(
            NodeId::decode(&mut decoder).unwrap(),
            NodeId::numeric(0, T::ENCODING_ID)
        );
        T::decode(&mut decoder).unwrap()
    }

    /// A chunk of a message with the next sequence number.
    pub(crate) fn chunk(&mut self, letters: &[u8; 4], request: u32, body: &[u8]) -> Vec<u8> {
        let mut fields = Vec::with_capacity(body.len() + 16);
        for number in [self.channel, self.token, self.sequence, request] {
            fields.extend_from_slice(&number.to_le_bytes());
        }
        self.sequence += 1;
        fields.extend_from_slice(body);
        framed(letters, &fields)
    }

    /// Appends `count` messages of one chunk with this body and the requests from `first` on: cheap, so that a client can outrun a server.
    pub(crate) fn pipeline(&mut self, first: u32, count: u32, body: &[u8], out: &mut Vec<u8>) {
        let size = u32::try_from(body.len() + 24).unwrap();
        for request in first..first + count {
            out.extend_from_slice(b"MSGF");
            for number in [size, self.channel, self.token, self.sequence, request] {
                out.extend_from_slice(&number.to_le_bytes());
            }
            out.extend_from_slice(body);
            self.sequence += 1;
        }
    }

    /// Sends bytes. A server that has closed the connection is no failure here: what it said is read afterwards.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        let _ = self.try_send(bytes).await;
    }

    /// Sends bytes; false when the connection is over.
    pub(crate) async fn try_send(&mut self, bytes: &[u8]) -> bool {
        let sent = tokio::time::timeout(PATIENCE, self.stream.write_all(bytes)).await;
        sent.expect("the server takes bytes").is_ok()
    }

    /// Sends as much as the server takes without anything being read here; gives the number of bytes. The server has stopped reading when
    /// nothing goes for a second.
    pub(crate) async fn fill(&mut self, bytes: &[u8]) -> usize {
        let mut sent = 0;
        while sent < bytes.len() {
            let part = &bytes[sent..];
            match tokio::time::timeout(Duration::from_secs(1), self.stream.write(part)).await {
                Ok(Ok(count)) => sent += count,
                Ok(Err(_)) | Err(_) => return sent,
            }
        }
        sent
    }

    /// Sends one message in one chunk.
    pub(crate) async fn request(&mut self, request: u32, body: &[u8]) {
        let chunk = self.chunk(b"MSGF", request, body);
        self.send(&chunk).await;
    }

    /// Says that nothing more will be sent.
    pub(crate) async fn finish_sending(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// The next message: its four letters and what follows the size. `None` at the end of the stream.
    pub(crate) async fn receive(&mut self) -> Option<([u8; 4], Vec<u8>)> {
        let read = async {
            let mut header = [0; 8];
            self.stream.read_exact(&mut header).await.ok()?;
            let [a, b, c, d, size @ ..] = header;
            let mut fields = vec![0; u32::from_le_bytes(size) as usize - 8];
            self.stream.read_exact(&mut fields).await.ok()?;
            Some(([a, b, c, d], fields))
        };
        tokio::time::timeout(PATIENCE, read)
            .await
            .expect("the server answers or closes")
    }

    /// Reads once from the socket and counts the messages that end with it. What is left of the last one is in `part`.
    pub(crate) async fn count_messages(&mut self, part: &mut Vec<u8>) -> usize {
        let read = tokio::time::timeout(PATIENCE, self.stream.read_buf(part)).await;
        assert_ne!(read.expect("the server answers").unwrap(), 0, "the server goes on");
        let (mut start, mut count) = (0, 0);
        while let Some(header) = part.get(start..start + 8) {
            assert_eq!(&header[..4], b"MSGF");
            let size = u32::from_le_bytes(header[4..].try_into().unwrap()) as usize;
            if part.len() < start + size {
                break;
            }
            start += size;
            count += 1;
        }
        part.drain(..start);
        part.reserve(64 * 1_024);
        count
    }

    /// The status of the ServiceFault that answers `request`.
    pub(crate) async fn fault(&mut self, request: u32) -> StatusCode {
        let (letters, fields) = self.receive().await.expect("a response");
        assert_eq!(&letters, b"MSGF", "{fields:?}");
        assert_eq!(fields[12..16], request.to_le_bytes(), "the answer to another request");
        super::fault_of(&fields[16..])
    }

    /// The code of the Error message that the server sends before it closes the connection; answers before it are skipped.
    pub(crate) async fn error(&mut self) -> Option<StatusCode> {
        while let Some((letters, fields)) = self.receive().await {
            if &letters == b"ERRF" {
                let mut decoder = Decoder::new(&fields, DecodeLimits::DEFAULT);
                let status = StatusCode(decoder.u32().unwrap());
                UaString::decode(&mut decoder).unwrap();
                assert_eq!(self.receive().await, None, "an Error message is the last one");
                return Some(status);
            }
        }
        None
    }
}

/// Type id and structure.
pub(super) fn encode<T: Structure>(request: &T) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out);
    encoder.put(&NodeId::numeric(0, T::ENCODING_ID));
    encoder.put(request);
    out
}
