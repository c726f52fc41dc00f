//! How Rust types become values and back. Owns the table of types; encodings are in [`crate::binary`].

use crate::binary::{self, DecodeError, Reader, Writer};
use crate::ids;
use crate::{
    ByteString, DateTime, ExpandedNodeId, ExtensionObject, Guid, LocalizedText, Matrix, NodeId, QualifiedName,
    StatusCode, Value, XmlElement,
};

/// A Rust type that can be the value of a variable: the built-in types, `Vec` of them, [`Matrix`] of them, and [`Value`] for anything.
pub trait Typed: Sized {
    /// The built-in type (Part 6, table 1); 24 for anything.
    const BUILT_IN: u8;
    /// The data type in namespace 0.
    const DATA_TYPE: u32;
    /// -1 scalar, 1 array, 0 one or more dimensions.
    const VALUE_RANK: i32;
    /// The value in the case that the contract has for it.
    fn into_value(self) -> Value;
    /// `None` when the value is of another type.
    fn from_value(value: &Value) -> Option<Self>;
    /// The length of each dimension of a matrix, else empty.
    fn matrix_dimensions(&self) -> Vec<u32> {
        Vec::new()
    }
}

/// A built-in type: what arrays and matrices are made of.
pub trait Scalar: Typed {
    /// Appends the value alone, without the encoding byte of a Variant.
    fn encode(&self, writer: &mut Writer);
    /// Reads the value alone.
    ///
    /// # Errors
    /// The bytes end early or make no sense.
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError>;
    /// An array in the case that the contract has for it.
    fn array_into_value(values: Vec<Self>) -> Value {
        binary::encode_array(&values)
    }
    /// `None` when the value is not an array of this type.
    fn array_from_value(value: &Value) -> Option<Vec<Self>> {
        if let Value::Encoded(bytes) = value {
            binary::decode_array(bytes)
        } else {
            None
        }
    }
}

impl<T: Scalar> Typed for Vec<T> {
    const BUILT_IN: u8 = T::BUILT_IN;
    const DATA_TYPE: u32 = T::DATA_TYPE;
    const VALUE_RANK: i32 = 1;
    fn into_value(self) -> Value {
        T::array_into_value(self)
    }
    fn from_value(value: &Value) -> Option<Self> {
        T::array_from_value(value)
    }
}

impl<T: Scalar> From<Vec<T>> for Value {
    fn from(values: Vec<T>) -> Value {
        T::array_into_value(values)
    }
}

impl<T: Scalar> Typed for Matrix<T> {
    const BUILT_IN: u8 = T::BUILT_IN;
    const DATA_TYPE: u32 = T::DATA_TYPE;
    const VALUE_RANK: i32 = 0;
    fn into_value(self) -> Value {
        let (values, dimensions) = self.into_parts();
        binary::encode_matrix(&values, &dimensions)
    }
    fn from_value(value: &Value) -> Option<Self> {
        let Value::Encoded(bytes) = value else { return None };
        let (values, dimensions) = binary::decode_matrix(bytes)?;
        Matrix::new(dimensions, values)
    }
    fn matrix_dimensions(&self) -> Vec<u32> {
        self.dimensions().to_vec()
    }
}

impl<T: Scalar> From<Matrix<T>> for Value {
    fn from(matrix: Matrix<T>) -> Value {
        matrix.into_value()
    }
}

impl Typed for Value {
    const BUILT_IN: u8 = 24;
    const DATA_TYPE: u32 = ids::BASE_DATA_TYPE;
    const VALUE_RANK: i32 = -1;
    fn into_value(self) -> Value {
        self
    }
    fn from_value(value: &Value) -> Option<Self> {
        Some(value.clone())
    }
}

impl Scalar for Value {
    fn encode(&self, writer: &mut Writer) {
        writer.value(self);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.value()
    }
}

impl Value {
    /// The value as a Rust type; `None` when it is of another type.
    pub fn get<T: Typed>(&self) -> Option<T> {
        T::from_value(self)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl Guid {
    /// Zeros where bytes are missing.
    pub(crate) fn from_slice(bytes: &[u8]) -> Guid {
        let mut guid = [0; 16];
        guid.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        Guid(guid)
    }
}

/// A type with a scalar case of its own, and an array case of its own if one is named.
macro_rules! scalar {
    ($type:ty, $built_in:literal, $data_type:ident, $case:ident($to:expr, $from:expr), $encode:expr, $decode:expr $(, $array:ident)?) => {
        impl Typed for $type {
            const BUILT_IN: u8 = $built_in;
            const DATA_TYPE: u32 = ids::$data_type;
            const VALUE_RANK: i32 = -1;
            fn into_value(self) -> Value {
                Value::$case($to(self))
            }
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::$case(value) => Some($from(value.clone())),
                    Value::Encoded(bytes) => binary::decode_scalar(bytes),
                    _ => None,
                }
            }
        }

        impl Scalar for $type {
            fn encode(&self, writer: &mut Writer) {
                $encode(writer, self);
            }
            fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                $decode(reader)
            }
            $(
                fn array_into_value(values: Vec<Self>) -> Value {
                    Value::$array(values)
                }
                fn array_from_value(value: &Value) -> Option<Vec<Self>> {
                    match value {
                        Value::$array(values) => Some(values.clone()),
                        Value::Encoded(bytes) => binary::decode_array(bytes),
                        _ => None,
                    }
                }
            )?
        }

        impl From<$type> for Value {
            fn from(value: $type) -> Value {
                value.into_value()
            }
        }
    };
}

/// A type that always travels encoded.
macro_rules! encoded {
    ($type:ty, $built_in:literal, $data_type:ident, $encode:expr, $decode:expr) => {
        impl Typed for $type {
            const BUILT_IN: u8 = $built_in;
            const DATA_TYPE: u32 = ids::$data_type;
            const VALUE_RANK: i32 = -1;
            fn into_value(self) -> Value {
                binary::encode_scalar(&self)
            }
            fn from_value(value: &Value) -> Option<Self> {
                if let Value::Encoded(bytes) = value {
                    binary::decode_scalar(bytes)
                } else {
                    None
                }
            }
        }

        impl Scalar for $type {
            fn encode(&self, writer: &mut Writer) {
                $encode(writer, self);
            }
            fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                $decode(reader)
            }
        }

        impl From<$type> for Value {
            fn from(value: $type) -> Value {
                value.into_value()
            }
        }
    };
}

fn same<T>(value: T) -> T {
    value
}

scalar!(
    bool,
    1,
    BOOLEAN,
    Boolean(same, same),
    |w: &mut Writer, v: &bool| w.bool(*v),
    Reader::bool,
    Booleans
);
scalar!(
    i8,
    2,
    SBYTE,
    Sbyte(same, same),
    |w: &mut Writer, v: &i8| w.i8(*v),
    Reader::i8
);
scalar!(
    u8,
    3,
    BYTE,
    Byte(same, same),
    |w: &mut Writer, v: &u8| w.u8(*v),
    Reader::u8
);
scalar!(
    i16,
    4,
    INT16,
    Int16(same, same),
    |w: &mut Writer, v: &i16| w.i16(*v),
    Reader::i16
);
scalar!(
    u16,
    5,
    UINT16,
    Uint16(same, same),
    |w: &mut Writer, v: &u16| w.u16(*v),
    Reader::u16
);
scalar!(
    i32,
    6,
    INT32,
    Int32(same, same),
    |w: &mut Writer, v: &i32| w.i32(*v),
    Reader::i32,
    Int32s
);
scalar!(
    u32,
    7,
    UINT32,
    Uint32(same, same),
    |w: &mut Writer, v: &u32| w.u32(*v),
    Reader::u32,
    Uint32s
);
scalar!(
    i64,
    8,
    INT64,
    Int64(same, same),
    |w: &mut Writer, v: &i64| w.i64(*v),
    Reader::i64,
    Int64s
);
scalar!(
    u64,
    9,
    UINT64,
    Uint64(same, same),
    |w: &mut Writer, v: &u64| w.u64(*v),
    Reader::u64,
    Uint64s
);
scalar!(
    f32,
    10,
    FLOAT,
    Float(same, same),
    |w: &mut Writer, v: &f32| w.f32(*v),
    Reader::f32,
    Floats
);
scalar!(
    f64,
    11,
    DOUBLE,
    Double(same, same),
    |w: &mut Writer, v: &f64| w.f64(*v),
    Reader::f64,
    Doubles
);
scalar!(
    String,
    12,
    STRING,
    Text(same, same),
    |w: &mut Writer, v: &String| w.text(v),
    Reader::text,
    Texts
);
scalar!(
    DateTime,
    13,
    DATE_TIME,
    Time((|v: DateTime| v.0), DateTime),
    |w: &mut Writer, v: &DateTime| w.i64(v.0),
    |r: &mut Reader<'_>| r.i64().map(DateTime)
);
scalar!(
    Guid,
    14,
    GUID,
    Guid((|v: Guid| v.0.to_vec()), (|v: Vec<u8>| Guid::from_slice(&v))),
    Writer::guid,
    Reader::guid
);
scalar!(
    ByteString,
    15,
    BYTE_STRING,
    Bytes((|v: ByteString| v.0), ByteString),
    |w: &mut Writer, v: &ByteString| w.bytes(&v.0),
    |r: &mut Reader<'_>| Ok(ByteString(r.bytes()?.to_vec()))
);
encoded!(
    XmlElement,
    16,
    XML_ELEMENT,
    |w: &mut Writer, v: &XmlElement| w.text(&v.0),
    |r: &mut Reader<'_>| r.text().map(XmlElement)
);
scalar!(NodeId, 17, NODE_ID, Node(same, same), Writer::node_id, Reader::node_id);
encoded!(
    ExpandedNodeId,
    18,
    EXPANDED_NODE_ID,
    Writer::expanded_node_id,
    Reader::expanded_node_id
);
scalar!(
    StatusCode,
    19,
    STATUS_CODE,
    Status((|v: StatusCode| v.0), StatusCode),
    |w: &mut Writer, v: &StatusCode| w.u32(v.0),
    |r: &mut Reader<'_>| r.u32().map(StatusCode)
);
scalar!(
    QualifiedName,
    20,
    QUALIFIED_NAME,
    Qualified(same, same),
    Writer::qualified_name,
    Reader::qualified_name
);
scalar!(
    LocalizedText,
    21,
    LOCALIZED_TEXT,
    Localized(same, same),
    Writer::localized_text,
    Reader::localized_text
);
encoded!(
    ExtensionObject,
    22,
    STRUCTURE,
    Writer::extension_object,
    Reader::extension_object
);
