//! Latencies in a log-linear histogram of fixed size: 64 steps in each power of two, so that no answer is off by more than 1.6 %.
//!
//! Owns counts only. Knows nothing of clocks: values are nanoseconds, or whatever the caller counts.

/// Bits of a value that select the step inside its power of two.
const STEP_BITS: u32 = 6;
const STEPS: usize = 1 << STEP_BITS;
/// One block of steps for the values below 64, and one for each further power of two of a u64.
const BUCKETS: usize = STEPS * (u64::BITS - STEP_BITS + 1) as usize;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: Box<[u64]>,
    count: u64,
    highest: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: vec![0; BUCKETS].into_boxed_slice(),
            count: 0,
            highest: 0,
        }
    }
}

impl Histogram {
    /// Counts one value.
    pub(crate) fn record(&mut self, value: u64) {
        if let Some(count) = self.counts.get_mut(bucket(value)) {
            *count = count.saturating_add(1);
        }
        self.count = self.count.saturating_add(1);
        self.highest = self.highest.max(value);
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.counts.fill(0);
        self.count = 0;
        self.highest = 0;
    }

    /// The largest value, exactly; 0 if there is none.
    pub(crate) fn highest(&self) -> u64 {
        self.highest
    }

    /// The value that `share` (0 to 1) of all values do not exceed, rounded up to the end of its step; 0 if there is none.
    pub(crate) fn quantile(&self, share: f64) -> u64 {
        // Counts are far below 2^53.
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss
        )]
        let rank = ((self.count as f64 * share).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0u64;
        for (index, count) in self.counts.iter().enumerate() {
            seen = seen.saturating_add(*count);
            if seen >= rank {
                return end_of(index).min(self.highest);
            }
        }
        self.highest
    }
}

fn bucket(value: u64) -> usize {
    let steps = STEPS as u64;
    let index = if value < steps {
        value
    } else {
        let shift = (u64::BITS - 1 - STEP_BITS).saturating_sub(value.leading_zeros());
        // `value >> shift` lies between 64 and 127.
        u64::from(shift)
            .saturating_mul(steps)
            .saturating_add(value.wrapping_shr(shift))
    };
    usize::try_from(index).unwrap_or(BUCKETS)
}

/// The largest value that falls into a bucket.
fn end_of(bucket: usize) -> u64 {
    if bucket < STEPS {
        return bucket as u64;
    }
    let shift = u32::try_from(bucket / STEPS).unwrap_or(1).saturating_sub(1);
    let step = (bucket % STEPS + STEPS) as u64;
    (step.saturating_add(1)).wrapping_shl(shift).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::{BUCKETS, Histogram, bucket, end_of};

    #[test]
    fn every_value_lies_in_its_bucket() {
        let mut values: Vec<u64> = (0..5_000).collect();
        for power in 0..64 {
            let value = 1u64 << power;
            values.extend([value - 1, value, value + 1, value + (value >> 3), u64::MAX - value]);
        }
        values.push(u64::MAX);
        for value in values {
            let bucket = bucket(value);
            assert!(bucket < BUCKETS, "{value}");
            assert!(end_of(bucket) >= value, "{value}");
            assert!(bucket == 0 || end_of(bucket - 1) < value, "{value}");
            let error = end_of(bucket) - value;
            assert!(error as f64 <= value as f64 / 64.0, "{value} is off by {error}");
        }
    }

    #[test]
    fn quantiles_of_a_ramp() {
        let mut histogram = Histogram::default();
        for value in 1..=10_000 {
            histogram.record(value * 1_000);
        }
        assert_eq!(histogram.count, 10_000);
        for (share, exact) in [(0.5, 5e6), (0.9, 9e6), (0.99, 9.9e6), (0.999, 9.99e6)] {
            let found = histogram.quantile(share) as f64;
            assert!(
                found >= exact && found <= exact * 1.016,
                "{share}: {found} instead of {exact}"
            );
        }
        assert_eq!(histogram.quantile(1.0), 10_000_000);
        assert_eq!(histogram.highest(), 10_000_000);
    }

    #[test]
    fn an_empty_histogram_has_nothing_to_say() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.99), 0);
        histogram.record(7);
        assert_eq!(histogram.quantile(0.0), 7);
        histogram.clear();
        assert_eq!(
            (histogram.count, histogram.highest(), histogram.quantile(0.5)),
            (0, 0, 0)
        );
    }
}
