//! The seam to what serves nodes: native managers and plugins.
//!
//! It owns the shape of a call to a manager. It must not know how a manager runs (executor, sandbox, retries), nor what a session is.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use backplane_types::{DataValue, DateTime, MessageSecurityMode, NodeId, StatusCode, UaString, Variant};

/// A boxed future, as trait objects need one.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A role that a caller has (Part 18, 4.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    /// The node of the role, as RolePermissions name it.
    pub id: NodeId,
    /// The name that is shown to managers.
    pub name: Arc<str>,
}

/// Who asks: one immutable piece per activation of a session.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The host's own number for who asks, for methods of the host itself; 0 is nobody. Plugins never see it.
    pub number: u32,
    /// A pseudonym of the session; never its id or its token.
    pub client: Arc<str>,
    /// The name of the user; none for anonymous.
    pub user: Option<Arc<str>>,
    /// The roles of the user.
    pub roles: Arc<[Role]>,
    /// The locales of the session, best first.
    pub locales: Arc<[UaString]>,
    /// The owner that the work is charged to; empty when there is none.
    pub isolation_owner: Arc<str>,
    /// How the channel is secured, for AccessRestrictions.
    pub security_mode: MessageSecurityMode,
}

impl Caller {
    /// The host itself: no user, no roles, everything allowed by [`CallContext::internal`].
    #[must_use]
    pub fn anonymous() -> Self {
        Self {
            number: 0,
            client: Arc::from(""),
            user: None,
            roles: Arc::from([]),
            locales: Arc::from([]),
            isolation_owner: Arc::from(""),
            security_mode: MessageSecurityMode::NONE,
        }
    }
}

/// What one call to a manager carries beside its operations.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// Who asks.
    pub caller: Arc<Caller>,
    /// Until when an answer is of use, on the monotonic clock of `Now`.
    pub deadline: Duration,
    /// The same as a time of day, for managers.
    pub deadline_utc: DateTime,
    /// The W3C trace parent of the request, if there is one.
    pub trace_parent: Option<Arc<str>>,
    /// True for the host's own look-ups (sampling for nobody in particular): permissions are not checked.
    pub internal: bool,
}

/// Why a whole call failed. `status` is what the client sees; `detail` goes to the log only.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{status}: {detail}")]
pub struct Fault {
    /// The status of every operation of the call.
    pub status: StatusCode,
    /// For the log.
    pub detail: String,
}

impl Fault {
    /// A fault with a reason for the log.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            detail: detail.into(),
        }
    }
}

/// One write to a variable. Types, ranks, index ranges and rights have been checked.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteOperation {
    /// The variable.
    pub tag: u32,
    /// The range as the client sent it, if there was one; `value` holds the elements of the range only.
    pub index_range: Option<Arc<str>>,
    /// What to write, exactly as the client sent it.
    pub value: DataValue,
}

/// What a method answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallOutcome {
    /// The status of the call.
    pub status: StatusCode,
    /// One status for each input argument, or empty when all are good.
    pub input_status: Vec<StatusCode>,
    /// The output arguments, in the order of the declaration.
    pub outputs: Vec<Variant>,
}

/// What becomes of a client's write to a variable of a manager.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Writes {
    /// `BadNotWritable`, whatever the access level says.
    #[default]
    Refused,
    /// The value goes to the cell of the variable, and that is all.
    ToCell,
    /// The manager is asked, then the cell is set.
    ToManager,
}

/// Which operations a manager takes part in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Facets {
    /// Answers `read`, for on-demand variables; without it they answer `BadNotReadable`.
    pub reader: bool,
    /// What writes do.
    pub writes: Writes,
    /// Answers `call`; without it methods answer `BadNotImplemented`.
    pub methods: bool,
    /// Wants to know which of its variables are monitored.
    pub demand: bool,
}

/// What serves a part of the address space. Everything declared in its `Model` is answered without it, but for the facets it has.
///
/// Every call is a batch, is made once for each request and manager, and must end before the context's deadline. The answer to a list has one
/// element for each element asked, in order; what is missing or of the wrong type is answered with `BadInternalError` and reported.
pub trait NodeManager: Send + Sync {
    /// For logs and metrics.
    fn name(&self) -> &str;

    /// What it takes part in; asked for each request.
    fn facets(&self) -> Facets;

    /// Reads on-demand variables. `max_age` in ms.
    fn read<'a>(
        &'a self,
        call: &'a CallContext,
        tags: &'a [u32],
        max_age: f64,
    ) -> BoxFuture<'a, Result<Vec<DataValue>, Fault>>;

    /// Writes variables. A good status lets the host publish the written value, unless another one came during the call.
    fn write<'a>(
        &'a self,
        call: &'a CallContext,
        writes: Vec<WriteOperation>,
    ) -> BoxFuture<'a, Result<Vec<StatusCode>, Fault>>;

    /// Calls one method on an object.
    fn call<'a>(
        &'a self,
        call: &'a CallContext,
        object: &'a NodeId,
        tag: u32,
        inputs: Vec<Variant>,
    ) -> BoxFuture<'a, Result<CallOutcome, Fault>>;

    /// Which of its variables are monitored, by tag, with the fastest sampling interval in ms that anybody holds (0: by exception). Always all of
    /// them, and only said to a manager whose [`Facets::demand`] is set. Must return at once.
    fn watched(&self, tags: Arc<BTreeMap<u32, f64>>) {
        let _ = tags;
    }

    /// It broke the rules above (too few results, wrong types). For logs, metrics and supervision.
    fn misbehaved(&self, detail: &str);
}
