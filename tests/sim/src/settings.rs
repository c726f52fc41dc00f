//! The limits of the simulated server: small ones, so that every one of them is reached, with times as a real server has them.

use std::time::Duration;

use backplane_nodes::ns0::Capabilities;
use backplane_session::{Limits, SessionLimits};

/// How long a manager may take to answer.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Requests of one connection that wait for something.
pub(crate) const MAX_WAITING: usize = 64;
/// Subscriptions and monitored items of the whole server.
pub(crate) const MAX_SUBSCRIPTIONS: u32 = 20;
pub(crate) const MAX_ITEMS: u32 = 200;

/// Limits of subscriptions.
pub(crate) fn limits() -> Limits {
    Limits {
        max_subscriptions: 4,
        max_monitored_items: 30,
        max_operations: 20,
        max_publish_requests: 4,
        max_notifications_per_publish: 12,
        max_retransmission_messages: 6,
        max_queue_size: 8,
        min_publishing_interval: 20.0,
        min_lifetime: 1_000.0,
        max_lifetime: 15_000.0,
        ..Limits::default()
    }
}

/// Limits of sessions.
pub(crate) fn session_limits() -> SessionLimits {
    SessionLimits {
        max_sessions: 16,
        min_session_timeout: Duration::from_secs(5),
        max_session_timeout: Duration::from_secs(60),
        ..SessionLimits::default()
    }
}

/// What namespace 0 says of itself.
pub(crate) fn capabilities() -> Capabilities {
    Capabilities {
        min_supported_sample_rate: 10.0,
        max_array_length: 1_000,
        max_string_length: 1_000,
        max_byte_string_length: 1_000,
        max_sessions: 16,
        max_subscriptions: MAX_SUBSCRIPTIONS,
        max_subscriptions_per_session: 4,
        max_monitored_items: MAX_ITEMS,
        max_monitored_items_per_subscription: 30,
        max_monitored_items_queue_size: 8,
        max_select_clause_parameters: 10,
        max_where_clause_parameters: 10,
        max_monitored_items_per_call: 20,
        ..Capabilities::default()
    }
}
