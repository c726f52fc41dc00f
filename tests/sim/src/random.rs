//! The one source of chance: a generator that a seed determines, split so that actors do not disturb each other.
//!
//! It must not know what is drawn for. An actor that draws more or less often than before changes nothing for the others, so a reload that
//! is added to a run leaves the clients' script and the network as they were.

use backplane_crypto::{Random, RandomError};
use backplane_session::{RandomSource, RandomUnavailable};

/// A generator in the manner of SplitMix64: small, fast, good enough to vary a script.
#[derive(Debug, Clone)]
pub(crate) struct Dice {
    state: u64,
}

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Dice {
    /// The generator of one actor. It depends on the seed and the label alone, not on what was drawn before.
    #[must_use]
    pub(crate) fn of(seed: u64, label: &str, number: u64) -> Self {
        let start = mix(seed ^ GOLDEN);
        let named = label
            .bytes()
            .fold(start, |state, byte| mix(state ^ u64::from(byte)).wrapping_add(GOLDEN));
        Self {
            state: mix(named ^ number.wrapping_mul(GOLDEN)),
        }
    }

    /// The next 64 bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// A number from 0 to `count` - 1; 0 for a count of 0.
    pub(crate) fn below(&mut self, count: u64) -> u64 {
        self.bits() % count.max(1)
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True in so many of a hundred cases.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of the choices; there must be one.
    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        let count = u64::try_from(choices.len()).unwrap_or(u64::MAX);
        choices.get(usize::try_from(self.below(count)).unwrap_or(0))
    }

    /// One of the choices, each as likely as its weight says.
    pub(crate) fn weighted<T: Copy>(&mut self, choices: &[(u64, T)]) -> Option<T> {
        let total: u64 = choices.iter().map(|(weight, _)| weight).sum();
        let mut at = self.below(total);
        for (weight, choice) in choices {
            if at < *weight {
                return Some(*choice);
            }
            at -= weight;
        }
        None
    }

    fn bytes(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            let bits = self.bits().to_le_bytes();
            for (place, byte) in chunk.iter_mut().zip(bits) {
                *place = byte;
            }
        }
    }
}

impl Random for Dice {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), RandomError> {
        self.bytes(out);
        Ok(())
    }
}

impl RandomSource for Dice {
    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), RandomUnavailable> {
        self.bytes(buffer);
        Ok(())
    }
}
