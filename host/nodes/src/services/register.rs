//! RegisterNodes and UnregisterNodes (Part 4, 5.9.5 and 5.9.6). Look-ups cost the same for every id, so the ids given back are the ones that came.

use backplane_types::view::{DecodeRef, NodeIdRef};
use backplane_types::{BinaryEncode, Decoder, Encoder, StatusCode};

use super::{ServiceContext, open_list};
use crate::space::Snapshot;

/// RegisterNodes.
///
/// # Errors
/// `BadNothingToDo`, `BadTooManyOperations`, `BadNodeIdInvalid` for a null id, those of decoding.
pub fn register_nodes(
    snapshot: &Snapshot,
    cx: &ServiceContext<'_>,
    body: &[u8],
    out: &mut Encoder<'_>,
) -> Result<(), StatusCode> {
    let mut decoder = Decoder::new(body, cx.decode);
    let count = open_list(
        &mut decoder,
        NodeIdRef::MIN_SIZE,
        snapshot.limits.max_nodes_per_register_nodes,
    )?;
    out.i32(i32::try_from(count).unwrap_or(i32::MAX));
    for _ in 0..count {
        let id = NodeIdRef::decode(&mut decoder).map_err(StatusCode::from)?;
        if id.is_null() {
            return Err(StatusCode::BAD_NODE_ID_INVALID);
        }
        id.encode(out);
    }
    Ok(())
}

/// UnregisterNodes; its response has no body. Ids that were never registered are passed over (5.9.6.1).
///
/// # Errors
/// `BadNothingToDo`, `BadTooManyOperations`, those of decoding.
pub fn unregister_nodes(
    snapshot: &Snapshot,
    cx: &ServiceContext<'_>,
    body: &[u8],
    _out: &mut Encoder<'_>,
) -> Result<(), StatusCode> {
    let mut decoder = Decoder::new(body, cx.decode);
    let count = open_list(
        &mut decoder,
        NodeIdRef::MIN_SIZE,
        snapshot.limits.max_nodes_per_register_nodes,
    )?;
    for _ in 0..count {
        NodeIdRef::decode(&mut decoder).map_err(StatusCode::from)?;
    }
    Ok(())
}
