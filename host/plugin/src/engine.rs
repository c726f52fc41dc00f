//! One wasmtime engine for all plugins: configuration, the epoch ticker, the compile cache and the linker.
//!
//! Owns what is made once per process. It must not know single plugins.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use thread_priority::{ThreadPriority, ThreadPriorityValue, set_current_thread_priority};
use tokio::runtime::{Builder, Handle, Runtime};
use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{Cache, CacheConfig, Config, Engine};

use crate::bindings::{host, one_line, ua};
use crate::state::State;

/// Options of the engine; nothing here can change while plugins run.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Distance of two epoch ticks. CPU deadlines are counted in ticks, and a computing guest gives its thread away at each.
    pub tick: Duration,
    /// Stack of wasm code in bytes.
    pub wasm_stack: usize,
    /// Stack of the fiber that a call runs on, in bytes; must be larger than `wasm_stack`.
    pub fiber_stack: usize,
    /// Folder for compiled components, made if missing and readable by the server's own account only. None: compile at each start.
    pub cache: Option<PathBuf>,
    /// Bytes the compile cache may hold before old entries go.
    pub cache_bytes: u64,
    /// Threads that guests run on, when the host makes its own executor.
    pub threads: usize,
    /// An executor to run guests on instead, classifiers too. It must drive time and must not be the one that serves connections.
    pub executor: Option<Handle>,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            tick: Duration::from_millis(10),
            wasm_stack: 512 << 10,
            fiber_stack: 2 << 20,
            cache: None,
            cache_bytes: 512 << 20,
            threads: 2,
            executor: None,
        }
    }
}

/// Why the engine could not be made: the server's own fault or its environment's.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// wasmtime refused the configuration, or this machine cannot run its code.
    #[error("the WebAssembly engine: {0}")]
    Wasmtime(String),
    /// The folder for compiled components could not be made or used.
    #[error("the compile cache {path}: {reason}")]
    Cache {
        /// The folder.
        path: PathBuf,
        /// What went wrong.
        reason: String,
    },
    /// A thread could not be started.
    #[error("threads for plugins: {0}")]
    Threads(#[from] std::io::Error),
}

/// The engine, its linker and the executor of guests.
pub(crate) struct PluginEngine {
    engine: Engine,
    linker: Linker<State>,
    tick: Duration,
    handle: Handle,
    runtime: Option<Runtime>,
    /// Made when the first classifier serves.
    classifiers: Mutex<Option<Runtime>>,
}

/// Gives the threads of guests a low priority, so that a guest that computes takes the time that is left over by those who answer clients.
fn step_back() {
    /// Of 100; about 15 on the scale of niceness.
    const LOW: u8 = 10;
    let priority = ThreadPriorityValue::try_from(LOW).map(ThreadPriority::Crossplatform);
    match priority.map(set_current_thread_priority) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::debug!(target: "plugin", "threads of plugins run with the priority of the server: {error:?}")
        }
        Err(error) => {
            tracing::debug!(target: "plugin", "threads of plugins run with the priority of the server: {error}")
        }
    }
}

impl PluginEngine {
    pub(crate) fn new(options: &EngineOptions) -> Result<Arc<Self>, EngineError> {
        let wasmtime = |error: wasmtime::Error| EngineError::Wasmtime(one_line(&error));
        let mut config = Config::new();
        config
            .wasm_component_model(true)
            .concurrency_support(false)
            .epoch_interruption(true)
            .max_wasm_stack(options.wasm_stack)
            .async_stack_size(options.fiber_stack);
        if let Some(path) = &options.cache {
            config.cache(Some(compile_cache(path, options.cache_bytes)?));
        }
        let engine = Engine::new(&config).map_err(wasmtime)?;
        let linker = link(&engine).map_err(wasmtime)?;
        start_ticker(&engine, options.tick)?;
        let runtime = match &options.executor {
            Some(_) => None,
            None => Some(
                Builder::new_multi_thread()
                    .worker_threads(options.threads.max(1))
                    .thread_name("plugin")
                    .on_thread_start(step_back)
                    .enable_all()
                    .build()?,
            ),
        };
        let handle = match (&options.executor, &runtime) {
            (Some(handle), _) => handle.clone(),
            (None, Some(runtime)) => runtime.handle().clone(),
            (None, None) => return Err(EngineError::Wasmtime("no executor".to_owned())),
        };
        Ok(Arc::new(Self {
            engine,
            linker,
            tick: options.tick,
            handle,
            runtime,
            classifiers: Mutex::new(None),
        }))
    }

    pub(crate) fn wasmtime(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn linker(&self) -> &Linker<State> {
        &self.linker
    }

    /// Where guests run.
    pub(crate) fn executor(&self) -> &Handle {
        &self.handle
    }

    /// Where classifiers serve: a thread of their own with the server's priority. Everybody waits for their answers, so they must not queue behind guests that
    /// compute, nor get only what the server's threads leave over.
    pub(crate) fn classifier_executor(&self) -> std::io::Result<Handle> {
        if self.runtime.is_none() {
            return Ok(self.handle.clone());
        }
        let mut classifiers = self.classifiers.lock();
        if let Some(runtime) = &*classifiers {
            return Ok(runtime.handle().clone());
        }
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("classifier")
            .enable_all()
            .build()?;
        Ok(classifiers.insert(runtime).handle().clone())
    }

    /// How many ticks a CPU deadline is; at least two, since the first may be due at once.
    pub(crate) fn ticks(&self, cpu: Duration) -> u64 {
        let tick = self.tick.as_nanos().max(1);
        u64::try_from(cpu.as_nanos().div_ceil(tick)).unwrap_or(u64::MAX).max(2)
    }

    /// Compiles, or takes the compiled form from the cache. Slow: call it where blocking is allowed.
    pub(crate) fn compile(&self, bytes: &[u8]) -> Result<Component, String> {
        Component::from_binary(&self.engine, bytes).map_err(|error| one_line(&error))
    }
}

impl Drop for PluginEngine {
    fn drop(&mut self) {
        // A runtime must not be dropped by waiting inside another one; the tasks have been told to stop by then.
        for runtime in [self.runtime.take(), self.classifiers.get_mut().take()]
            .into_iter()
            .flatten()
        {
            runtime.shutdown_background();
        }
    }
}

/// wasmtime's own cache: keyed by the component's digest, the compiler's settings and the engine's version. Whoever can write into the folder can run
/// code as the server, so it belongs to the server's account alone.
fn compile_cache(path: &PathBuf, bytes: u64) -> Result<Cache, EngineError> {
    let failed = |reason: String| EngineError::Cache {
        path: path.clone(),
        reason,
    };
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|error| failed(error.to_string()))?;
    let absolute = std::fs::canonicalize(path).map_err(|error| failed(error.to_string()))?;
    #[cfg(unix)]
    {
        let mode = std::fs::metadata(&absolute)
            .map_err(|error| failed(error.to_string()))?
            .permissions();
        if std::os::unix::fs::PermissionsExt::mode(&mode) & 0o022 != 0 {
            return Err(failed(
                "others may write into it, and so could run code as this server; make it mode 0700".to_owned(),
            ));
        }
    }
    let mut config = CacheConfig::new();
    config.with_directory(absolute).with_files_total_size_soft_limit(bytes);
    Cache::new(config).map_err(|error| failed(one_line(&error)))
}

/// A plain thread: a guest that holds every executor thread cannot hold this one. It ends with the engine.
fn start_ticker(engine: &Engine, tick: Duration) -> Result<(), std::io::Error> {
    let weak = engine.weak();
    std::thread::Builder::new()
        .name("plugin-epoch".to_owned())
        .spawn(move || {
            loop {
                std::thread::sleep(tick);
                match weak.upgrade() {
                    Some(engine) => engine.increment_epoch(),
                    None => break,
                }
            }
        })?;
    Ok(())
}

/// Everything a plugin may import. WASI is there because standard libraries import it unasked; it reaches what is asked and granted.
fn link(engine: &Engine) -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    crate::permissions::shadow(&mut linker)?;
    ua::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)?;
    host::log::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)?;
    host::metrics::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)?;
    host::settings::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)?;
    host::store::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)?;
    host::address_space::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)?;
    host::values::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)?;
    host::events::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)?;
    host::context::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)?;
    host::timers::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)?;
    host::clock::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)?;
    host::evidence::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)?;
    Ok(linker)
}
