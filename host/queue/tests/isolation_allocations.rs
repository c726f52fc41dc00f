//! What costs no allocation: leases of an owner in the table, and owners of a channel that are known.

#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use backplane_queue::isolation::{
    Binding, Caller, Class, Identity, Intent, Isolation, Options, OwnerCache, Plan, Stage, Totals,
};

fn provider() -> Arc<Isolation> {
    let plan = Plan::derive(&Options::default(), &Totals::default()).unwrap();
    Isolation::new(plan, Box::new(|_| {}))
}

#[test]
fn an_owner_in_the_table_costs_no_allocation() {
    let isolation = provider();
    let [owner, again] = [(); 2].map(|()| isolation.built_in(Identity::User("a"), Class::Established).unwrap());
    let first = isolation.try_acquire(Stage::Connection, &owner, 1).unwrap();
    let round = |owner| {
        allocation_counter::measure(|| {
            for name in Stage::ALL {
                let mut lease = isolation.try_acquire(name, owner, 1).unwrap();
                lease.grow(1).unwrap();
            }
            let wanted = [(Stage::RequestQueue, 1), (Stage::ParkedRequest, 1)];
            drop(isolation.try_acquire_all(owner, wanted).unwrap());
        })
        .count_total
    };
    assert_eq!((round(&owner), round(&again)), (0, 0));
    // Nor does one that comes and goes, once the table has had its size.
    drop(first);
    assert_eq!(round(&owner), 0);
}

#[test]
fn a_known_owner_is_found_without_an_allocation() {
    let isolation = provider();
    let live = Binding {
        session: 1,
        activation: 1,
        user: Some(Arc::from("operator")),
    };
    let mut cache = OwnerCache::default();
    let mut look_up = |count| {
        allocation_counter::measure(|| {
            for _ in 0..count {
                for intent in [Intent::Work, Intent::End, Intent::Establish] {
                    let request = Caller {
                        peer: None,
                        application: None,
                        binding: Some(&live),
                        intent,
                    };
                    let owner = cache.request_owner(&isolation, None, &request).unwrap();
                    assert_eq!(owner.class(), request.class());
                }
            }
        })
        .count_total
    };
    assert!(look_up(1) > 0);
    assert_eq!(look_up(100), 0);
}
