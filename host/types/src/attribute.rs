//! AttributeId: the attributes of nodes by number (Part 6, A.1).

use std::fmt;

use crate::codec::{BinaryDecode, BinaryEncode, DecodeError, Decoder, Encoder};

/// The number of an attribute. Any number can be asked for; [`AttributeId::is_valid`] tells which exist.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttributeId(pub u32);

macro_rules! attributes {
    ($($constant:ident $number:literal $name:literal;)*) => {
        impl AttributeId {
            $(
                #[doc = concat!("The ", $name, " attribute.")]
                pub const $constant: Self = Self($number);
            )*

            /// The name of the attribute, if it exists.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

attributes! {
    NODE_ID 1 "NodeId";
    NODE_CLASS 2 "NodeClass";
    BROWSE_NAME 3 "BrowseName";
    DISPLAY_NAME 4 "DisplayName";
    DESCRIPTION 5 "Description";
    WRITE_MASK 6 "WriteMask";
    USER_WRITE_MASK 7 "UserWriteMask";
    IS_ABSTRACT 8 "IsAbstract";
    SYMMETRIC 9 "Symmetric";
    INVERSE_NAME 10 "InverseName";
    CONTAINS_NO_LOOPS 11 "ContainsNoLoops";
    EVENT_NOTIFIER 12 "EventNotifier";
    VALUE 13 "Value";
    DATA_TYPE 14 "DataType";
    VALUE_RANK 15 "ValueRank";
    ARRAY_DIMENSIONS 16 "ArrayDimensions";
    ACCESS_LEVEL 17 "AccessLevel";
    USER_ACCESS_LEVEL 18 "UserAccessLevel";
    MINIMUM_SAMPLING_INTERVAL 19 "MinimumSamplingInterval";
    HISTORIZING 20 "Historizing";
    EXECUTABLE 21 "Executable";
    USER_EXECUTABLE 22 "UserExecutable";
    DATA_TYPE_DEFINITION 23 "DataTypeDefinition";
    ROLE_PERMISSIONS 24 "RolePermissions";
    USER_ROLE_PERMISSIONS 25 "UserRolePermissions";
    ACCESS_RESTRICTIONS 26 "AccessRestrictions";
    ACCESS_LEVEL_EX 27 "AccessLevelEx";
}

impl AttributeId {
    /// Whether such an attribute exists; otherwise the answer is `BadAttributeIdInvalid`.
    #[inline]
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.0 >= 1 && self.0 <= 27
    }
}

impl fmt::Display for AttributeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

impl BinaryEncode for AttributeId {
    fn encode(&self, e: &mut Encoder<'_>) {
        e.u32(self.0);
    }
}

impl BinaryDecode for AttributeId {
    const MIN_SIZE: usize = 4;

    #[inline]
    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        d.u32().map(Self)
    }
}
