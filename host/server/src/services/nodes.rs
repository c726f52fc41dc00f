//! Services on nodes (Part 4 5.9, 5.11, 5.12): from the body of the request straight to the body of the response.
//!
//! What can be answered from the address space is answered in the connection's own turn. What needs a node manager goes on
//! in a task of its own, on a copy of the body.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::Guard;
use backplane_nodes::CallContext;
use backplane_nodes::services::{self, Progress as NodeProgress, ServiceContext};
use backplane_types::service::RequestKind;
use backplane_types::{Encoder, StatusCode};

use super::waiting::{self, Batch, Deadline};
use super::{Progress, Request};
use crate::events::Actor;
use crate::link::{Bound, Link};
use crate::shared::Shared;

/// Answers a request on nodes.
pub(super) fn serve(
    shared: &Arc<Shared>,
    link: &Link,
    batch: &mut Batch,
    request: &Request<'_>,
    out: &mut Vec<u8>,
) -> Result<Progress, StatusCode> {
    let bound = link.bound().ok_or(StatusCode::BAD_INTERNAL_ERROR)?;
    let now = request.context.now;
    let timeout = timeout(shared, request.peek.header.timeout_hint);
    let max_response_size = response_limit(shared, bound);
    let snapshot = shared.space.load();
    let deadline = Deadline { now, timeout };
    if request.kind == RequestKind::Read
        && batch.push_next(shared, link, bound, &snapshot, request, (deadline, max_response_size))?
    {
        return Ok(Progress::HandedOver);
    }
    let call = CallContext {
        caller: Arc::clone(&bound.caller),
        deadline: now.mono.saturating_add(timeout),
        deadline_utc: now.utc.saturating_add(timeout),
        trace_parent: None,
        internal: false,
    };
    request.context.begin(request.kind, out);
    let answer_at = out.len();
    let cx = ServiceContext {
        call: &call,
        now,
        decode: shared.decode_limits,
        max_response_size,
    };
    let body = request.peek.body;
    let mut encoder = Encoder::new(out);
    use RequestKind as Kind;
    let progress = match request.kind {
        Kind::Read => services::read(&snapshot, &cx, body, &mut encoder)?,
        Kind::Write => services::write(&snapshot, &cx, body, &mut encoder)?,
        Kind::Call => services::call(&snapshot, &cx, body, &mut encoder)?,
        Kind::Browse | Kind::BrowseNext => {
            let mut points = bound.points.lock();
            let browse = if request.kind == Kind::Browse {
                services::browse
            } else {
                services::browse_next
            };
            browse(&snapshot, &cx, &mut points, body, &mut encoder)?;
            NodeProgress::Done
        }
        Kind::TranslateBrowsePathsToNodeIds => {
            services::translate_browse_paths(&snapshot, &cx, body, &mut encoder)?;
            NodeProgress::Done
        }
        Kind::RegisterNodes => {
            services::register_nodes(&snapshot, &cx, body, &mut encoder)?;
            NodeProgress::Done
        }
        Kind::UnregisterNodes => {
            services::unregister_nodes(&snapshot, &cx, body, &mut encoder)?;
            NodeProgress::Done
        }
        _ => return Err(StatusCode::BAD_SERVICE_UNSUPPORTED),
    };
    match (progress, encoder.error()) {
        (NodeProgress::Done, None) => {
            if matches!(request.kind, Kind::Write | Kind::Call) && shared.audits() {
                let actor = Actor::of(&bound.caller, request.peek.header.audit_entry_id.0);
                let answer = out.get(answer_at..);
                shared.audit_operations(request.kind, &actor, body, answer, StatusCode::BAD_INTERNAL_ERROR);
            }
            Ok(Progress::Done)
        }
        (NodeProgress::Done, Some(status)) => Err(status),
        (NodeProgress::MustWait, _) => {
            let snapshot = Guard::into_inner(snapshot);
            let terms = (&call, deadline, max_response_size);
            if request.kind == Kind::Read {
                batch.push(shared, link, bound, &snapshot, request, terms)?;
            } else {
                waiting::service(shared, link, bound, &snapshot, request, terms)?;
            }
            Ok(Progress::HandedOver)
        }
    }
}

/// How long a request may take: what the client says, but never longer than the server allows.
fn timeout(shared: &Shared, hint: u32) -> Duration {
    let limit = Duration::from_secs_f64(shared.limits.request_timeout / 1000.0);
    if hint == 0 {
        limit
    } else {
        limit.min(Duration::from_millis(u64::from(hint)))
    }
}

/// Bytes that a response body may have: what the session's client takes, but never more than the server makes.
fn response_limit(shared: &Shared, bound: &Bound) -> usize {
    let own = shared.space.limits().max_response_size as usize;
    match bound.session.handle.parameters().max_response_message_size {
        0 => own,
        wanted => own.min(wanted as usize),
    }
}
