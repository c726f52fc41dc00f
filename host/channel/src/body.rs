//! The body of a received message, where it lies.

use std::ops::Deref;

/// A message body: in the caller's input when the message came in one chunk, else in a buffer of its own.
#[derive(Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// The bytes lie in the input that was handed in.
    InPlace(&'a [u8]),
    /// The bytes of several chunks; give the buffer back with `recycle` when done.
    Assembled(Vec<u8>),
}

impl Deref for Body<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::InPlace(bytes) => bytes,
            Self::Assembled(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Body<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Body<'_> {
    /// The bytes as their own, copied if they lie in the input.
    #[must_use]
    pub fn into_vec(self) -> Vec<u8> {
        match self {
            Self::InPlace(bytes) => bytes.to_vec(),
            Self::Assembled(bytes) => bytes,
        }
    }
}
