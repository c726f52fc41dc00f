//! DataValue: a value with quality and timestamps (Part 4, 7.11; Part 6, 5.2.2.17).

use crate::codec::{BinaryDecode, BinaryEncode, DecodeError, Decoder, Encoder};

use super::{BuiltInType, DateTime, StatusCode, Variant};

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

/// Everything of a DataValue but the value; what a reader knows before it writes a value straight into a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DataValueHead {
    /// The status; Good is not written.
    pub status: StatusCode,
    /// When the source last knew the value to be this.
    pub source_timestamp: Option<DateTime>,
    /// Units of 10 ps to add to the source timestamp.
    pub source_picoseconds: Option<u16>,
    /// When the server last knew the value to be this.
    pub server_timestamp: Option<DateTime>,
    /// Units of 10 ps to add to the server timestamp.
    pub server_picoseconds: Option<u16>,
}

/// Picoseconds that mean something: they add to a timestamp.
#[inline]
fn more(timestamp: Option<DateTime>, picoseconds: Option<u16>) -> Option<u16> {
    timestamp.and(picoseconds).filter(|picoseconds| *picoseconds != 0)
}

impl Encoder<'_> {
    /// Appends a DataValue from its parts. `value` must not be the null Variant: that is `None`.
    ///
    /// Part 6, 5.2.2.17: a Good status, the timestamp 0 and 0 picoseconds are not written.
    #[inline]
    pub fn data_value<T: BinaryEncode + ?Sized>(&mut self, head: &DataValueHead, value: Option<&T>) {
        self.data_value_with(head, value.map(|value| |e: &mut Self| value.encode(e)));
    }

    /// Appends a DataValue whose Variant is written by `value`, which must write exactly one Variant that is not null.
    #[inline]
    pub fn data_value_with(&mut self, head: &DataValueHead, value: Option<impl FnOnce(&mut Self)>) {
        let at = |timestamp: Option<DateTime>| timestamp.filter(|timestamp| !timestamp.is_null());
        let source = at(head.source_timestamp);
        let server = at(head.server_timestamp);
        let source_picoseconds = more(source, head.source_picoseconds);
        let server_picoseconds = more(server, head.server_picoseconds);
        let bit = |present: bool, bit: u8| if present { bit } else { 0 };
        self.u8(bit(value.is_some(), mask::VALUE)
            | bit(head.status != StatusCode::GOOD, mask::STATUS)
            | bit(source.is_some(), mask::SOURCE_TIMESTAMP)
            | bit(server.is_some(), mask::SERVER_TIMESTAMP)
            | bit(source_picoseconds.is_some(), mask::SOURCE_PICOSECONDS)
            | bit(server_picoseconds.is_some(), mask::SERVER_PICOSECONDS));
        if let Some(write) = value {
            write(self);
        }
        if head.status != StatusCode::GOOD {
            self.u32(head.status.0);
        }
        for (timestamp, picoseconds) in [(source, source_picoseconds), (server, server_picoseconds)] {
            if let Some(timestamp) = timestamp {
                self.i64(timestamp.ticks());
            }
            if let Some(picoseconds) = picoseconds {
                self.u16(picoseconds.min(MAX_PICOSECONDS));
            }
        }
    }
}

/// Bytes of one value of each built-in type by its id, 8 where they differ or are more.
const SCALAR_SIZES: [u8; 32] = {
    let mut sizes = [8; 32];
    let mut index = 0;
    while index < BuiltInType::ALL.len() {
        let built_in_type = BuiltInType::ALL[index];
        sizes[built_in_type.id() as usize] = match built_in_type.fixed_size() {
            Some(size @ 0..8) => size as u8,
            _ => 8,
        };
        index += 1;
    }
    sizes
};

/// Bytes of the longest DataValue that [`Encoder::scalar_data_value`] writes (26), rounded up to what is copied at once.
const SCALAR_ROOM: usize = 32;

impl Encoder<'_> {
    /// Appends a Good DataValue without picoseconds whose value is a scalar of at most 8 bytes, in the form of [`Variant::to_bits`]. Times are
    /// [ticks](DateTime::ticks); 0 is none.
    ///
    /// What [`Encoder::data_value`] writes, but put together first and appended at once.
    #[inline]
    pub fn scalar_data_value(&mut self, built_in_type: BuiltInType, bits: u64, source: i64, server: i64) {
        let mut bytes = [0u8; SCALAR_ROOM];
        let mut put = |at: usize, word: u64| {
            if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
                *place = word.to_le_bytes();
            }
        };
        let id = built_in_type.id();
        put(2, bits);
        let mut present = mask::VALUE;
        let mut end = 2 + SCALAR_SIZES.get(usize::from(id)).map_or(8, |size| usize::from(*size));
        if source != 0 {
            present |= mask::SOURCE_TIMESTAMP;
            put(end, source.cast_unsigned());
            end += 8;
        }
        if server != 0 {
            present |= mask::SERVER_TIMESTAMP;
            put(end, server.cast_unsigned());
            end += 8;
        }
        bytes[0] = present;
        bytes[1] = id;
        self.front(&bytes, end);
    }
}

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

    /// Everything but the value.
    #[inline]
    #[must_use]
    pub fn head(&self) -> DataValueHead {
        DataValueHead {
            status: self.status(),
            source_timestamp: self.source_timestamp,
            source_picoseconds: self.source_picoseconds,
            server_timestamp: self.server_timestamp,
            server_picoseconds: self.server_picoseconds,
        }
    }

    /// Whether value, status, timestamps and picoseconds are the same, see [`Variant::is_same`].
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.head() == other.head() && self.value.is_same(&other.value)
    }
}

impl BinaryEncode for DataValue {
    #[inline]
    fn encode(&self, e: &mut Encoder<'_>) {
        let value = if self.value.is_empty() { None } else { Some(&self.value) };
        e.data_value(&self.head(), value);
    }
}

impl DataValueHead {
    /// Reads what follows the value of a DataValue.
    #[inline]
    pub(crate) fn decode(bits: u8, d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let mut head = Self::default();
        if bits & mask::STATUS != 0 {
            head.status = StatusCode(d.u32()?);
        }
        if bits & mask::SOURCE_TIMESTAMP != 0 {
            head.source_timestamp = Some(DateTime::decode(d)?);
        }
        if bits & mask::SOURCE_PICOSECONDS != 0 {
            head.source_picoseconds = Some(d.u16()?.min(MAX_PICOSECONDS));
        }
        if bits & mask::SERVER_TIMESTAMP != 0 {
            head.server_timestamp = Some(DateTime::decode(d)?);
        }
        if bits & mask::SERVER_PICOSECONDS != 0 {
            head.server_picoseconds = Some(d.u16()?.min(MAX_PICOSECONDS));
        }
        // What stands for nothing reads as nothing, as it is written (Part 6, 5.2.2.17): the timestamp 0, and picoseconds that are 0 or
        // have no timestamp.
        let at = |timestamp: Option<DateTime>| timestamp.filter(|timestamp| !timestamp.is_null());
        head.source_timestamp = at(head.source_timestamp);
        head.server_timestamp = at(head.server_timestamp);
        head.source_picoseconds = more(head.source_timestamp, head.source_picoseconds);
        head.server_picoseconds = more(head.server_timestamp, head.server_picoseconds);
        Ok(head)
    }
}

impl BinaryDecode for DataValue {
    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let bits = d.u8()?;
        let value = if bits & mask::VALUE != 0 {
            Variant::decode(d)?
        } else {
            Variant::Empty
        };
        let head = DataValueHead::decode(bits, d)?;
        Ok(Self {
            value,
            // A status that stands in the message as Good is the same as none.
            status: (head.status != StatusCode::GOOD).then_some(head.status),
            source_timestamp: head.source_timestamp,
            source_picoseconds: head.source_picoseconds,
            server_timestamp: head.server_timestamp,
            server_picoseconds: head.server_picoseconds,
        })
    }
}
