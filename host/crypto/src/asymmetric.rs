//! Signing, verifying, encrypting and decrypting with RSA keys (Part 6, 6.7.4; Part 7, 6.6).
//!
//! Every private operation is blinded with fresh randomness, so that its time tells nothing about the
//! key or the message. Whatever a peer sends wrong (a signature, a cipher block, a length) ends in
//! [`AsymmetricError::Rejected`], and decrypting goes through all blocks before it says so.

use backplane_types::StatusCode;
use rsa::sha2::{Digest, Sha256};
use sha1::Sha1;
use zeroize::Zeroizing;

use crate::keys::{PrivateKey, PublicKey};
use crate::limits::Limits;
use crate::policy::{AsymmetricEncryption, AsymmetricSignature};
use crate::random::{Random, RsaRng};

/// Bytes that PaddingSize and ExtraPaddingSize take in an asymmetric message: the second one is
/// present only when the key that encrypts is longer than 2048 bits (Part 6, 6.7.2.5).
#[must_use]
pub fn padding_size_bytes(encrypting_key_size: usize) -> usize {
    if encrypting_key_size > 256 { 2 } else { 1 }
}

/// Why an operation with an RSA key failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AsymmetricError {
    /// What the peer sent is not acceptable: BadSecurityChecksFailed. Says nothing more on purpose.
    #[error("security checks failed")]
    Rejected,
    /// Our own key, parameters or randomness failed: BadInternalError.
    #[error("the operation with our own key failed: {0}")]
    Local(&'static str),
}

impl AsymmetricError {
    /// The status code for the wire.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            AsymmetricError::Rejected => StatusCode::BAD_SECURITY_CHECKS_FAILED,
            AsymmetricError::Local(_) => StatusCode::BAD_INTERNAL_ERROR,
        }
    }
}

impl AsymmetricEncryption {
    /// Bytes of every cipher block that the padding takes: 2 hash lengths and 2.
    #[must_use]
    pub fn overhead(self) -> usize {
        match self {
            AsymmetricEncryption::None => 0,
            AsymmetricEncryption::RsaOaepSha1 => 42,
            AsymmetricEncryption::RsaOaepSha256 => 66,
        }
    }
}

/// The length of a plain block under a key of `key_size` bytes; 0 when the key is too short.
#[must_use]
pub fn plain_block_size(encryption: AsymmetricEncryption, key_size: usize) -> usize {
    match encryption {
        AsymmetricEncryption::None => 1,
        other => key_size.saturating_sub(other.overhead()),
    }
}

/// Bytes that `plain_length` bytes take once encrypted, the last block filled up or not.
#[must_use]
pub fn encrypted_length(encryption: AsymmetricEncryption, key_size: usize, plain_length: usize) -> Option<usize> {
    match encryption {
        AsymmetricEncryption::None => Some(plain_length),
        _ => match plain_block_size(encryption, key_size) {
            0 => None,
            block => plain_length.div_ceil(block).checked_mul(key_size),
        },
    }
}

fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

impl PublicKey {
    /// Checks a signature over the concatenation of `parts`.
    ///
    /// # Errors
    /// [`AsymmetricError::Rejected`] when it does not match. With [`AsymmetricSignature::None`] only an
    /// empty signature matches.
    pub fn verify(
        &self,
        algorithm: AsymmetricSignature,
        parts: &[&[u8]],
        signature: &[u8],
    ) -> Result<(), AsymmetricError> {
        let verified = match algorithm {
            AsymmetricSignature::None if signature.is_empty() => return Ok(()),
            AsymmetricSignature::None => return Err(AsymmetricError::Rejected),
            AsymmetricSignature::RsaPkcs15Sha256 => {
                self.inner.pkcs1v15_verify_prehash::<Sha256>(&digest(parts), signature)
            }
            AsymmetricSignature::RsaPssSha256 => self.inner.pss_verify_prehash::<Sha256>(&digest(parts), signature),
        };
        verified.map_err(|_| AsymmetricError::Rejected)
    }

    /// Encrypts `plain` block by block and appends the cipher blocks to `out`. The last block may be
    /// shorter than the others (user secrets); messages fill it up with padding before.
    ///
    /// # Errors
    /// [`AsymmetricError::Local`] when the key is too short for the algorithm or randomness fails;
    /// `out` is as before then.
    pub fn encrypt(
        &self,
        algorithm: AsymmetricEncryption,
        plain: &[u8],
        random: &mut dyn Random,
        out: &mut Vec<u8>,
    ) -> Result<(), AsymmetricError> {
        if algorithm == AsymmetricEncryption::None {
            out.extend_from_slice(plain);
            return Ok(());
        }
        let block = plain_block_size(algorithm, self.size());
        if block == 0 {
            return Err(AsymmetricError::Local("the key is too short to encrypt"));
        }
        let start = out.len();
        let mut rng = RsaRng(random);
        for piece in plain.chunks(block) {
            let sealed = match algorithm {
                AsymmetricEncryption::RsaOaepSha256 => self.inner.oaep_encrypt_with_rng::<Sha256, _>(&mut rng, piece),
                _ => self.inner.oaep_encrypt_with_rng::<Sha1, _>(&mut rng, piece),
            };
            match sealed {
                Ok(sealed) => out.extend_from_slice(&sealed),
                Err(_) => {
                    out.truncate(start);
                    return Err(AsymmetricError::Local("encrypting failed"));
                }
            }
        }
        Ok(())
    }
}

impl PrivateKey {
    /// Signs the concatenation of `parts`.
    ///
    /// # Errors
    /// [`AsymmetricError::Local`] when the key or the randomness fails.
    pub fn sign(
        &self,
        algorithm: AsymmetricSignature,
        parts: &[&[u8]],
        random: &mut dyn Random,
    ) -> Result<Vec<u8>, AsymmetricError> {
        let mut rng = RsaRng(random);
        let signed = match algorithm {
            AsymmetricSignature::None => return Ok(Vec::new()),
            AsymmetricSignature::RsaPkcs15Sha256 => self
                .inner
                .pkcs1v15_sign_prehash_with_rng::<Sha256, _>(&mut rng, &digest(parts)),
            AsymmetricSignature::RsaPssSha256 => self
                .inner
                .pss_sign_prehash_with_rng::<Sha256, _>(&mut rng, &digest(parts)),
        };
        signed.map_err(|_| AsymmetricError::Local("signing failed"))
    }

    /// Decrypts whole cipher blocks and returns the plain text, erased from memory when dropped.
    ///
    /// # Errors
    /// [`AsymmetricError::Rejected`] when the length is no multiple of the key size, there are more
    /// blocks than [`Limits::asymmetric_blocks`], or any block does not decrypt. All blocks are tried
    /// before the answer, so that it does not tell which one was wrong.
    pub fn decrypt(
        &self,
        algorithm: AsymmetricEncryption,
        cipher: &[u8],
        random: &mut dyn Random,
    ) -> Result<Zeroizing<Vec<u8>>, AsymmetricError> {
        if algorithm == AsymmetricEncryption::None {
            return Ok(Zeroizing::new(cipher.to_vec()));
        }
        let size = self.size();
        let blocks = cipher.len() / size;
        if cipher.is_empty() || !cipher.len().is_multiple_of(size) || blocks > Limits::DEFAULT.asymmetric_blocks {
            return Err(AsymmetricError::Rejected);
        }
        let mut rng = RsaRng(random);
        let mut plain = Zeroizing::new(Vec::with_capacity(cipher.len()));
        let mut failed = false;
        for block in cipher.chunks_exact(size) {
            let opened = match algorithm {
                AsymmetricEncryption::RsaOaepSha256 => self.inner.oaep_decrypt_with_rng::<Sha256, _>(&mut rng, block),
                _ => self.inner.oaep_decrypt_with_rng::<Sha1, _>(&mut rng, block),
            };
            match opened.map(Zeroizing::new) {
                Ok(opened) => plain.extend_from_slice(&opened),
                Err(_) => failed = true,
            }
        }
        if failed {
            Err(AsymmetricError::Rejected)
        } else {
            Ok(plain)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::SecurityPolicy;
    use crate::random::SystemRandom;
    use crate::testing::{key_1024, key_3072, key_4096, key_a, key_b};

    const SIGNATURES: [AsymmetricSignature; 2] =
        [AsymmetricSignature::RsaPkcs15Sha256, AsymmetricSignature::RsaPssSha256];
    const ENCRYPTIONS: [AsymmetricEncryption; 2] =
        [AsymmetricEncryption::RsaOaepSha1, AsymmetricEncryption::RsaOaepSha256];

    #[test]
    fn every_policy_signs_and_encrypts() {
        for policy in SecurityPolicy::ALL {
            let parameters = policy.parameters();
            let signature = key_a()
                .sign(parameters.asymmetric_signature, &[b"ab", b"c"], &mut SystemRandom)
                .unwrap();
            let public = key_a().public_key();
            assert_eq!(
                public.verify(parameters.asymmetric_signature, &[b"abc"], &signature),
                Ok(())
            );
            let mut cipher = b"kept".to_vec();
            let plain = vec![7; 500];
            public
                .encrypt(parameters.asymmetric_encryption, &plain, &mut SystemRandom, &mut cipher)
                .unwrap();
            let cipher = cipher.strip_prefix(b"kept").unwrap();
            let expected = encrypted_length(parameters.asymmetric_encryption, 256, 500).unwrap();
            assert_eq!(cipher.len(), expected);
            let opened = key_a()
                .decrypt(parameters.asymmetric_encryption, cipher, &mut SystemRandom)
                .unwrap();
            assert_eq!(*opened, plain);
        }
    }

    #[test]
    fn key_sizes_from_1024_to_4096_bits_work() {
        for key in [key_1024(), key_3072(), key_4096()] {
            for algorithm in SIGNATURES {
                let signature = key.sign(algorithm, &[b"message"], &mut SystemRandom).unwrap();
                assert_eq!(signature.len(), key.size());
                assert_eq!(key.public_key().verify(algorithm, &[b"message"], &signature), Ok(()));
            }
            let mut cipher = Vec::new();
            key.public_key()
                .encrypt(
                    AsymmetricEncryption::RsaOaepSha1,
                    b"secret",
                    &mut SystemRandom,
                    &mut cipher,
                )
                .unwrap();
            assert_eq!(cipher.len(), key.size());
            let opened = key
                .decrypt(AsymmetricEncryption::RsaOaepSha1, &cipher, &mut SystemRandom)
                .unwrap();
            assert_eq!(opened.as_slice(), b"secret");
        }
        assert_eq!(padding_size_bytes(key_a().size()), 1);
        assert_eq!(padding_size_bytes(key_4096().size()), 2);
    }

    #[test]
    fn tampered_signatures_are_rejected_alike() {
        let public = key_a().public_key();
        for algorithm in SIGNATURES {
            let good = key_a().sign(algorithm, &[b"message"], &mut SystemRandom).unwrap();
            let mut wrongs = vec![Vec::new(), vec![0; 256], vec![0xFF; 256], good[..255].to_vec()];
            for at in [0, 100, 255] {
                let mut wrong = good.clone();
                wrong[at] ^= 1;
                wrongs.push(wrong);
            }
            wrongs.push([good.as_slice(), &[0]].concat());
            for wrong in wrongs {
                assert_eq!(
                    public.verify(algorithm, &[b"message"], &wrong),
                    Err(AsymmetricError::Rejected)
                );
            }
            assert_eq!(
                public.verify(algorithm, &[b"massage"], &good),
                Err(AsymmetricError::Rejected)
            );
            let other = key_b().public_key();
            assert_eq!(
                other.verify(algorithm, &[b"message"], &good),
                Err(AsymmetricError::Rejected)
            );
        }
        assert_eq!(public.verify(AsymmetricSignature::None, &[b"x"], &[]), Ok(()));
        assert_eq!(
            public.verify(AsymmetricSignature::None, &[b"x"], &[1]),
            Err(AsymmetricError::Rejected)
        );
    }

    #[test]
    fn tampered_ciphertext_is_rejected_alike() {
        for algorithm in ENCRYPTIONS {
            let mut good = Vec::new();
            key_a()
                .public_key()
                .encrypt(algorithm, &[1; 300], &mut SystemRandom, &mut good)
                .unwrap();
            let mut wrongs = vec![Vec::new(), vec![0; 256], vec![0xFF; 256], good[..300].to_vec()];
            for at in [0, 255, 256, 511] {
                let mut wrong = good.clone();
                wrong[at] ^= 0x10;
                wrongs.push(wrong);
            }
            let too_many = Limits::DEFAULT.asymmetric_blocks + 1;
            wrongs.push(good[..256].repeat(too_many));
            for wrong in wrongs {
                let answer = key_a().decrypt(algorithm, &wrong, &mut SystemRandom).err();
                assert_eq!(answer, Some(AsymmetricError::Rejected));
            }
            assert_eq!(
                key_b().decrypt(algorithm, &good, &mut SystemRandom).err(),
                Some(AsymmetricError::Rejected)
            );
        }
        assert_eq!(
            AsymmetricError::Rejected.status(),
            StatusCode::BAD_SECURITY_CHECKS_FAILED
        );
    }

    #[test]
    fn block_sizes_follow_the_algorithm() {
        assert_eq!(plain_block_size(AsymmetricEncryption::RsaOaepSha1, 256), 214);
        assert_eq!(plain_block_size(AsymmetricEncryption::RsaOaepSha256, 256), 190);
        assert_eq!(plain_block_size(AsymmetricEncryption::RsaOaepSha256, 64), 0);
        assert_eq!(encrypted_length(AsymmetricEncryption::RsaOaepSha256, 64, 1), None);
        assert_eq!(encrypted_length(AsymmetricEncryption::RsaOaepSha1, 256, 215), Some(512));
        assert_eq!(encrypted_length(AsymmetricEncryption::None, 256, 215), Some(215));
    }
}
