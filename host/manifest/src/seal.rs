//! Seals on the host's own cache entries of compiled code.
//!
//! Owns their form: `bpseal1` and a zero byte, HMAC-SHA-256 (32 bytes), the compiled code. The MAC is over the engine's fingerprint, the component's digest and the
//! code, each behind its length, so that an entry of another engine or another component does not open. It must not know where entries lie.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::package::Digest;

const MAGIC: &[u8; 8] = b"bpseal1\0";
const DOMAIN: &[u8] = b"backplane compiled code v1\0";

/// The secret of one host; 32 random bytes that never leave its state folder.
pub struct SealKey(Zeroizing<[u8; 32]>);

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealKey")
    }
}

/// An entry that this host did not make for this engine and this component, or that was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the entry was not sealed by this host for this engine and component")]
pub struct SealError;

impl SealKey {
    /// Takes 32 random bytes as the key.
    #[must_use]
    pub fn new(key: Zeroizing<[u8; 32]>) -> Self {
        Self(key)
    }

    fn mac(&self, engine: &[u8], digest: &Digest, code: &[u8]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&*self.0).ok()?;
        mac.update(DOMAIN);
        for part in [engine, &digest.0, code] {
            mac.update(&u64::try_from(part.len()).ok()?.to_le_bytes());
            mac.update(part);
        }
        Some(mac)
    }

    /// Seals code that `engine` (its fingerprint: version, settings, processor) has made of a component.
    ///
    /// # Errors
    /// Never with memory that exists.
    pub fn seal(&self, engine: &[u8], digest: &Digest, code: &[u8]) -> Result<Vec<u8>, SealError> {
        let mac = self.mac(engine, digest, code).ok_or(SealError)?;
        Ok([&MAGIC[..], &mac.finalize().into_bytes(), code].concat())
    }

    /// The code in an entry, if this host sealed it. Compares in constant time.
    ///
    /// # Errors
    /// [`SealError`], for whatever reason.
    pub fn open<'a>(&self, engine: &[u8], digest: &Digest, sealed: &'a [u8]) -> Result<&'a [u8], SealError> {
        let rest = sealed.strip_prefix(MAGIC).ok_or(SealError)?;
        let (tag, code) = rest.split_first_chunk::<32>().ok_or(SealError)?;
        let mac = self.mac(engine, digest, code).ok_or(SealError)?;
        mac.verify_slice(tag).map_err(|_| SealError)?;
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sealed_opens() {
        let key = SealKey::new(Zeroizing::new([7; 32]));
        let digest = Digest([1; 32]);
        let sealed = key.seal(b"engine 1", &digest, b"code").unwrap();
        assert_eq!(key.open(b"engine 1", &digest, &sealed).unwrap(), b"code");
        assert!(key.open(b"engine 2", &digest, &sealed).is_err());
        assert!(key.open(b"engine 1", &Digest([2; 32]), &sealed).is_err());
        assert!(
            SealKey::new(Zeroizing::new([8; 32]))
                .open(b"engine 1", &digest, &sealed)
                .is_err()
        );
        for at in 0..sealed.len() {
            let mut other = sealed.clone();
            other[at] ^= 1;
            assert!(key.open(b"engine 1", &digest, &other).is_err(), "byte {at}");
            assert!(key.open(b"engine 1", &digest, &sealed[..at]).is_err(), "cut at {at}");
        }
    }
}
