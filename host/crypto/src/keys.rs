//! RSA keys: reading them, bounding them, and nothing else.
//!
//! A public key is checked against [`Limits`] on its raw integers, before any arithmetic: a 16,384-bit
//! modulus or a huge exponent from a peer costs nothing. What is done with keys is in
//! [`asymmetric`](crate::asymmetric).

use std::fmt;
use std::sync::Arc;

use backplane_types::StatusCode;
use rsa::pkcs1::der::Decode;
use rsa::pkcs1::{DecodeRsaPrivateKey, DecodeRsaPublicKey};
use rsa::pkcs8::{DecodePrivateKey, EncodePrivateKey, LineEnding};
use rsa::traits::PublicKeyParts;
use zeroize::Zeroizing;

use crate::encoding::{self, PemError};
use crate::limits::Limits;
use crate::random::{Random, RsaRng};

/// Why a key cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The key is not an RSA key.
    #[error("not an RSA key")]
    NotRsa,
    /// The modulus is outside the accepted sizes.
    #[error("the RSA modulus has {bits} bits; accepted are {min} to {max}")]
    ModulusSize {
        /// Bits of the modulus.
        bits: u64,
        /// Smallest accepted size in bits.
        min: u32,
        /// Largest accepted size in bits.
        max: u32,
    },
    /// The public exponent is even, too small or too large.
    #[error("the RSA public exponent is not acceptable")]
    Exponent,
    /// The encoding cannot be read, or its numbers do not form a key.
    #[error("the key cannot be read: {0}")]
    Malformed(&'static str),
    /// The file is not what it should be.
    #[error(transparent)]
    Pem(#[from] PemError),
    /// No key could be made.
    #[error("no key could be generated: {0}")]
    Generate(String),
}

impl KeyError {
    /// The status code: BadCertificateInvalid for a peer's key, BadInternalError for our own making.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            KeyError::Generate(_) => StatusCode::BAD_INTERNAL_ERROR,
            _ => StatusCode::BAD_CERTIFICATE_INVALID,
        }
    }
}

/// An RSA public key within [`Limits`].
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    pub(crate) inner: rsa::PublicKey,
}

impl PublicKey {
    /// Reads a PKCS#1 RSAPublicKey (the content of subjectPublicKey in a certificate).
    ///
    /// # Errors
    /// [`KeyError`]; sizes are checked before any arithmetic.
    pub fn from_pkcs1_der(der: &[u8]) -> Result<Self, KeyError> {
        let raw =
            rsa::pkcs1::RsaPublicKeyRef::from_der(der).map_err(|_| KeyError::Malformed("no RSAPublicKey structure"))?;
        check_sizes(raw.modulus.as_bytes(), raw.public_exponent.as_bytes())?;
        let inner =
            rsa::PublicKey::from_pkcs1_der(der).map_err(|_| KeyError::Malformed("modulus or exponent out of range"))?;
        Ok(Self { inner })
    }

    /// Size of the modulus in bytes: the length of a signature and of a cipher block.
    #[must_use]
    pub fn size(&self) -> usize {
        self.inner.size()
    }

    /// Size of the modulus in bits.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.inner.n().bit_width()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey(RSA {})", self.bits())
    }
}

/// Refuses a key by the size of its integers, given big-endian without leading zeros.
fn check_sizes(modulus: &[u8], exponent: &[u8]) -> Result<(), KeyError> {
    let limits = Limits::DEFAULT;
    let bits = bit_length(modulus);
    if bits < u64::from(limits.min_rsa_bits) || bits > u64::from(limits.max_rsa_bits) {
        return Err(KeyError::ModulusSize {
            bits,
            min: limits.min_rsa_bits,
            max: limits.max_rsa_bits,
        });
    }
    let exponent_bits = bit_length(exponent);
    let odd = exponent.last().is_some_and(|b| b & 1 == 1);
    // 1 would make every message its own signature.
    if exponent_bits < 2 || exponent_bits > u64::from(limits.max_rsa_exponent_bits) || !odd {
        return Err(KeyError::Exponent);
    }
    Ok(())
}

fn bit_length(big_endian: &[u8]) -> u64 {
    let significant = big_endian.iter().skip_while(|&&b| b == 0);
    let (first, rest) = {
        let mut it = significant;
        match it.next() {
            Some(first) => (*first, it.count()),
            None => return 0,
        }
    };
    u64::from(8 - first.leading_zeros()) + 8 * rest as u64
}

/// An RSA private key. Cloning shares it; the numbers are erased when the last clone goes.
#[derive(Clone)]
pub struct PrivateKey {
    pub(crate) inner: Arc<rsa::PrivateKey>,
}

impl PrivateKey {
    /// Makes a new key of so many bits (2048 takes some 100 ms in a release build, with a wide spread).
    ///
    /// # Errors
    /// [`KeyError::Generate`] for a size outside [`Limits`] or when randomness fails.
    pub fn generate(bits: u32, random: &mut dyn Random) -> Result<Self, KeyError> {
        let limits = Limits::DEFAULT;
        if !(limits.min_rsa_bits..=limits.max_rsa_bits).contains(&bits) {
            return Err(KeyError::ModulusSize {
                bits: bits.into(),
                min: limits.min_rsa_bits,
                max: limits.max_rsa_bits,
            });
        }
        let key = rsa::PrivateKey::new(&mut RsaRng(random), bits as usize)
            .map_err(|error| KeyError::Generate(error.to_string()))?;
        Ok(Self { inner: Arc::new(key) })
    }

    /// Reads a key in PEM or DER, as PKCS#8 or PKCS#1. Encrypted keys are not read.
    ///
    /// # Errors
    /// [`KeyError`] when no such key is found or its numbers do not form one.
    pub fn from_pem_or_der(bytes: &[u8]) -> Result<Self, KeyError> {
        if !encoding::is_pem(bytes) {
            return Self::from_der(bytes);
        }
        let blocks = encoding::pem_blocks(bytes)?;
        if blocks.iter().any(|block| block.label == "ENCRYPTED PRIVATE KEY") {
            return Err(KeyError::Malformed("the key is encrypted with a passphrase"));
        }
        let Some(block) = blocks
            .iter()
            .find(|b| matches!(b.label.as_str(), "PRIVATE KEY" | "RSA PRIVATE KEY"))
        else {
            return Err(KeyError::Malformed("no PEM block PRIVATE KEY or RSA PRIVATE KEY"));
        };
        Self::from_der(&block.der)
    }

    /// Reads a key in DER, as PKCS#8 or PKCS#1.
    ///
    /// # Errors
    /// As [`from_pem_or_der`](Self::from_pem_or_der).
    pub fn from_der(der: &[u8]) -> Result<Self, KeyError> {
        let key = match rsa::pkcs8::PrivateKeyInfoRef::from_der(der) {
            Ok(info) if info.algorithm.oid != rsa::pkcs1::ALGORITHM_OID => return Err(KeyError::NotRsa),
            Ok(_) => rsa::PrivateKey::from_pkcs8_der(der)
                .map_err(|_| KeyError::Malformed("the PKCS#8 numbers do not form an RSA key"))?,
            Err(_) => {
                rsa::PrivateKey::from_pkcs1_der(der).map_err(|_| KeyError::Malformed("neither PKCS#8 nor PKCS#1"))?
            }
        };
        let bits = key.n().bit_width();
        let limits = Limits::DEFAULT;
        if !(limits.min_rsa_bits..=limits.max_rsa_bits).contains(&bits) {
            return Err(KeyError::ModulusSize {
                bits: bits.into(),
                min: limits.min_rsa_bits,
                max: limits.max_rsa_bits,
            });
        }
        Ok(Self { inner: Arc::new(key) })
    }

    /// The key as a PKCS#8 PEM document, erased from memory when dropped.
    ///
    /// # Errors
    /// [`KeyError::Malformed`] when the key cannot be encoded.
    pub fn to_pkcs8_pem(&self) -> Result<Zeroizing<String>, KeyError> {
        self.inner
            .to_pkcs8_pem(LineEnding::LF)
            .map_err(|_| KeyError::Malformed("cannot be encoded as PKCS#8"))
    }

    /// The public half.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        PublicKey {
            inner: self.inner.to_public_key(),
        }
    }

    /// Size of the modulus in bytes: the length of a signature and of a cipher block.
    #[must_use]
    pub fn size(&self) -> usize {
        self.inner.size()
    }

    /// Size of the modulus in bits.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.inner.n().bit_width()
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey(RSA {})", self.bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{key_1024, key_4096, key_a};
    use rsa::BoxedUint;
    use rsa::pkcs1::EncodeRsaPublicKey;

    fn raw(modulus: &[u8], exponent: &[u8]) -> Vec<u8> {
        let int = |bytes: &[u8]| BoxedUint::from_be_slice(bytes, 8 * bytes.len() as u32).unwrap();
        rsa::PublicKey::new_unchecked(int(modulus), int(exponent))
            .to_pkcs1_der()
            .unwrap()
            .as_bytes()
            .to_vec()
    }

    #[test]
    fn public_keys_are_bounded_before_any_arithmetic() {
        let three = [1, 0, 1];
        let big = |bytes: usize| vec![0xFF; bytes];
        let started = std::time::Instant::now();
        for _ in 0..100 {
            assert!(matches!(
                PublicKey::from_pkcs1_der(&raw(&big(2048), &three)),
                Err(KeyError::ModulusSize { bits: 16384, .. })
            ));
        }
        // A single modular exponentiation of that size would take longer than all of these.
        assert!(started.elapsed() < std::time::Duration::from_secs(5));
        assert!(matches!(
            PublicKey::from_pkcs1_der(&raw(&big(64), &three)),
            Err(KeyError::ModulusSize { .. })
        ));
        for exponent in [vec![1], vec![2], vec![3, 0, 0, 0, 0], vec![0xFF; 256], vec![0]] {
            assert_eq!(
                PublicKey::from_pkcs1_der(&raw(&big(256), &exponent)).err(),
                Some(KeyError::Exponent)
            );
        }
        assert!(matches!(
            PublicKey::from_pkcs1_der(b"nonsense"),
            Err(KeyError::Malformed(_))
        ));
        let mut even = raw(&big(256), &three);
        // Sequence and integer headers take 4 bytes each, the sign byte one.
        even[9 + 255] = 0xFE;
        assert!(matches!(PublicKey::from_pkcs1_der(&even), Err(KeyError::Malformed(_))));
    }

    #[test]
    fn private_keys_are_read_in_all_their_forms() {
        let pem = key_a().to_pkcs8_pem().unwrap();
        let again = PrivateKey::from_pem_or_der(pem.as_bytes()).unwrap();
        assert_eq!(again.public_key(), key_a().public_key());
        let der = &encoding::pem_blocks(pem.as_bytes()).unwrap()[0].der;
        assert_eq!(
            PrivateKey::from_pem_or_der(der).unwrap().public_key(),
            key_a().public_key()
        );
        let pkcs1 = include_bytes!("../tests/keys/rsa2048-pkcs1.pem");
        let key = PrivateKey::from_pem_or_der(pkcs1).unwrap();
        assert_eq!(key.bits(), 2048);
        let der = &encoding::pem_blocks(pkcs1).unwrap()[0].der;
        assert_eq!(PrivateKey::from_der(der).unwrap().public_key(), key.public_key());
        assert_eq!((key_1024().bits(), key_4096().bits()), (1024, 4096));
    }

    #[test]
    fn what_is_no_private_key_is_refused_with_a_reason() {
        let encrypted = encoding::to_pem("ENCRYPTED PRIVATE KEY", b"x");
        assert_eq!(
            PrivateKey::from_pem_or_der(encrypted.as_bytes()).err(),
            Some(KeyError::Malformed("the key is encrypted with a passphrase"))
        );
        let certificate = encoding::to_pem("CERTIFICATE", b"x");
        assert!(matches!(
            PrivateKey::from_pem_or_der(certificate.as_bytes()),
            Err(KeyError::Malformed(_))
        ));
        assert!(matches!(PrivateKey::from_pem_or_der(&[]), Err(KeyError::Malformed(_))));
        assert!(PrivateKey::generate(512, &mut crate::SystemRandom).is_err());
        assert!(PrivateKey::generate(16384, &mut crate::SystemRandom).is_err());
        assert!(!format!("{:?}", key_a()).contains("primes"));
    }

    #[test]
    fn a_damaged_private_key_is_an_error_not_a_panic() {
        let pem = key_1024().to_pkcs8_pem().unwrap();
        let der = &encoding::pem_blocks(pem.as_bytes()).unwrap()[0].der;
        for at in (0..der.len()).step_by(7) {
            let mut damaged = der.to_vec();
            damaged[at] ^= 0x55;
            let _ = PrivateKey::from_der(&damaged);
            assert!(PrivateKey::from_der(&der[..at]).is_err());
        }
    }

    #[test]
    fn a_generated_key_signs() {
        let key = PrivateKey::generate(1024, &mut crate::SystemRandom).unwrap();
        let algorithm = crate::AsymmetricSignature::RsaPssSha256;
        let signature = key.sign(algorithm, &[b"x"], &mut crate::SystemRandom).unwrap();
        assert_eq!(key.public_key().verify(algorithm, &[b"x"], &signature), Ok(()));
    }
}
