//! Limits of one decoder.

use super::MAX_DEPTH;

/// What a decoder accepts. A value above a limit is `BadEncodingLimitsExceeded`, and nothing was allocated for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Longest String or XmlElement, in bytes of UTF-8.
    pub max_string_length: u32,
    /// Longest ByteString and longest ExtensionObject body, in bytes.
    pub max_byte_string_length: u32,
    /// Most elements of one array; for matrices the product of the dimensions.
    pub max_array_length: u32,
    /// Most nesting levels, shared by all types that can nest.
    pub max_depth: u32,
    /// Bytes of memory that the elements of arrays may take beyond their bytes on the wire, in one message: a DataValue of one byte on the
    /// wire takes 72 in memory, and this is what keeps a message of such values from taking 72 times its size.
    pub max_expansion: u32,
}

impl DecodeLimits {
    /// The limits of a server that was not configured otherwise: 1 MiB strings, 16 MiB byte strings, 1,048,576 elements, 100 levels,
    /// 64 MiB of expansion.
    pub const DEFAULT: Self = Self {
        max_string_length: 1 << 20,
        max_byte_string_length: 16 << 20,
        max_array_length: 1 << 20,
        max_depth: MAX_DEPTH,
        max_expansion: 64 << 20,
    };

    /// No limits but the nesting depth; for data of our own making. Lengths are still checked against the bytes that remain.
    pub const TRUSTED: Self = Self {
        max_string_length: u32::MAX,
        max_byte_string_length: u32::MAX,
        max_array_length: u32::MAX,
        max_depth: MAX_DEPTH,
        max_expansion: u32::MAX,
    };
}

impl Default for DecodeLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
