//! Security tokens: which one seals, which ones are accepted (Part 4, 5.6.2.1; Part 6, 6.7.7).
//!
//! Owns the keys, each bound to its token, and the rules of change. A token takes effect at a message boundary and its keys are erased
//! with it.

use std::time::Duration;

use crate::protection::Protection;

/// Tokens alive at once: the one in use and two the peer has not used yet.
const MAX_TOKENS: usize = 3;

/// Which end this is; the two change tokens at different moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Server,
    Client,
}

/// One token and its keys.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) id: u32,
    /// Monotonic time it was made.
    pub(crate) created: Duration,
    pub(crate) lifetime: Duration,
    pub(crate) protection: Protection,
}

impl Token {
    #[inline]
    fn expires(&self) -> Duration {
        self.created.saturating_add(self.lifetime)
    }

    /// Messages may arrive up to a quarter of the lifetime late.
    #[inline]
    fn accepted_until(&self) -> Duration {
        self.expires().saturating_add(self.lifetime / 4)
    }
}

/// The tokens of a channel, oldest first.
#[derive(Debug)]
pub(crate) struct Tokens {
    role: Role,
    alive: Vec<Token>,
}

impl Tokens {
    pub(crate) fn new(role: Role) -> Self {
        Self {
            role,
            alive: Vec::with_capacity(MAX_TOKENS),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.alive.is_empty()
    }

    /// Adds a new token. Of those the peer never used only the newest two are kept, so that a flood of renewals holds no keys.
    pub(crate) fn add(&mut self, token: Token) {
        if self.alive.len() >= MAX_TOKENS {
            self.alive.remove(1);
        }
        self.alive.push(token);
    }

    /// The token a message is to be sealed with: at the client the newest; at the server the one the client used last, until it expires.
    #[inline]
    pub(crate) fn sealing(&mut self, now: Duration) -> Option<&mut Token> {
        let newest = self.alive.len().checked_sub(1)?;
        let index = match self.role {
            Role::Client => newest,
            Role::Server => self
                .alive
                .iter()
                .position(|token| now < token.expires())
                .unwrap_or(newest),
        };
        self.alive.get_mut(index).filter(|token| now < token.accepted_until())
    }

    /// The token a chunk names, if it is still accepted.
    #[inline]
    pub(crate) fn accepted(&mut self, id: u32, now: Duration) -> Option<(usize, &mut Token)> {
        self.alive
            .iter_mut()
            .enumerate()
            .find(|(_, token)| token.id == id && now < token.accepted_until())
    }

    /// The peer used the token at `index`: the older ones are over.
    #[inline]
    pub(crate) fn used(&mut self, index: usize) {
        if index > 0 {
            self.alive.drain(..index.min(self.alive.len()));
        }
    }

    /// When the newest token is over; the channel with it.
    pub(crate) fn end(&self) -> Option<Duration> {
        self.alive.last().map(Token::accepted_until)
    }

    /// When the client has to renew: after three quarters of the newest lifetime.
    pub(crate) fn renewal(&self) -> Option<Duration> {
        self.alive
            .last()
            .map(|token| token.created.saturating_add(token.lifetime / 4 * 3))
    }

    /// The newest token's id.
    pub(crate) fn newest(&self) -> Option<u32> {
        self.alive.last().map(|token| token.id)
    }

    #[cfg(test)]
    pub(crate) fn pop(&mut self) -> Option<Token> {
        self.alive.pop()
    }

    #[cfg(test)]
    pub(crate) fn ids(&self) -> Vec<u32> {
        self.alive.iter().map(|token| token.id).collect()
    }
}
