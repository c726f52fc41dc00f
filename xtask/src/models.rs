//! The model checkers: tests of `host/queue` in builds of their own, in which its atomics and locks are those of loom or of shuttle.
//!
//! Which tests there are is seen from their names, so that a new one is run without a line here.

use std::fs;

use crate::tools::{Outcome, cargo, root, run, target_dir};

/// The checkers: each is a `--cfg`, and the start of its tests' names.
const CHECKERS: [&str; 2] = ["loom", "shuttle"];

/// Runs the tests of both checkers.
pub(crate) fn test() -> Outcome {
    CHECKERS.into_iter().try_for_each(check)
}

fn check(checker: &str) -> Outcome {
    let mut flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    flags.push_str(" --cfg ");
    flags.push_str(checker);
    let mut cargo = cargo();
    cargo
        .args(["test", "--release", "-p", "backplane-queue", "--target-dir"])
        .arg(target_dir().join(checker))
        .env("RUSTFLAGS", flags.trim_start())
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    let tests = tests_of(checker)?;
    if tests.is_empty() {
        return Err(format!("host/queue/tests has no test for {checker}"));
    }
    for test in tests {
        cargo.args(["--test", &test]);
    }
    run(&mut cargo)
}

/// The names of a checker's tests, such as `loom_fair`.
fn tests_of(checker: &str) -> Outcome<Vec<String>> {
    let folder = root().join("host/queue/tests");
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut tests = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| format!("{}: {error}", folder.display()))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let stem = name.strip_suffix(".rs");
        tests.extend(
            stem.filter(|stem| stem.split('_').next() == Some(checker))
                .map(str::to_owned),
        );
    }
    tests.sort_unstable();
    Ok(tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_checkers_have_tests() {
        for checker in CHECKERS {
            let tests = tests_of(checker).unwrap();
            assert!(tests.contains(&format!("{checker}_fair")), "{tests:?}");
        }
    }
}
