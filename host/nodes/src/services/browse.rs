//! Browse and BrowseNext (Part 4, 5.9.2 and 5.9.3).

use std::sync::Arc;

use backplane_types::view::{BrowseDescriptionRef, BrowseNextView, BrowseView};
use backplane_types::{BinaryEncode, BrowseDirection, Encoder, StatusCode};

use super::continuation::{ContinuationPoints, Point};
use super::pages::{Looked, Question};
use super::{ServiceContext, check_count, check_size, no_diagnostics};
use crate::graph::{Edge, Graph, NodeKey};
use crate::manager::CallContext;
use crate::model::node::{Body, Node};
use crate::rights;
use crate::space::Snapshot;

/// Bits of BrowseResultMask (Part 4, 5.9.2.2).
mod result {
    pub(super) const REFERENCE_TYPE: u32 = 1;
    pub(super) const IS_FORWARD: u32 = 1 << 1;
    pub(super) const NODE_CLASS: u32 = 1 << 2;
    pub(super) const BROWSE_NAME: u32 = 1 << 3;
    pub(super) const DISPLAY_NAME: u32 = 1 << 4;
    pub(super) const TYPE_DEFINITION: u32 = 1 << 5;
}

/// One browsed node: what is wanted of it, and how far it has come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    key: NodeKey,
    next: usize,
    direction: BrowseDirection,
    /// None: every type.
    reference_type: Option<NodeKey>,
    include_subtypes: bool,
    class_mask: u32,
    result_mask: u32,
    limit: u32,
}

impl Position {
    fn wants(&self, graph: &Graph, edge: &Edge, memo: &mut Option<(NodeKey, bool)>) -> bool {
        let direction = match self.direction {
            BrowseDirection::FORWARD => edge.forward,
            BrowseDirection::INVERSE => !edge.forward,
            _ => true,
        };
        direction
            && self
                .reference_type
                .is_none_or(|wanted| self.is_wanted_type(graph, edge.kind, wanted, memo))
    }

    /// References of one type tend to follow each other, so the last answer is kept.
    fn is_wanted_type(
        &self,
        graph: &Graph,
        kind: NodeKey,
        wanted: NodeKey,
        memo: &mut Option<(NodeKey, bool)>,
    ) -> bool {
        if !self.include_subtypes {
            return kind == wanted;
        }
        if let Some((known, answer)) = *memo
            && known == kind
        {
            return answer;
        }
        let answer = graph.is_a(kind, wanted);
        *memo = Some((kind, answer));
        answer
    }

    /// The wanted references from `next` on, each with its position and target.
    fn matches<'g>(&self, graph: &'g Graph, call: &CallContext) -> impl Iterator<Item = (usize, Edge, &'g Node)> {
        let this = *self;
        let mut memo = None;
        graph.edges(this.key, this.next).filter_map(move |(position, edge)| {
            if !this.wants(graph, &edge, &mut memo) {
                return None;
            }
            let node = graph.node(edge.target)?;
            let class = this.class_mask == 0 || this.class_mask & node.body.class() != 0;
            (class && rights::is_visible(graph, edge.target.slot, node, call)).then_some((position, edge, node))
        })
    }

    /// The place of the first reference that does not fit into a response, if there is one.
    fn overflow(&self, graph: &Graph, call: &CallContext) -> Option<usize> {
        let limit = self.limit as usize;
        if graph.edge_bound(self.key).saturating_sub(self.next) <= limit {
            return None;
        }
        self.matches(graph, call).nth(limit).map(|(position, _, _)| position)
    }
}

/// Browse.
///
/// # Errors
/// `BadNothingToDo`, `BadTooManyOperations`, `BadViewIdUnknown`, `BadResponseTooLarge`, those of decoding.
pub fn browse(
    snapshot: &Snapshot,
    cx: &ServiceContext<'_>,
    points: &mut ContinuationPoints,
    body: &[u8],
    out: &mut Encoder<'_>,
) -> Result<(), StatusCode> {
    let start = out.position();
    let view = BrowseView::parse(body, cx.decode).map_err(StatusCode::from)?;
    check_count(view.nodes_to_browse.len(), snapshot.limits.max_nodes_per_browse)?;
    if !view.view_id.is_null() {
        // A view shows everything that hangs on it; its timestamp and version are of no use, as views do not change in here.
        let node = snapshot.graph.find_ref(view.view_id).and_then(|key| snapshot.node(key));
        if !node.is_some_and(|node| matches!(node.body, Body::View { .. })) {
            return Err(StatusCode::BAD_VIEW_ID_UNKNOWN);
        }
    }
    let most = snapshot.limits.max_references_per_node;
    let limit = match view.requested_max_references_per_node {
        0 => most,
        wanted => wanted.min(most),
    };
    points.begin_request();
    out.i32(i32::try_from(view.nodes_to_browse.len()).unwrap_or(i32::MAX));
    let mut operations = view.nodes_to_browse.iter();
    while let Some(operation) = operations.next_with_bytes() {
        let (operation, bytes) = operation.map_err(StatusCode::from)?;
        let question = Question {
            caller: &cx.call.caller,
            limit,
            operation: bytes,
            rights: snapshot.graph.rights_version(),
        };
        let pages = &snapshot.graph.pages;
        let looked = if cx.call.internal {
            Looked::Missing
        } else {
            pages.look(&question, |result| out.raw(result))
        };
        if !matches!(looked, Looked::Found) {
            let begin = out.position();
            let complete = browse_one(snapshot, cx, &operation, limit, points, out);
            if let Looked::Wanted(number) = looked
                && complete
                && out.error().is_none()
            {
                pages.keep(number, &question, out.written_from(begin));
            }
        }
        check_size(out, start, cx)?;
    }
    no_diagnostics(out);
    Ok(())
}

/// Appends one BrowseResult. Whether it says all there is to say.
fn browse_one(
    snapshot: &Snapshot,
    cx: &ServiceContext<'_>,
    operation: &BrowseDescriptionRef<'_>,
    limit: u32,
    points: &mut ContinuationPoints,
    out: &mut Encoder<'_>,
) -> bool {
    match open(snapshot, cx.call, operation, limit) {
        Ok(position) => {
            let graph = Arc::clone(&snapshot.graph);
            page(Point { graph, position }, snapshot, cx, points, out)
        }
        Err(status) => {
            refuse(status, out);
            false
        }
    }
}

fn open(
    snapshot: &Snapshot,
    call: &CallContext,
    operation: &BrowseDescriptionRef<'_>,
    limit: u32,
) -> Result<Position, StatusCode> {
    let key = snapshot
        .graph
        .find_ref(operation.node_id)
        .ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
    let node = snapshot.node(key).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
    rights::check(&snapshot.graph, key.slot, node, call, rights::permission::BROWSE)?;
    if !(0..=2).contains(&operation.browse_direction.0) {
        return Err(StatusCode::BAD_BROWSE_DIRECTION_INVALID);
    }
    let reference_type = if operation.reference_type_id.is_null() {
        None
    } else {
        let found = snapshot.graph.find_ref(operation.reference_type_id);
        let is_type = |key: &NodeKey| {
            snapshot
                .node(*key)
                .is_some_and(|node| matches!(node.body, Body::ReferenceType(_)))
        };
        Some(found.filter(is_type).ok_or(StatusCode::BAD_REFERENCE_TYPE_ID_INVALID)?)
    };
    Ok(Position {
        key,
        next: 0,
        direction: operation.browse_direction,
        reference_type,
        include_subtypes: operation.include_subtypes,
        class_mask: operation.node_class_mask,
        result_mask: operation.result_mask,
        limit,
    })
}

/// Appends a BrowseResult that has nothing but a status.
fn refuse(status: StatusCode, out: &mut Encoder<'_>) {
    out.u32(status.0);
    out.byte_string(None);
    out.i32(-1);
}

/// Appends one BrowseResult with the next references, and holds a continuation point if there are more. Whether there are none.
fn page(
    point: Point,
    snapshot: &Snapshot,
    cx: &ServiceContext<'_>,
    points: &mut ContinuationPoints,
    out: &mut Encoder<'_>,
) -> bool {
    let Point { graph, position } = point;
    let overflow = position.overflow(&graph, cx.call);
    let most = snapshot.limits.max_browse_continuation_points;
    if overflow.is_some() && !points.has_room(most) {
        refuse(StatusCode::BAD_NO_CONTINUATION_POINTS, out);
        return false;
    }
    out.u32(StatusCode::GOOD.0);
    match overflow {
        Some(next) => {
            let rest = Point {
                graph: Arc::clone(&graph),
                position: Position { next, ..position },
            };
            out.byte_string(Some(&points.add(rest, most)));
        }
        None => out.byte_string(None),
    }
    let mut list = out.open_list();
    for (_, edge, node) in position.matches(&graph, cx.call).take(position.limit as usize) {
        describe(&graph, position.result_mask, &edge, node, out);
        list.add();
    }
    out.close_list(list);
    overflow.is_none()
}

/// Appends a ReferenceDescription (Part 4, 7.30), with null for what the mask does not ask for.
fn describe(graph: &Graph, mask: u32, edge: &Edge, node: &Node, out: &mut Encoder<'_>) {
    let null_id = |out: &mut Encoder<'_>| out.u16(0);
    match graph.node(edge.kind).filter(|_| mask & result::REFERENCE_TYPE != 0) {
        Some(kind) => kind.id.encode(out),
        None => null_id(out),
    }
    out.bool(edge.forward && mask & result::IS_FORWARD != 0);
    // An ExpandedNodeId of this server looks like its NodeId.
    node.id.encode(out);
    if mask & result::BROWSE_NAME != 0 {
        node.browse_name.encode(out);
    } else {
        out.u16(0);
        out.string(None);
    }
    if mask & result::DISPLAY_NAME != 0 {
        node.encode_display_name(out);
    } else {
        out.u8(0);
    }
    out.u32(if mask & result::NODE_CLASS != 0 {
        node.body.class()
    } else {
        0
    });
    let definition = if mask & result::TYPE_DEFINITION != 0 {
        graph.type_definition(edge.target)
    } else {
        None
    };
    match definition.and_then(|key| graph.node(key)) {
        Some(definition) => definition.id.encode(out),
        None => null_id(out),
    }
}

/// BrowseNext.
///
/// # Errors
/// `BadNothingToDo`, `BadTooManyOperations`, `BadResponseTooLarge`, those of decoding.
pub fn browse_next(
    snapshot: &Snapshot,
    cx: &ServiceContext<'_>,
    points: &mut ContinuationPoints,
    body: &[u8],
    out: &mut Encoder<'_>,
) -> Result<(), StatusCode> {
    let start = out.position();
    let view = BrowseNextView::parse(body, cx.decode).map_err(StatusCode::from)?;
    check_count(view.continuation_points.len(), snapshot.limits.max_nodes_per_browse)?;
    points.begin_request();
    out.i32(i32::try_from(view.continuation_points.len()).unwrap_or(i32::MAX));
    for id in &view.continuation_points {
        match points.take(id.map_err(StatusCode::from)?) {
            Some(_) if view.release_continuation_points => refuse(StatusCode::GOOD, out),
            Some(point) => {
                page(point, snapshot, cx, points, out);
            }
            None => refuse(StatusCode::BAD_CONTINUATION_POINT_INVALID, out),
        }
        check_size(out, start, cx)?;
    }
    no_diagnostics(out);
    Ok(())
}
