//! Private keys in files: PKCS#8 and PKCS#1, DER and PEM.
//!
//! Input: the file.

use backplane_crypto::PrivateKey;

use crate::check::within;
use crate::feedback::note;

const FREE: u64 = 1_024 * 1_024;

/// A key is read or refused; one that is read can be written, and read again as the same key.
pub fn private_key(data: &[u8]) {
    let read = within(FREE + 16 * data.len() as u64, || PrivateKey::from_pem_or_der(data));
    match read {
        Ok(key) => {
            note(key.bits());
            let pem = key.to_pkcs8_pem().expect("a key that was read");
            let again = PrivateKey::from_pem_or_der(pem.as_bytes()).expect("a key that was written");
            assert_eq!((again.size(), again.bits()), (key.size(), key.bits()));
        }
        Err(error) => {
            note(error.to_string());
            assert!(error.status().is_bad());
        }
    }
}
