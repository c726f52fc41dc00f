//! Discovery, the address space and its values.

use std::collections::{HashSet, VecDeque};

use opcua::types::{
    AttributeId, BrowseDescription, BrowseDirection, BrowsePath, BrowseResult, ByteString, DateTime, ExpandedNodeId,
    Guid, LocalizedText, NodeId, QualifiedName, RelativePath, RelativePathElement, StatusCode, UAString, Variant,
    VariantScalarTypeId,
};

use crate::connection::{Connection, Security, Setup};
use crate::{Case, check};

/// All endpoints, and the server itself.
pub async fn discovery(setup: &Setup) -> Case {
    let client = setup.client(None)?;
    let endpoints = client
        .get_server_endpoints_from_url(setup.url.as_str())
        .await
        .map_err(|error| error.to_string())?;
    check(endpoints.len() == 7, format!("{} endpoints", endpoints.len()))?;
    let servers = client
        .find_servers(setup.url.as_str(), None, None)
        .await
        .map_err(|error| error.to_string())?;
    check(servers.len() == 1, format!("{} servers", servers.len()))
}

/// A wrong password is refused.
pub async fn wrong_password(setup: &Setup) -> Case {
    match setup.connect(Security::NONE, Some(("user1", "wrong")), None).await {
        Ok(_) => Err("a wrong password was accepted".to_owned()),
        Err(_) => Ok(()),
    }
}

/// ServerStatus and limits.
pub async fn server_object(setup: &Setup, security: Security) -> Case {
    let connection = setup.connect(security, None, None).await?;
    let state = connection.read(&NodeId::new(0, 2259_u32)).await?;
    check(
        state.value == Some(Variant::Int32(0)),
        format!("ServerStatus.State is {:?}", state.value),
    )?;
    let limit = connection.read(&NodeId::new(0, 11705_u32)).await?;
    check(
        matches!(limit.value, Some(Variant::UInt32(limit)) if limit >= 1000),
        format!("MaxNodesPerRead is {:?}", limit.value),
    )?;
    connection.close().await
}

async fn children(connection: &Connection, nodes: Vec<NodeId>, security: Security) -> Case<Vec<NodeId>> {
    let descriptions: Vec<BrowseDescription> = nodes
        .into_iter()
        .map(|node_id| BrowseDescription {
            node_id,
            browse_direction: BrowseDirection::Forward,
            reference_type_id: NodeId::new(0, 33_u32),
            include_subtypes: true,
            node_class_mask: 0,
            result_mask: 63,
        })
        .collect();
    let mut results: Vec<BrowseResult> = connection
        .session
        .browse(&descriptions, 50, None)
        .await
        .map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    while !results.is_empty() {
        let mut points: Vec<ByteString> = Vec::new();
        for result in results {
            // Nodes about users and keys want an encrypted channel (AccessRestrictions); the walk goes on without them.
            if security.is_none() && result.status_code == StatusCode::BadSecurityModeInsufficient {
                continue;
            }
            check(result.status_code.is_good(), format!("browse: {}", result.status_code))?;
            found.extend(
                result
                    .references
                    .unwrap_or_default()
                    .into_iter()
                    .map(|reference| reference.node_id.node_id),
            );
            if !result.continuation_point.is_null() {
                points.push(result.continuation_point);
            }
        }
        results = if points.is_empty() {
            Vec::new()
        } else {
            connection
                .session
                .browse_next(false, &points)
                .await
                .map_err(|error| error.to_string())?
        };
    }
    Ok(found)
}

/// Every node of the simulator is reachable from Objects, page by page.
pub async fn browse(setup: &Setup, security: Security) -> Case {
    let connection = setup.connect(security, None, None).await?;
    let mut seen: HashSet<NodeId> = HashSet::new();
    let mut queue = VecDeque::from([NodeId::new(0, 85_u32)]);
    while !queue.is_empty() && seen.len() < 2_500 {
        let count = queue.len().min(5);
        for child in children(&connection, queue.drain(..count).collect(), security).await? {
            if seen.insert(child.clone()) {
                queue.push_back(child);
            }
        }
    }
    let own = seen
        .iter()
        .filter(|node| node.namespace == connection.namespace)
        .count();
    check(
        own >= 350,
        format!("only {own} nodes of the simulator are reachable from Objects"),
    )?;
    for name in [
        "Var1",
        "Counter",
        "Add",
        "the.answer",
        "Static_Scalar_Guid",
        "Static_Array_Variant",
    ] {
        check(
            seen.contains(&connection.node(name)),
            format!("{name} is not reachable from Objects"),
        )?;
    }
    connection.close().await
}

/// Browse paths.
pub async fn translate(setup: &Setup, security: Security) -> Case {
    let connection = setup.connect(security, None, None).await?;
    let path = |names: &[(u16, &str)]| BrowsePath {
        starting_node: NodeId::new(0, 85_u32),
        relative_path: RelativePath {
            elements: Some(
                names
                    .iter()
                    .map(|(namespace, name)| RelativePathElement {
                        reference_type_id: NodeId::new(0, 33_u32),
                        is_inverse: false,
                        include_subtypes: true,
                        target_name: QualifiedName::new(*namespace, *name),
                    })
                    .collect(),
            ),
        },
    };
    let paths = [
        path(&[(connection.namespace, "Dev"), (connection.namespace, "Var1")]),
        path(&[(0, "NoSuchThing")]),
    ];
    let results = connection
        .session
        .translate_browse_paths_to_node_ids(&paths)
        .await
        .map_err(|error| error.to_string())?;
    let target = results[0]
        .targets
        .iter()
        .flatten()
        .next()
        .map(|target| target.target_id.node_id.clone());
    check(
        target == Some(connection.node("Var1")),
        format!("path to Var1: {target:?}"),
    )?;
    check(
        results[1].status_code == StatusCode::BadNoMatch,
        format!("unknown path: {}", results[1].status_code),
    )?;
    connection.close().await
}

fn scalars() -> Vec<(&'static str, VariantScalarTypeId, Variant)> {
    use VariantScalarTypeId as Type;
    let guid: Guid = "12345678-1234-5678-9abc-def012345678".parse().unwrap_or_default();
    vec![
        ("Boolean", Type::Boolean, Variant::Boolean(true)),
        ("SByte", Type::SByte, Variant::SByte(-12)),
        ("Byte", Type::Byte, Variant::Byte(250)),
        ("Int16", Type::Int16, Variant::Int16(-31_000)),
        ("UInt16", Type::UInt16, Variant::UInt16(61_000)),
        ("Int32", Type::Int32, Variant::Int32(-2_000_000_000)),
        ("UInt32", Type::UInt32, Variant::UInt32(4_000_000_000)),
        ("Int64", Type::Int64, Variant::Int64(-(1 << 62))),
        ("UInt64", Type::UInt64, Variant::UInt64((1 << 63) + 5)),
        ("Float", Type::Float, Variant::Float(1.5)),
        ("Double", Type::Double, Variant::Double(-2.25e100)),
        ("String", Type::String, Variant::String(UAString::from("größe"))),
        (
            "DateTime",
            Type::DateTime,
            Variant::from(DateTime::ymd_hms(2026, 2, 3, 4, 5, 6)),
        ),
        ("Guid", Type::Guid, Variant::from(guid)),
        (
            "ByteString",
            Type::ByteString,
            Variant::from(ByteString::from(vec![0, 1, 255])),
        ),
        ("NodeId", Type::NodeId, Variant::from(NodeId::new(3, "a node"))),
        (
            "ExpandedNodeId",
            Type::ExpandedNodeId,
            Variant::from(ExpandedNodeId::from(NodeId::new(2, 77_u32))),
        ),
        (
            "QualifiedName",
            Type::QualifiedName,
            Variant::from(QualifiedName::new(2, "name")),
        ),
        (
            "LocalizedText",
            Type::LocalizedText,
            Variant::from(LocalizedText::new("en", "text")),
        ),
    ]
}

/// Scalars and arrays of every type come back as they were written.
pub async fn every_type(setup: &Setup, security: Security) -> Case {
    let connection = setup.connect(security, None, None).await?;
    for (name, kind, value) in scalars() {
        let array = Variant::from((kind, vec![value.clone(), value.clone(), value.clone()]));
        for (prefix, written) in [("Scalar", value), ("Array", array)] {
            let node = connection.node(&format!("Static_{prefix}_{name}"));
            let status = connection.write(&node, written.clone(), None).await?;
            check(status.is_good(), format!("write of {node}: {status}"))?;
            let read = connection.read(&node).await?;
            check(
                read.value.as_ref() == Some(&written),
                format!("{node}: wrote {written:?}, read {:?}", read.value),
            )?;
            check(
                read.source_timestamp.is_some() && read.server_timestamp.is_some(),
                format!("{node} has no timestamps"),
            )?;
        }
    }
    connection.close().await
}

/// What must not be written is refused with the right code.
pub async fn wrong_writes(setup: &Setup, security: Security) -> Case {
    let connection = setup.connect(security, None, None).await?;
    let node = connection.node("Static_Scalar_Int32");
    let status = connection
        .write(&node, Variant::String(UAString::from("text")), None)
        .await?;
    check(
        status == StatusCode::BadTypeMismatch,
        format!("a text for an Int32: {status}"),
    )?;
    let status = connection
        .write(&connection.node("no such node"), Variant::Int32(1), None)
        .await?;
    check(
        status == StatusCode::BadNodeIdUnknown,
        format!("unknown node: {status}"),
    )?;
    let status = connection
        .write(&NodeId::new(0, 2258_u32), Variant::from(DateTime::now()), None)
        .await?;
    let refused = [StatusCode::BadNotWritable, StatusCode::BadUserAccessDenied].contains(&status);
    check(refused, format!("write of CurrentTime: {status}"))?;
    connection.close().await
}

/// Index ranges on reads and writes.
pub async fn index_ranges(setup: &Setup, security: Security) -> Case {
    let connection = setup.connect(security, None, None).await?;
    let node = connection.node("Static_Array_Int32");
    let numbers = |numbers: &[i32]| Variant::from(numbers.to_vec());
    let status = connection.write(&node, numbers(&[10, 20, 30, 40, 50]), None).await?;
    check(status.is_good(), format!("write of the whole array: {status}"))?;
    for (range, expected) in [("1:2", numbers(&[20, 30])), ("3:100", numbers(&[40, 50]))] {
        let value = connection
            .read_attribute(&node, AttributeId::Value, Some(range))
            .await?;
        check(value.value.as_ref() == Some(&expected), format!("{range}: {value:?}"))?;
    }
    let beyond = connection.read_attribute(&node, AttributeId::Value, Some("7")).await?;
    check(
        beyond.status == Some(StatusCode::BadIndexRangeNoData),
        format!("7: {beyond:?}"),
    )?;
    let status = connection.write(&node, numbers(&[21, 31]), Some("1:2")).await?;
    check(status.is_good(), format!("write of 1:2: {status}"))?;
    let whole = connection.read(&node).await?;
    check(
        whole.value == Some(numbers(&[10, 21, 31, 40, 50])),
        format!("array after a write of 1:2: {whole:?}"),
    )?;
    connection.close().await
}
