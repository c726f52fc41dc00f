//! Answers a read of `s=Asked` with the name of the user who asks, "" for anonymous. A good plugin: it is here because reads of different callers must not
//! become one call to it.
#![forbid(unsafe_code)]

use std::time::Duration;

use backplane_sdk::{
    Call, Change, DataValue, Fault, Folder, NodeManager, Reader, StartReason, Tag, Variable, namespace,
};

const ASKED: Tag<String> = Tag::new(1);

#[derive(Default)]
struct AsksWho;

impl NodeManager for AsksWho {
    fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
        let ns = namespace("urn:backplane:test:asks-who");
        let folder = ns.id("AsksWho");
        Change::new()
            .add(Folder::new(&folder, "AsksWho"))
            .add(
                Variable::new(ASKED, ns.id("Asked"), "Asked")
                    .under(&folder)
                    .on_demand(Duration::from_millis(100)),
            )
            .commit()
    }
}

impl Reader for AsksWho {
    fn read(&mut self, call: Call, tags: &[u32], _max_age: f64) -> Result<Vec<DataValue>, Fault> {
        let user = call.user().unwrap_or_default();
        Ok(tags.iter().map(|_| DataValue::good(user.as_str())).collect())
    }
}

backplane_sdk::plugin!(AsksWho: reader);
