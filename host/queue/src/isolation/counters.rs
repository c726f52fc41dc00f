//! What is in use and what was refused, by stage and class: the numbers that an operator looks at. Owns the counts of refusals, the counts of use where
//! nothing is accounted, and the picture of all of them; knows no owner, so nothing here can name one.

use std::fmt;
// Of no interest to the checkers of the model: nothing is decided by these numbers.
use std::sync::atomic::{AtomicU64, Ordering};

use super::vocabulary::{Class, Reason, Stage};

/// One number for each class of each stage.
pub(crate) type ByClass = [[u64; Class::COUNT]; Stage::COUNT];

/// Counted as it happens.
pub(crate) struct Counts {
    /// What is in use where nothing is limited.
    used: [[AtomicU64; Class::COUNT]; Stage::COUNT],
    refused: [[[AtomicU64; Reason::COUNT]; Class::COUNT]; Stage::COUNT],
}

impl Counts {
    pub(crate) fn new() -> Self {
        let zero = |_| AtomicU64::new(0);
        Self {
            used: std::array::from_fn(|_| std::array::from_fn(zero)),
            refused: std::array::from_fn(|_| std::array::from_fn(|_| std::array::from_fn(zero))),
        }
    }

    pub(crate) fn add(&self, stage: Stage, class: Class, amount: u64) {
        self.used[stage.index()][class.index()].fetch_add(amount, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self, stage: Stage, class: Class, amount: u64) {
        self.used[stage.index()][class.index()].fetch_sub(amount, Ordering::Relaxed);
    }

    pub(crate) fn refuse(&self, stage: Stage, class: Class, reason: Reason) {
        self.refused[stage.index()][class.index()][reason.index()].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn used(&self) -> ByClass {
        let load = |stage: usize, class: usize| self.used[stage][class].load(Ordering::Relaxed);
        std::array::from_fn(|stage| std::array::from_fn(|class| load(stage, class)))
    }

    pub(crate) fn refused(&self, stage: Stage, class: Class, reason: Reason) -> u64 {
        self.refused[stage.index()][class.index()][reason.index()].load(Ordering::Relaxed)
    }
}

/// All numbers at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    pub(crate) used: ByClass,
    pub(crate) refused: [[[u64; Reason::COUNT]; Class::COUNT]; Stage::COUNT],
    pub(crate) owners: u32,
}

impl Counters {
    /// What a class has in use of a stage, in the unit of the stage.
    #[must_use]
    pub const fn used(&self, stage: Stage, class: Class) -> u64 {
        self.used[stage.index()][class.index()]
    }

    /// How often a class was refused in a stage for a reason, since the start.
    #[must_use]
    pub const fn refused(&self, stage: Stage, class: Class, reason: Reason) -> u64 {
        self.refused[stage.index()][class.index()][reason.index()]
    }

    /// How many owners hold leases; 0 where nothing is limited.
    #[must_use]
    pub const fn owners(&self) -> u32 {
        self.owners
    }

    /// `Stage.Class=amount` for everything in use, separated by spaces; `nothing` for nothing.
    pub fn in_use(&self) -> impl fmt::Display {
        let all = classes().filter_map(|(stage, class)| {
            let used = self.used(stage, class);
            (used > 0).then(|| format!("{stage}.{class}={used}"))
        });
        joined(all)
    }

    /// `Stage.Class.Reason=count` for every kind of refusal there was, separated by spaces; `nothing` for nothing.
    pub fn refusals(&self) -> impl fmt::Display {
        let all = classes().flat_map(|(stage, class)| {
            Reason::ALL.into_iter().filter_map(move |reason| {
                let count = self.refused(stage, class, reason);
                (count > 0).then(|| format!("{stage}.{class}.{reason}={count}"))
            })
        });
        joined(all)
    }
}

fn classes() -> impl Iterator<Item = (Stage, Class)> {
    let of = |stage| Class::ALL.into_iter().map(move |class| (stage, class));
    Stage::ALL.into_iter().flat_map(of)
}

fn joined(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.collect();
    if words.is_empty() {
        "nothing".to_owned()
    } else {
        words.join(" ")
    }
}
