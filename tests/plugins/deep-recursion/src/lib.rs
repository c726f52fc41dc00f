//! Calls itself without end when somebody writes `s=Target` or reads `s=Asked`.
#![forbid(unsafe_code)]

use std::time::Duration;

use backplane_sdk::{
    Call, Change, DataValue, Fault, Folder, NodeManager, Reader, StartReason, StatusCode, Tag, Variable, WriteRequest,
    Writer, namespace,
};

const TARGET: Tag<f64> = Tag::new(1);
const ASKED: Tag<u64> = Tag::new(2);

#[derive(Default)]
struct DeepRecursion;

impl NodeManager for DeepRecursion {
    fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
        let ns = namespace("urn:backplane:test:deep-recursion");
        let folder = ns.id("DeepRecursion");
        Change::new()
            .add(Folder::new(&folder, "DeepRecursion"))
            .add(
                Variable::new(TARGET, ns.id("Target"), "Target")
                    .under(&folder)
                    .value(1.0)
                    .writable(),
            )
            .add(
                Variable::new(ASKED, ns.id("Asked"), "Asked")
                    .under(&folder)
                    .on_demand(Duration::from_millis(100)),
            )
            .commit()
    }
}

/// The sum of an array that each call puts on the stack, and of all calls below.
#[expect(unconditional_recursion, reason = "that is the misdeed")]
fn recurse(depth: u64) -> u64 {
    let here = std::hint::black_box([depth; 32]);
    let below = recurse(depth.wrapping_add(1));
    here.iter().fold(below, |sum, number| sum.wrapping_add(*number))
}

impl Reader for DeepRecursion {
    fn read(&mut self, _call: Call, tags: &[u32], _max_age: f64) -> Result<Vec<DataValue>, Fault> {
        Ok(tags
            .iter()
            .map(|tag| DataValue::good(recurse(u64::from(*tag))))
            .collect())
    }
}

impl Writer for DeepRecursion {
    fn write(&mut self, _call: Call, requests: &[WriteRequest]) -> Result<Vec<StatusCode>, Fault> {
        Ok(requests
            .iter()
            .map(|request| StatusCode(recurse(u64::from(request.tag)) as u32))
            .collect())
    }
}

backplane_sdk::plugin!(DeepRecursion: reader, writer);
