//! Runs one seed with its trace, or many seeds without.

use std::process::ExitCode;
use std::time::Instant;

use backplane_sim::{Options, run};

const USAGE: &str = "use: backplane-sim --seed N [--quiet] | --seeds FIRST COUNT";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<u64>().ok();
    let good = match words.as_slice() {
        ["--seed", seed] => number(seed).map(|seed| one(seed, true)),
        ["--seed", seed, "--quiet"] => number(seed).map(|seed| one(seed, false)),
        ["--seeds", first, count] => number(first)
            .zip(number(count))
            .map(|(first, count)| many(first, count)),
        _ => None,
    };
    match good {
        Some(true) => ExitCode::SUCCESS,
        Some(false) => ExitCode::FAILURE,
        None => {
            eprintln!("{USAGE}");
            ExitCode::FAILURE
        }
    }
}

fn one(seed: u64, trace: bool) -> bool {
    let options = Options {
        trace,
        ..Options::new(seed)
    };
    let Some(outcome) = run(&options) else {
        eprintln!("the world could not be made");
        return false;
    };
    for line in &outcome.trace {
        println!("{line}");
    }
    println!("seed {seed}: hash {:016x}, {:?}", outcome.hash, outcome.stats);
    for violation in &outcome.violations {
        println!("seed {seed}: {violation}");
    }
    outcome.violations.is_empty()
}

fn many(first: u64, count: u64) -> bool {
    let start = Instant::now();
    let mut bad = 0;
    let mut worst = 0;
    for seed in first..first.saturating_add(count) {
        match run(&Options::new(seed)) {
            Some(outcome) if outcome.violations.is_empty() => worst = worst.max(outcome.stats.worst_jitter_us),
            Some(outcome) => {
                bad += 1;
                if let Some(violation) = outcome.violations.first() {
                    println!("seed {seed}: {violation}");
                }
            }
            None => bad += 1,
        }
    }
    println!(
        "{count} seeds, {bad} broken, latest sample {worst} us behind, {:?}",
        start.elapsed()
    );
    bad == 0
}
