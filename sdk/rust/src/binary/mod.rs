//! The part of OPC UA Binary (Part 6, 5.2) that a plugin needs: values that have no case of their own in the contract, structures, and data type
//! definitions. Knows the value types and nothing of the host. Only authors with matrices, structures or rare array types ever meet it.

mod definition;
mod reader;
mod variant;
mod writer;

pub use definition::{EnumDefinition, EnumField, StructureDefinition, StructureField, StructureKind};
pub use reader::{DecodeError, Reader};
pub use writer::Writer;

#[cfg(not(target_family = "wasm"))]
pub(crate) use variant::shape;
pub(crate) use variant::{decode_array, decode_matrix, decode_scalar, encode_array, encode_matrix, encode_scalar};

/// A structured data type as Rust sees it: its fields in order, without any frame. `structure!` writes this for plain structs.
pub trait Structure: Sized {
    /// Appends the fields.
    fn encode(&self, writer: &mut Writer);
    /// Reads the fields.
    ///
    /// # Errors
    /// The bytes end early or make no sense.
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError>;
}

impl crate::ExtensionObject {
    /// Encodes a structure; `encoding` is the DefaultEncodingId of its definition.
    pub fn of(encoding: crate::NodeId, structure: &impl Structure) -> Self {
        let mut writer = Writer::new();
        structure.encode(&mut writer);
        crate::ExtensionObject {
            type_id: encoding,
            body: writer.into_bytes(),
        }
    }

    /// Reads the body as `T`; the caller has looked at `type_id`.
    ///
    /// # Errors
    /// The bytes are not a `T`, or more than that.
    pub fn structure<T: Structure>(&self) -> Result<T, DecodeError> {
        let mut reader = Reader::new(&self.body);
        let structure = T::decode(&mut reader)?;
        reader.end()?;
        Ok(structure)
    }
}
