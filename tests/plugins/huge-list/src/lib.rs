//! Publishes 200,000 values in one list every 200 ms. A write of `s=Target` makes one value of 16 MiB instead, a call of `s=Answer` answers with as many outputs.
#![forbid(unsafe_code)]

use std::time::Duration;

use backplane_sdk::{
    Call, Change, Fault, Folder, Invoked, Method, Methods, NodeId, NodeManager, Outcome, StartReason, StatusCode, Tag,
    Update, Value, Variable, WriteRequest, Writer, every, namespace, publish, warn,
};

const TARGET: Tag<f64> = Tag::new(1);
const LARGE: Tag<String> = Tag::new(2);
const ANSWER: Tag<Invoked> = Tag::new(3);

#[derive(Default)]
struct HugeList;

impl NodeManager for HugeList {
    fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
        let ns = namespace("urn:backplane:test:huge-list");
        let folder = ns.id("HugeList");
        Change::new()
            .add(Folder::new(&folder, "HugeList"))
            .add(
                Variable::new(TARGET, ns.id("Target"), "Target")
                    .under(&folder)
                    .value(0.0)
                    .writable(),
            )
            .add(
                Variable::new(LARGE, ns.id("Large"), "Large")
                    .under(&folder)
                    .value("small"),
            )
            .add(
                Method::new(ANSWER, ns.id("Answer"), "Answer")
                    .under(&folder)
                    .output::<f64>("only", "One"),
            )
            .commit()?;
        every(Duration::from_millis(200), 1);
        Ok(())
    }

    fn wake(&mut self, _token: u64) -> Result<(), Fault> {
        let updates: Vec<Update> = (0..200_000u32).map(|number| TARGET.set(f64::from(number))).collect();
        let outcome = publish(&updates);
        if let Err(fault) = &outcome {
            warn!("a list of 200,000 values: {}", fault.detail);
        }
        outcome
    }
}

impl Writer for HugeList {
    fn write(&mut self, _call: Call, requests: &[WriteRequest]) -> Result<Vec<StatusCode>, Fault> {
        publish(&[LARGE.set("x".repeat(16 << 20))])?;
        Ok(vec![StatusCode::GOOD; requests.len()])
    }
}

impl Methods for HugeList {
    fn invoke(&mut self, _call: Call, _object: &NodeId, _tag: u32, _inputs: &[Value]) -> Result<Outcome, Fault> {
        Ok(Outcome::good(vec![Value::from(1.0); 500_000]))
    }
}

backplane_sdk::plugin!(HugeList: writer, methods);
