//! Rust names for the values of OPC UA that the contract has as plain numbers and lists: status codes, times, Guids, byte strings, node ids and namespaces.
//! Owns no encoding and no host access.

use std::fmt;

pub use crate::bindings::backplane::types::ua::{
    DataValue, Fault, Identifier, LocalizedText, NodeId, QualifiedName, Value,
};
use crate::ids;

/// A StatusCode (Part 4, 7.39). The constants have the names of the standard: [`StatusCode::BAD_OUT_OF_RANGE`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(transparent)]
pub struct StatusCode(pub u32);

impl StatusCode {
    /// Whether the severity bits say Good.
    pub fn is_good(self) -> bool {
        self.0 >> 30 == 0
    }

    /// Whether the severity bits say Bad.
    pub fn is_bad(self) -> bool {
        self.0 >> 31 == 1
    }
}

impl fmt::Debug for StatusCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:08X}", self.0)
    }
}

impl From<StatusCode> for u32 {
    fn from(status: StatusCode) -> u32 {
        status.0
    }
}

/// A UTC time in ticks of 100 ns since 1601-01-01 (Part 6, 5.2.2.5). 0 means "not set".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(transparent)]
pub struct DateTime(pub i64);

impl DateTime {
    /// Ticks from the epoch of OPC UA to the one of Unix.
    const UNIX_EPOCH: i64 = 116_444_736_000_000_000;

    /// Seconds since 1970-01-01; saturates.
    pub const fn from_unix_seconds(seconds: i64) -> DateTime {
        DateTime(seconds.saturating_mul(10_000_000).saturating_add(Self::UNIX_EPOCH))
    }
}

/// A Guid as the 16 bytes that OPC UA Binary writes (Part 6, 5.2.2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(transparent)]
pub struct Guid(pub [u8; 16]);

/// A ByteString. A `Vec<u8>` is an array of Byte instead.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct ByteString(pub Vec<u8>);

/// An XmlElement: the text of an XML fragment.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct XmlElement(pub String);

/// A node id that may name its namespace by URI and live in another server (Part 4, 7.16).
#[derive(Clone, Debug, PartialEq)]
pub struct ExpandedNodeId {
    /// The id; its namespace index counts only when `namespace_uri` is empty.
    pub node_id: NodeId,
    /// The namespace as a URI, or empty.
    pub namespace_uri: String,
    /// 0 is this server.
    pub server_index: u32,
}

impl From<NodeId> for ExpandedNodeId {
    fn from(node_id: NodeId) -> Self {
        ExpandedNodeId {
            node_id,
            namespace_uri: String::new(),
            server_index: 0,
        }
    }
}

/// A structure in its encoded form: what its DataType's "Default Binary" node is called, and the bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtensionObject {
    /// The id of the encoding node (DefaultEncodingId of the StructureDefinition), not of the data type.
    pub type_id: NodeId,
    /// OPC UA Binary.
    pub body: Vec<u8>,
}

/// An array with dimensions, row by row (Part 6, 5.2.2.16).
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix<T> {
    values: Vec<T>,
    dimensions: Vec<u32>,
}

impl<T> Matrix<T> {
    /// `None` when the product of the dimensions is not the number of values.
    pub fn new(dimensions: impl Into<Vec<u32>>, values: Vec<T>) -> Option<Self> {
        let dimensions = dimensions.into();
        let product = dimensions
            .iter()
            .try_fold(1usize, |product, &n| product.checked_mul(usize::try_from(n).ok()?))?;
        (product == values.len()).then_some(Matrix { values, dimensions })
    }

    /// The values, the last dimension running fastest.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The length of each dimension.
    pub fn dimensions(&self) -> &[u32] {
        &self.dimensions
    }

    pub(crate) fn into_parts(self) -> (Vec<T>, Vec<u32>) {
        (self.values, self.dimensions)
    }
}

impl NodeId {
    /// The null node id.
    pub const NULL: NodeId = NodeId::standard(0);

    /// A node of namespace 0.
    pub const fn standard(number: u32) -> NodeId {
        NodeId {
            namespace: 0,
            identifier: Identifier::Numeric(number),
        }
    }

    /// A numeric id.
    pub const fn numeric(namespace: u16, number: u32) -> NodeId {
        NodeId {
            namespace,
            identifier: Identifier::Numeric(number),
        }
    }

    /// A string id.
    pub fn text(namespace: u16, text: impl Into<String>) -> NodeId {
        NodeId {
            namespace,
            identifier: Identifier::Text(text.into()),
        }
    }
}

impl Eq for Identifier {}
impl Eq for NodeId {}

impl std::hash::Hash for NodeId {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.namespace.hash(state);
        match &self.identifier {
            Identifier::Numeric(number) => number.hash(state),
            Identifier::Text(text) => text.hash(state),
            Identifier::Guid(bytes) | Identifier::Opaque(bytes) => bytes.hash(state),
        }
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ns={};", self.namespace)?;
        let bytes = match &self.identifier {
            Identifier::Numeric(number) => return write!(f, "i={number}"),
            Identifier::Text(text) => return write!(f, "s={text}"),
            Identifier::Guid(bytes) => {
                f.write_str("g=")?;
                bytes
            }
            Identifier::Opaque(bytes) => {
                f.write_str("b=")?;
                bytes
            }
        };
        bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A namespace of the plugin's own table. [`crate::namespace`] finds or adds one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Namespace(pub u16);

impl Namespace {
    /// A node with a string id in this namespace.
    pub fn id(self, text: impl Into<String>) -> NodeId {
        NodeId::text(self.0, text)
    }

    /// A node with a numeric id in this namespace.
    pub fn number(self, number: u32) -> NodeId {
        NodeId::numeric(self.0, number)
    }

    /// A browse name in this namespace.
    pub fn name(self, name: impl Into<String>) -> QualifiedName {
        QualifiedName {
            namespace: self.0,
            name: name.into(),
        }
    }
}

impl From<&str> for LocalizedText {
    /// Text without a locale.
    fn from(text: &str) -> Self {
        LocalizedText {
            locale: String::new(),
            text: text.to_owned(),
        }
    }
}

impl DataValue {
    /// A Good value; the host stamps the time it arrives.
    pub fn good(value: impl Into<Value>) -> DataValue {
        DataValue {
            value: value.into(),
            status: 0,
            source_time: 0,
        }
    }

    /// No value, only a status.
    pub fn bad(status: StatusCode) -> DataValue {
        DataValue {
            value: Value::Empty,
            status: status.0,
            source_time: 0,
        }
    }

    /// The same with another status.
    pub fn with_status(mut self, status: StatusCode) -> DataValue {
        self.status = status.0;
        self
    }

    /// The same with the source timestamp of the device.
    pub fn at(mut self, time: DateTime) -> DataValue {
        self.source_time = time.0;
        self
    }
}

impl Fault {
    /// `status` goes to the client, `detail` to the log.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Fault {
        Fault {
            status: status.0,
            detail: detail.into(),
        }
    }

    /// The status that the client sees.
    pub fn status_code(&self) -> StatusCode {
        StatusCode(self.status)
    }
}

/// The Objects folder, where plugins hang what they declare.
pub const OBJECTS: NodeId = NodeId::standard(ids::OBJECTS_FOLDER);
