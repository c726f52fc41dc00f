//! Log lines to standard error, as text or JSON. Standard output carries the READY line and nothing else.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::LogFormat;

/// Installs the process's subscriber. `filter` was checked with the configuration; a bad one falls back to `info` and says so.
pub fn install(format: LogFormat, filter: &str) {
    let (parsed, problem) = match filter.parse::<EnvFilter>() {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new("info"), Some(error)),
    };
    let registry = tracing_subscriber::registry().with(parsed);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false);
    // A subscriber that is already there (a test's) stays.
    let installed = match format {
        LogFormat::Text => registry.with(lines).try_init(),
        LogFormat::Json => registry.with(lines.json()).try_init(),
    };
    if installed.is_ok()
        && let Some(error) = problem
    {
        tracing::warn!(filter, %error, "log filter is not valid; using info");
    }
}
