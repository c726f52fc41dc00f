//! Decimal: a number with a decimal exponent, carried in an ExtensionObject (Part 6, 5.1.10 and 5.2.3).

use crate::codec::{DecodeError, Encoder};

use super::{ByteString, ExtensionBody, ExtensionObject, NodeId};

/// `value * 10^-scale`, where `value` is an integer of any length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decimal {
    /// Power of ten by which the value is divided.
    pub scale: i16,
    /// Little-endian two's complement.
    pub value: Vec<u8>,
}

impl Decimal {
    /// Id of the Decimal DataType, which is also the type id of the ExtensionObject.
    pub const TYPE_ID: u32 = 50;

    /// A decimal of an integer that fits 128 bits; uses as few bytes as it needs.
    #[must_use]
    pub fn new(value: i128, scale: i16) -> Self {
        let mut bytes = value.to_le_bytes().to_vec();
        let sign = if value < 0 { 0xFF } else { 0x00 };
        while let [.., before, last] = bytes.as_slice()
            && *last == sign
            && (before ^ sign) & 0x80 == 0
        {
            bytes.pop();
        }
        Self { scale, value: bytes }
    }

    /// The integer before scaling, if it fits 128 bits.
    #[must_use]
    pub fn unscaled(&self) -> Option<i128> {
        let negative = self.value.last().is_some_and(|last| last & 0x80 != 0);
        let sign = if negative { 0xFF } else { 0x00 };
        let mut bytes = [sign; 16];
        for (index, byte) in self.value.iter().enumerate() {
            match bytes.get_mut(index) {
                Some(place) => *place = *byte,
                None if *byte == sign => {}
                None => return None,
            }
        }
        let value = i128::from_le_bytes(bytes);
        (value < 0 || !negative)
            .then_some(value)
            .filter(|value| (*value < 0) == negative)
    }

    /// The ExtensionObject that carries it.
    #[must_use]
    pub fn to_extension_object(&self) -> ExtensionObject {
        let mut body = Vec::with_capacity(2 + self.value.len());
        let mut e = Encoder::new(&mut body);
        e.i16(self.scale);
        e.raw(&self.value);
        ExtensionObject {
            type_id: NodeId::standard(Self::TYPE_ID),
            body: ExtensionBody::Binary(ByteString::from(body)),
        }
    }

    /// The decimal that an ExtensionObject carries.
    ///
    /// # Errors
    /// [`DecodeError::UnexpectedType`] if it carries something else, [`DecodeError::Truncated`] without a scale.
    pub fn from_extension_object(object: &ExtensionObject) -> Result<Self, DecodeError> {
        if object.type_id.as_standard() != Some(Self::TYPE_ID) {
            return Err(DecodeError::UnexpectedType);
        }
        let bytes = object.binary().ok_or(DecodeError::UnexpectedType)?;
        let (scale, value) = bytes.split_first_chunk::<2>().ok_or(DecodeError::Truncated)?;
        Ok(Self {
            scale: i16::from_le_bytes(*scale),
            value: value.to_vec(),
        })
    }
}
