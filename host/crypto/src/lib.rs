//! Security policies, keys and certificates over byte slices.
//!
//! This crate owns what OPC UA means by a SecurityPolicy (Part 7), the signing, encrypting and key
//! derivation that go with it (Part 6, 6.7), X.509 certificates and how they are validated (Part 4,
//! 6.1.3, and Part 6, 6.2) and the encrypted secrets of user tokens (Part 4, 7.40.2).
//!
//! It knows no chunk layout, no channel, no file and no clock: buffers, trust lists and the time come
//! in as arguments, and randomness through [`Random`]. What a peer can cause ends in an error that
//! carries a status code; errors that could serve as an oracle are one and the same.

pub mod asymmetric;
pub mod certificate;
mod encoding;
pub mod keys;
mod limits;
pub mod policy;
pub mod random;
pub mod secret;
pub mod symmetric;
#[cfg(test)]
mod testing;

pub use asymmetric::AsymmetricError;
pub use certificate::{
    ApplicationCertificateRequest, Certificate, CertificateChain, CertificateError, NewCertificate, Purpose,
    RevocationList, TrustStoreView, ValidationRules, create_application_certificate, validate,
};
pub use encoding::{PemError, certificates_from_pem_or_der, revocation_lists_from_pem_or_der};
pub use keys::{KeyError, PrivateKey, PublicKey};
pub use limits::Limits;
pub use policy::{
    AsymmetricEncryption, AsymmetricSignature, PolicyParameters, SecurityPolicy, SymmetricCipher, SymmetricSignature,
};
pub use random::{Random, RandomError, SystemRandom, random_bytes};
pub use secret::{SecretError, decrypt_user_secret, encrypt_user_secret};
pub use symmetric::{ChannelKeys, Opener, Sealer, SymmetricError, SymmetricKeys};
pub use zeroize::Zeroizing;

use sha1::{Digest, Sha1};
use sha2::Sha256;

/// SHA-1 of `data`: certificate thumbprints (Part 4, 7.2, and Part 6, 6.7.2.3). Not for signatures.
#[must_use]
pub fn sha1(data: &[u8]) -> [u8; 20] {
    Sha1::digest(data).into()
}

/// SHA-256 of `data`.
#[must_use]
pub fn sha256(data: &[u8]) -> [u8; 32] {
    Sha256::digest(data).into()
}

/// Compares two byte strings in a time that depends on their lengths only.
#[must_use]
pub fn constant_time_eq(a: &[u8], b: &[u8]) -> bool {
    use subtle::ConstantTimeEq;
    a.ct_eq(b).into()
}
