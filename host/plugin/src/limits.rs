//! Every bound of a plugin, in one place, and the operator's overrides of them.
//!
//! Owns names, defaults and parsing. It must not know wasmtime: what each number is applied to is said beside it.

use std::time::Duration;

use serde::Deserialize;

/// CPU and wall-clock deadline of one kind of guest call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    /// Time the guest may compute, counted in epoch ticks while it runs.
    pub cpu: Duration,
    /// Time until the call must have returned, waiting included.
    pub wall: Duration,
}

impl Deadline {
    const fn millis(cpu: u64, wall: u64) -> Self {
        Self {
            cpu: Duration::from_millis(cpu),
            wall: Duration::from_millis(wall),
        }
    }
}

/// Bounds of one plugin. Defaults suit a small driver; the file beside the component overrides single entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one linear memory; growing beyond it traps.
    pub memory: usize,
    /// Elements of one table.
    pub table_elements: usize,
    /// Core instances, and tables, and memories of one component instance.
    pub instances: usize,
    /// Bytes one host call or one answer may carry from the guest (wasmtime's host-call fuel).
    pub host_call_bytes: usize,
    /// Live entries of the guest's resource table.
    pub resources: usize,
    /// Bytes of randomness in one request of the guest.
    pub random_bytes: u64,
    /// Bytes of the component file.
    pub component_bytes: u64,
    /// Bytes of the settings file beside it.
    pub settings_bytes: u64,
    /// `lifecycle.start`.
    pub start: Deadline,
    /// `lifecycle.wake`.
    pub wake: Deadline,
    /// `lifecycle.stop`.
    pub stop: Deadline,
    /// `reader.read`.
    pub read: Deadline,
    /// `demand.changed`.
    pub demand: Deadline,
    /// How often in a second `demand.changed` is called at most.
    pub demand_calls: u32,
    /// Variables in one call of `demand.changed`; further ones come in the next.
    pub demand_items: usize,
    /// `writer.write`.
    pub write: Deadline,
    /// `methods.invoke`.
    pub call: Deadline,
    /// Either function of `classify`; `wall` is counted from the question, so it includes waiting for others.
    pub classify: Deadline,
    /// `handover.save` and `handover.restore`.
    pub handover: Deadline,
    /// How long a generation that is replaced or unloaded may finish what was asked of it.
    pub drain: Duration,
    /// Calls waiting for the instance; the next one is answered BadServerTooBusy.
    pub mailbox: usize,
    /// Waiting reads of one caller that become one call; 1: none do.
    pub merged_reads: usize,
    /// Tags of one call that was merged from several reads.
    pub merged_tags: usize,
    /// Running timers; further ones are not started.
    pub timers: usize,
    /// Shortest period or delay of a timer; shorter ones are lengthened to it.
    pub timer_minimum: Duration,
    /// Open `change` resources; opening another one traps.
    pub open_changes: usize,
    /// Steps of one `change`; a longer one fails at commit.
    pub change_steps: usize,
    /// Bytes of names, documents and values in the steps of one `change`.
    pub change_bytes: usize,
    /// Nodes the plugin may have.
    pub nodes: usize,
    /// Bytes of one published value.
    pub value_bytes: usize,
    /// Bytes of all published values that are larger than 256 bytes.
    pub total_value_bytes: usize,
    /// Events in one second; further ones are refused.
    pub events_per_second: u32,
    /// Fields of one event.
    pub event_fields: usize,
    /// Bytes of the fields of one event.
    pub event_bytes: usize,
    /// Bytes of all entries of its key-value store, keys and 64 bytes for each included; 0: it has none.
    pub store: usize,
    /// Namespace URIs the plugin may ask for.
    pub namespaces: usize,
    /// Series of metrics the plugin may have.
    pub metric_series: usize,
    /// Log lines in one second; further ones are counted and dropped.
    pub log_lines: u32,
    /// Bytes of one log line; longer ones are cut.
    pub log_line_bytes: usize,
    /// Fields of one log line; further ones are dropped.
    pub log_fields: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 64 << 20,
            table_elements: 20_000,
            instances: 64,
            host_call_bytes: 8 << 20,
            resources: 4_096,
            random_bytes: 64 << 10,
            component_bytes: 64 << 20,
            settings_bytes: 256 << 10,
            start: Deadline::millis(10_000, 30_000),
            wake: Deadline::millis(1_000, 5_000),
            stop: Deadline::millis(1_000, 5_000),
            read: Deadline::millis(250, 5_000),
            demand: Deadline::millis(250, 5_000),
            demand_calls: 4,
            demand_items: 10_000,
            write: Deadline::millis(250, 5_000),
            call: Deadline::millis(2_000, 30_000),
            classify: Deadline::millis(20, 50),
            handover: Deadline::millis(5_000, 10_000),
            drain: Duration::from_secs(10),
            mailbox: 1_024,
            merged_reads: 64,
            merged_tags: 4_096,
            timers: 1_024,
            timer_minimum: Duration::from_millis(1),
            open_changes: 16,
            change_steps: 2_000_000,
            change_bytes: 256 << 20,
            nodes: 1_000_000,
            value_bytes: 8 << 20,
            total_value_bytes: 256 << 20,
            events_per_second: 1_000,
            event_fields: 100,
            event_bytes: 16 << 10,
            store: 16 << 20,
            namespaces: 64,
            metric_series: 1_000,
            log_lines: 1_000,
            log_line_bytes: 4 << 10,
            log_fields: 32,
        }
    }
}

/// `[limits]` of a plugin's settings file. Sizes are bytes or "64MiB", times are milliseconds or "250ms".
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LimitOverrides {
    memory: Option<Size>,
    table_elements: Option<usize>,
    host_call_bytes: Option<Size>,
    resources: Option<usize>,
    start: Option<DeadlineOverride>,
    wake: Option<DeadlineOverride>,
    stop: Option<DeadlineOverride>,
    read: Option<DeadlineOverride>,
    demand: Option<DeadlineOverride>,
    demand_calls: Option<u32>,
    write: Option<DeadlineOverride>,
    call: Option<DeadlineOverride>,
    classify: Option<DeadlineOverride>,
    handover: Option<DeadlineOverride>,
    drain: Option<Millis>,
    mailbox: Option<usize>,
    timers: Option<usize>,
    change_steps: Option<usize>,
    change_bytes: Option<Size>,
    nodes: Option<usize>,
    value_bytes: Option<Size>,
    total_value_bytes: Option<Size>,
    events_per_second: Option<u32>,
    event_bytes: Option<Size>,
    store: Option<Size>,
    log_lines: Option<u32>,
}

/// One overridden deadline; what is left out keeps its default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct DeadlineOverride {
    cpu: Option<Millis>,
    wall: Option<Millis>,
}

impl DeadlineOverride {
    fn apply(self, deadline: &mut Deadline) {
        if let Some(cpu) = self.cpu {
            deadline.cpu = cpu.0;
        }
        if let Some(wall) = self.wall {
            deadline.wall = wall.0;
        }
    }
}

impl LimitOverrides {
    /// The limits with these overrides.
    #[must_use]
    pub fn apply(&self, base: &Limits) -> Limits {
        let mut limits = base.clone();
        let set = |value: Option<usize>, into: &mut usize| {
            if let Some(value) = value {
                *into = value;
            }
        };
        set(self.memory.map(|s| s.0), &mut limits.memory);
        set(self.table_elements, &mut limits.table_elements);
        set(self.host_call_bytes.map(|s| s.0), &mut limits.host_call_bytes);
        set(self.resources, &mut limits.resources);
        set(self.mailbox, &mut limits.mailbox);
        set(self.timers, &mut limits.timers);
        set(self.change_steps, &mut limits.change_steps);
        set(self.change_bytes.map(|s| s.0), &mut limits.change_bytes);
        set(self.nodes, &mut limits.nodes);
        set(self.value_bytes.map(|s| s.0), &mut limits.value_bytes);
        set(self.total_value_bytes.map(|s| s.0), &mut limits.total_value_bytes);
        if let Some(drain) = self.drain {
            limits.drain = drain.0;
        }
        set(self.store.map(|s| s.0), &mut limits.store);
        set(self.event_bytes.map(|s| s.0), &mut limits.event_bytes);
        if let Some(events) = self.events_per_second {
            limits.events_per_second = events;
        }
        if let Some(calls) = self.demand_calls {
            limits.demand_calls = calls;
        }
        if let Some(lines) = self.log_lines {
            limits.log_lines = lines;
        }
        for (value, into) in [
            (self.start, &mut limits.start),
            (self.wake, &mut limits.wake),
            (self.stop, &mut limits.stop),
            (self.read, &mut limits.read),
            (self.demand, &mut limits.demand),
            (self.write, &mut limits.write),
            (self.call, &mut limits.call),
            (self.classify, &mut limits.classify),
            (self.handover, &mut limits.handover),
        ] {
            value.unwrap_or_default().apply(into);
        }
        // A mailbox of no places would be a plugin that can never answer.
        limits.mailbox = limits.mailbox.max(1);
        limits
    }
}

/// Bytes, from a number or from text with B, KiB, MiB or GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "NumberOrText")]
struct Size(usize);

/// A time, from a number of milliseconds or from text with ms or s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "NumberOrText")]
struct Millis(Duration);

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(u64),
    Text(String),
}

impl NumberOrText {
    fn scaled(&self, units: &[(&str, u64)], expected: &str) -> Result<u64, String> {
        let text = match self {
            Self::Number(number) => return Ok(*number),
            Self::Text(text) => text.trim(),
        };
        for (unit, factor) in units {
            if let Some(number) = text.strip_suffix(unit) {
                return number
                    .trim()
                    .parse::<u64>()
                    .ok()
                    .and_then(|n| n.checked_mul(*factor))
                    .ok_or_else(|| format!("{text:?} is not {expected}"));
            }
        }
        Err(format!("{text:?} is not {expected}"))
    }
}

impl TryFrom<NumberOrText> for Size {
    type Error = String;

    fn try_from(raw: NumberOrText) -> Result<Self, String> {
        let expected = "a size such as 65536, \"512KiB\" or \"64MiB\"";
        let bytes = raw.scaled(
            &[("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)],
            expected,
        )?;
        usize::try_from(bytes)
            .map(Self)
            .map_err(|_| format!("{bytes} bytes are more than this machine can address"))
    }
}

impl TryFrom<NumberOrText> for Millis {
    type Error = String;

    fn try_from(raw: NumberOrText) -> Result<Self, String> {
        let expected = "a time such as 250, \"250ms\" or \"5s\"";
        raw.scaled(&[("ms", 1), ("s", 1_000)], expected)
            .map(|ms| Self(Duration::from_millis(ms)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Limits, String> {
        toml::from_str::<LimitOverrides>(text)
            .map(|o| o.apply(&Limits::default()))
            .map_err(|e| e.to_string())
    }

    #[test]
    fn overrides_change_only_what_they_name() {
        let limits = parse("memory = \"96MiB\"\nread = { cpu = \"100ms\" }\nmailbox = 0").unwrap();
        assert_eq!(limits.memory, 96 << 20);
        assert_eq!(limits.read.cpu, Duration::from_millis(100));
        assert_eq!(limits.read.wall, Limits::default().read.wall);
        assert_eq!(limits.mailbox, 1);
        assert_eq!(limits.write, Limits::default().write);
    }

    #[test]
    fn wrong_units_and_unknown_names_are_errors() {
        assert!(parse("memory = \"96 parsecs\"").unwrap_err().contains("parsecs"));
        assert!(parse("memroy = 5").unwrap_err().contains("memroy"));
        assert!(parse("memory = \"99999999999999999999GiB\"").is_err());
    }
}
