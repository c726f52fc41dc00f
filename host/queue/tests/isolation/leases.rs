//! What is granted, refused and given back.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier, Mutex, OnceLock};

use backplane_queue::isolation::{
    Class, Isolation, Lease, LeaseSet, Options, Profile, RETRY_AFTER, Reason, Reservation, Stage, TrustedOwner,
};

use crate::support::{
    bootstrap, established, exhaust, of_profile, options, plan, protected, provider, refusal, signalling, stage, user,
};

/// `Balanced`, with one unit for each class in `name`, and 3 units for everybody.
fn narrow(name: Stage) -> Options {
    let unit = plan(&options(Profile::Balanced)).stage(name).unit;
    let control = if name >= Stage::RequestQueue { unit } else { 0 };
    let shared = if name == Stage::Connection { 6 } else { 3 * unit };
    Options {
        stages: vec![stage(name, |entry| entry.capacity = Some(2 * unit + control + shared))],
        ..options(Profile::Balanced)
    }
}

fn protected_classes(name: Stage) -> &'static [Class] {
    if name >= Stage::RequestQueue {
        &[Class::Bootstrap, Class::Reconnect, Class::Control]
    } else {
        &[Class::Bootstrap, Class::Reconnect]
    }
}

#[test]
fn a_floor_is_not_lent_in_any_stage() {
    for name in Stage::ALL {
        let isolation = provider(&narrow(name));
        let part = *isolation.plan().stage(name);
        let (held, reason) = exhaust(&isolation, name, &established(&isolation, "hog"));
        assert_eq!(
            (held.len() as u64 * part.unit, reason),
            (part.shared, Reason::Capacity),
            "{name}"
        );
        let mut kept = Vec::new();
        for class in protected_classes(name) {
            let owner = protected(&isolation, "kept", *class);
            kept.push(isolation.try_acquire(name, &owner, part.unit).unwrap());
            let more = refusal(&isolation, name, &owner, part.unit);
            assert_eq!(more, Some(Reason::Capacity), "{name} {class}");
        }
        assert_eq!(isolation.usage(name), part.capacity, "{name}");
    }
}

#[test]
fn many_owners_together_cannot_take_a_floor() {
    let isolation = provider(&narrow(Stage::RequestExecution));
    let mut held = Vec::new();
    for number in 0..100 {
        let owner = established(&isolation, &number.to_string());
        held.extend(isolation.try_acquire(Stage::RequestExecution, &owner, 1));
    }
    assert_eq!(held.len(), 3);
    for class in protected_classes(Stage::RequestExecution) {
        let owner = protected(&isolation, "kept", *class);
        assert_eq!(refusal(&isolation, Stage::RequestExecution, &owner, 1), None, "{class}");
    }
}

#[test]
fn one_floor_is_not_lent_to_another_class() {
    let isolation = provider(&narrow(Stage::RequestQueue));
    for class in protected_classes(Stage::RequestQueue) {
        let (held, reason) = exhaust(
            &isolation,
            Stage::RequestQueue,
            &protected(&isolation, "greedy", *class),
        );
        assert_eq!((held.len(), reason), (4, Reason::Capacity), "{class}");
    }
}

#[test]
fn the_shared_part_is_for_everybody() {
    for class in [Class::Established, Class::Bootstrap, Class::Reconnect, Class::Control] {
        let isolation = provider(&narrow(Stage::RequestQueue));
        let owner = protected_or_user(&isolation, class);
        let own = isolation.plan().stage(Stage::RequestQueue).floor(class);
        let (held, _) = exhaust(&isolation, Stage::RequestQueue, &owner);
        assert_eq!(held.len() as u64, 3 + own, "{class}");
    }
}

fn protected_or_user(isolation: &Isolation, class: Class) -> backplane_queue::isolation::Owner {
    match class {
        Class::Established => established(isolation, "a"),
        class => protected(isolation, "a", class),
    }
}

#[test]
fn the_own_floor_is_used_before_the_shared_part() {
    let isolation = provider(&narrow(Stage::RequestQueue));
    let _first = isolation
        .try_acquire(Stage::RequestQueue, &bootstrap(&isolation, "a"), 1)
        .unwrap();
    let (held, _) = exhaust(&isolation, Stage::RequestQueue, &established(&isolation, "b"));
    assert_eq!(held.len(), 3);
}

#[test]
fn one_amount_may_come_out_of_both_parts() {
    let isolation = provider(&narrow(Stage::RequestQueueBytes));
    let owner = bootstrap(&isolation, "a");
    let held = isolation.try_acquire(Stage::RequestQueueBytes, &owner, 1500).unwrap();
    let other = established(&isolation, "b");
    assert_eq!(
        refusal(&isolation, Stage::RequestQueueBytes, &other, 2501),
        Some(Reason::Capacity)
    );
    assert_eq!(refusal(&isolation, Stage::RequestQueueBytes, &other, 2500), None);
    drop(held);
    let all = isolation.try_acquire(Stage::RequestQueueBytes, &owner, 4000).unwrap();
    assert_eq!(all.amount(), 4000);
}

#[test]
fn control_has_a_floor_of_its_own() {
    let isolation = provider(&narrow(Stage::RequestExecution));
    let (_work, _) = exhaust(&isolation, Stage::RequestExecution, &established(&isolation, "a"));
    let (_new, _) = exhaust(&isolation, Stage::RequestExecution, &bootstrap(&isolation, "a"));
    let (_back, _) = exhaust(
        &isolation,
        Stage::RequestExecution,
        &user(&isolation, "a", Class::Reconnect),
    );
    let (control, _) = exhaust(
        &isolation,
        Stage::RequestExecution,
        &user(&isolation, "a", Class::Control),
    );
    assert_eq!(control.len(), 1);
}

fn limited(limit: u64) -> Options {
    Options {
        stages: vec![stage(Stage::RequestQueue, |entry| entry.owner_hard_limit = Some(limit))],
        ..options(Profile::Balanced)
    }
}

#[test]
fn a_hard_limit_holds_across_classifications() {
    let isolation = provider(&limited(3));
    let _leases: Vec<Lease> = [Class::Established, Class::Reconnect, Class::Control]
        .into_iter()
        .map(|class| {
            isolation
                .try_acquire(Stage::RequestQueue, &user(&isolation, "a", class), 1)
                .unwrap()
        })
        .collect();
    for class in [Class::Established, Class::Reconnect, Class::Control] {
        let owner = user(&isolation, "a", class);
        assert_eq!(
            refusal(&isolation, Stage::RequestQueue, &owner, 1),
            Some(Reason::OwnerLimit),
            "{class}"
        );
    }
    assert_eq!(
        refusal(&isolation, Stage::RequestQueue, &established(&isolation, "b"), 1),
        None
    );
    assert_eq!(
        refusal(&isolation, Stage::Connection, &established(&isolation, "a"), 4),
        None
    );
}

#[test]
fn a_hard_limit_holds_across_ports_and_certificates() {
    let isolation = provider(&Options {
        stages: vec![stage(Stage::Connection, |entry| entry.owner_hard_limit = Some(3))],
        ..options(Profile::Balanced)
    });
    let mut held = Vec::new();
    for _port in 50_000..50_010 {
        let owner = isolation.connection_owner(None, Some("address")).unwrap();
        held.extend(isolation.try_acquire(Stage::Connection, &owner, 1));
    }
    assert_eq!(held.len(), 3);
    assert_eq!(isolation.rejections(Stage::Connection, Reason::OwnerLimit), 7);
    assert_eq!(isolation.tracked_owners(), 1);
}

/// Of every profile: where nothing is limited, what is in use is counted all the same.
#[test]
fn everything_is_counted_by_stage_and_class() {
    for profile in [Profile::SharedOnly, Profile::Balanced] {
        let isolation = of_profile(profile);
        let (work, returning) = (established(&isolation, "a"), user(&isolation, "a", Class::Reconnect));
        let (connection, queue) = (Stage::Connection, Stage::RequestQueue);
        let mut first = isolation.try_acquire(connection, &work, 3).unwrap();
        first.shrink(1);
        first.grow(4).unwrap();
        let set = isolation
            .try_acquire_set(&returning, [(connection, 1), (queue, 2)])
            .unwrap();
        assert!(isolation.try_acquire(queue, &work, 0).is_err());
        // A limit that is kept somewhere else.
        let refused = isolation.refuse(connection, &returning, Reason::Capacity);
        assert_eq!(refused.reason, Reason::Capacity);
        let counters = isolation.counters();
        let used = [Class::Established, Class::Reconnect].map(|class| counters.used(connection, class));
        assert_eq!(used, [6, 1], "{profile}");
        assert_eq!(counters.owners(), isolation.tracked_owners());
        assert_eq!(
            counters.in_use().to_string(),
            "Connection.Established=6 Connection.Reconnect=1 RequestQueue.Reconnect=2"
        );
        assert_eq!(
            counters.refusals().to_string(),
            "Connection.Reconnect.Capacity=1 RequestQueue.Established.InvalidAmount=1"
        );
        assert_eq!(isolation.rejections(connection, Reason::Capacity), 1);
        drop((first, set));
        let counters = isolation.counters();
        assert_eq!(counters.in_use().to_string(), "nothing");
        assert_eq!(
            counters.refused(queue, Class::Established, Reason::InvalidAmount),
            1,
            "refusals stay"
        );
    }
}

#[test]
fn the_hard_limit_is_checked_before_the_capacity() {
    let isolation = provider(&limited(3));
    let owner = established(&isolation, "a");
    assert_eq!(
        refusal(&isolation, Stage::RequestQueue, &owner, 1000),
        Some(Reason::OwnerLimit)
    );
    assert_eq!(isolation.rejections(Stage::RequestQueue, Reason::OwnerLimit), 1);
    assert_eq!(isolation.rejections(Stage::RequestQueue, Reason::Capacity), 0);
}

#[test]
fn the_largest_amounts_do_not_overflow() {
    for profile in [Profile::FairShare, Profile::Balanced, Profile::TrustedReservations] {
        let isolation = of_profile(profile);
        for name in Stage::ALL {
            let owner = established(&isolation, "a");
            let mut one = isolation.try_acquire(name, &owner, 1).unwrap();
            for amount in [i64::MAX as u64, u64::MAX - 1, u64::MAX] {
                assert_eq!(refusal(&isolation, name, &owner, amount), Some(Reason::OwnerLimit));
                assert_eq!(one.grow(amount).unwrap_err().reason, Reason::OwnerLimit);
            }
            assert_eq!(isolation.usage(name), 1);
        }
    }
}

#[test]
fn nothing_is_not_an_amount() {
    for profile in Profile::ALL {
        let isolation = of_profile(profile);
        let owner = established(&isolation, "a");
        assert_eq!(
            refusal(&isolation, Stage::RequestQueue, &owner, 0),
            Some(Reason::InvalidAmount)
        );
        let mut lease = isolation.try_acquire(Stage::RequestQueue, &owner, 1).unwrap();
        assert_eq!(lease.grow(0).unwrap_err().reason, Reason::InvalidAmount);
    }
}

#[test]
fn a_refusal_says_when_to_try_again() {
    let isolation = provider(&limited(1));
    let refused = isolation
        .try_acquire(Stage::RequestQueue, &established(&isolation, "a"), 2)
        .unwrap_err();
    assert_eq!(refused.retry_after, RETRY_AFTER);
    assert_eq!(refused.to_string(), "refused: OwnerLimit");
}

fn trusted() -> Options {
    let mut options = options(Profile::TrustedReservations);
    options.trusted_owners.push(TrustedOwner {
        key: "line".to_owned(),
        weight: 7,
        reservations: vec![Reservation {
            stage: Stage::RequestQueue,
            reserved: 10,
            hard_limit: Some(12),
        }],
    });
    options
}

#[test]
fn a_trusted_owner_has_the_floor_and_limit_of_the_policy() {
    let isolation = provider(&trusted());
    let line = isolation.trusted("line").unwrap();
    assert_eq!((line.weight(), line.hard_limit(Stage::RequestQueue)), (7, 12));
    let (hog, reason) = exhaust(&isolation, Stage::RequestQueue, &established(&isolation, "hog"));
    assert_eq!((hog.len(), reason), (200 - 3 - 11, Reason::Capacity));
    let (own, reason) = exhaust(&isolation, Stage::RequestQueue, &line);
    assert_eq!((own.len(), reason), (10, Reason::Capacity));
    drop(hog);
    let (more, reason) = exhaust(&isolation, Stage::RequestQueue, &line);
    assert_eq!((more.len(), reason), (2, Reason::OwnerLimit));
}

#[test]
fn a_trusted_floor_belongs_to_one_owner() {
    let isolation = provider(&trusted());
    let (_hog, _) = exhaust(&isolation, Stage::RequestQueue, &established(&isolation, "hog"));
    let (_line, _) = exhaust(&isolation, Stage::RequestQueue, &isolation.trusted("line").unwrap());
    let (plant, _) = exhaust(&isolation, Stage::RequestQueue, &isolation.trusted("plant").unwrap());
    assert_eq!(plant.len(), 1);
}

#[test]
fn a_protected_slot_that_is_given_back_is_not_lent() {
    let isolation = provider(&narrow(Stage::RequestExecution));
    let hog = established(&isolation, "hog");
    let (_work, _) = exhaust(&isolation, Stage::RequestExecution, &hog);
    for class in protected_classes(Stage::RequestExecution) {
        let owner = protected(&isolation, "kept", *class);
        let lease = isolation.try_acquire(Stage::RequestExecution, &owner, 1).unwrap();
        drop(lease);
        assert_eq!(
            refusal(&isolation, Stage::RequestExecution, &hog, 1),
            Some(Reason::Capacity),
            "{class}"
        );
        assert_eq!(refusal(&isolation, Stage::RequestExecution, &owner, 1), None, "{class}");
    }
}

#[test]
fn a_lease_is_given_back_once() {
    let (isolation, signals) = signalling(&options(Profile::Balanced));
    let owner = established(&isolation, "a");
    let _other = isolation.try_acquire(Stage::Connection, &owner, 1).unwrap();
    let mut lease = isolation.try_acquire(Stage::Connection, &owner, 2).unwrap();
    assert_eq!(
        (lease.stage(), lease.amount(), isolation.usage(Stage::Connection)),
        (Stage::Connection, 2, 3)
    );
    lease.release();
    lease.release();
    assert_eq!((lease.amount(), isolation.usage(Stage::Connection)), (0, 1));
    assert_eq!(lease.grow(1).unwrap_err().reason, Reason::InvalidOwner);
    drop(lease);
    assert_eq!(isolation.usage(Stage::Connection), 1);
    assert_eq!(signals[Stage::Connection.index()].load(Ordering::SeqCst), 1);
}

#[test]
fn a_thousand_rounds_with_double_release_leave_nothing() {
    let isolation = of_profile(Profile::TrustedReservations);
    for round in 0..1000 {
        let owners = [
            established(&isolation, &format!("user {round}")),
            bootstrap(&isolation, "new"),
            isolation.trusted("plant").unwrap(),
            user(&isolation, "back", Class::Control),
        ];
        let mut leases: Vec<Lease> = owners
            .iter()
            .flat_map(|owner| Stage::ALL.map(|name| isolation.try_acquire(name, owner, 1).unwrap()))
            .collect();
        assert_eq!(isolation.tracked_owners(), 4);
        leases.iter_mut().for_each(Lease::release);
        leases.iter_mut().for_each(Lease::release);
    }
    assert_eq!(isolation.tracked_owners(), 0);
    for name in Stage::ALL {
        assert_eq!(isolation.usage(name), 0);
        let (all, _) = exhaust(&isolation, name, &established(&isolation, "last"));
        let part = isolation.plan().stage(name);
        assert_eq!(all.len() as u64, part.shared / part.unit, "{name}");
    }
}

#[test]
fn a_lease_grows_under_the_same_rules() {
    let isolation = provider(&narrow(Stage::ReassemblyBytes));
    let part = *isolation.plan().stage(Stage::ReassemblyBytes);
    let owner = bootstrap(&isolation, "a");
    let mut lease = isolation.try_acquire(Stage::ReassemblyBytes, &owner, 1).unwrap();
    lease.grow(part.bootstrap - 1).unwrap();
    let other = established(&isolation, "b");
    let _all = isolation
        .try_acquire(Stage::ReassemblyBytes, &other, part.shared)
        .unwrap();
    assert_eq!(lease.grow(1).unwrap_err().reason, Reason::Capacity);
    assert_eq!(
        (lease.amount(), isolation.usage(Stage::ReassemblyBytes)),
        (part.bootstrap, 4 * part.unit)
    );
    drop(lease);
    let mut again = isolation.try_acquire(Stage::ReassemblyBytes, &owner, 1).unwrap();
    again.grow(part.bootstrap - 1).unwrap();
    drop(again);
    assert_eq!(isolation.usage(Stage::ReassemblyBytes), part.shared);
}

#[test]
fn growth_of_a_trusted_owner_stops_at_its_own_limit() {
    let isolation = provider(&trusted());
    let mut lease = isolation
        .try_acquire(Stage::RequestQueue, &isolation.trusted("line").unwrap(), 1)
        .unwrap();
    lease.grow(11).unwrap();
    assert_eq!(lease.grow(1).unwrap_err().reason, Reason::OwnerLimit);
    drop(lease);
    assert_eq!(isolation.usage(Stage::RequestQueue), 0);
}

#[test]
fn several_amounts_are_granted_together_or_not_at_all() {
    let (isolation, signals) = signalling(&narrow(Stage::ParkedRequest));
    let owner = established(&isolation, "a");
    let wanted = [
        (Stage::RequestQueue, 1),
        (Stage::RequestQueueBytes, 1000),
        (Stage::ParkedRequest, 1),
    ];
    let leases = [(); 3].map(|()| isolation.try_acquire_all(&owner, wanted).unwrap());
    let usage = || wanted.map(|(stage, _)| isolation.usage(stage));
    assert_eq!(usage(), [3, 3000, 3]);
    let (stage, refused) = isolation.try_acquire_all(&owner, wanted).unwrap_err();
    assert_eq!((stage, refused.reason), (Stage::ParkedRequest, Reason::Capacity));
    assert_eq!(usage(), [3, 3000, 3]);
    assert!(signals.iter().all(|count| count.load(Ordering::SeqCst) == 0));
    drop(leases);
    assert_eq!((usage(), isolation.tracked_owners()), ([0, 0, 0], 0));
    assert_eq!(
        refusal(&isolation, Stage::ParkedRequest, &owner, 4),
        Some(Reason::Capacity)
    );
    assert_eq!(isolation.tracked_owners(), 0);
}

const REQUEST: [(Stage, u64); 3] = [
    (Stage::RequestQueue, 1),
    (Stage::RequestQueueBytes, 1000),
    (Stage::ParkedRequest, 1),
];

const OF_A_REQUEST: [Stage; 4] = [
    Stage::RequestQueue,
    Stage::RequestExecution,
    Stage::RequestQueueBytes,
    Stage::ParkedRequest,
];

fn request_usage(isolation: &Isolation) -> [u64; 4] {
    OF_A_REQUEST.map(|stage| isolation.usage(stage))
}

#[test]
fn a_set_follows_a_request_from_admission_to_completion() {
    for profile in [Profile::SharedOnly, Profile::Balanced] {
        let (isolation, signals) = signalling(&options(profile));
        let seen = || OF_A_REQUEST.map(|stage| signals[stage.index()].load(Ordering::SeqCst));
        let owner = established(&isolation, "a");
        let mut request = isolation.try_acquire_set(&owner, REQUEST).unwrap();
        assert_eq!(request_usage(&isolation), [1, 0, 1000, 1]);
        request
            .try_exchange(&owner, Stage::RequestQueue, Stage::RequestExecution, 1)
            .unwrap();
        assert_eq!((request_usage(&isolation), seen()), ([0, 1, 1000, 1], [1, 0, 0, 0]));
        request.release(Stage::RequestExecution);
        request.release(Stage::RequestExecution);
        assert_eq!(OF_A_REQUEST.map(|stage| request.amount(stage)), [0, 0, 1000, 1]);
        assert_eq!((request_usage(&isolation), seen()), ([0, 0, 1000, 1], [1, 1, 0, 0]));
        request.release_all();
        request.release_all();
        drop(request);
        assert_eq!((request_usage(&isolation), seen()), ([0; 4], [1; 4]));
        assert_eq!(isolation.tracked_owners(), 0);
    }
}

#[test]
fn a_set_keeps_what_it_has_when_an_exchange_is_refused() {
    let (isolation, signals) = signalling(&narrow(Stage::RequestExecution));
    let owner = established(&isolation, "a");
    let (_busy, _) = exhaust(&isolation, Stage::RequestExecution, &owner);
    let mut request = isolation.try_acquire_set(&owner, REQUEST).unwrap();
    let mut exchange = |instead_of| {
        let refused = request.try_exchange(&owner, instead_of, Stage::RequestExecution, 1);
        refused.unwrap_err().reason
    };
    assert_eq!(exchange(Stage::RequestQueue), Reason::Capacity);
    assert_eq!(exchange(Stage::Connection), Reason::InvalidAmount);
    isolation.close();
    assert_eq!(exchange(Stage::RequestQueue), Reason::Closed);
    assert_eq!(request_usage(&isolation), [1, 3, 1000, 1]);
    assert!(signals.iter().all(|count| count.load(Ordering::SeqCst) == 0));
    drop(request);
    assert_eq!(request_usage(&isolation), [0, 3, 0, 0]);
}

#[test]
fn a_set_is_granted_as_a_whole() {
    let isolation = provider(&narrow(Stage::ParkedRequest));
    let owner = established(&isolation, "a");
    let _held = [(); 3].map(|()| isolation.try_acquire_set(&owner, REQUEST).unwrap());
    let (stage, refused) = isolation.try_acquire_set(&owner, REQUEST).unwrap_err();
    assert_eq!((stage, refused.reason), (Stage::ParkedRequest, Reason::Capacity));
    assert_eq!(request_usage(&isolation), [3, 0, 3000, 3]);
    let foreign = established(&of_profile(Profile::Balanced), "a");
    let (_, refused) = isolation.try_acquire_set(&foreign, REQUEST).unwrap_err();
    assert_eq!(refused.reason, Reason::InvalidOwner);
    assert_eq!(LeaseSet::default().amount(Stage::RequestQueue), 0);
}

#[test]
fn forty_racing_callers_get_ten_slots() {
    let isolation = provider(&Options {
        stages: vec![stage(Stage::RequestExecution, |entry| entry.capacity = Some(10))],
        ..options(Profile::FairShare)
    });
    for round in 0..20 {
        let start = Barrier::new(40);
        let granted = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for number in 0..40 {
                let owner = established(&isolation, &format!("{}", number % (round + 1)));
                let (isolation, start, granted) = (&isolation, &start, &granted);
                scope.spawn(move || {
                    start.wait();
                    if let Ok(lease) = isolation.try_acquire(Stage::RequestExecution, &owner, 1) {
                        granted.lock().unwrap().push(lease);
                    }
                });
            }
        });
        assert_eq!(granted.lock().unwrap().len(), 10);
        assert_eq!(isolation.usage(Stage::RequestExecution), 10);
        let refused =
            [Reason::OwnerLimit, Reason::Capacity].map(|reason| isolation.rejections(Stage::RequestExecution, reason));
        assert_eq!(refused[0] + refused[1], 30 * (round + 1));
    }
    assert_eq!(
        (isolation.usage(Stage::RequestExecution), isolation.tracked_owners()),
        (0, 0)
    );
}

#[test]
fn capacity_is_signalled_after_the_release_and_once() {
    let seen: Arc<Mutex<Vec<(Stage, u64)>>> = Arc::default();
    let own: Arc<OnceLock<std::sync::Weak<Isolation>>> = Arc::default();
    let (log, provider) = (Arc::clone(&seen), Arc::clone(&own));
    let isolation = Isolation::new(
        plan(&options(Profile::Balanced)),
        Box::new(move |stage| {
            // The callback may use the provider: the lock is free, and the capacity there.
            let isolation = provider.get().unwrap().upgrade().unwrap();
            log.lock().unwrap().push((stage, isolation.usage(stage)));
        }),
    );
    own.set(Arc::downgrade(&isolation)).unwrap();
    let owner = established(&isolation, "a");
    let execution = isolation.try_acquire(Stage::RequestExecution, &owner, 3).unwrap();
    let mut queue = isolation.try_acquire(Stage::RequestQueue, &owner, 1).unwrap();
    assert!(seen.lock().unwrap().is_empty());
    drop(execution);
    queue.release();
    queue.release();
    drop(queue);
    assert_eq!(
        *seen.lock().unwrap(),
        [(Stage::RequestExecution, 0), (Stage::RequestQueue, 0)]
    );
}

#[test]
fn a_closed_provider_refuses_and_takes_back() {
    for profile in Profile::ALL {
        let isolation = of_profile(profile);
        let owner = established(&isolation, "a");
        let mut lease = isolation.try_acquire(Stage::RequestQueue, &owner, 1).unwrap();
        isolation.close();
        assert_eq!(
            refusal(&isolation, Stage::RequestQueue, &owner, 1),
            Some(Reason::Closed),
            "{profile}"
        );
        assert_eq!(lease.grow(1).unwrap_err().reason, Reason::Closed, "{profile}");
        assert_eq!(isolation.usage(Stage::RequestQueue), 1, "{profile}");
        drop(lease);
        assert_eq!(isolation.usage(Stage::RequestQueue), 0, "{profile}");
    }
}

#[test]
fn shared_only_grants_everything_and_counts() {
    let (isolation, signals) = signalling(&options(Profile::SharedOnly));
    let owner = established(&isolation, "a");
    let mut lease = isolation
        .try_acquire(Stage::RequestExecution, &owner, u64::MAX / 4)
        .unwrap();
    lease.grow(1).unwrap();
    let more = isolation
        .try_acquire(Stage::RequestExecution, &owner, u64::MAX / 4)
        .unwrap();
    assert_eq!(isolation.usage(Stage::RequestExecution), u64::MAX / 4 * 2 + 1);
    assert_eq!(isolation.tracked_owners(), 0);
    drop((lease, more));
    assert_eq!(isolation.usage(Stage::RequestExecution), 0);
    assert_eq!(signals[Stage::RequestExecution.index()].load(Ordering::SeqCst), 2);
}

#[test]
fn a_lease_grows_by_what_there_is_and_gives_part_of_it_back() {
    for profile in Profile::ALL {
        let isolation = of_profile(profile);
        let owner = established(&isolation, "a");
        let name = Stage::RequestQueue;
        let mut lease = isolation.try_acquire(name, &owner, 1).unwrap();
        assert_eq!(lease.grow_between(1, 4).unwrap(), 4, "{profile:?}");
        assert_eq!(lease.grow_between(2, 1).unwrap_err().reason, Reason::InvalidAmount);
        assert_eq!((lease.amount(), isolation.usage(name)), (5, 5));
        lease.shrink(3);
        assert_eq!((lease.amount(), isolation.usage(name)), (2, 2));
        lease.shrink(100);
        assert_eq!((lease.amount(), isolation.usage(name)), (1, 1), "something stays");
        lease.release();
        lease.shrink(1);
        assert_eq!((isolation.usage(name), isolation.tracked_owners()), (0, 0));
    }
}

/// The floor is the last to be given back, so that nobody takes it meanwhile.
#[test]
fn what_shrinks_leaves_the_shared_part_first() {
    let isolation = provider(&narrow(Stage::ReassemblyBytes));
    let part = *isolation.plan().stage(Stage::ReassemblyBytes);
    let owner = bootstrap(&isolation, "a");
    let mut lease = isolation.try_acquire(Stage::ReassemblyBytes, &owner, 1).unwrap();
    lease.grow(part.bootstrap - 1).unwrap();
    // The floor is used up: this is the shared part's.
    lease.grow(part.unit).unwrap();
    let rejections = isolation.rejections(Stage::ReassemblyBytes, Reason::Capacity);
    assert_eq!(lease.grow_between(1, part.shared).unwrap(), 1);
    assert_eq!(
        isolation.rejections(Stage::ReassemblyBytes, Reason::Capacity),
        rejections,
        "less than wanted is no refusal"
    );
    lease.shrink(part.unit + 1);
    let other = established(&isolation, "b");
    let all = isolation
        .try_acquire(Stage::ReassemblyBytes, &other, part.shared)
        .unwrap();
    assert_eq!(lease.grow(1).unwrap_err().reason, Reason::Capacity);
    drop((lease, all));
    assert_eq!(isolation.usage(Stage::ReassemblyBytes), 0);
}
