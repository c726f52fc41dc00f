//! Which attributes a step may set, and with what values (Part 3, 5; Part 6, A.1).

use std::sync::Arc;

use backplane_types::{
    AttributeId, DataValue, ExtensionObject, LocalizedText, NodeId, RolePermissionType, StatusCode, Variant,
};

use crate::model::draft::{Draft, Refusal};
use crate::model::node::{Body, Handle, Source, Variable};

/// Sets an attribute of a node.
pub(crate) fn set(
    draft: &mut Draft<'_>,
    handle: Handle,
    attribute: AttributeId,
    value: &Variant,
) -> Result<(), Refusal> {
    match attribute {
        AttributeId::DISPLAY_NAME => {
            let text = text(value)?;
            edit(draft, handle, |extra| extra.display_name = Some(text))
        }
        AttributeId::DESCRIPTION => {
            let text = text(value)?;
            edit(draft, handle, |extra| extra.description = Some(text))
        }
        AttributeId::ACCESS_RESTRICTIONS => {
            let bits: u16 = typed(value)?;
            edit(draft, handle, |extra| extra.access_restrictions = Some(bits))
        }
        AttributeId::ROLE_PERMISSIONS => {
            let permissions = permissions(value)?;
            edit(draft, handle, |extra| extra.role_permissions = Some(permissions))
        }
        AttributeId::DATA_TYPE => data_type(draft, handle, value),
        _ => {
            let limits = draft.limits;
            let Some(node) = draft.model.nodes.get_mut(handle) else {
                return Ok(());
            };
            match &mut node.body {
                Body::Variable(variable) => set_variable(variable, attribute, value, limits.max_index_range_dimensions),
                other => set_other(other, attribute, value),
            }
        }
    }
}

fn edit(
    draft: &mut Draft<'_>,
    handle: Handle,
    change: impl FnOnce(&mut crate::model::node::Extra),
) -> Result<(), Refusal> {
    if let Some(node) = draft.model.nodes.get_mut(handle) {
        change(node.extra_mut());
    }
    Ok(())
}

fn wrong_type(value: &Variant) -> Refusal {
    let found = value
        .built_in_type()
        .map_or_else(|| "nothing".to_owned(), |kind| format!("{kind:?}"));
    (
        StatusCode::BAD_TYPE_MISMATCH,
        format!("the attribute does not take {found}"),
    )
}

fn not_here() -> Refusal {
    (
        StatusCode::BAD_ATTRIBUTE_ID_INVALID,
        "the node has no such attribute, or it cannot be set".to_owned(),
    )
}

fn typed<T: TryFrom<Variant>>(value: &Variant) -> Result<T, Refusal> {
    T::try_from(value.clone()).map_err(|_| wrong_type(value))
}

fn text(value: &Variant) -> Result<LocalizedText, Refusal> {
    match value {
        Variant::LocalizedText(text) => Ok(text.as_ref().clone()),
        Variant::String(text) => Ok(LocalizedText::plain(text.clone())),
        _ => Err(wrong_type(value)),
    }
}

fn permissions(value: &Variant) -> Result<Arc<[RolePermissionType]>, Refusal> {
    let objects: Vec<ExtensionObject> = typed(value)?;
    let decoded: Result<Vec<RolePermissionType>, _> = objects.iter().map(ExtensionObject::decode_as).collect();
    decoded.map(Arc::from).map_err(|_| wrong_type(value))
}

fn data_type(draft: &mut Draft<'_>, handle: Handle, value: &Variant) -> Result<(), Refusal> {
    let id: NodeId = typed(value)?;
    let Some(rule) = draft.rule(&id) else {
        return Err((StatusCode::BAD_DATA_TYPE_ID_UNKNOWN, format!("no data type {id}")));
    };
    let link = draft.link(&id)?;
    match draft.model.nodes.get_mut(handle).map(|node| &mut node.body) {
        Some(Body::Variable(variable)) => {
            variable.data_type = link;
            variable.rule = rule;
            Ok(())
        }
        Some(Body::VariableType(body)) => {
            body.data_type = link;
            Ok(())
        }
        _ => Err(not_here()),
    }
}

fn dimensions(value: &Variant, most: u32) -> Result<Vec<u32>, Refusal> {
    let dimensions: Vec<u32> = match value {
        Variant::Empty => Vec::new(),
        other => typed(other)?,
    };
    if dimensions.len() > most as usize {
        return Err((
            StatusCode::BAD_NODE_ATTRIBUTES_INVALID,
            format!("{} dimensions", dimensions.len()),
        ));
    }
    Ok(dimensions)
}

fn rank(value: &Variant) -> Result<i32, Refusal> {
    let rank: i32 = typed(value)?;
    if rank < -3 {
        return Err((
            StatusCode::BAD_NODE_ATTRIBUTES_INVALID,
            format!("{rank} is not a ValueRank"),
        ));
    }
    Ok(rank)
}

fn set_variable(variable: &mut Variable, attribute: AttributeId, value: &Variant, most: u32) -> Result<(), Refusal> {
    match attribute {
        AttributeId::VALUE_RANK => variable.rank = rank(value)?,
        AttributeId::ARRAY_DIMENSIONS => {
            let dimensions = dimensions(value, most)?;
            let count = i32::try_from(dimensions.len()).unwrap_or(i32::MAX);
            if variable.rank > 0 && !dimensions.is_empty() && count != variable.rank {
                let reason = format!("{count} ArrayDimensions, but ValueRank {}", variable.rank);
                return Err((StatusCode::BAD_NODE_ATTRIBUTES_INVALID, reason));
            }
            variable.extra_mut().dimensions = dimensions;
        }
        AttributeId::ACCESS_LEVEL => variable.access = (variable.access & !0xff) | u32::from(typed::<u8>(value)?),
        AttributeId::ACCESS_LEVEL_EX => variable.access = typed(value)?,
        AttributeId::MINIMUM_SAMPLING_INTERVAL => variable.extra_mut().minimum_sampling = Some(typed(value)?),
        AttributeId::HISTORIZING => variable.extra_mut().historizing = typed(value)?,
        AttributeId::VALUE => match &mut variable.source {
            Source::Static(held) => {
                *held = Arc::new(DataValue {
                    value: value.clone(),
                    ..held.as_ref().clone()
                })
            }
            _ => {
                return Err((
                    StatusCode::BAD_ATTRIBUTE_ID_INVALID,
                    "the value of this variable is published, not declared".to_owned(),
                ));
            }
        },
        _ => return Err(not_here()),
    }
    Ok(())
}

fn set_other(body: &mut Body, attribute: AttributeId, value: &Variant) -> Result<(), Refusal> {
    match (body, attribute) {
        (Body::Object { event_notifier } | Body::View { event_notifier, .. }, AttributeId::EVENT_NOTIFIER) => {
            *event_notifier = typed(value)?;
        }
        (Body::View { contains_no_loops, .. }, AttributeId::CONTAINS_NO_LOOPS) => *contains_no_loops = typed(value)?,
        (Body::Method(method), AttributeId::EXECUTABLE) => method.executable = typed(value)?,
        (Body::ObjectType { is_abstract }, AttributeId::IS_ABSTRACT) => *is_abstract = typed(value)?,
        (Body::VariableType(body), AttributeId::IS_ABSTRACT) => body.is_abstract = typed(value)?,
        (Body::ReferenceType(body), AttributeId::IS_ABSTRACT) => body.is_abstract = typed(value)?,
        (Body::DataType(body), AttributeId::IS_ABSTRACT) => body.is_abstract = typed(value)?,
        (Body::VariableType(body), AttributeId::VALUE_RANK) => body.rank = rank(value)?,
        (Body::VariableType(body), AttributeId::ARRAY_DIMENSIONS) => body.dimensions = typed(value)?,
        (Body::VariableType(body), AttributeId::VALUE) => body.value = value.clone(),
        (Body::ReferenceType(body), AttributeId::SYMMETRIC) => body.symmetric = typed(value)?,
        (Body::ReferenceType(body), AttributeId::INVERSE_NAME) => body.inverse_name = text(value)?,
        (Body::DataType(body), AttributeId::DATA_TYPE_DEFINITION) => match value {
            Variant::ExtensionObject(_) | Variant::Empty => body.definition = value.clone(),
            other => return Err(wrong_type(other)),
        },
        _ => return Err(not_here()),
    }
    Ok(())
}
