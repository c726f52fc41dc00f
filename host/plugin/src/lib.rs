//! Plugins: WebAssembly components that serve nodes, loaded, limited, watched and replaced while clients stay connected.
//!
//! [`PluginHost`] loads a component, checks it against the contract in `wit/`, and runs it in a store of its own on an executor of its own. It describes its
//! nodes, which then live in the [`AddressSpace`](backplane_nodes::AddressSpace); each plugin is one
//! [`NodeManager`](backplane_nodes::NodeManager) over all its instances and generations. Whatever a plugin does, the worst that happens to clients is that
//! its own nodes turn `BadNoCommunication` for a while.
//!
//! This crate must not know sessions, channels or services.

mod actor;
mod bindings;
mod change;
mod classifier;
mod component;
mod convert;
mod counters;
mod demand;
mod engine;
mod events;
mod evidence;
mod host;
mod hosts;
mod instance;
mod limits;
mod log;
mod manager;
mod permissions;
mod publish;
mod questions;
mod reads;
mod restart;
mod settings;
mod sizes;
mod state;
mod status;
mod stdio;
mod store;
mod supervisor;
mod timers;
mod watch;

pub use classifier::{Classifier, ClassifyError, Standing, Verdict};
pub use component::{FacetInfo, Inspection, PluginKind};
pub use counters::Counts;
pub use engine::{EngineError, EngineOptions};
pub use events::{EventSink, PluginEvent};
pub use evidence::{ClientCertificate, PeerEvidence, SessionEvidence};
pub use host::{LoadError, PluginHost, PluginOptions, inspect};
pub use limits::{Deadline, LimitOverrides, Limits};
pub use permissions::SecurityOptions;
pub use restart::RestartPolicy;
pub use settings::{Grants, PluginFile};
pub use state::Clock;
pub use status::{PluginState, PluginStatus};
pub use watch::{FolderEvent, FolderWatch, PluginFolder};
