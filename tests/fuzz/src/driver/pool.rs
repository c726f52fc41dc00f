//! Inputs worth changing: one for each way that was seen.

use std::collections::HashSet;

/// Most inputs.
const MOST: usize = 30_000;
/// Most bytes of all inputs.
const MOST_BYTES: usize = 64 << 20;

#[derive(Default)]
pub(super) struct Pool {
    ways: HashSet<u64>,
    inputs: Vec<Vec<u8>>,
    bytes: usize,
}

impl Pool {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn len(&self) -> usize {
        self.ways.len()
    }

    /// Keeps an input whose way is new, while there is room.
    pub(super) fn offer(&mut self, way: u64, input: &[u8]) {
        let room = self.inputs.len() < MOST && self.bytes + input.len() <= MOST_BYTES;
        if room && self.ways.insert(way) {
            self.bytes += input.len();
            self.inputs.push(input.to_vec());
        }
    }

    /// One of the inputs by a number; half of the numbers mean one of the newest eighth.
    pub(super) fn pick(&self, number: u64) -> &[u8] {
        let count = self.inputs.len() as u64;
        let place = if number & 1 == 0 {
            (number >> 1).checked_rem(count)
        } else {
            (number >> 1)
                .checked_rem(count.div_ceil(8))
                .map(|back| count - 1 - back)
        };
        let place = place.and_then(|place| usize::try_from(place).ok());
        place
            .and_then(|place| self.inputs.get(place))
            .map_or(&[], Vec::as_slice)
    }
}
