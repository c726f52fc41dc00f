//! Where random numbers come from: a small trait, so that channel and session get their source by
//! constructor, and the operating system's source behind it.

use rsa::rand_core::{TryCryptoRng, TryRng};

/// The source of randomness failed (BadInternalError).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the source of random numbers failed")]
pub struct RandomError;

/// A source of cryptographically secure random bytes.
pub trait Random: Send {
    /// Fills `out` with random bytes.
    ///
    /// # Errors
    /// [`RandomError`] when the source fails; `out` must not be used then.
    fn fill(&mut self, out: &mut [u8]) -> Result<(), RandomError>;
}

/// The operating system's random number generator.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), RandomError> {
        getrandom::fill(out).map_err(|_| RandomError)
    }
}

/// So many random bytes from the operating system.
///
/// # Errors
/// [`RandomError`] when the source fails.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], RandomError> {
    let mut bytes = [0; N];
    SystemRandom.fill(&mut bytes)?;
    Ok(bytes)
}

/// A new nonce of `length` bytes, never all zero (clients refuse such a nonce).
///
/// # Errors
/// [`RandomError`] when the source fails, or returns zeros again and again.
pub fn nonce(random: &mut dyn Random, length: usize) -> Result<Vec<u8>, RandomError> {
    let mut bytes = vec![0; length];
    // 16 zero bytes from a working source do not happen; a broken source must not be trusted.
    for _ in 0..3 {
        random.fill(&mut bytes)?;
        if length == 0 || bytes.iter().any(|&b| b != 0) {
            return Ok(bytes);
        }
    }
    Err(RandomError)
}

/// Lets the RSA crate draw from a [`Random`].
pub(crate) struct RsaRng<'a>(pub(crate) &'a mut dyn Random);

impl TryRng for RsaRng<'_> {
    type Error = RandomError;

    fn try_next_u32(&mut self) -> Result<u32, RandomError> {
        let mut bytes = [0; 4];
        self.0.fill(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, RandomError> {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, dst: &mut [u8]) -> Result<(), RandomError> {
        self.0.fill(dst)
    }
}

impl TryCryptoRng for RsaRng<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    struct Zeros;
    impl Random for Zeros {
        fn fill(&mut self, out: &mut [u8]) -> Result<(), RandomError> {
            out.fill(0);
            Ok(())
        }
    }

    #[test]
    fn a_nonce_is_never_all_zero() {
        assert_eq!(nonce(&mut Zeros, 32), Err(RandomError));
        let a = nonce(&mut SystemRandom, 32).unwrap();
        let b = nonce(&mut SystemRandom, 32).unwrap();
        assert_eq!(a.len(), 32);
        assert_ne!(a, b);
        assert_eq!(nonce(&mut Zeros, 0).unwrap(), Vec::<u8>::new());
    }

    #[test]
    fn random_bytes_differ() {
        assert_ne!(random_bytes::<16>().unwrap(), random_bytes::<16>().unwrap());
    }
}
