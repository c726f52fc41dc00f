//! User names and passwords.
//!
//! Owns the check of a password against an argon2id hash of the configuration, at the same cost whether or not the user
//! exists. Knows nothing of tokens on the wire or sessions.

use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, PasswordHasher, PasswordVerifier, Version};

use crate::config::UserEntry;

/// Memory of a hash made by this program, KiB.
const HASH_MEMORY_KIB: u32 = 19 * 1024;
/// Passes of a hash made by this program.
const HASH_PASSES: u32 = 2;

/// Why a hash cannot be made or used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct HashError(String);

/// Makes the text for `password-hash` of a user.
///
/// # Errors
/// When argon2 refuses its parameters or the system has no randomness.
pub fn hash_password(password: &str) -> Result<String, HashError> {
    let params = Params::new(HASH_MEMORY_KIB, HASH_PASSES, 1, None).map_err(|error| HashError(error.to_string()))?;
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let hash = argon
        .hash_password(password.as_bytes())
        .map_err(|error| HashError(error.to_string()))?;
    Ok(hash.to_string())
}

/// Says whether a text of the configuration is an argon2id hash.
///
/// # Errors
/// What is wrong with it, and how to make one.
pub fn check_hash(text: &str) -> Result<(), HashError> {
    let hint = "make one with `backplane user hash`";
    match PasswordHash::new(text) {
        Ok(hash) if hash.algorithm.as_str() == "argon2id" => Ok(()),
        Ok(hash) => Err(HashError(format!("is {}, not argon2id: {hint}", hash.algorithm))),
        Err(error) => Err(HashError(format!("is no argon2id hash ({error}): {hint}"))),
    }
}

/// The users of the configuration.
#[derive(Debug)]
pub struct Users {
    entries: Vec<UserEntry>,
    /// Verified when the name is unknown, so that both answers take the same time.
    decoy: String,
}

impl Users {
    /// # Errors
    /// When the decoy hash cannot be made.
    pub fn new(entries: Vec<UserEntry>) -> Result<Self, HashError> {
        let decoy = match entries.first() {
            Some(entry) => entry.password_hash.clone(),
            None => hash_password("")?,
        };
        Ok(Self { entries, decoy })
    }

    /// Whether anybody can log in with a password.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The user with this name and password. Slow on purpose (tens of ms): never on a connection's task.
    #[must_use]
    pub fn authenticate(&self, name: &str, password: &[u8]) -> Option<&UserEntry> {
        let entry = self.entries.iter().find(|entry| entry.name == name);
        let text = entry.map_or(self.decoy.as_str(), |entry| entry.password_hash.as_str());
        let hash = PasswordHash::new(text).ok()?;
        let right = Argon2::default().verify_password(password, &hash).is_ok();
        entry.filter(|_| right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_password_of_the_right_user_is_accepted() {
        let entry = UserEntry {
            name: "user1".into(),
            password_hash: hash_password("password1").unwrap(),
            roles: vec![],
        };
        let users = Users::new(vec![entry]).unwrap();
        assert_eq!(
            users.authenticate("user1", b"password1").map(|user| user.name.as_str()),
            Some("user1")
        );
        assert!(users.authenticate("user1", b"password2").is_none());
        assert!(users.authenticate("user1", b"").is_none());
        assert!(users.authenticate("user2", b"password1").is_none());
    }

    #[test]
    fn other_algorithms_are_named() {
        assert!(check_hash("$argon2i$v=19$m=8192,t=1,p=1$c29tZXNhbHRzb21l$aGFzaGhhc2hoYXNoaGFzaA").is_err());
        assert!(
            check_hash("password1")
                .unwrap_err()
                .to_string()
                .contains("backplane user hash")
        );
    }
}
