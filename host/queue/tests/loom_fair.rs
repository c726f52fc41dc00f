//! Orders that the memory model allows of a few operations on the fair queue, up to a number of preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p backplane-queue --release --test loom_fair`

#![cfg(loom)]
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "models/fair.rs"]
mod models;

use backplane_queue::fair::Order;

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(model);
}

#[test]
fn an_entry_is_claimed_once() {
    check(4, || models::claim(Order::Weighted, 2, 1));
}

#[test]
fn an_entry_is_claimed_once_in_global_order() {
    check(2, || models::claim(Order::Global, 2, 2));
}

#[test]
fn turns_of_two_owners_are_taken_once() {
    check(2, || models::claim(Order::Weighted, 2, 2));
}

#[test]
fn no_wake_up_is_lost() {
    check(4, || models::wake(Order::Weighted, 1, 1, 1));
}

#[test]
fn no_wake_up_is_lost_in_global_order() {
    check(1, || models::wake(Order::Global, 2, 1, 2));
}

#[test]
fn no_change_of_capacity_is_lost() {
    check(5, || models::wake_by_capacity(Order::Weighted));
}

#[test]
fn no_change_of_capacity_is_lost_in_global_order() {
    check(5, || models::wake_by_capacity(Order::Global));
}

#[test]
fn one_of_two_gets_what_capacity_came_back_for() {
    check(3, || models::pump_by_capacity(Order::Weighted));
    check(3, || models::pump_by_capacity(Order::Global));
}

#[test]
fn a_pump_leaves_nothing_behind() {
    check(1, || models::pump(Order::Weighted, 2, 1));
}

#[test]
fn retirement_loses_no_admission() {
    check(4, || models::retirement(2));
}

#[test]
fn cancellation_or_service() {
    check(3, || models::cancellation(Order::Weighted, 1));
}

#[test]
fn cancellation_in_the_middle() {
    check(2, models::cancellation_in_the_middle);
}

#[test]
fn stop_gives_back_what_is_queued() {
    check(2, || models::stop(Order::Weighted));
}

#[test]
fn leases_come_back_once() {
    check(2, models::leases);
}
