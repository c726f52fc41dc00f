//! The isolation model: every rule with a test of its own name.

#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)]

mod admission;
mod leases;
mod model;
mod owners;
mod plan;
mod rate;
mod refused_plans;
mod revalidation;
mod support;
mod table;
