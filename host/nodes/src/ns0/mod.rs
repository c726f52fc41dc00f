//! Namespace 0: all nodes of the standard, with a live Server object.
//!
//! Owns the conversion of the compiled-in table into a model, the values of the Server object, and the native manager behind it. What the standard's
//! methods do is the server's business: it hands in a [`HostMethods`].

mod build;
mod capabilities;
mod status;
pub mod table;

use std::sync::Arc;

use backplane_types::{DataValue, NodeId, StatusCode, Variant};

pub use capabilities::{Capabilities, ServerInfo};
pub use status::ServerStatus;

use crate::manager::{BoxFuture, CallContext, CallOutcome, Facets, Fault, NodeManager, WriteOperation, Writes};
use crate::space::{AddressSpace, AttachError, ManagerId};

/// Why namespace 0 is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Namespace0Error {
    /// The build is damaged.
    #[error(transparent)]
    Table(#[from] table::TableError),
    /// A value in the table does not decode.
    #[error("the value of node i={0} in the table of namespace 0 does not decode")]
    Value(u32),
    /// There are too many nodes for the limits.
    #[error("the nodes of namespace 0 do not fit into a model")]
    TooManyNodes,
    /// It was attached before, or there are too many managers.
    #[error(transparent)]
    Attach(#[from] AttachError),
}

/// The methods of namespace 0 that this server has, such as GetMonitoredItems. Every other method answers `BadNotImplemented`.
pub trait HostMethods: Send + Sync {
    /// NodeIds of the Method nodes, in namespace 0.
    fn implemented(&self) -> &[u32];

    /// Calls a method; its arguments have been checked against the declaration.
    fn call<'a>(
        &'a self,
        call: &'a CallContext,
        object: &'a NodeId,
        method: u32,
        inputs: Vec<Variant>,
    ) -> BoxFuture<'a, Result<CallOutcome, Fault>>;
}

/// No methods.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMethods;

impl HostMethods for NoMethods {
    fn implemented(&self) -> &[u32] {
        &[]
    }

    fn call<'a>(
        &'a self,
        _call: &'a CallContext,
        _object: &'a NodeId,
        method: u32,
        _inputs: Vec<Variant>,
    ) -> BoxFuture<'a, Result<CallOutcome, Fault>> {
        Box::pin(async move {
            Err(Fault::new(
                StatusCode::BAD_NOT_IMPLEMENTED,
                format!("method i={method}"),
            ))
        })
    }
}

/// The manager of namespace 0. All its values are the host's.
struct Namespace0 {
    methods: Arc<dyn HostMethods>,
}

impl NodeManager for Namespace0 {
    fn name(&self) -> &str {
        "namespace 0"
    }

    fn facets(&self) -> Facets {
        Facets {
            reader: false,
            writes: Writes::Refused,
            methods: true,
            demand: false,
        }
    }

    fn read<'a>(
        &'a self,
        _call: &'a CallContext,
        _tags: &'a [u32],
        _max_age: f64,
    ) -> BoxFuture<'a, Result<Vec<DataValue>, Fault>> {
        Box::pin(async {
            Err(Fault::new(
                StatusCode::BAD_NOT_READABLE,
                "namespace 0 has no on-demand variables",
            ))
        })
    }

    fn write<'a>(
        &'a self,
        _call: &'a CallContext,
        _writes: Vec<WriteOperation>,
    ) -> BoxFuture<'a, Result<Vec<StatusCode>, Fault>> {
        Box::pin(async { Err(Fault::new(StatusCode::BAD_NOT_WRITABLE, "namespace 0 is not written")) })
    }

    fn call<'a>(
        &'a self,
        call: &'a CallContext,
        object: &'a NodeId,
        tag: u32,
        inputs: Vec<Variant>,
    ) -> BoxFuture<'a, Result<CallOutcome, Fault>> {
        self.methods.call(call, object, tag, inputs)
    }

    fn misbehaved(&self, _detail: &str) {}
}

/// Attaches namespace 0 to an address space. `status` is what the server changes while it runs.
///
/// # Errors
/// See [`Namespace0Error`].
pub fn attach(
    space: &AddressSpace,
    info: &ServerInfo,
    capabilities: &Capabilities,
    status: &Arc<ServerStatus>,
    methods: Arc<dyn HostMethods>,
) -> Result<ManagerId, Namespace0Error> {
    let table = table::Table::open()?;
    let values = capabilities::values(space, info, capabilities, status);
    let model = build::model(&table, values, methods.implemented(), capabilities.aggregate_functions)?;
    let (id, _) = space.attach(Arc::new(Namespace0 { methods }), model)?;
    Ok(id)
}
