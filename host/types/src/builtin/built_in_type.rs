//! BuiltInType: the 25 built-in types by their id (Part 6, 5.1.2).

/// A built-in type. The number is its id in a Variant and the identifier of its DataType node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum BuiltInType {
    /// Boolean.
    Boolean = 1,
    /// SByte.
    SByte = 2,
    /// Byte.
    Byte = 3,
    /// Int16.
    Int16 = 4,
    /// UInt16.
    UInt16 = 5,
    /// Int32.
    Int32 = 6,
    /// UInt32.
    UInt32 = 7,
    /// Int64.
    Int64 = 8,
    /// UInt64.
    UInt64 = 9,
    /// Float.
    Float = 10,
    /// Double.
    Double = 11,
    /// String.
    String = 12,
    /// DateTime.
    DateTime = 13,
    /// Guid.
    Guid = 14,
    /// ByteString.
    ByteString = 15,
    /// XmlElement.
    XmlElement = 16,
    /// NodeId.
    NodeId = 17,
    /// ExpandedNodeId.
    ExpandedNodeId = 18,
    /// StatusCode.
    StatusCode = 19,
    /// QualifiedName.
    QualifiedName = 20,
    /// LocalizedText.
    LocalizedText = 21,
    /// ExtensionObject, the form of every structure.
    ExtensionObject = 22,
    /// DataValue.
    DataValue = 23,
    /// Variant.
    Variant = 24,
    /// DiagnosticInfo.
    DiagnosticInfo = 25,
}

impl BuiltInType {
    /// All types, by id.
    pub const ALL: [Self; 25] = [
        Self::Boolean,
        Self::SByte,
        Self::Byte,
        Self::Int16,
        Self::UInt16,
        Self::Int32,
        Self::UInt32,
        Self::Int64,
        Self::UInt64,
        Self::Float,
        Self::Double,
        Self::String,
        Self::DateTime,
        Self::Guid,
        Self::ByteString,
        Self::XmlElement,
        Self::NodeId,
        Self::ExpandedNodeId,
        Self::StatusCode,
        Self::QualifiedName,
        Self::LocalizedText,
        Self::ExtensionObject,
        Self::DataValue,
        Self::Variant,
        Self::DiagnosticInfo,
    ];

    /// The type with an id from 1 to 25.
    #[inline]
    #[must_use]
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.get(usize::from(id).checked_sub(1)?).copied()
    }

    /// The id.
    #[inline]
    #[must_use]
    pub const fn id(self) -> u8 {
        self as u8
    }

    /// Whether the type is an integer, Float or Double.
    #[must_use]
    pub fn is_numeric(self) -> bool {
        (Self::SByte..=Self::Double).contains(&self)
    }

    /// Bytes of one value if every value takes the same.
    #[inline]
    #[must_use]
    pub const fn fixed_size(self) -> Option<usize> {
        match self {
            Self::Boolean | Self::SByte | Self::Byte => Some(1),
            Self::Int16 | Self::UInt16 => Some(2),
            Self::Int32 | Self::UInt32 | Self::Float | Self::StatusCode => Some(4),
            Self::Int64 | Self::UInt64 | Self::Double | Self::DateTime => Some(8),
            Self::Guid => Some(16),
            _ => None,
        }
    }
}
