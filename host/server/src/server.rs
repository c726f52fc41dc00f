//! A server from configuration to shutdown: the order in which its parts are made, and unmade.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use backplane_channel::{ChannelIds, ServerConfig};
use backplane_crypto::{SecurityPolicy, random_bytes};
use backplane_nodes::ns0::{HostMethods, ServerStatus};
use backplane_nodes::{AddressSpace, NamespaceTable};
use backplane_plugin::{EngineOptions, FolderWatch, PluginHost, PluginOptions, SecurityOptions};
use backplane_queue::isolation::{Plan, Stage};
use backplane_session::{LoginThrottle, SessionLimits, Sessions, SubscriptionRegistry, ThrottleLimits};
use backplane_types::{ByteString, DecodeLimits, MessageSecurityMode, ServerState};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinHandle;

use crate::admission::{self, Admission, Charges};
use crate::channels::Channels;
use crate::classify::Classifiers;
use crate::clock::Clock;
use crate::config::{Config, ServerLimits, isolation};
use crate::endpoints::Endpoints;
use crate::events::{Events, PluginEvents, watch_structure};
use crate::listener::{self, Connections};
use crate::shard::{self, Kept, Shards};
use crate::shared::{Entropy, Shared, keep_sessions};
use crate::users::Users;
use crate::{durable, namespaces, pki, server_object};

/// How often the plugin folder is looked at.
const PLUGIN_FOLDER_INTERVAL: Duration = Duration::from_millis(200);

/// Why a server does not start: one line that says what, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The port is taken or not allowed.
    #[error("cannot listen on {address}: {source}; choose another address with server.listen or --port")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A folder cannot be made or used.
    #[error("cannot use {path}: {source}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// Keys, certificates or trust lists.
    #[error(transparent)]
    Pki(#[from] pki::PkiError),
    /// Namespace 0 or the host's own nodes.
    #[error("the server's own nodes: {0}")]
    Nodes(#[from] backplane_nodes::ns0::Namespace0Error),
    /// The plugin engine.
    #[error(transparent)]
    Plugins(#[from] backplane_plugin::EngineError),
    /// Limits that contradict each other, found by the part that they belong to.
    #[error("limits: {0}")]
    Limits(String),
    /// No randomness, no server.
    #[error("the operating system has no randomness: {0}")]
    Random(String),
    /// Passwords cannot be checked.
    #[error("users: {0}")]
    Users(#[from] crate::users::HashError),
}

/// A running server.
pub struct Server {
    shared: Arc<Shared>,
    trust: Arc<pki::Pki>,
    status: Arc<ServerStatus>,
    address: SocketAddr,
    listener: JoinHandle<()>,
    tasks: Vec<JoinHandle<()>>,
    plugins: PluginHost,
    watch: Option<FolderWatch>,
    drain: Duration,
    /// Where everything is that outlasts a run.
    state: PathBuf,
    /// Durable subscriptions that could not come back in this run.
    kept_for_later: Vec<Kept>,
}

impl Server {
    /// Starts everything; connections are accepted when this returns.
    ///
    /// # Errors
    /// [`StartError`]. A plugin that is broken is logged and stops nothing.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let clock = Clock::start();
        banner(&config);
        let socket = TcpListener::bind(config.listen)
            .await
            .map_err(|source| StartError::Listen {
                address: config.listen,
                source,
            })?;
        let address = socket.local_addr().map_err(|source| StartError::Listen {
            address: config.listen,
            source,
        })?;
        make_folder(&config.state)?;
        let trust = Arc::new(pki::Pki::open(&pki_options(&config), clock.now().utc)?);
        let registry = SubscriptionRegistry::with_durable(
            max_subscriptions(&config.limits),
            u32::MAX,
            config.limits.durable_subscriptions,
            config.limits.durable_values,
        );
        let (shards, doors) = Shards::new(processors(), &config.limits, registry);
        let (space, status) = own_space(&config, clock, Arc::new(shards.clone()))?;
        let shared = Arc::new(shared(&config, clock, &trust, address, Arc::clone(&space), shards)?);
        let mut tasks: Vec<JoinHandle<()>> = doors
            .into_iter()
            .map(|door| tokio::spawn(shard::run(Arc::clone(&shared), door)))
            .collect();
        tasks.push(tokio::spawn(keep_sessions(Arc::clone(&shared))));
        tasks.push(tokio::spawn(admission::sweep(Arc::clone(&shared))));
        let workers = config.limits.workers as usize;
        tasks.push(tokio::spawn(admission::work(Arc::clone(&shared), workers)));
        let keeper = namespaces::keep(
            Arc::clone(space.namespaces()),
            config.state.clone(),
            shared.stopping.subscribe(),
        );
        tasks.push(tokio::spawn(keeper));
        watch_structure(&shared);
        let (plugins, watch) = start_plugins(&config, &shared).await?;
        // Plugins have brought their nodes by now, as far as they can.
        let left = durable::take(&config.state, clock.now().utc);
        let kept_for_later = shared.shards.restore(left.kept, left.away).await;
        shared.admission.classifiers().ask(&plugins);
        tasks.push(tokio::spawn(listener::spread_news(Arc::clone(&shared))));
        let drain = Duration::from_secs_f64(config.limits.drain_timeout / 1000.0);
        let listener = tokio::spawn(listener::run(Arc::clone(&shared), socket, drain));
        tracing::info!(%address, nodes = shared.space.load().node_count(), "accepting connections");
        Ok(Self {
            shared,
            trust,
            status,
            address,
            listener,
            tasks,
            plugins,
            watch,
            drain,
            state: config.state,
            kept_for_later,
        })
    }

    /// Where connections are accepted.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The plugins that it serves.
    #[must_use]
    pub fn plugins(&self) -> &PluginHost {
        &self.plugins
    }

    /// Says in the log what is in use, and takes users, advertised hosts and trust lists from a configuration that was read again. Everything else needs a restart.
    pub fn reload(&self, config: Config) {
        let admission = &self.shared.admission;
        let counters = admission.counters();
        tracing::info!("in use by class: {}", counters.in_use());
        tracing::info!("refused since the start: {}", counters.refusals());
        tracing::info!("in use: {}", admission.usage());
        match Users::new(config.users.clone()) {
            Ok(users) => self.shared.users.store(Arc::new(users)),
            Err(error) => tracing::error!(%error, "users not reread"),
        }
        let certificate = self.shared.endpoints().certificate().clone();
        self.shared
            .endpoints
            .store(Arc::new(Endpoints::new(&config, certificate, self.address)));
        match self.trust.reload() {
            Ok(()) => tracing::info!("users, advertised hosts and trust lists reread; other settings need a restart"),
            Err(error) => tracing::error!(%error, "trust lists not reread"),
        }
    }

    /// Stops accepting, tells clients, waits for them, stops the plugins.
    pub async fn stop(self) {
        tracing::info!("stopping");
        self.status.set_state(ServerState::SHUTDOWN);
        // What waits is answered before its connections are told to end.
        self.shared.admission.stop();
        let mut kept = self.shared.shards.halt().await;
        kept.extend(self.kept_for_later);
        durable::save(&self.state, &kept, self.shared.clock.now().utc);
        self.shared.stopping.send_replace(true);
        if let Err(error) = self.listener.await {
            tracing::error!(%error, "the listener ended badly");
        }
        for task in self.tasks {
            if tokio::time::timeout(self.drain.max(Duration::from_secs(1)), task)
                .await
                .is_err()
            {
                tracing::warn!("a task did not end in time");
            }
        }
        drop(self.watch);
        self.plugins.shutdown().await;
        tracing::debug!("left over: {}", self.shared.admission.usage());
        let lost = self.shared.shards.lost_events();
        if lost > 0 {
            tracing::warn!(lost, "events were lost on their way to subscriptions");
        }
        tracing::info!("stopped");
    }
}

fn banner(config: &Config) {
    tracing::info!(version = env!("CARGO_PKG_VERSION"), configuration = %config.source.display(), application = config.application_uri, "Backplane");
    if config.auto_trust {
        tracing::warn!("auto-trust is on: every client certificate is accepted. For demonstrations and tests only");
    }
    if config.allow_none && !config.listen.ip().is_loopback() {
        tracing::warn!(listen = %config.listen, "SecurityPolicy None is offered beyond this machine: traffic can be read and changed by others");
    }
}

/// Of all sessions, those that are over included: what the Server object says.
pub(crate) fn max_subscriptions(limits: &ServerLimits) -> u32 {
    limits.sessions.saturating_mul(limits.subscriptions_per_session)
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn make_folder(path: &std::path::Path) -> Result<(), StartError> {
    std::fs::create_dir_all(path).map_err(|source| StartError::Folder {
        path: path.to_owned(),
        source,
    })
}

fn pki_options(config: &Config) -> pki::PkiOptions {
    pki::PkiOptions {
        folder: config.state.join("pki"),
        application_uri: config.application_uri.clone(),
        common_name: config.application_name.clone(),
        hosts: config
            .certificate_hosts
            .iter()
            .chain(&config.advertised_hosts)
            .cloned()
            .collect(),
        auto_trust: config.auto_trust,
    }
}

/// Namespace 0 and the Server object.
fn own_space(
    config: &Config,
    clock: Clock,
    methods: Arc<dyn HostMethods>,
) -> Result<(Arc<AddressSpace>, Arc<ServerStatus>), StartError> {
    let known = namespaces::known(&config.state);
    let limits = node_limits(&config.limits);
    let namespaces = Arc::new(NamespaceTable::new(
        &config.application_uri,
        &known,
        limits.max_namespaces,
    ));
    let space = Arc::new(AddressSpace::new(limits, namespaces));
    let status = server_object::attach(&space, config, clock, methods)?;
    Ok((space, status))
}

fn node_limits(limits: &ServerLimits) -> backplane_nodes::Limits {
    let operations = limits.operations_per_request;
    backplane_nodes::Limits {
        max_nodes_per_read: operations,
        max_nodes_per_write: operations,
        max_nodes_per_method_call: operations,
        max_nodes_per_browse: operations,
        max_nodes_per_register_nodes: operations,
        max_nodes_per_translate: operations,
        max_references_per_node: limits.references_per_node,
        max_browse_continuation_points: u16::try_from(limits.browse_continuation_points).unwrap_or(u16::MAX),
        max_response_size: limits.message_size,
        ..backplane_nodes::Limits::default()
    }
}

fn shared(
    config: &Config,
    clock: Clock,
    trust: &Arc<pki::Pki>,
    address: SocketAddr,
    space: Arc<AddressSpace>,
    shards: Shards,
) -> Result<Shared, StartError> {
    let identity = trust.identity();
    let certificate = ByteString::from(identity.chain());
    let endpoints = Endpoints::new(config, certificate, address);
    let channel_limits = channel_limits(&config.limits);
    channel_limits
        .check()
        .map_err(|errors| StartError::Limits(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
    let mut allowed = vec![(SecurityPolicy::None, MessageSecurityMode::NONE)];
    for policy in &config.policies {
        allowed.extend([MessageSecurityMode::SIGN, MessageSecurityMode::SIGN_AND_ENCRYPT].map(|mode| (*policy, mode)));
    }
    allowed.retain(|(policy, mode)| policy.is_none() || endpoints.offers(*policy, *mode));
    let event_prefix = random_bytes::<8>().map_err(|error| StartError::Random(error.to_string()))?;
    let first_id = random_bytes::<4>().map_err(|error| StartError::Random(error.to_string()))?;
    let seconds = |ms: f64| Duration::from_secs_f64(ms / 1000.0);
    let session_limits = SessionLimits {
        max_sessions: config.limits.sessions as usize,
        min_session_timeout: seconds(config.limits.session_timeout.0),
        max_session_timeout: seconds(config.limits.session_timeout.1),
        ..SessionLimits::default()
    };
    let sessions = Sessions::new(session_limits, Entropy).map_err(|error| StartError::Limits(error.to_string()))?;
    let connections: Arc<Connections> = Arc::default();
    let establishing = isolation::totals(&config.limits).of(Stage::SessionEstablishment);
    let establishing = usize::try_from(establishing.unwrap_or(u64::MAX))
        .unwrap_or(usize::MAX)
        .min(Semaphore::MAX_PERMITS);
    Ok(Shared {
        clock,
        limits: config.limits.clone(),
        decode_limits: DecodeLimits {
            max_string_length: config.limits.string_length,
            max_byte_string_length: config.limits.byte_string_length,
            max_array_length: config.limits.array_length,
            ..DecodeLimits::DEFAULT
        },
        runtime: tokio::runtime::Handle::current(),
        identity,
        trust: Arc::clone(trust) as Arc<dyn backplane_channel::CertificateVerifier>,
        channel_config: Arc::new(ServerConfig {
            limits: channel_limits,
            allowed,
        }),
        channel_ids: Arc::new(ChannelIds::starting_at(u32::from_le_bytes(first_id))),
        admission: admission(config, &connections)?,
        connections,
        channels: Channels::default(),
        charges: Charges::default(),
        establishing: Arc::new(Semaphore::new(establishing)),
        session_index: sessions.index(),
        sessions: Mutex::new(sessions),
        throttle: Mutex::new(LoginThrottle::new(ThrottleLimits::default())),
        // Half of the processors stay for everybody who is logged in.
        password_checks: Arc::new(Semaphore::new((processors() / 2).max(1))),
        users: ArcSwap::from_pointee(Users::new(config.users.clone())?),
        endpoints: ArcSwap::from_pointee(endpoints),
        space,
        shards,
        events: Events::new(event_prefix, config.auditing, &config.application_uri),
        points: Mutex::default(),
        stopping: watch::Sender::new(false),
        sessions_changed: Notify::new(),
    })
}

/// The plan of `[isolation]`, said in the log stage by stage.
fn admission(config: &Config, connections: &Arc<Connections>) -> Result<Admission, StartError> {
    let plan = Plan::derive(&config.isolation, &isolation::totals(&config.limits)).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        StartError::Limits(lines.join("; "))
    })?;
    for line in plan.lines() {
        tracing::info!("{line}");
    }
    let classifiers = Classifiers::default();
    Ok(Admission::new(
        plan,
        &config.limits,
        processors(),
        connections,
        classifiers,
    ))
}

fn channel_limits(limits: &ServerLimits) -> backplane_channel::Limits {
    let time = |ms: f64| Duration::from_secs_f64(ms / 1000.0);
    backplane_channel::Limits {
        receive_buffer_size: limits.chunk_size,
        send_buffer_size: limits.chunk_size,
        max_message_size: limits.message_size,
        max_chunk_count: limits.chunk_count,
        unauthenticated_max_message_size: limits.unauthenticated_message_size,
        hello_timeout: time(limits.handshake_timeout),
        open_timeout: time(limits.handshake_timeout),
        message_timeout: time(limits.message_timeout),
        min_lifetime: time(limits.token_lifetime.0),
        max_lifetime: time(limits.token_lifetime.1),
        default_lifetime: time(limits.token_lifetime.1),
        ..backplane_channel::Limits::default()
    }
}

async fn start_plugins(config: &Config, shared: &Arc<Shared>) -> Result<(PluginHost, Option<FolderWatch>), StartError> {
    let engine = EngineOptions {
        cache: Some(config.state.join("compile-cache")),
        ..EngineOptions::default()
    };
    let options = PluginOptions {
        engine,
        store: Some(config.state.join("plugin-stores")),
        security: SecurityOptions {
            trust: Some(config.state.join("plugins/trust")),
            revocations: config.revocations.clone(),
            require_signed: config.require_signed,
            secrets: Some(config.state.join("plugins/secrets")),
            data: Some(config.state.join("plugins/data")),
            consents: Some(config.state.join("plugins/consents")),
        },
        ..PluginOptions::default()
    };
    let clock = shared.clock;
    let events = Arc::new(PluginEvents(Arc::downgrade(shared)));
    let plugins = PluginHost::new(options, Arc::clone(&shared.space), Arc::new(move || clock.now()))?;
    plugins.set_events(events);
    let watch = match &config.plugins {
        None => None,
        Some(folder) => {
            make_folder(folder)?;
            let watch = plugins.watch(folder, PLUGIN_FOLDER_INTERVAL).await;
            Some(watch.map_err(|source| StartError::Folder {
                path: folder.clone(),
                source,
            })?)
        }
    };
    Ok((plugins, watch))
}
