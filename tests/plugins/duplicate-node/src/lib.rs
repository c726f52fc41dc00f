//! Makes changes that must be refused whole: an id twice, a tag twice, a parent that does not exist, a value of another type. `s=Refused` says how
//! many were; `s=Sibling`, a good node in each of them, must not exist.
#![forbid(unsafe_code)]

use backplane_sdk::{
    Change, DataValue, Fault, Folder, NodeManager, StartReason, Tag, Variable, namespace, publish, warn,
};

const TARGET: Tag<f64> = Tag::new(1);
const REFUSED: Tag<u32> = Tag::new(2);
const SIBLING: Tag<f64> = Tag::new(3);
const OTHER: Tag<f64> = Tag::new(4);

#[derive(Default)]
struct DuplicateNode;

impl NodeManager for DuplicateNode {
    fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
        let ns = namespace("urn:backplane:test:duplicate-node");
        let folder = ns.id("DuplicateNode");
        Change::new()
            .add(Folder::new(&folder, "DuplicateNode"))
            .add(
                Variable::new(TARGET, ns.id("Target"), "Target")
                    .under(&folder)
                    .value(1.0),
            )
            .add(
                Variable::new(REFUSED, ns.id("Refused"), "Refused")
                    .under(&folder)
                    .value(0u32),
            )
            .commit()?;
        let sibling = || {
            Change::new().add(
                Variable::new(SIBLING, ns.id("Sibling"), "Sibling")
                    .under(&folder)
                    .value(1.0),
            )
        };
        let bad = [
            sibling().add(Variable::new(OTHER, ns.id("Target"), "Again").under(&folder).value(1.0)),
            sibling().add(
                Variable::new(TARGET, ns.id("SameTag"), "SameTag")
                    .under(&folder)
                    .value(1.0),
            ),
            sibling().add(
                Variable::new(OTHER, ns.id("Orphan"), "Orphan")
                    .under(ns.id("Nowhere"))
                    .value(1.0),
            ),
            sibling().add(
                Variable::new(OTHER, ns.id("Text"), "Text")
                    .under(&folder)
                    .initial(DataValue::good("not a number")),
            ),
        ];
        let faults: Vec<Fault> = bad.into_iter().filter_map(|change| change.commit().err()).collect();
        for fault in &faults {
            warn!("refused with {:?}: {}", fault.status_code(), fault.detail);
        }
        publish(&[REFUSED.set(faults.len() as u32)])
    }
}

backplane_sdk::plugin!(DuplicateNode);
