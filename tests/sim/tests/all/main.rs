//! The simulation over many seeds, the same with reloads at every boundary, and proof that it can fail.

mod mutants;
mod reload;
mod seeds;

/// The seeds of a test: `first` and the `count` - 1 behind it, or the one in `BACKPLANE_SIM_SEED`.
pub(crate) fn seeds(first: u64, count: u64) -> std::ops::Range<u64> {
    match std::env::var("BACKPLANE_SIM_SEED")
        .ok()
        .and_then(|seed| seed.parse::<u64>().ok())
    {
        Some(seed) => seed..seed + 1,
        None => first..first + count,
    }
}
