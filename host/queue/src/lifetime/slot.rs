//! One place for a waiting request: a state word that decides its end, and what the winner takes away.
//!
//! The word holds a tag, which is another one for every request the slot ever holds, the outcome, and who still has something to do here.
//! Fields are written by whoever claimed the slot, before it becomes pending, and may be read by anyone at any time: what was read of them
//! counts only when a compare-exchange of the word succeeds afterwards, for then the slot had not changed hands in between.

use std::time::Duration;

use super::{Key, Terminal};
use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering};

/// Nanoseconds of "no deadline".
const NEVER: u64 = u64::MAX;

const OUTCOME: u64 = 0b111;
const FREE: u64 = 0;
const CLAIMED: u64 = 1;
const PENDING: u64 = 2;
const COMPLETE: u64 = 3;
const CANCELLED: u64 = 4;
const TIMED_OUT: u64 = 5;
const STOPPED: u64 = 6;
const CLOSED: u64 = 7;

/// The winner, other than the registration, has taken the answer away: the slot is the registration's to free.
const TAKEN: u64 = 0b1000;
/// The registration is gone and the winner has not taken the answer yet: the slot is the winner's to free.
const ABANDONED: u64 = 0b1_0000;
const TAG_SHIFT: u32 = 5;

/// Why somebody other than the registration ends a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Cancelled,
    TimedOut,
    Stopped,
    Closed,
}

impl End {
    const fn bits(self) -> u64 {
        match self {
            Self::Cancelled => CANCELLED,
            Self::TimedOut => TIMED_OUT,
            Self::Stopped => STOPPED,
            Self::Closed => CLOSED,
        }
    }
}

/// One occupation of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag(u64);

impl Tag {
    const fn of(word: u64) -> Self {
        Self(word >> TAG_SHIFT)
    }

    const fn next(self) -> Self {
        // 59 bits: at a billion requests a second in one slot it comes round after 18 years.
        Self(self.0.wrapping_add(1) & (u64::MAX >> TAG_SHIFT))
    }

    const fn with(self, state: u64) -> u64 {
        (self.0 << TAG_SHIFT) | state
    }
}

/// What can be seen of a pending request without owning it. To be trusted only if [`Slot::end`] succeeds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sighting {
    word: u64,
    pub(super) key: Key,
    deadline: u64,
}

impl Sighting {
    /// Whether the request has a deadline.
    pub(super) fn is_watched(&self) -> bool {
        self.deadline != NEVER
    }

    /// Whether its deadline has passed.
    pub(super) fn is_overdue(&self, now: u64) -> bool {
        self.is_watched() && self.deadline <= now
    }
}

/// See the module text.
#[derive(Debug)]
pub(super) struct Slot<T> {
    state: AtomicU64,
    session: AtomicU64,
    connection: AtomicU64,
    deadline: AtomicU64,
    handle: AtomicU32,
    /// Touched by the claimant before the slot is pending, and then by the winner only: never contended.
    answer: Mutex<Option<T>>,
}

impl<T> Slot<T> {
    pub(super) fn new() -> Self {
        Self {
            state: AtomicU64::new(FREE),
            session: AtomicU64::new(0),
            connection: AtomicU64::new(0),
            deadline: AtomicU64::new(NEVER),
            handle: AtomicU32::new(0),
            answer: Mutex::new(None),
        }
    }

    /// Takes the slot if it is free; it must then be [published](Self::publish).
    pub(super) fn claim(&self) -> Option<Tag> {
        let word = self.state.load(Ordering::Relaxed);
        if word & OUTCOME != FREE {
            return None;
        }
        let tag = Tag::of(word).next();
        // Acquire: what the last occupant's winner read of the fields lies before what is written to them now.
        self.state
            .compare_exchange(word, tag.with(CLAIMED), Ordering::Acquire, Ordering::Relaxed)
            .ok()
            .map(|_| tag)
    }

    /// Fills a claimed slot and makes it pending.
    pub(super) fn publish(&self, tag: Tag, key: Key, deadline: Option<Duration>, answer: T) {
        self.session.store(key.session, Ordering::Relaxed);
        self.connection.store(key.connection, Ordering::Relaxed);
        self.handle.store(key.handle, Ordering::Relaxed);
        self.deadline
            .store(deadline.map_or(NEVER, deadline_nanos), Ordering::Relaxed);
        *self.answer.lock() = Some(answer);
        self.state.store(tag.with(PENDING), Ordering::Release);
    }

    /// What is in the slot, if that is a pending request.
    pub(super) fn sight(&self) -> Option<Sighting> {
        let word = self.state.load(Ordering::Acquire);
        (word & OUTCOME == PENDING).then(|| Sighting {
            word,
            key: Key {
                session: self.session.load(Ordering::Relaxed),
                connection: self.connection.load(Ordering::Relaxed),
                handle: self.handle.load(Ordering::Relaxed),
            },
            deadline: self.deadline.load(Ordering::Relaxed),
        })
    }

    /// Ends a request from outside. The answer, when nobody else ended it first.
    pub(super) fn end(&self, seen: &Sighting, end: End) -> Option<T> {
        let tag = Tag::of(seen.word);
        let ended = tag.with(end.bits());
        self.state
            .compare_exchange(seen.word, ended, Ordering::AcqRel, Ordering::Relaxed)
            .ok()?;
        let answer = self.answer.lock().take();
        if self
            .state
            .compare_exchange(ended, ended | TAKEN, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            // Nobody else changes an ended word: the registration went in the meantime.
            self.state.store(tag.with(FREE), Ordering::Release);
        }
        answer
    }

    /// Ends a request by its registration, which must not look at the slot again. The answer, when nobody ended it first.
    pub(super) fn finish(&self, tag: Tag) -> Option<T> {
        let pending = tag.with(PENDING);
        match self
            .state
            .compare_exchange(pending, tag.with(COMPLETE), Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => {
                let answer = self.answer.lock().take();
                self.state.store(tag.with(FREE), Ordering::Release);
                answer
            }
            Err(ended) => {
                let left_to_winner = ended & TAKEN == 0
                    && self
                        .state
                        .compare_exchange(ended, ended | ABANDONED, Ordering::AcqRel, Ordering::Acquire)
                        .is_ok();
                if !left_to_winner {
                    self.state.store(tag.with(FREE), Ordering::Release);
                }
                None
            }
        }
    }

    /// How far the request that occupies the slot under this tag has come.
    pub(super) fn terminal(&self, tag: Tag) -> Terminal {
        let word = self.state.load(Ordering::Acquire);
        if Tag::of(word) != tag {
            return Terminal::Complete;
        }
        match word & OUTCOME {
            CLAIMED | PENDING => Terminal::Pending,
            CANCELLED => Terminal::Cancelled,
            TIMED_OUT => Terminal::TimedOut,
            STOPPED => Terminal::Stopped,
            CLOSED => Terminal::Closed,
            _ => Terminal::Complete,
        }
    }

    /// Whether a request, ended or not, occupies the slot.
    pub(super) fn is_taken(&self) -> bool {
        self.state.load(Ordering::Relaxed) & OUTCOME != FREE
    }
}

/// A time in nanoseconds, as deadlines are kept.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A deadline that is 584 years away and more is the last moment before "never".
fn deadline_nanos(deadline: Duration) -> u64 {
    nanos(deadline).min(NEVER - 1)
}
