//! The address space of the server: nodes, their values, and the services that look at them.
//!
//! It owns value cells, models, the snapshot that all managers' models form together, the `NodeManager` seam, the native namespace 0, and Read,
//! Write, Browse, BrowseNext, TranslateBrowsePathsToNodeIds, RegisterNodes and Call. It must not know sessions, channels, executors or clocks: who
//! asks and what time it is come in with each request.

mod attribute;
pub mod cell;
mod changes;
mod defaults;
mod events;
mod generated;
mod graph;
pub mod limits;
pub mod manager;
pub mod model;
pub mod namespace;
mod nodeset;
pub mod ns0;
mod rights;
mod semantics;
pub mod services;
mod source;
pub mod space;
mod structure;
pub mod timestamps;
pub mod typing;
pub mod units;
mod watch;

pub use cell::ValueCell;
pub use changes::{NodeChange, StructureChange};
pub use events::EventFieldClass;
pub use limits::Limits;
pub use manager::{
    BoxFuture, CallContext, CallOutcome, Caller, Facets, Fault, NodeManager, Role, WriteOperation, Writes,
};
pub use model::{ChangeError, MethodArgument, Model, ModelBuilder, ScalarTarget};
pub use namespace::NamespaceTable;
pub use semantics::MeaningChange;
pub use source::ReadSource;
pub use space::{AddressSpace, AttachError, ManagerId, Snapshot, UpdateError};
pub use timestamps::Stamps;
pub use watch::{ChangeFeed, MAX_WATCHERS};
