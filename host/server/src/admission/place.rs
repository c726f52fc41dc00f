//! A connection's place in the server: its leases, and the wish that it may end for another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use backplane_queue::isolation::{Lease, Owner, Reason, Refused, Stage};
use parking_lot::Mutex;

use super::Charge;
use super::pieces::Piece;
use crate::channels::Takeover;
use crate::shared::Shared;

/// How a connection is asked to give way.
#[derive(Default)]
pub(crate) struct Leave {
    /// For its place.
    asked: AtomicBool,
    /// For its channel.
    takeover: Mutex<Option<Takeover>>,
    /// Whether there is anything to look at.
    pending: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Leave {
    /// Asks for its place.
    pub(crate) fn ask(&self) {
        self.asked.store(true, Ordering::Release);
        self.tell();
    }

    /// Asks for its channel. Who asked before gets no answer.
    pub(crate) fn ask_for_channel(&self, takeover: Takeover) {
        *self.takeover.lock() = Some(takeover);
        self.tell();
    }

    /// Takes the wish for the channel.
    pub(crate) fn takeover(&self) -> Option<Takeover> {
        self.takeover.lock().take()
    }

    /// Lets the connection look at what is asked of it.
    pub(crate) fn tell(&self) {
        self.pending.store(true, Ordering::Release);
        let waker = self.waker.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// One connection's place; everything it holds goes back when it is dropped.
pub(crate) struct ConnectionPlace {
    shared: Arc<Shared>,
    /// Never used twice in this process.
    number: u64,
    leave: Arc<Leave>,
    /// Whom the connection is charged to until its channel says more.
    charge: Arc<Charge>,
    /// Kept while it lives.
    _connection: Lease,
    /// While a channel is being opened or renewed.
    handshake: Option<Lease>,
    /// While a message is incomplete: its part of all memory for such, and of its owner's.
    piece: Option<Piece>,
    reassembly: Option<Lease>,
}

impl ConnectionPlace {
    pub(crate) fn new(shared: &Arc<Shared>, number: u64, charge: Arc<Charge>, leases: [Lease; 2]) -> Self {
        let leave: Arc<Leave> = Arc::default();
        shared.connections.add(number, &leave);
        // What everybody was told before it was added it has to see for itself.
        leave.tell();
        let [connection, handshake] = leases;
        Self {
            shared: Arc::clone(shared),
            number,
            leave,
            charge,
            _connection: connection,
            handshake: Some(handshake),
            piece: None,
            reassembly: None,
        }
    }

    /// The connection's number.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Whom the connection is charged to before its channel is open.
    pub(crate) fn charge(&self) -> &Arc<Charge> {
        &self.charge
    }

    /// Whether another connection needs the place.
    pub(crate) fn must_leave(&self) -> bool {
        self.leave.asked.load(Ordering::Acquire)
    }

    /// How others ask for the place or the channel.
    pub(crate) fn leave(&self) -> &Arc<Leave> {
        &self.leave
    }

    /// Whether anybody has asked since the last look.
    pub(crate) fn was_asked(&self) -> bool {
        self.leave.pending.load(Ordering::Acquire) && self.leave.pending.swap(false, Ordering::AcqRel)
    }

    /// The channel that came over is known by this number.
    pub(crate) fn adopt(&mut self, number: u64) {
        self.shared.connections.remove(self.number);
        self.shared.connections.add(number, &self.leave);
        self.number = number;
    }

    /// Ready when somebody has asked.
    pub(crate) fn poll_asked(&self, cx: &Context<'_>) -> Poll<()> {
        let mut waker = self.leave.waker.lock();
        if !waker.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        drop(waker);
        if self.leave.pending.load(Ordering::Acquire) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// A channel is about to be opened or renewed.
    ///
    /// # Errors
    /// When its owner may not open more at a time.
    pub(crate) fn begin_handshake(&mut self, owner: &Owner) -> Result<(), Refused> {
        if self.handshake.is_none() {
            self.handshake = Some(self.shared.admission.acquire(Stage::Handshake, owner, 1)?);
        }
        Ok(())
    }

    /// The channel is open.
    pub(crate) fn end_handshake(&mut self) {
        self.handshake = None;
    }

    /// No message is incomplete.
    pub(crate) fn end_reassembly(&mut self) {
        self.piece = None;
        self.reassembly = None;
    }

    /// Charges the bytes of an incomplete message to its owner: `held` in all. An owner stays with a message from its first
    /// piece to its last, and so does whether there is a session.
    ///
    /// # Errors
    /// When there is no room.
    pub(crate) fn charge_reassembly(&mut self, held: usize, owner: &Owner, has_session: bool) -> Result<(), Refused> {
        let held = held as u64;
        let admission = &self.shared.admission;
        let piece = self.piece.get_or_insert_with(|| admission.pieces().begin(has_session));
        if !piece.grow_to(held) {
            return Err(admission.refuse(Stage::ReassemblyBytes, owner, Reason::Capacity));
        }
        match &mut self.reassembly {
            Some(lease) if lease.amount() >= held => Ok(()),
            Some(lease) => lease.grow(held.saturating_sub(lease.amount())),
            None => {
                let lease = self.shared.admission.acquire(Stage::ReassemblyBytes, owner, held)?;
                self.reassembly = Some(lease);
                Ok(())
            }
        }
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.shared.connections.remove(self.number);
    }
}
