//! The fuzzer for stable Rust: mutates seeds for a time, keeps what takes a new way, and writes down what breaks a promise.
//!
//! Owns the loop. Must not know what a target checks. A run is the same again with the same seed, up to where its time ends.

mod minimise;
mod mutate;
mod pool;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fuzz_targets::{Target, corpus, feedback};

use minimise::minimise;
pub(crate) use minimise::why;
use mutate::Mutator;
use pool::Pool;

/// Longest input that is made, in bytes.
const LONGEST: usize = 16 * 1_024;
/// An input that takes longer hangs.
const HANG: Duration = Duration::from_secs(20);
/// Findings after which a run ends early.
const MOST_FINDINGS: usize = 8;

/// What one run did.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Inputs tried.
    pub(crate) runs: u64,
    /// Inputs kept for their way.
    pub(crate) ways: usize,
    /// The longest time one input took.
    pub(crate) slowest: Duration,
    /// The input that took it.
    pub(crate) slowest_input: Vec<u8>,
    /// Where promises were broken, and the files with the inputs.
    pub(crate) findings: BTreeMap<String, PathBuf>,
}

/// The input being tried, for whoever watches.
#[derive(Default)]
struct Current {
    run: u64,
    input: Vec<u8>,
}

type Shared = Arc<Mutex<Current>>;

struct Fuzzer {
    target: Target,
    pool: Pool,
    mutator: Mutator,
    report: Report,
    /// Seeds that were not tried yet.
    waiting: Vec<Vec<u8>>,
    current: Shared,
    until: Instant,
}

/// Fuzzes a target for a time.
///
/// # Errors
/// Those of the file system.
pub(crate) fn fuzz(target: Target, time: Duration, seed: u64) -> std::io::Result<Report> {
    let current = Shared::default();
    let mut waiting: Vec<Vec<u8>> = corpus::files(target.name)?.into_iter().map(|seed| seed.bytes).collect();
    waiting.extend(corpus::generated(target.name).into_iter().map(|seed| seed.bytes));
    waiting.reverse();
    let mut fuzzer = Fuzzer {
        target,
        pool: Pool::new(),
        mutator: Mutator::new(seed),
        report: Report::default(),
        waiting,
        current: Arc::clone(&current),
        until: Instant::now() + time,
    };
    loop {
        // A thread of its own each time: a panic leaves thread-local counters behind.
        let (send, receive) = mpsc::channel();
        std::thread::spawn(move || {
            let broken = fuzzer.run();
            // Whoever waits for this has gone only if the process ends.
            let _ = send.send((fuzzer, broken));
        });
        let (returned, broken) = watch(&receive, &current, target)?;
        fuzzer = returned;
        let Some((place, input)) = broken else {
            break;
        };
        if let Entry::Vacant(new) = fuzzer.report.findings.entry(place) {
            let file = save(target, &minimise(target, new.key(), &input))?;
            eprintln!("{}: {}\n  {}", target.name, new.key(), file.display());
            new.insert(file);
        }
        if fuzzer.report.findings.len() >= MOST_FINDINGS {
            break;
        }
    }
    fuzzer.report.ways = fuzzer.pool.len();
    Ok(fuzzer.report)
}

type Finding = Option<(String, Vec<u8>)>;

/// Waits for the thread, and ends the process if an input hangs.
fn watch(
    receive: &mpsc::Receiver<(Fuzzer, Finding)>,
    current: &Shared,
    target: Target,
) -> std::io::Result<(Fuzzer, Finding)> {
    let mut last = u64::MAX;
    loop {
        match receive.recv_timeout(HANG) {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Timeout) => {
                let now = current.lock().unwrap_or_else(PoisonError::into_inner);
                if now.run == last {
                    let file = save(target, &now.input)?;
                    eprintln!("{}: hangs\n  {}", target.name, file.display());
                    std::process::exit(1);
                }
                last = now.run;
            }
            Err(RecvTimeoutError::Disconnected) => return Err(std::io::Error::other("the fuzzing thread is gone")),
        }
    }
}

/// Writes an input into the folder of findings; `save-each` runs use the same place.
pub(crate) fn save(target: Target, input: &[u8]) -> std::io::Result<PathBuf> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("artifacts")
        .join(target.name);
    std::fs::create_dir_all(&folder)?;
    let file = folder.join(format!("{}{:016x}", corpus::FOUND, hasher.finish()));
    std::fs::write(&file, input)?;
    Ok(file)
}

impl Fuzzer {
    /// Tries inputs until the time is over (`None`) or one breaks a promise: where, and the input.
    fn run(&mut self) -> Finding {
        loop {
            let seed = self.waiting.pop();
            if seed.is_none() && Instant::now() >= self.until {
                return None;
            }
            let input = match seed {
                Some(seed) => seed,
                None => self.mutator.make(&self.pool, LONGEST),
            };
            if let Some(place) = self.try_one(&input) {
                return Some((place, input));
            }
        }
    }

    fn try_one(&mut self, input: &[u8]) -> Option<String> {
        self.report.runs += 1;
        {
            let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
            current.run = self.report.runs;
            current.input.clear();
            current.input.extend_from_slice(input);
        }
        feedback::reset();
        let start = Instant::now();
        let broken = minimise::attempt(self.target, input);
        let took = start.elapsed();
        if took > self.report.slowest {
            self.report.slowest = took;
            self.report.slowest_input = input.to_vec();
        }
        if broken.is_none() && input.len() <= LONGEST {
            self.pool.offer(feedback::way(), input);
        }
        broken
    }
}
