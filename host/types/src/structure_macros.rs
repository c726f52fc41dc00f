//! The macros behind the generated sources: one line per field, value or code there, the code for it here.
//!
//! Owns how structures, enumerations and option sets are declared and encoded (Part 6, 5.2.4 and 5.2.6). Must not name any
//! particular type: those are data, in `generated`.

/// The Rust type of a field: `T` is itself, `[T]` a list, and parentheses around either make it optional.
macro_rules! field_type {
    ($type:ident) => { $type };
    ([$type:ident]) => { Vec<$type> };
    (($type:tt)) => { Option<field_type!($type)> };
}

/// Declares structures whose fields follow one another: `Name: data type id, encoding id { field: type, }`.
macro_rules! structures {
    ($($(#[$meta:meta])* $name:ident: $type_id:literal, $encoding_id:literal {
        $($field:ident: $type:tt,)*
    })*) => {
    $(
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $(pub $field: field_type!($type),)*
        }

        impl $crate::BinaryEncode for $name {
            #[allow(unused_variables)]
            fn encode(&self, e: &mut $crate::Encoder<'_>) {
                $($crate::BinaryEncode::encode(&self.$field, e);)*
            }
        }

        impl $crate::BinaryDecode for $name {
            const MIN_SIZE: usize = 0 $(+ <field_type!($type) as $crate::BinaryDecode>::MIN_SIZE)*;

            #[allow(unused_variables)]
            fn decode(d: &mut $crate::Decoder<'_>) -> Result<Self, $crate::DecodeError> {
                Ok(Self { $($field: $crate::BinaryDecode::decode(d)?,)* })
            }
        }

        impl $crate::Structure for $name {
            const TYPE_ID: u32 = $type_id;
            const ENCODING_ID: u32 = $encoding_id;
            const NAME: &'static str = stringify!($name);
        }
    )*

        #[cfg(test)]
        pub(crate) fn visit_structures(visitor: &mut impl $crate::structure_macros::tests::Visitor) {
            $(visitor.visit::<$name>();)*
        }
    };
}

/// Which optional fields a structure has: one bit each, in the order of the fields (Part 6, 5.2.7).
#[derive(Clone, Copy, Debug)]
pub(crate) struct OptionalFields {
    bits: u32,
    next: u32,
}

impl OptionalFields {
    pub(crate) const fn new(bits: u32) -> Self {
        Self { bits, next: 1 }
    }

    /// Notes whether the next optional field is there.
    pub(crate) const fn note(&mut self, present: bool) {
        if present {
            self.bits |= self.next;
        }
        self.next <<= 1;
    }

    /// Takes the next optional field's bit.
    pub(crate) const fn take(&mut self) -> bool {
        let present = self.bits & self.next != 0;
        self.bits &= !self.next;
        self.next <<= 1;
        present
    }

    /// The bits that are noted, or not yet taken.
    pub(crate) const fn bits(self) -> u32 {
        self.bits
    }
}

/// What optional fields add to encoding and decoding; nothing for other fields.
macro_rules! optional_field {
    (note ($type:tt), $fields:ident, $value:expr) => {
        $fields.note($value.is_some())
    };
    (note $type:tt, $fields:ident, $value:expr) => {};
    (encode ($type:tt), $e:ident, $value:expr) => {
        if let Some(value) = &$value {
            $crate::BinaryEncode::encode(value, $e);
        }
    };
    (encode $type:tt, $e:ident, $value:expr) => {
        $crate::BinaryEncode::encode(&$value, $e)
    };
    (decode ($type:tt), $fields:ident, $d:ident) => {
        if $fields.take() {
            Some($crate::BinaryDecode::decode($d)?)
        } else {
            None
        }
    };
    (decode $type:tt, $fields:ident, $d:ident) => {
        $crate::BinaryDecode::decode($d)?
    };
}

/// Declares structures with optional fields, as [`structures!`] does the others. An encoding mask precedes the fields; a bit
/// that names no field is an error, because nothing tells how long that field would be.
macro_rules! optional_structures {
    ($($(#[$meta:meta])* $name:ident: $type_id:literal, $encoding_id:literal {
        $($field:ident: $type:tt,)*
    })*) => {
    $(
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $(pub $field: field_type!($type),)*
        }

        impl $crate::BinaryEncode for $name {
            fn encode(&self, e: &mut $crate::Encoder<'_>) {
                let mut fields = $crate::structure_macros::OptionalFields::new(0);
                $(optional_field!(note $type, fields, self.$field);)*
                e.u32(fields.bits());
                $(optional_field!(encode $type, e, self.$field);)*
            }
        }

        impl $crate::BinaryDecode for $name {
            const MIN_SIZE: usize = 4;

            fn decode(d: &mut $crate::Decoder<'_>) -> Result<Self, $crate::DecodeError> {
                let mut fields = $crate::structure_macros::OptionalFields::new(d.u32()?);
                let decoded = Self { $($field: optional_field!(decode $type, fields, d),)* };
                if fields.bits() != 0 {
                    return Err($crate::DecodeError::Malformed("encoding mask"));
                }
                Ok(decoded)
            }
        }

        impl $crate::Structure for $name {
            const TYPE_ID: u32 = $type_id;
            const ENCODING_ID: u32 = $encoding_id;
            const NAME: &'static str = stringify!($name);
        }
    )*

        #[cfg(test)]
        pub(crate) fn visit_optional_structures(visitor: &mut impl $crate::structure_macros::tests::Visitor) {
            $(visitor.visit::<$name>();)*
        }
    };
}

/// Declares enumerations: `Name: data type id { CONSTANT = value, }`.
///
/// They are numbers with names, so that a value outside the list decodes, and the service that meets it answers with its own status code.
macro_rules! enumerations {
    ($($(#[$meta:meta])* $name:ident: $type_id:literal { $($constant:ident = $value:literal,)* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub i32);

        impl $name {
            /// Identifier of the DataType node.
            pub const TYPE_ID: u32 = $type_id;
            $(pub const $constant: Self = Self($value);)*

            /// The name of the constant with this value.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($constant)),)*
                    _ => None,
                }
            }

            /// Whether the standard defines the value.
            #[must_use]
            pub const fn is_known(self) -> bool {
                self.name().is_some()
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{}({})", stringify!($name), self.0),
                }
            }
        }

        impl From<i32> for $name {
            fn from(value: i32) -> Self {
                Self(value)
            }
        }

        impl From<$name> for $crate::Variant {
            fn from(value: $name) -> Self {
                Self::Int32(value.0)
            }
        }

        impl $crate::BinaryEncode for $name {
            #[inline]
            fn encode(&self, e: &mut $crate::Encoder<'_>) {
                e.i32(self.0);
            }
        }

        impl $crate::BinaryDecode for $name {
            const MIN_SIZE: usize = 4;

            #[inline]
            fn decode(d: &mut $crate::Decoder<'_>) -> Result<Self, $crate::DecodeError> {
                d.i32().map(Self)
            }
        }
    )*};
}

/// Declares option sets over unsigned integers: `Name: data type id, base { CONSTANT = bit number, }`.
macro_rules! option_sets {
    ($($(#[$meta:meta])* $name:ident: $type_id:literal, $base:ident { $($constant:ident = $bit:literal,)* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $base);

        impl $name {
            /// Identifier of the DataType node.
            pub const TYPE_ID: u32 = $type_id;
            $(pub const $constant: Self = Self(1 << $bit);)*
            /// All bits that the standard defines.
            pub const KNOWN: Self = Self(0 $(| 1 << $bit)*);

            /// Whether all bits of `other` are set.
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Whether no bit is set.
            #[must_use]
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// The bits of both.
            #[must_use]
            pub const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl std::ops::BitOr for $name {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                self.union(other)
            }
        }

        impl std::ops::BitAnd for $name {
            type Output = Self;

            fn bitand(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({:#x})", stringify!($name), self.0)
            }
        }

        impl From<$name> for $crate::Variant {
            fn from(value: $name) -> Self {
                Self::from(value.0)
            }
        }

        impl $crate::BinaryEncode for $name {
            #[inline]
            fn encode(&self, e: &mut $crate::Encoder<'_>) {
                e.$base(self.0);
            }
        }

        impl $crate::BinaryDecode for $name {
            const MIN_SIZE: usize = <$base as $crate::BinaryDecode>::MIN_SIZE;

            #[inline]
            fn decode(d: &mut $crate::Decoder<'_>) -> Result<Self, $crate::DecodeError> {
                d.$base().map(Self)
            }
        }
    )*};
}

/// Declares the named status codes, ascending: `CONSTANT = value "Name",`.
macro_rules! status_codes {
    ($($constant:ident = $value:literal $name:literal,)*) => {
        impl $crate::StatusCode {
            $(pub const $constant: Self = Self($value);)*

            /// The named codes with their names, ascending by code.
            pub const NAMED: &'static [(Self, &'static str)] = &[$((Self($value), $name),)*];

            /// The symbolic name, if the code has one; info and flag bits are ignored.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                let found = Self::NAMED.binary_search_by_key(&self.code(), |(code, _)| *code).ok()?;
                Self::NAMED.get(found).map(|(_, name)| *name)
            }
        }
    };
}

/// Declares modules of NodeIds of namespace 0.
macro_rules! ids {
    ($($(#[$meta:meta])* $module:ident { $($constant:ident = $id:literal,)* })*) => {$(
        $(#[$meta])*
        pub mod $module {
            $(pub const $constant: u32 = $id;)*
        }
    )*};
}

/// Declares the services by the encodings of their messages, ascending by request: `Name: request, response,`.
macro_rules! services {
    (fault = $fault:literal; $($name:ident: $request:literal, $response:literal,)*) => {
        /// Encoding id of a ServiceFault.
        pub const SERVICE_FAULT_ENCODING_ID: u32 = $fault;

        /// The services that a request can ask for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum RequestKind {
            $($name,)*
        }

        impl RequestKind {
            /// All services.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The service whose request has this encoding id; for others the answer is `BadServiceUnsupported`.
            #[inline]
            #[must_use]
            pub const fn from_encoding_id(id: u32) -> Option<Self> {
                match id {
                    $($request => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The service whose response has this encoding id.
            #[must_use]
            pub const fn from_response_encoding_id(id: u32) -> Option<Self> {
                match id {
                    $($response => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Encoding id of the request.
            #[inline]
            #[must_use]
            pub const fn request_encoding_id(self) -> u32 {
                match self {
                    $(Self::$name => $request,)*
                }
            }

            /// Encoding id of the response.
            #[inline]
            #[must_use]
            pub const fn response_encoding_id(self) -> u32 {
                match self {
                    $(Self::$name => $response,)*
                }
            }

            /// Name of the service.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }
        }
    };
}

#[cfg(test)]
#[path = "structure_tests.rs"]
pub(crate) mod tests;
