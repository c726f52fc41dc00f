//! A folder of plugins, looked at again and again.
//!
//! Owns when a file counts as new: by its content, once it has stopped changing. It must not know how a plugin is loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata};
use tokio::task::JoinHandle;

use crate::component::{digest, plugin_name};
use crate::host::{PluginHost, read_files};

/// Files of one folder that are looked at.
const MAX_FILES: usize = 1_024;

/// Something that a look at the folder has led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FolderEvent {
    /// A plugin was loaded, or another generation of it.
    Loaded(Arc<str>),
    /// A file was not taken, and why. What served before serves on.
    Failed(Arc<str>, String),
    /// The file has gone, and the plugin with it.
    Unloaded(Arc<str>),
}

/// What tells that a file may have changed, without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    component: (u64, Option<SystemTime>),
    settings: Option<(u64, Option<SystemTime>)>,
}

impl Stamp {
    fn is_recent(&self, now: SystemTime) -> bool {
        let times = [self.component.1, self.settings.and_then(|(_, time)| time)];
        // A time in the future, or none, says nothing.
        times
            .into_iter()
            .flatten()
            .any(|time| now.duration_since(time).map_or(true, |age| age < COARSE))
    }
}

#[derive(Debug, Default)]
struct Seen {
    /// What was there at the last look; None: nothing.
    last: Option<Stamp>,
    done: Option<Done>,
}

/// What was dealt with.
#[derive(Debug)]
struct Done {
    stamp: Stamp,
    /// The digest of the content.
    content: String,
    /// Read so soon after it was written that a later change may carry the same stamp: times of files are coarse.
    hasty: bool,
}

/// Older files are taken to have another time after every change.
const COARSE: Duration = Duration::from_secs(2);

/// A folder whose `*.wasm` files are plugins.
#[derive(Debug)]
pub struct PluginFolder {
    host: PluginHost,
    path: PathBuf,
    dir: Arc<Dir>,
    seen: BTreeMap<Arc<str>, Seen>,
    looks: u64,
    /// Names that cannot be plugins, so that each is complained about once.
    complained: BTreeSet<String>,
}

/// Ends the looking when it is dropped; plugins stay.
#[derive(Debug)]
pub struct FolderWatch {
    task: JoinHandle<()>,
}

impl Drop for FolderWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl PluginHost {
    /// Opens a folder of plugins. Nothing is loaded before the first [`look`](PluginFolder::look).
    ///
    /// # Errors
    /// When there is no such folder, or it may not be read.
    pub fn folder(&self, path: &Path) -> std::io::Result<PluginFolder> {
        let dir = Arc::new(Dir::open_ambient_dir(path, ambient_authority())?);
        Ok(PluginFolder {
            host: self.clone(),
            path: path.to_owned(),
            dir,
            seen: BTreeMap::new(),
            looks: 0,
            complained: BTreeSet::new(),
        })
    }

    /// Loads what is in a folder, then keeps loading, reloading and unloading as its files change. Waits for the first round; what is wrong with a
    /// plugin is logged and listed, and stops nothing.
    ///
    /// # Errors
    /// When there is no such folder, or it may not be read.
    pub async fn watch(&self, path: &Path, interval: Duration) -> std::io::Result<FolderWatch> {
        let mut folder = self.folder(path)?;
        folder.look().await;
        let task = self.executor().spawn(async move {
            let mut ticks = tokio::time::interval(interval.max(Duration::from_millis(10)));
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                folder.look().await;
            }
        });
        Ok(FolderWatch { task })
    }
}

impl PluginFolder {
    /// Looks at the folder once. A file that looks different from the last look is left alone until it looks the same twice: it may be half written.
    /// Files that are there at the first look are taken as they are.
    pub async fn look(&mut self) -> Vec<FolderEvent> {
        let dir = Arc::clone(&self.dir);
        let listed = self.host.executor().spawn_blocking(move || list(&dir)).await;
        let (stamps, odd) = match listed {
            Ok(Ok(listed)) => listed,
            Ok(Err(error)) => {
                tracing::warn!(target: "plugin", folder = %self.path.display(), "cannot be read: {error}");
                return Vec::new();
            }
            Err(_) => return Vec::new(),
        };
        for (name, problem) in odd {
            if self.complained.len() < MAX_FILES && self.complained.insert(name) {
                tracing::warn!(target: "plugin", "{problem}");
            }
        }
        let first = self.looks == 0;
        self.looks = self.looks.saturating_add(1);
        let mut events = Vec::new();
        let names: BTreeSet<Arc<str>> = stamps.keys().chain(self.seen.keys()).cloned().collect();
        for name in names {
            let now = stamps.get(&name).cloned();
            let seen = self.seen.entry(Arc::clone(&name)).or_default();
            let settled = first || seen.last == now;
            seen.last = now.clone();
            if !settled {
                continue;
            }
            let event = match now {
                None => self.gone(&name).await,
                Some(stamp) => self.there(&name, stamp).await,
            };
            events.extend(event);
        }
        events
    }

    async fn gone(&mut self, name: &Arc<str>) -> Option<FolderEvent> {
        self.seen.remove(name);
        self.host.unload(name).await.ok()?;
        tracing::info!(target: "plugin", plugin = &**name, "its file has gone: unloaded");
        Some(FolderEvent::Unloaded(Arc::clone(name)))
    }

    async fn there(&mut self, name: &Arc<str>, stamp: Stamp) -> Option<FolderEvent> {
        let seen = self.seen.get_mut(name)?;
        if seen
            .done
            .as_ref()
            .is_some_and(|done| done.stamp == stamp && !done.hasty)
        {
            return None;
        }
        let hasty = stamp.is_recent(SystemTime::now());
        let (dir, file, limits) = (Arc::clone(&self.dir), Arc::clone(name), self.host.limits().clone());
        let read = self.host.executor().spawn_blocking(move || {
            read_files(&dir, &file, &limits).map(|files| {
                let content = format!(
                    "{} {}",
                    digest(&files.component),
                    digest(files.settings.as_deref().unwrap_or_default().as_bytes())
                );
                (files, content)
            })
        });
        let (files, content) = match read.await {
            Ok(Ok(read)) => read,
            Ok(Err(wrong)) => {
                let known = seen.done.as_ref().is_some_and(|done| done.stamp == stamp);
                seen.done = Some(Done {
                    stamp,
                    content: String::new(),
                    hasty,
                });
                if known {
                    return None;
                }
                self.host.unreadable(name, &wrong).await;
                let problem = format!("{}: {}", wrong.file, wrong.reason);
                tracing::warn!(target: "plugin", plugin = &**name, "{problem}");
                return Some(FolderEvent::Failed(Arc::clone(name), problem));
            }
            Err(_) => return None,
        };
        let same = seen.done.as_ref().is_some_and(|done| done.content == content);
        seen.done = Some(Done { stamp, content, hasty });
        if same {
            return None;
        }
        Some(match self.host.load_files(name, files).await {
            Ok(()) => FolderEvent::Loaded(Arc::clone(name)),
            Err(error) => FolderEvent::Failed(Arc::clone(name), error.to_string()),
        })
    }
}

type Listing = (BTreeMap<Arc<str>, Stamp>, Vec<(String, String)>);

/// The plugins in a folder, and the files that cannot be any by their name.
fn list(dir: &Dir) -> std::io::Result<Listing> {
    let mut stamps = BTreeMap::new();
    let mut odd = Vec::new();
    for entry in dir.entries()?.take(MAX_FILES) {
        let file = entry?.file_name();
        let path = Path::new(&file);
        if path.extension().and_then(|extension| extension.to_str()) != Some("wasm") {
            continue;
        }
        let name = match plugin_name(path) {
            Ok(name) => name,
            Err(problem) => {
                odd.push((file.to_string_lossy().into_owned(), problem));
                continue;
            }
        };
        // A file that vanishes between the two steps is gone.
        let Ok(component) = dir.metadata(path) else { continue };
        if !component.is_file() {
            continue;
        }
        let settings = dir
            .metadata(path.with_extension("toml"))
            .ok()
            .map(|metadata| stamp(&metadata));
        stamps.insert(
            name,
            Stamp {
                component: stamp(&component),
                settings,
            },
        );
    }
    Ok((stamps, odd))
}

fn stamp(metadata: &Metadata) -> (u64, Option<SystemTime>) {
    (metadata.len(), metadata.modified().ok().map(|time| time.into_std()))
}
