//! What a target tells a driver about the way an input took: a stand-in for coverage that needs no instrumentation.
//!
//! Owns one number per thread. Must not know what it means: two inputs that end with different numbers took different ways.

use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};

thread_local! {
    static WAY: Cell<u64> = const { Cell::new(0) };
}

/// Starts a new way.
pub fn reset() {
    WAY.set(0);
}

/// Adds a turn: a position, an error, a kind. Order counts.
pub fn note(turn: impl Hash) {
    let mut hasher = DefaultHasher::new();
    WAY.get().hash(&mut hasher);
    turn.hash(&mut hasher);
    WAY.set(hasher.finish());
}

/// The way since the last [`reset`].
#[must_use]
pub fn way() -> u64 {
    WAY.get()
}
