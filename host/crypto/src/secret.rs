//! Secrets of user tokens: the encrypted password of a UserNameIdentityToken and the encrypted token of
//! an IssuedIdentityToken, in the form of Part 4, 7.40.2.2: `length, secret, serverNonce`, encrypted block by
//! block with the receiver's key.
//!
//! Whatever is wrong with a received secret has one and the same answer, after the same work.

use backplane_types::StatusCode;
use subtle::{Choice, ConstantTimeEq, ConstantTimeGreater};
use zeroize::Zeroizing;

use crate::asymmetric::AsymmetricError;
use crate::keys::{PrivateKey, PublicKey};
use crate::limits::Limits;
use crate::policy::SecurityPolicy;
use crate::random::Random;

/// Why a secret could not be encrypted or decrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The encrypted secret is not acceptable: BadIdentityTokenInvalid. Says nothing more on purpose.
    #[error("the encrypted secret is invalid")]
    Invalid,
    /// Our own key or parameters do not allow it: BadInternalError.
    #[error("the secret cannot be encrypted: {0}")]
    Local(&'static str),
}

impl SecretError {
    /// The status code for the wire.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            SecretError::Invalid => StatusCode::BAD_IDENTITY_TOKEN_INVALID,
            SecretError::Local(_) => StatusCode::BAD_INTERNAL_ERROR,
        }
    }
}

/// Encrypts `secret` for the owner of `key`, bound to the last ServerNonce.
/// With [`SecurityPolicy::None`] the result is the secret itself (Part 4, 7.40.4).
///
/// # Errors
/// [`SecretError::Local`] when the secret is too long or the key does not allow it.
pub fn encrypt_user_secret(
    key: &PublicKey,
    policy: SecurityPolicy,
    secret: &[u8],
    server_nonce: &[u8],
    random: &mut dyn Random,
) -> Result<Vec<u8>, SecretError> {
    if policy.is_none() {
        return Ok(secret.to_vec());
    }
    if secret.len() > Limits::DEFAULT.secret_bytes {
        return Err(SecretError::Local("it is too long"));
    }
    let length = secret.len().saturating_add(server_nonce.len());
    let prefix = u32::try_from(length).map_err(|_| SecretError::Local("it is too long"))?;
    let mut plain = Zeroizing::new(Vec::with_capacity(length + 4));
    plain.extend_from_slice(&prefix.to_le_bytes());
    plain.extend_from_slice(secret);
    plain.extend_from_slice(server_nonce);
    let mut out = Vec::new();
    match key.encrypt(policy.parameters().asymmetric_encryption, &plain, random, &mut out) {
        Ok(()) => Ok(out),
        Err(AsymmetricError::Local(why)) => Err(SecretError::Local(why)),
        Err(AsymmetricError::Rejected) => Err(SecretError::Local("the key refused it")),
    }
}

/// Decrypts a secret and checks that it is bound to `server_nonce`, the nonce of the last CreateSession or
/// ActivateSession response. Bytes behind the stated length are ignored: some clients fill the last block up.
///
/// # Errors
/// [`SecretError::Invalid`], the same for a wrong length, cipher block, padding, length field or nonce.
pub fn decrypt_user_secret(
    key: &PrivateKey,
    policy: SecurityPolicy,
    encrypted: &[u8],
    server_nonce: &[u8],
    random: &mut dyn Random,
) -> Result<Zeroizing<Vec<u8>>, SecretError> {
    let algorithm = policy.parameters().asymmetric_encryption;
    if policy.is_none() {
        if encrypted.len() > Limits::DEFAULT.secret_bytes {
            return Err(SecretError::Invalid);
        }
        return Ok(Zeroizing::new(encrypted.to_vec()));
    }
    let decrypted = key.decrypt(algorithm, encrypted, random);
    // A failure goes on with a stand-in that fails below, through the same steps.
    let (plain, decrypted) = match decrypted {
        Ok(plain) => (plain, Choice::from(1)),
        Err(_) => (Zeroizing::new(vec![0; 4 + server_nonce.len()]), Choice::from(0)),
    };
    let Some((prefix, content)) = plain.split_first_chunk::<4>() else {
        return Err(SecretError::Invalid);
    };
    let stated = u32::from_le_bytes(*prefix);
    let available = u32::try_from(content.len()).map_err(|_| SecretError::Invalid)?;
    let fits = !stated.ct_gt(&available);
    let length = if bool::from(fits) {
        stated as usize
    } else {
        content.len()
    };
    let secret_length = length.saturating_sub(server_nonce.len());
    let nonce = content.get(secret_length..length).unwrap_or_default();
    let good = decrypted & fits & nonce.ct_eq(server_nonce);
    if !bool::from(good) || secret_length > Limits::DEFAULT.secret_bytes {
        return Err(SecretError::Invalid);
    }
    Ok(Zeroizing::new(
        content.get(..secret_length).unwrap_or_default().to_vec(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SystemRandom;
    use crate::testing::{key_a, key_b};

    const NONCE: [u8; 32] = [9; 32];

    fn seal(policy: SecurityPolicy, plain: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let algorithm = policy.parameters().asymmetric_encryption;
        key_a()
            .public_key()
            .encrypt(algorithm, plain, &mut SystemRandom, &mut out)
            .unwrap();
        out
    }

    fn open(policy: SecurityPolicy, encrypted: &[u8]) -> Result<Vec<u8>, SecretError> {
        decrypt_user_secret(key_a(), policy, encrypted, &NONCE, &mut SystemRandom).map(|secret| secret.to_vec())
    }

    #[test]
    fn secrets_come_back_under_every_policy() {
        for policy in SecurityPolicy::ALL {
            for secret in [b"".as_slice(), b"password1", &[0xC3; 64], &[1; 400]] {
                let encrypted =
                    encrypt_user_secret(&key_a().public_key(), policy, secret, &NONCE, &mut SystemRandom).unwrap();
                assert_eq!(policy.is_none(), encrypted == secret);
                assert_eq!(open(policy, &encrypted).unwrap(), secret);
            }
        }
    }

    #[test]
    fn a_filled_up_last_block_is_accepted() {
        let mut plain = 35u32.to_le_bytes().to_vec();
        plain.extend_from_slice(b"abc");
        plain.extend_from_slice(&NONCE);
        plain.resize(214, 0);
        assert_eq!(
            open(
                SecurityPolicy::Basic256Sha256,
                &seal(SecurityPolicy::Basic256Sha256, &plain)
            )
            .unwrap(),
            b"abc"
        );
    }

    #[test]
    fn everything_wrong_has_the_same_answer() {
        let policy = SecurityPolicy::Basic256Sha256;
        let with_length = |length: u32, rest: &[u8]| seal(policy, &[&length.to_le_bytes(), rest].concat());
        let good = with_length(33, &[&b"x"[..], &NONCE].concat());
        assert_eq!(open(policy, &good).unwrap(), b"x");
        let mut tampered = good.clone();
        tampered[17] ^= 1;
        let wrongs = [
            Vec::new(),
            vec![0; 3],
            vec![0; 256],
            tampered,
            good[..255].to_vec(),
            seal(policy, &[1, 2, 3]),
            with_length(0, &NONCE),
            with_length(31, &NONCE),
            with_length(33, &NONCE),
            with_length(u32::MAX, &NONCE),
            with_length(33, &[&b"x"[..], &[8; 32]].concat()),
            with_length(34, &[&b"x"[..], &NONCE, &[0]].concat()),
        ];
        for wrong in wrongs {
            assert_eq!(open(policy, &wrong), Err(SecretError::Invalid));
        }
        let other = decrypt_user_secret(key_b(), policy, &good, &NONCE, &mut SystemRandom).err();
        assert_eq!(other, Some(SecretError::Invalid));
        assert_eq!(SecretError::Invalid.status(), StatusCode::BAD_IDENTITY_TOKEN_INVALID);
        let long = vec![0; Limits::DEFAULT.secret_bytes + 1];
        assert_eq!(open(SecurityPolicy::None, &long), Err(SecretError::Invalid));
    }
}
