//! All waiting requests of a server.
//!
//! Owns the slots, the overflow set, and the marks "draining" and "somebody sweeps". Registering is a compare-exchange in a slot near the
//! hash of the request's key; whoever looks for requests reads the slots one after the other. It must not know how a slot decides who wins.

use std::collections::BTreeMap;
use std::time::Duration;

use super::registration::{Registered, Registration};
use super::slot::{End, Sighting, Slot, Tag, nanos};
use super::{Key, Refusal, Refused, SweepOutcome};
use crate::sync::{Arc, AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, fence};

/// Most slots of a table; more asked for are not given.
pub const MAX_SLOTS: usize = 1 << 20;

/// Slots that are tried near a hash.
pub const PROBES: usize = 8;

/// Other places that are tried, each with as many slots, when all slots near the hash are taken. Looking at a taken slot is one load, the
/// overflow set a lock and an allocation.
pub const OTHER_PLACES: u32 = 3;

/// Most requests in the overflow set of a table, unless another limit is given.
pub const OVERFLOW_LIMIT: usize = 1 << 16;

/// Requests that found no slot, by number.
#[derive(Debug)]
pub(super) struct Overflow<T> {
    limit: usize,
    /// So that nobody takes the lock to find nothing.
    count: AtomicUsize,
    entries: Mutex<Entries<T>>,
}

#[derive(Debug)]
struct Entries<T> {
    next: u64,
    by_number: BTreeMap<u64, Arc<Slot<T>>>,
}

impl<T> Overflow<T> {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            count: AtomicUsize::new(0),
            entries: Mutex::new(Entries {
                next: 0,
                by_number: BTreeMap::new(),
            }),
        }
    }

    fn insert(self: &Arc<Self>, key: Key, deadline: Option<Duration>, answer: T) -> Result<Registration<T>, T> {
        let mut entries = self.entries.lock();
        if entries.by_number.len() >= self.limit {
            return Err(answer);
        }
        let slot = Arc::new(Slot::new());
        let Some(tag) = slot.claim() else {
            return Err(answer);
        };
        slot.publish(tag, key, deadline, answer);
        let number = entries.next;
        entries.next = entries.next.wrapping_add(1);
        entries.by_number.insert(number, Arc::clone(&slot));
        self.count.store(entries.by_number.len(), Ordering::Release);
        Ok(Registration::new(slot, tag, Some((Arc::clone(self), number))))
    }

    pub(super) fn remove(&self, number: u64) {
        let mut entries = self.entries.lock();
        entries.by_number.remove(&number);
        self.count.store(entries.by_number.len(), Ordering::Release);
    }

    /// The slots of now: what looks at them calls strangers, and must hold no lock then.
    fn slots(&self) -> Vec<Arc<Slot<T>>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        self.entries.lock().by_number.values().map(Arc::clone).collect()
    }
}

/// All waiting requests of a server. `T` is what is needed to answer one; it is handed to whoever ends the request, once.
///
/// Closures that are given to its methods are called without any lock held: they may use the table.
#[derive(Debug)]
pub struct RequestTable<T> {
    slots: Box<[Arc<Slot<T>>]>,
    overflow: Arc<Overflow<T>>,
    /// Spreads requests whose key hashes alike.
    turn: AtomicU64,
    overflowed: AtomicU64,
    /// Set once: nothing is registered any more.
    draining: AtomicBool,
    /// Whether a sweeper is there, or has been asked for.
    swept: AtomicBool,
}

impl<T> RequestTable<T> {
    /// A table of `slots` slots (1 to [`MAX_SLOTS`]) and an overflow set of [`OVERFLOW_LIMIT`] requests.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        Self::with_overflow_limit(slots, OVERFLOW_LIMIT)
    }

    /// A table of `slots` slots (1 to [`MAX_SLOTS`]) and an overflow set of at most `limit` requests.
    #[must_use]
    pub fn with_overflow_limit(slots: usize, limit: usize) -> Self {
        let slots = slots.clamp(1, MAX_SLOTS);
        Self {
            slots: (0..slots).map(|_| Arc::new(Slot::new())).collect(),
            overflow: Arc::new(Overflow::new(limit)),
            turn: AtomicU64::new(0),
            overflowed: AtomicU64::new(0),
            draining: AtomicBool::new(false),
            swept: AtomicBool::new(false),
        }
    }

    /// Takes a request in. `deadline` is on the same clock as the `now` of [`sweep`](Self::sweep).
    ///
    /// Ends with a full fence: a mark that the caller reads afterwards (session closed, connection closed) was either seen, or whoever set it
    /// sees this request. A request that a [`drain`](Self::drain) at this very moment has answered is taken in, already stopped.
    ///
    /// # Errors
    /// The answer comes back when the table is draining, or when it is full.
    pub fn register(&self, key: Key, deadline: Option<Duration>, answer: T) -> Result<Registered<T>, Refused<T>> {
        if self.draining.load(Ordering::Acquire) {
            return Err(Refused::new(Refusal::Draining, answer));
        }
        let registration = match self.claim(key) {
            Some((slot, tag)) => {
                slot.publish(tag, key, deadline, answer);
                Registration::new(Arc::clone(slot), tag, None)
            }
            None => {
                self.overflowed.fetch_add(1, Ordering::Relaxed);
                let inserted = self.overflow.insert(key, deadline, answer);
                inserted.map_err(|answer| Refused::new(Refusal::Full, answer))?
            }
        };
        // Between "the request is there" and every mark that says there should be none.
        fence(Ordering::SeqCst);
        if self.draining.load(Ordering::Acquire)
            && let Some(answer) = registration.end(End::Stopped)
        {
            return Err(Refused::new(Refusal::Draining, answer));
        }
        let watched_started = deadline.is_some() && self.start_sweeping();
        Ok(Registered {
            registration,
            watched_started,
        })
    }

    /// Cancels the requests of a session that carry a handle, and hands out their answers. How many there were.
    ///
    /// What has ended by itself is not cancelled: a request whose deadline has passed is left to the next [`sweep`](Self::sweep), and all are
    /// left to a [`drain`](Self::drain) that has begun.
    pub fn cancel(&self, now: Duration, session: u64, handle: u32, f: impl FnMut(T)) -> u32 {
        if self.draining.load(Ordering::Acquire) {
            return 0;
        }
        let now = nanos(now);
        let hit = |seen: &Sighting| seen.key.session == session && seen.key.handle == handle && !seen.is_overdue(now);
        let cancelled = self.end_all(End::Cancelled, hit, f);
        u32::try_from(cancelled).unwrap_or(u32::MAX)
    }

    /// Ends the requests of a session that was marked as closed before, and hands out their answers. How many there were.
    pub fn close_session(&self, session: u64, f: impl FnMut(T)) -> usize {
        self.end_all(End::Closed, |seen| seen.key.session == session, f)
    }

    /// Ends the requests of a connection that was marked as closed before, and hands out their answers. How many there were.
    pub fn close_connection(&self, connection: u64, f: impl FnMut(T)) -> usize {
        self.end_all(End::Closed, |seen| seen.key.connection == connection, f)
    }

    /// Ends the requests whose deadline has passed, and hands out their answers. Called by one sweeper every
    /// [`SWEEP_INTERVAL`](super::SWEEP_INTERVAL), from a registration that says so until nothing is watched any more.
    pub fn sweep(&self, now: Duration, mut f: impl FnMut(T)) -> SweepOutcome {
        let now = nanos(now);
        let mut watched = 0;
        self.visit(|slot| match slot.sight() {
            Some(seen) if seen.is_overdue(now) => {
                if let Some(answer) = slot.end(&seen, End::TimedOut) {
                    f(answer);
                }
            }
            Some(seen) if seen.is_watched() => watched += 1,
            _ => {}
        });
        if watched > 0 {
            return SweepOutcome { watched };
        }
        self.swept.store(false, Ordering::Release);
        // Who registers now either sees that nobody sweeps, or is seen here.
        fence(Ordering::SeqCst);
        let mut late = 0;
        self.visit(|slot| late += usize::from(slot.sight().is_some_and(|seen| seen.is_watched())));
        let goes_on = late > 0 && self.start_sweeping();
        SweepOutcome {
            watched: if goes_on { late } else { 0 },
        }
    }

    /// Whether somebody sweeps, or has been asked to: true from the first registration with a deadline until a sweep that finds none.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.swept.load(Ordering::Acquire)
    }

    /// Server stop: refuses registrations from now on, ends all requests and hands out their answers. How many there were.
    pub fn drain(&self, f: impl FnMut(T)) -> usize {
        self.draining.store(true, Ordering::Release);
        self.end_all(End::Stopped, |_| true, f)
    }

    /// Requests in the table, those included that have ended and whose worker does not know it yet.
    #[must_use]
    pub fn len(&self) -> usize {
        let taken = self.slots.iter().filter(|slot| slot.is_taken()).count();
        taken.saturating_add(self.overflow.count.load(Ordering::Acquire))
    }

    /// Whether no request is in the table.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How often a request found no slot since the table was made.
    #[must_use]
    pub fn overflowed(&self) -> u64 {
        self.overflowed.load(Ordering::Relaxed)
    }

    fn claim(&self, key: Key) -> Option<(&Arc<Slot<T>>, Tag)> {
        let hash = hash(key);
        self.claim_near(hash).or_else(|| {
            // Many requests with one key, or with keys that hash alike.
            (0..OTHER_PLACES).find_map(|_| self.claim_near(scramble(self.turn.fetch_add(1, Ordering::Relaxed))))
        })
    }

    fn claim_near(&self, hash: u64) -> Option<(&Arc<Slot<T>>, Tag)> {
        let slots = self.slots.len() as u64;
        // The upper half of the product spreads a hash over any number of slots.
        let first = usize::try_from((u128::from(hash) * u128::from(slots)) >> 64).unwrap_or(0);
        let (before, after) = self.slots.split_at_checked(first)?;
        let near = after.iter().chain(before).take(PROBES);
        near.filter_map(|slot| slot.claim().map(|tag| (slot, tag))).next()
    }

    /// Ends what is pending and meets a condition, reading the slots one after the other.
    fn end_all(&self, end: End, hit: impl Fn(&Sighting) -> bool, mut f: impl FnMut(T)) -> usize {
        // Between the mark that brought us here and the slots: see `register`.
        fence(Ordering::SeqCst);
        let mut ended = 0;
        self.visit(|slot| {
            let answer = slot.sight().filter(&hit).and_then(|seen| slot.end(&seen, end));
            if let Some(answer) = answer {
                ended += 1;
                f(answer);
            }
        });
        ended
    }

    fn visit(&self, mut f: impl FnMut(&Slot<T>)) {
        self.slots.iter().for_each(|slot| f(slot));
        self.overflow.slots().iter().for_each(|slot| f(slot));
    }

    /// Whether the caller is the one who has to see to it that somebody sweeps.
    fn start_sweeping(&self) -> bool {
        !self.swept.load(Ordering::Acquire)
            && self
                .swept
                .compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
    }
}

impl<T> Refused<T> {
    fn new(reason: Refusal, answer: T) -> Self {
        Self { reason, answer }
    }
}

fn hash(key: Key) -> u64 {
    scramble(key.session ^ scramble(key.connection ^ scramble(u64::from(key.handle))))
}

/// Every bit of the input turns half of the output's.
fn scramble(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
