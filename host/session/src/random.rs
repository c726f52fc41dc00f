//! Where random bytes come from. This crate owns no generator: the server hands one in, a test hands in a predictable one.

/// The random generator failed; nothing may be made from what it left in the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no random bytes available")]
pub struct RandomUnavailable;

/// A cryptographically secure random generator.
pub trait RandomSource {
    /// Fills the whole buffer.
    ///
    /// # Errors
    /// [`RandomUnavailable`]: the buffer's contents must not be used.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), RandomUnavailable>;
}

impl<F: FnMut(&mut [u8]) -> Result<(), RandomUnavailable>> RandomSource for F {
    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), RandomUnavailable> {
        self(buffer)
    }
}
