//! StructureDefinition and EnumDefinition (Part 3, 8.48 to 8.52), as the host wants them: encoded, without a frame.

use super::Writer;
use crate::{NodeId, Typed, ids};

/// What kind of structure (StructureType, Part 3, 8.49).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(i32)]
pub enum StructureKind {
    /// All fields, in order.
    #[default]
    Structure = 0,
    /// Some fields are optional: a UInt32 mask comes first.
    WithOptionalFields = 1,
    /// One of the fields: a UInt32 switch comes first.
    Union = 2,
}

/// One field of a structure.
#[derive(Clone, Debug, PartialEq)]
pub struct StructureField {
    /// The name.
    pub name: String,
    /// The data type.
    pub data_type: NodeId,
    /// -1 scalar, 1 array.
    pub value_rank: i32,
    /// Only with [`StructureKind::WithOptionalFields`].
    pub optional: bool,
    /// What it means.
    pub description: String,
}

/// The fields of a structured data type.
#[derive(Clone, Debug, PartialEq)]
pub struct StructureDefinition {
    /// The id of the "Default Binary" node, which the host makes.
    pub encoding: NodeId,
    /// The supertype: Structure unless set.
    pub base: NodeId,
    /// The kind.
    pub kind: StructureKind,
    /// The fields, inherited ones first.
    pub fields: Vec<StructureField>,
}

impl StructureDefinition {
    /// A plain structure without fields.
    pub fn new(encoding: NodeId) -> Self {
        StructureDefinition {
            encoding,
            base: NodeId::standard(ids::STRUCTURE),
            kind: StructureKind::Structure,
            fields: Vec::new(),
        }
    }

    /// Adds a field of a built-in type.
    pub fn field<T: Typed>(self, name: &str) -> Self {
        self.field_of(name, NodeId::standard(T::DATA_TYPE), T::VALUE_RANK)
    }

    /// Adds a field of any data type; `value_rank` is -1 for a scalar, 1 for an array.
    pub fn field_of(mut self, name: &str, data_type: NodeId, value_rank: i32) -> Self {
        self.fields.push(StructureField {
            name: name.to_owned(),
            data_type,
            value_rank,
            optional: false,
            description: String::new(),
        });
        self
    }

    /// Says what data type a field is of, where that is more than the built-in type: an enumeration, say. A name that no field has changes nothing.
    pub fn data_type(mut self, name: &str, data_type: NodeId) -> Self {
        self.fields
            .iter_mut()
            .filter(|field| field.name == name)
            .for_each(|field| field.data_type = data_type.clone());
        self
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.node_id(&self.encoding);
        writer.node_id(&self.base);
        writer.i32(self.kind as i32);
        writer.length(self.fields.len());
        for field in &self.fields {
            writer.text(&field.name);
            writer.localized_text(&field.description.as_str().into());
            writer.node_id(&field.data_type);
            writer.i32(field.value_rank);
            writer.null();
            writer.u32(0);
            writer.bool(field.optional);
        }
        writer.into_bytes()
    }
}

/// One name of an enumeration.
#[derive(Clone, Debug, PartialEq)]
pub struct EnumField {
    /// The number.
    pub value: i64,
    /// The name, also what people are shown.
    pub name: String,
    /// What it means.
    pub description: String,
}

/// The names of an enumerated data type.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct EnumDefinition {
    /// The names.
    pub fields: Vec<EnumField>,
}

impl EnumDefinition {
    /// An enumeration without names.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a name.
    pub fn field(mut self, value: i64, name: &str) -> Self {
        self.fields.push(EnumField {
            value,
            name: name.to_owned(),
            description: String::new(),
        });
        self
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.length(self.fields.len());
        for field in &self.fields {
            writer.i64(field.value);
            writer.localized_text(&field.name.as_str().into());
            writer.localized_text(&field.description.as_str().into());
            writer.text(&field.name);
        }
        writer.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_structure_definition_has_the_bytes_of_the_standard() {
        let definition = StructureDefinition::new(NodeId::numeric(1, 2))
            .field::<f64>("a")
            .field::<Vec<i32>>("b");
        let mut expected = vec![1, 1, 2, 0, 0, 22, 0, 0, 0, 0, 2, 0, 0, 0];
        expected.extend([
            1, 0, 0, 0, b'a', 0, 0, 11, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0,
        ]);
        expected.extend([
            1, 0, 0, 0, b'b', 0, 0, 6, 1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0,
        ]);
        assert_eq!(definition.to_bytes(), expected);
    }

    #[test]
    fn an_enum_definition_has_the_bytes_of_the_standard() {
        let definition = EnumDefinition::new().field(2, "On");
        let mut expected = vec![1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2, 2, 0, 0, 0, b'O', b'n', 0];
        expected.extend([2, 0, 0, 0, b'O', b'n']);
        assert_eq!(definition.to_bytes(), expected);
    }
}
