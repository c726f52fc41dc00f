//! Which response belongs to which request, and where their headers are.

use backplane_types::{RequestHeader, ResponseHeader, Structure};

/// A request of a service.
pub trait ServiceRequest: Structure {
    /// The response of the same service.
    type Response: ServiceResponse;

    /// Its header.
    fn header_mut(&mut self) -> &mut RequestHeader;
}

/// A response of a service.
pub trait ServiceResponse: Structure {
    /// Its header.
    fn header(&self) -> &ResponseHeader;
}

macro_rules! services {
    ($($request:ident => $response:ident,)*) => {$(
        impl ServiceRequest for backplane_types::$request {
            type Response = backplane_types::$response;

            fn header_mut(&mut self) -> &mut RequestHeader {
                &mut self.request_header
            }
        }

        impl ServiceResponse for backplane_types::$response {
            fn header(&self) -> &ResponseHeader {
                &self.response_header
            }
        }
    )*};
}

services! {
    FindServersRequest => FindServersResponse,
    FindServersOnNetworkRequest => FindServersOnNetworkResponse,
    GetEndpointsRequest => GetEndpointsResponse,
    RegisterServerRequest => RegisterServerResponse,
    RegisterServer2Request => RegisterServer2Response,
    CreateSessionRequest => CreateSessionResponse,
    ActivateSessionRequest => ActivateSessionResponse,
    CloseSessionRequest => CloseSessionResponse,
    CancelRequest => CancelResponse,
    AddNodesRequest => AddNodesResponse,
    AddReferencesRequest => AddReferencesResponse,
    DeleteNodesRequest => DeleteNodesResponse,
    DeleteReferencesRequest => DeleteReferencesResponse,
    BrowseRequest => BrowseResponse,
    BrowseNextRequest => BrowseNextResponse,
    TranslateBrowsePathsToNodeIdsRequest => TranslateBrowsePathsToNodeIdsResponse,
    RegisterNodesRequest => RegisterNodesResponse,
    UnregisterNodesRequest => UnregisterNodesResponse,
    QueryFirstRequest => QueryFirstResponse,
    QueryNextRequest => QueryNextResponse,
    ReadRequest => ReadResponse,
    HistoryReadRequest => HistoryReadResponse,
    WriteRequest => WriteResponse,
    HistoryUpdateRequest => HistoryUpdateResponse,
    CallRequest => CallResponse,
    CreateMonitoredItemsRequest => CreateMonitoredItemsResponse,
    ModifyMonitoredItemsRequest => ModifyMonitoredItemsResponse,
    SetMonitoringModeRequest => SetMonitoringModeResponse,
    SetTriggeringRequest => SetTriggeringResponse,
    DeleteMonitoredItemsRequest => DeleteMonitoredItemsResponse,
    CreateSubscriptionRequest => CreateSubscriptionResponse,
    ModifySubscriptionRequest => ModifySubscriptionResponse,
    SetPublishingModeRequest => SetPublishingModeResponse,
    PublishRequest => PublishResponse,
    RepublishRequest => RepublishResponse,
    TransferSubscriptionsRequest => TransferSubscriptionsResponse,
    DeleteSubscriptionsRequest => DeleteSubscriptionsResponse,
}
