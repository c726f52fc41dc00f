//! What a client encrypts for the server's key: passwords of user tokens.
//!
//! Input: a byte that chooses the policy, then the encrypted secret.

use backplane_crypto::{PrivateKey, SecurityPolicy, decrypt_user_secret};
use backplane_types::StatusCode;
use std::sync::OnceLock;

use crate::channel_setup::{Repeating, SECURED, SERVER_KEY, key};
use crate::check::within;
use crate::feedback::note;

/// The nonce that a secret has to be bound to.
pub(crate) const NONCE: [u8; 32] = [7; 32];

const FREE: u64 = 256 * 1_024;

fn server_key() -> &'static PrivateKey {
    static KEY: OnceLock<PrivateKey> = OnceLock::new();
    KEY.get_or_init(|| key(SERVER_KEY))
}

/// The policy that a byte chooses.
pub(crate) fn policy(choice: u8) -> SecurityPolicy {
    let place = usize::from(choice) % (SECURED.len() + 1);
    SECURED.get(place).copied().unwrap_or(SecurityPolicy::None)
}

/// A secret is decrypted or refused, with one status for whatever is wrong with it, and is never longer than what came.
pub fn secret(data: &[u8]) {
    let Some((choice, encrypted)) = data.split_first() else {
        return;
    };
    let key = server_key();
    let opened = within(FREE + 4 * encrypted.len() as u64, || {
        decrypt_user_secret(key, policy(*choice), encrypted, &NONCE, &mut Repeating::new())
    });
    match opened {
        Ok(secret) => {
            note(secret.len());
            assert!(secret.len() <= encrypted.len());
        }
        Err(error) => assert_eq!(error.status(), StatusCode::BAD_IDENTITY_TOKEN_INVALID),
    }
}
