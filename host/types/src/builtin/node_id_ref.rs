//! NodeIdRef: a NodeId that borrows its identifier from a message, so that a node can be looked up without allocating.
//!
//! Owns how node ids are written; [`NodeId`] uses it. Reading and hashing are [`NodeIdBytes`]'s, so that all three hash and compare alike.

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::codec::{BinaryEncode, DecodeError, Decoder, Encoder};

use super::node_id_bytes::{BYTE_STRING, FOUR_BYTE, GUID, NUMERIC, STRING, TWO_BYTE};
use super::{ByteString, Guid, Identifier, NodeId, NodeIdBytes, UaString};

/// The identifier of a [`NodeIdRef`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentifierRef<'a> {
    /// A number.
    Numeric(u32),
    /// A string; `None` is null.
    String(Option<&'a str>),
    /// A Guid.
    Guid(Guid),
    /// Octets; `None` is null.
    Opaque(Option<&'a [u8]>),
}

/// A NodeId that borrows its identifier. Hashes and compares like [`NodeId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeIdRef<'a> {
    /// Index into the NamespaceArray.
    pub namespace: u16,
    /// What is unique within the namespace.
    pub identifier: IdentifierRef<'a>,
}

impl<'a> NodeIdRef<'a> {
    /// The null id, `i=0`.
    pub const NULL: Self = Self::numeric(0, 0);

    /// A numeric id.
    #[inline]
    #[must_use]
    pub const fn numeric(namespace: u16, identifier: u32) -> Self {
        Self {
            namespace,
            identifier: IdentifierRef::Numeric(identifier),
        }
    }

    /// A string id.
    #[inline]
    #[must_use]
    pub const fn string(namespace: u16, identifier: &'a str) -> Self {
        Self {
            namespace,
            identifier: IdentifierRef::String(Some(identifier)),
        }
    }

    /// Whether this is a null id of any kind: namespace 0 and a zero or empty identifier.
    #[must_use]
    #[inline]
    pub fn is_null(&self) -> bool {
        self.namespace == 0
            && match self.identifier {
                IdentifierRef::Numeric(number) => number == 0,
                IdentifierRef::String(text) => text.unwrap_or("").is_empty(),
                IdentifierRef::Guid(guid) => guid.is_null(),
                IdentifierRef::Opaque(bytes) => bytes.unwrap_or(&[]).is_empty(),
            }
    }

    /// The number, if the id is numeric and in namespace 0.
    #[inline]
    #[must_use]
    pub fn as_standard(&self) -> Option<u32> {
        match self.identifier {
            IdentifierRef::Numeric(number) if self.namespace == 0 => Some(number),
            _ => None,
        }
    }

    /// A copy that owns its identifier.
    #[must_use]
    pub fn to_owned(&self) -> NodeId {
        NodeId {
            namespace: self.namespace,
            identifier: match self.identifier {
                IdentifierRef::Numeric(number) => Identifier::Numeric(number),
                IdentifierRef::String(text) => Identifier::String(UaString::from(text)),
                IdentifierRef::Guid(guid) => Identifier::Guid(guid),
                IdentifierRef::Opaque(bytes) => Identifier::Opaque(ByteString::from(bytes)),
            },
        }
    }

    /// Reads a NodeId in place (Part 6, 5.2.2.9).
    ///
    /// # Errors
    /// [`DecodeError::Malformed`] for an unknown form or for the flags of an ExpandedNodeId, and those of its fields.
    #[inline]
    pub fn decode(d: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let form = d.u8()?;
        Self::decode_form(form, d)
    }

    /// Reads what follows the first byte of a NodeId.
    #[inline]
    pub(crate) fn decode_form(form: u8, d: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        NodeIdBytes::decode_form(form, d)?.check()
    }

    /// Writes the smallest form, with `flags` added to its first byte.
    #[inline]
    pub(crate) fn encode_with(&self, flags: u8, e: &mut Encoder<'_>) {
        match self.identifier {
            IdentifierRef::Numeric(number) => match (u8::try_from(self.namespace), u16::try_from(number)) {
                (Ok(0), Ok(number)) if number <= 0xFF => e.raw(&[TWO_BYTE | flags, number.to_le_bytes()[0]]),
                (Ok(namespace), Ok(number)) => {
                    let [low, high] = number.to_le_bytes();
                    e.raw(&[FOUR_BYTE | flags, namespace, low, high]);
                }
                _ => {
                    self.header(NUMERIC | flags, e);
                    e.u32(number);
                }
            },
            IdentifierRef::String(text) => {
                self.header(STRING | flags, e);
                e.string(text);
            }
            IdentifierRef::Guid(guid) => {
                self.header(GUID | flags, e);
                e.raw(&guid.0);
            }
            IdentifierRef::Opaque(bytes) => {
                self.header(BYTE_STRING | flags, e);
                e.byte_string(bytes);
            }
        }
    }

    #[inline]
    fn header(&self, form: u8, e: &mut Encoder<'_>) {
        let [low, high] = self.namespace.to_le_bytes();
        e.raw(&[form, low, high]);
    }
}

impl Hash for NodeIdRef<'_> {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        NodeIdBytes::from(self).hash(state);
    }
}

impl PartialEq<NodeId> for NodeIdRef<'_> {
    #[inline]
    fn eq(&self, other: &NodeId) -> bool {
        NodeIdBytes::from(self) == *other
    }
}

impl PartialEq<NodeIdRef<'_>> for NodeId {
    #[inline]
    fn eq(&self, other: &NodeIdRef<'_>) -> bool {
        other == self
    }
}

impl hashbrown::Equivalent<NodeId> for NodeIdRef<'_> {
    #[inline]
    fn equivalent(&self, key: &NodeId) -> bool {
        self == key
    }
}

impl BinaryEncode for NodeIdRef<'_> {
    #[inline]
    fn encode(&self, e: &mut Encoder<'_>) {
        self.encode_with(0, e);
    }
}

impl fmt::Display for NodeIdRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::node_id_text::write(self, f)
    }
}
