//! Many random schedules of longer runs on the fair queue.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p backplane-queue --release --test shuttle_fair`

#![cfg(all(shuttle, not(loom)))]
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "models/fair.rs"]
mod models;

use backplane_queue::fair::Order;

const ORDERS: [Order; 2] = [Order::Weighted, Order::Global];
/// Scheduling points between two changes of priority, of the schedules that look for deep bugs.
const DEPTH: usize = 4;

fn check(schedules: usize, model: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(model.clone(), schedules);
    shuttle::check_pct(model, schedules, DEPTH);
}

#[test]
fn an_entry_is_claimed_once() {
    for order in ORDERS {
        check(500, move || models::claim(order, 4, 12));
    }
}

#[test]
fn no_wake_up_is_lost() {
    for order in ORDERS {
        check(500, move || models::wake(order, 3, 2, 6));
    }
}

#[test]
fn no_change_of_capacity_is_lost() {
    for order in ORDERS {
        check(1_000, move || models::wake_by_capacity(order));
    }
}

#[test]
fn one_of_two_gets_what_capacity_came_back_for() {
    for order in ORDERS {
        check(1_000, move || models::pump_by_capacity(order));
    }
}

#[test]
fn a_pump_leaves_nothing_behind() {
    for order in ORDERS {
        check(500, move || models::pump(order, 3, 4));
    }
}

#[test]
fn retirement_loses_no_admission() {
    check(1_000, || models::retirement(6));
}

#[test]
fn cancellation_or_service() {
    for order in ORDERS {
        check(500, move || models::cancellation(order, 8));
    }
}

#[test]
fn cancellation_in_the_middle() {
    check(1_000, models::cancellation_in_the_middle);
}

#[test]
fn stop_gives_back_what_is_queued() {
    for order in ORDERS {
        check(1_000, move || models::stop(order));
    }
}

#[test]
fn leases_come_back_once() {
    check(1_000, models::leases);
}

#[test]
fn everything_at_once() {
    for order in ORDERS {
        check(500, move || models::everything(order, 3, 8));
    }
}
