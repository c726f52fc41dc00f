//! The requests of the scenarios, encoded once before load begins.
//!
//! Owns what is asked; knows nothing of sockets and of answers.

use backplane_types::{
    BinaryEncode, BrowseDescription, BrowseDirection, BrowseRequest, DataValue, DateTime, Encoder, NodeId, ReadRequest,
    ReadValueId, RequestHeader, Structure, TimestampsToReturn, Variant, WriteRequest, WriteValue, ids,
};

use crate::transport::Prepared;

/// The attribute Value (Part 6, A.1).
const VALUE: u32 = 13;
/// All fields of a ReferenceDescription (Part 4, 5.9.2.2).
const ALL_FIELDS: u32 = 63;
/// The RequestHandle while a request is encoded; its place is found by it.
const HANDLE: u32 = 0x5ac3_3ca5;

/// What a closed loop asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ask {
    /// Values of `nodes`, both timestamps.
    Read,
    /// A value to each of `nodes`.
    Write,
    /// The references of the Server object, forward and hierarchical.
    Browse,
}

/// Variables `first`, `first + 1`, ... of those that are there, around the end.
pub(crate) fn window(all: &[NodeId], first: usize, count: usize) -> Vec<NodeId> {
    all.iter()
        .cycle()
        .skip(first % all.len().max(1))
        .take(count)
        .cloned()
        .collect()
}

/// A request to be sent again and again; `value` is what a Write writes.
pub(crate) fn prepare(ask: Ask, token: &NodeId, nodes: &[NodeId], value: &Variant) -> Prepared {
    let header = header(token);
    match ask {
        Ask::Read => finish(&read(header, nodes)),
        Ask::Write => finish(&write(header, nodes, value)),
        Ask::Browse => finish(&browse(header)),
    }
}

/// Any request whose header's RequestHandle will be patched.
pub(crate) fn finish<T: Structure>(request: &T) -> Prepared {
    let mut body = Vec::new();
    let mut encoder = Encoder::new(&mut body);
    NodeId::numeric(0, T::ENCODING_ID).encode(&mut encoder);
    request.encode(&mut encoder);
    // The header comes first, so the first match is the handle unless the token holds these bytes.
    let at = body
        .windows(4)
        .position(|window| window == HANDLE.to_le_bytes())
        .unwrap_or(0);
    Prepared::new(&body, at)
}

/// A request header with the handle that [`finish`] looks for.
pub(crate) fn header(token: &NodeId) -> RequestHeader {
    RequestHeader {
        authentication_token: token.clone(),
        timestamp: DateTime::from_system_time(std::time::SystemTime::now()),
        request_handle: HANDLE,
        timeout_hint: 60_000,
        ..RequestHeader::default()
    }
}

fn read(request_header: RequestHeader, nodes: &[NodeId]) -> ReadRequest {
    ReadRequest {
        request_header,
        max_age: 0.0,
        timestamps_to_return: TimestampsToReturn::BOTH,
        nodes_to_read: nodes.iter().map(value_of).collect(),
    }
}

/// The Value attribute of a node.
pub(crate) fn value_of(node: &NodeId) -> ReadValueId {
    ReadValueId {
        node_id: node.clone(),
        attribute_id: VALUE,
        ..ReadValueId::default()
    }
}

fn write(request_header: RequestHeader, nodes: &[NodeId], value: &Variant) -> WriteRequest {
    let each = |node: &NodeId| WriteValue {
        node_id: node.clone(),
        attribute_id: VALUE,
        value: DataValue::new(value.clone()),
        ..WriteValue::default()
    };
    WriteRequest {
        request_header,
        nodes_to_write: nodes.iter().map(each).collect(),
    }
}

fn browse(request_header: RequestHeader) -> BrowseRequest {
    BrowseRequest {
        request_header,
        nodes_to_browse: vec![BrowseDescription {
            node_id: NodeId::numeric(0, ids::object::SERVER),
            browse_direction: BrowseDirection::FORWARD,
            reference_type_id: NodeId::numeric(0, ids::reference_type::HIERARCHICAL_REFERENCES),
            include_subtypes: true,
            node_class_mask: 0,
            result_mask: ALL_FIELDS,
        }],
        ..BrowseRequest::default()
    }
}
