//! The one seam between the SDK and whatever is below it: the imports of the contract in a component, a fake host in a native test. Both offer the same
//! modules with the same functions; nothing else in the SDK asks where it runs.

#[cfg(target_family = "wasm")]
pub(crate) use crate::bindings::backplane::host::{
    address_space, clock, context, events, evidence, log, metrics, settings, store, timers, values,
};

#[cfg(not(target_family = "wasm"))]
mod native;
#[cfg(not(target_family = "wasm"))]
pub(crate) use native::{
    address_space, clock, context, events, evidence, log, metrics, settings, store, timers, values,
};
