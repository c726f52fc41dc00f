//! Messages kept for Republish, and the sequence numbers of a subscription (Part 4, 5.14.1.1).
//!
//! A message is encoded once; the response that carries it and this queue share its bytes.

use std::collections::VecDeque;
use std::sync::Arc;

use backplane_types::StatusCode;

/// An encoded NotificationMessage.
pub(crate) type Message = Arc<[u8]>;

#[derive(Debug)]
pub(crate) struct Retransmission {
    messages: VecDeque<(u32, Message)>,
    bytes: usize,
    next: u32,
}

impl Retransmission {
    pub(crate) fn new() -> Self {
        Self {
            messages: VecDeque::new(),
            bytes: 0,
            next: 1,
        }
    }

    /// The number that the next message will have; a keep-alive carries it without using it.
    pub(crate) fn next_sequence_number(&self) -> u32 {
        self.next
    }

    /// Uses the next number. After the largest comes 1: 0 is never used.
    pub(crate) fn take_sequence_number(&mut self) -> u32 {
        let number = self.next;
        self.next = number.checked_add(1).unwrap_or(1);
        number
    }

    /// Keeps a message; returns how many old ones had to go for it.
    pub(crate) fn keep(
        &mut self,
        sequence_number: u32,
        message: Message,
        max_messages: usize,
        max_bytes: usize,
    ) -> u64 {
        self.bytes += message.len();
        self.messages.push_back((sequence_number, message));
        let mut dropped = 0;
        while self.messages.len() > 1 && (self.messages.len() > max_messages || self.bytes > max_bytes) {
            self.drop_at(0);
            dropped += 1;
        }
        dropped
    }

    /// Removes an acknowledged message.
    ///
    /// # Errors
    /// `BadSequenceNumberInvalid` for 0, `BadSequenceNumberUnknown` for one that is not kept.
    pub(crate) fn acknowledge(&mut self, sequence_number: u32) -> Result<(), StatusCode> {
        if sequence_number == 0 {
            return Err(StatusCode::BAD_SEQUENCE_NUMBER_INVALID);
        }
        let place = self
            .messages
            .iter()
            .position(|(number, _)| *number == sequence_number)
            .ok_or(StatusCode::BAD_SEQUENCE_NUMBER_UNKNOWN)?;
        self.drop_at(place);
        Ok(())
    }

    /// A kept message.
    pub(crate) fn find(&self, sequence_number: u32) -> Option<Message> {
        self.messages
            .iter()
            .find(|(number, _)| *number == sequence_number)
            .map(|(_, message)| Arc::clone(message))
    }

    /// All kept messages, to be saved.
    pub(crate) fn saved(&self) -> Vec<(u32, Vec<u8>)> {
        let messages = self.messages.iter();
        messages.map(|(number, message)| (*number, message.to_vec())).collect()
    }

    /// Goes on where another one was saved.
    pub(crate) fn restore(&mut self, next: u32, messages: Vec<(u32, Vec<u8>)>) {
        self.next = next;
        self.bytes = messages.iter().map(|(_, message)| message.len()).sum();
        self.messages = messages
            .into_iter()
            .map(|(number, message)| (number, message.into()))
            .collect();
    }

    /// Sequence numbers of all kept messages, oldest first.
    pub(crate) fn available(&self) -> Vec<u32> {
        self.messages.iter().map(|(number, _)| *number).collect()
    }

    fn drop_at(&mut self, place: usize) {
        if let Some((_, message)) = self.messages.remove(place) {
            self.bytes = self.bytes.saturating_sub(message.len());
        }
    }

    /// Goes to a sequence number, for tests of the wrap.
    #[cfg(test)]
    pub(crate) fn set_next(&mut self, next: u32) {
        self.next = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(queue: &mut Retransmission, size: usize) -> u64 {
        let number = queue.take_sequence_number();
        queue.keep(number, vec![0; size].into(), 3, 100)
    }

    #[test]
    fn numbers_start_at_1_and_wrap_to_1() {
        let mut queue = Retransmission::new();
        assert_eq!(queue.take_sequence_number(), 1);
        queue.set_next(u32::MAX);
        assert_eq!(queue.take_sequence_number(), u32::MAX);
        assert_eq!(queue.next_sequence_number(), 1);
    }

    #[test]
    fn the_oldest_goes_by_count_and_by_size() {
        let mut queue = Retransmission::new();
        for _ in 0..3 {
            assert_eq!(keep(&mut queue, 10), 0);
        }
        assert_eq!(keep(&mut queue, 10), 1);
        assert_eq!(queue.available(), [2, 3, 4]);
        assert_eq!(keep(&mut queue, 90), 2);
        assert_eq!(queue.available(), [4, 5]);
        assert_eq!(keep(&mut queue, 1000), 2, "the newest stays, however long");
        assert_eq!(queue.available(), [6]);
    }

    #[test]
    fn acknowledging_out_of_order() {
        let mut queue = Retransmission::new();
        for _ in 0..3 {
            keep(&mut queue, 1);
        }
        assert_eq!(queue.acknowledge(2), Ok(()));
        assert_eq!(queue.acknowledge(2), Err(StatusCode::BAD_SEQUENCE_NUMBER_UNKNOWN));
        assert_eq!(queue.acknowledge(0), Err(StatusCode::BAD_SEQUENCE_NUMBER_INVALID));
        assert_eq!(queue.acknowledge(3), Ok(()));
        assert_eq!(queue.available(), [1]);
        assert!(queue.find(1).is_some() && queue.find(3).is_none());
    }
}
