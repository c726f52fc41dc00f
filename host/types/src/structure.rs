//! Structure: what the generated types have in common.

use crate::codec::{BinaryDecode, BinaryEncode};

/// A structure of namespace 0 with a binary encoding.
pub trait Structure: BinaryEncode + BinaryDecode {
    /// Identifier of the DataType node.
    const TYPE_ID: u32;
    /// Identifier of the Default Binary encoding node: what stands before a message and in an ExtensionObject.
    const ENCODING_ID: u32;
    /// Name of the type.
    const NAME: &'static str;
}
