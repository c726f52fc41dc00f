//! The persistent containers under a model: an arena of nodes in chunks, and an index in shards.
//!
//! A copy shares everything with its original; a change copies only the chunk and the shard it touches. So a model of a million nodes can be
//! changed node by node without being copied. They must not know what a node means.

use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, LazyLock};

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::model::node::{Handle, MAX_INDEX, Node};

/// Nodes of one chunk: what a change copies.
const CHUNK: usize = 64;
/// Shards of an index.
const SHARDS: usize = 256;

/// The nodes of a model by handle. Places of removed nodes are used again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arena {
    chunks: Vec<Arc<Vec<Option<Node>>>>,
    free: Arc<Vec<u32>>,
    live: usize,
}

impl Arena {
    pub(crate) fn len(&self) -> usize {
        self.live
    }

    #[inline]
    pub(crate) fn get(&self, handle: Handle) -> Option<&Node> {
        let index = handle.0 as usize;
        self.chunks.get(index / CHUNK)?.get(index % CHUNK)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, handle: Handle) -> Option<&mut Node> {
        let index = handle.0 as usize;
        Arc::make_mut(self.chunks.get_mut(index / CHUNK)?)
            .get_mut(index % CHUNK)?
            .as_mut()
    }

    /// None: there are as many nodes as a handle can tell apart.
    pub(crate) fn insert(&mut self, node: Node) -> Option<Handle> {
        if !self.free.is_empty()
            && let Some(index) = Arc::make_mut(&mut self.free).pop()
        {
            let place = index as usize;
            if let Some(slot) = self
                .chunks
                .get_mut(place / CHUNK)
                .and_then(|chunk| Arc::make_mut(chunk).get_mut(place % CHUNK))
            {
                *slot = Some(node);
                self.live += 1;
                return Some(Handle(index));
            }
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() >= CHUNK) {
            self.chunks.push(Arc::new(Vec::with_capacity(CHUNK)));
        }
        let before = self.chunks.len().saturating_sub(1).checked_mul(CHUNK)?;
        let chunk = Arc::make_mut(self.chunks.last_mut()?);
        let index = u32::try_from(before.checked_add(chunk.len())?)
            .ok()
            .filter(|index| *index < MAX_INDEX)?;
        chunk.push(Some(node));
        self.live += 1;
        Some(Handle(index))
    }

    pub(crate) fn remove(&mut self, handle: Handle) -> Option<Node> {
        let index = handle.0 as usize;
        let node = Arc::make_mut(self.chunks.get_mut(index / CHUNK)?)
            .get_mut(index % CHUNK)?
            .take()?;
        self.live = self.live.saturating_sub(1);
        Arc::make_mut(&mut self.free).push(handle.0);
        Some(node)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Handle, &Node)> {
        self.chunks.iter().enumerate().flat_map(|(number, chunk)| {
            chunk.iter().enumerate().filter_map(move |(offset, node)| {
                let index = u32::try_from(number * CHUNK + offset).ok()?;
                node.as_ref().map(|node| (Handle(index), node))
            })
        })
    }
}

/// The one hasher of the process: a key is hashed once, however many indexes it is looked up in. Its seed is random, so that nobody can choose ids
/// that collide.
pub(crate) fn hasher() -> DefaultHashBuilder {
    static HASHER: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);
    HASHER.clone()
}

/// Numbers found by a key that the caller keeps elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct Index {
    shards: Vec<Arc<HashTable<Entry>>>,
    hasher: DefaultHashBuilder,
}

/// A number with half of its key's hash: enough to move it to a larger table, and to pass over most others, without a look at the key.
#[derive(Debug, Clone, Copy)]
struct Entry {
    hash: u32,
    number: u32,
}

impl Entry {
    /// The hash that tables use: all bits of it depend on the half that is kept.
    fn spread(hash: u32) -> u64 {
        u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
    }
}

impl Default for Index {
    fn default() -> Self {
        let empty = Arc::new(HashTable::new());
        Self {
            shards: vec![empty; SHARDS],
            hasher: hasher(),
        }
    }
}

/// Shard and kept half of a hash.
#[inline]
fn place(hash: u64) -> (usize, u32) {
    ((hash & 0xff) as usize % SHARDS, (hash >> 32) as u32)
}

impl Index {
    fn place<K: Hash + ?Sized>(&self, key: &K) -> (usize, u32) {
        place(self.hasher.hash_one(key))
    }

    /// What `look` finds at the number of a key; `look` answers none for the number of another one. `hash` is what [`hasher`] makes of the key.
    #[inline(always)]
    pub(crate) fn get<T>(&self, hash: u64, look: impl Fn(u32) -> Option<T>) -> Option<T> {
        let (shard, hash) = place(hash);
        let table = self.shards.get(shard)?;
        // The halves of two hashes are hardly ever the same: the first entry that has it is the one.
        let entry = table.find(Entry::spread(hash), |entry| entry.hash == hash)?;
        look(entry.number).or_else(|| Self::get_among_equals(table, hash, look))
    }

    #[cold]
    fn get_among_equals<T>(table: &HashTable<Entry>, hash: u32, look: impl Fn(u32) -> Option<T>) -> Option<T> {
        let mut found = None;
        table.find(Entry::spread(hash), |entry| {
            entry.hash == hash && {
                found = look(entry.number);
                found.is_some()
            }
        });
        found
    }

    /// The key must not be there.
    pub(crate) fn insert<K: Hash + ?Sized>(&mut self, key: &K, number: u32) {
        let (shard, hash) = self.place(key);
        if let Some(shard) = self.shards.get_mut(shard) {
            let entry = Entry { hash, number };
            Arc::make_mut(shard).insert_unique(Entry::spread(hash), entry, |entry| Entry::spread(entry.hash));
        }
    }

    pub(crate) fn remove<K: Hash + ?Sized>(&mut self, key: &K, number: u32) {
        let (shard, hash) = self.place(key);
        if let Some(shard) = self.shards.get_mut(shard)
            && let Ok(entry) = Arc::make_mut(shard).find_entry(Entry::spread(hash), |entry| entry.number == number)
        {
            entry.remove();
        }
    }
}
