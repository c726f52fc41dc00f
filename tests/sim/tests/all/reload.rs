//! A reload changes nothing for a client: the same script with and without reloads gives the same notifications.

use std::time::Duration;

use backplane_sim::{Options, Outcome, run};

/// A world without anything that would make values depend on when exactly they are looked at.
fn options(seed: u64) -> Options {
    Options {
        duration: Duration::from_secs(12),
        pace: 3_000,
        faults: false,
        reloads: false,
        renumbers: false,
        vanishes: false,
        drops: false,
        stalls: false,
        ..Options::new(seed)
    }
}

fn world(options: &Options) -> Outcome {
    let outcome = run(options).expect("a world");
    let first = outcome.violations.first();
    assert!(
        first.is_none(),
        "seed {}: {}",
        options.seed,
        first.expect("a violation")
    );
    outcome
}

fn compare(seed: u64, plain: &Outcome, reloaded: &Outcome, what: &str) {
    for (client, (plain, reloaded)) in plain.streams.iter().zip(&reloaded.streams).enumerate() {
        for (item, values) in plain {
            assert_eq!(
                Some(values),
                reloaded.get(item),
                "seed {seed}, {what}: item {item:?} of client {}",
                client + 1
            );
        }
        assert_eq!(
            plain.len(),
            reloaded.len(),
            "seed {seed}, {what}: items of client {}",
            client + 1
        );
    }
}

#[test]
fn a_reload_at_every_boundary_at_once_changes_nothing() {
    for seed in crate::seeds(1, 8) {
        let plain = world(&options(seed));
        assert!(plain.streams.iter().any(|stream| !stream.is_empty()), "seed {seed}");
        let reloaded = world(&Options {
            reload_every_boundary: true,
            ..options(seed)
        });
        assert!(reloaded.stats.reloads >= plain.boundaries, "seed {seed}");
        compare(seed, &plain, &reloaded, "a reload at every boundary");
    }
}

#[test]
fn a_reload_at_each_boundary_alone_changes_nothing() {
    for seed in crate::seeds(500, 2) {
        let plain = world(&options(seed));
        for boundary in 1..=plain.boundaries.min(40) {
            let reloaded = world(&Options {
                reload_at: vec![boundary],
                ..options(seed)
            });
            assert_eq!(reloaded.stats.reloads, 1);
            compare(seed, &plain, &reloaded, &format!("a reload at boundary {boundary}"));
        }
    }
}
