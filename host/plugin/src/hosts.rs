//! What a guest may call, but for the address space: values, timers, clock, context, settings, log, metrics.
//!
//! Owns the small answers. Every function returns at once and none calls the guest. What is refused is refused with a status code, or logged where the
//! contract has no answer.

use std::sync::Arc;

use backplane_types::{DateTime, StatusCode};
use tokio::time::Instant;

use crate::bindings::{host, ua};
use crate::convert;
use crate::settings::lookup;
use crate::state::{Phase, State};

/// What a retired generation is told.
pub(crate) const RETIRED: &str = "another generation of this plugin serves by now";

pub(crate) fn fault(status: StatusCode, detail: impl Into<String>) -> ua::Fault {
    ua::Fault {
        status: status.0,
        detail: detail.into(),
    }
}

impl ua::Host for State {}

impl host::log::Host for State {
    fn write(&mut self, level: u8, message: String, fields: Vec<(String, String)>) {
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        self.gate.write(level, &message, &fields);
    }

    fn enabled(&mut self, level: u8) -> bool {
        self.gate.enabled(level)
    }
}

impl host::metrics::Host for State {
    fn add(&mut self, name: String, delta: f64, labels: Vec<(String, String)>) {
        let shared = &self.shared;
        if !shared
            .metrics
            .record(&name, &labels, delta, true, shared.limits.metric_series)
        {
            self.gate.write(
                3,
                &format!("metric {name:?} not taken: no number, too long a name, or too many series"),
                &[],
            );
        }
    }

    fn gauge(&mut self, name: String, value: f64, labels: Vec<(String, String)>) {
        let shared = &self.shared;
        if !shared
            .metrics
            .record(&name, &labels, value, false, shared.limits.metric_series)
        {
            self.gate.write(
                3,
                &format!("metric {name:?} not taken: no number, too long a name, or too many series"),
                &[],
            );
        }
    }
}

impl host::settings::Host for State {
    fn get(&mut self, path: String) -> Option<String> {
        lookup(&self.shared.settings, &path)
    }

    fn secret(&mut self, name: String) -> Option<String> {
        self.shared.access.secret(&name)
    }
}

impl host::store::Host for State {
    fn get(&mut self, key: String) -> Result<Option<Vec<u8>>, ua::Fault> {
        let found = self.kept.get(&self.shared.store, &key);
        Ok(found.map(|value| value.to_vec()))
    }

    fn set(&mut self, key: String, value: Vec<u8>) -> Result<(), ua::Fault> {
        self.keep(key, Some(value))
    }

    fn remove(&mut self, key: String) -> Result<(), ua::Fault> {
        self.keep(key, None)
    }

    fn keys(&mut self, prefix: String) -> Result<Vec<String>, ua::Fault> {
        Ok(self.kept.keys(&self.shared.store, &prefix))
    }
}

impl State {
    fn keep(&mut self, key: String, value: Option<Vec<u8>>) -> Result<(), ua::Fault> {
        if self.is_retired(*self.serving.read()) {
            return Err(fault(StatusCode::BAD_INVALID_STATE, RETIRED));
        }
        self.kept.set(&self.shared.store, key, value, self.shared.limits.store)
    }
}

impl host::values::Host for State {
    fn publish(&mut self, updates: Vec<host::values::Update>) -> Result<Vec<(u32, u32)>, ua::Fault> {
        let serving = Arc::clone(&self.serving);
        let serving = serving.read();
        if self.is_retired(*serving) {
            return Err(fault(StatusCode::BAD_INVALID_STATE, RETIRED));
        }
        let now = self.shared.now().utc;
        let mut refused = Vec::new();
        let count = updates.len();
        // What was large and is small now has to be taken off the sum.
        let is_short = self.sizes.is_nothing();
        for (place, update) in updates.into_iter().enumerate() {
            if is_short && self.remembered.publish(&self.model, place, &update, now) {
                continue;
            }
            if let Err(status) = self.publish_one(update.tag, update.value, now) {
                refused.push((update.tag, status.0));
            }
        }
        self.shared.counters.published.add(count.saturating_sub(refused.len()));
        self.shared.counters.refused.add(refused.len());
        Ok(refused)
    }

    fn degrade(&mut self, marks: Vec<host::values::Mark>) {
        let serving = self.serving.read();
        if self.is_retired(*serving) {
            return;
        }
        let now = self.shared.now().utc;
        for mark in marks {
            self.model.degrade(mark.tags.as_deref(), StatusCode(mark.status), now);
        }
    }
}

impl State {
    fn publish_one(&mut self, tag: u32, value: ua::DataValue, now: DateTime) -> Result<(), StatusCode> {
        let value = convert::data_value(&self.names, value, now)?;
        // An unknown tag must not take room in the table of sizes.
        if self.model.cell(tag).is_some() {
            self.sizes.replace(tag, &value.value)?;
        }
        self.model.publish(tag, value, now)
    }

    /// Whether another generation serves than this one, given the number of the one that does.
    pub(crate) fn is_retired(&self, serving: u64) -> bool {
        matches!(self.phase, Phase::Live(_)) && serving != self.number
    }
}

impl host::context::Host for State {
    fn deadline(&mut self, call: u32) -> i64 {
        self.running(call).map_or(0, |call| call.context.deadline_utc.ticks())
    }

    // Nobody waits for the answer of a call that does not run.
    fn cancelled(&mut self, call: u32) -> bool {
        let now = self.shared.now();
        self.running(call).is_none_or(|call| call.is_cancelled(now))
    }

    fn client(&mut self, call: u32) -> String {
        self.running(call)
            .map_or_else(String::new, |call| call.context.caller.client.to_string())
    }

    fn user(&mut self, call: u32) -> Option<String> {
        self.running(call)?.context.caller.user.as_deref().map(str::to_owned)
    }

    fn roles(&mut self, call: u32) -> Vec<String> {
        self.running(call).map_or_else(Vec::new, |call| {
            call.context
                .caller
                .roles
                .iter()
                .map(|role| role.name.to_string())
                .collect()
        })
    }

    fn locales(&mut self, call: u32) -> Vec<String> {
        self.running(call).map_or_else(Vec::new, |call| {
            call.context
                .caller
                .locales
                .iter()
                .map(|locale| locale.text().to_owned())
                .collect()
        })
    }

    fn isolation_owner(&mut self, call: u32) -> String {
        self.running(call)
            .map_or_else(String::new, |call| call.context.caller.isolation_owner.to_string())
    }

    fn trace_parent(&mut self, call: u32) -> Option<String> {
        self.running(call)?.context.trace_parent.as_deref().map(str::to_owned)
    }
}

impl host::timers::Host for State {
    fn every(&mut self, period: f64, token: u64) {
        self.start_timer(period, token, true);
    }

    fn after(&mut self, delay: f64, token: u64) {
        self.start_timer(delay, token, false);
    }

    fn cancel(&mut self, token: u64) {
        self.timers.cancel(token);
    }
}

impl State {
    fn start_timer(&mut self, milliseconds: f64, token: u64, repeat: bool) {
        if let Err(reason) = self.timers.start(Instant::now(), milliseconds, token, repeat) {
            self.gate.write(4, &format!("timer {token} not started: {reason}"), &[]);
        }
    }
}

impl host::clock::Host for State {
    fn utc(&mut self) -> i64 {
        self.shared.now().utc.ticks()
    }

    fn monotonic(&mut self) -> f64 {
        self.shared.now().mono.as_secs_f64() * 1_000.0
    }
}
