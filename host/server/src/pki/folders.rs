//! The folder on disk: `own`, `trusted/{certs,crl}`, `issuers/{certs,crl}`, `rejected`.
//!
//! Owns names, sizes and the way files are written. Everything goes through directory handles opened once, so that no
//! name taken from a certificate can lead out of them. It does not know what a certificate says.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, OpenOptions};
use cap_std::time::SystemTime;

use super::error::PkiError;

/// Files read from one folder; more are ignored with an error in the log.
pub(super) const MAX_FILES: usize = 4096;
/// Bytes of one file: the longest revocation list, and Base64 around it.
const MAX_FILE_BYTES: u64 = 24 * 1024 * 1024;

/// One of the folders, opened.
pub(super) struct Folder {
    pub(super) dir: Dir,
    pub(super) path: PathBuf,
}

/// All of them.
pub(super) struct Folders {
    pub(super) own: Folder,
    pub(super) trusted_certs: Folder,
    pub(super) trusted_crl: Folder,
    pub(super) issuers_certs: Folder,
    pub(super) issuers_crl: Folder,
    pub(super) rejected: Folder,
}

impl Folders {
    /// Opens the folders below `root`, making those that are missing. What is below `own` is for the owner only.
    pub(super) fn open(root: &Path) -> Result<Self, PkiError> {
        let refuse = |path: &Path| {
            let path = path.to_owned();
            move |source| PkiError::Folder { path, source }
        };
        std::fs::create_dir_all(root).map_err(refuse(root))?;
        let base = Dir::open_ambient_dir(root, ambient_authority()).map_err(refuse(root))?;
        let open = |name: &str| -> Result<Folder, PkiError> {
            let path = root.join(name);
            base.create_dir_all(name).map_err(refuse(&path))?;
            let dir = base.open_dir(name).map_err(refuse(&path))?;
            Ok(Folder { dir, path })
        };
        if !base.exists("own") {
            let path = root.join("own");
            base.create_dir_with("own", &private_folder()).map_err(refuse(&path))?;
        }
        Ok(Self {
            own: open("own")?,
            trusted_certs: open("trusted/certs")?,
            trusted_crl: open("trusted/crl")?,
            issuers_certs: open("issuers/certs")?,
            issuers_crl: open("issuers/crl")?,
            rejected: open("rejected")?,
        })
    }

    /// When the trust lists changed last, as the folders say: one time for each.
    pub(super) fn changed(&self) -> [Option<SystemTime>; 4] {
        [
            &self.trusted_certs,
            &self.trusted_crl,
            &self.issuers_certs,
            &self.issuers_crl,
        ]
        .map(|folder| folder.dir.dir_metadata().and_then(|metadata| metadata.modified()).ok())
    }
}

impl Folder {
    /// The names of the files that may hold certificates or lists, sorted. Hidden files are left alone.
    pub(super) fn files(&self) -> Result<Vec<String>, PkiError> {
        let refuse = |source| PkiError::Folder {
            path: self.path.clone(),
            source,
        };
        let mut names = Vec::new();
        for entry in self.dir.entries().map_err(refuse)? {
            let entry = entry.map_err(refuse)?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let known = name.rsplit_once('.').is_some_and(|(_, extension)| {
                ["der", "crt", "cer", "pem", "crl"]
                    .iter()
                    .any(|known| extension.eq_ignore_ascii_case(known))
            });
            if !known || name.starts_with('.') || !self.dir.is_file(&name) {
                continue;
            }
            if names.len() == MAX_FILES {
                tracing::error!(folder = %self.path.display(), limit = MAX_FILES, "too many files: the rest is ignored");
                break;
            }
            names.push(name);
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The content of a file, `None` when there is no such file.
    pub(super) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, PkiError> {
        let refuse = |source| PkiError::File {
            path: self.path.join(name),
            source,
        };
        let file = match self.dir.open(name) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(refuse(error)),
        };
        let mut content = Vec::new();
        file.take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut content)
            .map_err(refuse)?;
        if content.len() as u64 > MAX_FILE_BYTES {
            return Err(self.content(name, format!("the file is longer than {MAX_FILE_BYTES} bytes")));
        }
        Ok(Some(content))
    }

    /// Writes a file so that it is there as a whole or not at all. A private file is for its owner only.
    pub(super) fn write(&self, name: &str, content: &[u8], private: bool) -> Result<(), PkiError> {
        let refuse = |source| PkiError::File {
            path: self.path.join(name),
            source,
        };
        // Hidden, so that no reader takes it for a finished one; the process makes it its own.
        let partial = format!(".{}-{name}.partial", std::process::id());
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if private {
            for_owner_only(&mut options);
        }
        // Left over from a process of the same number that was killed.
        let _ = self.dir.remove_file(&partial);
        let written = self.dir.open_with(&partial, &options).and_then(|mut file| {
            file.write_all(content)?;
            file.sync_all()
        });
        let placed = written.and_then(|()| self.dir.rename(&partial, &self.dir, name));
        placed.map_err(|error| {
            let _ = self.dir.remove_file(&partial);
            refuse(error)
        })
    }

    /// Removes a file; one that is gone already is no error.
    pub(super) fn remove(&self, name: &str) -> Result<(), PkiError> {
        match self.dir.remove_file(name) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(PkiError::File {
                path: self.path.join(name),
                source: error,
            }),
            _ => Ok(()),
        }
    }

    /// When a file was written last; the beginning of time when that cannot be told.
    pub(super) fn modified(&self, name: &str) -> std::time::SystemTime {
        let modified = self.dir.metadata(name).and_then(|metadata| metadata.modified());
        modified.map_or(std::time::SystemTime::UNIX_EPOCH, SystemTime::into_std)
    }

    /// Whether others than the owner may read a file.
    #[cfg(unix)]
    pub(super) fn is_open_to_others(&self, name: &str) -> bool {
        use cap_std::fs::PermissionsExt;
        self.dir
            .metadata(name)
            .is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
    }

    /// Whether others than the owner may read a file: not told by this system.
    #[cfg(not(unix))]
    pub(super) fn is_open_to_others(&self, _name: &str) -> bool {
        false
    }

    /// An error about the content of a file.
    pub(super) fn content(&self, name: &str, reason: impl ToString) -> PkiError {
        PkiError::Content {
            path: self.path.join(name),
            reason: reason.to_string(),
        }
    }
}

#[cfg(unix)]
fn for_owner_only(options: &mut OpenOptions) {
    use cap_std::fs::OpenOptionsExt;
    options.mode(0o600);
}

#[cfg(not(unix))]
fn for_owner_only(_options: &mut OpenOptions) {}

#[cfg(unix)]
fn private_folder() -> DirBuilder {
    use cap_std::fs::DirBuilderExt;
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

#[cfg(not(unix))]
fn private_folder() -> DirBuilder {
    DirBuilder::new()
}

/// The name of a certificate's file: thumbprint and common name, the latter reduced to harmless characters.
pub(super) fn file_name(thumbprint: &str, common_name: &str) -> String {
    const LONGEST: usize = 64;
    let harmless = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@') {
            c
        } else {
            '_'
        }
    };
    let name: String = common_name.chars().take(LONGEST).map(harmless).collect();
    if name.is_empty() {
        format!("{thumbprint}.der")
    } else {
        format!("{thumbprint}_{name}.der")
    }
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn names_from_certificates_stay_harmless() {
        assert_eq!(file_name("ab", "UaExpert@host 1"), "ab_UaExpert@host_1.der");
        assert_eq!(file_name("ab", "../../etc/passwd"), "ab_.._.._etc_passwd.der");
        assert_eq!(file_name("ab", "a\0b\\c:d\n\u{202e}ü"), "ab_a_b_c_d___.der");
        assert_eq!(file_name("ab", ""), "ab.der");
        assert!(file_name("ab", &"x".repeat(5000)).len() < 100);
    }
}
