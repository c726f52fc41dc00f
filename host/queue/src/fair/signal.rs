//! Waking workers that wait: at most one wake-up is under way at a time, and none is lost.
//!
//! A wake-up is under way from when a waiter is picked until that waiter starts to look for work; whoever has news meanwhile need not wake
//! another, for the news is there before the look. A worker that found work and leaves more behind passes the wake-up on.
//! The lock is entered only to wait, to stop waiting, and to wake when nobody is being woken. It must not know what is waited for.

use std::collections::VecDeque;
use std::task::Waker;

use crate::sync::{Arc, AtomicBool, AtomicUsize, Mutex, Ordering::SeqCst, fence_of_model};

/// Where workers wait.
pub(super) struct Signal {
    /// A waiter was picked and has not begun to look.
    pending: AtomicBool,
    /// How many wait and have not been picked.
    waiting: AtomicUsize,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    places: Vec<Place>,
    free: Vec<usize>,
    /// The places of those who wait, the longest waiting first.
    line: VecDeque<usize>,
}

#[derive(Default)]
struct Place {
    waker: Option<Waker>,
    picked: bool,
}

/// A worker's place among those who wait. Dropping it gives up the place, and passes on a wake-up that it had.
pub struct Waiter {
    signal: Arc<Signal>,
    place: usize,
    /// Whether it waits, or was picked and has not looked.
    waits: bool,
}

impl Signal {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            pending: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            inside: Mutex::new(Inside::default()),
        })
    }

    /// There may be work: wakes one who waits, unless one is being woken.
    pub(super) fn wake(&self) {
        fence_of_model();
        if self.waiting.load(SeqCst) == 0 || self.pending.swap(true, SeqCst) {
            return;
        }
        let mut inside = self.inside.lock();
        let waker = match inside.line.pop_front() {
            Some(place) => {
                self.waiting.fetch_sub(1, SeqCst);
                inside.places.get_mut(place).and_then(|place| {
                    place.picked = true;
                    place.waker.take()
                })
            }
            None => {
                // Within the lock: who waits from now on finds that nobody is being woken.
                self.pending.swap(false, SeqCst);
                None
            }
        };
        drop(inside);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Wakes everybody, for good.
    pub(super) fn wake_all(&self) {
        loop {
            let mut inside = self.inside.lock();
            let Some(place) = inside.line.pop_front() else { return };
            self.waiting.fetch_sub(1, SeqCst);
            let waker = inside.places.get_mut(place).and_then(|place| place.waker.take());
            drop(inside);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl Waiter {
    pub(super) fn new(signal: &Arc<Signal>) -> Self {
        let mut inside = signal.inside.lock();
        let place = inside.free.pop().unwrap_or_else(|| {
            inside.places.push(Place::default());
            inside.places.len() - 1
        });
        // So that waiting, and giving the place back, allocate nothing.
        let places = inside.places.len();
        let (line, free) = (inside.line.len(), inside.free.len());
        inside.line.reserve(places - line);
        inside.free.reserve(places - free);
        drop(inside);
        Self {
            signal: Arc::clone(signal),
            place,
            waits: false,
        }
    }

    /// Whether this waiter is of that signal.
    pub(super) fn is_of(&self, signal: &Arc<Signal>) -> bool {
        Arc::ptr_eq(&self.signal, signal)
    }

    /// Waits from now on. The caller then looks for work once more before it relies on being woken.
    pub(super) fn wait(&mut self, waker: &Waker) {
        let waker = waker.clone();
        let mut inside = self.signal.inside.lock();
        if let Some(place) = inside.places.get_mut(self.place) {
            place.waker = Some(waker);
            place.picked = false;
        }
        inside.line.push_back(self.place);
        self.signal.waiting.fetch_add(1, SeqCst);
        self.waits = true;
        drop(inside);
        fence_of_model();
    }

    /// Waits no more; whether it had been picked. From now on another can be picked, so the caller must look for work, or pass it on.
    pub(super) fn look(&mut self) -> bool {
        if !self.waits {
            return false;
        }
        self.waits = false;
        let mut inside = self.signal.inside.lock();
        let number = self.place;
        let place = inside.places.get_mut(number);
        let picked = place.as_ref().is_some_and(|place| place.picked);
        let waker = place.and_then(|place| {
            place.picked = false;
            place.waker.take()
        });
        if let Some(position) = inside.line.iter().position(|waiting| *waiting == number) {
            inside.line.remove(position);
            self.signal.waiting.fetch_sub(1, SeqCst);
        }
        drop(inside);
        drop(waker);
        if picked {
            self.signal.pending.swap(false, SeqCst);
        }
        picked
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let picked = self.look();
        self.signal.inside.lock().free.push(self.place);
        if picked {
            self.signal.wake();
        }
    }
}

impl std::fmt::Debug for Waiter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Waiter")
            .field("waits", &self.waits)
            .finish_non_exhaustive()
    }
}
