//! The signatures of certificates and revocation lists: which algorithms are known, and checking one.

use der::asn1::ObjectIdentifier;
use der::{Decode, Encode};
use rsa::sha2::{Digest, Sha256, Sha384, Sha512};
use rsa::{Pkcs1v15Sign, Pss};
use sha1::Sha1;
use x509_cert::AlgorithmIdentifier;

use super::Certificate;
use super::error::CertificateError;
use crate::encoding::signed_part;
use crate::keys::PublicKey;

const SHA1_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.5");
const SHA256_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.11");
const SHA384_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.12");
const SHA512_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.13");
const RSA_PSS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.10");
const SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
const SHA384: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.2");
const SHA512: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.3");

/// Longest salt of a PSS signature that is accepted, in bytes: the longest hash.
const LONGEST_SALT: u8 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SignatureAlgorithm {
    pub(crate) hash: Hash,
    /// Length of the salt in bytes for RSASSA-PSS, `None` for PKCS#1 v1.5.
    salt: Option<u8>,
}

impl SignatureAlgorithm {
    pub(crate) fn read(identifier: &AlgorithmIdentifier) -> Option<Self> {
        let plain = |hash| Some(Self { hash, salt: None });
        match identifier.oid {
            SHA1_RSA => plain(Hash::Sha1),
            SHA256_RSA => plain(Hash::Sha256),
            SHA384_RSA => plain(Hash::Sha384),
            SHA512_RSA => plain(Hash::Sha512),
            RSA_PSS => {
                let parameters = identifier.parameters.as_ref()?.to_der().ok()?;
                let parameters = rsa::pkcs1::RsaPssParams::<der::Any>::from_der(&parameters).ok()?;
                let hash = match parameters.hash.oid {
                    SHA256 => Hash::Sha256,
                    SHA384 => Hash::Sha384,
                    SHA512 => Hash::Sha512,
                    _ => return None,
                };
                let same_mask = parameters
                    .mask_gen
                    .parameters
                    .is_some_and(|mask| mask.oid == parameters.hash.oid);
                (same_mask && parameters.salt_len <= LONGEST_SALT).then_some(Self {
                    hash,
                    salt: Some(parameters.salt_len),
                })
            }
            _ => None,
        }
    }

    fn verify(self, key: &PublicKey, signed: &[u8], signature: &[u8]) -> bool {
        let key = &key.inner;
        let pkcs15 = |scheme: Pkcs1v15Sign, digest: &[u8]| key.verify(scheme, digest, signature).is_ok();
        match (self.hash, self.salt.map(usize::from)) {
            (Hash::Sha1, _) => pkcs15(Pkcs1v15Sign::new::<Sha1>(), &Sha1::digest(signed)),
            (Hash::Sha256, None) => pkcs15(Pkcs1v15Sign::new::<Sha256>(), &Sha256::digest(signed)),
            (Hash::Sha384, None) => pkcs15(Pkcs1v15Sign::new::<Sha384>(), &Sha384::digest(signed)),
            (Hash::Sha512, None) => pkcs15(Pkcs1v15Sign::new::<Sha512>(), &Sha512::digest(signed)),
            (Hash::Sha256, Some(salt)) => key
                .verify(Pss::<Sha256>::new_with_salt(salt), &Sha256::digest(signed), signature)
                .is_ok(),
            (Hash::Sha384, Some(salt)) => key
                .verify(Pss::<Sha384>::new_with_salt(salt), &Sha384::digest(signed), signature)
                .is_ok(),
            (Hash::Sha512, Some(salt)) => key
                .verify(Pss::<Sha512>::new_with_salt(salt), &Sha512::digest(signed), signature)
                .is_ok(),
        }
    }
}

/// Checks the signature of a certificate or revocation list given as a whole in DER.
pub(crate) fn verify_signed(
    der: &[u8],
    algorithm: &AlgorithmIdentifier,
    signature: &der::asn1::BitString,
    key: &PublicKey,
) -> Result<(), CertificateError> {
    let algorithm = SignatureAlgorithm::read(algorithm)
        .ok_or_else(|| CertificateError::invalid("the signature algorithm is not supported"))?;
    let signed = signed_part(der).ok_or_else(|| CertificateError::invalid("the signed part is malformed"))?;
    let signature = signature
        .as_bytes()
        .ok_or_else(|| CertificateError::invalid("the signature is not whole bytes"))?;
    if algorithm.verify(key, signed, signature) {
        Ok(())
    } else {
        Err(CertificateError::invalid("the signature is wrong"))
    }
}

impl Certificate {
    /// Checks the signature with the issuer's key.
    pub(crate) fn verify_with(&self, issuer: &PublicKey) -> Result<(), CertificateError> {
        let parsed = self.parsed();
        verify_signed(self.der(), parsed.signature_algorithm(), parsed.signature(), issuer)
    }

    pub(crate) fn signature_algorithm(&self) -> Option<SignatureAlgorithm> {
        SignatureAlgorithm::read(self.parsed().signature_algorithm())
    }
}
