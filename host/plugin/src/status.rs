//! What can be seen of a plugin from outside. Owns no behaviour.

use std::sync::Arc;
use std::time::Duration;

use crate::component::PluginKind;
use crate::counters::Counts;

/// Where a plugin is in its life.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PluginState {
    /// Its first instance is being started.
    Starting,
    /// It serves.
    Serving,
    /// A classifier that answers.
    Ready,
    /// It has failed, and a fresh instance starts after this delay.
    Backoff(Duration),
    /// It has failed too often. A new file, or an operator, starts it again.
    Quarantined,
    /// The file is no plugin that this host can run.
    Rejected,
    /// It was unloaded.
    Stopped,
}

impl PluginState {
    /// One word, for metrics and command lines.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Serving => "serving",
            Self::Ready => "ready",
            Self::Backoff(_) => "backoff",
            Self::Quarantined => "quarantined",
            Self::Rejected => "rejected",
            Self::Stopped => "stopped",
        }
    }
}

/// One plugin, as [`PluginHost::list`](crate::PluginHost::list) shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginStatus {
    /// The stem of its file name.
    pub name: Arc<str>,
    /// None while nothing valid was loaded.
    pub kind: Option<PluginKind>,
    /// Where it is in its life.
    pub state: PluginState,
    /// Counts the instances; the one that serves, or served last.
    pub instance: u64,
    /// Counts the files that were taken: 1 for the first.
    pub generation: u64,
    /// SHA-256 of the component that serves, in hexadecimal.
    pub digest: Option<Arc<str>>,
    /// The facets it exports.
    pub facets: Vec<&'static str>,
    /// Nodes it had when its last instance began to serve.
    pub nodes: usize,
    /// How long it was asked nothing when it was reloaded last: from the last call of one generation to the first of the next.
    pub pause: Option<Duration>,
    /// Why it last failed, or why the last file was refused.
    pub last_error: Option<String>,
    /// Counts since it was loaded first.
    pub counts: Counts,
}

impl PluginStatus {
    pub(crate) fn new(name: Arc<str>) -> Self {
        Self {
            name,
            kind: None,
            state: PluginState::Starting,
            instance: 0,
            generation: 0,
            digest: None,
            facets: Vec::new(),
            nodes: 0,
            pause: None,
            last_error: None,
            counts: Counts::default(),
        }
    }
}
