//! What is measured on: an address space with namespace 0, 300 variables that the host keeps and 64 that a manager is asked for.

use std::sync::Arc;
use std::time::Duration;

use backplane_nodes::ns0::{self, Capabilities, NoMethods, ServerInfo, ServerStatus};
use backplane_nodes::{
    AddressSpace, BoxFuture, CallContext, CallOutcome, Caller, Facets, Fault, Limits, Model, ModelBuilder,
    NamespaceTable, NodeManager, WriteOperation, Writes,
};
use backplane_types::{BuildInfo, DataValue, DateTime, NodeId, Now, QualifiedName, StatusCode, Variant, ids};

const NAMESPACE: u16 = 2;
/// Variables that the host keeps.
pub(crate) const KEPT: u32 = 300;
/// Variables that a manager is asked for.
pub(crate) const ON_DEMAND: u32 = 64;

/// Answers every tag with itself.
struct Echo;

impl NodeManager for Echo {
    fn name(&self) -> &str {
        "echo"
    }

    fn facets(&self) -> Facets {
        Facets {
            reader: true,
            writes: Writes::ToCell,
            methods: false,
            demand: false,
        }
    }

    fn read<'a>(
        &'a self,
        _call: &'a CallContext,
        tags: &'a [u32],
        _max_age: f64,
    ) -> BoxFuture<'a, Result<Vec<DataValue>, Fault>> {
        Box::pin(async move { Ok(tags.iter().map(|tag| DataValue::new(f64::from(*tag))).collect()) })
    }

    fn write<'a>(
        &'a self,
        _call: &'a CallContext,
        _writes: Vec<WriteOperation>,
    ) -> BoxFuture<'a, Result<Vec<StatusCode>, Fault>> {
        Box::pin(async { Err(Fault::new(StatusCode::BAD_NOT_WRITABLE, "writes go to cells")) })
    }

    fn call<'a>(
        &'a self,
        _call: &'a CallContext,
        _object: &'a NodeId,
        _tag: u32,
        _inputs: Vec<Variant>,
    ) -> BoxFuture<'a, Result<CallOutcome, Fault>> {
        Box::pin(async { Err(Fault::new(StatusCode::BAD_NOT_IMPLEMENTED, "no methods")) })
    }

    fn misbehaved(&self, _detail: &str) {}
}

pub(crate) fn now() -> Now {
    Now::new(Duration::from_secs(10), DateTime::from_ticks(133_000_000_000_000_000))
}

pub(crate) fn caller() -> CallContext {
    CallContext {
        caller: Arc::new(Caller::anonymous()),
        deadline: Duration::from_secs(1_000),
        deadline_utc: DateTime::from_ticks(134_000_000_000_000_000),
        trace_parent: None,
        internal: false,
    }
}

/// The id of a variable that the host keeps.
pub(crate) fn kept(number: u32) -> NodeId {
    NodeId::string(NAMESPACE, format!("Line1.Machine{number:03}.Speed").as_str())
}

/// The id of a variable that a manager is asked for.
pub(crate) fn on_demand(number: u32) -> NodeId {
    NodeId::string(NAMESPACE, format!("Line1.Device{number:03}.Speed").as_str())
}

fn capabilities() -> Capabilities {
    Capabilities {
        min_supported_sample_rate: 10.0,
        max_array_length: 1_000_000,
        max_string_length: 1_000_000,
        max_byte_string_length: 1_000_000,
        max_sessions: 100,
        max_subscriptions: 1_000,
        max_subscriptions_per_session: 100,
        max_monitored_items: 1_000_000,
        max_monitored_items_per_subscription: 100_000,
        max_monitored_items_queue_size: 1_000,
        max_select_clause_parameters: 100,
        max_where_clause_parameters: 100,
        max_history_continuation_points: 0,
        max_monitored_items_per_call: 10_000,
        max_nodes_per_history_read_data: 0,
        max_nodes_per_history_read_events: 0,
        max_nodes_per_history_update_data: 0,
        max_nodes_per_history_update_events: 0,
        max_nodes_per_node_management: 0,
        aggregate_functions: &[],
    }
}

/// The address space.
pub(crate) fn space() -> Result<AddressSpace, String> {
    let limits = Limits::default();
    let namespaces = NamespaceTable::new(
        "urn:backplane:instructions",
        &["urn:backplane:instructions:line".to_owned()],
        100,
    );
    let space = AddressSpace::new(limits, Arc::new(namespaces));
    let info = ServerInfo {
        application_uri: "urn:backplane:instructions".to_owned(),
        profiles: Vec::new(),
        locales: vec!["en".to_owned()],
        auditing: false,
    };
    let status = Arc::new(ServerStatus::new(now().utc, BuildInfo::default()));
    ns0::attach(&space, &info, &capabilities(), &status, Arc::new(NoMethods)).map_err(|error| error.to_string())?;
    let mut steps = ModelBuilder::new(limits, now());
    let folder = NodeId::numeric(0, ids::object::OBJECTS_FOLDER);
    let ids = (1..=KEPT).map(kept).chain((1..=ON_DEMAND).map(on_demand));
    for (tag, id) in (1u32..).zip(ids) {
        let name = QualifiedName::new(NAMESPACE, id.to_string().as_str());
        let double = NodeId::numeric(0, ids::data_type::DOUBLE);
        steps.variable(
            id.clone(),
            folder.clone(),
            name,
            tag,
            double,
            DataValue::new(f64::from(tag)),
            3,
        );
        if tag > KEPT {
            steps.on_demand(id, 0.0);
        }
    }
    let model = Model::empty()
        .changed(&steps, &space.snapshot())
        .map_err(|error| error.to_string())?;
    space.attach(Arc::new(Echo), model).map_err(|error| error.to_string())?;
    Ok(space)
}
