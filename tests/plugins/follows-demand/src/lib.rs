//! Writes down which of its variables are monitored, and how fast: `s=Told` has "tag:interval" of each, `s=Calls` counts how often it was told since
//! it started. `s=Target` and `s=Other` are kept by the host, `s=Asked` is asked for.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use backplane_sdk::{
    Call, Change, DataValue, Demand, Fault, Folder, NodeManager, Reader, StartReason, Tag, Variable, namespace, publish,
};

const TARGET: Tag<f64> = Tag::new(1);
const OTHER: Tag<f64> = Tag::new(2);
const ASKED: Tag<f64> = Tag::new(3);
const TOLD: Tag<String> = Tag::new(4);
const CALLS: Tag<u32> = Tag::new(5);

#[derive(Default)]
struct FollowsDemand {
    watched: BTreeMap<u32, f64>,
    calls: u32,
}

impl NodeManager for FollowsDemand {
    fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
        let ns = namespace("urn:backplane:test:follows-demand");
        let folder = ns.id("FollowsDemand");
        let value = |tag, name: &str| Variable::new(tag, ns.id(name), name).under(&folder);
        Change::new()
            .add(Folder::new(&folder, "FollowsDemand"))
            .add(value(TARGET, "Target").value(1.0))
            .add(value(OTHER, "Other").value(1.0))
            .add(value(ASKED, "Asked").on_demand(Duration::from_millis(10)))
            .add(Variable::new(TOLD, ns.id("Told"), "Told").under(&folder))
            .add(Variable::new(CALLS, ns.id("Calls"), "Calls").under(&folder))
            .commit()?;
        publish(&[TOLD.set(""), CALLS.set(0u32)])
    }
}

impl Demand for FollowsDemand {
    fn changed(&mut self, items: &[(u32, Option<f64>)]) {
        for (tag, interval) in items {
            match interval {
                Some(interval) => self.watched.insert(*tag, *interval),
                None => self.watched.remove(tag),
            };
        }
        self.calls += 1;
        let mut told = String::new();
        for (tag, interval) in &self.watched {
            let _ = write!(told, "{tag}:{interval} ");
        }
        // Both tags and types are right.
        let _ = publish(&[TOLD.set(told.trim_end()), CALLS.set(self.calls)]);
    }
}

impl Reader for FollowsDemand {
    fn read(&mut self, _call: Call, tags: &[u32], _max_age: f64) -> Result<Vec<DataValue>, Fault> {
        Ok(vec![DataValue::good(1.0); tags.len()])
    }
}

backplane_sdk::plugin!(FollowsDemand: reader, demand);
