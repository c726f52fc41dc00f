//! Loops for ever: two seconds after it has started, and whenever somebody reads `s=Asked`.
#![forbid(unsafe_code)]

use std::time::Duration;

use backplane_sdk::{
    Call, Change, DataValue, Fault, Folder, NodeManager, Reader, StartReason, Tag, Variable, after, namespace,
};

const TARGET: Tag<f64> = Tag::new(1);
const ASKED: Tag<f64> = Tag::new(2);

#[derive(Default)]
struct Spins;

impl NodeManager for Spins {
    fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
        let ns = namespace("urn:backplane:test:spins");
        let folder = ns.id("Spins");
        Change::new()
            .add(Folder::new(&folder, "Spins"))
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
        spin()
    }
}

impl Reader for Spins {
    fn read(&mut self, _call: Call, _tags: &[u32], _max_age: f64) -> Result<Vec<DataValue>, Fault> {
        spin()
    }
}

fn spin<T>() -> T {
    loop {
        std::hint::black_box(());
    }
}

backplane_sdk::plugin!(Spins: reader);
