//! Durable subscriptions on their way out of a shard when the server stops, and back into one when it starts.
//!
//! Owns what is kept with a subscription: whose it is. Files are not its matter.

use std::sync::Arc;
use std::time::Duration;

use backplane_session::{SavedSubscription, Subscriptions};
use backplane_types::{DecodeLimits, Decoder, Encoder, Now, StatusCode};

use super::asking::Asking;
use super::owner::{Owner, Who};
use super::source::{SpaceSampler, resolve_again};
use super::task::Shard;
use crate::roles;

/// A subscription without a server.
#[derive(Debug)]
pub(crate) struct Kept {
    owner: Owner,
    subscription: SavedSubscription,
}

impl Kept {
    /// As bytes; none when it is too large for any.
    pub(crate) fn to_bytes(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut e = Encoder::new(&mut bytes);
        self.owner.encode(&mut e);
        e.byte_string(Some(&self.subscription.to_bytes()));
        let failed = e.error().is_some();
        (!failed).then_some(bytes)
    }

    /// Its SubscriptionId.
    pub(crate) fn id(&self) -> u32 {
        self.subscription.subscription_id
    }

    /// # Errors
    /// `BadDecodingError`.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, StatusCode> {
        let mut d = Decoder::new(bytes, DecodeLimits::TRUSTED);
        let owner = Owner::decode(&mut d).map_err(|error| error.status())?;
        let bytes = d.byte_string().map_err(|error| error.status())?.unwrap_or_default();
        let subscription = SavedSubscription::from_bytes(bytes)?;
        Ok(Self { owner, subscription })
    }
}

impl Shard {
    /// The durable subscriptions whose owner can prove after a restart to be the same.
    pub(super) fn kept(&mut self, now: Now) -> Vec<Kept> {
        let mut kept = Vec::new();
        // Nobody waits for what managers would answer.
        let mut asking = Asking::default();
        for (session, entry) in &mut self.sessions {
            let mut sampler = SpaceSampler::new(*session, &entry.who.caller, &mut self.watches, &mut asking, None);
            entry.subscriptions.sample_durable(now, &mut sampler);
            for subscription in entry.subscriptions.save_durable() {
                if entry.who.owner.can_return() {
                    let owner = entry.who.owner.clone();
                    kept.push(Kept { owner, subscription });
                } else {
                    tracing::warn!(
                        session,
                        subscription = subscription.subscription_id,
                        "durable subscription not saved: nobody could prove to be its owner after a restart"
                    );
                }
            }
        }
        kept
    }

    /// Puts a subscription back, for a session that there is not: it lives on until its lifetime ends or its owner takes it over. One whose user is unknown today, or for
    /// which there is no place, is given back, to be kept for another start.
    pub(super) fn restore(&mut self, now: Now, session: u32, kept: Kept, away: Duration) -> Option<Kept> {
        let id = kept.id();
        let users = self.shared.users.load();
        let Some(caller) = roles::absent(kept.owner.identity(), kept.owner.mode(), &users) else {
            tracing::warn!(
                subscription = id,
                "durable subscription kept for another start: its user is unknown"
            );
            return Some(kept);
        };
        let Some(place) = self.shared.shards.abandoned.take(&kept.owner) else {
            tracing::warn!(
                subscription = id,
                "durable subscription kept for another start: too many are without a session (limits.abandoned-subscriptions, limits.subscriptions-per-session)"
            );
            return Some(kept);
        };
        let Kept { owner, subscription } = kept;
        let caller = Arc::new(caller);
        let snapshot = self.shared.space.snapshot();
        let mut subscriptions = Subscriptions::new(Arc::clone(&self.limits), Arc::clone(&self.registry))
            .owned_by(session)
            .with_event_types(Arc::clone(&self.event_types));
        subscriptions.detach();
        let items = subscription.items.len();
        let find = |item: &backplane_session::SavedItem| resolve_again(&snapshot, &caller, &item.request, now);
        match subscriptions.restore(now, subscription, away, find) {
            Err(StatusCode::BAD_TIMEOUT) => {
                tracing::warn!(
                    subscription = id,
                    "durable subscription not restored: its lifetime is over"
                );
                return None;
            }
            Err(status) => {
                tracing::error!(subscription = id, "durable subscription not restored: {status}");
                return None;
            }
            Ok(lost) if lost.is_empty() => {}
            Ok(lost) => {
                tracing::warn!(subscription = id, items = ?lost, "monitored items not restored: their filter is not possible any more, or there are too many items");
            }
        }
        tracing::info!(subscription = id, items, "durable subscription restored");
        let who = Who {
            caller,
            owner,
            generation: None,
        };
        self.admit_restored(session, subscriptions, who, (id, place));
        self.watch_meanings(now, session);
        self.count_event_items(session);
        self.settle(now, session);
        None
    }
}
