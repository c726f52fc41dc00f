//! Trying an input without dying of it, and making one that breaks a promise shorter.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use fuzz_targets::Target;

/// How long an input is made shorter.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where and why the last panic was.
static LAST: Mutex<Option<(String, String)>> = Mutex::new(None);

/// The place of the panic that an input causes, if it does. The thread must not be used for further attempts then.
pub(super) fn attempt(target: Target, input: &[u8]) -> Option<String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            let place = info
                .location()
                .map_or_else(|| "somewhere".to_owned(), ToString::to_string);
            *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some((place, info.to_string()));
        }));
    });
    if catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_ok() {
        return None;
    }
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).take();
    Some(last.map_or_else(|| "somewhere".to_owned(), |(place, _)| place))
}

/// What the panic of an input says.
pub(crate) fn why(target: Target, input: &[u8]) -> Option<String> {
    attempt(target, b"");
    if catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_ok() {
        return None;
    }
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).take();
    Some(last.map_or_else(String::new, |(_, text)| text))
}

/// Whether an input panics at a place, tried on a thread of its own.
fn breaks(target: Target, place: &str, input: &[u8]) -> bool {
    let input = input.to_vec();
    let tried = std::thread::spawn(move || attempt(target, &input)).join();
    tried.is_ok_and(|found| found.as_deref() == Some(place))
}

/// The shortest input found that panics at the same place.
pub(super) fn minimise(target: Target, place: &str, input: &[u8]) -> Vec<u8> {
    let until = Instant::now() + PATIENCE;
    let mut best = input.to_vec();
    let mut piece = best.len() / 2;
    while piece > 0 {
        let mut at = 0;
        while at < best.len() && Instant::now() < until {
            let mut shorter = best.clone();
            shorter.drain(at..(at + piece).min(best.len()));
            if breaks(target, place, &shorter) {
                best = shorter;
            } else {
                at += piece;
            }
        }
        piece /= 2;
    }
    best
}
