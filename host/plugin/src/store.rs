//! The key-value stores of plugins: what survives restarts, reloads and the server's own restart.
//!
//! Owns one database file for each plugin, a copy of it in memory, and the changes of a call that has not returned yet. Reads never wait for a disk. What one call
//! has changed becomes durable in one transaction when the call returns; of a call that trapped, or of a generation that never served, nothing remains.
//! It must not know who asks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backplane_types::StatusCode;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use parking_lot::{Mutex, RwLock};
use redb::backends::FileBackend;
use redb::{Database, DatabaseError, ReadableDatabase as _, ReadableTable as _, TableDefinition};

use crate::bindings::ua;
use crate::hosts::fault;

/// Bytes of a key.
const MAX_KEY: usize = 256;
/// What an entry counts beside its key and value, so that very many small ones are bounded too.
const ENTRY: usize = 64;
/// Memory of the database for pages; the copy in memory is what is read from.
const PAGES: usize = 1 << 20;
const TABLE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("entries");

/// Why a store cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("the store {file} is in use by another process")]
    InUse { file: PathBuf },
    #[error("the store {file}: {reason}")]
    Failed { file: PathBuf, reason: String },
}

/// Where all stores are, and those that are open. Without a folder they last as long as the host.
#[derive(Debug, Default)]
pub(crate) struct Stores {
    folder: Option<PathBuf>,
    open: Mutex<BTreeMap<Arc<str>, Arc<KeyValues>>>,
}

impl Stores {
    pub(crate) fn new(folder: Option<PathBuf>) -> Self {
        Self {
            folder,
            open: Mutex::default(),
        }
    }

    /// The store of one plugin, which all its generations share. Reads files: not for asynchronous code.
    ///
    /// # Errors
    /// See [`StoreError`]. A file that is damaged is not an error: it is set aside under another name, said so in the log, and a new one made.
    pub(crate) fn of(&self, name: &Arc<str>) -> Result<Arc<KeyValues>, StoreError> {
        let mut open = self.open.lock();
        if let Some(store) = open.get(name) {
            return Ok(Arc::clone(store));
        }
        let store = match &self.folder {
            None => KeyValues::default(),
            Some(folder) => KeyValues::open(folder, name)?,
        };
        let store = Arc::new(store);
        open.insert(Arc::clone(name), Arc::clone(&store));
        Ok(store)
    }
}

/// One plugin's entries.
#[derive(Debug, Default)]
pub(crate) struct KeyValues {
    entries: RwLock<Entries>,
    database: Option<Database>,
}

#[derive(Debug, Default)]
struct Entries {
    map: BTreeMap<String, Arc<[u8]>>,
    bytes: usize,
}

impl Entries {
    fn insert(&mut self, key: &str, value: Option<&Arc<[u8]>>) {
        let before = match value {
            Some(value) => {
                self.bytes = self.bytes.saturating_add(cost(key, value));
                self.map.insert(key.to_owned(), Arc::clone(value))
            }
            None => self.map.remove(key),
        };
        if let Some(before) = before {
            self.bytes = self.bytes.saturating_sub(cost(key, &before));
        }
    }
}

fn cost(key: &str, value: &[u8]) -> usize {
    ENTRY + key.len() + value.len()
}

impl KeyValues {
    fn open(folder: &Path, name: &str) -> Result<Self, StoreError> {
        let file = format!("{name}.redb");
        let failed = |reason: String| StoreError::Failed {
            file: folder.join(&file),
            reason,
        };
        private_folder(folder).map_err(|error| failed(error.to_string()))?;
        let dir = Dir::open_ambient_dir(folder, ambient_authority()).map_err(|error| failed(error.to_string()))?;
        match read(&dir, &file) {
            Ok(found) => Ok(found),
            Err(Unusable::InUse) => Err(StoreError::InUse {
                file: folder.join(&file),
            }),
            Err(Unusable::Io(error)) => Err(failed(error.to_string())),
            Err(Unusable::Damaged(reason)) => {
                let aside = (0..=u32::MAX)
                    .map(|number| format!("{file}.damaged-{number}"))
                    .find(|aside| !dir.exists(aside))
                    .ok_or_else(|| failed("no name left to set it aside".to_owned()))?;
                dir.rename(&file, &dir, &aside)
                    .map_err(|error| failed(error.to_string()))?;
                tracing::error!(target: "plugin", plugin = name, file, aside, "the store is damaged and was set aside; an empty one takes its place: {reason}");
                read(&dir, &file).map_err(|error| failed(error.to_string()))
            }
        }
    }

    /// Makes changes durable, all or none. Waits for the disk.
    ///
    /// # Errors
    /// What the disk or the database says; then nothing has changed.
    pub(crate) fn commit(&self, changes: &Changes) -> Result<(), String> {
        let mut entries = self.entries.write();
        if let Some(database) = &self.database {
            write(database, changes).map_err(|error| error.to_string())?;
        }
        for (key, value) in &changes.map {
            entries.insert(key, value.as_ref());
        }
        Ok(())
    }
}

/// What plugins keep is for the server's own account.
fn private_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn write(database: &Database, changes: &Changes) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut table = transaction.open_table(TABLE)?;
        for (key, value) in &changes.map {
            match value {
                Some(value) => table.insert(key.as_str(), value.as_ref())?,
                None => table.remove(key.as_str())?,
            };
        }
    }
    transaction.commit()?;
    Ok(())
}

#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error("in use by another process")]
    InUse,
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("{0}")]
    Damaged(String),
}

impl From<DatabaseError> for Unusable {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::DatabaseAlreadyOpen => Self::InUse,
            DatabaseError::Storage(redb::StorageError::Io(error))
                if error.kind() != std::io::ErrorKind::InvalidData =>
            {
                Self::Io(error)
            }
            other => Self::Damaged(other.to_string()),
        }
    }
}

/// Opens the file, makes it if there is none, and copies what is in it.
fn read(dir: &Dir, file: &str) -> Result<KeyValues, Unusable> {
    let handle = dir.open_with(file, OpenOptions::new().read(true).write(true).create(true))?;
    let database = Database::builder()
        .set_cache_size(PAGES)
        .create_with_backend(FileBackend::new(handle.into_std())?)?;
    let mut entries = Entries::default();
    copy(&database, &mut entries).map_err(|error| Unusable::Damaged(error.to_string()))?;
    Ok(KeyValues {
        entries: RwLock::new(entries),
        database: Some(database),
    })
}

fn copy(database: &Database, entries: &mut Entries) -> Result<(), redb::Error> {
    let table = match database.begin_read()?.open_table(TABLE) {
        Ok(table) => table,
        // Nothing was ever written.
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(()),
        Err(other) => return Err(other.into()),
    };
    for entry in table.iter()? {
        let (key, value) = entry?;
        entries.insert(key.value(), Some(&value.value().into()));
    }
    Ok(())
}

/// What calls have changed that did not return yet, or that nobody may see yet.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// None: removed.
    map: BTreeMap<String, Option<Arc<[u8]>>>,
    /// How many bytes the store gains by them; less than zero: loses.
    growth: isize,
}

impl Changes {
    pub(crate) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    pub(crate) fn get(&self, store: &KeyValues, key: &str) -> Option<Arc<[u8]>> {
        match self.map.get(key) {
            Some(changed) => changed.clone(),
            None => store.entries.read().map.get(key).cloned(),
        }
    }

    /// Sets or removes a value. `limit`: bytes that all entries of the plugin may have, [`ENTRY`] for each of them included.
    ///
    /// # Errors
    /// `BadInvalidArgument` for a key that is empty or too long, `BadOutOfMemory` when the store is full.
    pub(crate) fn set(
        &mut self,
        store: &KeyValues,
        key: String,
        value: Option<Vec<u8>>,
        limit: usize,
    ) -> Result<(), ua::Fault> {
        if key.is_empty() || key.len() > MAX_KEY {
            return Err(fault(
                StatusCode::BAD_INVALID_ARGUMENT,
                format!("a key has 1 to {MAX_KEY} bytes, this one {}", key.len()),
            ));
        }
        let before = self.get(store, &key).map_or(0, |value| cost(&key, &value));
        let after = value.as_ref().map_or(0, |value| cost(&key, value));
        let growth = self
            .growth
            .saturating_add_unsigned(after)
            .saturating_sub_unsigned(before);
        let total = store.entries.read().bytes.saturating_add_signed(growth);
        if after > before && total > limit {
            return Err(fault(
                StatusCode::BAD_OUT_OF_MEMORY,
                format!("the store would have {total} bytes, and limits.store allows {limit}"),
            ));
        }
        self.growth = growth;
        self.map.insert(key, value.map(Arc::from));
        Ok(())
    }

    /// Keys that begin with `prefix`, sorted.
    pub(crate) fn keys(&self, store: &KeyValues, prefix: &str) -> Vec<String> {
        let with_prefix = |key: &&String| key.starts_with(prefix);
        let entries = store.entries.read();
        let mut keys: Vec<String> = entries
            .map
            .range(prefix.to_owned()..)
            .map(|(key, _)| key)
            .take_while(with_prefix)
            .filter(|key| !self.map.contains_key(*key))
            .chain(
                self.map
                    .iter()
                    .filter(|(key, value)| value.is_some() && key.starts_with(prefix))
                    .map(|(key, _)| key),
            )
            .cloned()
            .collect();
        keys.sort_unstable();
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> Arc<str> {
        "plant".into()
    }

    fn set(store: &KeyValues, entries: &[(&str, Option<&str>)]) -> Changes {
        let mut changes = Changes::default();
        for (key, value) in entries {
            let value = value.map(|text| text.as_bytes().to_vec());
            changes.set(store, (*key).to_owned(), value, 1 << 20).unwrap();
        }
        changes
    }

    fn all(store: &KeyValues) -> Vec<(String, Vec<u8>)> {
        let none = Changes::default();
        let keys = none.keys(store, "").into_iter();
        keys.map(|key| (key.clone(), none.get(store, &key).unwrap().to_vec()))
            .collect()
    }

    #[test]
    fn what_was_committed_is_there_again() {
        let folder = tempfile::tempdir().unwrap();
        {
            let stores = Stores::new(Some(folder.path().to_owned()));
            let store = stores.of(&name()).unwrap();
            store
                .commit(&set(&store, &[("a", Some("1")), ("b", Some("2"))]))
                .unwrap();
            store.commit(&set(&store, &[("a", None), ("c", Some(""))])).unwrap();
            let dropped = set(&store, &[("d", Some("never"))]);
            drop(dropped);
        }
        let stores = Stores::new(Some(folder.path().to_owned()));
        let store = stores.of(&name()).unwrap();
        assert_eq!(
            all(&store),
            [("b".to_owned(), b"2".to_vec()), ("c".to_owned(), Vec::new())]
        );
        assert_eq!(store.entries.read().bytes, cost("b", b"2") + cost("c", b""));
        assert!(all(&stores.of(&"other".into()).unwrap()).is_empty());
    }

    #[test]
    fn a_call_sees_its_own_changes_and_nobody_elses() {
        let store = KeyValues::default();
        store
            .commit(&set(&store, &[("k/1", Some("old")), ("k/2", Some("two"))]))
            .unwrap();
        let changes = set(
            &store,
            &[
                ("k/1", Some("new")),
                ("k/2", None),
                ("k/3", Some("three")),
                ("l", Some("")),
            ],
        );
        assert_eq!(changes.get(&store, "k/1").as_deref(), Some(&b"new"[..]));
        assert_eq!(changes.keys(&store, "k/"), ["k/1", "k/3"]);
        assert_eq!(Changes::default().keys(&store, "k/"), ["k/1", "k/2"]);
        assert_eq!(Changes::default().get(&store, "k/1").as_deref(), Some(&b"old"[..]));
    }

    #[test]
    fn a_full_store_takes_nothing_more_but_gives_room_back() {
        let store = KeyValues::default();
        let limit = 2 * cost("a", &[0; 100]);
        let mut changes = Changes::default();
        let mut put = |key: &str, value: Option<Vec<u8>>| changes.set(&store, key.to_owned(), value, limit);
        put("a", Some(vec![0; 100])).unwrap();
        put("b", Some(vec![0; 100])).unwrap();
        assert_eq!(
            put("c", Some(Vec::new())).unwrap_err().status,
            StatusCode::BAD_OUT_OF_MEMORY.0
        );
        put("a", Some(vec![0; 100])).unwrap();
        put("a", None).unwrap();
        put("c", Some(vec![0; 100])).unwrap();
        for key in [String::new(), "k".repeat(MAX_KEY + 1)] {
            assert_eq!(put(&key, None).unwrap_err().status, StatusCode::BAD_INVALID_ARGUMENT.0);
        }
    }

    #[test]
    fn a_damaged_file_is_set_aside_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plant.redb");
        for round in 0..2 {
            std::fs::write(&file, b"not a database, but not empty either").unwrap();
            let stores = Stores::new(Some(folder.path().to_owned()));
            let store = stores.of(&name()).unwrap();
            assert!(all(&store).is_empty());
            store.commit(&set(&store, &[("a", Some("1"))])).unwrap();
            drop((stores, store));
            let aside = folder.path().join(format!("plant.redb.damaged-{round}"));
            assert!(std::fs::read(aside).unwrap().starts_with(b"not a database"));
        }
    }

    #[test]
    fn one_file_has_one_owner() {
        let folder = tempfile::tempdir().unwrap();
        let first = Stores::new(Some(folder.path().to_owned()));
        let _open = first.of(&name()).unwrap();
        let second = Stores::new(Some(folder.path().to_owned()));
        assert!(matches!(second.of(&name()), Err(StoreError::InUse { .. })));
    }
}
