//! NodeId and ExpandedNodeId (Part 6, 5.2.2.9 and 5.2.2.10).

use std::hash::{Hash, Hasher};

use crate::codec::{BinaryDecode, BinaryEncode, DecodeError, Decoder, Encoder};

use super::{ByteString, Guid, IdentifierRef, NodeIdRef, UaString};

/// What makes a node unique within its namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identifier {
    /// A number.
    Numeric(u32),
    /// A string.
    String(UaString),
    /// A Guid.
    Guid(Guid),
    /// Octets.
    Opaque(ByteString),
}

/// The name of a node in one server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId {
    /// Index into the NamespaceArray.
    pub namespace: u16,
    /// What is unique within the namespace.
    pub identifier: Identifier,
}

impl NodeId {
    /// The null id, `i=0`.
    pub const NULL: Self = Self::numeric(0, 0);

    /// A numeric id.
    #[inline]
    #[must_use]
    pub const fn numeric(namespace: u16, identifier: u32) -> Self {
        Self {
            namespace,
            identifier: Identifier::Numeric(identifier),
        }
    }

    /// A numeric id in namespace 0.
    #[inline]
    #[must_use]
    pub const fn standard(identifier: u32) -> Self {
        Self::numeric(0, identifier)
    }

    /// A string id.
    pub fn string(namespace: u16, identifier: impl Into<UaString>) -> Self {
        Self {
            namespace,
            identifier: Identifier::String(identifier.into()),
        }
    }

    /// A Guid id.
    #[must_use]
    pub const fn guid(namespace: u16, identifier: Guid) -> Self {
        Self {
            namespace,
            identifier: Identifier::Guid(identifier),
        }
    }

    /// An opaque id.
    pub fn opaque(namespace: u16, identifier: impl Into<ByteString>) -> Self {
        Self {
            namespace,
            identifier: Identifier::Opaque(identifier.into()),
        }
    }

    /// Whether this is a null id of any kind: namespace 0 and a zero or empty identifier.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.as_node_id_ref().is_null()
    }

    /// The number, if the id is numeric and in namespace 0.
    #[inline]
    #[must_use]
    pub fn as_standard(&self) -> Option<u32> {
        self.as_node_id_ref().as_standard()
    }

    /// The same id, borrowed.
    #[inline]
    #[must_use]
    pub fn as_node_id_ref(&self) -> NodeIdRef<'_> {
        NodeIdRef {
            namespace: self.namespace,
            identifier: match &self.identifier {
                Identifier::Numeric(number) => IdentifierRef::Numeric(*number),
                Identifier::String(text) => IdentifierRef::String(text.as_str()),
                Identifier::Guid(guid) => IdentifierRef::Guid(*guid),
                Identifier::Opaque(bytes) => IdentifierRef::Opaque(bytes.as_slice()),
            },
        }
    }
}

impl Default for NodeId {
    fn default() -> Self {
        Self::NULL
    }
}

impl Hash for NodeId {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_node_id_ref().hash(state);
    }
}

impl From<NodeIdRef<'_>> for NodeId {
    fn from(id: NodeIdRef<'_>) -> Self {
        id.to_owned()
    }
}

/// Part 6, 5.2.2.9; the smallest form.
impl BinaryEncode for NodeId {
    #[inline]
    fn encode(&self, e: &mut Encoder<'_>) {
        self.as_node_id_ref().encode_with(0, e);
    }
}

impl BinaryDecode for NodeId {
    const MIN_SIZE: usize = 2;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        NodeIdRef::decode(d).map(|id| id.to_owned())
    }
}

/// A NodeId that may name its namespace by URI and may lie in another server.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExpandedNodeId {
    /// The id; its namespace index counts only if `namespace_uri` is null or empty.
    pub node_id: NodeId,
    /// URI of the namespace, or null.
    pub namespace_uri: UaString,
    /// Index into the ServerArray; 0 is the local server.
    pub server_index: u32,
}

const NAMESPACE_URI_FLAG: u8 = 0x80;
const SERVER_INDEX_FLAG: u8 = 0x40;

impl ExpandedNodeId {
    /// The null id.
    pub const NULL: Self = Self {
        node_id: NodeId::NULL,
        namespace_uri: UaString::NULL,
        server_index: 0,
    };

    /// Whether the id names a node of this server by namespace index.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.server_index == 0 && self.namespace_uri.is_empty()
    }

    /// Whether the id is null.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.is_local() && self.node_id.is_null()
    }

    /// Writes the expanded form of a local id without building one.
    #[inline]
    pub fn encode_local(id: NodeIdRef<'_>, e: &mut Encoder<'_>) {
        id.encode_with(0, e);
    }
}

impl From<NodeId> for ExpandedNodeId {
    fn from(node_id: NodeId) -> Self {
        Self {
            node_id,
            namespace_uri: UaString::NULL,
            server_index: 0,
        }
    }
}

impl BinaryEncode for ExpandedNodeId {
    fn encode(&self, e: &mut Encoder<'_>) {
        let mut flags = 0;
        let mut id = self.node_id.as_node_id_ref();
        // An empty URI names no namespace: then the index counts.
        if !self.namespace_uri.is_empty() {
            flags |= NAMESPACE_URI_FLAG;
            // Part 6, 5.2.2.10: with a URI, the namespace index is 0.
            id.namespace = 0;
        }
        if self.server_index != 0 {
            flags |= SERVER_INDEX_FLAG;
        }
        id.encode_with(flags, e);
        if flags & NAMESPACE_URI_FLAG != 0 {
            self.namespace_uri.encode(e);
        }
        if flags & SERVER_INDEX_FLAG != 0 {
            e.u32(self.server_index);
        }
    }
}

impl BinaryDecode for ExpandedNodeId {
    const MIN_SIZE: usize = 2;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let form = d.u8()?;
        let flags = form & (NAMESPACE_URI_FLAG | SERVER_INDEX_FLAG);
        let mut node_id = NodeIdRef::decode_form(form & !flags, d)?.to_owned();
        let uri = if flags & NAMESPACE_URI_FLAG != 0 {
            d.string()?
        } else {
            None
        };
        // With a URI the index has to be 0 and is ignored; an empty URI is none.
        let namespace_uri = UaString::from(uri.filter(|uri| !uri.is_empty()));
        if !namespace_uri.is_null() {
            node_id.namespace = 0;
        }
        let server_index = if flags & SERVER_INDEX_FLAG != 0 { d.u32()? } else { 0 };
        Ok(Self {
            node_id,
            namespace_uri,
            server_index,
        })
    }
}
