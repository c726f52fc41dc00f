//! When a sampling group or a publishing timer is due: absolute deadlines one period apart, so that late wake-ups do not add up.

use std::time::Duration;

/// A lag beyond which missed samples are given up, if four periods are shorter.
const SHORTEST_GIVE_UP: Duration = Duration::from_millis(500);
/// The shortest period: one tick of the monotonic time.
const TICK: Duration = Duration::from_nanos(1);

/// Absolute deadlines, one period apart.
///
/// A wake-up that comes late shortens the wait for the next one. Deadlines that were missed are made up: each call of [`Schedule::take`]
/// takes one, and the next is then already due. When the lag exceeds max(4 periods, 500 ms) the schedule restarts from now instead.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    period: Duration,
    next: Duration,
    restarts: u64,
}

impl Schedule {
    /// The first deadline is one period from `now`.
    pub(crate) fn new(now: Duration, period: Duration) -> Self {
        let period = period.max(TICK);
        Self {
            period,
            next: now.saturating_add(period),
            restarts: 0,
        }
    }

    /// As [`Schedule::new`], but all deadlines lie on a grid of `grid` (at most the period) that everybody has in common, so that those of several
    /// schedules are met by one wake-up. The first is up to one grid step earlier.
    pub(crate) fn aligned(now: Duration, period: Duration, grid: Duration) -> Self {
        let mut schedule = Self::new(now, period);
        let grid = grid.min(schedule.period).as_nanos().max(1);
        let beyond = schedule.next.as_nanos() % grid;
        let beyond = u64::try_from(beyond).map_or(Duration::ZERO, Duration::from_nanos);
        schedule.next = schedule.next.saturating_sub(beyond);
        schedule
    }

    pub(crate) fn period(&self) -> Duration {
        self.period
    }

    /// The next deadline.
    pub(crate) fn next(&self) -> Duration {
        self.next
    }

    /// How often the schedule was too late to make up for it.
    pub(crate) fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Takes one deadline if it has passed.
    pub(crate) fn take(&mut self, now: Duration) -> bool {
        if now < self.next {
            return false;
        }
        let lag = now.saturating_sub(self.next);
        let give_up = self.period.saturating_mul(4).max(SHORTEST_GIVE_UP);
        if lag > give_up {
            self.next = now.saturating_add(self.period);
            self.restarts = self.restarts.saturating_add(1);
        } else {
            self.next = self.next.saturating_add(self.period);
        }
        true
    }

    /// Nothing was to be done for a while: deadlines that passed meanwhile were none, and the next is on the same grid. True if there were any.
    pub(crate) fn resume(&mut self, now: Duration) -> bool {
        self.take_all(now)
    }

    /// As [`Schedule::resume`] for what is done as soon as there is a reason, but not more often than once in a period.
    pub(crate) fn resume_at_once(&mut self, now: Duration) -> bool {
        let slept = now >= self.next;
        self.next = self.next.max(now);
        slept
    }

    /// Takes all deadlines that have passed as one, and keeps the phase: what a publishing timer does, which has nothing to make up.
    pub(crate) fn take_all(&mut self, now: Duration) -> bool {
        if now < self.next {
            return false;
        }
        let lag = now.saturating_sub(self.next).as_nanos();
        let into_period = lag % self.period.as_nanos().max(1);
        let into_period = u64::try_from(into_period).map_or(Duration::ZERO, Duration::from_nanos);
        self.next = now.saturating_sub(into_period).saturating_add(self.period);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Runs a schedule for a while on a clock whose sleeps overshoot, and counts the samples.
    fn samples(period: Duration, span: Duration, overshoot: Duration) -> (u64, u64) {
        let mut now = Duration::ZERO;
        let mut schedule = Schedule::new(now, period);
        let mut count = 0;
        while now < span {
            if schedule.next() > now {
                now = schedule.next() + overshoot;
            }
            while schedule.take(now) {
                count += 1;
            }
        }
        (count, schedule.restarts())
    }

    #[test]
    fn overshooting_clocks_keep_the_rate() {
        // Fixed waits would give 390 samples on the first clock and 909 on the second.
        for overshoot in [Duration::from_micros(15_600), ms(1)] {
            let (count, restarts) = samples(ms(10), ms(10_000), overshoot);
            assert!((999..=1002).contains(&count), "{count} samples with {overshoot:?}");
            assert_eq!(restarts, 0);
        }
    }

    #[test]
    fn a_pause_of_200_ms_is_made_up() {
        let mut schedule = Schedule::new(ms(0), ms(10));
        let mut count = 0;
        for now in (0..=1000).filter(|now| !(300..500).contains(now)) {
            while schedule.take(ms(now)) {
                count += 1;
            }
        }
        assert_eq!((count, schedule.restarts()), (100, 0));
    }

    #[test]
    fn a_stall_of_3_s_restarts_once() {
        let mut schedule = Schedule::new(ms(0), ms(10));
        let mut count = 0;
        for now in (0..=5000).filter(|now| !(1000..4000).contains(now)) {
            while schedule.take(ms(now)) {
                count += 1;
            }
        }
        assert_eq!(schedule.restarts(), 1);
        assert!((198..=202).contains(&count), "{count}");
    }

    #[test]
    fn sampling_slower_than_the_interval_does_not_run_away() {
        let mut schedule = Schedule::new(ms(0), ms(10));
        let mut now = ms(0);
        let mut count = 0;
        // Every pass takes 25 ms of a 10 ms interval.
        while now < ms(10_000) {
            assert!(schedule.take(now.max(schedule.next())));
            now = now.max(schedule.next()) + ms(25);
            count += 1;
        }
        assert!(count <= 401, "{count}");
        assert!(schedule.next() >= now - ms(600), "the backlog stays bounded");
        assert!(schedule.restarts() > 0);
    }

    #[test]
    fn an_hour_and_the_longest_time_do_not_overflow() {
        let hour = Duration::from_secs(3600);
        let mut schedule = Schedule::new(ms(5), hour);
        assert!(!schedule.take(hour));
        assert!(schedule.take(hour + ms(5)));
        assert_eq!(schedule.next(), hour * 2 + ms(5));
        let mut longest = Schedule::new(Duration::MAX, Duration::MAX);
        assert!(longest.take(Duration::MAX));
        assert_eq!(longest.next(), Duration::MAX);
        assert_eq!(Schedule::new(ms(0), Duration::ZERO).period(), TICK);
    }

    #[test]
    fn what_slept_goes_on_where_it_would_be() {
        let mut schedule = Schedule::new(ms(0), ms(10));
        assert!(!schedule.resume(ms(7)));
        assert_eq!(schedule.next(), ms(10));
        assert!(schedule.resume(ms(3_001)));
        assert_eq!((schedule.next(), schedule.restarts()), (ms(3_010), 0));
        let mut schedule = Schedule::new(ms(0), ms(10));
        assert!(!schedule.resume_at_once(ms(7)));
        assert_eq!(schedule.next(), ms(10), "not before a period has passed");
        assert!(schedule.resume_at_once(ms(3_001)));
        assert_eq!(schedule.next(), ms(3_001));
        assert!(schedule.take(ms(3_001)));
        assert_eq!((schedule.next(), schedule.restarts()), (ms(3_011), 0));
    }

    #[test]
    fn schedules_on_a_grid_are_due_together() {
        let first = Schedule::aligned(ms(1_003), ms(50), ms(10));
        let second = Schedule::aligned(ms(1_009), ms(10), ms(100));
        assert_eq!((first.next(), second.next()), (ms(1_050), ms(1_010)));
        assert_eq!(
            Schedule::aligned(ms(1_010), ms(10), ms(10)).next(),
            ms(1_020),
            "never now"
        );
        assert_eq!(Schedule::aligned(ms(7), Duration::MAX, ms(10)).period(), Duration::MAX);
    }

    #[test]
    fn publishing_takes_missed_deadlines_as_one_and_keeps_the_phase() {
        let mut schedule = Schedule::new(ms(3), ms(10));
        assert!(schedule.take_all(ms(48)));
        assert_eq!(schedule.next(), ms(53));
        assert!(!schedule.take_all(ms(52)));
    }
}
