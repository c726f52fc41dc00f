//! The table of owners with leases: whose place is kept.

use backplane_queue::isolation::{Class, Lease, Options, Profile, Reason, Stage, TrustedOwner};

use crate::support::{bootstrap, established, of_profile, options, protected, provider, refusal, user};

/// `Balanced` with a table that has `spare` places beside the three that are kept.
fn sized(spare: u32) -> std::sync::Arc<backplane_queue::isolation::Isolation> {
    provider(&Options {
        max_tracked_owners: 3 + spare,
        ..options(Profile::Balanced)
    })
}

type Provider = std::sync::Arc<backplane_queue::isolation::Isolation>;

fn fill(isolation: &Provider, count: usize) -> Vec<Lease> {
    (0..count)
        .map(|number| {
            let owner = established(isolation, &format!("filler {number}"));
            isolation.try_acquire(Stage::RequestQueue, &owner, 1).unwrap()
        })
        .collect()
}

#[test]
fn owners_are_tracked_only_while_they_hold_something() {
    let isolation = of_profile(Profile::Balanced);
    let owner = established(&isolation, "a");
    let first = isolation.try_acquire(Stage::Connection, &owner, 1).unwrap();
    let second = isolation
        .try_acquire(Stage::RequestQueue, &established(&isolation, "a"), 1)
        .unwrap();
    let other = isolation
        .try_acquire(Stage::RequestQueue, &established(&isolation, "b"), 1)
        .unwrap();
    assert_eq!(isolation.tracked_owners(), 2);
    drop(first);
    assert_eq!(isolation.tracked_owners(), 2);
    drop(second);
    assert_eq!(isolation.tracked_owners(), 1);
    drop(other);
    assert_eq!(isolation.tracked_owners(), 0);
}

#[test]
fn a_refusal_tracks_nobody() {
    let isolation = of_profile(Profile::Balanced);
    let owner = established(&isolation, "a");
    assert!(refusal(&isolation, Stage::Connection, &owner, 1000).is_some());
    assert_eq!(isolation.tracked_owners(), 0);
}

#[test]
fn a_full_table_keeps_the_protected_places() {
    let isolation = sized(2);
    let fillers = fill(&isolation, 2);
    let late = established(&isolation, "late");
    assert_eq!(
        refusal(&isolation, Stage::RequestQueue, &late, 1),
        Some(Reason::OwnerTableFull)
    );
    let mut kept = Vec::new();
    for class in [Class::Bootstrap, Class::Reconnect, Class::Control] {
        let owner = protected(&isolation, class.name(), class);
        kept.push(isolation.try_acquire(Stage::RequestQueue, &owner, 1).unwrap());
        let second = protected(&isolation, "second", class);
        assert_eq!(
            refusal(&isolation, Stage::RequestQueue, &second, 1),
            Some(Reason::OwnerTableFull)
        );
    }
    assert_eq!(isolation.tracked_owners(), 5);
    drop(kept);
    assert_eq!(
        refusal(&isolation, Stage::RequestQueue, &late, 1),
        Some(Reason::OwnerTableFull)
    );
    drop(fillers);
    assert_eq!(refusal(&isolation, Stage::RequestQueue, &late, 1), None);
}

#[test]
fn a_full_table_still_serves_those_in_it() {
    let isolation = sized(1);
    let _fillers = fill(&isolation, 1);
    let known = established(&isolation, "filler 0");
    for name in Stage::ALL {
        assert_eq!(refusal(&isolation, name, &known, 1), None, "{name}");
    }
}

#[test]
fn a_full_table_keeps_a_place_for_each_trusted_owner() {
    let mut options = options(Profile::TrustedReservations);
    options.trusted_owners.push(TrustedOwner::new("line"));
    options.max_tracked_owners = 2 + 3 + 1;
    let isolation = provider(&options);
    let _fillers = fill(&isolation, 1);
    let late = established(&isolation, "late");
    for key in ["plant", "line"] {
        assert_eq!(
            refusal(&isolation, Stage::RequestQueue, &late, 1),
            Some(Reason::OwnerTableFull)
        );
        let owner = isolation.trusted(key).unwrap();
        let first = isolation.try_acquire(Stage::RequestQueue, &owner, 1).unwrap();
        let second = isolation.try_acquire(Stage::Handshake, &owner, 1).unwrap();
        assert_eq!(
            refusal(&isolation, Stage::RequestQueue, &late, 1),
            Some(Reason::OwnerTableFull)
        );
        drop((first, second));
    }
}

#[test]
fn without_floors_no_place_is_kept() {
    let isolation = provider(&Options {
        max_tracked_owners: 2,
        ..options(Profile::FairShare)
    });
    let _fillers = fill(&isolation, 2);
    let owner = user(&isolation, "back", Class::Reconnect);
    assert_eq!(
        refusal(&isolation, Stage::RequestQueue, &owner, 1),
        Some(Reason::OwnerTableFull)
    );
}

#[test]
fn mixed_classes_do_not_fill_a_protected_place() {
    let isolation = sized(2);
    // One key with work of two classes, and one of somebody else: the place for reconnecting callers is still free.
    let _work = isolation
        .try_acquire(Stage::RequestQueue, &established(&isolation, "a"), 1)
        .unwrap();
    let _back = isolation
        .try_acquire(Stage::RequestQueue, &user(&isolation, "a", Class::Reconnect), 1)
        .unwrap();
    let _filler = fill(&isolation, 1);
    assert_eq!(
        refusal(&isolation, Stage::RequestQueue, &established(&isolation, "c"), 1),
        Some(Reason::OwnerTableFull)
    );
    let _other = isolation
        .try_acquire(Stage::RequestQueue, &user(&isolation, "b", Class::Reconnect), 1)
        .unwrap();
}

#[test]
fn an_owner_that_would_leave_its_protected_place_needs_a_free_one() {
    let isolation = sized(1);
    let _back = isolation
        .try_acquire(Stage::RequestQueue, &user(&isolation, "a", Class::Reconnect), 1)
        .unwrap();
    let fillers = fill(&isolation, 1);
    let work = established(&isolation, "a");
    assert_eq!(
        refusal(&isolation, Stage::RequestQueue, &work, 1),
        Some(Reason::OwnerTableFull)
    );
    assert_eq!(
        refusal(
            &isolation,
            Stage::RequestQueue,
            &user(&isolation, "a", Class::Reconnect),
            1
        ),
        None
    );
    drop(fillers);
    assert_eq!(refusal(&isolation, Stage::RequestQueue, &work, 1), None);
}

#[test]
fn an_owner_may_leave_its_protected_place_when_another_fills_it() {
    let isolation = sized(2);
    let _back = ["a", "b"].map(|name| {
        let owner = user(&isolation, name, Class::Reconnect);
        isolation.try_acquire(Stage::RequestQueue, &owner, 1).unwrap()
    });
    let _filler = fill(&isolation, 1);
    // Four are tracked, and two places are kept for the other classes: the table is full, but "b" still stands for its class.
    let late = established(&isolation, "late");
    assert_eq!(
        refusal(&isolation, Stage::RequestQueue, &late, 1),
        Some(Reason::OwnerTableFull)
    );
    let mixed = isolation
        .try_acquire(Stage::RequestQueue, &established(&isolation, "a"), 1)
        .unwrap();
    let second = refusal(&isolation, Stage::RequestQueue, &established(&isolation, "b"), 1);
    assert_eq!(second, Some(Reason::OwnerTableFull));
    drop(mixed);
    assert_eq!(
        refusal(&isolation, Stage::RequestQueue, &established(&isolation, "b"), 1),
        None
    );
}

#[test]
fn an_owner_whose_other_work_ends_fills_its_protected_place_again() {
    let isolation = sized(2);
    let _back = isolation
        .try_acquire(Stage::RequestQueue, &user(&isolation, "a", Class::Reconnect), 1)
        .unwrap();
    let work = isolation
        .try_acquire(Stage::RequestQueue, &established(&isolation, "a"), 1)
        .unwrap();
    let _filler = fill(&isolation, 1);
    let late = established(&isolation, "late");
    assert_eq!(
        refusal(&isolation, Stage::RequestQueue, &late, 1),
        Some(Reason::OwnerTableFull)
    );
    drop(work);
    assert_eq!(refusal(&isolation, Stage::RequestQueue, &late, 1), None);
}

#[test]
fn a_continuity_owner_does_not_take_the_place_of_one_that_reconnects() {
    let isolation = sized(1);
    let owner = isolation.reassembly_owner(&established(&isolation, "a"), true).unwrap();
    let _message = isolation.try_acquire(Stage::ReassemblyBytes, &owner, 1).unwrap();
    assert_eq!(isolation.tracked_owners(), 1);
    let late = established(&isolation, "late");
    assert_eq!(
        refusal(&isolation, Stage::RequestQueue, &late, 1),
        Some(Reason::OwnerTableFull)
    );
    let back = user(&isolation, "b", Class::Reconnect);
    assert_eq!(refusal(&isolation, Stage::RequestQueue, &back, 1), None);
    let full = sized(1);
    let _filler = fill(&full, 1);
    let owner = full.reassembly_owner(&established(&full, "a"), true).unwrap();
    assert_eq!(
        refusal(&full, Stage::ReassemblyBytes, &owner, 1),
        Some(Reason::OwnerTableFull)
    );
}

#[test]
fn places_are_found_again_after_others_had_them() {
    let isolation = of_profile(Profile::Balanced);
    let owners: Vec<_> = (0..50)
        .map(|number| established(&isolation, &number.to_string()))
        .collect();
    for round in 0..50 {
        let mut held = Vec::new();
        for step in 0..owners.len() {
            let owner = &owners[(step * 7 + round) % owners.len()];
            held.push(
                isolation
                    .try_acquire(Stage::RequestQueueBytes, owner, 1 + step as u64)
                    .unwrap(),
            );
            if step % 3 == 0 {
                drop(held.swap_remove(step / 3));
            }
        }
        let expected: u64 = held.iter().map(Lease::amount).sum();
        assert_eq!(isolation.usage(Stage::RequestQueueBytes), expected);
        assert_eq!(isolation.tracked_owners() as usize, held.len());
    }
    assert_eq!(isolation.tracked_owners(), 0);
    let new = bootstrap(&isolation, "new");
    assert_eq!(refusal(&isolation, Stage::RequestQueue, &new, 1), None);
}
