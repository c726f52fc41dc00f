//! The folder of a plugin's own, and how much may lie in it.
//!
//! Owns the account of bytes. Every byte that is written counts, overwritten or not; when that comes to the quota, the folder is measured again. A file or folder counts at
//! least [`ENTRY`] bytes, so that the quota bounds their number too. It must not know who writes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// What an entry of a folder costs.
pub(crate) const ENTRY: u64 = 4_096;
/// Entries that are looked at; a folder with more is full.
const MAX_ENTRIES: u64 = 100_000;
/// The shortest time between two measurements.
const AGAIN: Duration = Duration::from_secs(1);

/// A folder with a quota.
pub(crate) struct Quota {
    pub(crate) path: PathBuf,
    bytes: u64,
    account: Mutex<Account>,
}

struct Account {
    used: u64,
    measured: Instant,
}

impl Quota {
    /// Makes the folder if it is missing, for the server's account only, and measures it.
    pub(crate) fn open(path: &Path, bytes: u64) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path).map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            bytes,
            account: Mutex::new(Account {
                used: used(path, bytes).map_err(failed)?,
                measured: Instant::now(),
            }),
        })
    }

    /// Takes bytes out of what is left; false: there are not as many.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let mut account = self.account.lock();
        let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.bytes);
        if fits(account.used).is_none() && account.measured.elapsed() >= AGAIN {
            account.measured = Instant::now();
            account.used = used(&self.path, self.bytes).unwrap_or(u64::MAX);
        }
        match fits(account.used) {
            Some(sum) => {
                account.used = sum;
                true
            }
            None => false,
        }
    }
}

/// Bytes in a folder and what lies below it; links are counted, not followed. Stops counting above `enough`.
pub(crate) fn used(folder: &Path, enough: u64) -> std::io::Result<u64> {
    let mut bytes = 0_u64;
    let mut entries = 0_u64;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            // It may have gone meanwhile.
            let Ok(metadata) = entry.metadata() else { continue };
            entries = entries.saturating_add(1);
            bytes = bytes.saturating_add(if metadata.is_file() {
                metadata.len().max(ENTRY)
            } else {
                ENTRY
            });
            if entries > MAX_ENTRIES {
                return Ok(u64::MAX);
            }
            if bytes > enough {
                return Ok(bytes);
            }
            if metadata.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_full_until_it_is_measured_again() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("old"), vec![0; 10_000]).unwrap();
        let quota = Quota::open(folder.path(), 20_000).unwrap();
        assert!(quota.take(10_000) && !quota.take(1));
        quota.account.lock().measured -= AGAIN;
        assert!(quota.take(1), "nothing of what was taken was written");
        assert_eq!(used(folder.path(), u64::MAX).unwrap(), 10_000);
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        std::fs::write(folder.path().join("sub/tiny"), b"x").unwrap();
        assert_eq!(used(folder.path(), u64::MAX).unwrap(), 10_000 + 2 * ENTRY);
    }
}
