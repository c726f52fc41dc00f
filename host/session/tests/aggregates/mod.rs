//! Aggregate filters: what is granted, and when which value is reported.

use std::time::Duration;

use backplane_session::{ItemTraits, Limits, ResolvedItem, SourceChange};
use backplane_types::{
    AggregateConfiguration, AggregateFilter, AggregateFilterResult, DataValue, DateTime, ExtensionObject,
    MonitoredItemCreateResult, MonitoredItemModifyRequest, MonitoringMode, NodeId, StatusCode, TimestampsToReturn,
    Variant, ids::object as ids,
};

use super::support::{Bench, Message, NUMBER, bench, bench_with, request, source};

const CALCULATED: u32 = 0x401;

fn filter(function: u32, start_time: DateTime, processing_interval: f64) -> AggregateFilter {
    AggregateFilter {
        start_time,
        aggregate_type: NodeId::standard(function),
        processing_interval,
        aggregate_configuration: AggregateConfiguration {
            use_server_capabilities_defaults: true,
            ..AggregateConfiguration::default()
        },
    }
}

fn try_item(
    it: &mut Bench,
    subscription: u32,
    traits: ItemTraits,
    filter: &AggregateFilter,
) -> MonitoredItemCreateResult {
    let mut request = request(1);
    request.requested_parameters.filter = ExtensionObject::from_structure(filter);
    let resolved = ResolvedItem {
        source: source(1),
        initial: None,
        traits,
    };
    let items = vec![(&request, Ok(resolved))];
    it.subscriptions
        .create_monitored_items(it.now, subscription, TimestampsToReturn::BOTH, items)
        .unwrap()
        .remove(0)
}

/// An item of node 1, sampled each 100 ms, with an interval of 1 s that begins now.
fn item(it: &mut Bench, function: u32) -> (u32, u32) {
    let subscription = it.create_every(100.0);
    let result = try_item(it, subscription, NUMBER, &filter(function, it.now.utc, 1000.0));
    assert_eq!(result.status_code, StatusCode::GOOD);
    it.publish_many(8);
    (subscription, result.monitored_item_id)
}

fn revised(result: &MonitoredItemCreateResult) -> AggregateFilterResult {
    assert_eq!(result.status_code, StatusCode::GOOD);
    result.filter_result.decode_as().unwrap()
}

/// A value that changes now.
fn set(it: &mut Bench, value: impl Into<Variant>) {
    let value = DataValue {
        source_timestamp: Some(it.now.utc),
        ..DataValue::new(value)
    };
    it.world.set_value(1, value);
}

/// All values that were reported.
fn values(it: &mut Bench) -> Vec<DataValue> {
    let messages: Vec<Message> = it.messages();
    messages
        .into_iter()
        .flat_map(|message| message.data)
        .map(|(_, value)| value)
        .collect()
}

/// What was reported: values with their source timestamps in ms after an instant.
fn reported(it: &mut Bench, since: DateTime) -> Vec<(Option<f64>, i64)> {
    let time = |value: &DataValue| (value.source_timestamp.unwrap().ticks() - since.ticks()) / 10_000;
    values(it)
        .iter()
        .map(|value| (value.value.as_f64(), time(value)))
        .collect()
}

#[test]
fn each_interval_brings_one_value_at_its_end() {
    let mut it = bench();
    let start = it.now.utc;
    set(&mut it, 2.0);
    item(&mut it, ids::AGGREGATE_FUNCTION_TIME_AVERAGE2);
    it.run(500);
    set(&mut it, 6.0);
    it.run(400);
    assert_eq!(reported(&mut it, start), [], "the interval is not over");
    it.run(1250);
    // 2 for 0.5 s and 6 for 0.5 s; the sample that sees the change comes at once, its timestamp counts.
    assert_eq!(reported(&mut it, start), [(Some(4.0), 0), (Some(6.0), 1000)]);
}

#[test]
fn a_value_that_never_changes_is_reported_every_interval() {
    let mut it = bench();
    let start = it.now.utc;
    set(&mut it, 7.0);
    item(&mut it, ids::AGGREGATE_FUNCTION_AVERAGE);
    it.run(3250);
    // Average counts raw values: there is one, in the first interval.
    assert_eq!(reported(&mut it, start), [(Some(7.0), 0), (None, 1000), (None, 2000)]);
    let mut it = bench();
    let start = it.now.utc;
    set(&mut it, 7.0);
    item(&mut it, ids::AGGREGATE_FUNCTION_TIME_AVERAGE2);
    it.run(1250);
    let value = &values(&mut it)[0];
    // The value is known to hold up to the end: the interval is complete.
    assert_eq!(
        (value.value.clone(), value.status().0),
        (Variant::Double(7.0), CALCULATED)
    );
    assert_eq!(value.source_timestamp, Some(start));
    assert!(value.server_timestamp.unwrap() > start);
    it.run(2000);
    assert_eq!(reported(&mut it, start), [(Some(7.0), 1000), (Some(7.0), 2000)]);
}

#[test]
fn the_timer_alone_completes_an_interval() {
    let mut it = bench();
    let start = it.now.utc;
    // The value is fetched once; the next answer never comes.
    item(&mut it, ids::AGGREGATE_FUNCTION_TIME_AVERAGE2);
    it.run(50);
    let (asked, _) = it.world.asked.pop().unwrap();
    let value = DataValue {
        source_timestamp: Some(start),
        ..DataValue::new(4.0)
    };
    it.subscriptions.handle_samples(it.now, [(asked, value)]);
    it.run(100);
    assert_eq!(it.world.asked.len(), 1);
    it.run(900);
    assert_eq!(
        reported(&mut it, start),
        [],
        "a sample from before the end may still come"
    );
    it.run(200);
    assert_eq!(reported(&mut it, start), [(Some(4.0), 0)]);
}

#[test]
fn changes_are_counted_and_late_ones_count_from_now_on() {
    let mut it = bench();
    let start = it.now.utc;
    set(&mut it, 1.0);
    item(&mut it, ids::AGGREGATE_FUNCTION_COUNT);
    for number in 0..4 {
        it.run(100);
        set(&mut it, f64::from(number));
    }
    it.run(800);
    assert_eq!(reported(&mut it, start), [(Some(5.0), 0)]);
    // From the interval before: that one was reported already.
    it.world.set_value(
        1,
        DataValue {
            source_timestamp: Some(start),
            ..DataValue::new(9.0)
        },
    );
    it.run(1000);
    assert_eq!(reported(&mut it, start), [(Some(1.0), 1000)]);
}

#[test]
fn a_clock_that_runs_ahead_ends_no_interval() {
    let mut it = bench();
    let start = it.now.utc;
    it.world.set_value(
        1,
        DataValue {
            source_timestamp: Some(DateTime::MAX),
            ..DataValue::new(3.0)
        },
    );
    item(&mut it, ids::AGGREGATE_FUNCTION_TIME_AVERAGE2);
    it.run(900);
    assert_eq!(reported(&mut it, start), []);
    it.run(1350);
    assert_eq!(reported(&mut it, start), [(Some(3.0), 0), (Some(3.0), 1000)]);
}

#[test]
fn without_a_value_there_is_no_data() {
    let mut it = bench();
    let start = it.now.utc;
    item(&mut it, ids::AGGREGATE_FUNCTION_AVERAGE);
    it.run(1250);
    let value = &values(&mut it)[0];
    assert_eq!(value.status(), StatusCode::BAD_NO_DATA);
    assert_eq!(value.source_timestamp, Some(start));
}

#[test]
fn a_value_that_is_fetched_completes_intervals_too() {
    let mut it = bench();
    let start = it.now.utc;
    item(&mut it, ids::AGGREGATE_FUNCTION_MAXIMUM);
    it.run(50);
    let answer = |it: &mut Bench, number: f64| {
        let (asked, _) = it.world.asked.pop().unwrap();
        let value = DataValue {
            source_timestamp: Some(it.now.utc),
            ..DataValue::new(number)
        };
        it.subscriptions.handle_samples(it.now, [(asked, value)]);
    };
    answer(&mut it, 4.0);
    it.run(100);
    answer(&mut it, 2.0);
    it.run(850);
    answer(&mut it, 1.0);
    // No timer was needed: the last answer is from the end of the interval.
    it.run(100);
    assert_eq!(reported(&mut it, start), [(Some(4.0), 0)]);
}

#[test]
fn start_interval_and_configuration_are_revised() {
    let mut it = bench();
    let subscription = it.create_every(100.0);
    let now = it.now.utc;
    let ask = |it: &mut Bench, start, interval| {
        let asked = filter(ids::AGGREGATE_FUNCTION_COUNT, start, interval);
        revised(&try_item(it, subscription, NUMBER, &asked))
    };
    let given = ask(&mut it, now, 1500.0);
    assert_eq!(
        (given.revised_start_time, given.revised_processing_interval),
        (now, 1500.0)
    );
    let configuration = &given.revised_aggregate_configuration;
    assert!(configuration.treat_uncertain_as_bad && !configuration.use_sloped_extrapolation);
    assert_eq!(
        (configuration.percent_data_bad, configuration.percent_data_good),
        (100, 100)
    );
    // Not shorter than the sampling interval, 100 ms; none is a second.
    assert_eq!(ask(&mut it, now, 20.0).revised_processing_interval, 100.0);
    for none in [0.0, -5.0, f64::NAN, f64::INFINITY] {
        assert_eq!(ask(&mut it, now, none).revised_processing_interval, 1000.0);
    }
    // Ten values are kept, so the first interval is at most ten back, and on the same boundary.
    let back = |ms: u64| now.saturating_sub(Duration::from_millis(ms));
    assert_eq!(ask(&mut it, back(9_300), 1000.0).revised_start_time, back(9_300));
    assert_eq!(ask(&mut it, back(10_300), 1000.0).revised_start_time, back(9_300));
    assert_eq!(ask(&mut it, back(3_600_000), 1000.0).revised_start_time, back(10_000));
    let ahead = now.saturating_add(Duration::from_secs(60));
    assert_eq!(ask(&mut it, ahead, 1000.0).revised_start_time, ahead);
    // None at all: the interval that now is in.
    it.run(300);
    assert_eq!(ask(&mut it, DateTime::MIN, 1000.0).revised_start_time, now);
    let limits = Limits {
        min_processing_interval: 5000.0,
        ..Limits::default()
    };
    let mut it = bench_with(limits);
    let subscription = it.create_every(100.0);
    let asked = filter(ids::AGGREGATE_FUNCTION_COUNT, it.now.utc, 10.0);
    assert_eq!(
        revised(&try_item(&mut it, subscription, NUMBER, &asked)).revised_processing_interval,
        5000.0
    );
}

#[test]
fn intervals_in_the_past_are_computed_from_the_value_that_held_then() {
    let mut it = bench();
    let now = it.now.utc;
    let back = |ms: u64| now.saturating_sub(Duration::from_millis(ms));
    it.world.set_value(
        1,
        DataValue {
            source_timestamp: Some(back(1500)),
            ..DataValue::new(8.0)
        },
    );
    let subscription = it.create_every(100.0);
    try_item(
        &mut it,
        subscription,
        NUMBER,
        &filter(ids::AGGREGATE_FUNCTION_TIME_AVERAGE2, back(3000), 1000.0),
    );
    it.publish_many(3);
    it.run(200);
    assert_eq!(
        reported(&mut it, now),
        [(None, -3000), (Some(8.0), -2000), (Some(8.0), -1000)]
    );
}

#[test]
fn refused_filters() {
    let mut it = bench();
    let subscription = it.create_every(100.0);
    let now = it.now.utc;
    let text = ItemTraits {
        is_number: false,
        ..NUMBER
    };
    let boolean = ItemTraits {
        is_boolean: true,
        ..text
    };
    let not_value = ItemTraits {
        is_value: false,
        ..NUMBER
    };
    let of = |function| filter(function, now, 1000.0);
    let average = of(ids::AGGREGATE_FUNCTION_AVERAGE);
    let mut percent = average.clone();
    percent.aggregate_configuration = AggregateConfiguration {
        percent_data_bad: 10,
        percent_data_good: 20,
        ..AggregateConfiguration::default()
    };
    let cases = [
        (&average, not_value, StatusCode::BAD_FILTER_NOT_ALLOWED),
        (&average, text, StatusCode::BAD_AGGREGATE_INVALID_INPUTS),
        (&average, boolean, StatusCode::GOOD),
        (&of(ids::AGGREGATE_FUNCTION_COUNT), text, StatusCode::GOOD),
        (
            &of(ids::AGGREGATE_FUNCTION_ANNOTATION_COUNT),
            NUMBER,
            StatusCode::BAD_AGGREGATE_NOT_SUPPORTED,
        ),
        (&of(ids::SERVER), NUMBER, StatusCode::BAD_AGGREGATE_NOT_SUPPORTED),
        (&percent, NUMBER, StatusCode::BAD_AGGREGATE_CONFIGURATION_REJECTED),
    ];
    for (filter, traits, expected) in cases {
        let result = try_item(&mut it, subscription, traits, filter);
        assert_eq!(result.status_code, expected, "{filter:?} {traits:?}");
        assert_eq!(result.filter_result.is_null(), expected.is_bad());
    }
}

#[test]
fn disabling_forgets_and_enabling_begins_anew() {
    let mut it = bench();
    let start = it.now.utc;
    set(&mut it, 5.0);
    let (subscription, id) = item(&mut it, ids::AGGREGATE_FUNCTION_COUNT);
    it.run(300);
    let mode = |it: &mut Bench, mode| {
        it.subscriptions
            .set_monitoring_mode(it.now, subscription, mode, &[id])
            .unwrap();
    };
    mode(&mut it, MonitoringMode::DISABLED);
    it.run(4000);
    assert_eq!(reported(&mut it, start), []);
    it.publish_many(8);
    // At 4.3 s, in the interval from 4 s.
    mode(&mut it, MonitoringMode::REPORTING);
    it.run(1000);
    assert_eq!(
        reported(&mut it, start),
        [(Some(0.0), 4000)],
        "the value is from before"
    );
}

#[test]
fn a_node_that_goes_and_comes_back() {
    let mut it = bench();
    let start = it.now.utc;
    set(&mut it, 5.0);
    item(&mut it, ids::AGGREGATE_FUNCTION_TIME_AVERAGE2);
    it.run(300);
    it.subscriptions.visit_sources(it.now, |_, _| SourceChange::Gone);
    it.run(2000);
    let statuses: Vec<_> = values(&mut it).iter().map(DataValue::status).collect();
    assert_eq!(statuses, [StatusCode::BAD_NODE_ID_UNKNOWN]);
    it.publish_many(4);
    let value = it.world.values[&1].1.clone();
    it.subscriptions.visit_sources(it.now, |_, _| SourceChange::Rebound {
        source: source(1),
        value: Some(value.clone()),
    });
    it.run(200);
    let results = reported(&mut it, start);
    assert_eq!(results, [(Some(5.0), 0), (Some(5.0), 1000)]);
}

#[test]
fn modifying_the_filter_begins_anew() {
    let mut it = bench();
    let start = it.now.utc;
    set(&mut it, 5.0);
    let (subscription, id) = item(&mut it, ids::AGGREGATE_FUNCTION_COUNT);
    it.run(1250);
    assert_eq!(reported(&mut it, start), [(Some(1.0), 0)]);
    let modify = |it: &mut Bench, filter: ExtensionObject| {
        let mut request = MonitoredItemModifyRequest {
            monitored_item_id: id,
            ..MonitoredItemModifyRequest::default()
        };
        request.requested_parameters = super::support::request(1).requested_parameters;
        request.requested_parameters.filter = filter;
        let results = it
            .subscriptions
            .modify_monitored_items(it.now, subscription, TimestampsToReturn::BOTH, &[request])
            .unwrap();
        assert_eq!(results[0].status_code, StatusCode::GOOD);
        results[0].filter_result.is_null()
    };
    let now = it.now.utc;
    let maximum = ExtensionObject::from_structure(&filter(ids::AGGREGATE_FUNCTION_TIME_AVERAGE2, now, 1000.0));
    assert!(!modify(&mut it, maximum));
    it.publish_many(5);
    it.run(1250);
    assert_eq!(reported(&mut it, now), [(Some(5.0), 0)]);
    // Without a filter the item reports the value itself again.
    assert!(modify(&mut it, ExtensionObject::NULL));
    it.publish_many(5);
    it.run(300);
    let statuses: Vec<_> = values(&mut it).iter().map(DataValue::status).collect();
    assert_eq!(statuses, [StatusCode::GOOD]);
    it.run(3000);
    assert_eq!(values(&mut it), []);
}

#[test]
fn a_queue_of_results_overflows_like_any_other() {
    let mut it = bench();
    let start = it.now.utc;
    let subscription = it.create_every(60_000.0);
    set(&mut it, 5.0);
    try_item(
        &mut it,
        subscription,
        NUMBER,
        &filter(ids::AGGREGATE_FUNCTION_START, start, 1000.0),
    );
    it.publish_many(2);
    it.run(60_000);
    let results = reported(&mut it, start);
    // Ten are kept: the newest.
    assert_eq!(results.len(), 10);
    assert_eq!(results.last().unwrap().1, 58_000);
    assert_eq!(it.subscriptions.counters().lost_values, 49);
}

#[test]
fn deleted_items_wake_nobody() {
    let mut it = bench();
    set(&mut it, 5.0);
    let (subscription, id) = item(&mut it, ids::AGGREGATE_FUNCTION_COUNT);
    it.run(500);
    it.subscriptions.delete_monitored_items(subscription, &[id]).unwrap();
    it.run(3000);
    assert_eq!(values(&mut it), []);
    let sampled = it.world.sampled.len();
    it.run(1000);
    assert_eq!(it.world.sampled.len(), sampled);
}
