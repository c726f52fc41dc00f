//! Making inputs out of others. Owns the pseudo-random numbers and the ways of changing bytes.

use super::pool::Pool;

/// Bytes that mean something in one of the formats.
const WORDS: &[&[u8]] = &[
    b"HELF",
    b"OPNF",
    b"MSGF",
    b"MSGC",
    b"MSGA",
    b"CLOF",
    b"ACKF",
    b"ERRF",
    b"RHEF",
    &[0xFF, 0xFF, 0xFF, 0xFF],
    &[0xFF, 0xFF, 0xFF, 0x7F],
    &[0, 0, 0, 0x80],
    &[0xFE, 0xFF, 0xFF, 0xFF],
    &[1, 0, 0, 0],
    &[0, 0, 0, 0],
    &[0, 0, 1, 0],
    &[0x10, 0x27, 0, 0],
    &[0x98, 1, 0, 0, 0],
    &[0x97, 1, 0, 0, 0],
    &[0x96, 1, 0, 0, 0],
    &[23, 1],
    &[22, 0, 0, 1],
    &[25, 0x40],
    &[24],
    &[0xC6],
    &[0x40],
    &[2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0],
    &[0xC3, 0x28],
    &[0xED, 0xA0, 0x80],
    "😀".as_bytes(),
    b"ns=",
    b"nsu=",
    b"svr=",
    b"i=",
    b"s=",
    b"g=",
    b"b=",
    b";",
    b"%3B",
    b"%25",
    b":",
    b",",
    b"-----BEGIN ",
    b"-----END ",
    b"-----",
    &[0x30, 0x82],
    &[0x30, 0x80],
    &[0x30, 0x84, 0x7F, 0xFF, 0xFF, 0xFF],
    &[0x02, 0x01, 0],
    &[0x05, 0],
    &[0xA3, 0x82],
    &[0x06, 0x03, 0x55, 0x1D, 0x11],
];

/// Numbers at the edges.
const EDGES: [u64; 14] = [
    0,
    1,
    2,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFFF,
    0x7FFF_FFFF_FFFF_FFFF,
    u64::MAX,
];

pub(super) struct Mutator {
    state: u64,
}

impl Mutator {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number of SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut number = self.state;
        number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        number ^ (number >> 31)
    }

    /// A number below `end`; 0 if there is none.
    fn below(&mut self, end: usize) -> usize {
        let number = self.next().checked_rem(end as u64).unwrap_or(0);
        usize::try_from(number).unwrap_or(0)
    }

    /// A place to start from and a length, both within `length`; mostly short.
    fn stretch(&mut self, length: usize) -> (usize, usize) {
        let at = self.below(length);
        let most = if self.next() & 3 == 0 {
            length - at
        } else {
            (length - at).min(16)
        };
        (at, self.below(most) + usize::from(most > 0))
    }

    /// A new input of at most `longest` bytes.
    pub(super) fn make(&mut self, pool: &Pool, longest: usize) -> Vec<u8> {
        let mut input = pool.pick(self.next()).to_vec();
        let changes = 1 << self.below(4);
        for _ in 0..changes {
            self.change(&mut input, pool);
        }
        input.truncate(longest);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, pool: &Pool) {
        if input.is_empty() {
            input.push(0);
        }
        let length = input.len();
        match self.below(12) {
            0 => {
                let bit = 1 << self.below(8);
                let at = self.below(length);
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= bit;
                }
            }
            1 => {
                let value = self.next().to_le_bytes()[0];
                let at = self.below(length);
                if let Some(byte) = input.get_mut(at) {
                    *byte = value;
                }
            }
            2 => {
                let width = 1 << self.below(4);
                let edge = self.below(EDGES.len());
                let value = EDGES.get(edge).copied().unwrap_or(0).to_le_bytes();
                self.overwrite(input, value.get(..width).unwrap_or(&value));
            }
            3 => self.nudge(input),
            4 => {
                let word = self.below(WORDS.len());
                self.overwrite(input, WORDS.get(word).copied().unwrap_or_default());
            }
            5 => {
                let word = self.below(WORDS.len());
                let at = self.below(length + 1);
                input.splice(at..at, WORDS.get(word).copied().unwrap_or_default().iter().copied());
            }
            6 => {
                let (at, count) = self.stretch(length);
                input.drain(at..at + count);
            }
            7 => {
                let (from, count) = self.stretch(length);
                let copy = input.get(from..from + count).unwrap_or_default().to_vec();
                let at = self.below(length + 1);
                input.splice(at..at, copy);
            }
            8 => {
                let (from, count) = self.stretch(length);
                let copy = input.get(from..from + count).unwrap_or_default().to_vec();
                self.overwrite(input, &copy);
            }
            9 => {
                let other = pool.pick(self.next()).to_vec();
                let (from, count) = self.stretch(other.len().max(1));
                let piece = other
                    .get(from..(from + count).min(other.len()))
                    .unwrap_or_default()
                    .to_vec();
                let at = self.below(length + 1);
                input.splice(at..at, piece);
            }
            10 => {
                let other = pool.pick(self.next()).to_vec();
                let from = self.below(other.len());
                let keep = self.below(length + 1);
                input.truncate(keep);
                input.extend_from_slice(other.get(from..).unwrap_or_default());
            }
            _ => {
                let keep = self.below(length + 1);
                if self.next() & 1 == 0 {
                    input.truncate(keep);
                } else {
                    let value = self.next().to_le_bytes()[0];
                    input.extend(std::iter::repeat_n(value, keep.min(64)));
                }
            }
        }
    }

    fn overwrite(&mut self, input: &mut [u8], with: &[u8]) {
        let at = self.below(input.len());
        for (place, byte) in input.iter_mut().skip(at).zip(with) {
            *place = *byte;
        }
    }

    /// Makes a number of four bytes a little larger or smaller.
    fn nudge(&mut self, input: &mut [u8]) {
        let at = self.below(input.len());
        let by = u32::try_from(self.below(16)).unwrap_or(0).wrapping_sub(8);
        if let Some(place) = input.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<4>) {
            *place = u32::from_le_bytes(*place).wrapping_add(by).to_le_bytes();
        }
    }
}
