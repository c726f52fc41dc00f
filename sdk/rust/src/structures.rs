//! Structured and enumerated data types as plain Rust types. Owns the macros `structure!` and `enumeration!`, and how a field is encoded.

use crate::binary::{DecodeError, Reader, Writer};
use crate::{Scalar, Typed};

/// A Rust type that can be a field of a `structure!`: built-in types, arrays of them, enumerations, other structures.
pub trait Field: Sized {
    /// The data type in namespace 0 that stands for it until `StructureDefinition::data_type` says more.
    const DATA_TYPE: u32;
    /// -1 scalar, 1 array.
    const VALUE_RANK: i32;
    /// Appends the field.
    fn encode_field(&self, writer: &mut Writer);
    /// Reads the field.
    ///
    /// # Errors
    /// The bytes end early or make no sense.
    fn decode_field(reader: &mut Reader<'_>) -> Result<Self, DecodeError>;
}

impl<T: Scalar> Field for T {
    const DATA_TYPE: u32 = T::DATA_TYPE;
    const VALUE_RANK: i32 = -1;
    fn encode_field(&self, writer: &mut Writer) {
        self.encode(writer);
    }
    fn decode_field(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        T::decode(reader)
    }
}

impl<T: Scalar> Field for Vec<T> {
    const DATA_TYPE: u32 = <T as Typed>::DATA_TYPE;
    const VALUE_RANK: i32 = 1;
    fn encode_field(&self, writer: &mut Writer) {
        writer.length(self.len());
        self.iter().for_each(|value| value.encode(writer));
    }
    fn decode_field(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        (0..reader.length()?).map(|_| T::decode(reader)).collect()
    }
}

/// Declares a struct that is also an OPC UA structure: fields in order, each with the name that clients see.
///
/// ```
/// use backplane_sdk::{ExtensionObject, NodeId, structure};
///
/// structure! {
///     /// A position on the table.
///     #[derive(Clone, Debug, PartialEq)]
///     pub struct Position {
///         /// In mm.
///         pub x: f64 as "X",
///         /// In mm.
///         pub y: f64 as "Y",
///         /// Free text.
///         pub notes: Vec<String> as "Notes",
///     }
/// }
///
/// let encoding = NodeId::numeric(1, 5001);
/// assert_eq!(Position::definition(encoding.clone()).fields.len(), 3);
/// let value = ExtensionObject::of(encoding, &Position { x: 1.0, y: 2.0, notes: vec![] });
/// assert_eq!(value.structure::<Position>().map(|position| position.y), Ok(2.0));
/// ```
#[macro_export]
macro_rules! structure {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident {
            $($(#[$field_meta:meta])* $field_visibility:vis $field:ident : $type:ty as $wire:literal),* $(,)?
        }
    ) => {
        $(#[$meta])*
        $visibility struct $name {
            $($(#[$field_meta])* $field_visibility $field: $type,)*
        }

        impl $name {
            /// What clients are told about this structure; `encoding` is the id that its "Default Binary" node shall have.
            $visibility fn definition(encoding: $crate::NodeId) -> $crate::StructureDefinition {
                $crate::StructureDefinition::new(encoding)
                    $(.field_of($wire, $crate::NodeId::standard(<$type as $crate::Field>::DATA_TYPE), <$type as $crate::Field>::VALUE_RANK))*
            }
        }

        impl $crate::Structure for $name {
            fn encode(&self, writer: &mut $crate::binary::Writer) {
                $($crate::Field::encode_field(&self.$field, writer);)*
            }
            fn decode(reader: &mut $crate::binary::Reader<'_>) -> ::core::result::Result<Self, $crate::binary::DecodeError> {
                ::core::result::Result::Ok($name { $($field: $crate::Field::decode_field(reader)?,)* })
            }
        }

        impl $crate::Field for $name {
            const DATA_TYPE: u32 = $crate::ids::STRUCTURE;
            const VALUE_RANK: i32 = -1;
            fn encode_field(&self, writer: &mut $crate::binary::Writer) {
                $crate::Structure::encode(self, writer);
            }
            fn decode_field(reader: &mut $crate::binary::Reader<'_>) -> ::core::result::Result<Self, $crate::binary::DecodeError> {
                $crate::Structure::decode(reader)
            }
        }
    };
}

/// Declares an enum that is also an OPC UA enumeration, and can be the value of a variable or argument.
///
/// ```
/// use backplane_sdk::{Value, enumeration};
///
/// enumeration! {
///     /// What the door does.
///     pub enum Door {
///         /// Nobody gets in.
///         Closed = 0,
///         /// Everybody does.
///         Open = 1,
///     }
/// }
///
/// assert_eq!(Value::from(Door::Open), Value::Int32(1));
/// assert_eq!(Value::Int32(7).get::<Door>(), None);
/// assert_eq!(Door::definition().fields[1].name, "Open");
/// ```
#[macro_export]
macro_rules! enumeration {
    (
        $(#[$meta:meta])*
        $visibility:vis enum $name:ident {
            $($(#[$case_meta:meta])* $case:ident = $number:literal),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(i32)]
        $visibility enum $name {
            $($(#[$case_meta])* $case = $number,)*
        }

        impl $name {
            /// What clients are told about this enumeration.
            $visibility fn definition() -> $crate::EnumDefinition {
                $crate::EnumDefinition::new()$(.field($number, ::core::stringify!($case)))*
            }

            /// The case with this number.
            $visibility fn from_number(number: i32) -> ::core::option::Option<Self> {
                match number {
                    $($number => ::core::option::Option::Some($name::$case),)*
                    _ => ::core::option::Option::None,
                }
            }
        }

        impl $crate::Typed for $name {
            const BUILT_IN: u8 = 6;
            const DATA_TYPE: u32 = $crate::ids::ENUMERATION;
            const VALUE_RANK: i32 = -1;
            fn into_value(self) -> $crate::Value {
                $crate::Value::Int32(self as i32)
            }
            fn from_value(value: &$crate::Value) -> ::core::option::Option<Self> {
                value.get::<i32>().and_then(Self::from_number)
            }
        }

        impl $crate::Scalar for $name {
            fn encode(&self, writer: &mut $crate::binary::Writer) {
                writer.i32(*self as i32);
            }
            fn decode(reader: &mut $crate::binary::Reader<'_>) -> ::core::result::Result<Self, $crate::binary::DecodeError> {
                Self::from_number(reader.i32()?).ok_or($crate::binary::DecodeError::Invalid)
            }
        }

        impl ::core::convert::From<$name> for $crate::Value {
            fn from(value: $name) -> $crate::Value {
                $crate::Typed::into_value(value)
            }
        }
    };
}
