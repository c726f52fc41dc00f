//! Writes 2,000 lines to the log every 50 ms, one of them of a MiB with control characters in it, and as much to standard output and error.
#![forbid(unsafe_code)]

use std::time::Duration;

use backplane_sdk::{Change, Fault, Folder, NodeManager, StartReason, Tag, Variable, error, every, namespace, publish};

const TARGET: Tag<f64> = Tag::new(1);
const LINES: Tag<u64> = Tag::new(2);

#[derive(Default)]
struct LogFlood {
    lines: u64,
}

impl NodeManager for LogFlood {
    fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
        let ns = namespace("urn:backplane:test:log-flood");
        let folder = ns.id("LogFlood");
        Change::new()
            .add(Folder::new(&folder, "LogFlood"))
            .add(
                Variable::new(TARGET, ns.id("Target"), "Target")
                    .under(&folder)
                    .value(1.0),
            )
            .add(Variable::new(LINES, ns.id("Lines"), "Lines").under(&folder).value(0u64))
            .commit()?;
        every(Duration::from_millis(50), 1);
        Ok(())
    }

    fn wake(&mut self, _token: u64) -> Result<(), Fault> {
        for _ in 0..2_000 {
            self.lines = self.lines.wrapping_add(1);
            error!("line {}: nothing is wrong", self.lines);
            println!("line {}: nothing is wrong", self.lines);
            eprintln!("line {}: nothing is wrong", self.lines);
        }
        error!("{}", "\u{1b}[31mred\r\nforged line\0".repeat(1 << 16));
        publish(&[LINES.set(self.lines)])
    }
}

backplane_sdk::plugin!(LogFlood);
