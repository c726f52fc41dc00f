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
//! | `k0`, `k1`, ... | UInt64 | kept by the host, and one more every `advance` = 10 ms | `kept` = 0 |
//!
//! No kind has more than 100,000.
#![forbid(unsafe_code)]

use std::time::Duration;

use backplane_sdk::{
    Call, Change, DataValue, Fault, Folder, NodeManager, Reader, StartReason, StatusCode, Tag, Update, Variable,
    WriteRequest, Writer, every, monotonic, namespace, publish, setting,
};

/// Most variables of one kind.
const MOST: u32 = 100_000;
/// What the tags of each kind begin with; `v0` and its like have none.
const WRITTEN: u32 = 1;
const ON_DEMAND: u32 = 1_000_000;
const COUNTERS: u32 = 2_000_000;
const KEPT: u32 = 3_000_000;
/// The only timer.
const ADVANCE: u64 = 1;
/// Counters may be sampled this often.
const SAMPLING: Duration = Duration::from_millis(10);

/// The plugin.
#[derive(Debug, Default)]
pub struct Load {
    on_demand: u32,
    counters: Vec<u64>,
    kept: u32,
    /// The time between two values of the counters that the host keeps, in ms, and when there was the first.
    advance: f64,
    begun: f64,
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
        self.kept = number("kept", 0);
        for index in 0..self.kept {
            let name = format!("k{index}");
            let tag: Tag<u64> = Tag::new(KEPT + index);
            let node = Variable::new(tag, ns.id(name.as_str()), &name);
            change = change.add(node.under(&folder).value(0u64));
        }
        change.commit()?;
        if self.kept > 0 {
            self.advance = f64::from(setting::<u32>("advance").unwrap_or(10).max(1));
            self.begun = milliseconds();
            every(Duration::from_secs_f64(self.advance / 1_000.0), ADVANCE);
        }
        Ok(())
    }

    fn wake(&mut self, token: u64) -> Result<(), Fault> {
        if token != ADVANCE {
            return Ok(());
        }
        // By the clock, not by the call: a late one does not make the counter go wrong.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let value = ((milliseconds() - self.begun) / self.advance).max(0.0) as u64;
        let updates: Vec<Update> = (0..self.kept)
            .map(|index| Tag::<u64>::new(KEPT + index).set(value))
            .collect();
        publish(&updates)
    }
}

fn milliseconds() -> f64 {
    monotonic().as_secs_f64() * 1_000.0
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
