//! What the aggregate functions give: the worked examples of Part 13, and facts of our own.

#![allow(clippy::unwrap_used, missing_docs)]

mod examples;
mod examples_exceptions;
mod facts;
mod live;

use backplane_types::{DataValue, DateTime, StatusCode, Variant};

/// An instant so many seconds after a fixed one.
#[allow(clippy::cast_possible_truncation)]
fn at(seconds: f64) -> DateTime {
    DateTime::from_ticks(examples::NOON + (seconds * 1000.0).round() as i64 * 10_000)
}

fn good(seconds: f64, number: f64) -> DataValue {
    DataValue {
        source_timestamp: Some(at(seconds)),
        ..DataValue::new(Variant::Double(number))
    }
}

/// Raw values as "seconds number quality, ...".
fn series(text: &str) -> Vec<DataValue> {
    let one = |text: &str| {
        let parts: Vec<&str> = text.split_whitespace().collect();
        let status = match parts[2] {
            "G" => StatusCode::GOOD,
            "U" => StatusCode::UNCERTAIN,
            _ => StatusCode::BAD,
        };
        DataValue {
            status: Some(status),
            ..good(parts[0].parse().unwrap(), parts[1].parse().unwrap())
        }
    };
    text.split(',')
        .filter(|part| !part.trim().is_empty())
        .map(one)
        .collect()
}
