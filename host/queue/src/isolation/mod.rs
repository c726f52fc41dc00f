//! Resource isolation: who is charged for work, and what the others keep while somebody is charged for too much.
//!
//! Work is charged to an [`Owner`] in one of eight [`Stage`]s. A [`Plan`] divides the capacity of each stage into floors, which only
//! one class of callers (or one trusted owner) may use, and a shared part that anybody may use up to a hard limit. [`Isolation`]
//! keeps the accounts: [`Isolation::try_acquire`] never waits, it grants a [`Lease`] or says why not. A lease is never revoked, and
//! gives back what it holds when it is dropped.
//!
//! This module owns the options and their validation, the owners, the accounts, the rate limiter for new connections and the rules
//! that turn what is known of a caller into an owner. It must not know a protocol, a socket, a clock or a hash function: identities
//! come in as text that is hashed already, time as a [`Duration`](std::time::Duration) since an arbitrary start.

mod admission;
mod cache;
mod classify;
mod counters;
mod division;
mod errors;
mod issue;
mod lease;
mod lease_set;
mod ledger;
mod options;
mod owner;
mod plan;
mod provider;
mod rate;
mod validate;
mod vocabulary;

pub use admission::{Accepted, Established, NotAccepted, NotEstablished};
pub use cache::OwnerCache;
pub use classify::{Binding, Caller, Evidence, Ground, Intent, Mapping, PeerAddress, Protection, Verdict};
pub use counters::Counters;
pub use errors::{OwnerError, PlanError, Problem};
pub use lease::Lease;
pub use lease_set::LeaseSet;
pub use options::{
    MAX_HANDSHAKE_TIMEOUT, Options, RateOptions, Reservation, StageOptions, TotalNames, Totals, TrustedOwner,
};
pub use owner::{Identity, Owner};
pub use plan::{Plan, StagePlan, TrustedPlan};
pub use provider::{Isolation, RETRY_AFTER, Refused};
pub use rate::{RateClass, RateLimiter};
pub use vocabulary::{Class, Profile, Reason, Stage, Unit, UnknownName};
