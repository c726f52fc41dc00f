//! Methods of the Server object on the caller's subscriptions (Part 5, 9.1 to 9.3).
//!
//! Owns the way from the Call service to the shard that has the subscription, and back. A session names its own subscriptions only.

use backplane_nodes::ns0::HostMethods;
use backplane_nodes::{BoxFuture, CallContext, CallOutcome, Fault};
use backplane_session::Subscriptions;
use backplane_types::{NodeId, StatusCode, Variant, ids};
use tokio::sync::oneshot;

use super::source::Source;
use super::{Command, Shards};

/// What is asked of a subscription.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ask {
    GetMonitoredItems,
    ResendData,
    SetSubscriptionDurable { hours: u32 },
}

/// Runs a method.
///
/// # Errors
/// `BadSubscriptionIdInvalid`; those of SetSubscriptionDurable.
pub(super) fn run(
    subscriptions: &mut Subscriptions<Source>,
    subscription_id: u32,
    ask: Ask,
) -> Result<Vec<Variant>, StatusCode> {
    match ask {
        Ask::GetMonitoredItems => {
            let items = subscriptions.monitored_items(subscription_id)?;
            let (server, client): (Vec<u32>, Vec<u32>) =
                items.map(|item| (item.monitored_item_id, item.client_handle)).unzip();
            Ok(vec![server.into(), client.into()])
        }
        Ask::SetSubscriptionDurable { hours } => {
            let revised = subscriptions.set_durable(subscription_id, hours)?;
            Ok(vec![revised.into()])
        }
        Ask::ResendData => {
            subscriptions.resend_data(subscription_id)?;
            Ok(Vec::new())
        }
    }
}

const GET_MONITORED_ITEMS: u32 = ids::method::SERVER_GET_MONITORED_ITEMS;
const RESEND_DATA: u32 = ids::method::SERVER_RESEND_DATA;
const SET_SUBSCRIPTION_DURABLE: u32 = ids::method::SERVER_SET_SUBSCRIPTION_DURABLE;

/// The methods that are there.
const IMPLEMENTED: [u32; 3] = [GET_MONITORED_ITEMS, RESEND_DATA, SET_SUBSCRIPTION_DURABLE];

impl HostMethods for Shards {
    fn implemented(&self) -> &[u32] {
        &IMPLEMENTED
    }

    fn call<'a>(
        &'a self,
        call: &'a CallContext,
        _object: &'a NodeId,
        method: u32,
        inputs: Vec<Variant>,
    ) -> BoxFuture<'a, Result<CallOutcome, Fault>> {
        Box::pin(async move {
            let answer = self.call_method(call.caller.number, method, &inputs).await;
            answer
                .map(|outputs| CallOutcome {
                    outputs,
                    ..CallOutcome::default()
                })
                .map_err(|status| Fault::new(status, format!("method i={method}")))
        })
    }
}

impl Shards {
    async fn call_method(&self, session: u32, method: u32, inputs: &[Variant]) -> Result<Vec<Variant>, StatusCode> {
        let ask = match method {
            GET_MONITORED_ITEMS => Ask::GetMonitoredItems,
            RESEND_DATA => Ask::ResendData,
            SET_SUBSCRIPTION_DURABLE => match inputs.get(1) {
                Some(Variant::UInt32(hours)) => Ask::SetSubscriptionDurable { hours: *hours },
                _ => return Err(StatusCode::BAD_INVALID_ARGUMENT),
            },
            _ => return Err(StatusCode::BAD_NOT_IMPLEMENTED),
        };
        let Some(Variant::UInt32(subscription_id)) = inputs.first() else {
            return Err(StatusCode::BAD_INVALID_ARGUMENT);
        };
        match self.registry.owner(*subscription_id) {
            None => return Err(StatusCode::BAD_SUBSCRIPTION_ID_INVALID),
            Some(owner) if owner != session => return Err(StatusCode::BAD_USER_ACCESS_DENIED),
            Some(_) => {}
        }
        let (done, answer) = oneshot::channel();
        self.tell(
            session,
            Command::Method {
                session,
                subscription_id: *subscription_id,
                ask,
                done,
            },
        )?;
        answer.await.unwrap_or(Err(StatusCode::BAD_SERVER_HALTED))
    }
}
