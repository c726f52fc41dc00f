//! What makes one build visibly different from the other, so that a test sees which one serves.

/// Which of the two builds this is.
pub(crate) const NAME: &str = if cfg!(feature = "variant-b") { "b" } else { "a" };

/// Added to the sine signal.
pub(crate) const OFFSET: f64 = if cfg!(feature = "variant-b") { 500.0 } else { 0.0 };

/// A node that the other build does not have.
pub(crate) const ONLY_HERE: &str = if cfg!(feature = "variant-b") {
    "OnlyInB"
} else {
    "OnlyInA"
};

/// For people.
pub(crate) const VERSION: &str = if cfg!(feature = "variant-b") {
    concat!(env!("CARGO_PKG_VERSION"), "+b")
} else {
    env!("CARGO_PKG_VERSION")
};
