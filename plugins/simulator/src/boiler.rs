//! The boiler: a burner heats water towards a target temperature. Owns the physics, the set-points and the faults that can be injected; knows nothing of timers and of the other folders.

use std::time::Duration;

use backplane_sdk::{
    ByteString, Change, DataValue, DateTime, Event, ExtensionObject, LocalizedText, Matrix, Method, Namespace, NodeId,
    Object, Property, StatusCode, Type, Typed, Update, Value, Variable, XmlElement, ids,
};

use crate::signals::set;
use crate::tags::{
    BADGE, BURNER, DEVICE_TIME, EFFICIENCY, FAULT, INJECT_FAULT, LAST_RESULT, LEVEL, MODE, OPERATOR_NOTE, POWER,
    PRESSURE, RESET, SET_TARGET, STARTS, TARGET, TEMPERATURE, TREND, ZONES,
};
use crate::types::{BurnerState, FaultKind, OperatingMode, Saved, SavedWork};

/// What is measured, and lost when the instruments are offline.
const MEASURED: [u32; 7] = [
    TEMPERATURE.number(),
    PRESSURE.number(),
    LEVEL.number(),
    BURNER.number(),
    ZONES.number(),
    TREND.number(),
    STARTS.number(),
];

const AMBIENT: f64 = 20.0;
/// kW.
const FULL_POWER: f64 = 120.0;
const ZONE_ROWS: u32 = 3;
const ZONE_COLUMNS: u32 = 4;
const TREND_LENGTH: usize = 16;

/// A change of the target over time.
#[derive(Clone, Copy, Debug)]
struct Ramp {
    from: f64,
    to: f64,
    begin: Duration,
    length: Duration,
}

/// The machine.
#[derive(Clone, Debug)]
pub(crate) struct Boiler {
    pub(crate) target: f64,
    pub(crate) temperature: f64,
    pub(crate) mode: OperatingMode,
    pub(crate) starts: u64,
    ramp: Option<Ramp>,
    /// kW.
    power: f64,
    last_start: DateTime,
    trend: Vec<f64>,
    fault: FaultKind,
    fault_end: Option<Duration>,
    /// What a stuck instrument shows.
    shown: f64,
    steps: u64,
    last_step: Option<Duration>,
    /// Percent, as it is shown.
    level: f32,
    level_state: LevelState,
    /// "Default Binary" of BurnerState.
    encoding: NodeId,
}

impl Default for Boiler {
    fn default() -> Self {
        Boiler {
            target: 65.0,
            temperature: AMBIENT,
            mode: OperatingMode::Heat,
            starts: 0,
            ramp: None,
            power: 0.0,
            last_start: DateTime::default(),
            trend: vec![AMBIENT; TREND_LENGTH],
            fault: FaultKind::None,
            fault_end: None,
            shown: AMBIENT,
            steps: 0,
            last_step: None,
            level: 50.0,
            level_state: LevelState::Normal,
            encoding: NodeId::NULL,
        }
    }
}

/// Where the level lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LevelState {
    Low,
    Normal,
    High,
}

impl LevelState {
    fn of(level: f32) -> Self {
        if level > 55.0 {
            Self::High
        } else if level < 45.0 {
            Self::Low
        } else {
            Self::Normal
        }
    }
}

impl Boiler {
    pub(crate) fn declare(&mut self, change: Change, ns: Namespace) -> Change {
        self.encoding = ns.number(5001);
        let boiler = ns.id("Boiler");
        let change = self.declare_types(change, ns).add(
            Object::new(&boiler, "Boiler")
                .of_type(ns.id("BoilerType"))
                .description("Heats water towards TargetTemperature")
                .attribute(ids::attribute::EVENT_NOTIFIER, 1u8),
        );
        let change = change.reference(&NodeId::standard(ids::SERVER), ids::HAS_NOTIFIER, &boiler);
        let change = self.declare_measurements(change, ns, &boiler);
        let change = self.declare_set_points(change, ns, &boiler);
        declare_methods(change, ns, &boiler)
    }

    fn declare_types(&self, change: Change, ns: Namespace) -> Change {
        let burner = BurnerState::definition(self.encoding.clone()).data_type("Mode", ns.id("OperatingMode"));
        change
            .add(Type::enumeration(
                ns.id("OperatingMode"),
                "OperatingMode",
                &OperatingMode::definition(),
            ))
            .add(Type::enumeration(
                ns.id("FaultKind"),
                "FaultKind",
                &FaultKind::definition(),
            ))
            .add(Type::structure(ns.id("BurnerState"), "BurnerState", &burner))
            .add(Type::object(ns.id("BoilerType"), "BoilerType"))
            .add(Type::event(ns.id("LevelAlarmType"), "LevelAlarmType"))
            .add(Property::new(
                ns.id("LevelAlarmType.Level"),
                ns.id("LevelAlarmType"),
                "Level",
                0f32,
            ))
            .add(Property::new(
                ns.id("LevelAlarmType.State"),
                ns.id("LevelAlarmType"),
                "State",
                String::new(),
            ))
    }

    fn declare_measurements(&self, change: Change, ns: Namespace, boiler: &NodeId) -> Change {
        let id = |name: &str| ns.id(format!("Boiler.{name}"));
        let on_demand = Duration::from_millis(100);
        change
            .add(
                Variable::new(TEMPERATURE, id("Temperature"), "Temperature")
                    .under(boiler)
                    .value(self.temperature)
                    .range(0.0..=150.0)
                    .unit("CEL"),
            )
            .add(
                Variable::new(PRESSURE, id("Pressure"), "Pressure")
                    .under(boiler)
                    .value(1.0)
                    .range(0.0..=10.0)
                    .unit("BAR"),
            )
            .add(
                Variable::new(LEVEL, id("Level"), "Level")
                    .under(boiler)
                    .value(50.0f32)
                    .range(0.0..=100.0)
                    .unit("P1"),
            )
            .add(
                Variable::new(BURNER, id("Burner"), "Burner")
                    .under(boiler)
                    .data_type(ns.id("BurnerState"))
                    .value(self.burner()),
            )
            .add(
                Variable::new(ZONES, id("Zones"), "Zones")
                    .under(boiler)
                    .value(self.zones())
                    .description("°C in each of 3 x 4 places"),
            )
            .add(
                Variable::new(TREND, id("Trend"), "Trend")
                    .under(boiler)
                    .value(self.trend.clone())
                    .description("The last temperatures"),
            )
            .add(
                Variable::new(STARTS, id("Starts"), "Starts")
                    .under(boiler)
                    .value(self.starts),
            )
            .add(
                Variable::new(LAST_RESULT, id("LastResult"), "LastResult")
                    .under(boiler)
                    .value(StatusCode::GOOD)
                    .description("Of the last method"),
            )
            .add(
                Variable::new(POWER, id("Power"), "Power")
                    .under(boiler)
                    .range(0.0..=FULL_POWER)
                    .unit("KWT")
                    .on_demand(on_demand),
            )
            .add(
                Variable::new(EFFICIENCY, id("Efficiency"), "Efficiency")
                    .under(boiler)
                    .on_demand(on_demand),
            )
            .add(
                Variable::new(DEVICE_TIME, id("DeviceTime"), "DeviceTime")
                    .under(boiler)
                    .on_demand(on_demand),
            )
            .add(Property::new(
                id("SerialNumber"),
                boiler,
                "SerialNumber",
                "BX-2000-17".to_owned(),
            ))
            .add(Property::new(
                id("Manufacturer"),
                boiler,
                "Manufacturer",
                LocalizedText {
                    locale: "en".to_owned(),
                    text: "Example Boilers".to_owned(),
                },
            ))
            .add(Property::new(
                id("Nameplate"),
                boiler,
                "Nameplate",
                XmlElement("<nameplate><power unit=\"kW\">120</power></nameplate>".to_owned()),
            ))
    }

    fn declare_set_points(&self, change: Change, ns: Namespace, boiler: &NodeId) -> Change {
        let id = |name: &str| ns.id(format!("Boiler.{name}"));
        let note = LocalizedText::from("Write something here");
        change
            .add(
                Variable::new(TARGET, id("TargetTemperature"), "TargetTemperature")
                    .under(boiler)
                    .value(self.target)
                    .range(0.0..=120.0)
                    .unit("CEL")
                    .writable(),
            )
            .add(
                Variable::new(MODE, id("Mode"), "Mode")
                    .under(boiler)
                    .data_type(ns.id("OperatingMode"))
                    .value(self.mode)
                    .writable(),
            )
            .add(
                Variable::new(FAULT, id("Fault"), "Fault")
                    .under(boiler)
                    .data_type(ns.id("FaultKind"))
                    .value(self.fault)
                    .writable(),
            )
            .add(
                Variable::new(OPERATOR_NOTE, id("OperatorNote"), "OperatorNote")
                    .under(boiler)
                    .value(note)
                    .writable(),
            )
            .add(
                Variable::new(BADGE, id("Badge"), "Badge")
                    .under(boiler)
                    .value(ByteString(vec![0x42; 8]))
                    .writable(),
            )
    }

    pub(crate) fn set_points(&self) -> [Update; 3] {
        [TARGET.set(self.target), MODE.set(self.mode), FAULT.set(self.fault)]
    }

    /// Moves the machine to `now`, and says what is to be published.
    pub(crate) fn step(&mut self, now: Duration, utc: DateTime, updates: &mut Vec<Update>) {
        // After a pause the machine did not go on: a second is the most it catches up.
        let seconds = self
            .last_step
            .map_or(0.0, |last| now.saturating_sub(last).as_secs_f64())
            .min(1.0);
        self.last_step = Some(now);
        self.steps = self.steps.wrapping_add(1);
        self.follow_ramp(now, updates);
        self.heat(seconds, utc);
        if self.fault_end.is_some_and(|end| now >= end) {
            self.inject(FaultKind::None, None);
            updates.push(FAULT.set(FaultKind::None));
        }
        if self.fault != FaultKind::Offline {
            self.measure(updates);
        }
    }

    fn follow_ramp(&mut self, now: Duration, updates: &mut Vec<Update>) {
        let Some(ramp) = self.ramp else { return };
        let part = now.saturating_sub(ramp.begin).as_secs_f64() / ramp.length.as_secs_f64();
        if part >= 1.0 {
            self.ramp = None;
        }
        self.target = ramp.from + (ramp.to - ramp.from) * part.min(1.0);
        updates.push(TARGET.set(self.target));
    }

    fn heat(&mut self, seconds: f64, utc: DateTime) {
        let most = match self.mode {
            OperatingMode::Off => 0.0,
            OperatingMode::Eco => FULL_POWER / 2.0,
            OperatingMode::Heat => FULL_POWER,
        };
        // What the loss needs, and more the further away the target is.
        let loss = 0.4 * (self.target - AMBIENT);
        // Not `clamp`: its panic would bring the printing of floats into the component.
        let power = (loss + 8.0 * (self.target - self.temperature)).max(0.0).min(most);
        if power > 0.0 && self.power == 0.0 {
            self.starts = self.starts.wrapping_add(1);
            self.last_start = utc;
        }
        self.power = power;
        self.temperature += (self.power * 0.05 - (self.temperature - AMBIENT) * 0.02) * seconds;
        self.trend.remove(0);
        self.trend.push(self.temperature);
    }

    /// What the level has become since the last call: an event when it went over a limit or came back.
    pub(crate) fn level_alarm(&mut self, ns: Namespace) -> Option<Event> {
        let state = LevelState::of(self.level);
        if std::mem::replace(&mut self.level_state, state) == state {
            return None;
        }
        let (name, severity) = match state {
            LevelState::Low => ("low", 700),
            LevelState::Normal => ("normal", 100),
            LevelState::High => ("high", 800),
        };
        let event = Event::new(ns.id("Boiler"), ns.id("LevelAlarmType"))
            .severity(severity)
            .message(format!("The level is {name}").as_str())
            .field(ns.name("Level"), self.level)
            .field(ns.name("State"), name.to_owned());
        Some(event)
    }

    fn measure(&mut self, updates: &mut Vec<Update>) {
        self.level = level(self.steps);
        if self.fault != FaultKind::Stuck {
            self.shown = self.temperature;
        }
        let spike = if self.fault == FaultKind::Spike && self.steps.is_multiple_of(5) {
            500.0
        } else {
            0.0
        };
        updates.extend([
            TEMPERATURE.set(self.shown + spike),
            PRESSURE.set(1.0 + (self.shown - 60.0).max(0.0) * 0.05),
            LEVEL.set(self.level),
            BURNER.set(self.burner()),
            ZONES.set(self.zones()),
            TREND.set(self.trend.clone()),
            STARTS.set(self.starts),
        ]);
    }

    fn burner(&self) -> ExtensionObject {
        let flames = (0..3u8)
            .map(|place| {
                if self.power > 0.0 {
                    900.0 + 10.0 * f32::from(place)
                } else {
                    20.0
                }
            })
            .collect();
        let state = BurnerState {
            running: self.power > 0.0,
            power: self.power,
            starts: self.starts,
            mode: self.mode,
            last_start: self.last_start,
            flame_temperatures: flames,
        };
        ExtensionObject::of(self.encoding.clone(), &state)
    }

    fn zones(&self) -> Matrix<f64> {
        let values = (0..ZONE_ROWS * ZONE_COLUMNS)
            .map(|place| self.shown - f64::from(place) * 0.5)
            .collect();
        Matrix::new([ZONE_ROWS, ZONE_COLUMNS], values).expect("as many values as places")
    }

    /// An on-demand variable; `None`: not one of the boiler's.
    pub(crate) fn read(&self, tag: u32, utc: DateTime) -> Option<DataValue> {
        let value: Value = if POWER == tag {
            self.power.into()
        } else if EFFICIENCY == tag {
            (0.9f32 - (self.power / FULL_POWER * 0.1) as f32).into()
        } else if DEVICE_TIME == tag {
            utc.into()
        } else {
            return None;
        };
        Some(if self.fault == FaultKind::Offline {
            DataValue::bad(StatusCode::BAD_NO_COMMUNICATION)
        } else {
            DataValue::good(value)
        })
    }

    /// A set-point that a client writes; `None`: not one of the boiler's.
    pub(crate) fn write(&mut self, tag: u32, value: &Value) -> Option<StatusCode> {
        fn checked<T: Typed>(value: &Value, take: impl FnOnce(T) -> StatusCode) -> StatusCode {
            value.get::<T>().map_or(StatusCode::BAD_OUT_OF_RANGE, take)
        }
        Some(if TARGET == tag {
            checked(value, |target| self.set_target(target))
        } else if MODE == tag {
            checked(value, |mode| {
                self.mode = mode;
                StatusCode::GOOD
            })
        } else if FAULT == tag {
            checked(value, |kind| {
                self.inject(kind, None);
                StatusCode::GOOD
            })
        } else {
            return None;
        })
    }

    /// Goes on where another generation was; what is out of range stays as it is.
    pub(crate) fn restore(&mut self, saved: &Saved) {
        self.set_target(saved.target);
        set(&mut self.temperature, saved.temperature, 0.0..=200.0);
        self.shown = self.temperature;
        self.trend = vec![self.temperature; TREND_LENGTH];
        self.starts = saved.starts;
        self.mode = saved.mode;
    }

    pub(crate) fn saved_work(&self) -> SavedWork {
        let ramp = self.ramp.as_ref();
        SavedWork {
            fault: self.fault,
            fault_end: self.fault_end.map_or(-1.0, milliseconds),
            power: self.power,
            last_start: self.last_start,
            steps: self.steps,
            ramp_from: ramp.map_or(0.0, |ramp| ramp.from),
            ramp_to: ramp.map_or(0.0, |ramp| ramp.to),
            ramp_begin: ramp.map_or(0.0, |ramp| milliseconds(ramp.begin)),
            ramp_length: ramp.map_or(0.0, |ramp| milliseconds(ramp.length)),
        }
    }

    /// Goes on with what was saved; to be called after [`restore`](Self::restore).
    pub(crate) fn restore_work(&mut self, saved: &SavedWork) {
        self.fault = saved.fault;
        self.fault_end = duration(saved.fault_end);
        set(&mut self.power, saved.power, 0.0..=FULL_POWER);
        self.last_start = saved.last_start;
        self.steps = saved.steps;
        self.level = level(self.steps);
        self.level_state = LevelState::of(self.level);
        let times = duration(saved.ramp_begin).zip(duration(saved.ramp_length));
        self.ramp = times
            .filter(|(_, length)| !length.is_zero() && is_target(saved.ramp_from) && is_target(saved.ramp_to))
            .map(|(begin, length)| Ramp {
                from: saved.ramp_from,
                to: saved.ramp_to,
                begin,
                length,
            });
    }

    fn set_target(&mut self, target: f64) -> StatusCode {
        let status = set(&mut self.target, target, 0.0..=120.0);
        if status.is_good() {
            self.ramp = None;
        }
        status
    }

    /// Moves the target to `target` within `seconds`; answers whether it will.
    pub(crate) fn ramp_to(&mut self, target: f64, seconds: f64, now: Duration) -> bool {
        if !(0.0..=120.0).contains(&target) || !(0.0..=86_400.0).contains(&seconds) || self.mode == OperatingMode::Off {
            return false;
        }
        let length = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        if length.is_zero() {
            self.set_target(target);
        } else {
            self.ramp = Some(Ramp {
                from: self.target,
                to: target,
                begin: now,
                length,
            });
        }
        true
    }

    /// Breaks or repairs the instruments, until `end` if there is one.
    pub(crate) fn inject(&mut self, kind: FaultKind, end: Option<Duration>) {
        self.fault = kind;
        self.fault_end = end;
        if kind == FaultKind::Offline {
            backplane_sdk::degrade(&MEASURED, StatusCode::BAD_NO_COMMUNICATION);
        }
    }
}

fn declare_methods(change: Change, ns: Namespace, boiler: &NodeId) -> Change {
    let id = |name: &str| ns.id(format!("Boiler.{name}"));
    change
        .add(
            Method::new(SET_TARGET, id("SetTarget"), "SetTarget")
                .under(boiler)
                .input::<f64>("Temperature", "The new target in °C, 0 to 120")
                .input::<f64>("RampSeconds", "How long the way there takes; 0: at once")
                .output::<f64>("Previous", "The target before")
                .output::<bool>("Accepted", "Not while the mode is Off, nor out of range"),
        )
        .add(
            Method::new(INJECT_FAULT, id("InjectFault"), "InjectFault")
                .under(boiler)
                .input_of::<FaultKind>("Kind", ns.id("FaultKind"), "What breaks")
                .input::<f64>("Seconds", "For how long; 0: until it is repaired"),
        )
        .add(
            Method::new(RESET, id("Reset"), "Reset")
                .under(boiler)
                .description("Repairs everything and lets the water cool down"),
        )
}

fn level(steps: u64) -> f32 {
    50.0 + 10.0 * (steps as f32 / 100.0).sin()
}

fn is_target(value: f64) -> bool {
    (0.0..=120.0).contains(&value)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn duration(milliseconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(milliseconds / 1_000.0).ok()
}
