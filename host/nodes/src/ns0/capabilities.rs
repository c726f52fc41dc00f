//! The values of the Server object: what the server is, what it can do, and the limits it enforces (Part 5, 6.3.1, 6.3.2 and 6.3.11).

use std::sync::Arc;

use backplane_types::{
    DataValue, DateTime, ExtensionObject, Now, RedundancySupport, TimeZoneDataType, Variant, ids::variable as id,
};

use crate::ns0::status::ServerStatus;
use crate::space::AddressSpace;

/// What the server says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerInfo {
    /// The first entry of ServerArray.
    pub application_uri: String,
    /// ServerProfileArray: URIs of profiles.
    pub profiles: Vec<String>,
    /// LocaleIdArray.
    pub locales: Vec<String>,
    /// Whether the server makes audit events.
    pub auditing: bool,
}

/// ServerCapabilities that other parts of the server enforce; those of this crate come from its own `Limits`. 0: no limit, or not supported.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Capabilities {
    /// MinSupportedSampleRate, in ms.
    pub min_supported_sample_rate: f64,
    /// MaxArrayLength of a message's arrays.
    pub max_array_length: u32,
    /// MaxStringLength, in bytes.
    pub max_string_length: u32,
    /// MaxByteStringLength, in bytes.
    pub max_byte_string_length: u32,
    /// MaxSessions.
    pub max_sessions: u32,
    /// MaxSubscriptions.
    pub max_subscriptions: u32,
    /// MaxSubscriptionsPerSession.
    pub max_subscriptions_per_session: u32,
    /// MaxMonitoredItems.
    pub max_monitored_items: u32,
    /// MaxMonitoredItemsPerSubscription.
    pub max_monitored_items_per_subscription: u32,
    /// MaxMonitoredItemsQueueSize.
    pub max_monitored_items_queue_size: u32,
    /// MaxSelectClauseParameters of an EventFilter.
    pub max_select_clause_parameters: u32,
    /// MaxWhereClauseParameters of an EventFilter.
    pub max_where_clause_parameters: u32,
    /// MaxHistoryContinuationPoints.
    pub max_history_continuation_points: u16,
    /// OperationLimits.MaxMonitoredItemsPerCall.
    pub max_monitored_items_per_call: u32,
    /// OperationLimits.MaxNodesPerHistoryReadData.
    pub max_nodes_per_history_read_data: u32,
    /// OperationLimits.MaxNodesPerHistoryReadEvents.
    pub max_nodes_per_history_read_events: u32,
    /// OperationLimits.MaxNodesPerHistoryUpdateData.
    pub max_nodes_per_history_update_data: u32,
    /// OperationLimits.MaxNodesPerHistoryUpdateEvents.
    pub max_nodes_per_history_update_events: u32,
    /// OperationLimits.MaxNodesPerNodeManagement.
    pub max_nodes_per_node_management: u32,
    /// The aggregate functions of monitored items: the numbers of their nodes in namespace 0. The folder AggregateFunctions references them.
    pub aggregate_functions: &'static [u32],
}

/// How a node of the Server object gets its value.
pub(super) enum Given {
    Static(Variant),
    Live(Box<dyn Fn(Now) -> DataValue + Send + Sync>),
}

/// The values of the Server object, by the number of the node.
pub(super) fn values(
    space: &AddressSpace,
    info: &ServerInfo,
    capabilities: &Capabilities,
    status: &Arc<ServerStatus>,
) -> Vec<(u32, Given)> {
    let mut values = live(space, status);
    let texts = |texts: &[String]| {
        Given::Static(Variant::from(
            texts.iter().map(Into::into).collect::<Vec<backplane_types::UaString>>(),
        ))
    };
    values.extend([
        (
            id::SERVER_SERVER_ARRAY,
            texts(std::slice::from_ref(&info.application_uri)),
        ),
        (
            id::SERVER_SERVER_CAPABILITIES_SERVER_PROFILE_ARRAY,
            texts(&info.profiles),
        ),
        (id::SERVER_SERVER_CAPABILITIES_LOCALE_ID_ARRAY, texts(&info.locales)),
        (
            id::SERVER_SERVER_CAPABILITIES_SOFTWARE_CERTIFICATES,
            Given::Static(Variant::from(Vec::<ExtensionObject>::new())),
        ),
        (
            id::SERVER_SERVER_CAPABILITIES_MIN_SUPPORTED_SAMPLE_RATE,
            Given::Static(Variant::Double(capabilities.min_supported_sample_rate)),
        ),
        (
            id::SERVER_LOCAL_TIME,
            // Everything in the server is UTC.
            Given::Static(Variant::from(ExtensionObject::from_structure(
                &TimeZoneDataType::default(),
            ))),
        ),
        (id::SERVER_AUDITING, Given::Static(Variant::Boolean(info.auditing))),
        (
            id::SERVER_SERVER_REDUNDANCY_REDUNDANCY_SUPPORT,
            Given::Static(Variant::from(RedundancySupport::NONE)),
        ),
        (
            id::SERVER_SERVER_DIAGNOSTICS_ENABLED_FLAG,
            Given::Static(Variant::Boolean(false)),
        ),
    ]);
    values.extend(small_numbers(space, capabilities).map(|(id, value)| (id, Given::Static(Variant::UInt16(value)))));
    let numbers = own_limits(space).into_iter().chain(other_limits(capabilities));
    values.extend(numbers.map(|(id, value)| (id, Given::Static(Variant::UInt32(value)))));
    values
}

fn live(space: &AddressSpace, status: &Arc<ServerStatus>) -> Vec<(u32, Given)> {
    let shown = |value: fn(&ServerStatus, Now) -> Variant| {
        let status = Arc::clone(status);
        Given::Live(Box::new(move |now| present(value(&status, now), now.utc)))
    };
    let namespaces = Arc::clone(space.namespaces());
    vec![
        (
            id::SERVER_NAMESPACE_ARRAY,
            Given::Live(Box::new(move |now| present(namespaces.value(), now.utc))),
        ),
        (
            id::SERVER_SERVICE_LEVEL,
            shown(|status, _| Variant::Byte(status.service_level())),
        ),
        (id::SERVER_SERVER_STATUS, shown(ServerStatus::value)),
        (
            id::SERVER_SERVER_STATUS_START_TIME,
            shown(|status, _| Variant::DateTime(status.start_time())),
        ),
        (
            id::SERVER_SERVER_STATUS_CURRENT_TIME,
            shown(|_, now| Variant::DateTime(now.utc)),
        ),
        (
            id::SERVER_SERVER_STATUS_STATE,
            shown(|status, _| Variant::from(status.state())),
        ),
        (
            id::SERVER_SERVER_STATUS_SECONDS_TILL_SHUTDOWN,
            shown(|status, now| Variant::UInt32(status.seconds_till_shutdown(now))),
        ),
        (
            id::SERVER_SERVER_STATUS_SHUTDOWN_REASON,
            shown(|status, _| Variant::from(status.shutdown_reason())),
        ),
        (
            id::SERVER_SERVER_STATUS_BUILD_INFO,
            shown(|status, _| Variant::from(ExtensionObject::from_structure(status.build_info()))),
        ),
        (
            id::SERVER_SERVER_STATUS_BUILD_INFO_PRODUCT_URI,
            shown(|status, _| Variant::from(status.build_info().product_uri.clone())),
        ),
        (
            id::SERVER_SERVER_STATUS_BUILD_INFO_MANUFACTURER_NAME,
            shown(|status, _| Variant::from(status.build_info().manufacturer_name.clone())),
        ),
        (
            id::SERVER_SERVER_STATUS_BUILD_INFO_PRODUCT_NAME,
            shown(|status, _| Variant::from(status.build_info().product_name.clone())),
        ),
        (
            id::SERVER_SERVER_STATUS_BUILD_INFO_SOFTWARE_VERSION,
            shown(|status, _| Variant::from(status.build_info().software_version.clone())),
        ),
        (
            id::SERVER_SERVER_STATUS_BUILD_INFO_BUILD_NUMBER,
            shown(|status, _| Variant::from(status.build_info().build_number.clone())),
        ),
        (
            id::SERVER_SERVER_STATUS_BUILD_INFO_BUILD_DATE,
            shown(|status, _| Variant::DateTime(status.build_info().build_date)),
        ),
    ]
}

fn present(value: Variant, now: DateTime) -> DataValue {
    DataValue {
        source_timestamp: Some(now),
        server_timestamp: Some(now),
        ..DataValue::new(value)
    }
}

fn small_numbers(space: &AddressSpace, capabilities: &Capabilities) -> impl Iterator<Item = (u32, u16)> + use<> {
    [
        (
            id::SERVER_SERVER_CAPABILITIES_MAX_BROWSE_CONTINUATION_POINTS,
            space.limits().max_browse_continuation_points,
        ),
        (id::SERVER_SERVER_CAPABILITIES_MAX_QUERY_CONTINUATION_POINTS, 0),
        (
            id::SERVER_SERVER_CAPABILITIES_MAX_HISTORY_CONTINUATION_POINTS,
            capabilities.max_history_continuation_points,
        ),
    ]
    .into_iter()
}

/// What this crate enforces.
fn own_limits(space: &AddressSpace) -> [(u32, u32); 6] {
    let limits = space.limits();
    [
        (
            id::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_READ,
            limits.max_nodes_per_read,
        ),
        (
            id::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_WRITE,
            limits.max_nodes_per_write,
        ),
        (
            id::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_METHOD_CALL,
            limits.max_nodes_per_method_call,
        ),
        (
            id::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_BROWSE,
            limits.max_nodes_per_browse,
        ),
        (
            id::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_REGISTER_NODES,
            limits.max_nodes_per_register_nodes,
        ),
        (
            id::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_TRANSLATE_BROWSE_PATHS_TO_NODE_IDS,
            limits.max_nodes_per_translate,
        ),
    ]
}

/// What the rest of the server enforces.
fn other_limits(of: &Capabilities) -> [(u32, u32); 17] {
    [
        (id::SERVER_SERVER_CAPABILITIES_MAX_ARRAY_LENGTH, of.max_array_length),
        (id::SERVER_SERVER_CAPABILITIES_MAX_STRING_LENGTH, of.max_string_length),
        (
            id::SERVER_SERVER_CAPABILITIES_MAX_BYTE_STRING_LENGTH,
            of.max_byte_string_length,
        ),
        (id::SERVER_SERVER_CAPABILITIES_MAX_SESSIONS, of.max_sessions),
        (id::SERVER_SERVER_CAPABILITIES_MAX_SUBSCRIPTIONS, of.max_subscriptions),
        (
            id::SERVER_SERVER_CAPABILITIES_MAX_SUBSCRIPTIONS_PER_SESSION,
            of.max_subscriptions_per_session,
        ),
        (
            id::SERVER_SERVER_CAPABILITIES_MAX_MONITORED_ITEMS,
            of.max_monitored_items,
        ),
        (
            id::SERVER_SERVER_CAPABILITIES_MAX_MONITORED_ITEMS_PER_SUBSCRIPTION,
            of.max_monitored_items_per_subscription,
        ),
        (
            id::SERVER_SERVER_CAPABILITIES_MAX_MONITORED_ITEMS_QUEUE_SIZE,
            of.max_monitored_items_queue_size,
        ),
        (
            id::SERVER_SERVER_CAPABILITIES_MAX_SELECT_CLAUSE_PARAMETERS,
            of.max_select_clause_parameters,
        ),
        (
            id::SERVER_SERVER_CAPABILITIES_MAX_WHERE_CLAUSE_PARAMETERS,
            of.max_where_clause_parameters,
        ),
        (
            id::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_MONITORED_ITEMS_PER_CALL,
            of.max_monitored_items_per_call,
        ),
        (
            id::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_HISTORY_READ_DATA,
            of.max_nodes_per_history_read_data,
        ),
        (
            id::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_HISTORY_READ_EVENTS,
            of.max_nodes_per_history_read_events,
        ),
        (
            id::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_HISTORY_UPDATE_DATA,
            of.max_nodes_per_history_update_data,
        ),
        (
            id::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_HISTORY_UPDATE_EVENTS,
            of.max_nodes_per_history_update_events,
        ),
        (
            id::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_NODE_MANAGEMENT,
            of.max_nodes_per_node_management,
        ),
    ]
}
