//! Bytes that came from one client and are not done with.
//!
//! Owns one buffer that exists only while there is something in it: an idle connection holds none, and one receive brings
//! as many chunks as the socket has. Knows no socket and no message.

use std::cell::RefCell;

/// Room offered to one receive.
const RECEIVE: usize = 64 * 1024;
/// Buffers kept for the next connection of the same thread.
const SPARE: usize = 16;

thread_local! {
    static POOL: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// The input of one connection.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    start: usize,
    /// Bytes that the next chunk needs from `start`.
    wanted: usize,
}

impl Inbox {
    /// Whether there may be a whole chunk.
    #[must_use]
    pub(crate) fn has_work(&self) -> bool {
        let there = self.bytes.len().saturating_sub(self.start);
        there > 0 && there >= self.wanted
    }

    /// What is there, to be decoded in place.
    pub(crate) fn pending(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.start..).unwrap_or_default()
    }

    /// Whether nothing is there.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.start >= self.bytes.len()
    }

    /// Records that `count` bytes are done with; the buffer goes back when nothing is left.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = self.start.saturating_add(count).min(self.bytes.len());
        self.wanted = 0;
        if self.is_empty() {
            self.give_back();
        }
    }

    /// Records that the next chunk needs `bytes` from the start of what is there.
    pub(crate) fn want(&mut self, bytes: usize) {
        self.wanted = bytes;
    }

    /// A buffer whose spare room the next receive fills.
    pub(crate) fn room(&mut self) -> &mut Vec<u8> {
        if self.bytes.capacity() == 0 {
            self.bytes = POOL.with_borrow_mut(Vec::pop).unwrap_or_default();
        }
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        let missing = self.wanted.saturating_sub(self.bytes.len());
        self.bytes.reserve(missing.max(RECEIVE));
        &mut self.bytes
    }

    fn give_back(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        self.start = 0;
        bytes.clear();
        if bytes.capacity() <= 2 * RECEIVE {
            POOL.with_borrow_mut(|pool| {
                if pool.len() < SPARE {
                    pool.push(bytes);
                }
            });
        }
    }

    /// Gives an unused buffer back: a receive brought nothing.
    pub(crate) fn release_if_empty(&mut self) {
        if self.is_empty() && self.bytes.capacity() > 0 {
            self.give_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_inbox_holds_nothing() {
        let mut inbox = Inbox::default();
        inbox.room().extend_from_slice(b"abcdef");
        inbox.consume(2);
        assert_eq!(inbox.pending(), b"cdef");
        inbox.room().extend_from_slice(b"gh");
        assert_eq!(inbox.pending(), b"cdefgh");
        inbox.consume(6);
        assert!(inbox.is_empty());
        assert_eq!(inbox.bytes.capacity(), 0);
    }

    #[test]
    fn a_large_chunk_gets_room_at_once() {
        let mut inbox = Inbox::default();
        inbox.room().extend_from_slice(b"head");
        inbox.want(1_000_000);
        assert!(inbox.room().capacity() >= 1_000_000);
        inbox.consume(4);
        assert_eq!(inbox.bytes.capacity(), 0, "too large to keep");
    }
}
