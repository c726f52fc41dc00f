//! The data types of the plant, as clients see them.

use backplane_sdk::{DateTime, enumeration, structure};

enumeration! {
    /// How the boiler is run.
    pub(crate) enum OperatingMode {
        /// The burner stays off.
        Off = 0,
        /// Half the power at most.
        Eco = 1,
        /// Whatever it takes.
        Heat = 2,
    }
}

enumeration! {
    /// What is wrong with the boiler's instruments.
    pub(crate) enum FaultKind {
        /// Nothing.
        None = 0,
        /// Measurements stay where they are, and nobody notices.
        Stuck = 1,
        /// Every now and then a temperature that cannot be.
        Spike = 2,
        /// No measurement at all.
        Offline = 3,
    }
}

structure! {
    /// The state of the burner, in one value.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct BurnerState {
        pub(crate) running: bool as "Running",
        /// In kW.
        pub(crate) power: f64 as "Power",
        pub(crate) starts: u64 as "Starts",
        pub(crate) mode: OperatingMode as "Mode",
        pub(crate) last_start: DateTime as "LastStart",
        /// In °C.
        pub(crate) flame_temperatures: Vec<f32> as "FlameTemperatures",
    }
}

structure! {
    /// What the next generation of the plugin needs to go on.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct Saved {
        pub(crate) counter: u32 as "Counter",
        pub(crate) target: f64 as "Target",
        pub(crate) temperature: f64 as "Temperature",
        pub(crate) starts: u64 as "Starts",
        pub(crate) mode: OperatingMode as "Mode",
        pub(crate) amplitude: f64 as "Amplitude",
        pub(crate) period: f64 as "Period",
        pub(crate) walk: f64 as "Walk",
        pub(crate) ticks: u64 as "Ticks",
    }
}

structure! {
    /// What came to it with the second form: what the boiler is in the middle of.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct SavedWork {
        pub(crate) fault: FaultKind as "Fault",
        /// When the fault is over, in ms of the host's monotonic clock, as all times here; below 0: never.
        pub(crate) fault_end: f64 as "FaultEnd",
        pub(crate) power: f64 as "Power",
        pub(crate) last_start: DateTime as "LastStart",
        pub(crate) steps: u64 as "Steps",
        pub(crate) ramp_from: f64 as "RampFrom",
        pub(crate) ramp_to: f64 as "RampTo",
        pub(crate) ramp_begin: f64 as "RampBegin",
        /// 0: there is no ramp.
        pub(crate) ramp_length: f64 as "RampLength",
    }
}
