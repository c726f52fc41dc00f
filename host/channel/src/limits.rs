//! Every limit of a channel, with its unit.
//!
//! Owns the numbers and the check of their relations; who enforces them is said at each field.

use std::time::Duration;

/// Smallest buffer either end may offer when RSA policies are in use (Part 6, 7.1.2.3).
pub const MIN_BUFFER_SIZE: u32 = 8_192;
/// Longest endpoint URL, in encoded bytes (Part 6, 7.1.2.3).
pub const MAX_ENDPOINT_URL: usize = 4_096;
/// Longest reason of an Error or abort message, in bytes (Part 6, 6.7.3 and 7.1.2.5).
pub(crate) const MAX_REASON: usize = 4_096;
/// Longest SecurityPolicyUri, in bytes (Part 6, 6.7.2.3).
pub(crate) const MAX_SECURITY_POLICY_URI: usize = 255;

/// Limits of one channel. Sizes are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest chunk this end takes. At least 8,192.
    pub receive_buffer_size: u32,
    /// Largest chunk this end sends. At least 8,192.
    pub send_buffer_size: u32,
    /// Largest message body this end takes once it is authenticated; told to the peer. 0 is not unlimited here, it is refused.
    pub max_message_size: u32,
    /// Most chunks of one message this end takes once it is authenticated; told to the peer.
    pub max_chunk_count: u32,
    /// The same before `set_limits_authenticated`: what a peer without a session can make this end hold.
    pub unauthenticated_max_message_size: u32,
    /// Most chunks of one message before `set_limits_authenticated`.
    pub unauthenticated_max_chunk_count: u32,
    /// Longest SenderCertificate (a chain) in an OpenSecureChannel message.
    pub max_sender_certificate: usize,
    /// Most sealed bytes that wait behind an OpenSecureChannel response being made.
    pub max_held_bytes: usize,
    /// Largest reassembly buffer kept for the next message instead of being freed.
    pub max_retained_buffer: usize,
    /// From the start of the connection to a complete Hello.
    pub hello_timeout: Duration,
    /// From the Hello to an open channel.
    pub open_timeout: Duration,
    /// From the first byte of a message to its last.
    pub message_timeout: Duration,
    /// Shortest lifetime of a token; what a request of 0 gets is `default_lifetime`.
    pub min_lifetime: Duration,
    /// Longest lifetime of a token.
    pub max_lifetime: Duration,
    /// Lifetime for a peer that asks for 0.
    pub default_lifetime: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            receive_buffer_size: 65_536,
            send_buffer_size: 65_536,
            max_message_size: 4 * 1024 * 1024,
            max_chunk_count: 512,
            unauthenticated_max_message_size: 128 * 1024,
            unauthenticated_max_chunk_count: 16,
            max_sender_certificate: 32 * 1024,
            max_held_bytes: 16 * 1024 * 1024,
            max_retained_buffer: 256 * 1024,
            hello_timeout: Duration::from_secs(10),
            open_timeout: Duration::from_secs(30),
            message_timeout: Duration::from_secs(30),
            min_lifetime: Duration::from_secs(10),
            max_lifetime: Duration::from_secs(3_600),
            default_lifetime: Duration::from_secs(3_600),
        }
    }
}

/// A set of limits that cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitsError {
    /// A buffer is below 8,192 bytes.
    #[error("{0} is below 8192 bytes")]
    BufferTooSmall(&'static str),
    /// A limit is 0, which would mean either nothing or everything.
    #[error("{0} is 0")]
    Zero(&'static str),
    /// Two limits contradict each other.
    #[error("{0} is larger than {1}")]
    Order(&'static str, &'static str),
}

impl Limits {
    /// Everything that is wrong, so that it can be said at once.
    ///
    /// # Errors
    /// One entry for each rule that is broken.
    pub fn check(&self) -> Result<(), Vec<LimitsError>> {
        let mut wrong = Vec::new();
        for (name, value) in [
            ("receive_buffer_size", self.receive_buffer_size),
            ("send_buffer_size", self.send_buffer_size),
        ] {
            if value < MIN_BUFFER_SIZE {
                wrong.push(LimitsError::BufferTooSmall(name));
            }
        }
        for (name, value) in [
            ("max_message_size", self.max_message_size),
            ("max_chunk_count", self.max_chunk_count),
            (
                "unauthenticated_max_message_size",
                self.unauthenticated_max_message_size,
            ),
            ("unauthenticated_max_chunk_count", self.unauthenticated_max_chunk_count),
        ] {
            if value == 0 {
                wrong.push(LimitsError::Zero(name));
            }
        }
        for (name, value) in [
            ("hello_timeout", self.hello_timeout),
            ("open_timeout", self.open_timeout),
            ("message_timeout", self.message_timeout),
            ("min_lifetime", self.min_lifetime),
        ] {
            if value.is_zero() {
                wrong.push(LimitsError::Zero(name));
            }
        }
        let orders = [
            (
                self.unauthenticated_max_message_size > self.max_message_size,
                "unauthenticated_max_message_size",
                "max_message_size",
            ),
            (
                self.unauthenticated_max_chunk_count > self.max_chunk_count,
                "unauthenticated_max_chunk_count",
                "max_chunk_count",
            ),
            (self.min_lifetime > self.max_lifetime, "min_lifetime", "max_lifetime"),
            (
                self.min_lifetime > self.default_lifetime,
                "min_lifetime",
                "default_lifetime",
            ),
            (
                self.default_lifetime > self.max_lifetime,
                "default_lifetime",
                "max_lifetime",
            ),
        ];
        wrong.extend(
            orders
                .into_iter()
                .filter(|order| order.0)
                .map(|(_, small, large)| LimitsError::Order(small, large)),
        );
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// The lifetime a request for `requested` milliseconds gets.
    pub(crate) fn revise_lifetime(&self, requested: u32) -> Duration {
        if requested == 0 {
            return self.default_lifetime;
        }
        let requested = Duration::from_millis(u64::from(requested));
        // `clamp` panics on crossed bounds; a configuration that skipped `check` must not.
        requested.min(self.max_lifetime).max(self.min_lifetime)
    }
}
