//! Signals without a machine behind them: sine, ramp, square, random walk, counter. Owns their state and two set-points; knows nothing of boilers.

use std::time::Duration;

use backplane_sdk::{Change, Folder, Namespace, NodeId, StatusCode, Update, Variable};

use crate::tags::{AMPLITUDE, PERIOD, RAMP, SINE, SQUARE, TICKS, WALK};
use crate::types::Saved;
use crate::variant;

/// The generators.
#[derive(Clone, Debug)]
pub(crate) struct Signals {
    pub(crate) amplitude: f64,
    /// Seconds.
    pub(crate) period: f64,
    pub(crate) walk: f64,
    pub(crate) ticks: u64,
    random: u64,
}

impl Default for Signals {
    fn default() -> Self {
        Signals {
            amplitude: 10.0,
            period: 10.0,
            walk: 0.0,
            ticks: 0,
            random: 0x9E37_79B9_7F4A_7C15,
        }
    }
}

impl Signals {
    pub(crate) fn declare(&self, change: Change, ns: Namespace) -> Change {
        let folder = ns.id("Signals");
        let id = |name: &str| ns.id(format!("Signals.{name}"));
        change
            .add(Folder::new(&folder, "Signals").description("Generators; Amplitude and Period shape them"))
            .add(
                Variable::new(SINE, id("Sine"), "Sine")
                    .under(&folder)
                    .value(0.0)
                    .range(-1000.0..=1000.0),
            )
            .add(
                Variable::new(RAMP, id("Ramp"), "Ramp")
                    .under(&folder)
                    .value(0.0)
                    .range(0.0..=1000.0),
            )
            .add(
                Variable::new(SQUARE, id("Square"), "Square")
                    .under(&folder)
                    .value(false),
            )
            .add(
                Variable::new(WALK, id("RandomWalk"), "RandomWalk")
                    .under(&folder)
                    .value(0.0),
            )
            .add(Variable::new(TICKS, id("Ticks"), "Ticks").under(&folder).value(0u64))
            .add(
                set_point(
                    Variable::new(AMPLITUDE, id("Amplitude"), "Amplitude"),
                    &folder,
                    self.amplitude,
                )
                .range(0.0..=1000.0),
            )
            .add(
                set_point(Variable::new(PERIOD, id("Period"), "Period"), &folder, self.period)
                    .range(0.1..=3600.0)
                    .unit("SEC"),
            )
    }

    pub(crate) fn set_points(&self) -> [Update; 2] {
        [AMPLITUDE.set(self.amplitude), PERIOD.set(self.period)]
    }

    pub(crate) fn step(&mut self, now: Duration, updates: &mut Vec<Update>) {
        let phase = (now.as_secs_f64() / self.period).fract();
        self.ticks = self.ticks.wrapping_add(1);
        let walk = self.walk + self.random() * self.amplitude * 0.1;
        self.walk = walk.max(-self.amplitude).min(self.amplitude);
        updates.extend([
            SINE.set(variant::OFFSET + self.amplitude * (phase * std::f64::consts::TAU).sin()),
            RAMP.set(self.amplitude * phase),
            SQUARE.set(phase >= 0.5),
            WALK.set(self.walk),
            TICKS.set(self.ticks),
        ]);
    }

    pub(crate) fn set_amplitude(&mut self, amplitude: f64) -> StatusCode {
        set(&mut self.amplitude, amplitude, 0.0..=1000.0)
    }

    pub(crate) fn set_period(&mut self, period: f64) -> StatusCode {
        set(&mut self.period, period, 0.1..=3600.0)
    }

    /// Goes on where another generation was; what is out of range stays as it is.
    pub(crate) fn restore(&mut self, saved: &Saved) {
        self.set_amplitude(saved.amplitude);
        self.set_period(saved.period);
        set(&mut self.walk, saved.walk, -1000.0..=1000.0);
        self.ticks = saved.ticks;
    }

    /// From -1 to 1, the same sequence in every run.
    fn random(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

fn set_point(variable: Variable<f64>, folder: &NodeId, value: f64) -> Variable<f64> {
    variable.under(folder).value(value).writable()
}

/// Takes a new set-point if it is in range; NaN never is.
pub(crate) fn set(point: &mut f64, value: f64, range: std::ops::RangeInclusive<f64>) -> StatusCode {
    if !range.contains(&value) {
        return StatusCode::BAD_OUT_OF_RANGE;
    }
    *point = value;
    StatusCode::GOOD
}
