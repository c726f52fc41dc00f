//! Requests of one session on its subscriptions, and their responses.

use std::sync::Arc;
use std::time::Duration;

use backplane_nodes::Caller;
use backplane_types::service::RequestKind;
use backplane_types::view::RequestPeek;
use backplane_types::{
    CancelResponse, CreateMonitoredItemsRequest, CreateMonitoredItemsResponse, CreateSubscriptionRequest,
    CreateSubscriptionResponse, DecodeLimits, Decoder, DeleteMonitoredItemsRequest, DeleteMonitoredItemsResponse,
    DeleteSubscriptionsRequest, DeleteSubscriptionsResponse, ModifyMonitoredItemsRequest, ModifyMonitoredItemsResponse,
    ModifySubscriptionRequest, ModifySubscriptionResponse, NodeId, PublishRequest, RepublishRequest,
    SetMonitoringModeRequest, SetMonitoringModeResponse, SetPublishingModeRequest, SetPublishingModeResponse,
    StatusCode, Structure,
};

use super::respond::{Context, encoded};
use super::shard::Around;
use super::watched::Watched;

/// A request for subscriptions.
pub(crate) enum Work {
    Publish {
        acknowledgements: Vec<(u32, u32)>,
        deadline: Option<Duration>,
    },
    Republish(RepublishRequest),
    CreateSubscription(CreateSubscriptionRequest),
    ModifySubscription(ModifySubscriptionRequest),
    DeleteSubscriptions(DeleteSubscriptionsRequest),
    SetPublishingMode(SetPublishingModeRequest),
    CreateItems(CreateMonitoredItemsRequest),
    ModifyItems(ModifyMonitoredItemsRequest),
    DeleteItems(DeleteMonitoredItemsRequest),
    SetMode(SetMonitoringModeRequest),
    Cancel {
        request_handle: u32,
    },
}

/// A request as a structure.
pub(crate) fn decode<T: Structure>(message: &[u8]) -> Result<T, StatusCode> {
    let mut decoder = Decoder::new(message, DecodeLimits::DEFAULT);
    let _: NodeId = decoder.get().map_err(StatusCode::from)?;
    decoder.get().map_err(StatusCode::from)
}

impl Work {
    /// The work that a message asks for; none if it is for somebody else.
    pub(crate) fn of(
        kind: RequestKind,
        message: &[u8],
        peek: &RequestPeek<'_>,
        now: Duration,
    ) -> Result<Option<Self>, StatusCode> {
        use RequestKind as Kind;
        Ok(Some(match kind {
            Kind::Publish => {
                let asked: PublishRequest = decode(message)?;
                let hint = u64::from(peek.header.timeout_hint);
                let pair =
                    |ack: &backplane_types::SubscriptionAcknowledgement| (ack.subscription_id, ack.sequence_number);
                Self::Publish {
                    acknowledgements: asked.subscription_acknowledgements.iter().map(pair).collect(),
                    deadline: (hint > 0).then(|| now + Duration::from_millis(hint)),
                }
            }
            Kind::Republish => Self::Republish(decode(message)?),
            Kind::CreateSubscription => Self::CreateSubscription(decode(message)?),
            Kind::ModifySubscription => Self::ModifySubscription(decode(message)?),
            Kind::DeleteSubscriptions => Self::DeleteSubscriptions(decode(message)?),
            Kind::SetPublishingMode => Self::SetPublishingMode(decode(message)?),
            Kind::CreateMonitoredItems => Self::CreateItems(decode(message)?),
            Kind::ModifyMonitoredItems => Self::ModifyItems(decode(message)?),
            Kind::DeleteMonitoredItems => Self::DeleteItems(decode(message)?),
            Kind::SetMonitoringMode => Self::SetMode(decode(message)?),
            Kind::Cancel => {
                let asked: backplane_types::CancelRequest = decode(message)?;
                Self::Cancel {
                    request_handle: asked.request_handle,
                }
            }
            _ => return Ok(None),
        }))
    }
}

/// Runs one request that is answered at once.
///
/// # Errors
/// The status of the ServiceFault.
pub(crate) fn serve(
    watched: &mut Watched,
    around: &mut Around<'_>,
    caller: &Arc<Caller>,
    context: Context,
    work: Work,
) -> Result<Vec<u8>, StatusCode> {
    let now = context.now;
    let log = &mut *around.log;
    let response_header = context.header();
    let diagnostic_infos = Vec::new();
    Ok(match work {
        Work::Publish { .. } => return Err(StatusCode::BAD_INTERNAL_ERROR),
        Work::Republish(asked) => {
            let message = watched.republish(log, asked.subscription_id, asked.retransmit_sequence_number)?;
            let mut out = Vec::new();
            context.begin(RequestKind::Republish, &mut out);
            out.extend_from_slice(&message);
            out
        }
        Work::CreateSubscription(asked) => {
            let revised = watched.create_subscription(log, now, &asked)?;
            encoded(&CreateSubscriptionResponse {
                response_header,
                subscription_id: revised.subscription_id,
                revised_publishing_interval: revised.publishing_interval,
                revised_lifetime_count: revised.lifetime_count,
                revised_max_keep_alive_count: revised.max_keep_alive_count,
            })
        }
        Work::ModifySubscription(asked) => {
            let revised = watched.modify_subscription(log, now, &asked)?;
            encoded(&ModifySubscriptionResponse {
                response_header,
                revised_publishing_interval: revised.publishing_interval,
                revised_lifetime_count: revised.lifetime_count,
                revised_max_keep_alive_count: revised.max_keep_alive_count,
            })
        }
        Work::DeleteSubscriptions(asked) => encoded(&DeleteSubscriptionsResponse {
            response_header,
            results: watched.delete_subscriptions(log, &asked.subscription_ids)?,
            diagnostic_infos,
        }),
        Work::SetPublishingMode(asked) => encoded(&SetPublishingModeResponse {
            response_header,
            results: watched.set_publishing_mode(log, asked.publishing_enabled, &asked.subscription_ids)?,
            diagnostic_infos,
        }),
        Work::CreateItems(asked) => encoded(&CreateMonitoredItemsResponse {
            response_header,
            results: watched.create_items(log, (around.plant, caller), now, &asked)?,
            diagnostic_infos,
        }),
        Work::ModifyItems(asked) => encoded(&ModifyMonitoredItemsResponse {
            response_header,
            results: watched.modify_items(log, now, &asked)?,
            diagnostic_infos,
        }),
        Work::DeleteItems(asked) => encoded(&DeleteMonitoredItemsResponse {
            response_header,
            results: watched.delete_items(log, asked.subscription_id, &asked.monitored_item_ids)?,
            diagnostic_infos,
        }),
        Work::SetMode(asked) => {
            let (id, mode, items) = (asked.subscription_id, asked.monitoring_mode, &asked.monitored_item_ids);
            encoded(&SetMonitoringModeResponse {
                response_header,
                results: watched.set_mode(log, now, id, mode, items)?,
                diagnostic_infos,
            })
        }
        Work::Cancel { request_handle } => encoded(&CancelResponse {
            response_header,
            cancel_count: watched.cancel(log, request_handle),
        }),
    })
}
