//! Guests that trap, spin, eat memory or refuse to start.

use std::time::Duration;

use backplane_plugin::{PluginKind, PluginState};

use crate::components::{
    ALIAS_STRINGS, ANSWER_FAULT, EAT, GROW_TABLE, Guest, RECURSE, SPIN, WAKE_SOON, classifier, stateful,
};
use crate::support::{Bench, quick};

/// Loads a guest that cannot start; the reason is what the host says.
async fn cannot_start(guest: Guest) -> String {
    let bench = Bench::new(quick());
    // A neighbour, that must not notice.
    let good = bench.put("good.wasm", &Guest::default().build());
    bench.host.load(&good).await.unwrap();
    let path = bench.put("bad.wasm", &guest.build());
    let said = bench.host.load(&path).await.unwrap_err().to_string();
    let status = bench.until_state("bad", PluginState::Quarantined).await;
    assert_eq!(
        status.last_error.as_deref().map(|reason| format!("bad: {reason}")),
        Some(said.clone())
    );
    let counts = bench.status("bad").counts;
    assert_eq!((counts.faults, counts.restarts), (5, 4));
    let good = bench.status("good");
    assert_eq!(
        (good.state, good.instance, good.counts.faults),
        (PluginState::Serving, 1, 0)
    );
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trap_in_start() {
    let said = cannot_start(Guest {
        start: "unreachable",
        ..Guest::default()
    })
    .await;
    assert!(
        said.contains("lifecycle.start trapped") && said.contains("unreachable"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn spinning_in_start() {
    let mut options = quick();
    options.limits.start.cpu = Duration::from_millis(50);
    let bench = Bench::new(options);
    let path = bench.put(
        "bad.wasm",
        &Guest {
            start: SPIN,
            ..Guest::default()
        }
        .build(),
    );
    let said = bench.host.load(&path).await.unwrap_err().to_string();
    assert!(said.contains("lifecycle.start computed longer than 50 ms"), "{said}");
    assert!(bench.status("bad").counts.ticks >= 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn eating_memory_in_start() {
    let said = cannot_start(Guest {
        start: EAT,
        ..Guest::default()
    })
    .await;
    assert!(said.contains("growing memory"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn growing_a_table_in_start() {
    let said = cannot_start(Guest {
        start: GROW_TABLE,
        ..Guest::default()
    })
    .await;
    assert!(
        said.contains("lifecycle.start trapped") && said.contains("table"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_string_sent_as_thousands() {
    let said = cannot_start(Guest {
        start: ALIAS_STRINGS,
        ..Guest::default()
    })
    .await;
    assert!(
        said.contains("lifecycle.start trapped") && said.contains("fuel"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn recursing_in_start() {
    let said = cannot_start(Guest {
        start: RECURSE,
        ..Guest::default()
    })
    .await;
    assert!(said.contains("stack"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_in_start() {
    let said = cannot_start(Guest {
        start: ANSWER_FAULT,
        ..Guest::default()
    })
    .await;
    assert!(said.contains("lifecycle.start answered BadDeviceFailure"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trap_before_start_is_a_file_that_does_not_work() {
    let bench = Bench::new(quick());
    let path = bench.put(
        "bad.wasm",
        &Guest {
            init: "unreachable",
            ..Guest::default()
        }
        .build(),
    );
    let said = bench.host.load(&path).await.unwrap_err().to_string();
    assert!(said.contains("instantiation trapped"), "{said}");
    assert_eq!(bench.status("bad").state, PluginState::Rejected);
}

#[tokio::test(flavor = "multi_thread")]
async fn traps_while_serving_restart_it_until_quarantine_and_release_starts_it_again() {
    let bench = Bench::new(quick());
    let guest = Guest {
        start: WAKE_SOON,
        wake: "unreachable",
        ..Guest::default()
    };
    let path = bench.put("bad.wasm", &guest.build());
    bench.host.load(&path).await.unwrap();
    let status = bench.until_state("bad", PluginState::Quarantined).await;
    assert!(status.last_error.unwrap().contains("lifecycle.wake trapped"));
    let counts = bench.status("bad").counts;
    assert_eq!((counts.faults, counts.restarts, counts.wakes), (5, 4, 5));
    // An operator lets it try again: it starts, and fails again as often.
    bench.host.release("bad").await.unwrap();
    bench
        .until("bad", |status| {
            status.state == PluginState::Quarantined && status.instance == 10
        })
        .await;
    assert_eq!(bench.status("bad").counts.faults, 10);
    // Another file is a new chance.
    bench.put(
        "bad.wasm",
        &Guest {
            salt: 1,
            ..Guest::default()
        }
        .build(),
    );
    bench.host.load(&path).await.unwrap();
    let status = bench.status("bad");
    assert_eq!(
        (status.state, status.generation, status.last_error),
        (PluginState::Serving, 2, None)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn backoff_is_shown() {
    let mut options = quick();
    options.restart.base = Duration::from_secs(3_600);
    options.restart.cap = Duration::from_secs(3_600);
    let bench = Bench::new(options);
    let guest = Guest {
        start: WAKE_SOON,
        wake: SPIN,
        ..Guest::default()
    };
    let path = bench.put("bad.wasm", &guest.build());
    bench.host.load(&path).await.unwrap();
    let status = bench.until("bad", |status| status.state.name() == "backoff").await;
    let PluginState::Backoff(delay) = status.state else {
        panic!("{status:?}")
    };
    assert!((2_880..=4_320).contains(&delay.as_secs()), "{delay:?}");
    assert!(
        status
            .last_error
            .unwrap()
            .contains("lifecycle.wake computed longer than 100 ms")
    );
    bench.host.release("bad").await.unwrap();
    assert!(bench.status("bad").instance >= 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_answered_to_a_timer_is_not_the_end() {
    let bench = Bench::new(quick());
    let guest = Guest {
        start: "(call $every (f64.const 1) (i64.const 7))",
        wake: ANSWER_FAULT,
        ..Guest::default()
    };
    let path = bench.put("a.wasm", &guest.build());
    bench.host.load(&path).await.unwrap();
    while bench.status("a").counts.answered_faults < 3 {
        tokio::task::yield_now().await;
    }
    let status = bench.status("a");
    assert_eq!(
        (status.state, status.instance, status.counts.faults),
        (PluginState::Serving, 1, 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_generation_that_cannot_start_is_not_taken() {
    let bench = Bench::new(quick());
    let path = bench.put("a.wasm", &Guest::default().build());
    bench.host.load(&path).await.unwrap();
    bench.put(
        "a.wasm",
        &Guest {
            start: "unreachable",
            ..Guest::default()
        }
        .build(),
    );
    let error = bench.host.load(&path).await.unwrap_err().to_string();
    assert!(error.contains("lifecycle.start trapped"), "{error}");
    let status = bench.status("a");
    assert_eq!(
        (status.state, status.generation, status.instance),
        (PluginState::Serving, 1, 1)
    );
    assert_eq!(status.counts.faults, 0);
    assert!(
        status
            .last_error
            .unwrap()
            .starts_with("reload: lifecycle.start trapped")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_while_stopping_stops_nothing() {
    let bench = Bench::new(quick());
    for (name, stop) in [("trap", "unreachable"), ("spin", SPIN), ("good", "")] {
        let path = bench.put(
            &format!("{name}.wasm"),
            &Guest {
                stop,
                ..Guest::default()
            }
            .build(),
        );
        bench.host.load(&path).await.unwrap();
    }
    bench.host.unload("spin").await.unwrap();
    assert!(bench.host.unload("spin").await.is_err());
    bench.host.shutdown().await;
    assert_eq!(bench.host.list(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn state_goes_to_the_next_generation_or_the_next_one_is_not_taken() {
    const COLD: u32 = 0;
    const RESTORED: u32 = 1;
    let bench = Bench::new(quick());
    let path = bench.put("a.wasm", &stateful(3, 3, COLD));
    bench.host.load(&path).await.unwrap();
    bench.put("a.wasm", &stateful(4, 3, RESTORED));
    bench.host.load(&path).await.unwrap();
    assert_eq!(bench.status("a").instance, 2);
    // This one reads schema 9 only, so the last one goes on.
    bench.put("a.wasm", &stateful(9, 9, RESTORED));
    let error = bench.host.load(&path).await.unwrap_err().to_string();
    assert!(error.contains("state of schema 4, this one reads [9] only"), "{error}");
    let status = bench.status("a");
    assert_eq!(
        (status.state, status.generation, status.instance),
        (PluginState::Serving, 2, 2)
    );
    // One that takes no state over starts without.
    bench.put("a.wasm", &Guest::default().build());
    bench.host.load(&path).await.unwrap();
    assert_eq!(bench.status("a").generation, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_classifier_is_recognised_and_kept_ready() {
    let bench = Bench::new(quick());
    let path = bench.put("who.wasm", &classifier());
    bench.host.load(&path).await.unwrap();
    let status = bench.status("who");
    assert_eq!(
        (status.state, status.kind),
        (PluginState::Ready, Some(PluginKind::IsolationClassifier))
    );
    // A node manager in its place is another plugin, and the reverse.
    bench.put("who.wasm", &Guest::default().build());
    bench.host.load(&path).await.unwrap();
    assert_eq!(bench.status("who").state, PluginState::Serving);
    bench.put("who.wasm", &classifier());
    bench.host.load(&path).await.unwrap();
    assert_eq!(bench.status("who").state, PluginState::Ready);
}
