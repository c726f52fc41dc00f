//! Every bound of the server in one struct, with its key, default and legal range.
//!
//! Owns the numbers and the relations between them; whoever enforces one takes it from here, and the same number is what
//! ServerCapabilities and OperationLimits show to clients.

use super::sampling::SamplingOptions;
use super::section::Section;

/// Bounds on everything a peer can make the server hold or do.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerLimits {
    /// Open connections (one secure channel each).
    pub connections: u32,
    /// Sessions, activated or not.
    pub sessions: u32,
    /// Subscriptions of one session.
    pub subscriptions_per_session: u32,
    /// Subscriptions whose session is over, of all owners; one owner has at most as many as a session.
    pub abandoned_subscriptions: u32,
    /// Durable subscriptions of all owners.
    pub durable_subscriptions: u32,
    /// Durable subscriptions of one session.
    pub durable_subscriptions_per_session: u32,
    /// Longest lifetime of a durable subscription in hours; 0: there are none.
    pub durable_lifetime_hours: u32,
    /// Largest queue of an item of a durable subscription.
    pub durable_queue: u32,
    /// Places of all these queues beyond what other items may have.
    pub durable_values: u32,
    /// The same for one subscription.
    pub durable_values_per_subscription: u32,
    /// Monitored items of one subscription.
    pub monitored_items_per_subscription: u32,
    /// Publish requests that wait at one session.
    pub publish_requests_per_session: u32,
    /// Largest queue of a monitored item.
    pub monitored_item_queue: u32,
    /// Largest queue of an event item.
    pub event_queue: u32,
    /// Continuation points of one session.
    pub browse_continuation_points: u32,
    /// Operations of one request of any list-shaped service.
    pub operations_per_request: u32,
    /// References of one node in one Browse answer.
    pub references_per_node: u32,
    /// Bytes of one message of an activated session.
    pub message_size: u32,
    /// Bytes of one message before a session is activated.
    pub unauthenticated_message_size: u32,
    /// Chunks of one message.
    pub chunk_count: u32,
    /// Bytes of one chunk.
    pub chunk_size: u32,
    /// Bytes of one String.
    pub string_length: u32,
    /// Bytes of one ByteString.
    pub byte_string_length: u32,
    /// Elements of one array.
    pub array_length: u32,
    /// Requests that wait for a worker, of all connections.
    pub queued_requests: u32,
    /// Requests that wait for plugins at a time, of all connections: each has a worker.
    pub workers: u32,
    /// Sessions being created or activated at a time; 0: 8 per processor, at least 128.
    pub session_establishment: u32,
    /// Bytes of messages whose last chunk has not come, of all connections; 0: 16 messages, 64 MiB to 1 GiB.
    pub reassembly_bytes: u64,
    /// Requests of one connection that may wait for plugins.
    pub waiting_requests_per_connection: u32,
    /// How long a peer may take until its channel is open, ms.
    pub handshake_timeout: f64,
    /// How long a message may take from its first byte to its last, ms.
    pub message_timeout: f64,
    /// Shortest and longest session timeout, ms.
    pub session_timeout: (f64, f64),
    /// Shortest and longest lifetime of a security token, ms.
    pub token_lifetime: (f64, f64),
    /// Shortest publishing interval, ms.
    pub publishing_interval: f64,
    /// Shortest sampling interval, ms.
    pub sampling_interval: f64,
    /// Shortest interval that an aggregate is computed for, ms.
    pub processing_interval: f64,
    /// `[sampling]`: how requested intervals are revised.
    pub sampling: SamplingOptions,
    /// Longest time a plugin may take for one request, ms.
    pub request_timeout: f64,
    /// How long the server waits for its connections to end when it stops, ms.
    pub drain_timeout: f64,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 220,
            sessions: 200,
            subscriptions_per_session: 100,
            abandoned_subscriptions: 1_000,
            durable_subscriptions: 100,
            durable_subscriptions_per_session: 10,
            durable_lifetime_hours: 10,
            durable_queue: 200_000,
            durable_values: 5_000_000,
            durable_values_per_subscription: 1_000_000,
            monitored_items_per_subscription: 100_000,
            publish_requests_per_session: 20,
            monitored_item_queue: 1_000,
            event_queue: 10_000,
            browse_continuation_points: 10,
            operations_per_request: 10_000,
            references_per_node: 10_000,
            message_size: 16 * 1024 * 1024,
            unauthenticated_message_size: 256 * 1024,
            chunk_count: 4_096,
            chunk_size: 65_535,
            string_length: 4 * 1024 * 1024,
            byte_string_length: 16 * 1024 * 1024,
            array_length: 1_000_000,
            queued_requests: 4_096,
            workers: 256,
            session_establishment: 0,
            reassembly_bytes: 0,
            waiting_requests_per_connection: 256,
            handshake_timeout: 10_000.0,
            message_timeout: 30_000.0,
            session_timeout: (1_000.0, 3_600_000.0),
            token_lifetime: (10_000.0, 3_600_000.0),
            publishing_interval: 10.0,
            sampling_interval: 10.0,
            processing_interval: 100.0,
            sampling: SamplingOptions::default(),
            request_timeout: 30_000.0,
            drain_timeout: 3_000.0,
        }
    }
}

impl ServerLimits {
    /// The bounds of the demonstration: generous enough for load tests.
    #[must_use]
    pub fn demo() -> Self {
        Self {
            connections: 10_100,
            sessions: 10_000,
            queued_requests: 20_000,
            waiting_requests_per_connection: 2_000,
            ..Self::default()
        }
    }

    /// Reads `[limits]`; what is absent keeps its default.
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        let mut limits = Self::default();
        let mut number =
            |key: &str, field: &mut u32, low: u32, high: u32| *field = section.number32(key, *field, low..=high);
        number("connections", &mut limits.connections, 1, 100_000);
        number("sessions", &mut limits.sessions, 1, 100_000);
        number(
            "subscriptions-per-session",
            &mut limits.subscriptions_per_session,
            1,
            10_000,
        );
        number(
            "abandoned-subscriptions",
            &mut limits.abandoned_subscriptions,
            0,
            100_000,
        );
        number("durable-subscriptions", &mut limits.durable_subscriptions, 0, 100_000);
        number(
            "durable-lifetime-hours",
            &mut limits.durable_lifetime_hours,
            0,
            24 * 366,
        );
        number(
            "durable-subscriptions-per-session",
            &mut limits.durable_subscriptions_per_session,
            0,
            10_000,
        );
        number(
            "durable-values-per-subscription",
            &mut limits.durable_values_per_subscription,
            0,
            1_000_000_000,
        );
        number("durable-queue", &mut limits.durable_queue, 1, 10_000_000);
        number("durable-values", &mut limits.durable_values, 0, 1_000_000_000);
        number(
            "monitored-items-per-subscription",
            &mut limits.monitored_items_per_subscription,
            1,
            10_000_000,
        );
        number(
            "publish-requests-per-session",
            &mut limits.publish_requests_per_session,
            2,
            1_000,
        );
        number("monitored-item-queue", &mut limits.monitored_item_queue, 1, 200_000);
        number("event-queue", &mut limits.event_queue, 1, 200_000);
        number(
            "browse-continuation-points",
            &mut limits.browse_continuation_points,
            1,
            10_000,
        );
        number(
            "operations-per-request",
            &mut limits.operations_per_request,
            10,
            1_000_000,
        );
        number("references-per-node", &mut limits.references_per_node, 10, 1_000_000);
        number("message-size", &mut limits.message_size, 8_192, 256 * 1024 * 1024);
        number(
            "unauthenticated-message-size",
            &mut limits.unauthenticated_message_size,
            8_192,
            16 * 1024 * 1024,
        );
        number("chunk-count", &mut limits.chunk_count, 1, 1_000_000);
        number("chunk-size", &mut limits.chunk_size, 8_192, 1024 * 1024);
        number("string-length", &mut limits.string_length, 256, 256 * 1024 * 1024);
        number(
            "byte-string-length",
            &mut limits.byte_string_length,
            4_096,
            256 * 1024 * 1024,
        );
        number("array-length", &mut limits.array_length, 256, 100_000_000);
        number("queued-requests", &mut limits.queued_requests, 1, 10_000_000);
        number("workers", &mut limits.workers, 1, 100_000);
        number("session-establishment", &mut limits.session_establishment, 0, 100_000);
        number(
            "waiting-requests-per-connection",
            &mut limits.waiting_requests_per_connection,
            1,
            100_000,
        );
        limits.reassembly_bytes = section.amount("reassembly-bytes").unwrap_or(0);
        limits.read_times(section);
        limits.check_relations(section);
        limits
    }

    fn read_times(&mut self, section: &mut Section<'_>) {
        const DAY: f64 = 86_400_000.0;
        let mut time =
            |key: &str, field: &mut f64, low: f64, high: f64| *field = section.milliseconds(key, *field, low..=high);
        time("handshake-timeout-ms", &mut self.handshake_timeout, 100.0, 120_000.0);
        time("message-timeout-ms", &mut self.message_timeout, 100.0, 600_000.0);
        time("session-timeout-min-ms", &mut self.session_timeout.0, 100.0, DAY);
        time("session-timeout-max-ms", &mut self.session_timeout.1, 1_000.0, DAY);
        time("token-lifetime-min-ms", &mut self.token_lifetime.0, 1_000.0, DAY);
        time("token-lifetime-max-ms", &mut self.token_lifetime.1, 10_000.0, DAY);
        time(
            "publishing-interval-min-ms",
            &mut self.publishing_interval,
            1.0,
            60_000.0,
        );
        time("sampling-interval-min-ms", &mut self.sampling_interval, 1.0, 60_000.0);
        time(
            "processing-interval-min-ms",
            &mut self.processing_interval,
            1.0,
            3_600_000.0,
        );
        time("request-timeout-ms", &mut self.request_timeout, 100.0, DAY);
        time("drain-timeout-ms", &mut self.drain_timeout, 0.0, 600_000.0);
    }

    fn check_relations(&self, section: &mut Section<'_>) {
        if self.connections <= self.sessions {
            section.problem(
                "connections",
                format_args!(
                    "{} leaves no room beside {} sessions: at least {}",
                    self.connections,
                    self.sessions,
                    self.sessions + 1
                ),
            );
        }
        if self.unauthenticated_message_size > self.message_size {
            section.problem(
                "unauthenticated-message-size",
                format_args!("is above message-size ({})", self.message_size),
            );
        }
        if self.chunk_size > self.message_size {
            section.problem(
                "chunk-size",
                format_args!("is above message-size ({})", self.message_size),
            );
        }
        for (key, (low, high)) in [
            ("session-timeout", self.session_timeout),
            ("token-lifetime", self.token_lifetime),
        ] {
            if low > high {
                section.problem(
                    &format!("{key}-min-ms"),
                    format_args!("{low} is above {key}-max-ms ({high})"),
                );
            }
        }
    }
}
