//! 10,000 variables and 1 MiB of state that every generation hands to the next. `s=Sum` is the sum of the last eight values
//! written to `s=Target`, so that a write that is lost, made twice or made in another order shows. A good plugin: it is here because its reloads must be short and unnoticed.
#![forbid(unsafe_code)]

use std::time::Duration;

use backplane_sdk::{
    Call, Change, DataValue, Fault, Folder, Handover, NodeManager, Reader, StartReason, StatusCode, Tag, Variable,
    WriteRequest, Writer, namespace, publish,
};

const TARGET: Tag<f64> = Tag::new(20_001);
const SUM: Tag<f64> = Tag::new(20_002);
const ASKED: Tag<f64> = Tag::new(20_003);
const VARIABLES: u32 = 10_000;
const STATE: usize = 1 << 20;

struct HoldsState {
    written: [f64; 8],
    filling: Vec<u8>,
}

impl Default for HoldsState {
    fn default() -> Self {
        // No line is like its neighbours, so that a shifted or cut state is not taken for a good one.
        let lines = (0..STATE / 8).map(|line| (line as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes());
        Self {
            written: [0.0; 8],
            filling: lines.flatten().collect(),
        }
    }
}

impl HoldsState {
    fn target(&self) -> f64 {
        self.written[7]
    }

    /// Each place has a weight of its own, so that the order counts.
    fn sum(&self) -> f64 {
        let weighted = self
            .written
            .iter()
            .zip(1u8..)
            .map(|(value, weight)| value * f64::from(weight));
        weighted.sum()
    }
}

impl NodeManager for HoldsState {
    fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
        let ns = namespace("urn:backplane:test:holds-state");
        let folder = ns.id("HoldsState");
        let mut change = Change::new().add(Folder::new(&folder, "HoldsState"));
        for number in 1..=VARIABLES {
            let name = format!("Value{number}");
            let variable = Variable::new(Tag::<u32>::new(number), ns.id(name.as_str()), &name);
            change = change.add(variable.under(&folder).value(number));
        }
        change
            .add(
                Variable::new(TARGET, ns.id("Target"), "Target")
                    .under(&folder)
                    .value(self.target())
                    .writable(),
            )
            .add(Variable::new(SUM, ns.id("Sum"), "Sum").under(&folder).value(self.sum()))
            .add(
                Variable::new(ASKED, ns.id("Asked"), "Asked")
                    .under(&folder)
                    .on_demand(Duration::from_millis(10)),
            )
            .commit()
    }
}

impl Reader for HoldsState {
    fn read(&mut self, _call: Call, tags: &[u32], _max_age: f64) -> Result<Vec<DataValue>, Fault> {
        Ok(tags.iter().map(|_| DataValue::good(self.sum())).collect())
    }
}

impl Writer for HoldsState {
    fn write(&mut self, _call: Call, requests: &[WriteRequest]) -> Result<Vec<StatusCode>, Fault> {
        for request in requests {
            let Some(value) = request.value.value.get::<f64>() else {
                return Ok(vec![StatusCode::BAD_TYPE_MISMATCH; requests.len()]);
            };
            self.written.rotate_left(1);
            self.written[7] = value;
        }
        publish(&[SUM.set(self.sum())])?;
        Ok(vec![StatusCode::GOOD; requests.len()])
    }
}

impl Handover for HoldsState {
    const SCHEMA: u32 = 1;

    fn save(&mut self) -> Result<Vec<u8>, Fault> {
        let mut state = self.written.map(f64::to_le_bytes).concat();
        state.extend_from_slice(&self.filling);
        Ok(state)
    }

    fn restore(&mut self, _schema: u32, state: &[u8]) -> Result<(), Fault> {
        let broken = || Fault::new(StatusCode::BAD_DECODING_ERROR, "not the state that was saved");
        let (written, filling) = state.split_at_checked(64).ok_or_else(broken)?;
        if filling != self.filling {
            return Err(broken());
        }
        for (place, bytes) in self.written.iter_mut().zip(written.chunks_exact(8)) {
            *place = f64::from_le_bytes(bytes.try_into().map_err(|_| broken())?);
        }
        Ok(())
    }
}

backplane_sdk::plugin!(HoldsState: reader, writer, handover);
