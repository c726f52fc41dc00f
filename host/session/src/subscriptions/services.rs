//! The subscription services other than Publish (Part 4, 5.14.2 to 5.14.4, 5.14.6 and 5.14.8). None of them waits.

use std::sync::Arc;

use backplane_types::{CreateSubscriptionRequest, ModifySubscriptionRequest, Now, StatusCode};

use super::Subscriptions;
use super::retransmission::Message;
use super::subscription::{RevisedSubscription, Subscription, SubscriptionParameters};

impl From<&CreateSubscriptionRequest> for SubscriptionParameters {
    fn from(request: &CreateSubscriptionRequest) -> Self {
        Self {
            publishing_interval: request.requested_publishing_interval,
            lifetime_count: request.requested_lifetime_count,
            max_keep_alive_count: request.requested_max_keep_alive_count,
            max_notifications_per_publish: request.max_notifications_per_publish,
            priority: request.priority,
        }
    }
}

impl From<&ModifySubscriptionRequest> for SubscriptionParameters {
    fn from(request: &ModifySubscriptionRequest) -> Self {
        Self {
            publishing_interval: request.requested_publishing_interval,
            lifetime_count: request.requested_lifetime_count,
            max_keep_alive_count: request.requested_max_keep_alive_count,
            max_notifications_per_publish: request.max_notifications_per_publish,
            priority: request.priority,
        }
    }
}

impl<S> Subscriptions<S> {
    /// CreateSubscription (Part 4, 5.14.2). The first publishing cycle ends one publishing interval from now.
    ///
    /// # Errors
    /// `BadTooManySubscriptions` for the session or for the server.
    pub fn create_subscription(
        &mut self,
        now: Now,
        parameters: &SubscriptionParameters,
        publishing_enabled: bool,
    ) -> Result<RevisedSubscription, StatusCode> {
        if self.list.len().saturating_add(self.reserved) >= self.limits.max_subscriptions {
            return Err(StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS);
        }
        let lease = self.registry.take_subscription(self.owner)?;
        let limits = &self.limits;
        let subscription = Subscription::new(lease, limits, parameters, publishing_enabled, now);
        let revised = subscription.revised();
        self.list.push(subscription);
        Ok(revised)
    }

    /// ModifySubscription (Part 4, 5.14.3).
    ///
    /// # Errors
    /// `BadSubscriptionIdInvalid`.
    pub fn modify_subscription(
        &mut self,
        now: Now,
        subscription_id: u32,
        parameters: &SubscriptionParameters,
    ) -> Result<RevisedSubscription, StatusCode> {
        let limits = Arc::clone(&self.limits);
        let subscription = self.find(subscription_id)?;
        subscription.modify(&limits, parameters, now);
        Ok(subscription.revised())
    }

    /// SetPublishingMode (Part 4, 5.14.4): one result for each id.
    ///
    /// # Errors
    /// `BadNothingToDo`, `BadTooManyOperations`.
    pub fn set_publishing_mode(
        &mut self,
        enabled: bool,
        subscription_ids: &[u32],
    ) -> Result<Vec<StatusCode>, StatusCode> {
        self.check_operations(subscription_ids.len())?;
        let set = |id: &u32| match self.find(*id) {
            Ok(subscription) => {
                subscription.machine.set_publishing_enabled(enabled);
                StatusCode::GOOD
            }
            Err(status) => status,
        };
        Ok(subscription_ids.iter().map(set).collect())
    }

    /// DeleteSubscriptions (Part 4, 5.14.8): one result for each id. With the last subscription go the waiting Publish requests, answered
    /// `BadNoSubscription`.
    ///
    /// # Errors
    /// `BadNothingToDo`, `BadTooManyOperations`.
    pub fn delete_subscriptions(&mut self, subscription_ids: &[u32]) -> Result<Vec<StatusCode>, StatusCode> {
        self.check_operations(subscription_ids.len())?;
        let mut results = Vec::with_capacity(subscription_ids.len());
        for id in subscription_ids {
            let place = self.list.iter().position(|it| it.id() == *id);
            results.push(match place {
                Some(place) => {
                    let subscription = self.list.remove(place);
                    self.retire(subscription);
                    StatusCode::GOOD
                }
                None => StatusCode::BAD_SUBSCRIPTION_ID_INVALID,
            });
        }
        if self.list.is_empty() && self.status_changes.is_empty() {
            self.abort_requests(StatusCode::BAD_NO_SUBSCRIPTION, |_| true);
        }
        Ok(results)
    }

    /// Republish (Part 4, 5.14.6): the encoded NotificationMessage, which is the rest of the response after its header.
    ///
    /// # Errors
    /// `BadSubscriptionIdInvalid`, `BadMessageNotAvailable`.
    pub fn republish(&mut self, subscription_id: u32, sequence_number: u32) -> Result<Message, StatusCode> {
        let subscription = self.find(subscription_id)?;
        subscription.machine.reset_lifetime();
        subscription
            .retransmission
            .find(sequence_number)
            .ok_or(StatusCode::BAD_MESSAGE_NOT_AVAILABLE)
    }
}
