//! Requests of one session on its subscriptions, and their responses.

use std::sync::Arc;

use backplane_nodes::{Caller, Snapshot};
use backplane_session::{ItemKey, PublishRequest, PublishTicket, SubscriptionParameters, Subscriptions};
use backplane_types::service::RequestKind;
use backplane_types::{
    AttributeId, CancelResponse, CreateMonitoredItemsRequest, CreateMonitoredItemsResponse, CreateSubscriptionResponse,
    DeleteMonitoredItemsResponse, DeleteSubscriptionsResponse, ModifyMonitoredItemsResponse,
    ModifySubscriptionResponse, NodeId, SetMonitoringModeResponse, SetPublishingModeResponse, SetTriggeringResponse,
    StatusCode, Structure,
};

use super::Work;
use super::source::{self, Source};
use crate::respond::{self, Context};

/// What a request meets.
pub(super) struct Scene<'a> {
    pub(super) subscriptions: &'a mut Subscriptions<Source>,
    pub(super) snapshot: &'a Snapshot,
    pub(super) caller: &'a Arc<Caller>,
    pub(super) context: Context,
    /// Monitored item ids that were made, with their variables.
    pub(super) made: Vec<(ItemKey, NodeId)>,
    /// The number under which a Publish request waits.
    pub(super) ticket: PublishTicket,
}

/// Runs one request. The response, or none for a Publish request: that is answered when there is something to say.
///
/// # Errors
/// The status of the ServiceFault.
pub(super) fn serve(scene: &mut Scene<'_>, work: Work) -> Result<Option<Vec<u8>>, StatusCode> {
    let now = scene.context.now;
    let response_header = scene.context.header();
    let subscriptions = &mut *scene.subscriptions;
    Ok(Some(match work {
        Work::Publish {
            acknowledgements,
            deadline,
        } => {
            let request = PublishRequest {
                ticket: scene.ticket,
                request_handle: scene.context.request_handle,
                deadline,
            };
            subscriptions.publish(now, request, acknowledgements);
            return Ok(None);
        }
        Work::Republish(asked) => {
            let message = subscriptions.republish(asked.subscription_id, asked.retransmit_sequence_number)?;
            let mut out = Vec::with_capacity(message.len() + 32);
            scene.context.begin(RequestKind::Republish, &mut out);
            out.extend_from_slice(&message);
            out
        }
        Work::CreateSubscription(asked) => {
            let revised = subscriptions.create_subscription(
                now,
                &SubscriptionParameters::from(&asked),
                asked.publishing_enabled,
            )?;
            encoded(&CreateSubscriptionResponse {
                response_header,
                subscription_id: revised.subscription_id,
                revised_publishing_interval: revised.publishing_interval,
                revised_lifetime_count: revised.lifetime_count,
                revised_max_keep_alive_count: revised.max_keep_alive_count,
            })
        }
        Work::ModifySubscription(asked) => {
            let revised =
                subscriptions.modify_subscription(now, asked.subscription_id, &SubscriptionParameters::from(&asked))?;
            encoded(&ModifySubscriptionResponse {
                response_header,
                revised_publishing_interval: revised.publishing_interval,
                revised_lifetime_count: revised.lifetime_count,
                revised_max_keep_alive_count: revised.max_keep_alive_count,
            })
        }
        Work::DeleteSubscriptions(asked) => {
            let results = subscriptions.delete_subscriptions(&asked.subscription_ids)?;
            encoded(&DeleteSubscriptionsResponse {
                response_header,
                results,
                diagnostic_infos: Vec::new(),
            })
        }
        Work::SetPublishingMode(asked) => {
            let results = subscriptions.set_publishing_mode(asked.publishing_enabled, &asked.subscription_ids)?;
            encoded(&SetPublishingModeResponse {
                response_header,
                results,
                diagnostic_infos: Vec::new(),
            })
        }
        Work::CreateMonitoredItems(asked) => create_items(scene, &asked)?,
        Work::ModifyMonitoredItems(asked) => {
            let results = subscriptions.modify_monitored_items(
                now,
                asked.subscription_id,
                asked.timestamps_to_return,
                &asked.items_to_modify,
            )?;
            encoded(&ModifyMonitoredItemsResponse {
                response_header,
                results,
                diagnostic_infos: Vec::new(),
            })
        }
        Work::DeleteMonitoredItems(asked) => {
            let results = subscriptions.delete_monitored_items(asked.subscription_id, &asked.monitored_item_ids)?;
            encoded(&DeleteMonitoredItemsResponse {
                response_header,
                results,
                diagnostic_infos: Vec::new(),
            })
        }
        Work::SetMonitoringMode(asked) => {
            let results = subscriptions.set_monitoring_mode(
                now,
                asked.subscription_id,
                asked.monitoring_mode,
                &asked.monitored_item_ids,
            )?;
            encoded(&SetMonitoringModeResponse {
                response_header,
                results,
                diagnostic_infos: Vec::new(),
            })
        }
        Work::SetTriggering(asked) => {
            let results = subscriptions.set_triggering(&asked)?;
            encoded(&SetTriggeringResponse {
                response_header,
                add_results: results.add,
                remove_results: results.remove,
                ..SetTriggeringResponse::default()
            })
        }
        // It waits for other shards: the task takes it apart.
        Work::TransferSubscriptions(_) => return Err(StatusCode::BAD_INTERNAL_ERROR),
        Work::Cancel {
            request_handle,
            already,
        } => {
            let cancel_count = subscriptions.cancel(request_handle).saturating_add(already);
            encoded(&CancelResponse {
                response_header,
                cancel_count,
            })
        }
    }))
}

fn create_items(scene: &mut Scene<'_>, asked: &CreateMonitoredItemsRequest) -> Result<Vec<u8>, StatusCode> {
    scene
        .subscriptions
        .check_items(asked.subscription_id, asked.items_to_create.len())?;
    let resolve = |item| {
        (
            item,
            source::resolve(scene.snapshot, scene.caller, item, scene.context.now),
        )
    };
    let items = asked.items_to_create.iter().map(resolve).collect();
    let results = scene.subscriptions.create_monitored_items(
        scene.context.now,
        asked.subscription_id,
        asked.timestamps_to_return,
        items,
    )?;
    for (item, result) in asked.items_to_create.iter().zip(&results) {
        let wanted = &item.item_to_monitor;
        if result.status_code.is_good() && wanted.attribute_id == AttributeId::VALUE.0 {
            let key = ItemKey {
                subscription_id: asked.subscription_id,
                monitored_item_id: result.monitored_item_id,
            };
            scene.made.push((key, wanted.node_id.clone()));
        }
    }
    Ok(encoded(&CreateMonitoredItemsResponse {
        response_header: scene.context.header(),
        results,
        diagnostic_infos: Vec::new(),
    }))
}

pub(super) fn encoded<T: Structure>(response: &T) -> Vec<u8> {
    let mut out = Vec::new();
    respond::structure(response, &mut out);
    out
}
