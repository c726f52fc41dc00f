//! Memory of messages whose last chunk has not come, of all connections together.
//!
//! Owns two bounds that belong to no account: what all of them may hold, also where nothing is accounted; and, where no floor keeps a part for those
//! that have a session, what connections without one may hold of it: a half, so that whoever only connects leaves the other half to those who work.
//! Must not know whose a message is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use backplane_queue::isolation::{Plan, Stage};

/// See the module text. Bytes.
#[derive(Debug)]
pub(crate) struct Pieces {
    all: AtomicU64,
    without_session: AtomicU64,
    most: u64,
    most_without_session: u64,
}

/// What one incomplete message holds; given back when dropped. Whether its connection has a session is decided when it begins.
#[derive(Debug)]
pub(crate) struct Piece {
    pieces: Arc<Pieces>,
    held: u64,
    has_session: bool,
}

impl Pieces {
    /// For a plan; `total` is what there is where it limits nothing.
    pub(crate) fn new(plan: &Plan, total: u64) -> Arc<Self> {
        let most = plan.stage(Stage::ReassemblyBytes).capacity.min(total);
        let most_without_session = if plan.profile().has_floors() { most } else { most / 2 };
        Arc::new(Self {
            all: AtomicU64::new(0),
            without_session: AtomicU64::new(0),
            most,
            most_without_session,
        })
    }

    /// A message begins.
    pub(crate) fn begin(self: &Arc<Self>, has_session: bool) -> Piece {
        Piece {
            pieces: Arc::clone(self),
            held: 0,
            has_session,
        }
    }
}

fn take(counter: &AtomicU64, more: u64, most: u64) -> bool {
    let sum = |used: u64| used.checked_add(more).filter(|sum| *sum <= most);
    counter.try_update(Ordering::AcqRel, Ordering::Acquire, sum).is_ok()
}

impl Piece {
    /// The message holds `held` bytes now. False, and nothing has changed, when there is no room for so many.
    pub(crate) fn grow_to(&mut self, held: u64) -> bool {
        let more = held.saturating_sub(self.held);
        let pieces = &*self.pieces;
        if !self.has_session && !take(&pieces.without_session, more, pieces.most_without_session) {
            return false;
        }
        if !take(&pieces.all, more, pieces.most) {
            if !self.has_session {
                pieces.without_session.fetch_sub(more, Ordering::AcqRel);
            }
            return false;
        }
        self.held = self.held.saturating_add(more);
        true
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.pieces.all.fetch_sub(self.held, Ordering::AcqRel);
        if !self.has_session {
            self.pieces.without_session.fetch_sub(self.held, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(most: u64, most_without_session: u64) -> Arc<Pieces> {
        Arc::new(Pieces {
            all: AtomicU64::new(0),
            without_session: AtomicU64::new(0),
            most,
            most_without_session,
        })
    }

    #[test]
    fn strangers_leave_the_other_half() {
        let pieces = pieces(10, 5);
        let (mut one, mut two, mut member) = (pieces.begin(false), pieces.begin(false), pieces.begin(true));
        assert!(one.grow_to(3) && two.grow_to(2));
        assert!(!one.grow_to(4), "half is all there is for them");
        assert!(member.grow_to(5));
        assert!(!member.grow_to(6), "then it is full");
        drop(two);
        assert!(member.grow_to(7), "what strangers do not use is anybody's");
        assert!(!one.grow_to(4), "it is full again, though their half is not");
        assert!(one.grow_to(3), "what it has it keeps");
        drop(member);
        assert!(one.grow_to(5), "the refusals took nothing");
        drop(one);
        assert_eq!(pieces.all.load(Ordering::Relaxed), 0);
        assert_eq!(pieces.without_session.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn no_amount_overflows() {
        let pieces = pieces(u64::MAX, u64::MAX / 2);
        let (mut one, mut two) = (pieces.begin(true), pieces.begin(true));
        assert!(one.grow_to(u64::MAX));
        assert!(!two.grow_to(1));
        assert!(!pieces.begin(false).grow_to(u64::MAX));
    }
}
