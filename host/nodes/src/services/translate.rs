//! TranslateBrowsePathsToNodeIds (Part 4, 5.9.4).

use backplane_types::view::{BrowsePathRef, RelativePathElementRef, TranslateView};
use backplane_types::{BinaryEncode, Encoder, StatusCode};
use hashbrown::HashSet;

use super::{ServiceContext, check_count, check_size, no_diagnostics};
use crate::graph::NodeKey;
use crate::rights;
use crate::space::Snapshot;

/// RemainingPathIndex of a path that was followed to its end.
const WHOLE_PATH: u32 = u32::MAX;

/// TranslateBrowsePathsToNodeIds.
///
/// # Errors
/// `BadNothingToDo`, `BadTooManyOperations`, `BadResponseTooLarge`, those of decoding.
pub fn translate_browse_paths(
    snapshot: &Snapshot,
    cx: &ServiceContext<'_>,
    body: &[u8],
    out: &mut Encoder<'_>,
) -> Result<(), StatusCode> {
    let start = out.position();
    let view = TranslateView::parse(body, cx.decode).map_err(StatusCode::from)?;
    check_count(view.browse_paths.len(), snapshot.limits.max_nodes_per_translate)?;
    out.i32(i32::try_from(view.browse_paths.len()).unwrap_or(i32::MAX));
    for path in &view.browse_paths {
        match follow(snapshot, cx, &path.map_err(StatusCode::from)?) {
            Ok(targets) => {
                out.u32(StatusCode::GOOD.0);
                let mut list = out.open_list();
                for node in targets.into_iter().filter_map(|key| snapshot.node(key)) {
                    node.id.encode(out);
                    out.u32(WHOLE_PATH);
                    list.add();
                }
                out.close_list(list);
            }
            Err(status) => {
                out.u32(status.0);
                out.i32(-1);
            }
        }
        check_size(out, start, cx)?;
    }
    no_diagnostics(out);
    Ok(())
}

/// The nodes at the end of a path.
fn follow(snapshot: &Snapshot, cx: &ServiceContext<'_>, path: &BrowsePathRef<'_>) -> Result<Vec<NodeKey>, StatusCode> {
    if path.elements.is_empty() {
        return Err(StatusCode::BAD_NOTHING_TO_DO);
    }
    if path.elements.len() > snapshot.limits.max_relative_path_elements as usize {
        return Err(StatusCode::BAD_QUERY_TOO_COMPLEX);
    }
    let start = snapshot
        .graph
        .find_ref(path.starting_node)
        .ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
    for element in &path.elements {
        if element.map_err(StatusCode::from)?.target_name.name.is_empty() {
            return Err(StatusCode::BAD_BROWSE_NAME_INVALID);
        }
    }
    let mut at = vec![start];
    for element in &path.elements {
        at = step(snapshot, cx, &at, &element.map_err(StatusCode::from)?)?;
        if at.is_empty() {
            return Err(StatusCode::BAD_NO_MATCH);
        }
    }
    Ok(at)
}

fn step(
    snapshot: &Snapshot,
    cx: &ServiceContext<'_>,
    from: &[NodeKey],
    element: &RelativePathElementRef<'_>,
) -> Result<Vec<NodeKey>, StatusCode> {
    let graph = &snapshot.graph;
    let wanted = if element.reference_type_id.is_null() {
        None
    } else {
        Some(
            graph
                .find_ref(element.reference_type_id)
                .ok_or(StatusCode::BAD_NO_MATCH)?,
        )
    };
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for key in from {
        for (_, edge) in graph.edges(*key, 0) {
            let Some(node) = graph.node(edge.target).filter(|_| edge.forward != element.is_inverse) else {
                continue;
            };
            let right_type = wanted.is_none_or(|wanted| {
                edge.kind == wanted || (element.include_subtypes && graph.is_a(edge.kind, wanted))
            });
            let matches = element.target_name == node.browse_name
                && right_type
                && rights::is_visible(graph, edge.target.slot, node, cx.call);
            if matches && seen.insert(edge.target) {
                if found.len() >= snapshot.limits.max_browse_path_targets as usize {
                    return Err(StatusCode::BAD_TOO_MANY_MATCHES);
                }
                found.push(edge.target);
            }
        }
    }
    Ok(found)
}
