//! Does the misdeed `how` (`trap`, `spin`, `sleep`, `fault`) in the export `where` (`start`, `wake`, `stop`, `read`, `write`, `invoke`, `demand`, `save`, `restore`), as
//! its settings say. Everything else of it is good.
#![forbid(unsafe_code)]

use std::time::Duration;

use backplane_sdk::{
    Call, Change, DataValue, Demand, Fault, Folder, Handover, Invoked, Method, Methods, NodeId, NodeManager, Outcome,
    Reader, StartReason, StatusCode, Tag, Value, Variable, WriteRequest, Writer, after, namespace, setting,
};

const TARGET: Tag<f64> = Tag::new(1);
const ASKED: Tag<f64> = Tag::new(2);
const ANSWER: Tag<Invoked> = Tag::new(3);

#[derive(Default)]
struct Misbehaves;

fn misbehave(here: &str) -> Result<(), Fault> {
    if setting::<String>("where").as_deref() != Some(here) {
        return Ok(());
    }
    match setting::<String>("how").as_deref() {
        Some("trap") => panic!("in {here}, as the settings say"),
        Some("spin") => loop {
            std::hint::black_box(());
        },
        Some("sleep") => {
            std::thread::sleep(Duration::from_secs(3_600));
            Ok(())
        }
        _ => Err(Fault::new(
            StatusCode::BAD_DEVICE_FAILURE,
            format!("in {here}, as the settings say"),
        )),
    }
}

impl NodeManager for Misbehaves {
    fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
        let ns = namespace("urn:backplane:test:misbehaves");
        let folder = ns.id("Misbehaves");
        Change::new()
            .add(Folder::new(&folder, "Misbehaves"))
            .add(
                Variable::new(TARGET, ns.id("Target"), "Target")
                    .under(&folder)
                    .value(0.0)
                    .writable(),
            )
            .add(
                Variable::new(ASKED, ns.id("Asked"), "Asked")
                    .under(&folder)
                    .on_demand(Duration::from_millis(100)),
            )
            .add(Method::new(ANSWER, ns.id("Answer"), "Answer").under(&folder))
            .commit()?;
        after(Duration::from_millis(1), 1);
        misbehave("start")
    }

    fn wake(&mut self, _token: u64) -> Result<(), Fault> {
        misbehave("wake")
    }

    fn stop(&mut self) {
        // It cannot answer a fault here.
        let _ = misbehave("stop");
    }
}

impl Reader for Misbehaves {
    fn read(&mut self, _call: Call, tags: &[u32], _max_age: f64) -> Result<Vec<DataValue>, Fault> {
        misbehave("read")?;
        Ok(vec![DataValue::good(1.0); tags.len()])
    }
}

impl Writer for Misbehaves {
    fn write(&mut self, _call: Call, requests: &[WriteRequest]) -> Result<Vec<StatusCode>, Fault> {
        misbehave("write")?;
        Ok(vec![StatusCode::GOOD; requests.len()])
    }
}

impl Methods for Misbehaves {
    fn invoke(&mut self, _call: Call, _object: &NodeId, _tag: u32, _inputs: &[Value]) -> Result<Outcome, Fault> {
        misbehave("invoke")?;
        Ok(Outcome::good(Vec::new()))
    }
}

impl Demand for Misbehaves {
    fn changed(&mut self, _items: &[(u32, Option<f64>)]) {
        // It cannot answer a fault here.
        let _ = misbehave("demand");
    }
}

impl Handover for Misbehaves {
    const SCHEMA: u32 = 1;

    fn save(&mut self) -> Result<Vec<u8>, Fault> {
        misbehave("save")?;
        Ok(vec![7])
    }

    fn restore(&mut self, _schema: u32, state: &[u8]) -> Result<(), Fault> {
        misbehave("restore")?;
        match state {
            [7] => Ok(()),
            _ => Err(Fault::new(
                StatusCode::BAD_DECODING_ERROR,
                "not the state that was saved",
            )),
        }
    }
}

backplane_sdk::plugin!(Misbehaves: reader, writer, methods, demand, handover);
