//! Sessions and subscriptions (Part 4, 5.7, 5.13 and 5.14) as plain state machines.
//!
//! Two cores that know nothing of each other: [`Sessions`], the table of who may do what on which channel, and [`Subscriptions`], what one
//! session watches. Neither has sockets, tasks, clocks or nodes: time is handed in as [`Now`](backplane_types::Now), randomness through
//! [`RandomSource`], values through [`Sampler`]; slow work (verifying signatures, reading from plugins) leaves as an effect and comes back
//! as an input. So a day of keep-alives runs in a moment, and every row of the state tables is a test.

mod events;
mod random;
mod sessions;
mod subscriptions;
#[cfg(test)]
mod test_support;

pub use events::{BaseEventTypes, Event, EventBuilder, EventField, EventIds, EventTypes, FilterLimits};
pub use random::{RandomSource, RandomUnavailable};
pub use sessions::{
    Activated, ActivationCheck, CancelTable, ChannelId, ChannelInfo, CloseReason, CreatedSession, Identity,
    IdentityKind, LimitsError, LoginThrottle, NotValidated, RequestGuard, SERVER_NONCE_LENGTH, SessionBinding,
    SessionClosed, SessionHandle, SessionIndex, SessionLimits, SessionParameters, SessionSnapshot, Sessions, Standing,
    TOKEN_LENGTH, ThrottleLimits, ValidatedSession, VerifiedUser,
};
pub use subscriptions::{
    AGGREGATE_FUNCTIONS, Counters, Detached, DurableLimits, Found, GroupKey, ItemKey, ItemTraits, Limits,
    MonitoredItemInfo, PublishMessage, PublishReply, PublishRequest, PublishTicket, ResolvedItem, RevisedSubscription,
    SampleKey, Sampled, Sampler, SamplingRates, SavedItem, SavedSubscription, SourceChange, State,
    SubscriptionParameters, SubscriptionRegistry, Subscriptions, TriggeringResults,
};
