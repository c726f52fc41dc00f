//! One direction of a connection: bytes that arrive in other pieces than they were sent in, later, in order.
//!
//! It must not know what the bytes mean.

use std::collections::VecDeque;
use std::time::Duration;

use crate::random::Dice;

/// Bytes under way.
#[derive(Debug)]
pub(crate) struct Pipe {
    dice: Dice,
    segments: VecDeque<(Duration, Vec<u8>)>,
    last: Duration,
}

impl Pipe {
    pub(crate) fn new(dice: Dice) -> Self {
        Self {
            dice,
            segments: VecDeque::new(),
            last: Duration::ZERO,
        }
    }

    /// Takes bytes, splits them and decides when each piece arrives.
    pub(crate) fn send(&mut self, now: Duration, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            let piece = match self.dice.below(10) {
                0 => self.dice.between(1, length.min(9)),
                1 | 2 => self.dice.between(1, length),
                _ => length,
            };
            let (piece, rest) = bytes.split_at(usize::try_from(piece).unwrap_or(bytes.len()).min(bytes.len()));
            let delay = match self.dice.below(20) {
                0 => self.dice.between(5_000, 80_000),
                1..=4 => self.dice.between(500, 5_000),
                _ => self.dice.between(50, 500),
            };
            self.last = self.last.max(now + Duration::from_micros(delay));
            self.segments.push_back((self.last, piece.to_vec()));
            bytes = rest;
        }
    }

    /// When the next piece arrives.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.segments.front().map(|(at, _)| *at)
    }

    /// The next piece that has arrived.
    pub(crate) fn receive(&mut self, now: Duration) -> Option<Vec<u8>> {
        if self.next()? > now {
            return None;
        }
        self.segments.pop_front().map(|(_, bytes)| bytes)
    }
}
