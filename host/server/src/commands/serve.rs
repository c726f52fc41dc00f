//! `backplane serve`: the configuration in effect, the runtime, signals, and the one line on standard output.

use std::io::Write;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{Failure, Outcome};
use crate::cli::ServeArgs;
use crate::config::{Config, LogFormat};
use crate::logging;
use crate::server::Server;

pub(super) fn run(args: &ServeArgs) -> Outcome {
    let config = effective(args)?;
    logging::install(config.log_format, &config.log_filter);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("server")
        .enable_all()
        .build()
        .map_err(Failure::other)?;
    runtime.block_on(serve(args, config))
}

/// The file or the demonstration, and what the command line changes about it.
fn effective(args: &ServeArgs) -> Result<Config, Failure> {
    let mut config = match &args.config {
        Some(path) => Config::read(path).map_err(Failure::usage)?,
        None => Config::demo().map_err(Failure::other)?,
    };
    if let Some(port) = args.port {
        config.listen.set_port(port);
    }
    if let Some(state) = &args.state {
        config.state.clone_from(state);
    }
    if let Some(plugins) = &args.plugins {
        config.plugins = Some(plugins.clone());
    }
    config.auto_trust |= args.auto_trust;
    if args.log_json {
        config.log_format = LogFormat::Json;
    }
    if let Some(filter) = &args.log {
        if let Err(error) = filter.parse::<tracing_subscriber::EnvFilter>() {
            return Err(Failure::usage(format!("--log {filter:?}: {error}")));
        }
        config.log_filter.clone_from(filter);
    }
    Ok(config)
}

/// Lets the process have as many open files as it may, and says so when that is too few for the connections.
fn allow_connections(config: &Config) {
    // Standard streams, plugins, caches and the like.
    const OTHERS: u64 = 64;
    let wanted = u64::from(config.limits.connections).saturating_add(OTHERS);
    match rlimit::increase_nofile_limit(wanted) {
        Ok(files) if files >= wanted => {}
        Ok(files) => {
            tracing::warn!(
                files,
                wanted,
                "the operating system allows fewer open files than limits.connections needs"
            );
        }
        Err(error) => tracing::warn!(%error, "cannot raise the limit of open files"),
    }
}

async fn serve(args: &ServeArgs, config: Config) -> Outcome {
    allow_connections(&config);
    // Signals first: one that comes while the server starts must not kill it half way.
    let mut terminate = watch(SignalKind::terminate())?;
    let mut interrupt = watch(SignalKind::interrupt())?;
    let mut hangup = watch(SignalKind::hangup())?;
    #[cfg(feature = "count-allocations")]
    crate::allocations::report().map_err(Failure::other)?;
    let server = tokio::select! {
        server = Server::start(config) => server.map_err(Failure::other)?,
        _ = terminate.recv() => return Ok(()),
        _ = interrupt.recv() => return Ok(()),
    };
    announce(&server)?;
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hangup.recv() => match effective(args) {
                Ok(config) => server.reload(config),
                Err(failure) => tracing::error!("configuration not reread: {}", failure.message),
            },
        }
    }
    server.stop().await;
    Ok(())
}

fn watch(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|error| Failure::other(format!("cannot watch signals: {error}")))
}

/// The one line that scripts wait for.
fn announce(server: &Server) -> Outcome {
    let address = server.address();
    let host = if address.ip().is_unspecified() {
        "localhost".to_owned()
    } else {
        address.ip().to_string()
    };
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let mut out = std::io::stdout().lock();
    let line = writeln!(
        out,
        "READY opc.tcp://{host}:{}/ pid={}",
        address.port(),
        std::process::id()
    );
    line.and_then(|()| out.flush())
        .map_err(|error| Failure::other(format!("standard output: {error}")))
}
