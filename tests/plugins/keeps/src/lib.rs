//! Keeps what is written to `s=Target` in its store, and how often it was started. A good plugin with three bad habits: a negative value is kept, and then it
//! panics; 1e9 fills the store until it is refused; with the setting `refuse` its start keeps something and fails.
#![forbid(unsafe_code)]

use std::time::Duration;

use backplane_sdk::{
    Call, Change, DataValue, Fault, Folder, NodeManager, Reader, StartReason, StatusCode, Tag, Typed, Variable,
    WriteRequest, Writer, namespace, setting_json, store,
};

const TARGET: Tag<f64> = Tag::new(1);
const KEPT: Tag<f64> = Tag::new(2);
const STARTS: Tag<u32> = Tag::new(3);

#[derive(Default)]
struct Keeps;

fn starts() -> Result<u32, Fault> {
    let bytes = store::get("starts")?.and_then(|bytes| bytes.try_into().ok());
    Ok(bytes.map_or(0, u32::from_le_bytes))
}

fn kept() -> Result<f64, Fault> {
    let bytes = store::get("kept")?.and_then(|bytes| bytes.try_into().ok());
    Ok(bytes.map_or(0.0, f64::from_le_bytes))
}

impl NodeManager for Keeps {
    fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
        store::set("starts", &(starts()? + 1).to_le_bytes())?;
        if setting_json("refuse").is_some() {
            return Err(Fault::new(StatusCode::BAD_DEVICE_FAILURE, "as the settings say"));
        }
        let ns = namespace("urn:backplane:test:keeps");
        let folder = ns.id("Keeps");
        let asked = Duration::from_millis(100);
        Change::new()
            .add(Folder::new(&folder, "Keeps"))
            .add(
                Variable::new(TARGET, ns.id("Target"), "Target")
                    .under(&folder)
                    .value(0.0)
                    .writable(),
            )
            .add(
                Variable::new(KEPT, ns.id("Kept"), "Kept")
                    .under(&folder)
                    .on_demand(asked),
            )
            .add(
                Variable::new(STARTS, ns.id("Starts"), "Starts")
                    .under(&folder)
                    .on_demand(asked),
            )
            .commit()
    }
}

impl Reader for Keeps {
    fn read(&mut self, _call: Call, tags: &[u32], _max_age: f64) -> Result<Vec<DataValue>, Fault> {
        let answer = |tag: &u32| match *tag {
            3 => starts().map(DataValue::good),
            _ => kept().map(DataValue::good),
        };
        tags.iter().map(answer).collect()
    }
}

impl Writer for Keeps {
    fn write(&mut self, _call: Call, requests: &[WriteRequest]) -> Result<Vec<StatusCode>, Fault> {
        requests
            .iter()
            .map(|request| keep(f64::from_value(&request.value.value)))
            .collect()
    }
}

fn keep(value: Option<f64>) -> Result<StatusCode, Fault> {
    let Some(value) = value else {
        return Ok(StatusCode::BAD_TYPE_MISMATCH);
    };
    store::set("kept", &value.to_le_bytes())?;
    assert!(value >= 0.0, "{value} is negative");
    if value == 1e9 {
        for number in 0..u32::MAX {
            store::set(&format!("filling/{number}"), &[0; 4096])?;
        }
    }
    Ok(StatusCode::GOOD)
}

backplane_sdk::plugin!(Keeps: reader, writer);
