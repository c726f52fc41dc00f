//! What can be wrong with a configuration and with a key. No message repeats an owner's key.

use std::time::Duration;

use super::vocabulary::{Class, Profile};

/// One thing in the options or totals that does not fit. Nothing is raised, lowered or dropped to make it fit: the server must not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option} {problem}")]
pub struct PlanError {
    /// The setting to change, as the user writes it, such as `isolation.stage[Connection].capacity`.
    pub option: String,
    /// What is wrong with it, with the legal values.
    pub problem: Problem,
}

/// What is wrong with a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Too small.
    #[error("is {given}, and must be at least {minimum}: {because}")]
    Below {
        /// The value it has, by default or by configuration.
        given: u64,
        /// The least that works.
        minimum: u64,
        /// Where the minimum comes from.
        because: &'static str,
    },
    /// Outside a range.
    #[error("is {given}, and must be from {minimum} to {maximum}")]
    OutOfRange {
        /// The value it has.
        given: u64,
        /// The least that works.
        minimum: u64,
        /// The most that works.
        maximum: u64,
    },
    /// A floor that no request fits into.
    #[error("is {given}, and must be 0 or at least {minimum}, the smallest unit of work")]
    FloorTooSmall {
        /// The value it has.
        given: u64,
        /// The least that is not 0.
        minimum: u64,
    },
    /// Has no meaning in this profile.
    #[error("has no meaning in the profile {profile}")]
    NotInProfile {
        /// The configured profile.
        profile: Profile,
    },
    /// Something that the profile cannot do without is not there.
    #[error("is {profile}, which needs {what}")]
    Needs {
        /// The configured profile.
        profile: Profile,
        /// What it needs.
        what: &'static str,
    },
    /// Stands here for the second time.
    #[error("is given twice")]
    Duplicate,
    /// An empty key.
    #[error("is empty")]
    Empty,
    /// A key that is too long.
    #[error("has {length} bytes, and at most {maximum} are allowed")]
    TooLong {
        /// Bytes of the key.
        length: u64,
        /// The configured limit.
        maximum: u64,
    },
    /// A product or a sum beyond 64 bits.
    #[error("is {given}: what follows from it is not a number of 64 bits")]
    Overflow {
        /// The value it has.
        given: u64,
    },
    /// A time outside its range.
    #[error("is {given:?}, and must be above zero and at most {maximum:?}")]
    Timeout {
        /// The value it has.
        given: Duration,
        /// The longest.
        maximum: Duration,
    },
}

/// What was found so far.
#[derive(Default)]
pub(super) struct Findings(pub(super) Vec<PlanError>);

impl Findings {
    pub(super) fn add(&mut self, option: impl Into<String>, problem: Problem) {
        self.0.push(PlanError {
            option: option.into(),
            problem,
        });
    }

    pub(super) fn at_least(&mut self, option: impl Into<String>, given: u64, minimum: u64, because: &'static str) {
        if given < minimum {
            self.add(
                option,
                Problem::Below {
                    given,
                    minimum,
                    because,
                },
            );
        }
    }

    pub(super) fn within(&mut self, option: impl Into<String>, given: u64, minimum: u64, maximum: u64) {
        if given < minimum || given > maximum {
            self.add(
                option,
                Problem::OutOfRange {
                    given,
                    minimum,
                    maximum,
                },
            );
        }
    }

    pub(super) fn floor(&mut self, option: impl Into<String>, given: u64, minimum: u64) {
        if given != 0 && given < minimum {
            self.add(option, Problem::FloorTooSmall { given, minimum });
        }
    }
}

/// Why no owner is issued. The request that asked for one fails: it must not be charged to somebody else instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnerError {
    /// The key is empty.
    #[error("an owner key is empty")]
    EmptyKey,
    /// The key is longer than `isolation.max-owner-key-length`, or than 256 bytes when no classifier gave it.
    #[error("an owner key of {length} bytes is longer than {maximum}")]
    KeyTooLong {
        /// Bytes of the key.
        length: usize,
        /// The limit.
        maximum: usize,
    },
    /// A trusted owner that the configuration does not name.
    #[error("the classifier named a trusted owner that is not configured")]
    Unprovisioned,
    /// A class that owners of this kind cannot have.
    #[error("an owner of this kind cannot have the class {0}")]
    WrongClass(Class),
    /// The owner that was handed in was not issued by this provider.
    #[error("the owner was issued by another provider")]
    Foreign,
}
