//! DateTime: 100 ns ticks since 1601-01-01 (UTC), clamped at both ends (Part 6, 5.2.2.5).

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::codec::{BinaryDecode, BinaryEncode, DecodeError, Decoder, Encoder};

/// An instant in UTC with a resolution of 100 ns.
///
/// Instants at or before 1601-01-01 are [`DateTime::MIN`] (0 on the wire), those at or after 9999-12-31 23:59:59 are
/// [`DateTime::MAX`] (the largest Int64 on the wire). All arithmetic saturates at these; nothing wraps.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime(i64);

/// Ticks per second.
const TICKS: i64 = 10_000_000;
/// Seconds from 1601-01-01 to 1970-01-01.
const UNIX_SECONDS: i64 = 11_644_473_600;
/// 9999-12-31 23:59:59 in ticks.
const LAST: i64 = 2_650_467_743_990_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

impl DateTime {
    /// 1601-01-01 or before; also "no time".
    pub const MIN: Self = Self(0);
    /// 9999-12-31 23:59:59 or after.
    pub const MAX: Self = Self(i64::MAX);

    /// From ticks of 100 ns since 1601-01-01, clamped.
    #[inline]
    #[must_use]
    pub const fn from_ticks(ticks: i64) -> Self {
        if ticks <= 0 {
            Self::MIN
        } else if ticks >= LAST {
            Self::MAX
        } else {
            Self(ticks)
        }
    }

    /// Ticks of 100 ns since 1601-01-01: 0 for [`DateTime::MIN`], the largest `i64` for [`DateTime::MAX`].
    #[inline]
    #[must_use]
    pub const fn ticks(self) -> i64 {
        self.0
    }

    /// Whether this is 0, "no time".
    #[inline]
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// From nanoseconds since 1970-01-01, rounded down to 100 ns and clamped.
    #[must_use]
    pub fn from_unix_nanos(nanos: i128) -> Self {
        let ticks = nanos
            .div_euclid(100)
            .saturating_add(i128::from(UNIX_SECONDS) * i128::from(TICKS));
        Self::from_ticks(i64::try_from(ticks).unwrap_or(if ticks < 0 { 0 } else { i64::MAX }))
    }

    /// Nanoseconds since 1970-01-01; [`DateTime::MAX`] is the last instant that can be written, 9999-12-31 23:59:59.
    #[must_use]
    pub fn unix_nanos(self) -> i128 {
        let unix = self.0.min(LAST) - UNIX_SECONDS * TICKS;
        i128::from(unix) * 100
    }

    /// From the time of the system, clamped.
    #[must_use]
    pub fn from_system_time(time: SystemTime) -> Self {
        let nanos = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => i128::try_from(after.as_nanos()).unwrap_or(i128::MAX),
            Err(before) => i128::try_from(before.duration().as_nanos()).map_or(i128::MIN, |nanos| -nanos),
        };
        Self::from_unix_nanos(nanos)
    }

    /// This instant and `duration` later; [`DateTime::MAX`] at the end of time, and [`DateTime::MIN`] moves like any other instant.
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        let ticks = i64::try_from(duration.as_nanos() / 100).unwrap_or(i64::MAX);
        Self::from_ticks(self.0.saturating_add(ticks))
    }

    /// This instant and `duration` earlier; [`DateTime::MIN`] at the start of time, and [`DateTime::MAX`] stays.
    #[must_use]
    pub fn saturating_sub(self, duration: Duration) -> Self {
        if self == Self::MAX {
            return self;
        }
        let ticks = i64::try_from(duration.as_nanos() / 100).unwrap_or(i64::MAX);
        Self::from_ticks(self.0.saturating_sub(ticks))
    }

    /// Time from `earlier` until this instant, zero if `earlier` is later.
    #[must_use]
    pub fn saturating_since(self, earlier: Self) -> Duration {
        let ticks = u64::try_from(self.0.min(LAST).saturating_sub(earlier.0.min(LAST))).unwrap_or(0);
        Duration::from_nanos(0) + Duration::from_micros(ticks / 10) + Duration::from_nanos(ticks % 10 * 100)
    }

    /// Year, month, day, by the Gregorian calendar.
    fn date(days_since_1601: i64) -> (i64, i64, i64) {
        // Years that start in March put the leap day last; 1600-03-01 is 306 days before 1601-01-01.
        let days = days_since_1601 + 306;
        let era = days.div_euclid(146_097);
        let day_of_era = days.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 {
            shifted_month + 3
        } else {
            shifted_month - 9
        };
        let year = 1_600 + era * 400 + year_of_era + i64::from(month <= 2);
        (year, month, day)
    }
}

/// ISO 8601 in UTC, with as many fractional digits as needed: `2026-11-30T14:20:00Z`.
impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ticks = self.0.min(LAST);
        let seconds = ticks / TICKS;
        let fraction = ticks % TICKS;
        let (year, month, day) = Self::date(seconds / SECONDS_PER_DAY);
        let of_day = seconds % SECONDS_PER_DAY;
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}",
            of_day / 3_600,
            of_day / 60 % 60,
            of_day % 60
        )?;
        if fraction != 0 {
            let digits = format!("{fraction:07}");
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

impl fmt::Debug for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<SystemTime> for DateTime {
    fn from(time: SystemTime) -> Self {
        Self::from_system_time(time)
    }
}

impl BinaryEncode for DateTime {
    #[inline]
    fn encode(&self, e: &mut Encoder<'_>) {
        e.i64(self.0);
    }
}

/// Any Int64 is accepted and clamped.
impl BinaryDecode for DateTime {
    const MIN_SIZE: usize = 8;

    #[inline]
    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        d.i64().map(Self::from_ticks)
    }
}
