//! The Discovery services a server answers for itself (Part 4 5.5): FindServers and GetEndpoints.

use std::sync::Arc;

use backplane_types::{FindServersRequest, FindServersResponse, GetEndpointsRequest, GetEndpointsResponse, StatusCode};

use super::{Progress, Request};
use crate::endpoints::TRANSPORT_PROFILE;
use crate::respond;
use crate::shared::Shared;

/// GetEndpoints (5.5.4): all endpoints, or those with one of the profiles that were asked for.
pub(super) fn get_endpoints(
    shared: &Arc<Shared>,
    request: &Request<'_>,
    out: &mut Vec<u8>,
) -> Result<Progress, StatusCode> {
    let asked: GetEndpointsRequest = request.decode(shared)?;
    let wanted = asked.profile_uris.is_empty() || asked.profile_uris.iter().any(|uri| uri.text() == TRANSPORT_PROFILE);
    let endpoints = if wanted {
        shared.endpoints().describe(asked.endpoint_url.text())
    } else {
        Vec::new()
    };
    respond::structure(
        &GetEndpointsResponse {
            response_header: request.context.header(),
            endpoints,
        },
        out,
    );
    Ok(Progress::Done)
}

/// FindServers (5.5.2): this server, unless others were asked for.
pub(super) fn find_servers(
    shared: &Arc<Shared>,
    request: &Request<'_>,
    out: &mut Vec<u8>,
) -> Result<Progress, StatusCode> {
    let asked: FindServersRequest = request.decode(shared)?;
    let own = shared.endpoints().application(asked.endpoint_url.text());
    let wanted = asked.server_uris.is_empty() || asked.server_uris.contains(&own.application_uri);
    let servers = if wanted { vec![own] } else { Vec::new() };
    respond::structure(
        &FindServersResponse {
            response_header: request.context.header(),
            servers,
        },
        out,
    );
    Ok(Progress::Done)
}
