//! The rate of new connections. Owns the token buckets; knows neither listeners nor a clock.

use std::time::Duration;

use super::owner::{Origin, Owner};
use super::plan::Plan;
use super::vocabulary::Class;
use crate::sync::Mutex;

/// A whole token; buckets count in parts, so that nothing is lost between two looks at the time.
const TOKEN: u64 = 1_000_000_000;

/// Whose tokens a new connection takes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateClass {
    /// Nobody's: only shared tokens.
    Shared,
    /// Those of callers that the network tells apart.
    Bootstrap,
    /// Those of callers that reconnect.
    Reconnect,
    /// Those of one trusted owner, by its place in the configuration.
    Trusted(usize),
}

impl From<&Owner> for RateClass {
    /// A continuity owner has no tokens of its own, nor have control requests.
    fn from(owner: &Owner) -> Self {
        match (owner.0.origin, owner.0.class) {
            (Origin::Trusted(index), _) => Self::Trusted(index as usize),
            (Origin::Continuity, _) => Self::Shared,
            (_, Class::Bootstrap) => Self::Bootstrap,
            (_, Class::Reconnect) => Self::Reconnect,
            _ => Self::Shared,
        }
    }
}

/// One bucket: `per_second` tokens are added, up to `burst`.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    per_second: u64,
    burst: u64,
    level: u64,
}

impl Bucket {
    fn full(per_second: u64, burst: u64) -> Self {
        // Both come from 32 bits, so that the product fits.
        let burst = burst * TOKEN;
        Self {
            per_second,
            burst,
            level: burst,
        }
    }

    fn fill(&mut self, elapsed: u64) {
        let added = elapsed.saturating_mul(self.per_second);
        self.level = self.level.saturating_add(added).min(self.burst);
    }

    fn take(&mut self) -> bool {
        let enough = self.level >= TOKEN;
        if enough {
            self.level -= TOKEN;
        }
        enough
    }

    /// When there will be a token.
    fn wait(&self) -> Duration {
        let missing = TOKEN.saturating_sub(self.level);
        Duration::from_nanos(missing.div_ceil(self.per_second.max(1)))
    }
}

#[derive(Debug)]
struct Buckets {
    /// Nanoseconds at the last look.
    last: u64,
    shared: Bucket,
    /// Bootstrap, reconnect, and the trusted owners in their order; empty in profiles without floors.
    reserved: Vec<Bucket>,
}

/// Token buckets for new connections. In the profiles with floors, bootstrap, reconnect and each trusted owner have one token per second
/// and a burst of one for themselves, inside the totals; they may use shared tokens too.
#[derive(Debug)]
pub struct RateLimiter {
    /// `None`: no limit.
    buckets: Option<Mutex<Buckets>>,
}

impl RateLimiter {
    /// Full buckets as `plan` says.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let rate = plan.rate();
        if rate.per_second == 0 || rate.burst == 0 {
            return Self { buckets: None };
        }
        let count = if plan.profile().has_floors() {
            2 + plan.trusted().len()
        } else {
            0
        };
        let reserved = vec![Bucket::full(1, 1); count];
        // The plan has checked that at least one of each is left.
        let count = count as u64;
        let shared = Bucket::full(
            u64::from(rate.per_second).saturating_sub(count),
            u64::from(rate.burst).saturating_sub(count),
        );
        Self {
            buckets: Some(Mutex::new(Buckets {
                last: 0,
                shared,
                reserved,
            })),
        }
    }

    /// Takes one token, its own first. Tokens are never given back. A time before the last one counts as the last one.
    ///
    /// # Errors
    ///
    /// The time after which there is a token, if nobody else takes it.
    pub fn try_take(&self, now: Duration, class: impl Into<RateClass>) -> Result<(), Duration> {
        let Some(buckets) = &self.buckets else { return Ok(()) };
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let mut buckets = buckets.lock();
        let elapsed = now.saturating_sub(buckets.last);
        buckets.last += elapsed;
        buckets.shared.fill(elapsed);
        for bucket in &mut buckets.reserved {
            bucket.fill(elapsed);
        }
        let own = match class.into() {
            RateClass::Shared => None,
            RateClass::Bootstrap => Some(0),
            RateClass::Reconnect => Some(1),
            RateClass::Trusted(index) => index.checked_add(2),
        };
        let Buckets { shared, reserved, .. } = &mut *buckets;
        let own = own.and_then(|index| reserved.get_mut(index));
        if let Some(own) = own {
            if own.take() || shared.take() {
                return Ok(());
            }
            return Err(own.wait().min(shared.wait()));
        }
        if shared.take() { Ok(()) } else { Err(shared.wait()) }
    }
}
