//! The attributes of a node other than Value, as values (Part 3, 5; Part 6, A.1).

use backplane_types::{ArrayValues, AttributeId, ExtensionObject, NodeId, RolePermissionType, StatusCode, Variant};

use crate::graph::{Graph, NodeKey};
use crate::manager::CallContext;
use crate::model::node::{Body, Method, Node, Source, Variable, VariableType};
use crate::rights::{self, permission};

/// Bits of AccessLevelType that need the Read and the Write permission.
const READ_BITS: u32 = 1;
const WRITE_BITS: u32 = 1 << 1;

/// The value of an attribute of a node; not of Value of a variable.
///
/// # Errors
/// `BadAttributeIdInvalid` for an attribute that the node does not have, `BadUserAccessDenied`.
pub(crate) fn read(
    graph: &Graph,
    key: NodeKey,
    node: &Node,
    attribute: AttributeId,
    call: &CallContext,
) -> Result<Variant, StatusCode> {
    rights::check(graph, key.slot, node, call, permission::BROWSE)?;
    Ok(match attribute {
        AttributeId::NODE_ID => Variant::from(node.id.clone()),
        AttributeId::NODE_CLASS => Variant::Int32(i32::try_from(node.body.class()).unwrap_or(0)),
        AttributeId::BROWSE_NAME => Variant::from(node.browse_name.clone()),
        AttributeId::DISPLAY_NAME => Variant::from(node.display_name()),
        AttributeId::WRITE_MASK | AttributeId::USER_WRITE_MASK => Variant::UInt32(0),
        AttributeId::DESCRIPTION => Variant::from(
            node.extra
                .as_ref()
                .and_then(|extra| extra.description.clone())
                .unwrap_or_default(),
        ),
        AttributeId::ROLE_PERMISSIONS | AttributeId::USER_ROLE_PERMISSIONS => {
            role_permissions(graph, key, node, attribute, call)?
        }
        AttributeId::ACCESS_RESTRICTIONS => {
            let restrictions = node.extra.as_ref().and_then(|extra| extra.access_restrictions);
            Variant::UInt16(restrictions.ok_or(StatusCode::BAD_ATTRIBUTE_ID_INVALID)?)
        }
        _ => return of_class(graph, key, node, attribute, call),
    })
}

fn role_permissions(
    graph: &Graph,
    key: NodeKey,
    node: &Node,
    attribute: AttributeId,
    call: &CallContext,
) -> Result<Variant, StatusCode> {
    let granted = node.extra.as_ref().and_then(|extra| extra.role_permissions.as_ref());
    let granted = granted.ok_or(StatusCode::BAD_ATTRIBUTE_ID_INVALID)?;
    if attribute == AttributeId::ROLE_PERMISSIONS {
        rights::check(graph, key.slot, node, call, permission::READ_ROLE_PERMISSIONS)?;
    }
    let own = |entry: &&RolePermissionType| {
        attribute == AttributeId::ROLE_PERMISSIONS || call.caller.roles.iter().any(|role| role.id == entry.role_id)
    };
    let entries: Vec<ExtensionObject> = granted
        .iter()
        .filter(own)
        .map(ExtensionObject::from_structure)
        .collect();
    Ok(Variant::from(ArrayValues::from(entries)))
}

fn of_class(
    graph: &Graph,
    key: NodeKey,
    node: &Node,
    attribute: AttributeId,
    call: &CallContext,
) -> Result<Variant, StatusCode> {
    Ok(match (&node.body, attribute) {
        (Body::Variable(variable), _) => return of_variable(graph, key, node, variable, attribute, call),
        (Body::VariableType(body), _) => return of_variable_type(graph, key, body, attribute),
        (Body::Method(method), _) => return of_method(graph, key, node, method, attribute, call),
        (Body::Object { event_notifier } | Body::View { event_notifier, .. }, AttributeId::EVENT_NOTIFIER) => {
            Variant::Byte(*event_notifier)
        }
        (Body::View { contains_no_loops, .. }, AttributeId::CONTAINS_NO_LOOPS) => Variant::Boolean(*contains_no_loops),
        (Body::ObjectType { is_abstract }, AttributeId::IS_ABSTRACT) => Variant::Boolean(*is_abstract),
        (Body::ReferenceType(body), AttributeId::IS_ABSTRACT) => Variant::Boolean(body.is_abstract),
        (Body::ReferenceType(body), AttributeId::SYMMETRIC) => Variant::Boolean(body.symmetric),
        (Body::ReferenceType(body), AttributeId::INVERSE_NAME) if !body.inverse_name.text.is_empty() => {
            Variant::from(body.inverse_name.clone())
        }
        (Body::DataType(body), AttributeId::IS_ABSTRACT) => Variant::Boolean(body.is_abstract),
        (Body::DataType(body), AttributeId::DATA_TYPE_DEFINITION) if !body.definition.is_empty() => {
            body.definition.clone()
        }
        _ => return Err(StatusCode::BAD_ATTRIBUTE_ID_INVALID),
    })
}

fn of_method(
    graph: &Graph,
    key: NodeKey,
    node: &Node,
    method: &Method,
    attribute: AttributeId,
    call: &CallContext,
) -> Result<Variant, StatusCode> {
    match attribute {
        AttributeId::EXECUTABLE => Ok(Variant::Boolean(method.executable)),
        AttributeId::USER_EXECUTABLE => Ok(Variant::Boolean(
            method.executable && rights::check(graph, key.slot, node, call, permission::CALL).is_ok(),
        )),
        _ => Err(StatusCode::BAD_ATTRIBUTE_ID_INVALID),
    }
}

/// The access that the caller has: what the node allows, less what the caller's roles do not.
fn user_access(graph: &Graph, key: NodeKey, node: &Node, access: u32, call: &CallContext) -> u32 {
    let mut access = access;
    if rights::check(graph, key.slot, node, call, permission::READ).is_err() {
        access &= !READ_BITS;
    }
    if rights::check(graph, key.slot, node, call, permission::WRITE).is_err() {
        access &= !WRITE_BITS;
    }
    access
}

fn data_type(graph: &Graph, key: NodeKey, link: crate::model::node::Link) -> Variant {
    Variant::from(graph.id_of(key.slot, link).cloned().unwrap_or(NodeId::NULL))
}

/// One length for each dimension, 0 where none is declared.
fn dimensions(rank: i32, declared: &[u32]) -> Result<Variant, StatusCode> {
    let count = usize::try_from(rank).unwrap_or(0);
    if count == 0 && declared.is_empty() {
        return Err(StatusCode::BAD_ATTRIBUTE_ID_INVALID);
    }
    let lengths = if declared.is_empty() {
        vec![0; count.min(64)]
    } else {
        declared.to_vec()
    };
    Ok(Variant::from(lengths))
}

fn of_variable(
    graph: &Graph,
    key: NodeKey,
    node: &Node,
    variable: &Variable,
    attribute: AttributeId,
    call: &CallContext,
) -> Result<Variant, StatusCode> {
    Ok(match attribute {
        AttributeId::DATA_TYPE => data_type(graph, key, variable.data_type),
        AttributeId::VALUE_RANK => Variant::Int32(variable.rank),
        AttributeId::ARRAY_DIMENSIONS => return dimensions(variable.rank, variable.dimensions()),
        AttributeId::ACCESS_LEVEL => Variant::Byte((variable.access & 0xff) as u8),
        AttributeId::USER_ACCESS_LEVEL => {
            Variant::Byte((user_access(graph, key, node, variable.access, call) & 0xff) as u8)
        }
        AttributeId::ACCESS_LEVEL_EX => Variant::UInt32(variable.access),
        AttributeId::MINIMUM_SAMPLING_INTERVAL => Variant::Double(minimum_sampling(variable)),
        AttributeId::HISTORIZING => Variant::Boolean(variable.extra.as_ref().is_some_and(|extra| extra.historizing)),
        _ => return Err(StatusCode::BAD_ATTRIBUTE_ID_INVALID),
    })
}

/// In ms; 0 for values that are reported by exception (Part 3, 5.6.2).
pub(crate) fn minimum_sampling(variable: &Variable) -> f64 {
    let declared = variable.extra.as_ref().and_then(|extra| extra.minimum_sampling);
    declared.unwrap_or(match variable.source {
        Source::Static(_) | Source::Cell(_) => 0.0,
        // Unknown: as fast as somebody asks.
        Source::OnDemand | Source::Live(_) => -1.0,
    })
}

fn of_variable_type(
    graph: &Graph,
    key: NodeKey,
    body: &VariableType,
    attribute: AttributeId,
) -> Result<Variant, StatusCode> {
    Ok(match attribute {
        AttributeId::IS_ABSTRACT => Variant::Boolean(body.is_abstract),
        AttributeId::DATA_TYPE => data_type(graph, key, body.data_type),
        AttributeId::VALUE_RANK => Variant::Int32(body.rank),
        AttributeId::ARRAY_DIMENSIONS => return dimensions(body.rank, &body.dimensions),
        AttributeId::VALUE if !body.value.is_empty() => body.value.clone(),
        _ => return Err(StatusCode::BAD_ATTRIBUTE_ID_INVALID),
    })
}
