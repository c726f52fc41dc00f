//! The packed 64-bit words that the queue changes by compare-and-swap: an index or a few small numbers, and a number that grows with
//! every change, so that a word never comes back to an earlier value while somebody may still compare with it.
//!
//! It must not know what the words mean together.

/// Bits `low .. low + width` of a word.
const fn get(word: u64, low: u32, width: u32) -> u64 {
    (word >> low) & ((1 << width) - 1)
}

/// A number in bits `low .. low + width`; what does not fit is cut off, as growing numbers must.
const fn put(value: u64, low: u32, width: u32) -> u64 {
    (value & ((1 << width) - 1)) << low
}

const INDEX: u32 = 27;
const VERSION: u32 = 36;
const TAG: u32 = 37;
const FIFO: u32 = 24;
const LEFT: u32 = 20;
const EPOCH: u32 = 40;

/// The index that stands for none.
pub(super) const NONE: usize = (1 << INDEX) - 1;

/// A link from one entry to the next, or the end of a list: index, whether its holder is being unlinked, and a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link(pub(super) u64);

impl Link {
    pub(super) const fn new(version: u64, index: usize) -> Self {
        Self(put(index as u64, 0, INDEX) | put(version, INDEX + 1, VERSION))
    }

    pub(super) const fn index(self) -> usize {
        get(self.0, 0, INDEX) as usize
    }

    pub(super) const fn is_none(self) -> bool {
        self.index() == NONE
    }

    /// Whether the entry that holds this link is being unlinked: such a link never changes again.
    pub(super) const fn is_frozen(self) -> bool {
        get(self.0, INDEX, 1) == 1
    }

    pub(super) const fn frozen(self) -> Self {
        Self(self.to(self.index()).0 | put(1, INDEX, 1))
    }

    /// The same link, changed to point to `index`.
    pub(super) const fn to(self, index: usize) -> Self {
        Self::new(get(self.0, INDEX + 1, VERSION) + 1, index)
    }
}

/// What may be done with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing: it is free, or waits to be unlinked.
    Dead,
    /// Whoever changes it to `Offered` or `Leaving` has it.
    Queued,
    /// One consumer asks whether there is capacity for it.
    Offered,
    /// As `Offered`, and somebody tried to cancel it meanwhile.
    OfferedAgain,
    /// Its work is being taken out.
    Leaving,
}

/// The state of an entry: its phase, the FIFO it is in, and a tag of its own for each use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State(pub(super) u64);

impl State {
    pub(super) const fn new(tag: u64, phase: Phase, fifo: usize) -> Self {
        Self(put(fifo as u64, 0, FIFO) | put(phase as u64, FIFO, 3) | put(tag, FIFO + 3, TAG))
    }

    pub(super) const fn tag(self) -> u64 {
        get(self.0, FIFO + 3, TAG)
    }

    pub(super) const fn fifo(self) -> usize {
        get(self.0, 0, FIFO) as usize
    }

    pub(super) const fn phase(self) -> Phase {
        match get(self.0, FIFO, 3) {
            1 => Phase::Queued,
            2 => Phase::Offered,
            3 => Phase::OfferedAgain,
            4 => Phase::Leaving,
            _ => Phase::Dead,
        }
    }

    pub(super) const fn with(self, phase: Phase) -> Self {
        Self::new(self.tag(), phase, self.fifo())
    }
}

/// How many entries belong to a FIFO, and which of the FIFOs that used its place it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Members(pub(super) u64);

impl Members {
    /// The count of a FIFO that no entry may join again.
    pub(super) const RETIRED: u64 = (1 << FIFO) - 1;

    pub(super) const fn new(epoch: u64, count: u64) -> Self {
        Self(put(count, 0, FIFO) | put(epoch, FIFO, EPOCH))
    }

    pub(super) const fn count(self) -> u64 {
        get(self.0, 0, FIFO)
    }

    pub(super) const fn epoch(self) -> u64 {
        get(self.0, FIFO, EPOCH)
    }
}

/// Names one FIFO of one owner: its place and its epoch, in the layout of [`Members`].
pub(super) type FifoName = Members;

/// Where an owner's turn stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    /// In no line.
    Idle,
    /// On the way into the ready line.
    EnteringReady,
    /// In the ready line.
    Ready,
    /// On the way into the line of the blocked.
    EnteringBlocked,
    /// In the line of the blocked.
    Blocked,
}

/// The state of an owner's turn: where it stands, how many tokens of its weight are left, which of its nodes it uses in each line,
/// and the number of the place in line: one more each time it enters one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn(pub(super) u64);

impl Turn {
    pub(super) const MOST_LEFT: u32 = (1 << LEFT) - 1;

    const fn new(number: u64, nodes: [u64; 2], stand: Stand, left: u32) -> Self {
        let nodes = put(nodes[0], LEFT + 3, 2) | put(nodes[1], LEFT + 5, 2);
        Self(put(left as u64, 0, LEFT) | put(stand as u64, LEFT, 3) | nodes | put(number, LEFT + 7, TAG))
    }

    pub(super) const fn left(self) -> u32 {
        get(self.0, 0, LEFT) as u32
    }

    pub(super) const fn stand(self) -> Stand {
        match get(self.0, LEFT, 3) {
            1 => Stand::EnteringReady,
            2 => Stand::Ready,
            3 => Stand::EnteringBlocked,
            4 => Stand::Blocked,
            _ => Stand::Idle,
        }
    }

    pub(super) const fn number(self) -> u64 {
        get(self.0, LEFT + 7, TAG)
    }

    /// The node, 0 to 2, of the line this turn stands in, enters, or stood in last.
    pub(super) const fn node(self, line: LineName) -> u64 {
        get(self.0, LEFT + 3 + 2 * line as u32, 2)
    }

    pub(super) const fn with_left(self, left: u32) -> Self {
        Self((self.0 & !put(u64::MAX, 0, LEFT)) | put(left as u64, 0, LEFT))
    }

    pub(super) const fn with_stand(self, stand: Stand) -> Self {
        Self((self.0 & !put(u64::MAX, LEFT, 3)) | put(stand as u64, LEFT, 3))
    }

    /// This turn on its way into a line, with its next number and node there.
    pub(super) const fn entering(self, line: LineName, left: u32) -> Self {
        let mut nodes = [self.node(LineName::Ready), self.node(LineName::Blocked)];
        nodes[line as usize] = (nodes[line as usize] + 1) % 3;
        Self::new(self.number() + 1, nodes, line.entering(), left)
    }
}

/// Which of the two lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineName {
    /// Of the owners that may be served.
    Ready,
    /// Of the owners for which there was no capacity.
    Blocked,
}

impl LineName {
    /// The stand of a turn on the way into this line.
    pub(super) const fn entering(self) -> Stand {
        match self {
            Self::Ready => Stand::EnteringReady,
            Self::Blocked => Stand::EnteringBlocked,
        }
    }

    /// The stand of a turn in this line.
    pub(super) const fn entered(self) -> Stand {
        match self {
            Self::Ready => Stand::Ready,
            Self::Blocked => Stand::Blocked,
        }
    }
}

/// A node of a line, or one of its ends: the index of a node, and a tag. In a node the tag is the number of the turn that uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(pub(super) u64);

impl Place {
    pub(super) const fn new(tag: u64, node: usize) -> Self {
        Self(put(node as u64, 0, INDEX) | put(tag, INDEX, TAG))
    }

    pub(super) const fn node(self) -> usize {
        get(self.0, 0, INDEX) as usize
    }

    pub(super) const fn tag(self) -> u64 {
        get(self.0, INDEX, TAG)
    }

    pub(super) const fn is_none(self) -> bool {
        self.node() == NONE
    }

    /// The same tag, with another node.
    pub(super) const fn to(self, node: usize) -> Self {
        Self::new(self.tag(), node)
    }

    /// The next tag, with another node.
    pub(super) const fn onward(self, node: usize) -> Self {
        Self::new(self.tag() + 1, node)
    }
}

/// Whether tag `a` is later than tag `b`, in a circle of tags.
pub(super) const fn is_later(a: u64, b: u64) -> bool {
    let ahead = get(a.wrapping_sub(b), 0, TAG);
    ahead != 0 && ahead < 1 << (TAG - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hold_what_was_put() {
        let link = Link::new(9, 77).to(78);
        assert_eq!((link.index(), link.is_frozen(), link.is_none()), (78, false, false));
        assert!(link.frozen().is_frozen() && link.frozen().index() == 78 && link.frozen() != link);
        assert!(Link::new(u64::MAX, NONE).to(NONE).is_none());

        for phase in [
            Phase::Dead,
            Phase::Queued,
            Phase::Offered,
            Phase::OfferedAgain,
            Phase::Leaving,
        ] {
            let state = State::new(5, Phase::Dead, 1 << 20).with(phase);
            assert_eq!((state.tag(), state.phase(), state.fifo()), (5, phase, 1 << 20));
        }

        let mut turn = Turn(0);
        assert_eq!(turn.stand(), Stand::Idle);
        for number in 1..=4 {
            turn = turn
                .entering(LineName::Ready, 7)
                .with_stand(Stand::Ready)
                .entering(LineName::Blocked, 3);
            assert_eq!((turn.number(), turn.left()), (2 * number, 3));
            assert_eq!(turn.stand(), Stand::EnteringBlocked);
            assert_eq!(turn.node(LineName::Ready), number % 3);
            assert_eq!(turn.node(LineName::Blocked), number % 3);
        }
        let most = turn.with_left(Turn::MOST_LEFT);
        assert_eq!(
            (most.left(), most.number(), most.stand()),
            (1_048_575, 8, Stand::EnteringBlocked)
        );
    }

    #[test]
    fn tags_go_round() {
        let last = (1 << TAG) - 1;
        assert_eq!(Place::new(last, 3).onward(4), Place::new(0, 4));
        assert!(is_later(0, last) && !is_later(last, 0) && !is_later(4, 4) && is_later(5, 4));
    }
}
