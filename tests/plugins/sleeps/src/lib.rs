//! Sleeps for an hour: two seconds after it has started, and whenever somebody reads `s=Asked`. It computes nothing meanwhile.
#![forbid(unsafe_code)]

use std::time::Duration;

use backplane_sdk::{
    Call, Change, DataValue, Fault, Folder, NodeManager, Reader, StartReason, Tag, Variable, after, namespace,
};

const TARGET: Tag<f64> = Tag::new(1);
const ASKED: Tag<f64> = Tag::new(2);
const HOUR: Duration = Duration::from_secs(3600);

#[derive(Default)]
struct Sleeps;

impl NodeManager for Sleeps {
    fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
        let ns = namespace("urn:backplane:test:sleeps");
        let folder = ns.id("Sleeps");
        Change::new()
            .add(Folder::new(&folder, "Sleeps"))
            .add(
                Variable::new(TARGET, ns.id("Target"), "Target")
                    .under(&folder)
                    .value(1.0),
            )
            .add(
                Variable::new(ASKED, ns.id("Asked"), "Asked")
                    .under(&folder)
                    .on_demand(Duration::from_millis(100)),
            )
            .commit()?;
        after(Duration::from_secs(2), 1);
        Ok(())
    }

    fn wake(&mut self, _token: u64) -> Result<(), Fault> {
        std::thread::sleep(HOUR);
        Ok(())
    }
}

impl Reader for Sleeps {
    fn read(&mut self, _call: Call, tags: &[u32], _max_age: f64) -> Result<Vec<DataValue>, Fault> {
        std::thread::sleep(HOUR);
        Ok(vec![DataValue::good(1.0); tags.len()])
    }
}

backplane_sdk::plugin!(Sleeps: reader);
