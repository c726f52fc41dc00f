//! How the capacity of each stage is divided. A plan is derived once, at start, and holds only numbers that fit together.

use std::sync::Arc;
use std::time::Duration;

use super::errors::PlanError;
use super::options::{Options, RateOptions, Totals};
use super::validate::derive;
use super::vocabulary::{Class, Profile, Stage};

/// The division of one stage. `capacity` is the sum of the floors and of `shared`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StagePlan {
    /// Which stage.
    pub stage: Stage,
    /// The smallest piece of work: 1 slot, one retained message, one largest message.
    pub unit: u64,
    /// The most that all owners together hold.
    pub capacity: u64,
    /// What any class may use.
    pub shared: u64,
    /// The floor of [`Class::Bootstrap`].
    pub bootstrap: u64,
    /// The floor of [`Class::Reconnect`].
    pub reconnect: u64,
    /// The floor of [`Class::Control`].
    pub control: u64,
    /// The sum of the floors of all trusted owners.
    pub trusted: u64,
    /// The most that one owner holds which is not trusted.
    pub hard_limit: u64,
}

impl StagePlan {
    /// A stage without limits.
    pub(crate) const fn unlimited(stage: Stage) -> Self {
        Self {
            stage,
            unit: 1,
            capacity: u64::MAX,
            shared: u64::MAX,
            bootstrap: 0,
            reconnect: 0,
            control: 0,
            trusted: 0,
            hard_limit: u64::MAX,
        }
    }

    /// The floor that a whole class shares: 0 for `Established`, and for `Trusted`, whose floors belong to single owners.
    #[must_use]
    pub const fn floor(&self, class: Class) -> u64 {
        match class {
            Class::Bootstrap => self.bootstrap,
            Class::Reconnect => self.reconnect,
            Class::Control => self.control,
            Class::Established | Class::Trusted => 0,
        }
    }
}

/// The part of one trusted owner.
#[derive(Clone)]
pub struct TrustedPlan {
    /// The configured key, without prefix. Sensitive.
    pub(crate) key: Arc<str>,
    /// Turns per round.
    pub weight: u32,
    /// Its floor in each stage.
    pub floors: [u64; Stage::COUNT],
    /// Its hard limit in each stage.
    pub hard_limits: [u64; Stage::COUNT],
}

impl std::fmt::Debug for TrustedPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TrustedPlan")
            .field("weight", &self.weight)
            .field("floors", &self.floors)
            .field("hard_limits", &self.hard_limits)
            .finish_non_exhaustive()
    }
}

/// Numbers that fit together.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) profile: Profile,
    pub(crate) stages: [StagePlan; Stage::COUNT],
    pub(crate) trusted: Vec<TrustedPlan>,
    pub(crate) footprint: u64,
    pub(crate) max_tracked_owners: u32,
    pub(crate) max_owner_key_length: u32,
    pub(crate) default_weight: u32,
    pub(crate) handshake_timeout: Duration,
    pub(crate) rate: RateOptions,
}

impl Plan {
    /// Divides `totals` as `options` say.
    ///
    /// # Errors
    ///
    /// Everything that does not fit, at once. In [`Profile::SharedOnly`] only the handshake timeout and the absence of trusted owners
    /// are checked, and every stage is unlimited.
    pub fn derive(options: &Options, totals: &Totals) -> Result<Self, Vec<PlanError>> {
        derive(options, totals)
    }

    /// The configured profile.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// The division of one stage.
    #[must_use]
    pub fn stage(&self, stage: Stage) -> &StagePlan {
        &self.stages[stage.index()]
    }

    /// The trusted owners, in the order of the configuration.
    #[must_use]
    pub fn trusted(&self) -> &[TrustedPlan] {
        &self.trusted
    }

    /// The bytes charged for a message before anything is known of its length.
    #[must_use]
    pub fn footprint(&self) -> u64 {
        self.footprint
    }

    /// How long a handshake may take.
    #[must_use]
    pub fn handshake_timeout(&self) -> Duration {
        self.handshake_timeout
    }

    /// How often the end of handshakes is looked for: half the timeout, from 1 ms to 1 s.
    #[must_use]
    pub fn handshake_check_period(&self) -> Duration {
        (self.handshake_timeout / 2).clamp(Duration::from_millis(1), Duration::from_secs(1))
    }

    /// How many owners may hold leases at once.
    #[must_use]
    pub fn max_tracked_owners(&self) -> u32 {
        self.max_tracked_owners
    }

    /// The rate of new connections.
    #[must_use]
    pub fn rate(&self) -> RateOptions {
        self.rate
    }

    /// What the log says at start: one line per stage, without the key of any owner. In [`Profile::SharedOnly`] one line in all.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        if !self.profile.has_accounts() {
            return vec![format!("isolation {}: no stage is limited or divided", self.profile)];
        }
        self.stages.iter().map(|stage| line(self.profile, stage)).collect()
    }
}

fn line(profile: Profile, plan: &StagePlan) -> String {
    format!(
        "isolation {profile}: {} capacity {} shared {} bootstrap {} reconnect {} control {} trusted {} owner-hard-limit {}",
        plan.stage,
        plan.capacity,
        plan.shared,
        plan.bootstrap,
        plan.reconnect,
        plan.control,
        plan.trusted,
        plan.hard_limit,
    )
}
