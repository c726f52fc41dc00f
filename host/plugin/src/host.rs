//! All plugins of a server: loading, unloading, looking.
//!
//! Owns the list of plugins by name, and reading their files. It must not know what a plugin does, nor when files change.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use backplane_nodes::{AddressSpace, NamespaceTable};
use backplane_types::{DateTime, Now};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{mpsc, oneshot, watch};

use crate::classifier::{Classifier, Route};
use crate::component::{self, Inspection, PluginKind, Prepared, looks_like_a_classifier, plugin_name};
use crate::counters::{Counters, Metrics};
use crate::engine::{EngineError, EngineOptions, PluginEngine};
use crate::events::{EventSink, Sink};
use crate::instance::Instance;
use crate::limits::Limits;
use crate::permissions::{self, SecurityOptions};
use crate::restart::RestartPolicy;
use crate::settings::PluginFile;
use crate::state::{Clock, Generation};
use crate::status::{PluginState, PluginStatus};
use crate::store::{KeyValues, Stores};
use crate::supervisor::{Command, Farewell, Plan, Supervisor};

/// Commands that wait for one plugin's supervisor.
const COMMANDS: usize = 8;
/// Plugins of one server.
const MAX_PLUGINS: usize = 256;

/// How plugins are run.
#[derive(Debug, Clone, Default)]
pub struct PluginOptions {
    /// Of the engine they share.
    pub engine: EngineOptions,
    /// Bounds of each plugin, unless its settings file has others.
    pub limits: Limits,
    /// Folder for what plugins keep (`store`), made if missing. None: it is kept as long as the host lives.
    pub store: Option<PathBuf>,
    /// What happens after a failure.
    pub restart: RestartPolicy,
    /// Who is trusted, and what plugins may be given.
    pub security: SecurityOptions,
}

/// Why a plugin was not loaded. Whatever served under its name before goes on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The file, or the settings beside it, could not be read.
    #[error("{path}: {reason}")]
    File {
        /// Which file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// It is no plugin that this host can run.
    #[error("{name}: {}", problems.join("; "))]
    Rejected {
        /// The plugin.
        name: Arc<str>,
        /// What is wrong, one line each.
        problems: Vec<String>,
    },
    /// It could not be started. Without an older generation it is tried again, see its status.
    #[error("{name}: {reason}")]
    Start {
        /// The plugin.
        name: Arc<str>,
        /// Why not.
        reason: String,
    },
    /// There are as many plugins as there may be.
    #[error("more than {MAX_PLUGINS} plugins")]
    TooMany,
    /// There is no plugin of that name.
    #[error("no plugin {0:?}")]
    Unknown(String),
}

struct Entry {
    status: Arc<watch::Sender<PluginStatus>>,
    /// None while no file of this name could be loaded.
    commands: Option<mpsc::Sender<Command>>,
    counters: Arc<Counters>,
    metrics: Arc<Metrics>,
}

struct Inner {
    engine: Arc<PluginEngine>,
    options: PluginOptions,
    space: Arc<AddressSpace>,
    clock: Clock,
    classifier: Classifier,
    events: Sink,
    stores: Arc<Stores>,
    /// The number of the next generation of whichever plugin.
    editions: AtomicU64,
    plugins: Mutex<BTreeMap<Arc<str>, Entry>>,
    /// One load after the other: compiling is heavy.
    loading: tokio::sync::Mutex<()>,
}

/// Runs plugins. A copy is the same host.
#[derive(Clone)]
pub struct PluginHost {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for PluginHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PluginHost")
            .field("plugins", &self.inner.plugins.lock().len())
            .finish_non_exhaustive()
    }
}

/// The bytes of a plugin, as they lay in its folder.
pub(crate) struct Files {
    pub(crate) component: Vec<u8>,
    pub(crate) settings: Option<String>,
}

impl PluginHost {
    /// A host without plugins, that will serve their nodes in `space`.
    ///
    /// # Errors
    /// See [`EngineError`].
    pub fn new(options: PluginOptions, space: Arc<AddressSpace>, clock: Clock) -> Result<Self, EngineError> {
        let engine = PluginEngine::new(&options.engine)?;
        let stores = Arc::new(Stores::new(options.store.clone()));
        let inner = Inner {
            engine,
            options,
            space,
            clock,
            classifier: Classifier::new(),
            events: Sink::default(),
            stores,
            editions: AtomicU64::new(0),
            plugins: Mutex::new(BTreeMap::new()),
            loading: tokio::sync::Mutex::new(()),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Says where events of plugins go; without, plugins that raise one are told `BadNotSupported`. To be called before plugins are loaded, and once:
    /// false when it had been called before.
    pub fn set_events(&self, sink: Arc<dyn EventSink>) -> bool {
        self.inner.events.set(sink).is_ok()
    }

    /// Loads `<folder>/<name>.wasm`, with `<name>.toml` beside it where there is one, and waits for its start. When a plugin of that name serves already,
    /// the new one takes its place without clients noticing, or leaves it alone if anything is wrong.
    ///
    /// # Errors
    /// See [`LoadError`]. The plugin is listed in any case.
    pub async fn load(&self, path: &Path) -> Result<Arc<str>, LoadError> {
        let file = |reason: String| LoadError::File {
            path: path.to_owned(),
            reason,
        };
        let name = plugin_name(path).map_err(file)?;
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let dir = Dir::open_ambient_dir(folder, ambient_authority()).map_err(|error| file(error.to_string()))?;
        let files = read_files(&dir, &name, &self.inner.options.limits);
        let files = match files {
            Ok(files) => files,
            Err(wrong) => {
                self.unreadable(&name, &wrong).await;
                return Err(LoadError::File {
                    path: folder.join(wrong.file),
                    reason: wrong.reason,
                });
            }
        };
        self.load_files(&name, files).await.map(|()| name)
    }

    pub(crate) async fn load_files(&self, name: &Arc<str>, files: Files) -> Result<(), LoadError> {
        let _one = self.inner.loading.lock().await;
        let (status, commands, counters, metrics) = self.entry(name)?;
        let may_classify = says_classifier(files.settings.as_deref()) || looks_like_a_classifier(&files.component);
        let outcome = match self.prepare(name, files, counters, metrics).await {
            Err(problems) => {
                self.rejected(&status, commands.is_some(), &problems);
                if commands.is_none() {
                    self.cannot_serve(name, may_classify, &problems.join("; "));
                }
                return Err(LoadError::Rejected {
                    name: Arc::clone(name),
                    problems,
                });
            }
            Ok(plan) => match commands {
                Some(commands) => replace(&commands, plan).await,
                None => self.begin(name, plan, status).await,
            },
        };
        outcome.map_err(|reason| LoadError::Start {
            name: Arc::clone(name),
            reason,
        })
    }

    /// What is kept of a plugin from its first file on.
    #[expect(clippy::type_complexity, reason = "taken apart at once by the only caller")]
    fn entry(
        &self,
        name: &Arc<str>,
    ) -> Result<
        (
            Arc<watch::Sender<PluginStatus>>,
            Option<mpsc::Sender<Command>>,
            Arc<Counters>,
            Arc<Metrics>,
        ),
        LoadError,
    > {
        let mut plugins = self.inner.plugins.lock();
        if !plugins.contains_key(name) && plugins.len() >= MAX_PLUGINS {
            return Err(LoadError::TooMany);
        }
        let entry = plugins.entry(Arc::clone(name)).or_insert_with(|| Entry {
            status: Arc::new(watch::Sender::new(PluginStatus::new(Arc::clone(name)))),
            commands: None,
            counters: Arc::default(),
            metrics: Arc::default(),
        });
        Ok((
            Arc::clone(&entry.status),
            entry.commands.clone(),
            Arc::clone(&entry.counters),
            Arc::clone(&entry.metrics),
        ))
    }

    fn rejected(&self, status: &watch::Sender<PluginStatus>, serves: bool, problems: &[String]) {
        let reason = problems.join("; ");
        status.send_modify(|status| {
            if !serves {
                status.state = PluginState::Rejected;
            }
            tracing::error!(target: "plugin", plugin = &*status.name, serves, "rejected: {reason}");
            status.last_error = Some(reason);
        });
    }

    fn next_edition(&self) -> u64 {
        self.inner.editions.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// A file under whose name nothing serves, and nothing did. One that may be a classifier must not leave peers unclassified.
    fn cannot_serve(&self, name: &Arc<str>, may_classify: bool, reason: &str) {
        if may_classify {
            let down = Route::Down(reason.into());
            self.inner.classifier.set(name, self.next_edition(), down);
        } else {
            self.inner.classifier.remove(name);
        }
    }

    /// A file that is there and cannot be read. What serves under its name serves on.
    pub(crate) async fn unreadable(&self, name: &Arc<str>, wrong: &Unreadable) {
        let _one = self.inner.loading.lock().await;
        let known = self.inner.plugins.lock().contains_key(name);
        if !known {
            self.cannot_serve(name, wrong.may_classify, &format!("{}: {}", wrong.file, wrong.reason));
        }
    }

    /// Reads settings, validates and compiles, and tries the types of the component on an instance that is thrown away.
    async fn prepare(
        &self,
        name: &Arc<str>,
        files: Files,
        counters: Arc<Counters>,
        metrics: Arc<Metrics>,
    ) -> Result<Plan, Vec<String>> {
        let settings = match &files.settings {
            None => PluginFile::default(),
            Some(text) => PluginFile::parse(text).map_err(|reason| vec![format!("{name}.toml: {reason}")])?,
        };
        let limits = settings.limits.apply(&self.inner.options.limits);
        let security = self.inner.options.security.clone();
        let engine = Arc::clone(&self.inner.engine);
        let (whose, json) = (Arc::clone(name), settings.settings_json());
        let compiling = self.inner.engine.executor().spawn_blocking(move || {
            // Nothing is compiled that may not be loaded.
            let admitted = permissions::admit(&whose, &files.component, &settings, &json, &security)?;
            let (found, prepared) = component::prepare(&engine, &files.component);
            let prepared = prepared.ok_or(found.problems)?;
            match admitted.kind_problem(prepared.kind) {
                Some(problem) => Err(vec![problem]),
                None => Ok((admitted, prepared, settings, json)),
            }
        });
        let (admitted, prepared, settings, json) = compiling
            .await
            .map_err(|error| vec![format!("compiling failed: {error}")])??;
        if let Some(kind) = settings.kind.filter(|kind| *kind != prepared.kind) {
            let (is, says) = (prepared.kind.name(), kind.name());
            return Err(vec![format!("it is a {is}, and {name}.toml says {says}")]);
        }
        let (stores, whose) = (Arc::clone(&self.inner.stores), Arc::clone(name));
        let opening = self.inner.engine.executor().spawn_blocking(move || stores.of(&whose));
        let store = opening
            .await
            .map_err(|error| vec![format!("opening its store failed: {error}")])?
            .map_err(|error| vec![error.to_string()])?;
        let shared = Generation {
            name: Arc::clone(name),
            edition: self.next_edition(),
            settings: json,
            may_log: settings.grants.may_log(),
            access: Arc::new(admitted.access),
            namespaces: match (&admitted.manifest, settings.namespaces) {
                (Some(manifest), own) if own.is_empty() => manifest.namespaces.clone(),
                (_, own) => own,
            },
            limits,
            space: Arc::clone(&self.inner.space),
            clock: Arc::clone(&self.inner.clock),
            counters,
            metrics,
            events: Arc::clone(&self.inner.events),
            store,
        };
        let plan = Plan {
            prepared: Arc::new(prepared),
            shared: Arc::new(shared),
        };
        try_types(&self.inner.engine, &plan)
            .await
            .map_err(|problem| vec![problem])?;
        if let Some(manifest) = &admitted.manifest {
            permissions::remember(name, manifest, &self.inner.options.security).map_err(|problem| vec![problem])?;
        }
        Ok(plan)
    }

    async fn begin(&self, name: &Arc<str>, plan: Plan, status: Arc<watch::Sender<PluginStatus>>) -> Result<(), String> {
        let (commands, receiver) = mpsc::channel(COMMANDS);
        let (first, started) = oneshot::channel();
        status.send_modify(|status| {
            status.state = PluginState::Starting;
            status.last_error = None;
        });
        let supervisor = Supervisor::new(
            Arc::clone(&self.inner.engine),
            plan,
            self.inner.options.restart,
            status,
            self.classifier(),
        );
        if let Some(entry) = self.inner.plugins.lock().get_mut(name) {
            entry.commands = Some(commands);
        }
        self.inner.engine.executor().spawn(supervisor.run(receiver, first));
        started.await.unwrap_or_else(|_| Err(GONE.to_owned()))
    }

    /// Lets a plugin finish what was asked of it, stops it and takes its nodes away.
    ///
    /// # Errors
    /// [`LoadError::Unknown`].
    pub async fn unload(&self, name: &str) -> Result<(), LoadError> {
        let _one = self.inner.loading.lock().await;
        let entry = self.inner.plugins.lock().remove(name);
        let known = entry.is_some();
        if let Some(entry) = entry {
            stop(entry, Farewell::Unload).await;
        }
        // One that could never be loaded has no supervisor to do this.
        self.inner.classifier.remove(name);
        known.then_some(()).ok_or_else(|| LoadError::Unknown(name.to_owned()))
    }

    /// Starts a plugin again at once that is in backoff or quarantine.
    ///
    /// # Errors
    /// [`LoadError::Unknown`]; [`LoadError::Start`] when it fails again.
    pub async fn release(&self, name: &str) -> Result<(), LoadError> {
        self.command(name, Command::Release).await
    }

    /// Lets the instance of a plugin die, as if it had trapped: for whoever wants to see what comes of it.
    ///
    /// # Errors
    /// [`LoadError::Unknown`]; [`LoadError::Start`] when none runs.
    pub async fn break_instance(&self, name: &str) -> Result<(), LoadError> {
        self.command(name, Command::Break).await
    }

    /// Gives a plugin's supervisor a command, and waits for its answer.
    async fn command(
        &self,
        name: &str,
        command: impl FnOnce(oneshot::Sender<Result<(), String>>) -> Command,
    ) -> Result<(), LoadError> {
        let commands = {
            let plugins = self.inner.plugins.lock();
            plugins.get(name).and_then(|entry| entry.commands.clone())
        };
        let commands = commands.ok_or_else(|| LoadError::Unknown(name.to_owned()))?;
        let (reply, answer) = oneshot::channel();
        let outcome = match commands.send(command(reply)).await {
            Ok(()) => answer.await.unwrap_or_else(|_| Err(GONE.to_owned())),
            Err(_) => Err(GONE.to_owned()),
        };
        outcome.map_err(|reason| LoadError::Start {
            name: name.into(),
            reason,
        })
    }

    /// The classifiers among the plugins, as one that can be asked. It follows what is loaded, reloaded and unloaded.
    #[must_use]
    pub fn classifier(&self) -> Classifier {
        self.inner.classifier.clone()
    }

    /// Every plugin, by name.
    #[must_use]
    pub fn list(&self) -> Vec<PluginStatus> {
        let plugins = self.inner.plugins.lock();
        plugins
            .values()
            .map(|entry| PluginStatus {
                counts: entry.counters.copy(),
                ..entry.status.borrow().clone()
            })
            .collect()
    }

    /// The status of one plugin as it changes; the counts in it stay zero. None: there is no such plugin.
    #[must_use]
    pub fn subscribe(&self, name: &str) -> Option<watch::Receiver<PluginStatus>> {
        self.inner
            .plugins
            .lock()
            .get(name)
            .map(|entry| entry.status.subscribe())
    }

    /// The metrics that plugins have made themselves: by plugin, then by series (`name{label="value"}`).
    #[must_use]
    pub fn metrics(&self) -> BTreeMap<Arc<str>, BTreeMap<String, f64>> {
        let plugins = self.inner.plugins.lock();
        plugins
            .iter()
            .map(|(name, entry)| (Arc::clone(name), entry.metrics.copy()))
            .collect()
    }

    /// Stops all plugins, side by side, and waits until they have.
    pub async fn shutdown(&self) {
        let _one = self.inner.loading.lock().await;
        let entries = std::mem::take(&mut *self.inner.plugins.lock());
        let mut stopping = tokio::task::JoinSet::new();
        for entry in entries.into_values() {
            stopping.spawn(stop(entry, Farewell::Shutdown));
        }
        while stopping.join_next().await.is_some() {}
    }

    pub(crate) fn executor(&self) -> &tokio::runtime::Handle {
        self.inner.engine.executor()
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.inner.options.limits
    }
}

/// What is said when a supervisor does not answer: it has been stopped meanwhile.
const GONE: &str = "it was stopped meanwhile";

async fn replace(commands: &mpsc::Sender<Command>, plan: Plan) -> Result<(), String> {
    let (reply, answer) = oneshot::channel();
    if commands.send(Command::Replace(plan, reply)).await.is_err() {
        return Err(GONE.to_owned());
    }
    answer.await.unwrap_or_else(|_| Err(GONE.to_owned()))
}

async fn stop(entry: Entry, farewell: Farewell) {
    let Some(commands) = entry.commands else { return };
    let (reply, answer) = oneshot::channel();
    if commands.send(Command::Stop(farewell, reply)).await.is_ok() {
        let _ = answer.await;
    }
}

/// Makes an instance and throws it away. Its initialisation is a guest's code, so it runs where guests run, whoever asks.
async fn try_types(engine: &Arc<PluginEngine>, plan: &Plan) -> Result<(), String> {
    let (prepared, shared) = (Arc::clone(&plan.prepared), Arc::clone(&plan.shared));
    let own = Arc::clone(engine);
    let trial = engine.executor().spawn(async move {
        let instance = Instance::new(own, &prepared, shared, 0, Arc::new(RwLock::new(0)));
        instance.await.map(drop).map_err(|death| death.reason)
    });
    trial
        .await
        .unwrap_or_else(|error| Err(format!("an instance could not be tried: {error}")))
}

/// Whether a settings file, if it can be read at all, says that there has to be a classifier beside it.
fn says_classifier(settings: Option<&str>) -> bool {
    let file = settings.and_then(|text| PluginFile::parse(text).ok());
    file.is_some_and(|file| file.kind == Some(PluginKind::IsolationClassifier))
}

/// Why a plugin's files could not be read.
pub(crate) struct Unreadable {
    /// Which of them.
    pub(crate) file: String,
    pub(crate) reason: String,
    /// Whether there is a classifier by what could be read.
    pub(crate) may_classify: bool,
}

/// Reads a component and its settings from an opened folder, so that no name leads out of it. The error names the file.
pub(crate) fn read_files(dir: &Dir, name: &str, limits: &Limits) -> Result<Files, Unreadable> {
    let settings_file = format!("{name}.toml");
    let settings = read_bounded(dir, &settings_file, limits.settings_bytes).and_then(|bytes| {
        bytes
            .map(|bytes| String::from_utf8(bytes).map_err(|_| "not UTF-8".to_owned()))
            .transpose()
    });
    let file = format!("{name}.wasm");
    let component = read_bounded(dir, &file, limits.component_bytes)
        .and_then(|bytes| bytes.ok_or_else(|| "no such file".to_owned()));
    match (component, settings) {
        (Ok(component), Ok(settings)) => Ok(Files { component, settings }),
        (Err(reason), settings) => Err(Unreadable {
            file,
            reason,
            may_classify: settings.is_ok_and(|settings| says_classifier(settings.as_deref())),
        }),
        (Ok(component), Err(reason)) => Err(Unreadable {
            file: settings_file,
            reason,
            may_classify: looks_like_a_classifier(&component),
        }),
    }
}

/// None: there is no such file.
fn read_bounded(dir: &Dir, name: &str, limit: u64) -> Result<Option<Vec<u8>>, String> {
    let file = match dir.open(name) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let mut bytes = Vec::new();
    let read = file
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if u64::try_from(read).unwrap_or(u64::MAX) > limit {
        return Err(format!("larger than {limit} bytes"));
    }
    Ok(Some(bytes))
}

/// Looks at a component file without loading it: what it is, and whether a host of this version would take it. Compiles it, and waits; not to be called from
/// asynchronous code.
///
/// # Errors
/// [`LoadError::File`] when the file cannot be read. Everything else that is wrong is in the answer.
pub fn inspect(path: &Path) -> Result<Inspection, LoadError> {
    let file = |reason: String| LoadError::File {
        path: path.to_owned(),
        reason,
    };
    let limit = Limits::default().component_bytes;
    let length = std::fs::metadata(path).map_err(|error| file(error.to_string()))?.len();
    if length > limit {
        return Err(file(format!("larger than {limit} bytes")));
    }
    let bytes = std::fs::read(path).map_err(|error| file(error.to_string()))?;
    let engine = PluginEngine::new(&EngineOptions {
        threads: 1,
        ..EngineOptions::default()
    })
    .map_err(|error| file(error.to_string()))?;
    let (mut found, prepared) = component::prepare(&engine, &bytes);
    if let Some(prepared) = prepared {
        let plan = scratch(prepared);
        let (done, outcome) = std::sync::mpsc::channel();
        let on = Arc::clone(&engine);
        engine
            .executor()
            .spawn(async move { done.send(try_types(&on, &plan).await) });
        match outcome.recv() {
            Ok(Ok(())) => {}
            Ok(Err(problem)) => found.problems.push(problem),
            Err(_) => found.problems.push("an instance could not be tried".to_owned()),
        }
    }
    Ok(found)
}

/// A generation in an address space of its own, for an instance that is never started.
fn scratch(prepared: Prepared) -> Plan {
    let limits = backplane_nodes::Limits::default();
    let namespaces = NamespaceTable::new("urn:inspect", &[], limits.max_namespaces);
    let shared = Generation {
        name: "inspect".into(),
        limits: Limits::default(),
        settings: serde_json::Value::Null,
        edition: 0,
        namespaces: Vec::new(),
        may_log: false,
        access: Arc::default(),
        space: Arc::new(AddressSpace::new(limits, Arc::new(namespaces))),
        clock: Arc::new(|| Now {
            mono: std::time::Duration::ZERO,
            utc: DateTime::MIN,
        }),
        counters: Arc::default(),
        metrics: Arc::default(),
        events: Sink::default(),
        store: Arc::new(KeyValues::default()),
    };
    Plan {
        prepared: Arc::new(prepared),
        shared: Arc::new(shared),
    }
}
