//! Facts of our own, computed by hand, so that every function is tested without any file.

use backplane_aggregates::{
    CALCULATED, Function, INFO_TYPE_DATA_VALUE, INTERPOLATED, MULTIPLE_VALUES, PARTIAL, Settings, annotation_counts,
    defaults, intervals, process,
};
use backplane_types::{AggregateConfiguration, DataValue, StatusCode, Variant};

use crate::{at, good, series};

/// Steady: 4 at 0 s, 8 at 5 s, 6 at 10 s, 10 at 20 s, 0 at 25 s.
const STEADY: &str = "0 4 G, 5 8 G, 10 6 G, 20 10 G, 25 0 G";
/// Troubled: a Bad and an Uncertain value.
const TROUBLED: &str = "0 5 G, 4 0 B, 6 7 U, 8 3 G, 12 9 G";

const SUB_NORMAL: StatusCode = StatusCode::UNCERTAIN_DATA_SUB_NORMAL;
const NO_DATA: StatusCode = StatusCode::BAD_NO_DATA;
const C: u32 = CALCULATED;
const I: u32 = INTERPOLATED;
const P: u32 = PARTIAL;
const M: u32 = MULTIPLE_VALUES;
const NOTHING: f64 = f64::NAN;

/// How a fact is computed: stepped, TreatUncertainAsBad, PercentDataBad, PercentDataGood.
#[derive(Clone, Copy)]
struct With(bool, bool, u8, u8);

const SLOPED: With = With(false, true, 100, 100);
const STEPPED: With = With(true, true, 100, 100);
const TRUSTING: With = With(true, false, 100, 100);

fn settings(function: Function, with: With) -> Settings {
    let With(stepped, treat_uncertain_as_bad, percent_data_bad, percent_data_good) = with;
    Settings {
        function,
        configuration: AggregateConfiguration {
            treat_uncertain_as_bad,
            percent_data_bad,
            percent_data_good,
            ..defaults()
        },
        stepped,
    }
}

/// The results of intervals of ten seconds from 0 to 30 s.
fn forward(function: Function, with: With, raw: &str) -> Vec<DataValue> {
    process(&settings(function, with), at(0.0), at(30.0), 10_000.0, &series(raw)).unwrap()
}

/// Function, how, the interval of STEADY (0, 1 or 2), value, status, bits, seconds.
type Fact = (Function, With, usize, f64, StatusCode, u32, f64);

#[track_caller]
fn check(raw: &str, facts: &[Fact]) {
    for &(function, with, index, value, status, bits, seconds) in facts {
        let result = &forward(function, with, raw)[index];
        let context = format!("{} of interval {index}: {result:?}", function.name());
        let number = match &result.value {
            Variant::Empty => NOTHING,
            Variant::StatusCode(code) => f64::from(code.0),
            number => number.as_f64().unwrap(),
        };
        assert!(
            value.is_nan() == number.is_nan() && (value.is_nan() || (value - number).abs() < 1e-9),
            "{context}"
        );
        let info = if bits == 0 { 0 } else { INFO_TYPE_DATA_VALUE | bits };
        assert_eq!(result.status(), StatusCode(status.0 | info), "{context}");
        assert_eq!(result.source_timestamp, Some(at(seconds)), "{context}");
    }
}

#[test]
fn functions_of_steady_data() {
    use Function as F;
    const G: StatusCode = StatusCode::GOOD;
    check(
        STEADY,
        &[
            (F::Interpolative, SLOPED, 0, 4.0, G, 0, 0.0),
            (F::Average, SLOPED, 0, 6.0, G, C, 0.0),
            (F::TimeAverage, SLOPED, 0, 6.5, G, C, 0.0),
            (F::TimeAverage, STEPPED, 0, 6.5, G, C, 0.0),
            (F::TimeAverage2, SLOPED, 0, 6.5, G, C, 0.0),
            (F::TimeAverage2, STEPPED, 0, 6.0, G, C, 0.0),
            (F::Total, SLOPED, 0, 65.0, G, C, 0.0),
            (F::Total2, STEPPED, 0, 60.0, G, C, 0.0),
            (F::Minimum, SLOPED, 0, 4.0, G, 0, 0.0),
            (F::Maximum, SLOPED, 0, 8.0, G, C, 0.0),
            (F::MinimumActualTime, SLOPED, 0, 4.0, G, 0, 0.0),
            (F::MaximumActualTime, SLOPED, 0, 8.0, G, 0, 5.0),
            (F::Range, SLOPED, 0, 4.0, G, C, 0.0),
            (F::Minimum2, SLOPED, 0, 4.0, G, 0, 0.0),
            (F::Maximum2, SLOPED, 1, 10.0, G, C, 10.0),
            (F::Maximum2, STEPPED, 1, 6.0, G, 0, 10.0),
            (F::MinimumActualTime2, SLOPED, 1, 6.0, G, 0, 10.0),
            (F::MaximumActualTime2, SLOPED, 1, 10.0, G, I, 19.999),
            (F::Range2, SLOPED, 1, 4.0, G, C, 10.0),
            (F::Range2, STEPPED, 1, 0.0, G, C, 10.0),
            (F::Count, SLOPED, 0, 2.0, G, C, 0.0),
            (F::NumberOfTransitions, SLOPED, 0, 2.0, G, C, 0.0),
            (F::Start, SLOPED, 0, 4.0, G, 0, 0.0),
            (F::End, SLOPED, 0, 8.0, G, 0, 5.0),
            (F::Delta, SLOPED, 0, 4.0, G, C, 0.0),
            (F::StartBound, SLOPED, 1, 6.0, G, 0, 10.0),
            (F::EndBound, SLOPED, 0, 6.0, G, C, 0.0),
            (F::DeltaBounds, SLOPED, 0, 2.0, G, C, 0.0),
            (F::DurationInStateNonZero, SLOPED, 0, 10_000.0, G, C, 0.0),
            // The last value lasts a millisecond: nothing is known of the time after it.
            (F::DurationInStateZero, STEPPED, 2, 1.0, G, C | P, 20.0),
            (F::DurationInStateNonZero, STEPPED, 2, 5000.0, G, C | P, 20.0),
            (F::DurationGood, SLOPED, 0, 10_000.0, G, C, 0.0),
            (F::DurationBad, SLOPED, 0, 0.0, G, C, 0.0),
            (F::PercentGood, SLOPED, 0, 100.0, G, C, 0.0),
            (F::PercentBad, SLOPED, 0, 0.0, G, C, 0.0),
            (F::WorstQuality, SLOPED, 0, 0.0, G, C, 0.0),
            (F::WorstQuality2, SLOPED, 0, 0.0, G, C, 0.0),
            (F::StandardDeviationSample, SLOPED, 0, 8f64.sqrt(), G, C, 0.0),
            (F::VarianceSample, SLOPED, 0, 8.0, G, C, 0.0),
            (F::StandardDeviationPopulation, SLOPED, 0, 2.0, G, C, 0.0),
            (F::VariancePopulation, SLOPED, 0, 4.0, G, C, 0.0),
            // One value has no spread.
            (F::VarianceSample, SLOPED, 1, 0.0, G, C, 10.0),
            (F::Average, SLOPED, 2, 5.0, G, C, 20.0),
            (F::TimeAverage, SLOPED, 2, 2.5, SUB_NORMAL, C | P, 20.0),
            (F::EndBound, SLOPED, 2, NOTHING, NO_DATA, P, 20.0),
        ],
    );
}

#[test]
fn functions_of_troubled_data() {
    use Function as F;
    const G: StatusCode = StatusCode::GOOD;
    let bad = f64::from(StatusCode::BAD.0);
    check(
        TROUBLED,
        &[
            // Two of four values are Good, two count as Bad.
            (F::Count, STEPPED, 0, 2.0, SUB_NORMAL, C, 0.0),
            (F::Count, With(true, true, 60, 50), 0, 2.0, G, C, 0.0),
            (F::Count, With(true, true, 50, 60), 0, NOTHING, StatusCode::BAD, 0, 0.0),
            (F::Average, STEPPED, 0, 4.0, SUB_NORMAL, C, 0.0),
            // 0 to 4 s and 8 to 10 s are Good, 6 to 8 s Uncertain, 4 to 6 s Bad.
            (F::TimeAverage2, STEPPED, 0, 26.0 / 6.0, SUB_NORMAL, C, 0.0),
            (F::TimeAverage2, TRUSTING, 0, 5.0, SUB_NORMAL, C, 0.0),
            (F::TimeAverage2, With(true, false, 100, 80), 0, 5.0, G, C, 0.0),
            (
                F::TimeAverage2,
                With(true, true, 40, 61),
                0,
                NOTHING,
                StatusCode::BAD,
                C,
                0.0,
            ),
            (F::Total2, TRUSTING, 0, 40.0, SUB_NORMAL, C, 0.0),
            // A line from 5 to 3 over the values that do not count: 4 on average for 8 s, then 3 to 6.
            (F::TimeAverage, SLOPED, 0, (32.0 + 9.0) / 10.0, SUB_NORMAL, C, 0.0),
            (F::Total, SLOPED, 0, 41.0, SUB_NORMAL, C, 0.0),
            (F::DurationGood, STEPPED, 0, 6000.0, G, C, 0.0),
            (F::DurationBad, STEPPED, 0, 4000.0, G, C, 0.0),
            (F::DurationBad, TRUSTING, 0, 2000.0, G, C, 0.0),
            (F::PercentGood, STEPPED, 0, 60.0, G, C, 0.0),
            (F::PercentBad, TRUSTING, 0, 20.0, G, C, 0.0),
            (F::WorstQuality, STEPPED, 0, bad, G, C, 0.0),
            (F::WorstQuality2, STEPPED, 0, bad, G, C, 0.0),
            (F::NumberOfTransitions, STEPPED, 0, 2.0, SUB_NORMAL, C, 0.0),
            (F::NumberOfTransitions, TRUSTING, 0, 3.0, SUB_NORMAL, C, 0.0),
            (F::Minimum, STEPPED, 0, 3.0, SUB_NORMAL, C, 0.0),
            (F::Maximum, TRUSTING, 0, 5.0, SUB_NORMAL, 0, 0.0),
            (F::Maximum2, TRUSTING, 0, 7.0, SUB_NORMAL, C, 0.0),
            (F::MinimumActualTime, STEPPED, 0, 3.0, SUB_NORMAL, 0, 8.0),
            // Good at both edges: nothing was skipped on the way to the first and the last.
            (F::Delta, STEPPED, 0, -2.0, G, C, 0.0),
            (F::VariancePopulation, STEPPED, 0, 1.0, SUB_NORMAL, C, 0.0),
            // The data ends at 12 s.
            (F::StartBound, SLOPED, 1, 6.0, G, I | P, 10.0),
            (F::StartBound, STEPPED, 1, 3.0, G, I | P, 10.0),
            (F::Average, STEPPED, 2, NOTHING, NO_DATA, 0, 20.0),
            (F::Interpolative, STEPPED, 2, 9.0, SUB_NORMAL, I, 20.0),
        ],
    );
}

#[test]
fn equal_extremes_are_marked() {
    use Function as F;
    check(
        "0 1 G, 2 9 G, 4 1 G, 6 9 G, 10 5 G",
        &[
            (F::MinimumActualTime, STEPPED, 0, 1.0, StatusCode::GOOD, M, 0.0),
            (F::Maximum, STEPPED, 0, 9.0, StatusCode::GOOD, C | M, 0.0),
            (F::MaximumActualTime, STEPPED, 0, 9.0, StatusCode::GOOD, M, 2.0),
        ],
    );
}

#[test]
fn before_after_and_without_data() {
    use Function as F;
    check(
        "12 3 G, 14 5 G",
        &[
            (F::Average, STEPPED, 0, NOTHING, NO_DATA, 0, 0.0),
            (F::Count, STEPPED, 0, NOTHING, NO_DATA, 0, 0.0),
            (F::Interpolative, STEPPED, 1, NOTHING, NO_DATA, 0, 10.0),
            (F::Count, STEPPED, 1, 2.0, StatusCode::GOOD, C | P, 10.0),
            (F::Count, STEPPED, 2, NOTHING, NO_DATA, 0, 20.0),
        ],
    );
    check(
        "0 3 G, 25 5 G",
        // Between two values there may be an interval without any.
        &[
            (F::Count, STEPPED, 1, 0.0, StatusCode::GOOD, C, 10.0),
            (F::Average, STEPPED, 1, NOTHING, NO_DATA, 0, 10.0),
            (F::TimeAverage2, SLOPED, 1, 4.2, StatusCode::GOOD, C, 10.0),
            (F::DurationGood, STEPPED, 1, 10_000.0, StatusCode::GOOD, C, 10.0),
        ],
    );
    let none = forward(F::Count, STEPPED, "");
    assert!(
        none.iter()
            .all(|result| result.status() == NO_DATA && result.value.is_empty())
    );
}

#[test]
fn sloped_extrapolation_follows_the_last_two_values() {
    let mut settings = settings(Function::Interpolative, SLOPED);
    settings.configuration.use_sloped_extrapolation = true;
    let raw = series("0 10 G, 10 12 G");
    let results = process(&settings, at(0.0), at(30.0), 10_000.0, &raw).unwrap();
    assert_eq!(results[2].value, Variant::Double(14.0));
    assert_eq!(results[2].status(), StatusCode(SUB_NORMAL.0 | INFO_TYPE_DATA_VALUE | I));
}

#[test]
fn time_flows_backwards_when_the_end_is_before_the_start() {
    let with = |function| {
        process(&settings(function, SLOPED), at(10.0), at(0.0), 5000.0, &series(STEADY))
            .unwrap()
            .iter()
            .map(|result| (result.value.as_f64(), result.source_timestamp.unwrap()))
            .collect::<Vec<_>>()
    };
    // (5 s, 10 s], then (0 s, 5 s].
    assert_eq!(with(Function::Average), [(Some(6.0), at(10.0)), (Some(8.0), at(5.0))]);
    assert_eq!(
        with(Function::StartBound),
        [(Some(6.0), at(10.0)), (Some(8.0), at(5.0))]
    );
    assert_eq!(with(Function::EndBound), [(Some(8.0), at(10.0)), (Some(4.0), at(5.0))]);
    assert_eq!(
        with(Function::Interpolative),
        [(Some(6.0), at(10.0)), (Some(8.0), at(5.0))]
    );
    assert_eq!(
        with(Function::TimeAverage2),
        [(Some(7.0), at(10.0)), (Some(6.0), at(5.0))]
    );
    assert_eq!(
        with(Function::MaximumActualTime2),
        [(Some(8.0), at(5.001)), (Some(8.0), at(5.0))]
    );
}

#[test]
fn ranges_are_cut_into_intervals() {
    let cut = |start, end, width| {
        let of = |it: &backplane_aggregates::Interval| (it.low, it.high, it.shortened);
        intervals(at(start), at(end), width)
            .unwrap()
            .iter()
            .map(of)
            .collect::<Vec<_>>()
    };
    assert_eq!(cut(0.0, 9.0, 0.0), [(at(0.0), at(9.0), false)]);
    assert_eq!(cut(0.0, 9.0, 20_000.0), [(at(0.0), at(9.0), false)]);
    assert_eq!(
        cut(0.0, 9.0, 5000.0),
        [(at(0.0), at(5.0), false), (at(5.0), at(9.0), true)]
    );
    assert_eq!(
        cut(9.0, 0.0, 5000.0),
        [(at(4.0), at(9.0), false), (at(0.0), at(4.0), true)]
    );
    let refused = |start, end, width| intervals(at(start), at(end), width).unwrap_err();
    assert_eq!(refused(1.0, 1.0, 0.0), StatusCode::BAD_INVALID_ARGUMENT);
    assert_eq!(refused(0.0, 1.0, f64::NAN), StatusCode::BAD_INVALID_ARGUMENT);
    assert_eq!(refused(0.0, 1.0, -1.0), StatusCode::BAD_INVALID_ARGUMENT);
    assert_eq!(refused(0.0, 1e6, 1.0), StatusCode::BAD_TOO_MANY_OPERATIONS);
    // What is left over at the end is a partial interval.
    let count = process(
        &settings(Function::Count, STEPPED),
        at(0.0),
        at(12.0),
        5000.0,
        &series(STEADY),
    )
    .unwrap();
    let partial: Vec<bool> = count.iter().map(|result| result.status().0 & P != 0).collect();
    assert_eq!(partial, [false, false, true]);
}

#[test]
fn results_have_the_type_of_the_source() {
    let whole = |seconds, number| DataValue {
        source_timestamp: Some(at(seconds)),
        ..DataValue::new(Variant::UInt16(number))
    };
    let raw = [whole(0.0, 9), whole(8.0, 2), whole(12.0, 5)];
    let one = |function| {
        process(&settings(function, SLOPED), at(0.0), at(10.0), 0.0, &raw).unwrap()[0]
            .value
            .clone()
    };
    assert_eq!(one(Function::Minimum), Variant::UInt16(2));
    assert_eq!(one(Function::Range), Variant::UInt16(7));
    // 3.5, rounded.
    assert_eq!(one(Function::EndBound), Variant::UInt16(4));
    assert_eq!(one(Function::Average), Variant::Double(5.5));
    // No UInt16 is below zero.
    assert_eq!(one(Function::Delta), Variant::Double(-7.0));
    let tick = |seconds, state| DataValue {
        source_timestamp: Some(at(seconds)),
        ..DataValue::new(Variant::Boolean(state))
    };
    let raw = [tick(0.0, true), tick(4.0, false), tick(12.0, true)];
    let result = process(
        &settings(Function::DurationInStateZero, STEPPED),
        at(0.0),
        at(10.0),
        0.0,
        &raw,
    )
    .unwrap();
    assert_eq!(result[0].value, Variant::Double(6000.0));
}

#[test]
fn what_is_no_number_is_an_invalid_input() {
    let text = DataValue {
        source_timestamp: Some(at(2.0)),
        ..DataValue::new(Variant::from("blue"))
    };
    let mut raw = series("0 1 G, 11 2 G");
    raw.insert(1, text);
    let one = |function| process(&settings(function, STEPPED), at(0.0), at(10.0), 0.0, &raw).unwrap()[0].clone();
    assert_eq!(
        one(Function::Average).status(),
        StatusCode::BAD_AGGREGATE_INVALID_INPUTS
    );
    assert!(one(Function::Average).value.is_empty());
    assert_eq!(one(Function::Count).value, Variant::Int32(2));
    assert_eq!(one(Function::End).value, Variant::from("blue"));
    assert_eq!(one(Function::NumberOfTransitions).value, Variant::Int32(2));
}

#[test]
fn infinite_values_give_no_number_that_is_none() {
    let raw = [good(0.0, f64::INFINITY), good(5.0, f64::NEG_INFINITY), good(12.0, 1.0)];
    for function in Function::ALL.iter().filter(|function| function.is_live()) {
        for with in [STEPPED, SLOPED] {
            let results = process(&settings(*function, with), at(0.0), at(20.0), 10_000.0, &raw).unwrap();
            for result in results {
                let number = result.value.as_f64();
                assert!(!number.is_some_and(f64::is_nan), "{}: {result:?}", function.name());
            }
        }
    }
    let average = process(&settings(Function::Average, STEPPED), at(0.0), at(10.0), 0.0, &raw).unwrap();
    assert_eq!(average[0].status(), StatusCode::BAD_AGGREGATE_INVALID_INPUTS);
    // Not a number is no input either.
    let raw = [good(0.0, 1.0), good(5.0, f64::NAN), good(12.0, 1.0)];
    let average = process(&settings(Function::Average, STEPPED), at(0.0), at(10.0), 0.0, &raw).unwrap();
    assert_eq!(average[0].status(), StatusCode::BAD_AGGREGATE_INVALID_INPUTS);
}

#[test]
fn the_last_of_several_values_at_one_time_counts() {
    let mut raw = series("0 1 G, 5 100 G, 10 1 G");
    raw.insert(2, good(5.0, 3.0));
    let result = process(&settings(Function::Average, STEPPED), at(0.0), at(10.0), 0.0, &raw).unwrap();
    assert_eq!(result[0].value, Variant::Double(2.0));
    assert_eq!(
        result[0].status().0,
        INFO_TYPE_DATA_VALUE | C | backplane_aggregates::EXTRA_DATA
    );
}

#[test]
fn annotations_are_counted() {
    let annotations = [at(1.0), at(9.0), at(10.0), at(28.0)];
    let data = Some((at(0.0), at(25.0)));
    let count = annotation_counts(at(0.0), at(40.0), 10_000.0, &annotations, data).unwrap();
    let values: Vec<_> = count.iter().map(|result| result.value.as_f64()).collect();
    assert_eq!(values, [Some(2.0), Some(1.0), Some(1.0), None]);
    assert_eq!(count[3].status(), NO_DATA);
    assert_eq!(count[2].status().0, INFO_TYPE_DATA_VALUE | C | P);
    let refused = process(
        &settings(Function::AnnotationCount, STEPPED),
        at(0.0),
        at(10.0),
        0.0,
        &[],
    );
    assert_eq!(refused.unwrap_err(), StatusCode::BAD_AGGREGATE_NOT_SUPPORTED);
}

#[test]
fn configurations_are_checked() {
    let server = defaults();
    let ask = |bad, good| {
        let asked = AggregateConfiguration {
            percent_data_bad: bad,
            percent_data_good: good,
            ..defaults()
        };
        backplane_aggregates::effective(&asked, &server)
    };
    assert!(ask(100, 0).is_ok() && ask(50, 50).is_ok() && ask(0, 100).is_ok());
    for (bad, good) in [(101, 100), (100, 101), (30, 69), (255, 255)] {
        assert_eq!(
            ask(bad, good),
            Err(StatusCode::BAD_AGGREGATE_CONFIGURATION_REJECTED),
            "{bad} {good}"
        );
    }
    let asked = AggregateConfiguration {
        use_server_capabilities_defaults: true,
        percent_data_bad: 255,
        ..AggregateConfiguration::default()
    };
    let given = backplane_aggregates::effective(&asked, &server).unwrap();
    assert!(given.treat_uncertain_as_bad && given.percent_data_bad == 100 && given.use_server_capabilities_defaults);
}

#[test]
fn functions_have_the_standards_nodes() {
    assert_eq!(Function::ALL.len(), 37);
    for function in Function::ALL {
        assert_eq!(
            Function::from_node_id(&backplane_types::NodeId::standard(function.id())),
            Some(*function)
        );
    }
    assert_eq!(Function::from_node_id(&backplane_types::NodeId::standard(2253)), None);
}
