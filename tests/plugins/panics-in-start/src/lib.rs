//! Declares its nodes, and panics before start returns: clients never see them.
#![forbid(unsafe_code)]

use backplane_sdk::{Change, Fault, Folder, NodeManager, StartReason, Tag, Variable, namespace};

const TARGET: Tag<f64> = Tag::new(1);

#[derive(Default)]
struct PanicsInStart;

impl NodeManager for PanicsInStart {
    fn start(&mut self, reason: StartReason) -> Result<(), Fault> {
        let ns = namespace("urn:backplane:test:panics-in-start");
        let folder = ns.id("PanicsInStart");
        Change::new()
            .add(Folder::new(&folder, "PanicsInStart"))
            .add(
                Variable::new(TARGET, ns.id("Target"), "Target")
                    .under(&folder)
                    .value(1.0),
            )
            .commit()?;
        panic!("starting ({reason:?}) is too much");
    }
}

backplane_sdk::plugin!(PanicsInStart);
