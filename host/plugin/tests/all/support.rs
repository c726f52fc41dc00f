//! A host over an address space, in a folder of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use backplane_nodes::{AddressSpace, Limits as NodeLimits, NamespaceTable};
use backplane_plugin::{Clock, Deadline, Limits, PluginHost, PluginOptions, PluginState, PluginStatus, RestartPolicy};
use backplane_types::{DateTime, Now};

/// How long a test waits for what must happen. Only a broken host gets here.
const PATIENCE: Duration = Duration::from_secs(60);

/// The host's clock in tests: real.
pub(crate) fn clock() -> Clock {
    let start = Instant::now();
    Arc::new(move || Now {
        mono: start.elapsed(),
        utc: DateTime::from_system_time(std::time::SystemTime::now()),
    })
}

/// Options with deadlines that a test can wait for.
pub(crate) fn quick() -> PluginOptions {
    let short = Deadline {
        cpu: Duration::from_millis(100),
        wall: Duration::from_secs(10),
    };
    PluginOptions {
        limits: Limits {
            start: Deadline {
                cpu: Duration::from_millis(1_000),
                ..short
            },
            wake: short,
            stop: short,
            read: short,
            write: short,
            call: short,
            classify: short,
            memory: 8 << 20,
            ..Limits::default()
        },
        restart: RestartPolicy {
            base: Duration::from_millis(1),
            cap: Duration::from_millis(8),
            ..RestartPolicy::default()
        },
        ..PluginOptions::default()
    }
}

/// Waits for all of them. Each is polled once, in order, before anything else on this thread runs.
pub(crate) async fn all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut waiting: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        let mut ready = true;
        for (future, answer) in &mut waiting {
            if answer.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(output) => *answer = Some(output),
                    Poll::Pending => ready = false,
                }
            }
        }
        if ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    waiting.into_iter().map(|(_, answer)| answer.unwrap()).collect()
}

pub(crate) struct Bench {
    pub(crate) host: PluginHost,
    pub(crate) space: Arc<AddressSpace>,
    pub(crate) clock: Clock,
    folder: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new(options: PluginOptions) -> Self {
        let limits = NodeLimits::default();
        let namespaces = Arc::new(NamespaceTable::new("urn:test", &[], limits.max_namespaces));
        let space = Arc::new(AddressSpace::new(limits, namespaces));
        let clock = clock();
        let host = PluginHost::new(options, Arc::clone(&space), Arc::clone(&clock)).unwrap();
        Self {
            host,
            space,
            clock,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Puts a file into the folder in one step.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        let partial = self.folder.path().join(format!("{name}.partial"));
        std::fs::write(&partial, bytes).unwrap();
        std::fs::rename(&partial, &path).unwrap();
        path
    }

    pub(crate) fn status(&self, name: &str) -> PluginStatus {
        self.host
            .list()
            .into_iter()
            .find(|status| &*status.name == name)
            .unwrap()
    }

    /// Waits until a plugin is where `wanted` says.
    pub(crate) async fn until(&self, name: &str, wanted: impl FnMut(&PluginStatus) -> bool) -> PluginStatus {
        let mut changes = self.host.subscribe(name).unwrap();
        let status = tokio::time::timeout(PATIENCE, changes.wait_for(wanted)).await;
        status.expect("it comes to that").unwrap().clone()
    }

    pub(crate) async fn until_state(&self, name: &str, state: PluginState) -> PluginStatus {
        self.until(name, |status| status.state == state).await
    }
}
