//! What the data types of a nodeset are: their kind, their complete fields and their encodings.
//!
//! Owns the rules of Part 3 and Part 6 on subtypes of Structure, Enumeration and numbers. Knows no output format.

use std::collections::HashMap;

use super::error::CodegenError;
use super::nodeset::{Class, Field, Node, NodeSet, Purpose, well_known};

/// How values of a data type are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A built-in type, by its number; subtypes of it too. Abstract numbers are 24, Variant.
    BuiltIn(u8),
    /// An enumeration: Int32.
    Enumeration,
    /// An option set over Byte, UInt16, UInt32 or UInt64, by the number of the built-in type.
    OptionSet(u8),
    /// A concrete structure with its own fields.
    Structure,
    /// Structure itself, or an abstract structure: an ExtensionObject.
    AbstractStructure,
}

/// The encodings of a structure.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Encodings {
    pub(crate) binary: Option<u32>,
    pub(crate) xml: Option<u32>,
}

/// The data types of a nodeset.
pub(crate) struct DataTypes<'n> {
    set: &'n NodeSet,
    supertypes: HashMap<u32, u32>,
    encodings: HashMap<u32, Encodings>,
    by_xml_encoding: HashMap<u32, u32>,
}

impl<'n> DataTypes<'n> {
    pub(crate) fn new(set: &'n NodeSet) -> Result<Self, CodegenError> {
        let mut encodings: HashMap<u32, Encodings> = HashMap::new();
        let mut by_xml_encoding = HashMap::new();
        for (encoding, data_type) in set.sources(well_known::HAS_ENCODING) {
            let entry = encodings.entry(data_type).or_default();
            match set.node(encoding)?.browse_name.as_str() {
                "Default Binary" => entry.binary = Some(encoding),
                "Default XML" => {
                    entry.xml = Some(encoding);
                    by_xml_encoding.insert(encoding, data_type);
                }
                _ => {}
            }
        }
        Ok(Self {
            set,
            supertypes: set.sources(well_known::HAS_SUBTYPE),
            encodings,
            by_xml_encoding,
        })
    }

    /// All data types in ascending order of their names.
    pub(crate) fn sorted(&self) -> Vec<&'n Node> {
        let mut types: Vec<_> = self
            .set
            .nodes
            .values()
            .filter(|node| node.class == Class::DataType)
            .collect();
        types.sort_by(|a, b| self.rust_name(a).cmp(self.rust_name(b)));
        types
    }

    pub(crate) fn node(&self, id: u32) -> Result<&'n Node, CodegenError> {
        self.set.node(id)
    }

    pub(crate) fn supertype(&self, id: u32) -> Option<u32> {
        self.supertypes.get(&id).copied()
    }

    pub(crate) fn encodings(&self, id: u32) -> Encodings {
        self.encodings.get(&id).copied().unwrap_or_default()
    }

    /// The data type whose XML encoding has this id.
    pub(crate) fn of_xml_encoding(&self, id: u32) -> Option<u32> {
        self.by_xml_encoding.get(&id).copied()
    }

    pub(crate) fn rust_name(&self, node: &'n Node) -> &'n str {
        node.symbolic_name.as_deref().unwrap_or(&node.browse_name)
    }

    /// The data type and its supertypes, from itself upwards.
    fn line(&self, id: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(id), |id| self.supertype(*id))
    }

    pub(crate) fn kind(&self, id: u32) -> Result<Kind, CodegenError> {
        let node = self.node(id)?;
        let is_option_set = node
            .definition
            .as_ref()
            .is_some_and(|definition| definition.is_option_set);
        for ancestor in self.line(id) {
            return Ok(match ancestor {
                well_known::ENUMERATION => Kind::Enumeration,
                well_known::STRUCTURE if id == well_known::STRUCTURE || node.is_abstract => Kind::AbstractStructure,
                well_known::STRUCTURE => Kind::Structure,
                3 | 5 | 7 | 9 if is_option_set => Kind::OptionSet(built_in(ancestor)),
                // Number, Integer, UInteger and BaseDataType: any value.
                24 | 26..=28 => Kind::BuiltIn(24),
                1..=25 => Kind::BuiltIn(built_in(ancestor)),
                _ => continue,
            });
        }
        Err(CodegenError::schema(
            &node.browse_name,
            "data type without a built-in ancestor",
        ))
    }

    /// Whether values of the type are unions.
    pub(crate) fn is_union(&self, id: u32) -> bool {
        self.line(id).any(|ancestor| ancestor == well_known::UNION)
            || self
                .set
                .nodes
                .get(&id)
                .and_then(|node| node.definition.as_ref())
                .is_some_and(|own| own.is_union)
    }

    /// All fields of a structure, inherited ones first.
    pub(crate) fn fields(&self, id: u32) -> Vec<&'n Field> {
        let line: Vec<u32> = self.line(id).collect();
        let definitions = line
            .iter()
            .rev()
            .filter_map(|id| self.set.nodes.get(id))
            .filter_map(|node| node.definition.as_ref());
        definitions.flat_map(|definition| &definition.fields).collect()
    }

    /// Whether a Rust structure is generated: concrete, and with a binary encoding.
    pub(crate) fn is_generated(&self, node: &Node) -> Result<bool, CodegenError> {
        Ok(self.kind(node.id)? == Kind::Structure
            && node.purpose != Purpose::CodeGenerator
            && self.encodings(node.id).binary.is_some())
    }
}

/// `id` is at most 25 wherever this is called.
fn built_in(id: u32) -> u8 {
    u8::try_from(id).unwrap_or_default()
}
