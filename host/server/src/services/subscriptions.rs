//! Subscription and MonitoredItem services at the connection: decode, then hand over to the session's shard (Part 4 5.13, 5.14).

use std::sync::Arc;
use std::time::Duration;

use backplane_queue::isolation::Stage;
use backplane_types::service::RequestKind;
use backplane_types::view::PublishView;
use backplane_types::{DecodeError, StatusCode, SubscriptionAcknowledgement};

use super::{Progress, Request};
use crate::admission::{Held, Place};
use crate::link::{Bound, Link};
use crate::shard::{ReplyTo, Work};
use crate::shared::Shared;

/// The way back to a request's client.
pub(super) fn reply_to(link: &Link, request: &Request<'_>) -> ReplyTo {
    ReplyTo {
        connection: link.channel.id.0,
        request_id: request.request_id,
        request_handle: request.context.request_handle,
        outbound: link.outbound.clone(),
    }
}

/// Hands a request to the shard of its session, which answers it.
pub(super) fn hand_over(shared: &Arc<Shared>, link: &Link, request: &Request<'_>) -> Result<Progress, StatusCode> {
    let bound = link.bound().ok_or(StatusCode::BAD_INTERNAL_ERROR)?;
    use RequestKind as Kind;
    let work = match request.kind {
        Kind::Publish => publish(shared, request)?,
        Kind::Republish => Work::Republish(request.decode(shared)?),
        Kind::CreateSubscription => Work::CreateSubscription(request.decode(shared)?),
        Kind::ModifySubscription => Work::ModifySubscription(request.decode(shared)?),
        Kind::DeleteSubscriptions => Work::DeleteSubscriptions(request.decode(shared)?),
        Kind::SetPublishingMode => Work::SetPublishingMode(request.decode(shared)?),
        Kind::CreateMonitoredItems => Work::CreateMonitoredItems(request.decode(shared)?),
        Kind::ModifyMonitoredItems => Work::ModifyMonitoredItems(request.decode(shared)?),
        Kind::DeleteMonitoredItems => Work::DeleteMonitoredItems(request.decode(shared)?),
        Kind::SetMonitoringMode => Work::SetMonitoringMode(request.decode(shared)?),
        Kind::TransferSubscriptions => Work::TransferSubscriptions(request.decode(shared)?),
        Kind::SetTriggering => Work::SetTriggering(request.decode(shared)?),
        _ => return Err(StatusCode::BAD_SERVICE_UNSUPPORTED),
    };
    let held = hold(shared, link, bound, request.kind)?;
    shared.shards.request(bound, reply_to(link, request), work, held)?;
    Ok(Progress::HandedOver)
}

/// A place on the way to the shard, and for a Publish request, which is parked there, what it holds until it is answered.
fn hold(shared: &Shared, link: &Link, bound: &Bound, kind: RequestKind) -> Result<Held, StatusCode> {
    let place = Place::take(link.waiting(), link.waiting_limit()).ok_or(StatusCode::BAD_TOO_MANY_OPERATIONS)?;
    let mut leases = [None, None];
    if kind == RequestKind::Publish {
        let owner = bound.charge.owner();
        let wanted = [
            (Stage::ParkedRequest, 1),
            (Stage::RequestQueueBytes, shared.limits.message_size.into()),
        ];
        let granted = shared.admission.acquire_all(owner, wanted);
        leases = granted.map_err(|_| StatusCode::BAD_SERVER_TOO_BUSY)?.map(Some);
    }
    Ok(Held {
        leases,
        place: Some(place),
    })
}

fn publish(shared: &Shared, request: &Request<'_>) -> Result<Work, StatusCode> {
    let view = PublishView::parse(request.peek.body, shared.decode_limits).map_err(|error| error.status())?;
    if view.acknowledgements.len() > shared.limits.operations_per_request as usize {
        return Err(StatusCode::BAD_TOO_MANY_OPERATIONS);
    }
    let pair = |ack: Result<SubscriptionAcknowledgement, DecodeError>| {
        ack.map(|ack| (ack.subscription_id, ack.sequence_number))
    };
    let acknowledgements = view
        .operations()
        .map(pair)
        .collect::<Result<_, _>>()
        .map_err(|error| error.status())?;
    let hint = request.peek.header.timeout_hint;
    let deadline = (hint > 0).then(|| {
        request
            .context
            .now
            .mono
            .saturating_add(Duration::from_millis(u64::from(hint)))
    });
    Ok(Work::Publish {
        acknowledgements,
        deadline,
    })
}
