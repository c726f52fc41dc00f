//! Many reloads: neither memory nor an open file may be left behind by any of them.

use super::Check;
use super::plant::{Plant, Trouble};

/// A part of the reloads comes before the first look: caches fill and allocators find their size.
const WARM_UP: u32 = 4;
/// Growth that is none, in percent of the memory before.
const TOLERANCE: u64 = 5;
/// Numbers of editions that no other check uses.
const FIRST: u32 = 1 << 24;

/// What the process has.
#[derive(Debug, Clone, Copy)]
struct Footprint {
    /// Bytes of memory that is resident.
    memory: u64,
    files: usize,
}

impl Footprint {
    fn now() -> Result<Self, Trouble> {
        let look = || -> std::io::Result<Self> {
            let text = std::fs::read_to_string("/proc/self/status")?;
            let kilobytes = text
                .lines()
                .find_map(|line| {
                    line.strip_prefix("VmRSS:")?
                        .trim()
                        .strip_suffix("kB")?
                        .trim()
                        .parse::<u64>()
                        .ok()
                })
                .ok_or_else(|| std::io::Error::other("no VmRSS in it"))?;
            Ok(Self {
                memory: kilobytes * 1_024,
                files: std::fs::read_dir("/proc/self/fd")?.count(),
            })
        };
        look().map_err(|error| Trouble::Other(format!("what this process has cannot be seen in /proc: {error}")))
    }
}

pub(super) async fn run(plant: &Plant, reloads: u32) -> Result<Check, Trouble> {
    let warm = reloads / WARM_UP;
    for number in 0..warm {
        plant.load(Some(FIRST + number)).await?;
    }
    let before = Footprint::now()?;
    for number in warm..reloads {
        plant.load(Some(FIRST + number)).await?;
    }
    let after = Footprint::now()?;
    let detail = format!(
        "{reloads} reloads: memory {} KiB, {} KiB after the first {warm}; open files {}, then {}",
        after.memory / 1_024,
        before.memory / 1_024,
        after.files,
        before.files
    );
    let grown = after.memory > before.memory + before.memory * TOLERANCE / 100;
    let problem = match (grown, after.files > before.files) {
        (false, false) => None,
        (true, _) => Some(format!("memory grew by more than {TOLERANCE} %")),
        (_, true) => Some("files were left open".to_owned()),
    };
    Ok(Check::of("soak", detail, problem))
}
