//! What one instance has on the host's side: the data of its store.
//!
//! Owns everything that host functions reach, and nothing that outlives the instance but by `Arc`. It must not call the guest.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use backplane_manifest::HostName;
use backplane_nodes::{AddressSpace, CallContext, ManagerId, Model};
use backplane_types::Now;
use parking_lot::RwLock;
use wasmtime::component::ResourceTable;
use wasmtime::{StoreLimits, StoreLimitsBuilder};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use crate::convert::Namespaces;
use crate::counters::{Counters, Metrics};
use crate::events::{EventRate, Sink};
use crate::evidence::PeerEvidence;
use crate::limits::Limits;
use crate::log::LogGate;
use crate::permissions::{self, Access};
use crate::publish::Remembered;
use crate::sizes::Sizes;
use crate::stdio::LineStream;
use crate::store::{Changes, KeyValues};
use crate::timers::Timers;

/// The host's clock; passed in, so that a simulation can have its own.
pub type Clock = Arc<dyn Fn() -> Now + Send + Sync>;

/// What all instances of one generation share.
pub(crate) struct Generation {
    pub(crate) name: Arc<str>,
    /// Tells one set of code and settings from every other.
    pub(crate) edition: u64,
    pub(crate) limits: Limits,
    pub(crate) settings: serde_json::Value,
    pub(crate) namespaces: Vec<String>,
    pub(crate) may_log: bool,
    /// What it may use of the world outside.
    pub(crate) access: Arc<Access>,
    pub(crate) space: Arc<AddressSpace>,
    pub(crate) clock: Clock,
    pub(crate) counters: Arc<Counters>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) events: Sink,
    pub(crate) store: Arc<KeyValues>,
}

impl Generation {
    pub(crate) fn now(&self) -> Now {
        (self.clock)()
    }
}

/// Where an instance is in its life, as far as host functions care.
pub(crate) enum Phase {
    /// `start` runs: what it declares and publishes is not seen by anybody yet.
    Hidden,
    /// It serves: changes and values are seen at once.
    Live(ManagerId),
}

/// The call that is running.
pub(crate) struct RunningCall {
    pub(crate) id: u32,
    pub(crate) context: CallContext,
    pub(crate) waiters: Waiters,
}

/// Set when somebody does not wait for an answer any more.
pub(crate) type Cancelled = Arc<AtomicBool>;

/// Whoever waits for the answer of one call.
pub(crate) struct Waiters {
    first: Cancelled,
    /// Of a call that was merged from several.
    more: Vec<Cancelled>,
}

impl From<Cancelled> for Waiters {
    fn from(first: Cancelled) -> Self {
        Self {
            first,
            more: Vec::new(),
        }
    }
}

impl Waiters {
    pub(crate) fn add(&mut self, other: Cancelled) {
        self.more.push(other);
    }

    /// Whether nobody waits any more.
    fn are_gone(&self) -> bool {
        let mut all = std::iter::once(&self.first).chain(&self.more);
        all.all(|cancelled| cancelled.load(Ordering::Relaxed))
    }
}

/// See the module text.
pub(crate) struct State {
    wasi: WasiCtx,
    pub(crate) table: ResourceTable,
    pub(crate) store_limits: StoreLimits,
    /// Epoch ticks the running call may still use.
    pub(crate) ticks_left: u64,
    pub(crate) shared: Arc<Generation>,
    pub(crate) gate: LogGate,
    pub(crate) names: Namespaces,
    /// The number of this instance among all of the plugin.
    pub(crate) number: u64,
    /// The number of the one whose values and changes are taken; held while either is, so that a swap comes between two of them.
    pub(crate) serving: Arc<RwLock<u64>>,
    pub(crate) model: Arc<Model>,
    pub(crate) remembered: Remembered,
    pub(crate) phase: Phase,
    pub(crate) timers: Timers,
    pub(crate) sizes: Sizes,
    pub(crate) event_rate: EventRate,
    /// What the running call has changed in the store.
    pub(crate) kept: Changes,
    pub(crate) call: Option<RunningCall>,
    /// The question a classifier is answering, by the number of the call.
    pub(crate) peer: Option<(u32, Arc<PeerEvidence>)>,
    last_call: u32,
    /// Names that are being looked up, by the number of their stream; as many as the table of resources has places.
    pub(crate) lookups: HashMap<u32, HostName>,
    pub(crate) open_changes: usize,
}

impl State {
    pub(crate) fn new(shared: Arc<Generation>, number: u64, serving: Arc<RwLock<u64>>) -> Self {
        let limits = &shared.limits;
        let gate = LogGate::new(Arc::clone(&shared.name), number, shared.may_log, limits);
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.resources);
        // Nothing is inherited; what is not asked and granted is not opened.
        let mut builder = WasiCtxBuilder::new();
        builder
            .stdout(LineStream::new(gate.clone(), "stdout", 2))
            .stderr(LineStream::new(gate.clone(), "stderr", 3))
            .max_random_size(limits.random_bytes);
        if let Err(error) = permissions::context(&mut builder, &shared.name, &shared.access) {
            // It will find its folder missing.
            gate.write(4, &format!("a folder that it may use cannot be opened: {error}"), &[]);
        }
        let wasi = builder.build();
        let store_limits = StoreLimitsBuilder::new()
            .memory_size(limits.memory)
            .table_elements(limits.table_elements)
            .instances(limits.instances)
            .tables(limits.instances)
            .memories(limits.instances)
            .trap_on_grow_failure(true)
            .build();
        let timers = Timers::new(limits.timers, limits.timer_minimum);
        let sizes = Sizes::new(limits.value_bytes, limits.total_value_bytes);
        let event_rate = EventRate::new(limits.events_per_second);
        let mut state = Self {
            wasi,
            table,
            store_limits,
            ticks_left: 0,
            shared,
            gate,
            names: Namespaces::new(),
            number,
            serving,
            model: Arc::new(Model::empty()),
            remembered: Remembered::default(),
            phase: Phase::Hidden,
            timers,
            sizes,
            event_rate,
            kept: Changes::default(),
            call: None,
            peer: None,
            last_call: 0,
            lookups: HashMap::new(),
            open_changes: 0,
        };
        state.declare_namespaces();
        state
    }

    /// Has another model from now on.
    pub(crate) fn take_model(&mut self, model: Arc<Model>) {
        self.model = model;
        self.remembered.clear();
    }

    /// The namespaces of the settings file, in their order.
    fn declare_namespaces(&mut self) {
        let shared = Arc::clone(&self.shared);
        for uri in &shared.namespaces {
            if let Err(reason) = self.namespace(uri) {
                self.gate.write(4, &format!("namespace {uri:?}: {reason}"), &[]);
            }
        }
    }

    /// The local index of a namespace.
    pub(crate) fn namespace(&mut self, uri: &str) -> Result<u16, String> {
        if self.names.len() > self.shared.limits.namespaces {
            return Err(format!("more than {} namespaces", self.shared.limits.namespaces));
        }
        let server = self
            .shared
            .space
            .namespaces()
            .register(uri)
            .map_err(|status| status.to_string())?;
        self.names
            .local(server)
            .ok_or_else(|| "the table of namespaces is full".to_owned())
    }

    /// The next number of a call. Numbers stay below 2^31: some guests get larger ones wrong.
    fn number_call(&mut self) -> u32 {
        self.last_call = if self.last_call >= i32::MAX.unsigned_abs() {
            1
        } else {
            self.last_call + 1
        };
        self.last_call
    }

    /// Begins a call that is made for a client, and gives it a number.
    pub(crate) fn begin_call(&mut self, context: CallContext, waiters: Waiters) -> u32 {
        let id = self.number_call();
        self.call = Some(RunningCall { id, context, waiters });
        id
    }

    /// Begins a question to a classifier, and gives it a number.
    pub(crate) fn begin_question(&mut self, evidence: Arc<PeerEvidence>) -> u32 {
        let id = self.number_call();
        self.peer = Some((id, evidence));
        id
    }

    /// Nothing runs any more that could ask about its caller.
    pub(crate) fn end_call(&mut self) {
        self.call = None;
        self.peer = None;
    }

    /// The running call, if `id` names it.
    pub(crate) fn running(&self, id: u32) -> Option<&RunningCall> {
        self.call.as_ref().filter(|call| call.id == id)
    }
}

impl RunningCall {
    pub(crate) fn is_cancelled(&self, now: Now) -> bool {
        self.waiters.are_gone() || now.mono >= self.context.deadline
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_cancelled_when_the_last_one_goes() {
        let flags: Vec<Cancelled> = (0..3).map(|_| Cancelled::default()).collect();
        let mut waiters = Waiters::from(Arc::clone(&flags[1]));
        waiters.add(Arc::clone(&flags[0]));
        waiters.add(Arc::clone(&flags[2]));
        for flag in &flags {
            assert!(!waiters.are_gone());
            flag.store(true, Ordering::Relaxed);
        }
        assert!(waiters.are_gone());
    }
}
