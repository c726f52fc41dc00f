//! A simulated plant: a machine to play with, and the nodes that test scripts expect.
#![forbid(unsafe_code)]

use std::time::Duration;

use backplane_sdk::{
    Call, Change, Fault, Folder, Invoked, Method, Methods, NodeId, NodeManager, Object, Outcome, StartReason,
    StatusCode, Tag, Value, Variable, WriteRequest, Writer, every, namespace, publish,
};

const VAR1: Tag<f64> = Tag::new(1);
const COUNTER: Tag<u32> = Tag::new(2);
const ANSWER: Tag<i32> = Tag::new(3);
const ADD: Tag<Invoked> = Tag::new(4);

/// The plugin.
#[derive(Debug, Default)]
pub struct Simulator {
    counter: u32,
}

impl NodeManager for Simulator {
    fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
        let ns = namespace("urn:backplane:simulator");
        let dev = ns.id("Dev");
        Change::new()
            .add(Object::new(&dev, "Dev").of_type(NodeId::standard(backplane_sdk::ids::FOLDER_TYPE)))
            .add(
                Variable::new(VAR1, ns.id("Var1"), "Var1")
                    .under(&dev)
                    .value(0.0)
                    .writable(),
            )
            .add(
                Variable::new(COUNTER, ns.id("Counter"), "Counter")
                    .under(&dev)
                    .value(0u32),
            )
            .add(
                Variable::new(ANSWER, ns.id("the.answer"), "the.answer")
                    .under(&dev)
                    .value(42)
                    .writable(),
            )
            .add(
                Method::new(ADD, ns.id("Add"), "Add")
                    .under(&dev)
                    .input::<f64>("a", "")
                    .input::<f64>("b", "")
                    .output::<f64>("sum", ""),
            )
            .add(Folder::new(ns.id("Static"), "Static"))
            .commit()?;
        every(Duration::from_millis(100), 1);
        Ok(())
    }

    fn wake(&mut self, _token: u64) -> Result<(), Fault> {
        self.counter = self.counter.wrapping_add(1);
        publish(&[COUNTER.set(self.counter)])
    }
}

impl Writer for Simulator {
    fn write(&mut self, _call: Call, requests: &[WriteRequest]) -> Result<Vec<StatusCode>, Fault> {
        Ok(requests.iter().map(|_| StatusCode::GOOD).collect())
    }
}

impl Methods for Simulator {
    fn invoke(&mut self, _call: Call, _object: &NodeId, _tag: u32, inputs: &[Value]) -> Result<Outcome, Fault> {
        let [Value::Double(a), Value::Double(b)] = inputs else {
            return Err(Fault::new(StatusCode::BAD_INVALID_ARGUMENT, "two doubles"));
        };
        Ok(Outcome::good([Value::Double(a + b)]))
    }
}

backplane_sdk::plugin!(Simulator: writer, methods);
