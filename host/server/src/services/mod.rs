//! Which service answers a request, and how a request fails.
//!
//! Owns the one table from request kind to service, the check of the session before it, and the ServiceFault after it.
//! A service appends its response to the caller's buffer in the same turn, or says that it will answer later.

mod discovery;
mod establish;
mod identity;
mod nodes;
mod session;
mod subscriptions;
mod waiting;

use std::sync::Arc;

use backplane_types::service::RequestKind;
use backplane_types::view::RequestPeek;
use backplane_types::{DecodeError, DecodeLimits, Decoder, NodeId, Now, StatusCode, Structure};

pub(crate) use identity::ThrottleKey;
pub(crate) use waiting::{Batch, Work};

use crate::link::Link;
use crate::respond::Context;
use crate::shared::Shared;

/// What came of a request in its own turn.
pub(crate) enum Progress {
    /// The response is in the buffer.
    Done,
    /// Somebody else has taken it over and answers through the link's sender.
    HandedOver,
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

/// Answers one message. What is appended to `out` is one whole response, unless the answer comes later.
pub(crate) fn dispatch(
    shared: &Arc<Shared>,
    link: &mut Link,
    batch: &mut Batch,
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
    match serve(shared, link, batch, &request, out) {
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
    batch: &mut Batch,
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
        Kind::CreateSession => session::create(shared, link, request, out),
        Kind::ActivateSession => session::activate(shared, link, request, out),
        Kind::CloseSession => session::close(shared, link, request, out),
        _ => with_session(shared, link, batch, request, out),
    }
}

/// Everything that needs an activated session.
fn with_session(
    shared: &Arc<Shared>,
    link: &mut Link,
    batch: &mut Batch,
    request: &Request<'_>,
    out: &mut Vec<u8>,
) -> Result<Progress, StatusCode> {
    use RequestKind as Kind;
    let token = request.peek.header.authentication_token;
    link.session(shared, request.context.now, token)?;
    match request.kind {
        Kind::Read
        | Kind::Write
        | Kind::Call
        | Kind::Browse
        | Kind::BrowseNext
        | Kind::TranslateBrowsePathsToNodeIds
        | Kind::RegisterNodes
        | Kind::UnregisterNodes => nodes::serve(shared, link, batch, request, out),
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
        | Kind::SetMonitoringMode
        | Kind::SetTriggering
        | Kind::TransferSubscriptions => subscriptions::hand_over(shared, link, request),
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
