//! Publish requests and their answers (Part 4, 5.14.5).

use std::time::Duration;

use backplane_types::{Encoder, StatusCode};

use super::retransmission::Message;

/// The caller's own number for a Publish request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublishTicket(pub u64);

/// A Publish request as it comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishRequest {
    /// Comes back with the answer.
    pub ticket: PublishTicket,
    /// RequestHandle, for the Cancel service.
    pub request_handle: u32,
    /// The monotonic time at which the client gives up, from its timeoutHint; then the answer is `BadTimeout`.
    pub deadline: Option<Duration>,
}

/// A Publish request that waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) request: PublishRequest,
    /// Results of its acknowledgements.
    pub(crate) results: Vec<StatusCode>,
}

/// The answer to a Publish request.
#[derive(Debug, Clone, PartialEq)]
pub enum PublishReply {
    /// A ServiceFault.
    Fault(StatusCode),
    /// A PublishResponse.
    Message(PublishMessage),
}

/// What a PublishResponse carries besides its header.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishMessage {
    /// Which subscription.
    pub subscription_id: u32,
    /// Messages that can be had by Republish, oldest first.
    pub available_sequence_numbers: Vec<u32>,
    /// More notifications wait and need another Publish request.
    pub more_notifications: bool,
    /// The encoded NotificationMessage, shared with the retransmission queue.
    pub message: Message,
    /// One result for each acknowledgement of the request, in its order.
    pub results: Vec<StatusCode>,
}

impl PublishMessage {
    /// Appends the fields of the PublishResponse that follow its responseHeader.
    pub fn encode_body(&self, e: &mut Encoder<'_>) {
        e.u32(self.subscription_id);
        e.put(&self.available_sequence_numbers);
        e.bool(self.more_notifications);
        e.raw(&self.message);
        e.put(&self.results);
        // No diagnostic infos.
        e.i32(0);
    }

    /// Length of the body in bytes.
    #[must_use]
    pub fn body_length(&self) -> usize {
        4 + 4 + 4 * self.available_sequence_numbers.len() + 1 + self.message.len() + 4 + 4 * self.results.len() + 4
    }
}
