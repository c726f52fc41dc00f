//! NodeIdBytes: a NodeId as it lies in a message, its text not looked at yet.
//!
//! Owns the binary form and the hash of node ids. A node can be looked up by it: an id that equals a known one is well formed as that one is, so only what
//! is not found has to be [checked](NodeIdBytes::check).

use std::hash::{Hash, Hasher};

use crate::codec::{DecodeError, Decoder};

use super::{Guid, Identifier, IdentifierRef, NodeId, NodeIdRef};

/// A NodeId whose text has not been checked to be UTF-8. Hashes and compares like [`NodeId`].
///
/// One shape for all kinds, so that nothing has to be told apart until it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeIdBytes<'a> {
    namespace: u16,
    kind: Kind,
    /// The number of a numeric id; for others 1 if the identifier is null, else 0.
    number: u32,
    /// Text (which may be no UTF-8), octets, or the 16 bytes of a Guid; empty for numeric ids.
    bytes: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Numeric,
    String,
    Guid,
    Opaque,
}

pub(super) const TWO_BYTE: u8 = 0x00;
pub(crate) const FOUR_BYTE: u8 = 0x01;
pub(super) const NUMERIC: u8 = 0x02;
pub(super) const STRING: u8 = 0x03;
pub(super) const GUID: u8 = 0x04;
pub(super) const BYTE_STRING: u8 = 0x05;

impl<'a> NodeIdBytes<'a> {
    #[inline]
    const fn numeric(namespace: u16, number: u32) -> Self {
        Self {
            namespace,
            kind: Kind::Numeric,
            number,
            bytes: &[],
        }
    }

    #[inline]
    fn with_bytes(namespace: u16, kind: Kind, bytes: Option<&'a [u8]>) -> Self {
        Self {
            namespace,
            kind,
            number: u32::from(bytes.is_none()),
            bytes: bytes.unwrap_or(&[]),
        }
    }

    /// Index into the NamespaceArray.
    #[inline]
    #[must_use]
    pub fn namespace(&self) -> u16 {
        self.namespace
    }

    /// Reads a NodeId in place (Part 6, 5.2.2.9).
    ///
    /// # Errors
    /// [`DecodeError::Malformed`] for an unknown form or for the flags of an ExpandedNodeId, and those of its fields, except that text which is not UTF-8
    /// passes.
    #[inline]
    pub fn decode(d: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let form = d.u8()?;
        Self::decode_form(form, d)
    }

    /// Reads a NodeId with a string that is not null, if that is what comes next; otherwise the decoder may be anywhere.
    #[inline]
    pub(crate) fn decode_string(d: &mut Decoder<'a>) -> Option<Self> {
        let [form, low, high, length @ ..] = d.array::<7>().ok()?;
        let length = u32::from_le_bytes(length);
        if form != STRING || length > d.limits().max_string_length {
            return None;
        }
        Some(Self {
            namespace: u16::from_le_bytes([low, high]),
            kind: Kind::String,
            number: 0,
            bytes: d.raw(length as usize).ok()?,
        })
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
            STRING => {
                let namespace = d.u16()?;
                Self::with_bytes(namespace, Kind::String, d.unchecked_string()?)
            }
            GUID => {
                let namespace = d.u16()?;
                Self::with_bytes(namespace, Kind::Guid, Some(d.raw(16)?))
            }
            BYTE_STRING => {
                let namespace = d.u16()?;
                Self::with_bytes(namespace, Kind::Opaque, d.byte_string()?)
            }
            _ => return Err(DecodeError::Malformed("node id form")),
        })
    }

    /// The same id, once its text is known to be UTF-8.
    ///
    /// # Errors
    /// [`DecodeError::InvalidUtf8`].
    #[inline]
    pub fn check(self) -> Result<NodeIdRef<'a>, DecodeError> {
        let bytes = (self.number == 0).then_some(self.bytes);
        let identifier = match self.kind {
            Kind::Numeric => IdentifierRef::Numeric(self.number),
            Kind::String => IdentifierRef::String(match bytes {
                Some(bytes) => Some(std::str::from_utf8(bytes).map_err(|_| DecodeError::InvalidUtf8)?),
                None => None,
            }),
            Kind::Guid => IdentifierRef::Guid(Guid(self.bytes.try_into().unwrap_or_default())),
            Kind::Opaque => IdentifierRef::Opaque(bytes),
        };
        Ok(NodeIdRef {
            namespace: self.namespace,
            identifier,
        })
    }
}

impl<'a> From<&'a NodeId> for NodeIdBytes<'a> {
    #[inline]
    fn from(id: &'a NodeId) -> Self {
        match &id.identifier {
            Identifier::Numeric(number) => Self::numeric(id.namespace, *number),
            Identifier::String(text) => Self::with_bytes(id.namespace, Kind::String, text.as_str().map(str::as_bytes)),
            Identifier::Guid(guid) => Self::with_bytes(id.namespace, Kind::Guid, Some(&guid.0)),
            Identifier::Opaque(bytes) => Self::with_bytes(id.namespace, Kind::Opaque, bytes.as_slice()),
        }
    }
}

impl<'a> From<&'a NodeIdRef<'_>> for NodeIdBytes<'a> {
    #[inline]
    fn from(id: &'a NodeIdRef<'_>) -> Self {
        match &id.identifier {
            IdentifierRef::Numeric(number) => Self::numeric(id.namespace, *number),
            IdentifierRef::String(text) => Self::with_bytes(id.namespace, Kind::String, text.map(str::as_bytes)),
            IdentifierRef::Guid(guid) => Self::with_bytes(id.namespace, Kind::Guid, Some(&guid.0)),
            IdentifierRef::Opaque(bytes) => Self::with_bytes(id.namespace, Kind::Opaque, *bytes),
        }
    }
}

impl Hash for NodeIdBytes<'_> {
    // Always: left to itself the compiler hands the hasher over in memory, which costs as much as the hash.
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        // One word for numeric ids: kind, namespace, number. For others it ends what was hashed and holds the length, so that no two ids are hashed from
        // the same bytes. Nodes are looked up once per operation.
        let mut word = (u64::from(self.namespace) << 32) | u64::from(self.number);
        if self.kind != Kind::Numeric {
            state.write(self.bytes);
            word ^= (self.kind as u64) << 62 | (self.bytes.len() as u64) << 1;
        }
        state.write_u64(word);
    }
}

impl PartialEq<NodeId> for NodeIdBytes<'_> {
    #[inline]
    fn eq(&self, other: &NodeId) -> bool {
        match (self.kind, &other.identifier) {
            (Kind::String, Identifier::String(text)) if self.namespace == other.namespace => {
                text.as_str().map(str::as_bytes) == (self.number == 0).then_some(self.bytes)
            }
            _ => *self == NodeIdBytes::from(other),
        }
    }
}

impl hashbrown::Equivalent<NodeId> for NodeIdBytes<'_> {
    #[inline]
    fn equivalent(&self, key: &NodeId) -> bool {
        self == key
    }
}
