//! Guid (Part 6, 5.1.3 and 5.2.2.6).

use std::fmt;
use std::str::FromStr;

use crate::codec::{BinaryDecode, BinaryEncode, DecodeError, Decoder, Encoder};

/// A Guid as the 16 bytes that stand on the wire: Data1, Data2 and Data3 little-endian, then Data4.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(pub [u8; 16]);

/// The text is not of the form `C496578A-0DFE-4B8F-870A-745238C6AEAE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a guid")]
pub struct ParseGuidError;

/// For each pair of hexadecimal digits in the text form, the byte on the wire it stands for.
const TEXT_ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];

impl Guid {
    /// The null Guid, all zero.
    pub const NULL: Self = Self([0; 16]);

    /// Whether all bytes are zero.
    #[must_use]
    pub fn is_null(&self) -> bool {
        *self == Self::NULL
    }

    /// The Guid of the four fields of the text form.
    #[must_use]
    pub const fn from_fields(data1: u32, data2: u16, data3: u16, data4: [u8; 8]) -> Self {
        let [a, b, c, d] = data1.to_le_bytes();
        let [e, f] = data2.to_le_bytes();
        let [g, h] = data3.to_le_bytes();
        let [i, j, k, l, m, n, o, p] = data4;
        Self([a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p])
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, place) in TEXT_ORDER.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{:02X}", self.0.get(*place).copied().unwrap_or(0))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guid({self})")
    }
}

impl FromStr for Guid {
    type Err = ParseGuidError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = text.as_bytes();
        if bytes.len() != 36 {
            return Err(ParseGuidError);
        }
        let mut guid = [0; 16];
        let mut order = TEXT_ORDER.iter();
        let mut at = 0;
        while at < 36 {
            if matches!(at, 8 | 13 | 18 | 23) {
                if bytes.get(at) != Some(&b'-') {
                    return Err(ParseGuidError);
                }
                at += 1;
                continue;
            }
            let digit = |index: usize| bytes.get(index).and_then(|byte| char::from(*byte).to_digit(16));
            let (Some(high), Some(low)) = (digit(at), digit(at + 1)) else {
                return Err(ParseGuidError);
            };
            let place = order
                .next()
                .and_then(|place| guid.get_mut(*place))
                .ok_or(ParseGuidError)?;
            *place = u8::try_from(high * 16 + low).map_err(|_| ParseGuidError)?;
            at += 2;
        }
        Ok(Self(guid))
    }
}

impl BinaryEncode for Guid {
    fn encode(&self, e: &mut Encoder<'_>) {
        e.raw(&self.0);
    }
}

impl BinaryDecode for Guid {
    const MIN_SIZE: usize = 16;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        d.array().map(Self)
    }
}
