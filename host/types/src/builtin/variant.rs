//! Variant: a value of any built-in type, or an array or matrix of them (Part 6, 5.1.6).

use super::{
    Array, ArrayValues, BuiltInType, ByteString, DataValue, DateTime, DiagnosticInfo, ExpandedNodeId, ExtensionObject,
    Guid, LocalizedText, NodeId, QualifiedName, StatusCode, UaString, XmlElement,
};

/// A value of any built-in type, an array of them, or nothing. 24 bytes; large values are boxed.
#[derive(Debug, Clone, Default, PartialEq)]
#[allow(missing_docs)]
pub enum Variant {
    /// No value, the null Variant.
    #[default]
    Empty,
    Boolean(bool),
    SByte(i8),
    Byte(u8),
    Int16(i16),
    UInt16(u16),
    Int32(i32),
    UInt32(u32),
    Int64(i64),
    UInt64(u64),
    Float(f32),
    Double(f64),
    String(UaString),
    DateTime(DateTime),
    Guid(Guid),
    ByteString(ByteString),
    XmlElement(XmlElement),
    NodeId(Box<NodeId>),
    ExpandedNodeId(Box<ExpandedNodeId>),
    StatusCode(StatusCode),
    QualifiedName(Box<QualifiedName>),
    LocalizedText(Box<LocalizedText>),
    ExtensionObject(Box<ExtensionObject>),
    DataValue(Box<DataValue>),
    DiagnosticInfo(Box<DiagnosticInfo>),
    /// An array or matrix of any built-in type, Variant included.
    Array(Box<Array>),
}

const _: () = assert!(std::mem::size_of::<Variant>() <= 24);

impl Variant {
    /// The type of the value or of the elements; `None` for [`Variant::Empty`].
    #[must_use]
    pub fn built_in_type(&self) -> Option<BuiltInType> {
        Some(match self {
            Self::Empty => return None,
            Self::Boolean(_) => BuiltInType::Boolean,
            Self::SByte(_) => BuiltInType::SByte,
            Self::Byte(_) => BuiltInType::Byte,
            Self::Int16(_) => BuiltInType::Int16,
            Self::UInt16(_) => BuiltInType::UInt16,
            Self::Int32(_) => BuiltInType::Int32,
            Self::UInt32(_) => BuiltInType::UInt32,
            Self::Int64(_) => BuiltInType::Int64,
            Self::UInt64(_) => BuiltInType::UInt64,
            Self::Float(_) => BuiltInType::Float,
            Self::Double(_) => BuiltInType::Double,
            Self::String(_) => BuiltInType::String,
            Self::DateTime(_) => BuiltInType::DateTime,
            Self::Guid(_) => BuiltInType::Guid,
            Self::ByteString(_) => BuiltInType::ByteString,
            Self::XmlElement(_) => BuiltInType::XmlElement,
            Self::NodeId(_) => BuiltInType::NodeId,
            Self::ExpandedNodeId(_) => BuiltInType::ExpandedNodeId,
            Self::StatusCode(_) => BuiltInType::StatusCode,
            Self::QualifiedName(_) => BuiltInType::QualifiedName,
            Self::LocalizedText(_) => BuiltInType::LocalizedText,
            Self::ExtensionObject(_) => BuiltInType::ExtensionObject,
            Self::DataValue(_) => BuiltInType::DataValue,
            Self::DiagnosticInfo(_) => BuiltInType::DiagnosticInfo,
            Self::Array(array) => array.values.built_in_type(),
        })
    }

    /// The ValueRank of the value: -1 for a scalar or nothing, 1 for an array, n for a matrix of n dimensions.
    #[must_use]
    pub fn rank(&self) -> i32 {
        match self {
            Self::Array(array) => array.rank(),
            _ => -1,
        }
    }

    /// Whether there is no value.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    /// The array, if it is one.
    #[must_use]
    pub fn as_array(&self) -> Option<&Array> {
        match self {
            Self::Array(array) => Some(array),
            _ => None,
        }
    }

    /// Whether two values are the same for change detection: as `==`, but floating point numbers are compared by their bits, so that NaN
    /// is the same as the same NaN, and a change from 0.0 to -0.0 is a change.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Double(a), Self::Double(b)) => a.to_bits() == b.to_bits(),
            (Self::DataValue(a), Self::DataValue(b)) => a.is_same(b),
            (Self::Array(a), Self::Array(b)) => a.dimensions == b.dimensions && a.values.is_same(&b.values),
            _ => self == other,
        }
    }

    /// The value as a Double if it is a number (Boolean is not one); 64-bit integers lose precision.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn as_f64(&self) -> Option<f64> {
        Some(match self {
            Self::SByte(value) => f64::from(*value),
            Self::Byte(value) => f64::from(*value),
            Self::Int16(value) => f64::from(*value),
            Self::UInt16(value) => f64::from(*value),
            Self::Int32(value) => f64::from(*value),
            Self::UInt32(value) => f64::from(*value),
            Self::Int64(value) => *value as f64,
            Self::UInt64(value) => *value as f64,
            Self::Float(value) => f64::from(*value),
            Self::Double(value) => *value,
            _ => return None,
        })
    }

    /// The text, if this is a String that is not null.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => text.as_str(),
            _ => None,
        }
    }
}

impl From<ArrayValues> for Variant {
    fn from(values: ArrayValues) -> Self {
        Self::Array(Box::new(Array::new(values)))
    }
}

impl From<Array> for Variant {
    fn from(array: Array) -> Self {
        Self::Array(Box::new(array))
    }
}
