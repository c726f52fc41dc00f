//! Conversions between Variants and the Rust types of the built-in types, and the one list of those types.

use super::{
    ArrayValues, ByteString, DataValue, DateTime, DiagnosticInfo, ExpandedNodeId, ExtensionObject, Guid, LocalizedText,
    NodeId, QualifiedName, StatusCode, UaString, Variant, XmlElement,
};

/// Calls a macro with the name and the Rust type of each built-in type.
macro_rules! for_each_type {
    ($macro:ident) => {
        $macro! {
            Boolean bool;
            SByte i8;
            Byte u8;
            Int16 i16;
            UInt16 u16;
            Int32 i32;
            UInt32 u32;
            Int64 i64;
            UInt64 u64;
            Float f32;
            Double f64;
            String UaString;
            DateTime DateTime;
            Guid Guid;
            ByteString ByteString;
            XmlElement XmlElement;
            NodeId NodeId;
            ExpandedNodeId ExpandedNodeId;
            StatusCode StatusCode;
            QualifiedName QualifiedName;
            LocalizedText LocalizedText;
            ExtensionObject ExtensionObject;
            DataValue DataValue;
            Variant Variant;
            DiagnosticInfo DiagnosticInfo;
        }
    };
}
pub(super) use for_each_type;

macro_rules! from_scalar {
    ($($name:ident $type:ty;)*) => {$(
        impl From<$type> for Variant {
            #[inline]
            fn from(value: $type) -> Self {
                Self::$name(value)
            }
        }
    )*};
}

from_scalar! {
    Boolean bool;
    SByte i8;
    Byte u8;
    Int16 i16;
    UInt16 u16;
    Int32 i32;
    UInt32 u32;
    Int64 i64;
    UInt64 u64;
    Float f32;
    Double f64;
    String UaString;
    DateTime DateTime;
    Guid Guid;
    ByteString ByteString;
    XmlElement XmlElement;
    StatusCode StatusCode;
}

macro_rules! from_boxed {
    ($($name:ident)*) => {$(
        impl From<$name> for Variant {
            fn from(value: $name) -> Self {
                Self::$name(Box::new(value))
            }
        }
    )*};
}

from_boxed!(NodeId ExpandedNodeId QualifiedName LocalizedText ExtensionObject DataValue DiagnosticInfo);

macro_rules! from_array {
    ($($name:ident $type:ty;)*) => {$(
        impl From<Vec<$type>> for ArrayValues {
            fn from(values: Vec<$type>) -> Self {
                Self::$name(values)
            }
        }

        impl From<Vec<$type>> for Variant {
            fn from(values: Vec<$type>) -> Self {
                Self::from(ArrayValues::$name(values))
            }
        }
    )*};
}

for_each_type!(from_array);

impl From<&str> for Variant {
    fn from(text: &str) -> Self {
        Self::String(UaString::from(text))
    }
}

impl From<String> for Variant {
    fn from(text: String) -> Self {
        Self::String(UaString::from(text))
    }
}

/// `None` is [`Variant::Empty`].
impl<T: Into<Self>> From<Option<T>> for Variant {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Empty, Into::into)
    }
}

/// The value is of another type; holds it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the variant holds another type")]
pub struct WrongType(pub Variant);

macro_rules! try_into_scalar {
    ($($name:ident $type:ty;)*) => {$(
        impl TryFrom<Variant> for $type {
            type Error = WrongType;

            fn try_from(value: Variant) -> Result<Self, Self::Error> {
                match value {
                    Variant::$name(value) => Ok(value),
                    other => Err(WrongType(other)),
                }
            }
        }
    )*};
}

try_into_scalar! {
    Boolean bool;
    SByte i8;
    Byte u8;
    Int16 i16;
    UInt16 u16;
    Int32 i32;
    UInt32 u32;
    Int64 i64;
    UInt64 u64;
    Float f32;
    Double f64;
    String UaString;
    DateTime DateTime;
    Guid Guid;
    ByteString ByteString;
    XmlElement XmlElement;
    StatusCode StatusCode;
}

macro_rules! try_into_boxed {
    ($($name:ident)*) => {$(
        impl TryFrom<Variant> for $name {
            type Error = WrongType;

            fn try_from(value: Variant) -> Result<Self, Self::Error> {
                match value {
                    Variant::$name(value) => Ok(*value),
                    other => Err(WrongType(other)),
                }
            }
        }
    )*};
}

try_into_boxed!(NodeId ExpandedNodeId QualifiedName LocalizedText ExtensionObject DataValue DiagnosticInfo);

macro_rules! try_into_array {
    ($($name:ident $type:ty;)*) => {$(
        impl TryFrom<Variant> for Vec<$type> {
            type Error = WrongType;

            /// Matrices give their elements row by row.
            fn try_from(value: Variant) -> Result<Self, Self::Error> {
                match value {
                    Variant::Array(array) if matches!(array.values, ArrayValues::$name(_)) => match array.values {
                        ArrayValues::$name(values) => Ok(values),
                        other => Err(WrongType(Variant::from(other))),
                    },
                    other => Err(WrongType(other)),
                }
            }
        }
    )*};
}

for_each_type!(try_into_array);
