//! Deadlines of the server end: a Hello, an open channel and each message have to come in time, and a token ends the channel with it.
//!
//! Owns which deadline is next and what it means when it has passed. Knows no clock.

use std::time::Duration;

use backplane_types::{Now, StatusCode};

use super::{Phase, ServerChannel};
use crate::error::{ChannelError, Closed};

impl ServerChannel {
    /// The monotonic time by which [`Self::handle_timeout`] has to be called if nothing else happens.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        let limits = &self.config.limits;
        match &self.phase {
            Phase::Closed(_) => None,
            Phase::Hello => Some(self.since.saturating_add(limits.hello_timeout)),
            Phase::Connected(secure) => [
                self.open_deadline(),
                secure.tokens.end(),
                self.message_start()
                    .map(|since| since.saturating_add(limits.message_timeout)),
            ]
            .into_iter()
            .flatten()
            .min(),
        }
    }

    fn open_deadline(&self) -> Option<Duration> {
        let since = match &self.opening {
            Some(opening) => opening.since,
            None if self.established.is_none() => self.since,
            None => return None,
        };
        Some(since.saturating_add(self.config.limits.open_timeout))
    }

    /// When the message began of which not everything has come. Not asked while this end itself does not read.
    fn message_start(&self) -> Option<Duration> {
        let assembling = match &self.phase {
            Phase::Connected(secure) => secure.assembler.since(),
            _ => None,
        };
        match (assembling, self.partial_since) {
            _ if self.opening.is_some() => None,
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Closes the channel if a deadline has passed; an Error message is appended to `out` then.
    pub fn handle_timeout(&mut self, now: Now, out: &mut Vec<u8>) -> Option<Closed> {
        if self.poll_timeout().is_none_or(|deadline| now.mono < deadline) {
            return None;
        }
        let error = match &self.phase {
            Phase::Connected(secure) if secure.tokens.end().is_some_and(|end| end <= now.mono) => ChannelError::peer(
                StatusCode::BAD_SECURE_CHANNEL_CLOSED,
                "the token expired without renewal",
            ),
            Phase::Hello => ChannelError::peer(StatusCode::BAD_TIMEOUT, "no Hello in time"),
            _ if self.open_deadline().is_some_and(|deadline| deadline <= now.mono) => {
                ChannelError::peer(StatusCode::BAD_TIMEOUT, "the channel was not opened in time")
            }
            _ => ChannelError::peer(StatusCode::BAD_TIMEOUT, "a message was not finished in time"),
        };
        Some(self.fail(error, out))
    }
}
