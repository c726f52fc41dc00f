//! Values in the XML encoding (Part 6, 5.3.1), as far as documents hold them.
//!
//! Structures are turned into OPC UA Binary for those that every document uses (Argument, EUInformation, Range, EnumValueType); other structures have no
//! value here, so that their variable waits for one.

use backplane_types::{
    Argument, Array, ArrayValues, ByteString, EUInformation, EnumValueType, ExtensionObject, Guid, LocalizedText,
    NodeId, Range, StatusCode, UaString, Variant, XmlElement, ids,
};

use super::names::{Names, localized};
use super::scalar;
use super::tree::Element;

/// The value in a Value element; empty where there is none that can be said in binary.
pub(super) fn value(element: &Element, names: &Names) -> Result<Variant, String> {
    match element.children.first() {
        Some(child) => variant(child, names),
        None => Ok(Variant::Empty),
    }
}

fn variant(element: &Element, names: &Names) -> Result<Variant, String> {
    if let Some(kind) = element.name.strip_prefix("ListOf") {
        return list(kind, &element.children, names);
    }
    match element.name.as_str() {
        "Matrix" => matrix(element, names),
        "Variant" => element
            .child("Value")
            .map_or(Ok(Variant::Empty), |inner| value(inner, names)),
        kind => single(kind, element, names),
    }
}

fn number<T: std::str::FromStr>(element: &Element) -> Result<T, String> {
    element
        .text()
        .parse()
        .map_err(|_| format!("{:?} is not a {}", element.text(), element.name))
}

fn float(element: &Element) -> Result<f64, String> {
    match element.text() {
        "INF" => Ok(f64::INFINITY),
        "-INF" => Ok(f64::NEG_INFINITY),
        _ => number(element),
    }
}

fn boolean(element: &Element) -> Result<bool, String> {
    match element.text() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        other => Err(format!("{other:?} is not a Boolean")),
    }
}

fn guid(element: &Element) -> Result<Guid, String> {
    let text = element.child("String").map_or_else(|| element.text(), Element::text);
    text.parse().map_err(|_| format!("{text:?} is not a Guid"))
}

fn octets(element: &Element) -> Result<ByteString, String> {
    scalar::base64(element.text())
        .map(ByteString::from)
        .ok_or_else(|| "a ByteString is not Base64".to_owned())
}

fn node_id(element: &Element, names: &Names) -> Result<NodeId, String> {
    match element.text_of("Identifier") {
        "" => Ok(NodeId::NULL),
        text => names.node_id(text),
    }
}

fn text(element: &Element) -> LocalizedText {
    localized(
        element.text_of("Locale"),
        element.child("Text").map_or("", Element::whole_text),
    )
}

fn status(element: &Element) -> Result<StatusCode, String> {
    element
        .child("Code")
        .map_or(Ok(StatusCode::GOOD), |code| number(code).map(StatusCode))
}

/// One value; empty for a structure that has no binary form here.
fn single(kind: &str, element: &Element, names: &Names) -> Result<Variant, String> {
    Ok(match kind {
        "Boolean" => Variant::Boolean(boolean(element)?),
        "SByte" => Variant::SByte(number(element)?),
        "Byte" => Variant::Byte(number(element)?),
        "Int16" => Variant::Int16(number(element)?),
        "UInt16" => Variant::UInt16(number(element)?),
        "Int32" => Variant::Int32(number(element)?),
        "UInt32" => Variant::UInt32(number(element)?),
        "Int64" => Variant::Int64(number(element)?),
        "UInt64" => Variant::UInt64(number(element)?),
        "Float" => Variant::Float(float(element)? as f32),
        "Double" => Variant::Double(float(element)?),
        "String" => Variant::String(UaString::from(element.whole_text())),
        "DateTime" => Variant::DateTime(
            scalar::date_time(element.text()).ok_or_else(|| format!("{:?} is not a DateTime", element.text()))?,
        ),
        "Guid" => Variant::Guid(guid(element)?),
        "ByteString" => Variant::ByteString(octets(element)?),
        "XmlElement" => Variant::XmlElement(XmlElement(UaString::from(element.whole_text()))),
        "NodeId" => Variant::from(node_id(element, names)?),
        "ExpandedNodeId" => Variant::from(backplane_types::ExpandedNodeId::from(node_id(element, names)?)),
        "StatusCode" => Variant::StatusCode(status(element)?),
        "QualifiedName" => Variant::from(names.qualified_element(element)?),
        "LocalizedText" => Variant::from(text(element)),
        "ExtensionObject" => structure(element, names)?.map_or(Variant::Empty, Variant::from),
        other => return Err(format!("{other} is not a type of value")),
    })
}

fn list(kind: &str, elements: &[Element], names: &Names) -> Result<Variant, String> {
    macro_rules! all {
        ($read:expr) => {
            elements.iter().map($read).collect::<Result<Vec<_>, String>>()?
        };
    }
    let values = match kind {
        "Boolean" => ArrayValues::Boolean(all!(boolean)),
        "SByte" => ArrayValues::SByte(all!(number)),
        "Byte" => ArrayValues::Byte(all!(number)),
        "Int16" => ArrayValues::Int16(all!(number)),
        "UInt16" => ArrayValues::UInt16(all!(number)),
        "Int32" => ArrayValues::Int32(all!(number)),
        "UInt32" => ArrayValues::UInt32(all!(number)),
        "Int64" => ArrayValues::Int64(all!(number)),
        "UInt64" => ArrayValues::UInt64(all!(number)),
        "Float" => ArrayValues::Float(all!(|element| float(element).map(|number| number as f32))),
        "Double" => ArrayValues::Double(all!(float)),
        "String" => ArrayValues::String(all!(|element| Ok(UaString::from(element.whole_text())))),
        "DateTime" => ArrayValues::DateTime(all!(|element| {
            scalar::date_time(element.text()).ok_or_else(|| "an element is not a DateTime".to_owned())
        })),
        "Guid" => ArrayValues::Guid(all!(guid)),
        "ByteString" => ArrayValues::ByteString(all!(octets)),
        "NodeId" => ArrayValues::NodeId(all!(|element| node_id(element, names))),
        "ExpandedNodeId" => ArrayValues::ExpandedNodeId(all!(|element| node_id(element, names).map(Into::into))),
        "StatusCode" => ArrayValues::StatusCode(all!(status)),
        "QualifiedName" => ArrayValues::QualifiedName(all!(|element| names.qualified_element(element))),
        "LocalizedText" => ArrayValues::LocalizedText(all!(|element| Ok(text(element)))),
        "Variant" => ArrayValues::Variant(all!(|element| variant(element, names))),
        "ExtensionObject" => {
            let objects: Option<Vec<_>> = all!(|element| structure(element, names)).into_iter().collect();
            match objects {
                Some(objects) => ArrayValues::ExtensionObject(objects),
                None => return Ok(Variant::Empty),
            }
        }
        other => return Err(format!("{other} is not a type of value")),
    };
    Ok(Variant::from(values))
}

fn matrix(element: &Element, names: &Names) -> Result<Variant, String> {
    let dimensions = element.child("Dimensions").map_or(&[][..], |child| &child.children);
    let dimensions = dimensions.iter().map(number).collect::<Result<Vec<u32>, String>>()?;
    let elements = element.child("Elements").map_or(&[][..], |child| &child.children);
    let Some(first) = elements.first() else {
        return Ok(Variant::Empty);
    };
    match list(&first.name, elements, names)? {
        Variant::Array(array) => Array::matrix(array.values, dimensions)
            .map(Variant::from)
            .map_err(|error| error.to_string()),
        other => Ok(other),
    }
}

/// A structure in binary; none for one that is not known here.
fn structure(element: &Element, names: &Names) -> Result<Option<ExtensionObject>, String> {
    let Some(type_id) = element.child("TypeId") else {
        return Ok(None);
    };
    let type_id = node_id(type_id, names)?;
    let Some(body) = element.child("Body").and_then(|body| body.children.first()) else {
        return Ok(None);
    };
    // Documents name the XML encoding or the data type.
    const ARGUMENT_XML: u32 = ids::object::ARGUMENT_ENCODING_DEFAULT_XML;
    const RANGE_XML: u32 = ids::object::RANGE_ENCODING_DEFAULT_XML;
    const UNIT_XML: u32 = ids::object::EU_INFORMATION_ENCODING_DEFAULT_XML;
    const ENUM_XML: u32 = ids::object::ENUM_VALUE_TYPE_ENCODING_DEFAULT_XML;
    let localized_child = |name: &str| body.child(name).map_or(LocalizedText::NULL, text);
    let read = |name: &str| body.child(name).map_or(Ok(0.0), float);
    Ok(Some(match type_id.as_standard() {
        Some(ARGUMENT_XML | ids::data_type::ARGUMENT) => ExtensionObject::from_structure(&argument(body, names)?),
        Some(RANGE_XML | ids::data_type::RANGE) => ExtensionObject::from_structure(&Range {
            low: read("Low")?,
            high: read("High")?,
        }),
        Some(UNIT_XML | ids::data_type::EU_INFORMATION) => ExtensionObject::from_structure(&EUInformation {
            namespace_uri: UaString::from(body.text_of("NamespaceUri")),
            unit_id: body.child("UnitId").map_or(Ok(0), number)?,
            display_name: localized_child("DisplayName"),
            description: localized_child("Description"),
        }),
        Some(ENUM_XML | ids::data_type::ENUM_VALUE_TYPE) => ExtensionObject::from_structure(&EnumValueType {
            value: body.child("Value").map_or(Ok(0), number)?,
            display_name: localized_child("DisplayName"),
            description: localized_child("Description"),
        }),
        _ => return Ok(None),
    }))
}

fn argument(body: &Element, names: &Names) -> Result<Argument, String> {
    let dimensions = body.child("ArrayDimensions").map_or(&[][..], |child| &child.children);
    Ok(Argument {
        name: UaString::from(body.text_of("Name")),
        data_type: body
            .child("DataType")
            .map_or(Ok(NodeId::NULL), |element| node_id(element, names))?,
        value_rank: body.child("ValueRank").map_or(Ok(-1), number)?,
        array_dimensions: dimensions.iter().map(number).collect::<Result<_, _>>()?,
        description: body.child("Description").map_or(LocalizedText::NULL, text),
    })
}
