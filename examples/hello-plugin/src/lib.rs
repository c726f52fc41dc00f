//! The smallest useful plugin: one variable that clients can read.

use backplane_sdk::{Change, Fault, NodeManager, StartReason, Tag, Variable, namespace, plugin};

const GREETING: Tag<String> = Tag::new(1);

#[derive(Default)]
struct Hello;

impl NodeManager for Hello {
    fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
        let ns = namespace("urn:example:hello");
        let greeting = Variable::new(GREETING, ns.id("Greeting"), "Greeting");
        Change::new().add(greeting.value("Hello")).commit()
    }
}

plugin!(Hello);
