//! Whose turn it is: weighted round robin between FIFOs, without locks.
//!
//! A turn holds one token for each queued entry up to the owner's weight; only the number of tokens of the weight that are left is kept, since
//! the queued entries limit the rest by themselves. Turns stand in the ready line. Only the first turn in line gives tokens, so service order is
//! token order however many consumers race; the last token sends the owner's next turn to the line's end. An owner whose entry
//! found no capacity moves, when its turn comes, to the line of the blocked, and from there to the end of the ready line once capacity changed.
//!
//! A line is Michael and Scott's queue of nodes. A turn that changes line, or goes to the end, is changed first (one word says the line, a new
//! number and the node); its node is linked next, by whoever finds the turn half way; and only then is the place it left given up. So no
//! consumer gets past a place before the next place of that owner stands in line, and a stalled consumer holds up nobody.
//!
//! Each FIFO has three nodes for each line. A turn leaves a line only as the first in it. So when it enters again, its last but one node has
//! been passed and is at most the line's dummy, and the one before that is free: three in a circle are enough.
//! It must not know entries: whether a FIFO has work is asked.

use super::word::{LineName, NONE, Place, Stand, Turn, is_later};
use crate::sync::{AtomicU32, AtomicU64, Ordering::SeqCst, fence_of_model};

/// What is never a version of the capacity.
pub(super) const NEVER: u64 = 0;

/// One end of a line, alone on its cache line.
#[repr(align(64))]
struct End(AtomicU64);

/// A line of turns.
struct Line {
    head: End,
    tail: End,
    /// Three for each FIFO, and the first dummy.
    nodes: Box<[AtomicU64]>,
}

/// What a FIFO knows of its turn.
#[repr(align(64))]
struct Owner {
    turn: AtomicU64,
    weight: AtomicU32,
    /// The version of the capacity for which an offer of this FIFO was refused.
    blocked_at: AtomicU64,
}

/// The turns of all FIFOs.
pub(super) struct Turns {
    owners: Box<[Owner]>,
    lines: [Line; 2],
    /// Grows whenever capacity was given back.
    version: End,
    /// The version for which the line of the blocked was emptied last.
    unblocked: AtomicU64,
}

/// The first place in a line.
struct First {
    head: Place,
    node: usize,
    fifo: usize,
    /// The number of the turn that stands there.
    number: u64,
    turn: Turn,
}

impl Line {
    fn new(fifos: usize) -> Self {
        let dummy = 3 * fifos;
        Self {
            head: End(AtomicU64::new(Place::new(0, dummy).0)),
            tail: End(AtomicU64::new(Place::new(0, dummy).0)),
            nodes: (0..=dummy).map(|_| AtomicU64::new(Place::new(0, NONE).0)).collect(),
        }
    }

    fn node(&self, node: usize) -> Place {
        Place(self.nodes[node].load(SeqCst))
    }

    fn tail(&self) -> Place {
        Place(self.tail.0.load(SeqCst))
    }

    fn head(&self) -> Place {
        Place(self.head.0.load(SeqCst))
    }

    /// Gives a node, free since its last use, to a turn that is about to be linked.
    fn prepare(&self, node: usize, number: u64) {
        loop {
            let place = self.node(node);
            if place.tag() == number || is_later(place.tag(), number) {
                return;
            }
            let new = Place::new(number, NONE);
            if self.nodes[node]
                .compare_exchange(place.0, new.0, SeqCst, SeqCst)
                .is_ok()
            {
                return;
            }
        }
    }

    /// Gives up the first place. Another has already done so when this changes nothing.
    fn pass(&self, first: &First) {
        let on = first.head.onward(first.node);
        let _passed = self.head.0.compare_exchange(first.head.0, on.0, SeqCst, SeqCst);
    }
}

impl Turns {
    pub(super) fn new(fifos: usize) -> Self {
        let owner = |_| Owner {
            turn: AtomicU64::new(0),
            weight: AtomicU32::new(1),
            blocked_at: AtomicU64::new(NEVER),
        };
        Self {
            owners: (0..fifos).map(owner).collect(),
            lines: [Line::new(fifos), Line::new(fifos)],
            version: End(AtomicU64::new(NEVER + 1)),
            unblocked: AtomicU64::new(NEVER + 1),
        }
    }

    fn turn(&self, fifo: usize) -> Turn {
        Turn(self.owners[fifo].turn.load(SeqCst))
    }

    fn change(&self, fifo: usize, from: Turn, to: Turn) -> bool {
        let turn = &self.owners[fifo].turn;
        turn.compare_exchange(from.0, to.0, SeqCst, SeqCst).is_ok()
    }

    fn line(&self, name: LineName) -> &Line {
        &self.lines[name as usize]
    }

    /// The version of the capacity.
    pub(super) fn version(&self) -> u64 {
        self.version.0.load(SeqCst)
    }

    /// Capacity was given back.
    pub(super) fn capacity_changed(&self) {
        self.version.0.fetch_add(1, SeqCst);
        fence_of_model();
    }

    /// Prepares a FIFO for a new owner. A place in line that the last one left behind is kept, with no more tokens than the new weight.
    pub(super) fn adopt(&self, fifo: usize, weight: u32) {
        let weight = weight.clamp(1, Turn::MOST_LEFT);
        if self.weight(fifo) != weight {
            self.owners[fifo].weight.store(weight, SeqCst);
        }
        if self.blocked_at(fifo) != NEVER {
            self.owners[fifo].blocked_at.store(NEVER, SeqCst);
        }
        loop {
            let turn = self.turn(fifo);
            if turn.left() <= weight || self.change(fifo, turn, turn.with_left(weight)) {
                return;
            }
        }
    }

    fn weight(&self, fifo: usize) -> u32 {
        self.owners[fifo].weight.load(SeqCst)
    }

    /// Sees to it that a FIFO to which work was just added stands in line.
    pub(super) fn start(&self, fifo: usize) {
        fence_of_model();
        loop {
            let turn = self.turn(fifo);
            match turn.stand() {
                Stand::Idle => {
                    let new = turn.entering(LineName::Ready, self.weight(fifo));
                    if self.change(fifo, turn, new) {
                        self.link(fifo, new, LineName::Ready);
                        return;
                    }
                }
                Stand::EnteringReady => return self.link(fifo, turn, LineName::Ready),
                Stand::Ready => return,
                Stand::EnteringBlocked => return self.finish(fifo, turn),
                // The place of an earlier owner, whose work was cancelled: what is new has not been refused.
                Stand::Blocked if self.blocked_at(fifo) == NEVER => return self.unblock_all(),
                Stand::Blocked => return,
            }
        }
    }

    fn blocked_at(&self, fifo: usize) -> u64 {
        self.owners[fifo].blocked_at.load(SeqCst)
    }

    /// Links a turn that enters a line, unless another does.
    fn link(&self, fifo: usize, turn: Turn, name: LineName) {
        let line = self.line(name);
        let node = 3 * fifo + turn.node(name) as usize;
        line.prepare(node, turn.number());
        loop {
            let tail = line.tail();
            let last = line.node(tail.node());
            if line.tail() != tail {
                continue;
            }
            if !last.is_none() {
                self.advance(name, tail, last);
                continue;
            }
            // Read after the tail: whoever moves the tail past a node says first that its turn has entered. So if this turn has not, its
            // node can only be behind this tail, where the change below then fails.
            let now = self.turn(fifo);
            if now.number() != turn.number() || now.stand() != name.entering() {
                return;
            }
            let link = last.to(node);
            let word = &line.nodes[tail.node()];
            if word.compare_exchange(last.0, link.0, SeqCst, SeqCst).is_ok() {
                return self.advance(name, tail, link);
            }
        }
    }

    /// Moves the end of a line on to the node behind it, after saying that its turn has entered.
    fn advance(&self, name: LineName, tail: Place, last: Place) {
        let line = self.line(name);
        let number = line.node(last.node()).tag();
        if line.tail() != tail {
            return;
        }
        // The tail has not passed the node, so the number was that of its present use.
        self.entered(last.node() / 3, number, name);
        let on = tail.onward(last.node());
        let _moved = line.tail.0.compare_exchange(tail.0, on.0, SeqCst, SeqCst);
    }

    /// Says that the turn with this number stands in the line that it entered.
    fn entered(&self, fifo: usize, number: u64, name: LineName) {
        loop {
            let turn = self.turn(fifo);
            if turn.number() != number || turn.stand() != name.entering() {
                return;
            }
            if self.change(fifo, turn, turn.with_stand(name.entered())) {
                return;
            }
        }
    }

    /// The first place in a line.
    fn first(&self, name: LineName) -> Option<First> {
        let line = self.line(name);
        loop {
            let head = line.head();
            let tail = line.tail();
            let place = line.node(head.node());
            if line.head() != head {
                continue;
            }
            if place.is_none() {
                return None;
            }
            if head.node() == tail.node() {
                self.advance(name, tail, place);
                continue;
            }
            let node = place.node();
            let (fifo, number) = (node / 3, line.node(node).tag());
            let turn = self.turn(fifo);
            if line.head() == head {
                return Some(First {
                    head,
                    node,
                    fifo,
                    number,
                    turn,
                });
            }
        }
    }

    /// The FIFO whose turn it is, with the turn, and what `work` found in it. Ended turns are passed, blocked ones moved aside.
    pub(super) fn next<W>(&self, work: impl Fn(usize) -> Option<W>) -> Option<(usize, Turn, W)> {
        let line = self.line(LineName::Ready);
        loop {
            let first = self.first(LineName::Ready)?;
            let (fifo, turn) = (first.fifo, first.turn);
            if turn.number() != first.number {
                self.finish(fifo, turn);
                line.pass(&first);
                continue;
            }
            match turn.stand() {
                Stand::EnteringReady => self.entered(fifo, first.number, LineName::Ready),
                Stand::Ready => match work(fifo) {
                    None => self.end(fifo, turn, || work(fifo).is_some()),
                    Some(_) if turn.left() == 0 => self.renew(fifo, turn),
                    // Compared with the version of this moment: a turn refused at an earlier one is not moved to and fro.
                    Some(_) if self.blocked_at(fifo) == self.version() => self.block(fifo, turn),
                    Some(work) => return Some((fifo, turn, work)),
                },
                Stand::Idle | Stand::EnteringBlocked | Stand::Blocked => line.pass(&first),
            }
        }
    }

    /// Links a turn that is on the way into a line.
    fn finish(&self, fifo: usize, turn: Turn) {
        match turn.stand() {
            Stand::EnteringReady => self.link(fifo, turn, LineName::Ready),
            Stand::EnteringBlocked => {
                self.link(fifo, turn, LineName::Blocked);
                fence_of_model();
                // Whoever changed either meanwhile may have found it in the ready line still.
                if self.version() != self.blocked_at(fifo) {
                    self.unblock_all();
                }
            }
            Stand::Idle | Stand::Ready | Stand::Blocked => {}
        }
    }

    /// Ends the turn, first in line, of a FIFO without work.
    fn end(&self, fifo: usize, turn: Turn, has_work: impl Fn() -> bool) {
        if self.change(fifo, turn, turn.with_stand(Stand::Idle)) {
            fence_of_model();
            // Whoever added work meanwhile may have found it in line still.
            if has_work() {
                self.start(fifo);
            }
        }
    }

    /// Sends a FIFO whose turn, first in line, has no tokens left, to the end of the line with its next turn.
    fn renew(&self, fifo: usize, turn: Turn) {
        let new = turn.entering(LineName::Ready, self.weight(fifo));
        if self.change(fifo, turn, new) {
            self.link(fifo, new, LineName::Ready);
        }
    }

    /// Moves a blocked FIFO, first in line, aside.
    fn block(&self, fifo: usize, turn: Turn) {
        let new = turn.entering(LineName::Blocked, turn.left());
        if self.change(fifo, turn, new) {
            self.finish(fifo, new);
        }
    }

    /// Moves those back who were blocked at an earlier version of the capacity.
    pub(super) fn unblock(&self, version: u64) {
        if self.unblocked.load(SeqCst) != version {
            self.unblock_all();
            self.unblocked.fetch_max(version, SeqCst);
        }
    }

    /// Moves all who stand in the line of the blocked now to the end of the ready line.
    fn unblock_all(&self) {
        let line = self.line(LineName::Blocked);
        let mut end = None;
        while let Some(first) = self.first(LineName::Blocked) {
            // Each place that is passed moves the head's tag on by one, as each place that is taken moves the tail's.
            let end = *end.get_or_insert_with(|| line.tail().tag());
            if first.head.tag() == end || is_later(first.head.tag(), end) {
                return;
            }
            let (fifo, turn) = (first.fifo, first.turn);
            if turn.number() != first.number {
                self.finish(fifo, turn);
                line.pass(&first);
                continue;
            }
            match turn.stand() {
                Stand::EnteringBlocked => self.entered(fifo, first.number, LineName::Blocked),
                Stand::Blocked => {
                    let new = turn.entering(LineName::Ready, turn.left());
                    if self.change(fifo, turn, new) {
                        self.link(fifo, new, LineName::Ready);
                    }
                }
                Stand::Idle | Stand::EnteringReady | Stand::Ready => line.pass(&first),
            }
        }
    }

    /// Takes one token of the turn that [`next`](Self::next) found; whether it was still there.
    pub(super) fn spend(&self, fifo: usize, turn: Turn) -> bool {
        self.change(fifo, turn, turn.with_left(turn.left() - 1))
    }

    /// Notes that an offer of this FIFO was refused at a version of the capacity, as long as the entry is being offered.
    pub(super) fn refuse(&self, fifo: usize, version: u64) {
        self.owners[fifo].blocked_at.store(version, SeqCst);
    }

    /// Gives back a token that was taken in vain, when the entry is queued again.
    pub(super) fn refund(&self, fifo: usize) {
        fence_of_model();
        loop {
            let turn = self.turn(fifo);
            if turn.stand() == Stand::Idle {
                return self.start(fifo);
            }
            let left = turn.left() + 1;
            if left > Turn::MOST_LEFT || self.change(fifo, turn, turn.with_left(left)) {
                return;
            }
        }
    }

    /// After an entry was served with a token of this turn: ends it if that was the last. The owner's next turn follows if there is more work.
    pub(super) fn settle(&self, fifo: usize, served: Turn, more: bool, has_work: impl Fn() -> bool) {
        let turn = self.turn(fifo);
        if turn.number() != served.number() || turn.stand() != Stand::Ready {
            return;
        }
        // It is the first in line still: where it was when it gave the token.
        match (more, turn.left()) {
            (false, _) => self.end(fifo, turn, has_work),
            (true, 0) => self.renew(fifo, turn),
            (true, _) => {}
        }
    }

    /// Whether any turn stands in the ready line, or would after a change of capacity that nobody has looked at.
    pub(super) fn may_be_ready(&self) -> bool {
        let line = self.line(LineName::Ready);
        line.head().tag() != line.tail().tag() || self.unblocked.load(SeqCst) != self.version()
    }

    /// The tokens that turns hold: of each FIFO in line as many as are left, or come with its next turn, and as it has entries.
    pub(super) fn tokens(&self, living: impl Fn(usize) -> u64) -> u64 {
        let held = |fifo| {
            let turn = self.turn(fifo);
            let left = match turn.left() {
                0 => self.weight(fifo),
                left => left,
            };
            let stands = turn.stand() != Stand::Idle;
            if stands { living(fifo).min(u64::from(left)) } else { 0 }
        };
        (0..self.owners.len()).map(held).sum()
    }
}
