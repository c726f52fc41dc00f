//! Sizes in bytes, written for people.

/// `"64MiB"`, `"500KB"` or `"1000"`: KiB, MiB, GiB are powers of two, KB, MB, GB of ten.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    const UNITS: &[(&str, u64)] = &[
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
    ];
    let rule = || "a size is a number with KiB, MiB, GiB, KB, MB, GB or nothing behind it".to_owned();
    let (digits, unit) = UNITS
        .iter()
        .find_map(|(unit, factor)| text.strip_suffix(unit).map(|digits| (digits.trim_end(), *factor)))
        .unwrap_or((text, 1));
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(rule());
    }
    let number: u64 = digits.parse().map_err(|_| rule())?;
    number.checked_mul(unit).ok_or_else(rule)
}

/// The shortest form that [`parse_size`] reads back.
pub(crate) fn size_text(bytes: u64) -> String {
    for (unit, factor) in [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if bytes > 0 && bytes.is_multiple_of(factor) {
            return format!("{}{unit}", bytes / factor);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        for (text, bytes) in [("0", 0), ("64MiB", 64 << 20), ("1 KB", 1_000), ("3GiB", 3 << 30)] {
            assert_eq!(parse_size(text).unwrap(), bytes);
            assert_eq!(parse_size(&size_text(bytes)).unwrap(), bytes);
        }
        for wrong in ["", "MiB", "-1", "+1", "1.5MiB", "1 XB", "99999999999GiB"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
