//! Publishes, every 100 ms, values that must be refused one by one beside one that is good: a text and an array for a Double, an unknown tag, and bytes that
//! are no value. `s=Refused` says how many were, `s=Good` counts on.
#![forbid(unsafe_code)]

use std::time::Duration;

use backplane_sdk::{
    Change, DataValue, Event, Fault, Folder, NodeId, NodeManager, StartReason, StatusCode, Tag, Update, Value,
    Variable, every, ids, namespace, publish, publish_each,
};

const TARGET: Tag<f64> = Tag::new(1);
const REFUSED: Tag<u32> = Tag::new(2);
const GOOD: Tag<u32> = Tag::new(3);
const REFUSED_EVENTS: Tag<u32> = Tag::new(4);

#[derive(Default)]
struct WrongType {
    counter: u32,
    folder: Option<NodeId>,
}

impl NodeManager for WrongType {
    fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
        let ns = namespace("urn:backplane:test:wrong-type");
        let folder = ns.id("WrongType");
        Change::new()
            .add(Folder::new(&folder, "WrongType"))
            .add(
                Variable::new(TARGET, ns.id("Target"), "Target")
                    .under(&folder)
                    .value(1.0),
            )
            .add(
                Variable::new(REFUSED, ns.id("Refused"), "Refused")
                    .under(&folder)
                    .value(0u32),
            )
            .add(Variable::new(GOOD, ns.id("Good"), "Good").under(&folder).value(0u32))
            .add(
                Variable::new(REFUSED_EVENTS, ns.id("RefusedEvents"), "RefusedEvents")
                    .under(&folder)
                    .value(0u32),
            )
            .commit()?;
        every(Duration::from_millis(100), 1);
        if Event::new(&folder, NodeId::standard(ids::BASE_EVENT_TYPE))
            .raise()
            .is_ok()
        {
            return Err(Fault::new(
                StatusCode::BAD_UNEXPECTED_ERROR,
                "an event before anybody can see it",
            ));
        }
        self.folder = Some(folder);
        Ok(())
    }

    fn wake(&mut self, _token: u64) -> Result<(), Fault> {
        self.counter = self.counter.wrapping_add(1);
        let refused = publish_each(&[
            TARGET.update(DataValue::good("not a number")),
            TARGET.update(DataValue::good(vec![1.0, 2.0])),
            Update {
                tag: 77,
                value: DataValue::good(1.0),
            },
            GOOD.set(self.counter),
            TARGET.update(DataValue::good(Value::Encoded(vec![]))),
            TARGET.update(DataValue::good(Value::Encoded(vec![0x0B, 1, 2]))),
            TARGET.update(DataValue::good(Value::Encoded(vec![0xFF; 40]))),
            TARGET.update(DataValue::good(Value::Encoded(nested(1_000)))),
            TARGET.update(DataValue::good(Value::Guid(vec![1; 3]))),
        ])?;
        let events = self.folder.as_ref().map_or(0, refused_events);
        publish(&[REFUSED.set(refused.len() as u32), REFUSED_EVENTS.set(events)])
    }
}

/// Raises events, of which all but the last must be refused. How many were.
fn refused_events(folder: &NodeId) -> u32 {
    let base = || NodeId::standard(ids::BASE_EVENT_TYPE);
    let own = || Event::new(folder, base());
    let events = [
        Event::new(folder, NodeId::standard(ids::BASE_OBJECT_TYPE)),
        Event::new(folder, NodeId::numeric(900, 1)),
        Event::new(NodeId::standard(ids::SERVER), base()),
        own().standard("Severity", "high".to_owned()),
        own().standard("Nonsense", 1u16),
        own().standard("EventId", vec![1u8]),
        own().standard("77:Severity", 1u16),
        own().standard("", 1u16),
        own().standard("Message/Message/Message", 1u16),
        own().message("x".repeat(100_000).as_str()),
        own().severity(900).message("This one is good"),
    ];
    events.into_iter().map(|event| u32::from(event.raise().is_err())).sum()
}

/// Arrays of Variant in each other.
fn nested(depth: usize) -> Vec<u8> {
    [0x98, 1, 0, 0, 0].repeat(depth)
}

backplane_sdk::plugin!(WrongType);
