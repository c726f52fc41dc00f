//! A few status codes until the generated list is there; then this file goes.

use crate::StatusCode;

macro_rules! codes {
    ($($constant:ident $value:literal $name:literal;)*) => {
        #[allow(missing_docs)]
        impl StatusCode {
            $(pub const $constant: Self = Self($value);)*

            /// The symbolic name, if the code is known; info and flag bits are ignored.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                match self.code().0 {
                    $($value => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    GOOD 0 "Good";
    BAD_UNEXPECTED_ERROR 0x8001_0000 "BadUnexpectedError";
    BAD_INTERNAL_ERROR 0x8002_0000 "BadInternalError";
    BAD_DECODING_ERROR 0x8007_0000 "BadDecodingError";
    BAD_ENCODING_LIMITS_EXCEEDED 0x8008_0000 "BadEncodingLimitsExceeded";
    BAD_NODE_ID_INVALID 0x8033_0000 "BadNodeIdInvalid";
    BAD_NODE_ID_UNKNOWN 0x8034_0000 "BadNodeIdUnknown";
    BAD_ATTRIBUTE_ID_INVALID 0x8035_0000 "BadAttributeIdInvalid";
    BAD_INDEX_RANGE_INVALID 0x8036_0000 "BadIndexRangeInvalid";
    BAD_INDEX_RANGE_NO_DATA 0x8037_0000 "BadIndexRangeNoData";
    BAD_INDEX_RANGE_DATA_MISMATCH 0x80EA_0000 "BadIndexRangeDataMismatch";
}
