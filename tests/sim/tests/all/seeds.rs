//! Many seeds, all checkers on; and the same seed twice.

use backplane_sim::{Options, Stats, run};

/// Seeds of one run of the tests.
const COUNT: u64 = 200;

#[test]
fn every_rule_holds_in_every_seed() {
    let mut total = Stats::default();
    for seed in crate::seeds(1, COUNT) {
        let outcome = run(&Options::new(seed)).expect("a world");
        if let Some(violation) = outcome.violations.first() {
            // Once more, to be read.
            let again = run(&Options {
                trace: true,
                ..Options::new(seed)
            });
            for line in again.iter().flat_map(|it| it.trace.iter().rev().take(60).rev()) {
                println!("{line}");
            }
            panic!("seed {seed}: {violation}\nagain: cargo run --release -p backplane-sim -- --seed {seed}");
        }
        total.add(&outcome.stats);
    }
    println!("{total:?}");
    // A world in which nothing happens breaks no rule.
    if std::env::var_os("BACKPLANE_SIM_SEED").is_none() {
        for (what, count, least) in [
            ("notifications", total.notifications, 20_000),
            ("keep-alives", total.keep_alives, 1_000),
            ("republished", total.republished, 20),
            ("expired", total.expired, 20),
            ("drops", total.drops, 100),
            ("reloads", total.reloads, 200),
            ("traps", total.traps, 200),
        ] {
            assert!(count >= least, "only {count} {what}");
        }
    }
}

#[test]
fn a_seed_gives_the_same_run_again() {
    for seed in crate::seeds(1_000, 5) {
        let first = run(&Options::new(seed)).expect("a world");
        let second = run(&Options {
            trace: true,
            ..Options::new(seed)
        })
        .expect("a world");
        assert_eq!(first.hash, second.hash, "seed {seed}");
        assert!(!second.trace.is_empty());
        let other = run(&Options::new(seed + 1)).expect("a world");
        assert_ne!(first.hash, other.hash, "seed {seed}");
    }
}
