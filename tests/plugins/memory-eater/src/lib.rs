//! Takes 4 MiB more every 50 ms, and 64 MiB at once when somebody writes `s=Target`.
#![forbid(unsafe_code)]

use std::time::Duration;

use backplane_sdk::{
    Call, Change, Fault, Folder, NodeManager, StartReason, StatusCode, Tag, Variable, WriteRequest, Writer, every,
    namespace, publish,
};

const TARGET: Tag<f64> = Tag::new(1);
const EATEN: Tag<u64> = Tag::new(2);
const MIB: usize = 1 << 20;

#[derive(Default)]
struct MemoryEater {
    eaten: Vec<Vec<u8>>,
}

impl MemoryEater {
    fn eat(&mut self, bytes: usize) -> Result<(), Fault> {
        // Not zeros, so that every page is touched.
        self.eaten.push(vec![0xAA; bytes]);
        let eaten: usize = self.eaten.iter().map(Vec::len).sum();
        publish(&[EATEN.set(eaten as u64)])
    }
}

impl NodeManager for MemoryEater {
    fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
        let ns = namespace("urn:backplane:test:memory-eater");
        let folder = ns.id("MemoryEater");
        Change::new()
            .add(Folder::new(&folder, "MemoryEater"))
            .add(
                Variable::new(TARGET, ns.id("Target"), "Target")
                    .under(&folder)
                    .value(0.0)
                    .writable(),
            )
            .add(
                Variable::new(EATEN, ns.id("Eaten"), "Eaten")
                    .under(&folder)
                    .value(0u64)
                    .description("Bytes"),
            )
            .commit()?;
        every(Duration::from_millis(50), 1);
        Ok(())
    }

    fn wake(&mut self, _token: u64) -> Result<(), Fault> {
        self.eat(4 * MIB)
    }
}

impl Writer for MemoryEater {
    fn write(&mut self, _call: Call, requests: &[WriteRequest]) -> Result<Vec<StatusCode>, Fault> {
        self.eat(64 * MIB)?;
        Ok(vec![StatusCode::GOOD; requests.len()])
    }
}

backplane_sdk::plugin!(MemoryEater: writer);
