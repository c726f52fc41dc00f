//! NodeIdRef: a NodeId that borrows its identifier from a message, so that a node can be looked up without allocating.
//!
//! Owns the binary form and the hash of node ids; [`NodeId`] uses both, so the two hash and compare alike.

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::codec::{BinaryEncode, DecodeError, Decoder, Encoder};

use super::{ByteString, Guid, Identifier, NodeId, UaString};

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

const TWO_BYTE: u8 = 0x00;
const FOUR_BYTE: u8 = 0x01;
const NUMERIC: u8 = 0x02;
const STRING: u8 = 0x03;
const GUID: u8 = 0x04;
const BYTE_STRING: u8 = 0x05;

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
        Ok(match form {
            TWO_BYTE => Self::numeric(0, u32::from(d.u8()?)),
            FOUR_BYTE => {
                let namespace = u16::from(d.u8()?);
                Self::numeric(namespace, u32::from(d.u16()?))
            }
            NUMERIC => {
                let namespace = d.u16()?;
                Self::numeric(namespace, d.u32()?)
            }
            STRING => Self {
                namespace: d.u16()?,
                identifier: IdentifierRef::String(d.string()?),
            },
            GUID => Self {
                namespace: d.u16()?,
                identifier: IdentifierRef::Guid(d.array().map(Guid)?),
            },
            BYTE_STRING => Self {
                namespace: d.u16()?,
                identifier: IdentifierRef::Opaque(d.byte_string()?),
            },
            _ => return Err(DecodeError::Malformed("node id form")),
        })
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
        // One word for numeric ids: kind, namespace, number. Nodes are looked up once per operation.
        let head = |kind: u64, number: u32| (kind << 48) | (u64::from(self.namespace) << 32) | u64::from(number);
        match self.identifier {
            IdentifierRef::Numeric(number) => state.write_u64(head(0, number)),
            IdentifierRef::String(text) => {
                state.write_u64(head(1, u32::from(text.is_none())));
                state.write(text.unwrap_or("").as_bytes());
                state.write_u8(0xFF);
            }
            IdentifierRef::Guid(guid) => {
                state.write_u64(head(2, 0));
                state.write(&guid.0);
            }
            IdentifierRef::Opaque(bytes) => {
                state.write_u64(head(3, u32::from(bytes.is_none())));
                state.write(bytes.unwrap_or(&[]));
                state.write_u8(0xFF);
            }
        }
    }
}

impl PartialEq<NodeId> for NodeIdRef<'_> {
    #[inline]
    fn eq(&self, other: &NodeId) -> bool {
        *self == other.as_node_id_ref()
    }
}

impl PartialEq<NodeIdRef<'_>> for NodeId {
    #[inline]
    fn eq(&self, other: &NodeIdRef<'_>) -> bool {
        self.as_node_id_ref() == *other
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
