//! Write Backplane plugins in Rust.
//!
//! A plugin is a WebAssembly component that describes OPC UA nodes to the host and keeps their values current. The host answers the clients.
//!
//! ```
//! use backplane_sdk::{Change, Fault, NodeManager, StartReason, Tag, Variable, namespace};
//!
//! const ANSWER: Tag<i32> = Tag::new(1);
//!
//! #[derive(Default)]
//! struct Hello;
//!
//! impl NodeManager for Hello {
//!     fn start(&mut self, _reason: StartReason) -> Result<(), Fault> {
//!         let ns = namespace("urn:example:hello");
//!         Change::new().add(Variable::new(ANSWER, ns.id("Answer"), "Answer").value(42)).commit()
//!     }
//! }
//!
//! backplane_sdk::plugin!(Hello);
//! # fn main() {}
//! ```
//!
//! Build it with `cargo build --target wasm32-wasip2` as a `cdylib`. The same code runs in ordinary tests: see [`testing`].
//!
//! The crate holds the bindings, typed values, builders and the glue. It depends on the contract in `wit/` and on nothing of the host.

extern crate self as backplane_sdk;

mod backend;
pub mod binary;
pub mod bindings;
mod classify;
mod event;
#[doc(hidden)]
pub mod facets;
mod host;
pub mod ids;
mod macros;
mod model;
mod plugin;
#[doc(hidden)]
pub mod probe;
mod settings;
mod status_codes;
mod structures;
#[cfg(not(target_family = "wasm"))]
pub mod testing;
mod types;
mod value;

pub use binary::{EnumDefinition, Structure, StructureDefinition};
pub use classify::{Classifier, Identity, Standing};
pub use event::Event;
pub use host::{
    Call, Mark, Peer, Tag, Update, after, cancel, degrade, degrade_all, emit, every, metric_add, metric_gauge,
    monotonic, namespace, publish, publish_each, resolve, store, utc,
};
pub use model::{Argument, Change, Declare, Folder, Invoked, Method, Object, Property, Type, Variable};
pub use plugin::{
    AttributeRequest, BrowsePage, BrowseRequest, Conditions, Demand, Handover, History, HistoryPage, Methods,
    NodeManager, Outcome, Reader, StartReason, Target, View, WriteRequest, Writer,
};
pub use settings::{Setting, secret, setting, setting_json};
pub use structures::Field;
pub use types::{
    ByteString, DataValue, DateTime, ExpandedNodeId, ExtensionObject, Fault, Guid, Identifier, LocalizedText, Matrix,
    Namespace, NodeId, OBJECTS, QualifiedName, StatusCode, Value, XmlElement,
};
pub use value::{Scalar, Typed};

#[doc(hidden)]
pub use classify::ClassifierPlugin;
#[doc(hidden)]
pub use macros::__log;
#[doc(hidden)]
pub use plugin::Plugin;
#[doc(hidden)]
pub use wit_bindgen;
