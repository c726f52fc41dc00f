//! Counts what the process allocates, for the load harness: one line on standard error at SIGUSR1.
//!
//! Compiled with the feature `count-allocations` only: counting costs two atomic additions an allocation.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::signal::unix::{SignalKind, signal};

/// The allocator that the program installs.
pub const COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Writes `ALLOCATIONS count=N bytes=M` (since the start of the process) to standard error at each SIGUSR1.
///
/// # Errors
/// When the signal cannot be watched.
pub fn report() -> std::io::Result<()> {
    let mut signals = signal(SignalKind::user_defined1())?;
    tokio::spawn(async move {
        while signals.recv().await.is_some() {
            let stats = COUNTED.stats();
            eprintln!(
                "ALLOCATIONS count={} bytes={}",
                stats.allocations + stats.reallocations,
                stats.bytes_allocated
            );
        }
    });
    Ok(())
}
