//! Declares its nodes, and then never returns from start.
#![forbid(unsafe_code)]

use backplane_sdk::{Change, Fault, Folder, NodeManager, StartReason, Tag, Variable, namespace};

const TARGET: Tag<f64> = Tag::new(1);

#[derive(Default)]
struct SpinsInStart;

impl NodeManager for SpinsInStart {
    fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
        let ns = namespace("urn:backplane:test:spins-in-start");
        let folder = ns.id("SpinsInStart");
        Change::new()
            .add(Folder::new(&folder, "SpinsInStart"))
            .add(
                Variable::new(TARGET, ns.id("Target"), "Target")
                    .under(&folder)
                    .value(1.0),
            )
            .commit()?;
        loop {
            std::hint::black_box(());
        }
    }
}

backplane_sdk::plugin!(SpinsInStart);
