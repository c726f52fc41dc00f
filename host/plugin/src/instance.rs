//! One instance of a component: its store, its deadlines, its exports.
//!
//! Owns the calls into the guest. Each either returns or ends the instance: after a trap or a dropped call the store is of no use, and whoever holds it
//! throws it away. It must not know what becomes of a plugin whose instance has died.

use std::sync::Arc;
use std::time::Duration;

use backplane_nodes::{CallContext, CallOutcome, Fault, ManagerId, Model, WriteOperation};
use backplane_types::{DataValue, NodeId, StatusCode, Variant};
use parking_lot::RwLock;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout};
use wasmtime::{Store, Trap, UpdateDeadline};

use crate::bindings::{Facets, guest, one_line, ua};
use crate::classifier::{Answer, Asked, ClassifyError, MAX_KEY, Standing, Verdict};
use crate::component::Prepared;
use crate::convert;
use crate::engine::PluginEngine;
use crate::evidence::PeerEvidence;
use crate::limits::Deadline;
use crate::state::{Generation, Phase, State, Waiters};

/// Why an instance has ended. Its store is of no use any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Death {
    /// What the caller of the call in question is told: the outcome is unknown.
    pub(crate) status: StatusCode,
    /// For status and log.
    pub(crate) reason: String,
}

impl Death {
    pub(crate) fn unexpected(reason: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_UNEXPECTED_ERROR,
            reason: reason.into(),
        }
    }

    pub(crate) fn fault(&self) -> Fault {
        Fault::new(self.status, self.reason.clone())
    }

    /// As whoever has asked a classifier gets it.
    pub(crate) fn of_classifier(&self, name: &Arc<str>) -> ClassifyError {
        let classifier = Arc::clone(name);
        if self.status == StatusCode::BAD_TIMEOUT {
            return ClassifyError::TimedOut { classifier };
        }
        ClassifyError::Died {
            classifier,
            reason: self.reason.as_str().into(),
        }
    }
}

/// `lifecycle.start` without anything to go on from, and after a `handover.restore`.
const COLD: u32 = 0;
const RESTORED: u32 = 1;

/// What one generation hands over to the next. The host keeps the bytes and does not look at them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Handover {
    pub(crate) schema: u32,
    pub(crate) state: Vec<u8>,
}

/// See the module text.
pub(crate) struct Instance {
    store: Store<State>,
    facets: Facets,
    asks_who: bool,
    engine: Arc<PluginEngine>,
    shared: Arc<Generation>,
}

/// Calls one function of a facet under its deadline. `?` gives the death of the instance back.
macro_rules! guarded {
    ($self:ident, $what:literal, $deadline:expr, $facet:expr, $call:ident($($argument:expr),*)) => {{
        let deadline: Deadline = $deadline;
        arm(&mut $self.store, $self.engine.ticks(deadline.cpu));
        $self.shared.counters.calls.one();
        let outcome = timeout(deadline.wall, $facet.$call(&mut $self.store $(, $argument)*)).await;
        $self.store.data_mut().end_call();
        match settle($what, deadline, outcome, &$self.store) {
            Ok(answer) => keep(&mut $self.store).await.map(|()| answer),
            Err(death) => Err(death),
        }
    }};
}

impl Instance {
    /// Makes a store and an instance in it, and checks the types of all facets.
    pub(crate) async fn new(
        engine: Arc<PluginEngine>,
        prepared: &Prepared,
        shared: Arc<Generation>,
        number: u64,
        serving: Arc<RwLock<u64>>,
    ) -> Result<Self, Death> {
        let limits = &shared.limits;
        let deadline = limits.start;
        let mut store = Store::new(engine.wasmtime(), State::new(Arc::clone(&shared), number, serving));
        store.limiter(|state| &mut state.store_limits);
        store.set_hostcall_fuel(limits.host_call_bytes);
        store.epoch_deadline_callback(|mut context| {
            let state = context.data_mut();
            state.shared.counters.ticks.one();
            if state.ticks_left == 0 {
                return Ok(UpdateDeadline::Interrupt);
            }
            state.ticks_left -= 1;
            // The runtime's own yield puts the guest behind everything else that is ready.
            Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
        });
        arm(&mut store, engine.ticks(deadline.cpu));
        let outcome = timeout(deadline.wall, prepared.pre.instantiate_async(&mut store)).await;
        let instance = settle("instantiation", deadline, outcome, &store)?;
        let facets = prepared.facets.load(&mut store, &instance).map_err(Death::unexpected)?;
        Ok(Self {
            store,
            facets,
            asks_who: prepared.asks_who,
            engine,
            shared,
        })
    }

    /// See [`keep`].
    pub(crate) async fn keep(&mut self) -> Result<(), Death> {
        keep(&mut self.store).await
    }

    /// `lifecycle.start`, after `handover.restore` if there is state. What it declares stays hidden until [`go_live`](Self::go_live).
    pub(crate) async fn start(&mut self, state: Option<Handover>) -> Result<(), Death> {
        let reason = if state.is_some() { RESTORED } else { COLD };
        if let Some(state) = state {
            self.restore(state).await?;
        }
        let Some(lifecycle) = &self.facets.lifecycle else {
            return Err(Death::unexpected("no lifecycle"));
        };
        let answer = guarded!(
            self,
            "lifecycle.start",
            self.shared.limits.start,
            lifecycle,
            call_start(reason)
        )?;
        answer.map_err(|fault| self.refused("lifecycle.start", &fault))
    }

    /// `handover.restore`.
    async fn restore(&mut self, handover: Handover) -> Result<(), Death> {
        let Some(facet) = &self.facets.handover else {
            return Ok(());
        };
        let deadline = self.shared.limits.handover;
        let Handover { schema, state } = handover;
        let (_, reads) = guarded!(self, "handover.schema", deadline, facet, call_schema())?;
        if !reads.contains(&schema) {
            return Err(Death::unexpected(format!(
                "the older generation hands over state of schema {schema}, this one reads {reads:?} only"
            )));
        }
        let answer = guarded!(self, "handover.restore", deadline, facet, call_restore(schema, &state))?;
        answer.map_err(|fault| self.refused("handover.restore", &fault))
    }

    /// `handover.save`; none for a plugin that hands nothing over.
    pub(crate) async fn save(&mut self) -> Result<Result<Option<Handover>, Fault>, Death> {
        let Some(facet) = &self.facets.handover else {
            return Ok(Ok(None));
        };
        let deadline = self.shared.limits.handover;
        let (schema, _) = guarded!(self, "handover.schema", deadline, facet, call_schema())?;
        let answer = guarded!(self, "handover.save", deadline, facet, call_save())?;
        Ok(match answer {
            Ok(state) => Ok(Some(Handover { schema, state })),
            Err(fault) => Err(self.answered("handover.save", &fault)),
        })
    }

    /// A fault that ends an instance before it has served.
    fn refused(&self, what: &str, fault: &ua::Fault) -> Death {
        let status = StatusCode(fault.status);
        Death {
            status,
            reason: format!("{what} answered {status}: {}", self.clip(&fault.detail)),
        }
    }

    /// The model that `start` has declared.
    pub(crate) fn model(&self) -> &Arc<Model> {
        &self.store.data().model
    }

    /// From now on values and changes are seen at once. `model` is the attached one.
    pub(crate) fn go_live(&mut self, manager: ManagerId, model: Arc<Model>) {
        let state = self.store.data_mut();
        state.phase = Phase::Live(manager);
        state.take_model(model);
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.shared.name
    }

    pub(crate) fn number(&self) -> u64 {
        self.store.data().number
    }

    /// Whether this instance's values and changes are taken.
    pub(crate) fn is_serving(&self) -> bool {
        let state = self.store.data();
        *state.serving.read() == state.number
    }

    /// When the next timer is due.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        self.store.data().timers.next()
    }

    /// `lifecycle.wake` for one timer that is due.
    pub(crate) async fn wake(&mut self) -> Result<(), Death> {
        let Some(token) = self.store.data_mut().timers.take_due(Instant::now()) else {
            return Ok(());
        };
        let Some(lifecycle) = &self.facets.lifecycle else {
            return Ok(());
        };
        self.shared.counters.wakes.one();
        let answer = guarded!(
            self,
            "lifecycle.wake",
            self.shared.limits.wake,
            lifecycle,
            call_wake(token)
        )?;
        if let Err(fault) = answer {
            self.answered("lifecycle.wake", &fault);
        }
        Ok(())
    }

    /// Whether it wants to know what is watched.
    pub(crate) fn wants_demand(&self) -> bool {
        self.facets.demand.is_some()
    }

    /// `demand.changed`.
    pub(crate) async fn demand(&mut self, items: &[(u32, Option<f64>)]) -> Result<(), Death> {
        let Some(facet) = &self.facets.demand else {
            return Ok(());
        };
        self.shared.counters.demands.one();
        guarded!(
            self,
            "demand.changed",
            self.shared.limits.demand,
            facet,
            call_changed(items)
        )
    }

    /// How often in a second, and with how many variables at a time, it is told what is watched.
    pub(crate) fn demand_pace(&self) -> (u32, usize) {
        let limits = &self.shared.limits;
        (limits.demand_calls, limits.demand_items)
    }

    /// `lifecycle.stop`.
    pub(crate) async fn stop(&mut self) -> Result<(), Death> {
        let Some(lifecycle) = &self.facets.lifecycle else {
            return Ok(());
        };
        guarded!(self, "lifecycle.stop", self.shared.limits.stop, lifecycle, call_stop())
    }

    /// How many reads, and how many tags, one call may be made of.
    pub(crate) fn merging(&self) -> (usize, usize) {
        let limits = &self.shared.limits;
        (limits.merged_reads, limits.merged_tags)
    }

    /// Whether the guest can tell one caller from another.
    pub(crate) fn asks_who(&self) -> bool {
        self.asks_who
    }

    /// `reader.read`.
    pub(crate) async fn read(
        &mut self,
        context: CallContext,
        waiters: Waiters,
        tags: &[u32],
        max_age: f64,
    ) -> Result<Result<Vec<DataValue>, Fault>, Death> {
        let Some(reader) = &self.facets.reader else {
            return Ok(Err(missing("reader")));
        };
        self.shared.counters.reads.add(tags.len());
        let call = self.store.data_mut().begin_call(context, waiters);
        let values = match guarded!(
            self,
            "reader.read",
            self.shared.limits.read,
            reader,
            call_read(call, tags, max_age)
        )? {
            Ok(values) => values,
            Err(fault) => return Ok(Err(self.answered("reader.read", &fault))),
        };
        if values.len() != tags.len() {
            return Ok(Err(self.misbehaved(format!(
                "reader.read answered {} values for {} tags",
                values.len(),
                tags.len()
            ))));
        }
        let now = self.shared.now().utc;
        let state = self.store.data();
        let converted = values
            .into_iter()
            .map(|value| convert::data_value(&state.names, value, now))
            .collect::<Result<Vec<_>, _>>();
        Ok(converted.map_err(|status| self.misbehaved(format!("reader.read answered what is no value: {status}"))))
    }

    /// `writer.write`.
    pub(crate) async fn write(
        &mut self,
        context: CallContext,
        waiters: Waiters,
        writes: Vec<WriteOperation>,
    ) -> Result<Result<Vec<StatusCode>, Fault>, Death> {
        let Some(writer) = &self.facets.writer else {
            return Ok(Err(missing("writer")));
        };
        let count = writes.len();
        self.shared.counters.writes.add(count);
        let state = self.store.data_mut();
        let requests = writes
            .into_iter()
            .map(|write| {
                Ok(guest::writer::Request {
                    tag: write.tag,
                    index_range: write.index_range.as_deref().map(str::to_owned),
                    value: convert::to_guest_data_value(&mut state.names, write.value)?,
                })
            })
            .collect::<Result<Vec<_>, StatusCode>>();
        let requests = match requests {
            Ok(requests) => requests,
            Err(status) => return Ok(Err(Fault::new(status, "a value that cannot be told to the plugin"))),
        };
        let call = state.begin_call(context, waiters);
        let statuses = match guarded!(
            self,
            "writer.write",
            self.shared.limits.write,
            writer,
            call_write(call, &requests)
        )? {
            Ok(statuses) => statuses,
            Err(fault) => return Ok(Err(self.answered("writer.write", &fault))),
        };
        if statuses.len() != count {
            return Ok(Err(self.misbehaved(format!(
                "writer.write answered {} statuses for {count} requests",
                statuses.len()
            ))));
        }
        Ok(Ok(statuses.into_iter().map(StatusCode).collect()))
    }

    /// `methods.invoke`.
    pub(crate) async fn call(
        &mut self,
        context: CallContext,
        waiters: Waiters,
        object: &NodeId,
        tag: u32,
        inputs: Vec<Variant>,
    ) -> Result<Result<CallOutcome, Fault>, Death> {
        let Some(methods) = &self.facets.methods else {
            return Ok(Err(missing("methods")));
        };
        self.shared.counters.methods.one();
        let count = inputs.len();
        let state = self.store.data_mut();
        let told = convert::to_guest_node_id(&mut state.names, object).and_then(|object| {
            let inputs = inputs
                .into_iter()
                .map(|input| convert::to_guest(&mut state.names, input))
                .collect::<Result<Vec<_>, _>>()?;
            Ok((object, inputs))
        });
        let (object, inputs) = match told {
            Ok(told) => told,
            Err(status) => return Ok(Err(Fault::new(status, "arguments that cannot be told to the plugin"))),
        };
        let call = state.begin_call(context, waiters);
        let outcome = match guarded!(
            self,
            "methods.invoke",
            self.shared.limits.call,
            methods,
            call_invoke(call, &object, tag, &inputs)
        )? {
            Ok(outcome) => outcome,
            Err(fault) => return Ok(Err(self.answered("methods.invoke", &fault))),
        };
        if !outcome.input_status.is_empty() && outcome.input_status.len() != count {
            let detail = format!(
                "methods.invoke answered {} statuses for {count} inputs",
                outcome.input_status.len()
            );
            return Ok(Err(self.misbehaved(detail)));
        }
        let state = self.store.data();
        let outputs = outcome
            .outputs
            .into_iter()
            .map(|value| convert::variant(&state.names, value))
            .collect::<Result<Vec<_>, _>>();
        match outputs {
            Ok(outputs) => Ok(Ok(CallOutcome {
                status: StatusCode(outcome.status),
                input_status: outcome.input_status.into_iter().map(StatusCode).collect(),
                outputs,
            })),
            Err(status) => Ok(Err(
                self.misbehaved(format!("methods.invoke answered what is no value: {status}"))
            )),
        }
    }

    /// One function of `classify`.
    pub(crate) async fn classify(&mut self, asked: Asked, evidence: Arc<PeerEvidence>) -> Result<Answer, Death> {
        self.classify_within(self.shared.limits.classify, asked, evidence).await
    }

    /// Asks a classifier both questions without any evidence, before it serves: what cannot work says so now, and what is read once is read.
    pub(crate) async fn try_classify(&mut self) -> Result<(), Death> {
        for asked in [Asked::Ingress, Asked::Established] {
            let nothing = Arc::new(PeerEvidence::of_connection(None));
            let answer = self.classify_within(self.shared.limits.start, asked, nothing).await?;
            answer.map_err(|error| Death::unexpected(format!("asked about nobody, {error}")))?;
        }
        Ok(())
    }

    async fn classify_within(
        &mut self,
        deadline: Deadline,
        asked: Asked,
        evidence: Arc<PeerEvidence>,
    ) -> Result<Answer, Death> {
        let Some(facet) = &self.facets.classify else {
            return Err(Death::unexpected("no classify"));
        };
        let who = self.store.data_mut().begin_question(evidence);
        let answer = match asked {
            Asked::Ingress => guarded!(self, "classify.ingress", deadline, facet, call_ingress(who))?,
            Asked::Established => guarded!(self, "classify.established", deadline, facet, call_established(who))?,
        };
        let classifier = || Arc::clone(&self.shared.name);
        let identity = match answer {
            Ok(None) => return Ok(Ok(None)),
            Ok(Some(identity)) => identity,
            Err(fault) => {
                let reason = self.answered("classify", &fault).detail.into();
                let classifier = classifier();
                return Ok(Err(ClassifyError::Fault { classifier, reason }));
            }
        };
        Ok(verdict(identity).map(Some).map_err(|problem| {
            self.misbehaved(format!("classify answered {problem}"));
            let classifier = classifier();
            ClassifyError::Invalid { classifier, problem }
        }))
    }

    /// A fault that the guest has answered, as the caller gets it.
    fn answered(&self, what: &str, fault: &ua::Fault) -> Fault {
        self.shared.counters.answered_faults.one();
        let status = StatusCode(fault.status);
        let detail = self.clip(&fault.detail);
        self.store
            .data()
            .gate
            .write(3, &format!("{what} answered {status}: {detail}"), &[]);
        // A fault with a good status would be an answer without results.
        let status = if status.is_bad() {
            status
        } else {
            StatusCode::BAD_INTERNAL_ERROR
        };
        Fault::new(status, detail)
    }

    fn clip<'t>(&self, text: &'t str) -> &'t str {
        crate::log::cut(text, self.shared.limits.log_line_bytes)
    }

    /// An answer that breaks the contract, as the caller gets it.
    fn misbehaved(&self, detail: String) -> Fault {
        self.shared.counters.misbehaviour.one();
        self.store.data().gate.write(4, &detail, &[]);
        Fault::new(StatusCode::BAD_INTERNAL_ERROR, detail)
    }
}

/// What a classifier has answered, or what is wrong with it. The text does not hold the key.
fn verdict(identity: guest::classify::Identity) -> Result<Verdict, &'static str> {
    if identity.key.is_empty() {
        return Err("an empty key");
    }
    if identity.key.len() > MAX_KEY {
        return Err("a key of more than 256 bytes");
    }
    let class = Standing::from_number(identity.standing).ok_or("a standing that does not exist")?;
    let key = identity.key;
    Ok(Verdict { key, class })
}

fn missing(facet: &str) -> Fault {
    Fault::new(StatusCode::BAD_NOT_SUPPORTED, format!("the plugin has no {facet}"))
}

fn arm(store: &mut Store<State>, ticks: u64) {
    store.data_mut().ticks_left = ticks;
    store.set_epoch_deadline(1);
}

/// Makes durable what calls have changed in the store since the last time. Before the plugin serves, that waits: it may never do.
///
/// # Errors
/// The store could not be written. The guest goes on from what is there, as after a trap.
async fn keep(store: &mut Store<State>) -> Result<(), Death> {
    let state = store.data_mut();
    if state.kept.is_empty() || matches!(state.phase, Phase::Hidden) {
        return Ok(());
    }
    let (changes, kept) = (std::mem::take(&mut state.kept), Arc::clone(&state.shared.store));
    let written = tokio::task::spawn_blocking(move || kept.commit(&changes)).await;
    written
        .unwrap_or_else(|error| Err(error.to_string()))
        .map_err(|reason| Death::unexpected(format!("its store could not be written: {reason}")))
}

fn settle<T>(
    what: &str,
    deadline: Deadline,
    outcome: Result<wasmtime::Result<T>, Elapsed>,
    store: &Store<State>,
) -> Result<T, Death> {
    let error = match outcome {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => error,
        Err(_) => {
            return Err(Death {
                status: StatusCode::BAD_TIMEOUT,
                reason: format!("{what} took longer than {}", show(deadline.wall)),
            });
        }
    };
    if error.downcast_ref::<Trap>() == Some(&Trap::Interrupt) {
        return Err(Death {
            status: StatusCode::BAD_TIMEOUT,
            reason: format!("{what} computed longer than {}", show(deadline.cpu)),
        });
    }
    let mut reason = format!("{what} trapped: {}", one_line(&error));
    if let Some(said) = store.data().gate.last_words() {
        reason.push_str("; it said: ");
        reason.push_str(&said);
    }
    Err(Death::unexpected(reason))
}

fn show(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}
