//! How many instructions the request path takes, compared with what is written down.
//!
//! Times depend on the machine and on what else it does; counts of instructions hardly do. Fixed pieces of work run under valgrind's callgrind, each in a
//! function of its own, and `table.toml` says what they took when it was last recorded:
//!
//! - `--check` (the default) measures and compares: exit 1 when a piece of work takes over 2 % more. Without valgrind it says so and exits 0.
//! - `--record` measures and writes the table.
//! - `--run` does the work once, for valgrind and for profilers; `--run NAME COUNT` one piece, COUNT times.
//!
//! The table is for one architecture. Another one, or a machine without the instruction sets the table was recorded with, is told to skip.

mod channel;
mod measure;
mod queue;
mod table;
mod work;
mod world;

use std::process::ExitCode;

use table::{Table, Verdict};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        [] | ["--check"] => check(),
        ["--record"] => record(),
        ["--run"] => run(None),
        ["--run", name, count] => match count.parse() {
            Ok(count) => run(Some((name, count))),
            Err(error) => Err(format!("{count}: {error}")),
        },
        _ => Err("use: backplane-instructions [--check | --record | --run [NAME COUNT]]".to_owned()),
    };
    outcome.unwrap_or_else(|reason| {
        eprintln!("instructions: {reason}");
        ExitCode::FAILURE
    })
}

/// Does the work in this process. Without `only`, all of it, as often as is measured.
fn run(only: Option<(&str, u32)>) -> Result<ExitCode, String> {
    let mut bench = work::Bench::new(&measure::Keys::get()?)?;
    let mut is_known = false;
    for piece in work::PIECES {
        let count = match only {
            None => piece.count,
            Some((name, count)) if name == piece.name => count,
            Some(_) => continue,
        };
        is_known = true;
        (piece.run)(&mut bench, count);
    }
    if is_known {
        Ok(ExitCode::SUCCESS)
    } else {
        Err("no such piece of work".to_owned())
    }
}

fn check() -> Result<ExitCode, String> {
    if !measure::has_valgrind() {
        eprintln!("instructions: SKIPPED: there is no valgrind on this machine");
        return Ok(ExitCode::SUCCESS);
    }
    let table = Table::read()?;
    if table.machine != measure::machine() {
        eprintln!(
            "instructions: SKIPPED: the table is for {:?}, this machine is {:?}",
            table.machine,
            measure::machine()
        );
        return Ok(ExitCode::SUCCESS);
    }
    let found = measure::all()?;
    let mut is_good = true;
    for verdict in table.compare(&found) {
        println!("{verdict}");
        is_good &= !matches!(
            verdict,
            Verdict::More { .. } | Verdict::Missing { .. } | Verdict::Stale { .. }
        );
    }
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn record() -> Result<ExitCode, String> {
    let table = Table::new(measure::machine(), measure::all()?);
    table.write()?;
    print!("{}", table.text());
    Ok(ExitCode::SUCCESS)
}
