//! The variables that load is put on. This module is the whole plugin: it owns how many there are of each kind, and the counters.
//!
//! All of them have string ids in the namespace `urn:backplane:load`:
//!
//! | ids | type | what | setting, with its default |
//! |---|---|---|---|
//! | `v0`, `v1`, ... | Int32 | kept by the host, writable | `variables` = 1000 |
//! | `w0`, `w1`, ... | Int32 | kept by the host, writable; every write passes through the plugin | `variables` = 1000 |
//! | `d0`, `d1`, ... | Int32 | asked for at each read: always the number in the id | `on_demand` = 1000 |
//! | `c0`, `c1`, ... | UInt64 | asked for, and one more at each read | `counters` = 0 |
//!
//! No kind has more than 100,000.
#![forbid(unsafe_code)]

use std::time::Duration;

use backplane_sdk::{
    Call, Change, DataValue, Fault, Folder, NodeManager, Reader, StartReason, StatusCode, Tag, Variable, WriteRequest,
    Writer, namespace, setting,
};

/// Most variables of one kind.
const MOST: u32 = 100_000;
/// What the tags of each kind begin with; `v0` and its like have none.
const WRITTEN: u32 = 1;
const ON_DEMAND: u32 = 1_000_000;
const COUNTERS: u32 = 2_000_000;
/// Counters may be sampled this often.
const SAMPLING: Duration = Duration::from_millis(10);

/// The plugin.
#[derive(Debug, Default)]
pub struct Load {
    on_demand: u32,
    counters: Vec<u64>,
}

fn number(name: &str, unless_set: u32) -> u32 {
    setting::<u32>(name).unwrap_or(unless_set).min(MOST)
}

impl NodeManager for Load {
    fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
        let ns = namespace("urn:backplane:load");
        let variables = number("variables", 1_000);
        self.on_demand = number("on_demand", 1_000);
        let counters = number("counters", 0);
        self.counters = vec![0; usize::try_from(counters).unwrap_or(0)];

        let folder = ns.id("Load");
        let mut change = Change::new().add(Folder::new(&folder, "Load"));
        for index in 0..variables {
            for (prefix, tag) in [("v", Tag::NONE), ("w", Tag::new(WRITTEN + index))] {
                let name = format!("{prefix}{index}");
                let node: Variable<i32> = Variable::new(tag, ns.id(name.as_str()), &name);
                change = change.add(node.under(&folder).value(signed(index)).writable());
            }
        }
        for index in 0..self.on_demand {
            let name = format!("d{index}");
            let tag: Tag<i32> = Tag::new(ON_DEMAND + index);
            let node = Variable::new(tag, ns.id(name.as_str()), &name);
            change = change.add(node.under(&folder).on_demand(SAMPLING));
        }
        for index in 0..counters {
            let name = format!("c{index}");
            let tag: Tag<u64> = Tag::new(COUNTERS + index);
            let node = Variable::new(tag, ns.id(name.as_str()), &name);
            change = change.add(node.under(&folder).on_demand(SAMPLING));
        }
        change.commit()
    }
}

fn signed(index: u32) -> i32 {
    i32::try_from(index).unwrap_or(i32::MAX)
}

impl Load {
    fn value(&mut self, tag: u32) -> DataValue {
        if let Some(index) = tag.checked_sub(COUNTERS) {
            let counter = usize::try_from(index)
                .ok()
                .and_then(|index| self.counters.get_mut(index));
            return counter.map_or(DataValue::bad(StatusCode::BAD_NODE_ID_UNKNOWN), |counter| {
                *counter += 1;
                DataValue::good(*counter)
            });
        }
        match tag.checked_sub(ON_DEMAND) {
            Some(index) if index < self.on_demand => DataValue::good(signed(index)),
            _ => DataValue::bad(StatusCode::BAD_NODE_ID_UNKNOWN),
        }
    }
}

impl Reader for Load {
    fn read(&mut self, _call: Call, tags: &[u32], _max_age: f64) -> Result<Vec<DataValue>, Fault> {
        Ok(tags.iter().map(|tag| self.value(*tag)).collect())
    }
}

impl Writer for Load {
    fn write(&mut self, _call: Call, requests: &[WriteRequest]) -> Result<Vec<StatusCode>, Fault> {
        // The host keeps what was written.
        Ok(vec![StatusCode::GOOD; requests.len()])
    }
}

backplane_sdk::plugin!(Load: reader, writer);
