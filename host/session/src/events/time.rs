//! Times as text, for a Cast from String to DateTime: the dateTime of XML Schema, `2026-01-31T12:00:00.25Z`.

use backplane_types::DateTime;

/// Days from 1601-01-01 to 1970-01-01.
const UNIX_DAYS: i64 = 134_774;
const TICKS_PER_SECOND: i64 = 10_000_000;

/// Reads a time; without an offset it is UTC. `None` when it is none.
pub(super) fn parse(text: &str) -> Option<DateTime> {
    let text = text.trim();
    let (date, rest) = text.split_once('T')?;
    let (time, offset) = split_offset(rest)?;
    let mut date = date.split('-');
    let (year, month, day) = (
        digits(date.next()?, 4)?,
        digits(date.next()?, 2)?,
        digits(date.next()?, 2)?,
    );
    let mut time = time.split(':');
    let (hour, minute) = (digits(time.next()?, 2)?, digits(time.next()?, 2)?);
    let (second, ticks) = seconds(time.next()?)?;
    if date.next().is_some() || time.next().is_some() {
        return None;
    }
    if !(1..=12).contains(&month) || day < 1 || day > days_in(year, month) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = days_from_civil(year, month, day).checked_add(UNIX_DAYS)?;
    let minutes = (days * 24 + hour) * 60 + minute - offset;
    let total = (minutes * 60 + second)
        .checked_mul(TICKS_PER_SECOND)?
        .checked_add(ticks)?;
    (total >= 0).then(|| DateTime::from_ticks(total))
}

fn split_offset(text: &str) -> Option<(&str, i64)> {
    if let Some(time) = text.strip_suffix('Z') {
        return Some((time, 0));
    }
    let Some(place) = text.rfind(['+', '-']) else {
        return Some((text, 0));
    };
    let (time, offset) = text.split_at_checked(place)?;
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    let minutes = digits(hours, 2)? * 60 + digits(minutes, 2)?;
    Some((time, if offset.starts_with('-') { -minutes } else { minutes }))
}

fn seconds(text: &str) -> Option<(i64, i64)> {
    let Some((whole, part)) = text.split_once('.') else {
        return Some((digits(text, 2)?, 0));
    };
    if part.is_empty() || !part.bytes().all(|c| c.is_ascii_digit()) {
        return None;
    }
    // A tick is 100 ns; what is finer is cut off.
    let ticks = part
        .bytes()
        .chain(std::iter::repeat(b'0'))
        .take(7)
        .fold(0, |ticks, digit| ticks * 10 + i64::from(digit - b'0'));
    Some((digits(whole, 2)?, ticks))
}

fn digits(text: &str, count: usize) -> Option<i64> {
    (text.len() == count && text.bytes().all(|c| c.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the Gregorian calendar, years counted from March so that the leap day is the last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for text in [
            "1601-01-01T00:00:00Z",
            "2000-02-29T23:59:59.1234567Z",
            "2026-11-30T21:42:10.25Z",
            "9999-12-31T23:59:59Z",
        ] {
            let time = parse(text).unwrap();
            let shown = time.to_string();
            assert_eq!(parse(&shown), Some(time), "{text} {shown}");
            assert!(shown.starts_with(text.trim_end_matches('Z')), "{text} {shown}");
        }
        assert_eq!(parse("2026-01-01T01:00:00+01:00"), parse("2026-01-01T00:00:00Z"));
        assert_eq!(parse("2026-01-01T00:00:00-00:30"), parse("2026-01-01T00:30:00"));
        for text in [
            "",
            "2026",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "1600-01-01T00:00:00Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+1",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
