//! Bytes on their way to one client.
//!
//! Owns the sealed output of a connection, how much of it is gone, and how many responses are still in it: the measure of
//! back-pressure. Everything answered in one turn lies side by side and leaves in one write. Knows no socket.

use std::cell::RefCell;
use std::collections::VecDeque;

/// Reading stops while more responses than this wait to be written.
pub(crate) const STOP_READING: usize = 100;
/// Reading goes on when no more than this wait.
pub(crate) const RESUME_READING: usize = 50;
/// Reading also stops while more bytes than this wait, whatever their number.
const STOP_BYTES: usize = 4 * 1024 * 1024;
/// A buffer that grew beyond this is not kept for the next connection.
const KEEP_CAPACITY: usize = 256 * 1024;
/// Buffers kept for the next connection of the same thread.
const SPARE: usize = 16;

thread_local! {
    static POOL: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// The output of one connection.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    sent: usize,
    ends: VecDeque<usize>,
    paused: bool,
}

impl Outbox {
    /// The buffer to append to; an idle connection has none. Call [`message_done`](Self::message_done) after each message.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        if self.bytes.capacity() == 0 {
            self.bytes = POOL.with_borrow_mut(Vec::pop).unwrap_or_default();
        }
        &mut self.bytes
    }

    /// Marks the end of what was appended as the end of one message.
    pub(crate) fn message_done(&mut self) {
        self.ends.push_back(self.bytes.len());
    }

    /// What has to be written next.
    #[must_use]
    pub(crate) fn pending(&self) -> &[u8] {
        self.bytes.get(self.sent..).unwrap_or_default()
    }

    /// Whether anything has to be written.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.sent >= self.bytes.len()
    }

    /// Records that `count` bytes of [`pending`](Self::pending) are gone.
    pub(crate) fn advance(&mut self, count: usize) {
        self.sent = self.sent.saturating_add(count).min(self.bytes.len());
        while self.ends.front().is_some_and(|end| *end <= self.sent) {
            self.ends.pop_front();
        }
        if self.is_empty() {
            self.release();
        } else if self.sent > KEEP_CAPACITY {
            self.bytes.drain(..self.sent);
            for end in &mut self.ends {
                *end -= self.sent;
            }
            self.sent = 0;
        }
    }

    /// Gives the empty buffer to whoever needs one next.
    fn release(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        self.sent = 0;
        self.ends.clear();
        if bytes.capacity() <= KEEP_CAPACITY {
            POOL.with_borrow_mut(|pool| {
                if pool.len() < SPARE {
                    pool.push(bytes);
                }
            });
        }
    }

    /// Whether requests should be left in the socket until more has been written. Has memory: stops above
    /// [`STOP_READING`], resumes at [`RESUME_READING`].
    pub(crate) fn is_congested(&mut self) -> bool {
        let waiting = self.ends.len();
        let bytes = self.bytes.len() - self.sent;
        self.paused = if self.paused {
            waiting > RESUME_READING || bytes > STOP_BYTES / 2
        } else {
            waiting > STOP_READING || bytes > STOP_BYTES
        };
        self.paused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(outbox: &mut Outbox, text: &[u8]) {
        outbox.buffer().extend_from_slice(text);
        outbox.message_done();
    }

    #[test]
    fn reading_stops_above_a_hundred_and_resumes_at_fifty() {
        let mut outbox = Outbox::default();
        for _ in 0..STOP_READING {
            push(&mut outbox, b"ab");
        }
        assert!(!outbox.is_congested());
        push(&mut outbox, b"ab");
        assert!(outbox.is_congested());
        outbox.advance(2 * (STOP_READING - RESUME_READING));
        assert!(outbox.is_congested(), "51 wait");
        outbox.advance(1);
        assert!(outbox.is_congested(), "half a message is still a message");
        outbox.advance(1);
        assert!(!outbox.is_congested());
    }

    #[test]
    fn what_is_written_in_pieces_arrives_whole() {
        let mut outbox = Outbox::default();
        let mut arrived = Vec::new();
        let mut expected = Vec::new();
        for round in 0..200_u32 {
            let text = vec![u8::try_from(round % 251).unwrap(); 5_000];
            expected.extend_from_slice(&text);
            push(&mut outbox, &text);
            let count = outbox.pending().len().min(4_097);
            arrived.extend_from_slice(&outbox.pending()[..count]);
            outbox.advance(count);
        }
        while !outbox.is_empty() {
            let count = outbox.pending().len().min(7_001);
            arrived.extend_from_slice(&outbox.pending()[..count]);
            outbox.advance(count);
        }
        assert_eq!(arrived, expected);
        assert!(!outbox.is_congested());
    }
}
