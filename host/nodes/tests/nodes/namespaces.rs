//! The NamespaceArray: indexes that keep their meaning, and look-ups that race additions.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use backplane_nodes::NamespaceTable;
use backplane_types::StatusCode;

const THREADS: usize = 4;
const URIS: usize = 200;

fn uri(number: usize) -> String {
    format!("urn:test:{number}")
}

#[test]
fn an_index_keeps_its_meaning() {
    let known = ["urn:old", "urn:server", "urn:older"].map(str::to_owned);
    let table = NamespaceTable::new("urn:server", &known, 5);
    assert_eq!((table.index("urn:old"), table.index("urn:older")), (Some(2), Some(3)));
    assert_eq!(table.register("urn:old"), Ok(2));
    assert_eq!(table.register("urn:new"), Ok(4));
    assert_eq!(table.register("urn:newer"), Err(StatusCode::BAD_OUT_OF_MEMORY));
    assert_eq!(table.register("urn:new"), Ok(4), "full, but known");
    assert_eq!(table.register(""), Err(StatusCode::BAD_INVALID_ARGUMENT));
    assert_eq!((table.index("urn:newer"), table.uri(5)), (None, None));
    assert_eq!(table.uri(4).unwrap().text(), "urn:new");
}

/// Whoever looks after an addition has returned finds it, in whatever thread that was, and at the same place ever after; looking for what is not there
/// yet hides nothing later.
#[test]
fn look_ups_never_miss_what_was_added() {
    let table = NamespaceTable::new("urn:server", &[], u16::MAX);
    let added = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut seen = vec![None; URIS];
                while added.load(Ordering::Acquire) < URIS {
                    // In advance, so that a miss has every chance to be remembered.
                    let next = added.load(Ordering::Acquire);
                    let _ = table.index(&uri(next));
                    let there = added.load(Ordering::Acquire);
                    for (number, known) in seen.iter_mut().enumerate().take(there) {
                        let index = table.index(&uri(number));
                        assert!(index.is_some(), "{number} of {there} is missing");
                        assert!(known.is_none() || *known == index, "{number} has moved");
                        assert_eq!(table.uri(index.unwrap()).unwrap().text(), uri(number));
                        *known = index;
                    }
                }
            });
        }
        for number in 0..URIS {
            table.register(&uri(number)).unwrap();
            added.store(number + 1, Ordering::Release);
        }
    });
}

#[test]
fn additions_at_the_same_time_agree() {
    let limit = (URIS / 2) as u16;
    let table = NamespaceTable::new("urn:server", &[], limit);
    let results: Vec<Vec<Result<u16, StatusCode>>> = thread::scope(|scope| {
        let add = || (0..URIS).map(|number| table.register(&uri(number))).collect();
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(add)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(table.all().len(), usize::from(limit));
    for (number, first) in results[0].iter().enumerate() {
        // What is refused once is refused for good: the table is full.
        for result in &results {
            assert_eq!(&result[number], first, "{number}");
        }
        assert_eq!(first.ok(), table.index(&uri(number)), "{number}");
    }
}
