//! The text forms of values in XML that are not just numbers: times and octets (Part 6, 5.3.1). Knows no elements.

use backplane_types::DateTime;

/// `2021-03-04T05:06:07.89Z`, or with an offset from UTC.
pub(super) fn date_time(text: &str) -> Option<DateTime> {
    let (date, time) = text.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    if !(1..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (time, offset) = split_offset(time)?;
    let mut parts = time.splitn(3, ':');
    let hour: i64 = parts.next()?.parse().ok()?;
    let minute: i64 = parts.next()?.parse().ok()?;
    let (second, ticks) = seconds(parts.next().unwrap_or("0"))?;
    if hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days_from_epoch(year, month, day) * 86_400 + hour * 3_600 + (minute - offset) * 60 + second;
    Some(DateTime::from_ticks(
        seconds.checked_mul(10_000_000)?.checked_add(ticks)?,
    ))
}

/// The time without its zone, and the zone in minutes east of UTC.
fn split_offset(time: &str) -> Option<(&str, i64)> {
    if let Some(time) = time.strip_suffix('Z') {
        return Some((time, 0));
    }
    let Some(place) = time.rfind(['+', '-']) else {
        return Some((time, 0));
    };
    let (time, zone) = time.split_at_checked(place)?;
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let minutes = hours
        .parse::<i64>()
        .ok()?
        .checked_mul(60)?
        .checked_add(minutes.parse().ok()?)?;
    (minutes <= 14 * 60).then_some((time, sign * minutes))
}

/// Whole seconds and ticks of 100 ns.
fn seconds(text: &str) -> Option<(i64, i64)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut ticks = 0i64;
    for place in 0..7 {
        let digit = match fraction.as_bytes().get(place) {
            Some(digit) => i64::from(digit.checked_sub(b'0').filter(|digit| *digit <= 9)?),
            None => 0,
        };
        ticks = ticks * 10 + digit;
    }
    Some((whole.parse().ok()?, ticks))
}

/// Days from 1601-01-01 in the proleptic Gregorian calendar.
fn days_from_epoch(year: i64, month: i64, day: i64) -> i64 {
    // The year begins in March here, so that the leap day is its last one.
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let days = |year: i64, month: i64, day: i64| {
        year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (month * 153 + 2) / 5 + day - 1
    };
    days(year, month, day) - days(1600, 10, 1)
}

/// Base64, with white space anywhere.
pub(super) fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0u32);
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=') {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(value)) & 0xff_ffff;
        count += 1;
        if count == 4 {
            bytes.extend_from_slice(&bits.to_be_bytes()[1..]);
            (bits, count) = (0, 0);
        }
    }
    match count {
        0 => {}
        2 => bytes.push((bits >> 4 & 0xff) as u8),
        3 => bytes.extend_from_slice(&[(bits >> 10 & 0xff) as u8, (bits >> 2 & 0xff) as u8]),
        _ => return None,
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{base64, date_time};
    use backplane_types::DateTime;

    #[test]
    fn times() {
        assert_eq!(date_time("1601-01-01T00:00:00Z"), Some(DateTime::MIN));
        assert_eq!(date_time("1970-01-01T00:00:00Z"), Some(DateTime::from_unix_nanos(0)));
        let nanos = 1_709_210_096_789_000_000;
        assert_eq!(
            date_time("2024-02-29T12:34:56.789Z"),
            Some(DateTime::from_unix_nanos(nanos))
        );
        assert_eq!(
            date_time("2024-02-29T14:34:56.789+02:00"),
            Some(DateTime::from_unix_nanos(nanos))
        );
        for wrong in [
            "",
            "2024",
            "2024-13-01T00:00:00Z",
            "2024-01-01T00:00:0xZ",
            "x-01-01T00:00:00Z",
            "2024-01-01T00:00:00+é",
        ] {
            assert_eq!(date_time(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn octets() {
        assert_eq!(base64(" aGVs\nbG8= "), Some(b"hello".to_vec()));
        assert_eq!(base64("aGVsbA=="), Some(b"hell".to_vec()));
        assert_eq!(base64(""), Some(Vec::new()));
        assert_eq!(base64("a"), None);
        assert_eq!(base64("a*"), None);
    }
}
