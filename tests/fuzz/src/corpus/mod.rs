//! The seeds: what the targets start from, and what their replay never forgets.
//!
//! Owns the making of every seed; the files in `corpus/` are what this module writes. Seeds that are large, or that take a private key, are
//! made when they are needed instead ([`generated`]). Findings are added as files whose names start with `found-`; this module leaves them alone.

mod certificates;
mod channels;
mod der;
mod messages;
mod ranges;
mod values;
mod wire;

use std::path::{Path, PathBuf};

/// An input with a name.
#[derive(Clone, Debug)]
pub struct Seed {
    /// The name of its file.
    pub name: String,
    /// The input.
    pub bytes: Vec<u8>,
}

impl Seed {
    fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            name: name.into(),
            bytes: bytes.into(),
        }
    }
}

/// Longest seed that is kept as a file, in bytes.
pub const LONGEST_FILE: usize = 4_096;

/// Files with a name that starts so were found, not made.
pub const FOUND: &str = "found-";

/// The seeds of a target that are kept as files.
#[must_use]
pub fn seeds(target: &str) -> Vec<Seed> {
    match target {
        "builtin" => values::builtin(),
        "message" => messages::messages(),
        "view" => messages::views(),
        "extension" => values::extensions(),
        "text" => ranges::texts(),
        "range" => ranges::ranges(),
        "guest" => values::guests(),
        "server_channel" => channels::to_server(),
        "client_channel" => channels::to_client(),
        "certificate" => certificates::files(),
        "private_key" => certificates::broken_keys(),
        "secret" => certificates::garbage_secrets(),
        "sealed" => certificates::garbage_chunks(),
        _ => Vec::new(),
    }
}

/// The seeds of a target that are made anew each time: deep, long, or sealed with keys.
#[must_use]
pub fn generated(target: &str) -> Vec<Seed> {
    match target {
        "builtin" => values::deep_builtin(),
        "message" => messages::deep_messages(),
        "view" => messages::deep_views(),
        "extension" => values::deep_extensions(),
        "guest" => values::deep_guests(),
        "server_channel" => channels::long_to_server(),
        "client_channel" => channels::long_to_client(),
        "certificate" => certificates::long(),
        "private_key" => certificates::keys(),
        "secret" => certificates::secrets(),
        "sealed" => certificates::sealed_chunks(),
        _ => Vec::new(),
    }
}

/// The folder of a target's files.
#[must_use]
pub fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}

/// The files of a target, by name.
///
/// # Errors
/// Those of the file system.
pub fn files(target: &str) -> std::io::Result<Vec<Seed>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder(target))? {
        let entry = entry?;
        found.push(Seed::new(
            entry.file_name().to_string_lossy(),
            std::fs::read(entry.path())?,
        ));
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

/// Writes the files of a target, and removes those that are no seeds any more; findings stay.
///
/// # Errors
/// Those of the file system.
pub fn write(target: &str) -> std::io::Result<usize> {
    let folder = folder(target);
    std::fs::create_dir_all(&folder)?;
    let seeds = seeds(target);
    for old in files(target)? {
        if !old.name.starts_with(FOUND) && seeds.iter().all(|seed| seed.name != old.name) {
            std::fs::remove_file(folder.join(&old.name))?;
        }
    }
    for seed in &seeds {
        std::fs::write(folder.join(&seed.name), &seed.bytes)?;
    }
    Ok(seeds.len())
}

/// Every seed with each run of four bytes replaced by lengths that are made to hurt.
fn with_bad_lengths(seeds: &[Seed]) -> Vec<Seed> {
    const BAD: [(&str, u32); 4] = [
        ("largest", 0x7FFF_FFFF),
        ("smallest", 0x8000_0000),
        ("minus-two", 0xFFFF_FFFE),
        ("million", 1_000_000),
    ];
    let mut made = Vec::new();
    for seed in seeds {
        for at in 0..seed.bytes.len().saturating_sub(3) {
            for (name, length) in BAD {
                let mut bytes = seed.bytes.clone();
                if let Some(place) = bytes.get_mut(at..at + 4) {
                    place.copy_from_slice(&length.to_le_bytes());
                }
                made.push(Seed::new(format!("{}-{name}-at-{at}", seed.name), bytes));
            }
        }
    }
    made
}

/// Every seed cut off at every place.
fn truncated(seeds: &[Seed]) -> Vec<Seed> {
    let cut = |seed: &Seed| {
        let all = (0..seed.bytes.len()).map(|end| {
            let bytes = seed.bytes.get(..end).unwrap_or_default();
            Seed::new(format!("{}-cut-at-{end}", seed.name), bytes)
        });
        all.collect::<Vec<_>>()
    };
    seeds.iter().flat_map(cut).collect()
}
