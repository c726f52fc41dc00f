//! Offering: whose entry is next, whether there is capacity for it, and what becomes of it then.
//!
//! An entry being offered stays where it is, so one that is refused is still first. Others take the entries behind it meanwhile, except in global
//! order. It must not know what capacity is.

use super::fifo::Found;
use super::queue::{FairQueue, STOPPED};
use super::vocabulary::{Blocked, Order};
use super::word::{Phase, State, Turn};
use crate::sync::{Ordering::SeqCst, fence_of_model};

/// What came of offering a FIFO's first entry.
enum Offer<T, L> {
    Taken(T, L),
    Refused(Blocked),
    /// Others took what was there.
    Gone,
}

impl<T> FairQueue<T> {
    /// The version of the capacity for which there may be something to take.
    pub(super) fn version_to_try(&self) -> Option<u64> {
        let count = self.count.0.load(SeqCst);
        let version = self.turns.version();
        let nothing = count & STOPPED != 0 || count == 0 || self.exhausted.load(SeqCst) == version;
        (!nothing).then_some(version)
    }

    pub(super) fn take_by_turn<L>(&self, admit: &mut impl FnMut(&T) -> Result<L, Blocked>) -> Option<(T, L)> {
        loop {
            let version = self.version_to_try()?;
            self.turns.unblock(version);
            let (fifo, turn, first) = self.turns.next(|fifo| self.fifos.first(fifo))?;
            if !self.turns.spend(fifo, turn) {
                continue;
            }
            match self.offer(fifo, Some(turn), first, version, admit) {
                Offer::Taken(work, lease) => return Some((work, lease)),
                Offer::Gone | Offer::Refused(Blocked::Owner) => self.turns.refund(fifo),
                Offer::Refused(Blocked::Everyone) => {
                    self.turns.refund(fifo);
                    self.exhaust(version);
                }
            }
        }
    }

    pub(super) fn take_head<L>(&self, admit: &mut impl FnMut(&T) -> Result<L, Blocked>) -> Option<(T, L)> {
        const FIFO: usize = 0;
        loop {
            let version = self.version_to_try()?;
            match self.fifos.head(FIFO) {
                Found::Queued(entry, state) => match self.offer(FIFO, None, (entry, state), version, admit) {
                    Offer::Taken(work, lease) => return Some((work, lease)),
                    Offer::Gone => {}
                    Offer::Refused(_) => self.exhaust(version),
                },
                Found::Offered | Found::Nothing => return None,
            }
        }
    }

    /// Nothing is offered any more at this version of the capacity.
    fn exhaust(&self, version: u64) {
        self.exhausted.fetch_max(version, SeqCst);
        fence_of_model();
    }

    /// Offers the first entry of a FIFO, or with a turn, the next that others leave.
    fn offer<L>(
        &self,
        fifo: usize,
        turn: Option<Turn>,
        first: (usize, State),
        version: u64,
        admit: &mut impl FnMut(&T) -> Result<L, Blocked>,
    ) -> Offer<T, L> {
        let mut found = Some(first);
        while let Some((entry, state)) = found {
            if self.fifos.slab.change(entry, state, Phase::Offered) {
                let offered = Offered {
                    queue: self,
                    fifo,
                    entry,
                    state,
                };
                return offered.ask(turn, version, admit);
            }
            found = turn.and_then(|_| self.fifos.first(fifo));
        }
        Offer::Gone
    }
}

/// An entry being offered. Dropped otherwise than by an answer (`admit` panicked), it is queued again.
struct Offered<'a, T> {
    queue: &'a FairQueue<T>,
    fifo: usize,
    entry: usize,
    /// As it was queued.
    state: State,
}

impl<T> Offered<'_, T> {
    fn ask<L>(self, turn: Option<Turn>, version: u64, admit: &mut impl FnMut(&T) -> Result<L, Blocked>) -> Offer<T, L> {
        let slab = &self.queue.fifos.slab;
        loop {
            let answer = self.answer(admit);
            if let Some(Err(blocked)) = answer {
                if blocked == Blocked::Owner && turn.is_some() {
                    // While it is offered: later the FIFO may be another owner's.
                    self.queue.turns.refuse(self.fifo, version);
                }
                if slab.change(self.entry, self.state.with(Phase::Offered), Phase::Queued) {
                    std::mem::forget(self);
                    return Offer::Refused(blocked);
                }
                // Somebody tried to cancel it.
                let again = self.state.with(Phase::OfferedAgain);
                slab.change(self.entry, again, Phase::Offered);
                continue;
            }
            self.depart(turn);
            std::mem::forget(self);
            return match answer {
                Some(Ok((work, lease))) => Offer::Taken(work, lease),
                _ => Offer::Gone,
            };
        }
    }

    /// Asks whether there is capacity, and takes the work out if there is.
    fn answer<L>(&self, admit: &mut impl FnMut(&T) -> Result<L, Blocked>) -> Option<Result<(T, L), Blocked>> {
        let mut place = self.queue.fifos.slab.work(self.entry)?;
        match admit(place.as_ref()?) {
            Ok(lease) => place.take().map(|work| Ok((work, lease))),
            Err(blocked) => Some(Err(blocked)),
        }
    }

    /// The entry leaves, served with a token of this turn.
    fn depart(&self, turn: Option<Turn>) {
        let fifos = &self.queue.fifos;
        let more = fifos.bury(self.fifo, self.entry);
        if let Some(turn) = turn {
            let has_work = || fifos.first(self.fifo).is_some();
            self.queue.turns.settle(self.fifo, turn, more, has_work);
        }
        self.queue.left(self.fifo);
    }
}

impl<T> Drop for Offered<'_, T> {
    fn drop(&mut self) {
        let slab = &self.queue.fifos.slab;
        while !slab.change(self.entry, self.state.with(Phase::Offered), Phase::Queued) {
            let again = self.state.with(Phase::OfferedAgain);
            slab.change(self.entry, again, Phase::Offered);
        }
        if self.queue.order == Order::Weighted {
            self.queue.turns.refund(self.fifo);
        }
        self.queue.signal.wake();
    }
}
