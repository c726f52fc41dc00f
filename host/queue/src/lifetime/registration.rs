//! The worker's end of a waiting request.
//!
//! Owns the slot until it is dropped, whoever ends the request. It must not know how slots are found.

use super::Terminal;
use super::slot::{End, Slot, Tag};
use super::table::Overflow;
use crate::sync::Arc;

/// A request that was taken in.
#[derive(Debug)]
#[must_use = "dropping the registration drops what is needed to answer the request"]
pub struct Registered<T> {
    /// The request's place in the table.
    pub registration: Registration<T>,
    /// Whether this request has a deadline and nobody was sweeping: the caller starts to call [`RequestTable::sweep`] every
    /// [`SWEEP_INTERVAL`], until it says that nothing is watched. Said to exactly one of the registrations that race.
    ///
    /// [`RequestTable::sweep`]: super::RequestTable::sweep
    /// [`SWEEP_INTERVAL`]: super::SWEEP_INTERVAL
    pub watched_started: bool,
}

/// A waiting request, held by whoever works on it. Dropping it uncompleted gives its place back, and drops what would have answered it.
#[derive(Debug)]
#[must_use = "dropping the registration drops what is needed to answer the request"]
pub struct Registration<T> {
    slot: Arc<Slot<T>>,
    tag: Tag,
    /// Where the slot has to be taken out again, when it is none of the table's own.
    overflow: Option<(Arc<Overflow<T>>, u64)>,
    finished: bool,
}

impl<T> Registration<T> {
    pub(super) fn new(slot: Arc<Slot<T>>, tag: Tag, overflow: Option<(Arc<Overflow<T>>, u64)>) -> Self {
        Self {
            slot,
            tag,
            overflow,
            finished: false,
        }
    }

    /// Ends the request: its answer, exactly if nobody else has ended it.
    #[must_use]
    pub fn complete(mut self) -> Option<T> {
        self.finish()
    }

    /// How far the request has come, so that work for nobody can stop early. One atomic load.
    #[must_use]
    pub fn state(&self) -> Terminal {
        self.slot.terminal(self.tag)
    }

    /// Something by which others can look at the same, as long as they like.
    #[must_use]
    pub fn observe(&self) -> Observer<T> {
        Observer {
            slot: Arc::clone(&self.slot),
            tag: self.tag,
        }
    }

    /// Ends the request as somebody else would: its answer, exactly if nobody else has ended it.
    pub(super) fn end(&self, end: End) -> Option<T> {
        let seen = self.slot.sight()?;
        self.slot.end(&seen, end)
    }

    fn finish(&mut self) -> Option<T> {
        if std::mem::replace(&mut self.finished, true) {
            return None;
        }
        let answer = self.slot.finish(self.tag);
        if let Some((overflow, number)) = &self.overflow {
            overflow.remove(*number);
        }
        answer
    }
}

impl<T> Drop for Registration<T> {
    fn drop(&mut self) {
        drop(self.finish());
    }
}

/// Looks at a request without owning it.
#[derive(Debug)]
pub struct Observer<T> {
    slot: Arc<Slot<T>>,
    tag: Tag,
}

impl<T> Observer<T> {
    /// How far the request has come; [`Terminal::Complete`] once its registration is gone, whatever its end was.
    #[must_use]
    pub fn state(&self) -> Terminal {
        self.slot.terminal(self.tag)
    }
}

impl<T> Clone for Observer<T> {
    fn clone(&self) -> Self {
        Self {
            slot: Arc::clone(&self.slot),
            tag: self.tag,
        }
    }
}
