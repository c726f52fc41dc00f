//! User names and passwords.
//!
//! Owns the check of a password against an argon2id hash of the configuration, at the same cost whether or not the user
//! exists. Knows nothing of tokens on the wire or sessions.

use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Block, Params, PasswordHasher, Version};
use backplane_crypto::constant_time_eq;
use parking_lot::Mutex;

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
    /// Memory of earlier checks, one for each that ran at a time. Given back to the allocator it would stay with whichever
    /// thread had used it, and there are many of those.
    memory: Mutex<Vec<Vec<Block>>>,
}

impl Users {
    /// # Errors
    /// When the decoy hash cannot be made.
    pub fn new(entries: Vec<UserEntry>) -> Result<Self, HashError> {
        let decoy = match entries.first() {
            Some(entry) => entry.password_hash.clone(),
            None => hash_password("")?,
        };
        Ok(Self {
            entries,
            decoy,
            memory: Mutex::default(),
        })
    }

    /// Whether anybody can log in with a password.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The user with this name, who has proved nothing.
    #[must_use]
    pub(crate) fn entry(&self, name: &str) -> Option<&UserEntry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// The user with this name and password. Slow on purpose (tens of ms): never on a connection's task.
    #[must_use]
    pub fn authenticate(&self, name: &str, password: &[u8]) -> Option<&UserEntry> {
        let entry = self.entries.iter().find(|entry| entry.name == name);
        let text = entry.map_or(self.decoy.as_str(), |entry| entry.password_hash.as_str());
        let hash = PasswordHash::new(text).ok()?;
        let mut memory = self.memory.lock().pop().unwrap_or_default();
        let right = verify(password, &hash, &mut memory).unwrap_or(false);
        self.memory.lock().push(memory);
        entry.filter(|_| right)
    }
}

/// Whether a password has this hash; none for a hash that is not whole.
fn verify(password: &[u8], hash: &PasswordHash, memory: &mut Vec<Block>) -> Option<bool> {
    let (salt, expected) = (hash.salt?, hash.hash?);
    let algorithm = Algorithm::try_from(hash.algorithm.as_str()).ok()?;
    let version = hash.version.map_or(Ok(Version::default()), Version::try_from).ok()?;
    let argon = Argon2::new(algorithm, version, Params::try_from(hash).ok()?);
    memory.resize(argon.params().block_count(), Block::new());
    let mut found = vec![0; expected.as_bytes().len()];
    argon
        .hash_password_into_with_memory(password, salt.as_ref(), &mut found, memory.as_mut_slice())
        .ok()?;
    Some(constant_time_eq(&found, expected.as_bytes()))
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
