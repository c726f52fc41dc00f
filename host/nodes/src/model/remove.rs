//! What goes with a removed node: what only it aggregates, and every reference to any of them.

use std::sync::Arc;

use backplane_types::{NodeId, StatusCode, ids};
use hashbrown::{HashMap, HashSet};

use crate::model::draft::{Draft, Refusal};
use crate::model::node::{Body, End, Handle, Link, Reference};
use crate::model::{Model, tag_of};

/// Removes the node `id` and what only it aggregates.
pub(crate) fn node(draft: &mut Draft<'_>, id: &NodeId) -> Result<(), Refusal> {
    let Some(root) = draft.model.handle(id) else {
        return Err((StatusCode::BAD_NODE_ID_UNKNOWN, format!("no node {id} in this model")));
    };
    let doomed = collect(draft, root);
    refuse_used_types(draft, &doomed)?;
    for handle in &doomed {
        disconnect(draft, *handle, &doomed);
    }
    for handle in doomed {
        take_out(&mut draft.model, handle);
    }
    Ok(())
}

/// The node, and below it every node that nothing else aggregates.
fn collect(draft: &Draft<'_>, root: Handle) -> HashSet<Handle> {
    let mut aggregates: HashMap<Link, bool> = HashMap::new();
    let mut is_aggregation = |kind: Link| {
        *aggregates.entry(kind).or_insert_with(|| {
            draft
                .id_of(kind)
                .is_some_and(|kind| draft.derives_from(kind, ids::reference_type::AGGREGATES))
        })
    };
    let mut doomed = HashSet::from([root]);
    let mut open = vec![root];
    while let Some(handle) = open.pop() {
        let Some(node) = draft.model.nodes.get(handle) else {
            continue;
        };
        for reference in node.references.iter().filter(|reference| reference.is_forward()) {
            let End::Local(child) = reference.target.end() else {
                continue;
            };
            if doomed.contains(&child) || !is_aggregation(reference.kind()) {
                continue;
            }
            let Some(child_node) = draft.model.nodes.get(child) else {
                continue;
            };
            let kept = child_node.references.iter().any(|reference| {
                !reference.is_forward()
                    && is_aggregation(reference.kind())
                    && !matches!(reference.target.end(), End::Local(parent) if doomed.contains(&parent))
            });
            if !kept {
                doomed.insert(child);
                open.push(child);
            }
        }
    }
    doomed
}

/// References to types are stored at one end only, so a type goes last.
fn refuse_used_types(draft: &Draft<'_>, doomed: &HashSet<Handle>) -> Result<(), Refusal> {
    let is_type = |handle: &Handle| draft.model.nodes.get(*handle).is_some_and(|node| node.body.is_type());
    if !doomed.iter().any(is_type) {
        return Ok(());
    }
    let gone = |link: Link| matches!(link.end(), End::Local(handle) if doomed.contains(&handle));
    for (handle, node) in draft.model.nodes.iter() {
        if doomed.contains(&handle) {
            continue;
        }
        let data_type = match &node.body {
            Body::Variable(variable) => Some(variable.data_type),
            Body::VariableType(body) => Some(body.data_type),
            _ => None,
        };
        let forward_use = |reference: &Reference| {
            gone(reference.kind()) || (reference.is_forward() && gone(reference.target) && node.body.class() & 3 != 0)
        };
        let supertype =
            |reference: &Reference| !reference.is_forward() && node.body.is_type() && gone(reference.target);
        if data_type.is_some_and(gone)
            || node
                .references
                .iter()
                .any(|reference| forward_use(reference) || supertype(reference))
        {
            let reason = format!("{} still uses a type that would go", node.id);
            return Err((StatusCode::BAD_NODE_ID_REJECTED, reason));
        }
    }
    Ok(())
}

/// Removes the other ends of the node's references.
fn disconnect(draft: &mut Draft<'_>, handle: Handle, doomed: &HashSet<Handle>) {
    let Some(node) = draft.model.nodes.get(handle) else {
        return;
    };
    let references = node.references.clone();
    let mut gone = references.len();
    for reference in references {
        match reference.target.end() {
            End::Local(other) if doomed.contains(&other) => {}
            End::Local(other) => {
                let back = Reference::new(reference.kind(), !reference.is_forward(), Link::local(handle));
                if let Some(other) = draft.model.nodes.get_mut(other)
                    && let Some(position) = other.references.iter().position(|reference| *reference == back)
                {
                    other.references.remove(position);
                    gone += 1;
                }
            }
            End::Foreign(index) => {
                let Some(id) = draft.model.foreign_id(index).cloned() else {
                    continue;
                };
                if let Some(list) = draft.model.exports.get_mut(&id) {
                    Arc::make_mut(list).retain(|export| export.source != handle);
                    if list.is_empty() {
                        draft.model.exports.remove(&id);
                    }
                }
            }
        }
    }
    let gone = u32::try_from(gone).unwrap_or(u32::MAX);
    draft.model.references = draft.model.references.saturating_sub(gone);
}

fn take_out(model: &mut Model, handle: Handle) {
    let Some(node) = model.nodes.remove(handle) else { return };
    model.by_id.remove(&node.id, handle.0);
    let tag = tag_of(&node);
    if tag != 0 {
        model.by_tag.remove(&tag, handle.0);
    }
    if let Some(count) = model.namespaces.get_mut(&node.id.namespace) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            model.namespaces.remove(&node.id.namespace);
        }
    }
}
