//! Live calculation: the same numbers as from history, and when an interval is complete.

use std::time::Duration;

use backplane_aggregates::{Function, Live, MAX_RESULTS_AT_ONCE, PARTIAL, Settings, defaults, process};
use backplane_types::{AggregateConfiguration, DataValue, DateTime, StatusCode, Variant};

use crate::{at, good, series};

fn settings(function: Function, stepped: bool, treat_uncertain_as_bad: bool) -> Settings {
    Settings {
        function,
        configuration: AggregateConfiguration {
            treat_uncertain_as_bad,
            ..defaults()
        },
        stepped,
    }
}

fn live(function: Function) -> Live {
    Live::new(settings(function, true, true), at(0.0), Duration::from_secs(10))
}

fn push(live: &mut Live, value: &DataValue) -> Vec<DataValue> {
    let mut results = Vec::new();
    live.push(value.source_timestamp.unwrap(), value, |result| results.push(result));
    results
}

fn advance(live: &mut Live, seconds: f64) -> Vec<DataValue> {
    let mut results = Vec::new();
    live.advance(at(seconds), |result| results.push(result));
    results
}

/// Some hundred values of all qualities, at times with gaps; the last one is far out, so that all intervals before it are complete.
fn random(seed: u64, only_good: bool) -> Vec<DataValue> {
    let mut state = seed;
    let mut next = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut seconds = 0.0;
    let mut values = Vec::new();
    for _ in 0..300 {
        #[allow(clippy::cast_precision_loss)]
        let (step, number) = (next(9000) as f64 / 1000.0 + 0.001, next(7) as f64);
        seconds += step;
        let status = match next(6) {
            0 if !only_good => StatusCode::BAD,
            1 if !only_good => StatusCode::UNCERTAIN,
            _ => StatusCode::GOOD,
        };
        values.push(DataValue {
            status: Some(status),
            ..good(seconds, number)
        });
    }
    values
}

#[test]
fn live_and_history_give_the_same() {
    for seed in 0..8 {
        for &function in Function::ALL.iter().filter(|function| function.is_live()) {
            // Interpolated bounds look for the next usable value, however far away; a live item cannot wait for it.
            let looks_far = matches!(
                function,
                Function::Interpolative | Function::TimeAverage | Function::Total
            );
            let values = random(seed, looks_far);
            let settings = settings(function, seed % 2 == 0, seed % 3 == 0);
            let mut live = Live::new(settings.clone(), at(0.0), Duration::from_secs(10));
            let results: Vec<DataValue> = values.iter().flat_map(|value| push(&mut live, value)).collect();
            assert!(results.len() > 50);
            let end = live.end().saturating_sub(Duration::from_secs(10));
            let expected = process(&settings, at(0.0), end, 10_000.0, &values).unwrap();
            assert_eq!(results, expected, "{} with seed {seed}", function.name());
        }
    }
}

#[test]
fn nothing_that_a_source_or_a_clock_does_is_too_much() {
    let mut state = 7_u64;
    let mut next = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let numbers = [
        0.0,
        -1.5,
        f64::NAN,
        f64::INFINITY,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
    ];
    let instants = [
        at(0.0),
        at(7.0),
        at(1e6),
        DateTime::MIN,
        DateTime::MAX,
        DateTime::from_ticks(1),
    ];
    for &function in Function::ALL {
        for round in 0..8 {
            let width = [1, 100, 10_000_000_000, u64::MAX][usize::try_from(next(4)).unwrap()];
            let settings = settings(function, round % 2 == 0, round % 3 == 0);
            let start = instants[usize::try_from(next(6)).unwrap()];
            let mut live = Live::new(settings, start, Duration::from_nanos(width));
            for _ in 0..12 {
                let time = instants[usize::try_from(next(6)).unwrap()];
                let mut count = 0;
                if next(3) == 0 {
                    live.advance(time, |_| count += 1);
                } else {
                    let value = match next(4) {
                        0 => DataValue::new("text"),
                        1 => DataValue::from_status(StatusCode::UNCERTAIN),
                        2 => DataValue::from_status(StatusCode::BAD),
                        _ => DataValue::new(numbers[usize::try_from(next(7)).unwrap()]),
                    };
                    live.push(time, &value, |_| count += 1);
                }
                assert!(count <= MAX_RESULTS_AT_ONCE + 1, "{count} results");
            }
        }
    }
}

#[test]
fn a_value_at_the_end_completes_an_interval() {
    let mut live = live(Function::Count);
    assert!(push(&mut live, &good(0.0, 1.0)).is_empty());
    assert!(push(&mut live, &good(9.9, 2.0)).is_empty());
    let results = push(&mut live, &good(10.0, 3.0));
    assert_eq!(results.len(), 1);
    assert_eq!(results[0].value, Variant::Int32(2));
    assert_eq!(results[0].source_timestamp, Some(at(0.0)));
    // Two intervals without a value, then one with the value at its start.
    let results = push(&mut live, &good(45.0, 4.0));
    let counts: Vec<_> = results.iter().map(|result| result.value.clone()).collect();
    assert_eq!(counts, [Variant::Int32(1), Variant::Int32(0), Variant::Int32(0)]);
    assert_eq!(live.end(), at(50.0));
}

#[test]
fn time_completes_an_interval_too() {
    let mut average = live(Function::TimeAverage2);
    push(&mut average, &good(0.0, 6.0));
    assert!(advance(&mut average, 9.999).is_empty());
    let results = advance(&mut average, 10.0);
    assert_eq!(results.len(), 1);
    assert_eq!(results[0].value, Variant::Double(6.0));
    // It is known to hold up to the end.
    assert_eq!(results[0].status().0 & !0xFF, 0x400);
    assert_eq!(results[0].status().0 & PARTIAL, 0);
    // The value still holds in the next interval, and counts as no new one there.
    assert_eq!(advance(&mut average, 20.0)[0].value, Variant::Double(6.0));
    // A line to the next value is not.
    let sloped = settings(Function::TimeAverage2, false, true);
    let mut sloped = Live::new(sloped, at(0.0), Duration::from_secs(10));
    push(&mut sloped, &good(0.0, 6.0));
    assert_ne!(advance(&mut sloped, 10.0)[0].status().0 & PARTIAL, 0);
    let mut count = live(Function::Count);
    push(&mut count, &good(0.0, 6.0));
    let results = advance(&mut count, 31.0);
    let counts: Vec<_> = results.iter().map(|result| result.value.clone()).collect();
    assert_eq!(counts, [Variant::Int32(1), Variant::Int32(0), Variant::Int32(0)]);
    assert_eq!(results[0].status().0 & PARTIAL, 0);
}

#[test]
fn without_any_value_there_is_no_data() {
    let mut live = live(Function::Average);
    let results = advance(&mut live, 20.0);
    assert_eq!(results.len(), 2);
    assert!(results.iter().all(|result| result.status() == StatusCode::BAD_NO_DATA));
}

#[test]
fn a_late_value_is_left_out() {
    let mut live = live(Function::Average);
    push(&mut live, &good(1.0, 1.0));
    push(&mut live, &good(5.0, 3.0));
    // Out of order within the interval.
    assert!(push(&mut live, &good(4.0, 100.0)).is_empty());
    let results = advance(&mut live, 12.0);
    assert_eq!(results[0].value, Variant::Double(2.0));
    // For an interval that was reported.
    assert!(push(&mut live, &good(8.0, 100.0)).is_empty());
    assert_eq!(live.late(), 2);
    push(&mut live, &good(13.0, 5.0));
    assert_eq!(advance(&mut live, 20.0)[0].value, Variant::Double(5.0));
}

#[test]
fn values_from_before_the_start_are_its_bound() {
    let mut bound = live(Function::StartBound);
    push(&mut bound, &good(-3.0, 7.0));
    push(&mut bound, &good(2.0, 9.0));
    let results = advance(&mut bound, 10.0);
    assert_eq!(results[0].value, Variant::Double(7.0));
    assert!(results[0].status().is_good());
    let mut count = live(Function::Count);
    push(&mut count, &good(-3.0, 7.0));
    push(&mut count, &good(2.0, 9.0));
    assert_eq!(push(&mut count, &good(10.0, 1.0))[0].value, Variant::Int32(1));
}

#[test]
fn a_leap_of_the_clock_brings_a_limited_number_of_results() {
    let limit = usize::try_from(MAX_RESULTS_AT_ONCE).unwrap();
    let mut count = live(Function::Count);
    push(&mut count, &good(0.0, 1.0));
    let results = push(&mut count, &good(1e9, 1.0));
    assert!(results.len() <= limit + 1, "{}", results.len());
    assert_eq!(results[0].source_timestamp, Some(at(0.0)));
    assert_eq!(results.last().unwrap().source_timestamp, Some(at(1e9 - 10.0)));
    let mut empty = live(Function::Count);
    assert!(advance(&mut empty, 1e9).len() <= limit + 1);
    // The end of time is not passed.
    let mut ending = live(Function::Count);
    ending.advance(backplane_types::DateTime::MAX, |_| {});
    ending.push(backplane_types::DateTime::MAX, &good(0.0, 1.0), |_| {});
    ending.advance(backplane_types::DateTime::MAX, |_| {});
}

#[test]
fn memory_does_not_grow_with_an_interval() {
    // Everything is inline: nothing that a value could be appended to.
    let mut live = live(Function::StandardDeviationSample);
    for value in series("0 1 G, 1 3 G") {
        push(&mut live, &value);
    }
    let before = format!("{live:?}").len();
    for index in 0..10_000 {
        push(
            &mut live,
            &good(1.0 + f64::from(index) / 10_000.0, f64::from(index % 2)),
        );
    }
    assert!(format!("{live:?}").len() < before + 500);
}
