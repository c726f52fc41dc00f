//! Sessions that were never activated: the oldest gives way when there are too many, and those of a channel go when it closes.
//!
//! Owns both orders, so that neither ever needs a walk over all of them. It must not know what else a session is.

use std::collections::{BTreeMap, BTreeSet};

use super::handle::ChannelId;
use super::token::Token;

/// Where a session stands among those that were never activated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    channel: ChannelId,
    order: u64,
}

/// See the module text. As many as there are sessions at most.
#[derive(Debug, Default)]
pub(super) struct Unactivated {
    /// Oldest first.
    by_order: BTreeMap<u64, Token>,
    by_channel: BTreeSet<Place>,
    next: u64,
}

impl Unactivated {
    /// Enters a new session of a channel.
    pub(super) fn enter(&mut self, channel: ChannelId, token: Token) -> Place {
        let place = Place {
            channel,
            order: self.next,
        };
        self.next = self.next.wrapping_add(1);
        self.by_order.insert(place.order, token);
        self.by_channel.insert(place);
        place
    }

    /// Takes out a session that was activated or closed.
    pub(super) fn leave(&mut self, place: Place) {
        self.by_order.remove(&place.order);
        self.by_channel.remove(&place);
    }

    /// The one that waits longest.
    pub(super) fn oldest(&self) -> Option<Token> {
        self.by_order.first_key_value().map(|(_, token)| *token)
    }

    /// Those of a channel, oldest first.
    pub(super) fn on(&self, channel: ChannelId) -> Vec<Token> {
        let first = Place { channel, order: 0 };
        let last = Place {
            channel,
            order: u64::MAX,
        };
        let places = self.by_channel.range(first..=last);
        places
            .filter_map(|place| self.by_order.get(&place.order).copied())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::token::TOKEN_LENGTH;
    use super::*;

    #[test]
    fn both_orders_know_the_same_sessions() {
        let mut waiting = Unactivated::default();
        let token = |number| Token::new([number; TOKEN_LENGTH]);
        let places: Vec<_> = [(1, 0), (2, 1), (1, 2)]
            .map(|(channel, number)| waiting.enter(ChannelId(channel), token(number)))
            .to_vec();
        assert_eq!(waiting.on(ChannelId(1)), [token(0), token(2)]);
        assert_eq!(waiting.on(ChannelId(3)), []);
        assert_eq!(waiting.oldest(), Some(token(0)));
        waiting.leave(places[0]);
        assert_eq!(waiting.oldest(), Some(token(1)));
        assert_eq!(waiting.on(ChannelId(1)), [token(2)]);
        places.into_iter().for_each(|place| waiting.leave(place));
        assert!(waiting.by_order.is_empty() && waiting.by_channel.is_empty());
    }
}
