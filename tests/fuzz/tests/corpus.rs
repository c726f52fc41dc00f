//! The seeds are what the code makes, and no target breaks a promise on any of them.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use fuzz_targets::corpus::{self, FOUND, LONGEST_FILE, Seed};
use fuzz_targets::{TARGETS, Target, target};

/// Bytes of all seed files together: a corpus is looked at, cloned and never in the way.
const MOST_BYTES: usize = 1 << 20;

#[test]
fn seed_files_are_what_the_code_makes() {
    let mut total = 0;
    for target in TARGETS {
        let files = corpus::files(target.name).unwrap();
        let seeds = corpus::seeds(target.name);
        assert!(seeds.len() >= 5, "{}", target.name);
        let names: BTreeSet<&str> = seeds.iter().map(|seed| seed.name.as_str()).collect();
        assert_eq!(names.len(), seeds.len(), "{}: a name is used twice", target.name);
        for file in &files {
            assert!(
                file.name.starts_with(FOUND) || names.contains(file.name.as_str()),
                "{}/{} is made by nothing",
                target.name,
                file.name
            );
            assert!(
                file.bytes.len() <= LONGEST_FILE,
                "{}/{} is long",
                target.name,
                file.name
            );
            total += file.bytes.len();
        }
        for seed in &seeds {
            let file = files.iter().find(|file| file.name == seed.name);
            assert!(
                file.is_some_and(|file| file.bytes == seed.bytes),
                "{}/{} is not current: run `cargo run -p fuzz-targets -- --write-corpus`",
                target.name,
                seed.name
            );
        }
    }
    assert!(total < MOST_BYTES, "{total} bytes");
}

#[test]
fn every_folder_of_seeds_has_a_target() {
    let folder = corpus::folder("");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(target(name.to_str().unwrap()).is_some(), "{name:?}");
    }
}

/// The package for cargo-fuzz has the same targets, by the same names.
#[test]
fn every_target_can_be_run_by_libfuzzer() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("libfuzzer");
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    for target in TARGETS {
        let name = target.name;
        assert!(
            manifest.contains(&format!("name = \"{name}\"\n")),
            "{name} is no [[bin]]"
        );
        let source = std::fs::read_to_string(folder.join(format!("fuzz_targets/{name}.rs"))).unwrap();
        assert!(
            source.contains(&format!("fuzz_targets::targets::{name}::{name}(data)")),
            "{name}"
        );
    }
}

/// The name of the input is told when it breaks a promise.
fn replay(target: Target, seeds: &[Seed]) {
    for seed in seeds {
        let tried = std::panic::catch_unwind(|| (target.run)(&seed.bytes));
        if let Err(cause) = tried {
            eprintln!("{} breaks a promise on {}", target.name, seed.name);
            std::panic::resume_unwind(cause);
        }
    }
}

/// One test for each target: they run beside each other, and each on the stack of a thread.
macro_rules! replays {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                let target = target(stringify!($name)).unwrap();
                replay(target, &corpus::files(target.name).unwrap());
                replay(target, &corpus::generated(target.name));
            }
        )*

        #[test]
        fn every_target_is_replayed() {
            let replayed = [$(stringify!($name)),*];
            assert_eq!(replayed.to_vec(), TARGETS.iter().map(|target| target.name).collect::<Vec<_>>());
        }
    };
}

replays! {
    builtin message view extension text range guest server_channel client_channel certificate private_key secret sealed
}
