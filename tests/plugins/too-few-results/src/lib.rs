//! Answers one result too few to reads and writes, one too many when there is only one, and other outputs than declared to `s=Ask`.
#![forbid(unsafe_code)]

use std::time::Duration;

use backplane_sdk::{
    Call, Change, DataValue, Fault, Folder, Invoked, Method, Methods, NodeId, NodeManager, Outcome, Reader,
    StartReason, StatusCode, Tag, Value, Variable, WriteRequest, Writer, namespace,
};

const TARGET: Tag<f64> = Tag::new(1);
const ASKED: Tag<f64> = Tag::new(2);
const ASKED_TOO: Tag<f64> = Tag::new(3);
const ASK: Tag<Invoked> = Tag::new(4);

#[derive(Default)]
struct TooFewResults;

impl NodeManager for TooFewResults {
    fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
        let ns = namespace("urn:backplane:test:too-few-results");
        let folder = ns.id("TooFewResults");
        let often = Duration::from_millis(100);
        Change::new()
            .add(Folder::new(&folder, "TooFewResults"))
            .add(
                Variable::new(TARGET, ns.id("Target"), "Target")
                    .under(&folder)
                    .value(1.0)
                    .writable(),
            )
            .add(
                Variable::new(ASKED, ns.id("Asked"), "Asked")
                    .under(&folder)
                    .on_demand(often),
            )
            .add(
                Variable::new(ASKED_TOO, ns.id("AskedToo"), "AskedToo")
                    .under(&folder)
                    .on_demand(often),
            )
            .add(
                Method::new(ASK, ns.id("Ask"), "Ask")
                    .under(&folder)
                    .output::<f64>("a", "")
                    .output::<f64>("b", ""),
            )
            .commit()
    }
}

/// How many results there are instead of `count`.
fn wrong(count: usize) -> usize {
    if count == 1 { 2 } else { count.saturating_sub(1) }
}

impl Reader for TooFewResults {
    fn read(&mut self, _call: Call, tags: &[u32], _max_age: f64) -> Result<Vec<DataValue>, Fault> {
        Ok(vec![DataValue::good(1.0); wrong(tags.len())])
    }
}

impl Writer for TooFewResults {
    fn write(&mut self, _call: Call, requests: &[WriteRequest]) -> Result<Vec<StatusCode>, Fault> {
        Ok(vec![StatusCode::GOOD; wrong(requests.len())])
    }
}

impl Methods for TooFewResults {
    fn invoke(&mut self, _call: Call, _object: &NodeId, _tag: u32, _inputs: &[Value]) -> Result<Outcome, Fault> {
        Ok(Outcome::good([Value::from("neither two nor numbers")]))
    }
}

backplane_sdk::plugin!(TooFewResults: reader, writer, methods);
