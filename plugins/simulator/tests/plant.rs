//! The plant against a host that only pretends: no server, no network, no real time.

use std::time::Duration;

use backplane_sdk::testing::{Class, FakeHost};
use backplane_sdk::{ExtensionObject, Matrix, Namespace, NodeId, StatusCode, Value, ids};
use simulator::Simulator;

fn started() -> (FakeHost<Simulator>, Namespace) {
    let mut host = FakeHost::new();
    host.start().expect("the simulator starts");
    let ns = host.namespace("urn:backplane:simulator");
    (host, ns)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn the_fixture_has_the_nodes_that_scripts_expect() {
    let (host, ns) = started();
    assert_eq!(ns, Namespace(1));
    let under = |id: &str| {
        host.node(&ns.id(id))
            .unwrap_or_else(|| panic!("{id} is missing"))
            .parent
    };
    for name in ["Var1", "Counter", "Add", "the.answer", "Build"] {
        assert_eq!(under(name), ns.id("Dev"), "{name}");
    }
    assert_eq!(under("Dev"), NodeId::standard(ids::OBJECTS_FOLDER));
    assert_eq!(host.get::<i32>(&ns.id("the.answer")), Some(42));
    let types = [
        ("Boolean", 1),
        ("SByte", 2),
        ("Byte", 3),
        ("Int16", 4),
        ("UInt16", 5),
        ("Int32", 6),
        ("UInt32", 7),
        ("Int64", 8),
        ("UInt64", 9),
        ("Float", 10),
        ("Double", 11),
        ("String", 12),
        ("DateTime", 13),
        ("Guid", 14),
        ("ByteString", 15),
        ("NodeId", 17),
        ("ExpandedNodeId", 18),
        ("QualifiedName", 20),
        ("LocalizedText", 21),
        ("Variant", 24),
    ];
    for (name, number) in types {
        for kind in ["Scalar", "Array"] {
            let id = ns.id(format!("Static_{kind}_{name}"));
            let node = host.node(&id).unwrap_or_else(|| panic!("{id} is missing"));
            let Class::Variable { data_type, access, .. } = node.class else {
                panic!("{id} is no variable")
            };
            assert_eq!(data_type, NodeId::standard(number), "{id}");
            assert_eq!(access, ids::access::CURRENT_READ | ids::access::CURRENT_WRITE, "{id}");
            let rank = node.attributes.get(&ids::attribute::VALUE_RANK).and_then(Value::get);
            assert_eq!(rank, if kind == "Array" { Some(1i32) } else { None }, "{id}");
        }
    }
    assert_eq!(host.children(&ns.id("Static")).len(), 40);
}

#[test]
fn the_load_variables_take_turns() {
    let (host, ns) = started();
    assert_eq!(host.children(&ns.id("Load")).len(), 300);
    for number in 1000..1300 {
        let value = host.value(&ns.number(number)).value;
        let expected = [Value::Int32(0), Value::Double(0.0), Value::Uint64(0)][(number as usize - 1000) % 3].clone();
        assert_eq!(value, expected, "i={number}");
    }
}

#[test]
fn load_variables_change_only_when_that_is_set() {
    let (mut host, ns) = started();
    host.advance(seconds(1)).expect("wakes");
    assert_eq!(host.get::<f64>(&ns.number(1001)), Some(0.0));

    let mut host = FakeHost::<Simulator>::new().with_setting("load_period_ms", "50");
    host.start().expect("the simulator starts");
    host.advance(seconds(1)).expect("wakes");
    assert_eq!(host.get::<i32>(&ns.number(1000)), Some(20));
    assert_eq!(host.get::<f64>(&ns.number(1001)), Some(20.0));
    assert_eq!(host.get::<u64>(&ns.number(1299)), Some(20));
}

#[test]
fn settings_move_the_namespace_and_the_pace() {
    let mut host = FakeHost::<Simulator>::new()
        .with_setting("namespace", "\"urn:elsewhere\"")
        .with_setting("period_ms", "500");
    host.start().expect("the simulator starts");
    let ns = host.namespace("urn:elsewhere");
    host.advance(seconds(10)).expect("wakes");
    assert_eq!(host.get::<u64>(&ns.id("Signals.Ticks")), Some(20));
    assert_eq!(host.get::<u32>(&ns.id("Counter")), Some(100));
}

#[test]
fn the_counter_counts_every_100_ms() {
    let (mut host, ns) = started();
    host.advance(Duration::from_millis(2_350)).expect("wakes");
    assert_eq!(host.get::<u32>(&ns.id("Counter")), Some(23));
}

#[test]
fn add_adds_and_checks_its_arguments() {
    let (mut host, ns) = started();
    let (dev, add) = (ns.id("Dev"), ns.id("Add"));
    let sum = host
        .invoke(&dev, &add, &[Value::from(1.5), Value::from(2.25)])
        .expect("a sum");
    assert_eq!(sum.outputs, [Value::Double(3.75)]);
    let fault = host
        .invoke(&dev, &add, &[Value::from("1"), Value::from(2.25)])
        .expect_err("a text is no number");
    assert_eq!(fault.status_code(), StatusCode::BAD_TYPE_MISMATCH);
    let fault = host
        .invoke(&ns.id("Static"), &add, &[])
        .expect_err("not a method of this object");
    assert_eq!(fault.status_code(), StatusCode::BAD_METHOD_INVALID);
}

#[test]
fn writes_are_kept_and_checked() {
    let (mut host, ns) = started();
    assert_eq!(host.write(&ns.id("Var1"), 12.5), StatusCode::GOOD);
    assert_eq!(host.get::<f64>(&ns.id("Var1")), Some(12.5));
    assert_eq!(host.write(&ns.id("Var1"), "text"), StatusCode::BAD_TYPE_MISMATCH);
    assert_eq!(host.write(&ns.id("Counter"), 1u32), StatusCode::BAD_NOT_WRITABLE);
    assert_eq!(
        host.write(&ns.id("Static_Array_Int16"), vec![1i16, 2, 3, 4]),
        StatusCode::GOOD
    );
    assert_eq!(
        host.get::<Vec<i16>>(&ns.id("Static_Array_Int16")),
        Some(vec![1, 2, 3, 4])
    );
    assert_eq!(
        host.write(&ns.id("Static_Scalar_Variant"), "anything"),
        StatusCode::GOOD
    );
    assert_eq!(
        host.write(&ns.id("Boiler.TargetTemperature"), 500.0),
        StatusCode::BAD_OUT_OF_RANGE
    );
    assert_eq!(host.get::<f64>(&ns.id("Boiler.TargetTemperature")), Some(65.0));
    assert_eq!(host.write(&ns.id("Boiler.Mode"), 17), StatusCode::BAD_OUT_OF_RANGE);
    assert_eq!(host.write(&ns.id("Signals.Period"), 0.0), StatusCode::BAD_OUT_OF_RANGE);
}

#[test]
fn the_boiler_reaches_its_target_and_cools_down_when_off() {
    let (mut host, ns) = started();
    let temperature = ns.id("Boiler.Temperature");
    host.advance(seconds(300)).expect("wakes");
    let warm: f64 = host.get(&temperature).expect("a temperature");
    assert!((warm - 65.0).abs() < 0.5, "{warm}");
    assert_eq!(host.write(&ns.id("Boiler.TargetTemperature"), 90.0), StatusCode::GOOD);
    host.advance(seconds(300)).expect("wakes");
    let hot: f64 = host.get(&temperature).expect("a temperature");
    assert!((hot - 90.0).abs() < 0.5, "{hot}");
    assert_eq!(host.write(&ns.id("Boiler.Mode"), 0), StatusCode::GOOD);
    host.advance(seconds(600)).expect("wakes");
    let cold: f64 = host.get(&temperature).expect("a temperature");
    assert!(cold < 21.0, "{cold}");
    assert_eq!(host.get::<u64>(&ns.id("Boiler.Starts")), Some(1));
}

#[test]
fn set_target_ramps() {
    let (mut host, ns) = started();
    host.advance(seconds(1)).expect("wakes");
    let (boiler, target) = (ns.id("Boiler"), ns.id("Boiler.TargetTemperature"));
    let set = |host: &mut FakeHost<Simulator>, temperature: f64, ramp: f64| {
        host.invoke(&boiler, &ns.id("Boiler.SetTarget"), &[temperature.into(), ramp.into()])
            .expect("an answer")
            .outputs
    };
    assert_eq!(set(&mut host, 85.0, 10.0), [Value::Double(65.0), Value::Boolean(true)]);
    host.advance(seconds(5)).expect("wakes");
    assert_eq!(host.get::<f64>(&target), Some(75.0));
    host.advance(seconds(6)).expect("wakes");
    assert_eq!(host.get::<f64>(&target), Some(85.0));
    assert_eq!(set(&mut host, 200.0, 0.0), [Value::Double(85.0), Value::Boolean(false)]);
    assert_eq!(
        set(&mut host, f64::NAN, 0.0),
        [Value::Double(85.0), Value::Boolean(false)]
    );
    assert_eq!(set(&mut host, 30.0, 0.0), [Value::Double(85.0), Value::Boolean(true)]);
    assert_eq!(host.get::<f64>(&target), Some(30.0));
}

#[test]
fn structure_matrix_and_enumeration_carry_the_state() {
    let (mut host, ns) = started();
    host.advance(seconds(1)).expect("wakes");
    let burner: ExtensionObject = host.get(&ns.id("Boiler.Burner")).expect("a structure");
    assert_eq!(burner.type_id, ns.number(5001));
    // Running, then a power that is not 0.
    assert_eq!(burner.body[0], 1);
    assert_ne!(burner.body[1..9], [0; 8]);
    let zones: Matrix<f64> = host.get(&ns.id("Boiler.Zones")).expect("a matrix");
    assert_eq!(zones.dimensions(), [3, 4]);
    let node = host.node(&ns.id("Boiler.Zones")).expect("declared");
    assert_eq!(node.attributes.get(&ids::attribute::VALUE_RANK), Some(&Value::Int32(2)));
    assert_eq!(
        node.attributes.get(&ids::attribute::ARRAY_DIMENSIONS),
        Some(&Value::Uint32s(vec![3, 4]))
    );
    assert_eq!(host.get::<i32>(&ns.id("Boiler.Mode")), Some(2));
    let mode = host.node(&ns.id("OperatingMode")).expect("declared");
    assert_eq!(mode.parent, NodeId::standard(ids::ENUMERATION));
    assert_eq!(
        host.node(&ns.id("Boiler.Temperature")).and_then(|node| node.analog),
        Some((0.0, 150.0, "CEL".to_owned()))
    );
}

#[test]
fn on_demand_variables_are_asked_for() {
    let (mut host, ns) = started();
    host.advance(seconds(1)).expect("wakes");
    let answers = host
        .read(&[
            ns.id("Boiler.Power"),
            ns.id("Boiler.Efficiency"),
            ns.id("Boiler.DeviceTime"),
        ])
        .expect("answers");
    assert_eq!(answers[0].value.get::<f64>(), Some(120.0));
    assert!(
        answers[1]
            .value
            .get::<f32>()
            .is_some_and(|efficiency| (efficiency - 0.8).abs() < 1e-6)
    );
    assert!(matches!(answers[2].value, Value::Time(ticks) if ticks > 0));
}

#[test]
fn faults_can_be_injected_and_pass() {
    let (mut host, ns) = started();
    host.advance(seconds(10)).expect("wakes");
    let (boiler, inject, temperature) = (
        ns.id("Boiler"),
        ns.id("Boiler.InjectFault"),
        ns.id("Boiler.Temperature"),
    );
    let status = |host: &FakeHost<Simulator>| StatusCode(host.value(&temperature).status);

    host.invoke(&boiler, &inject, &[3.into(), 5.0.into()]).expect("offline");
    assert_eq!(status(&host), StatusCode::BAD_NO_COMMUNICATION);
    let power = host.read(&[ns.id("Boiler.Power")]).expect("an answer");
    assert_eq!(power[0].status, StatusCode::BAD_NO_COMMUNICATION.0);
    assert_eq!(StatusCode(host.value(&ns.id("Signals.Sine")).status), StatusCode::GOOD);
    let failure = NodeId::standard(ids::DEVICE_FAILURE_EVENT_TYPE);
    let failures = host.events().iter().filter(|event| event.event_type == failure).count();
    assert_eq!(failures, 1);
    host.advance(seconds(4)).expect("wakes");
    assert_eq!(status(&host), StatusCode::BAD_NO_COMMUNICATION);
    host.advance(seconds(2)).expect("wakes");
    assert_eq!(status(&host), StatusCode::GOOD);
    assert_eq!(host.get::<i32>(&ns.id("Boiler.Fault")), Some(0));

    assert_eq!(host.write(&ns.id("Boiler.Fault"), 1), StatusCode::GOOD);
    host.advance(seconds(1)).expect("wakes");
    let stuck: f64 = host.get(&temperature).expect("a temperature");
    host.advance(seconds(5)).expect("wakes");
    assert_eq!(host.get::<f64>(&temperature), Some(stuck));

    assert_eq!(host.write(&ns.id("Boiler.Fault"), 2), StatusCode::GOOD);
    let spikes = (0..20).filter(|_| {
        host.advance(Duration::from_millis(100)).expect("wakes");
        host.get::<f64>(&temperature).is_some_and(|shown| shown > 400.0)
    });
    assert_eq!(spikes.count(), 4);

    host.invoke(&boiler, &ns.id("Boiler.Reset"), &[]).expect("reset");
    host.advance(Duration::from_millis(100)).expect("wakes");
    assert!(host.get::<f64>(&temperature).is_some_and(|shown| shown < 30.0));
    let refused = host
        .invoke(&boiler, &inject, &[9.into(), 1.0.into()])
        .expect("an answer");
    assert_eq!(refused.input_status, [StatusCode::BAD_OUT_OF_RANGE, StatusCode::GOOD]);
}

#[test]
fn the_signals_follow_their_set_points() {
    let (mut host, ns) = started();
    assert_eq!(host.write(&ns.id("Signals.Amplitude"), 100.0), StatusCode::GOOD);
    assert_eq!(host.write(&ns.id("Signals.Period"), 4.0), StatusCode::GOOD);
    host.advance(seconds(1)).expect("wakes");
    let sine: f64 = host.get(&ns.id("Signals.Sine")).expect("a sine");
    let offset = if cfg!(feature = "variant-b") { 500.0 } else { 0.0 };
    assert!((sine - offset - 100.0).abs() < 1e-6, "{sine}");
    assert_eq!(host.get::<f64>(&ns.id("Signals.Ramp")), Some(25.0));
    assert_eq!(host.get::<bool>(&ns.id("Signals.Square")), Some(false));
    host.advance(seconds(1)).expect("wakes");
    assert_eq!(host.get::<bool>(&ns.id("Signals.Square")), Some(true));
    for _ in 0..100 {
        host.advance(Duration::from_millis(100)).expect("wakes");
        assert!(
            host.get::<f64>(&ns.id("Signals.RandomWalk"))
                .is_some_and(|walk| walk.abs() <= 100.0)
        );
    }
}

#[test]
fn the_next_generation_goes_on() {
    let (mut host, ns) = started();
    assert_eq!(host.write(&ns.id("Boiler.TargetTemperature"), 90.0), StatusCode::GOOD);
    assert_eq!(host.write(&ns.id("Var1"), 12.5), StatusCode::GOOD);
    host.advance(seconds(300)).expect("wakes");
    let mut next = host.hand_over::<Simulator>().expect("takes over");
    next.advance(Duration::from_millis(100)).expect("wakes");
    assert_eq!(next.get::<u32>(&ns.id("Counter")), Some(3001));
    assert_eq!(next.get::<f64>(&ns.id("Var1")), Some(12.5));
    let temperature: f64 = next.get(&ns.id("Boiler.Temperature")).expect("a temperature");
    assert!((temperature - 90.0).abs() < 0.5, "{temperature}");
}

#[test]
fn the_next_generation_goes_on_with_what_it_was_in_the_middle_of_and_reads_older_states() {
    use backplane_sdk::Handover;
    let (mut host, ns) = started();
    assert_eq!(host.write(&ns.id("Boiler.Fault"), 1), StatusCode::GOOD);
    host.advance(seconds(60)).expect("wakes");
    let starts: Option<u64> = host.get(&ns.id("Boiler.Starts"));
    assert!(starts > Some(0));
    let events = host.events().len();
    let mut next = host.hand_over::<Simulator>().expect("takes over");
    next.advance(seconds(1)).expect("wakes");
    assert_eq!(next.get::<i32>(&ns.id("Boiler.Fault")), Some(1));
    // The burner burns on, and an alarm that was raised is not raised again.
    assert_eq!(next.get::<u64>(&ns.id("Boiler.Starts")), starts);
    assert!(events > 0 && next.events().len() <= events, "{events}");
    let mut first = Simulator::default().save().expect("a state");
    // The first form ends before an enumeration and eight fields of eight bytes.
    first.truncate(first.len() - 68);
    assert!(Simulator::default().restore(1, &first).is_ok());
    assert!(Simulator::default().restore(2, &first).is_err());
}

#[test]
fn a_broken_state_is_refused() {
    use backplane_sdk::Handover;
    for state in [&[][..], &[1, 2, 3], &[0xFF; 200]] {
        let fault = Simulator::default().restore(1, state).expect_err("not a state");
        assert_eq!(fault.status_code(), StatusCode::BAD_DECODING_ERROR);
    }
}

#[test]
fn the_level_raises_an_alarm_when_it_leaves_its_range_and_when_it_comes_back() {
    let (mut host, ns) = started();
    host.advance(seconds(60)).expect("wakes");
    let events = host.events();
    let states: Vec<Value> = events
        .iter()
        .filter(|event| event.event_type == ns.id("LevelAlarmType"))
        .map(|event| {
            assert_eq!(event.source, ns.id("Boiler"));
            let field = |name: &str| event.fields.iter().find(|(field, _)| field == name);
            assert!(field("Severity").is_some() && field("Message").is_some() && field("1:Level").is_some());
            field("1:State").expect("a state").1.clone()
        })
        .collect();
    assert_eq!(
        states,
        ["high", "normal", "low", "normal"].map(|it| Value::from(it.to_owned()))
    );
}
