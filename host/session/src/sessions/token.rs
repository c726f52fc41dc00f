//! The bytes of an authentication token: a secret that is compared and looked up, and never shown.

use std::fmt;
use std::hash::{Hash, Hasher};

use backplane_types::{Identifier, NodeId};

/// Length of an authentication token in bytes.
pub const TOKEN_LENGTH: usize = 32;

/// The random bytes of an authentication token.
#[derive(Clone, Copy, Eq, PartialOrd, Ord)]
pub(crate) struct Token([u8; TOKEN_LENGTH]);

impl Token {
    pub(crate) const fn new(bytes: [u8; TOKEN_LENGTH]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn bytes(&self) -> &[u8; TOKEN_LENGTH] {
        &self.0
    }

    /// The token in a request header; none when it cannot be one of ours.
    pub(crate) fn of(authentication_token: &NodeId) -> Option<Self> {
        match &authentication_token.identifier {
            Identifier::Opaque(bytes) if authentication_token.namespace == 0 => Self::from_bytes(bytes.bytes()),
            _ => None,
        }
    }

    /// The token with these bytes; none when it cannot be one of ours.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl PartialEq for Token {
    /// In a time that does not depend on where the two differ: who guesses must learn nothing from it.
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        let bytes = self.0.iter().zip(&other.0);
        let difference = bytes.fold(0, |difference, (one, other)| difference | (one ^ other));
        std::hint::black_box(difference) == 0
    }
}

impl Hash for Token {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts() {
        let token = Token::new([7; TOKEN_LENGTH]);
        assert_eq!(token, Token::new([7; TOKEN_LENGTH]));
        for place in 0..TOKEN_LENGTH {
            for bit in 0..8 {
                let mut bytes = [7; TOKEN_LENGTH];
                bytes[place] ^= 1 << bit;
                assert_ne!(token, Token::new(bytes));
            }
        }
        assert!(Token::from_bytes(&[7; TOKEN_LENGTH - 1]).is_none());
        assert!(Token::from_bytes(&[7; TOKEN_LENGTH + 1]).is_none());
    }

    #[test]
    fn it_is_not_shown() {
        assert!(!format!("{:?}", Token::new([77; TOKEN_LENGTH])).contains("77"));
    }
}
