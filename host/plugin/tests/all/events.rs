//! Events that plugins raise: what reaches the host, and what is refused.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use backplane_plugin::{EventSink, PluginEvent};
use backplane_types::{ByteString, NodeId, QualifiedName, StatusCode, Variant, ids};

use crate::guests::Plant;
use crate::support::quick;

/// Keeps everything.
#[derive(Default)]
struct Kept {
    events: Mutex<Vec<PluginEvent>>,
    quarantined: Mutex<Vec<String>>,
}

impl EventSink for Kept {
    fn emit(&self, event: PluginEvent) -> Option<ByteString> {
        self.events.lock().unwrap().push(event);
        Some(ByteString::from(&[1, 2, 3]))
    }

    fn quarantined(&self, plugin: &str, reason: &str) {
        assert!(!reason.is_empty());
        self.quarantined.lock().unwrap().push(plugin.to_owned());
    }
}

fn field(event: &PluginEvent, namespace: u16, name: &str) -> Option<Variant> {
    let path = [QualifiedName::new(namespace, name)];
    let found = event.fields.iter().find(|(field, _)| **field == path);
    found.map(|(_, value)| value.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_event_arrives_with_its_fields() {
    let kept = Arc::new(Kept::default());
    let plant = Plant::listening("simulator", quick(), Arc::clone(&kept) as Arc<dyn EventSink>).await;
    let call = plant.call(Duration::from_secs(30));
    // InjectFault, Stuck.
    let inputs = vec![Variant::Int32(1), Variant::Double(0.5)];
    let inject = plant.tag_of("Boiler.InjectFault");
    let outcome = plant
        .manager("Boiler")
        .call(&call, &plant.id("Boiler"), inject, inputs)
        .await;
    assert_eq!(outcome.unwrap().status, StatusCode::GOOD);
    let events = kept.events.lock().unwrap();
    let failure = NodeId::numeric(0, ids::object_type::DEVICE_FAILURE_EVENT_TYPE);
    let event = events.iter().find(|event| event.event_type == failure).unwrap();
    assert_eq!(event.source, plant.id("Boiler"));
    assert_eq!(field(event, 0, "Severity"), Some(Variant::UInt16(500)));
    assert!(matches!(field(event, 0, "Message"), Some(Variant::LocalizedText(_))));
    assert!(plant.bench.status("simulator").counts.events > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_events_are_refused_one_by_one() {
    let kept = Arc::new(Kept::default());
    let plant = Plant::listening("wrong-type", quick(), Arc::clone(&kept) as Arc<dyn EventSink>).await;
    plant
        .until("RefusedEvents", |value| *value == Variant::UInt32(10))
        .await;
    let counts = plant.bench.status("wrong-type").counts;
    assert!(
        counts.events >= 1 && counts.refused_events >= 10 && counts.faults == 0,
        "{counts:?}"
    );
    let events = kept.events.lock().unwrap();
    assert!(
        events
            .iter()
            .all(|event| field(event, 0, "Severity") == Some(Variant::UInt16(900)))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_without_events_says_so_and_the_plugin_goes_on() {
    let plant = Plant::new("wrong-type", quick()).await;
    plant
        .until("RefusedEvents", |value| *value == Variant::UInt32(11))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_is_given_up_is_an_event() {
    let kept = Arc::new(Kept::default());
    let mut options = quick();
    options.restart.quarantine_after = 1;
    let bench = Plant::bench_listening(options, Arc::clone(&kept) as Arc<dyn EventSink>);
    let path = bench.put("panics-in-start.wasm", &crate::guests::guest("panics-in-start"));
    bench.host.load(&path).await.unwrap_err();
    bench
        .until("panics-in-start", |status| status.state.name() == "quarantined")
        .await;
    assert_eq!(*kept.quarantined.lock().unwrap(), ["panics-in-start"]);
}
