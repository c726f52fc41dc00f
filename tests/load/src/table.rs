//! Tables and numbers for people. Knows nothing of what they mean.

/// With so many digits behind the point.
pub(crate) fn decimals(value: f64, digits: usize) -> String {
    format!("{value:.digits$}")
}

/// Three significant digits below 100, none behind the point above.
pub(crate) fn brief(value: f64) -> String {
    decimals(
        value,
        match value {
            value if value < 1.0 => 3,
            value if value < 10.0 => 2,
            value if value < 100.0 => 1,
            _ => 0,
        },
    )
}

/// Microseconds: one digit behind the point below 100.
pub(crate) fn micro(value: f64) -> String {
    if value < 100.0 {
        decimals(value, 1)
    } else {
        thousands(value)
    }
}

/// A whole number in groups of three.
pub(crate) fn thousands(value: f64) -> String {
    let digits = decimals(value, 0);
    let mut grouped = String::with_capacity(digits.len().saturating_mul(2));
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && digits.len().saturating_sub(index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Any table.
pub(crate) fn aligned(header: &[String], body: &[Vec<String>]) -> String {
    let all = || std::iter::once(header).chain(body.iter().map(Vec::as_slice));
    let widths: Vec<usize> = (0..header.len())
        .map(|column| {
            all()
                .filter_map(|row| row.get(column).map(String::len))
                .max()
                .unwrap_or(0)
        })
        .collect();
    let line = |cells: &[String]| {
        let padded: Vec<String> = cells
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(index, (cell, width))| {
                if index == 0 {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            })
            .collect();
        format!("| {} |\n", padded.join(" | "))
    };
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let mut text = line(header);
    text.push_str(&line(&rule));
    for row in body {
        text.push_str(&line(row));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{brief, thousands};

    #[test]
    fn numbers_for_people() {
        assert_eq!(thousands(1_234_567.4), "1,234,567");
        assert_eq!(thousands(123.0), "123");
        assert_eq!(
            [brief(0.0712), brief(4.987), brief(24.44), brief(533.2)],
            ["0.071", "4.99", "24.4", "533"]
        );
    }
}
