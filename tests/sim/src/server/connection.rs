//! One connection of the server: its channel, its input, its output, and the services that are answered in its own turn.

use std::sync::Arc;

use backplane_channel::{Event, ServerChannel};
use backplane_nodes::Caller;
use backplane_nodes::services::{self, Progress, ServiceContext};
use backplane_session::{ChannelId, ChannelInfo, Identity, SessionParameters, ValidatedSession, VerifiedUser};
use backplane_types::service::RequestKind;
use backplane_types::view::RequestPeek;
use backplane_types::{
    ActivateSessionResponse, CloseSessionRequest, CloseSessionResponse, CreateSessionRequest, CreateSessionResponse,
    DecodeLimits, Encoder, NodeId, Now, StatusCode,
};

use super::respond::{Context, encoded};
use super::serve::{Work, decode};
use super::shard::{Command, ReplyTo};
use super::source::call_context;
use super::{Server, status_of};
use crate::log::{Log, Rule};
use crate::plant::Plant;
use crate::settings::{MAX_WAITING, REQUEST_TIMEOUT};

/// Longest response body of a service on nodes.
pub(crate) const MAX_RESPONSE: usize = 1 << 20;

/// See the module text.
pub(crate) struct Connection {
    pub(crate) channel: ServerChannel,
    inbox: Vec<u8>,
    pub(crate) out: Vec<u8>,
    /// Nothing more comes or goes once the output is written.
    pub(crate) is_over: bool,
}

impl Connection {
    pub(crate) fn new(channel: ServerChannel) -> Self {
        Self {
            channel,
            inbox: Vec::new(),
            out: Vec::new(),
            is_over: false,
        }
    }

    pub(crate) fn send(&mut self, log: &mut Log, now: Now, request_id: u32, message: &[u8]) {
        if let Err(error) = self.channel.send(now, request_id, message, &mut self.out) {
            log.broken(
                Rule::Answers,
                format_args!("response {request_id} cannot be sent: {error}"),
            );
        }
    }
}

/// Swaps the last two messages, if there are two.
pub(crate) fn swap_chunks(out: &mut [u8]) {
    let mut starts = Vec::new();
    let mut at = 0;
    while let Some(size) = out
        .get(at + 4..at + 8)
        .and_then(|bytes| <[u8; 4]>::try_from(bytes).ok())
    {
        starts.push(at);
        at += (u32::from_le_bytes(size) as usize).max(8);
    }
    if let [.., first, second] = starts.as_slice()
        && out.get(*first..*first + 3) == Some(b"MSG")
        && out.get(*second..*second + 3) == Some(b"MSG")
    {
        let length = out.len() - second;
        if let Some(pair) = out.get_mut(*first..) {
            pair.rotate_right(length);
        }
    }
}

impl Server {
    /// Takes bytes of a client. True when the connection is over.
    pub(super) fn take_input(
        &mut self,
        log: &mut Log,
        plant: &Plant,
        now: Now,
        number: u64,
        connection: &mut Connection,
        bytes: &[u8],
    ) -> bool {
        connection.inbox.extend_from_slice(bytes);
        let mut inbox = std::mem::take(&mut connection.inbox);
        let mut at = 0;
        let mut is_over = false;
        while let Some(input) = inbox.get_mut(at..).filter(|input| !input.is_empty()) {
            let (consumed, event) = connection.channel.handle_input(now, input, &mut connection.out);
            at += consumed;
            match event {
                Event::NeedMore { .. } | Event::Opening => break,
                Event::Progress => {}
                Event::Message { request_id, body } => {
                    if let Some(message) = self.dispatch(log, plant, now, number, request_id, &body) {
                        self.out.push((number, request_id, message));
                    }
                    connection.channel.recycle(body);
                }
                Event::Aborted { request_id, .. } => {
                    log.say("server", format_args!("request {request_id} was given up"));
                }
                Event::Open(work) => {
                    let trust = |_: &backplane_crypto::CertificateChain,
                                 _: backplane_crypto::SecurityPolicy,
                                 _: backplane_types::DateTime| Ok(());
                    let outcome = work.run(&self.own, &trust, &mut self.dice);
                    is_over = connection
                        .channel
                        .handle_opened(now, outcome, &mut connection.out)
                        .is_err();
                    connection.channel.set_limits_authenticated();
                }
                Event::Closed(_) => is_over = true,
            }
            if is_over {
                break;
            }
        }
        inbox.drain(..at.min(inbox.len()));
        connection.inbox = inbox;
        is_over
    }

    /// Answers one message, or hands it to whoever will.
    fn dispatch(
        &mut self,
        log: &mut Log,
        plant: &Plant,
        now: Now,
        number: u64,
        request_id: u32,
        message: &[u8],
    ) -> Option<Vec<u8>> {
        let peek = match RequestPeek::parse(message, DecodeLimits::DEFAULT) {
            Ok(peek) => peek,
            Err(error) => return Some(Context { now, request_handle: 0 }.fault_message(status_of(error))),
        };
        let context = Context {
            now,
            request_handle: peek.header.request_handle,
        };
        let Some(kind) = RequestKind::from_encoding_id(peek.type_id) else {
            return Some(context.fault_message(StatusCode::BAD_SERVICE_UNSUPPORTED));
        };
        let reply = ReplyTo {
            connection: number,
            request_id,
            request_handle: context.request_handle,
        };
        match self.serve(log, plant, context, reply, kind, &peek, message) {
            Ok(answer) => answer,
            Err(status) => Some(context.fault_message(status)),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a request is what it is")]
    fn serve(
        &mut self,
        log: &mut Log,
        plant: &Plant,
        context: Context,
        reply: ReplyTo,
        kind: RequestKind,
        peek: &RequestPeek<'_>,
        message: &[u8],
    ) -> Result<Option<Vec<u8>>, StatusCode> {
        use RequestKind as Kind;
        let now = context.now;
        let channel = channel_info(reply.connection);
        let token = NodeId::from(peek.header.authentication_token);
        match kind {
            Kind::CreateSession => {
                let created = self.sessions.create(now, &channel, parameters(&decode(message)?))?;
                return Ok(Some(encoded(&CreateSessionResponse {
                    response_header: context.header(),
                    session_id: created.session.session_id().clone(),
                    authentication_token: created.session.authentication_token().clone(),
                    revised_session_timeout: created.session.timeout().as_secs_f64() * 1000.0,
                    server_nonce: created.server_nonce,
                    ..CreateSessionResponse::default()
                })));
            }
            Kind::ActivateSession => {
                let check = self.sessions.begin_activate(now, &token, &channel)?;
                let user = VerifiedUser {
                    identity: Identity::ANONYMOUS,
                    roles: Arc::from([]),
                    locales: Vec::new(),
                };
                let activated = self.sessions.complete_activate(now, check, user)?;
                log.say(
                    "server",
                    format_args!(
                        "session {} is active on {}",
                        activated.session.number(),
                        reply.connection
                    ),
                );
                return Ok(Some(encoded(&ActivateSessionResponse {
                    response_header: context.header(),
                    server_nonce: activated.server_nonce,
                    ..ActivateSessionResponse::default()
                })));
            }
            Kind::CloseSession => {
                let asked: CloseSessionRequest = decode(message)?;
                self.sessions.close(&token, channel.id, asked.delete_subscriptions)?;
                self.closed_sessions(log, now);
                return Ok(Some(encoded(&CloseSessionResponse {
                    response_header: context.header(),
                })));
            }
            _ => {}
        }
        let session = self.sessions.validate(now, &token, channel.id);
        self.closed_sessions(log, now);
        let session = session?;
        session.handle.touch(now);
        if let Some(work) = Work::of(kind, message, peek, now.mono)? {
            let handle = Arc::clone(&session.handle);
            self.shard.tell(Command::Request {
                session: session.handle.number(),
                closed: Box::new(move || handle.is_closed()),
                reply,
                work,
            });
            return Ok(None);
        }
        self.on_nodes(plant, context, reply, kind, peek, &session)
    }

    /// Read, Write and Call.
    fn on_nodes(
        &mut self,
        plant: &Plant,
        context: Context,
        reply: ReplyTo,
        kind: RequestKind,
        peek: &RequestPeek<'_>,
        session: &ValidatedSession,
    ) -> Result<Option<Vec<u8>>, StatusCode> {
        let snapshot = plant.space.snapshot();
        let caller = Arc::new(Caller::anonymous());
        let call = call_context(&caller, context.now, REQUEST_TIMEOUT);
        let cx = ServiceContext {
            call: &call,
            now: context.now,
            decode: DecodeLimits::DEFAULT,
            max_response_size: MAX_RESPONSE,
        };
        let mut out = Vec::new();
        context.begin(kind, &mut out);
        let mut encoder = Encoder::new(&mut out);
        let progress = match kind {
            RequestKind::Read => services::read(&snapshot, &cx, peek.body, &mut encoder)?,
            RequestKind::Write => services::write(&snapshot, &cx, peek.body, &mut encoder)?,
            RequestKind::Call => services::call(&snapshot, &cx, peek.body, &mut encoder)?,
            _ => return Err(StatusCode::BAD_SERVICE_UNSUPPORTED),
        };
        if progress == Progress::Done {
            return Ok(Some(out));
        }
        if self.waiting.of_connection(reply.connection) >= MAX_WAITING {
            return Err(StatusCode::BAD_TOO_MANY_OPERATIONS);
        }
        self.waiting
            .admit(snapshot, call, kind, context, reply, peek.body, session)?;
        Ok(None)
    }
}

fn channel_info(number: u64) -> ChannelInfo {
    ChannelInfo {
        id: ChannelId(number),
        client_certificate: backplane_types::ByteString::NULL,
        security_policy: backplane_crypto::SecurityPolicy::None.uri().into(),
        security_mode: backplane_types::MessageSecurityMode::NONE,
    }
}

fn parameters(asked: &CreateSessionRequest) -> SessionParameters {
    SessionParameters {
        session_name: asked.session_name.clone(),
        client_application_uri: asked.client_description.application_uri.clone(),
        endpoint_url: asked.endpoint_url.clone(),
        client_nonce: asked.client_nonce.clone(),
        requested_timeout: asked.requested_session_timeout,
        max_response_message_size: asked.max_response_message_size,
    }
}
