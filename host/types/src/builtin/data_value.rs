//! DataValue: a value with quality and timestamps (Part 4, 7.11; Part 6, 5.2.2.17).

use crate::codec::{BinaryDecode, BinaryEncode, DecodeError, Decoder, Encoder};

use super::{DateTime, StatusCode, Variant};

/// A value with its status and timestamps. A missing status is Good.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DataValue {
    /// The value.
    pub value: Variant,
    /// The status; `None` means Good.
    pub status: Option<StatusCode>,
    /// When the source last knew the value to be this.
    pub source_timestamp: Option<DateTime>,
    /// Units of 10 ps to add to the source timestamp, at most 9,999.
    pub source_picoseconds: Option<u16>,
    /// When the server last knew the value to be this.
    pub server_timestamp: Option<DateTime>,
    /// Units of 10 ps to add to the server timestamp, at most 9,999.
    pub server_picoseconds: Option<u16>,
}

/// The mask before a DataValue.
pub(crate) mod mask {
    pub(crate) const VALUE: u8 = 0x01;
    pub(crate) const STATUS: u8 = 0x02;
    pub(crate) const SOURCE_TIMESTAMP: u8 = 0x04;
    pub(crate) const SERVER_TIMESTAMP: u8 = 0x08;
    pub(crate) const SOURCE_PICOSECONDS: u8 = 0x10;
    pub(crate) const SERVER_PICOSECONDS: u8 = 0x20;
}

/// Part 6, 5.2.2.17: 10,000 and above are read as 9,999.
const MAX_PICOSECONDS: u16 = 9_999;

impl DataValue {
    /// A value with no status (Good) and no timestamps.
    pub fn new(value: impl Into<Variant>) -> Self {
        Self {
            value: value.into(),
            ..Self::default()
        }
    }

    /// A status without a value.
    #[must_use]
    pub fn from_status(status: StatusCode) -> Self {
        Self {
            status: Some(status),
            ..Self::default()
        }
    }

    /// The status, Good if there is none.
    #[inline]
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status.unwrap_or_default()
    }

    /// Whether value, status, timestamps and picoseconds are the same, see [`Variant::is_same`].
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.status == other.status
            && self.source_timestamp == other.source_timestamp
            && self.source_picoseconds == other.source_picoseconds
            && self.server_timestamp == other.server_timestamp
            && self.server_picoseconds == other.server_picoseconds
            && self.value.is_same(&other.value)
    }
}

impl BinaryEncode for DataValue {
    fn encode(&self, e: &mut Encoder<'_>) {
        let bit = |present: bool, bit: u8| if present { bit } else { 0 };
        e.u8(bit(!self.value.is_empty(), mask::VALUE)
            | bit(self.status.is_some(), mask::STATUS)
            | bit(self.source_timestamp.is_some(), mask::SOURCE_TIMESTAMP)
            | bit(self.server_timestamp.is_some(), mask::SERVER_TIMESTAMP)
            | bit(self.source_picoseconds.is_some(), mask::SOURCE_PICOSECONDS)
            | bit(self.server_picoseconds.is_some(), mask::SERVER_PICOSECONDS));
        if !self.value.is_empty() {
            self.value.encode(e);
        }
        if let Some(status) = self.status {
            status.encode(e);
        }
        if let Some(timestamp) = self.source_timestamp {
            timestamp.encode(e);
        }
        if let Some(picoseconds) = self.source_picoseconds {
            e.u16(picoseconds.min(MAX_PICOSECONDS));
        }
        if let Some(timestamp) = self.server_timestamp {
            timestamp.encode(e);
        }
        if let Some(picoseconds) = self.server_picoseconds {
            e.u16(picoseconds.min(MAX_PICOSECONDS));
        }
    }
}

impl BinaryDecode for DataValue {
    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let bits = d.u8()?;
        let mut value = Self::default();
        if bits & mask::VALUE != 0 {
            value.value = Variant::decode(d)?;
        }
        if bits & mask::STATUS != 0 {
            value.status = Some(StatusCode::decode(d)?);
        }
        if bits & mask::SOURCE_TIMESTAMP != 0 {
            value.source_timestamp = Some(DateTime::decode(d)?);
        }
        if bits & mask::SOURCE_PICOSECONDS != 0 {
            value.source_picoseconds = Some(d.u16()?.min(MAX_PICOSECONDS));
        }
        if bits & mask::SERVER_TIMESTAMP != 0 {
            value.server_timestamp = Some(DateTime::decode(d)?);
        }
        if bits & mask::SERVER_PICOSECONDS != 0 {
            value.server_picoseconds = Some(d.u16()?.min(MAX_PICOSECONDS));
        }
        Ok(value)
    }
}
