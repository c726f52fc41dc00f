//! One node of a NodeSet2 document (Part 6, F.6 to F.16), before it is put into a model.

use std::sync::Arc;

use backplane_types::{LocalizedText, NodeId, PermissionType, QualifiedName, RolePermissionType, UaString, Variant};

use super::names::{Names, attribute_text, localized};
use super::tree::Element;
use super::value;

/// A reference as the document has it.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) kind: NodeId,
    pub(super) forward: bool,
    pub(super) target: NodeId,
}

/// One field of a Definition.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) name: UaString,
    pub(super) display_name: LocalizedText,
    pub(super) description: LocalizedText,
    pub(super) data_type: NodeId,
    pub(super) value_rank: i32,
    pub(super) dimensions: Vec<u32>,
    pub(super) max_string_length: u32,
    pub(super) is_optional: bool,
    pub(super) allow_subtypes: bool,
    pub(super) value: i64,
}

/// A Definition.
#[derive(Debug, Clone)]
pub(super) struct Definition {
    pub(super) is_union: bool,
    pub(super) fields: Vec<Field>,
}

#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) class: Class,
    pub(super) id: NodeId,
    pub(super) browse_name: QualifiedName,
    pub(super) display_name: Option<LocalizedText>,
    pub(super) description: Option<LocalizedText>,
    pub(super) inverse_name: LocalizedText,
    pub(super) is_abstract: bool,
    pub(super) symmetric: bool,
    pub(super) executable: bool,
    pub(super) event_notifier: u8,
    pub(super) data_type: NodeId,
    pub(super) value_rank: i32,
    pub(super) dimensions: Vec<u32>,
    pub(super) access: u32,
    pub(super) minimum_sampling: Option<f64>,
    pub(super) historizing: bool,
    pub(super) value: Variant,
    pub(super) definition: Option<Definition>,
    pub(super) role_permissions: Option<Arc<[RolePermissionType]>>,
    pub(super) access_restrictions: Option<u16>,
    pub(super) links: Vec<Link>,
}

/// What kind of node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Object,
    Variable,
    Method,
    ObjectType,
    VariableType,
    ReferenceType,
    DataType,
    View,
}

impl Class {
    /// None for elements that are no nodes.
    pub(super) fn of_element(name: &str) -> Option<Self> {
        Some(match name {
            "UAObject" => Self::Object,
            "UAVariable" => Self::Variable,
            "UAMethod" => Self::Method,
            "UAObjectType" => Self::ObjectType,
            "UAVariableType" => Self::VariableType,
            "UAReferenceType" => Self::ReferenceType,
            "UADataType" => Self::DataType,
            "UAView" => Self::View,
            _ => return None,
        })
    }
}

fn number<T: std::str::FromStr>(element: &Element, name: &str, otherwise: T) -> Result<T, String> {
    match element.attribute(name) {
        None => Ok(otherwise),
        Some(text) => text
            .trim()
            .parse()
            .map_err(|_| format!("{name} {text:?} is not a number")),
    }
}

fn optional<T: std::str::FromStr>(element: &Element, name: &str) -> Result<Option<T>, String> {
    let parse = |text: &str| {
        text.trim()
            .parse()
            .map_err(|_| format!("{name} {text:?} is not a number"))
    };
    element.attribute(name).map(parse).transpose()
}

fn dimensions(element: &Element) -> Result<Vec<u32>, String> {
    let text = element.attribute("ArrayDimensions").unwrap_or("").trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let parse = |part: &str| {
        part.trim()
            .parse()
            .map_err(|_| format!("ArrayDimensions {text:?} are not numbers"))
    };
    text.split(',').map(parse).collect()
}

impl Record {
    pub(super) fn read(class: Class, element: &Element, names: &Names) -> Result<Self, String> {
        let id = names.node_id(element.attribute("NodeId").ok_or("a node has no NodeId")?)?;
        Self::of(class, id.clone(), element, names).map_err(|reason| format!("{id}: {reason}"))
    }

    fn of(class: Class, id: NodeId, element: &Element, names: &Names) -> Result<Self, String> {
        let data_type = match element.attribute("DataType") {
            Some(text) => names.node_id(text)?,
            None => NodeId::numeric(0, backplane_types::ids::data_type::BASE_DATA_TYPE),
        };
        Ok(Self {
            class,
            id,
            browse_name: names.qualified_name(element.attribute("BrowseName").ok_or("there is no BrowseName")?)?,
            display_name: attribute_text(element, "DisplayName"),
            description: attribute_text(element, "Description"),
            inverse_name: attribute_text(element, "InverseName").unwrap_or_default(),
            is_abstract: element.flag("IsAbstract"),
            symmetric: element.flag("Symmetric"),
            executable: element.attribute("Executable").is_none() || element.flag("Executable"),
            event_notifier: number(element, "EventNotifier", 0)?,
            data_type,
            value_rank: number(element, "ValueRank", -1)?,
            dimensions: dimensions(element)?,
            access: number(element, "AccessLevel", 1)?,
            minimum_sampling: optional(element, "MinimumSamplingInterval")?,
            historizing: element.flag("Historizing"),
            value: element
                .child("Value")
                .map_or(Ok(Variant::Empty), |child| value::value(child, names))?,
            definition: element
                .child("Definition")
                .map(|child| definition(child, names))
                .transpose()?,
            role_permissions: element
                .child("RolePermissions")
                .map(|child| permissions(child, names))
                .transpose()?,
            access_restrictions: optional(element, "AccessRestrictions")?,
            links: links(element, names)?,
        })
    }
}

fn links(element: &Element, names: &Names) -> Result<Vec<Link>, String> {
    let Some(list) = element.child("References") else {
        return Ok(Vec::new());
    };
    let read = |reference: &Element| {
        let kind = reference.attribute("ReferenceType").ok_or("a reference has no type")?;
        Ok(Link {
            kind: names.node_id(kind)?,
            forward: reference.attribute("IsForward").is_none() || reference.flag("IsForward"),
            target: names.node_id(reference.text())?,
        })
    };
    list.children_named("Reference").map(read).collect()
}

fn permissions(element: &Element, names: &Names) -> Result<Arc<[RolePermissionType]>, String> {
    let read = |entry: &Element| {
        Ok(RolePermissionType {
            role_id: names.node_id(entry.text())?,
            permissions: PermissionType(number(entry, "Permissions", 0)?),
        })
    };
    element.children_named("RolePermission").map(read).collect()
}

fn definition(element: &Element, names: &Names) -> Result<Definition, String> {
    let read = |field: &Element| {
        Ok(Field {
            name: UaString::from(field.attribute("Name").unwrap_or("")),
            display_name: attribute_text(field, "DisplayName").unwrap_or_default(),
            description: attribute_text(field, "Description").unwrap_or_else(|| localized("", "")),
            data_type: match field.attribute("DataType") {
                Some(text) => names.node_id(text)?,
                None => NodeId::numeric(0, backplane_types::ids::data_type::BASE_DATA_TYPE),
            },
            value_rank: number(field, "ValueRank", -1)?,
            dimensions: dimensions(field)?,
            max_string_length: number(field, "MaxStringLength", 0)?,
            is_optional: field.flag("IsOptional"),
            allow_subtypes: field.flag("AllowSubTypes"),
            value: number(field, "Value", -1)?,
        })
    };
    Ok(Definition {
        is_union: element.flag("IsUnion"),
        fields: element
            .children_named("Field")
            .map(read)
            .collect::<Result<_, String>>()?,
    })
}
