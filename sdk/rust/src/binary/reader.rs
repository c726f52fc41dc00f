//! Reading OPC UA Binary out of a slice, with every length checked against what is there.

use std::fmt;

use crate::{ExpandedNodeId, ExtensionObject, Guid, Identifier, LocalizedText, NodeId, QualifiedName};

/// The bytes are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes end inside a value.
    Short,
    /// A byte or length that no value has.
    Invalid,
    /// Values nested deeper than the limit of 100.
    Deep,
    /// Bytes are left over.
    Long,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DecodeError::Short => "the bytes end inside a value",
            DecodeError::Invalid => "a byte that no value has",
            DecodeError::Deep => "values nested too deep",
            DecodeError::Long => "bytes left over",
        })
    }
}

impl std::error::Error for DecodeError {}

/// Reads values of OPC UA Binary from the front of a slice (Part 6, 5.2.2).
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    pub(super) depth: u8,
}

macro_rules! numbers {
    ($($name:ident),*) => {$(
        #[doc = concat!("One ", stringify!($name), ".")]
        ///
        /// # Errors
        /// The bytes end.
        pub fn $name(&mut self) -> Result<$name, DecodeError> {
            let (head, rest) = self.rest.split_first_chunk().ok_or(DecodeError::Short)?;
            self.rest = rest;
            Ok($name::from_le_bytes(*head))
        }
    )*};
}

impl<'a> Reader<'a> {
    /// Reads from the front of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes, depth: 0 }
    }

    /// What is not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// # Errors
    /// Bytes are left.
    pub fn end(&self) -> Result<(), DecodeError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::Long)
        }
    }

    numbers!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

    /// A Boolean: any byte but 0 is true.
    ///
    /// # Errors
    /// The bytes end.
    pub fn bool(&mut self) -> Result<bool, DecodeError> {
        Ok(self.u8()? != 0)
    }

    /// `length` bytes as they are.
    ///
    /// # Errors
    /// The bytes end.
    pub fn raw(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (head, rest) = self.rest.split_at_checked(length).ok_or(DecodeError::Short)?;
        self.rest = rest;
        Ok(head)
    }

    /// The length of an array, at most one element for each byte that is left; null is 0.
    ///
    /// # Errors
    /// The bytes end, or could not hold that many elements.
    pub fn length(&mut self) -> Result<usize, DecodeError> {
        let length = usize::try_from(self.i32()?.max(0)).map_err(|_| DecodeError::Invalid)?;
        if length > self.rest.len() {
            Err(DecodeError::Short)
        } else {
            Ok(length)
        }
    }

    /// A ByteString; null is empty.
    ///
    /// # Errors
    /// The bytes end.
    pub fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.length()?;
        self.raw(length)
    }

    /// A String; null is empty.
    ///
    /// # Errors
    /// The bytes end or are not UTF-8.
    pub fn text(&mut self) -> Result<String, DecodeError> {
        std::str::from_utf8(self.bytes()?)
            .map(str::to_owned)
            .map_err(|_| DecodeError::Invalid)
    }

    /// A Guid.
    ///
    /// # Errors
    /// The bytes end.
    pub fn guid(&mut self) -> Result<Guid, DecodeError> {
        let mut guid = [0; 16];
        guid.copy_from_slice(self.raw(16)?);
        Ok(Guid(guid))
    }

    /// A NodeId (5.2.2.9).
    ///
    /// # Errors
    /// The bytes end, or have a form that does not exist.
    pub fn node_id(&mut self) -> Result<NodeId, DecodeError> {
        let form = self.u8()?;
        self.node_id_of(form)
    }

    fn node_id_of(&mut self, form: u8) -> Result<NodeId, DecodeError> {
        let (namespace, identifier) = match form {
            0 => (0, Identifier::Numeric(self.u8()?.into())),
            1 => (self.u8()?.into(), Identifier::Numeric(self.u16()?.into())),
            2 => (self.u16()?, Identifier::Numeric(self.u32()?)),
            3 => (self.u16()?, Identifier::Text(self.text()?)),
            4 => (self.u16()?, Identifier::Guid(self.raw(16)?.to_vec())),
            5 => (self.u16()?, Identifier::Opaque(self.bytes()?.to_vec())),
            _ => return Err(DecodeError::Invalid),
        };
        Ok(NodeId { namespace, identifier })
    }

    /// An ExpandedNodeId (5.2.2.10).
    ///
    /// # Errors
    /// As for a NodeId.
    pub fn expanded_node_id(&mut self) -> Result<ExpandedNodeId, DecodeError> {
        let form = self.u8()?;
        let node_id = self.node_id_of(form & 0x3F)?;
        let namespace_uri = if form & 0x80 != 0 { self.text()? } else { String::new() };
        let server_index = if form & 0x40 != 0 { self.u32()? } else { 0 };
        Ok(ExpandedNodeId {
            node_id,
            namespace_uri,
            server_index,
        })
    }

    /// A QualifiedName.
    ///
    /// # Errors
    /// The bytes end or are not UTF-8.
    pub fn qualified_name(&mut self) -> Result<QualifiedName, DecodeError> {
        Ok(QualifiedName {
            namespace: self.u16()?,
            name: self.text()?,
        })
    }

    /// A LocalizedText (5.2.2.14).
    ///
    /// # Errors
    /// The bytes end or are not UTF-8.
    pub fn localized_text(&mut self) -> Result<LocalizedText, DecodeError> {
        let mask = self.u8()?;
        let locale = if mask & 1 != 0 { self.text()? } else { String::new() };
        let text = if mask & 2 != 0 { self.text()? } else { String::new() };
        Ok(LocalizedText { locale, text })
    }

    /// An ExtensionObject (5.2.2.15). An XML body is kept as its bytes.
    ///
    /// # Errors
    /// The bytes end, or have a form that does not exist.
    pub fn extension_object(&mut self) -> Result<ExtensionObject, DecodeError> {
        let type_id = self.node_id()?;
        let body = match self.u8()? {
            0 => Vec::new(),
            1 | 2 => self.bytes()?.to_vec(),
            _ => return Err(DecodeError::Invalid),
        };
        Ok(ExtensionObject { type_id, body })
    }
}
