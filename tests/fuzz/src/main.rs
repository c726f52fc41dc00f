//! The command line of the fuzzer for stable Rust. The README beside this crate's manifest says how to use it.

mod driver;

use std::process::ExitCode;
use std::time::Duration;

use fuzz_targets::{TARGETS, Target, corpus, target};

const USAGE: &str = "usage:
  fuzz-targets TARGET|all SECONDS [SEED]   mutate the seeds of a target, or of each
  fuzz-targets --replay TARGET FILE...     try files
  fuzz-targets --write-corpus              make the seed files anew
  fuzz-targets --list                      the names of the targets";

/// Wrong use of the command line.
const EX_USAGE: u8 = 64;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["--list"] => {
            TARGETS.iter().for_each(|target| println!("{}", target.name));
            Ok(true)
        }
        ["--write-corpus"] => write_corpus().map(|()| true),
        ["--replay", name, files @ ..] => match target(name) {
            Some(target) => replay(target, files),
            None => return usage(),
        },
        [name, seconds, seed @ ..] => {
            let seed = match seed {
                [] => Some(1),
                [seed] => seed.parse().ok(),
                _ => None,
            };
            let (Some(seed), Ok(seconds)) = (seed, seconds.parse()) else {
                return usage();
            };
            let chosen: Vec<Target> = TARGETS
                .iter()
                .copied()
                .filter(|target| *name == "all" || target.name == *name)
                .collect();
            if chosen.is_empty() {
                return usage();
            }
            fuzz(&chosen, Duration::from_secs(seconds), seed)
        }
        _ => return usage(),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(EX_USAGE)
}

fn write_corpus() -> std::io::Result<()> {
    for target in TARGETS {
        println!("{:>5} {}", corpus::write(target.name)?, target.name);
    }
    Ok(())
}

fn replay(target: Target, files: &[&str]) -> std::io::Result<bool> {
    let mut whole = true;
    for file in files {
        let input = std::fs::read(file)?;
        let tried = std::thread::spawn(move || driver::why(target, &input));
        match tried.join() {
            Ok(None) => println!("{file}: nothing"),
            Ok(Some(why)) => {
                whole = false;
                println!("{file}: {why}");
            }
            Err(_) => return Err(std::io::Error::other("the thread is gone")),
        }
    }
    Ok(whole)
}

/// True if no promise was broken.
fn fuzz(targets: &[Target], time: Duration, seed: u64) -> std::io::Result<bool> {
    let mut whole = true;
    for target in targets {
        let report = driver::fuzz(*target, time, seed)?;
        let rate = report.runs.checked_div(time.as_secs()).unwrap_or(report.runs);
        println!(
            "{}: {} inputs ({rate}/s), {} ways, slowest {:?} ({} bytes), {} findings",
            target.name,
            report.runs,
            report.ways,
            report.slowest,
            report.slowest_input.len(),
            report.findings.len()
        );
        for (place, file) in &report.findings {
            println!("  {place}\n    {}", file.display());
        }
        whole &= report.findings.is_empty();
    }
    Ok(whole)
}
