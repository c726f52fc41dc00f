//! What a deployment says about isolation, and the totals it divides. Owns the defaults and the formulas of the totals; whether the
//! numbers fit together is the business of the plan.

use std::time::Duration;

use super::vocabulary::{Profile, Stage};

/// The longest handshake that may be configured.
pub const MAX_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(120);

const MIB: u64 = 1 << 20;

/// Bounds of the buffer that is added to a message in the footprint of a retained one.
const FOOTPRINT_BUFFER: (u64, u64) = (8_192, 147_456);

/// Bounds of the derived chunk budget.
const CHUNK_BUDGET: (u64, u64) = (64 * MIB, 1024 * MIB);

/// The isolation section of a configuration.
#[derive(Clone, Debug)]
pub struct Options {
    /// `isolation.profile`
    pub profile: Profile,
    /// `isolation.max-tracked-owners`: how many owners may hold leases at once. Default 4096.
    pub max_tracked_owners: u32,
    /// `isolation.max-owner-key-length`: bytes of a key from a classifier or the configuration. Default 256.
    pub max_owner_key_length: u32,
    /// `isolation.default-weight`: turns per round of an owner that is not trusted. Default 1.
    pub default_weight: u32,
    /// `isolation.handshake-timeout`: above zero, at most [`MAX_HANDSHAKE_TIMEOUT`], which is the default.
    pub handshake_timeout: Duration,
    /// `isolation.bootstrap-reserved-bytes`: the floor of new callers in `ReassemblyBytes`; default one footprint.
    pub bootstrap_reserved_bytes: Option<u64>,
    /// `isolation.reconnect-reserved-bytes`: the floor of returning callers in `ReassemblyBytes`; default one footprint.
    pub reconnect_reserved_bytes: Option<u64>,
    /// `isolation.max-retained-message-bytes`: the most memory one incomplete message takes; default [`Totals::footprint`].
    pub max_retained_message_bytes: Option<u64>,
    /// `isolation.stage`
    pub stages: Vec<StageOptions>,
    /// `isolation.trusted-owner`
    pub trusted_owners: Vec<TrustedOwner>,
    /// Whether a classifier is installed; it alone can tell a trusted owner.
    pub has_classifier: bool,
    /// `isolation.rate`
    pub rate: RateOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            max_tracked_owners: 4096,
            max_owner_key_length: 256,
            default_weight: 1,
            handshake_timeout: MAX_HANDSHAKE_TIMEOUT,
            bootstrap_reserved_bytes: None,
            reconnect_reserved_bytes: None,
            max_retained_message_bytes: None,
            stages: Vec::new(),
            trusted_owners: Vec::new(),
            has_classifier: false,
            rate: RateOptions::default(),
        }
    }
}

/// What is different in one stage: `isolation.stage[Name]`.
#[derive(Clone, Copy, Debug)]
pub struct StageOptions {
    /// Which stage.
    pub stage: Stage,
    /// `capacity`: at most the stage's total.
    pub capacity: Option<u64>,
    /// `bootstrap-reserved`: 0 switches the floor off.
    pub bootstrap_reserved: Option<u64>,
    /// `reconnect-reserved`: 0 switches the floor off.
    pub reconnect_reserved: Option<u64>,
    /// `control-reserved`: 0 switches the floor off.
    pub control_reserved: Option<u64>,
    /// `owner-hard-limit`: the most one owner may hold; default the capacity.
    pub owner_hard_limit: Option<u64>,
}

impl StageOptions {
    /// Nothing is different in `stage`.
    #[must_use]
    pub const fn new(stage: Stage) -> Self {
        Self {
            stage,
            capacity: None,
            bootstrap_reserved: None,
            reconnect_reserved: None,
            control_reserved: None,
            owner_hard_limit: None,
        }
    }
}

/// An owner with floors of its own: `isolation.trusted-owner[N]`, counted from 0.
#[derive(Clone)]
pub struct TrustedOwner {
    /// `key`: what the classifier answers for this owner. Sensitive: in no log and no error.
    pub key: String,
    /// `weight`: turns per round.
    pub weight: u32,
    /// `reservation`: stages where the floor is not one unit.
    pub reservations: Vec<Reservation>,
}

impl TrustedOwner {
    /// A trusted owner of weight 1 with a floor of one unit in every stage.
    #[must_use]
    pub fn new(key: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            weight: 1,
            reservations: Vec::new(),
        }
    }
}

impl std::fmt::Debug for TrustedOwner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TrustedOwner")
            .field("weight", &self.weight)
            .field("reservations", &self.reservations)
            .finish_non_exhaustive()
    }
}

/// The floor of a trusted owner in one stage: `isolation.trusted-owner[N].reservation[Name]`.
#[derive(Clone, Copy, Debug)]
pub struct Reservation {
    /// Which stage.
    pub stage: Stage,
    /// `reserved`: the floor; 0 for none.
    pub reserved: u64,
    /// `hard-limit`: default the stage's `owner-hard-limit`, or its capacity.
    pub hard_limit: Option<u64>,
}

/// New connections: `isolation.rate`. Outside the profiles with floors, 0 is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateOptions {
    /// `per-second`: connections accepted per second in the long run. Default 500.
    pub per_second: u32,
    /// `burst`: connections accepted at once after a quiet time. Default 1000.
    pub burst: u32,
}

impl Default for RateOptions {
    fn default() -> Self {
        Self {
            per_second: 500,
            burst: 1000,
        }
    }
}

/// The limits of the server from which the totals of the stages follow. 0 is "unlimited" where the server has such a thing, which
/// only [`Profile::SharedOnly`] accepts.
#[derive(Clone, Debug)]
pub struct Totals {
    /// Connections at once: the total of `Connection` and of `Handshake`.
    pub channels: u64,
    /// Sessions at once.
    pub sessions: u64,
    /// Bytes of the largest message.
    pub message_size: u64,
    /// Bytes of the largest chunk.
    pub buffer_size: u64,
    /// Requests that may be queued; the total of `RequestQueue` is at least 100.
    pub queued_requests: u64,
    /// The fewest and the most workers that execute requests; the total of `RequestExecution` is at least 100.
    pub threads: (u64, u64),
    /// Sessions being established at once; 0 for the default, [`Totals::default_session_establishment`].
    pub session_establishment: u64,
    /// Processors of the machine.
    pub cpus: u64,
    /// Bytes of all incomplete messages; `None` for the default, [`Totals::default_chunk_budget`].
    pub chunk_budget: Option<u64>,
    /// How many requests the queue itself can hold; `None` if that is the total of `RequestQueue`.
    pub physical_queue: Option<u64>,
    /// What the settings behind these numbers are called, for messages.
    pub names: TotalNames,
}

/// The names of the settings behind [`Totals`], as a user writes them.
#[derive(Clone, Copy, Debug)]
pub struct TotalNames {
    /// Of [`Totals::channels`].
    pub channels: &'static str,
    /// Of [`Totals::sessions`].
    pub sessions: &'static str,
    /// Of [`Totals::message_size`].
    pub message_size: &'static str,
    /// Of [`Totals::buffer_size`].
    pub buffer_size: &'static str,
    /// Of [`Totals::queued_requests`].
    pub queued_requests: &'static str,
    /// Of the most threads.
    pub threads: &'static str,
    /// Of [`Totals::session_establishment`].
    pub session_establishment: &'static str,
    /// Of [`Totals::chunk_budget`].
    pub chunk_budget: &'static str,
}

impl Default for TotalNames {
    fn default() -> Self {
        Self {
            channels: "limits.connections",
            sessions: "limits.sessions",
            message_size: "limits.message-size",
            buffer_size: "limits.chunk-size",
            queued_requests: "limits.queued-requests",
            threads: "limits.workers",
            session_establishment: "limits.session-establishment",
            chunk_budget: "limits.reassembly-bytes",
        }
    }
}

impl Default for Totals {
    fn default() -> Self {
        Self {
            channels: 1000,
            sessions: 100,
            message_size: 4 * MIB,
            buffer_size: 65_536,
            queued_requests: 200,
            threads: (10, 100),
            session_establishment: 0,
            cpus: 1,
            chunk_budget: None,
            physical_queue: None,
            names: TotalNames::default(),
        }
    }
}

impl Totals {
    /// The memory one incomplete message takes at most: `4 * (message size + buffer size)`, where the buffer counts as at least 8192
    /// and at most 147456 bytes. `None` on overflow.
    #[must_use]
    pub fn footprint(&self) -> Option<u64> {
        let buffer = self.buffer_size.clamp(FOOTPRINT_BUFFER.0, FOOTPRINT_BUFFER.1);
        self.message_size.checked_add(buffer)?.checked_mul(4)
    }

    /// The bytes that all incomplete messages share: 16 messages, at least 64 MiB and at most 1 GiB, but always room for 4 messages.
    /// With unlimited messages 1 GiB.
    #[must_use]
    pub fn default_chunk_budget(&self) -> u64 {
        if self.message_size == 0 {
            return CHUNK_BUDGET.1;
        }
        let wanted = self
            .message_size
            .saturating_mul(16)
            .clamp(CHUNK_BUDGET.0, CHUNK_BUDGET.1);
        wanted.max(self.message_size.saturating_mul(4))
    }

    /// Sessions being established at once unless configured: 8 per processor, at least 128.
    #[must_use]
    pub fn default_session_establishment(&self) -> u64 {
        self.cpus.saturating_mul(8).max(128)
    }

    /// The total of a stage; `None` on overflow.
    #[must_use]
    pub fn of(&self, stage: Stage) -> Option<u64> {
        let queue = self.queued_requests.max(100);
        let execution = self.threads.0.max(self.threads.1).max(100);
        Some(match stage {
            Stage::Connection | Stage::Handshake => self.channels,
            Stage::ReassemblyBytes => self.chunk_budget.unwrap_or_else(|| self.default_chunk_budget()),
            Stage::SessionEstablishment if self.session_establishment > 0 => self.session_establishment,
            Stage::SessionEstablishment => self.default_session_establishment(),
            Stage::RequestQueue | Stage::ParkedRequest => queue,
            Stage::RequestExecution => execution,
            Stage::RequestQueueBytes => {
                let requests = queue.checked_mul(2)?.checked_add(execution)?;
                requests.checked_mul(self.message_size)?
            }
        })
    }

    /// The setting that raises the total of a stage.
    #[must_use]
    pub fn name_of(&self, stage: Stage) -> &'static str {
        match stage {
            Stage::Connection | Stage::Handshake => self.names.channels,
            Stage::ReassemblyBytes => self.names.chunk_budget,
            Stage::SessionEstablishment => self.names.session_establishment,
            Stage::RequestExecution => self.names.threads,
            Stage::RequestQueue | Stage::RequestQueueBytes | Stage::ParkedRequest => self.names.queued_requests,
        }
    }
}
