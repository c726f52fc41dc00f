//! Sequence numbers of both directions (Part 6, 6.7.2.4, LegacySequenceNumbers, which all RSA policies and None use).
//!
//! Owns the two counters and nothing else. OpenSecureChannel, service and CloseSecureChannel chunks share one counter per direction, and a
//! new token does not reset it.

/// A number may be followed by a wrap only beyond this one.
const WRAP_ABOVE: u32 = 4_294_966_271;
/// The first number after a wrap is below this one.
const WRAP_BELOW: u32 = 1_024;

/// Numbers of what this end sends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outgoing {
    last: u32,
}

impl Outgoing {
    /// The next number. Starts at 1 and wraps to 1.
    pub(crate) fn next(&mut self) -> u32 {
        self.last = if self.last > WRAP_ABOVE {
            1
        } else {
            self.last.saturating_add(1)
        };
        self.last
    }

    #[cfg(test)]
    pub(crate) fn set_last(&mut self, last: u32) {
        self.last = last;
    }

    #[cfg(test)]
    pub(crate) fn last(self) -> u32 {
        self.last
    }
}

/// Numbers of what the peer sends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Incoming {
    last: Option<u32>,
}

impl Incoming {
    /// Takes the number of the next chunk; false if it is not the one that follows. The first may be any.
    pub(crate) fn accept(&mut self, number: u32) -> bool {
        let good = match self.last {
            None => true,
            Some(last) => last.checked_add(1) == Some(number) || (last > WRAP_ABOVE && number < WRAP_BELOW),
        };
        if good {
            self.last = Some(number);
        }
        good
    }

    /// Takes the number of the first chunk on a new connection: chunks sent on the old one may be lost, so there may be a gap, but no
    /// number comes again.
    pub(crate) fn accept_behind_gap(&mut self, number: u32) -> bool {
        let good = self.is_behind(number);
        if good {
            self.last = Some(number);
        }
        good
    }

    /// Whether a chunk with this number was sent later than the last one taken.
    pub(crate) fn is_behind(&self, number: u32) -> bool {
        self.last
            .is_none_or(|last| number > last || (last > WRAP_ABOVE && number < WRAP_BELOW))
    }

    #[cfg(test)]
    pub(crate) fn set_last(&mut self, last: u32) {
        self.last = Some(last);
    }

    #[cfg(test)]
    pub(crate) fn last(self) -> Option<u32> {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::{Incoming, Outgoing};

    #[test]
    fn the_first_number_may_be_any_and_the_next_is_one_more() {
        for first in [0, 1, 51, 4_294_966_000, u32::MAX] {
            let mut incoming = Incoming::default();
            assert!(incoming.accept(first));
            assert!(!incoming.accept(first), "{first} again");
        }
        let mut incoming = Incoming::default();
        assert!(incoming.accept(7));
        assert!(!incoming.accept(9));
        assert!(!incoming.accept(6));
        assert!(incoming.accept(8));
    }

    #[test]
    fn a_wrap_is_taken_only_above_the_border_and_only_to_below_1024() {
        let mut incoming = Incoming::default();
        incoming.set_last(4_294_966_271);
        assert!(!incoming.accept(1), "the border itself may not wrap");
        for last in [4_294_966_272, u32::MAX] {
            let mut incoming = Incoming::default();
            incoming.set_last(last);
            assert!(!incoming.accept(1_024));
            assert!(incoming.accept(1_023), "after {last}");
            assert!(incoming.accept(1_024), "then it counts on");
        }
        let mut incoming = Incoming::default();
        incoming.set_last(u32::MAX);
        assert!(incoming.accept(0));
    }

    #[test]
    fn a_new_connection_may_skip_numbers_but_repeats_none() {
        for (last, number, good) in [
            (7, 8, true),
            (7, 1_000, true),
            (7, 7, false),
            (7, 6, false),
            (7, 0, false),
            (4_294_966_271, 1, false),
            (4_294_966_272, 1, true),
            (4_294_966_272, 1_024, false),
            (u32::MAX, 1_023, true),
            (u32::MAX, u32::MAX, false),
        ] {
            let mut incoming = Incoming::default();
            incoming.set_last(last);
            assert_eq!(incoming.is_behind(number), good, "{number} behind {last}");
            assert_eq!(incoming.accept_behind_gap(number), good, "{number} behind {last}");
            assert!(incoming.accept(if good { number + 1 } else { last.wrapping_add(1) }));
        }
    }

    #[test]
    fn what_is_sent_satisfies_the_receiver_over_the_wrap() {
        let mut outgoing = Outgoing::default();
        assert_eq!(outgoing.next(), 1);
        outgoing.set_last(4_294_966_200);
        let mut incoming = Incoming::default();
        incoming.set_last(4_294_966_200);
        let mut wrapped = false;
        for _ in 0..200 {
            let number = outgoing.next();
            assert!(incoming.accept(number), "{number}");
            wrapped |= number == 1;
        }
        assert!(wrapped);
    }
}
