//! The life of one plugin: instances that start, serve, die and are replaced.
//!
//! Owns restarts, quarantine, the swap of generations and the status that is shown. It must not know files, nor what is inside a call.

use std::sync::Arc;
use std::time::Duration;

use backplane_nodes::{Facets, ManagerId, NodeManager, Writes};
use backplane_types::StatusCode;
use parking_lot::RwLock;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, sleep_until};

use crate::actor::{Control, Exit, Inbox, serve};
use crate::classifier::{Classifier, Route};
use crate::component::{PluginKind, Prepared};
use crate::engine::PluginEngine;
use crate::instance::{Death, Handover, Instance};
use crate::manager::PluginManager;
use crate::questions::answer;
use crate::restart::{RestartPolicy, Restarts, Verdict};
use crate::state::Generation;
use crate::status::{PluginState, PluginStatus};

/// What to run: a component, and how.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) prepared: Arc<Prepared>,
    pub(crate) shared: Arc<Generation>,
}

pub(crate) enum Command {
    /// Put another generation in the place of the one that serves; on failure that one stays. The answer is why it was not taken.
    Replace(Plan, oneshot::Sender<Result<(), String>>),
    /// Start it again at once, out of backoff or quarantine.
    Release(oneshot::Sender<Result<(), String>>),
    /// Let its instance die, as if it had trapped.
    Break(oneshot::Sender<Result<(), String>>),
    /// Let it finish and take its nodes away.
    Stop(Farewell, oneshot::Sender<()>),
}

/// What is left of a plugin that stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Farewell {
    /// Nothing: it is no plugin any more.
    Unload,
    /// The server stops. A classifier still refuses whoever asks.
    Shutdown,
}

/// What is said for a classifier once its server stops.
pub(crate) const STOPPING: &str = "the server is stopping";

/// Orders that wait for one instance.
const ORDERS: usize = 1;

/// The values of instances that no longer serve are taken by nobody: numbers of instances begin with 1.
const NOBODY: u64 = 0;

/// An instance that waits for what becomes of its mailbox; it goes on when this is dropped.
struct Held {
    resume: oneshot::Sender<oneshot::Sender<Inbox>>,
    /// Since when it is asked nothing.
    since: Instant,
}

impl Held {
    /// Takes the mailbox, and lets the instance end.
    async fn hand_over(self) -> Option<Inbox> {
        let (successor, inbox) = oneshot::channel();
        self.resume.send(successor).ok()?;
        inbox.await.ok()
    }
}

/// See the module text.
pub(crate) struct Supervisor {
    engine: Arc<PluginEngine>,
    plan: Plan,
    policy: RestartPolicy,
    restarts: Restarts,
    status: Arc<watch::Sender<PluginStatus>>,
    manager: Arc<PluginManager>,
    /// Where a classifier is asked; one that does not run stands there too, with the reason.
    classifier: Classifier,
    attached: Option<ManagerId>,
    serving: Arc<RwLock<u64>>,
    instances: u64,
    task: Option<JoinHandle<Exit>>,
    /// To the instance of a node manager that serves.
    control: Option<mpsc::Sender<Control>>,
    retry: Option<Instant>,
}

impl Supervisor {
    pub(crate) fn new(
        engine: Arc<PluginEngine>,
        plan: Plan,
        policy: RestartPolicy,
        status: Arc<watch::Sender<PluginStatus>>,
        classifier: Classifier,
    ) -> Self {
        let shared = &plan.shared;
        let manager = PluginManager::new(
            Arc::clone(&shared.name),
            Arc::clone(&shared.clock),
            Arc::clone(&shared.counters),
        );
        Self {
            engine,
            policy,
            restarts: Restarts::new(policy_for(&plan, policy)),
            status,
            manager: Arc::new(manager),
            classifier,
            attached: None,
            serving: Arc::new(RwLock::new(NOBODY)),
            instances: 0,
            task: None,
            control: None,
            retry: None,
            plan,
        }
    }

    /// Runs until it is told to stop. `first` is told how the first start went.
    pub(crate) async fn run(
        mut self,
        mut commands: mpsc::Receiver<Command>,
        first: oneshot::Sender<Result<(), String>>,
    ) {
        drop(first.send(self.attempt().await));
        loop {
            tokio::select! {
                command = commands.recv() => match command {
                    Some(Command::Replace(plan, reply)) => drop(reply.send(self.replace(plan).await)),
                    Some(Command::Release(reply)) => drop(reply.send(self.release().await)),
                    Some(Command::Break(reply)) => drop(reply.send(self.break_it())),
                    Some(Command::Stop(farewell, reply)) => {
                        self.stop(farewell).await;
                        let _ = reply.send(());
                        return;
                    }
                    None => {
                        self.stop(Farewell::Shutdown).await;
                        return;
                    }
                },
                exit = ended(&mut self.task), if self.task.is_some() => {
                    self.task = None;
                    self.fault(reason_of(exit));
                }
                () = sleep_until(self.retry.unwrap_or_else(Instant::now)), if self.retry.is_some() => {
                    self.retry = None;
                    self.plan.shared.counters.restarts.one();
                    // The outcome is in the status.
                    let _ = self.attempt().await;
                }
            }
        }
    }

    /// Starts an instance of the current plan, when none serves.
    async fn attempt(&mut self) -> Result<(), String> {
        let plan = self.plan.clone();
        let started = match self.boot(&plan).await {
            Ok(instance) => self.put_in(instance, &plan, None).await,
            Err(death) => Err(death.reason),
        };
        if let Err(reason) = &started {
            self.fault(reason.clone());
        }
        started
    }

    /// Makes an instance and lets it start, unseen.
    async fn boot(&mut self, plan: &Plan) -> Result<Instance, Death> {
        let instance = self.make(plan).await?;
        self.begin(plan, instance, None).await
    }

    /// Makes an instance. On its own task, so that a panic in a host function is an error like another.
    async fn make(&mut self, plan: &Plan) -> Result<Instance, Death> {
        self.instances = self.instances.saturating_add(1);
        let number = self.instances;
        let (engine, serving) = (Arc::clone(&self.engine), Arc::clone(&self.serving));
        let (prepared, shared) = (Arc::clone(&plan.prepared), Arc::clone(&plan.shared));
        let making = self
            .engine
            .executor()
            .spawn(async move { Instance::new(engine, &prepared, shared, number, serving).await });
        making
            .await
            .unwrap_or_else(|error| Err(Death::unexpected(panicked(&error))))
    }

    /// Lets an instance start, unseen, from what the generation before it has handed over.
    async fn begin(&self, plan: &Plan, mut instance: Instance, state: Option<Handover>) -> Result<Instance, Death> {
        let kind = plan.prepared.kind;
        let beginning = self.engine.executor().spawn(async move {
            match kind {
                PluginKind::NodeManager => instance.start(state).await?,
                PluginKind::IsolationClassifier => instance.try_classify().await?,
            }
            Ok(instance)
        });
        beginning
            .await
            .unwrap_or_else(|error| Err(Death::unexpected(panicked(&error))))
    }

    /// Makes an instance that has started the one that serves: its nodes, its values, its mailbox, in one step for whoever looks. A predecessor that holds leaves
    /// its mailbox, with everything that has come meanwhile.
    async fn put_in(&mut self, mut instance: Instance, plan: &Plan, held: Option<Held>) -> Result<(), String> {
        if plan.prepared.kind == PluginKind::IsolationClassifier {
            self.seat(instance, plan)?;
            self.withdraw();
            return Ok(());
        }
        let (mailbox, inbox) = mpsc::channel(plan.shared.limits.mailbox);
        let inbox = Inbox::new(inbox);
        let facets = facets(&plan.prepared);
        let space = &plan.shared.space;
        let model = instance.model().as_ref().clone();
        let manager: Arc<dyn NodeManager> = Arc::clone(&self.manager) as Arc<dyn NodeManager>;
        let before = self.attached.and_then(|id| space.snapshot().model(id).cloned());
        {
            let mut serving = self.serving.write();
            let (id, model) = match self.attached {
                // Nobody can ask it anything yet, so its mailbox comes first.
                None => {
                    self.manager.connect(mailbox.clone(), facets);
                    space.attach(manager, model).map_err(|error| {
                        self.manager.disconnect();
                        error.to_string()
                    })?
                }
                Some(id) => {
                    let model = space.replace(id, manager, model).map_err(|error| error.to_string())?;
                    match &held {
                        Some(_) => self.manager.take_up(facets),
                        None => self.manager.connect(mailbox.clone(), facets),
                    }
                    (id, model)
                }
            };
            self.attached = Some(id);
            instance.go_live(id, model);
            *serving = instance.number();
        }
        let inbox = match held {
            None => inbox,
            Some(held) => match held.hand_over().await {
                Some(mut inherited) => {
                    let model = Arc::clone(instance.model());
                    let same = |tag| before.as_ref().and_then(|it| it.node_of_tag(tag)) == model.node_of_tag(tag);
                    inherited.keep_if(same);
                    inherited
                }
                // It has ended with everything in its mailbox answered.
                None => {
                    self.manager.connect(mailbox, facets);
                    inbox
                }
            },
        };
        self.classifier.remove(&plan.shared.name);
        self.show(plan, PluginState::Serving, &instance);
        self.restarts.serving(plan.shared.now().mono);
        let clock = Arc::clone(&plan.shared.clock);
        let watched = self.manager.watched();
        let (control, orders) = mpsc::channel(ORDERS);
        self.control = Some(control);
        self.task = Some(
            self.engine
                .executor()
                .spawn(serve(instance, inbox, orders, clock, watched)),
        );
        Ok(())
    }

    /// Makes an instance the one that is asked under its name.
    fn seat(&mut self, instance: Instance, plan: &Plan) -> Result<(), String> {
        let shared = &plan.shared;
        let executor = self.engine.classifier_executor();
        let executor = executor.map_err(|error| format!("a thread for classifiers: {error}"))?;
        let (mailbox, inbox) = mpsc::channel(shared.limits.mailbox);
        self.restarts.serving(shared.now().mono);
        let route = Route::Serving {
            mailbox,
            wall: shared.limits.classify.wall,
            counters: Arc::clone(&shared.counters),
        };
        // The last one goes with its last sender, when whoever has found it here has been answered.
        self.classifier.set(&shared.name, shared.edition, route);
        self.show(plan, PluginState::Ready, &instance);
        self.task = Some(executor.spawn(answer(instance, inbox)));
        Ok(())
    }

    fn show(&self, plan: &Plan, state: PluginState, instance: &Instance) {
        let nodes = instance.model().len();
        self.status.send_modify(|status| {
            status.kind = Some(plan.prepared.kind);
            status.state = state;
            status.instance = instance.number();
            status.generation = status.generation.max(1);
            status.digest = Some(Arc::clone(&plan.prepared.digest));
            status.facets = plan.prepared.facets.names();
            status.nodes = nodes;
        });
        tracing::info!(target: "plugin", plugin = &*plan.shared.name, instance = instance.number(), nodes, "serving");
    }

    /// The instance that served, or was to serve, is gone.
    fn fault(&mut self, reason: String) {
        let shared = Arc::clone(&self.plan.shared);
        let now = shared.now();
        shared.counters.faults.one();
        self.silence(now.utc, &reason);
        let state = match self.restarts.fault(now.mono, random()) {
            Verdict::Restart(delay) => {
                self.retry = Some(Instant::now().checked_add(delay).unwrap_or_else(Instant::now));
                PluginState::Backoff(delay)
            }
            Verdict::Quarantine => {
                if let Some(sink) = shared.events.get() {
                    sink.quarantined(&shared.name, &reason);
                }
                PluginState::Quarantined
            }
        };
        tracing::error!(target: "plugin", plugin = &*shared.name, state = state.name(), "{reason}");
        self.status.send_modify(|status| {
            status.state = state;
            status.last_error = Some(reason);
        });
    }

    /// Nothing serves: calls are answered at once, and values show that nobody stands behind them.
    fn silence(&self, now: backplane_types::DateTime, reason: &str) {
        let shared = &self.plan.shared;
        match self.plan.prepared.kind {
            PluginKind::NodeManager => self.classifier.remove(&shared.name),
            PluginKind::IsolationClassifier => {
                let down = Route::Down(reason.into());
                self.classifier.set(&shared.name, shared.edition, down);
            }
        }
        self.manager.disconnect();
        *self.serving.write() = NOBODY;
        if let Some(id) = self.attached {
            shared.space.degrade(id, None, StatusCode::BAD_NO_COMMUNICATION, now);
        }
    }

    async fn replace(&mut self, plan: Plan) -> Result<(), String> {
        let old = Arc::clone(&self.plan.shared);
        let mut held = None;
        let booted = self.succeed(&plan, &mut held).await;
        let since = held.as_ref().map(|held: &Held| held.since);
        let before = self.task.take();
        let swapped = match booted {
            Ok(instance) => self.put_in(instance, &plan, held).await,
            // What holds goes on when `held` is dropped.
            Err(death) => Err(death.reason),
        };
        match swapped {
            Ok(()) => {
                self.take(plan);
                self.plan.shared.counters.reloads.one();
                let pause = since.map(|since| since.elapsed());
                self.status.send_modify(|status| status.pause = pause);
                self.drain(before, old.limits.drain);
                Ok(())
            }
            Err(reason) if before.is_some() => {
                self.task = before;
                tracing::error!(target: "plugin", plugin = &*old.name, "the new generation was not taken, the old one serves on: {reason}");
                self.status
                    .send_modify(|status| status.last_error = Some(format!("reload: {reason}")));
                Err(reason)
            }
            Err(reason) => {
                // Nothing served before, so there is nothing to go back to.
                self.take(plan);
                self.fault(reason.clone());
                Err(reason)
            }
        }
    }

    /// An instance of the next generation that has started, and the hold on the one that serves, if there is one and the two can follow each other. What serves
    /// is held only while it has to be: for its state, or else for the swap alone.
    async fn succeed(&mut self, plan: &Plan, held: &mut Option<Held>) -> Result<Instance, Death> {
        let instance = self.make(plan).await?;
        let has = |plan: &Plan| plan.prepared.facets.names().contains(&"handover");
        let saves = has(&self.plan) && has(plan);
        if saves {
            let began = Instant::now();
            let state = self.hold(plan, true, held).await?;
            let saved = began.elapsed();
            let instance = self.begin(plan, instance, state).await;
            tracing::debug!(target: "plugin", plugin = &*plan.shared.name, ?saved, started = ?began.elapsed(), "handing over");
            instance
        } else {
            let instance = self.begin(plan, instance, None).await?;
            self.hold(plan, false, held).await?;
            Ok(instance)
        }
    }

    /// Holds what serves, and gives its state. None: nothing serves that could be held.
    async fn hold(&self, plan: &Plan, save: bool, held: &mut Option<Held>) -> Result<Option<Handover>, Death> {
        let both = [&self.plan, plan].map(|plan| plan.prepared.kind) == [PluginKind::NodeManager; 2];
        let Some(control) = self.control.as_ref().filter(|_| both && self.task.is_some()) else {
            return Ok(None);
        };
        let limits = &self.plan.shared.limits;
        let (reply, answer) = oneshot::channel();
        let (resume, after) = oneshot::channel();
        let order = Control::Hold { save, reply, after };
        let asking = async {
            control.send(order).await.ok()?;
            answer.await.ok()
        };
        // The call that runs may take as long as calls may, its state comes after it.
        let bound = limits.drain.saturating_add(limits.handover.wall);
        match tokio::time::timeout(bound, asking).await {
            Ok(Some(Ok(state))) => {
                *held = Some(Held {
                    resume,
                    since: Instant::now(),
                });
                Ok(state)
            }
            Ok(Some(Err(fault))) => Err(Death::unexpected(format!(
                "handover.save answered {}: {}",
                fault.status, fault.detail
            ))),
            // It has died over it: nothing is lost by starting without.
            Ok(None) => Ok(None),
            Err(_) => Err(Death::unexpected(format!(
                "the generation that serves was still at work after {} ms",
                bound.as_millis()
            ))),
        }
    }

    /// From now on this plan is what restarts start, with a fresh budget of faults.
    fn take(&mut self, plan: Plan) {
        self.plan = plan;
        self.retry = None;
        self.restarts = Restarts::new(policy_for(&self.plan, self.policy));
        self.restarts.serving(self.plan.shared.now().mono);
        self.status.send_modify(|status| {
            status.generation = status.generation.saturating_add(1);
            status.last_error = None;
        });
    }

    /// Lets a task that gets no more calls finish, for a bounded time.
    fn drain(&self, task: Option<JoinHandle<Exit>>, bound: Duration) {
        let Some(task) = task else { return };
        let name = Arc::clone(&self.plan.shared.name);
        self.engine
            .executor()
            .spawn(async move { finish(task, bound, &name).await });
    }

    fn break_it(&mut self) -> Result<(), String> {
        let task = self.task.as_ref().ok_or("no instance serves")?;
        match self.plan.prepared.kind {
            PluginKind::NodeManager => self.manager.break_it(),
            // Classifiers are asked through another mailbox; for them the end of the task is the same thing.
            PluginKind::IsolationClassifier => task.abort(),
        }
        Ok(())
    }

    async fn release(&mut self) -> Result<(), String> {
        if self.task.is_some() {
            return Ok(());
        }
        self.retry = None;
        self.restarts = Restarts::new(policy_for(&self.plan, self.policy));
        self.plan.shared.counters.restarts.one();
        self.attempt().await
    }

    /// Takes the nodes away.
    fn withdraw(&mut self) {
        self.manager.disconnect();
        *self.serving.write() = NOBODY;
        if let Some(id) = self.attached.take() {
            // It was attached by us and by nobody else detached.
            let _ = self.plan.shared.space.detach(id);
        }
    }

    async fn stop(&mut self, farewell: Farewell) {
        let shared = Arc::clone(&self.plan.shared);
        match (farewell, self.plan.prepared.kind) {
            (Farewell::Shutdown, PluginKind::IsolationClassifier) => {
                let down = Route::Down(STOPPING.into());
                self.classifier.set(&shared.name, shared.edition, down);
            }
            (Farewell::Unload, _) | (_, PluginKind::NodeManager) => self.classifier.remove(&shared.name),
        }
        self.withdraw();
        if let Some(task) = self.task.take() {
            finish(task, shared.limits.drain, &shared.name).await;
        }
        self.status.send_modify(|status| status.state = PluginState::Stopped);
    }
}

/// Waits for a task, and drops the instance when it takes too long.
async fn finish(mut task: JoinHandle<Exit>, bound: Duration, name: &str) {
    match tokio::time::timeout(bound, &mut task).await {
        Ok(Ok(Exit::Stopped)) => {}
        Ok(exit) => tracing::warn!(target: "plugin", plugin = name, "while stopping: {}", reason_of(exit)),
        Err(_) => {
            task.abort();
            tracing::warn!(target: "plugin", plugin = name, "calls were cut: not finished {} ms after it was to stop", bound.as_millis());
        }
    }
}

async fn ended(task: &mut Option<JoinHandle<Exit>>) -> Result<Exit, JoinError> {
    match task {
        Some(task) => task.await,
        None => std::future::pending().await,
    }
}

fn reason_of(exit: Result<Exit, JoinError>) -> String {
    match exit {
        Ok(Exit::Died(death)) => death.reason,
        Ok(Exit::Stopped) => "the instance stopped although nobody asked it to".to_owned(),
        Err(error) => panicked(&error),
    }
}

fn panicked(error: &JoinError) -> String {
    format!("a function of the host failed, which is not the plugin's fault: {error}")
}

/// A classifier is never given up: everybody is refused while it does not run, and nobody may be there to release it.
fn policy_for(plan: &Plan, policy: RestartPolicy) -> RestartPolicy {
    match plan.prepared.kind {
        PluginKind::NodeManager => policy,
        PluginKind::IsolationClassifier => policy.without_quarantine(),
    }
}

fn facets(prepared: &Prepared) -> Facets {
    let names = prepared.facets.names();
    let has = |name| names.contains(&name);
    Facets {
        reader: has("reader"),
        writes: if has("writer") {
            Writes::ToManager
        } else {
            Writes::Refused
        },
        methods: has("methods"),
        demand: has("demand"),
    }
}

/// Uniform in 0..1. Without a source of randomness all delays are the middle ones.
fn random() -> f64 {
    getrandom::u32().map_or(0.5, |number| f64::from(number) / f64::from(u32::MAX))
}
