//! Works, and counts, until somebody writes `s=Target`: then it panics.
#![forbid(unsafe_code)]

use std::time::Duration;

use backplane_sdk::{
    Call, Change, Fault, Folder, NodeManager, StartReason, StatusCode, Tag, Variable, WriteRequest, Writer, every,
    namespace, publish,
};

const TARGET: Tag<f64> = Tag::new(1);
const COUNTER: Tag<u32> = Tag::new(2);

#[derive(Default)]
struct PanicsOnWrite {
    counter: u32,
}

impl NodeManager for PanicsOnWrite {
    fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
        let ns = namespace("urn:backplane:test:panics-on-write");
        let folder = ns.id("PanicsOnWrite");
        Change::new()
            .add(Folder::new(&folder, "PanicsOnWrite"))
            .add(
                Variable::new(TARGET, ns.id("Target"), "Target")
                    .under(&folder)
                    .value(0.0)
                    .writable(),
            )
            .add(
                Variable::new(COUNTER, ns.id("Counter"), "Counter")
                    .under(&folder)
                    .value(0u32),
            )
            .commit()?;
        every(Duration::from_millis(100), 1);
        Ok(())
    }

    fn wake(&mut self, _token: u64) -> Result<(), Fault> {
        self.counter = self.counter.wrapping_add(1);
        publish(&[COUNTER.set(self.counter)])
    }
}

impl Writer for PanicsOnWrite {
    fn write(&mut self, _call: Call, requests: &[WriteRequest]) -> Result<Vec<StatusCode>, Fault> {
        panic!("{} values were written", requests.len());
    }
}

backplane_sdk::plugin!(PanicsOnWrite: writer);
