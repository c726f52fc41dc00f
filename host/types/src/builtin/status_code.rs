//! StatusCode (Part 4, 7.39; Part 6, 5.2.2.11). The named codes are generated.

use std::fmt;

use crate::codec::{BinaryDecode, BinaryEncode, DecodeError, Decoder, Encoder};

/// A StatusCode. The two highest bits are the severity.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StatusCode(pub u32);

impl StatusCode {
    /// InfoType DataValue and the Overflow bit: a monitored item lost values before or after this one (Part 4, 7.39.1).
    pub const OVERFLOW_BITS: u32 = 0x0000_0480;
    /// The StructureChanged bit.
    pub const STRUCTURE_CHANGED: u32 = 0x0000_8000;
    /// The SemanticsChanged bit.
    pub const SEMANTICS_CHANGED: u32 = 0x0000_4000;

    /// Severity Good.
    #[inline]
    #[must_use]
    pub const fn is_good(self) -> bool {
        self.0 >> 30 == 0
    }

    /// Severity Uncertain.
    #[inline]
    #[must_use]
    pub const fn is_uncertain(self) -> bool {
        self.0 >> 30 == 1
    }

    /// Severity Bad; the reserved fourth severity counts as bad.
    #[inline]
    #[must_use]
    pub const fn is_bad(self) -> bool {
        self.0 >> 31 == 1
    }

    /// The same code without info and flag bits (the low 16).
    #[inline]
    #[must_use]
    pub const fn code(self) -> Self {
        Self(self.0 & 0xFFFF_0000)
    }

    /// The same code with the Overflow bit set.
    #[inline]
    #[must_use]
    pub const fn with_overflow(self) -> Self {
        Self(self.0 | Self::OVERFLOW_BITS)
    }
}

impl fmt::Display for StatusCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} (0x{:08X})", self.0),
            None => write!(f, "0x{:08X}", self.0),
        }
    }
}

impl fmt::Debug for StatusCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for StatusCode {}

impl BinaryEncode for StatusCode {
    #[inline]
    fn encode(&self, e: &mut Encoder<'_>) {
        e.u32(self.0);
    }
}

impl BinaryDecode for StatusCode {
    const MIN_SIZE: usize = 4;

    #[inline]
    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        d.u32().map(Self)
    }
}
