//! Message bodies: the type id of a request or response, then its structure.

use std::fmt::Debug;

use backplane_types::service::RequestKind;
use backplane_types::structures;
use backplane_types::view::{NodeIdRef, RequestPeek};
use backplane_types::{
    BinaryDecode, BinaryEncode, DecodeError, DecodeLimits, Decoder, RequestHeader, ServiceFault, Structure,
};

use crate::check::{TIGHT, round_trip};
use crate::feedback::note;

/// Which half of a service.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(crate) enum Half {
    Request,
    Response,
}

/// Something to do with a structure.
pub(crate) trait WithStructure {
    type Output;

    fn run<T: Structure + BinaryDecode + BinaryEncode + PartialEq + Debug + Default>(self) -> Self::Output;
}

/// Picks the structure of a message by its service; the match makes sure that no service is missing.
macro_rules! messages {
    ($($kind:ident $request:ident $response:ident;)*) => {
        /// Runs `with` for the structure of a service's request or response.
        pub(crate) fn with_message<W: WithStructure>(kind: RequestKind, half: Half, with: W) -> W::Output {
            match (kind, half) {
                $(
                    (RequestKind::$kind, Half::Request) => with.run::<structures::$request>(),
                    (RequestKind::$kind, Half::Response) => with.run::<structures::$response>(),
                )*
            }
        }
    };
}

messages! {
    FindServers FindServersRequest FindServersResponse;
    GetEndpoints GetEndpointsRequest GetEndpointsResponse;
    RegisterServer RegisterServerRequest RegisterServerResponse;
    OpenSecureChannel OpenSecureChannelRequest OpenSecureChannelResponse;
    CloseSecureChannel CloseSecureChannelRequest CloseSecureChannelResponse;
    CreateSession CreateSessionRequest CreateSessionResponse;
    ActivateSession ActivateSessionRequest ActivateSessionResponse;
    CloseSession CloseSessionRequest CloseSessionResponse;
    Cancel CancelRequest CancelResponse;
    AddNodes AddNodesRequest AddNodesResponse;
    AddReferences AddReferencesRequest AddReferencesResponse;
    DeleteNodes DeleteNodesRequest DeleteNodesResponse;
    DeleteReferences DeleteReferencesRequest DeleteReferencesResponse;
    Browse BrowseRequest BrowseResponse;
    BrowseNext BrowseNextRequest BrowseNextResponse;
    TranslateBrowsePathsToNodeIds TranslateBrowsePathsToNodeIdsRequest TranslateBrowsePathsToNodeIdsResponse;
    RegisterNodes RegisterNodesRequest RegisterNodesResponse;
    UnregisterNodes UnregisterNodesRequest UnregisterNodesResponse;
    QueryFirst QueryFirstRequest QueryFirstResponse;
    QueryNext QueryNextRequest QueryNextResponse;
    Read ReadRequest ReadResponse;
    HistoryRead HistoryReadRequest HistoryReadResponse;
    Write WriteRequest WriteResponse;
    HistoryUpdate HistoryUpdateRequest HistoryUpdateResponse;
    Call CallRequest CallResponse;
    CreateMonitoredItems CreateMonitoredItemsRequest CreateMonitoredItemsResponse;
    ModifyMonitoredItems ModifyMonitoredItemsRequest ModifyMonitoredItemsResponse;
    SetMonitoringMode SetMonitoringModeRequest SetMonitoringModeResponse;
    SetTriggering SetTriggeringRequest SetTriggeringResponse;
    DeleteMonitoredItems DeleteMonitoredItemsRequest DeleteMonitoredItemsResponse;
    CreateSubscription CreateSubscriptionRequest CreateSubscriptionResponse;
    ModifySubscription ModifySubscriptionRequest ModifySubscriptionResponse;
    SetPublishingMode SetPublishingModeRequest SetPublishingModeResponse;
    Publish PublishRequest PublishResponse;
    Republish RepublishRequest RepublishResponse;
    TransferSubscriptions TransferSubscriptionsRequest TransferSubscriptionsResponse;
    DeleteSubscriptions DeleteSubscriptionsRequest DeleteSubscriptionsResponse;
    FindServersOnNetwork FindServersOnNetworkRequest FindServersOnNetworkResponse;
    RegisterServer2 RegisterServer2Request RegisterServer2Response;
}

/// The decoder of every request and response accepts or refuses; what it accepts survives encoding. Tight limits refuse more, never less. The
/// header read in place is the header that is decoded.
pub fn message(data: &[u8]) {
    let generous = decode(data, DecodeLimits::DEFAULT);
    let tight = decode(data, TIGHT);
    if let (Some(generous), Some(tight)) = (generous, tight) {
        assert!(
            generous.is_ok() || tight.is_err(),
            "tight limits accept what {generous:?}"
        );
    }
    peek(data, DecodeLimits::DEFAULT);
    peek(data, TIGHT);
}

struct RoundTrip<'a, 'b>(&'a mut Decoder<'b>);

impl WithStructure for RoundTrip<'_, '_> {
    type Output = Result<(), DecodeError>;

    fn run<T: Structure + BinaryDecode + BinaryEncode + PartialEq + Debug + Default>(self) -> Self::Output {
        round_trip::<T>(self.0).map(drop)
    }
}

fn decode(data: &[u8], limits: DecodeLimits) -> Option<Result<(), DecodeError>> {
    let mut decoder = Decoder::new(data, limits);
    let id = NodeIdRef::decode(&mut decoder).ok()?.as_standard()?;
    note(id);
    if id == ServiceFault::ENCODING_ID {
        return Some(round_trip::<ServiceFault>(&mut decoder).map(drop));
    }
    let request = RequestKind::from_encoding_id(id).map(|kind| (kind, Half::Request));
    let response = || RequestKind::from_response_encoding_id(id).map(|kind| (kind, Half::Response));
    let (kind, half) = request.or_else(response)?;
    Some(with_message(kind, half, RoundTrip(&mut decoder)))
}

fn peek(data: &[u8], limits: DecodeLimits) {
    let peek = crate::check::within(0, || RequestPeek::parse(data, limits));
    let mut decoder = Decoder::new(data, limits);
    let owned = NodeIdRef::decode(&mut decoder).and_then(|id| Ok((id, RequestHeader::decode(&mut decoder)?)));
    match (peek, owned) {
        (Ok(peek), Ok((id, header))) => {
            assert_eq!(peek.header.to_owned(), header);
            assert_eq!(peek.body, decoder.rest());
            assert_eq!(peek.type_id, id.as_standard().unwrap_or(0));
        }
        (Err(one), Err(other)) => assert_eq!(one, other),
        (peek, owned) => panic!("in place {peek:?}, but {owned:?}"),
    }
}
