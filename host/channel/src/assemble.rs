//! Reassembly of messages that come in several chunks.
//!
//! Owns the bytes of the one message in progress and the limits on it. Knows nothing of keys or sequence numbers: what comes here has
//! passed both. A message in one chunk never comes here.

use std::time::Duration;

use backplane_types::StatusCode;

use crate::error::ChannelError;

/// How much of a message is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageLimits {
    /// Bytes of the body.
    pub(crate) size: usize,
    /// Chunks.
    pub(crate) chunks: usize,
}

/// The message in progress and a buffer for the next.
#[derive(Debug)]
pub(crate) struct Assembler {
    limits: MessageLimits,
    progress: Option<Progress>,
    buffer: Vec<u8>,
    /// A larger buffer is freed instead of kept.
    max_retained: usize,
}

#[derive(Clone, Copy, Debug)]
struct Progress {
    request_id: u32,
    chunks: usize,
    /// When the first chunk came.
    since: Duration,
}

impl Assembler {
    pub(crate) fn new(limits: MessageLimits, max_retained: usize) -> Self {
        Self {
            limits,
            progress: None,
            buffer: Vec::new(),
            max_retained,
        }
    }

    pub(crate) fn set_limits(&mut self, limits: MessageLimits) {
        self.limits = limits;
    }

    /// When the message in progress began.
    pub(crate) fn since(&self) -> Option<Duration> {
        self.progress.map(|progress| progress.since)
    }

    /// Bytes of memory held for the message in progress: the buffer's real size, not only what is in it.
    pub(crate) fn held(&self) -> usize {
        if self.progress.is_some() {
            self.buffer.capacity()
        } else {
            0
        }
    }

    /// Whether a chunk of `request_id` may come now: the chunks of a message are contiguous (Part 6, 6.7.3).
    ///
    /// # Errors
    /// BadSecurityChecksFailed if another message is in progress.
    pub(crate) fn check_request(&self, request_id: u32) -> Result<(), ChannelError> {
        match self.progress {
            Some(progress) if progress.request_id != request_id => Err(ChannelError::security(
                StatusCode::BAD_SECURITY_CHECKS_FAILED,
                "chunk of another request inside a message",
            )),
            _ => Ok(()),
        }
    }

    /// Checks a body that came in one chunk.
    ///
    /// # Errors
    /// BadTcpMessageTooLarge above the limit.
    pub(crate) fn check_single(&self, size: usize) -> Result<(), ChannelError> {
        if size > self.limits.size {
            Err(too_large("message above MaxMessageSize"))
        } else {
            Ok(())
        }
    }

    pub(crate) fn in_progress(&self) -> bool {
        self.progress.is_some()
    }

    /// Takes an intermediate or final chunk's body.
    ///
    /// # Errors
    /// BadTcpMessageTooLarge if the message outgrows its limits; nothing of it is kept then.
    pub(crate) fn push(&mut self, now: Duration, request_id: u32, body: &[u8]) -> Result<(), ChannelError> {
        let mut progress = self.progress.unwrap_or(Progress {
            request_id,
            chunks: 0,
            since: now,
        });
        progress.chunks = progress.chunks.saturating_add(1);
        if progress.chunks > self.limits.chunks {
            self.drop_message();
            return Err(too_large("message above MaxChunkCount"));
        }
        if self.buffer.len().saturating_add(body.len()) > self.limits.size {
            self.drop_message();
            return Err(too_large("message above MaxMessageSize"));
        }
        self.progress = Some(progress);
        self.reserve(body.len());
        self.buffer.extend_from_slice(body);
        Ok(())
    }

    /// Makes room for `more` bytes: doubling, so that chunks are not copied again and again, but never beyond the limit.
    fn reserve(&mut self, more: usize) {
        let needed = self.buffer.len().saturating_add(more);
        if needed > self.buffer.capacity() {
            let wanted = self
                .buffer
                .capacity()
                .saturating_mul(2)
                .min(self.limits.size)
                .max(needed);
            self.buffer.reserve_exact(wanted.saturating_sub(self.buffer.len()));
        }
    }

    /// Hands the finished message out.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        self.progress = None;
        std::mem::take(&mut self.buffer)
    }

    /// Forgets the message in progress.
    pub(crate) fn drop_message(&mut self) {
        self.progress = None;
        self.buffer.clear();
        self.buffer.shrink_to(self.max_retained);
    }

    /// Takes a buffer back for the next message.
    pub(crate) fn recycle(&mut self, mut buffer: Vec<u8>) {
        if self.progress.is_none()
            && buffer.capacity() <= self.max_retained
            && self.buffer.capacity() < buffer.capacity()
        {
            buffer.clear();
            self.buffer = buffer;
        }
    }
}

fn too_large(context: &'static str) -> ChannelError {
    ChannelError::peer(StatusCode::BAD_TCP_MESSAGE_TOO_LARGE, context)
}
