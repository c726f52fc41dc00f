//! Whose atomics, locks and threads the queue is built on: the machine's, or those of a model checker.
//!
//! Everything in this crate that two threads can touch takes its types from here, so that the code which is model checked is the code which
//! runs. `--cfg loom` explores every order that the memory model allows of a few operations; `--cfg shuttle` many random schedules of longer
//! runs. It must not know what is built on it. `Arc` is the standard library's in all three.

#![allow(
    unused_imports,
    reason = "one list for all three; a checker's build need not use all of it"
)]

#[cfg(not(any(loom, shuttle)))]
pub(crate) use parking_lot::{Mutex, MutexGuard};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, fence};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, fence};
#[cfg(all(shuttle, not(loom)))]
pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, fence};

pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::Ordering;

#[cfg(loom)]
pub(crate) use loom::thread::yield_now;
#[cfg(all(shuttle, not(loom)))]
pub(crate) use shuttle::thread::yield_now;
#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::thread::yield_now;

/// Stands between a sequentially consistent write and a sequentially consistent read of another place, where the order of the two matters.
/// The language orders such accesses by itself; loom weakens them to acquire and release, and keeps the order of fences.
#[inline(always)]
pub(crate) fn fence_of_model() {
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}

#[cfg(any(loom, shuttle))]
pub(crate) use model::{Mutex, MutexGuard};

/// The checkers' locks in the shape of ours: without poisoning.
#[cfg(any(loom, shuttle))]
mod model {
    use std::sync::PoisonError;

    #[cfg(loom)]
    use loom::sync as checker;
    #[cfg(all(shuttle, not(loom)))]
    use shuttle::sync as checker;

    pub(crate) use checker::MutexGuard;

    /// A lock without poisoning.
    #[derive(Debug)]
    pub(crate) struct Mutex<T>(checker::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(checker::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock().ok()
        }
    }
}
