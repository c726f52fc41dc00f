//! The file of durable subscriptions (Part 4, 6.8): written when the server stops, read and removed when it starts.
//!
//! Owns the file: its place, its form, its checksum, and that a damaged one stops nothing and is kept for whoever wants to look at it. There is none while the server runs: after a
//! crash nothing old comes back.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use backplane_types::{DateTime, DecodeLimits, Decoder, Encoder};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use sha2::{Digest as _, Sha256};

use crate::shard::Kept;

const FILE: &str = "durable-subscriptions";
const PARTIAL: &str = "durable-subscriptions.partial";
/// What it begins with: a name and the version of the form.
const MAGIC: &[u8; 5] = b"BPDS\x01";
const CHECKSUM: usize = 32;
/// Bytes of all subscriptions in it.
const MAX_CONTENT: usize = 1 << 30;
/// Longest file that is read: with what stands around them.
const MAX_SIZE: u64 = 1 << 31;

/// What a run has left.
#[derive(Debug, Default)]
pub(crate) struct Left {
    pub(crate) kept: Vec<Kept>,
    /// How long ago it stopped.
    pub(crate) away: Duration,
}

/// Writes the file in one step. Without subscriptions there is none.
pub(crate) fn save(state: &Path, kept: &[Kept], now: DateTime) {
    if kept.is_empty() {
        return;
    }
    match write(state, &encode(kept, now)) {
        Ok(()) => tracing::info!(subscriptions = kept.len(), "durable subscriptions saved"),
        Err(error) => {
            tracing::error!(file = %state.join(FILE).display(), %error, subscriptions = kept.len(), "durable subscriptions are lost: they cannot be written");
        }
    }
}

/// Reads the file of the last run and removes it.
pub(crate) fn take(state: &Path, now: DateTime) -> Left {
    let path = state.join(FILE);
    let dir = match Dir::open_ambient_dir(state, ambient_authority()) {
        Ok(dir) => dir,
        Err(error) => {
            tracing::error!(folder = %state.display(), %error, "durable subscriptions cannot be looked for");
            return Left::default();
        }
    };
    let bytes = match read(&dir) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Left::default(),
        Err(error) => {
            tracing::error!(file = %path.display(), %error, "durable subscriptions cannot be read");
            return Left::default();
        }
    };
    let left = match decode(&bytes, now) {
        Ok(left) => left,
        Err(reason) => {
            set_aside(&dir, &path, reason);
            return Left::default();
        }
    };
    match dir.remove_file(FILE) {
        Ok(()) => left,
        Err(error) => {
            // What cannot be removed would come back after a crash, older than what its clients have seen.
            tracing::error!(file = %path.display(), %error, "durable subscriptions not restored: their file cannot be removed");
            Left::default()
        }
    }
}

fn encode(kept: &[Kept], now: DateTime) -> Vec<u8> {
    let mut size = 0;
    let mut parts = Vec::with_capacity(kept.len());
    for one in kept {
        match one.to_bytes().filter(|bytes| size + bytes.len() <= MAX_CONTENT) {
            Some(bytes) => {
                size += bytes.len();
                parts.push(bytes);
            }
            None => {
                tracing::error!(
                    subscription = one.id(),
                    "durable subscription lost: all together are longer than {MAX_CONTENT} bytes"
                );
            }
        }
    }
    let mut bytes = MAGIC.to_vec();
    let mut e = Encoder::new(&mut bytes);
    e.put(&now);
    e.length(parts.len());
    parts.iter().for_each(|part| e.byte_string(Some(part)));
    let checksum = Sha256::digest(&bytes);
    bytes.extend_from_slice(&checksum);
    bytes
}

fn decode(bytes: &[u8], now: DateTime) -> Result<Left, &'static str> {
    let (content, checksum) = bytes
        .split_at_checked(bytes.len().saturating_sub(CHECKSUM))
        .filter(|(content, _)| content.len() >= MAGIC.len())
        .ok_or("it is too short")?;
    if !content.starts_with(MAGIC) {
        return Err("it is of another version, or no such file");
    }
    if Sha256::digest(content).as_slice() != checksum {
        return Err("its checksum is wrong");
    }
    let rest = content.get(MAGIC.len()..).unwrap_or_default();
    let mut d = Decoder::new(rest, DecodeLimits::TRUSTED);
    let broken = "its content is not what its checksum is of";
    let stopped: DateTime = d.get().map_err(|_| broken)?;
    let count = d.array_length(4).map_err(|_| broken)?.unwrap_or(0);
    let mut kept = Vec::new();
    for _ in 0..count {
        let part = d.byte_string().map_err(|_| broken)?.unwrap_or_default();
        match Kept::from_bytes(part) {
            Ok(one) => kept.push(one),
            Err(status) => tracing::error!(%status, "a durable subscription is lost: this version cannot read it"),
        }
    }
    // A clock that was set back: no time has passed.
    let ticks = u64::try_from(now.ticks().saturating_sub(stopped.ticks())).unwrap_or(0);
    Ok(Left {
        kept,
        away: Duration::from_nanos(ticks.saturating_mul(100)),
    })
}

fn write(state: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let dir = Dir::open_ambient_dir(state, ambient_authority())?;
    let mut options = cap_std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = dir.open_with(PARTIAL, &options)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    dir.rename(PARTIAL, &dir, FILE)?;
    // The name is as durable as the content.
    dir.open(".")?.sync_all()
}

fn read(dir: &Dir) -> std::io::Result<Option<Vec<u8>>> {
    let file = match dir.open(FILE) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(MAX_SIZE).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Keeps a file that cannot be used under another name.
fn set_aside(dir: &Dir, path: &Path, reason: &str) {
    let free = (0..=u32::MAX)
        .map(|number| format!("{FILE}.damaged-{number}"))
        .find(|name| !dir.exists(name));
    let moved = free.map(|name| (dir.rename(FILE, dir, &name), name));
    match moved {
        Some((Ok(()), name)) => {
            tracing::error!(file = %path.display(), kept_as = name, "durable subscriptions are lost: {reason}");
        }
        Some((Err(error), _)) => {
            tracing::error!(file = %path.display(), %error, "durable subscriptions are lost, and their file cannot be set aside: {reason}");
        }
        None => tracing::error!(file = %path.display(), "durable subscriptions are lost: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_files_are_set_aside_and_said_why() {
        let now = DateTime::from_ticks(133_000_000_000_000_000);
        let good = encode(&[], now);
        assert!(decode(&good, now).is_ok_and(|left| left.kept.is_empty()));
        for length in 0..good.len() {
            assert!(decode(&good[..length], now).is_err(), "{length} bytes");
        }
        for place in 0..good.len() {
            let mut flipped = good.clone();
            flipped[place] ^= 1;
            assert!(decode(&flipped, now).is_err(), "byte {place}");
        }
        let folder = tempfile::tempdir().unwrap();
        for round in 0..2 {
            std::fs::write(folder.path().join(FILE), b"BPDS\x02 of the future").unwrap();
            assert!(take(folder.path(), now).kept.is_empty());
            assert!(folder.path().join(format!("{FILE}.damaged-{round}")).exists());
            assert!(!folder.path().join(FILE).exists());
        }
    }

    #[test]
    fn time_goes_by_and_a_file_is_read_once() {
        let (then, second) = (133_000_000_000_000_000, 10_000_000);
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &encode(&[], DateTime::from_ticks(then))).unwrap();
        let left = take(folder.path(), DateTime::from_ticks(then + 5 * second));
        assert_eq!(left.away, Duration::from_secs(5));
        assert_eq!(take(folder.path(), DateTime::from_ticks(then)).away, Duration::ZERO);
        let early = decode(
            &encode(&[], DateTime::from_ticks(then)),
            DateTime::from_ticks(then - second),
        );
        assert_eq!(early.unwrap().away, Duration::ZERO, "a clock that was set back");
    }
}
