//! A simulated plant: a boiler with set-points, methods and faults on demand, signals, and the nodes that test scripts expect.
//!
//! This module is the plugin: it owns the parts and the timers, and gives each call to the part that knows.
//!
//! Settings, all optional:
//!
//! | name | what | unless set |
//! |---|---|---|
//! | `namespace` | URI of all nodes | `urn:backplane:simulator` |
//! | `period_ms` | time between values of the boiler and the signals, 10 to 60,000 | 100 |
//! | `load_period_ms` | time between values of the load variables, from 10; 0: they change only when written | 0 |
#![forbid(unsafe_code)]

mod boiler;
mod fixture;
mod signals;
mod tags;
mod types;
mod variant;

use std::time::Duration;

use backplane_sdk::{
    Call, Change, DataValue, Event, Fault, Handover, Methods, Namespace, NodeId, NodeManager, Outcome, Reader,
    StartReason, StatusCode, Structure, Value, WriteRequest, Writer, binary, every, ids, info, monotonic, namespace,
    publish, setting, utc,
};

use boiler::Boiler;
use signals::Signals;
use tags::{ADD, AMPLITUDE, COUNTER, FAULT, INJECT_FAULT, LAST_RESULT, PERIOD, RESET, SET_TARGET, TARGET};
use types::{FaultKind, Saved, SavedWork};

/// The timers.
const COUNT: u64 = 1;
const STEP: u64 = 2;
const LOAD: u64 = 3;

/// The plugin.
#[derive(Debug, Default)]
pub struct Simulator {
    boiler: Boiler,
    signals: Signals,
    counter: u32,
    load: u32,
    /// Of all nodes; known once it has started.
    namespace: Option<Namespace>,
}

impl NodeManager for Simulator {
    fn start(&mut self, reason: StartReason) -> Result<(), Fault> {
        let uri: String = setting("namespace").unwrap_or_else(|| "urn:backplane:simulator".to_owned());
        let ns = namespace(&uri);
        self.namespace = Some(ns);
        let change = self.boiler.declare(Change::new(), ns);
        let change = self.signals.declare(change, ns);
        fixture::declare(change, ns, self.counter).commit()?;
        // Nodes that were there before keep their last values, and these must say what the plant really does.
        let mut updates = self.boiler.set_points().to_vec();
        updates.extend(self.signals.set_points());
        publish(&updates)?;

        let period = setting("period_ms").unwrap_or(100u64).clamp(10, 60_000);
        every(Duration::from_millis(100), COUNT);
        every(Duration::from_millis(period), STEP);
        if let Some(period) = setting::<u64>("load_period_ms").filter(|period| *period > 0) {
            every(Duration::from_millis(period.max(10)), LOAD);
        }
        info!(
            "simulator {} started ({reason:?}), a step every {period} ms",
            variant::VERSION
        );
        Ok(())
    }

    fn wake(&mut self, token: u64) -> Result<(), Fault> {
        match token {
            COUNT => {
                self.counter = self.counter.wrapping_add(1);
                publish(&[COUNTER.set(self.counter)])
            }
            STEP => {
                let mut updates = Vec::with_capacity(16);
                self.signals.step(monotonic(), &mut updates);
                self.boiler.step(monotonic(), utc(), &mut updates);
                publish(&updates)?;
                self.raise_alarms();
                Ok(())
            }
            LOAD => {
                self.load = self.load.wrapping_add(1);
                publish(&fixture::load(self.load))
            }
            _ => Ok(()),
        }
    }
}

impl Reader for Simulator {
    fn read(&mut self, _call: Call, tags: &[u32], _max_age: f64) -> Result<Vec<DataValue>, Fault> {
        let now = utc();
        let unknown = || DataValue::bad(StatusCode::BAD_NODE_ID_UNKNOWN);
        Ok(tags
            .iter()
            .map(|tag| self.boiler.read(*tag, now).unwrap_or_else(unknown))
            .collect())
    }
}

impl Writer for Simulator {
    fn write(&mut self, _call: Call, requests: &[WriteRequest]) -> Result<Vec<StatusCode>, Fault> {
        Ok(requests
            .iter()
            .map(|request| self.write_one(request.tag, &request.value.value))
            .collect())
    }
}

impl Simulator {
    /// The plant goes on whether somebody takes its events or not.
    fn raise_alarms(&mut self) {
        let alarm = self.namespace.and_then(|ns| self.boiler.level_alarm(ns));
        if let Some(Err(fault)) = alarm.map(Event::raise) {
            backplane_sdk::debug!("no event: {}", fault.detail);
        }
    }

    fn write_one(&mut self, tag: u32, value: &Value) -> StatusCode {
        if AMPLITUDE == tag {
            value.get().map_or(StatusCode::BAD_TYPE_MISMATCH, |amplitude| {
                self.signals.set_amplitude(amplitude)
            })
        } else if PERIOD == tag {
            value
                .get()
                .map_or(StatusCode::BAD_TYPE_MISMATCH, |period| self.signals.set_period(period))
        } else {
            // The others mean nothing to the plant: the host keeps what was written.
            self.boiler.write(tag, value).unwrap_or(StatusCode::GOOD)
        }
    }

    fn set_target(&mut self, temperature: f64, seconds: f64) -> Result<Outcome, Fault> {
        let previous = self.boiler.target;
        let accepted = self.boiler.ramp_to(temperature, seconds, monotonic());
        let result = if accepted {
            StatusCode::GOOD
        } else {
            StatusCode::BAD_OUT_OF_RANGE
        };
        publish(&[TARGET.set(self.boiler.target), LAST_RESULT.set(result)])?;
        Ok(Outcome::good([Value::from(previous), Value::from(accepted)]))
    }

    fn inject_fault(&mut self, object: &NodeId, kind: i32, seconds: f64) -> Result<Outcome, Fault> {
        let Some(kind) = FaultKind::from_number(kind) else {
            return Ok(Outcome::bad_input(0, 2, StatusCode::BAD_OUT_OF_RANGE));
        };
        if !(0.0..=86_400.0).contains(&seconds) {
            return Ok(Outcome::bad_input(1, 2, StatusCode::BAD_OUT_OF_RANGE));
        }
        let end = (seconds > 0.0).then(|| monotonic() + Duration::from_secs_f64(seconds));
        self.boiler.inject(kind, end);
        publish(&[FAULT.set(kind), LAST_RESULT.set(StatusCode::GOOD)])?;
        let failure = Event::new(object, NodeId::standard(ids::DEVICE_FAILURE_EVENT_TYPE))
            .severity(500)
            .message(format!("Instruments: {kind:?}").as_str());
        if let Err(fault) = failure.raise() {
            backplane_sdk::debug!("no event: {}", fault.detail);
        }
        Ok(Outcome::good([]))
    }
}

impl Methods for Simulator {
    fn invoke(&mut self, _call: Call, object: &NodeId, tag: u32, inputs: &[Value]) -> Result<Outcome, Fault> {
        match inputs {
            [Value::Double(a), Value::Double(b)] if ADD == tag => Ok(Outcome::good([Value::from(a + b)])),
            [Value::Double(temperature), Value::Double(seconds)] if SET_TARGET == tag => {
                self.set_target(*temperature, *seconds)
            }
            [Value::Int32(kind), Value::Double(seconds)] if INJECT_FAULT == tag => {
                self.inject_fault(object, *kind, *seconds)
            }
            [] if RESET == tag => {
                self.boiler.inject(FaultKind::None, None);
                self.boiler.temperature = 20.0;
                publish(&[FAULT.set(FaultKind::None), LAST_RESULT.set(StatusCode::GOOD)])?;
                Ok(Outcome::default())
            }
            _ => Err(Fault::new(
                StatusCode::BAD_INVALID_ARGUMENT,
                format!("method {tag} with {} arguments", inputs.len()),
            )),
        }
    }
}

impl Handover for Simulator {
    const SCHEMA: u32 = 2;
    const ALSO_READS: &'static [u32] = &[1];

    fn save(&mut self) -> Result<Vec<u8>, Fault> {
        let saved = Saved {
            counter: self.counter,
            target: self.boiler.target,
            temperature: self.boiler.temperature,
            starts: self.boiler.starts,
            mode: self.boiler.mode,
            amplitude: self.signals.amplitude,
            period: self.signals.period,
            walk: self.signals.walk,
            ticks: self.signals.ticks,
        };
        let mut writer = binary::Writer::new();
        saved.encode(&mut writer);
        self.boiler.saved_work().encode(&mut writer);
        Ok(writer.into_bytes())
    }

    fn restore(&mut self, schema: u32, state: &[u8]) -> Result<(), Fault> {
        let mut reader = binary::Reader::new(state);
        let mut decode = || {
            let saved = Saved::decode(&mut reader)?;
            let work = match schema {
                1 => None,
                _ => Some(SavedWork::decode(&mut reader)?),
            };
            reader.end().map(|()| (saved, work))
        };
        let (saved, work) =
            decode().map_err(|error| Fault::new(StatusCode::BAD_DECODING_ERROR, format!("saved state: {error}")))?;
        self.counter = saved.counter;
        self.boiler.restore(&saved);
        if let Some(work) = work {
            self.boiler.restore_work(&work);
        }
        self.signals.restore(&saved);
        Ok(())
    }
}

backplane_sdk::plugin!(Simulator: reader, writer, methods, handover);
