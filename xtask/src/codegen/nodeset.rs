//! The nodeset of namespace 0: nodes, complete forward references and data type definitions.
//!
//! Owns the reading of UANodeSet documents (Part 6, Annex F). Knows nothing of what is generated.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::error::CodegenError;
use super::xml::Element;

/// Reference types and nodes that the generator itself looks for.
pub(crate) mod well_known {
    pub(crate) const STRUCTURE: u32 = 22;
    pub(crate) const BASE_DATA_TYPE: u32 = 24;
    pub(crate) const ENUMERATION: u32 = 29;
    pub(crate) const HAS_ENCODING: u32 = 38;
    pub(crate) const HAS_SUBTYPE: u32 = 45;
    pub(crate) const UNION: u32 = 12756;
}

/// NodeClass by its value in the enumeration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    Object = 1,
    Variable = 2,
    Method = 4,
    ObjectType = 8,
    VariableType = 16,
    ReferenceType = 32,
    DataType = 64,
}

impl Class {
    fn from_element(name: &str) -> Option<Self> {
        Some(match name {
            "UAObject" => Self::Object,
            "UAVariable" => Self::Variable,
            "UAMethod" => Self::Method,
            "UAObjectType" => Self::ObjectType,
            "UAVariableType" => Self::VariableType,
            "UAReferenceType" => Self::ReferenceType,
            "UADataType" => Self::DataType,
            _ => return None,
        })
    }
}

/// What a node is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Normal,
    ServicesOnly,
    CodeGenerator,
}

/// A node with everything that is generated from it.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) id: u32,
    pub(crate) class: Class,
    pub(crate) browse_name: String,
    pub(crate) display_name: String,
    pub(crate) symbolic_name: Option<String>,
    pub(crate) purpose: Purpose,
    pub(crate) deprecated: bool,
    pub(crate) design_tool_only: bool,
    pub(crate) is_abstract: bool,
    pub(crate) symmetric: bool,
    pub(crate) inverse_name: Option<String>,
    pub(crate) data_type: u32,
    pub(crate) value_rank: i32,
    pub(crate) array_dimensions: Vec<u32>,
    pub(crate) access_level: u32,
    pub(crate) event_notifier: u32,
    pub(crate) value: Option<Element>,
    pub(crate) definition: Option<Definition>,
    pub(crate) role_permissions: Vec<(u32, u32)>,
    pub(crate) access_restrictions: Option<u32>,
    pub(crate) method_declaration: Option<u32>,
    /// `Part 4, 5.11.2`, from the link to the documentation.
    pub(crate) section: Option<String>,
    /// (reference type, target), ascending.
    pub(crate) references: BTreeSet<(u32, u32)>,
}

/// The definition of a data type, without inherited fields.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub(crate) is_union: bool,
    pub(crate) is_option_set: bool,
    pub(crate) fields: Vec<Field>,
}

/// A field of a structure, or a value of an enumeration or option set.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) data_type: u32,
    pub(crate) value_rank: i32,
    pub(crate) array_dimensions: Vec<u32>,
    pub(crate) max_string_length: u32,
    pub(crate) value: i64,
    pub(crate) optional: bool,
    pub(crate) allow_subtypes: bool,
    pub(crate) display_name: Option<String>,
}

/// All nodes of namespace 0.
#[derive(Clone, Debug)]
pub(crate) struct NodeSet {
    pub(crate) nodes: BTreeMap<u32, Node>,
}

impl NodeSet {
    /// Reads a UANodeSet document.
    pub(crate) fn from_xml(root: &Element) -> Result<Self, CodegenError> {
        let aliases = Aliases::from_xml(root)?;
        let mut nodes = BTreeMap::new();
        let mut inverse = Vec::new();
        for element in &root.children {
            let Some(class) = Class::from_element(&element.name) else {
                continue;
            };
            let node = aliases.node(class, element, &mut inverse)?;
            if let Some(double) = nodes.insert(node.id, node) {
                return Err(CodegenError::schema(double.browse_name, "NodeId is used twice"));
            }
        }
        for (source, reference_type, target) in inverse {
            let source = nodes
                .get_mut(&source)
                .ok_or_else(|| CodegenError::schema(target, "dangling reference"))?;
            source.references.insert((reference_type, target));
        }
        let set = Self { nodes };
        set.check_references()?;
        Ok(set)
    }

    fn check_references(&self) -> Result<(), CodegenError> {
        for node in self.nodes.values() {
            for (reference_type, target) in &node.references {
                if !self.nodes.contains_key(target) || !self.nodes.contains_key(reference_type) {
                    return Err(CodegenError::schema(&node.browse_name, "dangling reference"));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn node(&self, id: u32) -> Result<&Node, CodegenError> {
        self.nodes
            .get(&id)
            .ok_or_else(|| CodegenError::schema(format!("i={id}"), "no such node"))
    }

    /// The sources of references of one type, by target; the last one wins.
    pub(crate) fn sources(&self, reference_type: u32) -> HashMap<u32, u32> {
        let forward = self
            .nodes
            .values()
            .flat_map(|node| node.references.iter().map(|reference| (node.id, reference)));
        forward
            .filter(|(_, (kind, _))| *kind == reference_type)
            .map(|(source, (_, target))| (*target, source))
            .collect()
    }
}

/// Parses `i=85`.
fn numeric_id(text: &str) -> Result<u32, CodegenError> {
    text.strip_prefix("i=")
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| CodegenError::schema(text, "not a numeric NodeId of namespace 0"))
}

fn number<T: std::str::FromStr>(element: &Element, name: &str, default: T) -> Result<T, CodegenError> {
    match element.attribute(name) {
        Some(text) => text
            .parse()
            .map_err(|_| CodegenError::schema(name, format!("not a number: {text}"))),
        None => Ok(default),
    }
}

fn numbers(element: &Element, name: &str) -> Result<Vec<u32>, CodegenError> {
    let Some(text) = element.attribute(name).filter(|text| !text.is_empty()) else {
        return Ok(Vec::new());
    };
    text.split(',')
        .map(|part| {
            part.trim()
                .parse()
                .map_err(|_| CodegenError::schema(name, format!("not numbers: {text}")))
        })
        .collect()
}

/// `https://host/v105/Core/docs/Part4/5.11.2/#5.11.2.2` to `Part 4, 5.11.2.2`.
fn section(link: &str) -> Option<String> {
    let (_, rest) = link.split_once("/Part")?;
    let (part, rest) = rest.split_once('/')?;
    let place = match rest.split_once('#') {
        Some((_, place)) => place,
        None => rest.split('/').next().unwrap_or(rest),
    };
    let valid = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '.');
    (valid(part) && valid(place)).then(|| format!("Part {part}, {place}"))
}

/// Names of NodeIds that the document declares.
struct Aliases(HashMap<String, u32>);

impl Aliases {
    fn from_xml(root: &Element) -> Result<Self, CodegenError> {
        let elements = root
            .child("Aliases")
            .into_iter()
            .flat_map(|list| list.children_named("Alias"));
        let named = elements.map(|alias| {
            let name = alias.attribute("Alias").unwrap_or_default().to_owned();
            Ok((name, numeric_id(alias.text())?))
        });
        named.collect::<Result<_, _>>().map(Self)
    }

    fn id(&self, text: &str) -> Result<u32, CodegenError> {
        self.0.get(text).copied().map_or_else(|| numeric_id(text), Ok)
    }

    fn optional_id(&self, element: &Element, name: &str) -> Result<Option<u32>, CodegenError> {
        element.attribute(name).map(|text| self.id(text)).transpose()
    }

    fn node(&self, class: Class, element: &Element, inverse: &mut Vec<(u32, u32, u32)>) -> Result<Node, CodegenError> {
        let id = numeric_id(element.attribute("NodeId").unwrap_or_default())?;
        let browse_name = element.attribute("BrowseName").unwrap_or_default();
        let browse_name = browse_name.strip_prefix("0:").unwrap_or(browse_name).to_owned();
        let text = |name: &str| element.child(name).map(|child| child.text().to_owned());
        let mut references = BTreeSet::new();
        for reference in element.child("References").into_iter().flat_map(|list| &list.children) {
            let kind = self.id(reference.attribute("ReferenceType").unwrap_or_default())?;
            let other = self.id(reference.text())?;
            if reference.attribute("IsForward") == Some("false") {
                inverse.push((other, kind, id));
            } else {
                references.insert((kind, other));
            }
        }
        let permissions = element
            .child("RolePermissions")
            .into_iter()
            .flat_map(|list| &list.children);
        Ok(Node {
            id,
            class,
            display_name: text("DisplayName").unwrap_or_else(|| browse_name.clone()),
            browse_name,
            symbolic_name: element.attribute("SymbolicName").map(str::to_owned),
            purpose: match element.attribute("Purpose") {
                Some("ServicesOnly") => Purpose::ServicesOnly,
                Some("CodeGenerator") => Purpose::CodeGenerator,
                _ => Purpose::Normal,
            },
            deprecated: element.attribute("ReleaseStatus") == Some("Deprecated"),
            design_tool_only: element.flag("DesignToolOnly"),
            is_abstract: element.flag("IsAbstract"),
            symmetric: element.flag("Symmetric"),
            inverse_name: text("InverseName"),
            data_type: self
                .optional_id(element, "DataType")?
                .unwrap_or(well_known::BASE_DATA_TYPE),
            value_rank: number(element, "ValueRank", -1)?,
            array_dimensions: numbers(element, "ArrayDimensions")?,
            access_level: number(element, "AccessLevel", 1)?,
            event_notifier: number(element, "EventNotifier", 0)?,
            value: element.child("Value").and_then(|value| value.children.first()).cloned(),
            definition: element
                .child("Definition")
                .map(|definition| self.definition(definition))
                .transpose()?,
            role_permissions: permissions
                .map(|entry| Ok((self.id(entry.text())?, number(entry, "Permissions", 0)?)))
                .collect::<Result<_, _>>()?,
            access_restrictions: match element.attribute("AccessRestrictions") {
                Some(_) => Some(number(element, "AccessRestrictions", 0)?),
                None => None,
            },
            method_declaration: self.optional_id(element, "MethodDeclarationId")?,
            section: element.child("Documentation").and_then(|link| section(link.text())),
            references,
        })
    }

    fn definition(&self, element: &Element) -> Result<Definition, CodegenError> {
        let fields = element.children_named("Field").map(|field| {
            Ok(Field {
                name: field.attribute("Name").unwrap_or_default().to_owned(),
                data_type: self
                    .optional_id(field, "DataType")?
                    .unwrap_or(well_known::BASE_DATA_TYPE),
                value_rank: number(field, "ValueRank", -1)?,
                array_dimensions: numbers(field, "ArrayDimensions")?,
                max_string_length: number(field, "MaxStringLength", 0)?,
                value: number(field, "Value", -1)?,
                optional: field.flag("IsOptional"),
                allow_subtypes: field.flag("AllowSubTypes"),
                display_name: field.child("DisplayName").map(|name| name.text().to_owned()),
            })
        });
        Ok(Definition {
            is_union: element.flag("IsUnion"),
            is_option_set: element.flag("IsOptionSet"),
            fields: fields.collect::<Result<_, CodegenError>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{NodeSet, section};

    #[test]
    fn sections_come_from_links() {
        let link = "https://host/v105/Core/docs/Part4/5.11.2/#5.11.2.2";
        assert_eq!(section(link).as_deref(), Some("Part 4, 5.11.2.2"));
        assert_eq!(
            section("https://host/v105/Core/docs/Part5/12.10").as_deref(),
            Some("Part 5, 12.10")
        );
        assert_eq!(section("https://host/"), None);
    }

    #[test]
    fn references_are_completed_and_checked() {
        let node = |id: u32, references: &str| {
            format!("<UAObject NodeId='i={id}' BrowseName='N'><References>{references}</References></UAObject>")
        };
        let backwards = "<Reference ReferenceType='A' IsForward='false'>i=1</Reference>";
        let aliases = "<Aliases><Alias Alias='A'>i=2</Alias></Aliases>";
        let document = format!("<UANodeSet>{aliases}{}{}</UANodeSet>", node(1, ""), node(2, backwards));
        let set = NodeSet::from_xml(&super::super::xml::parse(&document).unwrap()).unwrap();
        assert!(set.node(1).unwrap().references.contains(&(2, 2)));
        assert!(set.node(2).unwrap().references.is_empty());

        let document = format!("<UANodeSet>{aliases}{}</UANodeSet>", node(2, backwards));
        assert!(NodeSet::from_xml(&super::super::xml::parse(&document).unwrap()).is_err());
    }
}
