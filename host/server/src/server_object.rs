//! The Server object of namespace 0: what this server says of itself (Part 5 6.3, Part 7).
//!
//! Owns the profiles that are claimed and the numbers that clients see; each number is the one that is enforced.

use std::sync::Arc;

use backplane_nodes::AddressSpace;
use backplane_nodes::ns0::{self, Capabilities, HostMethods, Namespace0Error, ServerInfo, ServerStatus};
use backplane_session::FilterLimits;
use backplane_types::BuildInfo;

use crate::clock::Clock;
use crate::config::Config;
use crate::endpoints::TRANSPORT_PROFILE;
use crate::server::max_subscriptions;

/// What tests show to hold, and nothing beyond it.
const PROFILES: [&str; 1] = [TRANSPORT_PROFILE];

/// Adds namespace 0 with a live Server object.
///
/// # Errors
/// When the compiled-in table is damaged or does not fit.
pub(crate) fn attach(
    space: &AddressSpace,
    config: &Config,
    clock: Clock,
    methods: Arc<dyn HostMethods>,
) -> Result<Arc<ServerStatus>, Namespace0Error> {
    let build = BuildInfo {
        product_uri: config.product_uri.as_str().into(),
        manufacturer_name: "Backplane".into(),
        product_name: config.application_name.as_str().into(),
        software_version: env!("CARGO_PKG_VERSION").into(),
        ..BuildInfo::default()
    };
    let status = Arc::new(ServerStatus::new(clock.now().utc, build));
    let info = ServerInfo {
        application_uri: config.application_uri.clone(),
        profiles: PROFILES.map(str::to_owned).to_vec(),
        locales: vec!["en".to_owned()],
        auditing: config.auditing,
    };
    let limits = &config.limits;
    let filter = FilterLimits::default();
    let clauses = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let capabilities = Capabilities {
        min_supported_sample_rate: limits.sampling_interval,
        max_array_length: limits.array_length,
        max_string_length: limits.string_length,
        max_byte_string_length: limits.byte_string_length,
        max_sessions: limits.sessions,
        max_subscriptions: max_subscriptions(limits),
        max_subscriptions_per_session: limits.subscriptions_per_session,
        max_monitored_items: u32::MAX,
        max_monitored_items_per_subscription: limits.monitored_items_per_subscription,
        max_monitored_items_queue_size: limits.monitored_item_queue,
        max_monitored_items_per_call: limits.operations_per_request,
        max_select_clause_parameters: clauses(filter.max_select_clauses),
        max_where_clause_parameters: clauses(filter.max_where_elements),
        // Not supported.
        max_history_continuation_points: 0,
        max_nodes_per_history_read_data: 0,
        max_nodes_per_history_read_events: 0,
        max_nodes_per_history_update_data: 0,
        max_nodes_per_history_update_events: 0,
        max_nodes_per_node_management: 0,
        aggregate_functions: backplane_session::AGGREGATE_FUNCTIONS,
    };
    ns0::attach(space, &info, &capabilities, &status, methods)?;
    Ok(status)
}
