//! Which service answers a request, and how a request fails.
//!
//! Owns the one table from request kind to service, the check of the session before it, and the ServiceFault after it.
//! A service appends its response to the caller's buffer in the same turn, or says that it will answer later.

mod discovery;
mod identity;
mod nodes;
mod session;
mod subscriptions;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use backplane_session::RequestGuard;
use backplane_types::service::RequestKind;
use backplane_types::view::RequestPeek;
use backplane_types::{DecodeError, DecodeLimits, Decoder, NodeId, Now, StatusCode, Structure};

pub(crate) use identity::ThrottleKey;

use crate::link::{Link, Outbound};
use crate::respond::Context;
use crate::shared::Shared;

/// A response in the making: the whole message, and a session if it activates one.
pub(crate) type Later = Pin<Box<dyn Future<Output = Answered> + Send>>;

/// The end of a [`Later`].
pub(crate) struct Answered {
    pub(crate) message: Vec<u8>,
    pub(crate) activated: Option<backplane_session::ValidatedSession>,
}

impl From<Vec<u8>> for Answered {
    fn from(message: Vec<u8>) -> Self {
        Self {
            message,
            activated: None,
        }
    }
}

/// What came of a request in its own turn.
pub(crate) enum Progress {
    /// The response is in the buffer.
    Done,
    /// It needs something that takes time. The guard keeps the session alive until then.
    Later {
        context: Context,
        guard: Option<RequestGuard>,
        future: Later,
    },
    /// Somebody else has taken it over and answers through the link's sender.
    HandedOver,
    /// Handed over; these waiting requests (id, handle) are answered `BadRequestCancelledByRequest` at once.
    Cancelled(Vec<(u32, u32)>),
}

/// One request while its service runs.
pub(crate) struct Request<'a> {
    pub(crate) kind: RequestKind,
    pub(crate) peek: RequestPeek<'a>,
    /// The whole message: type id, header, body.
    pub(crate) message: &'a [u8],
    pub(crate) request_id: u32,
    pub(crate) context: Context,
}

impl Request<'_> {
    /// The request as a structure.
    fn decode<T: Structure>(&self, shared: &Arc<Shared>) -> Result<T, StatusCode> {
        let mut decoder = Decoder::new(self.message, shared.decode_limits);
        let _: NodeId = decoder.get().map_err(|error: DecodeError| error.status())?;
        decoder.get().map_err(|error: DecodeError| error.status())
    }
}

impl Request<'_> {
    /// An answer that comes when `future` is done.
    fn later(&self, guard: Option<RequestGuard>, future: impl Future<Output = Answered> + Send + 'static) -> Progress {
        Progress::Later {
            context: self.context,
            guard,
            future: Box::pin(future),
        }
    }
}

/// Answers one message. What is appended to `out` is one whole response, unless the answer comes later.
pub(crate) fn dispatch(
    shared: &Arc<Shared>,
    link: &mut Link,
    now: Now,
    request_id: u32,
    message: &[u8],
    out: &mut Vec<u8>,
) -> Progress {
    let start = out.len();
    let peek = match RequestPeek::parse(message, shared.decode_limits) {
        Ok(peek) => peek,
        Err(error) => {
            Context { now, request_handle: 0 }.fault(error.status(), out);
            return Progress::Done;
        }
    };
    let context = Context {
        now,
        request_handle: peek.header.request_handle,
    };
    let Some(kind) = RequestKind::from_encoding_id(peek.type_id) else {
        context.fault(StatusCode::BAD_SERVICE_UNSUPPORTED, out);
        return Progress::Done;
    };
    let request = Request {
        kind,
        peek,
        message,
        request_id,
        context,
    };
    match serve(shared, link, &request, out) {
        Ok(progress) => progress,
        Err(status) => {
            out.truncate(start);
            context.fault(status, out);
            Progress::Done
        }
    }
}

fn serve(
    shared: &Arc<Shared>,
    link: &mut Link,
    request: &Request<'_>,
    out: &mut Vec<u8>,
) -> Result<Progress, StatusCode> {
    use RequestKind as Kind;
    match request.kind {
        Kind::GetEndpoints => discovery::get_endpoints(shared, request, out),
        Kind::FindServers => discovery::find_servers(shared, request, out),
        // They take no session, so that the answer must not be about one.
        Kind::RegisterServer
        | Kind::RegisterServer2
        | Kind::FindServersOnNetwork
        | Kind::OpenSecureChannel
        | Kind::CloseSecureChannel => Err(StatusCode::BAD_SERVICE_UNSUPPORTED),
        Kind::CreateSession => session::create(shared, link, request),
        Kind::ActivateSession => session::activate(shared, link, request),
        Kind::CloseSession => session::close(shared, link, request, out),
        _ => with_session(shared, link, request, out),
    }
}

/// Everything that needs an activated session.
fn with_session(
    shared: &Arc<Shared>,
    link: &mut Link,
    request: &Request<'_>,
    out: &mut Vec<u8>,
) -> Result<Progress, StatusCode> {
    use RequestKind as Kind;
    let token = request.peek.header.authentication_token;
    let bound = link.session(shared, request.context.now, token)?;
    match request.kind {
        Kind::Read
        | Kind::Write
        | Kind::Call
        | Kind::Browse
        | Kind::BrowseNext
        | Kind::TranslateBrowsePathsToNodeIds
        | Kind::RegisterNodes
        | Kind::UnregisterNodes => nodes::serve(shared, bound, request, out),
        Kind::Cancel => session::cancel(shared, link, request),
        Kind::Publish
        | Kind::Republish
        | Kind::CreateSubscription
        | Kind::ModifySubscription
        | Kind::DeleteSubscriptions
        | Kind::SetPublishingMode
        | Kind::CreateMonitoredItems
        | Kind::ModifyMonitoredItems
        | Kind::DeleteMonitoredItems
        | Kind::SetMonitoringMode => {
            let bound = bound.clone();
            subscriptions::hand_over(shared, link, &bound, request)
        }
        _ => Err(StatusCode::BAD_SERVICE_UNSUPPORTED),
    }
}

/// The requestHandle of a request that was dispatched before.
pub(crate) fn request_handle(message: &[u8], shared: &Shared) -> u32 {
    RequestPeek::parse(message, shared.decode_limits).map_or(0, |peek| peek.header.request_handle)
}

/// The requestHandle in a response of ours: behind the type id and the timestamp.
pub(crate) fn response_handle(message: &[u8]) -> u32 {
    let mut decoder = Decoder::new(message, DecodeLimits::TRUSTED);
    let handle = decoder
        .get::<NodeId>()
        .and_then(|_| decoder.u64())
        .and_then(|_| decoder.u32());
    handle.unwrap_or(0)
}

/// Starts the task of a late answer and notes it at the link. A request that may not wait is answered at once.
pub(crate) fn start_later(
    shared: &Arc<Shared>,
    link: &mut Link,
    request_id: u32,
    context: Context,
    guard: Option<RequestGuard>,
    later: Later,
) -> Option<Vec<u8>> {
    if let Err(status) = link.may_wait() {
        return Some(context.fault_message(status));
    }
    let outbound = link.outbound.clone();
    let task = shared.runtime.spawn(async move {
        let answered = later.await;
        drop(guard);
        // The connection may be gone; then nobody waits for the answer.
        let _ = outbound.send(Outbound {
            request_id,
            message: answered.message,
            activated: answered.activated,
            waited: true,
        });
    });
    link.wait_for(request_id, context.request_handle, task.abort_handle());
    None
}
