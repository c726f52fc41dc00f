//! The aggregate functions of OPC UA Part 13: what one interval of raw data comes to.
//!
//! It owns the functions, the bounding values, the status calculation and the cutting of time into intervals. It must not know clocks,
//! sockets, sessions or historians: values and instants are handed in. Every function is computed in one pass with a fixed amount of
//! memory ([`Live`] keeps no list of values, whatever the length of an interval), and one and the same pass serves a live monitored item
//! and a read of history ([`process`]), so that both give the same numbers.

mod bounds;
mod configuration;
mod counts;
mod extremes;
mod fold;
mod function;
mod history;
mod line;
mod live;
mod regions;
mod results;
mod sample;
mod status;

pub use configuration::{Settings, defaults, effective};
pub use function::Function;
pub use history::{Interval, MAX_INTERVALS, annotation_counts, intervals, process};
pub use live::{Live, MAX_RESULTS_AT_ONCE};
pub use status::{CALCULATED, EXTRA_DATA, INFO_TYPE_DATA_VALUE, INTERPOLATED, MULTIPLE_VALUES, PARTIAL};

/// Ticks of [`DateTime`](backplane_types::DateTime) in a millisecond.
const TICKS_PER_MS: i64 = 10_000;

/// The resolution of time in the calculations (Part 13, 5.4.2.4): what the last raw value lasts, and how far EffectiveEndTime is before
/// the end of an interval.
const RESOLUTION: i64 = TICKS_PER_MS;
