//! Triggers, deadbands and the status code of every filter that is refused.

use super::super::{AggregateTerms, EventContext, ItemFilter};
use super::*;
use backplane_types::{AggregateFilter, Array, DateTime, EventFilter, Now};

const NUMBER: ItemTraits = ItemTraits {
    is_value: true,
    is_notifier: false,
    is_number: true,
    is_boolean: false,
    minimum_sampling_interval: -1.0,
    eu_range: Some((0.0, 200.0)),
};
const TEXT: ItemTraits = ItemTraits {
    is_number: false,
    eu_range: None,
    ..NUMBER
};

fn no_events() -> EventContext {
    EventContext {
        types: std::sync::Arc::new(crate::events::BaseEventTypes),
        limits: crate::events::FilterLimits::default(),
        budget: std::sync::Arc::default(),
    }
}

fn terms() -> AggregateTerms {
    AggregateTerms {
        min_processing_interval: 100.0,
        sampling: std::time::Duration::from_millis(100),
        queue_size: 10,
        now: Now::new(std::time::Duration::ZERO, DateTime::MIN),
    }
}

fn request(trigger: i32, deadband_type: u32, deadband_value: f64) -> ExtensionObject {
    ExtensionObject::from_structure(&DataChangeFilter {
        trigger: DataChangeTrigger(trigger),
        deadband_type,
        deadband_value,
    })
}

fn filter(trigger: i32, deadband_type: u32, deadband_value: f64) -> DataFilter {
    DataFilter::from_request(&request(trigger, deadband_type, deadband_value), &NUMBER).unwrap()
}

fn at(value: impl Into<Variant>, status: u32, source: i64) -> DataValue {
    DataValue {
        status: Some(StatusCode(status)),
        source_timestamp: Some(DateTime::from_ticks(source)),
        ..DataValue::new(value)
    }
}

#[test]
fn triggers() {
    let last = at(1.0, 0, 1);
    let changes = [at(1.0, 0, 1), at(1.0, 0x4000_0000, 1), at(2.0, 0, 1), at(1.0, 0, 2)];
    for (trigger, expected) in [
        (0, [false, true, false, false]),
        (1, [false, true, true, false]),
        (2, [false, true, true, true]),
    ] {
        let filter = filter(trigger, 0, 0.0);
        assert_eq!(changes.each_ref().map(|sample| filter.passes(&last, sample)), expected);
    }
    assert_eq!(filter(1, 0, 0.0), DataFilter::DEFAULT);
}

#[test]
fn no_status_is_good_and_every_status_bit_counts() {
    let last = DataValue::new(1.0);
    assert!(!DataFilter::DEFAULT.passes(&last, &at(1.0, 0, 0)));
    assert!(DataFilter::DEFAULT.passes(&last, &at(1.0, 0x4000, 0)));
}

#[test]
fn absolute_deadband_of_scalars() {
    let filter = filter(1, 1, 2.0);
    for (last, sample, passes) in [
        (Variant::from(10.0), Variant::from(12.0), false),
        (Variant::from(10.0), Variant::from(12.1), true),
        (Variant::from(10.0), Variant::from(7.9), true),
        (Variant::from(-1i8), Variant::from(1i8), false),
        (Variant::from(-1i8), Variant::from(2i8), true),
        (Variant::from(i64::MIN), Variant::from(i64::MAX), true),
        (Variant::from(u64::MAX), Variant::from(u64::MAX - 2), false),
        (Variant::from(u64::MAX), Variant::from(u64::MAX - 3), true),
        (Variant::from(10.0), Variant::from(10), true),
        (Variant::from(10.0), Variant::Empty, true),
        (Variant::from(f64::NAN), Variant::from(f64::NAN), false),
        (Variant::from(f64::NAN), Variant::from(1.0), true),
        (Variant::from(f64::INFINITY), Variant::from(f64::INFINITY), false),
        (Variant::from(f64::INFINITY), Variant::from(f64::NEG_INFINITY), true),
    ] {
        let (from, to) = (DataValue::new(last), DataValue::new(sample));
        assert_eq!(filter.passes(&from, &to), passes, "{from:?} {to:?}");
    }
}

#[test]
fn a_status_change_ignores_the_deadband() {
    assert!(filter(1, 1, 100.0).passes(&at(1.0, 0, 0), &at(1.0, 0x8000_0000, 0)));
}

#[test]
fn a_deadband_makes_the_timestamp_trigger_a_value_trigger() {
    let filter = filter(2, 1, 1.0);
    assert!(!filter.passes(&at(1.0, 0, 1), &at(1.5, 0, 2)));
    assert!(filter.passes(&at(1.0, 0, 1), &at(3.0, 0, 1)));
}

#[test]
fn absolute_deadband_of_arrays() {
    let filter = filter(1, 1, 1.0);
    let passes = |last: Variant, sample: Variant| filter.passes(&DataValue::new(last), &DataValue::new(sample));
    assert!(!passes(vec![1.0, 2.0].into(), vec![2.0, 1.0].into()));
    assert!(passes(vec![1.0, 2.0].into(), vec![1.0, 3.5].into()));
    assert!(passes(vec![1.0, 2.0].into(), vec![1.0].into()));
    assert!(!passes(vec![1i16, 2].into(), vec![0i16, 3].into()));
    assert!(passes(vec![1u64, 2].into(), vec![1u64, u64::MAX].into()));
    let matrix = |dimensions: Vec<u32>| {
        let values = ArrayValues::Double(vec![1.0, 2.0, 3.0, 4.0]);
        Variant::Array(Box::new(Array { values, dimensions }))
    };
    assert!(!passes(matrix(vec![2, 2]), matrix(vec![2, 2])));
    assert!(passes(matrix(vec![2, 2]), matrix(Vec::new())));
}

#[test]
fn percent_deadband_is_of_the_eu_range() {
    let filter = filter(1, 2, 10.0);
    assert!(!filter.passes(&DataValue::new(50.0), &DataValue::new(70.0)));
    assert!(filter.passes(&DataValue::new(50.0), &DataValue::new(70.5)));
}

#[test]
fn refused_filters() {
    let not_value = ItemTraits {
        is_value: false,
        ..NUMBER
    };
    let no_range = ItemTraits {
        eu_range: None,
        ..NUMBER
    };
    let event = ExtensionObject::from_structure(&EventFilter::default());
    let aggregate = ExtensionObject::from_structure(&AggregateFilter::default());
    let mut broken = request(1, 0, 0.0);
    broken.body = backplane_types::ExtensionBody::Binary((&[1u8, 2]).into());
    for (request, traits, expected) in [
        (request(1, 1, 1.0), TEXT, StatusCode::BAD_FILTER_NOT_ALLOWED),
        (request(1, 2, 1.0), TEXT, StatusCode::BAD_FILTER_NOT_ALLOWED),
        (request(1, 0, 0.0), not_value, StatusCode::BAD_FILTER_NOT_ALLOWED),
        (request(1, 2, 101.0), NUMBER, StatusCode::BAD_DEADBAND_FILTER_INVALID),
        (request(1, 2, 10.0), no_range, StatusCode::BAD_DEADBAND_FILTER_INVALID),
        (request(1, 1, -1.0), NUMBER, StatusCode::BAD_DEADBAND_FILTER_INVALID),
        (request(1, 1, f64::NAN), NUMBER, StatusCode::BAD_DEADBAND_FILTER_INVALID),
        (
            request(1, 3, 1.0),
            NUMBER,
            StatusCode::BAD_MONITORED_ITEM_FILTER_UNSUPPORTED,
        ),
        (
            request(7, 0, 0.0),
            NUMBER,
            StatusCode::BAD_MONITORED_ITEM_FILTER_INVALID,
        ),
        (event, NUMBER, StatusCode::BAD_FILTER_NOT_ALLOWED),
        (aggregate.clone(), not_value, StatusCode::BAD_FILTER_NOT_ALLOWED),
        (aggregate, NUMBER, StatusCode::BAD_AGGREGATE_NOT_SUPPORTED),
        (broken, NUMBER, StatusCode::BAD_MONITORED_ITEM_FILTER_INVALID),
    ] {
        let refused = ItemFilter::from_request(&request, &traits, &no_events(), &terms());
        assert_eq!(refused.err().map(|it| it.status), Some(expected), "{request:?}");
    }
}

#[test]
fn text_may_have_every_trigger_without_deadband() {
    for trigger in 0..3 {
        assert!(DataFilter::from_request(&request(trigger, 0, 5.0), &TEXT).is_ok());
    }
    let (filter, result) = ItemFilter::from_request(&ExtensionObject::NULL, &TEXT, &no_events(), &terms()).unwrap();
    assert!(matches!(filter, ItemFilter::Data(filter) if filter == DataFilter::DEFAULT));
    assert!(result.is_null());
}
